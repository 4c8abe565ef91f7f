// The view of what is still to be set up, of the admin's own sign-in, of the backup, and of the
// settings in force.

import {button, h} from './shared.js'
import {badge, bdi, main, span, table} from './elements.js'
import {findingList, inspectionSection} from './findings.js'
import {openDialog, ownPassword} from './forms.js'
import {fill} from './notices.js'
import {ownSignIn} from './own_sign_in.js'
import {call} from './service.js'
import {tagSection} from './tag.js'
import {language, rowsOf, say, serviceLanguage, text} from './texts.js'

export function draw() {
  fill(main, () => call('GET', 'settings?lang=' + language), response => {
    main.append(
      ...findings(response),
      ...inspectionSection(originsIn(response)),
      ...tagSection(),
      ownSignIn(),
      ...backupSection(),
      ...inForce(response))
  })
}

/** What `commentd check` finds. */
function findings(response) {
  const open = rowsOf(response.findings).filter(({level}) => level !== 'ok')
  const list = open.length ? findingList(open) : h('p', {}, say('no_findings'))
  return [h('h2', {}, say('findings')), list]
}

const originsIn = ({settings}) =>
  text(rowsOf(settings).find(({section, key}) => section === 'site' && key === 'origins')?.value)

const KEPT_FOR = 60e3 // ms: until then the browser has taken the file

async function download({password}) {
  const href = URL.createObjectURL(await call('POST', 'backup', {password}))
  h('a', {href, download: `commentd-${new Date().toISOString().slice(0, 10)}.db`}).click()
  setTimeout(() => URL.revokeObjectURL(href), KEPT_FOR)
}

function backupSection() {
  const open = () => openDialog(say('backup'), 'download', [ownPassword()], download)
  return [
    h('h2', {}, say('backup')),
    h('p', {}, say('backup_lead')),
    button(say('download'), open, {class: 'main'}),
  ]
}

/** Chinese has no space beside its wide punctuation. */
const inOneLine = lines =>
  lines.replace(/(?<=[，。；：、）])\n|\n(?=（)/g, '').replaceAll('\n', ' ')

function inForce({settings, version}) {
  const cells = ({section, key, value, changed, help}) => [
    span(
      bdi(`[${text(section)}] ${text(key)}`),
      changed && ' ',
      changed && badge('changed'),
      h('div', {class: 'small', lang: serviceLanguage(), dir: 'ltr'}, inOneLine(text(help)))),
    bdi(value),
  ]
  const caption = span(say('in_force'), h('p', {class: 'small'}, say('in_file')))
  return [
    table(caption, [say('setting'), say('value')], rowsOf(settings).map(cells)),
    h('p', {class: 'small'}, `commentd ${text(version)}`),
  ]
}
