// Getting in: by password, by a one-time link, and again when a session has ended. And out.
// In order: Password, One-time link, Out.

import {Failure, button, h} from './shared.js'
import {main} from './elements.js'
import {factorField, inputField, makeForm, openDialog, passwordField} from './forms.js'
import {drawFrame} from './frame.js'
import {announce, busyButton} from './notices.js'
import {ask, captchaToken, errorText, me, rememberMe} from './service.js'
import {language, say} from './texts.js'

let start // of start.js: `begin` draws the page, `enter` shows a view to who is signed in

export function beginWith(given) {
  start = given
}

/** A page with a form instead of a view. */
function showDoor(title, ...children) {
  document.title = say(title)
  main.replaceChildren(h('h1', {}, say(title)), h('div', {class: 'door'}, ...children))
  const fields = [...main.querySelectorAll('input')]
  const target = fields.find(({value}) => !value) ?? fields[0] ?? main.querySelector('button')
  target.focus()
}

// -- Password -----------------------------------------------------------------

const emailField = value =>
  inputField('email', 'email', {type: 'email', required: true, autocomplete: 'username', value})

const credentials = () => [
  emailField(me().email ?? ''),
  passwordField('current-password'),
  h('div', {class: 'factor', hidden: true}, factorField()),
]

/** Signs in. Of an admin with an authenticator app, the form then asks for a code too. */
async function signIn({email, password, factor}, form) {
  rememberMe({email})
  const proof = {email, password, factor, captcha_token: await captchaToken()}
  try {
    rememberMe(await ask('POST', 'login', {...proof, lang: language}))
  } catch (error) {
    if (error.code === 'factor_needed') {
      form.querySelector('.factor').hidden = false
      form.factor.focus()
    }
    throw error
  }
}

let comingBack // one promise for all requests that fail at the same time

/** Resolves when the admin has signed in again, in a dialog above the page. */
export function signInAgain(error) {
  comingBack ??= new Promise((resolve, reject) => {
    const box = openDialog(say('again'), 'signin', credentials(), signIn)
    box.addEventListener('close', () => {
      comingBack = undefined
      if (box.returnValue) return resolve()
      showSignIn()
      reject(error)
    })
  })
  return comingBack
}

export function showSignIn(notice) {
  rememberMe({email: me().email})
  secret = undefined
  drawFrame(start.begin)
  if (notice) announce(say(notice))
  const form = makeForm('signin', credentials(), async filled => {
    await signIn(filled, form)
    start.enter()
  })
  showDoor('signin', form, h('p', {class: 'small'}, say('forgot')))
}

// -- One-time link ------------------------------------------------------------

let secret // of the link

/** Takes a one-time link out of the URL at once, so that it does not stay in the history. */
export function takeLink() {
  const [, found] = /^#link=(.*)/.exec(location.hash) ?? []
  if (found === undefined) return
  secret = found
  history.replaceState(null, '', location.pathname)
}

export const hasLink = () => secret !== undefined

/** Asks for what a link gives: a new admin, or a new password of one. */
export async function openLink() {
  drawFrame(start.begin)
  main.replaceChildren(h('p', {class: 'small'}, say('loading')))
  const show = async () => showClaim(await ask('POST', 'link', {link: secret}))
  try {
    await show()
  } catch (error) {
    showLinkFailed(error, show)
  }
}

function showLinkFailed(error, show) {
  if (error.code === 'link_invalid' || error.status === 400) return showLinkUsed()
  const tryAgain = () => show().catch(another => showLinkFailed(another, show))
  const retry = busyButton('retry', tryAgain, {class: 'main'})
  showDoor('claim', h('p', {role: 'alert'}, errorText(error)), retry)
}

function showLinkUsed() {
  secret = undefined
  const next = me().token
    ? button(say('toqueue'), () => start.enter('queue'), {class: 'main'})
    : button(say('signin'), () => showSignIn(), {class: 'main'})
  showDoor('link_used', h('p', {}, say('link_advice')), next)
}

const MIN_PASSWORD = 8 // characters

/** The form of a link. The service says whose it is (`email`), what it makes of them (`role`),
    whether there is such an account (`known`), and whether that has the role already (`admin`). */
function showClaim({email, role, known, admin}) {
  const name = {required: true, autocomplete: 'nickname', maxLength: 64}
  const advice = h('p', {class: 'small'}, say('password_too_short'))
  const fields = [
    !email && emailField(''),
    !known && inputField('nickname', 'nickname', name),
    h('div', {}, passwordField('new-password', email), advice),
  ]
  const form = makeForm(admin ? 'save' : 'begin', fields, async (filled, {password}) => {
    // Its hash does not tell.
    if ([...password.value].length < MIN_PASSWORD) throw new Failure('password_too_short')
    rememberMe(await ask('POST', 'claim', {link: secret, lang: language, ...filled}))
    secret = undefined
    start.enter(admin || role === 'moderator' ? 'queue' : 'welcome')
    if (admin) announce(say('renewed'))
  })
  const lead = known ? say('renew_lead', email) : say('claim_lead')
  const title = role === 'moderator' ? 'claim_moderator' : 'claim'
  showDoor(admin ? 'renew' : title, h('p', {}, lead), form)
}

// -- Out ----------------------------------------------------------------------

/** Ends all sessions of the admin; this one even if the service can't be reached. */
export async function signOut() {
  let hasEnded = true
  try {
    await ask('POST', 'logout', {})
  } catch (error) {
    hasEnded = error.status === 401 // before
  }
  showSignIn(hasEnded ? 'signedout' : 'signedhere')
}
