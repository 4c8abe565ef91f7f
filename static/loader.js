// commentd: for pages that have their comments in the HTML. The widget is loaded when the reader
// comes near or acts.
'use strict'
{
const script = Reflect.get(Document.prototype, 'currentScript', document)
const service = new URL(script.dataset.service ?? '.', script.src)
const NEAR = 600 // px from the window
const EVENTS = ['scroll', 'pointerdown', 'keydown', 'focusin']
const NEEDS_DATA = ['count', 'views', 'likes', 'latest']
  .map(name => `[data-commentd-${name}]`).join()

const threads = () => [...document.querySelectorAll('commentd-thread')]

function isNear(thread) {
  const {top, bottom} = thread.getBoundingClientRect()
  return bottom > -NEAR && top < innerHeight + NEAR
}

function watch() {
  if (threads().some(isNear)) load()
}

/** Notes what the reader pressed. The widget does it when it is there. */
function notePress({target, pageX, pageY}) {
  if (target.localName === 'commentd-thread') target.pressed = [pageX, pageY]
}

function stop() {
  for (const event of EVENTS) removeEventListener(event, watch, true)
}

function load() {
  stop()
  const widget = document.createElement('script')
  widget.src = service + 'embed.js'
  widget.onerror = () => {
    for (const thread of threads()) showUnreachable(thread)
    widget.remove()
  }
  script.after(widget)
}

/** The comments stay; where the form would be, a text says why there is none. A thread without
    comments becomes a text, and leaves the height that guides for themes hold for the widget. */
function showUnreachable(thread) {
  if (!thread.shadowRoot) {
    const isChinese = thread.closest('[lang]')?.lang.startsWith('zh')
    thread.textContent = isChinese
      ? '评论服务暂时连不上。'
      : 'The comments can’t be reached right now.'
    thread.style.height = 'auto'
  }
  const field = thread.shadowRoot?.querySelector('.form textarea')
  if (!field) return
  field.removeAttribute('aria-hidden')
  field.placeholder = field.dataset.unreachable
}

function start() {
  const isComplete = threads().length && threads().every(thread => thread.shadowRoot)
  if (!isComplete || /^#comment/.test(location.hash)) return load()
  addEventListener('pointerdown', notePress, true)
  if (document.querySelector(NEEDS_DATA)) {
    // The widget fills them at once, and takes the comments over when the reader comes near.
    for (const thread of threads()) thread.setAttribute('loading', 'lazy')
    return load()
  }
  for (const event of EVENTS) addEventListener(event, watch, {capture: true, passive: true})
}

if (document.readyState === 'loading') addEventListener('DOMContentLoaded', start)
else start()
}
