// What only some pages and readers want, loaded on first use: what is one's own (to see what waits, to
// edit, to delete), the preview, the rest of a thread with more than a hundred answers, links to
// comments, and the numbers of comments on other pages.

const MORE = {
  en: {
    you: 'You',
    edit: 'Edit',
    save: 'Save',
    delete: 'Delete',
    sure: 'Really delete?',
    edit_late: 'It is too late to change this.',
  },
  zh: {
    you: '我',
    edit: '修改',
    save: '保存',
    delete: '删除',
    sure: '确定删除？',
    edit_late: '已经过了可以修改的时间。',
  },
}

const MONTH = 30 * 86400e3
const age = comment => Date.now() - new Date(comment.created_at.replace(' ', 'T') + '+08:00')

const item = (thread, id) => thread.$(`li[data-id="${id}"]`)

/** Gives a thread what the author of comments needs, and those that are there their buttons. */
export function own(thread, {WORDS, ask, button, h, keep, me, recall}) {
  for (const lang in MORE) Object.assign(WORDS[lang], MORE[lang])

  const mine = () => recall('own', {})
  const edit_token = comment => mine()[comment.id]?.edit_token
  const owns = ({id, user_id}) => mine()[id] || (user_id && user_id === me().id)

  function remember(changed) {
    const fresh = Object.entries({...mine(), ...changed}).filter(([, {comment}]) => comment && age(comment) < MONTH)
    keep('own', Object.fromEntries(fresh))
  }

  async function remove(comment, article) {
    try {
      const reply = await ask('comments/' + comment.id, {edit_token: edit_token(comment)}, 'DELETE')
      const item = article.parentNode
      remember({[comment.id]: {}})
      if (comment.status !== 'waiting') thread.sums.total--
      thread.head()
      thread.tell(thread.say('comment'))
      const near = item.previousElementSibling ?? item.parentNode.closest('li') ?? item.nextElementSibling
      if (item.querySelector('ol')) thread.put(reply.comment)
      else if (item.matches('ol ol > :only-child')) item.closest('.replies').remove()
      else item.remove()
      ;(near?.firstChild ?? thread.$('textarea')).focus()
    } catch (refusal) {
      thread.fault(article, refusal)
    }
  }

  /** The buttons of an author, where it is not too late for them. */
  thread.own = item => {
    const {comment} = item, article = item.firstChild, acts = article.querySelector('.acts')
    article.querySelectorAll('.own').forEach(node => node.remove())
    if (!acts || !owns(comment)) return
    article.querySelector('.meta b').after(h('span', {class: 'badge own'}, thread.say('you')))
    const fresh = age(comment) < thread.settings.edit_minutes * 60e3
    const add = (word, act) => acts.append(button(thread.say(word), act, {class: 'own'}))
    if (fresh) add('edit', () => {
      thread.open(article, {old: comment})
      article.querySelector('.main').textContent = thread.say('save')
    })
    if (fresh || comment.user_id) add('delete', ({target}) => {
      if (target.dataset.sure) return remove(comment, article)
      target.dataset.sure = target.textContent = thread.say('sure')
      target.addEventListener('blur', () => {
        target.dataset.sure = ''
        target.textContent = thread.say('delete')
      }, {once: true})
    })
  }

  /** Called by the form that changes a comment. */
  thread.change = async (form, content, draft) => {
    const {old} = form.what
    const {comment} = await ask('comments/' + old.id, {content, edit_token: edit_token(old)}, 'PATCH')
    remember({[old.id]: {...mine()[old.id], comment}})
    keep(draft, undefined, 'sessionStorage')
    thread.put(comment).firstChild.focus()
  }

  // What waits is in no list of the service.
  for (const {comment} of Object.values(mine())) {
    const here = comment?.page_url === thread.url && age(comment) < MONTH
    if (here && comment.status === 'waiting' && !item(thread, comment.id)) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(thread.own)
}

/** Shows what the text would look like, or puts that away. */
export async function preview(thread, {ask, formatted, h}, form) {
  const shown = form.querySelector('.aside')
  if (shown) return shown.remove()
  try {
    const {html} = await ask('comments/preview', {content: form.content.value})
    form.querySelector('div').append(h('div', {class: 'aside'}, formatted(html)))
  } catch (refusal) {
    thread.fault(form, refusal)
  }
}

/** The answers that did not come with a comment, a hundred at a time, in place of the button. */
export async function rest(thread, {ask}, item, button) {
  const page = Number(button.dataset.page ?? 2)
  try {
    const query = {url: thread.url, thread: item.dataset.id, page, limit: 100}
    const {comments} = await ask('comments?' + new URLSearchParams(query))
    const items = comments.map(comment => thread.put(comment))
    items[0]?.firstChild.focus()
    button.dataset.page = page + 1
    if (comments.length < 100) button.remove()
  } catch (refusal) {
    thread.tell(thread.why(refusal))
  }
}

/** Looks for a comment among the answers that did not come with theirs. */
export async function seek(thread, kit, id) {
  for (const more of thread.shadowRoot.querySelectorAll('.rest')) {
    while (more.isConnected && !item(thread, id)) await rest(thread, kit, more.parentNode, more)
  }
  if (item(thread, id)) thread.go(item(thread, id).firstChild)
}

/** Goes to a comment; where it is not shown, by a list that holds it. */
export async function follow(thread, {ask}, id) {
  const threads = [...document.querySelectorAll('commentd-thread')]
  if (item(thread, id)) return thread.go(item(thread, id).firstChild)
  if (threads.some(other => item(other, id))) return
  const query = {url: thread.url, view: 'threads', sort: thread.sums.sort, around: id, limit: 100}
  const {comments} = await ask('comments?' + new URLSearchParams(query)).catch(() => ({comments: []}))
  const holds = each => each.id === Number(id) || each.more_replies || each.replies?.some(holds)
  if (comments.some(holds)) thread.load({around: id, sort: thread.sums.sort})
}

/** Fills the elements that want a page's number of comments: a request for a hundred, or for as
    many as proxies let pass. */
export async function count(ask, wanting) {
  const asked = []
  let query = 'pages?'
  for (const node of document.querySelectorAll(wanting)) {
    const piece = '&url=' + encodeURIComponent(node.dataset.commentdCount || location.pathname)
    if (asked.length === 100 || (asked.length && query.length + piece.length > 7500)) break
    node.dataset.commentdCounted = ''
    query += piece
    asked.push(node)
  }
  if (!asked.length) return
  const {pages} = await ask(query).catch(() => ({pages: []}))
  pages.forEach(({total}, i) => { asked[i].textContent = total })
  count(ask, wanting)
}
