// For readers who open a page at its comments, since nothing may cover where these begin, and for
// those who come back from an identity provider. `embed.js` loads this where the URL ends in
// `#comments`, or in `#commentd-` with what the provider says.

const WATCHED = 3000 // ms: themes bring their header and their entrance in the first seconds
const ACTS = ['wheel', 'touchstart', 'pointerdown', 'keydown']
// Further above the window, the reader has scrolled on before this file was there.
const NEAR = 100 // px
const GAP = 12 // px, below a header

export function arrive(thread) {
  if (thread.isArriving) stayBelowHeader(thread)
  if (location.hash.startsWith('#commentd-')) thread.use('login.js', 'comeBack')
}

/** Keeps the top of a thread below what a theme fixes there, until the page rests or the reader
    does something. */
function stayBelowHeader(thread) {
  const until = performance.now() + WATCHED
  const watched = new AbortController()
  const {signal} = watched
  signal.addEventListener('abort', () => thread.isArriving = false)
  for (const act of ACTS) addEventListener(act, () => watched.abort(), {signal, passive: true})

  function look() {
    if (signal.aborted || !thread.isConnected) return
    if (performance.now() > until) return watched.abort()
    const {top, left, width} = thread.getBoundingClientRect()
    const covered = headerBottom(left + width / 2) - top
    const isNear = top > -NEAR && covered > 1
    if (isNear) scrollBy({top: -covered, behavior: 'instant'})
    requestAnimationFrame(look)
  }
  look()
}

/** Below the header that is fixed at the top of the window, in the column at `x`. */
function headerBottom(x) {
  let lowest = 0
  for (const element of document.elementsFromPoint(x, 1)) {
    const {bottom} = element.getBoundingClientRect()
    const isFixed = /^(fixed|sticky)$/.test(getComputedStyle(element).position)
    // What covers half the window is a curtain that a theme lifts, or a dialog.
    if (isFixed && bottom < innerHeight / 2) lowest = Math.max(lowest, bottom + GAP)
  }
  return lowest
}
