// Hosted captchas, loaded when a reader begins to write where the owner has chosen one. They do not
// work in a shadow root, so their box stands outside and is slotted into the form.

const SCRIPTS = {
  turnstile: () => ['https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit'],
  hcaptcha: () => ['https://js.hcaptcha.com/1/api.js?render=explicit'],
  // The second host is for China. `render` takes a key of version 3; with one of version 2,
  // `execute` throws.
  recaptcha: key => ['www.google.com', 'www.recaptcha.net'].map(
    host => `https://${host}/recaptcha/api.js?render=${key}`),
}
const NAMES = {turnstile: 'turnstile', hcaptcha: 'hcaptcha', recaptcha: 'grecaptcha'}

let policy

/** The URL of a script, in the type that pages with Trusted Types require. */
function scriptURL(src) {
  try {
    policy ??= window.trustedTypes.createPolicy('commentd', {createScriptURL: each => each})
    return policy.createScriptURL(src)
  } catch {
    return src // the browser has no Trusted Types, or the page allows no policy of this name
  }
}

const loadScript = url => new Promise((onload, onerror) => {
  const src = scriptURL(url)
  const script = Object.assign(document.createElement('script'), {src, onload, onerror})
  document.querySelector('script').before(script)
})

/** The provider's API. On a page with an element of that id, the global may be that element. */
function loadedApi(provider) {
  const api = window[NAMES[provider]]
  return typeof (api?.ready ?? api?.render) === 'function' ? api : undefined
}

async function loadApi({Failure}, provider, key) {
  for (const src of SCRIPTS[provider](encodeURIComponent(key))) {
    try {
      if (!loadedApi(provider)) await loadScript(src)
      break
    } catch {
      // The console has the URL and the reason.
    }
  }
  const api = loadedApi(provider)
  if (!api) throw new Failure('captcha_down')
  if (api.ready && provider === 'recaptcha') await new Promise(api.ready)
  return api
}

/** A token of the provider, when the reader has solved the captcha, or a function that gets one. */
export async function captcha(thread, kit, {provider, site_key, action}) {
  const api = await loadApi(kit, provider, site_key)
  if (provider === 'recaptcha') {
    const execute = () => api.execute(site_key, {action})
    try {
      await execute()
      return execute // a token is valid for two minutes, so each comment gets a new one
    } catch {
      // It is a key of version 2, which shows a box.
    }
  }
  return new Promise((callback, reject) => {
    const box = document.createElement('div')
    const slot = document.createElement('slot')
    box.slot = slot.name = 'captcha'
    thread.querySelector('[slot=captcha]')?.remove()
    thread.$('slot[name=captcha]')?.remove()
    thread.append(box)
    // The box moves to the form in which the reader writes.
    const place = form => form?.querySelector('.button')?.parentNode.before(slot)
    place(thread.$('form:focus-within') ?? thread.$('form.open'))
    const controller = new AbortController()
    thread.shadowRoot.addEventListener('focusin', ({target}) => {
      if (box.isConnected) place(target.closest('form'))
      else controller.abort()
    }, controller)
    const drop = () => thread.use('writing.js', 'dropCaptchaToken')
    const fail = () => {
      drop()
      reject(new kit.Failure('captcha_failed'))
    }
    api.render(box, {
      sitekey: site_key, action, callback, 'error-callback': fail, 'expired-callback': drop,
    })
  })
}
