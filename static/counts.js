// Numbers of other pages and the latest comments, for lists of posts and side bars; `embed.js` loads this
// where a page has elements that want them. They stay in the page's own style.

const WANTED = ['count', 'views', 'likes', 'latest'].map(what => `[data-commentd-${what}]:not([data-commentd-asked])`).join()
const NUMBERS = {count: 'total', views: 'views', likes: 'page_likes'}
const known = new Map() // what was answered: a page may draw its elements anew for ever

/** Fills the elements: a request for a hundred numbers, or for as many as proxies let pass. */
export async function fill(kit) {
  const asked = []
  let query = 'pages?'
  for (const node of document.querySelectorAll(WANTED)) {
    if (node.hasAttribute('data-commentd-latest')) {
      latest(kit, node)
      continue
    }
    const kind = Object.keys(NUMBERS).find(kind => node.hasAttribute('data-commentd-' + kind))
    const url = node.getAttribute('data-commentd-' + kind) || location.pathname
    const show = () => { node.textContent = known.get(url)?.[NUMBERS[kind]]?.toLocaleString(kit.tongue(node)) ?? node.textContent }
    const piece = known.has(url) ? '' : '&url=' + encodeURIComponent(url)
    if (asked.length === 100 || (asked.length && query.length + piece.length > 7500)) break
    node.setAttribute('data-commentd-asked', '')
    if (!piece) show()
    else asked.push([url, show])
    query += piece
  }
  if (!asked.length) return
  const {pages = []} = await kit.ask(query).catch(() => ({}))
  asked.forEach(([url, show], i) => {
    if (pages[i]) known.set(url, pages[i])
    show()
  })
  fill(kit)
}

/** The comments that were written last on any page, as items of a list. */
async function latest({ago, ask, formatted, h, tongue}, node) {
  const wanted = node.getAttribute('data-commentd-latest') | 0, query = 'comments/latest?limit=' + (wanted > 0 ? Math.min(wanted, 30) : 6)
  node.setAttribute('data-commentd-asked', '')
  if (!known.has(query)) known.set(query, ask(query).catch(() => ({})))
  const {comments = []} = await known.get(query)
  const items = []
  for (const {id, page_url, nickname, html, created_at} of comments) {
    try {
      const page = new URL(page_url, location.origin), said = formatted(html), [quote] = said.querySelectorAll('blockquote')
      if (page.origin !== location.origin) continue // whoever answers says where
      if (said.children.length > 1) quote?.remove()
      const text = [...said.textContent.trim()], then = new Date(created_at.replace(' ', 'T') + '+08:00')
      page.hash = 'comment-' + id
      items.push(h('li', {},
        h('a', {href: page, dir: 'auto'}, text.slice(0, 80).join('') + (text.length > 80 ? '…' : '')), h('br'),
        h('small', {}, ...nickname ? [h('bdi', {}, nickname), ' · '] : [], h('time', {dateTime: then.toISOString()}, ago(then, tongue(node))))))
    } catch {} // it spoils no other
  }
  if (items.length) node.replaceChildren(...items)
}
