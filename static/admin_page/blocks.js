// The view of what is blocked.

import {h} from './shared.js'
import {addBlock, announceBlock, blockingWork} from './blocking.js'
import {bdi, dateOf, dots, line, main, removeRow, span, when} from './elements.js'
import {inputField, labelled, makeForm, select} from './forms.js'
import {show} from './frame.js'
import {makeList} from './lists.js'
import {announce, busyButton} from './notices.js'
import {call} from './service.js'
import {say, spaced, text} from './texts.js'

const TYPES = ['address', 'email', 'domain', 'word']
const DAYS = ['30', '7', '365', 'forever']
const DAY = 86400e3 // ms

export function draw() {
  const fields = [
    labelled(say('kind'), select('kind', TYPES)),
    inputField('value', 'value', {required: true, maxLength: 254}),
    labelled(say('days'), select('days', DAYS)),
    inputField('note', 'note', {maxLength: 200}),
  ]
  const form = makeForm('add', fields,
    blockingWork(filled => filled, added => announceBlock(added, show)))
  form.classList.add('adding')
  main.append(
    h('p', {class: 'small'}, say('blocks_lead')),
    form,
    makeList({path: 'blocks', draw: blockRow, none: 'none_blocks'}))
}

function blockRow(block) {
  const {kind, value, note, expires_at} = block
  const remove = async () => {
    await call('DELETE', 'blocks/' + block.id)
    removeRow(row)
    announce(say('did_unblock', text(value)), () => addAgain(block))
  }
  const end = expires_at ? span(spaced(say('ends')), when(expires_at)) : say('forever')
  const row = line(
    span(say(kind), ' ', h('b', {}, bdi(value))),
    dots(end, text(note) && bdi(note)),
    busyButton('remove', remove, {class: 'danger'}))
  return row
}

/** Undoes that a block was removed. It ends when it would have. */
async function addAgain({kind, value, note, expires_at}) {
  const days = Math.ceil((dateOf(expires_at) - Date.now()) / DAY) // NaN: without an end
  announceBlock(await addBlock({kind, value, days, note, sure: true}), show)
}
