// The settings that an admin changes here, a part of the settings: a form for each group of them.
// In order: Requests, Groups, Fields, Controls.

import {Failure, LANGUAGES, h} from './shared.js'
import {bdi} from './elements.js'
import {makeForm, openDialog, ownPassword} from './forms.js'
import {announce} from './notices.js'
import {call} from './service.js'
import {hasText, language, nameOfLanguage, rowsOf, say, serviceLanguage, text} from './texts.js'

// -- Requests -----------------------------------------------------------------

const patch = (settings, password) =>
  call('PATCH', 'settings?lang=' + language, {settings, ...password && {password}})

/** Changes settings, by their names. Some need the password, which is asked for then. Returns
    nothing if that was cancelled. */
export async function change(settings) {
  try {
    return await patch(settings)
  } catch (error) {
    if (error.code !== 'password_missing') throw error
    return changeWithPassword(settings)
  }
}

const changeWithPassword = settings => new Promise(resolve => {
  const box = openDialog(say('settings'), 'save', [ownPassword()], async ({password}) => {
    resolve(await patch(settings, password))
  })
  box.addEventListener('close', () => resolve())
})

export const labelOf = name => {
  const key = 'set_' + text(name)
  return hasText(key) ? say(key) : text(name)
}

// -- Groups -------------------------------------------------------------------

/** A heading and a form for each group. `afterChange` gets the response to a change. */
export function settingForms({settings, groups}, afterChange) {
  const fields = new Map(rowsOf(settings)
    .filter(({control}) => control)
    .map(setting => [nameOf(setting), makeField(setting)]))

  /** Sends some texts, and shows what the service has now. */
  async function send(texts) {
    const response = await change(texts)
    if (!response) return
    for (const setting of rowsOf(response.settings)) {
      const name = nameOf(setting)
      fields.get(name)?.show(setting, Object.hasOwn(texts, name))
    }
    afterChange(response)
    return response
  }

  const formOf = ({heading, names}) => {
    const own = names.map(name => fields.get(name)).filter(field => field)
    const title = say('group_' + text(heading))
    return [h('h2', {}, title), groupForm(title, own, fields, send)]
  }
  return rowsOf(groups).flatMap(formOf)
}

const nameOf = ({section, key}) => `${text(section)}_${text(key)}`

function groupForm(title, own, fields, send) {
  const isOpen = own.some(({control}) => control)
  const nodes = own.map(({node}) => node)
  if (!isOpen) return h('div', {class: 'settings'}, ...nodes)

  const save = async () => {
    const texts = {}
    for (const field of own) {
      field.blame('')
      if (field.isChanged()) texts[field.name] = field.control.value.trim()
    }
    if (!Object.keys(texts).length) return announce(say('did_edit'))
    try {
      const response = await send(texts)
      if (!response) return
      showUnsaved()
      announce(say('did_edit'), async () => {
        if (!await send(response.was)) throw new Failure('failed') // no password was given
      })
    } catch (error) {
      blameFields(rowsOf(error.faults), fields)
      throw error
    }
  }
  const form = makeForm('save', nodes, save)
  form.classList.add('settings')
  // The button may be below the screen. It comes into view once there is something to save.
  const showUnsaved = () => form.classList.toggle('unsaved', own.some(field => field.isChanged()))
  form.addEventListener('input', showUnsaved)
  form.noValidate = true // the service says what is wrong, in the words of the manual
  // The buttons have the same name in each form.
  form.querySelector('button').setAttribute('aria-description', title)
  return form
}

/** Shows what is wrong beside each field. The first gets the focus. */
function blameFields(faults, fields) {
  for (const {name, text: reason} of [...faults].reverse()) {
    const field = fields.get(name)
    field?.blame(text(reason))
    field?.control?.focus()
  }
}

// -- Fields -------------------------------------------------------------------

/** A setting with its help. One that the file or the environment sets is only shown. */
function makeField({section, key, value, help, written_in: place, control: described}) {
  const name = nameOf({section, key})
  const helpText = h('p', {id: 'help_' + name, class: 'small', lang: serviceLanguage(), dir: 'ltr'},
    inOneLine(text(help)))
  if (text(place)) {
    const node = h('div', {class: 'field'},
      h('p', {}, labelOf(name) + ' ', h('b', {}, shownValue(described, value))),
      h('p', {class: 'small'}, say('set_in', text(place))),
      helpText)
    return {name, node, show() {}, isChanged: () => false, blame() {}}
  }
  const fault = h('p', {id: 'fault_' + name, class: 'alarm', lang: serviceLanguage(), dir: 'ltr'})
  const control = controlOf({name, id: 'setting_' + name}, described)
  control.setAttribute('aria-describedby', `fault_${name} help_${name}`)
  let saved = text(described.text)
  // What was typed here before. To save what stands there drops it.
  let isRefused = !!text(described.fault)
  const isChanged = () => isRefused || control.value.trim() !== saved.trim()
  const blame = reason => {
    fault.textContent = reason
    control.ariaInvalid = reason ? 'true' : null
  }
  blame(text(described.fault))
  return {
    name,
    control,
    isChanged,
    blame,
    // The label is not around the control: its text would hold all choices.
    node: h('div', {class: 'field'},
      h('label', {htmlFor: control.id}, labelOf(name)), control, fault, helpText),
    /** Shows what the service has now. What is being typed stays, unless it `wasSent`. */
    show: ({control: now}, wasSent) => {
      const hasDraft = control.value.trim() !== saved.trim() && !wasSent
      saved = text(now.text)
      isRefused = !!text(now.fault)
      if (!hasDraft) control.value = saved
    },
  }
}

/** Chinese has no space beside its wide punctuation. */
export const inOneLine = lines =>
  lines.replace(/(?<=[，。；：、）])\n|\n(?=（)/g, '').replaceAll('\n', ' ')

const shownValue = ({type, text: value}, plain) =>
  type === 'choice' ? choiceName(text(value)) : bdi(plain || '—')

// -- Controls -----------------------------------------------------------------

const MOST_TEXT = 10_000 // characters

function controlOf(props, {type, text: value, choices, least, most}) {
  if (type === 'choice') {
    return h('select', props, ...choices.map(each => {
      const lang = tagOf(each)
      return h('option', {value: each, selected: each === value, ...lang && {lang}},
        choiceName(each))
    }))
  }
  if (type === 'number') return h('input', {...props, type, min: least, max: most, value})
  const typed = {...props, dir: 'auto', maxLength: MOST_TEXT, value}
  return h(type === 'lines' ? 'textarea' : 'input', typed)
}

/** The language that a choice stands for; '' for any other. The service calls the first kind of
    Chinese `zh`. */
const tagOf = value =>
  LANGUAGES.find(each => [value, value + '-cn'].includes(each.toLowerCase())) ?? ''

/** What a choice is called: a language by its name, others by a text of this page. */
export function choiceName(value) {
  const tag = tagOf(value)
  if (tag) return nameOfLanguage(tag)
  const key = 'choice_' + value
  return hasText(key) ? say(key) : value
}
