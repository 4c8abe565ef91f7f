// Adding a block, which can be undone. `then` is called when a block was added or ended.

import {announce} from './notices.js'
import {call} from './service.js'
import {say} from './texts.js'

/** Ends a block. One that has ended is no failure: an undo that failed half-way is tried again. */
async function endBlock(id) {
  try {
    await call('DELETE', 'blocks/' + id)
  } catch (error) {
    if (error.status !== 404) throw error
  }
}

/** Adds a block. Returns what is said of it, and a function that ends it. */
export async function addBlock({kind, value, days, note, sure}) {
  const wanted = {kind, value}
  if (days > 0) wanted.days = Number(days)
  if (note) wanted.note = note
  if (sure) wanted.sure = true
  const {block} = await call('POST', 'blocks', wanted)
  return {blocked: say('did_block', block.value), unblock: () => endBlock(block.id)}
}

/** Says that a block was added, with a button that ends it. */
export function announceBlock({blocked, unblock}, then) {
  announce(blocked, async () => {
    await unblock()
    then?.()
  })
  then?.()
}

/** The work of a form that adds a block. `blockOf` makes one of what is filled in, and `done` gets
    what `addBlock` returns. A block that many readers would meet has to be confirmed: the button
    is pressed again, and says so. */
export function blockingWork(blockOf, done) {
  let toConfirm
  return async (filled, form) => {
    const block = blockOf(filled)
    const name = block.kind + block.value
    const submit = form.querySelector('.main')
    submit.dataset.word ??= submit.textContent
    let added
    try {
      added = await addBlock({...block, sure: toConfirm === name})
    } catch (error) {
      const isWide = error.code === 'block_wide'
      toConfirm = isWide ? name : undefined
      submit.textContent = isWide ? say('block_sure') : submit.dataset.word
      submit.classList.toggle('sure', isWide)
      throw error
    }
    done(added, block)
  }
}
