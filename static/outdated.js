// For pages that are older than the service: it has been updated, and the scripts of their version
// are gone. `embed.js` loads this when a file could not be loaded.
// Any version of the service sends it to any version of the widget. So these stay until 2.0:
// `reasonFor` with what it takes and returns, of the kit `TEXTS`, `button`, `h` and `report`, of a
// thread `language` and `say`, of a form `draft`, and the class `failed`.

const SERVICE = new URL('.', import.meta.url)
const threads = () => document.querySelectorAll('commentd-thread')

let preparation // what is done once before readers are asked

/** Why a file could not be loaded, if the service has no files of that version any more: the code
    and `offer`. Of a script no browser tells it, so the service is asked again. `script` is the URL
    of embed.js. */
export async function reasonFor(kit, url, script) {
  const signal = AbortSignal.timeout(20000)
  const response = await fetch(url, {credentials: 'omit', cache: 'no-store', signal})
  const {code} = response.ok ? {} : await response.json()
  if (code !== 'version_gone') return
  kit.report('the service has been updated: please load the page again', url)
  addEventListener('pagehide', keepDrafts)
  preparation ??= Promise.all([learnTexts(kit), renew(script)])
  await preparation
  return {code, offer: thread => offer(thread, kit)}
}

/** The texts that a widget of that version lacks. */
async function learnTexts({TEXTS}) {
  for (const {language} of threads()) {
    const url = `${SERVICE}words/${language}.json`
    const response = await fetch(url, {credentials: 'omit', cache: 'no-store'})
    const {version_gone, reload} = await response.json()
    TEXTS[language] = {...TEXTS[language], version_gone, reload}
  }
}

/** Has the browser replace embed.js in its cache, so that the page gets the new one when it is
    loaded again. It is asked for as a page does it, since otherwise the browser would keep both. */
const renew = script =>
  fetch(script, {mode: 'no-cors', credentials: 'include', cache: 'reload'}).catch(() => {})

/** Asks a reader to load the page again, where the widget would offer to try again. */
function offer(thread, {button, h}) {
  const reload = () => location.reload()
  const node = h('div', {class: 'failed'},
    h('p', {role: 'alert'}, thread.say('version_gone')),
    button(thread.say('reload'), reload, {class: 'more'}))
  return Object.assign(node, {isFinal: true})
}

/** Keeps what is written in forms for which writing.js, which does that, did not come. */
function keepDrafts() {
  for (const {shadowRoot} of threads()) {
    for (const {value, form} of shadowRoot.querySelectorAll('form > .field')) {
      try {
        if (value) sessionStorage.setItem(SERVICE + form.draft, JSON.stringify(value))
      } catch {
        // The reader blocks storage.
      }
    }
  }
}
