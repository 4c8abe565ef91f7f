// The gallery of the owner: pictures from which a reader chooses the one beside their comments.
// Loaded where the blog has one, when somebody begins to write or opens their account.

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

const learn = (thread, kit) => kit.learnTexts(thread.language, 'picture-' + thread.language)

let asked // the promise of all pictures

/** The pictures of the gallery: {title, picture} each. */
function faces(kit) {
  asked ??= kit.ask('faces').then(response => response.faces).catch(error => {
    asked = undefined
    throw error
  })
  return asked
}

const urlOf = (kit, picture) => `${kit.SERVICE}pictures/${picture}`

/** A grid of all pictures, with the letter as the first one. `choose` gets the name of a picture,
    or "" for the letter. */
export async function gallery(thread, kit, chosen, choose) {
  const {button, h, me} = kit
  const name = thread.$('[name=nickname]')?.value || me().nickname || ''
  const initial = /[\p{L}\p{N}]\p{M}*/u.exec(name)?.[0].toUpperCase() ?? '–'
  const [all] = await Promise.all([faces(kit), learn(thread, kit)])

  function choiceOf({title, picture}) {
    const choice = button('', () => {
      for (const each of grid.children) each.ariaPressed = each === choice
      choose(picture)
    }, {class: 'face', ariaLabel: title, title, ariaPressed: picture === chosen})
    choice.append(picture
      ? h('img', {alt: '', loading: 'lazy', decoding: 'async', src: urlOf(kit, picture)})
      : h('span', {}, initial))
    return choice
  }

  const letter = {title: thread.say('picture_letter'), picture: ''}
  const grid = h('div', {class: 'faces', role: 'group', ariaLabel: thread.say('picture_gallery')},
    ...[letter, ...all].map(choiceOf))
  return grid
}

/** Adds to the fields of a guest the one that chooses a picture. It is sent with the comment, and
    the browser remembers it with the name. */
export async function offerFaces(thread, kit, form) {
  const {button, h, me} = kit
  const guest = form.querySelector('.guest')
  if (!guest || guest.hidden) return
  const field = guest.querySelector('[name=face]')
    ?? guest.appendChild(h('input', {type: 'hidden', name: 'face', value: me().face ?? ''}))
  try {
    await learn(thread, kit)
  } catch {
    return // the next list tries again
  }
  if (guest.querySelector('.chosen')) return

  let grid // while it is open

  function choose(picture) {
    field.value = picture
    kit.keep(kit, 'me', {...me(), face: picture})
    show()
  }

  function show() {
    const image = h('img', {alt: '', decoding: 'async', src: urlOf(kit, field.value)})
    image.onerror = () => image.remove() // the owner has removed it
    opener.replaceChildren(field.value ? image : '', thread.say('picture_choose'))
  }

  async function toggle() {
    if (grid) {
      grid.remove()
      grid = undefined
    } else {
      grid = await kit.loadFor(thread, kit, form, gallery(thread, kit, field.value, choose))
      if (!grid) return
      row.after(grid)
    }
    opener.ariaExpanded = !!grid
  }

  const opener = button('', toggle, {class: 'more chosen', ariaExpanded: false})
  const row = h('div', {class: 'row'}, opener)
  show()
  guest.append(row)
}
