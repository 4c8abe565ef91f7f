// Formulas: a part of embed.js where the owner wants them. The service has made MathML of them.
'use strict'
{

const {kit} = customElements.get('commentd-thread')
const {formatted: formattedText} = kit

// -- MathML -------------------------------------------------------------------

const NAMESPACE = 'http://www.w3.org/1998/Math/MathML'
const FORMULA = /<math(?: [a-z]+="[^"]*")*>.*?<\/math>/gs
// What stands for a formula while the text around it is built.
const MARK = '\ue000'
const PIECE = /<(\/?)([a-z]+)((?: [a-z]+="[^"]*")*)>|[^<]+/g
// None of these has a link or a script in it.
const TAGS = new Set(['math', 'mi', 'mn', 'mo', 'mtext', 'mspace', 'mrow', 'mfrac', 'msqrt',
  'mroot', 'mstyle', 'mpadded', 'mphantom', 'msub', 'msup', 'msubsup', 'munder', 'mover',
  'munderover', 'mmultiscripts', 'mprescripts', 'mtable', 'mtr', 'mtd'])
const ATTRIBUTES = new Set(['alttext', 'dir', 'display', 'displaystyle', 'scriptlevel',
  'mathvariant', 'stretchy', 'accent', 'form', 'minsize', 'maxsize', 'width', 'linethickness',
  'columnlines', 'rowlines', 'class'])
const ENTITIES = {'&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&nbsp;': '\xa0'}
const decoded = text => text.replace(/&\w+;/g, entity => ENTITIES[entity] ?? entity)

/** A formula of the service's HTML, built anew from the tags and attributes that are allowed. */
function formulaFrom(html) {
  const root = document.createDocumentFragment()
  let open = root
  for (const [text, end, tag, attributes] of html.matchAll(PIECE)) {
    if (!tag) open.append(decoded(text))
    else if (!TAGS.has(tag)) continue
    else if (end) {
      if (open.localName === tag) open = open.parentNode
    } else {
      const node = document.createElementNS(NAMESPACE, tag)
      for (const [, name, value] of attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)) {
        if (ATTRIBUTES.has(name)) node.setAttribute(name, decoded(value))
      }
      open.append(node)
      open = node
    }
  }
  return root
}

// -- Text ---------------------------------------------------------------------

/** The service's HTML of a comment with its formulas. */
function formatted(html) {
  const formulas = []
  const marked = html.replaceAll(MARK, '').replace(FORMULA, formula => {
    formulas.push(formulaFrom(formula))
    return MARK
  })
  const root = formattedText(marked)
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const found = []
  while (texts.nextNode()) if (texts.currentNode.data.includes(MARK)) found.push(texts.currentNode)
  for (const text of found) {
    const [first, ...others] = text.data.split(MARK)
    text.replaceWith(first, ...others.flatMap(other => [formulas.shift(), other]))
  }
  return root
}

kit.formatted = formatted

/** Lets keyboards scroll what holds a formula that is too wide. */
function openWide(body) {
  for (const formula of body.querySelectorAll('math')) {
    const place = formula.closest('p, li, blockquote')
    if (place?.scrollWidth > place?.clientWidth) place.tabIndex = 0
  }
}

// -- Comments -----------------------------------------------------------------

/** Shows the formulas in a comment of the list, which the list itself shows as text. */
function show({comment, firstChild: article}) {
  const body = article.querySelector('.body')
  if (body && comment.html.includes('<math ')) {
    body.replaceChildren(...formatted(comment.html).childNodes)
    requestAnimationFrame(() => openWide(body)) // all with one layout
  }
}

addEventListener('commentd:loaded', ({target: thread}) => {
  if (thread.localName !== 'commentd-thread' || thread.decorators.formula) return
  thread.decorators.formula = show
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(show)
})

}
