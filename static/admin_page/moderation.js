// What is done with comments in a list: one is the current one, several can be selected, and each
// gets another status, which can be undone. A row is an element with the fields `comment`, `listed`
// (the status of its list) and `redraw`, see comment_row.js.
// In order: Rows, Selection, Status, Moderation.

import {Failure, button} from './shared.js'
import {keyed, main, selectionBar, span} from './elements.js'
import {updateFilterState} from './filter.js'
import {counts, show, showCounts} from './frame.js'
import {announce} from './notices.js'
import {call, errorText} from './service.js'
import {rowsOf, say, sentences} from './texts.js'

// -- Rows ---------------------------------------------------------------------

const allRows = () => [...main.querySelectorAll('.comment')]
const currentRow = () => main.querySelector('article[aria-current]')?.parentNode

/** Makes a comment the one that keys act on. */
export function setCurrent(row) {
  for (const each of main.querySelectorAll('article[aria-current]')) {
    each.removeAttribute('aria-current')
  }
  row?.querySelector('article')?.setAttribute('aria-current', 'true')
}

/** Keys act on the first comment of a list. */
export function setFirstCurrent() {
  if (!currentRow()) setCurrent(allRows()[0])
}

export function focusRow(row) {
  const node = row?.isConnected ? row.firstChild : main.querySelector('.none')
  node?.focus()
  node?.scrollIntoView({block: 'nearest'})
}

/** Goes to the next or previous comment. */
function step(by) {
  const rows = allRows()
  const index = rows.indexOf(currentRow())
  focusRow(rows[index + by] ?? rows[index] ?? rows[0])
}

/** The keys of a view with comments, see keys.js. */
export const keys = {
  j: () => step(1),
  k: () => step(-1),
  Escape: () => selectAll(false),
}

// -- Selection ----------------------------------------------------------------

const selectedRows = () => allRows().filter(row => row.querySelector('.pick input').checked)

function selectAll(isOn) {
  const rows = allRows()
  for (const row of rows) row.querySelector('.pick input').checked = isOn
  updateSelection(rows[0]?.listed)
}

/** Shows how many comments are selected, with the buttons for them. */
export function updateSelection(listed) {
  const count = selectedRows().length
  if (!count) return selectionBar.replaceChildren()
  if (!selectionBar.firstChild) {
    selectionBar.append(
      span(),
      ...statusButtons(listed, status => moderate(selectedRows(), status)),
      button(say('everything'), () => selectAll(true)),
      button(say('nothing'), () => selectAll(false)))
  }
  selectionBar.firstChild.textContent = say('picked', count)
}

// -- Status -------------------------------------------------------------------

// What a comment can become, with the key for that.
const STATUS_KEYS = {visible: 'a', spam: 's', deleted: 'd'}

// How the button is called that approves a comment.
const APPROVALS = {spam: 'putback', deleted: 'putback', reported: 'keep'}

/** The buttons that give a comment another status. A reported one can be kept. */
export function statusButtons(current, act) {
  const others = Object.entries(STATUS_KEYS).filter(([status]) => status !== current)
  return others.map(([status, key]) => {
    const approves = status === 'visible'
    const word = approves && APPROVALS[current] || 'to_' + status
    return keyed(key, word, () => act(status), {class: approves ? 'approve' : 'danger'})
  })
}

const MOST_AT_ONCE = 100 // comments in a request

/** Gives comments another status. Returns what each had before, to undo it. */
export async function setStatus(rows, status) {
  const moved = []
  let isEdited = false
  for (let from = 0; from < rows.length; from += MOST_AT_ONCE) {
    const some = rows.slice(from, from + MOST_AT_ONCE).map(({comment}) => comment)
    const ids = some.map(({id}) => id)
    const versions = some.map(({version}) => version ?? null)
    const response = await call('POST', 'comments', {ids, status, versions})
    moved.push(...response.comments)
    isEdited ||= response.changed?.length > 0
  }
  if (isEdited) { // the admin has not read the new text
    setTimeout(show)
    throw new Failure('text_changed')
  }
  const changed = {...counts}
  for (const {was} of moved) changed[was] -= 1
  changed[status] += moved.length
  showCounts(changed)
  updateFilterState()
  return moved
}

/** Gives comments the status back that each had before. */
export async function putBack(rows, moved) {
  for (const status of new Set(moved.map(({was}) => was))) {
    const ids = moved.filter(({was}) => was === status).map(({id}) => id)
    await setStatus(rows.filter(({comment}) => ids.includes(comment.id)), status)
  }
}

// -- Moderation ---------------------------------------------------------------

/** Shows rows with their new status, or removes them from the list, and goes on to the next.
    Returns a function that puts them back. Moderating drops the reports, so these come back only
    where the service refused it. */
export function showMoved(rows, status) {
  const all = allRows()
  const left = all.filter(row => !rows.includes(row))
  const last = all.indexOf(rows.at(-1))
  const next = left.find(row => all.indexOf(row) > last) ?? left.at(-1)
  const places = rows.map(row =>
    ({row, list: row.parentNode, after: row.nextSibling, comment: row.comment}))
  for (const row of rows) {
    row.redraw({status, reports: []})
    if (!['all', status].includes(row.listed)) row.remove()
  }
  if (!allRows().length) main.querySelector('.more button')?.click()
  focusRow(next ?? rows[0])
  updateSelection(rows[0].listed)
  return ({isRefused}) => {
    for (const {row, list, after, comment} of places.reverse()) {
      row.redraw({status: comment.status, reports: isRefused ? comment.reports : []})
      if (!row.isConnected) list.insertBefore(row, after?.parentNode === list ? after : null)
    }
    if (rows[0].isConnected) focusRow(rows[0])
    else show() // another list is shown
  }
}

/** The buttons of a row do nothing more while the service works on it. */
function setBusy(row, isBusy) {
  row.isBusy = isBusy
  for (const each of row.querySelectorAll('article .acts button')) each.ariaBusy = String(isBusy)
}

/** Shows the new status at once. Where the service refuses, the comments come back. For a block
    that was just added, `blocked` is its message; undoing calls `unblock` too. */
export async function moderate(rows, status, {blocked, unblock} = {}) {
  const free = rows.filter(row => !row.isBusy)
  if (!free.length) return
  const hadStatus = free.every(({comment}) => comment.status === status)
  const reported = free.filter(({comment}) => rowsOf(comment.reports).length).length
  const restore = showMoved(free, status)
  const moving = setStatus(free, status)
  for (const row of free) setBusy(row, true)
  if (hadStatus) announce(say('did_keep', free.length))
  else announce(sentences(blocked, say('did_' + status, free.length)), async () => {
    await unblock?.()
    await putBack(free, await moving)
    restore({isRefused: false})
  })
  try {
    await moving
    // Undoing brings no reports back.
    if (reported) showCounts({...counts, reported: counts.reported - reported})
  } catch (error) {
    restore({isRefused: true})
    announce(sentences(blocked, errorText(error)), unblock)
  } finally {
    for (const row of free) setBusy(row, false)
  }
}
