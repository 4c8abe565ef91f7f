// What only some pages and readers need, loaded on first use. `embed.js` calls these functions by name, with the
// thread and a kit of its own functions, when the texts of the language are loaded.
// In order: Style, Errors, Writing, Captcha, Sending, Likes, Replies, Menu, Links, Reports, Own comments,
// New comments, Quotes, Keys.

// -- Style --------------------------------------------------------------------

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
[aria-invalid], .error { --_accent: var(--_error); border-color: var(--_accent) }
.error, .row > .over { color: var(--_error) }
.tools button { padding: 0; width: 2.25em; line-height: 1; white-space: nowrap }
.tools button::before { content: attr(data-sign) }
.bold { font-weight: 700 }
.italic { font-family: Georgia, serif; font-style: italic }
.quotation::before { font: 700 2em/0 Georgia, serif; vertical-align: -.35em }
.snippet::before { font: .875em ui-monospace, monospace; letter-spacing: -.05em }
/* Three lines, each with a dot before it. */
.bullets::before { content: ""; display: inline-block; width: .95em; height: .75em; border-block: 1.5px solid; background: linear-gradient(currentColor 0 0) center / 100% 1.5px no-repeat; mask: linear-gradient(90deg, #000 .2em, #0000 0 .35em, #000 0) }
.bullets:dir(rtl)::before { scale: -1 1 }
/* Two links of a chain. */
.hyperlink::before, .hyperlink::after { content: ""; display: inline-block; width: .75em; height: .45em; margin: 0 -.1em; border: 1.5px solid; border-radius: 1em; rotate: -45deg }
.hyperlink::before { translate: 0 .1em }
.hyperlink::after { translate: 0 -.2em }
@container (max-width: 34em) {
  article > form { margin-bottom: calc(2 * var(--_space)) }
}
[role=status]:not(.sr, :empty) { position: sticky; bottom: 1em; background: Canvas; color: CanvasText; width: fit-content; padding: .3em 1em; border: 1px solid; border-radius: var(--_radius); pointer-events: none }
[data-target] { --_wash: color-mix(in srgb, var(--_accent) 5%, #0000); border-radius: var(--_radius); background: var(--_wash); box-shadow: 0 0 0 .6em var(--_wash) }
[data-target]:focus { outline: 2px solid var(--_accent); outline-offset: .6em }
@media not (prefers-reduced-motion) {
  [data-target], [data-target]:focus { animation: settle 1s 4s forwards }
  @keyframes settle { to { outline-color: #0000; background: none; box-shadow: none } }
}
.guest .error { grid-column: 1 / -1 }
.comment { position: relative }
.comment:has(> .quote), article[data-target] { content-visibility: visible !important }
.quote { position: absolute; z-index: 1; user-select: none; -webkit-user-select: none }
.quote, .fresh button { padding: .3em 1em; border: 1px solid; outline-offset: -4px; background: Canvas; color: CanvasText }
.quote, .fresh, dialog { --_accent: CanvasText; --_text: CanvasText }
.fresh:not(:empty) { padding: 0; border: 0; background: none; margin-inline: auto; pointer-events: auto }
dialog { margin: auto; max-width: min(24em, 90vw); padding: 1.5em; border: 1px solid; border-radius: var(--_radius) }
.menu { padding: 0; overflow: hidden; border-color: color-mix(in srgb, CanvasText 30%, #0000); box-shadow: 0 .3em 1em #0003 }
.menu[open] { display: grid; margin: 0; align-content: start; inset: var(--_top) auto auto var(--_left); max-width: calc(100vw - var(--_left) - 8px) }
.menu button { padding: .3em 2em .3em 1.2em; min-height: 2.5em; border-radius: 0; text-align: start }
.menu button:hover { background: color-mix(in srgb, CanvasText 10%, #0000) }
.menu button:focus-visible { outline: 2px solid; outline-offset: -4px }
.menu button:disabled { color: color-mix(in srgb, CanvasText 70%, Canvas); cursor: default }
.menu::backdrop { background: none }
article .quiet[aria-expanded=true] { opacity: 1 }
@media (pointer: coarse) {
  .menu[open] { inset: auto 0 0; width: 100%; max-width: none; border-width: 1px 0 0; border-radius: 1em 1em 0 0; padding-block: .5em max(.5em, env(safe-area-inset-bottom)) }
  .menu::backdrop { background: #0006 }
}
dl { display: grid; grid-template-columns: auto 1fr; gap: .3em 1em; margin: 1em 0 }
kbd { padding: .1em .4em; border: 1px solid; border-radius: .25em; font: .875em ui-monospace, monospace }
`)

function addStyle({shadowRoot: {adoptedStyleSheets: sheets}}) {
  if (!sheets.includes(sheet)) sheets.push(sheet)
}

// -- Errors -------------------------------------------------------------------

// The texts for error codes that begin with these words.
const TEXT_KEYS = {
  origin: 'refused', body: 'content_too_long', parent: 'comment', comment: 'comment', page: 'page',
  nickname: 'nickname', email: 'email', website: 'website', captcha: 'captcha', login: 'login', token: 'token', code: 'code_wrong',
  reason: 'content_invalid', fresh: 'password_missing',
}

/** A time to wait, such as “40 seconds” or “57 minutes”. */
function duration(seconds, language) {
  const [unit, size] = [['hour', 3600], ['minute', 60]].find(([, length]) => seconds >= 2 * length) ?? ['second', 1]
  return Math.ceil(seconds / size).toLocaleString(language, {style: 'unit', unit, unitDisplay: 'long'})
}

/** The text of an error, by its code or the first word of it. The service's own texts are Chinese. */
function errorText(thread, {code = 'failed', error, retry}) {
  const [first] = code.split('_')
  const original = thread.language === 'zh-CN' && error
  let n = Number(retry ?? 60)
  if (code === 'too_many') n = duration(n, thread.language)
  return thread.say(code, n) ?? thread.say(TEXT_KEYS[first]) ?? (original || thread.say('failed'))
}

/** Shows an error beside `near`, or beside the field that its code names, until the reader changes something. */
export function showError(thread, {h, report}, form, error, near) {
  const {code = ''} = error
  if (!code) report('a script failed', error)
  const field = near ? near.control : form.elements?.namedItem(code.split('_')[0])
  addStyle(thread)
  const clear = () => {
    thread.announce('')
    thread.$('#error')?.remove()
    for (const node of thread.shadowRoot.querySelectorAll('[aria-describedby=error]')) {
      node.removeAttribute('aria-describedby')
      node.removeAttribute('aria-invalid')
    }
  }
  clear()
  if (code === 'nickname_missing' && !field) { // the reader signed out in another tab
    const again = thread.makeForm(form.subject)
    form.replaceWith(again)
    return showError(thread, {h, report}, again, {...error, code: again.elements.nickname ? code : 'failed'})
  }
  // Where the focus goes to the field, its description is spoken. An alert would say it twice.
  const focuses = field && field !== thread.shadowRoot.activeElement
  const note = h('p', {class: 'error', id: 'error', ...!focuses && {role: 'alert'}}, errorText(thread, error))
  let place = near ?? field?.closest('label') ?? field
  if (field?.name === 'content') place = form.querySelector('.tools') // they hang at the field
  if (place) place.after(note)
  else form.append(note)
  form.addEventListener('input', clear, {once: true})
  if (field) {
    field.setAttribute('aria-invalid', true)
    field.setAttribute('aria-describedby', 'error')
    field.closest('details')?.setAttribute('open', '')
    field.focus()
  }
  if (code === 'too_many') countDown(thread, note, error, clear)
  if (code.startsWith('captcha')) dropCaptchaToken(thread)
  if (code === 'login_required' || code === 'token_invalid') thread.use('account.js', 'account', form, error)
}

/** Shows again and again how long the reader must still wait. A screen reader says it once. */
function countDown(thread, note, error, clear) {
  const end = Date.now() + Number(error.retry ?? 60) * 1000
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left > 0 && note.isConnected) {
      note.removeAttribute('role')
      note.textContent = errorText(thread, {...error, retry: left})
      return
    }
    clearInterval(timer)
    if (note.isConnected) clear()
  }, 1000)
}

/** Shows or hides the preview of a text. */
export async function preview(thread, kit, form, opener) {
  const shown = form.querySelector('.preview')
  if (shown) {
    opener.ariaExpanded = false
    return shown.remove()
  }
  try {
    const {html} = await kit.ask('comments/preview', {content: form.content.value})
    form.querySelector('.preview')?.remove() // they pressed twice before a response came
    form.querySelector('.guest').parentNode.append(kit.h('div', {class: 'aside preview'}, kit.formatted(html)))
    opener.ariaExpanded = true
  } catch (error) {
    showError(thread, kit, form, error)
  }
}

// -- Writing ------------------------------------------------------------------

const isMac = /^Mac|^iP/.test(navigator.platform)
const equipped = new WeakSet()

/** Replaces a part of a field and selects a part of what is there then, so that the browser can undo it. */
function replace(field, from, to, text, selectFrom, selectTo) {
  field.focus()
  field.setSelectionRange(from, to)
  const done = text ? document.execCommand('insertText', false, text) : document.execCommand('delete')
  if (!done) {
    field.setRangeText(text)
    field.dispatchEvent(new Event('input', {bubbles: true}))
  }
  field.setSelectionRange(selectFrom, selectTo)
}

/** What is selected in a field, without spaces at its end. */
function selected({value, selectionStart: from, selectionEnd}) {
  const text = value.slice(from, selectionEnd).trimEnd()
  return {from, to: from + text.length, text}
}

/** Puts marks around what is selected, or takes them away. */
function surround(field, mark) {
  const {from, to, text} = selected(field)
  const start = from - mark.length
  const end = to + mark.length
  const stars = /\**$/.exec(field.value.slice(0, from))[0].length
  const isOnlyBold = mark === '*' && stars === 2
  const marked = start >= 0 && !isOnlyBold && field.value.slice(start, end) === mark + text + mark
  if (marked) replace(field, start, end, text, start, start + text.length)
  else replace(field, from, to, mark + text + mark, from + mark.length, end)
}

/** Changes the lines that the selection touches. */
function changeLines(field, change) {
  const {value, selectionStart, selectionEnd} = field
  const from = value.lastIndexOf('\n', selectionStart - 1) + 1
  const next = value.indexOf('\n', selectionEnd)
  const to = next < 0 ? value.length : next
  const text = change(value.slice(from, to))
  const end = from + text.length
  replace(field, from, to, text, selectionStart < selectionEnd ? from : end, end)
}

function quoteLines(text) {
  if (/^(> ?.*\n?)+$/.test(text)) return text.replace(/^> ?/gm, '')
  return text.replace(/^/gm, '> ')
}

function listLines(text) {
  if (/^([-*] .*\n?)+$/.test(text)) return text.replace(/^[-*] /gm, '')
  return text.replace(/^/gm, '- ')
}

function markCode(field) {
  if (selected(field).text.includes('\n')) changeLines(field, text => '```\n' + text + '\n```')
  else surround(field, '`')
}

/** Makes a link of what is selected. What is still missing is selected then: its text, or its URL. */
function makeLink(field) {
  const {from, to, text} = selected(field)
  if (/^(https?:\/\/|mailto:)\S+$/.test(text)) return replace(field, from, to, `[](${text})`, from + 1, from + 1)
  const start = from + 1 + (text && text.length + 2)
  replace(field, from, to, `[${text}](https://)`, start, start + (text && 'https://'.length))
}

// By the word that names it: its sign (some are drawn), its key with Control or Command, and what it does to a field.
const FORMATS = {
  bold: ['B', 'B', field => surround(field, '**')],
  italic: ['I', 'I', field => surround(field, '*')],
  quote: ['”', '⇧ .', field => changeLines(field, quoteLines)],
  bullets: ['', '⇧ 8', field => changeLines(field, listLines)],
  snippet: ['</>', 'E', markCode],
  hyperlink: ['', 'K', makeLink],
}

const SHIFTED = {Period: '⇧ .', Digit8: '⇧ 8'} // by the place on the keyboard: the characters there differ

/** Formats the text by a key, where that is one for it. */
function formatByKey(event) {
  const {key, code, shiftKey, ctrlKey, metaKey, altKey, target} = event
  const pressed = shiftKey ? SHIFTED[code] : key.toUpperCase()
  const format = Object.values(FORMATS).find(each => each[1] === pressed)
  if (!format || altKey || event.isComposing || !(isMac ? metaKey : ctrlKey)) return
  event.preventDefault()
  format[2](target)
}

/** Adds to a form what helps those who write: keys and buttons for Markdown, a counter, and what happens then. */
function equip(thread, kit, form) {
  const {button, h, me} = kit
  if (equipped.has(form)) return
  equipped.add(form)
  const {content} = form
  const counter = h('span', {class: 'counter'})
  const held = h('p', {class: 'small'}, thread.say('held'))
  const tools = Object.entries(FORMATS).map(([word, [sign, key, act]]) => button('', () => act(content), {
    class: word === 'quote' ? 'quotation' : word, // `.quote` quotes a selected text
    'data-sign': sign, 'aria-label': thread.say(word), title: `${thread.say(word)} (${isMac ? '⌘' : 'Ctrl'} ${key})`,
  }))
  const bar = form.querySelector('.tools')
  bar.role = 'group'
  bar.ariaLabel = thread.say('format')
  // A press leaves the focus in the field, and with it the keyboard of a phone.
  bar.addEventListener('mousedown', event => event.preventDefault())
  bar.append(...tools, counter)
  form.querySelector('.links').parentNode.after(held)
  if (!form.subject.change) beginCaptcha(thread, kit)
  let timer

  function update() {
    // The field grows with its text, where CSS does not see to it.
    if (!CSS.supports('field-sizing: content')) {
      content.style.height = ''
      content.style.height = content.scrollHeight + 2 + 'px'
    }
    const left = thread.totals.max_comment_length - [...content.value].length
    counter.textContent = left < 200 ? left.toLocaleString(thread.language) : ''
    counter.classList.toggle('over', left < 0)
    held.hidden = thread.settings.hold !== 'all' || me().role === 'admin'
    if (content.value && !form.subject.change) prepare(thread, kit)
    clearTimeout(timer)
    if (left < 200) timer = setTimeout(sayLeft, 1000, left)
  }

  /** Screen readers hear what is left when the reader pauses. */
  function sayLeft(left) {
    if (thread.shadowRoot.activeElement !== content) return
    thread.announce(left < 0 ? thread.say('content_over', -left) : thread.say('left', left), false)
  }

  function submitByKey({key, isComposing, ctrlKey, metaKey}) {
    if (key === 'Enter' && !isComposing && (ctrlKey || metaKey)) form.requestSubmit()
  }

  content.addEventListener('keydown', formatByKey)
  form.addEventListener('keydown', submitByKey)
  form.addEventListener('input', update)
  update()
}

// -- Captcha ------------------------------------------------------------------

/** Searches in a worker, which gets the hash as text. */
const searchInWorker = (makeHash, parameters) => new Promise((resolve, reject) => {
  const text = `onmessage = ({data}) => postMessage((${makeHash})().search(data, 0, 1e6))`
  const url = URL.createObjectURL(new Blob([text]))
  const worker = new Worker(url)
  worker.onerror = reject
  worker.onmessage = ({data}) => {
    resolve(data)
    worker.terminate()
    URL.revokeObjectURL(url)
  }
  worker.postMessage(parameters)
})

/** Searches in slices, so that the page stays alive. */
async function searchInSlices(hash, parameters) {
  for (let from = 0; ; from += 2000) {
    const solution = hash.search(parameters, from, from + 2000)
    if (solution) return solution
    await new Promise(resolve => setTimeout(resolve))
  }
}

/** The captcha token for a challenge. */
export async function solve({hash, makeHash}, {parameters, signature}) {
  // A page may forbid workers by its Content-Security-Policy.
  const solution = await searchInWorker(makeHash, parameters).catch(() => searchInSlices(hash, parameters))
  return btoa(JSON.stringify({challenge: {parameters, signature}, solution}))
}

/** The captcha token for a challenge, or a function that gets one. */
async function tokenFor(thread, kit, challenge) {
  if (challenge.parameters) return solve(kit, challenge)
  if (challenge.provider === 'none') return 'none'
  const token = await thread.use('captcha.js', 'captcha', challenge)
  if (token) return token
  throw new kit.Failure('offline')
}

/** By thread: {at, challenge, token, failed}. On the thread itself, a setter of the page could take it. */
const captchas = new WeakMap()
const CAPTCHA_LIFE = 50 * 60e3 // ms

/** The captcha of a thread, whose challenge is asked for. With `posting`, one that failed is asked for again. */
function captchaOf(thread, kit, posting) {
  const present = captchas.get(thread)
  if (present && Date.now() - present.at < CAPTCHA_LIFE && !(posting && present.failed)) return present
  // All fields are here from the start: a setter of the page on `Object.prototype` could take a later one.
  const captcha = {at: Date.now(), challenge: undefined, token: undefined, failed: false}
  captchas.set(thread, captcha)
  captcha.challenge = kit.ask('captcha').then(challenge => {
    captcha.at = Date.now()
    return challenge
  })
  captcha.challenge.catch(() => captcha.failed = true)
  return captcha
}

/** Asks for the challenge when the reader comes to the field: the service counts from then on how long they write.
    Other providers would learn of a reader who writes nothing. */
function beginCaptcha(thread, kit) {
  if (thread.settings.captcha === 'altcha') captchaOf(thread, kit)
}

/** A captcha token, kept for fifty minutes. With `posting`, one that failed is asked for again. */
export async function captchaToken(thread, kit, posting) {
  const captcha = captchaOf(thread, kit, posting)
  captcha.token ??= captcha.challenge.then(challenge => tokenFor(thread, kit, challenge))
  captcha.token.catch(() => captcha.failed = true)
  const token = await captcha.token
  return posting && typeof token === 'function' ? token() : token
}

/** Solves the captcha while the reader types, so that it is done when they post. */
const prepare = (thread, kit) => captchaToken(thread, kit).catch(() => {}) // posting tries again, and says why

export function dropCaptchaToken(thread) {
  captchas.delete(thread)
  thread.querySelector('[slot=captcha]')?.remove()
}

// -- Sending ------------------------------------------------------------------

const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
const PATIENCE = 30e3 // ms

/** Sends what may arrive twice. While the service is busy or restarts (503), it is sent again for half a minute, when the
    service says, and not by all readers at once. A provider of captchas that is down takes longer. */
async function askPatiently({ask}, ...request) {
  const end = Date.now() + PATIENCE
  for (let pause = 1000; ; pause *= 2) {
    try {
      return await ask(...request)
    } catch (error) {
      const advised = Number(error.retry) * 1000 || 0
      const next = Math.max(pause, advised) * (1 + Math.random() / 2)
      const heals = error.status === 503 && error.code !== 'captcha_down'
      if (!heals || Date.now() + next > end) throw error
      await wait(next)
    }
  }
}

/** Sends what a form holds: a comment, a reply, or a change of one. */
export async function send(thread, kit, form, draft) {
  const {change} = form.subject
  const {content, ...author} = Object.fromEntries(new FormData(form))
  try {
    checkContent(thread, kit, content)
    if (change) await change.send(form, content, draft)
    else {
      if (!kit.me().token) rememberAuthor(thread, kit, author)
      await post(thread, kit, form, draft, {content, author})
    }
  } catch (error) {
    showError(thread, kit, form, error)
  }
}

function checkContent(thread, {Failure}, content) {
  if (!content.trim()) throw new Failure('content_missing')
  const left = thread.totals.max_comment_length - [...content].length
  if (left < 0) throw new Failure('content_over', {retry: -left})
}

function rememberAuthor(thread, {Failure, isEmail, keep, me}, author) {
  if (!author.nickname) throw new Failure(thread.settings.login_required ? 'login_required' : 'nickname_missing')
  if (author.email && !isEmail(author.email)) throw new Failure('email_invalid')
  if (/^[^:]+$/.test(author.website)) author.website = 'https://' + author.website
  keep('me', {...me(), ...author})
}

async function post(thread, kit, form, draft, {content, author}) {
  const {keep, me, recall} = kit
  const {parent} = form.subject
  const captcha_token = await captchaToken(thread, kit, true)
  // The service holds a comment that came faster than a person types. Pasted texts wait here for a moment.
  const {at} = captchas.get(thread)
  const early = at + Math.min(3, Math.floor(content.length / 20)) * 1000 - Date.now()
  if (thread.settings.captcha === 'altcha' && early > 0) await wait(early)
  const {comment, edit_token} = await askPatiently(kit, 'comments', {
    page_url: thread.url, parent_id: parent?.id, content, captcha_token, lang: thread.language, ...!me().token && author,
  })
  keep('own', {...recall('own', {}), [comment.id]: {edit_token, comment}})
  keep(draft, undefined, 'sessionStorage')
  dropCaptchaToken(thread)
  thread.put(comment, true)
  if (parent) form.remove()
  thread.$('form').replaceWith(thread.makeForm({}))
  thread.totals.total += comment.status === 'visible'
  thread.head()
  own(thread, kit, comment)
  thread.emit('posted', {comment})
}

// -- Likes --------------------------------------------------------------------

/** Likes a comment or the page, or takes the like back. It shows at once; an error undoes it.
    Requests go one after another: two at once could arrive in either order. */
export async function like(thread, kit, heart, id) {
  const {keep, me, recall} = kit
  const likes = () => recall('likes', [])
  const key = id ?? thread.url
  const isLiked = () => likes().includes(key)
  const set = (liked, count) => {
    keep('likes', [...liked ? [key] : [], ...likes().filter(each => each !== key)].slice(0, 500))
    heart.show(liked, count)
    if (!id) thread.totals.page_likes = count
  }
  const sendLike = undo => id
    ? askPatiently(kit, 'comment/like', {id, undo})
    : askPatiently(kit, 'page/like', {page_url: key, undo})
  let stored = [isLiked(), heart.count] // at the service
  set(!stored[0], heart.count + (stored[0] ? -1 : 1))
  thread.$('#error')?.remove()
  if (heart.busy) return // the loop below sends this press too
  heart.busy = true
  try {
    while (isLiked() !== stored[0]) {
      const undo = stored[0]
      const response = await sendLike(undo).catch(error => {
        if (error.code !== 'token_invalid') throw error
        keep('me', {...me(), token: undefined, id: undefined})
        return sendLike(undo)
      })
      stored = [!undo, response.likes ?? response.page_likes]
    }
    set(...stored)
  } catch (error) {
    set(...stored)
    const place = heart.closest('article, .head')
    // The text for `offline` speaks of what one writes.
    const shown = error.code === 'offline' ? new kit.Failure('failed', error) : error
    showError(thread, kit, place, shown, id ? undefined : place)
  }
  heart.busy = false
}

// -- Replies ------------------------------------------------------------------

/** Hides or shows a list of replies, by the line beside it. */
export function hide(thread, kit, line, list) {
  list.hidden = !list.hidden
  line.setAttribute('aria-expanded', !list.hidden)
  line.ariaLabel = list.hidden ? null : thread.say('hide')
  line.textContent = list.hidden ? thread.say('show', list.querySelectorAll('li[data-id]').length) : ''
}

/** Loads a hundred more replies to a comment. Says whether they came. */
export async function rest(thread, kit, item, button) {
  const count = item.querySelectorAll('li[data-id]').length // a list of many threads has fewer than a hundred
  const page = Number(button.dataset.page ?? (count < 100 ? 1 : 2))
  button.dataset.total ??= count + item.comment.more_replies
  try {
    const query = {url: thread.url, thread: item.dataset.id, page, limit: 100}
    const {comments} = await kit.ask('comments?' + new URLSearchParams(query))
    let pause = Date.now() + 50
    for (const comment of comments) {
      if (Date.now() > pause) { // a long thread, on a slow phone
        await new Promise(resolve => setTimeout(resolve))
        pause = Date.now() + 50
      }
      if (!button.isConnected) return false
      thread.put(comment)
    }
    if (comments.length) itemOf(thread, comments[0].id).firstChild.focus()
    button.dataset.page = page + 1
    const left = button.dataset.total - 100 * page
    button.textContent = thread.say('more', left)
    if (left <= 0 || comments.length < 100) button.remove()
    return true
  } catch (error) {
    showError(thread, kit, item.firstChild, error)
    return false
  }
}

// -- Menu ---------------------------------------------------------------------

/** Opens the menu of a comment: what a reader may do with it, and its author, and an admin. */
export function menu(thread, kit, opener) {
  if (thread.$('.menu')) return // they pressed twice while this file was on its way
  const {h} = kit
  const item = opener.closest('li')
  addStyle(thread)

  function close() {
    dialog.remove()
    opener.setAttribute('aria-expanded', false)
  }

  function move({key}) {
    const step = {ArrowDown: 1, ArrowUp: -1}[key]
    const buttons = [...dialog.children]
    const next = buttons.indexOf(thread.shadowRoot.activeElement) + step
    if (step) buttons.at(next % buttons.length).focus()
  }

  const buttons = choicesOf(thread, kit, item).map(choice => menuButton(thread, kit, choice))
  const dialog = h('dialog', {
    class: 'menu', 'aria-label': opener.getAttribute('aria-label'), onclose: close, onkeydown: move,
    onclick: ({target}) => target === dialog && dialog.close(), // beside the menu
  }, ...buttons)
  opener.focus() // Safari does not focus a clicked button, and the focus returns there
  opener.setAttribute('aria-expanded', true)
  thread.$('section').append(dialog)
  dialog.showModal()
  placeMenu(dialog, opener)
}

function choicesOf(thread, kit, item) {
  const {me, recall} = kit
  const {comment} = item
  const choices = [{word: 'link', act: () => link(thread, kit, comment.id)}]
  if (recall('reports', []).includes(comment.id)) choices.push({word: 'reported'})
  else if (!isMine(kit, comment) && me().role !== 'admin') {
    choices.push({word: 'report', act: () => openReport(thread, kit, comment.id)})
  }
  return [...choices, ...Object.values(thread.menus).flatMap(more => more(item))]
}

/** A button that closes the menu and acts; with `sure`, at the second press. */
function menuButton(thread, {button}, {word, act, sure}) {
  function onclick({target}) {
    if (sure && !target.dataset.sure) {
      target.dataset.sure = target.textContent = thread.say('sure')
      return
    }
    target.closest('dialog').close()
    act()
  }
  return button(thread.say(word), onclick, {disabled: !act})
}

/** Puts a menu below its button, or above it, and inside the window. */
function placeMenu(dialog, opener) {
  const {left, right, top, bottom} = opener.getBoundingClientRect()
  const {width, height} = dialog.getBoundingClientRect()
  const start = opener.matches(':dir(rtl)') ? right - width : left
  const isAbove = innerHeight - bottom < height && top > height
  dialog.style.setProperty('--_left', `max(8px, min(${start}px, 100vw - ${width + 8}px))`) // inside, however narrow it becomes
  dialog.style.setProperty('--_top', `${isAbove ? top - height : bottom}px`)
}

// -- Links --------------------------------------------------------------------

const itemOf = (thread, id) => thread.$(`li[data-id="${id}"]`)

function goTo(thread, id) {
  const article = itemOf(thread, id)?.firstChild
  if (!article) return
  for (const {dataset} of thread.shadowRoot.querySelectorAll('[data-target]')) delete dataset.target
  article.dataset.target = ''
  article.querySelector('.folded + button')?.click()
  article.querySelector('.body')?.classList.add('whole') // nor is it folded later
  article.focus({preventScroll: true})
  const show = () => article.scrollIntoView({block: 'center'})
  show()
  requestAnimationFrame(show) // now the heights of the comments above are known
}

/** Goes to the comment around which the list was loaded, or looks for it among the replies that are not loaded. */
export async function seek(thread, kit, id, page) {
  addStyle(thread)
  if (page > 1) {
    const showAll = async () => {
      await thread.load({})
      thread.$('article')?.focus()
    }
    const all = kit.button(thread.say('all'), showAll, {class: 'more'})
    thread.$('.list').prepend(kit.h('li', {}, all))
  }
  for (const more of thread.shadowRoot.querySelectorAll('.rest')) {
    while (more.isConnected && !itemOf(thread, id) && await rest(thread, kit, more.parentNode, more));
  }
  goTo(thread, id)
}

/** Goes to a comment. If it is not in the list, its thread is put at the top. */
export async function follow(thread, kit, id) {
  addStyle(thread)
  if (itemOf(thread, id)) return goTo(thread, id)
  if ([...document.querySelectorAll('commentd-thread')].some(other => itemOf(other, id))) return
  const query = {url: thread.url, view: 'threads', around: id, limit: 100}
  const {comments} = await kit.ask('comments?' + new URLSearchParams(query)).catch(() => ({comments: []}))
  const matches = comment => comment.id === Number(id)
  const match = comments.find(root => matches(root) || root.replies.some(matches))
  const roots = match ? [match] : comments.filter(root => root.more_replies)
  for (const root of roots) if (!itemOf(thread, root.id)) thread.$('.list').prepend(thread.putThread(root))
  if (roots.length) await seek(thread, kit, id)
}

/** Copies the URL of a comment. Where there is no clipboard (plain http), it goes into the address bar. */
async function link(thread, kit, id) {
  const url = kit.linkTo(id)
  try {
    await navigator.clipboard.writeText(url)
    thread.announce(thread.say('copied'))
  } catch {
    location.hash = url.hash
    thread.announce(thread.say('addressed'))
  }
}

// -- Reports ------------------------------------------------------------------

/** Opens the form that asks what is wrong with a comment. */
function openReport(thread, kit, id) {
  const {ask, button, h, keep, me, recall} = kit
  const article = itemOf(thread, id).firstChild
  article.querySelector('form')?.remove()

  async function sendReport() {
    try {
      await ask(`comments/${id}/report`, {reason: form.reason.value.trim()})
    } catch (error) {
      if (error.code !== 'token_invalid') throw error
      keep('me', {...me(), token: undefined, id: undefined}) // guests may report too
      return sendReport()
    }
    keep('reports', [id, ...recall('reports', [])].slice(0, 500))
    form.remove()
    article.focus()
    thread.announce(thread.say('thanks'))
  }

  async function onsubmit(event) {
    event.preventDefault()
    if (form.ariaBusy === 'true') return
    form.ariaBusy = true
    await sendReport().catch(error => showError(thread, kit, form, error))
    form.ariaBusy = false
  }

  function cancel() {
    form.remove()
    article.querySelector('.quiet').focus()
  }

  const reason = h('input', {class: 'field', name: 'reason', dir: 'auto', maxLength: 500, autocomplete: 'off'})
  const form = h('form', {noValidate: true, class: 'aside open report', ariaLabel: thread.say('report'), onsubmit},
    h('label', {}, h('span', {}, thread.say('reason')), reason),
    h('div', {class: 'row'}, h('button', {class: 'button'}, thread.say('report')), button(thread.say('cancel'), cancel)))
  article.append(form)
  reason.focus()
}

// -- Own comments -------------------------------------------------------------

const MONTH = 30 * 86400e3

// Parameters that say where a reader came from, and cache busters. `TRACKING` in commentd.py has the same.
const TRACKING = [
  /^(utm_[^=]*|mtm_[^=]*|fbclid|gclid|dclid|gbraid|wbraid|gad_source|srsltid|msclkid|ysclid|yclid|twclid|ttclid)(=|$)/,
  /^(li_fat_id|mc_[ce]id|mkt_tok|igshid|igsh|spm|vd_source|_hsenc|_hsmi|_ga|_gl|isappinstalled|nsukey)(=|$)/,
  /^from=(timeline|singlemessage|groupmessage)$/,
  /^(t|_|_t)=1[0-9]{12}$/,
]

/** A page's URL without what differs between readers, to compare it. */
function pageKey(url) {
  const [path, query = ''] = url.split('?')
  const kept = query.split('&').filter(part => part && !TRACKING.some(each => each.test(part)))
  return [path.replace(/(index\.html)?\/?$/, ''), ...kept].join('&')
}

const editToken = ({recall}, id) => recall('own', {})[id]?.edit_token

/** Whether the reader wrote a comment, in this browser or with their account. */
const isMine = (kit, {id, user_id}) => editToken(kit, id) || (user_id && user_id === kit.me().id)

/** Marks the comments of this reader, adds to their menus, and shows those that wait for approval. */
export function own(thread, kit, posted) {
  const {ask, h, keep, me, recall, timeOf} = kit
  const age = comment => Date.now() - timeOf(comment)
  const mine = () => recall('own', {})

  function remember(changed) {
    const recent = Object.entries({...mine(), ...changed}).filter(([, {comment}]) => comment && age(comment) < MONTH)
    keep('own', Object.fromEntries(recent))
  }

  async function remove(comment, article) {
    const item = article.parentNode
    try {
      const response = await ask('comments/' + comment.id, {edit_token: editToken(kit, comment.id)}, 'DELETE')
      remember({[comment.id]: {}})
      if (comment.status !== 'waiting') thread.totals.total--
      let next = item.previousElementSibling ?? item.parentNode.closest('li') ?? item.nextElementSibling
      // A comment with replies leaves a tombstone. Replies to a reply stand beside it.
      const others = [...thread.shadowRoot.querySelectorAll('li[data-id]')]
      if (others.some(other => other.comment.parent_id === comment.id)) next = thread.put(response.comment)
      else if (item.matches('.replies > ol > :only-child')) item.closest('.replies').remove()
      else item.remove()
      thread.head()
      const target = next?.querySelector('article') ?? thread.$('textarea')
      target.focus()
      thread.announce(thread.say('comment'))
    } catch (error) {
      showError(thread, kit, article, error)
      if (error.code === 'comment_gone') remember({[comment.id]: {}})
    }
  }

  function mark(item) {
    item.querySelector(':scope > article .own')?.remove()
    if (!isMine(kit, item.comment)) return
    item.querySelector('.meta b')?.after(h('span', {class: 'badge own'}, thread.say('you')))
  }

  /** The Markdown of a comment. Those of a fragment have none. */
  const contentOf = ({id, content}) => content ?? mine()[id]?.comment.content

  /** What its author may do with a comment, and for how long. */
  function choices({comment, firstChild: article}) {
    if (!isMine(kit, comment)) return []
    const intime = age(comment) < thread.settings.edit_minutes * 60e3
    const edit = {word: 'edit', act: () => thread.open(article, {change: changeOf(comment)})}
    const erase = {word: 'delete', act: () => remove(comment, article), sure: true}
    return [...intime && contentOf(comment) ? [edit] : [], ...intime || comment.user_id ? [erase] : []]
  }

  /** What makes a form one that changes a comment. */
  function changeOf(old) {
    const {id} = old
    function setUp(form) {
      form.content.value ||= contentOf(old)
      form.content.placeholder = form.content.ariaLabel = form.ariaLabel = thread.say('edit')
      form.querySelector('.guest').hidden = true
      form.querySelector('.button').textContent = thread.say('save')
      form.querySelector('.links button')?.remove()
    }
    async function sendChange(form, content, draft) {
      const change = {content, edit_token: editToken(kit, id)}
      const {comment} = await askPatiently(kit, 'comments/' + id, change, 'PATCH')
      if (mine()[id]) remember({[id]: {...mine()[id], comment}})
      keep(draft, undefined, 'sessionStorage')
      thread.put(comment).firstChild.focus()
    }
    return {id, setUp, send: sendChange}
  }

  thread.decorators.own = mark
  thread.menus.own = choices
  // The service lists no comments that wait for approval.
  for (const {comment} of Object.values(mine())) {
    const here = comment.status === 'waiting' && pageKey(comment.page_url) === pageKey(thread.url)
    const item = itemOf(thread, comment.id)
    const isHidden = !item || item.comment.deleted // where it has replies, its place is there
    if (here && isHidden && isMine(kit, comment) && age(comment) < MONTH) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(mark)
  if (posted) {
    goTo(thread, posted.id)
    thread.announce(thread.say(posted.status === 'waiting' ? 'waiting' : 'posted'), false) // for screen readers; others see it
  } else if (me().token && me().role === 'admin') thread.use('moderate.js', 'moderate')
}

// -- New comments -------------------------------------------------------------

const attended = new WeakSet()

const loadTexts = (thread, kit) => kit.loadTexts(thread.language).catch(() => 0)

/** Starts keys, quotes and the watch for new comments, when a reader first does something here or after a minute.
    Equips the form that they touch. */
export function attend(thread, kit, signal, form) {
  if (form) equip(thread, kit, form)
  if (signal.aborted || attended.has(signal)) return
  attended.add(signal)
  const root = thread.shadowRoot
  addStyle(thread)
  root.addEventListener('keydown', event => press(thread, kit, event), {signal})
  let timer
  const offerLater = () => {
    clearTimeout(timer) // each character that is dragged over is a change, and measuring it costs a layout
    timer = setTimeout(offerQuote, 100, thread, kit)
  }
  document.addEventListener('selectionchange', offerLater, {signal})
  offerLater() // they may have selected a text while this file was on its way
  const clock = setInterval(() => updateTimes(thread, kit), 60e3)
  signal.addEventListener('abort', () => clearInterval(clock))
  watch(thread, kit, signal)
}

function updateTimes(thread, {relativeTime}) {
  for (const time of thread.shadowRoot.querySelectorAll('time:not([data-fixed])')) {
    time.textContent = relativeTime(new Date(time.dateTime), thread.language)
  }
}

/** Asks for new comments while the page is visible: each minute, and less often where there are none, down to
    every ten minutes. */
function watch(thread, kit, signal) {
  const note = kit.h('p', {class: 'fresh', role: 'status'}) // a screen reader speaks only what is added later
  thread.$('section')?.append(note)
  let pause = 60
  let announced = 0
  let total = 0
  const later = (seconds = pause) => setTimeout(look, seconds * 1000)

  function update() {
    const count = Math.max(0, total - thread.totals.total)
    if (count !== announced) note.replaceChildren(count ? kit.button(thread.say('fresh', count), show) : '')
    announced = count
    if (!note.isConnected) thread.$('section').append(note)
  }

  async function look() {
    if (signal.aborted) return
    if (!thread.totals) return later() // loading="lazy": nothing is shown yet
    if (document.hidden) return document.addEventListener('visibilitychange', look, {once: true, signal})
    const response = await kit.ask('pages?' + new URLSearchParams({url: thread.url})).catch(() => 0)
    const before = announced
    const now = response?.pages?.[0]?.total
    if (now < thread.totals.total) thread.totals.total = now // some were deleted
    total = now ?? total
    await loadTexts(thread, kit)
    update()
    pause = announced === before ? Math.min(pause * 1.5, 600) : 60
    later()
  }

  async function show() {
    // `around` an id that does not exist: the first page, without one more view.
    const query = {url: thread.url, limit: 100, around: Number.MAX_SAFE_INTEGER}
    try {
      const listing = await kit.ask('comments?' + new URLSearchParams(query))
      const added = listing.comments.filter(({id}) => !itemOf(thread, id)).slice(0, listing.total - thread.totals.total)
      for (const comment of added.reverse()) {
        if (!comment.parent_id || itemOf(thread, comment.parent_id)) thread.put(comment, true)
        else await follow(thread, kit, comment.id) // a reply in a thread that is not in the list
      }
      total = thread.totals.total = listing.total
      thread.totals.threads += added.filter(({parent_id}) => !parent_id).length
      thread.head()
      update()
      if (added[0]) goTo(thread, added[0].id)
      for (const {id} of added) itemOf(thread, id)?.firstChild.setAttribute('data-target', '')
    } catch (error) {
      showError(thread, kit, note, error)
    }
  }

  thread.addEventListener('commentd:loaded', ({detail}) => {
    total = detail.total
    update()
  }, {signal})
  signal.addEventListener('abort', () => note.remove())
  later(Math.max(0, 60 - performance.now() / 1000))
}

// -- Quotes -------------------------------------------------------------------

/** The selection, also inside the thread. Undefined in browsers that do not say. */
function selectedRange({shadowRoot}) {
  const selection = getSelection()
  if (!selection.getComposedRanges) return
  try {
    return selection.getComposedRanges({shadowRoots: [shadowRoot]})[0]
  } catch {
    return selection.getComposedRanges(shadowRoot)[0] // Safari 17, and some of 18
  }
}

/** The selected part of a comment that can be replied to: {body, article, range}. */
function selectedPart(thread) {
  const selection = selectedRange(thread)
  if (!selection || selection.collapsed) return
  const {startContainer, startOffset, endContainer, endOffset} = selection
  const element = startContainer.closest ? startContainer : startContainer.parentNode
  const body = element?.closest?.('.body')
  const article = body?.parentNode
  if (!thread.shadowRoot.contains(body) || !article?.querySelector('.reply')) return
  const range = document.createRange()
  range.setStart(startContainer, startOffset)
  range.setEnd(endContainer, endOffset)
  if (!body.contains(endContainer)) { // a triple click ends before the next text
    const after = document.createRange()
    after.setStartAfter(body)
    after.setEnd(endContainer, endOffset)
    if (after.toString().trim()) return
    range.setEnd(body, body.childNodes.length)
  }
  if (range.toString().trim()) return {body, article, range}
}

/** Shows a button beside the selected text, to quote it in a reply. */
async function offerQuote(thread, kit) {
  await loadTexts(thread, kit)
  if (thread.shadowRoot.activeElement?.matches('.quote')) return // the button stays while it has the focus
  thread.$('.quote')?.remove()
  const part = selectedPart(thread)
  if (!part) return
  const {body, article, range} = part
  // The selection may have grown by then, or be gone: iOS drops it on a tap.
  const quote = kit.button(thread.say('quote'), () => replyWithQuote(thread, selectedPart(thread) ?? part), {class: 'quote'})
  const box = article.getBoundingClientRect()
  const last = [...range.getClientRects()].at(-1) ?? box
  quote.style.top = `${last.bottom - box.top + 8}px`
  const end = thread.say('dir') === 'rtl' ? box.right - last.left : last.right - box.left
  quote.style.insetInlineStart = `max(0px, min(${end}px - 5em, 100% - 8em))` // inside, however narrow the page becomes
  body.after(quote)
}

function replyWithQuote(thread, {article, range}) {
  const part = range.cloneContents()
  thread.$('.quote')?.remove() // WebKit sends no selectionchange
  const quoted = part.textContent.trim().split(/\n+/).map(line => '> ' + line).join('\n')
  thread.open(article, {parent: article.parentNode.comment})
  const field = article.querySelector('textarea')
  field.value += `${field.value && '\n\n'}${quoted}\n\n`
  field.dispatchEvent(new Event('input', {bubbles: true}))
}

// -- Keys ---------------------------------------------------------------------

/** Single keys, while the focus is in the thread and in no field (WCAG 2.1.4). */
function press(thread, kit, event) {
  const {key, target} = event
  const form = target.closest('article form')
  if (key === 'Escape' && form && !form.querySelector('.field').value) {
    const article = form.parentNode
    form.remove()
    article.focus()
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return
  if (target.closest('input, textarea, select, dialog')) return
  const current = target.closest('.comment')
  const articles = [...thread.shadowRoot.querySelectorAll('.comment')].filter(each => each.getClientRects().length)
  const actions = {
    j: () => articles[articles.indexOf(current) + 1]?.focus(),
    k: () => articles[articles.indexOf(current) - 1]?.focus(),
    r: () => current?.querySelector('.reply')?.click(),
    l: () => (current ?? thread.$('.head')).querySelector('.like')?.click(),
    c: () => thread.$('.barred button, textarea').focus(),
    '?': () => showKeys(thread, kit),
  }
  if (!Object.hasOwn(actions, key)) return
  event.preventDefault()
  actions[key]()
}

async function showKeys(thread, kit) {
  const {button, h} = kit
  await loadTexts(thread, kit)
  const control = isMac ? '⌘ ' : 'Ctrl '
  const formats = Object.entries(FORMATS).map(([word, [, key]]) => [control + key, word])
  const keys = {
    j: 'next', k: 'previous', r: 'reply', l: 'like', c: 'write', ...Object.fromEntries(formats), [control + '↵']: 'post', '?': 'keys',
  }
  const rows = Object.entries(keys).flatMap(([key, word]) =>
    [h('dt', {}, h('kbd', {}, key)), h('dd', {}, thread.say(word).replace('…', ''))])
  const dialog = h('dialog', {ariaLabel: thread.say('keys'), onclose: () => dialog.remove()},
    h('b', {}, thread.say('keys')), h('dl', {}, ...rows), button(thread.say('close'), () => dialog.close(), {class: 'more'}))
  thread.$('section').append(dialog)
  dialog.showModal()
}
