// The comments of this reader, written in this browser or with their account: marked, changed,
// deleted, and shown to them while they wait for approval. Loaded for who has some.
// In order: Pages, Marks, Changes.

const MONTH = 30 * 86400e3 // ms

// -- Pages --------------------------------------------------------------------

// Parameters that say where a reader came from, and cache busters. `TRACKING` in commentd.py has
// the same.
const TRACKING = [
  /^(utm_[^=]*|mtm_[^=]*|fbclid|gclid|dclid|gbraid|wbraid|gad_source|srsltid|msclkid)(=|$)/,
  /^(ysclid|yclid|twclid|ttclid|li_fat_id|mc_[ce]id|mkt_tok|igshid|igsh|spm|vd_source)(=|$)/,
  /^(_hsenc|_hsmi|_ga|_gl|isappinstalled|nsukey)(=|$)/,
  /^from=(timeline|singlemessage|groupmessage)$/,
  /^(t|_|_t)=1[0-9]{12}$/,
]

/** A page's URL without what differs between readers, to compare it. */
function pageKey(url) {
  const [path, query = ''] = url.split('?')
  const isTracking = part => TRACKING.some(each => each.test(part))
  const kept = query.split('&').filter(part => part && !isTracking(part))
  return [path.replace(/(index\.html)?\/?$/, ''), ...kept].join('&')
}

// -- Marks --------------------------------------------------------------------

const age = (comment, {timeOf}) => Date.now() - timeOf(comment)

/** By id: {comment, edit_token} of what was written in this browser. */
const written = ({recall}) => recall('own', {})

const editToken = (kit, id) => written(kit)[id]?.edit_token

/** Whether the reader wrote a comment, in this browser or with their account. */
const isMine = (kit, {id, user_id}) => !!editToken(kit, id) || !!user_id && user_id === kit.me().id

/** Keeps what was written, with these changes, for a month. */
function remember(kit, changed) {
  const isRecent = ([, {comment}]) => comment && age(comment, kit) < MONTH
  const all = Object.entries({...written(kit), ...changed})
  kit.keep(kit, 'own', Object.fromEntries(all.filter(isRecent)))
}

/** Marks the comments of this reader, adds to their menus, and shows those that wait for approval.
    `posted` is one that was just written. */
export function own(thread, kit, posted) {
  const mark = item => {
    item.querySelector(':scope > article .own')?.remove()
    item.isMine = isMine(kit, item.comment) // the menu looks at it
    if (!item.isMine) return
    const badge = kit.h('span', {class: 'badge own'}, thread.say('you'))
    item.querySelector('.meta b')?.after(badge)
  }
  thread.decorators.own = mark
  thread.menus.own = item => choices(thread, kit, item)
  for (const {comment} of Object.values(written(kit))) {
    if (isUnlisted(thread, kit, comment)) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(mark)
  if (posted) {
    if (!kit.wentOn(thread)) thread.use('reading.js', 'goTo', posted.id)
    // For screen readers; others see it.
    thread.announce(thread.say(posted.status === 'waiting' ? 'waiting' : 'posted'), false)
  } else if (kit.me().token && kit.me().role === 'admin') thread.use('moderate.js', 'moderate')
  if (kit.me().site) thread.use('login.js', 'watchSite')
}

/** Whether a comment of this page waits for approval: the service does not list it then. */
function isUnlisted(thread, kit, comment) {
  const isHere = pageKey(comment.page_url) === pageKey(thread.url)
  if (comment.status !== 'waiting' || !isHere) return false
  const item = thread.item(comment.id)
  const isMissing = !item || item.comment.deleted // where it has replies, its place is there
  return isMissing && isMine(kit, comment) && age(comment, kit) < MONTH
}

// -- Changes ------------------------------------------------------------------

/** What its author may do with a comment, and for how long. */
function choices(thread, kit, {comment, firstChild: article}) {
  if (!isMine(kit, comment)) return []
  // Comments of a fragment have no Markdown.
  const content = comment.content ?? written(kit)[comment.id]?.comment.content
  const isInTime = age(comment, kit) < thread.settings.edit_minutes * 60e3
  const found = []
  if (isInTime && content) {
    const change = changeOf(thread, kit, comment, content)
    found.push({word: 'edit', act: () => thread.open(article, {change})})
  }
  if (isInTime || comment.user_id) {
    const act = () => remove(thread, kit, comment, article)
    found.push({word: 'delete', act, sure: true, danger: true})
  }
  return found
}

/** What makes a form one that changes a comment. */
function changeOf(thread, kit, {id}, content) {
  const label = thread.say('edit')

  function setUp(form) {
    form.dataset.change = '' // what is edited does not stand above itself: see writing.css
    form.querySelector('.guest').hidden = true
    form.querySelector('.button').textContent = thread.say('save')
    form.querySelector('.links button')?.remove()
  }

  async function send(form, changed) {
    const body = {content: changed, edit_token: editToken(kit, id)}
    const {comment} = await kit.sendPatiently(kit, 'comments/' + id, body, 'PATCH')
    const entry = written(kit)[id]
    if (entry) remember(kit, {[id]: {...entry, comment}})
    kit.keep(kit, form.draft, undefined, 'sessionStorage')
    kit.moveFocus(thread, thread.put(comment).firstChild)
  }

  return {id, content, label, setUp, send}
}

async function remove(thread, kit, comment, article) {
  const {id} = comment
  try {
    const body = {edit_token: editToken(kit, id)}
    const response = await kit.send(kit, 'comments/' + id, body, 'DELETE')
    remember(kit, {[id]: {}})
    if (comment.status !== 'waiting') thread.totals.total--
    const next = takeAway(thread, article.parentNode, response.comment)
    thread.head()
    kit.moveFocus(thread, next?.querySelector('article') ?? thread.$('textarea'))
    thread.announce(thread.say('comment'))
  } catch (error) {
    kit.showError(thread, kit, article, error)
    if (error.code === 'comment_gone') remember(kit, {[id]: {}})
  }
}

/** Removes an item from the list. A comment with replies leaves a tombstone; replies to a reply
    stand beside it. Returns the item that gets the focus. */
function takeAway(thread, item, tombstone) {
  const above = item.previousElementSibling ?? item.parentNode.closest('li')
  const next = above ?? item.nextElementSibling
  const others = [...thread.shadowRoot.querySelectorAll('li[data-id]')]
  const hasReplies = others.some(({comment}) => comment.parent_id === tombstone.id)
  if (hasReplies) return thread.put(tombstone)
  if (item.matches('.replies > ol > :only-child')) item.closest('.replies').remove()
  else item.remove()
  return next
}
