// What the spam filter says: of a comment, and of what it has learnt.

import {h, report} from './shared.js'
import {bdi, main, span} from './elements.js'
import {ask, hasEnded} from './service.js'
import {language, rowsOf, say, spaced, text} from './texts.js'

// -- A comment ----------------------------------------------------------------

const SPAM = .9 // from this score on

/** No filter is certain: between 1 % and 99 %. */
const percent = share =>
  Math.min(Math.max(share, .01), .99).toLocaleString(language, {style: 'percent'})

/** The score of the spam filter, and the terms that decided it. */
export function score({spam, content, nickname}) {
  if (!Number.isFinite(spam?.score)) return
  const written = `${text(nickname)} ${text(content)}`.toLowerCase()
  const colon = spaced(say('colon'))
  const comma = spaced(say('comma'))
  const terms = (lead, isSpam) => {
    const found = rowsOf(spam.tokens).filter(each => isSpam === each.score > .5)
    const words = joined(found.map(({token}) => text(token)), written)
    return words.flatMap((word, index) => [index ? comma : lead + colon, termText(word)])
  }
  const verdict = percent(spam.score)
  if (spam.score < .5) return span(say('score_ham', verdict), ...terms('', false))
  if (spam.score >= SPAM) return span(say('score_spam', verdict), ...terms('', true))
  return span(say('score_open', verdict), ...terms('', true), ...terms(say('but'), false))
}

/** In scripts without spaces the terms of the filter are pairs of characters. Those that overlap
    are joined to words. */
function joined(terms, written) {
  const words = []
  for (const term of terms) {
    const [first, last] = /^[\u0e00-\uffff]{2}$/.test(term) ? term : []
    const goesOn = words.findIndex(word =>
      first && word.endsWith(first) && written.includes(word + last))
    const begins = words.findIndex(word =>
      first && word.startsWith(last) && written.includes(first + word))
    if (goesOn >= 0) words[goesOn] += last
    else if (begins >= 0) words[begins] = first + words[begins]
    else words.push(term)
  }
  return words
}

/** A term of the filter as a person reads it: `links:2`, `link:HOST`, `name:WORD` or a word. */
function termText(term) {
  const [, type, value] = /^(links?|name):(.*)/s.exec(term) ?? []
  if (type === 'links') return say(Number(value) ? 'n_links' : 'no_links', Number(value))
  return span(bdi(value ?? term), type === 'name' && ` (${say('nickname')})`)
}

// -- Learning -----------------------------------------------------------------

/** What the filter has learnt from. */
export function filterState(filter) {
  const {spam, ham, active} = filter ?? {}
  if (!Number.isFinite(spam)) return ''
  return h('p', {class: 'small filter'}, say(active ? 'learnt' : 'learning', spam, ham))
}

const shownState = () => main.querySelector('.filter')

async function updateState() {
  try {
    const {filter} = await ask('GET', 'comments?limit=1')
    shownState()?.replaceWith(filterState(filter))
  } catch (error) {
    if (hasEnded(error)) return // the next thing that the admin does asks them to sign in
    report('what the spam filter has learnt can’t be shown', error)
  }
}

const PAUSE = 300 // ms. Clicks in quick succession ask once

let timer

/** Updates the line with what the filter has learnt, where it is shown. */
export function updateFilterState() {
  clearTimeout(timer)
  if (shownState()) timer = setTimeout(updateState, PAUSE)
}
