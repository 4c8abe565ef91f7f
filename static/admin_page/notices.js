// What shows that something was done, is being done, or failed: the bar at the bottom with a button
// to undo, buttons that are busy, and places that wait. In order: Notices, Buttons, Places.

import {button, h} from './shared.js'
import {keyed, main, span} from './elements.js'
import {errorText} from './service.js'
import {say} from './texts.js'

// -- Notices ------------------------------------------------------------------

export const notice = h('div', {class: 'bar', role: 'status'})

const SHOWN_FOR = 10e3 // ms
const LOOK_AGAIN = 3e3 // ms, while the pointer or the focus is in the bar

let undo // what takes back the last action; it outlives the notice
let timer

export function dismissNotice() {
  clearTimeout(timer)
  notice.replaceChildren()
}

/** Nothing can be undone any more: another view is shown. */
export function forgetNotice() {
  undo = undefined
  dismissNotice()
}

function dismissUnlessUsed() {
  if (notice.matches(':hover, :focus-within')) timer = setTimeout(dismissUnlessUsed, LOOK_AGAIN)
  else notice.replaceChildren()
}

/** Shows a text for ten seconds. `back` undoes what it says, by a button, or by a key until
    something else is said or another view is shown. */
export function announce(message, back) {
  undo = back
  const undoButton = back ? keyed('u', 'undo', takeBack) : ''
  notice.replaceChildren(span(message), undoButton)
  clearTimeout(timer)
  timer = setTimeout(dismissUnlessUsed, SHOWN_FOR)
}

/** Undoes the last action, if it can be undone. */
export async function takeBack() {
  const back = undo
  if (!back) return
  announce(say('loading'))
  try {
    await back()
    announce(say('undone'))
  } catch (error) {
    announce(errorText(error), back)
  }
}

// -- Buttons ------------------------------------------------------------------

/** A button that asks the service. Until its work is done it is busy and does nothing more. An
    error is announced. */
export function busyButton(word, work, props) {
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

// -- Places -------------------------------------------------------------------

/** Asks for something and draws it into a node. On failure the error stands there, with a button to
    try again. After an update, the service has other scripts: then the page is loaded again. */
export async function fill(node, ask, draw) {
  const place = h(node.matches('ol') ? 'li' : 'div', {class: 'wait'})
  const fault = h('p', {role: 'alert'})
  const retry = busyButton('retry', () => isOld ? location.reload() : attempt(), {class: 'main'})
  let isOld = false

  async function attempt() {
    node.ariaBusy = 'true'
    try {
      const response = await ask()
      if (!place.isConnected) return // another view is shown
      node.ariaBusy = 'false' // now, since what is drawn may have to wait for more
      draw(response)
      const hadFocus = place.contains(document.activeElement)
      place.remove()
      if (hadFocus) main.querySelector('h1').focus()
    } catch (error) {
      if (!place.isConnected) return
      node.ariaBusy = 'false'
      place.className = 'failed'
      isOld = error.code === 'version_gone'
      fault.textContent = errorText(error)
      place.append(fault, retry)
    }
  }

  node.append(place)
  await attempt()
}
