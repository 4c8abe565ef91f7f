// Signing in with an identity provider, such as GitHub: a button for each, the window that one
// opens, and the way back to the page where the browser opens no window. What else is asked,
// account.js shows. Loaded where the blog has a provider, when a reader wants to sign in.

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

const SERVICE = new URL('.', import.meta.url)
const LIFE = 600e3 // ms: after that, the service has forgotten what was begun
const MOST = 2000 // characters of a page's URL

const learn = (thread, kit) => kit.learnTexts(thread.language, 'provider-' + thread.language)

/** What the service says of a way back, in a fragment or in a message: {voucher} or {refusal}. */
function outcomeOf(text) {
  const found = new URLSearchParams(text.replace(/^#/, ''))
  return {voucher: found.get('commentd-voucher'), refusal: found.get('commentd-refusal')}
}

/** A secret that only this page knows, and its hash. What comes back is worth nothing without. */
async function newSecret(kit) {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const secret = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
  const {digest} = await kit.load('proof.js')
  return {secret, hash: await digest(secret)}
}

/** A row of buttons, one for each provider. The mark of each is a letter: the signs of companies
    have rules of their own, and many servers have none. */
function providerRow(thread, {button, h}, providers, press) {
  const buttons = providers.map(({name, label}) => {
    const made = button('', () => press(name), {class: 'provider'})
    const mark = h('span', {class: 'mark', ariaHidden: true}, [...label][0].toUpperCase())
    made.append(mark, thread.say('provider_with', label))
    return made
  })
  return h('div', {class: 'row providers'}, ...buttons)
}

/** Puts a button for each provider below the title of the account's panel. What comes back goes to
    `take`, with the secret. */
export async function offer(thread, kit, panel, take) {
  const title = panel.querySelector('b')
  const [made] = await Promise.all([newSecret(kit), learn(thread, kit)])
  if (!title.isConnected) return // the panel shows another step
  const press = name => begin(thread, kit, name, made, take)
  title.after(providerRow(thread, kit, thread.settings.providers, press))
}

/** Asks who is signed in to show it again, before a `step` that needs it: with a provider, since
    the account has no password, and no code arrives. */
export async function prove(thread, kit, panel, joined, step, back, take) {
  const [made] = await Promise.all([newSecret(kit), learn(thread, kit)])
  const {h} = kit
  const usable = joined.filter(({name}) => name)
  const providers = usable.map(({name, provider}) => ({name, label: provider}))
  const row = providerRow(thread, kit, providers, name => {
    if (name === 'site') take(voucherOfSite(thread, kit, made, true))
    else begin(thread, kit, name, made, take, step)
  })
  panel.replaceChildren(
    h('b', {}, thread.say(step)), h('p', {class: 'small'}, thread.say('provider_again')), row,
    h('div', {class: 'row'}, kit.button(thread.say('back'), back)))
  panel.ariaLabel = thread.say(step)
  panel.querySelector('button').focus()
}

/** Goes to a provider: in a window of its own or, where the browser opens none, in this one. A
    `step` of a reader who is signed in goes on when they come back. */
function begin(thread, kit, name, {secret, hash}, take, step) {
  const {origin, pathname, search} = location
  const whole = origin + pathname + search
  const page = whole.length > MOST ? origin + pathname : whole
  const query = new URLSearchParams({page, secret_hash: hash, lang: thread.language})
  if (step && step !== 'picture') query.set('confirm', 'yes')
  const url = `${SERVICE}auth/with/${name}?${query}`
  // For the way back to this page, which may also happen in the other window.
  kit.keep(kit, 'login', {secret, hash: location.hash, at: Date.now(), step})
  const opened = open('', 'commentd-login', 'popup,width=520,height=680')
  if (opened) listen(kit, opened, outcome => take({...outcome, secret, step}))
  if (opened) follow(kit, url, 'commentd-login')
  else follow(kit, url + '&way=page')
}

/** Goes there as by a link of this page, which says where it is, whatever the policy of the blog.
    The service wants to know: a link elsewhere could have the secret of somebody else. */
function follow(kit, href, target = '') {
  const link = kit.h('a', {href, target, referrerPolicy: 'origin', hidden: true})
  document.body.append(link)
  link.click()
  link.remove()
}

const listening = {} // stop: what ends it

/** Waits for what comes of another window. If a page on the way has cut it off, that window itself
    signs in, on this blog, and this page finds the token in the storage. */
function listen(kit, opened, take) {
  listening.stop?.()
  const controller = new AbortController()
  const {signal} = controller
  listening.stop = () => controller.abort()
  addEventListener('message', ({origin, source, data}) => {
    if (origin !== SERVICE.origin || source !== opened) return
    listening.stop()
    kit.keep(kit, 'login')
    take(outcomeOf(data))
  }, {signal})
  addEventListener('storage', ({key}) => {
    if (key !== SERVICE + 'me' || !kit.me().token) return
    listening.stop()
    take({})
  }, {signal})
}

/** Shows below a part of the panel what else signs a reader in, with a button that parts each and,
    where the blog has pictures, one that takes its picture. `take` gets what a provider brings for
    that. */
export async function identities(thread, kit, above, profile, act, take) {
  const [made] = await Promise.all([newSecret(kit), learn(thread, kit)])
  const {button, h} = kit
  const hasPictures = 'picture' in profile

  function rowOf({id, provider, name}) {
    async function part() {
      const {token} = await kit.send(kit, 'me/identities', {id}, 'DELETE')
      kit.keep(kit, 'me', {...kit.me(), token})
      row.remove()
    }
    const named = (word, press) => {
      const text = thread.say(word)
      return button(text, press, {class: 'more', ariaLabel: `${text}: ${provider}`})
    }
    const usePicture = () => begin(thread, kit, name, made, take, 'picture')
    const canTake = hasPictures && thread.settings.providers?.some(each => each.name === name)
    const row = h('p', {class: 'small identity'}, thread.say('provider_joined', provider), ' ',
      named('provider_part', () => act(part, row)),
      canTake && named('provider_use', usePicture))
    return row
  }

  above.after(...profile.identities.map(rowOf))
}

// The owner's own site, which names its reader by the attribute `site-token`

let siteToken // the last one that was sent: each is good once

const tokenOf = thread => thread.getAttribute('site-token') ?? ''

/** Who the owner's site says that the reader is; undefined if it names nobody. */
function subjectOf(thread) {
  try {
    return JSON.parse(atob(tokenOf(thread).split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))).sub
  } catch {
    // There is no token, or it can't be read.
  }
}

/** What the service gives for the token of the site: {voucher, secret}. */
async function voucherOfSite(thread, kit, {secret, hash}, confirms) {
  siteToken = tokenOf(thread)
  const body = {site_token: siteToken, secret_hash: hash, lang: thread.language, confirms}
  const {voucher} = await kit.send(kit, 'auth/site', body)
  return {voucher, secret}
}

/** Signs a reader in whom the owner's own site names. They asked for nothing: if that fails, only
    developers hear of it. */
export async function enterBySite(thread, kit, form) {
  if (!tokenOf(thread) || tokenOf(thread) === siteToken) return
  siteToken = tokenOf(thread) // the token is sent once, though two forms ask
  const site = subjectOf(thread)
  try {
    const [made] = await Promise.all([newSecret(kit), learn(thread, kit)])
    const brought = await voucherOfSite(thread, kit, made) // last: a token is good once
    thread.use('account.js', 'account', form, {...brought, site})
  } catch (error) {
    kit.report('the token of the site signs nobody in', error)
    if (!error.status) siteToken = undefined // no response: the next form or list tries again
  }
}

const watched = new WeakSet()

/** Signs a reader out whom the owner's site has named, when it names nobody any more, or somebody
    else. */
export function watchSite(thread, kit) {
  const look = () => {
    const {site, token} = kit.me()
    if (!token || !site || site === subjectOf(thread)) return
    thread.use('account.js', 'account', thread.$('form'), 'leave')
  }
  look()
  if (watched.has(thread)) return
  watched.add(thread)
  new MutationObserver(look).observe(thread, {attributeFilter: ['site-token']})
}

/** Waits until the thread shows its page. */
const shown = thread => new Promise(resolve => {
  if (thread.totals?.page) resolve()
  else thread.addEventListener('commentd:loaded', resolve, {once: true})
})

/** The browser has come back to the page itself. What it brings leaves the address bar at once. */
export async function comeBack(thread, kit) {
  const outcome = outcomeOf(location.hash)
  const {secret, hash, at, step} = kit.recall('login', {})
  kit.keep(kit, 'login')
  if (hash) location.replace(hash) // a route, or a comment
  else history.replaceState(history.state, '', location.pathname + location.search)
  if (!secret || Date.now() - at > LIFE) return // nobody began this here
  await learn(thread, kit)
  await shown(thread)
  thread.use('account.js', 'account', thread.$('form'), {...outcome, secret, step})
}
