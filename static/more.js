// What only some pages and readers want, loaded on first use. `embed.js` calls these by name, with the
// thread and a kit of its functions. In order: Words, Refusals, Likes, Replies, Links, Own, Counts.

// -- Words --------------------------------------------------------------------

const MORE = {
  en: {
    show: 'Show replies ({n})',
    you: 'You',
    edit: 'Edit',
    save: 'Save',
    delete: 'Delete',
    sure: 'Really delete?',
    busy: 'The service is busy. Please try again in a moment.',
    failed: 'That did not work. Please try again.',
    too_many: 'Too fast: please wait {n} seconds.',
    content_missing: 'Please write something first.',
    content_over: '{n} characters too many.',
    content_too_long: 'This is too long.',
    content_invalid: 'There are hidden characters in it that can’t be taken.',
    nickname_missing: 'Please give a name.',
    nickname_taken: 'This looks like the author’s name. Please choose another.',
    nickname: 'Please choose another name: up to 64 letters, none of them hidden.',
    email: 'Write it as ann@example.com, or leave it empty.',
    website: 'Write it as https://example.com, or leave it empty.',
    captcha: 'The check for robots failed. Please try again.',
    login: 'Please sign in to comment.',
    token: 'Your sign-in has ended.',
    edit_late: 'It is too late to change this.',
  },
  zh: {
    show: '展开 {n} 条回复',
    you: '我',
    edit: '修改',
    save: '保存',
    delete: '删除',
    sure: '确定删除？',
    busy: '服务正忙，请稍后再试。',
    failed: '没有成功，请再试一次。',
    too_many: '太快了，请等 {n} 秒。',
    content_missing: '先写点什么吧。',
    content_over: '超出 {n} 字。',
    content_too_long: '内容太长了。',
    content_invalid: '里面有看不见的控制字符，请去掉。',
    nickname_missing: '请填写昵称。',
    nickname_taken: '这个昵称和博主的太像，请换一个。',
    nickname: '请换一个昵称：最多 64 个字，不含看不见的字符。',
    email: '请写成 ann@example.com 的样子，或者留空。',
    website: '请写成 https://example.com 的样子，或者留空。',
    captcha: '人机验证没有通过，请重试。',
    login: '请先登录再评论。',
    token: '登录已失效。',
    edit_late: '已经过了可以修改的时间。',
  },
}

function learn(words) {
  for (const lang in MORE) words[lang] = {...MORE[lang], ...words[lang]}
}

// -- Refusals -----------------------------------------------------------------

// Codes whose first word is not the one to speak of.
const MEANT = {origin: 'refused', storage: 'busy', unavailable: 'busy', body: 'content_too_long', parent: 'comment'}

/** Words for the code of a refusal, or for what it begins with. The service's own are Chinese. */
function why(thread, {code = 'failed', error, retry}) {
  const [first] = code.split('_')
  return thread.say(code, retry) ?? thread.say(MEANT[first] ?? first) ?? ((thread.zh && error) || thread.say('failed'))
}

/** Says what went wrong beside what it concerns, until that is changed. */
export function fault(thread, {WORDS, h}, form, refusal) {
  learn(WORDS)
  const {code = ''} = refusal, field = form.elements?.namedItem(code.split('_')[0])
  const calm = () => {
    thread.tell('')
    thread.$('#error')?.remove()
    for (const node of thread.shadowRoot.querySelectorAll('[aria-describedby=error]')) {
      node.removeAttribute('aria-describedby')
      node.removeAttribute('aria-invalid')
    }
  }
  calm()
  if (code === 'nickname_missing' && !field) { // somebody signed out elsewhere
    const again = thread.writer(form.what)
    form.replaceWith(again)
    return fault(thread, {WORDS, h}, again, {...refusal, code: again.elements.nickname ? code : 'failed'})
  }
  form.append(h('p', {class: 'error', id: 'error', role: 'alert'}, why(thread, refusal)))
  form.addEventListener('input', calm, {once: true})
  if (field) {
    field.setAttribute('aria-invalid', true)
    field.setAttribute('aria-describedby', 'error')
    field.closest('details')?.setAttribute('open', '')
    field.parentNode.after(thread.$('#error'))
    field.focus()
  }
  if (code.startsWith('captcha')) thread.spent()
  if (code === 'login_required' || code === 'token_invalid') thread.use('account.js', 'account', form, refusal)
}

/** Shows what the text would look like, or puts that away. */
export async function preview(thread, kit, form) {
  const shown = form.querySelector('.preview')
  if (shown) return shown.remove()
  try {
    const {html} = await kit.ask('comments/preview', {content: form.content.value})
    form.querySelector('div').append(kit.h('div', {class: 'aside preview'}, kit.formatted(html)))
  } catch (refusal) {
    fault(thread, kit, form, refusal)
  }
}

// -- Likes --------------------------------------------------------------------

/** Likes at once, and takes it back where the service does; pressed again, the like goes. */
export async function like(thread, kit, heart, key, path, body) {
  const {ask, keep, me, recall} = kit, likes = () => recall('likes', [])
  const undo = likes().includes(key), before = heart.count
  const set = (liked, count) => {
    keep('likes', [...liked ? [key] : [], ...likes().filter(each => each !== key)].slice(0, 500))
    heart.show(liked, count)
    if (path === 'page/like') thread.sums.page_likes = count
  }
  set(!undo, before + (undo ? -1 : 1))
  try {
    const reply = await ask(path, {...body, undo})
    set(!undo, reply.likes ?? reply.page_likes)
  } catch (refusal) {
    set(undo, before)
    if (refusal.code !== 'token_invalid') return fault(thread, kit, heart.closest('article, .head'), refusal)
    keep('me', {...me(), token: undefined, id: undefined})
    return like(thread, kit, heart, key, path, body)
  }
}

// -- Replies ------------------------------------------------------------------

/** Hides a list of answers, or shows it again, by the line beside it. */
export function hide(thread, {WORDS}, line, list) {
  learn(WORDS)
  list.hidden = !list.hidden
  line.setAttribute('aria-expanded', !list.hidden)
  line.ariaLabel = list.hidden ? null : thread.say('hide')
  line.textContent = list.hidden ? thread.say('show', list.querySelectorAll('li[data-id]').length) : ''
}

/** The answers that did not come with a comment, a hundred at a time; whether they came. */
export async function rest(thread, kit, item, button) {
  const page = Number(button.dataset.page ?? 2)
  try {
    const query = {url: thread.url, thread: item.dataset.id, page, limit: 100}
    const {comments} = await kit.ask('comments?' + new URLSearchParams(query))
    if (!button.isConnected) return false
    const items = comments.map(comment => thread.put(comment))
    items[0]?.firstChild.focus()
    button.dataset.page = page + 1
    if (comments.length < 100) button.remove()
    return true
  } catch (refusal) {
    fault(thread, kit, item.firstChild, refusal)
    return false
  }
}

// -- Links --------------------------------------------------------------------

const item = (thread, id) => thread.$(`li[data-id="${id}"]`)

/** Looks for a comment among the answers that did not come with theirs. */
export async function seek(thread, kit, id) {
  for (const more of thread.shadowRoot.querySelectorAll('.rest')) {
    while (more.isConnected && !item(thread, id) && await rest(thread, kit, more.parentNode, more));
  }
  if (item(thread, id)) thread.go(item(thread, id).firstChild)
}

/** Goes to a comment; where it was not shown, its thread is put on top of the list. */
export async function follow(thread, kit, id) {
  if (item(thread, id)) return thread.go(item(thread, id).firstChild)
  if ([...document.querySelectorAll('commentd-thread')].some(other => item(other, id))) return
  const query = {url: thread.url, view: 'threads', around: id, limit: 100}
  const {comments} = await kit.ask('comments?' + new URLSearchParams(query)).catch(() => ({comments: []}))
  const is = comment => comment.id === Number(id)
  const known = comments.find(root => is(root) || root.replies.some(is))
  const roots = known ? [known] : comments.filter(root => root.more_replies)
  for (const root of roots) if (!item(thread, root.id)) thread.$('.list').prepend(thread.branch(root))
  if (roots.length) await seek(thread, kit, id)
}

// -- Own ----------------------------------------------------------------------

const MONTH = 30 * 86400e3
const age = comment => Date.now() - new Date(comment.created_at.replace(' ', 'T') + '+08:00')

/** One spelling of a page's address, as far as a reader can have another. */
function bare(url) {
  const [path, query = ''] = url.split('?')
  const kept = query.split('&').filter(word => word && !/^(utm_\w+|\w*clid|mc_[ce]id|igshid|spm)=/.test(word))
  return [path.replace(/(index\.html)?\/?$/, ''), ...kept].join('&')
}

/** Gives a thread what the author of comments needs, and those that are there their buttons. */
export function own(thread, kit) {
  const {ask, button, h, keep, me, recall} = kit
  learn(kit.WORDS)

  const whole = ([, entry]) => typeof entry?.comment?.created_at === 'string' && typeof entry.comment.page_url === 'string'
  const mine = () => Object.fromEntries(Object.entries(recall('own', {})).filter(whole))
  const edit_token = comment => mine()[comment.id]?.edit_token
  const owns = ({id, user_id}) => edit_token({id}) || (user_id && user_id === me().id)

  function remember(changed) {
    const fresh = Object.entries({...mine(), ...changed}).filter(([, {comment}]) => comment && age(comment) < MONTH)
    keep('own', Object.fromEntries(fresh))
  }

  async function remove(comment, article) {
    const item = article.parentNode
    try {
      const reply = await ask('comments/' + comment.id, {edit_token: edit_token(comment)}, 'DELETE')
      remember({[comment.id]: {}})
      if (comment.status !== 'waiting') thread.sums.total--
      thread.head()
      let near = item.previousElementSibling ?? item.parentNode.closest('li') ?? item.nextElementSibling
      if (item.querySelector('li[data-id]')) near = thread.put(reply.comment)
      else if (item.matches('.replies > ol > :only-child')) item.closest('.replies').remove()
      else item.remove()
      ;(near?.querySelector('article') ?? thread.$('textarea')).focus()
      thread.tell(thread.say('comment'))
    } catch (refusal) {
      fault(thread, kit, article, refusal)
      if (refusal.code === 'comment_gone') remember({[comment.id]: {}})
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
    if (fresh) add('edit', () => thread.open(article, {old: comment}))
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
    if (mine()[old.id]) remember({[old.id]: {...mine()[old.id], comment}})
    keep(draft, undefined, 'sessionStorage')
    thread.put(comment).firstChild.focus()
  }

  // What waits is in no list of the service.
  for (const {comment} of Object.values(mine())) {
    const here = comment?.status === 'waiting' && bare(comment.page_url) === bare(thread.url)
    if (here && owns(comment) && age(comment) < MONTH && !item(thread, comment.id)) thread.put(comment, true)
  }
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(thread.own)
  if (me().token && me().role === 'admin') thread.use('moderate.js', 'moderate')
}

// -- Counts -------------------------------------------------------------------

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
  const {pages = []} = await ask(query).catch(() => ({pages: []}))
  pages.forEach(({total}, i) => { asked[i].textContent = total })
  count(ask, wanting)
}
