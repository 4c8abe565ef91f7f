// The picture of an account, in its panel: chosen from the gallery or from a file, and removed. A
// file is cut here to a small square. Nothing else of it leaves the browser, such as where it was
// taken. Loaded where the blog has pictures, when a reader opens their account.

// -- Style --------------------------------------------------------------------

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// -- Cutting ------------------------------------------------------------------

const SIDE = 128 // px: what a sharp screen shows
const MOST_BYTES = 20e3

/** The middle of a picture, as a small square. */
async function squareOf(file) {
  const picture = await createImageBitmap(file)
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIDE
  const context = canvas.getContext('2d')
  context.imageSmoothingQuality = 'high'
  context.fillStyle = '#fff' // a JPEG has no transparent parts
  context.fillRect(0, 0, SIDE, SIDE)
  const {width, height} = picture
  const side = Math.min(width, height)
  const [left, top] = [(width - side) / 2, (height - side) / 2]
  context.drawImage(picture, left, top, side, side, 0, 0, SIDE, SIDE)
  picture.close()
  return canvas
}

/** The bytes of a canvas in Base64: as WebP or, where the browser can't write that, as JPEG. */
async function packed(canvas) {
  const blobOf = (type, quality) => new Promise(done => canvas.toBlob(done, type, quality))
  for (const quality of [.85, .6, .3]) {
    let blob = await blobOf('image/webp', quality)
    if (blob?.type !== 'image/webp') blob = await blobOf('image/jpeg', quality)
    if (blob?.size <= MOST_BYTES) {
      const bytes = new Uint8Array(await blob.arrayBuffer())
      return btoa(String.fromCharCode(...bytes))
    }
  }
  throw new Error('the picture can’t be made small')
}

// -- Panel --------------------------------------------------------------------

/** Shows below a part of the panel the picture of the reader, with what changes it. */
export async function offerPicture(thread, kit, above, profile, act) {
  await kit.learnTexts(thread.language, 'picture-' + thread.language)
  const {Failure, SERVICE, button, h} = kit
  const say = key => thread.say(key)
  const {pictures, faces} = thread.settings
  const row = h('div', {class: 'row portraits'})

  /** Sends a change, and shows it in the panel and beside the comments. */
  async function change(method, body) {
    const {picture = ''} = await kit.send(kit, 'me/picture', body, method)
    profile.picture = picture
    show()
    thread.load({})
  }

  async function upload() {
    const [file] = input.files
    input.value = '' // the same file can be chosen again
    if (!file) return
    const picture = await squareOf(file).then(packed).catch(cause => {
      throw new Failure('picture_invalid', {cause})
    })
    await change('POST', {picture})
    thread.announce(say('picture_saved'))
    row.querySelector('.more').focus() // the button that was pressed is gone
  }

  async function remove() {
    await change('DELETE', {})
    row.querySelector('.more').focus()
  }

  /** Shows the pictures of the owner, or hides them. */
  async function toggleGallery({target}) {
    const shown = thread.$('.panel > .faces')
    const choose = face => act(() => change(face ? 'POST' : 'DELETE', face ? {face} : {}), row)
    const grid = !shown && await thread.use('faces.js', 'gallery', undefined, choose)
    if (grid) row.after(grid)
    else shown?.remove()
    target.ariaExpanded = !!grid
  }

  const input = h('input', {
    type: 'file', accept: 'image/png, image/jpeg, image/webp', hidden: true,
    onchange: () => act(upload, row),
  })

  function show() {
    const {picture} = profile
    const src = `${SERVICE}pictures/${picture}`
    const parts = [
      picture && h('img', {class: 'portrait', alt: say('picture_yours'), src}),
      faces && button(say('picture_gallery'), event => act(() => toggleGallery(event), row), {
        class: 'more', ariaExpanded: !!thread.$('.panel > .faces'),
      }),
      pictures && button(say('picture_choose'), () => input.click(), {class: 'more'}),
      picture && button(say('picture_remove'), () => act(remove, row)),
      input,
      !picture && h('p', {class: 'small'}, say('picture_none')),
    ]
    row.replaceChildren(...parts.filter(part => part))
  }

  show()
  above.after(row)
}
