// Stickers and pictures within texts: a part of embed.js where the blog has some. What a press
// opens comes with the press: stickers.js and enlarge.js.
'use strict'
{

const {kit} = customElements.get('commentd-thread')
const {SERVICE, decoded, h} = kit

// -- Text ---------------------------------------------------------------------

const IMAGE = /<img(?: [a-z]+="[^"]*")*>/g
// What stands for an image while the text around it is built.
const MARK = '\ue002'

/** An image of the service's HTML: a sticker, or a picture. */
function imageFrom(markup) {
  const found = Array.from(markup.matchAll(/ ([a-z]+)="([^"]*)"/g))
  const {src, alt, width, height, class: type} =
    Object.fromEntries(found.map(([, name, value]) => [name, decoded(value)]))
  if (type === 'sticker') {
    // A proxy may know the service by another URL. Its shape is known before the file comes.
    const path = src.slice(src.indexOf('/stickers/') + 1)
    return h('img', {class: type, alt, width, height, decoding: 'async', src: SERVICE + path})
  }
  return h('img', {
    alt, loading: 'lazy', decoding: 'async', referrerPolicy: 'no-referrer',
    onload: ({target}) => target.dataset.there = '', onerror: ({target}) => lose(target),
    src: /^https?:/.test(src) ? src : undefined,
  })
}

/** Shows the link of a picture that does not come, with its description. Its room stays where a
    reader would see the text move. */
function lose(image) {
  const link = image.parentNode
  const isAhead = link.getBoundingClientRect().top > innerHeight
  link.className = link.part = isAhead ? '' : 'lost'
  link.replaceChildren(image.alt)
}

kit.insert(MARK, IMAGE, imageFrom)
const {formatted} = kit

/** The service's HTML of a comment with its images. The link around a picture opens it. */
kit.formatted = html => {
  const root = formatted(html)
  for (const image of root.querySelectorAll('a > img')) {
    const link = image.parentNode
    link.className = link.part = 'picture'
    link.replaceChildren(image)
  }
  return root
}

// -- Comments -----------------------------------------------------------------

/** Opens a picture large. */
function enlarge(thread, event) {
  const link = event.target.closest('.picture')
  const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey
  if (!link || opensElsewhere) return
  event.preventDefault()
  thread.use('enlarge.js', 'enlarge', link)
}

// -- Form ---------------------------------------------------------------------

const learn = thread =>
  kit.learnTexts(thread.language, 'image-' + thread.language).catch(() => {})

/** Adds to a form the button that opens the stickers. */
async function offerStickers(thread, form) {
  if (!form || !thread.settings?.stickers) return
  await thread.use('writing.js', 'equip', form) // as embed.js does, too
  await learn(thread)
  const name = thread.say('image_stickers')
  if (!name || form.querySelector('.smile')) return
  const open = () => thread.use('stickers.js', 'choose', form.content, opener)
  const opener = kit.button('', open, {
    class: 'smile', ariaLabel: name, title: name, ariaHasPopup: 'dialog',
  })
  form.querySelector('.tools .counter').before(opener)
}

const asked = new WeakSet()

/** Asks for the description of a picture before the text is posted. The second press posts it. */
async function askForDescription(thread, event) {
  const form = event.target
  const {content: field} = form
  const gap = /!\[\s*\]\(\s*<?https?:/.exec(field?.value)
  if (!gap || asked.delete(form) || !thread.settings.picture_hosts) return
  asked.add(form)
  event.preventDefault()
  event.stopPropagation()
  await learn(thread)
  const reason = new kit.Failure('image_undescribed')
  kit.showError(thread, kit, form, reason, form.querySelector('.tools'))
  field.focus()
  field.setSelectionRange(gap.index + 2, gap.index + 2)
}

// -- Start --------------------------------------------------------------------

function begin(thread) {
  const root = thread.shadowRoot
  root.addEventListener('click', event => enlarge(thread, event))
  root.addEventListener('submit', event => askForDescription(thread, event), true)
  root.addEventListener('focusin', ({target}) => offerStickers(thread, target.closest('.form')))
  offerStickers(thread, root.activeElement?.closest('.form'))
}

kit.decorate('images', '<img ', {begin})

}
