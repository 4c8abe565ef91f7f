// What an admin finds at each comment when signed in on the blog: approve, spam, delete, pin. `more.js`
// loads this for admins alone; the service checks every step. The blog's scripts could do the same with the
// token that is kept there, and all that a reader can; users, blocks, settings and backups ask for a sign-in at /admin.
// In order: Service, Moderation.

// -- Service ------------------------------------------------------------------

/** The comments of a page that wait; null for who may not see them. */
async function waiting(url, token) {
  const address = new URL('comments/waiting?' + new URLSearchParams({url}), import.meta.url)
  const signal = AbortSignal.timeout(20000)
  const reply = await fetch(address, {headers: {Authorization: 'Bearer ' + token}, signal, credentials: 'omit'})
  const {comments} = await reply.json()
  return [401, 403].includes(reply.status) ? null : comments ?? []
}

// -- Moderation ---------------------------------------------------------------

/** Gives every comment of a thread, and those that wait, the menu of an admin. */
export async function moderate(thread, {ask, button, h, me}) {

  async function change(item, what) {
    try {
      const {comment, was} = await ask(`comments/${item.dataset.id}/moderate`, what)
      const shown = comment.status === 'visible' || comment.status === 'waiting'
      thread.sums.total += (comment.status === 'visible') - (was === 'visible' || typeof was === 'boolean')
      thread.head()
      if (shown) return thread.put({...item.comment, ...comment}).querySelector('.moderate').focus()
      const undo = button(thread.say('undo'), () => change(item, {status: was}))
      item.firstChild.replaceWith(h('article', {tabIndex: -1}, h('p', {class: 'row'}, h('span', {}, thread.say('was' + comment.status)), undo)))
      undo.focus()
    } catch (refusal) {
      thread.use('more.js', 'fault', item.firstChild, refusal)
    }
  }

  function menu(item) {
    const {comment} = item, acts = item.querySelector(':scope > article > .actions')
    if (!acts || acts.querySelector('.moderate') || me().role !== 'admin') return
    const waits = comment.status === 'waiting'
    if (waits) acts.firstChild.textContent = thread.say('waits')
    const states = comment.user_id === me().id ? [] : [...waits ? ['visible'] : [], 'spam', 'deleted']
    const choices = states.map(status => [status, {status, version: status === 'visible' ? comment.version : undefined}])
    if (!waits && !comment.parent_id) choices.push([comment.pinned ? 'unpin' : 'pin', {pinned: !comment.pinned}])
    if (!choices.length) return
    const buttons = choices.map(([word, what]) => button(thread.say(word), () => change(item, what), {hidden: true}))
    const open = button(thread.say('moderate'), () => {
      for (const each of buttons) each.hidden = !each.hidden
      open.setAttribute('aria-expanded', !buttons[0].hidden)
    }, {class: 'moderate', 'aria-expanded': false, 'aria-description': comment.nickname})
    acts.append(open, ...buttons)
  }

  const found = await waiting(thread.url, me().token).catch(() => [])
  if (!found) return
  thread.menu = menu
  for (const comment of found) {
    if (!thread.$(`li[data-id="${comment.id}"]`)) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(menu)
}
