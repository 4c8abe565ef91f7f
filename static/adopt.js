// Takes over the comments that are in the HTML of the page, see `GET /fragment`. `embed.js` loads
// it on first use.

/** Draws the thread from what the fragment holds and what changed since, in place of the fragment.
    */
export async function adopt(thread, kit, target) {
  const fragment = thread.$('section')
  const query = {url: thread.url, since: thread.dataset.mark}
  const changes = await kit.ask('comments?' + new URLSearchParams(query))
  if (!changes.settings) throw new kit.Failure('unreadable')
  if (!fragment.isConnected) return // something else is shown now
  delete thread.dataset.mark
  const comments = withChanges(threadsOf(fragment), changes, thread.getAttribute('sort'))
  const looks = looksOf(fragment)
  const isMissing = target && !looks[target]
  const focused = thread.shadowRoot.activeElement?.closest('li[data-id]')?.dataset.id
  fragment.remove()
  thread.draw()
  thread.$('section').className = fragment.className // a rule above it would move the page
  if (changes.reload || isMissing) return thread.load({around: target})

  thread.load({around: target, listing: {...changes, comments, page: 1}})
  const items = thread.shadowRoot.querySelectorAll('li[data-id]')
  for (const item of items) keepLook(kit, item, looks[item.dataset.id], thread.language)
  // Keys go on from the comment that a reader has reached.
  if (focused) thread.item(focused)?.firstChild.focus({preventScroll: true})
  // An article that was just put in has no content to press before the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => press(thread)))
}

/** The top-level comments of a fragment with their replies, as the API lists them. */
function threadsOf(section) {
  return [...section.querySelectorAll('.list > li[data-id]')].map(item => {
    const replies = [...item.querySelectorAll('li[data-id]')].map(commentOf)
    return {...commentOf(item), replies, more_replies: Number(item.dataset.more ?? 0)}
  })
}

/** `content`, the Markdown, is not in a fragment. What it shows of it is moved, see `keepLook`. */
const commentOf = ({dataset}) => ({...JSON.parse(dataset.comment), html: ''})

const isOlder = (one, two) =>
  one.created_at < two.created_at || one.created_at === two.created_at && one.id < two.id
const isNewer = (one, two) => isOlder(two, one)
// By sort: whether one top-level comment is listed before another.
const ORDERS = {
  newest: isNewer,
  oldest: isOlder,
  likes: (one, two) => one.likes > two.likes || one.likes === two.likes && isNewer(one, two),
}

/** Puts a comment at its place in a list. Of a list that `goesOn`, what would be the last is on
    another page. */
function insert(list, comment, isBefore, goesOn) {
  const at = list.findIndex(other => isBefore(comment, other))
  if (at >= 0) list.splice(at, 0, comment)
  else if (!goesOn) list.push(comment)
}

/** The threads with what changed since: replies the oldest first, threads in the order of the list.
    */
function withChanges(threads, {comments, removed, threads: total}, sort) {
  const kept = list => list.filter(({id}) => !removed.includes(id))
  const changed = kept(threads).map(thread => ({...thread, replies: kept(thread.replies)}))
  const added = []
  for (const comment of comments) {
    const {id, parent_id} = comment
    const shown = changed.flatMap(root => [root, ...root.replies]).find(each => each.id === id)
    const parent = changed.find(root => [root, ...root.replies].some(each => each.id === parent_id))
    if (shown) Object.assign(shown, comment)
    else if (parent) insert(parent.replies, comment, isOlder, parent.more_replies)
    else if (!parent_id) added.push({...comment, replies: [], more_replies: 0})
  }
  const order = ORDERS[sort] ?? isNewer
  const isBefore = (one, two) => one.pinned === two.pinned ? order(one, two) : one.pinned
  const goesOn = changed.length + added.length < total
  for (const comment of added) insert(changed, comment, isBefore, goesOn)
  return changed
}

/** By comment: the height of its article, and its body. */
function looksOf(section) {
  const looks = {}
  for (const {dataset, firstChild: article} of section.querySelectorAll('li[data-id]')) {
    const {height} = article.getBoundingClientRect()
    looks[dataset.id] = {height, body: article.querySelector('.body')}
  }
  return looks
}

/** Keeps the text, all of it, and what would move the page: the height, and a date, now that of the
    reader's time zone, since an age may break its line elsewhere. */
function keepLook(kit, {comment, firstChild: article}, look, language) {
  if (!look) return
  const body = article.querySelector('.body')
  if (body && !comment.html) { // else it was changed
    body.replaceChildren(...look.body.childNodes)
    body.classList.add('whole')
    const blocks = [...body.querySelectorAll('pre')]
    // If it fails, they have no colours.
    if (blocks.length) kit.load('code.js').then(({decorate}) => blocks.forEach(decorate), () => {})
  }
  const time = article.querySelector('time')
  if (time) {
    const day = new Intl.DateTimeFormat(language, {dateStyle: 'medium'})
    time.textContent = day.format(new Date(time.dateTime))
    time.dataset.fixed = ''
  }
  article.style.containIntrinsicBlockSize = `auto ${look.height}px`
}

/** The reader pressed something of the fragment, which waited for the script. */
function press(thread) {
  if (!thread.pressed) return
  const [x, y] = thread.pressed // on the page, which may have scrolled since
  const node = thread.shadowRoot.elementFromPoint(x - scrollX, y - scrollY)
  node?.closest('textarea')?.focus()
  node?.closest('button')?.click()
}
