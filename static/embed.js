// commentd: this script puts the comments of a page behind itself, or into <commentd-thread>.
// In order: Words, Style, Elements, Memory, Service, Proof, Texts, Thread, Start.
// What few need comes on first use: more.js, account.js, captcha.js, moderate.js, words/LANGUAGE.json.
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
    extra: 'Email, website (optional)',
    mail: 'Email for replies, never shown',
    site: 'Website',
    post: 'Post',
    approve: 'Post for approval',
    preview: 'Preview',
    cancel: 'Cancel',
    privacy: 'Privacy',
    signin: 'Sign in',
    count_one: '{n} comment',
    count_other: '{n} comments',
    views: 'Views: {n}',
    none: 'No comments yet. What do you think?',
    sort: 'Sort by',
    newest: 'Newest',
    oldest: 'Oldest',
    likes: 'Most liked',
    more: 'Show more',
    all: 'Show all',
    like: 'Like',
    likepage: 'Like this page',
    reply: 'Reply',
    replyto: 'Reply to {n}',
    link: 'Copy link',
    fold: 'Read more',
    hide: 'Hide replies',
    admin: 'Author',
    pinned: 'Pinned',
    edited: 'edited',
    waiting: 'Waiting for approval. Only you see it.',
    retry: 'Try again',
    offline: 'Comments can’t be reached now. What you write is kept.',
    refused: 'This site may not use these comments.',
    page: 'Comments are closed.',
    comment: 'This comment was removed.',
    nobody: 'Anonymous',
    report: 'Report',
  },
  'zh-CN': {
    comments: '评论',
    write: '写下你的想法…',
    name: '昵称',
    extra: '邮箱、网站（可不填）',
    mail: '邮箱（收回复通知，不公开）',
    site: '网站',
    post: '发表评论',
    approve: '提交审核',
    preview: '预览',
    cancel: '取消',
    privacy: '隐私政策',
    signin: '登录',
    count_other: '{n} 条评论',
    views: '{n} 次阅读',
    none: '还没有评论，来开个头吧。',
    sort: '排序',
    newest: '最新',
    oldest: '最早',
    likes: '最多赞',
    more: '显示更多',
    all: '显示全部',
    like: '赞',
    likepage: '喜欢这篇文章',
    reply: '回复',
    replyto: '回复 {n}',
    link: '复制链接',
    fold: '展开全文',
    hide: '收起回复',
    admin: '博主',
    pinned: '置顶',
    edited: '已修改',
    waiting: '等待审核，只有你能看到。',
    retry: '重试',
    offline: '暂时连不上评论服务，内容不会丢。',
    refused: '这个网站不能使用此评论服务。',
    page: '评论已关闭。',
    comment: '该评论已删除。',
    nobody: '匿名',
    report: '举报',
  },
}

// -- Style --------------------------------------------------------------------

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
:host {
  --_accent: var(--commentd-accent, var(--_link));
  --_text: var(--commentd-text, var(--_own, currentColor));
  --_muted: var(--commentd-muted, color-mix(in srgb, var(--_text) 78%, #0000));
  --_line: var(--commentd-line, color-mix(in srgb, var(--_text) 18%, #0000));
  --_edge: color-mix(in srgb, var(--_text) 58%, #0000);
  --_space: var(--commentd-space, .5em);
  --_avatar: var(--commentd-avatar, 2.25em);
  --_radius: var(--commentd-radius, .5em);
  display: block; width: 100%; container-type: inline-size; margin-block: 1.5em; color: var(--_text);
  font-weight: 400; line-height: 1.6; text-align: start; text-indent: 0; text-transform: none; white-space: normal;
  word-break: normal; overflow-wrap: anywhere; line-break: strict; text-autospace: normal;
}
* { box-sizing: border-box; margin: 0 }
[hidden], ol:empty { display: none !important }
::slotted(a) { transition: 1ms !important }
ol { list-style: none; padding: 0 }
a { color: var(--_accent) }
button, select, summary, textarea, input { color: inherit; font: inherit; field-sizing: content; border: 0; border-radius: var(--_radius); background: none }
button, select { padding: 0 .4em; min-height: 2em; min-width: 24px }
button, select, summary { cursor: pointer }
button:hover, summary:hover { color: var(--_accent) }
:focus-visible { scroll-margin-block: 4em; outline: 2px solid var(--_accent); outline-offset: 1px }
.field:focus-visible { outline-offset: -1px }
.sr { position: absolute; clip-path: inset(50%) }
.row { display: flex; align-items: center; flex-wrap: wrap; gap: 0 calc(1.6 * var(--_space)) }
.push { margin-inline-start: auto }
.small, .row > :not(b), label span, summary { font-size: .875em; color: var(--_muted) }
form, form > div, .guest { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--_space) }
textarea, input { padding: .5em .75em; border: 1px solid var(--_edge); width: 100%; font-size: max(16px, 1em) }
textarea { min-height: 3em; resize: none }
.open textarea { min-height: 7em; resize: vertical }
form:not(.open) > div { display: none }
::placeholder { color: var(--_muted); opacity: 1 }
summary { list-style: inside "+ "; width: fit-content; padding: .3em 0 }
[open] summary { list-style-type: "– " }
.button, .more { padding: .3em 1.1em; border: 1px solid var(--_edge) }
[role=status]:not(.sr, :empty) { position: sticky; width: fit-content; padding: .3em 1em; bottom: 1em; border: 1px solid; border-radius: var(--_radius); background: Canvas; color: CanvasText; pointer-events: none }
.row .button { color: lch(from var(--_accent) calc((49.44 - l) * infinity) 0 0); background: var(--_accent); border-color: #0000 }
[aria-busy=true] .button::after { content: "…" }
.aside, article > form { margin-top: var(--_space) }
blockquote { color: var(--_muted) }
.aside, blockquote { padding-inline-start: 1em; border-inline-start: 3px solid var(--_line) }
.head { margin-top: calc(3 * var(--_space)); min-height: 44px }
.name { font-size: .875em }
.name, .row .button { font-weight: 600 }
li { position: relative; padding-top: calc(2 * var(--_space)) }
.list > li { padding-bottom: calc(2 * var(--_space)) }
.list > li + li { border-top: 1px solid var(--_line) }
article { display: grid; grid-template-columns: var(--_avatar) minmax(0, 1fr); border-radius: var(--_radius); column-gap: min(.75em, var(--_avatar)) }
article > * { grid-column: 2 }
article > button { justify-self: start; font-size: .875em; color: var(--_accent) }
.avatar { grid-area: 1 / 1 / 9; background: radial-gradient(circle at var(--_at), var(--_face) 50%, color-mix(in srgb, var(--_face) 30%, #0000) 51%); width: 100%; height: var(--_avatar); border-radius: 50%; forced-color-adjust: none }
.meta { align-items: baseline }
.meta a { display: inline-block; min-height: 24px }
b a { color: inherit }
.meta a:not(:hover) { text-decoration: none }
.row .badge { border: 1px solid; border-radius: var(--_radius); padding: 0 .5em; color: var(--_accent) }
.body { margin-top: .2em; max-width: 68ch; text-wrap: pretty; text-spacing-trim: trim-start }
.body * + * { margin-top: .6em }
.body :is(ul, ol) { padding-inline-start: 1.5em; list-style: disc }
.body ol { list-style: decimal }
.body li { margin-top: 0; padding: 0 }
pre, code { font: .875em ui-monospace, monospace; border-radius: var(--_radius); background: color-mix(in srgb, var(--_text) 8%, #0000) }
pre { padding: .75em 1em; overflow: auto; overflow-wrap: normal; line-height: 1.5 }
code { padding: .1em .3em }
pre code { all: unset }
@media screen { article:not([data-target]:focus) > .folded:not(:focus-within) { max-height: 18em; overflow: hidden; mask: linear-gradient(#000 13.2em, #0000 17.2em) } }
.actions { margin-top: .2em }
.like, .actions > button, article > button, .line { padding-inline-start: 0 }
.like { display: flex; align-items: center; fill: none; gap: .3em }
.like svg { stroke: currentColor; stroke-width: 2; width: 1.2em }
.like[aria-pressed=true] { fill: currentColor; color: var(--_accent) }
.replies { padding-inline-start: max(1.25em, var(--_avatar) + .75em) }
.line:empty { inset-block: calc(2 * var(--_space) + var(--_avatar)) 1em; position: absolute; inset-inline-start: min(var(--_avatar) / 2 - 12px, var(--_avatar) * 1.5 - 20px) }
.line:empty::after { content: ""; position: absolute; inset-block: .4em 0; inset-inline-start: 11px; border-inline-start: 1px solid var(--_edge) }
.line:hover::after { border-color: var(--_accent) }
[data-target] { background: color-mix(in srgb, var(--_accent) 12%, #0000); box-shadow: 0 0 0 .35em color-mix(in srgb, var(--_accent) 12%, #0000) }
.wait { background: repeating-linear-gradient(#0000 0 1em, currentColor 0 2em); opacity: .08; height: 100vh }
@container (max-width: 34em) {
  .thread { --_avatar: min(1.75em, var(--commentd-avatar, 1.75em)) }
  article > * { grid-column: 1 / 3 }
  .avatar { grid-area: 1 / 1 }
  .meta { grid-area: 1 / 2 }
  .body { margin-top: .4em }
  pre { font-size: .8em }
  .replies { padding-inline-start: 1.25em; position: relative }
  .line:empty { inset-block: 0; inset-inline-start: -8px }
  .views, b ~ .like span { display: none }
}
@container (min-width: 34em) {
  .guest { align-items: end; grid-template-columns: 14em 1fr }
  [open] { grid-column: 1 / 3 }
}
@media (pointer: coarse) {
  button:not(:empty), select, summary { min-height: 44px; min-width: 44px }
}
@media (hover) {
  article:not(:hover, :focus-within) .quiet { opacity: 0 }
}
@media (forced-colors) {
  ::slotted(a) { opacity: 0 }
}
@media print {
  form, button, select, [role=status] { display: none !important }
}
`)

// -- Elements -----------------------------------------------------------------

/** h('a', {href}, 'text', node) makes an element; strings become text, never HTML. */
function h(tag, props = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else if (name === 'class') node.className = node.part = value // for themes
    else if (name in node) node[name] = value
    else node.setAttribute(name, value)
  }
  node.append(...children.filter(child => child?.length || child?.nodeType))
  return node
}

const button = (text, onclick, props) => h('button', {type: 'button', onclick, ...props}, text)

function heart() {
  const [svg, path] = ['svg', 'path'].map(tag => document.createElementNS('http://www.w3.org/2000/svg', tag))
  svg.setAttribute('viewBox', '0 0 24 24')
  path.setAttribute('d', 'M12 20C6 16 3 12 3 8a4 4 0 0 1 9-2a4 4 0 0 1 9 2c0 4-3 8-9 12z')
  svg.append(path)
  return svg
}

/** A moon, made from a name. */
function face(name) {
  let hash = 7
  for (const c of name) hash = Math.imul(hash ^ c.codePointAt(), 16777619) >>> 0
  return h('span', {class: 'avatar', style: `--_face: oklch(.62 .1 ${hash >>> 8}); --_at: ${hash % 101}% ${hash % 97}%`})
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
  let reply, text
  const signal = AbortSignal.timeout(20000)
  try {
    reply = await fetch(SERVICE + path, {method, headers, signal, body: JSON.stringify(body), credentials: 'omit'})
    text = await reply.text()
  } catch ({name}) {
    // Who answers what any page may ask has refused this one.
    const there = !known && name === 'TypeError' && await fetch(SERVICE + 'health', {mode: 'no-cors', signal}).catch(() => 0)
    throw {code: there ? 'refused' : 'offline'}
  }
  try {
    text = JSON.parse(text)
  } catch {}
  known = true
  if (reply.ok) return text
  throw {code: 'offline', ...text, status: reply.status, retry: reply.headers.get('Retry-After')}
}

const learnt = {}

/** The words of a language that do not stand above. */
const learn = language => learnt[language] ??= ask('words/' + language + '.json').then(
  words => WORDS[language] = words.close.length && {...WORDS[language], ...words} // else it is somebody else's page
).catch(refusal => { learnt[language] = null; throw refusal })

// -- Proof --------------------------------------------------------------------

/** SHA-256 (FIPS 180-4), since plain http has none, and the search; a worker gets it as text. */
function prover() {
  const primes = [], W = new Int32Array(64)
  for (let n = 2; n < 312; n++) if (primes.every(prime => n % prime)) primes.push(n)
  const H = primes.map(n => n ** .5 * 2 ** 32 | 0), K = primes.map(n => n ** (1 / 3) * 2 ** 32 | 0)

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
  const text = `onmessage = ({data}) => postMessage((${prover})().search(data, 0, 1e6))`
  const worker = new Worker(URL.createObjectURL(new Blob([text])))
  worker.onerror = refused
  worker.onmessage = ({data}) => solved(data) || worker.terminate()
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
  const root = h('div', {class: 'body', dir: 'auto'})
  let open = root
  for (const [all, end, tag, attributes] of html.matchAll(/<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)>|[^<]+/g)) {
    if (!tag) open.append(plain(all))
    else if (end) open = open.localName === tag ? open.parentNode ?? open : open
    else if (TAGS.test(tag)) {
      const href = plain(/ href="([^"]*)"/.exec(attributes)?.[1] ?? '')
      const node = h(tag, /^(https?:\/\/|mailto:)/i.test(href) ? {href, rel} : tag === 'pre' ? {tabIndex: 0} : {})
      open.append(node)
      if (!/^[bh]r$/.test(tag)) open = node
    }
  }
  return root
}

function tongue(node) {
  const tag = node.closest('[lang]:not([lang=""])')?.lang ?? navigator.language
  if (/^zh(?!.*hans).*(hant|tw|hk|mo)/i.test(tag)) return 'zh-TW'
  const [base] = /^(ar|de|es|fr|ja|ko|pt|ru|zh)(?![a-z])/i.exec(tag) ?? ['en']
  return base.toLowerCase().replace('zh', 'zh-CN')
}

const clocks = {} // each takes a phone ten milliseconds

function ago(then, lang) {
  const past = Math.max(0, Date.now() - then)
  if (past > 2592e6) return then.toLocaleDateString(lang, {dateStyle: 'medium'})
  const [unit, size] = past < 6e4 ? ['second', 6e4] : past < 36e5 ? ['minute', 6e4] : past < 864e5 ? ['hour', 36e5] : ['day', 864e5]
  clocks[lang] ??= new Intl.RelativeTimeFormat(lang, {numeric: 'auto'})
  return clocks[lang].format(-Math.floor(past / size), unit)
}

const place = ({location, country}, lang) =>
  lang !== 'zh-CN' && /^[A-Z]{2}$/.test(country) ? new Intl.DisplayNames(lang, {type: 'region'}).of(country) : location

// -- Thread -------------------------------------------------------------------

/** What a page says of its address: by PJAX the first may stay behind the second. */
const placed = () => [document.querySelector('link[rel=canonical]')?.href, location.pathname]
let tries = '', born

class Thread extends HTMLElement {
  static observedAttributes = ['page', 'lang', 'sort', 'limit', 'theme']

  #root = this.attachShadow({mode: 'open'})
  language = 'en'
  #shown
  #ends
  #proof
  #link = h('a', {slot: 'link', href: '#', tabIndex: -1, ariaHidden: true})

  get url() {
    const [href, here] = placed(), canonical = h('a', {href: href ?? 'x:'})
    born ??= placed()
    const {pathname, search, hash} = canonical.host && (href !== born[0] || here === born[1]) ? canonical : location
    return this.getAttribute('page') || pathname + search + (/^#[!/]/.test(hash) ? hash : '')
  }

  get #sort() {
    return /^(oldest|likes)$/.exec(this.getAttribute('sort'))?.[0] ?? 'newest'
  }

  get #limit() {
    const limit = this.getAttribute('limit') | 0
    return limit > 0 ? Math.min(limit, 100) : 10
  }

  connectedCallback() {
    const {signal} = this.#ends = new AbortController()
    const attend = event => signal.aborted || event?.target.closest('form') || this.use('more.js', 'attend', signal)
    for (const event of ['focusin', 'pointerdown']) this.#root.addEventListener(event, attend, {signal})
    setTimeout(attend, 6e4)
    addEventListener('hashchange', () => {
      if (this.#shown || this.#target) this.#start()
      if (this.settings?.most && this.#target) this.use('more.js', 'follow', this.#target)
    }, {signal})
    const start = () => setTimeout(() => this.#start()) // when routers are done
    document.addEventListener('transitionend', ({target}) => target.contains(this.#link) && this.#tint(), {signal})
    window.navigation?.addEventListener('currententrychange', () => this.#shown && start(), {signal})
    this.#root.adoptedStyleSheets = [sheet]
    this.append(this.#link)
    if (this.getAttribute('loading') !== 'lazy' || this.#target) start()
    else new IntersectionObserver(([seen]) => seen.isIntersecting && this.#start(), {rootMargin: '600px'}).observe(this)
  }

  /** When the page's style is there, or changes (the link has a transition; forced colours count as one);
      what is too faint is mended. */
  #tint() {
    const probe = this.#root.appendChild(h('i'))
    const light = color => {
      probe.style.color = `lab(from ${color} l 0 0)`
      return /^lab\(([\d.]+) 0 0\)/.exec(getComputedStyle(probe).color)?.[1]
    }
    let node = this, paint
    while (node && (paint = getComputedStyle(node)).backgroundColor === 'rgba(0, 0, 0, 0)' && paint.backgroundImage === 'none') node = node.parentElement
    const ground = {light: 100, dark: 0}[this.getAttribute('theme')] ?? (node && paint.backgroundImage === 'none' ? light(paint.backgroundColor) : NaN)
    const faint = color => Math.abs(light(color) - ground) < 45, link = getComputedStyle(this.#link).color
    this.style.colorScheme = ground > 50 ? 'light' : ground < 51 ? 'dark' : ''
    this.style.setProperty('--_own', faint(getComputedStyle(this.parentElement ?? this).color) ? ground > 50 ? '#222' : '#ddd' : '')
    this.style.setProperty('--_link', faint(link) ? `color-mix(in oklab, ${link} 40%, var(--_text))` : link)
    probe.remove()
  }

  disconnectedCallback() {
    this.#ends.abort()
  }

  attributeChangedCallback() {
    if (this.#shown) queueMicrotask(() => this.#start() ?? this.#tint())
  }

  #start() {
    const language = tongue(this), shown = [this.url, language, this.#sort, this.#limit].join()
    if (!this.isConnected || this.#shown === shown) return
    this.#shown = shown
    this.language = language
    this.settings = {__proto__: null} // a page may have spoilt Object.prototype
    this.sums = {total: 0, views: 0, page_likes: 0}
    this.$('section')?.remove()
    const words = !WORDS[language] && learn(language).catch(() => this.language === language && (this.language = 'en'))
    this.load({around: this.#target, words})
    if (!words) this.#draw()
  }

  #draw() {
    this.#root.append(h('section', {class: 'thread', ariaLabel: this.say('comments'), lang: this.language, dir: this.language === 'ar' ? 'rtl' : 'ltr'},
      this.writer({}),
      h('div', {class: 'head row'}),
      h('ol', {class: 'list', role: 'list'}),
      h('p', {role: 'status'}),
      h('span', {class: 'sr'}, h('slot', {name: 'link'}))))
    requestAnimationFrame(() => this.#tint())
  }

  $(selector) {
    return this.#root.querySelector(selector)
  }

  #item(id) {
    return id && this.$(`[data-id='${id}']`)
  }

  say(key, n) {
    const words = WORDS[this.language]
    const text = words[key] ?? words[key + '_' + new Intl.PluralRules(this.language).select(n)]
    return text?.replace('{n}', () => n?.toLocaleString(this.language))
  }

  tell(text, shown = true) {
    const status = this.$('[role=status]')
    status.className = shown ? '' : 'sr'
    status.textContent = text
    setTimeout(() => status.textContent === text && status.replaceChildren(), 5000)
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent('commentd:' + name, {detail, bubbles: true, composed: true}))
  }

  /** A page, or that around a comment, in place of `more`. */
  async load({page = 1, around, more, sort = this.#sort, words}) {
    const query = {url: this.url, view: 'threads', sort, limit: this.#limit, page, ...around && {around}}
    const asked = ask('comments?' + new URLSearchParams(query)), shown = this.#shown
    asked.catch(() => 0)
    await words // #start draws meanwhile
    if (shown !== this.#shown) return
    if (words) this.#draw()
    const list = this.$('.list'), pressed = more
    const again = (word, what) => h('li', {}, button(this.say(word), ({target}) => this.load({sort, more: target.parentNode, ...what}), {class: 'more'}))
    if (!more) list.replaceChildren(more = h('li', {class: 'wait'}))
    try {
      const reply = await asked
      if (more.getRootNode() !== this.#root) return // too late
      if (!reply.comments) throw reply
      if (page === 1) {
        this.settings = {__proto__: null, ...reply.settings, most: reply.max_comment_length}
        this.sums = {...reply, sort}
        for (const form of this.#root.querySelectorAll('.form')) this.#adapt(form)
        list.replaceChildren(reply.page > 1 ? again('all') : '')
      }
      more.remove()
      const fresh = reply.comments.find(({id}) => !this.#item(id))
      for (const comment of reply.comments) {
        try {
          this.branch(comment)
        } catch {} // it spoils no other
      }
      if (page === 1) this.head()
      this.#fold()
      if (reply.page * this.#limit < reply.threads) list.append(again('more', {page: reply.page + 1}))
      if (me().token || Object.keys(recall('own', {})).length) this.use('more.js', 'own')
      if (pressed && fresh) this.#item(fresh.id).firstChild.focus()
      if (this.#item(around)) this.go(this.#item(around).firstChild)
      else if (around) this.use('more.js', 'seek', around)
      this.#emit('loaded', {page_url: this.url, total: reply.total})
    } catch (refusal) {
      const retry = again('retry', {page, around})
      retry.prepend(h('p', {role: 'alert'}, this.say(refusal.code === 'refused' ? 'refused' : 'offline')))
      more.replaceWith(retry)
    }
  }

  async use(file, name, ...words) {
    const known = await Promise.all([import(SERVICE + file + tries), learn(this.language)]).catch(() => {
      tries += '?' // else it fails for ever
      name === 'attend' || this.tell(this.say('offline'))
    })
    return known?.[0][name](this, kit, ...words)
  }

  head() {
    const {total, views, page_likes, threads} = this.sums, focused = this.$('select:focus')
    const none = !this.$('li') && 'none', {closed} = this.settings
    this.$('.head').replaceChildren(
      total ? h('b', {}, this.say('count', total)) : '',
      closed || none ? h('span', {class: none}, this.say(closed ? 'page' : none)) : '',
      total ? h('span', {class: 'views'}, this.say('views', views)) : '',
      this.#heart(page_likes),
      threads > 1 ? h('select', {class: 'push', ariaLabel: this.say('sort'), onchange: ({target}) => this.load({sort: target.value})},
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
    comment.nickname ||= this.say('nobody')
    this.$('.none')?.remove()
    const above = this.#item(comment.parent_id), flat = above?.parentNode.closest('ol ol ol')
    const article = this.#article(comment, flat && above.comment.nickname)
    let item = this.#item(comment.id)
    if (item) item.firstChild.replaceWith(article)
    else {
      const list = flat ?? (above ? above.querySelector('.replies > ol') ?? this.#replies(above) : this.$('.list'))
      item = h('li', {'data-id': comment.id}, article)
      list[top && !above ? 'prepend' : 'append'](item)
    }
    item.comment = comment
    this.own?.(item)
    return item
  }

  #replies(item) {
    const list = h('ol', {role: 'list'})
    const line = button('', () => this.use('more.js', 'hide', line, list), {class: 'line', ariaExpanded: true, ariaLabel: this.say('hide')})
    item.append(h('div', {class: 'replies'}, line, list))
    return list
  }

  /** Folds what is much longer than a fold; all are measured first. */
  #fold() {
    const most = 24 * parseFloat(getComputedStyle(this).fontSize)
    const long = [...this.#root.querySelectorAll('.body')].filter(body => !body.seen && (body.seen = true) && body.scrollHeight > most)
    for (const body of long) {
      body.classList.add('folded')
      const more = button(this.say('fold'), () => {
        body.classList.remove('folded')
        more.remove()
        body.parentNode.focus()
      })
      body.after(more)
    }
  }

  #article(comment, to) {
    const {id, nickname, role, website, pinned, edited} = comment
    if (comment.deleted) return h('article', {tabIndex: -1}, h('p', {class: 'small'}, this.say('comment')))
    const body = formatted(comment.html), name = h('bdi', {}, nickname)
    const badge = word => h('span', {class: 'badge'}, this.say(word))
    const note = text => text && h('span', {}, text)
    const then = new Date(comment.created_at.replace(' ', 'T') + '+08:00')
    return h('article', {tabIndex: -1, class: 'comment'}, face(nickname),
      h('div', {class: 'meta row'},
        h('b', {class: 'name'}, /^https?:/.test(website) ? h('a', {href: website, rel}, name) : name),
        role === 'admin' && badge('admin'), pinned && badge('pinned'),
        to && h('span', {}, '› ', h('bdi', {}, to)),
        note(place(comment, this.language)),
        h('a', {href: new URL('#comment-' + id, location), title: then.toLocaleString(this.language)}, h('time', {dateTime: then.toISOString()}, ago(then, this.language))),
        note(edited && this.say('edited'))),
      body,
      h('div', {class: 'actions row'}, ...comment.status === 'waiting' ? [note(this.say('waiting'))] : [
        this.#heart(comment.likes, id),
        this.settings.closed || button(this.say('reply'), () => this.open(body.parentNode, {parent: comment}), {class: 'reply'}),
        ...['link', 'report'].map(word => button(this.say(word), () => this.use('more.js', word, id), {class: 'quiet'}))]))
  }

  #heart(count, id) {
    const word = this.say(id ? 'like' : 'likepage')
    const like = button(heart(), () => this.use('more.js', 'like', like, id), {class: 'like'})
    like.show = (liked, n) => {
      like.ariaPressed = liked
      like.ariaLabel = `${word} ${like.count = n}`
      like.replaceChildren(like.firstChild, n || (id ? '' : h('span', {}, word)))
    }
    like.show(recall('likes', []).includes(id ?? this.url), count)
    return like
  }

  get #target() {
    return /^#comment-([1-9]\d{0,14})$/.exec(location.hash)?.[1]
  }

  go(article) {
    delete this.$('[data-target]')?.dataset.target
    article.dataset.target = ''
    article.focus({preventScroll: true})
    article.scrollIntoView({block: 'center'})
  }

  /** The form for a comment, an answer to `parent`, or a change of `old`. */
  writer(what) {
    const {parent, old} = what
    const draft = ['draft', this.url, parent?.id, old?.id].join()
    const label = this.say(parent ? 'replyto' : old ? 'edit' : 'write', parent?.nickname)
    const text = h('textarea', {class: 'field', dir: 'auto', name: 'content', rows: 1, placeholder: label, value: recall(draft, old?.content ?? '', 'sessionStorage')})
    const field = (name, word, type) =>
      h('label', {}, h('span', {}, this.say(word)), h('input', {class: 'field', name, type, autocomplete: type, value: me()[name] ?? ''}))
    const guest = h('div', {class: 'guest', hidden: !!(old || me().token)},
      field('nickname', 'name', 'name'),
      h('details', {}, h('summary', {}, this.say('extra')), field('email', 'mail', 'email'), field('website', 'site', 'url')))
    const counter = h('span')
    const rest = h('div', {}, guest, h('div', {class: 'row'},
      h('button', {class: 'button'}, this.say(old ? 'save' : 'post')),
      button(this.say('preview'), ({target}) => this.use('more.js', 'preview', form, target), {ariaExpanded: false}),
      parent || old ? button(this.say('cancel'), () => form.remove() ?? this.#item((parent ?? old).id).firstChild.focus()) : '',
      counter, h('span', {class: 'push links'})))
    const form = h('form', {
      noValidate: true,
      class: text.value ? 'form open' : 'form',
      onfocusin: () => form.classList.add('open'),
      onkeydown: event => event.key === 'Enter' && !event.isComposing && (event.ctrlKey || event.metaKey) && form.requestSubmit(),
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
        await this.#send(form, draft).catch(refusal => this.use('more.js', 'fault', form, refusal))
        form.ariaBusy = false
      },
    }, h('label', {}, h('span', {class: 'sr'}, label), text), rest)
    form.what = what
    this.#adapt(form)
    if (text.value && !old) this.token().catch(() => 0)
    return form
  }

  #adapt(form) {
    const {closed, hold, policy_url, registration, login_required} = this.settings
    form.hidden = !!closed
    if (login_required) form.querySelector('.guest').hidden = !me().token
    if (hold === 'all' && !form.what.old) form.querySelector('.button').textContent = this.say('approve')
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
    if (!content) throw {code: 'content_missing'}
    const left = this.settings.most - [...content].length
    if (left < 0) throw {code: 'content_over', retry: -left}
    if (old) return this.change(form, content, draft)
    if (!me().token) {
      if (this.settings.login_required) throw {code: 'login_required'}
      if (!who.nickname) throw {code: 'nickname_missing'}
      if (/^[^:]+$/.test(who.website)) who.website = 'https://' + who.website
      keep('me', {...me(), ...who})
    }
    const captcha_token = await this.token(true)
    const {comment, edit_token} = await ask('comments', {page_url: this.url, parent_id: parent?.id, content, captcha_token, lang: this.language, ...!me().token && who})
    if (!comment) throw {code: 'offline'}
    this.spent()
    keep(draft, undefined, 'sessionStorage')
    keep('own', {...recall('own', {}), [comment.id]: {edit_token, comment}})
    const article = this.put(comment, true).firstChild
    if (parent) form.remove()
    this.$('form').replaceWith(this.writer({}))
    this.sums.total += comment.status === 'visible'
    this.head()
    this.go(article)
    this.use('more.js', 'own', comment)
    this.#emit('posted', {comment})
  }
}

const kit = {ago, ask, button, formatted, h, keep, learn, me, recall, local, tongue}

// -- Start --------------------------------------------------------------------

function count() {
  if (document.querySelector('[data-commentd-count], [data-commentd-views], [data-commentd-likes], [data-commentd-latest]')) import(SERVICE + 'counts.js').then(counts => counts.fill(kit), () => 0)
}

function start() {
  born ??= placed()
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
