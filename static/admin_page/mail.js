// The view of the emails and messages that could not be delivered.

import {button, h} from './shared.js'
import {bdi, dots, line, main, removeRow, span, when} from './elements.js'
import {openDialog} from './forms.js'
import {refreshCounts, show} from './frame.js'
import {makeList} from './lists.js'
import {announce, busyButton} from './notices.js'
import {call} from './service.js'
import {language, rowsOf, say, serviceLanguage, text} from './texts.js'

export function draw() {
  const forAll = h('div', {class: 'acts row for-all'})
  const drawButtons = ({emails}) => {
    const rows = rowsOf(emails)
    if (rows.length > 1) forAll.append(...buttonsForAll(rows))
  }
  main.append(forAll, makeList({
    path: 'outbox', key: 'emails', query: {lang: language},
    draw: messageRow, none: 'none_mail', then: drawButtons,
  }))
}

/** Asks the service and says that it is done. The menu shows how many are left. */
async function ask(method, path, body, word) {
  await call(method, path, body)
  announce(say(word))
  refreshCounts()
}

function buttonsForAll(emails) {
  const retry = async () => {
    await ask('POST', 'outbox', {}, 'did_retry')
    show()
  }
  const drop = async () => {
    await ask('DELETE', 'outbox', undefined, 'did_drop')
    return show()
  }
  const openDrop = () =>
    openDialog(say('drop_all_sure'), 'drop_all', [], drop)
  const dropButton = button(say('drop_all'), openDrop, {class: 'danger'})
  const someCanBeSent = emails.some(({can_retry}) => can_retry)
  return someCanBeSent ? [busyButton('retry_all', retry), dropButton] : [dropButton]
}

function messageRow({id, recipient, subject, tries, failure, hint, due_at, can_retry}) {
  const isCall = !recipient.includes('@')
  const title = () => {
    if (isCall) return span(say('hooked'))
    return text(subject) ? bdi(subject) : span(say('code_email'))
  }
  const next = due_at ? span(say('next'), ' ', when(due_at)) : say('given_up')

  const finish = async (method, word, body) => {
    await ask(method, 'outbox/' + id, body, word)
    const left = row.parentNode.querySelectorAll('.line').length - 1
    if (left < 2) main.querySelector('.for-all').replaceChildren()
    return removeRow(row)
  }
  const drop = () => finish('DELETE', 'did_drop')
  const openDrop = () =>
    openDialog(say(isCall ? 'drop_hook' : 'drop_sure'), 'drop', [title()], drop)

  const notes = h('div', {},
    dots(recipient === 'webhook' ? say('webhook') : bdi(recipient), say('tries', tries), next),
    text(failure) && h('p', {class: 'failure'}, bdi(failure)),
    text(hint) && h('p', {class: 'hint', lang: serviceLanguage(), dir: 'ltr'}, hint))
  const row = line(
    title(),
    notes,
    can_retry && busyButton('retry', () => finish('POST', 'did_retry', {})),
    button(say('drop'), openDrop, {class: 'danger'}))
  return row
}
