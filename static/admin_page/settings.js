// The view of what is still to be done, of the settings, of the admin's own sign-in, and of the
// backup.

import {button, h} from './shared.js'
import {inOneLine, settingForms} from './change_settings.js'
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
    const todo = h('section', {}, ...findings(response))
    const others = h('details', {class: 'others'}, ...inForce(response))
    const afterChange = changed => {
      todo.replaceChildren(...findings(changed))
      others.replaceChildren(...inForce(changed))
    }
    main.append(
      todo, ...settingForms(response, afterChange), ...tagSection(),
      ...inspectionSection(originsIn(response)), ...anotherBlog(), ownSignIn(),
      ...backupSection(), others,
      h('p', {class: 'small'}, `commentd ${text(response.version)}`))
  })
}

/** What is still to be done. */
function findings(response) {
  const items = rowsOf(response.findings)
  const list = items.length ? findingList(items) : h('p', {}, say('no_findings'))
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

/** How a further blog is added. Only the server does that. */
const anotherBlog = () => [
  h('h2', {}, say('another_blog')),
  h('p', {}, say('another_blog_lead')),
  h('pre', {class: 'tag', tabIndex: 0, dir: 'ltr'}, h('code', {}, 'commentd add photos.example')),
]

/** The settings that only the file and the environment change. */
function inForce({settings}) {
  const fixed = rowsOf(settings).filter(({control}) => !control)
  const cells = ({section, key, value, changed, help}) => [
    span(
      bdi(`[${text(section)}] ${text(key)}`),
      changed && ' ',
      changed && badge('changed'),
      h('div', {class: 'small', lang: serviceLanguage(), dir: 'ltr'}, inOneLine(text(help)))),
    bdi(value),
  ]
  return [
    h('summary', {}, say('in_force')),
    table(say('in_file'), [say('setting'), say('value')], fixed.map(cells)),
  ]
}
