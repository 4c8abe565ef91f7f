// Forms, in the page and in dialogs. In order: Fields, Forms.

import {button, h} from './shared.js'
import {span} from './elements.js'
import {errorText, hashed, me} from './service.js'
import {say} from './texts.js'

// -- Fields -------------------------------------------------------------------

export const labelled = (label, control) => h('label', {}, span(label), control)

export const inputField = (name, word, props) => labelled(say(word), h('input', {name, ...props}))

export const textField = (name, label, props) =>
  labelled(label, h('textarea', {name, dir: 'auto', required: true, ...props}))

export const select = (name, values, chosen, props) => h('select', {name, ...props},
  ...values.map(value => h('option', {value, selected: value === chosen}, say(value))))

export const option = (type, props, shown) =>
  h('label', {class: 'option'}, h('input', {type, ...props}), span(shown))

/** One of several: `pairs` of a value and what is shown for it. The first is chosen. */
export const choice = (name, word, pairs) => h('fieldset', {},
  h('legend', {}, say(word)),
  ...pairs.map(([value, shown], index) =>
    option('radio', {name, value, checked: index === 0}, shown)))

/** A field for a new or the current password. The email is for password managers. */
export function passwordField(autocomplete, email, word = 'password') {
  const account = email && h('input', {hidden: true, autocomplete: 'username', value: email})
  const props = {type: 'password', required: true, autocomplete}
  return h('div', {}, account, inputField('password', word, props))
}

/** What an admin does that matters asks for their own password. */
export const ownPassword = () => passwordField('current-password', me().email, 'own_password')

/** A field for a code of the admin's authenticator app, or a recovery code. */
export const factorField = (word = 'factor') =>
  inputField('factor', word, {autocomplete: 'one-time-code', maxLength: 64})

// -- Forms --------------------------------------------------------------------

// What cannot be taken back, or takes something from somebody.
const DANGEROUS = ['block', 'demote', 'dismiss', 'drop', 'drop_all', 'remove_app', 'to_deleted']

/** What is typed in a form, by name. */
async function valuesOf(form) {
  const values = {}
  for (const [name, value] of new FormData(form)) {
    values[name] = name === 'password' ? await hashed(value) : value.trim()
  }
  return values
}

/** A form that calls `work` with its values. Its button is busy meanwhile, and the form shows the
    error if that fails. */
export function makeForm(word, fields, work, cancel) {
  const fault = h('p', {class: 'alarm', role: 'alert'})
  const style = DANGEROUS.includes(word) ? 'main danger' : 'main'
  const submit = h('button', {class: style}, say(word))

  const send = async event => {
    event.preventDefault()
    if (submit.ariaBusy === 'true') return
    submit.ariaBusy = 'true'
    fault.textContent = ''
    try {
      await work(await valuesOf(form), form)
    } catch (error) {
      fault.textContent = errorText(error)
    } finally {
      submit.ariaBusy = 'false'
    }
  }
  const sendByKey = ({key, ctrlKey, metaKey}) => {
    if (key === 'Enter' && (ctrlKey || metaKey)) form.requestSubmit()
  }

  const form = h('form', {onkeydown: sendByKey, onsubmit: send},
    ...fields,
    fault,
    h('div', {class: 'row'}, submit, cancel && button(say('cancel'), cancel)))
  return form
}

/** A form in a dialog, which closes when the work is done. Escape closes it too. */
export function openDialog(title, word, fields, work) {
  const finish = async (...filled) => {
    const next = await work?.(...filled)
    box.close('done') // gives the focus back to an element that may be gone
    next?.focus()
  }
  const cancel = work && (() => box.close())
  const box = h('dialog', {'aria-label': title, onclose: () => box.remove()},
    h('h2', {}, title),
    makeForm(word, fields, finish, cancel))
  document.body.append(box)
  box.showModal()
  return box
}
