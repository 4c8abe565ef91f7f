// Captchas of others, loaded when a reader begins to write where the owner has chosen one. They work
// in the light DOM alone, so their box is slotted into the form.

const SCRIPTS = {
  turnstile: () => ['https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit'],
  hcaptcha: () => ['https://js.hcaptcha.com/1/api.js?render=explicit'],
  // The second is for China. `render` names a key of version 3; one of version 2 is told by the error.
  recaptcha: key => ['www.google.com', 'www.recaptcha.net'].map(host => `https://${host}/recaptcha/api.js?render=${key}`),
}
const NAMES = {turnstile: 'turnstile', hcaptcha: 'hcaptcha', recaptcha: 'grecaptcha'}

let policy

/** The address of a script, in the form that pages with Trusted Types want. */
function scriptURL(src) {
  try {
    policy ??= window.trustedTypes.createPolicy('commentd', {createScriptURL: each => each})
    return policy.createScriptURL(src)
  } catch {
    return src // the browser has no Trusted Types, or the page allows no policy of this name
  }
}

const loaded = address => new Promise((onload, onerror) => {
  const src = scriptURL(address)
  document.querySelector('script').before(Object.assign(document.createElement('script'), {src, onload, onerror}))
})

/** What the provider's script leaves on the page. An element with its name as id stands there too, and is not it. */
function provided(provider) {
  const there = window[NAMES[provider]]
  return typeof (there?.ready ?? there?.render) === 'function' ? there : undefined
}

async function api(provider, key) {
  for (const src of SCRIPTS[provider](encodeURIComponent(key))) {
    try {
      if (!provided(provider)) await loaded(src)
      break
    } catch {}
  }
  const there = provided(provider)
  if (!there) throw {code: 'captcha_down'}
  if (there.ready && provider === 'recaptcha') await new Promise(there.ready)
  return there
}

/** A token of the provider, once the reader has solved what it asks, or a function that gets one. */
export async function captcha(thread, kit, provider, {site_key, action}) {
  const there = await api(provider, site_key)
  if (provider === 'recaptcha') {
    const execute = () => there.execute(site_key, {action})
    try {
      await execute()
      return execute // its tokens live two minutes: another one when the comment is sent
    } catch {} // of version 2
  }
  return new Promise((callback, refused) => {
    const box = document.createElement('div'), slot = document.createElement('slot')
    box.slot = slot.name = 'captcha'
    thread.querySelector('[slot=captcha]')?.remove()
    thread.$('slot[name=captcha]')?.remove()
    thread.append(box)
    // The box is where the reader is, as long as there is one.
    const place = form => form?.querySelector('.button').parentNode.before(slot)
    place(thread.$('form:focus-within') ?? thread.$('form.open'))
    const ends = new AbortController()
    thread.shadowRoot.addEventListener('focusin', ({target}) => {
      if (box.isConnected) place(target.closest('form'))
      else ends.abort()
    }, ends)
    const failed = () => { thread.spent(); refused({code: 'captcha_failed'}) }
    there.render(box, {
      sitekey: site_key, action, callback,
      'error-callback': failed, 'expired-callback': () => thread.spent(),
    })
  })
}
