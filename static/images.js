// Stickers and pictures within texts: a part of embed.js where the blog has some. What a press
// opens comes with the press: stickers.js and enlarge.js.
'use strict'
{

const {kit} = customElements.get('commentd-thread')
const {SERVICE, h, formatted: formattedText} = kit

// -- Text ---------------------------------------------------------------------

const IMAGE = /<img((?: [a-z]+="[^"]*")*)>/g
// What stands for an image while the text around it is built.
const MARK = '\ue002'
const ENTITIES = {amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\xa0', '#x27': "'"}
const decoded = text => text.replace(/&([\w#]+);/g, (all, name) => ENTITIES[name] ?? all)

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

/** The service's HTML of a comment with its images. */
function formatted(html) {
  const images = []
  const marked = html.replaceAll(MARK, '').replace(IMAGE, (_, markup) => {
    images.push(imageFrom(markup))
    return MARK
  })
  const root = formattedText(marked)
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const found = []
  while (texts.nextNode()) if (texts.currentNode.data.includes(MARK)) found.push(texts.currentNode)
  for (const text of found) {
    const [first, ...others] = text.data.split(MARK)
    text.replaceWith(first, ...others.flatMap(other => [images.shift(), other]))
  }
  // The link around a picture opens it.
  for (const image of root.querySelectorAll('a > img')) {
    const link = image.parentNode
    link.className = link.part = 'picture'
    link.replaceChildren(image)
  }
  return root
}

kit.formatted = formatted

// -- Comments -----------------------------------------------------------------

/** Shows the images in a comment of the list, which the list itself shows without them. */
function show({comment, firstChild: article}) {
  const body = article.querySelector('.body')
  if (body && comment.html.includes('<img ')) {
    body.replaceChildren(...formatted(comment.html).childNodes)
  }
}

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

addEventListener('commentd:loaded', ({target: thread}) => {
  // The script may be there twice.
  if (thread.localName !== 'commentd-thread' || thread.decorators.images) return
  const root = thread.shadowRoot
  thread.decorators.images = show
  root.querySelectorAll('li[data-id]').forEach(show)
  root.addEventListener('click', event => enlarge(thread, event))
  root.addEventListener('submit', event => askForDescription(thread, event), true)
  root.addEventListener('focusin', ({target}) => offerStickers(thread, target.closest('.form')))
  offerStickers(thread, root.activeElement?.closest('.form'))
})

}
