// Tables: a part of embed.js where the owner wants them.
'use strict'
{

const {kit} = customElements.get('commentd-thread')
const {h, formatted: formattedText} = kit

const TABLE = /<table>.*?<\/table>/gs
const ROW = /<tr>.*?<\/tr>/gs
const CELL = /<(t[hd])(?: align="(left|center|right)")?>(.*?)<\/\1>/gs
// What stands for a table while the text around it is built.
const MARK = '\ue001'

/** A table of the service's HTML, built anew. Keyboards can scroll it. */
function tableFrom(html) {
  const [head, ...rows] = html.match(ROW).map(row => h('tr', {}, ...cellsFrom(row)))
  const table = h('table', {}, h('thead', {}, head), h('tbody', {}, ...rows))
  return h('div', {class: 'wide', tabIndex: 0}, table)
}

const cellsFrom = row => Array.from(row.matchAll(CELL), ([, tag, align, html]) =>
  h(tag, {align}, ...formattedText(html).childNodes))

/** The service's HTML of a comment with its tables. */
function formatted(html) {
  const tables = []
  const marked = html.replaceAll(MARK, '').replace(TABLE, table => {
    tables.push(tableFrom(table))
    return `<p>${MARK}</p>`
  })
  const root = formattedText(marked)
  for (const place of root.querySelectorAll('p')) {
    if (place.textContent === MARK) place.replaceWith(tables.shift())
  }
  return root
}

kit.formatted = formatted

kit.decorate('table', '<table>')

}
