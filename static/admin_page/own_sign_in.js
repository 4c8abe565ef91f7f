// The admin's own sign-in, a part of the settings: an authenticator app, and where they are signed
// in. In order: Section, Authenticator app, Sessions.

import {h} from './shared.js'
import {badge, bdi, dots, line, removeRow, span, when} from './elements.js'
import {factorField, openDialog, ownPassword} from './forms.js'
import {busyButton, fill} from './notices.js'
import {call, me, rememberMe} from './service.js'
import {language, rowsOf, say, text} from './texts.js'

// -- Section ------------------------------------------------------------------

export function ownSignIn() {
  const section = h('section')
  draw(section)
  return section
}

/** Draws it anew. Returns the element that gets the focus. */
async function draw(section) {
  const heading = h('h2', {tabIndex: -1}, say('own_signin'))
  section.replaceChildren(heading)
  await fill(section, () => call('GET', 'sign-in'), found => {
    section.append(...appParts(section, found), ...sessionParts(found))
  })
  return heading
}

// -- Authenticator app --------------------------------------------------------

function appParts(section, {has_app, recovery_codes}) {
  const word = has_app ? 'remove_app' : 'add_app'
  const open = has_app ? openRemoval : openOffer
  return [
    h('p', {}, has_app ? say('app_on', recovery_codes) : say('app_off')),
    h('p', {}, busyButton(word, () => open(section), has_app ? {class: 'danger'} : {})),
  ]
}

/** Offers a key. The service stores it when the app has shown a code of it. */
async function openOffer(section) {
  const {key, link, picture} = await call('POST', 'app/key', {})
  const fields = [
    h('p', {}, say('app_lead')),
    h('p', {}, h('img', {class: 'qr', src: picture, alt: say('app_picture')})),
    h('p', {class: 'small'}, say('app_key'), ' ', h('code', {dir: 'ltr'}, inFours(key))),
    h('p', {class: 'small'}, h('a', {href: link}, say('app_here'))),
    factorField('app_code'),
    ownPassword(),
  ]
  openDialog(say('add_app'), 'save', fields, async ({factor, password}) => {
    const {token, recovery_codes} = await call('POST', 'app', {key, factor, password})
    rememberMe({...me(), token}) // all other sessions have ended
    showCodes(recovery_codes)
    await draw(section)
  })
}

const inFours = key => key.replace(/.{4}(?=.)/g, '$& ')

function showCodes(codes) {
  const list = h('ul', {class: 'codes', dir: 'ltr'},
    ...codes.map(code => h('li', {}, h('code', {}, text(code)))))
  openDialog(say('recovery'), 'recovery_kept', [h('p', {}, say('recovery_lead')), list])
}

function openRemoval(section) {
  const fields = [factorField(), ownPassword()]
  openDialog(say('remove_app'), 'remove_app', fields, async ({factor, password}) => {
    const {token} = await call('DELETE', 'app', {factor, password})
    rememberMe({...me(), token})
    return draw(section)
  })
}

// -- Sessions -----------------------------------------------------------------

const sessionParts = ({sessions}) => [
  h('h2', {}, say('sessions')),
  h('ul', {class: 'list'}, ...rowsOf(sessions).map(sessionRow)),
]

function sessionRow(session) {
  const {id, device, ip, country, seen_at, this: isThis} = session
  const end = async () => {
    await call('DELETE', 'sessions/' + id)
    return removeRow(row)
  }
  const row = line(
    h('p', {class: 'row'},
      h('b', {}, device ? bdi(device) : say('session_unknown')), isThis && badge('session_this')),
    dots(
      country && nameOfCountry(text(country)),
      ip && bdi(ip),
      span(say('seen'), ' ', when(seen_at))),
    isThis ? '' : busyButton('session_end', end, {class: 'danger'}))
  return row
}

const nameOfCountry = code => new Intl.DisplayNames(language, {type: 'region'}).of(code)
