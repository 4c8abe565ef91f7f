// Small elements that several views show. In order: Page, Words, Links, Times, Rows, Table.

import {button, h, readable, relativeTime, timeOf} from './shared.js'
import {language, number, say, text} from './texts.js'

// -- Page ---------------------------------------------------------------------

// The parts of the page that stay while views change.
export const main = h('main', {tabIndex: -1})
export const selectionBar = h('section', {class: 'bar'}) // how many comments are selected
export const listStatus = h('p', {class: 'sr', role: 'status'}) // what screen readers say of a list

// -- Words --------------------------------------------------------------------

export const bdi = value => h('bdi', {dir: 'auto'}, text(value))
export const span = (...children) => h('span', {}, ...children)
export const badge = word => h('span', {class: 'badge'}, say(word))

/** Beside the name of an author who was signed in. */
export function tick() {
  const signed = say('signed')
  return h('span', {class: 'tick', role: 'img', 'aria-label': signed, title: signed}, '✓')
}

/** Parts with a dot between them. */
export const dots = (...parts) =>
  h('div', {class: 'small dots'}, ...parts.filter(part => part).map(part => span(part)))

/** A button with a key, see keys.js. */
export const keyed = (key, word, act, props) =>
  button(say(word), act, {'aria-keyshortcuts': key, ...props})

// -- Links --------------------------------------------------------------------

export const link = (href, ...shown) => h('a', {href}, ...shown)

/** A link to another site, if it is a web URL. */
export function linkOut(href, shown) {
  if (!/^https?:\/\//i.test(href)) return bdi(shown)
  return h('a', {href, target: '_blank', rel: 'noopener noreferrer nofollow'}, bdi(shown))
}

const MOST_OF_PATH = 60 // characters

/** The path of a page as people read it, a long one without its middle. */
function pathOf(url) {
  const path = [...readable(text(url))]
  if (path.length <= MOST_OF_PATH) return path.join('')
  const end = Math.floor(MOST_OF_PATH / 3)
  return path.slice(0, MOST_OF_PATH - end - 1).join('') + '…' + path.slice(-end).join('')
}

/** A page by its title, with the path beside it: a title may say anything. */
export function linkToPage({page_link: href, page_url: url, page_title: title}) {
  const path = pathOf(url)
  if (!text(title)) return linkOut(href, path)
  return span(
    h('span', {class: 'title'}, linkOut(href, text(title))),
    h('span', {class: 'small path', title: readable(text(url))}, bdi(path)))
}

/** A link to the comments in which a text is found. */
export const findComments = (query, shown = bdi(query)) =>
  link('#comments?' + new URLSearchParams({q: text(query)}), shown)

// -- Times --------------------------------------------------------------------

export const dateOf = time => timeOf({created_at: text(time)})

const UNITS = [['day', 86400], ['hour', 3600], ['minute', 60]] // with their seconds

/** A time that comes: “in 3 days”; more than 30 days away as a date. */
function timeAhead(date) {
  const seconds = (date - Date.now()) / 1000
  if (seconds > 30 * 86400) return date.toLocaleDateString(language, {dateStyle: 'medium'})
  const [unit, length] = UNITS.find(([, least]) => seconds >= least) ?? ['minute', 60]
  const format = new Intl.RelativeTimeFormat(language, {numeric: 'auto'})
  return format.format(Math.ceil(seconds / length), unit)
}

/** When something was or will be. */
export function when(time) {
  const date = dateOf(time)
  if (isNaN(date)) return ''
  const seconds = (Date.now() - date) / 1000
  const isNow = seconds >= 0 && seconds < 60 // browsers have "at present" for it in some languages
  const shown = isNow ? say('now') : seconds < 0 ? timeAhead(date) : relativeTime(date, language)
  return h('time', {dateTime: date.toISOString(), title: date.toLocaleString(language)}, shown)
}

// -- Rows ---------------------------------------------------------------------

/** A row of a list: what it is, and buttons. */
export function line(head, notes, ...buttons) {
  // The buttons have the same names in each row.
  for (const each of buttons.filter(node => node)) {
    each.setAttribute('aria-description', head.textContent)
  }
  return h('li', {class: 'line'},
    h('div', {class: 'what'}, head, notes),
    h('div', {class: 'acts row'}, ...buttons))
}

function focusRow(row) {
  const node = row.querySelector('button') ?? row
  node.focus()
  return node
}

/** Replaces a row. Returns the element that gets the focus. */
export function replaceRow(row, fresh) {
  row.replaceWith(fresh)
  return focusRow(fresh)
}

/** Removes a row. Returns the element that gets the focus. */
export function removeRow(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling
  row.remove()
  return focusRow(next)
}

// -- Table --------------------------------------------------------------------

/** A table of elements, texts and numbers. The first cell of a row is its heading, and numbers are
    aligned to the right, as an element of the class `counted` is. */
export function table(caption, heads, rows) {
  const kindOf = value => value?.className === 'counted' ? 'number' : typeof value
  // `like`: a cell of the column, which decides how it is aligned.
  const cell = (tag, like, value, props) =>
    h(tag, {class: kindOf(like), ...props}, value?.nodeType ? value : number(value))
  const headCells = heads.map((head, column) =>
    cell('th', rows[0]?.[column], head, {scope: 'col'}))
  const rowOf = ([first, ...others]) => h('tr', {},
    cell('th', first, first, {scope: 'row'}),
    ...others.map(value => cell('td', value, value)))
  return h('table', {},
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...headCells)),
    h('tbody', {}, ...rows.map(rowOf)))
}
