// commentd: shows the comments of a page after this script, or in <commentd-thread>.
// It paints the list and one calm field. What a reader does with them is loaded on first use: see
// `load` and `Thread.use`. In order: Style, Elements, Memory, Service, Scripts, Formatting, Thread,
// Start. The service serves it in strict mode, behind three constants: WIDGET_STYLE,
// ASSETS_VERSION, and TEXTS, which has by language what the widget says before a reader does
// anything, or null if that is loaded. See `assets_with` in commentd.py.
{

// The getter is read directly: <img name=currentScript> on a page hides the document's property.
const script = Reflect.get(Document.prototype, 'currentScript', document)
const SERVICE = new URL('.', script.src)

// -- Style --------------------------------------------------------------------

// Browsers below Safari 16.4, Firefox 119 and Chrome 111 get a link to the plain thread page.
if (!''.isWellFormed) {
  script.after(h('script', {src: SERVICE + 'old.js'}))
  throw new Error('commentd: this browser is too old')
}
// It is static/widget.css and, for the owner's picture, static/picture.css.
const sheet = new CSSStyleSheet()
sheet.replaceSync(WIDGET_STYLE.replaceAll('SERVICE/', SERVICE))

// -- Elements -----------------------------------------------------------------

/** h('a', {href}, 'text', node) makes an element; strings become text, never HTML. What is
    undefined is left out. */
function h(tag, props = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined) continue
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else if (name === 'class') node.className = node.part = value // themes style parts
    else if (name in node) node[name] = value
    else node.setAttribute(name, value)
  }
  node.append(...children.filter(child => child?.length || child?.nodeType))
  return node
}

const button = (text, onclick, props) => h('button', {type: 'button', onclick, ...props}, text)

/** A round mark: the first letter of the name, if it has one, on a colour that follows from the
    name. `face_of` in commentd.py computes the same. */
function avatar(name) {
  let face = 7
  for (const character of name) face = (face * 31 + character.codePointAt()) % 9973
  const initial = /[\p{L}\p{N}]\p{M}*/u.exec(name)?.[0].toUpperCase() ?? ''
  const style = `background-color: oklch(.52 .08 ${face})`
  return h('span', {class: 'avatar', 'data-initial': initial, style})
}

// -- Memory -------------------------------------------------------------------

// What the browser does not store: see `keep` in errors.js.
const memory = {}

/** The stored value of a key; `fallback` if there is none, or one of another type. */
function recall(key, fallback, area = 'localStorage') {
  let value = memory[key]
  try {
    value ??= JSON.parse(window[area].getItem(SERVICE + key))
  } catch {
    // The reader blocks storage, or it holds what others wrote.
  }
  return value?.constructor === fallback.constructor ? value : fallback
}

/** The reader: {nickname, email, website, token?, id?, role?} */
const me = () => recall('me', {})

// -- Service ------------------------------------------------------------------

/** What went wrong with a request or with what the reader typed. `code` names the reason, `error`
    is the service's own text, `status` that of the response, `retry` the seconds to wait. Without
    a `status`, there was no response. Every other error is a fault of a script. */
class Failure extends Error {
  constructor(code, details) {
    super(code)
    Object.assign(this, details, {name: 'Failure', code})
  }
}

const reported = new Set()

/** Tells developers what failed, once, without anything of what readers write. The browser itself
    tells of a request that had no response. */
function report(what, error) {
  if (reported.has(what) || error.code === 'offline') return
  reported.add(what)
  console.error('commentd: ' + what, error)
}

/** The JSON of a response, or its text. Throws a `Failure`. What is read is public and asked for
    without a token; errors.js sends what readers write. */
async function ask(path, options) {
  // A proxy may keep lists for two seconds. One from before this reader wrote would lack their
  // comment.
  const wroteAt = recall('wrote', 0, 'sessionStorage')
  if (path.startsWith('comments?') && Date.now() - wroteAt < 3000) path += '&after=' + wroteAt
  const signal = AbortSignal.timeout(20000)
  let response
  let text
  try {
    response = await fetch(SERVICE + path, {credentials: 'omit', signal, ...options})
    text = await response.text()
  } catch (cause) {
    throw new Failure('offline', {cause})
  }
  let content = text
  try {
    content = JSON.parse(text)
  } catch {
    // Some responses are plain texts, and those of a proxy may be a page.
  }
  if (response.ok) return content
  const {code = 'offline', ...details} = content?.code ? content : {}
  const {status, headers} = response
  throw new Failure(code, {...details, status, retry: headers.get('Retry-After')})
}

// -- Scripts ------------------------------------------------------------------

const loading = {} // by name: the promise of a script or of texts
let failures = 0 // how often something failed to load

/** Loads something once. What failed is tried again at the next use. The version in its URL keeps
    caches from mixing two versions of the service. */
function once(name, begin) {
  const path = `${name}?${ASSETS_VERSION}`
  loading[name] ??= begin(path).catch(async cause => {
    delete loading[name]
    failures++
    report(name + ' could not be loaded', cause)
    // Which files are gone after an update, outdated.js knows.
    const reason = name !== 'outdated.js' && await load('outdated.js')
      .then(({reasonFor}) => reasonFor(Thread.kit, SERVICE + path, script.src)).catch(() => {})
    throw new Failure(reason?.code ?? 'offline', {...reason, cause})
  })
  return loading[name]
}

/** Imports a script. Some browsers remember by its URL that an import failed: then another URL of
    the same file is tried. Nothing of the file runs yet, so it is never there twice. */
const load = file =>
  once(file, path => import(SERVICE + path + (failures ? '-' + failures : '')))

/** Adds to the texts of a language: all others that it has, or the `first-…` of the widget. */
async function learnTexts(language, name = language) {
  const texts = await once(`words/${name}.json`, ask)
  TEXTS[language] = {...TEXTS[language], ...texts}
}

/** Whether the first texts of a language are there: each says in which direction it is written. */
const isKnown = language => !!TEXTS[language]?.dir

// -- Formatting ---------------------------------------------------------------

const TAGS = /^(p|[bh]r|em|strong|del|code|pre|blockquote|[uo]l|li|a)$/
const MARKUP = /<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)>|[^<]+/g
const ENTITIES = {amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\xa0', '#x27': "'"}
const decoded = text => text.replace(/&([\w#]+);/g, (all, name) => ENTITIES[name] ?? all)
const rel = 'nofollow ugc noopener noreferrer'

/** The service's HTML, built anew from the tags and links that are allowed here. */
function formatted(html) {
  const root = h('div', {class: 'body', dir: 'auto'})
  let open = root
  for (const [all, end, tag, attributes] of html.matchAll(MARKUP)) {
    if (!tag) open.append(decoded(all))
    else if (end) {
      if (open.localName === tag) open = open.parentNode ?? open
    } else if (TAGS.test(tag)) {
      const node = h(tag)
      const href = decoded(/ href="([^"]*)"/.exec(attributes)?.[1] ?? '')
      if (tag === 'a' && /^(https?:\/\/|mailto:)/i.test(href)) Object.assign(node, {href, rel})
      if (tag === 'pre') {
        node.tabIndex = 0 // keyboards can scroll it
        load('code.js').then(({decorate}) => decorate(node), () => {}) // then it has no colours
      }
      const first = tag === 'ol' && / start="(\d+)"/.exec(attributes)
      if (first) node.start = first[1]
      const language = tag === 'code' && /language-[\w#+-]+/.exec(attributes)
      if (language) node.className = language
      open.append(node)
      if (!/^[bh]r$/.test(tag)) open = node
    }
  }
  return root
}

/** The supported language nearest to that of an element, or of the browser. */
function languageOf(node) {
  const tag = node.closest('[lang]:not([lang=""])')?.lang ?? navigator.language
  const [language] = tag.toLowerCase().split(/[-_]/)
  if (language === 'zh') return /^(?!.*hans).*(hant|tw|hk|mo)/i.test(tag) ? 'zh-TW' : 'zh-CN'
  return Object.hasOwn(TEXTS, language) ? language : 'en'
}

const formats = {}

/** A formatter of `Intl`, made once: each takes up to 10 ms on a phone. */
const formatOf = (type, lang, options) => formats[type + lang] ??= new Intl[type](lang, options)

/** Whether a page is a route of a script, such as `#/guide`. */
const isRoute = hash => /^#[!/]/.test(hash)

/** The URL of a comment on this page. A route stays as it is. */
const linkTo = id =>
  new URL(isRoute(location.hash) ? location.hash : '#comment-' + id, location)

const timeOf = comment => new Date(comment.created_at.replace(' ', 'T') + '+08:00')

const UNITS = [['day', 1440], ['hour', 60], ['minute', 1]] // with their length in minutes

function relativeTime(then, lang) {
  const minutes = Math.max(0, Date.now() - then) / 60000
  // `Intl` has “at present” for it in some languages.
  if (minutes < 1 && isKnown(lang)) return TEXTS[lang].now
  if (minutes > 43200) return formatOf('DateTimeFormat', lang, {dateStyle: 'medium'}).format(then)
  const [unit, length] = UNITS.find(([, least]) => minutes >= least) ?? ['second', 1]
  const format = formatOf('RelativeTimeFormat', lang, {numeric: 'auto'})
  return format.format(-Math.floor(minutes / length), unit)
}

/** The service names places in Chinese; in other languages the browser names the country. */
function placeName({location: place, country}, lang) {
  if ((lang === 'zh-CN' && place) || !country) return place
  return formatOf('DisplayNames', lang, {type: 'region'}).of(country)
}

/** The color behind an element, or the picture. */
function backgroundOf(node) {
  const {backgroundColor, backgroundImage} = getComputedStyle(node)
  if (backgroundImage !== 'none') return backgroundImage
  if (backgroundColor !== 'rgba(0, 0, 0, 0)') return backgroundColor
  const above = node.parentElement ?? node.getRootNode().host
  return above ? backgroundOf(above) : 'Canvas'
}

// -- Thread -------------------------------------------------------------------

/** An observer that calls `act` with each element that comes near the window. */
const whenNear = act => new IntersectionObserver(
  entries => entries.forEach(({isIntersecting, target}) => isIntersecting && act(target)),
  {rootMargin: '600px'})

/** The orders of the list, by the text that names them. */
const SORTS = ['newest', 'oldest', 'likes']

/** What shows that somebody reads, which the browser itself does not do. */
const SIGNS = ['pointermove', 'touchmove', 'wheel', 'keydown']

const parsed = new Promise(resolve => {
  if (document.readyState === 'loading') addEventListener('DOMContentLoaded', resolve)
  else resolve()
})

/** A heading within a route of docsify, as in commentd.py. The id of a page is none: `?id=7`. */
const HEADING = /^(#\/[^?]*)\?id=(?!\d|(?=.*\d)[\da-f-]{16,}$)(?:%[\dA-Fa-f]{2}|[^%&A-Z])*$/

/** The two URLs of a page. Where PJAX changes the location, an old canonical link may stay. */
const pageUrls = () => [document.querySelector('link[rel=canonical]')?.href, location.pathname]
let firstUrls

class Thread extends HTMLElement {
  static observedAttributes = ['page', 'lang', 'sort', 'limit', 'theme', 'heading']

  language = 'en'
  decorators = {} // by name: what other scripts do to each item
  menus = {} // by name: what other scripts add to the menu of an item, for `menuButton`
  isArriving // whether its top is on its way to the top of the window, see arrive.js
  #folding = whenNear(body => this.#fold(body))
  #shownKey
  #controller
  #held // px
  #isNamed // whether its id came too late for the browser to go there
  #link = h('a', {slot: 'link', href: '#', tabIndex: -1, ariaHidden: true})

  get url() {
    const [href, here] = pageUrls()
    const canonical = h('a', {href: href ?? 'x:'})
    firstUrls ??= pageUrls()
    const isCurrent = canonical.host && (href !== firstUrls[0] || here === firstUrls[1])
    const {pathname, search, hash} = isCurrent ? canonical : location
    const route = isRoute(hash) ? hash.replace(HEADING, '$1') : ''
    return this.getAttribute('page') || pathname + search + route
  }

  get #sort() {
    const sort = this.getAttribute('sort')
    return SORTS.includes(sort) ? sort : 'newest'
  }

  get #limit() {
    const limit = this.getAttribute('limit') | 0
    return limit > 0 ? Math.min(limit, 100) : 10
  }

  async connectedCallback() {
    const {signal} = this.#controller = new AbortController()
    if (this.dataset.mark) await parsed // a fragment brings its own root
    if (signal.aborted) return // it left the page meanwhile
    if (!this.shadowRoot) this.attachShadow({mode: 'open'})
    for (const event of ['focusin', 'pointerdown']) {
      this.shadowRoot.addEventListener(event, ({target}) => this.#attend(target), {signal})
    }
    addEventListener('hashchange', () => {
      if (this.#shownKey || this.#target) this.#start()
      if (this.totals?.page && this.#target) this.use('reading.js', 'follow', this.#target)
    }, {signal})
    const startSoon = () => setTimeout(() => this.#start()) // after the page's router
    const tintAgain = ({target}) => target.contains(this.#link) && this.#tint()
    document.addEventListener('transitionend', tintAgain, {signal})
    addEventListener('scroll', () => this.#hold(), {capture: true, passive: true, signal})
    const moved = () => this.#shownKey && startSoon()
    window.navigation?.addEventListener('currententrychange', moved, {signal})
    this.#addStyle(sheet)
    if (!this.dataset.mark) { // it may have been on the page before
      for (const body of this.#bodies()) this.#folding.observe(body)
    }
    this.append(this.#link)
    this.#attendLater()
    if (this.getAttribute('loading') !== 'lazy' || this.#target) startSoon()
    else this.#onceNear(startSoon)
    await parsed
    if (document.getElementById('comments') || this.id) return
    this.id = 'comments'
    this.#isNamed = true
  }

  disconnectedCallback() {
    this.#controller.abort()
    this.#folding.disconnect()
  }

  attributeChangedCallback() {
    if (this.#shownKey) queueMicrotask(() => {
      this.#start()
      this.#tint()
    })
  }

  /** Calls `act` when the thread comes near the window, once. */
  #onceNear(act) {
    const observer = whenNear(() => {
      observer.disconnect()
      act()
    })
    observer.observe(this)
    this.#controller.signal.addEventListener('abort', () => observer.disconnect())
  }

  /** What helps those who read and write is loaded when the reader moves near the comments or stays
      there, so that it is there when they begin. Who only opens the page loads nothing more. */
  #attendLater() {
    const {signal} = this.#controller
    let isAttended = false
    const attend = () => {
      if (isAttended || !this.totals?.page) return // or the list is still on its way
      isAttended = true
      const whenIdle = window.requestIdleCallback ?? setTimeout // Safari has none
      whenIdle(() => this.#attend(), {timeout: 2000}) // a busy page may never be idle
    }
    this.#onceNear(() => {
      for (const sign of SIGNS) addEventListener(sign, attend, {passive: true, signal})
      setTimeout(() => signal.aborted || attend(), 10000) // screen readers give no sign
    })
  }

  /** Loads what helps those who read or write. What failed is tried again when they touch the
      thread. */
  #attend(touched) {
    if (touched?.closest('.failed')) return // its button tries again
    const form = touched?.closest('form.form') // that of a fragment is none
    if (form) this.#equip(form)
    else if (!this.settings?.closed) this.#loaded('writing.js').catch(() => {})
    const {signal} = this.#controller
    this.#loaded('reading.js').then(({attend}) => attend(this, Thread.kit, signal), () => {})
  }

  /** Adds to a form what writing needs. What is typed meanwhile stays. */
  async #equip(form) {
    const failed = () => form.querySelector('.failed')
    if (failed()?.isFinal) return // it asks the reader to load the page again
    try {
      const {equip} = await this.#loaded('writing.js')
      equip(this, Thread.kit, form)
      failed()?.remove()
    } catch (error) {
      if (error.offer) failed()?.remove()
      if (!failed()) form.append(this.#retry(error, () => this.#equip(form), () => form))
    }
  }

  /** A text that says what failed, and a button that tries again by `act`, which takes the focus to
      the place of what it brings. errors.js knows why it failed. Where that can't be loaded either,
      the service can't be reached. */
  #retry(error, act, place, unreachable = this.say('offline')) {
    if (error.offer) return error.offer(this) // of outdated.js
    const alert = h('p', {role: 'alert'})
    this.#loaded('errors.js').then(({whyNotShown}) => whyNotShown(this, Thread.kit, error))
      .catch(() => {}).then(text => alert.textContent = text ?? unreachable)
    const again = async () => {
      failed.remove()
      await act()
      this.#focusIn(place())
    }
    const press = button(this.say('retry'), again, {class: 'more'})
    const failed = h('div', {class: 'failed'}, alert, press)
    return failed
  }

  /** Takes the focus from a button that tried again to what is in its place. `moveFocus` may be
      missing: errors.js is what failed to load. */
  #focusIn(place) {
    if (document.activeElement !== document.body) return // the reader went on
    const next = place?.querySelector('.failed button') ?? place?.querySelector('textarea, article')
    next?.focus()
  }

  /** Takes the page's colours, made darker or lighter where their contrast is too low (WCAG 1.4.3,
      1.4.11). Runs again when they change, see `transition` in widget.css. 5.2 leaves 4.5 on a
      highlighted comment. */
  #tint() {
    const probe = this.shadowRoot.appendChild(h('i'))
    probe.style.colorScheme = getComputedStyle(document.documentElement).colorScheme // of `Canvas`
    const computed = color => {
      probe.style.color = color
      return getComputedStyle(probe).color
    }
    /** With the .05 that WCAG adds; NaN for a color that is not opaque. */
    const luminance = color =>
      / ([\d.e-]+) \S+\)$/.exec(computed(`color(from ${color} xyz x y z)`))?.[1] - -.05
    const ground = {light: '#fff', dark: '#000'}[this.getAttribute('theme')] ?? backgroundOf(this)
    const bright = luminance(ground)
    const dark = bright < .23

    /** A color, mixed with as much of another one as the contrast needs. */
    const mix = (color, other, contrast) => {
      const from = luminance(color)
      const goal = dark ? bright * contrast : bright / contrast
      const share = (goal - from) / (luminance(other) - from)
      if (!(share > 0)) return color // it has the contrast, or one of them is not opaque
      return `color-mix(in xyz, ${other} ${Math.min(share, 1) * 100}%, ${color})`
    }
    const readable = color => mix(color, dark ? '#fff' : '#000', 5.2)
    const text = readable(computed(`var(--commentd-text, ${getComputedStyle(this).color})`))
    const set = (name, color) => this.style.setProperty('--_' + name, color)
    set('own', text)
    set('link', readable(getComputedStyle(this.#link).color))
    set('error', readable('#d22'))
    set('dim', mix(text, ground, 6))
    set('edge', mix(text, ground, 3.5))
    if (bright) this.style.colorScheme = dark ? 'dark' : 'light'
    probe.remove()
  }

  /** Shows the page, in the language and order that it wants now, unless that is already shown. */
  async #start() {
    const language = languageOf(this)
    const heading = this.getAttribute('heading')
    const key = [this.url, language, this.#sort, this.#limit, heading].join()
    if (!this.isConnected || this.#shownKey === key) return
    this.#shownKey = key
    this.settings = {}
    this.totals = {total: 0, views: 0, page_likes: 0}
    this.#held = 0
    if (!this.$('section')) delete this.dataset.mark // PJAX left the fragment in a template
    const {mark} = this.dataset // of a fragment
    if (!mark) this.$('section')?.remove()
    // Without them, it speaks English.
    if (!isKnown(language)) await learnTexts(language, 'first-' + language).catch(() => {})
    if (key !== this.#shownKey) return
    this.language = isKnown(language) ? language : 'en'
    if (mark) return this.#adopt()
    this.draw()
    this.load({around: this.#target})
  }

  /** Draws the thread in place of a fragment. If that fails, its comments stay. Where the form
      would be, a text says why there is none, and a button tries again. */
  async #adopt() {
    this.$('.failed')?.remove() // of another language
    try {
      const {adopt} = await this.#loaded('adopt.js')
      await adopt(this, Thread.kit, this.#target)
    } catch (error) {
      const form = this.$('div.form') // none where the page is closed
      const {unreachable} = form?.firstChild.dataset ?? {}
      form?.append(this.#retry(error, () => this.#adopt(), () => this.$('.form'), unreachable))
    }
  }

  /** Holds a height where the window shows it, so that what follows the comments stays, however few
      there are. What is below the window is given up, at first and as the reader scrolls. Where
      the page was opened at its comments, it is a window's, so that their top gets to its top. */
  #hold(height = this.#held) {
    if (!height) return
    const section = this.$('section')
    const {top, bottom} = section.getBoundingClientRect()
    const isFilled = bottom - top > height + 1
    const room = this.isArriving ? innerHeight : innerHeight - top
    this.#held = isFilled ? 0 : Math.max(0, Math.min(height, room))
    section.style.minHeight = this.#held + 'px'
  }

  draw() {
    const heading = this.getAttribute('heading')
    let before = this
    do before = before.previousElementSibling
    while (before?.matches('script'))
    const apart = before?.matches(':not(h1, h2, h3, h4, hr)')
    const section = h('section', {
      class: apart ? 'thread apart' : 'thread',
      ariaLabel: this.say('comments'), lang: this.language, dir: this.say('dir'),
    },
    heading !== null && h('h2', {class: 'heading'}, heading || this.say('comments')),
    this.makeForm({}),
    h('div', {class: 'head row'}),
    h('ol', {class: 'list', role: 'list'}),
    h('p', {role: 'status'}),
    h('p', {class: 'sr'}, h('slot', {name: 'link'})))
    const {height} = getComputedStyle(this) // which a theme may hold until now
    this.shadowRoot.append(section)
    this.isArriving = location.hash === '#comments'
    this.#hold(parseFloat(height))
    if (this.#isNamed && this.isArriving && !scrollY) this.scrollIntoView()
    // At the comments, or back from an identity provider.
    if (/^#comment[sd]/.test(location.hash)) {
      load('arrive.js').then(({arrive}) => arrive(this), () => {})
    }
    requestAnimationFrame(() => this.#tint())
    // The first number takes long on a phone. It comes while the list is on its way.
    setTimeout(() => this.say('count', 1))
  }

  $(selector) {
    return this.shadowRoot.querySelector(selector)
  }

  /** The list item of a comment. */
  item(id) {
    return this.$(`li[data-id='${id}']`)
  }

  /** The text of a key in the language of the thread, with a name or number. */
  say(key, n) {
    const texts = TEXTS[this.language]
    const text = texts[key] ?? texts[`${key}_${formatOf('PluralRules', this.language).select(n)}`]
    return text?.replace('{n}', () => n?.toLocaleString(this.language))
  }

  /** Shows a text for five seconds, or says it to screen readers only. */
  announce(text, shown = true) {
    const status = this.$('[role=status]')
    status.className = shown ? '' : 'sr'
    status.textContent = text
    setTimeout(() => status.textContent === text && status.replaceChildren(), 5000)
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent('commentd:' + name, {detail, bubbles: true, composed: true}))
  }

  #addStyle(added) {
    const {adoptedStyleSheets} = this.shadowRoot
    if (!adoptedStyleSheets.includes(added)) adoptedStyleSheets.push(added)
  }

  /** Calls a function of a script that is loaded on first use. */
  async use(file, name, ...values) {
    const loaded = await this.#loaded(file).catch(({code}) => this.announce(this.say(code)))
    return loaded?.[name](this, Thread.kit, ...values)
  }

  /** A script that is loaded on first use, when its style, the scripts that it needs, its texts and
      what tells its errors are there too. */
  async #loaded(file) {
    const needed = ['errors.js', file].map(load)
    const [errors, loaded] = await Promise.all([...needed, learnTexts(this.language)])
    Object.assign(Thread.kit, errors)
    if (loaded.needs) await this.#loaded(loaded.needs)
    for (const {sheet: own} of [errors, loaded]) if (own) this.#addStyle(own)
    return loaded
  }

  /** Asks for a page of the list, or the one around a comment. */
  askList({page = 1, around, sort = this.totals.sort}) {
    const query = {url: this.url, view: 'threads', sort, limit: this.#limit, page}
    if (around) query.around = around
    return ask('comments?' + new URLSearchParams(query))
  }

  /** Loads the list anew: its first page, or the one around a comment. What a fragment held, the
      `listing`, is shown at once. */
  async load({around, sort = this.#sort, listing}) {
    const place = h('li', {class: 'wait'})
    this.$('.list').replaceChildren(place)
    try {
      const isAsked = !listing
      listing ??= await this.askList({around, sort})
      // What other scripts add to comments has texts of its own. The language may have changed.
      if (isAsked && this.decorators.reading) await learnTexts(this.language)
      if (!this.shadowRoot.contains(place)) return // something else is shown now
      if (isAsked) this.#hold(this.$('section').offsetHeight)
      if (!listing.comments || !listing.settings) throw new Failure('unreadable')
      this.settings = listing.settings
      this.totals = {...listing, sort}
      for (const form of this.shadowRoot.querySelectorAll('.form')) this.#applySettings(form)
      this.head()
      // All with one layout, before they are painted, and not in the task that makes them.
      requestAnimationFrame(() => this.#bodies().forEach(body => this.#fold(body)))
      await this.fill(place, listing, isAsked ? 0 : Infinity)
      if (around) this.use('reading.js', 'seek', around, listing.page)
    } catch (error) {
      this.#hold(this.$('section')?.offsetHeight)
      const again = () => this.load({around, sort})
      place.replaceWith(h('li', {}, this.#retry(error, again, () => this.$('.list'))))
    }
  }

  /** Puts a page of the list in the place of an item, with a button that loads the next one. Where
      that takes long, the first ten come at once, and others can do something from `pause` on. */
  async fill(place, listing, pause = 0) {
    place.hidden = true
    let shown = 0
    for (const comment of listing.comments) {
      if (shown++ > 9 && Date.now() > pause) { // a long list, on a slow phone
        await new Promise(resolve => setTimeout(resolve))
        if (!this.shadowRoot.contains(place)) return
        pause = Date.now() + 20
      }
      try {
        this.putThread(comment)
      } catch (error) { // a broken comment leaves the others
        report('a comment can’t be shown', error)
      }
    }
    place.remove()
    const left = listing.threads - listing.page * this.#limit
    if (left > 0) {
      const loadNext = () => this.use('reading.js', 'loadNext', next, listing.page + 1)
      const next = button(this.say('more', left), loadNext, {class: 'more'})
      this.$('.list').append(h('li', {}, next))
    }
    if (me().token || Object.keys(recall('own', {})).length) this.use('own.js', 'own')
    this.emit('loaded', {page_url: this.url, total: listing.total})
  }

  /** Draws the line above the list: totals, likes and the order. */
  head() {
    const {total, views, page_likes, threads} = this.totals
    const note = this.settings.closed ? 'page' : !this.$('article') && 'none'
    const onchange = ({target}) => this.use('reading.js', 'sortBy', target.value)
    const orders = SORTS.map(value =>
      h('option', {value, selected: value === this.totals.sort}, this.say(value)))
    const choice = {ariaLabel: this.say('sort'), onchange}
    const level = {role: 'heading', ariaLevel: this.$('h2') ? 3 : 2}
    this.$('.head').replaceWith(h('div', {class: 'head row'},
      total && h('b', level, this.say('count', total)),
      note && h('span', {class: note}, this.say(note)),
      total && h('span', {class: 'views'}, this.say('views', views)),
      this.#likeButton(page_likes),
      threads > 1 && h('select', choice, ...orders)))
  }

  /** Puts a comment and its replies into the list. */
  putThread(comment) {
    const item = this.put(comment)
    for (const reply of comment.replies) this.put(reply)
    if (comment.more_replies) {
      const onclick = ({target}) => this.use('reading.js', 'rest', item, target)
      item.append(button(this.say('more', comment.more_replies), onclick, {class: 'more rest'}))
    }
    return item
  }

  /** Puts a comment under its parent. From the third level on, replies stand beside their parents,
      with a name. */
  put(comment, top) {
    comment.nickname ||= this.say('nobody')
    this.$('.none')?.remove()
    const parent = this.item(comment.parent_id)
    const flat = parent?.parentNode.closest('ol ol ol')
    const article = this.#article(comment, flat && parent.comment.nickname)
    let item = this.item(comment.id)
    if (item) item.firstChild.replaceWith(article)
    else {
      item = h('li', {'data-id': comment.id}, article)
      if (parent) (flat ?? this.#repliesOf(parent)).append(item)
      else this.$('.list')[top ? 'prepend' : 'append'](item)
    }
    item.comment = comment
    for (const decorate of Object.values(this.decorators)) decorate(item)
    return item
  }

  /** The list of replies to a comment, made with the first one. */
  #repliesOf(item) {
    let list = item.querySelector('.replies > ol')
    if (!list) {
      list = h('ol', {role: 'list'})
      item.append(h('div', {class: 'replies'}, list))
    }
    return list
  }

  /** The texts of all comments. */
  #bodies() {
    return this.shadowRoot.querySelectorAll('article > .body')
  }

  /** Folds a long text. */
  #fold(body) {
    this.#folding.unobserve(body)
    if (body.matches('.folded, .whole') || body.scrollHeight <= 440) return
    body.classList.add('folded')
    const unfold = () => this.use('reading.js', 'unfold', more)
    const more = button(this.say('fold'), unfold, {class: 'more'})
    body.after(more)
  }

  #article(comment, repliedTo) {
    const {id, nickname, website} = comment
    if (comment.deleted) {
      const text = this.say(comment.waiting ? 'unapproved' : 'comment')
      return h('article', {tabIndex: -1}, h('p', {class: 'small'}, text))
    }
    const body = formatted(comment.html)
    const name = h('bdi', {}, nickname)
    const badge = word => h('span', {class: 'badge ' + word}, this.say(word))
    const note = text => text && h('span', {}, text)
    const then = timeOf(comment)
    const time = h('time', {dateTime: then.toISOString()}, relativeTime(then, this.language))
    const isOwner = comment.role === 'admin'
    const reply = () => button(this.say('reply'), () => this.open(article, {parent: comment}), {
      class: 'reply', ariaLabel: this.say('replyto', nickname),
    })
    const actions = comment.status === 'waiting'
      ? [note(this.say('waiting'))]
      : [this.#likeButton(comment.likes, id), this.settings.closed || reply()]
    const article = h('article', {
      tabIndex: -1, class: isOwner ? 'comment owner' : 'comment', ariaLabel: nickname,
    },
    avatar(nickname),
    h('div', {class: 'meta row'},
      h('b', {class: 'name'},
        /^https?:/.test(website) ? h('a', {href: website, rel}, name) : name,
        // Only a comment whose author was signed in has a role. reading.js says so.
        comment.role && h('span', {class: 'tick'}, '✓')),
      isOwner && badge('admin'),
      comment.pinned && badge('pinned'),
      repliedTo && h('span', {}, '› ', h('bdi', {}, repliedTo)),
      note(placeName(comment, this.language)),
      h('a', {href: linkTo(id)}, time),
      comment.edited && note(this.say('edited'))),
    body,
    h('div', {class: 'actions row'}, ...actions)) // reading.js adds a menu
    this.#folding.observe(body)
    return article
  }

  #likeButton(count, id) {
    const word = this.say(id ? 'like' : 'likepage')
    const like = button('', () => this.use('reading.js', 'like', like, id), {class: 'like'})
    like.show = (liked, n) => {
      like.count = n
      like.ariaPressed = liked
      like.ariaLabel = `${word} ${n}`
      // Beside the number of comments, a bare heart would seem to like these.
      const shown = id ? [] : [word]
      if (n) shown.push(n)
      like.textContent = shown.join(' ')
    }
    like.show(recall('likes', []).includes(id ?? this.url), count)
    return like
  }

  get #target() {
    return /^#comment-([1-9]\d{0,14})$/.exec(location.hash)?.[1]
  }

  /** The form for a comment, a reply to `parent`, or a `change`: {id, content, label, …}, see
      own.js. It is one field; writing.js adds the rest when the reader comes to it. */
  makeForm(subject) {
    const {parent, change} = subject
    const draft = ['draft', this.url, parent?.id, change?.id].join()
    const written = recall(draft, '', 'sessionStorage') || (change?.content ?? '')
    const label = change?.label ?? this.say(parent ? 'replyto' : 'write', parent?.nickname)
    const field = h('textarea', {
      class: 'field', name: 'content', dir: 'auto', rows: 1, placeholder: label, ariaLabel: label,
      value: written,
    })
    const form = h('form', {
      class: written ? 'form open' : 'form', noValidate: true,
      onfocusin: () => form.classList.add('open'),
    }, field)
    Object.assign(form, {subject, draft})
    this.#applySettings(form)
    if (written) setTimeout(() => this.#equip(form))
    return form
  }

  /** Shows a form as the settings of the blog want it, and hides it where they want none. In it,
      writing.js asks readers to sign in where they have to. */
  #applySettings(form) {
    const {closed, login_required} = this.settings
    form.hidden = closed
    if (login_required && !me().token) this.#equip(form)
    form.applySettings?.() // of writing.js
  }

  /** Opens a form in an article. */
  open(article, subject) {
    article.querySelector('form')?.remove()
    const form = this.makeForm(subject)
    article.append(form)
    form.content.focus()
  }
}

// What the other scripts use of this one. errors.js adds to it.
Thread.kit = {
  Failure, SERVICE, TEXTS, ask, button, formatted, h, languageOf, learnTexts, linkTo, load, me,
  memory, once, recall, relativeTime, report, timeOf,
}

// -- Start --------------------------------------------------------------------

const COUNTED =
  '[data-commentd-count], [data-commentd-views], [data-commentd-likes], [data-commentd-latest]'

/** Fills totals of other pages and the latest comments, where the page wants some. */
function fillCounts() {
  if (!document.querySelector(COUNTED)) return
  load('counts.js').then(({fill}) => fill(Thread.kit), () => {})
}

/** Pages change all the time. Only the parts in which something was added are looked at. */
function countAdded(changes) {
  const isCounted = ({target, addedNodes}) => addedNodes.length && target.querySelector(COUNTED)
  if (changes.some(isCounted)) fillCounts()
}

function start() {
  firstUrls ??= pageUrls()
  const isMissing = !document.querySelector('commentd-thread')
  if (isMissing && !script.closest('head')) script.after(h('commentd-thread'))
  fillCounts()
}

if (!customElements.get('commentd-thread')) {
  customElements.define('commentd-thread', Thread)
  new MutationObserver(countAdded).observe(document, {childList: true, subtree: true})
}
parsed.then(start)
}
