// The view of the statistics. In order: View, Charts, Tables.

import {h} from './shared.js'
import {linkToPage, main, span, table} from './elements.js'
import {fill} from './notices.js'
import {call} from './service.js'
import {language, number, rowsOf, say, text} from './texts.js'

// -- View ---------------------------------------------------------------------

// What is counted each day, with the text where there is none.
const COUNTED = {comments: 'no_comments', views: 'no_views', likes: 'no_likes'}

export function draw() {
  fill(main, () => call('GET', 'figures?days=30'), response => {
    const days = rowsOf(response.days)
    const title = say('last_days', days.length)
    main.append(
      h('p', {class: 'small'}, title),
      ...Object.keys(COUNTED).map(word => chart(word, days)),
      h('details', {}, h('summary', {}, say('as_table')), tableOfDays(title, days)),
      ranking('by_views', 'views', response.by_views),
      ranking('by_comments', 'total', response.by_comments))
  })
}

/** A count; 0 for what is none. */
const amount = value => value > 0 && Number.isFinite(value) ? value : 0

/** A day such as 2026-11-25, as people of the language write it. */
function dayText(day) {
  const date = new Date(text(day))
  if (isNaN(date)) return text(day)
  return date.toLocaleDateString(language, {dateStyle: 'medium', timeZone: 'UTC'})
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

/** A chart with a bar a day. The slider over it tells the value of a day: to the keyboard, to a
    finger and to screen readers. A mouse need only point. */
function chart(word, days) {
  const values = days.map(day => amount(day[word]))
  const total = values.reduce((before, value) => before + value, 0)
  const most = Math.max(...values, 0)
  const summary = total ? say('sum', total, most) : say(COUNTED[word])
  const bars = values.map((value, index) => {
    const height = most && HEIGHT * value / most
    return svg('rect', {x: STEP * index + 1, width: WIDTH, y: HEIGHT - height, height})
  })
  const picture = svg('svg', {
    viewBox: `0 0 ${STEP * days.length} ${HEIGHT}`, preserveAspectRatio: 'none',
    role: 'img', 'aria-label': `${say(word)}: ${summary}`,
  }, ...bars)
  const shown = h('span', {class: 'small'}, summary)
  const tell = (told = summary) => { shown.textContent = told }
  const plot = total
    ? h('div', {class: 'plot'}, picture, slider(word, days, values, bars, tell))
    : picture
  return h('figure', {},
    h('figcaption', {}, h('b', {}, say(word)), shown),
    h('div', {class: 'axis small', ariaHidden: 'true'},
      span(total ? number(most) : ''),
      span(number(0))),
    plot,
    h('div', {class: 'ends small', ariaHidden: 'true'},
      span(dayText(days[0]?.day)),
      span(dayText(days.at(-1)?.day))))
}

/** The slider over the bars of a chart. `tell` gets the day and its value, or nothing when no day
    is pointed at. */
function slider(word, days, values, bars, tell) {
  const last = days.length - 1
  const valueOf = index => `${dayText(days[index].day)}: ${number(values[index])}`
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
    return Math.min(Math.max(Math.floor(distance / width * days.length), 0), last)
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

function tableOfDays(title, days) {
  const words = Object.keys(COUNTED)
  const heads = ['day', ...words].map(word => say(word))
  const rows = days.map(day => [dayText(day.day), ...words.map(word => amount(day[word]))])
  return table(title, heads, rows)
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
  return h('section', {}, h('h2', {}, say(word)), h('p', {class: 'small'}, say(none)))
}
