// Totals of other pages and the latest comments, for lists of posts and side bars. `embed.js` loads
// this where a page has elements for them. They keep the page's own style.

const SELECTOR = ['count', 'views', 'likes', 'latest']
  .map(kind => `[data-commentd-${kind}]:not([data-commentd-asked])`).join()
const TOTALS = {count: 'total', views: 'views', likes: 'page_likes'}
const cache = new Map() // a page may draw its elements again and again

/** Fills the elements, with one request for 100 pages, or for as many as fit in a URL that proxies
    accept. */
export async function fill(kit) {
  const waiting = []
  let query = 'pages'
  for (const node of document.querySelectorAll(SELECTOR)) {
    if (node.hasAttribute('data-commentd-latest')) {
      latest(kit, node)
      continue
    }
    const kind = Object.keys(TOTALS).find(name => node.hasAttribute('data-commentd-' + name))
    const url = node.getAttribute('data-commentd-' + kind) || location.pathname
    const show = () => {
      const total = cache.get(url)?.[TOTALS[kind]]
      if (total !== undefined) node.textContent = total.toLocaleString(kit.languageOf(node))
    }
    const start = waiting.length ? '&url=' : '?url='
    const part = cache.has(url) ? '' : start + encodeURIComponent(url)
    if (waiting.length === 100 || (waiting.length && query.length + part.length > 7500)) break
    node.setAttribute('data-commentd-asked', '')
    if (part) waiting.push([url, show])
    else show()
    query += part
  }
  if (!waiting.length) return
  const {pages = []} = await kit.ask(query).catch(error => {
    kit.report('counts could not be loaded', error)
    return {}
  })
  waiting.forEach(([url, show], i) => {
    if (pages[i]) cache.set(url, pages[i])
    show()
  })
  fill(kit)
}

/** Lists the latest comments of all pages. */
async function latest({ask, formatted, h, languageOf, relativeTime, report, timeOf}, node) {
  const limit = node.getAttribute('data-commentd-latest') | 0
  const query = 'comments/latest?limit=' + (limit > 0 ? Math.min(limit, 30) : 6)
  node.setAttribute('data-commentd-asked', '')
  if (!cache.has(query)) cache.set(query, ask(query).catch(error => {
    report('the latest comments could not be loaded', error)
    return {}
  }))
  const {comments = []} = await cache.get(query)
  const items = []
  for (const comment of comments) {
    try {
      const {id, page_url, nickname, html} = comment
      const page = new URL(page_url, location.origin)
      if (page.origin !== location.origin) continue
      if (!/^#[!/]/.test(page.hash)) page.hash = 'comment-' + id // a route stays
      const body = formatted(html)
      for (const image of body.querySelectorAll('img')) image.replaceWith(image.alt)
      // The text of another.
      if (body.children.length > 1) body.querySelector('blockquote')?.remove()
      const text = [...body.textContent.trim()]
      const then = timeOf(comment)
      const time = h('time', {dateTime: then.toISOString()}, relativeTime(then, languageOf(node)))
      const link = h('a', {href: page, dir: 'auto'}, text.slice(0, 80).join(''), text[80] && '…')
      const meta = h('small', {}, h('bdi', {}, nickname), nickname && ' · ', time)
      items.push(h('li', {}, link, h('br'), meta))
    } catch (error) { // a broken comment leaves the others
      report('one of the latest comments can’t be shown', error)
    }
  }
  if (items.length) node.replaceChildren(...items)
}
