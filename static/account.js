// The account of a reader, in place: sign in, register, the code, a new password, sign out. `embed.js`
// loads this when somebody asks for it or is signed in. Drafts stay, since they are kept elsewhere.
// In order: Password, Account.

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

// -- Account ------------------------------------------------------------------

export function account(thread, {ask, button, h, keep, me, recall, local}, form, refusal) {
  const say = (key, n) => thread.say(key, n)

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

  if (refusal?.code === 'token_invalid') {
    signed({})
    form = here()
    thread.use('more.js', 'fault', form, {code: 'ended'})
  } else if (me().token) {
    const guest = form.querySelector('.guest')
    guest.hidden = !!form.what.old
    guest.replaceChildren(h('p', {class: 'row'}, h('span', {}, say('as', me().nickname)), button(say('signout'), leave)))
    return
  }

  // What is typed on the way stays in the fields of the next step.
  const typed = {email: me().email ?? '', nickname: me().nickname ?? '', ...recall('account', {}, 'sessionStorage')}
  let secret = ''

  const field = (name, word, props) => h('label', {}, h('span', {}, say(word)), h('input', {class: 'field',
    name, value: typed[name] ?? '', oninput: event => { typed[name] = event.target.value.trim() }, ...props,
  }))
  const email = () => field('email', 'address', {type: 'email', autocomplete: 'username', inputMode: 'email'})
  const password = autocomplete => field('password', 'password', {type: 'password', autocomplete, value: ''})

  const STEPS = {
    in: () => [
      'signin', [email(), password('current-password')], 'signin', signIn,
      button(say('register'), () => go('up')), button(say('forgot'), () => go('renew')),
    ],
    up: () => [
      'register', [field('nickname', 'name', {autocomplete: 'nickname'}), email(), password('new-password'), h('p', {class: 'small'}, say('advice'))],
      'send', register, button(say('back'), () => go('in')),
    ],
    renew: () => ['renew', [h('p', {class: 'small'}, say('renewing')), ...STEPS.up()[1]], ...STEPS.up().slice(2)],
    code: () => [
      'code', [h('p', {class: 'small', id: 'sent'}, say('sent', typed.email)), code()],
      'confirm', verify, button(say('again'), () => secret ? act(register) : go('renew')), button(say('back'), () => go('in')),
    ],
  }

  /** Takes six digits however they are pasted, and goes on by itself. */
  const code = () => field('token', 'code', {
    autocomplete: 'one-time-code', inputMode: 'numeric', value: '', 'aria-describedby': 'sent',
    oninput: ({target}) => {
      target.value = target.value.replace(/\D/g, '').slice(0, 6)
      if (target.value.length === 6) panel.requestSubmit()
    },
  })

  const panel = h('form', {noValidate: true, class: 'aside panel open'})

  function go(step) {
    const [title, fields, word, work, ...others] = STEPS[step]()
    panel.onsubmit = event => { event.preventDefault(); act(work) }
    panel.ariaLabel = say(title)
    panel.replaceChildren(h('b', {}, say(title)), ...fields, h('div', {class: 'row'},
      h('button', {class: 'button'}, say(word)), ...others, button(say('cancel'), close)))
    ;[...panel.querySelectorAll('input')].find((input, i, all) => !input.value || i === all.length - 1).focus()
  }

  function close() {
    panel.remove()
    keep('account', undefined, 'sessionStorage')
    here().content.focus()
  }

  async function act(work) {
    if (panel.ariaBusy === 'true') return
    panel.ariaBusy = true
    try {
      await work()
    } catch (refusal) {
      if (!refusal.code) throw refusal
      thread.use('more.js', 'fault', panel, refusal)
    }
    panel.ariaBusy = false
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
    panel.remove()
    signed({token, nickname, role, id: claims(token).id})
    thread.tell(say('here'))
    here().content.focus()
  }

  thread.$('.panel')?.remove()
  form.after(panel)
  go(recall('account', {}, 'sessionStorage').request_id ? 'code' : 'in')
}
