// Keys that act on what is shown, and the list of them.

import {h, keep, recall} from './shared.js'
import {main, selectionBar} from './elements.js'
import {openDialog, option} from './forms.js'
import {keysOfView, search} from './frame.js'
import {dismissNotice, notice, takeBack} from './notices.js'
import {isModerator, me} from './service.js'
import {say} from './texts.js'

// The text for each key. Most keys press the button that has them as aria-keyshortcuts: that of the
// selection, of the current comment, of the notice or at the bottom of the page.
const KEYS = {
  j: 'key_j', k: 'key_k', a: 'to_visible', s: 'to_spam', d: 'to_deleted', r: 'reply', e: 'edit',
  t: 'trust', b: 'block', c: 'closepage', u: 'undo', x: 'key_x', '/': 'search', '?': 'key_help',
}
const OF_ADMINS = ['r', 'e', 't', 'b', '/']
const REPEATING = ['j', 'k'] // a long press approves one comment only

function press(key) {
  const act = key === '/' ? search : keysOfView()[key]
  if (act) return act()
  const comment = main.querySelector('article[aria-current]')
  const places = [selectionBar, comment, notice, document.querySelector('footer')]
  const buttons = places.map(place => place?.querySelector(`[aria-keyshortcuts="${key}"]`))
  const found = buttons.find(each => each)
  if (found) found.click()
  else if (key === 'u') takeBack() // the notice with the button has gone
}

/** Closes what is open: a form in a comment, else what is unfolded around the focus, else the
    selection, else the notice. Dialogs and search fields have an Escape of their own. */
function onEscape({target, isComposing}) {
  if (isComposing || target.closest('[type=search]')) return
  if (document.querySelector('dialog[open]')) return
  const form = target.closest('article form') ?? main.querySelector('article form')
  const unfolded = target.closest('details[open]')
  if (form) form.onescape()
  else if (unfolded) fold(unfolded)
  else if (selectionBar.firstChild) keysOfView().Escape()
  else dismissNotice()
}

function fold(unfolded) {
  unfolded.open = false
  unfolded.querySelector('summary').focus()
}

/** Whether keys write, in a field or somewhere in a dialog. */
const isTyping = target => document.querySelector('dialog[open]')
  ?? target.closest('input:not([type=checkbox]), textarea, select')

export function onKey(event) {
  const {key, target, ctrlKey, altKey, metaKey, repeat, isComposing} = event
  if (key === 'Escape') return onEscape(event)
  if (!Object.hasOwn(KEYS, key) || ctrlKey || altKey || metaKey || isComposing) return
  if (!me().token || isTyping(target)) return
  if (!recall('keys', true) && key !== '?') return
  event.preventDefault()
  if (!repeat || REPEATING.includes(key)) press(key)
}

export function showKeys() {
  const known = Object.entries(KEYS).filter(([key]) => !isModerator() || !OF_ADMINS.includes(key))
  const rows = known.map(([key, word]) => h('div', {class: 'row'},
    h('dt', {}, h('kbd', {class: 'badge'}, key)),
    h('dd', {}, say(word))))
  // Dictated speech would press them all.
  const turn = ({target}) => keep('keys', target.checked)
  const isOn = option('checkbox', {checked: recall('keys', true), onchange: turn}, say('keys_on'))
  openDialog(say('keys'), 'done', [h('dl', {}, ...rows), isOn])
}
