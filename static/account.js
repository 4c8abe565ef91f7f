// The account of a reader, in place: sign in, register, the code, a new password, sign out; then what is kept
// of it: name, emails, followed pages, a copy of all, its end. `embed.js` loads this when somebody asks for
// it or is signed in. Drafts stay, since they are kept elsewhere.
// In order: Style, Password, Service, Account.

// -- Style --------------------------------------------------------------------

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
.guest .row { grid-column: 1 / -1 }
.signed { display: flex; gap: inherit }
.signed button { padding-inline-start: 0 }
.panel [open] { grid-column: auto }
.panel .row > button:not(.button):first-child { padding-inline-start: 0 }
fieldset { min-width: 0; padding: 0; border: 0 }
legend { padding: 0; margin-bottom: .5em }
.rename { display: flex; flex-wrap: wrap; align-items: end; gap: var(--_space) }
.rename label { flex: 1 8em; min-width: 0 }
.rename .more { padding-block: .5em }
.rename .error { order: 1; flex-basis: 100% }
.choice { display: flex; align-items: center; gap: .75em; min-height: 2em }
.choice input { flex: none; width: 1.5em; height: 1.5em; padding: 0; accent-color: var(--_accent) }
.choice .switch { appearance: none; width: 2.5em; padding: .2em; border-radius: 1em }
.switch::before { content: ""; display: block; width: 0; border: .5em solid var(--_edge); border-radius: 50% }
.switch:checked { border-color: var(--_accent); background: var(--_accent) }
.switch:checked::before { margin-inline-start: 1em; border-color: Canvas }
.pages li { display: flex; align-items: center; justify-content: space-between; gap: 1em; min-height: 2em; padding: 0 }
.pages button { flex: none; font-size: .875em; color: var(--_muted) }
@media (pointer: coarse) {
  .choice, .pages li { min-height: 44px }
}
@media (forced-colors) {
  .switch:checked, .switch:checked::before { border-color: Highlight }
}
`)

// -- Password -----------------------------------------------------------------

/** The SHA-256 of a text, in hex: passwords leave the browser as this only. */
export function digest(text, {H, hex, sha256}) {
  const bytes = new TextEncoder().encode(text), blocks = Math.ceil((bytes.length + 9) / 64)
  const padded = new DataView(new ArrayBuffer(64 * blocks))
  bytes.forEach((byte, i) => padded.setUint8(i, byte))
  padded.setUint8(bytes.length, 0x80)
  padded.setUint32(64 * blocks - 4, 8 * bytes.length)
  let state = H.slice(0, 8)
  for (let i = 0; i < blocks; i++) {
    state = sha256(state, Array.from({length: 16}, (_, word) => padded.getInt32(64 * i + 4 * word)))
  }
  return hex(state)
}

/** The claims of a token (RFC 7519). */
const claims = token => JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')))

// -- Service ------------------------------------------------------------------

/** What a reader alone may read; the rest of the widget reads without a token. */
async function read(path, token) {
  const headers = {Authorization: 'Bearer ' + token}, signal = AbortSignal.timeout(20000)
  let reply, said
  try {
    reply = await fetch(new URL(path, import.meta.url), {headers, signal, credentials: 'omit'})
    said = await reply.json()
  } catch {
    throw {code: 'offline'}
  }
  if (reply.ok) return said
  throw {code: 'failed', ...said, retry: reply.headers.get('Retry-After')}
}

// -- Account ------------------------------------------------------------------

export function account(thread, kit, form, refusal) {
  const {ask, button, h, keep, me, recall, local} = kit
  const say = (key, n) => thread.say(key, n), {adoptedStyleSheets: sheets} = thread.shadowRoot
  if (!sheets.includes(sheet)) sheets.push(sheet)

  const forms = () => [...thread.shadowRoot.querySelectorAll('form.form')]

  /** The form that this began in, or what was put in its place; the main one where it is gone. */
  const here = () => forms().find(({what}) => what === form.what) ?? thread.$('form')

  /** A captcha token, which is used up. */
  const captcha = async () => {
    const token = await thread.token(true)
    thread.spent()
    return token
  }

  function signed(person) {
    if (!person.token && me().role === 'admin') thread.load({}) // what waits is for an admin's eyes
    thread.$('.panel')?.remove()
    keep('me', {...me(), token: undefined, id: undefined, role: undefined, ...person})
    for (const each of forms()) each.replaceWith(thread.writer(each.what))
    thread.use('more.js', 'own')
  }

  function leave() {
    ask('auth/logout', {}).catch(() => {})
    signed({})
    thread.tell(say('out'))
    here().content.focus()
  }

  /** Who is signed in, where a guest would write his name. */
  function greet(form) {
    const guest = form.querySelector('.guest')
    guest.hidden = !!form.what.old
    guest.replaceChildren(h('p', {class: 'row'}, h('span', {}, say('as', me().nickname)), h('span', {class: 'signed'},
      button(say('account'), () => account(thread, kit, form, 'open'), {class: 'account'}), button(say('signout'), leave))))
  }

  if (refusal?.code === 'token_invalid') {
    signed({})
    form = here()
    thread.use('more.js', 'fault', form, {code: 'ended'})
  } else if (me().token && refusal !== 'open') return greet(form)

  // What is typed on the way stays in the fields of the next step.
  const typed = {email: me().email ?? '', nickname: me().nickname ?? '', ...recall('account', {}, 'sessionStorage')}
  let secret = ''

  const field = (name, word, props) => h('label', {}, h('span', {}, say(word)), h('input', {class: 'field',
    name, required: true, value: typed[name] ?? '', oninput: event => { typed[name] = event.target.value.trim() }, ...props,
  }))
  const email = () => field('email', 'address', {type: 'email', autocomplete: 'username', inputMode: 'email'})
  const password = (autocomplete, word = 'password', name = 'password') => field(name, word, {type: 'password', autocomplete, value: ''})
  const small = (text, props) => h('p', {class: 'small', ...props}, text)

  const STEPS = {
    in: () => [
      'signin', [email(), password('current-password')], 'signin', signIn,
      button(say('register'), () => go('up')), button(say('forgot'), () => go('renew')), cancel(),
    ],
    up: () => [
      'register', [field('nickname', 'name', {autocomplete: 'nickname'}), email(), password('new-password'), small(say('advice'))],
      'send', register, back('in'), cancel(),
    ],
    renew: () => ['renew', [small(say('renewing')), ...STEPS.up()[1]], ...STEPS.up().slice(2)],
    code: () => [
      'code', [small(say('sent', typed.email), {id: 'sent'}), code()],
      'confirm', verify, button(say('again'), () => secret ? act(register) : go('renew')), back('in'), cancel(),
    ],
    me: () => ['account', [small('…')], '', rename, button(say('close'), close)], // see `profile`
    change: () => [
      'change', [address(), password('current-password', 'current'), password('new-password', 'newone', 'fresh'), small(say('advice'))],
      'save', change, back('me', 'change'),
    ],
    erase: () => [
      'erase', [h('fieldset', {}, h('legend', {class: 'small'}, say('erasing')), choice('keep', 'stay', true), choice('delete', 'go')),
        address(), password('current-password', 'current')],
      'erase', erase, back('me', 'erase'),
    ],
  }
  const cancel = () => button(say('cancel'), close)
  const back = (step, from) => button(say('back'), () => go(step, from))

  /** Takes six digits however they are pasted, and goes on by itself. */
  const code = () => field('token', 'code', {
    autocomplete: 'one-time-code', inputMode: 'numeric', value: '', 'aria-describedby': 'sent',
    oninput: ({target}) => {
      target.value = target.value.replace(/\D/g, '').slice(0, 6)
      if (target.value.length === 6) panel.requestSubmit()
    },
  })

  /** Whose password it is, for those who keep passwords. */
  const address = () => h('input', {type: 'email', autocomplete: 'username', value: whose, hidden: true})
  const choice = (value, word, checked) =>
    h('label', {class: 'choice'}, h('input', {type: 'radio', name: 'comments', value, checked}), h('span', {}, say(word)))

  const panel = h('form', {noValidate: true, class: 'aside panel open', tabIndex: -1})

  /** Shows a step; the focus goes to the first field that is empty, or where one came from. */
  function go(step, from) {
    const [title, fields, word, work, ...others] = STEPS[step]()
    panel.onsubmit = event => { event.preventDefault(); act(work) }
    panel.ariaLabel = say(title)
    panel.replaceChildren(h('b', {}, say(title)), ...fields, h('div', {class: 'row'},
      word && h('button', {class: 'button'}, say(word)), ...others))
    if (step === 'me') {
      panel.focus()
      return profile(from).catch(refusal => {
        panel.querySelector('.small').remove()
        panel.querySelector('.row').prepend(button(say('retry'), () => go('me')))
        failed(refusal)
      })
    }
    const inputs = [...panel.querySelectorAll('label input')]
    inputs.find((input, i) => step === 'erase' || !input.value || i === inputs.length - 1).focus()
  }

  function close() {
    panel.remove()
    keep('account', undefined, 'sessionStorage')
    ;(here().querySelector('.account') ?? here().content).focus()
  }

  async function act(work, near) {
    if (panel.ariaBusy === 'true') return
    panel.dispatchEvent(new Event('input')) // what was said of the try before is past
    panel.ariaBusy = true
    try {
      await work()
    } catch (refusal) {
      failed(refusal, near)
    }
    panel.ariaBusy = false
  }

  function failed(refusal, near) {
    if (!refusal.code) throw refusal
    thread.use('more.js', 'fault', panel, refusal, near)
  }

  /** What is typed into the fields that are there. */
  function filled(...names) {
    for (const name of names) {
      if (!panel[name].value.trim()) throw {code: name + '_missing'}
    }
    if (panel.password) secret = digest(panel.password.value, local)
  }

  async function register() {
    if (panel.password) filled('nickname', 'email', 'password')
    const {nickname, email, request_id} = typed
    const reply = await ask('auth/register', {nickname, email, request_id, password: secret, captcha_token: await captcha()})
    typed.request_id = reply.request_id
    keep('account', {nickname, email, request_id: reply.request_id}, 'sessionStorage')
    go('code')
  }

  async function verify() {
    const {email, request_id} = typed
    await ask('auth/verify', {email, request_id, token: panel.token.value}).catch(refusal => {
      const code = {400: 'token_wrong', 429: 'too_many'}[refusal.status] ?? refusal.code
      throw {...refusal, code}
    })
    keep('account', undefined, 'sessionStorage')
    if (secret) return enter()
    go('in')
    thread.tell(say('verified'))
  }

  async function signIn() {
    filled('email', 'password')
    await enter()
  }

  async function enter() {
    const {email} = typed
    const {token, nickname, role} = await ask('auth/login', {email, password: secret, captcha_token: await captcha()})
    signed({token, nickname, role, id: claims(token).id})
    thread.tell(say('here'))
    here().content.focus()
  }

  // What is kept of who is signed in

  let whose = ''

  const load = () => read('me?' + new URLSearchParams({url: thread.url}), me().token)

  /** All of it, in the panel; the focus goes to what led away from it before. */
  async function profile(from) {
    const wait = panel.querySelector('.small'), row = panel.querySelector('.row')
    const told = await load(), {box, list} = followed(told)
    whose = told.email
    if (told.nickname !== me().nickname) named(told.nickname) // changed elsewhere
    const word = (key, act) => button(say(key), act, {name: key})
    wait.replaceWith(
      h('p', {class: 'small'}, h('bdi', {}, whose), ' · ' + say('count', told.comments)),
      h('div', {class: 'rename'}, field('nickname', 'name', {autocomplete: 'nickname', dir: 'auto', value: told.nickname}), h('button', {class: 'more'}, say('save'))),
      toggle('answers', told.answers, on => ask('me', {answers: on}, 'PATCH')), box, list)
    row.prepend(word('change', () => go('change')), word('export', () => act(save)), word('erase', () => go('erase')))
    if (from) panel[from].focus()
  }

  /** A switch: what it says is sent at once, and the last word holds. */
  function toggle(word, on, send) {
    const box = h('input', {
      type: 'checkbox', role: 'switch', class: 'switch', checked: on,
      onkeydown: event => event.key === 'Enter' && (event.preventDefault() ?? box.click()),
      onchange: async () => {
        if (box.ariaBusy) return
        let told
        box.ariaBusy = true
        try {
          while (told !== box.checked) await send(told = box.checked)
        } catch (refusal) {
          box.checked = !told
          failed(refusal, box.parentNode)
        }
        box.ariaBusy = null
      },
    })
    return h('label', {class: 'choice'}, box, h('span', {}, say(word)))
  }

  /** Whether this page is followed, and the list of all that are: what is ended there can be taken up again. */
  function followed(told) {
    const presses = new Map(), summary = h('summary'), items = h('ol', {class: 'pages', role: 'list'})
    const list = h('details', {}, summary, items)
    const box = toggle('emails', told.following, on => follow(thread.url, on))

    async function follow(page_url, on) {
      await ask('page/follow', {page_url, undo: !on, lang: thread.language})
      show(await load())
    }

    function add({page_url, page_link}) {
      const href = /^\/(?!\/)/.test(page_url) ? location.origin + page_url : page_link, name = h('bdi', {}, spelt(page_url))
      const press = button('', () => act(() => follow(page_url, !press.on), list))
      items.append(h('li', {}, /^https?:/.test(href) ? h('a', {href}, name) : name, press))
      presses.set(page_url, press)
    }

    function show({follows, following}) {
      for (const page of follows) if (!presses.has(page.page_url)) add(page)
      for (const [url, press] of presses) {
        press.on = follows.some(({page_url}) => page_url === url)
        press.textContent = say(press.on ? 'unfollow' : 'follow')
        press.ariaLabel = `${press.textContent}: ${spelt(url)}`
      }
      summary.textContent = say('follows', follows.length)
      list.hidden = !presses.size
      if (!box.firstChild.ariaBusy) box.firstChild.checked = following
    }

    show(told)
    return {box, list}
  }

  async function rename() {
    filled('nickname')
    const {nickname} = await ask('me', {nickname: panel.nickname.value.trim()}, 'PATCH')
    named(nickname)
    panel.nickname.value = nickname
    thread.tell(say('saved'))
  }

  function named(nickname) {
    keep('me', {...me(), nickname})
    forms().forEach(greet)
  }

  async function change() {
    filled('password', 'fresh')
    const {token} = await confirmed('PATCH', {new_password: digest(panel.fresh.value, local)})
    keep('me', {...me(), token})
    thread.tell(say('changed'))
    go('me', 'change')
  }

  /** A file with all that is kept, which leaves no address with a token behind. */
  async function save() {
    const text = JSON.stringify(await read('me/export', me().token), null, 2)
    const href = URL.createObjectURL(new Blob([text], {type: 'application/json'}))
    h('a', {href, download: 'comments.json'}).click()
    setTimeout(() => URL.revokeObjectURL(href), 60000)
  }

  /** The first press asks, the second one ends the account. */
  async function erase() {
    filled('password')
    const press = panel.querySelector('.button'), {id} = me()
    if (!press.dataset.sure) {
      // It keeps its width, so that no button beside it moves from under the pointer.
      press.style.minWidth = `${press.offsetWidth}px`
      press.dataset.sure = press.textContent = say('sure')
      press.addEventListener('blur', () => {
        press.dataset.sure = ''
        press.textContent = say('erase')
      }, {once: true})
      return press.focus()
    }
    await confirmed('DELETE', {comments: panel.comments.value})
    keep('me')
    keep('account', undefined, 'sessionStorage')
    keep('own', Object.fromEntries(Object.entries(recall('own', {})).filter(([, entry]) => entry?.comment?.user_id !== id)))
    signed({})
    thread.load({})
    thread.tell(say('erased'))
    here().content.focus()
  }

  /** Asks for what needs the password. */
  const confirmed = (method, what) => ask('me', {...what, password: secret}, method).catch(refusal => {
    throw {...refusal, code: refusal.code === 'wrong_password' ? 'password_wrong' : refusal.code}
  })

  thread.$('.panel')?.remove()
  form.after(panel)
  go(me().token ? 'me' : recall('account', {}, 'sessionStorage').request_id ? 'code' : 'in')
}

/** A page's address as a person would write it. */
function spelt(url) {
  try {
    return decodeURI(url)
  } catch {
    return url
  }
}
