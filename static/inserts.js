// What formulas, tables and images have in common: a part of embed.js where the blog has some.
'use strict'
{

const {kit} = customElements.get('commentd-thread')

const ENTITIES = {amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\xa0', '#x27': "'"}

/** A text of the service's HTML as characters. */
function decoded(text) {
  return text.replace(/&([\w#]+);/g, (all, name) => ENTITIES[name] ?? all)
}

/** From now on, `kit.formatted` puts a node in the place of each thing that `pattern` finds in the
    service's HTML. `nodeFrom` makes it of what was found. `mark`, a character for private use,
    stands for it while the text around it is built. */
function insert(mark, pattern, nodeFrom) {
  const {formatted} = kit
  kit.formatted = html => {
    const nodes = []
    const marked = html.replaceAll(mark, '').replace(pattern, found => {
      nodes.push(nodeFrom(found))
      return mark
    })
    const root = formatted(marked)
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
    const texts = []
    while (walker.nextNode()) {
      const {currentNode: text} = walker
      if (text.data.includes(mark)) texts.push(text)
    }
    for (const text of texts) {
      const [first, ...others] = text.data.split(mark)
      text.replaceWith(first, ...others.flatMap(other => [nodes.shift(), other]))
    }
    return root
  }
}

/** Shows what the list itself shows as text, in each comment whose HTML has `tag`. `onShown` gets
    the text of the comment, and `begin` each thread once. */
function decorate(name, tag, {onShown, begin} = {}) {
  function show({comment, firstChild: article}) {
    const body = article.querySelector('.body')
    if (!body || !comment.html.includes(tag)) return
    body.replaceChildren(...kit.formatted(comment.html).childNodes)
    onShown?.(body)
  }

  addEventListener('commentd:loaded', ({target: thread}) => {
    // The script may be there twice.
    if (thread.localName !== 'commentd-thread' || thread.decorators[name]) return
    thread.decorators[name] = show
    thread.shadowRoot.querySelectorAll('li[data-id]').forEach(show)
    begin?.(thread)
  })
}

Object.assign(kit, {decoded, decorate, insert})

}
