// Requests to the service, and what is said of one that failed. In order: Admin, Requests, Errors.

import {Failure, duration, keep, load, recall, report} from './shared.js'
import {hasText, language, say, text} from './texts.js'

// -- Admin --------------------------------------------------------------------

const STORED_AS = 'commentd admin'

/** Who is signed in: {email, nickname, token, role}. Of somebody who signed out, the email is
    left. */
export const me = () => recall(STORED_AS, {})
/** Whether the queue is all that they see. */
export const isModerator = () => me().role === 'moderator'
export const rememberMe = admin => keep(STORED_AS, admin)

// -- Requests -----------------------------------------------------------------

const PATIENCE = 20e3 // ms
const LONGER = {backup: 3600e3, inspection: 60e3} // by path

/** The JSON of a response, or the file. Throws a `Failure`, whose `details` are the fields of the
    response, its status and the seconds to wait. */
export async function ask(method, path, body) {
  const {token} = me()
  const isFile = path === 'backup'
  const headers = {}
  if (body) headers['Content-Type'] = 'application/json'
  if (token) headers.Authorization = 'Bearer ' + token
  const signal = AbortSignal.timeout(LONGER[path] ?? PATIENCE)
  const how = {method, headers, signal, body: JSON.stringify(body), credentials: 'omit'}
  let response
  let content
  try {
    response = await fetch('admin/' + path, how)
    content = await (isFile && response.ok ? response.blob() : response.json())
  } catch (cause) {
    throw new Failure('offline', {cause}) // a response without JSON comes from a proxy
  }
  if (response.ok) return content
  const {code = 'failed', ...details} = Object(content)
  const retry = Number(response.headers.get('Retry-After')) || 60
  throw new Failure(code, {...details, status: response.status, retry})
}

const early = new Map() // by path: the promise of what was asked for before its view was there

/** Asks for what a view will need, while its script is still coming. */
export function askAhead(path) {
  const response = ask('GET', path)
  early.set(path, response)
  response.catch(() => {}) // the view gets the error
}

/** What was asked for ahead, once, or else a new request. */
function askOnce(method, path, body) {
  const response = method === 'GET' && early.get(path)
  early.delete(path)
  return response || ask(method, path, body)
}

/** Whether a request failed because nobody is signed in any more, or no admin. */
export const hasEnded = ({status, code}) => status === 401 || code === 'not_admin'

let signInAgain

/** start.js says what is done when a session has ended: it resolves when the admin is back. */
export function whenSessionEnds(act) {
  signInAgain = act
}

/** The same for an admin who is signed in. Where the session has ended, they sign in again. */
export async function call(method, path, body) {
  try {
    return await askOnce(method, path, body)
  } catch (error) {
    if (!hasEnded(error)) throw error
    await signInAgain(error)
    return ask(method, path, body)
  }
}

/** Admins prove with our own proof of work that they are no robot, whatever readers use. */
export async function captchaToken() {
  const challenge = await ask('GET', 'captcha')
  if (!challenge.parameters) return 'none'
  const {solve} = await load('proof.js')
  return solve(challenge)
}

/** Passwords leave the browser as a hash only. */
export async function hashed(password) {
  const {digest} = await load('proof.js')
  return digest(password)
}

// -- Errors -------------------------------------------------------------------

/** The text of an error, by its code or the status of the response. Without a code, a script has a
    fault, which is logged. */
export function errorText(failure) {
  const {code, error, status, retry} = failure
  if (!code) report('the admin page has a fault: ' + failure.message, failure)
  const key = [code, status].find(each => each !== 'failed' && hasText(each))
  if (key === 'block_wide') return say(key, failure.count, failure.total)
  if (key) return say(key, duration(retry, language))
  // The service's own texts are Chinese.
  return (language === 'zh-CN' && text(error)) || say('failed')
}
