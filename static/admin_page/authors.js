// What is done about the author of a comment, or its page, where the comment stands: trusting the
// author, blocking them with all that they wrote, closing the page. All of it can be undone.

import {Failure} from './shared.js'
import {main} from './elements.js'
import {counts, show, showCounts} from './frame.js'
import {focusRow, setStatus, showMoved} from './moderation.js'
import {announce} from './notices.js'
import {call} from './service.js'
import {say, sentences} from './texts.js'

/** Shows something new about one comment, and about all in the list that are like it. */
function redrawLike(row, isLike, changed) {
  for (const each of new Set([...main.querySelectorAll('.comment'), row])) {
    if (isLike(each.comment, row.comment)) each.redraw(changed)
  }
  focusRow(row)
}

/** Ends or admits new comments on the page of a comment. */
export async function closePage(row, closed) {
  await call('POST', 'comments', {ids: [row.comment.id], closed})
  redrawLike(row, (one, other) => one.page_id === other.page_id, {closed})
  announce(say(closed ? 'did_close' : 'did_reopen'), () => closePage(row, !closed))
}

async function setTrusted(row, trusted) {
  const {id, version} = row.comment
  const wanted = {ids: [id], versions: [version ?? null], trusted}
  const {changed} = await call('POST', 'comments', wanted)
  if (changed?.length) { // the admin has not read the new text
    setTimeout(show)
    throw new Failure('text_changed')
  }
  redrawLike(row, (one, other) => one.email === other.email, {trusted})
}

/** Comments of the author no longer wait, and this one is approved. */
export async function trust(row) {
  const {status, role} = row.comment
  await setTrusted(row, true)
  let restore
  if (status === 'waiting') {
    restore = showMoved([row], 'visible')
    showCounts({...counts, waiting: counts.waiting - 1, visible: counts.visible + 1})
  }
  announce(say(role ? 'did_trust' : 'did_trust_guest'), async () => {
    await setTrusted(row, false)
    if (!restore) return
    await setStatus([row], 'waiting')
    restore({isRefused: false})
  })
}

export async function distrust(row) {
  await setTrusted(row, false)
  announce(say('did_distrust'), () => setTrusted(row, true))
}

const setBanned = async (id, banned) => {
  await call('POST', 'comments', {ids: [id], banned})
  show()
}

/** Makes spam of all `comments` of an author, and blocks what they are known by. */
export async function ban({id}, {comments, blocks}) {
  await setBanned(id, true)
  const blocked = blocks.length > 0 && say('did_block', blocks.join(', '))
  announce(sentences(say('did_spam', comments), blocked), () => setBanned(id, false))
}
