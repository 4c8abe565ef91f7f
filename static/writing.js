// What writing needs: the form with its buttons, formats and preview, the captcha, and sending.
// Loaded when a reader comes to a field. In order: Style, Formats, Form, Preview, Captcha, Sending,
// Reports.

// -- Style --------------------------------------------------------------------

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// -- Formats ------------------------------------------------------------------

const isMac = /^Mac|^iP/.test(navigator.platform)

/** Replaces a part of a field and selects a part of what is there then, so that the browser can
    undo it. */
export function replace(field, from, to, text, selectFrom, selectTo) {
  field.focus()
  field.setSelectionRange(from, to)
  const command = text ? 'insertText' : 'delete'
  const done = document.execCommand(command, false, text)
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

/** Makes a link of what is selected. What is still missing is selected then: its text, or its
    URL. */
function makeLink(field) {
  const {from, to, text} = selected(field)
  if (/^(https?:\/\/|mailto:)\S+$/.test(text)) {
    return replace(field, from, to, `[](${text})`, from + 1, from + 1)
  }
  const start = from + 1 + (text && text.length + 2)
  replace(field, from, to, `[${text}](https://)`, start, start + (text && 'https://'.length))
}

/** By the word that names it: its sign (some are drawn by writing.css), its key with Control or
    Command, and what it does to a field. */
const FORMATS = {
  bold: {sign: 'B', key: 'B', act: field => surround(field, '**')},
  italic: {sign: 'I', key: 'I', act: field => surround(field, '*')},
  quote: {sign: '”', key: '⇧ .', act: field => changeLines(field, quoteLines)},
  bullets: {sign: '', key: '⇧ 8', act: field => changeLines(field, listLines)},
  snippet: {sign: '</>', key: 'E', act: markCode},
  hyperlink: {sign: '', key: 'K', act: makeLink},
}

const CONTROL = isMac ? '⌘ ' : 'Ctrl '

/** The keys of the formats and of sending, for the help, with the words that name them. */
export const formKeys = () => [
  ...Object.entries(FORMATS).map(([word, {key}]) => [CONTROL + key, word]),
  [CONTROL + '↵', 'post'],
]

// By the place on the keyboard: the characters there differ.
const SHIFTED = {Period: '⇧ .', Digit8: '⇧ 8'}

/** Formats the text by a key, where that is one for it. */
function formatByKey(event) {
  const {key, code, shiftKey, ctrlKey, metaKey, altKey, target} = event
  const pressed = shiftKey ? SHIFTED[code] : key.toUpperCase()
  const format = Object.values(FORMATS).find(each => each.key === pressed)
  if (!format || altKey || event.isComposing || !(isMac ? metaKey : ctrlKey)) return
  event.preventDefault()
  format.act(target)
}

/** Fills the bar that hangs at the field: a button for each format, and a counter. */
function toolBar(thread, {button, h}, field) {
  const tools = Object.entries(FORMATS).map(([word, {sign, key, act}]) => {
    const name = thread.say(word)
    return button('', () => act(field), {
      class: word === 'quote' ? 'quotation' : word, // `.quote` quotes a selected text
      'data-sign': sign, 'aria-label': name, title: `${name} (${CONTROL}${key})`,
    })
  })
  return h('div', {
    class: 'tools', role: 'group', ariaLabel: thread.say('format'),
    // A press leaves the focus in the field, and with it the keyboard of a phone.
    onmousedown: event => event.preventDefault(),
  }, ...tools, h('span', {class: 'counter'}))
}

// -- Form ---------------------------------------------------------------------

const equipped = new WeakSet()

/** Adds to the field of a form what those who write need. */
export function equip(thread, kit, form) {
  if (equipped.has(form)) return
  equipped.add(form)
  const {content: field, subject} = form
  form.ariaLabel = subject.change?.label ?? thread.say(subject.parent ? 'reply' : 'post')
  const held = kit.h('p', {class: 'small held'})
  const rest = kit.h('div', {}, guestFields(thread, kit), buttons(thread, kit, form), held)
  form.append(toolBar(thread, kit, field), rest)
  form.applySettings = () => applySettings(thread, kit, form)
  form.applySettings()
  if (!subject.change) beginCaptcha(thread, kit)
  field.addEventListener('keydown', formatByKey)
  form.addEventListener('keydown', submitByKey)
  form.addEventListener('submit', event => {
    event.preventDefault()
    submit(thread, kit, form)
  })
  watchField(thread, kit, form)
}

function submitByKey({key, isComposing, ctrlKey, metaKey, currentTarget: form}) {
  if (key === 'Enter' && !isComposing && (ctrlKey || metaKey)) form.requestSubmit()
}

/** Name, email and website of a guest. */
function guestFields(thread, kit) {
  const {h, me} = kit
  const field = (name, word, more) => {
    const onchange = ({target}) => kit.keep(kit, 'me', {...me(), [name]: target.value})
    const input = h('input', {class: 'field', name, value: me()[name] ?? '', onchange, ...more})
    return h('label', {}, h('span', {}, thread.say(word)), input)
  }
  return h('div', {class: 'guest'},
    field('nickname', 'name', {autocomplete: 'name', required: true}),
    h('details', {},
      h('summary', {}, thread.say('extra')), // it names the fields
      field('email', 'mail', {type: 'email', autocomplete: 'email'}),
      field('website', 'site', {type: 'url', autocomplete: 'url'})))
}

function buttons(thread, {button, h}, form) {
  const {parent, change} = form.subject
  const cancel = () => {
    form.closest('article').focus()
    form.remove()
  }
  const togglePreview = ({target}) => thread.use('writing.js', 'preview', form, target)
  return h('div', {class: 'row'},
    h('button', {class: 'button'}, thread.say('post')),
    button(thread.say('preview'), togglePreview, {ariaExpanded: false}),
    (parent || change) && button(thread.say('cancel'), cancel),
    h('span', {class: 'push links'}))
}

/** Shows of a form what the settings of the blog want. `embed.js` calls it again when they come. */
function applySettings(thread, kit, form) {
  const {button, h, me} = kit
  const {hold, policy_url, registration, providers, login_required, faces} = thread.settings
  const {change} = form.subject
  const {token, role} = me()
  const signIn = () => thread.use('account.js', 'account', form)
  if (hold === 'all') form.querySelector('.button').textContent = thread.say('approve')
  const note = form.querySelector('.held')
  const isHeld = hold === 'all' ? role !== 'admin' : hold === 'email' && !token
  note.hidden = !isHeld
  note.textContent = thread.say(hold === 'email' ? 'mailed' : 'held')
  form.querySelector('.guest').hidden = login_required || token
  form.querySelector('.links').replaceWith(h('span', {class: 'push links'},
    (registration || providers) && !token && button(thread.say('signin'), signIn),
    policy_url && h('a', {href: policy_url}, thread.say('privacy'))))
  if (faces && !token && !change) thread.use('faces.js', 'offerFaces', form)
  change?.setUp(form)
  if (token) signIn() // shows who is signed in
  else if (thread.getAttribute('site-token')) thread.use('login.js', 'enterBySite', form)
  bar(thread, kit, form, login_required && !token && !change)
}

/** Shows in the place of a form that one has to sign in first, or the form again. */
function bar(thread, {button, h}, form, isBarred) {
  const hasFocus = form.matches(':focus-within')
  form.querySelector('.barred')?.remove()
  for (const child of form.children) child.hidden = isBarred
  if (!isBarred) return
  const signIn = button(thread.say('signin'), () => thread.use('account.js', 'account', form), {
    class: 'button',
  })
  form.prepend(h('p', {class: 'row barred'}, thread.say('login'), signIn))
  if (hasFocus) signIn.focus() // it was in the field
}

/** Follows what is typed: keeps it, counts what is left, and solves the captcha meanwhile. */
function watchField(thread, kit, form) {
  const {content: field, subject} = form
  const counter = form.querySelector('.counter')
  let timer

  function update() {
    // The field grows with its text, where CSS does not see to it.
    if (!CSS.supports('field-sizing: content')) {
      field.style.height = ''
      field.style.height = field.scrollHeight + 2 + 'px'
    }
    const left = thread.totals.max_comment_length - [...field.value].length
    counter.textContent = left < 200 ? left.toLocaleString(thread.language) : ''
    counter.classList.toggle('over', left < 0)
    if (field.value && !subject.change) prepare(thread, kit)
    clearTimeout(timer)
    if (left < 200) timer = setTimeout(sayLeft, 1000, left)
  }

  /** Screen readers hear what is left when the reader pauses. */
  function sayLeft(left) {
    if (thread.shadowRoot.activeElement !== field) return
    thread.announce(left < 0 ? thread.say('content_over', -left) : thread.say('left', left), false)
  }

  const keepDraft = () => kit.keep(kit, form.draft, field.value, 'sessionStorage')
  if (field.value && !subject.change) keepDraft() // it was typed while this file was on its way
  field.addEventListener('input', keepDraft)
  form.addEventListener('input', update)
  update()
}

// -- Preview ------------------------------------------------------------------

/** Shows or hides the preview of a text. */
export async function preview(thread, kit, form, opener) {
  const shown = form.querySelector('.preview')
  if (shown) {
    opener.ariaExpanded = false
    return shown.remove()
  }
  try {
    const {html} = await kit.send(kit, 'comments/preview', {content: form.content.value})
    kit.clearError(thread)
    form.querySelector('.preview')?.remove() // they pressed twice before a response came
    const place = form.querySelector('.guest').parentNode
    place.append(kit.h('div', {class: 'aside preview'}, kit.formatted(html)))
    opener.ariaExpanded = true
  } catch (error) {
    kit.showError(thread, kit, form, error)
  }
}

// -- Captcha ------------------------------------------------------------------

/** The captcha token for a challenge, or a function that gets one. */
async function tokenFor(thread, kit, challenge) {
  if (challenge.parameters) return (await kit.load('proof.js')).solve(challenge)
  if (challenge.provider === 'none') return 'none'
  const token = await thread.use('captcha.js', 'captcha', challenge)
  if (token) return token
  throw new kit.Failure('offline')
}

/** By thread: {at, challenge, token, failed}. On the thread itself, a setter of the page could take
    it. */
const captchas = new WeakMap()
const CAPTCHA_LIFE = 50 * 60e3 // ms

/** The captcha of a thread, whose challenge is asked for. With `posting`, one that failed is asked
    for again. */
function captchaOf(thread, kit, posting) {
  const present = captchas.get(thread)
  const isFresh = present && Date.now() - present.at < CAPTCHA_LIFE
  if (isFresh && !(posting && present.failed)) return present
  // All fields are here from the start: a setter of the page on `Object.prototype` could take a
  // later one.
  const captcha = {at: Date.now(), challenge: undefined, token: undefined, failed: false}
  captchas.set(thread, captcha)
  captcha.challenge = kit.ask('captcha').then(challenge => {
    captcha.at = Date.now()
    return challenge
  })
  captcha.challenge.catch(() => captcha.failed = true)
  return captcha
}

/** Asks for the challenge when the reader comes to the field: the service counts from then on how
    long they write. Other providers would learn of a reader who writes nothing. */
function beginCaptcha(thread, kit) {
  if (thread.settings.captcha !== 'altcha') return
  captchaOf(thread, kit)
  kit.load('proof.js').catch(() => {}) // it is tried again when they type
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
const prepare = (thread, kit) =>
  captchaToken(thread, kit).catch(() => {}) // posting tries again, and says why

export function dropCaptchaToken(thread) {
  captchas.delete(thread)
  thread.querySelector('[slot=captcha]')?.remove()
}

// -- Sending ------------------------------------------------------------------

const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
/** Sends a form, once at a time. Its button says so meanwhile. */
async function submit(thread, kit, form) {
  if (form.ariaBusy === 'true') return
  const press = form.querySelector('.button')
  const word = press.textContent
  form.ariaBusy = true
  form.content.readOnly = true // what is typed now would not be sent, and be gone with the form
  press.textContent = thread.say(form.subject.change ? 'saving' : 'posting')
  try {
    await send(thread, kit, form)
  } catch (error) {
    kit.showError(thread, kit, form, error)
  }
  form.ariaBusy = false
  form.content.readOnly = false
  press.textContent = word
}

/** Sends what a form holds: a comment, a reply, or a change of one. Of a reader who is signed in,
    and of a change, only the content is sent. */
async function send(thread, kit, form) {
  const {change} = form.subject
  const {content, ...author} = Object.fromEntries(new FormData(form))
  checkContent(thread, kit, content)
  if (change) return change.send(form, content)
  if (!kit.me().token) rememberAuthor(thread, kit, author)
  await post(thread, kit, form, {content, author})
}

function checkContent(thread, {Failure}, content) {
  if (!content.trim()) throw new Failure('content_missing')
  const left = thread.totals.max_comment_length - [...content].length
  if (left < 0) throw new Failure('content_over', {retry: -left})
}

function rememberAuthor(thread, kit, author) {
  const {Failure, isEmail, me} = kit
  const {login_required} = thread.settings
  if (!author.nickname) throw new Failure(login_required ? 'login_required' : 'nickname_missing')
  if (author.email && !isEmail(author.email)) throw new Failure('email_invalid')
  if (/^[^:]+$/.test(author.website)) author.website = 'https://' + author.website
  kit.keep(kit, 'me', {...me(), ...author})
}

/** The title of the page: the one that the owner set, or that of the document. Of several threads
    in one document, it is that of none. */
function titleOf({dataset}) {
  const script = document.querySelector('script[src*="embed.js"]')
  const title = document.querySelector('head > title') // `document.title` may be hidden by a name
  const isAlone = document.querySelectorAll('commentd-thread').length === 1
  const ofDocument = script?.dataset.title ?? title?.textContent
  return dataset.title ?? (isAlone ? ofDocument : '')
}

async function post(thread, kit, form, {content, author}) {
  const {me, recall} = kit
  const {parent} = form.subject
  const captcha_token = await captchaToken(thread, kit, true)
  // The service holds a comment that came faster than a person types. Pasted texts wait here for a
  // moment.
  const {at} = captchas.get(thread)
  const early = at + Math.min(3, Math.floor(content.length / 20)) * 1000 - Date.now()
  if (thread.settings.captcha === 'altcha' && early > 0) await wait(early)
  const {comment, edit_token} = await kit.sendPatiently(kit, 'comments', {
    page_url: thread.url, page_title: titleOf(thread), parent_id: parent?.id, content,
    captcha_token, lang: thread.language,
    ...!me().token && author,
  })
  kit.keep(kit, 'own', {...recall('own', {}), [comment.id]: {edit_token, comment}})
  kit.keep(kit, form.draft, undefined, 'sessionStorage')
  dropCaptchaToken(thread)
  thread.put(comment, true)
  if (parent) form.remove()
  const main = thread.$('form')
  const isInUse = parent && main.matches(':focus-within') // they write there meanwhile
  if (!isInUse) main.replaceWith(thread.makeForm({}))
  thread.totals.total += comment.status === 'visible'
  thread.head()
  await thread.use('own.js', 'own', comment)
  thread.emit('posted', {comment})
}

// -- Reports ------------------------------------------------------------------

/** Opens the form that asks what is wrong with a comment. */
export function openReport(thread, kit, id) {
  const {button, h, me, recall} = kit
  const article = thread.item(id).firstChild
  article.querySelector('form')?.remove()

  async function sendReport() {
    try {
      await kit.send(kit, `comments/${id}/report`, {reason: form.reason.value.trim()})
    } catch (error) {
      if (error.code !== 'token_invalid') throw error
      kit.keep(kit, 'me', {...me(), token: undefined, id: undefined}) // guests may report too
      return sendReport()
    }
    kit.keep(kit, 'reports', [id, ...recall('reports', [])].slice(0, 500))
    form.remove()
    kit.moveFocus(thread, article)
    thread.announce(thread.say('thanks'))
  }

  async function onsubmit(event) {
    event.preventDefault()
    if (form.ariaBusy === 'true') return
    form.ariaBusy = true
    await sendReport().catch(error => kit.showError(thread, kit, form, error))
    form.ariaBusy = false
  }

  function cancel() {
    form.remove()
    article.querySelector('.quiet').focus()
  }

  const reason = h('input', {
    class: 'field', name: 'reason', dir: 'auto', maxLength: 500, autocomplete: 'off',
  })
  const name = thread.say('report')
  const form = h('form', {
    noValidate: true, class: 'aside open report', ariaLabel: name, onsubmit,
  },
  h('label', {}, h('span', {}, thread.say('reason')), reason),
  h('div', {class: 'row'},
    h('button', {class: 'button'}, name), button(thread.say('cancel'), cancel)))
  article.append(form)
  reason.focus()
}
