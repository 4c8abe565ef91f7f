// The page when its texts are there: who is signed in sees a view, others sign in.

import {keyed, main} from './elements.js'
import {currentView, drawFrame, refreshCounts, show} from './frame.js'
import {onKey, showKeys} from './keys.js'
import {busyButton, forgetNotice} from './notices.js'
import {me, whenSessionEnds} from './service.js'
import {
  beginWith, hasLink, openLink, showSignIn, signInAgain, signOut, takeLink,
} from './sign_in.js'

const MINUTE = 60e3 // ms

/** Shows the view of the URL, or the one named, to who is signed in. */
function enter(name) {
  drawFrame(begin, [keyed('?', 'keys', showKeys, {class: 'keys'}), busyButton('signout', signOut)])
  if (name) history.replaceState(null, '', '#' + name)
  show()
  const hasCounts = ['queue', 'comments'].includes(currentView()[0])
  if (!hasCounts) refreshCounts()
}

function begin() {
  if (hasLink()) openLink()
  else if (me().token) enter()
  else showSignIn()
}

function onHashChange() {
  forgetNotice() // it was about another view
  takeLink()
  if (hasLink()) begin()
  else show()
}

let leftAt = 0

/** After a minute away the queue is loaded anew, unless something is being written or selected. */
function onVisibilityChange() {
  if (document.hidden) {
    leftAt = Date.now()
    return
  }
  if (!me().token || Date.now() - leftAt < MINUTE) return
  const isInUse = document.querySelector('main form, dialog, .pick input:checked')
  if (currentView()[0] === 'queue' && !isInUse) show()
  else refreshCounts()
}

/** Each minute: the number of waiting comments; an empty queue shows new ones. */
function poll() {
  if (document.hidden || !me().token || main.querySelector('form')) return
  if (currentView()[0] === 'queue' && !main.querySelector('.comment')) show()
  else refreshCounts()
}

/** Draws the page, and keeps it up to date. */
export function openPage() {
  takeLink()
  whenSessionEnds(signInAgain)
  beginWith({begin, enter})
  addEventListener('hashchange', onHashChange)
  addEventListener('keydown', onKey)
  document.addEventListener('visibilitychange', onVisibilityChange)
  setInterval(poll, MINUTE)
  begin()
}
