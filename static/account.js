// The account of a reader, in place: sign in, register, the code, a new password, sign out. `embed.js`
// loads this when somebody asks for it or is signed in. Drafts stay, since they are kept elsewhere.
// In order: Words, Password, Account.

// -- Words --------------------------------------------------------------------

const MORE = {
  en: {
    signout: 'Sign out',
    as: 'Signed in as {n}',
    register: 'Create an account',
    forgot: 'Forgot your password?',
    renew: 'Set a new password',
    renewing: 'Register once more with your address: your comments stay yours, and the new password counts when you have typed the code.',
    address: 'E-mail',
    out: 'You are signed out.',
    password: 'Password',
    advice: 'At least 8 characters are wise.',
    send: 'Send the code',
    code: 'Code',
    sent: 'Six digits are on their way to {n}. They are good for ten minutes; look into the spam folder too.',
    confirm: 'Confirm',
    again: 'Send it again',
    back: 'Back',
    here: 'You are signed in.',
    verified: 'Your address is confirmed. Please sign in.',
    token_wrong: 'The code is wrong or too old. Try again, or have it sent again.',
    email_missing: 'Please write your address.',
    email_invalid: 'Write it as ann@example.com.',
    password_missing: 'Please write a password.',
    wrong_credentials: 'This address and password do not belong together.',
    email_unverified: 'This address is not confirmed yet: have a code sent.',
    ended: 'Your sign-in has ended. Sign in again, or go on with a name.',
  },
  zh: {
    signout: '退出登录',
    as: '已登录：{n}',
    register: '注册账号',
    forgot: '忘记密码？',
    renew: '设置新密码',
    renewing: '用原来的邮箱再注册一次即可：评论仍然归你，输入验证码之后新密码生效。',
    address: '邮箱',
    out: '已退出登录。',
    password: '密码',
    advice: '建议至少 8 个字符。',
    send: '发送验证码',
    code: '验证码',
    sent: '6 位验证码已发往 {n}，10 分钟内有效。没收到的话，看看垃圾邮件。',
    confirm: '确认',
    again: '重新发送',
    back: '返回',
    here: '已登录。',
    verified: '邮箱已确认，请登录。',
    token_wrong: '验证码错误或已过期，请重试或重新发送。',
    email_missing: '请填写邮箱。',
    email_invalid: '请写成 ann@example.com 的样子。',
    password_missing: '请填写密码。',
    wrong_credentials: '邮箱或密码不对。',
    email_unverified: '这个邮箱还没有确认，请发送验证码。',
    ended: '登录已失效，请重新登录，或填写昵称继续。',
  },
}

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

export function account(thread, {WORDS, ask, button, h, keep, me, recall, local}, form, refusal) {
  for (const lang in MORE) Object.assign(WORDS[lang], MORE[lang])
  const say = (key, n) => thread.say(key, n)

  const forms = () => [...thread.shadowRoot.querySelectorAll('form[part]')]

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
    thread.fault(form, {code: 'ended'})
  } else if (me().token) {
    const guest = form.querySelector('.guest')
    guest.hidden = !!form.what.old
    guest.replaceChildren(h('p', {class: 'row'}, h('span', {}, say('as', me().nickname)), button(say('signout'), leave)))
    return
  }

  // What is typed on the way stays in the fields of the next step.
  const typed = {email: me().email ?? '', nickname: me().nickname ?? '', ...recall('account', {}, 'sessionStorage')}
  let secret = ''

  const field = (name, word, props) => h('label', {}, h('span', {}, say(word)), h('input', {
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
      h('button', {class: 'main'}, say(word)), ...others, button(say('cancel'), close)))
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
      thread.fault(panel, refusal)
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
