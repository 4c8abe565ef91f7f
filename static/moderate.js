// What an admin finds in the menu of each comment on the blog: approve, spam, delete, pin. `own.js`
// loads this for admins who are signed in there. The service checks the role at each request.
// Scripts of the blog could do the same with the stored token; users, blocks, settings and backups
// need a sign-in at /admin.

/** The comments of a page that wait for approval; undefined for who is no admin any more. */
async function loadWaiting(thread, kit) {
  const query = new URLSearchParams({url: thread.url})
  try {
    const {comments} = await kit.readOwn(kit, 'comments/waiting?' + query)
    return comments
  } catch (error) {
    if ([401, 403].includes(error.status)) return
    kit.report('the comments that wait could not be loaded', error)
    return []
  }
}

/** Adds to the menu of each comment, and shows the comments that wait. */
export async function moderate(thread, kit) {
  const {button, h, me} = kit
  const isAdmin = () => me().role === 'admin'

  async function change(item, body) {
    try {
      const {comment, was} = await kit.send(kit, `comments/${item.dataset.id}/moderate`, body)
      const shown = comment.status === 'visible' || comment.status === 'waiting'
      const wasVisible = was === 'visible' || typeof was === 'boolean'
      thread.totals.total += (comment.status === 'visible') - wasVisible
      thread.head()
      if (shown) {
        const changed = thread.put({...item.comment, ...comment})
        return kit.moveFocus(thread, changed.querySelector('.quiet'))
      }
      const undo = button(thread.say('undo'), () => change(item, {status: was}))
      const note = h('p', {class: 'row'}, h('span', {}, thread.say('was' + comment.status)), undo)
      item.firstChild.replaceWith(h('article', {tabIndex: -1}, note))
      kit.moveFocus(thread, undo)
    } catch (error) {
      kit.showError(thread, kit, item.firstChild, error)
    }
  }

  function markWaiting(item) {
    const note = item.querySelector(':scope > article > .actions > span')
    if (note && isAdmin()) note.textContent = thread.say('waits')
  }

  function choices(item) {
    const {comment} = item
    if (!isAdmin()) return []
    const waits = comment.status === 'waiting'
    const found = []
    const add = (word, body) =>
      found.push({word, act: () => change(item, body), danger: word === 'deleted'})
    if (comment.user_id !== me().id) {
      if (waits) add('visible', {status: 'visible', version: comment.version})
      for (const status of ['spam', 'deleted']) add(status, {status})
    }
    if (!waits && !comment.parent_id) {
      add(comment.pinned ? 'unpin' : 'pin', {pinned: !comment.pinned})
    }
    return found
  }

  const waiting = await loadWaiting(thread, kit)
  if (!waiting) return
  thread.decorators.waits = markWaiting
  thread.menus.moderate = choices
  for (const comment of waiting) {
    const item = thread.item(comment.id)
    // Where it has replies, its place is there.
    if (!item || item.comment.deleted) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(markWaiting)
}
