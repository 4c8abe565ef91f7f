// The forms that open in a comment: a reply, and a change of the comment itself.

import {keep, recall} from './shared.js'
import {inputField, makeForm, textField} from './forms.js'
import {counts, showCounts} from './frame.js'
import {updateFilterState} from './filter.js'
import {focusRow, setStatus, showMoved} from './moderation.js'
import {announce} from './notices.js'
import {call} from './service.js'
import {rowsOf, say, sentences, text} from './texts.js'

/** Opens a form in a comment. Escape closes it (see keys.js), unless typed text would be lost. A
    draft is kept elsewhere. */
function open(row, word, fields, work, {isDraft = false} = {}) {
  const close = () => {
    form.remove()
    row.firstChild.classList.remove('editing')
    focusRow(row)
  }
  const form = makeForm(word, fields, work, close)
  const filled = () => JSON.stringify([...new FormData(form)])
  const before = filled()
  form.onescape = () => {
    if (isDraft || filled() === before) close()
  }
  row.querySelector('form')?.remove()
  row.firstChild.append(form)
  row.querySelector('textarea').focus()
}

/** Shows that a reply was sent, which makes a comment visible that was not. */
function showReplied(row, answer, before) {
  const {status, reports} = before
  const wasHidden = status !== 'visible'
  const restore = showMoved([row], 'visible')
  const changed = {...counts}
  if (wasHidden) {
    changed[status] -= 1
    changed.visible += 1
  }
  changed.visible += 1 // the reply
  if (rowsOf(reports).length) changed.reported -= 1
  showCounts(changed)
  updateFilterState()
  announce(sentences(wasHidden && say('did_visible', 1), say('did_reply')), async () => {
    await setStatus([{comment: answer}], 'deleted')
    if (wasHidden) await setStatus([row], status)
    restore({isRefused: false})
  })
}

/** Opens the form for a reply. What is typed is kept as a draft. */
export function reply(row) {
  const {id, nickname, status, version} = row.comment
  const draft = 'draft ' + id
  const remember = ({target}) => keep(draft, target.value, 'sessionStorage')
  const content = textField('content', say('reply_to', text(nickname) || say('anonymous')), {
    value: recall(draft, '', 'sessionStorage'), oninput: remember,
  })
  const word = status === 'visible' ? 'send' : 'approve_reply' // the service approves it
  open(row, word, [content], async filled => {
    const wanted = {parent_id: id, content: filled.content, version: version ?? undefined}
    const {comment: answer} = await call('POST', 'reply', wanted)
    keep(draft, undefined, 'sessionStorage')
    showReplied(row, answer, row.comment)
  }, {isDraft: true})
  row.firstChild.classList.remove('editing')
}

/** Opens the form that changes a comment, in place of its text. */
export function edit(row) {
  const {id, content, nickname, website, version} = row.comment
  const name = {value: text(nickname), required: !!nickname, maxLength: 64}
  const fields = [
    textField('content', say('text'), {value: text(content)}),
    inputField('nickname', 'nickname', name),
    inputField('website', 'website', {value: text(website), type: 'url'}),
  ]
  open(row, 'save', fields, async filled => {
    const wanted = {...filled, version: version ?? undefined}
    const {comment} = await call('PATCH', 'comments/' + id, wanted)
    row.redraw(comment)
    focusRow(row)
    announce(say('did_edit'))
  })
  row.firstChild.classList.add('editing')
}
