// What helps to read code in comments: a hint where a line goes on, and colours where the language
// is named. Loaded with the first block of code. It knows words and comments of many languages, not
// their grammar, and never changes an element: colours come by the CSS Custom Highlight API.
// Browsers without it show plain code.

// -- Style --------------------------------------------------------------------

const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

// -- Languages ----------------------------------------------------------------

const KEYWORDS = `and as async await begin break case catch class const continue def default
delete do elif else end enum export extends false fi finally fn for from func function if impl
import in int interface is let local match mut new nil none not null or package private public
raise return self static struct switch then this throw true try type use using var void when while
with`
const SQL = `select where join left on group order by having limit insert into values update set
create table drop alter index primary key is like distinct union`

const words = list => `\\b(?:${list.split(/\s+/).join('|')})\\b`
const quoted = mark => `${mark}(?:\\\\.|[^\\\\\n${mark}])*${mark}`
const STRING = `"""[^]*?"""|${quoted('"')}|${quoted("'")}|\`[^\`]*\``
const BLOCK = '/\\*[^]*?\\*/'
const HASH = '(?<![^\\s;(])#.*'
const KEY = '@[\\w-]+|[\\w-]+(?=\\s*[:=](?:\\s|$))|^\\[.*\\]$'
const NUMBER = '\\b\\d[\\w.]*%?|#[\\da-f]{3,8}\\b'

// Languages, and how their comments, strings and keywords look.
const FAMILIES = [
  [/^(te?xt|plain.*|md|markdown)$/],
  [/^(diff|patch)$/, '^@@.*', '^\\+.*', '^-.*'],
  [/^(html?|xml|svg|vue)$/, '<!--[^]*?-->', STRING, '</?[\\w:-]+|/?>'],
  [/css|less/, BLOCK, STRING, KEY],
  [/^(ya?ml|toml|ini|conf)$/, HASH + '|^;.*', STRING, KEY],
  [/sql|lua/, '--.*|' + BLOCK, STRING, words(KEYWORDS + ' ' + SQL)],
  [/^(py|ru?by?$|.*sh|perl|r$|make|docker|nginx)/, HASH, STRING, words(KEYWORDS)],
  // In Rust, ' may begin a lifetime.
  [/^(rust|rs)$/, '//.*|' + BLOCK, quoted('"'), words(KEYWORDS)],
  [/^/, '(?<!:)//.*|' + BLOCK, STRING, '^#\\w+|' + words(KEYWORDS)],
]

// -- Colours ------------------------------------------------------------------

const TONES = ['comment', 'string', 'keyword', 'number']

/** The ranges of a tone on the whole page, without those of comments that have gone. */
function rangesOf(tone) {
  const name = 'commentd-' + tone
  const ranges = CSS.highlights.get(name) ?? new Highlight()
  for (const range of ranges) if (!range.startContainer.isConnected) ranges.delete(range)
  CSS.highlights.set(name, ranges)
  return ranges
}

/** Adds to a block of code, which is in the list, what helps to read it. */
export function decorate(block) {
  const {adoptedStyleSheets: sheets} = block.getRootNode()
  if (!sheets) return // it is of a comment that is shown in part, elsewhere
  if (!sheets.includes(sheet)) sheets.push(sheet)
  for (const code of block.querySelectorAll('code[class]')) paint(code)
}

/** Colours an element with code. Its class names the language. */
function paint(code) {
  // In forced colours, Chromium would paint all of them as a selected text.
  if (!window.Highlight || matchMedia('(forced-colors: active)').matches) return
  const language = code.className.slice('language-'.length)
  const [, ...patterns] = FAMILIES.find(([names]) => names.test(language))
  if (!patterns.length) return
  const parts = [...patterns, NUMBER].map((each, i) => `(?<${TONES[i]}>${each})`)
  const pattern = RegExp(parts.join('|'), 'gim')
  const ranges = TONES.map(rangesOf)
  for (const node of code.childNodes) {
    for (const {index, 0: text, groups} of node.textContent.matchAll(pattern)) {
      const tone = TONES.findIndex(name => groups[name])
      ranges[tone].add(new StaticRange({
        startContainer: node, startOffset: index,
        endContainer: node, endOffset: index + text.length,
      }))
    }
  }
}
