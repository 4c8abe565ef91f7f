// The menu of an admin at each comment on the blog: approve, spam, delete, pin. `more.js` loads this for admins
// who are signed in there. The service checks the role at each request. Scripts of the blog could do the same with
// the stored token; users, blocks, settings and backups need a sign-in at /admin.

/** The comments of a page that wait for approval; undefined for who is no admin any more. */
const loadWaiting = (thread, {ask, me}) =>
  ask('comments/waiting?' + new URLSearchParams({url: thread.url}), undefined, 'GET', me().token)
    .then(({comments}) => comments, ({status}) => [401, 403].includes(status) ? undefined : [])

/** Adds the menu to each comment, and shows the comments that wait. */
export async function moderate(thread, kit) {
  const {ask, button, h, me} = kit

  async function change(item, body) {
    try {
      const {comment, was} = await ask(`comments/${item.dataset.id}/moderate`, body)
      const shown = comment.status === 'visible' || comment.status === 'waiting'
      thread.totals.total += (comment.status === 'visible') - (was === 'visible' || typeof was === 'boolean')
      thread.head()
      if (shown) return thread.put({...item.comment, ...comment}).querySelector('.moderate').focus()
      const undo = button(thread.say('undo'), () => change(item, {status: was}))
      const note = h('p', {class: 'row'}, h('span', {}, thread.say('was' + comment.status)), undo)
      item.firstChild.replaceWith(h('article', {tabIndex: -1}, note))
      undo.focus()
    } catch (error) {
      thread.use('more.js', 'showError', item.firstChild, error)
    }
  }

  function addMenu(item) {
    const {comment} = item
    const actions = item.querySelector(':scope > article > .actions')
    if (!actions || actions.querySelector('.moderate') || me().role !== 'admin') return
    const waits = comment.status === 'waiting'
    if (waits) actions.firstChild.textContent = thread.say('waits')
    const choices = []
    const add = (word, body) => choices.push(button(thread.say(word), () => change(item, body), {hidden: true}))
    if (comment.user_id !== me().id) {
      if (waits) add('visible', {status: 'visible', version: comment.version})
      for (const status of ['spam', 'deleted']) add(status, {status})
    }
    if (!waits && !comment.parent_id) add(comment.pinned ? 'unpin' : 'pin', {pinned: !comment.pinned})
    if (!choices.length) return
    const open = button(thread.say('moderate'), () => {
      for (const choice of choices) choice.hidden = !choice.hidden
      open.setAttribute('aria-expanded', !choices[0].hidden)
    }, {class: 'moderate', 'aria-expanded': false, 'aria-description': comment.nickname})
    actions.append(open, ...choices)
  }

  const waiting = await loadWaiting(thread, kit)
  if (!waiting) return
  thread.decorators.menu = addMenu
  for (const comment of waiting) {
    if (!thread.$(`li[data-id="${comment.id}"]`)) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(addMenu)
}
