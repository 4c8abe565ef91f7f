// The account of a reader, in the form: sign in with a code by email or with a password, sign out;
// then name, emails, followed pages, password, download and deletion. The panel replaces the name
// and the buttons of the form; the text stays. `embed.js` loads this on demand, and for readers who
// are signed in. In order: Style, Account, Steps, Signing in, Profile.

// -- Style --------------------------------------------------------------------

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// The panel looks like a form, and signing in takes a captcha.
export const needs = 'writing.js'

// -- Account ------------------------------------------------------------------

/** The claims of a token (RFC 7519). */
const claims = token => JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')))

/** Opens the account beside a form, because of an error or because the reader asks for it ('open').
    Without a reason it shows who is signed in, with 'leave' it signs them out. A reason with a
    `secret` is what an identity provider has brought: see `take` and, with a `step`, `resume`. */
export async function account(thread, kit, form, reason) {
  const {Failure, button, h, isEmail, me, recall} = kit
  const say = (key, n) => thread.say(key, n)

  const forms = () => [...thread.shadowRoot.querySelectorAll('form.form')]

  /** The form in which this began, or its replacement; otherwise the main form. */
  const currentForm = () =>
    forms().find(({subject}) => subject === form.subject) ?? thread.$('form')

  // The owner's own site signs in readers who may be elsewhere on the page.
  let isHere = !reason?.site || form.matches(':focus-within')
  const onfocusin = () => { isHere = true }
  const panel = h('form', {noValidate: true, class: 'panel open', tabIndex: -1, onfocusin})

  /** Focuses an element, unless the reader is elsewhere. */
  const focus = node => {
    if (isHere) kit.moveFocus(thread, node, form, panel)
  }

  /** Focuses where one signs in, where that is asked for first, otherwise an element of the form.
      */
  const focusForm = (wanted = 'textarea') =>
    focus(currentForm().querySelector('.barred button, ' + wanted) ?? currentForm().content)

  const read = path => kit.readOwn(kit, path)
  const send = (...request) => kit.send(kit, ...request)
  const digest = async text => (await kit.load('proof.js')).digest(text)

  const takeCaptchaToken = async () => {
    const token = await thread.use('writing.js', 'captchaToken', true)
    thread.use('writing.js', 'dropCaptchaToken')
    return token
  }

  function setReader(reader) {
    if (!reader.token && me().role === 'admin') thread.load({}) // only an admin sees what waits
    thread.$('.panel')?.remove()
    const nobody = {token: undefined, id: undefined, role: undefined, site: undefined}
    kit.keep(kit, 'me', {...me(), ...nobody, ...reader})
    for (const each of forms()) {
      const hasFocus = each.matches(':focus-within')
      const fresh = thread.makeForm(each.subject)
      fresh.content.value = each.content.value
      each.replaceWith(fresh)
      if (hasFocus) fresh.content.focus() // they go on writing
    }
    thread.use('own.js', 'own')
  }

  async function leave() {
    send('auth/logout', {}).catch(() => {}) // here they are signed out even so
    setReader({})
    await thread.use('writing.js', 'equip', currentForm())
    thread.announce(say('out'))
  }

  async function signOut() {
    await leave()
    focusForm()
  }

  /** Shows who is signed in, where a guest would write a name. */
  function greet(guestForm) {
    const guest = guestForm.querySelector('.guest')
    if (!guest) return // writing.js comes back when it is there
    guest.hidden = !!guestForm.subject.change
    const openPanel = () => account(thread, kit, guestForm, 'open')
    guest.replaceChildren(h('p', {class: 'row'},
      h('span', {}, say('as', me().nickname)),
      h('span', {class: 'signed'},
        button(say('account'), openPanel, {class: 'account'}),
        button(say('signout'), signOut))))
  }

  if (reason?.code === 'token_invalid') {
    setReader({})
    form = currentForm()
    await thread.use('writing.js', 'equip', form)
    kit.showError(thread, kit, form, new Failure('ended'))
  } else if (reason === 'leave') return leave()
  else if (me().token && reason !== 'open' && !reason?.step) return greet(form)

  // -- Steps ------------------------------------------------------------------

  // What is typed in a step stands in the fields of the next one.
  const {email: ownEmail = '', nickname: ownName = ''} = me()
  const kept = recall('account', {}, 'sessionStorage')
  const typed = {email: ownEmail, nickname: ownName, ...kept}
  const canMail = thread.settings.registration
  let secret = ''
  let byCode // whether a code confirms a sensitive step, instead of the password
  let proof // or what a provider has brought: {voucher, voucher_secret}

  const field = (name, word, props) => {
    const oninput = ({target}) => { typed[name] = target.value.trim() }
    const value = typed[name] ?? ''
    const input = h('input', {class: 'field', name, required: true, value, oninput, ...props})
    return h('label', {}, h('span', {}, say(word)), input)
  }
  const nicknameField = () => field('nickname', 'name', {autocomplete: 'nickname', dir: 'auto'})
  const emailField = () =>
    field('email', 'address', {type: 'email', autocomplete: 'username', inputMode: 'email'})
  const password = (autocomplete, word = 'password', name = 'password') =>
    field(name, word, {type: 'password', autocomplete, value: ''})
  const small = (text, props) => h('p', {class: 'small', ...props}, text)
  const advice = () => small(say('advice'))
  const goTo = (word, step) => button(say(word), () => go(step))
  const cancel = () => button(say('cancel'), close)
  const back = step => [
    canMail && !byCode && !proof && button(say('usecode'), () => prepare(step, true)),
    button(say('back'), () => go('me', step)),
  ]

  const STEPS = {
    in: () => ({
      title: 'signin', fields: [emailField()],
      submit: 'send', act: () => sendCode(), others: [goTo('usepassword', 'password'), cancel()],
    }),
    code: () => ({
      title: typed.registering ? 'register' : 'signin', fields: codeFields(typed.email),
      submit: 'confirm', act: typed.registering ? confirmRegistration : signInByCode,
      others: [button(say('again'), sendAgain), goTo('back', 'in'), cancel()],
    }),
    name: () => ({
      title: 'register', fields: [nicknameField(), ...typed.picture ? [pictureChoice()] : []],
      submit: 'register', act: typed.vouched ? signInByVoucher : signInByCode, others: [cancel()],
    }),
    password: () => ({
      title: 'signin', fields: [emailField(), password('current-password')],
      submit: 'signin', act: signIn,
      others: [...canMail ? [goTo('usecode', 'in'), goTo('register', 'up')] : [], cancel()],
    }),
    factor: () => ({ // of an admin
      title: 'signin', fields: [field('factor', 'factor', {autocomplete: 'one-time-code'})],
      submit: 'signin', act: signInWithFactor, others: [goTo('back', 'password'), cancel()],
    }),
    up: () => ({
      title: 'register',
      fields: [nicknameField(), emailField(), password('new-password'), advice()],
      submit: 'send', act: register, others: [goTo('back', 'password'), cancel()],
    }),
    me: () => ({ // `showProfile` fills it
      title: 'account', fields: [small('…')], act: rename, others: [button(say('close'), close)],
    }),
    change: () => ({
      title: 'change',
      fields: [
        username(), ...proofFields(), password('new-password', 'newone', 'fresh'), advice(),
      ],
      submit: 'save', act: changePassword, others: back('change'),
    }),
    erase: () => ({
      title: 'erase', fields: [commentsChoice(), username(), ...proofFields()],
      submit: 'erase', act: erase, others: back('erase'),
    }),
  }

  /** The digits of Arabic and Persian keyboards. The last four bits of each are its value. */
  const ARABIC_DIGIT = /[\u0660-\u0669\u06f0-\u06f9]/g

  /** It takes six digits however they are pasted, and sends them when the step is complete. */
  const codeField = () => field('code', 'code', {
    autocomplete: 'one-time-code', inputMode: 'numeric', value: '', 'aria-describedby': 'sent',
    oninput: ({target}) => {
      const value = target.value.normalize('NFKC')
      const digits = value.replace(ARABIC_DIGIT, digit => digit.charCodeAt() & 15)
      target.value = digits.replace(/\D/g, '').slice(0, 6)
      if (target.value.length === 6 && panel.checkValidity()) panel.requestSubmit()
    },
  })
  const codeFields = recipient => [small(say('sent', recipient), {id: 'sent'}), codeField()]
  function proofFields() {
    if (proof) return []
    return byCode ? codeFields(accountEmail) : [password('current-password', 'current')]
  }

  /** Says to password managers whose password it is. */
  const username = () =>
    h('input', {type: 'email', autocomplete: 'username', value: accountEmail, hidden: true})

  const choice = (value, word, checked) => {
    const radio = h('input', {type: 'radio', name: 'comments', value, checked})
    return h('label', {class: 'choice'}, radio, h('span', {}, say(word)))
  }

  const commentsChoice = () => h('fieldset', {},
    h('legend', {class: 'small'}, say('erasing')),
    choice('keep', 'stay', true),
    choice('delete', 'go'))

  /** A provider has a picture of a new reader. */
  function pictureChoice() {
    const onchange = ({target}) => { typed.wantsPicture = target.checked }
    const checked = !!typed.wantsPicture
    const box = h('input', {type: 'checkbox', name: 'picture', checked, onchange})
    return h('label', {class: 'choice'}, box, h('span', {}, say('provider_picture')))
  }

  /** Shows a step. The focus goes to the first empty field or, in the profile, to the button of the
      step before. */
  function go(step, from) {
    const {title, fields, submit, act: work, others} = STEPS[step]()
    panel.onsubmit = event => {
      event.preventDefault()
      act(work)
    }
    panel.ariaLabel = say(title)
    const look = step === 'erase' ? 'button danger' : 'button'
    panel.replaceChildren(
      h('b', {}, say(title)),
      ...fields,
      h('div', {class: 'row'}, submit && h('button', {class: look}, say(submit)), ...others))
    if (step === 'me') {
      focus(panel)
      return showProfile(from).catch(error => {
        panel.querySelector('.small').remove()
        panel.querySelector('.row').prepend(goTo('retry', 'me'))
        showError(error)
      })
    }
    const isOffered = thread.settings.providers && !typed.vouched
    if (isOffered && ['in', 'password', 'up'].includes(step)) {
      thread.use('login.js', 'offer', panel, take).catch(showError)
    }
    const inputs = [...panel.querySelectorAll('label input:not([name=picture])')]
    const isLast = input => input === inputs.at(-1)
    const first = inputs.find(input => step === 'erase' || !input.value || isLast(input))
    first.ariaDescription = say(title)
    focus(first)
  }

  function close() {
    panel.remove()
    kit.keep(kit, 'account', undefined, 'sessionStorage')
    focusForm('.account')
  }

  /** Does the work of a step or switch, once at a time. */
  async function act(work, near) {
    if (panel.ariaBusy === 'true') return
    panel.dispatchEvent(new Event('input')) // removes the error of the try before
    panel.ariaBusy = true
    try {
      await work()
    } catch (error) {
      showError(error, near)
    }
    panel.ariaBusy = false
  }

  function showError(error, near) {
    kit.showError(thread, kit, panel, error, near)
  }

  // -- Signing in -------------------------------------------------------------

  /** Throws unless these fields, where the step has them, are filled in. Hashes the password. */
  async function checkFields(...names) {
    for (const name of names) {
      if (panel[name]?.value.trim() === '') throw new Failure(name + '_missing')
    }
    if (panel.email && !isEmail(panel.email.value.trim())) throw new Failure('email_invalid')
    if (panel.password) secret = await digest(panel.password.value)
  }

  /** Asks for a code: to register with what is in `more`, otherwise to sign in. */
  async function requestCode(recipient, more) {
    const captcha_token = await takeCaptchaToken()
    const response = await send(more ? 'auth/register' : 'auth/code', {
      email: recipient, request_id: typed.request_id, captcha_token, lang: thread.language, ...more,
    })
    typed.request_id = response.request_id
  }

  /** Asks for a code that confirms a sensitive step. Strangers cannot use up how often that is
      possible. */
  async function requestOwnCode() {
    const body = {request_id: typed.request_id, lang: thread.language}
    typed.request_id = (await send('me/code', body)).request_id
  }

  async function sendCode(registration) {
    await checkFields('email')
    await requestCode(typed.email, registration)
    typed.registering = !!registration
    const {email, nickname, request_id, registering, vouched, site, picture} = typed
    const waiting = {email, nickname, request_id, registering, vouched, site, picture}
    kit.keep(kit, 'account', waiting, 'sessionStorage')
    go('code')
  }

  async function register() {
    await checkFields('nickname', 'email', 'password')
    await sendCode({nickname: typed.nickname, password: secret})
  }

  function sendAgain() {
    if (!typed.registering) act(() => sendCode())
    else if (secret) act(register)
    else go('up')
  }

  async function confirmRegistration() {
    const {email, request_id} = typed
    await send('auth/verify', {email, request_id, token: panel.code.value}).catch(error => {
      const code = {400: 'code_wrong', 429: 'too_many'}[error.status] ?? error.code
      throw new Failure(code, error)
    })
    kit.keep(kit, 'account', undefined, 'sessionStorage')
    if (secret) return signIn()
    go('password')
    thread.announce(say('verified'))
  }

  /** Signs in with the code. A new account is asked for a name, unless the form has one. */
  async function signInByCode() {
    if (panel.code) typed.code = panel.code.value
    await checkFields('nickname')
    const {code, nickname, request_id} = typed
    await logIn({code, nickname, request_id}).catch(error => {
      const [first] = (error.code ?? '').split('_')
      const step = {nickname: 'name', password: 'password'}[first]
      if (step) go(step)
      if (error.code !== 'nickname_missing') throw error
    })
  }

  async function signIn() {
    await checkFields('email', 'password')
    await logIn({password: secret, captcha_token: await takeCaptchaToken()}).catch(error => {
      if (error.code !== 'factor_needed') throw error
      go('factor')
    })
  }

  async function signInWithFactor() {
    if (!panel.factor.value.trim()) throw new Failure('factor_needed')
    const both = {password: secret, factor: panel.factor.value}
    await logIn({...both, captcha_token: await takeCaptchaToken()})
  }

  /** What a provider brought: {voucher} or {refusal}, with the secret. Without either, another
      window has signed in. */
  const take = ({voucher, refusal, secret: voucher_secret, site}) => act(() => {
    if (refusal) throw new Failure(refusal)
    if (!voucher) return welcome(me())
    typed.vouched = {voucher, voucher_secret}
    typed.site = site
    return signInByVoucher()
  })

  /** The same for a `step` of a reader who is signed in. */
  const resume = brought => act(async () => {
    const {voucher, refusal, secret: voucher_secret, step} = await brought
    if (!voucher && !panel.firstChild) await go('me') // the page itself went there and came back
    if (refusal) throw new Failure(refusal)
    if (!voucher) return
    proof = {voucher, voucher_secret}
    if (step === 'picture') {
      await send('me/picture', proof)
      thread.load({})
      return go('me')
    }
    accountEmail = (await loadProfile()).email
    go(step)
  })

  /** Signs in the person that a provider has named. A new account is asked for a name, unless the
      reader has written one. An address that the provider does not vouch for, or that has an
      account, is confirmed by a code. */
  async function signInByVoucher() {
    const asksName = !!panel.nickname
    if (asksName) await checkFields('nickname')
    const nickname = asksName ? typed.nickname : me().nickname
    await logIn({nickname}).catch(error => {
      typed.nickname ||= error.nickname
      typed.email = error.email || typed.email
      typed.picture ||= error.picture
      if (error.code === 'provider_name') return go('name')
      if (error.code === 'provider_email') go(canMail ? 'in' : 'password')
      if (error.code.startsWith('nickname')) go('name')
      throw error
    })
  }

  async function logIn(shown) {
    const picture = panel.picture?.checked
    const whole = {email: typed.email, picture, ...typed.vouched, ...shown}
    const reader = await send('auth/login', whole).catch(error => {
      // It is too old, or not for this account. Without it, the rest may go on.
      if (/^(provider_(refused|taken)|password_required)$/.test(error.code)) delete typed.vouched
      throw error
    })
    const {token, nickname, role} = reader
    const site = typed.vouched && typed.site // while it names them, see login.js
    welcome({token, nickname, role, id: claims(token).id, site})
  }

  function welcome(reader) {
    kit.keep(kit, 'account', undefined, 'sessionStorage')
    setReader(reader)
    thread.announce(say('here'))
    focusForm()
  }

  // -- Profile ----------------------------------------------------------------

  let accountEmail = ''

  const loadProfile = () => read('me?' + new URLSearchParams({url: thread.url}))

  async function showProfile(from) {
    const wait = panel.querySelector('.small')
    const row = panel.querySelector('.row')
    const profile = await loadProfile()
    proof = undefined
    const {box, list} = followedPages(profile)
    const choiceOf = key => toggle(key, profile[key], on => send('me', {[key]: on}, 'PATCH'))
    const questions = choiceOf('questions')
    const {has_password} = profile
    accountEmail = profile.email
    if (profile.nickname !== me().nickname) setNickname(profile.nickname) // changed elsewhere
    const word = (key, onclick) => button(say(key), onclick, {name: key})
    const nickname = field('nickname', 'name', {
      autocomplete: 'nickname', dir: 'auto', value: profile.nickname,
    })
    const nameRow = h('div', {class: 'rename'}, nickname, h('button', {class: 'more'}, say('save')))
    wait.replaceWith(
      h('p', {class: 'small'}, h('bdi', {}, accountEmail), ' · ' + say('count', profile.comments)),
      nameRow,
      choiceOf('answers'), box, list, questions)
    if (profile.identities?.length) {
      thread.use('login.js', 'identities', questions, profile, act, resume).catch(showError)
    }
    if ('picture' in profile) {
      thread.use('own_picture.js', 'offerPicture', nameRow, profile, act).catch(showError)
    }
    const begin = step => {
      if (has_password || canMail) return prepare(step, !has_password)
      const goBack = () => go('me', step)
      act(() => thread.use('login.js', 'prove', panel, profile.identities, step, goBack, resume))
    }
    row.prepend(
      word('change', () => begin('change')),
      word('export', () => act(download)),
      word('erase', () => begin('erase')))
    if (from) focus(panel[from])
  }

  /** Shows a sensitive step. If a code is to confirm it, the code is sent first. */
  function prepare(step, withCode) {
    byCode = withCode
    act(async () => {
      if (byCode) await requestOwnCode()
      go(step)
    })
  }

  /** A switch. Pressed again while it is sent, the last state is sent too. */
  function toggle(word, on, save) {
    const box = h('input', {
      type: 'checkbox', role: 'switch', class: 'switch', checked: on,
      onkeydown: event => {
        if (event.key !== 'Enter') return
        event.preventDefault()
        box.click()
      },
      onchange: async () => {
        if (box.ariaBusy) return
        let sent
        box.ariaBusy = true
        try {
          while (sent !== box.checked) {
            sent = box.checked
            await save(sent)
          }
        } catch (error) {
          box.checked = !sent
          showError(error, box.parentNode)
        }
        box.ariaBusy = null
      },
    })
    return h('label', {class: 'choice'}, box, h('span', {}, say(word)))
  }

  /** The switch for this page, and the list of the followed pages. An unfollowed page stays, so it
      can be followed again. */
  function followedPages(profile) {
    const buttons = new Map()
    const summary = h('summary')
    const items = h('ol', {class: 'pages', role: 'list'})
    const list = h('details', {}, summary, items)
    const box = toggle('emails', profile.following, on => follow(thread.url, on))

    async function follow(page_url, on) {
      await send('page/follow', {page_url, undo: !on, lang: thread.language})
      show(await loadProfile())
    }

    function add({page_url, page_link, page_title}) {
      const href = /^\/(?!\/)/.test(page_url) ? location.origin + page_url : page_link
      const path = kit.readable(page_url)
      const name = h('bdi', {}, page_title || path)
      const press = button('', () => act(() => follow(page_url, !press.on), list))
      const shown = h('span', {},
        /^https?:/.test(href) ? h('a', {href}, name) : name,
        page_title && h('br'),
        page_title && h('bdi', {class: 'small'}, path))
      items.append(h('li', {}, shown, press))
      buttons.set(page_url, press)
    }

    function show({follows, following}) {
      for (const page of follows) if (!buttons.has(page.page_url)) add(page)
      for (const [url, press] of buttons) {
        press.on = follows.some(({page_url}) => page_url === url)
        press.textContent = say(press.on ? 'unfollow' : 'follow')
        press.ariaLabel = `${press.textContent}: ${kit.readable(url)}`
      }
      summary.textContent = say('follows', follows.length)
      list.hidden = !buttons.size
      if (!box.firstChild.ariaBusy) box.firstChild.checked = following
    }

    show(profile)
    return {box, list}
  }

  async function rename() {
    await checkFields('nickname')
    const {nickname} = await send('me', {nickname: panel.nickname.value.trim()}, 'PATCH')
    setNickname(nickname)
    panel.nickname.value = nickname
    thread.announce(say('saved'))
  }

  function setNickname(nickname) {
    kit.keep(kit, 'me', {...me(), nickname})
    forms().forEach(greet)
  }

  async function changePassword() {
    await checkFields('password', 'fresh')
    const isShort = [...panel.fresh.value].length < 8 // its hash does not tell
    if (isShort && me().role === 'admin') throw new Failure('password_too_short')
    const {token} = await confirmed('PATCH', {new_password: await digest(panel.fresh.value)})
    kit.keep(kit, 'me', {...me(), token})
    thread.announce(say('changed'))
    go('me', 'change')
  }

  /** Saves all data as a file. No URL has the token in it. */
  async function download() {
    const text = JSON.stringify(await read('me/export'), null, 2)
    const href = URL.createObjectURL(new Blob([text], {type: 'application/json'}))
    h('a', {href, download: 'comments.json'}).click()
    setTimeout(() => URL.revokeObjectURL(href), 60000)
  }

  /** The first press asks, the second one deletes the account. */
  async function erase() {
    await checkFields('password')
    const press = panel.querySelector('.button')
    const {id} = me()
    if (!press.dataset.sure) {
      // It keeps its width, so that no other button moves under the pointer.
      press.style.minWidth = `${press.offsetWidth}px`
      press.dataset.sure = press.textContent = say('sure')
      press.addEventListener('blur', () => {
        press.dataset.sure = ''
        press.textContent = say('erase')
      }, {once: true})
      return press.focus()
    }
    await confirmed('DELETE', {comments: panel.comments.value})
    kit.keep(kit, 'me')
    kit.keep(kit, 'account', undefined, 'sessionStorage')
    const written = Object.entries(recall('own', {}))
    const others = written.filter(([, entry]) => entry?.comment?.user_id !== id)
    kit.keep(kit, 'own', Object.fromEntries(others))
    setReader({})
    thread.load({})
    thread.announce(say('erased'))
    focusForm()
  }

  /** Sends a request that needs the password or a code. */
  const confirmed = (method, body) => {
    const byHand = byCode
      ? {code: panel.code.value, request_id: typed.request_id}
      : {password: secret}
    return send('me', {...body, ...proof ?? byHand}, method).catch(error => {
      throw new Failure(error.code === 'wrong_password' ? 'password_wrong' : error.code, error)
    })
  }

  guard(form, kit)
  thread.$('.panel')?.remove()
  form.after(panel)
  if (me().token) return reason?.step ? resume(reason) : go('me')
  go(typed.request_id ? 'code' : canMail ? 'in' : 'password')
  if (reason?.secret) take(reason)
}

const guarded = new WeakSet()

/** While a panel hides the name of a guest, Ctrl+Enter in the text must not post: it sends the
    panel. */
function guard(form, {me}) {
  if (guarded.has(form)) return
  guarded.add(form)
  form.addEventListener('submit', event => {
    const panel = form.nextSibling
    if (me().token || !panel?.matches('.panel')) return
    event.preventDefault()
    event.stopImmediatePropagation()
    panel.requestSubmit()
  }, true)
}
