// The view of the statistics. In order: View, Periods, Charts, Tables, Countries.

import {h} from './shared.js'
import {link, linkToPage, main, span, table} from './elements.js'
import {showAgain} from './frame.js'
import {fill} from './notices.js'
import {call} from './service.js'
import {language, number, rowsOf, say, text} from './texts.js'

// -- View ---------------------------------------------------------------------

const BY = ['day', 'week', 'month', 'year']
// What is counted, with the text where there is none.
const COUNTED = {comments: 'no_comments', views: 'no_views', likes: 'no_likes'}

export function draw(params) {
  const by = BY.find(each => each === params.get('by')) ?? BY[0]
  const tabs = BY.map(each => {
    const href = each === BY[0] ? '#figures' : '#figures?by=' + each
    const current = each === by ? {'aria-current': 'page'} : {}
    return h('li', {}, h('a', {href, onclick: showAgain, ...current}, say('by_' + each)))
  })
  main.append(h('nav', {ariaLabel: say('period')}, h('ul', {}, ...tabs)))
  fill(main, () => call('GET', 'figures?by=' + by), response => {
    const periods = rowsOf(response.periods)
    const title = rangeText(periods[0]?.first, periods.at(-1)?.last)
    main.append(
      h('p', {class: 'small'}, title),
      ...Object.keys(COUNTED).map(word => chart(word, periods, by)),
      h('details', {}, h('summary', {}, say('as_table')), tableOfPeriods(title, periods, by)),
      countries(response, title),
      growing(response.growing),
      ranking('by_views', 'views', response.by_views),
      ranking('by_comments', 'total', response.by_comments))
  })
}

/** A count; 0 for what is none. */
const amount = value => value > 0 && Number.isFinite(value) ? value : 0

// -- Periods ------------------------------------------------------------------

const FORMATS = {
  day: {dateStyle: 'medium'},
  month: {year: 'numeric', month: 'long'},
  year: {year: 'numeric'},
}

const formatOf = by => new Intl.DateTimeFormat(language, {...FORMATS[by], timeZone: 'UTC'})

/** The time from one day to another, both such as 2026-11-25. */
function rangeText(first, last) {
  const dates = [first, last].map(day => new Date(text(day)))
  return dates.some(isNaN) ? '' : formatOf('day').formatRange(...dates)
}

/** The first or the last day of a chart; of months and years, in them. */
const endText = (day, by) => periodText({first: day}, by === 'week' ? 'day' : by)

/** A period as people of the language write it: a day, from one day to another, `November 2026`. */
function periodText({first, last} = {}, by) {
  if (by === 'week') return rangeText(first, last)
  const date = new Date(text(first))
  return isNaN(date) ? text(first) : formatOf(by).format(date)
}

// -- Charts -------------------------------------------------------------------

const HEIGHT = 60 // of a chart, in its own units
const STEP = 10 // from one bar to the next
const WIDTH = 8 // of a bar

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  node.append(...children)
  return node
}

/** A chart with a bar a period. The slider over it tells the value of one: to the keyboard, to a
    finger and to screen readers. A mouse need only point. */
function chart(word, periods, by) {
  const values = periods.map(period => amount(period[word]))
  const total = values.reduce((before, value) => before + value, 0)
  const most = Math.max(...values, 0)
  const summary = total ? say('sum', total, most) : say(COUNTED[word])
  const bars = values.map((value, index) => {
    const height = most && HEIGHT * value / most
    return svg('rect', {x: STEP * index + 1, width: WIDTH, y: HEIGHT - height, height})
  })
  const picture = svg('svg', {
    viewBox: `0 0 ${STEP * periods.length} ${HEIGHT}`, preserveAspectRatio: 'none',
    role: 'img', 'aria-label': `${say(word)}: ${summary}`,
  }, ...bars)
  const shown = h('span', {class: 'small'}, summary)
  const tell = (told = summary) => { shown.textContent = told }
  const names = periods.map(period => periodText(period, by))
  const plot = total
    ? h('div', {class: 'plot'}, picture, slider(word, names, values, bars, tell))
    : picture
  return h('figure', {},
    h('figcaption', {}, h('b', {}, say(word)), shown),
    h('div', {class: 'axis small', ariaHidden: 'true'},
      span(total ? number(most) : ''),
      span(number(0))),
    plot,
    h('div', {class: 'ends small', ariaHidden: 'true'},
      span(endText(periods[0]?.first, by)),
      span(endText(periods.at(-1)?.last, by))))
}

/** The slider over the bars of a chart, with the name and the value of each. `tell` gets both, or
    nothing when none is pointed at. */
function slider(word, names, values, bars, tell) {
  const last = names.length - 1
  const valueOf = index => `${names[index]}: ${number(values[index])}`
  const mark = index => {
    bars.forEach((bar, each) => bar.classList.toggle('pointed', each === index))
    tell(index === undefined ? undefined : valueOf(index))
  }
  const choose = index => {
    node.value = index
    node.ariaValueText = valueOf(index)
    mark(index)
  }
  const under = ({clientX}) => {
    const {left, right, width} = node.getBoundingClientRect()
    const distance = document.dir === 'rtl' ? right - clientX : clientX - left
    return Math.min(Math.max(Math.floor(distance / width * names.length), 0), last)
  }
  const node = h('input', {
    type: 'range', min: 0, max: last, value: last, ariaLabel: say(word),
    ariaValueText: valueOf(last),
    onpointermove: event => choose(under(event)),
    oninput: () => choose(Number(node.value)),
    onfocus: () => choose(Number(node.value)),
    onpointerleave: () => node.matches(':focus') || mark(),
    onblur: () => mark(),
  })
  return node
}

// -- Tables -------------------------------------------------------------------

function tableOfPeriods(title, periods, by) {
  const words = Object.keys(COUNTED)
  const heads = ['period', ...words].map(word => say(word))
  const rows = periods.map(period =>
    [periodText(period, by), ...words.map(word => amount(period[word]))])
  return table(title, heads, rows)
}

const section = (word, ...shown) => h('section', {}, h('h2', {}, say(word)), ...shown)
const note = shown => h('span', {class: 'small note'}, shown)

/** The pages that are read or talked about more than before. */
function growing(pages) {
  const rows = rowsOf(pages).map(({page, views, views_before, comments, comments_before}) => [
    linkToPage(page ?? {}),
    withChange(amount(views), amount(views_before)),
    withChange(amount(comments), amount(comments_before)),
  ])
  if (!rows.length) return section('growing', note(say('no_growth')))
  const heads = ['page', 'views', 'comments'].map(word => say(word))
  return table(h('span', {}, say('growing'), note(say('growth_lead'))), heads, rows)
}

/** A number, and how much more or less that is than before. */
function withChange(value, before) {
  const sign = value > before ? '+' : ''
  const shown = value !== before && h('span', {class: 'small'}, sign + number(value - before))
  return h('span', {class: 'counted'}, number(value), ' ', shown)
}

/** A table of pages by what is counted, or a sentence where there is none. */
function ranking(word, count, pages) {
  const counted = rowsOf(pages).filter(page => amount(page[count]))
  if (counted.length) {
    const heads = [say('page'), say('views'), say('comments')]
    const rows = counted.map(page => [linkToPage(page), amount(page.views), amount(page.total)])
    return table(say(word), heads, rows)
  }
  const none = count === 'views' ? 'no_views' : 'no_comments'
  return section(word, note(say(none)))
}

// -- Countries ----------------------------------------------------------------

const MOST_COUNTRIES = 12 // in the table; the others are one row

function countries({counts_countries, countries: counted}, title) {
  const found = rowsOf(counted).map(row => [text(row.country), amount(row.views)])
  if (!found.length) {
    if (counts_countries) return section('countries', note(say('no_views')))
    const toSettings = h('p', {}, link('#settings', say('settings')))
    return section('countries', note(say('countries_off')), toSettings)
  }
  const names = new Intl.DisplayNames(language, {type: 'region'})
  const nameOf = code => /^[A-Z]{2}$/.test(code) ? names.of(code) : say('unknown_country')
  const rows = found.slice(0, MOST_COUNTRIES).map(([code, views]) => [nameOf(code), views])
  const others = sumOf(found.slice(MOST_COUNTRIES))
  if (others) rows.push([say('other_countries'), others])
  const total = sumOf(rows)
  const most = Math.max(...rows.map(([, views]) => views))
  const heads = [say('country'), say('views'), say('share')]
  const drawn = rows.map(([name, views]) => [name, views, share(views, total, most)])
  return table(h('span', {}, say('countries'), note(title)), heads, drawn)
}

const sumOf = rows => rows.reduce((before, [, views]) => before + views, 0)

/** A part of all as a bar and in percent. The longest bar is that of the largest part. */
function share(views, total, most) {
  const percent = (views / total).toLocaleString(language, {style: 'percent'})
  const size = {viewBox: '0 0 100 10', preserveAspectRatio: 'none'}
  const bar = svg('svg', {...size, 'aria-hidden': 'true'},
    svg('rect', {width: 100 * views / most, height: 10}))
  return h('span', {class: 'share'}, span(percent), bar)
}
