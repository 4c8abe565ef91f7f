// The page around the views, and which of them is shown. In order: Views, Counts, Frame.

import {LANGUAGES, h, keep, load} from './shared.js'
import {bdi, link, listStatus, main, selectionBar} from './elements.js'
import {announce, dismissNotice, fill, forgetNotice, notice} from './notices.js'
import {call, errorText, isModerator, me} from './service.js'
import {language, nameOfLanguage, number, say, speak} from './texts.js'

// -- Views --------------------------------------------------------------------

const SECTIONS = [
  'queue', 'comments', 'pages', 'users', 'blocks', 'figures', 'mail', 'log', 'settings',
]
const VIEWS = [...SECTIONS, 'welcome']

const sectionsOfMine = () => isModerator() ? ['queue'] : SECTIONS

// By name: the module of each view that was shown. It draws the view into `main`, of the parameters
// in the URL. One of comments has `keys` of its own, see keys.js.
const modules = {}

/** The name of the view and its parameters, as the URL has them. */
export function currentView() {
  const [name, query] = location.hash.slice(1).split('?')
  const views = isModerator() ? sectionsOfMine() : VIEWS
  return [views.includes(name) ? name : 'queue', new URLSearchParams(query)]
}

/** The keys of the view that is shown. */
export const keysOfView = () => modules[currentView()[0]]?.keys ?? {}

/** Draws the view that the URL names, and loads its script where that is missing. Returns the
    heading. */
export function show() {
  if (!me().token) return
  const [name, params] = currentView()
  const heading = h('h1', {tabIndex: -1}, say(name))
  const wasSearching = document.activeElement?.closest('[role=search]')
  main.replaceChildren(heading)
  main.ariaBusy = null // of a view that was left while it was loaded
  selectionBar.replaceChildren()
  markInMenu(name)
  if (modules[name]) modules[name].draw(params)
  else drawing = loadView(name, params)
  showCounts()
  if (document.activeElement === document.body) {
    const field = wasSearching && main.querySelector('[type=search]')
    const target = field || heading
    target.focus()
  }
  return heading
}

let drawing // the promise of the view that was loaded last

function loadView(name, params) {
  return fill(main, () => load(`admin_page/${name}.js`), view => {
    modules[name] = view
    view.draw(params)
    showCounts()
  })
}

/** Goes to the search field of the view, or to that of all comments. */
export async function search() {
  if (isModerator()) return
  if (!main.querySelector('[type=search]')) {
    history.pushState(null, '', '#comments')
    dismissNotice()
    show()
    await drawing
  }
  main.querySelector('[type=search]')?.focus() // it has none where the view failed to load
}

/** A link to the current view draws it anew, since the hash does not change. */
export function showAgain({currentTarget}) {
  if (currentTarget.hash === location.hash) show()
}

// -- Counts -------------------------------------------------------------------

/** The number of comments of each status, and of messages that are `undelivered`. */
export let counts = {}

/** Shows the counts, in the menu and the title too. */
export function showCounts(changed) {
  counts = changed ?? counts
  const {waiting, reported = 0} = counts
  const open = waiting + reported
  for (const node of document.querySelectorAll('[data-count]')) {
    const count = {...counts, open}[node.dataset.count]
    node.textContent = count > 0 ? number(count) : ''
  }
  const name = say(currentView()[0])
  document.title = `${open > 0 ? `(${number(open)}) ` : ''}${name} · commentd`
}

const blogMenu = h('nav', {class: 'blogs'})

/** Shows the other blogs where who is signed in is an admin, with how much waits there. */
export function showBlogs(blogs) {
  if (blogMenu.contains(document.activeElement)) return // it would lose the focus
  const items = blogs.map(({name, url, waiting}) => {
    const shown = waiting > 0 ? number(waiting) : ''
    const count = h('span', {class: 'elsewhere', title: say('waiting')}, shown)
    return h('li', {}, h('a', {href: url, title: name}, bdi(name), count))
  })
  const title = h('p', {class: 'small'}, say('blogs'))
  blogMenu.hidden = !items.length
  blogMenu.ariaLabel = say('blogs')
  blogMenu.replaceChildren(title, h('ul', {}, ...items))
}

/** Asks for the counts. Each minute that is done again, so an error needs no words. */
export async function refreshCounts() {
  try {
    const response = await call('GET', 'comments?limit=1')
    showCounts(response.counts)
    showBlogs(response.blogs)
  } catch (error) {
    errorText(error) // it logs a fault of a script
  }
}

// -- Frame --------------------------------------------------------------------

function markInMenu(name) {
  for (const each of document.querySelectorAll('header a')) {
    each.ariaCurrent = each.hash === '#' + name ? 'page' : null
  }
}

// What is counted in the menu.
const COUNTED = {queue: 'open', mail: 'undelivered'}

const menu = () => h('ul', {}, ...sectionsOfMine().map(name => {
  const count = COUNTED[name] && h('span', {'data-count': COUNTED[name]})
  return h('li', {}, h('a', {href: '#' + name, onclick: showAgain}, say(name), count))
}))

/** The menu of languages. `begin` draws the page anew, in another one. */
function languageMenu(begin) {
  const change = async ({target}) => {
    target.ariaBusy = 'true'
    try {
      await speak(target.value)
      keep('lang', language)
      begin()
      document.querySelector('footer select').focus()
    } catch (error) {
      target.value = language
      announce(errorText(error))
    } finally {
      target.ariaBusy = 'false'
    }
  }
  const options = LANGUAGES.map(tag =>
    h('option', {value: tag, lang: tag, selected: tag === language}, nameOfLanguage(tag)))
  return h('select', {ariaLabel: say('language'), onchange: change}, ...options)
}

/** Draws the page around the views. Who is signed in gets the menu and the `buttons`. */
export function drawFrame(begin, buttons = []) {
  const isSignedIn = !!me().token
  const skip = event => {
    event.preventDefault()
    main.focus()
  }
  forgetNotice()
  showBlogs([])
  main.replaceChildren()
  main.ariaBusy = null
  selectionBar.replaceChildren()
  selectionBar.ariaLabel = say('select')
  listStatus.textContent = ''
  Object.assign(document.documentElement, {lang: language, dir: say('dir')})
  document.body.replaceChildren(
    h('header', {},
      h('a', {class: 'skip', href: '#main', onclick: skip}, say('skip')),
      h('p', {class: 'brand'}, 'commentd'),
      isSignedIn && h('nav', {ariaLabel: say('sections')}, menu()),
      isSignedIn && blogMenu),
    main,
    h('footer', {}, h('div', {class: 'row'},
      isSignedIn && bdi(me().nickname),
      link(`admin/help?lang=${language}`, say('help')),
      languageMenu(begin),
      ...buttons)),
    h('div', {class: 'bars'}, selectionBar, notice),
    listStatus)
}
