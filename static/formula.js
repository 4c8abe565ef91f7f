// Formulas: a part of embed.js where the owner wants them. The service has made MathML of them.
'use strict'
{

const {kit} = customElements.get('commentd-thread')
const {decoded} = kit

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

kit.insert(MARK, FORMULA, formulaFrom)

// -- Comments -----------------------------------------------------------------

/** Lets keyboards scroll what holds a formula that is too wide. */
function openWide(body) {
  for (const formula of body.querySelectorAll('math')) {
    const place = formula.closest('p, li, blockquote')
    if (place?.scrollWidth > place?.clientWidth) place.tabIndex = 0
  }
}

kit.decorate('formula', '<math ', {
  onShown: body => requestAnimationFrame(() => openWide(body)), // all with one layout
})

}
