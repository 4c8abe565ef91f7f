// What readers choose a sticker from: the packs of the blog with a search, and those that they
// chose last. Loaded when its button is pressed first.

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

const MOST_RECENT = 16

/** Opens the stickers below their button. The chosen one comes into the field. Escape and a press
    beside them close them. */
export async function choose(thread, kit, field, opener) {
  const {h} = kit
  opener.focus() // Safari does not focus a pressed button, and the focus returns there
  const loading = kit.once('stickers.json', kit.ask)
  const {packs} = await kit.loadFor(thread, kit, field.form, loading) ?? {}
  if (!packs) return
  const {replace} = await kit.load('writing.js')
  if (!opener.isConnected || thread.$('.chooser')) return // they pressed twice
  const groups = groupsOf(thread, kit, packs, code => {
    remember(kit, code)
    dialog.close()
    const {selectionStart: from, selectionEnd: to} = field
    const text = `:${code}:`
    replace(field, from, to, text, from + text.length, from + text.length)
  })
  const list = h('div', {class: 'packs'}, ...groups)
  const note = h('p', {role: 'status'})
  const search = h('input', {
    type: 'search', class: 'field', placeholder: thread.say('image_find'),
    ariaLabel: thread.say('image_find'), autocomplete: 'off',
    oninput: () => find(thread, list, note, search.value),
  })
  const dialog = h('dialog', {
    class: 'chooser', ariaLabel: thread.say('image_stickers'), onclose: () => dialog.remove(),
    onclick: ({target}) => target === dialog && dialog.close(), // beside it
    onkeydown: event => move(thread, event, list, search),
    onfocusin: ({target}) => settle(list, note, target),
  }, search, list, note)
  thread.$('section').append(dialog)
  dialog.showModal()
  place(dialog, opener)
  settle(list, note, list.querySelector('button'))
  // On a phone, the keyboard would cover them.
  const isTouch = matchMedia('(pointer: coarse)').matches
  if (isTouch) list.querySelector('button').focus()
  else search.focus()
}

/** The groups of stickers: the recent ones, and each pack. */
function groupsOf(thread, kit, packs, onchoose) {
  const all = packs.flatMap(({stickers}) => stickers)
  const recent = kit.recall('stickers', [])
    .map(code => all.find(each => each.code === code))
    .filter(Boolean)
  const groups = [{title: thread.say('image_recent'), stickers: recent}, ...packs]
  return groups
    .filter(({stickers}) => stickers.length)
    .map(({title, stickers}) => group(kit, title, stickers, onchoose))
}

function group({SERVICE, button, h}, title, stickers, onchoose) {
  const buttons = stickers.map(({code, label, url, width}) => {
    const image = h('img', {
      alt: '', loading: 'lazy', decoding: 'async', width, height: 24, src: SERVICE + url,
    })
    const pressed = button('', () => onchoose(code), {
      ariaLabel: label, title: label, tabIndex: -1, 'data-words': `${label} ${code}`.toLowerCase(),
    })
    pressed.append(image)
    return pressed
  })
  return h('section', {},
    h('h3', {}, h('bdi', {}, title)), // beside its stickers, in whatever direction it is
    h('div', {role: 'group', ariaLabel: title}, ...buttons))
}

/** Puts a sticker first among the codes of those that were chosen last. */
function remember(kit, code) {
  const others = kit.recall('stickers', []).filter(each => each !== code)
  kit.keep(kit, 'stickers', [code, ...others].slice(0, MOST_RECENT))
}

const shown = list => [...list.querySelectorAll('button:not([hidden])')]

/** Shows the stickers in whose name or code a text is. */
function find(thread, list, note, text) {
  const wanted = text.trim().toLowerCase()
  for (const section of list.children) {
    for (const button of section.querySelectorAll('button')) {
      button.hidden = !button.dataset.words.includes(wanted)
    }
    section.hidden = !section.querySelector('button:not([hidden])')
  }
  const [first] = shown(list)
  note.textContent = first ? '' : thread.say('image_none')
  settle(list, note, first)
}

/** The tab key comes to one sticker, the last that had the focus. Below them stands its name. */
function settle(list, note, button) {
  if (!button?.matches('.packs button')) return
  for (const each of list.querySelectorAll('[tabindex="0"]')) each.tabIndex = -1
  button.tabIndex = 0
  note.textContent = button.matches(':focus') ? button.ariaLabel : ''
}

/** Goes from sticker to sticker by the arrow keys. */
function move(thread, event, list, search) {
  const {key, target} = event
  const buttons = shown(list)
  const at = buttons.indexOf(target)
  if (target === search) {
    if (key === 'ArrowDown' || (key === 'Enter' && !event.isComposing)) {
      event.preventDefault()
      buttons[0]?.focus()
    }
    return
  }
  if (at < 0) return
  const forward = target.matches(':dir(rtl)') ? -1 : 1
  const next = {
    ArrowRight: () => buttons[at + forward],
    ArrowLeft: () => buttons[at - forward],
    ArrowDown: () => inNextRow(buttons.slice(at + 1), target),
    ArrowUp: () => inNextRow(buttons.slice(0, at).reverse(), target) ?? search,
    Home: () => buttons[0],
    End: () => buttons.at(-1),
  }[key]
  if (!next) return
  event.preventDefault()
  next()?.focus()
}

/** The button of the next row that is nearest to one. `buttons`: all beyond that, nearest first. */
function inNextRow(buttons, {offsetTop, offsetLeft}) {
  const row = buttons.find(each => each.offsetTop !== offsetTop)?.offsetTop
  const distance = each => Math.abs(each.offsetLeft - offsetLeft)
  return buttons
    .filter(each => each.offsetTop === row)
    .sort((one, other) => distance(one) - distance(other))[0]
}

/** Puts it below its button, or above it, and inside the window. */
function place(dialog, opener) {
  const {left, right, top, bottom} = opener.getBoundingClientRect()
  const {width, height} = dialog.getBoundingClientRect()
  const start = opener.matches(':dir(rtl)') ? right - width : left
  const isAbove = innerHeight - bottom < height && top > height
  // Its size changes with that of the window and of the font.
  dialog.style.setProperty('--_left', `max(8px, min(${start}px, 100vw - 8px - var(--_width)))`)
  dialog.style.setProperty('--_top',
    `max(8px, min(${isAbove ? top - height : bottom}px, 100vh - 8px - var(--_height)))`)
}
