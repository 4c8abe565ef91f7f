// A comment in a list, with all that helps to decide about it.
// In order: Facts, Reports, Text, Blocks, Row.

import {button, formatted, h} from './shared.js'
import {edit, reply} from './answers.js'
import {ban, closePage, distrust, trust} from './authors.js'
import {announceBlock, blockingWork} from './blocking.js'
import {badge, bdi, findComments, keyed, linkOut, linkToPage, span, tick, when} from './elements.js'
import {score} from './filter.js'
import {choice, openDialog, option} from './forms.js'
import {markWords} from './marks.js'
import {focusRow, moderate, setCurrent, statusButtons, updateSelection} from './moderation.js'
import {busyButton} from './notices.js'
import {call, isModerator} from './service.js'
import {language, rowsOf, say, text} from './texts.js'

/** Whether a comment is neither spam nor deleted. */
const stands = ({status}) => ['visible', 'waiting'].includes(status)

const nameOf = ({nickname}) => text(nickname) || say('anonymous')

/** A button with a key, which asks the service. */
const keyedAndBusy = (key, word, work, props) =>
  busyButton(word, work, {'aria-keyshortcuts': key, ...props})

// -- Facts --------------------------------------------------------------------

/** Why a comment waits: `all`, or what it contains: `word: loan`. */
function holdReason(reason) {
  const [, type, value] = /^(word|block|learnt): (.*)/s.exec(reason) ?? []
  return say('held_' + (type ?? reason), value)
}

function pageOf({page_url, page_link, page_title, foreign, closed}) {
  if (!text(page_url)) return
  return span(
    linkToPage({page_link, page_url, page_title}),
    closed && ` (${say('closed')})`,
    ' ',
    foreign && h('span', {class: 'alarm'}, say('foreign')))
}

function howKnown({known, held, role, trusted}) {
  if (trusted) return say('trusted')
  if (known > 0) return say('n_others', known)
  return held !== 'first' && role !== 'admin' && say('first')
}

/** The service names places in Chinese; in other languages the browser names the country. */
function placeOf({location: place, country}) {
  if (language === 'zh-CN' || !/^[A-Z]{2}$/.test(country)) return text(place)
  return new Intl.DisplayNames(language, {type: 'region'}).of(country)
}

function websiteOf({website}) {
  const url = text(website)
  return url && linkOut(website, url.replace(/^https?:\/\/|\/$/g, ''))
}

// The facts beside a comment, by the text that names each.
const FACTS = {
  held: ({held, status}) => text(held) && status !== 'visible' && holdReason(held),
  score: comment => ['waiting', 'spam'].includes(comment.status) && score(comment),
  page: pageOf,
  known: howKnown,
  place: placeOf,
  ip: ({ip}) => text(ip) && (isModerator() ? bdi(ip) : findComments(ip)),
  email: ({email}) => text(email) && findComments(email),
  // The account whose email address a guest gave.
  holder: ({holder}) => holder && say('holder_is', text(holder.nickname)),
  website: websiteOf,
}

function factsOf(row) {
  const found = Object.entries(FACTS).map(([word, factOf]) => [word, factOf(row.comment)])
  const shown = found.filter(([, value]) => value)
  return h('dl', {class: 'facts'}, ...shown.map(([word, value]) =>
    h('div', {class: word}, h('dt', {class: 'sr'}, say(word)), h('dd', {}, value))))
}

// -- Reports ------------------------------------------------------------------

const REASONS_AT_ONCE = 3

/** How many readers reported a comment, and why. */
function reportsOf({reports}) {
  const all = rowsOf(reports)
  if (!all.length) return
  const times = new Map()
  for (const {reason} of all) times.set(text(reason), (times.get(text(reason)) ?? 0) + 1)
  times.delete('')
  const sorted = [...times].sort(([, one], [, other]) => other - one)
  const first = sorted.map(([reason, count]) => h('li', {},
    bdi(reason),
    count > 1 && h('span', {class: 'small'}, ` (${say('times', count)})`)))
  const rest = first.splice(REASONS_AT_ONCE)
  return h('div', {class: 'reports'},
    h('p', {class: 'alarm'}, say('reports', all.length)),
    h('ul', {}, ...first),
    rest.length > 0 && h('details', {},
      h('summary', {}, say('reasons', rest.length)),
      h('ul', {}, ...rest)))
}

// -- Text ---------------------------------------------------------------------

/** The host of a URL; '' if it is none. Safari 16 has no `URL.canParse`. */
function hostOf(url) {
  try {
    return new URL(text(url)).hostname.replace(/^www\./, '')
  } catch {
    return ''
  }
}

const LONG = 700 // characters

/** The text, with the words of a search marked. Links show their host. A long text is folded,
    unless such a word stands in it. */
function bodyOf({html, content}, words) {
  const body = formatted(text(html))
  for (const each of body.querySelectorAll('a')) {
    const host = hostOf(each.href)
    each.target = '_blank'
    if (!each.textContent.includes(host)) each.dataset.host = host
  }
  const isMarked = markWords(body, words)
  if (text(content).length < LONG || isMarked) return [body]
  body.classList.add('folded')
  const unfold = button(say('unfold'), () => {
    body.classList.remove('folded')
    unfold.remove()
    body.parentNode.focus()
  }, {class: 'unfold'})
  return [body, unfold]
}

// -- Blocks -------------------------------------------------------------------

/** What of a comment can be blocked, as pairs of type and value: the IP address, the email address,
    and the hosts of website and links. */
function blockable({ip, email, website, html}) {
  const links = [...text(html).matchAll(/href="([^"]*)"/g)].map(([, href]) => href)
  const hosts = new Set([website, ...links].map(hostOf))
  const pairs = [['address', text(ip)], ['email', text(email)]]
  for (const host of hosts) pairs.push(['domain', host])
  return pairs.filter(([, value]) => value)
}

/** Blocks the author with all that they wrote, or by one thing that the comment tells. */
async function openBlock(row) {
  const author = await call('GET', `comments/${row.comment.id}/author`)
  const known = author.blocks.join(', ')
  const pairs = blockable(row.comment)
  const shown = pairs.map(([kind, value], index) => [index, span(`${say(kind)} `, bdi(value))])
  if (!author.staff) shown.unshift(['author', span(say('ban', author.comments))])
  const fields = [
    choice('which', 'kind', shown),
    known && h('p', {class: 'small of_author'}, say('ban_lead', known)),
    choice('days', 'days', ['30', 'forever'].map(days => [days, say(days)])),
    stands(row.comment) && option('checkbox', {name: 'spam', checked: true}, say('block_spam')),
  ]
  const blockOf = ({which, days, spam}) => {
    const [kind, value] = pairs[which]
    return {kind, value, days, spam}
  }
  const done = (added, {spam}) => {
    // When the dialog has closed, the focus can move.
    if (spam) setTimeout(moderate, 0, [row], 'spam', added)
    else announceBlock(added)
  }
  const block = blockingWork(blockOf, done)
  const work = (filled, form) =>
    filled.which === 'author' ? ban(row.comment, author) : block(filled, form)
  openDialog(say('block'), 'block', fields, work)
}

// -- Row ----------------------------------------------------------------------

async function pin(row, pinned) {
  await call('POST', 'comments', {ids: [row.comment.id], pinned})
  row.redraw({pinned})
  focusRow(row)
}

/** An author is known by an email address: that of the account, or the one that a guest gave. Of
    those who have none, anybody can type the name. */
const canBeTrusted = ({email, role}) => text(email) && role !== 'admin'

function trustButton(row) {
  const {trusted} = row.comment
  const change = () => trusted ? distrust(row) : trust(row)
  return keyedAndBusy('t', trusted ? 'distrust' : 'trust', change)
}

function closeButton(row) {
  const {closed} = row.comment
  return keyedAndBusy('c', closed ? 'openpage' : 'closepage', () => closePage(row, !closed))
}

function buttonsOf(row) {
  const {comment} = row
  const {status, pinned, parent_id, page_url, reports, role} = comment
  const current = rowsOf(reports).length ? 'reported' : status
  const canPin = status === 'visible' && !parent_id
  const pinning = canPin && busyButton(pinned ? 'unpin' : 'pin', () => pin(row, !pinned))
  const deciding = statusButtons(current, wanted => moderate([row], wanted))
  const closing = text(page_url) && closeButton(row)
  if (isModerator()) return [...deciding, closing, pinning]
  return [
    ...deciding,
    stands(comment) && keyed('r', 'reply', () => reply(row)),
    keyed('e', 'edit', () => edit(row)),
    role !== 'admin' && keyedAndBusy('b', 'block', () => openBlock(row), {class: 'danger'}),
    canBeTrusted(comment) && trustButton(row),
    closing,
    pinning,
  ]
}

function headOf({comment, listed, words}) {
  const {status, role, pinned, edited, created_at} = comment
  const name = nameOf(comment)
  const shownName = bdi(name)
  markWords(shownName, words)
  const pick = h('input', {
    type: 'checkbox', ariaLabel: `${say('select')}: ${name}`, 'aria-keyshortcuts': 'x',
    onchange: () => updateSelection(listed),
  })
  return h('div', {class: 'meta row'},
    h('label', {class: 'pick'}, pick),
    h('b', {}, shownName, role && tick()),
    role === 'admin' && badge('admin'),
    pinned && badge('pinned'),
    ![listed, 'visible'].includes(status) && badge(status),
    edited && span(say('edited')),
    h('span', {class: 'push'}, when(created_at)))
}

function articleOf(row) {
  const {comment, words} = row
  const {parent} = comment
  const facts = factsOf(row)
  for (const each of facts.querySelectorAll('dd')) markWords(each, words)
  const repliedTo = parent && h('p', {class: 'small answers', dir: 'auto'},
    say('answers', nameOf(parent)), ' ', bdi(parent.content))
  return h('article', {tabIndex: -1, ariaLabel: say('by', nameOf(comment))},
    headOf(row),
    repliedTo,
    ...bodyOf(comment, words),
    reportsOf(comment),
    facts,
    h('div', {class: 'acts row'}, ...buttonsOf(row)))
}

/** The row of a comment in a list of those with a status, or of `all`, with some `words` marked. */
export function commentRow(comment, listed, words) {
  if (!(comment.id > 0)) throw new TypeError('a comment without a number')
  const row = h('li', {class: 'comment', onfocusin: () => setCurrent(row)})
  row.listed = listed
  row.words = words
  row.redraw = changed => {
    row.comment = {...row.comment, ...changed}
    row.replaceChildren(articleOf(row))
  }
  row.redraw(comment)
  return row
}
