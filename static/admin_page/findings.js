// What `commentd check` finds: of the settings, and of a page of the blog, which the owner names.

import {h} from './shared.js'
import {inputField, makeForm} from './forms.js'
import {call} from './service.js'
import {language, rowsOf, say, serviceLanguage, text} from './texts.js'

export const findingList = findings =>
  h('ul', {class: 'list'}, ...rowsOf(findings).map(({level, topic, text: finding}) => {
    const isAlarm = ['fail', 'warn'].includes(level)
    return h('li', {class: 'line', dir: 'ltr'}, h('p', {},
      isAlarm && h('span', {class: 'badge alarm'}, say('level_' + level)),
      ' ',
      h('span', {lang: serviceLanguage()}, h('b', {}, text(topic)), ' ', text(finding))))
  }))

/** A form that has the service look at a page. `origins`: those of the blog, as the settings have
    them. */
export function inspectionSection(origins) {
  const result = h('div', {role: 'status'})
  const inspect = async ({url}) => {
    result.replaceChildren(say('loading'))
    try {
      const {findings} = await call('POST', 'inspection', {url, lang: language})
      result.replaceChildren(findingList(findings))
    } catch (error) {
      result.replaceChildren()
      throw error
    }
  }
  const [origin] = origins.split(', ')
  // No value: the first page of a blog has no comments, and would be found wrong.
  const field = inputField('url', 'post_url', {
    type: 'url', required: true, maxLength: 2048, dir: 'ltr',
    placeholder: origin && origin + '/…',
  })
  return [
    h('h2', {}, say('inspection')),
    h('p', {}, say('inspection_lead')),
    makeForm('inspect', [field], inspect),
    result,
  ]
}
