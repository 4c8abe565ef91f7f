// The admin page at /admin: the queue of comments that wait for approval, and all lists and settings.
// In order: Words, Elements, Service, Forms, Sign-in, Frame, Lists, Moderation, Comments, Views, Figures,
// Settings, Keys, Start.

import {readable} from './account.js'
import {digest, solve} from './proof.js'

const {kit} = customElements.get('commentd-thread')
const {LANGUAGES, h, button, formatted, keep, languageOf, loadTexts, recall} = kit

// -- Words --------------------------------------------------------------------

// Loaded from words/admin-LANGUAGE.json, which is the part `admin` of static/languages/LANGUAGE.json.
let texts
let lang

const has = key => Object.hasOwn(texts, key)

/** The text of a key; the key itself where there is none, since the service may be newer than this page. */
function say(key, n, m) {
  const name = has(key) ? key : `${text(key)}_${new Intl.PluralRules(lang).select(n)}`
  // A name in a sentence is isolated, since it may run from right to left.
  const shown = typeof n === 'string' ? `\u2068${n}\u2069` : number(n)
  return (has(name) ? texts[name] : text(key)).replace('{n}', () => shown).replace('{m}', () => number(m))
}

// Languages that the browser names by their script or country.
const NAMED_AS = {pt: 'pt-BR', 'zh-CN': 'zh-Hans', 'zh-TW': 'zh-Hant'}

/** How those who speak a language call it: `Italiano`. */
function ownName(language) {
  const [first, ...others] = new Intl.DisplayNames(language, {type: 'language'}).of(NAMED_AS[language] ?? language)
  return first.toLocaleUpperCase(language) + others.join('')
}

/** The language that was chosen here, or the first of the browser's that this page has. */
function preferredLanguage() {
  for (const tag of [recall('lang', ''), ...navigator.languages]) {
    const language = languageOf(h('i', {lang: tag}))
    if (tag.slice(0, 2).toLowerCase() === language.slice(0, 2)) return language
  }
  return 'en'
}

async function use(language) {
  texts = await loadTexts('admin-' + language)
  lang = language
}

// -- Elements -----------------------------------------------------------------

// Anybody may have written what the service returns, so no type is taken for granted.
const text = value => typeof value === 'object' ? '' : String(value ?? '')
const listOf = value => Array.isArray(value) ? value.filter(each => each && typeof each === 'object') : []

function number(value) {
  if (!Number.isFinite(value)) return text(value)
  const size = Math.abs(value)
  return value.toLocaleString(lang, {notation: size < 1e6 ? 'standard' : size < 1e15 ? 'compact' : 'scientific'})
}

/** A word, and a space behind it unless it ends with a wide sign of Chinese and Japanese. */
const spaced = word => /[：、]$/.test(word) ? word : word + ' '

const bdi = value => h('bdi', {dir: 'auto'}, text(value))
const span = (...children) => h('span', {}, ...children)
const badge = word => h('span', {class: 'badge'}, say(word))
const link = (href, ...shown) => h('a', {href}, ...shown)
const dots = (...parts) => h('div', {class: 'small dots'}, ...parts.filter(part => part).map(part => span(part)))

/** A link to another site, if it is a web URL. */
const out = (href, shown) => /^https?:\/\//i.test(href)
  ? h('a', {href, target: '_blank', rel: 'noopener noreferrer nofollow'}, bdi(shown)) : bdi(shown)

const linkToPage = ({page_link, page_url}) => out(page_link, readable(text(page_url)))

/** A button with a key, see Keys. */
const keyed = (key, word, act, props) => button(say(word), act, {'aria-keyshortcuts': key, ...props})

const UNITS = [['day', 86400], ['hour', 3600], ['minute', 60]]
const dateOf = time => new Date(text(time).replace(' ', 'T') + '+08:00')

/** A time as “2 hours ago” or “in 3 days”; more than 30 days away as a date. */
function relativeTime(date) {
  const seconds = (date - Date.now()) / 1000
  const distance = Math.abs(seconds)
  if (distance > 2592e3) return date.toLocaleDateString(lang, {dateStyle: 'medium'})
  const found = UNITS.find(([, size]) => distance >= size)
  if (!found) return say('now')
  const format = new Intl.RelativeTimeFormat(lang, {numeric: 'auto'})
  const [unit, size] = found
  return format.format(seconds > 0 ? Math.round(seconds / size) : Math.ceil(seconds / size), unit)
}

/** A time to wait, such as “7 seconds” or “57 minutes”. */
function duration(seconds) {
  const [unit, size] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ['second', 1]
  return Math.ceil(seconds / size).toLocaleString(lang, {style: 'unit', unit, unitDisplay: 'long'})
}

function when(time) {
  const date = dateOf(time)
  if (isNaN(date)) return ''
  return h('time', {dateTime: date.toISOString(), title: date.toLocaleString(lang)}, relativeTime(date))
}

/** A table. The first cell of a row is its heading, and numbers are aligned to the right. */
function table(caption, heads, rows) {
  const cell = (tag, like, shown, props) => h(tag, {class: typeof like, ...props}, shown?.nodeType ? shown : number(shown))
  return h('table', {}, h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...heads.map((head, i) => cell('th', rows[0]?.[i], head, {scope: 'col'})))),
    h('tbody', {}, ...rows.map(([first, ...rest]) =>
      h('tr', {}, cell('th', first, first, {scope: 'row'}), ...rest.map(value => cell('td', value, value))))))
}

// -- Service ------------------------------------------------------------------

const ME = 'commentd admin'
const me = () => recall(ME, {})

/** What went wrong with a request, or with what was typed: `code` names it. `details` may hold the fields of the
    response, its `status` and the seconds to wait (`retry`). Every other error is a bug of this script. */
class Failure extends Error {
  constructor(code, details) {
    super(code)
    Object.assign(this, details, {name: 'Failure', code})
  }
}

/** The JSON of a response, or the file. Throws a `Failure`. */
async function ask(method, path, body) {
  const {token} = me()
  const file = path === 'backup'
  const headers = {...body && {'Content-Type': 'application/json'}, ...token && {Authorization: 'Bearer ' + token}}
  const signal = AbortSignal.timeout(file ? 3600e3 : 20e3)
  let response
  let result
  try {
    response = await fetch('admin/' + path, {method, headers, signal, body: JSON.stringify(body), credentials: 'omit'})
    result = await (file && response.ok ? response.blob() : response.json())
  } catch {
    throw new Failure('offline') // a response without JSON comes from a proxy
  }
  if (response.ok) return result
  const {code = 'failed', ...details} = Object(result)
  const retry = Number(response.headers.get('Retry-After')) || 60
  throw new Failure(code, {...details, status: response.status, retry})
}

/** The same for an admin who is signed in. Where the session has ended, a dialog asks them to sign in again. */
async function call(method, path, body) {
  try {
    return await ask(method, path, body)
  } catch (error) {
    if (error.status !== 401 && error.code !== 'not_admin') throw error
    await signInAgain(error)
    return ask(method, path, body)
  }
}

/** The text of an error. The service's own texts are Chinese. Without a code it is a bug of this script. */
function errorText(failure) {
  const {code, error, status, retry} = failure
  if (!code) console.error(failure)
  const key = [code, status].find(each => each !== 'failed' && has(each))
  if (key === 'block_wide') return say(key, failure.count, failure.total)
  return key ? say(key, duration(retry)) : (lang === 'zh-CN' && text(error)) || say('failed')
}

/** Admins prove with our own proof of work that they are no robot, whatever readers use. */
async function captchaToken() {
  const challenge = await ask('GET', 'captcha')
  return challenge.parameters ? solve(challenge) : 'none'
}

// -- Forms --------------------------------------------------------------------

const labelled = (label, control) => h('label', {}, span(label), control)
const inputField = (name, word, props) => labelled(say(word), h('input', {name, ...props}))
const area = (name, label, props) => labelled(label, h('textarea', {name, dir: 'auto', required: true, ...props}))
const select = (name, values, chosen, props) => h('select', {name, ...props},
  ...values.map(value => h('option', {value, selected: value === chosen}, say(value))))

/** A field for a new or the current password. The account is for password managers. */
const passwordField = (autocomplete, account, word = 'password') => h('div', {},
  account ? h('input', {hidden: true, autocomplete: 'username', value: account}) : '',
  inputField('password', word, {type: 'password', required: true, autocomplete}))
const ownPassword = () => passwordField('current-password', me().email, 'own_password')

const choice = (name, word, pairs) => h('fieldset', {}, h('legend', {}, say(word)), ...pairs.map(([value, shown], i) =>
  h('label', {class: 'option'}, h('input', {type: 'radio', name, value, checked: i === 0}), span(shown))))

/** A form that calls `work` with its values and shows the error if that fails. */
function panel(word, fields, work, cancel) {
  const fault = h('p', {class: 'alarm', role: 'alert'})
  const form = h('form', {
    onkeydown: ({key, ctrlKey, metaKey}) => key === 'Enter' && (ctrlKey || metaKey) && form.requestSubmit(),
    onsubmit: async event => {
      event.preventDefault()
      if (form.ariaBusy === 'true') return
      form.ariaBusy = 'true'
      fault.textContent = ''
      const values = {}
      for (const [name, value] of new FormData(form)) values[name] = name === 'password' ? digest(value) : value.trim()
      try {
        await work(values, form)
      } catch (error) {
        fault.textContent = errorText(error)
      } finally {
        form.ariaBusy = 'false'
      }
    },
  }, ...fields, fault, h('div', {class: 'row'}, h('button', {class: word === 'drop' ? 'main danger' : 'main'}, say(word)), cancel && button(say('cancel'), cancel)))
  return form
}

/** A form in a dialog, which closes when the work is done. */
function dialog(title, word, fields, work) {
  const box = h('dialog', {'aria-label': title, onclose: () => box.remove()}, h('h2', {}, title),
    panel(word, fields, async (...filled) => {
      const next = await work?.(...filled)
      box.close('done') // gives the focus back to an element that may be gone
      next?.focus()
    }, work && (() => box.close())))
  document.body.append(box)
  box.showModal()
  return box
}

/** A button whose work takes a while and may fail. Until it is done, the button does nothing more; an error is
 * announced. */
function workButton(word, work, props) {
  const act = async () => {
    if (node.ariaBusy === 'true') return
    node.ariaBusy = 'true'
    try {
      await work()
    } catch (error) {
      announce(errorText(error))
    } finally {
      node.ariaBusy = 'false'
    }
  }
  const node = button(say(word), act, props)
  return node
}

// -- Sign-in ------------------------------------------------------------------

const credentials = () => [
  inputField('email', 'email', {type: 'email', required: true, autocomplete: 'username', value: me().email ?? ''}),
  passwordField('current-password'),
]

async function signIn({email, password}) {
  keep(ME, {email})
  keep(ME, await ask('POST', 'login', {email, password, captcha_token: await captchaToken(), lang}))
}

let signInDialog // one for all requests that fail at the same time

/** Resolves when the admin has signed in again, in a dialog above the page. */
const signInAgain = error => signInDialog ??= new Promise((resolve, reject) => {
  const box = dialog(say('again'), 'signin', credentials(), signIn)
  box.addEventListener('close', () => {
    signInDialog = undefined
    if (box.returnValue) return resolve()
    showSignIn()
    reject(error)
  })
})

function showSignIn(word) {
  keep(ME, {email: me().email})
  oneTimeLink = undefined
  drawFrame()
  if (word) announce(say(word))
  showDoor('signin', panel('signin', credentials(), async filled => {
    await signIn(filled)
    enter()
  }), h('p', {class: 'small'}, say('forgot')))
}

function showDoor(title, ...children) {
  document.title = say(title)
  main.replaceChildren(h('h1', {}, say(title)), h('div', {class: 'door'}, ...children))
  const fields = [...main.querySelectorAll('input')]
  ;(fields.find(({value}) => !value) ?? fields[0])?.focus()
}

let oneTimeLink

/** Takes a one-time link out of the URL at once, so that it does not stay in the history. */
function takeLink() {
  const [, secret] = /^#link=(.*)/.exec(location.hash) ?? []
  if (secret === undefined) return
  oneTimeLink = secret
  history.replaceState(null, '', location.pathname)
}

takeLink()

async function claim() {
  drawFrame()
  main.replaceChildren(h('p', {class: 'small'}, say('loading')))
  try {
    const {email, known, admin} = await ask('POST', 'link', {link: oneTimeLink})
    const fields = [
      !email && inputField('email', 'email', {type: 'email', required: true, autocomplete: 'username'}),
      !known && inputField('nickname', 'nickname', {required: true, autocomplete: 'nickname', maxLength: 64}),
      h('div', {}, passwordField('new-password', email), h('p', {class: 'small'}, say('password_too_short'))),
    ]
    const form = panel(admin ? 'save' : 'begin', fields, async (filled, {password}) => {
      if ([...password.value].length < 8) throw new Failure('password_too_short') // its hash does not tell
      keep(ME, await ask('POST', 'claim', {link: oneTimeLink, lang, ...filled}))
      oneTimeLink = undefined
      enter(admin ? 'queue' : 'welcome')
      if (admin) announce(say('renewed'))
    })
    showDoor(admin ? 'renew' : 'claim', h('p', {}, known ? say('renew_lead', email) : say('claim_lead')), form)
  } catch (error) {
    if (error.code !== 'link_invalid' && error.status !== 400) {
      return showDoor('claim', h('p', {}, errorText(error)), button(say('retry'), claim, {class: 'main'}))
    }
    oneTimeLink = undefined
    const next = me().token ? button(say('toqueue'), () => enter('queue'), {class: 'main'})
      : button(say('signin'), () => showSignIn(), {class: 'main'})
    showDoor('link_used', h('p', {}, say('link_advice')), next)
  }
}

// -- Frame --------------------------------------------------------------------

let main
let notice
let selectionBar
let listStatus
let statusCounts = {} // the number of comments of each status

/** Draws the page around the views. */
function drawFrame() {
  const signed = !!me().token
  undo = undefined
  main = h('main', {tabIndex: -1})
  selectionBar = h('section', {class: 'bar', ariaLabel: say('select')})
  notice = h('div', {class: 'bar', role: 'status'})
  listStatus = h('p', {class: 'sr', role: 'status'})
  Object.assign(document.documentElement, {lang, dir: say('dir')})
  const speak = ({target}) => use(target.value).then(() => {
    keep('lang', lang)
    begin()
    document.querySelector('footer select').focus()
  }, error => {
    target.value = lang
    announce(errorText(error))
  })
  const skip = event => {
    event.preventDefault()
    main.focus()
  }
  document.body.replaceChildren(
    h('header', {},
      h('a', {class: 'skip', href: '#main', onclick: skip}, say('skip')),
      h('p', {class: 'brand'}, 'commentd'),
      signed && h('nav', {ariaLabel: say('sections')}, menu())),
    main,
    h('footer', {}, h('div', {class: 'row'},
      signed && bdi(me().nickname),
      link(`admin/help?lang=${lang}`, say('help')),
      h('select', {ariaLabel: say('language'), onchange: speak}, ...LANGUAGES.map(value =>
        h('option', {value, lang: value, selected: value === lang}, ownName(value)))),
      signed && keyed('?', 'keys', showKeys, {class: 'keys'}),
      signed && workButton('signout', signOut))),
    h('div', {class: 'bars'}, selectionBar, notice), listStatus)
}

const menu = () => h('ul', {}, ...Object.keys(VIEWS).filter(name => name !== 'welcome').map(name =>
  h('li', {}, h('a', {href: '#' + name, onclick: stay}, say(name), name === 'queue' && h('span', {'data-count': 'waiting'})))))

/** A link to the current view draws it anew, since the hash does not change. */
const stay = ({currentTarget}) => currentTarget.hash === location.hash && show()

async function signOut() {
  const ended = await ask('POST', 'logout', {}).catch(error => error.status === 401)
  showSignIn(ended ? 'signedout' : 'signedhere')
}

/** The name of the view and its parameters, as the URL has them. */
function currentView() {
  const [name, query] = location.hash.slice(1).split('?')
  return [Object.hasOwn(VIEWS, name) ? name : 'queue', new URLSearchParams(query)]
}

/** Draws the view that the URL names. Returns its heading. */
function show() {
  if (!me().token) return
  const [name, params] = currentView()
  const heading = h('h1', {tabIndex: -1}, say(name))
  const searching = document.activeElement?.closest('[role=search]')
  main.replaceChildren(heading)
  selectionBar.replaceChildren()
  for (const each of document.querySelectorAll('header a')) each.ariaCurrent = each.hash === '#' + name ? 'page' : null
  document.querySelector('header [aria-current]')?.scrollIntoView({block: 'nearest', inline: 'center'})
  VIEWS[name](params)
  showCounts()
  if (document.activeElement === document.body) (searching && main.querySelector('[type=search]') || heading).focus()
  return heading
}

/** Shows the number of comments of each status. */
function showCounts(changed) {
  statusCounts = changed ?? statusCounts
  const {waiting, reported = 0} = statusCounts
  const open = waiting + reported // shown in the menu and the title
  for (const node of document.querySelectorAll('[data-count]')) {
    const n = node.closest('header') ? open : statusCounts[node.dataset.count]
    node.textContent = n > 0 ? number(n) : ''
  }
  document.title = `${open > 0 ? `(${number(open)}) ` : ''}${say(currentView()[0])} · commentd`
}

let undo
let timer

function dismissNotice() {
  clearTimeout(timer)
  notice.replaceChildren()
}

/** Shows a text for ten seconds, with a button to undo what it says. The key for that works until something else
 * is said or another view is shown. */
function announce(message, back) {
  undo = back
  notice.replaceChildren(span(message), back ? keyed('u', 'undo', () => takeBack(back)) : '')
  clearTimeout(timer)
  timer = setTimeout(function away() {
    if (notice.matches(':hover, :focus-within')) timer = setTimeout(away, 3000)
    else notice.replaceChildren()
  }, 10000)
}

async function takeBack(back) {
  announce(say('loading'))
  try {
    await back()
    announce(say('undone'))
  } catch (error) {
    announce(errorText(error), back)
  }
}

// -- Lists --------------------------------------------------------------------

/** Loads something and draws it into a node. On failure the error stands there, with a button to try again. */
async function load(node, path, draw) {
  const wait = h(node.matches('ol') ? 'li' : 'div', {class: 'wait'})
  node.append(wait)
  node.ariaBusy = 'true'
  try {
    const response = await call('GET', path)
    if (!wait.isConnected) return // another view is shown
    draw(response)
    wait.remove()
  } catch (error) {
    if (!wait.isConnected) return
    wait.className = ''
    wait.append(h('p', {role: 'alert'}, errorText(error)), button(say('retry'), () => {
      wait.remove()
      load(node, path, draw)
    }, {class: 'main'}))
  }
  node.ariaBusy = 'false'
}

/** Draws a row. A broken one leaves the others. */
function drawn(draw, row) {
  try {
    return draw(row)
  } catch {
    return h('li', {class: 'line small'}, say('unreadable'))
  }
}

/** A list that loads page by page: entries before the last id or, with `skips`, after so many. `grouped` may put several
 * into one row. */
function listing({path, key = path, query = {}, draw, none = 'none', skips, grouped = rows => rows, then}) {
  const list = h('ol', {class: 'list', role: 'list'}, h('li', {class: 'none', tabIndex: -1}, say(none)))
  let seen = 0
  const page = next => load(list, `${path}?${new URLSearchParams({...query, ...next})}`, response => {
    const entries = listOf(response[key])
    const items = grouped(entries).map(entry => drawn(draw, entry))
    seen += entries.length
    list.append(...items)
    if (response.more && entries.length) {
      const more = h('li', {class: 'more'}, button(say('more'), () => {
        more.remove()
        page(skips ? {skip: seen} : {before: entries.at(-1).id})
      }))
      list.append(more)
    }
    listStatus.textContent = seen ? say('found', seen) : say(none)
    if (next) items[0].querySelector('article, button, a')?.focus()
    then?.(response)
  })
  page()
  return list
}

function line(head, notes, ...buttons) {
  // The buttons have the same names in each row.
  for (const act of buttons.filter(each => each)) act.setAttribute('aria-description', head.textContent)
  return h('li', {class: 'line'}, h('div', {class: 'what'}, head, notes), h('div', {class: 'acts row'}, ...buttons))
}

/** Replaces a row. Returns the element that gets the focus. */
function replaceRow(item, fresh) {
  item.replaceWith(fresh)
  return focused(fresh)
}

function removeRow(item) {
  const next = item.nextElementSibling ?? item.previousElementSibling
  item.remove()
  return focused(next)
}

function focused(item) {
  const node = item.querySelector('button') ?? item
  node.focus()
  return node
}

const TYPING = 300 // ms after the last key, until the list follows

/** A search form, and the list that `draw` makes of its values. The list follows what is typed. The URL gets the
 * values, so that going back works. */
function finder(name, params, selects, draw) {
  const found = h('div', {}, draw(params))
  let typing
  let typed = false
  const hashOfForm = () => `#${name}?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`
  const go = () => {
    clearTimeout(typing)
    if (location.hash === hashOfForm()) show()
    else location.hash = hashOfForm()
  }
  const follow = () => {
    if (!form.isConnected || location.hash === hashOfForm()) return
    history[typed ? 'replaceState' : 'pushState'](null, '', hashOfForm()) // one step back, not one for each key
    typed = true
    selectionBar.replaceChildren()
    found.replaceChildren(draw(currentView()[1]))
  }
  const onType = ({isComposing}) => {
    clearTimeout(typing)
    if (!isComposing) typing = setTimeout(follow, TYPING)
  }
  const box = h('input', {
    type: 'search', name: 'q', ariaLabel: say('search'), value: params.get('q') ?? '', 'aria-keyshortcuts': '/',
    oninput: onType, oncompositionend: () => onType({}),
  })
  const form = h('form', {role: 'search', class: 'finder', onsubmit: event => { event.preventDefault(); go() }},
    box, h('button', {}, say('search')),
    params.has('page') && h('input', {type: 'hidden', name: 'page', value: params.get('page')}),
    ...Object.entries(selects).map(([word, values]) => select(word, values, params.get(word), {ariaLabel: say(word), onchange: go})))
  return [form, found]
}

// -- Moderation ---------------------------------------------------------------

const STATUS_KEYS = {visible: 'a', spam: 's', deleted: 'd'}

const APPROVALS = {spam: 'putback', deleted: 'putback', reported: 'keep'}

/** The buttons that give a comment another status. A reported one can be kept. */
const statusButtons = (status, act) => Object.entries(STATUS_KEYS).filter(([to]) => to !== status).map(([to, key]) =>
  keyed(key, to === 'visible' && APPROVALS[status] || 'to_' + to, () => act(to), {class: to === 'visible' ? 'approve' : 'danger'}))

const rows = () => [...main.querySelectorAll('.comment')]
const selectedItems = () => rows().filter(item => item.querySelector('.pick input').checked)
const current = () => main.querySelector('article[aria-current]')?.parentNode

function setCurrent(item) {
  for (const each of main.querySelectorAll('article[aria-current]')) each.removeAttribute('aria-current')
  item?.querySelector('article')?.setAttribute('aria-current', 'true')
}

function focusItem(item) {
  const node = item?.isConnected ? item.firstChild : main.querySelector('.none')
  node?.focus()
  node?.scrollIntoView({block: 'nearest'})
}

/** Goes to the next or previous comment. */
function step(by) {
  const all = rows()
  const at = all.indexOf(current())
  focusItem(all[at + by] ?? all[at] ?? all[0])
}

function selectAll(on) {
  for (const item of rows()) item.querySelector('.pick input').checked = on
  updateSelection(rows()[0]?.listed)
}

/** Shows how many comments are selected, with the buttons for them. */
function updateSelection(status) {
  const n = selectedItems().length
  if (!n) return selectionBar.replaceChildren()
  if (!selectionBar.firstChild) {
    const buttons = statusButtons(status, to => moderate(selectedItems(), to))
    selectionBar.append(span(), ...buttons, button(say('everything'), () => selectAll(true)), button(say('nothing'), () => selectAll(false)))
  }
  selectionBar.firstChild.textContent = say('picked', n)
}

/** Gives comments another status. Returns what each had before, to undo it. */
async function setStatus(items, status) {
  const moved = []
  let edited
  for (let i = 0; i < items.length; i += 100) {
    const some = items.slice(i, i + 100).map(({comment}) => comment)
    const ids = some.map(({id}) => id)
    const versions = some.map(({version}) => version ?? null)
    const {comments, changed} = await call('POST', 'comments', {ids, status, versions})
    moved.push(...comments)
    edited ||= changed?.length
  }
  if (edited) { // the admin has not read the new text
    setTimeout(show)
    throw new Failure('text_changed')
  }
  for (const {was} of moved) statusCounts = {...statusCounts, [was]: statusCounts[was] - 1}
  showCounts({...statusCounts, [status]: statusCounts[status] + moved.length})
  relearn()
  return moved
}

/** Shows items with their new status, or removes them from the list, and goes on to the next. Returns a function
 * that puts them back. Moderating drops the reports, so these come back only where the service refused it. */
function showMoved(items, status) {
  const all = rows()
  const left = all.filter(item => !items.includes(item))
  const at = all.indexOf(items.at(-1))
  const next = left.find(item => all.indexOf(item) > at) ?? left.at(-1)
  const before = items.map(item => ({item, list: item.parentNode, after: item.nextSibling, was: item.comment}))
  for (const item of items) {
    redraw(item, {status, reports: []})
    if (!['all', status].includes(item.listed)) item.remove()
  }
  if (!rows().length) main.querySelector('.more button')?.click()
  focusItem(next ?? items[0])
  updateSelection(items[0].listed)
  return ({refused}) => {
    for (const {item, list, after, was} of before.reverse()) {
      redraw(item, {status: was.status, reports: refused ? was.reports : []})
      if (!item.isConnected) list.insertBefore(item, after?.parentNode === list ? after : null)
    }
    if (items[0].isConnected) focusItem(items[0])
    else show() // another list is shown
  }
}

/** Sentences after each other. Chinese and Japanese have no space between them. */
const sentences = (...all) => all.filter(each => each).join(/^(zh|ja)/.test(lang) ? '' : ' ')

/** Shows the new status at once. Where the service refuses, the comments come back. For a block that was
 * just added, `blocked` is its message; undoing calls `unblock` too. */
async function moderate(items, status, {blocked, unblock} = {}) {
  const stayed = items.every(({comment}) => comment.status === status)
  const reported = items.filter(({comment}) => listOf(comment.reports).length).length
  const restore = showMoved(items, status)
  const moved = setStatus(items, status)
  const did = say('did_' + status, items.length)
  if (stayed) announce(say('did_keep', items.length))
  else announce(sentences(blocked, did), async () => {
    await unblock?.()
    await putBack(items, await moved)
    restore({refused: false})
  })
  try {
    await moved
    if (reported) showCounts({...statusCounts, reported: statusCounts.reported - reported}) // undoing brings no reports back
  } catch (error) {
    restore({refused: true})
    announce(sentences(blocked, errorText(error)), unblock)
  }
}

async function putBack(items, moved) {
  for (const status of new Set(moved.map(({was}) => was))) {
    const ids = moved.filter(({was}) => was === status).map(({id}) => id)
    await setStatus(items.filter(({comment}) => ids.includes(comment.id)), status)
  }
}

async function pin(item, pinned) {
  await call('POST', 'comments', {ids: [item.comment.id], pinned})
  redraw(item, {pinned})
  focusItem(item)
}

// -- Comments -----------------------------------------------------------------

const HELD = /^(word|block|learnt): (.*)/s

function holdReason(reason) {
  const [, kind, what] = HELD.exec(reason) ?? []
  return say('held_' + (kind ?? reason), what)
}

const percent = share => Math.min(Math.max(share, .01), .99).toLocaleString(lang, {style: 'percent'})

/** The score of the spam filter, and the terms that decided it. */
function score({spam, content, nickname}) {
  if (!Number.isFinite(spam?.score)) return
  const written = `${text(nickname)} ${text(content)}`.toLowerCase()
  const [colon, comma] = [say('colon'), say('comma')].map(spaced)
  const terms = (before, isSpam) => {
    const tokens = listOf(spam.tokens).filter(each => isSpam === each.score > .5).map(({token}) => text(token))
    return joined(tokens, written).flatMap((term, i) => [i ? comma : before + colon, termText(term)])
  }
  if (spam.score < .5) return span(say('score_ham', percent(spam.score)), ...terms('', false))
  if (spam.score >= .9) return span(say('score_spam', percent(spam.score)), ...terms('', true))
  return span(say('score_open', percent(spam.score)), ...terms('', true), ...terms(say('but'), false))
}

/** In scripts without spaces the terms of the filter are pairs of characters. Overlapping ones are joined to words. */
function joined(tokens, written) {
  const words = []
  for (const token of tokens) {
    const [first, last] = /^[\u0e00-\uffff]{2}$/.test(token) ? token : []
    const before = words.findIndex(word => first && word.endsWith(first) && written.includes(word + last))
    const after = words.findIndex(word => first && word.startsWith(last) && written.includes(first + word))
    if (before >= 0) words[before] += last
    else if (after >= 0) words[after] = first + words[after]
    else words.push(token)
  }
  return words
}

/** A term of the filter as a person reads it: `links:2`, `link:HOST`, `name:WORD` or a word. */
function termText(term) {
  const [, kind, value] = /^(links?|name):(.*)/s.exec(term) ?? []
  if (kind === 'links') return say(Number(value) ? 'n_links' : 'no_links', Number(value))
  return span(bdi(value ?? term), kind === 'name' && ` (${say('nickname')})`)
}

const regions = code => new Intl.DisplayNames(lang, {type: 'region'}).of(code) // as at the widget
const findable = what => text(what) && link('#comments?' + new URLSearchParams({q: what}), bdi(what))

// The facts beside a comment: the text for each, and what to show.
const FACTS = {
  held: ({held: reason, status}) => text(reason) && status !== 'visible' && holdReason(reason),
  score: comment => ['waiting', 'spam'].includes(comment.status) && score(comment),
  page: ({page_url, page_link, foreign, closed}) => text(page_url) && span(linkToPage({page_link, page_url}),
    closed && ` (${say('closed')})`, ' ', foreign && h('span', {class: 'alarm'}, say('foreign'))),
  known: ({known, held, role}) => known > 0 ? say('n_others', known) : held !== 'first' && role !== 'admin' && say('first'),
  place: ({location, country}) => lang !== 'zh-CN' && /^[A-Z]{2}$/.test(country) ? regions(country) : text(location),
  ip: ({ip}) => findable(ip),
  email: ({email}) => findable(email),
  website: ({website}) => text(website) && out(website, text(website).replace(/^https?:\/\/|\/$/g, '')),
}

function facts(comment) {
  const shown = Object.entries(FACTS).map(([word, factOf]) => [word, factOf(comment)]).filter(([, value]) => value)
  return h('dl', {class: 'facts'}, ...shown.map(([word, value]) =>
    h('div', {class: word}, h('dt', {class: 'sr'}, say(word)), h('dd', {}, value))))
}

/** How many readers reported a comment, and why. */
function reportsOf({reports}) {
  const all = listOf(reports)
  if (!all.length) return
  const times = new Map()
  for (const {reason} of all) times.set(text(reason), (times.get(text(reason)) ?? 0) + 1)
  times.delete('')
  const reasons = [...times].sort(([, a], [, b]) => b - a).map(([reason, n]) =>
    h('li', {}, bdi(reason), n > 1 && h('span', {class: 'small'}, ` (${say('times', n)})`)))
  const rest = reasons.splice(3)
  return h('div', {class: 'reports'},
    h('p', {class: 'alarm'}, say('reports', all.length)),
    h('ul', {}, ...reasons),
    rest.length > 0 && h('details', {}, h('summary', {}, say('reasons', rest.length)), h('ul', {}, ...rest)))
}

/** The host of a URL; '' if it is none. Safari 16 has no `URL.canParse`. */
function host(url) {
  try {
    return new URL(text(url)).hostname.replace(/^www\./, '')
  } catch {
    return ''
  }
}

/** The text. Links show their host, and a long text is folded. */
function bodyOf({html, content}) {
  const body = formatted(text(html))
  for (const a of body.querySelectorAll('a')) {
    a.target = '_blank'
    if (!a.textContent.includes(host(a.href))) a.dataset.host = host(a.href)
  }
  if (text(content).length < 700) return [body]
  body.classList.add('folded')
  const unfold = button(say('unfold'), () => {
    body.classList.remove('folded')
    unfold.remove()
    body.parentNode.focus()
  }, {class: 'unfold'})
  return [body, unfold]
}

function article(item) {
  const {comment, listed} = item
  const {status, parent, role, pinned, edited} = comment
  const name = text(comment.nickname) || say('anonymous')
  const pick = h('input', {type: 'checkbox', ariaLabel: `${say('select')}: ${name}`, 'aria-keyshortcuts': 'x', onchange: () => updateSelection(listed)})
  return h('article', {tabIndex: -1, ariaLabel: say('by', name)},
    h('div', {class: 'meta row'},
      h('label', {class: 'pick'}, pick), h('b', {}, bdi(name)), role === 'admin' && badge('admin'), pinned && badge('pinned'),
      ![listed, 'visible'].includes(status) && badge(status), edited && span(say('edited')),
      h('span', {class: 'push'}, when(comment.created_at))),
    parent && h('p', {class: 'small answers', dir: 'auto'}, say('answers', text(parent.nickname) || say('anonymous')), ' ', bdi(parent.content)),
    ...bodyOf(comment), reportsOf(comment), facts(comment), h('div', {class: 'acts row'}, ...acts(item)))
}

const STANDING = ['visible', 'waiting'] // neither spam nor deleted

function acts(item) {
  const {status, pinned, parent_id, reports} = item.comment
  const kinds = kindsOf(item.comment)
  return [
    ...statusButtons(listOf(reports).length ? 'reported' : status, to => moderate([item], to)),
    STANDING.includes(status) && keyed('r', 'reply', () => reply(item)),
    keyed('e', 'edit', () => edit(item)),
    kinds.length > 0 && button(say('block'), () => openBlock(item, kinds)),
    status === 'visible' && !parent_id && workButton(pinned ? 'unpin' : 'pin', () => pin(item, !pinned)),
  ]
}

/** The row of a comment in a list of those with a status. */
function commentRow(comment, listed) {
  if (!(comment.id > 0)) throw TypeError('a comment without a number')
  const item = h('li', {class: 'comment', onfocusin: () => setCurrent(item)})
  Object.assign(item, {comment, listed})
  redraw(item)
  return item
}

function redraw(item, changed) {
  item.comment = {...item.comment, ...changed}
  item.replaceChildren(article(item))
}

/** Opens a form in the comment. Escape closes it (see `onEscape`), unless typed text would be lost. A draft is kept
 * elsewhere. */
function write(item, word, fields, work, isDraft) {
  const close = () => {
    form.remove()
    focusItem(item)
  }
  const form = panel(word, fields, work, close)
  const filled = () => JSON.stringify([...new FormData(form)])
  const before = filled()
  form.onescape = () => {
    if (isDraft || filled() === before) close()
  }
  item.querySelector('form')?.remove()
  item.firstChild.append(form)
  item.querySelector('textarea').focus()
}

/** Opens the form for a reply. What is typed is kept as a draft. */
function reply(item) {
  const {id, nickname, status, version} = item.comment
  const draft = 'draft ' + id
  const hidden = status !== 'visible' // the service approves it
  const remember = ({target}) => keep(draft, target.value, 'sessionStorage')
  const content = area('content', say('reply_to', text(nickname) || say('anonymous')), {value: recall(draft, '', 'sessionStorage'), oninput: remember})
  write(item, hidden ? 'approve_reply' : 'send', [content], async filled => {
    const {comment} = await call('POST', 'reply', {parent_id: id, content: filled.content, version: version ?? undefined})
    keep(draft, undefined, 'sessionStorage')
    const reported = listOf(item.comment.reports).length > 0
    const restore = showMoved([item], 'visible')
    showCounts({
      ...statusCounts,
      [status]: statusCounts[status] - hidden,
      visible: statusCounts.visible + hidden + 1,
      reported: statusCounts.reported - reported,
    })
    relearn()
    announce(sentences(hidden && say('did_visible', 1), say('did_reply')), async () => {
      await setStatus([{comment}], 'deleted')
      if (hidden) await setStatus([item], status)
      restore({refused: false})
    })
  }, true)
}

function edit(item) {
  const {id, content, nickname, website, version} = item.comment
  const fields = [
    area('content', say('text'), {value: text(content)}),
    inputField('nickname', 'nickname', {value: text(nickname), required: !!nickname, maxLength: 64}),
    inputField('website', 'website', {value: text(website), type: 'url'}),
  ]
  write(item, 'save', fields, async filled => {
    redraw(item, (await call('PATCH', 'comments/' + id, {...filled, version: version ?? undefined})).comment)
    focusItem(item)
    announce(say('did_edit'))
  })
}

/** Ends a block. One that has ended is no failure: an undo that failed half-way is tried again. */
const endBlock = id => call('DELETE', 'blocks/' + id).catch(error => {
  if (error.status !== 404) throw error
})

/** Adds a block, which can be undone, and marks the comment as spam that is its reason. */
async function blockNow({kind, value, days, note, sure, spam}, then) {
  const {block} = await call('POST', 'blocks', {kind, value, ...days > 0 && {days: Number(days)}, ...note && {note}, ...sure && {sure}})
  const blocked = say('did_block', block.value)
  const unblock = () => endBlock(block.id)
  if (spam) return setTimeout(moderate, 0, [spam], 'spam', {blocked, unblock}) // the dialog has closed: the focus can move
  announce(blocked, async () => {
    await unblock()
    then?.()
  })
  then?.()
}

/** The work of a form that adds a block. A block that many readers would meet has to be confirmed. */
function blocking(filledIn, then) {
  let toConfirm
  return async (filled, form) => {
    const block = filledIn(filled)
    const confirmed = toConfirm === block.kind + block.value
    const submit = form.querySelector('.main')
    submit.dataset.word ??= submit.textContent
    try {
      await blockNow({...block, ...confirmed && {sure: true}}, then)
    } catch (error) {
      const wide = error.code === 'block_wide'
      toConfirm = wide ? block.kind + block.value : undefined
      submit.textContent = wide ? say('block_sure') : submit.dataset.word
      throw error
    }
  }
}

/** What of a comment can be blocked: IP address, email address, and the hosts of website and links. */
function kindsOf({ip, email, website, html}) {
  const links = [website, ...[...text(html).matchAll(/href="([^"]*)"/g)].map(([, href]) => href)]
  const hosts = [...new Set(links.map(host))].map(each => ['domain', each])
  return [['address', text(ip)], ['email', text(email)], ...hosts].filter(([, value]) => value)
}

function openBlock(item, kinds) {
  const shown = kinds.map(([kind, value], i) => [i, span(`${say(kind)} `, bdi(value))])
  const fields = [choice('which', 'kind', shown), choice('days', 'days', ['30', 'forever'].map(days => [days, say(days)])),
    STANDING.includes(item.comment.status) && h('label', {class: 'option'},
      h('input', {type: 'checkbox', name: 'spam', checked: true}), span(say('block_spam')))]
  dialog(say('block'), 'block', fields, blocking(({which, days, spam}) =>
    ({kind: kinds[which][0], value: kinds[which][1], days, spam: spam && item})))
}

/** A list of comments. Keys act on the first. */
const comments = (query, none) => listing({
  path: 'comments', query, none,
  draw: comment => commentRow(comment, query.status),
  then: response => {
    showCounts(response.counts)
    if (!current()) setCurrent(rows()[0])
    const empty = main.querySelector('.none')
    const {reported} = statusCounts
    if (query.status === 'waiting' && reported > 0 && !empty.children.length) {
      empty.append(h('p', {}, link('#queue?status=reported', say('n_reported', reported))))
    }
    main.querySelector('.filter')?.remove()
    if (FILTERED.includes(query.status)) main.append(filterState(response.filter))
  },
})

const FILTERED = ['waiting', 'spam']

/** What the spam filter has learnt from. */
function filterState(filter) {
  const {spam, ham, active} = filter ?? {}
  if (!Number.isFinite(spam)) return ''
  return h('p', {class: 'small filter'}, say(active ? 'learnt' : 'learning', spam, ham))
}

let relearning

/** Updates the line with what the filter has learnt, where it is shown. Clicks in quick succession ask once. */
function relearn() {
  clearTimeout(relearning)
  if (!main.querySelector('.filter')) return
  relearning = setTimeout(() => ask('GET', 'comments?limit=1').then(({filter}) => {
    main.querySelector('.filter')?.replaceWith(filterState(filter))
  }).catch(() => {}), 300)
}

// -- Views --------------------------------------------------------------------

const ONLY = {page: 'onepage', comment: 'onecomment'}

const VIEWS = {
  queue(params) {
    const states = ['waiting', 'reported', 'spam', 'deleted']
    const status = states.find(each => each === params.get('status')) ?? 'waiting'
    const tabs = states.map(each => h('li', {}, h('a', {
      href: each === 'waiting' ? '#queue' : '#queue?status=' + each, onclick: stay, ...each === status && {'aria-current': 'page'},
    }, say(each), h('span', {'data-count': each}))))
    main.append(h('nav', {ariaLabel: say('status')}, h('ul', {}, ...tabs)), comments({status}, 'none_' + status))
  },

  comments(params) {
    const only = Object.keys(ONLY).find(each => params.has(each))
    const [form, found] = finder('comments', params, {status: ['all', 'visible', 'waiting', 'reported', 'spam', 'deleted']},
      given => comments({status: 'all', ...Object.fromEntries(given)}, 'none_found'))
    main.append(form, only ? h('p', {class: 'small'}, link('#comments', say(ONLY[only]))) : '', found)
  },

  pages(params) {
    main.append(...finder('pages', params, {sort: ['latest', 'views', 'comments']},
      given => listing({path: 'pages', query: Object.fromEntries(given), draw: pageLine, skips: true})))
  },

  users(params) {
    main.append(...finder('users', params, {},
      given => listing({path: 'users', query: Object.fromEntries(given), draw: userLine})))
  },

  blocks() {
    const form = panel('add', [
      labelled(say('kind'), select('kind', ['address', 'email', 'domain', 'word'])),
      inputField('value', 'value', {required: true, maxLength: 254}),
      labelled(say('days'), select('days', ['30', '7', '365', 'forever'])),
      inputField('note', 'note', {maxLength: 200}),
    ], blocking(filled => filled, show))
    form.classList.add('adding')
    main.append(h('p', {class: 'small'}, say('blocks_lead')), form, listing({path: 'blocks', draw: blockLine, none: 'none_blocks'}))
  },

  figures() {
    load(main, 'figures?days=30', figures)
  },

  mail() {
    main.append(listing({path: 'outbox', key: 'emails', draw: emailLine, none: 'none_mail'}))
  },

  log() {
    main.append(listing({path: 'audit', query: {limit: 100}, draw: logLine, grouped: together}))
  },

  settings() {
    load(main, 'settings?lang=' + lang, response => main.append(...findings(response), ...tagSection(), ...backupSection(), ...inForce(response)))
  },

  welcome() {
    main.append(h('p', {}, say('welcome_lead')), ...tagSection(),
      h('h2', {}, link('#queue', say('toqueue'))), h('p', {}, link('#settings', say('findings'))))
  },
}

function pageLine(row) {
  const {id, page_url, total, views, page_likes, closed, closed_by_age} = row
  const put = async body => {
    const {page: fresh} = await call('PATCH', 'pages/' + id, body)
    return body.merge ? show() : replaceRow(item, pageLine(fresh)) // merging changes another row too
  }
  const rename = () => {
    let merge // the URL of an existing page, once the service has said so
    const address = inputField('page_url', 'page_url', {value: text(page_url), required: true, maxLength: 2048})
    dialog(say('rename'), 'save', [h('p', {}, say('rename_lead')), address], async (filled, form) => {
      const wanted = filled.page_url
      try {
        return await put({page_url: wanted, ...merge === wanted && {merge: true}})
      } catch (error) {
        const taken = error.code === 'page_exists'
        merge = taken ? wanted : undefined
        form.querySelector('.main').textContent = say(taken ? 'merge' : 'save')
        throw error
      }
    })
  }
  const item = line(linkToPage(row), dots(
    link('#comments?page=' + id, say('n_comments', total)), say('n_views', views), say('n_likes', page_likes),
    closed && badge(closed_by_age ? 'byage' : 'closed')),
  workButton(closed ? 'reopen' : 'close', () => put({closed: !closed})), button(say('rename'), rename))
  return item
}

function userLine(row) {
  const {id, email, nickname, role, created_at, you} = row
  const put = async changed => {
    await call('PATCH', 'users/' + id, changed)
    return replaceRow(item, userLine({...row, ...changed}))
  }
  const other = role === 'admin' ? 'user' : 'admin'
  const word = other === 'admin' ? 'promote' : 'demote'
  const change = () => dialog(say(word), word, [bdi(nickname), ownPassword()], ({password}) => put({role: other, password}))
  const theirs = link('#comments?' + new URLSearchParams({q: text(email)}), say('n_comments', row.comments))
  const badges = [role === 'admin' && badge('admin'), row.blocked && badge('blocked'), you && span(say('you'))]
  const block = workButton(row.blocked ? 'unblock' : 'block', () => put({blocked: !row.blocked}))
  const item = line(
    h('p', {class: 'row'}, h('b', {}, bdi(nickname)), ...badges),
    dots(bdi(email), theirs, span(say('since'), ' ', when(created_at))),
    button(say(word), change), you ? '' : block)
  return item
}

function blockLine({id, kind, value, note, expires_at}) {
  const days = Math.ceil((dateOf(expires_at) - Date.now()) / 86400e3) // NaN: without an end
  const item = line(span(say(kind), ' ', h('b', {}, bdi(value))),
    dots(expires_at ? span(spaced(say('ends')), when(expires_at)) : say('forever'), text(note) && bdi(note)),
    workButton('remove', async () => {
      await call('DELETE', 'blocks/' + id)
      removeRow(item)
      announce(say('did_unblock', text(value)), () => blockNow({kind, value, days, note, sure: true}, show))
    }, {class: 'danger'}))
  return item
}

function emailLine({id, recipient, subject, tries, failure, due_at, can_retry}) {
  const hook = recipient === 'webhook'
  const title = () => hook ? span(say('hooked')) : bdi(subject)
  const done = async (method, word, body) => {
    await call(method, 'outbox/' + id, body)
    announce(say(word))
    return removeRow(item)
  }
  const drop = () => dialog(say(hook ? 'drop_hook' : 'drop_sure'), 'drop', [title()], () => done('DELETE', 'did_drop'))
  const next = due_at ? span(say('next'), ' ', when(due_at)) : say('given_up')
  const item = line(title(), dots(hook ? say('webhook') : bdi(recipient), say('tries', tries), text(failure) && bdi(failure), next),
    can_retry && workButton('retry', () => done('POST', 'did_retry', {})), button(say('drop'), drop, {class: 'danger'}))
  return item
}

const WHO = {mail: 'by_mail', command: 'by_command'}
// What the subject of an entry of the log is the number of, or the URL.
const ON_COMMENTS = ['visible', 'waiting', 'keep', 'spam', 'deleted', 'pin', 'unpin', 'edit', 'reply']
const ON_PAGES = ['close', 'reopen']
const TO_PAGES = ['rename', 'merge'] // their detail is the new URL

const linkToComment = id => link('#comments?comment=' + id, say('log_comment', text(id)))
const findPage = url => link('#pages?' + new URLSearchParams({q: url}), bdi(readable(url)))

/** The entries of the log, where the same that somebody did with several comments within an hour stands together. */
function together(entries) {
  const groups = []
  for (const entry of entries) {
    const group = groups.at(-1) ?? []
    const [newest] = group
    const isSame = newest?.who === entry.who && newest.action === entry.action && ON_COMMENTS.includes(entry.action)
    if (isSame && dateOf(newest.created_at) - dateOf(entry.created_at) < 3600e3) group.push(entry)
    else groups.push([entry])
  }
  return groups
}

/** What was done something with. */
function subjectOf({action, subject}) {
  if (ON_COMMENTS.includes(action) && /^\d+$/.test(subject)) return linkToComment(subject)
  if (ON_PAGES.includes(action)) return findPage(text(subject))
  return bdi(subject)
}

function detailOf({action, detail}) {
  if (TO_PAGES.includes(action)) return findPage(text(detail))
  if (/^(un)?block$/.test(action) && has(detail)) return say(detail)
  return text(detail) && bdi(detail)
}

function logLine(entries) {
  const [entry] = entries
  const {who, action, created_at} = entry
  const name = h('b', {}, Object.hasOwn(WHO, who) ? say(WHO[who]) : bdi(who))
  const did = has('log_' + text(action)) ? say('log_' + action) : text(action)
  if (entries.length === 1) return line(span(name, ' ', spaced(did), subjectOf(entry)), dots(when(created_at), detailOf(entry)))
  const all = entries.flatMap(({subject}) => [linkToComment(subject), ' '])
  return line(h('details', {class: 'group'}, h('summary', {}, name, ' ', spaced(did), say('n_comments', entries.length)), h('p', {}, ...all)),
    dots(when(created_at)))
}

// -- Figures ------------------------------------------------------------------

/** A day such as 2026-11-25, as people of the language write it. */
function dayText(day) {
  const date = new Date(text(day))
  return isNaN(date) ? text(day) : date.toLocaleDateString(lang, {dateStyle: 'medium', timeZone: 'UTC'})
}

const amount = value => value > 0 && Number.isFinite(value) ? value : 0

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  node.append(...children)
  return node
}

const NONE = {comments: 'no_comments', views: 'no_views', likes: 'no_likes'}

/** A chart with a bar a day. The slider over it tells the value of a day: to the keyboard, to a finger and to screen
 * readers. A mouse need only point. */
function chart(word, days) {
  const values = days.map(day => amount(day[word]))
  const total = values.reduce((a, b) => a + b, 0)
  const most = Math.max(...values, 0)
  const sum = total ? say('sum', total, most) : say(NONE[word])
  const bars = values.map((value, i) => {
    const height = most && 60 * value / most
    return svg('rect', {x: 10 * i + 1, width: 8, y: 60 - height, height})
  })
  const shape = {viewBox: `0 0 ${10 * days.length} 60`, preserveAspectRatio: 'none'}
  const picture = svg('svg', {...shape, role: 'img', 'aria-label': `${say(word)}: ${sum}`}, ...bars)
  const shown = h('span', {class: 'small'}, sum)
  const plot = total ? h('div', {class: 'plot'}, picture, slider(word, days, values, bars, told => { shown.textContent = told ?? sum })) : picture
  return h('figure', {}, h('figcaption', {}, h('b', {}, say(word)), shown),
    h('div', {class: 'axis small', ariaHidden: 'true'}, span(total ? number(most) : ''), span(number(0))), plot,
    h('div', {class: 'ends small', ariaHidden: 'true'}, span(dayText(days[0]?.day)), span(dayText(days.at(-1)?.day))))
}

/** The slider over the bars of a chart. `tell` gets the day and its value, or nothing when no day is pointed at. */
function slider(word, days, values, bars, tell) {
  const last = days.length - 1
  const valueOf = i => `${dayText(days[i].day)}: ${number(values[i])}`
  const mark = i => {
    bars.forEach((bar, at) => bar.classList.toggle('pointed', at === i))
    tell(i === undefined ? undefined : valueOf(i))
  }
  const choose = i => {
    node.value = i
    node.ariaValueText = valueOf(i)
    mark(i)
  }
  const under = ({clientX}) => {
    const {left, right, width} = node.getBoundingClientRect()
    const distance = document.dir === 'rtl' ? right - clientX : clientX - left
    return Math.min(Math.max(Math.floor(distance / width * days.length), 0), last)
  }
  const node = h('input', {
    type: 'range', min: 0, max: last, value: last, ariaLabel: say(word), ariaValueText: valueOf(last),
    onpointermove: event => choose(under(event)),
    oninput: () => choose(Number(node.value)),
    onfocus: () => choose(Number(node.value)),
    onpointerleave: () => node.matches(':focus') || mark(),
    onblur: () => mark(),
  })
  return node
}

/** A table of pages, or a sentence where there is none. */
function ranking(word, count, pages) {
  const counted = listOf(pages).filter(page => amount(page[count]))
  if (!counted.length) return h('section', {}, h('h2', {}, say(word)), h('p', {class: 'small'}, say(count === 'views' ? 'no_views' : 'no_comments')))
  return table(say(word), [say('page'), say('views'), say('comments')],
    counted.map(page => [linkToPage(page), amount(page.views), amount(page.total)]))
}

function figures(response) {
  const days = listOf(response.days)
  const words = ['comments', 'views', 'likes']
  const title = say('last_days', days.length)
  main.append(h('p', {class: 'small'}, title), ...words.map(word => chart(word, days)),
    h('details', {}, h('summary', {}, say('as_table')), table(title, [say('day'), ...words.map(word => say(word))],
      days.map(day => [dayText(day.day), ...words.map(word => amount(day[word]))]))),
    ranking('by_views', 'views', response.by_views), ranking('by_comments', 'total', response.by_comments))
}

// -- Settings -----------------------------------------------------------------

// The service has these texts in English and in both kinds of Chinese.
const serviceLanguage = () => lang.startsWith('zh') ? lang : 'en'

/** The findings of `check`. */
function findings(response) {
  const open = listOf(response.findings).filter(({level}) => level !== 'ok')
  const items = open.map(({level, topic, text: finding}) => h('li', {class: 'line', dir: 'ltr'}, h('p', {},
    ['fail', 'warn'].includes(level) && h('span', {class: 'badge alarm'}, say('level_' + level)), ' ',
    h('span', {lang: serviceLanguage()}, h('b', {}, text(topic)), ' ', text(finding)))))
  const list = items.length ? h('ul', {class: 'list'}, ...items) : h('p', {}, say('no_findings'))
  return [h('h2', {}, say('findings')), list]
}

function tagSection() {
  const code = h('code', {}, `<script src="${new URL('embed.js', location.href)}" async></script>`)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code.textContent)
      announce(say('copied'))
    } catch { // plain http has no clipboard
      getSelection().selectAllChildren(code)
      announce(say('mark'))
    }
  }
  return [h('h2', {}, say('tag')), h('p', {}, say('paste')),
    h('pre', {class: 'tag', tabIndex: 0, dir: 'ltr'}, code), button(say('copy'), copy, {class: 'main'})]
}

function backupSection() {
  const fetched = async ({password}) => {
    const href = URL.createObjectURL(await call('POST', 'backup', {password}))
    h('a', {href, download: `commentd-${new Date().toISOString().slice(0, 10)}.db`}).click()
    setTimeout(() => URL.revokeObjectURL(href), 60e3)
  }
  const open = () => dialog(say('backup'), 'download', [ownPassword()], fetched)
  return [h('h2', {}, say('backup')), h('p', {}, say('backup_lead')), button(say('download'), open, {class: 'main'})]
}

/** Chinese has no space beside its wide punctuation. */
const inOneLine = lines => lines.replace(/(?<=[，。；：、）])\n|\n(?=（)/g, '').replaceAll('\n', ' ')

function inForce({settings, version}) {
  const cells = ({section, key, value, changed, help}) => [
    span(bdi(`[${text(section)}] ${text(key)}`), changed && ' ', changed && badge('changed'),
      h('div', {class: 'small', lang: serviceLanguage(), dir: 'ltr'}, inOneLine(text(help)))), bdi(value)]
  const caption = span(say('in_force'), h('p', {class: 'small'}, say('in_file')))
  return [table(caption, [say('setting'), say('value')], listOf(settings).map(cells)),
    h('p', {class: 'small'}, `commentd ${text(version)}`)]
}

// -- Keys ---------------------------------------------------------------------

// The text for each key. Most keys press the button that has them as aria-keyshortcuts: that of the selection,
// or of the current comment.
const KEYS = {
  j: 'key_j', k: 'key_k', a: 'to_visible', s: 'to_spam', d: 'to_deleted', r: 'reply', e: 'edit', u: 'undo', x: 'key_x',
  '/': 'search', '?': 'key_help',
}

const ACTS = {
  j: () => step(1),
  k: () => step(-1),
  '/': () => {
    if (!main.querySelector('[type=search]')) {
      history.pushState(null, '', '#comments')
      dismissNotice()
      show()
    }
    main.querySelector('[type=search]').focus()
  },
}

function press(key) {
  const places = [selectionBar, current(), notice, document.querySelector('footer')]
  const buttons = places.map(place => place?.querySelector(`[aria-keyshortcuts="${key}"]`))
  const found = buttons.find(each => each)
  if (ACTS[key]) ACTS[key]()
  else if (found) found.click()
  else if (key === 'u' && undo) takeBack(undo) // the message with the button has gone
}

/** Closes what is open: a form in a comment, else the selection, else the message. Dialogs and search fields have
 * an Escape of their own. */
function onEscape({target, isComposing}) {
  if (isComposing || target.closest('[type=search]') || document.querySelector('dialog[open]')) return
  const form = target.closest('article form') ?? main.querySelector('article form')
  if (form) form.onescape()
  else if (selectionBar.firstChild) selectAll(false)
  else dismissNotice()
}

function onkeydown(event) {
  const {key, target, ctrlKey, altKey, metaKey, repeat, isComposing} = event
  if (key === 'Escape') return onEscape(event)
  const typing = target.closest('input:not([type=checkbox]), textarea, select, dialog') || document.querySelector('dialog[open]')
  if (!Object.hasOwn(KEYS, key) || typing || ctrlKey || altKey || metaKey || isComposing || !me().token) return
  if (recall('keys', true) === false && key !== '?') return
  event.preventDefault()
  if (!repeat || key === 'j' || key === 'k') press(key) // a long press approves one comment only
}

function showKeys() {
  const list = Object.entries(KEYS).map(([key, word]) =>
    h('div', {class: 'row'}, h('dt', {}, h('kbd', {class: 'badge'}, key)), h('dd', {}, say(word))))
  // Dictated speech would press them all.
  const on = h('input', {type: 'checkbox', checked: recall('keys', true), onchange: () => keep('keys', on.checked)})
  dialog(say('keys'), 'done', [h('dl', {}, ...list), h('label', {class: 'option'}, on, span(say('keys_on')))])
}

// -- Start --------------------------------------------------------------------

/** Shows the view of the URL, or the one named. */
function enter(name) {
  drawFrame()
  if (name) history.replaceState(null, '', '#' + name)
  show()
  if (!['queue', 'comments'].includes(currentView()[0])) refresh()
}

const refresh = () => call('GET', 'comments?limit=1').then(({counts}) => showCounts(counts), () => {})

function begin() {
  if (oneTimeLink !== undefined) claim()
  else if (me().token) enter()
  else showSignIn()
}

let away = 0

/** After a minute away the queue is loaded anew, unless something is being written or selected. */
function onVisibilityChange() {
  if (document.hidden) away = Date.now()
  else if (me().token && Date.now() - away > 60e3) {
    if (currentView()[0] === 'queue' && !document.querySelector('main form, dialog') && !selectedItems().length) show()
    else refresh()
  }
}

/** Each minute: the number of waiting comments; an empty queue shows new ones. */
function poll() {
  if (document.hidden || !me().token || main.querySelector('form')) return
  if (currentView()[0] === 'queue' && !rows().length) show()
  else refresh()
}

async function start() {
  const page = document.querySelector('main')
  page.replaceChildren()
  try {
    await use(preferredLanguage())
  } catch { // and so there are no texts
    page.append(h('p', {role: 'alert'}, 'The service can’t be reached. ', h('span', {lang: 'zh-CN'}, '暂时连不上服务。')),
      button('Try again · 重试', start, {class: 'main'}))
    return
  }
  addEventListener('hashchange', () => {
    undo = undefined
    dismissNotice() // it was about another view
    takeLink()
    if (oneTimeLink === undefined) show()
    else begin()
  })
  addEventListener('keydown', onkeydown)
  document.addEventListener('visibilitychange', onVisibilityChange)
  setInterval(poll, 60e3)
  begin()
}

start()
