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

/** Puts a button for each provider below the title of the account's panel. What comes back goes to
    `take`, with the secret. */
export async function offer(thread, kit, panel, take) {
  const title = panel.querySelector('b')
  const [made] = await Promise.all([newSecret(kit), learn(thread, kit)])
  if (!title.isConnected) return // the panel shows another step
  const buttons = thread.settings.providers.map(({name, label}) =>
    kit.button(thread.say('provider_with', label), () => begin(thread, kit, name, made, take), {
      class: 'provider',
    }))
  title.after(kit.h('div', {class: 'row providers'}, ...buttons))
}

/** Goes to a provider: in a window of its own or, where the browser opens none, in this one. */
function begin(thread, kit, name, {secret, hash}, take) {
  const {origin, pathname, search} = location
  const whole = origin + pathname + search
  const page = whole.length > MOST ? origin + pathname : whole
  const query = new URLSearchParams({page, secret_hash: hash, lang: thread.language})
  const url = `${SERVICE}auth/with/${name}?${query}`
  // For the way back to this page, which may also happen in the other window.
  kit.keep(kit, 'login', {secret, hash: location.hash, at: Date.now()})
  const opened = open('', 'commentd-login', 'popup,width=520,height=680')
  if (opened) listen(kit, opened, outcome => take({...outcome, secret}))
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

/** Shows below a part of the panel what else signs a reader in, with a button that parts each. */
export async function identities(thread, kit, above, profile, act) {
  await learn(thread, kit)
  const rowOf = ({id, provider}) => {
    const part = async () => {
      await kit.send(kit, 'me/identities', {id}, 'DELETE')
      row.remove()
    }
    const button = kit.button(thread.say('provider_part'), () => act(part, row), {class: 'more'})
    button.ariaLabel = `${button.textContent}: ${provider}`
    const text = thread.say('provider_joined', provider)
    const row = kit.h('p', {class: 'small identity'}, text, ' ', button)
    return row
  }
  above.after(...profile.identities.map(rowOf))
}

let siteToken // the last one that was sent: each is good once

/** Signs a reader in whom the owner's own site names, by the attribute `site-token`. */
export async function enterBySite(thread, kit, form) {
  const token = thread.getAttribute('site-token')
  if (token === siteToken) return
  siteToken = token
  const {secret, hash} = await newSecret(kit)
  const body = {site_token: token, secret_hash: hash, lang: thread.language}
  const [{voucher}] = await Promise.all([kit.send(kit, 'auth/site', body), learn(thread, kit)])
  thread.use('account.js', 'account', form, {voucher, secret})
}

/** Waits until the thread shows its page. */
const shown = thread => new Promise(resolve => {
  if (thread.totals?.page) resolve()
  else thread.addEventListener('commentd:loaded', resolve, {once: true})
})

/** The browser has come back to the page itself. What it brings leaves the address bar at once. */
export async function comeBack(thread, kit) {
  const outcome = outcomeOf(location.hash)
  const {secret, hash, at} = kit.recall('login', {})
  kit.keep(kit, 'login')
  if (hash) location.replace(hash) // a route, or a comment
  else history.replaceState(history.state, '', location.pathname + location.search)
  if (!secret || Date.now() - at > LIFE) return // nobody began this here
  await learn(thread, kit)
  await shown(thread)
  thread.use('account.js', 'account', thread.$('form'), {...outcome, secret})
}
