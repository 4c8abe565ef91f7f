// What only some pages and readers want, loaded on first use. `embed.js` calls these by name, with the
// thread and a kit of its functions, when all words of its language are there.
// In order: Style, Refusals, Likes, Replies, Links, Reports, Own, Company, Quotes, Keys.

// -- Style --------------------------------------------------------------------

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
[aria-invalid], .error { --_accent: var(--_error); border-color: var(--_accent); color: var(--_accent) }
[role=status]:not(.sr, :empty) { position: sticky; bottom: 1em; background: Canvas; color: CanvasText; width: fit-content; padding: .3em 1em; border: 1px solid; border-radius: var(--_radius); pointer-events: none }
[data-target] { background: color-mix(in srgb, var(--_accent) 5%, #0000); box-shadow: 0 0 0 .35em color-mix(in srgb, var(--_accent) 5%, #0000) }
.guest .error { grid-column: 1 / -1 }
.comment { position: relative }
.quote { position: absolute; z-index: 1; user-select: none; -webkit-user-select: none }
.quote, .fresh button { padding: .3em 1em; border: 1px solid; outline-offset: -4px; background: Canvas; color: CanvasText }
.quote, .fresh, dialog { --_accent: CanvasText; --_text: CanvasText }
.fresh:not(:empty) { padding: 0; border: 0; background: none; margin-inline: auto; pointer-events: auto }
dialog { margin: auto; max-width: min(24em, 90vw); padding: 1.5em; border: 1px solid; border-radius: var(--_radius) }
dl { display: grid; grid-template-columns: auto 1fr; gap: .3em 1em; margin: 1em 0 }
kbd { padding: .1em .4em; border: 1px solid; border-radius: .25em; font: .875em ui-monospace, monospace }
`)

function dress({shadowRoot: {adoptedStyleSheets: sheets}}) {
  if (!sheets.includes(sheet)) sheets.push(sheet)
}

// -- Refusals -----------------------------------------------------------------

// What codes that begin with these words come down to.
const MEANT = {
  origin: 'refused', storage: 'busy', unavailable: 'busy', body: 'content_too_long', parent: 'comment', comment: 'comment', page: 'page',
  nickname: 'nickname', email: 'email', website: 'website', captcha: 'captcha', login: 'login', token: 'token',
  reason: 'content_invalid', fresh: 'password_missing',
}

/** Words for the code of a refusal, or for what it begins with. The service's own are Chinese. */
function why(thread, {code = 'failed', error, retry}) {
  const [first] = code.split('_')
  return thread.say(code, Number(retry ?? 60)) ?? thread.say(MEANT[first]) ?? ((thread.language === 'zh-CN' && error) || thread.say('failed'))
}

/** Says what went wrong beside what it concerns, until that is changed: `near`, or the field that the code names. */
export function fault(thread, {h}, form, refusal, near) {
  const {code = ''} = refusal, field = near ? near.control : form.elements?.namedItem(code.split('_')[0])
  dress(thread)
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
    return fault(thread, {h}, again, {...refusal, code: again.elements.nickname ? code : 'failed'})
  }
  // Where the focus goes to the field, the field's description says it: as an alert it would be spoken twice.
  const leads = field && field !== thread.shadowRoot.activeElement
  const note = h('p', {class: 'error', id: 'error', ...!leads && {role: 'alert'}}, why(thread, refusal))
  const place = near ?? field?.closest('label') ?? field
  if (place) place.after(note)
  else form.append(note)
  form.addEventListener('input', calm, {once: true})
  if (field) {
    field.setAttribute('aria-invalid', true)
    field.setAttribute('aria-describedby', 'error')
    field.closest('details')?.setAttribute('open', '')
    field.focus()
  }
  if (code === 'too_many') countDown(thread, note, refusal, calm)
  if (code.startsWith('captcha')) thread.spent()
  if (code === 'login_required' || code === 'token_invalid') thread.use('account.js', 'account', form, refusal)
}

/** Tells each second how long a reader must still wait; a screen reader says it once. */
function countDown(thread, note, refusal, calm) {
  const end = Date.now() + Number(refusal.retry ?? 60) * 1000
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left > 0 && note.isConnected) {
      note.removeAttribute('role')
      note.textContent = why(thread, {...refusal, retry: left})
      return
    }
    clearInterval(timer)
    if (note.isConnected) calm()
  }, 1000)
}

/** Shows what the text would look like, or puts that away. */
export async function preview(thread, kit, form, press) {
  const shown = form.querySelector('.preview')
  if (shown) {
    press.ariaExpanded = false
    return shown.remove()
  }
  try {
    const {html} = await kit.ask('comments/preview', {content: form.content.value})
    form.querySelector('div').append(kit.h('div', {class: 'aside preview'}, kit.formatted(html)))
    press.ariaExpanded = true
  } catch (refusal) {
    fault(thread, kit, form, refusal)
  }
}

// -- Likes --------------------------------------------------------------------

/** Likes a comment, or the page, at once, and takes it back where the service does; pressed again, the like goes. */
export async function like(thread, kit, heart, id) {
  const {ask, keep, me, recall} = kit, likes = () => recall('likes', []), key = id ?? thread.url
  const undo = likes().includes(key), before = heart.count
  const set = (liked, count) => {
    keep('likes', [...liked ? [key] : [], ...likes().filter(each => each !== key)].slice(0, 500))
    heart.show(liked, count)
    if (!id) thread.sums.page_likes = count
  }
  set(!undo, before + (undo ? -1 : 1))
  thread.$('#error')?.remove()
  try {
    const reply = await (id ? ask('comment/like', {id, undo}) : ask('page/like', {page_url: key, undo}))
    set(!undo, reply.likes ?? reply.page_likes)
  } catch (refusal) {
    set(undo, before)
    if (refusal.code !== 'token_invalid') {
      const place = heart.closest('article, .head')
      const code = refusal.code === 'offline' ? 'failed' : refusal.code // nothing was written that could be kept
      return fault(thread, kit, place, {...refusal, code}, id ? undefined : place)
    }
    keep('me', {...me(), token: undefined, id: undefined})
    return like(thread, kit, heart, id)
  }
}

// -- Replies ------------------------------------------------------------------

/** Hides a list of answers, or shows it again, by the line beside it. */
export function hide(thread, kit, line, list) {
  list.hidden = !list.hidden
  line.setAttribute('aria-expanded', !list.hidden)
  line.ariaLabel = list.hidden ? null : thread.say('hide')
  line.textContent = list.hidden ? thread.say('show', list.querySelectorAll('li[data-id]').length) : ''
}

/** The answers that did not come with a comment, a hundred at a time; whether they came. */
export async function rest(thread, kit, item, button) {
  const there = item.querySelectorAll('li[data-id]').length // fewer where many threads came at once
  const page = Number(button.dataset.page ?? (there < 100 ? 1 : 2))
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

function go(thread, article) {
  for (const {dataset} of thread.shadowRoot.querySelectorAll('[data-target]')) delete dataset.target
  article.dataset.target = ''
  article.focus({preventScroll: true})
  article.scrollIntoView({block: 'center'})
}

/** Goes to a comment that the list came for, or looks for it among the answers that did not come with theirs. */
export async function seek(thread, kit, id, page) {
  dress(thread)
  if (page > 1) {
    const showAll = async () => {
      await thread.load({})
      thread.$('article')?.focus()
    }
    const all = kit.button(thread.say('all'), showAll, {class: 'more'})
    thread.$('.list').prepend(kit.h('li', {}, all))
  }
  for (const more of thread.shadowRoot.querySelectorAll('.rest')) {
    while (more.isConnected && !item(thread, id) && await rest(thread, kit, more.parentNode, more));
  }
  if (item(thread, id)) go(thread, item(thread, id).firstChild)
}

/** Goes to a comment; where it was not shown, its thread is put on top of the list. */
export async function follow(thread, kit, id) {
  dress(thread)
  if (item(thread, id)) return go(thread, item(thread, id).firstChild)
  if ([...document.querySelectorAll('commentd-thread')].some(other => item(other, id))) return
  const query = {url: thread.url, view: 'threads', around: id, limit: 100}
  const {comments} = await kit.ask('comments?' + new URLSearchParams(query)).catch(() => ({comments: []}))
  const is = comment => comment.id === Number(id)
  const known = comments.find(root => is(root) || root.replies.some(is))
  const roots = known ? [known] : comments.filter(root => root.more_replies)
  for (const root of roots) if (!item(thread, root.id)) thread.$('.list').prepend(thread.branch(root))
  if (roots.length) await seek(thread, kit, id)
}

/** Copies the address of a comment, or shows it where the clipboard is not for us (plain http). */
export async function link(thread, kit, id) {
  const address = new URL('#comment-' + id, location)
  try {
    await navigator.clipboard.writeText(address)
    thread.tell(thread.say('copied'))
  } catch {
    location.hash = address.hash
    thread.tell(thread.say('addressed'))
  }
}

// -- Reports ------------------------------------------------------------------

/** Says whose comment the buttons are about, which are the same at each. One that was reported here says so;
    of one's own there is nothing to report. */
function mark(thread, {h, recall}, {comment, firstChild: article}, hidden = false) {
  for (const each of article.querySelectorAll('.quiet')) each.setAttribute('aria-description', comment.nickname)
  const press = article.querySelector('.quiet + .quiet'), word = thread.say('reported')
  if (!press) return
  press.hidden = hidden
  if (word && recall('reports', []).includes(comment.id)) press.replaceWith(h('span', {class: 'quiet', hidden}, word))
}

/** Asks what is wrong with a comment, in place. */
export function report(thread, kit, id) {
  const {ask, button, h, keep, me, recall} = kit, article = item(thread, id).firstChild
  const press = article.querySelector('.quiet + .quiet')
  article.querySelector('form')?.remove()
  const form = h('form', {
    noValidate: true,
    class: 'aside open report',
    ariaLabel: thread.say('report'),
    onsubmit: async event => {
      event.preventDefault()
      if (form.ariaBusy === 'true') return
      form.ariaBusy = true
      await send().catch(refusal => fault(thread, kit, form, refusal))
      form.ariaBusy = false
    },
  }, h('label', {}, h('span', {}, thread.say('reason')), h('input', {class: 'field', name: 'reason', dir: 'auto', maxLength: 500, autocomplete: 'off'})),
  h('div', {class: 'row'}, h('button', {class: 'button'}, thread.say('report')), button(thread.say('cancel'), () => form.remove() ?? press.focus())))

  async function send() {
    try {
      await ask(`comments/${id}/report`, {reason: form.reason.value.trim()})
    } catch (refusal) {
      if (refusal.code !== 'token_invalid') throw refusal
      keep('me', {...me(), token: undefined, id: undefined}) // it is told without an account, too
      return send()
    }
    keep('reports', [id, ...recall('reports', [])].slice(0, 500))
    form.remove()
    mark(thread, kit, article.parentNode)
    article.focus()
    thread.tell(thread.say('thanks'))
  }

  article.append(form)
  form.reason.focus()
}

// -- Own ----------------------------------------------------------------------

const MONTH = 30 * 86400e3
const LONGEST_TIMEOUT = 2 ** 31 - 1 // ms: what is longer would be over at once (HTML Standard, setTimeout)
const age = comment => Date.now() - new Date(comment.created_at.replace(' ', 'T') + '+08:00')

/** One spelling of a page's address, as far as a reader can have another. */
function bare(url) {
  const [path, query = ''] = url.split('?')
  const kept = query.split('&').filter(word => word && !/^(utm_\w+|\w*clid|mc_[ce]id|igshid|spm)=/.test(word))
  return [path.replace(/(index\.html)?\/?$/, ''), ...kept].join('&')
}

const expiries = new WeakMap() // of items: the timer that takes the buttons of an author away

/** Gives a thread what the author of comments needs, and those that are there their buttons. */
export function own(thread, kit, posted) {
  const {ask, button, h, keep, me, recall} = kit
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
      let near = item.previousElementSibling ?? item.parentNode.closest('li') ?? item.nextElementSibling
      // Replies to a reply are listed beside it.
      const listed = [...thread.shadowRoot.querySelectorAll('li[data-id]')]
      if (listed.some(other => other.comment.parent_id === comment.id)) near = thread.put(reply.comment)
      else if (item.matches('.replies > ol > :only-child')) item.closest('.replies').remove()
      else item.remove()
      thread.head()
      ;(near?.querySelector('article') ?? thread.$('textarea')).focus()
      thread.tell(thread.say('comment'))
    } catch (refusal) {
      fault(thread, kit, article, refusal)
      if (refusal.code === 'comment_gone') remember({[comment.id]: {}})
    }
  }

  /** The buttons of an author, where it is not too late for them. */
  function authorButtons(item) {
    const {comment} = item, article = item.firstChild, acts = article.querySelector('.actions'), yours = !!owns(comment)
    mark(thread, kit, item, yours || me().role === 'admin')
    article.querySelectorAll('.own').forEach(node => node.remove())
    if (!acts || !yours) return
    article.querySelector('.meta b').after(h('span', {class: 'badge own'}, thread.say('you')))
    const left = thread.settings.edit_minutes * 60e3 - age(comment)
    const fresh = left > 0
    if (fresh) {
      clearTimeout(expiries.get(item))
      expiries.set(item, setTimeout(expire, Math.min(left, LONGEST_TIMEOUT), item))
    }
    const add = (word, act) => acts.insertBefore(button(thread.say(word), act, {class: 'own'}), acts.querySelector('.quiet'))
    if (fresh) add('edit', () => thread.open(article, {old: comment}))
    if (fresh || comment.user_id) add('delete', ({target}) => {
      if (target.dataset.sure) return remove(comment, article)
      target.focus() // a click does not, in Safari
      target.dataset.sure = target.textContent = thread.say('sure')
      target.addEventListener('blur', () => {
        target.dataset.sure = ''
        target.textContent = thread.say('delete')
      }, {once: true})
    })
  }

  thread.own = item => {
    authorButtons(item)
    thread.menu?.(item) // of an admin, see moderate.js
  }

  /** The time to change a comment has passed. */
  function expire(item) {
    const focused = item.firstChild.querySelector('.own:focus')
    thread.own(item)
    if (focused) item.firstChild.focus()
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
  if (posted) go(thread, item(thread, posted.id).firstChild)
  if (posted) thread.tell(thread.say(posted.status === 'waiting' ? 'waiting' : 'posted'), false) // it is there to be seen
  if (!posted && me().token && me().role === 'admin') thread.use('moderate.js', 'moderate')
}

// -- Company ------------------------------------------------------------------

const attended = new WeakSet()

/** Those of the language that the thread has now. */
const words = (thread, kit) => kit.learn(thread.language).catch(() => 0)

/** What a reader finds who begins to do something here, or stays for a minute. */
export function attend(thread, kit, signal) {
  if (attended.has(signal)) return
  attended.add(signal)
  const root = thread.shadowRoot
  dress(thread)
  if (!thread.own) {
    thread.own = item => mark(thread, kit, item)
    root.querySelectorAll('li[data-id]').forEach(thread.own)
  }
  root.addEventListener('keydown', event => press(thread, kit, event), {signal})
  let selected
  document.addEventListener('selectionchange', () => {
    clearTimeout(selected) // each letter that is dragged over is a change, and measuring it costs a layout
    selected = setTimeout(offer, 100, thread, kit)
  }, {signal})
  const clock = setInterval(() => pass(thread, kit), 60e3)
  signal.addEventListener('abort', () => clearInterval(clock))
  watch(thread, kit, signal)
}

/** Says anew how long ago comments were written. */
function pass(thread, {ago}) {
  for (const time of thread.shadowRoot.querySelectorAll('time')) {
    time.textContent = ago(new Date(time.dateTime), thread.language)
  }
}

/** Asks whether others wrote meanwhile, while the page is in sight: each minute, and less and less
    often, down to each ten, where nobody does. */
function watch(thread, kit, signal) {
  const note = kit.h('p', {class: 'fresh', role: 'status'}) // empty at first: what comes with it would not be spoken
  thread.$('section')?.append(note)
  let pause = 60, told = 0, total = 0
  const later = (seconds = pause) => setTimeout(look, seconds * 1000)

  function tell() {
    const fresh = Math.max(0, total - thread.sums.total)
    if (fresh !== told) note.replaceChildren(fresh ? kit.button(thread.say('fresh', fresh), show) : '')
    told = fresh
    if (!note.isConnected) thread.$('section').append(note)
  }

  async function look() {
    if (signal.aborted) return
    if (!thread.sums) return later() // loading="lazy": nothing is shown yet
    if (document.hidden) return document.addEventListener('visibilitychange', look, {once: true, signal})
    const reply = await kit.ask('pages?' + new URLSearchParams({url: thread.url})).catch(() => 0), before = told
    const now = reply?.pages?.[0]?.total
    if (now < thread.sums.total) thread.sums.total = now // some are gone
    total = now ?? total
    await words(thread, kit)
    tell()
    pause = told === before ? Math.min(pause * 1.5, 600) : 60
    later()
  }

  async function show() {
    // `around` what is not there: the first page, without one more view.
    const query = {url: thread.url, limit: 100, around: Number.MAX_SAFE_INTEGER}
    try {
      const reply = await kit.ask('comments?' + new URLSearchParams(query)), there = []
      const fresh = reply.comments.filter(({id}) => !item(thread, id)).slice(0, reply.total - thread.sums.total)
      for (const comment of fresh.reverse()) {
        if (!comment.parent_id || item(thread, comment.parent_id)) thread.put(comment, true)
        else await follow(thread, kit, comment.id) // with its thread, which is not shown
        there.push(item(thread, comment.id)?.firstChild)
      }
      total = thread.sums.total = reply.total
      thread.sums.threads += fresh.filter(({parent_id}) => !parent_id).length
      thread.head()
      tell()
      if (there[0]) go(thread, there[0])
      for (const each of there) each?.setAttribute('data-target', '')
    } catch (refusal) {
      fault(thread, kit, note, refusal)
    }
  }

  thread.addEventListener('commentd:loaded', ({detail}) => { total = detail.total; tell() }, {signal})
  signal.addEventListener('abort', () => note.remove())
  later(Math.max(0, 60 - performance.now() / 1000))
}

// -- Quotes -------------------------------------------------------------------

/** What is selected, inside the thread too; nothing in browsers that keep that to themselves. */
function selectedRange({shadowRoot}) {
  const selection = getSelection()
  if (!selection.getComposedRanges) return
  try {
    return selection.getComposedRanges({shadowRoots: [shadowRoot]})[0]
  } catch {
    return selection.getComposedRanges(shadowRoot)[0] // Safari 17, and some of 18
  }
}

/** What is selected in a comment that can be answered: {body, article, range}; undefined for nothing. */
function selectedPart(thread) {
  const picked = selectedRange(thread)
  if (!picked || picked.collapsed) return
  const {startContainer: from, startOffset, endContainer, endOffset} = picked
  const body = (from.closest ? from : from.parentNode)?.closest?.('.body'), article = body?.parentNode
  if (!thread.shadowRoot.contains(body) || !article?.querySelector('.reply')) return
  const range = document.createRange(), rest = document.createRange()
  range.setStart(from, startOffset)
  range.setEnd(endContainer, endOffset)
  if (!body.contains(endContainer)) { // a triple click ends before what follows
    rest.setStartAfter(body)
    rest.setEnd(endContainer, endOffset)
    if (rest.toString().trim()) return
    range.setEnd(body, body.childNodes.length)
  }
  if (range.toString().trim()) return {body, article, range}
}

/** Beside what is selected in a comment: to answer with it. */
async function offer(thread, kit) {
  await words(thread, kit)
  if (thread.shadowRoot.activeElement?.matches('.quote')) return // whoever has reached it keeps it
  thread.$('.quote')?.remove()
  const part = selectedPart(thread)
  if (!part) return
  const {body, article, range} = part
  // The selection may have grown since it was measured, or be gone: iOS drops it on a tap.
  const quote = kit.button(thread.say('quote'), () => answer(thread, selectedPart(thread) ?? part), {class: 'quote'})
  const here = article.getBoundingClientRect(), there = [...range.getClientRects()].at(-1) ?? here
  quote.style.top = `${there.bottom - here.top + 8}px`
  const end = thread.language === 'ar' ? here.right - there.left : there.right - here.left
  quote.style.insetInlineStart = `max(0px, min(${end}px - 5em, 100% - 8em))` // inside, however narrow the page becomes
  body.after(quote)
}

function answer(thread, {article, range}) {
  const part = range.cloneContents()
  thread.$('.quote')?.remove() // no selectionchange comes in WebKit
  const quoted = part.textContent.trim().split(/\n+/).map(line => '> ' + line).join('\n')
  thread.open(article, {parent: article.parentNode.comment})
  const text = article.querySelector('textarea')
  text.value += `${text.value && '\n\n'}${quoted}\n\n`
  text.dispatchEvent(new Event('input', {bubbles: true}))
}

// -- Keys ---------------------------------------------------------------------

/** Single keys, while the focus is in the thread and in no field (WCAG 2.1.4). */
function press(thread, kit, event) {
  const {key, target} = event, answer = target.closest('article form')
  if (key === 'Escape' && answer && !answer.querySelector('.field').value) {
    const article = answer.parentNode
    answer.remove()
    article.focus()
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented || target.closest('input, textarea, select, dialog')) return
  const here = target.closest('.comment')
  const articles = [...thread.shadowRoot.querySelectorAll('.comment')].filter(each => each.getClientRects().length)
  const act = {
    j: () => articles[articles.indexOf(here) + 1]?.focus(),
    k: () => articles[articles.indexOf(here) - 1]?.focus(),
    r: () => here?.querySelector('.reply')?.click(),
    l: () => (here ?? thread.$('.head')).querySelector('.like')?.click(),
    c: () => thread.$('textarea').focus(),
    '?': () => help(thread, kit),
  }
  if (!Object.hasOwn(act, key)) return
  event.preventDefault()
  act[key]()
}

async function help(thread, kit) {
  const {button, h} = kit
  await words(thread, kit)
  const send = /^Mac|^iP/.test(navigator.platform) ? '⌘ ↵' : 'Ctrl ↵'
  const keys = {j: 'next', k: 'previous', r: 'reply', l: 'like', c: 'write', [send]: 'post', '?': 'keys'}
  const rows = Object.entries(keys).flatMap(([key, word]) =>
    [h('dt', {}, h('kbd', {}, key)), h('dd', {}, thread.say(word).replace('…', ''))])
  const dialog = h('dialog', {ariaLabel: thread.say('keys'), onclose: () => dialog.remove()},
    h('b', {}, thread.say('keys')), h('dl', {}, ...rows), button(thread.say('close'), () => dialog.close(), {class: 'more'}))
  thread.$('section').append(dialog)
  dialog.showModal()
}
