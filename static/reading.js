// What readers do with the list: likes, its next page, long texts, hidden and further replies, the
// menu of a comment, links to one, new comments, quotes and keys. Loaded when they move near the
// comments. In order: Style, Likes, Pages, Texts, Replies, Menu, Links, Attention, New comments,
// Quotes, Keys.

// -- Style --------------------------------------------------------------------

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// -- Likes --------------------------------------------------------------------

/** Likes a comment or the page, or takes the like back. */
export const like = (thread, kit, heart, id) => toggle(thread, kit, heart, {
  list: 'likes',
  keep: keys => kit.keep(kit, 'likes', keys),
  key: id ?? thread.url,
  path: id ? 'comment/like' : 'page/like',
  body: id ? {id} : {page_url: thread.url},
  countIn: response => response.likes ?? response.page_likes,
  show: count => {
    if (!id) thread.totals.page_likes = count
  },
})

/** Turns on or off what a visitor can do once: a like, or a reaction to the page. It shows at once;
    an error undoes it. The browser keeps the keys of what is on, in `list`. `countIn` finds the new
    number in a response. Requests go one after another: two at once could arrive in either order.
    */
export async function toggle(thread, kit, pressed, what) {
  const {list, keep, key, path, body, countIn, show} = what
  const {me, recall} = kit
  const keys = () => recall(list, [])
  const isOn = () => keys().includes(key)
  const set = (on, count) => {
    const others = keys().filter(each => each !== key)
    keep([...on ? [key] : [], ...others].slice(0, 500))
    pressed.show(on, count)
    show(count)
  }
  const sendNow = undo => kit.sendPatiently(kit, path, {...body, undo})
  let stored = [isOn(), pressed.count] // at the service
  set(!stored[0], pressed.count + (stored[0] ? -1 : 1))
  thread.$('#error')?.remove()
  if (pressed.busy) return // the loop below sends this press too
  pressed.busy = true
  try {
    while (isOn() !== stored[0]) {
      const undo = stored[0]
      const response = await sendNow(undo).catch(error => {
        if (error.code !== 'token_invalid') throw error
        kit.keep(kit, 'me', {...me(), token: undefined, id: undefined})
        return sendNow(undo)
      })
      stored = [!undo, countIn(response)]
    }
    set(...stored)
  } catch (error) {
    set(...stored)
    const article = pressed.closest('article')
    const row = pressed.parentNode
    // The text for `offline` speaks of what one writes.
    const shown = error.code === 'offline' ? new kit.Failure('failed', error) : error
    kit.showError(thread, kit, article ?? row, shown, article ? undefined : row)
  }
  pressed.busy = false
}

// -- Pages --------------------------------------------------------------------

/** Loads the list in another order. */
export async function sortBy(thread, kit, sort) {
  await thread.load({sort})
  kit.moveFocus(thread, thread.$('select'))
}

/** Loads the next page of the list in the place of the button that was pressed. */
export async function loadNext(thread, kit, pressed, page) {
  const item = pressed.parentNode
  const last = item.previousElementSibling
  try {
    const listing = await thread.askList({page})
    if (!item.isConnected) return // they pressed twice, or something else is shown now
    await thread.fill(item, listing)
    kit.moveFocus(thread, last.nextElementSibling?.firstChild)
  } catch (error) {
    kit.showError(thread, kit, item, error)
  }
}

// -- Texts --------------------------------------------------------------------

/** Shows a long text as a whole, by the button below it. */
export function unfold(thread, kit, pressed) {
  const body = pressed.previousElementSibling
  body.classList.replace('folded', 'whole')
  pressed.remove()
  body.parentNode.focus()
}

// -- Replies ------------------------------------------------------------------

/** Puts the button that hides replies on the line beside them. */
function addLine(thread, kit, replies) {
  if (!replies || replies.querySelector(':scope > .line')) return
  const list = replies.firstChild
  const line = kit.button('', () => hideReplies(thread, line, list), {
    class: 'line', ariaExpanded: true, ariaLabel: thread.say('hidereplies'),
  })
  replies.prepend(line)
}

/** Hides or shows a list of replies, by the line beside it. */
function hideReplies(thread, line, list) {
  list.hidden = !list.hidden
  line.setAttribute('aria-expanded', !list.hidden)
  line.ariaLabel = list.hidden ? null : thread.say('hidereplies')
  const count = list.querySelectorAll('li[data-id]').length
  line.textContent = list.hidden ? thread.say('showreplies', count) : ''
}

/** Loads a hundred more replies to a comment. Says whether they came. */
export async function rest(thread, kit, item, button) {
  // A list of many threads has fewer than a hundred.
  const count = item.querySelectorAll('li[data-id]').length
  const page = Number(button.dataset.page ?? (count < 100 ? 1 : 2))
  button.dataset.total ??= count + item.comment.more_replies
  try {
    const query = {url: thread.url, thread: item.dataset.id, page, limit: 100}
    const {comments} = await kit.ask('comments?' + new URLSearchParams(query))
    item.querySelector(':scope > article > .error')?.remove() // of the press before
    let pause = Date.now() + 50
    for (const comment of comments) {
      if (Date.now() > pause) { // a long thread, on a slow phone
        await new Promise(resolve => setTimeout(resolve))
        pause = Date.now() + 50
      }
      if (!button.isConnected) return false
      thread.put(comment)
    }
    const [first] = comments
    kit.moveFocus(thread, thread.item(first?.id)?.firstChild, button)
    button.dataset.page = page + 1
    const left = button.dataset.total - 100 * page
    button.textContent = thread.say('more', left)
    if (left <= 0 || comments.length < 100) button.remove()
    return true
  } catch (error) {
    kit.showError(thread, kit, item.firstChild, error)
    return false
  }
}

// -- Menu ---------------------------------------------------------------------

/** Adds what opens the menu of a comment. A deleted one has no actions. */
function addOpener(thread, kit, {comment, firstChild: article}) {
  if (article.querySelector('.quiet')) return
  const opener = kit.button('', () => openMenu(thread, kit, opener), {
    class: 'quiet', ariaHasPopup: 'dialog', ariaExpanded: false,
    ariaLabel: thread.say('menu', comment.nickname),
  })
  article.querySelector('.actions')?.append(opener)
}

/** Opens the menu of a comment: what a reader may do with it, and its author, and an admin. */
function openMenu(thread, kit, opener) {
  const {h} = kit
  const item = opener.closest('li')

  function close() {
    dialog.remove()
    opener.setAttribute('aria-expanded', false)
  }

  function move({key}) {
    const step = {ArrowDown: 1, ArrowUp: -1}[key]
    const buttons = [...dialog.children]
    const next = buttons.indexOf(thread.shadowRoot.activeElement) + step
    if (step) buttons.at(next % buttons.length).focus()
  }

  const buttons = choicesOf(thread, kit, item).map(choice => menuButton(thread, kit, choice))
  const dialog = h('dialog', {
    class: 'menu', 'aria-label': opener.getAttribute('aria-label'), onclose: close, onkeydown: move,
    onclick: ({target}) => target === dialog && dialog.close(), // beside the menu
  }, ...buttons)
  opener.focus() // Safari does not focus a clicked button, and the focus returns there
  opener.setAttribute('aria-expanded', true)
  thread.$('section').append(dialog)
  dialog.showModal()
  placeMenu(dialog, opener)
}

function choicesOf(thread, kit, item) {
  const {me, recall} = kit
  const {comment} = item
  const choices = [{word: 'link', act: () => link(thread, kit, comment.id)}]
  if (recall('reports', []).includes(comment.id)) choices.push({word: 'reported'})
  else if (!item.isMine && me().role !== 'admin') {
    choices.push({word: 'report', act: () => thread.use('writing.js', 'openReport', comment.id)})
  }
  return [...choices, ...Object.values(thread.menus).flatMap(more => more(item))]
}

/** A button that closes the menu and acts; with `sure`, at the second press. One with `danger` has
    the colour of what deletes. */
function menuButton(thread, {button}, {word, act, sure, danger}) {
  function onclick({target}) {
    if (sure && !target.dataset.sure) {
      target.dataset.sure = target.textContent = thread.say('sure')
      return
    }
    target.closest('dialog').close()
    act()
  }
  return button(thread.say(word), onclick, {disabled: !act, class: danger ? 'danger' : ''})
}

/** Puts a menu below its button, or above it, and inside the window. */
function placeMenu(dialog, opener) {
  const {left, right, top, bottom} = opener.getBoundingClientRect()
  const {width, height} = dialog.getBoundingClientRect()
  const start = opener.matches(':dir(rtl)') ? right - width : left
  const isAbove = innerHeight - bottom < height && top > height
  // Inside, however narrow the window becomes.
  const inside = `max(8px, min(${start}px, 100vw - ${width + 8}px))`
  dialog.style.setProperty('--_left', inside)
  dialog.style.setProperty('--_top', `${isAbove ? top - height : bottom}px`)
}

// -- Links --------------------------------------------------------------------

/** Shows a comment and marks it. */
export function goTo(thread, kit, id) {
  const article = thread.item(id)?.firstChild
  if (!article) return
  for (const {dataset} of thread.shadowRoot.querySelectorAll('[data-target]')) delete dataset.target
  article.dataset.target = ''
  const more = article.querySelector('.folded + button')
  if (more) unfold(thread, kit, more)
  article.querySelector('.body')?.classList.add('whole') // nor is it folded later
  article.focus({preventScroll: true})
  const show = () => article.scrollIntoView({block: 'center'})
  show()
  requestAnimationFrame(show) // now the heights of the comments above are known
}

/** Goes to the comment around which the list was loaded, or looks for it among the replies that are
    not loaded. */
export async function seek(thread, kit, id, page) {
  if (page > 1) {
    const showAll = async () => {
      await thread.load({})
      // The first comment or, if they did not come, what tries again.
      kit.moveFocus(thread, thread.$('.list :is(article, button)'))
    }
    const all = kit.button(thread.say('all'), showAll, {class: 'more'})
    thread.$('.list').prepend(kit.h('li', {}, all))
  }
  for (const more of thread.shadowRoot.querySelectorAll('.rest')) {
    while (more.isConnected && !thread.item(id) && await rest(thread, kit, more.parentNode, more));
  }
  goTo(thread, kit, id)
}

/** Goes to a comment. If it is not in the list, its thread is put at the top. */
export async function follow(thread, kit, id) {
  if (thread.item(id)) return goTo(thread, kit, id)
  const threads = [...document.querySelectorAll('commentd-thread')]
  if (threads.some(other => other.item(id))) return
  const query = {url: thread.url, view: 'threads', around: id, limit: 100}
  const listing = kit.ask('comments?' + new URLSearchParams(query))
  const {comments} = await listing.catch(error => {
    kit.report('a comment could not be looked for', error)
    return {comments: []}
  })
  const matches = comment => comment.id === Number(id)
  const match = comments.find(root => matches(root) || root.replies.some(matches))
  const roots = match ? [match] : comments.filter(root => root.more_replies)
  for (const root of roots) {
    if (!thread.item(root.id)) thread.$('.list').prepend(thread.putThread(root))
  }
  if (roots.length) await seek(thread, kit, id)
}

/** Copies the URL of a comment. Where there is no clipboard (plain http), it goes into the address
    bar. */
async function link(thread, kit, id) {
  const url = kit.linkTo(id)
  try {
    await navigator.clipboard.writeText(url)
    thread.announce(thread.say('linkcopied'))
  } catch {
    location.hash = url.hash
    thread.announce(thread.say('addressed'))
  }
}

/** Adds to each block of code a button that copies it. Where there is no clipboard (plain http),
    there is none. */
function addCopiers(thread, {button, h}, {firstChild: article}) {
  if (!navigator.clipboard) return
  for (const block of article.querySelectorAll('.body pre')) {
    if (block.parentNode.matches('.code')) continue
    const place = h('div', {class: 'code'})
    block.replaceWith(place)
    const act = () => copy(thread, block, copier)
    const copier = button(thread.say('copycode'), act, {class: 'copy'})
    place.append(block, copier)
  }
}

/** Copies a block of code. Where the page may not do that, it is selected. */
async function copy(thread, block, copier) {
  try {
    await navigator.clipboard.writeText(block.textContent)
  } catch {
    getSelection().selectAllChildren(block)
    return
  }
  copier.textContent = thread.say('codecopied')
  thread.announce(thread.say('codecopied'), false)
  setTimeout(() => copier.textContent = thread.say('copycode'), 3000)
}

// -- Attention ----------------------------------------------------------------

const attended = new WeakSet()

/** The texts of the language that the thread has now; they may have come before it changed. */
const loadTexts = (thread, kit) => kit.learnTexts(thread.language).catch(() => {})

/** Adds to each comment what readers use later, and starts keys, quotes and the watch for new
    comments, when a reader first does something here or stays. */
export async function attend(thread, kit, signal) {
  await loadTexts(thread, kit) // the page may have changed the language meanwhile
  // Nothing is known yet of the comments of a fragment. The next touch tries again.
  const isReady = !thread.dataset.mark && thread.say('link')
  if (signal.aborted || attended.has(signal) || !isReady) return
  attended.add(signal)
  const root = thread.shadowRoot
  // An item may be completed twice, so nothing here adds what is there already.
  const complete = item => {
    addOpener(thread, kit, item)
    addTitles(thread, kit, item)
    addCopiers(thread, kit, item)
    addLine(thread, kit, item.closest('.replies'))
  }
  thread.decorators.reading = complete
  root.querySelectorAll('li[data-id]').forEach(complete)
  root.addEventListener('keydown', event => actByKey(thread, kit, event), {signal})
  let timer
  const offerLater = () => {
    // Each character that is dragged over is a change, and measuring it costs a layout.
    clearTimeout(timer)
    timer = setTimeout(offerQuote, 100, thread, kit)
  }
  document.addEventListener('selectionchange', offerLater, {signal})
  offerLater() // they may have selected a text while this file was on its way
  const clock = setInterval(() => updateTimes(thread, kit), 60e3)
  signal.addEventListener('abort', () => clearInterval(clock))
  watch(thread, kit, signal)
}

/** Adds to the age of a comment, or its day, the exact time, and says what its tick means. */
function addTitles(thread, {timeOf}, {comment, firstChild: article}) {
  const age = article.querySelector('.meta > a')
  if (age) age.title = timeOf(comment).toLocaleString(thread.language)
  const tick = article.querySelector('.tick')
  const meaning = thread.say('signed')
  if (tick) Object.assign(tick, {role: 'img', ariaLabel: meaning, title: meaning})
}

function updateTimes(thread, {relativeTime}) {
  for (const time of thread.shadowRoot.querySelectorAll('time:not([data-fixed])')) {
    time.textContent = relativeTime(new Date(time.dateTime), thread.language)
  }
}

// -- New comments -------------------------------------------------------------

/** Asks for new comments while the page is visible: each minute, and less often where there are
    none, down to every ten minutes. */
function watch(thread, kit, signal) {
  // A screen reader speaks only what is added later.
  const note = kit.h('p', {class: 'fresh', role: 'status'})
  thread.$('section')?.append(note)
  let pause = 60
  let announced = 0
  let total = 0
  const later = (seconds = pause) => setTimeout(look, seconds * 1000)

  function update() {
    const count = Math.max(0, total - thread.totals.total)
    if (count !== announced) {
      const text = thread.say('fresh', count)
      const present = note.querySelector('button') // it may have the focus
      if (count && present) present.textContent = text
      else note.replaceChildren(count ? kit.button(text, show) : '')
    }
    announced = count
    if (!note.isConnected) thread.$('section').append(note)
  }

  async function look() {
    if (signal.aborted) return
    if (!thread.totals) return later() // loading="lazy": nothing is shown yet
    if (document.hidden) {
      document.addEventListener('visibilitychange', look, {once: true, signal})
      return
    }
    // A later look tries again.
    const response = await kit.ask('pages?' + new URLSearchParams({url: thread.url})).catch(() => 0)
    const before = announced
    const now = response?.pages?.[0]?.total
    if (now < thread.totals.total) thread.totals.total = now // some were deleted
    total = now ?? total
    await loadTexts(thread, kit)
    update()
    pause = announced === before ? Math.min(pause * 1.5, 600) : 60
    later()
  }

  async function show() {
    // `around` an id that does not exist: the first page, without one more view.
    const query = {url: thread.url, limit: 100, around: Number.MAX_SAFE_INTEGER}
    try {
      const listing = await kit.ask('comments?' + new URLSearchParams(query))
      const unknown = listing.comments.filter(({id}) => !thread.item(id))
      const added = unknown.slice(0, listing.total - thread.totals.total)
      for (const comment of added.reverse()) {
        if (!comment.parent_id || thread.item(comment.parent_id)) thread.put(comment, true)
        else await follow(thread, kit, comment.id) // a reply in a thread that is not in the list
      }
      total = thread.totals.total = listing.total
      thread.totals.threads += added.filter(({parent_id}) => !parent_id).length
      thread.head()
      update()
      if (added[0]) goTo(thread, kit, added[0].id)
      for (const {id} of added) thread.item(id)?.firstChild.setAttribute('data-target', '')
    } catch (error) {
      kit.showError(thread, kit, note, error)
    }
  }

  thread.addEventListener('commentd:loaded', ({detail}) => {
    total = detail.total
    update()
  }, {signal})
  signal.addEventListener('abort', () => note.remove())
  later(Math.max(0, 60 - performance.now() / 1000))
}

// -- Quotes -------------------------------------------------------------------

/** The selection, also inside the thread. Undefined in browsers that do not say. */
function selectedRange({shadowRoot}) {
  const selection = getSelection()
  if (!selection.getComposedRanges) return
  try {
    return selection.getComposedRanges({shadowRoots: [shadowRoot]})[0]
  } catch {
    return selection.getComposedRanges(shadowRoot)[0] // Safari 17, and some of 18
  }
}

/** The selected part of a comment that can be replied to: {body, article, range}. */
function selectedPart(thread) {
  const selection = selectedRange(thread)
  if (!selection || selection.collapsed) return
  const {startContainer, startOffset, endContainer, endOffset} = selection
  const element = startContainer.closest ? startContainer : startContainer.parentNode
  const body = element?.closest?.('.body')
  const article = body?.parentNode
  if (!thread.shadowRoot.contains(body) || !article?.querySelector('.reply')) return
  const range = document.createRange()
  range.setStart(startContainer, startOffset)
  range.setEnd(endContainer, endOffset)
  if (!body.contains(endContainer)) { // a triple click ends before the next text
    const after = document.createRange()
    after.setStartAfter(body)
    after.setEnd(endContainer, endOffset)
    if (after.toString().trim()) return
    range.setEnd(body, body.childNodes.length)
  }
  if (range.toString().trim()) return {body, article, range}
}

/** Shows a button beside the selected text, to quote it in a reply. */
async function offerQuote(thread, kit) {
  await loadTexts(thread, kit)
  // The button stays while it has the focus.
  if (thread.shadowRoot.activeElement?.matches('.quote')) return
  thread.$('.quote')?.remove()
  const part = selectedPart(thread)
  if (!part) return
  const {body, range} = part
  // The selection may have grown by then, or be gone: iOS drops it on a tap.
  const reply = () => replyWithQuote(thread, selectedPart(thread) ?? part)
  const quote = kit.button(thread.say('quote'), reply, {class: 'quote'})
  body.after(quote)
  placeQuote(thread, quote, body, range)
}

/** Puts the button below the end of the selected text, or beside the actions of the comment: on
    one, it would take its presses. */
function placeQuote(thread, quote, body, range) {
  const isRtl = thread.say('dir') === 'rtl'
  const text = body.getBoundingClientRect() // the column from whose edge the style counts
  const endOf = box => isRtl ? text.right - box.left : box.right - text.left
  const last = [...range.getClientRects()].at(-1) ?? text
  const {offsetHeight: height, parentNode: article} = quote
  const actions = article.querySelector('.actions')
  const row = actions.getBoundingClientRect()
  let top = Math.min(last.bottom + 16, row.top - height)
  let start = `${endOf(last)}px - 5em`
  if (top < last.bottom) { // there is no room above the actions
    top = Math.max(last.bottom, (row.top + row.bottom - height) / 2)
    start = `max(${start}, ${endOf(actions.lastChild.getBoundingClientRect()) + 8}px)`
  }
  quote.style.top = `${top - article.getBoundingClientRect().top}px`
  // Inside, however narrow the page becomes.
  quote.style.insetInlineStart = `max(0px, min(${start}, 100% - 8em))`
}

function replyWithQuote(thread, {article, range}) {
  const part = range.cloneContents()
  thread.$('.quote')?.remove() // WebKit sends no selectionchange
  const quoted = part.textContent.trim().split(/\n+/).map(line => '> ' + line).join('\n')
  thread.open(article, {parent: article.parentNode.comment})
  const field = article.querySelector('textarea')
  field.value += `${field.value && '\n\n'}${quoted}\n\n`
  field.dispatchEvent(new Event('input', {bubbles: true}))
}

// -- Keys ---------------------------------------------------------------------

// By key: the word that says what it does.
const KEYS = {j: 'next', k: 'previous', r: 'reply', l: 'like', c: 'write'}

/** Single keys, while the focus is in the thread and in no field (WCAG 2.1.4). */
function actByKey(thread, kit, event) {
  const {key, target} = event
  const form = target.closest('article form')
  if (key === 'Escape' && form && !form.querySelector('.field').value) {
    const article = form.parentNode
    form.remove()
    article.focus()
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.repeat || event.defaultPrevented) return
  if (target.closest('input, textarea, select, dialog')) return
  const current = target.closest('.comment')
  const all = [...thread.shadowRoot.querySelectorAll('.comment')]
  const articles = all.filter(each => each.getClientRects().length)
  const actions = {
    j: () => articles[articles.indexOf(current) + 1]?.focus(),
    k: () => articles[articles.indexOf(current) - 1]?.focus(),
    r: () => current?.querySelector('.reply')?.click(),
    l: () => (current ?? thread.$('.head')).querySelector('.like')?.click(),
    c: () => thread.$('.barred button, textarea').focus(),
    '?': () => showKeys(thread, kit),
  }
  if (!Object.hasOwn(actions, key)) return
  event.preventDefault()
  actions[key]()
}

async function showKeys(thread, kit) {
  const {button, h} = kit
  const formKeys = await thread.use('writing.js', 'formKeys') ?? []
  const rows = [...Object.entries(KEYS), ...formKeys, ['?', 'keys']].flatMap(([key, word]) => [
    h('dt', {}, h('kbd', {}, key)), h('dd', {}, thread.say(word).replace('…', '')),
  ])
  const dialog = h('dialog', {ariaLabel: thread.say('keys'), onclose: () => dialog.remove()},
    h('b', {}, thread.say('keys')),
    h('dl', {}, ...rows),
    button(thread.say('close'), () => dialog.close(), {class: 'more'}))
  thread.$('section').append(dialog)
  dialog.showModal()
}
