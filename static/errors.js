// What the other scripts store and send, what forms check before that, and what readers are told
// when something fails. Loaded with each script that readers use, since nothing more can be loaded
// when the network fails. What this exports stands in the kit of the others.
// In order: Style, Memory, Checks, Sending, Reasons, Texts, Showing.

// -- Style --------------------------------------------------------------------

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// -- Memory -------------------------------------------------------------------

/** Stores a value for `recall` of embed.js. */
export function keep({SERVICE, memory}, key, value, area = 'localStorage') {
  memory[key] = value
  try {
    window[area].setItem(SERVICE + key, JSON.stringify(value ?? null))
    delete memory[key]
  } catch {
    // Storage is blocked or full: it is kept until the page is left.
  }
}

// -- Checks -------------------------------------------------------------------

/** What the service would refuse need not be sent. It looks closer, and reads full-width
    characters too. */
export const isEmail = text =>
  /^[^\s@]+ *@ *[^\s@]+[.。][^\s@]+$/.test(text.normalize('NFKC').trim())

// -- Sending ------------------------------------------------------------------

const authorization = ({me}) => me().token ? {Authorization: 'Bearer ' + me().token} : {}

/** What only this reader, who is signed in, may read. */
export const readOwn = (kit, path) => kit.ask(path, {headers: authorization(kit)})

/** Sends what a reader wrote or chose, in their name where they are signed in. */
export async function send(kit, path, body, method = 'POST') {
  const headers = {'Content-Type': 'application/json', ...authorization(kit)}
  const content = await kit.ask(path, {method, headers, body: JSON.stringify(body)})
  kit.keep(kit, 'wrote', Date.now(), 'sessionStorage')
  return content
}

const PATIENCE = 30e3 // ms

/** Sends what may arrive twice. While the service is busy or restarts (503), it is sent again for
    half a minute, when the service says, and not by all readers at once. A provider of captchas
    that is down takes longer. */
export async function sendPatiently(kit, ...request) {
  const end = Date.now() + PATIENCE
  for (let pause = 1000; ; pause *= 2) {
    try {
      return await send(kit, ...request)
    } catch (error) {
      const advised = Number(error.retry) * 1000 || 0
      const next = Math.max(pause, advised) * (1 + Math.random() / 2)
      const heals = error.status === 503 && error.code !== 'captcha_down'
      if (!heals || Date.now() + next > end) throw error
      await new Promise(resolve => setTimeout(resolve, next))
    }
  }
}

// -- Reasons ------------------------------------------------------------------

/** The text that says why the comments can't be shown; undefined if the service can't be reached. A
    browser says the same of a network that fails, of an ad blocker and of a service whose settings
    lack this site, so the service is asked: every page can read that response. */
export async function whyNotShown(thread, {Failure, ask, report}, error) {
  const isAway = [502, 503, 504].includes(error.status)
  if (!(error instanceof Failure)) report('the comments can’t be shown', error)
  else if (error.code === 'unreadable') report('the service sent no list of comments', error)
  else if (!error.status) {
    const {allowed} = await ask('origin')
    return allowed === false ? thread.say('refused') : undefined
  }
  return isAway ? undefined : thread.say('broken')
}

// -- Texts --------------------------------------------------------------------

// The texts for error codes that begin with these words.
const TEXT_KEYS = {
  origin: 'refused', body: 'content_too_long', parent: 'comment',
  comment: 'comment', page: 'page', nickname: 'nickname', email: 'email', website: 'website',
  captcha: 'captcha', login: 'login', token: 'token', code: 'code_wrong',
  reason: 'content_invalid', fresh: 'password_missing', emoji: 'failed', face: 'failed',
}

/** A page's URL as a person would write it. */
export function readable(url) {
  try {
    return decodeURI(url)
  } catch {
    return url // it holds a percent sign that encodes nothing
  }
}

/** A time to wait, such as “40 seconds” or “57 minutes”. */
export function duration(seconds, language) {
  const units = [['day', 86400], ['hour', 3600], ['minute', 60]] // with their seconds
  const [unit, size] = units.find(([, length]) => seconds >= 2 * length) ?? ['second', 1]
  const style = {style: 'unit', unit, unitDisplay: 'long'}
  return Math.ceil(seconds / size).toLocaleString(language, style)
}

/** The text of an error, by its code or the first word of it. The service's own texts are
    Chinese. */
function errorText(thread, {code = 'failed', error, retry}) {
  const [first] = code.split('_')
  const original = thread.language === 'zh-CN' && error
  let n = Number(retry ?? 60)
  if (code === 'too_many') n = duration(n, thread.language)
  const text = thread.say(code, n) ?? thread.say(TEXT_KEYS[first])
  return text ?? (original || thread.say('failed'))
}

// -- Showing ------------------------------------------------------------------

/** Whether a reader went elsewhere while they waited: something outside of these places has the
    focus. Then nothing may take it. */
export function wentOn({shadowRoot}, ...places) {
  const focused = shadowRoot.activeElement ?? document.querySelector(':focus')
  return !!focused && !places.some(place => place.contains(focused))
}

/** Focuses a node, unless a reader went elsewhere than to these places. */
export function moveFocus(thread, node, ...places) {
  if (!wentOn(thread, ...places)) node?.focus()
}

/** What is loaded, or undefined where that fails. A form shows the error until the next try. */
export async function loadFor(thread, kit, form, loading) {
  try {
    const loaded = await loading
    clearError(thread)
    return loaded
  } catch (error) {
    showError(thread, kit, form, error)
  }
}

/** Shows an error beside `near`, or beside the field that its code names, until the reader changes
    something. */
export function showError(thread, kit, form, error, near) {
  const {code = ''} = error
  if (!code) kit.report('a script failed', error)
  const field = near ? near.control : form.elements?.namedItem(code.split('_')[0])
  clearError(thread)
  if (code === 'nickname_missing' && !field) { // the reader signed out in another tab
    return showInNewForm(thread, kit, form, error)
  }
  const isThere = field === thread.shadowRoot.activeElement
  // Where the focus goes to the field, its description is spoken. An alert would say it twice.
  // The box of a captcha is in the thread, outside of its root.
  const focuses = field && !isThere && !wentOn(thread, thread, form.parentNode ?? form)
  const role = focuses ? {} : {role: 'alert'}
  const note = kit.h('p', {class: 'error', id: 'error', ...role}, errorText(thread, error))
  let place = near ?? field?.closest('label') ?? field
  if (field?.name === 'content') place = form.querySelector('.tools') // they hang at the field
  if (place) place.after(note)
  else form.append(note)
  form.addEventListener('input', () => clearError(thread), {once: true})
  if (field) {
    field.setAttribute('aria-invalid', true)
    field.setAttribute('aria-describedby', 'error')
    field.closest('details')?.setAttribute('open', '')
    if (focuses) field.focus()
  }
  if (code === 'too_many') countDown(thread, note, error)
  if (code.startsWith('captcha')) thread.use('writing.js', 'dropCaptchaToken')
  if (code === 'login_required' || code === 'token_invalid') {
    thread.use('account.js', 'account', form, error)
  }
}

export function clearError(thread) {
  thread.announce('')
  thread.$('#error')?.remove()
  for (const node of thread.shadowRoot.querySelectorAll('[aria-describedby=error]')) {
    node.removeAttribute('aria-describedby')
    node.removeAttribute('aria-invalid')
  }
}

/** Draws the form anew, which asks for a name where the reader is not signed in. */
async function showInNewForm(thread, kit, form, error) {
  const again = thread.makeForm(form.subject)
  form.replaceWith(again)
  await thread.use('writing.js', 'equip', again)
  showError(thread, kit, again, {...error, code: again.elements.nickname ? error.code : 'failed'})
}

/** Shows again and again how long the reader must still wait. A screen reader says it once. */
function countDown(thread, note, error) {
  const end = Date.now() + Number(error.retry ?? 60) * 1000
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left > 0 && note.isConnected) {
      note.removeAttribute('role')
      note.textContent = errorText(thread, {...error, retry: left})
      return
    }
    clearInterval(timer)
    if (note.isConnected) clearError(thread)
  }, 1000)
}
