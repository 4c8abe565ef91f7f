// commentd: this script puts the comments of a page behind itself, or into <commentd-thread>.
// In order: Words, Style, Elements, Memory, Service, Proof, Texts, Thread, Start.
'use strict'
{

const script = document.currentScript
const SERVICE = new URL('.', script.src)

// -- Words --------------------------------------------------------------------

const WORDS = {
  en: {
    comments: 'Comments',
    write: 'Write a comment…',
    name: 'Name',
    mail: 'E-mail for answers (never shown)',
    site: 'Website',
    post: 'Post',
    approve: 'Post for approval',
    preview: 'Preview',
    cancel: 'Cancel',
    privacy: 'Privacy',
    signin: 'Sign in',
    one: '1 comment',
    many: '{n} comments',
    views: 'Views: {n}',
    none: 'No comments yet. What do you think?',
    sort: 'Order',
    newest: 'Newest',
    oldest: 'Oldest',
    likes: 'Most liked',
    more: 'Show more',
    all: 'Show all comments',
    like: 'Like',
    likepage: 'Like this page',
    reply: 'Reply',
    fold: 'Read on',
    hide: 'Hide replies',
    admin: 'Author',
    pinned: 'Pinned',
    edited: 'edited',
    waiting: 'Waiting for approval. Only you can see it.',
    posted: 'Posted.',
    retry: 'Try again',
    offline: 'The comments can’t be reached now. What you write is kept.',
    refused: 'This site may not use these comments.',
    page: 'Comments are closed.',
    comment: 'This comment was removed.',
  },
  zh: {
    comments: '评论',
    write: '写下你的想法…',
    name: '昵称',
    mail: '邮箱（有回复时通知，不公开）',
    site: '网站',
    post: '发表评论',
    approve: '提交审核',
    preview: '预览',
    cancel: '取消',
    privacy: '隐私政策',
    signin: '登录',
    one: '1 条评论',
    many: '{n} 条评论',
    views: '{n} 次阅读',
    none: '还没有评论，来聊聊你的看法吧。',
    sort: '排序',
    newest: '最新',
    oldest: '最早',
    likes: '最多赞',
    more: '显示更多',
    all: '显示全部评论',
    like: '赞',
    likepage: '喜欢这篇文章',
    reply: '回复',
    fold: '展开全文',
    hide: '收起回复',
    admin: '博主',
    pinned: '置顶',
    edited: '已修改',
    waiting: '等待审核，只有你能看到。',
    posted: '已发表。',
    retry: '重试',
    offline: '暂时连不上评论服务，你写的内容不会丢。',
    refused: '这个网站不能使用此评论服务。',
    page: '评论已关闭。',
    comment: '该评论已删除。',
  },
}

// -- Style --------------------------------------------------------------------

// Colours come from the page's text and links.
const sheet = new CSSStyleSheet()
sheet.replaceSync(`
:host {
  --_accent: var(--commentd-accent, var(--_link));
  --_text: var(--commentd-text, currentColor);
  --_muted: var(--commentd-muted, color-mix(in srgb, var(--_text) 78%, transparent));
  --_line: var(--commentd-line, color-mix(in srgb, var(--_text) 18%, transparent));
  --_edge: color-mix(in srgb, var(--_text) 58%, transparent);
  --_space: var(--commentd-space, .5em);
  --_radius: var(--commentd-radius, .5em);
  display: block; width: 100%; container-type: inline-size; color: var(--_text); line-height: 1.6; overflow-wrap: anywhere;
}
:host([theme=light]) { color-scheme: light; color: #222 }
:host([theme=dark]) { color-scheme: dark; color: #ddd }
* { box-sizing: border-box; margin: 0 }
[hidden] { display: none !important }
::slotted(a) { position: absolute !important; clip-path: inset(50%) !important; transition: color 1ms !important }
ol { list-style: none; padding: 0 }
a { color: var(--_accent) }
button, select { field-sizing: content; min-height: 2em; min-width: 24px; padding: 0 .4em; border: 0; background: none }
button, select, summary { font: inherit; color: inherit; border-radius: var(--_radius); cursor: pointer }
button:hover, summary:hover { color: var(--_accent) }
option { color: CanvasText }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 1px }
article:focus-visible { outline-offset: .4em }
.sr { position: absolute; clip-path: inset(50%) }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 0 calc(1.6 * var(--_space)) }
.push { margin-inline-start: auto }
.small, .row, label span, summary { font-size: .875em }
.small, .row > :not(b), label span, summary { color: var(--_muted) }
form, form > div, .guest { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--_space) }
textarea, input {
  width: 100%; padding: .5em .75em; border: 1px solid var(--_edge); border-radius: var(--_radius);
  background: none; color: inherit; font: inherit; font-size: max(16px, 1em);
}
textarea { min-height: 3em; max-height: 80vh; resize: none; field-sizing: content }
.open textarea { min-height: 7em; resize: vertical }
form:not(.open) > div { display: none }
::placeholder { color: var(--_muted); opacity: 1 }
[aria-invalid], .error { --_accent: color-mix(in oklab, #e5252f 70%, var(--_text)); border-color: var(--_accent); color: var(--_accent) }
summary { width: fit-content; padding: .3em 0 }
.main, .more { padding: .3em 1.1em; border: 1px solid var(--_edge) }
[role=status]:not(:empty) { position: sticky; bottom: 1em; width: fit-content; padding: .3em 1em; border: 1px solid; border-radius: var(--_radius); background: Canvas; color: CanvasText; pointer-events: none }
.row .main { background: var(--_accent); border-color: transparent; color: lch(from var(--_accent) calc((49.44 - l) * infinity) 0 0); font-weight: 600 }
[aria-busy=true] .main { opacity: .6 }
.aside, article > form { margin-top: var(--_space) }
.aside, blockquote { padding-inline-start: 1em; border-inline-start: 3px solid var(--_line) }
.head { margin-top: calc(3 * var(--_space)); min-height: 44px }
.row b { font-size: 1.143em }
.list > li + li { border-top: 1px solid var(--_line) }
li { padding-top: calc(2 * var(--_space)) }
.list > li { padding-bottom: calc(2 * var(--_space)) }
article { display: grid; grid-template-columns: 2.25em minmax(0, 1fr); column-gap: .75em; border-radius: var(--_radius) }
article > * { grid-column: 2; min-width: 0 }
article > button { justify-self: start; color: var(--_accent) }
.face { grid-area: 1 / 1 / 9; width: 100%; height: 2.25em; border-radius: 50%; background: radial-gradient(circle at var(--_at), var(--_face) 50%, color-mix(in srgb, var(--_face) 30%, transparent) 51%) }
.meta { align-items: baseline; line-height: 1.5 }
.meta a { text-decoration: none; min-height: 24px }
b a { color: inherit }
.meta a:hover { text-decoration: underline }
.row .badge { padding: 0 .5em; border: 1px solid; border-radius: 1em; color: var(--_accent) }
.body { margin-top: .2em; max-width: 68ch; text-wrap: pretty }
.body * + * { margin-top: .6em }
.body :is(br, li, code, a, em, strong, del) { margin-top: 0 }
.body :is(ul, ol) { padding-inline-start: 1.5em; list-style: disc }
.body ol { list-style: decimal }
.body li { padding: 0 }
pre, code { border-radius: .25em; background: color-mix(in srgb, var(--_text) 8%, transparent); font: .875em ui-monospace, Menlo, Consolas, monospace }
pre { padding: .75em 1em; overflow: auto; line-height: 1.5; overflow-wrap: normal }
code { padding: .1em .3em }
pre code { padding: 0; background: none; font-size: 1em }
.folded:not(:focus-within) { max-height: 18em; overflow: hidden; mask: linear-gradient(#000 70%, #0000) }
.acts > button, article > button { padding-inline-start: 0 }
.like { display: flex; align-items: center; gap: .3em }
.like svg { width: 1.2em; fill: none; stroke: currentColor; stroke-width: 2 }
.like[aria-pressed=true] { color: var(--_accent) }
.like[aria-pressed=true] svg { fill: currentColor }
.replies { position: relative; padding-inline-start: 3em }
.replies .replies { padding-inline-start: 1.25em }
.line[aria-expanded=true] { position: absolute; inset-block: 0; inset-inline-start: -8px; width: 24px }
.list > li > .replies > .line[aria-expanded=true] { inset-inline-start: calc(1.125em - 12px) }
.line[aria-expanded=true]::after { content: ""; position: absolute; inset-block: .75em 0; inset-inline-start: 11px; border-inline-start: 2px solid var(--_line) }
.line:hover::after { border-color: var(--_accent) }
[data-target] { background: color-mix(in srgb, var(--_accent) 12%, transparent); box-shadow: 0 0 0 .5em color-mix(in srgb, var(--_accent) 12%, transparent) }
.wait { height: 100vh; opacity: .08; background: linear-gradient(currentColor 50%, transparent 0) 0 2em / 100% 2em }
@container (max-width: 34em) {
  article { grid-template-columns: 1.75em minmax(0, 1fr) }
  article > * { grid-column: 1 / 3 }
  .face { grid-area: 1 / 1; height: 1.75em }
  .meta { grid-area: 1 / 2 }
  .replies { padding-inline-start: 1.25em }
  .list > li > .replies > .line[aria-expanded=true] { inset-inline-start: -8px }
}
@media (pointer: coarse) {
  button, select, summary { min-height: 44px; min-width: 44px }
  .line { min-width: 0 }
}
`)

// -- Elements -----------------------------------------------------------------

/** h('a', {href}, 'text', node) makes an element; strings become text, never HTML. */
function h(tag, props = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else if (name in node && name !== 'class') node[name] = value
    else node.setAttribute(name, value)
  }
  node.append(...children.filter(child => child?.length || child?.nodeType))
  return node
}

const button = (text, onclick, props) => h('button', {type: 'button', onclick, ...props}, text)

function icon(d) {
  const [svg, path] = ['svg', 'path'].map(tag => document.createElementNS('http://www.w3.org/2000/svg', tag))
  svg.setAttribute('viewBox', '0 0 24 24')
  path.setAttribute('d', d)
  svg.append(path)
  return svg
}

/** A moon, made from a name. */
function face(name) {
  let hash = 7
  for (const c of name) hash = Math.imul(hash ^ c.codePointAt(), 16777619) >>> 0
  const node = h('span', {class: 'face'})
  node.style.cssText = `--_face: oklch(.62 .1 ${hash >>> 8}); --_at: ${hash & 1 && 100}% ${hash % 97}%`
  return node
}

// -- Memory -------------------------------------------------------------------

// What a browser keeps of its reader; where the blog's storage is blocked, `kept` does.
const kept = {}

/** What is kept, if it is of the kind of `none`. */
function recall(key, none, area = 'localStorage') {
  let value = kept[key]
  try {
    value ??= JSON.parse(window[area].getItem(SERVICE + key))
  } catch {}
  return value?.constructor === none.constructor ? value : none
}

function keep(key, value, area = 'localStorage') {
  kept[key] = value
  try {
    window[area].setItem(SERVICE + key, JSON.stringify(value ?? null))
    delete kept[key]
  } catch {}
}

/** {nickname, email, website, token?, id?} */
const me = () => recall('me', {})

// -- Service ------------------------------------------------------------------

let known // the service has answered

/** The JSON of a reply, or its text; throws {code, error, retry}. */
async function ask(path, body, method = body ? 'POST' : 'GET') {
  const headers = body && {'Content-Type': 'application/json'}
  if (body && /^[\w.-]+$/.test(me().token ?? '')) headers.Authorization = 'Bearer ' + me().token
  let text, reply
  try {
    const signal = AbortSignal.timeout(20000)
    reply = await fetch(SERVICE + path, {method, headers, signal, body: JSON.stringify(body), credentials: 'omit'})
    text = await reply.text()
  } catch ({name}) {
    // Who answers what any page may ask has refused this one.
    const there = !known && name === 'TypeError' && await fetch(SERVICE + 'health', {mode: 'no-cors', signal: AbortSignal.timeout(5000)}).catch(() => 0)
    throw {code: there ? 'refused' : 'offline'}
  }
  const {ok, status} = reply
  try {
    text = JSON.parse(text)
  } catch {}
  known = true
  if (ok) return text
  throw {code: 'offline', ...text, status, retry: reply.headers.get('Retry-After')}
}

// -- Proof --------------------------------------------------------------------

/** SHA-256 (FIPS 180-4), since plain http has none, and the search; a worker gets it as text. */
function prover() {
  const H = [], K = [], sieve = [], W = new Int32Array(64)
  for (let n = 2; n < 312; n++) {
    if (sieve[n]) continue
    for (let m = n; m < 312; m += n) sieve[m] = 1
    H.push(n ** .5 * 2 ** 32 | 0)
    K.push(n ** (1 / 3) * 2 ** 32 | 0)
  }

  const turn = (n, by) => n >>> by | n << 32 - by

  function sha256(state, block) {
    let {0: a, 1: b, 2: c, 3: d, 4: e, 5: f, 6: g, 7: k} = state // five times a list's speed
    for (let i = 0; i < 64; i++) {
      const x = W[i - 15], y = W[i - 2]
      W[i] = i < 16 ? block[i]
        : W[i - 16] + W[i - 7] + (turn(x, 7) ^ turn(x, 18) ^ x >>> 3) + (turn(y, 17) ^ turn(y, 19) ^ y >>> 10) | 0
      const one = k + K[i] + W[i] + (e & f ^ ~e & g) + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) | 0
      const two = one + (a & b ^ a & c ^ b & c) + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) | 0
      k = g; g = f; f = e; e = d + one | 0; d = c; c = b; b = a; a = two
    }
    return [a, b, c, d, e, f, g, k].map((n, i) => n + state[i] | 0)
  }

  const hex = words => words.map(n => (n >>> 0).toString(16).padStart(8, 0)).join('')
  const words = text => text.match(/.{8}/g).map(n => parseInt(n, 16) | 0)

  function search({salt, nonce, keyPrefix}, from, to) {
    const [first] = words(keyPrefix), block = [...words(salt + nonce), 0, 1 << 31, 0, 0, 0, 0, 0, 288]
    for (block[8] = from; block[8] < to; block[8]++) {
      const key = sha256(H, block)
      if (key[0] === first && hex(key).startsWith(keyPrefix)) return {counter: block[8], derivedKey: hex(key)}
    }
  }
  return {H, hex, search, sha256}
}

const local = prover()

/** In a worker; where the page refuses one, in slices. */
const solve = parameters => new Promise((solved, refused) => {
  const text = `onmessage = e => postMessage((${prover})().search(e.data, 0, 1e6))`
  const worker = new Worker(URL.createObjectURL(new Blob([text])))
  worker.onerror = refused
  worker.onmessage = event => solved(event.data) || worker.terminate()
  worker.postMessage(parameters)
}).catch(async () => {
  for (let from = 0; ; from += 2000) {
    const found = local.search(parameters, from, from + 2000)
    if (found) return found
    await new Promise(go => setTimeout(go))
  }
})

async function prove(thread) {
  const {provider, parameters, signature, ...hosted} = await ask('captcha')
  if (parameters) return btoa(JSON.stringify({challenge: {parameters, signature}, solution: await solve(parameters)}))
  const token = provider === 'none' ? provider : await thread.use('captcha.js', 'captcha', provider, hosted)
  if (token) return token
  throw {code: 'offline'}
}

// -- Texts --------------------------------------------------------------------

const TAGS = /^(p|[bh]r|em|strong|del|code|pre|blockquote|[uo]l|li|a)$/
const MARKS = {amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\xa0', '#x27': "'"}
const plain = text => text.replace(/&([\w#]+);/g, (all, name) => MARKS[name] ?? all)
const rel = 'nofollow ugc noopener noreferrer'

/** The service's HTML, built anew: nothing comes of it but what is listed. */
function formatted(html) {
  const root = h('div', {class: 'body', dir: 'auto', part: 'body'})
  let open = root
  for (const [all, end, tag, attributes] of html.matchAll(/<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)>|[^<]+/g)) {
    if (!tag) open.append(plain(all))
    else if (end) open = open !== root && open.localName === tag ? open.parentNode : open
    else if (TAGS.test(tag)) {
      const href = plain(/ href="([^"]*)"/.exec(attributes)?.[1] ?? '')
      const node = h(tag, /^(https?:\/\/|mailto:)/i.test(href) ? {href, rel} : tag === 'pre' ? {tabIndex: 0} : {})
      open.append(node)
      if (!/^[bh]r$/.test(tag)) open = node
    }
  }
  return root
}

const clocks = {} // each takes a phone ten milliseconds to make

function ago(then, lang) {
  const past = Math.max(0, (Date.now() - then) / 1000)
  if (past > 2592e3) return then.toLocaleDateString(lang, {dateStyle: 'medium'})
  const [unit, size] = Object.entries({day: 86400, hour: 3600, minute: 60}).find(([, size]) => past >= size) ?? ['second', 60]
  clocks[lang] ??= new Intl.RelativeTimeFormat(lang, {numeric: 'auto'})
  return clocks[lang].format(-Math.floor(past / size), unit)
}

const place = ({location, country}, lang) =>
  lang === 'en' && /^[A-Z]{2}$/.test(country) ? new Intl.DisplayNames(lang, {type: 'region'}).of(country) : location

// -- Thread -------------------------------------------------------------------

let tries = ''

class Thread extends HTMLElement {
  static observedAttributes = ['page', 'lang', 'sort', 'limit']

  #root = this.attachShadow({mode: 'open'})
  #shown
  #ends
  #proof
  #link = h('a', {slot: 'link', href: '#', tabIndex: -1, ariaHidden: true, ontransitionend: () => this.#tint()})

  get url() {
    const canonical = h('a', {href: document.querySelector('link[rel=canonical]')?.href ?? 'x:'})
    const {pathname, search, hash} = canonical.host ? canonical : location
    return this.getAttribute('page') || pathname + search + (/^#[!/]/.test(hash) ? hash : '')
  }

  get zh() {
    const lang = this.lang || this.parentElement?.closest('[lang]')?.lang || navigator.language
    return /^zh/i.test(lang)
  }

  get #lang() {
    return this.zh ? 'zh-CN' : 'en'
  }

  get #sort() {
    return ['oldest', 'likes'].find(sort => sort === this.getAttribute('sort')) ?? 'newest'
  }

  get #limit() {
    const limit = this.getAttribute('limit') | 0
    return limit > 0 ? Math.min(limit, 100) : 10
  }

  connectedCallback() {
    this.#ends = new AbortController()
    addEventListener('hashchange', () => {
      this.#start()
      if (this.settings.most && this.#target) this.use('more.js', 'follow', this.#target)
    }, this.#ends)
    this.#root.adoptedStyleSheets = [sheet]
    this.append(this.#link)
    if (this.getAttribute('loading') !== 'lazy' || this.#target) this.#start()
    else new IntersectionObserver(([seen]) => seen.isIntersecting && this.#start(), {rootMargin: '600px'}).observe(this)
  }

  /** When the page's style is there, or changes: the link has a transition. */
  #tint() {
    this.style.setProperty('--_link', getComputedStyle(this.#link).color)
  }

  disconnectedCallback() {
    this.#ends.abort()
  }

  attributeChangedCallback() {
    if (this.#shown) queueMicrotask(() => this.#start())
  }

  #start() {
    const shown = [this.url, this.zh, this.#sort, this.#limit].join()
    if (!this.isConnected || this.#shown === shown) return
    this.#shown = shown
    this.settings = {}
    this.sums = {total: 0, views: 0, page_likes: 0}
    this.load({around: this.#target})
    this.$('section')?.remove()
    this.#root.append(h('section', {'aria-label': this.say('comments'), lang: this.#lang, dir: 'ltr', part: 'thread'},
      this.writer({}),
      h('div', {class: 'head row', part: 'head'}),
      h('ol', {class: 'list', role: 'list'}),
      h('p', {role: 'status'}),
      h('slot', {name: 'link'})))
    requestAnimationFrame(() => this.#tint())
  }

  $(selector) {
    return this.#root.querySelector(selector)
  }

  #item(id) {
    return id && this.$(`li[data-id="${id}"]`)
  }

  say(key, n) {
    return WORDS[this.zh ? 'zh' : 'en'][key]?.replace('{n}', n)
  }

  tell(text) {
    const status = this.$('[role=status]')
    status.textContent = text
    setTimeout(() => status.textContent === text && status.replaceChildren(), 5000)
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent('commentd:' + name, {detail, bubbles: true, composed: true}))
  }

  /** The first page, or that around a comment; the next in place of `more`. */
  async load({page = 1, around, more, sort = this.#sort}) {
    const query = {url: this.url, view: 'threads', sort, limit: this.#limit, page, ...around && {around}}
    const asked = ask('comments?' + new URLSearchParams(query))
    await 0 // #start draws its frame meanwhile
    const list = this.$('.list'), pressed = more
    const again = (word, what) => h('li', {}, button(this.say(word), ({target}) => this.load({sort, more: target.parentNode, ...what}), {class: 'more'}))
    if (!more) list.replaceChildren(more = h('li', {class: 'wait'}))
    try {
      const reply = await asked
      if (more.getRootNode() !== this.#root) return // too late
      if (!reply.comments) throw reply
      if (page === 1) {
        this.settings = {...reply.settings, most: reply.max_comment_length}
        this.sums = {...reply, sort}
        this.head()
        for (const form of this.#root.querySelectorAll('form[part]')) this.#adapt(form)
        list.replaceChildren(reply.page > 1 ? again('all') : '')
      }
      more.remove()
      const fresh = reply.comments.find(({id}) => !this.#item(id))
      for (const comment of reply.comments) {
        try {
          this.branch(comment)
        } catch {} // it spoils no other
      }
      if (reply.page * this.#limit < reply.threads) list.append(again('more', {page: reply.page + 1}))
      if (!list.firstElementChild) list.append(h('li', {class: 'small none'}, this.say(this.settings.closed ? 'page' : 'none')))
      this.#mine()
      if (pressed && fresh) this.#item(fresh.id).firstChild.focus()
      const there = this.#item(around)
      if (there) this.go(there.firstChild)
      else if (around) this.use('more.js', 'seek', around)
      this.#emit('loaded', {page_url: this.url, total: reply.total})
    } catch (refusal) {
      const retry = again('retry', {page, around})
      retry.prepend(h('p', {role: 'alert'}, this.say(refusal.code === 'refused' ? 'refused' : 'offline')))
      more.replaceWith(retry)
    }
  }

  #mine() {
    if (me().token || Object.keys(recall('own', {}))[0]) this.use('more.js', 'own')
  }

  async use(file, name, ...words) {
    const known = await import(SERVICE + file + tries).catch(() => {
      tries += '?' // else it fails for ever
      this.tell(this.say('offline'))
    })
    return known?.[name](this, kit, ...words)
  }

  head() {
    const {total, views, page_likes, threads} = this.sums, focused = this.$('select:focus')
    this.$('.head').replaceChildren(
      total ? h('b', {}, this.say(total > 1 ? 'many' : 'one', total)) : '',
      this.settings.closed && total ? h('span', {}, this.say('page')) : '',
      h('span', {}, this.say('views', views)),
      this.#heart('likepage', page_likes, this.url, 'page/like', {page_url: this.url}),
      threads > 1 ? h('select', {class: 'push', 'aria-label': this.say('sort'), onchange: ({target}) => this.load({sort: target.value})},
        ...['newest', 'oldest', 'likes'].map(value => h('option', {value, selected: value === this.sums.sort}, this.say(value)))) : '')
    if (focused) this.$('select')?.focus()
  }

  branch(comment) {
    const item = this.put(comment)
    for (const reply of comment.replies) this.put(reply)
    if (comment.more_replies) item.append(button(this.say('more'), ({target}) => this.use('more.js', 'rest', item, target), {class: 'more rest'}))
    return item
  }

  /** Puts a comment under what it answers; deep down beside it, with a name. */
  put(comment, top) {
    this.$('.none')?.remove()
    const above = this.#item(comment.parent_id), flat = above?.parentNode.closest('ol ol ol')
    const article = this.#article(comment, flat && above.comment.nickname)
    let item = this.#item(comment.id)
    if (item) item.firstChild.replaceWith(article)
    else {
      const list = flat ?? (above ? above.querySelector(':scope > .replies > ol') ?? this.#replies(above) : this.$('.list'))
      item = h('li', {'data-id': comment.id}, article)
      list[top && !above ? 'prepend' : 'append'](item)
    }
    item.comment = comment
    this.own?.(item)
    return item
  }

  #replies(item) {
    const list = h('ol', {role: 'list'})
    const line = button('', () => this.use('more.js', 'hide', line, list), {class: 'line', 'aria-expanded': true, ariaLabel: this.say('hide')})
    item.append(h('div', {class: 'replies'}, line, list))
    return list
  }

  #article(comment, to) {
    const {id, nickname, role, website, pinned, edited} = comment
    if (comment.deleted) return h('article', {tabIndex: -1}, h('p', {class: 'small'}, this.say('comment')))
    const body = formatted(comment.html), name = h('bdi', {}, nickname)
    const long = comment.content.length > 700 && button(this.say('fold'), () => body.classList.remove('folded') ?? long.replaceWith() ?? body.parentNode.focus())
    if (long) body.classList.add('folded')
    const badge = word => h('span', {class: 'badge'}, this.say(word))
    const note = text => text && h('span', {}, text)
    const then = new Date(comment.created_at.replace(' ', 'T') + '+08:00')
    return h('article', {tabIndex: -1, part: 'comment'}, face(nickname),
      h('div', {class: 'meta row'},
        h('b', {}, /^https?:/.test(website) ? h('a', {href: website, rel}, name) : name),
        role === 'admin' && badge('admin'), pinned && badge('pinned'),
        to && h('span', {}, '▸ ', h('bdi', {}, to)),
        note(place(comment, this.#lang)),
        h('a', {href: '#comment-' + id, title: then.toLocaleString(this.#lang)}, h('time', {dateTime: then.toISOString()}, ago(then, this.#lang))),
        note(edited && this.say('edited'))),
      body, long,
      h('div', {class: 'acts row'}, ...comment.status === 'waiting' ? [note(this.say('waiting'))] : [
        this.#heart('like', comment.likes, id, 'comment/like', {id}),
        this.settings.closed || button(this.say('reply'), () => this.open(body.parentNode, {parent: comment}))]))
  }

  #heart(word, count, key, path, body) {
    const heart = button(icon('M12 20C6 16 3 12 3 8a4 4 0 0 1 9-2a4 4 0 0 1 9 2c0 4-3 8-9 12z'),
      () => this.use('more.js', 'like', heart, key, path, body), {class: 'like'})
    heart.show = (liked, n) => {
      heart.setAttribute('aria-pressed', liked)
      heart.ariaLabel = `${this.say(word)} ${heart.count = n}`
      heart.replaceChildren(heart.firstChild, n || '')
    }
    heart.show(recall('likes', []).includes(key), count)
    return heart
  }

  get #target() {
    return /^#comment-([1-9]\d{0,14})$/.exec(location.hash)?.[1]
  }

  go(article) {
    this.$('[data-target]')?.removeAttribute('data-target')
    article.setAttribute('data-target', '')
    article.focus({preventScroll: true})
    article.scrollIntoView({block: 'center'})
  }

  /** The form for a comment, an answer to `parent`, or a change of `old`. */
  writer(what) {
    const {parent, old} = what
    const draft = `draft ${this.url} ${[parent?.id, old?.id]}`
    const label = parent ? `${this.say('reply')} ${parent.nickname}` : this.say(old ? 'edit' : 'write')
    const text = h('textarea', {name: 'content', rows: 1, placeholder: label, value: recall(draft, old?.content ?? '', 'sessionStorage')})
    const field = (name, word, autocomplete) =>
      h('label', {}, h('span', {}, this.say(word)), h('input', {name, autocomplete, type: autocomplete, value: me()[name] ?? ''}))
    const guest = h('div', {class: 'guest', hidden: !!(old || me().token)},
      field('nickname', 'name', 'name'),
      h('details', {}, h('summary', {}, `${this.say('mail')} · ${this.say('site')}`), field('email', 'mail', 'email'), field('website', 'site', 'url')))
    const counter = h('span')
    const rest = h('div', {}, guest, h('div', {class: 'row'},
      h('button', {class: 'main', part: 'button'}, this.say(old ? 'save' : 'post')),
      button(this.say('preview'), () => this.use('more.js', 'preview', form)),
      parent || old ? button(this.say('cancel'), () => form.replaceWith() ?? this.#item((parent ?? old).id).firstChild.focus()) : '',
      counter, h('span', {class: 'push links'})))
    const form = h('form', {
      noValidate: true, part: 'form',
      class: text.value && 'open',
      onfocusin: () => form.classList.add('open'),
      onkeydown: ({key, ctrlKey, metaKey, isComposing}) => key === 'Enter' && (ctrlKey || metaKey) && !isComposing && form.requestSubmit(),
      oninput: () => {
        keep(draft, text.value, 'sessionStorage')
        if (!CSS.supports('field-sizing: content')) text.style.height = text.scrollHeight + 2 + 'px'
        if (!old) this.token().catch(() => 0)
        const left = this.settings.most - [...text.value].length
        counter.textContent = left < 200 ? left : ''
      },
      onsubmit: async event => {
        event.preventDefault()
        if (form.ariaBusy === 'true') return
        form.ariaBusy = true
        try {
          await this.#send(form, draft)
        } catch (refusal) {
          this.fault(form, refusal)
        }
        form.ariaBusy = false
      },
    }, h('label', {}, h('span', {class: 'sr'}, label), text), rest)
    form.what = what
    if (text.value && !old) this.token().catch(() => 0)
    this.#adapt(form)
    return form
  }

  #adapt(form) {
    const {closed, hold, policy_url, registration, login_required} = this.settings
    form.hidden = !!closed
    if (login_required) form.querySelector('.guest').hidden = !me().token
    if (hold === 'all' && !form.what.old) form.querySelector('.main').textContent = this.say('approve')
    form.querySelector('.links').replaceChildren(
      registration && !me().token && !form.what.old ? button(this.say('signin'), () => this.use('account.js', 'account', form)) : '',
      policy_url ? h('a', {href: policy_url}, this.say('privacy')) : '')
    if (me().token) this.use('account.js', 'account', form)
  }

  open(article, what) {
    article.querySelector('form')?.remove()
    const form = this.writer(what)
    article.append(form)
    form.content.focus()
  }

  /** The proof begins with the first letter and is there before the last. */
  token(press) {
    const {at, failed} = this.#proof ?? {}
    if (!(Date.now() - at < 3e6) || (press && failed)) {
      const proof = this.#proof = {at: Date.now(), token: prove(this)}
      proof.token.catch(() => proof.failed = true)
    }
    return this.#proof.token.then(token => press && token.call ? token() : token)
  }

  spent() {
    this.#proof = null
    this.querySelector('[slot=captcha]')?.remove()
  }

  async #send(form, draft) {
    const {parent, old} = form.what
    const {content, ...who} = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]))
    if (/^[^:]+$/.test(who.website ?? ':')) who.website = 'https://' + who.website
    if (!content) throw {code: 'content_missing'}
    const over = [...content].length - this.settings.most
    if (over > 0) throw {code: 'content_over', retry: over}
    if (old) return this.change(form, content, draft)
    if (!me().token) {
      if (this.settings.login_required) throw {code: 'login_required'}
      if (!who.nickname) throw {code: 'nickname_missing'}
      keep('me', {...me(), ...who})
    }
    const captcha_token = await this.token(true)
    const {comment, edit_token} = await ask('comments', {page_url: this.url, parent_id: parent?.id, content, captcha_token, lang: this.#lang, ...!me().token && who})
    if (!comment) throw {code: 'offline'}
    this.spent()
    keep(draft, undefined, 'sessionStorage')
    keep('own', {...recall('own', {}), [comment.id]: {edit_token, comment}})
    const article = this.put(comment, true).firstChild
    if (parent) form.remove()
    this.$('form').replaceWith(this.writer({}))
    this.sums.total += comment.status === 'visible'
    this.head()
    this.tell(this.say(comment.status === 'waiting' ? 'waiting' : 'posted'))
    this.go(article)
    this.#mine()
    this.#emit('posted', {comment})
  }

  fault(form, refusal) {
    this.use('more.js', 'fault', form, refusal)
  }
}

const kit = {WORDS, ask, button, formatted, h, keep, me, recall, local}

// -- Start --------------------------------------------------------------------

const WANTING = '[data-commentd-count]:not([data-commentd-counted])'

function count() {
  if (document.querySelector(WANTING)) import(SERVICE + 'more.js').then(more => more.count(ask, WANTING), () => 0)
}

function start() {
  // The head is no place for a thread.
  if (!document.querySelector('commentd-thread') && !script.closest('head')) script.after(h('commentd-thread'))
  count()
}

if (!customElements.get('commentd-thread')) {
  customElements.define('commentd-thread', Thread)
  new MutationObserver(count).observe(document, {childList: true, subtree: true})
}
if (document.readyState === 'loading') addEventListener('DOMContentLoaded', start)
else start()
}
