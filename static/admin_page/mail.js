// The view of the emails and messages that could not be delivered.

import {button} from './shared.js'
import {bdi, dots, line, main, removeRow, span, when} from './elements.js'
import {openDialog} from './forms.js'
import {makeList} from './lists.js'
import {announce, busyButton} from './notices.js'
import {call} from './service.js'
import {say, text} from './texts.js'

export function draw() {
  main.append(makeList({path: 'outbox', key: 'emails', draw: messageRow, none: 'none_mail'}))
}

function messageRow({id, recipient, subject, tries, failure, due_at, can_retry}) {
  const isCall = recipient === 'webhook'
  const title = () => isCall ? span(say('hooked')) : bdi(subject)
  const next = due_at ? span(say('next'), ' ', when(due_at)) : say('given_up')

  /** Asks the service, says so and removes the row. */
  const finish = async (method, word, body) => {
    await call(method, 'outbox/' + id, body)
    announce(say(word))
    return removeRow(row)
  }
  const drop = () => finish('DELETE', 'did_drop')
  const openDrop = () =>
    openDialog(say(isCall ? 'drop_hook' : 'drop_sure'), 'drop', [title()], drop)

  const row = line(
    title(),
    dots(
      isCall ? say('webhook') : bdi(recipient),
      say('tries', tries),
      text(failure) && bdi(failure),
      next),
    can_retry && busyButton('retry', () => finish('POST', 'did_retry', {})),
    button(say('drop'), openDrop, {class: 'danger'}))
  return row
}
