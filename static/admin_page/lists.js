// The lists of the views. In order: Lists, Search.

import {h, report} from './shared.js'
import {listStatus, main, selectionBar} from './elements.js'
import {inputField, select} from './forms.js'
import {currentView, show} from './frame.js'
import {busyButton, fill} from './notices.js'
import {call} from './service.js'
import {number, rowsOf, say} from './texts.js'

// -- Lists --------------------------------------------------------------------

/** Draws a row. A broken one leaves the others. */
function drawRow(draw, entry) {
  try {
    return draw(entry)
  } catch (error) {
    report('an entry of a list can’t be shown', error)
    return h('li', {class: 'line small'}, say('unreadable'))
  }
}

/** A list that is loaded page by page. `key` names the entries in the response, `draw` makes a row
    of one, and `none` is the text of an empty list. `skips`: the next page begins after so many
    entries, not before an id. `group` may put several entries into one row, and `then` gets each
    response. */
export function makeList({path, key = path, query = {}, draw, none = 'none', skips, group, then}) {
  const list = h('ol', {class: 'list', role: 'list'},
    h('li', {class: 'none', tabIndex: -1}, say(none)))
  let count = 0

  const askFor = next => call('GET', `${path}?${new URLSearchParams({...query, ...next})}`)

  /** Adds the rows of a response. Returns the first of them. */
  function add(response) {
    const entries = rowsOf(response[key])
    const rows = (group?.(entries) ?? entries).map(entry => drawRow(draw, entry))
    count += entries.length
    list.append(...rows)
    if (response.more && entries.length) {
      list.append(moreAfter(skips ? {skip: count} : {before: entries.at(-1).id}))
    }
    listStatus.textContent = count ? say('found', count) : say(none)
    then?.(response)
    return rows[0]
  }

  function moreAfter(next) {
    const showMore = async () => {
      const response = await askFor(next)
      if (!list.isConnected) return // another view is shown
      more.remove()
      add(response)?.querySelector('article, button, a')?.focus()
    }
    const more = h('li', {class: 'more'}, busyButton('more', showMore))
    return more
  }

  fill(list, () => askFor(), add)
  return list
}

// -- Search -------------------------------------------------------------------

const TYPING = 300 // ms after the last key, until the list follows

/** Fields that are folded until they are asked for: `fields` has the type of each, by name. Their
    heading says how many are in use. */
function foldedFields(fields, params, onType) {
  const count = h('span')
  const onInput = event => {
    showCount()
    onType(event)
  }
  const folded = h('details', {open: Object.keys(fields).some(name => params.get(name))},
    h('summary', {}, say('filters'), count),
    h('div', {class: 'finder'}, ...Object.entries(fields).map(([name, type]) =>
      inputField(name, 'by_' + name, {type, value: params.get(name) ?? '', oninput: onInput}))))
  function showCount() {
    const used = [...folded.querySelectorAll('input')].filter(each => each.value).length
    count.textContent = used > 0 ? ` (${number(used)})` : ''
  }
  showCount()
  return folded
}

/** A search form, and the list that `draw` makes of its values. The list follows what is typed. The
    URL gets the values, so that going back works. `selects`: the values of each menu, by name.
    `fields`: as for `foldedFields`. */
export function finder(view, params, selects, draw, fields) {
  const found = h('div', {}, draw(params))
  let timer
  let hasTyped = false

  const hashOfForm = () => {
    const filled = [...new FormData(form)].filter(([, value]) => value)
    return `#${view}?${new URLSearchParams(filled)}`
  }
  const go = () => {
    clearTimeout(timer)
    if (location.hash === hashOfForm()) show()
    else location.hash = hashOfForm()
  }
  const follow = () => {
    if (!form.isConnected || location.hash === hashOfForm()) return
    // One step back, not one for each key.
    history[hasTyped ? 'replaceState' : 'pushState'](null, '', hashOfForm())
    hasTyped = true
    selectionBar.replaceChildren()
    found.replaceChildren(draw(currentView()[1]))
  }
  const onType = ({isComposing}) => {
    clearTimeout(timer)
    if (!isComposing) timer = setTimeout(follow, TYPING)
  }
  const onSubmit = event => {
    event.preventDefault()
    go()
  }
  // Not every browser empties the field by Escape.
  const onEscape = event => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.preventDefault()
    if (box.value) {
      box.value = ''
      follow()
    } else main.querySelector('h1').focus()
  }

  const box = h('input', {
    type: 'search', name: 'q', ariaLabel: say('search'), value: params.get('q') ?? '',
    'aria-keyshortcuts': '/',
    oninput: onType, oncompositionend: () => onType({}), onkeydown: onEscape,
  })
  const page = params.get('page')
  const menus = Object.entries(selects).map(([name, values]) =>
    select(name, values, params.get(name), {ariaLabel: say(name), onchange: go}))
  const form = h('form', {role: 'search', class: 'finder', onsubmit: onSubmit},
    box,
    h('button', {}, say('search')),
    page !== null && h('input', {type: 'hidden', name: 'page', value: page}),
    ...menus,
    fields && foldedFields(fields, params, onType))
  return [form, found]
}
