// The view of what admins did.

import {h, readable} from './shared.js'
import {change, choiceName, labelOf} from './change_settings.js'
import {bdi, dateOf, dots, line, link, main, span, when} from './elements.js'
import {show} from './frame.js'
import {makeList} from './lists.js'
import {announce, busyButton} from './notices.js'
import {call} from './service.js'
import {hasText, say, spaced, text} from './texts.js'

// Who acted without signing in to this page.
const ACTORS = {mail: 'by_mail', command: 'by_command'}

// What the subject of an entry is: the number of a comment or of an account, or the URL of a page.
const ON_COMMENTS = [
  'visible', 'waiting', 'keep', 'spam', 'deleted', 'pin', 'unpin', 'edit', 'reply', 'mine',
  'not_mine', 'trust', 'distrust', 'ban', 'unban',
]
const ON_USERS = ['block_user', 'unblock_user', 'role', 'remove_picture']
const ON_PAGES = ['close', 'reopen', 'title']
const TO_PAGES = ['rename', 'merge'] // their detail is the new URL

const HOUR = 3600e3 // ms

export function draw() {
  main.append(makeList({path: 'audit', query: {limit: 100}, draw: logRow, group: together}))
}

/** The entries in groups: the same that somebody did with several comments within an hour. */
function together(entries) {
  const groups = []
  for (const entry of entries) {
    const group = groups.at(-1)
    if (group && belongsTo(group[0], entry)) group.push(entry)
    else groups.push([entry])
  }
  return groups
}

function belongsTo(newest, entry) {
  return newest.who === entry.who
    && newest.action === entry.action
    && ON_COMMENTS.includes(entry.action)
    && !undoOf(newest) && !undoOf(entry)
    && dateOf(newest.created_at) - dateOf(entry.created_at) < HOUR
}

const linkToComment = id => link('#comments?comment=' + id, say('log_comment', text(id)))

const linkToUser = id => link('#users?user=' + id, text(id))

const findPage = url =>
  link('#pages?' + new URLSearchParams({q: text(url)}), bdi(readable(text(url))))

/** What was done something with. */
function subjectOf({action, subject}) {
  if (ON_COMMENTS.includes(action) && /^\d+$/.test(subject)) return linkToComment(subject)
  if (ON_USERS.includes(action)) return linkToUser(subject)
  if (ON_PAGES.includes(action)) return findPage(subject)
  if (action === 'setting') return h('b', {}, labelOf(subject))
  return bdi(subject)
}

function detailOf({action, detail, was}) {
  if (action === 'setting') {
    const [now, before] = [detail, was].map(each => choiceName(inOneLine(text(each))) || '—')
    return span(bdi(now), ' ', say('set_before', before))
  }
  if (TO_PAGES.includes(action)) return findPage(detail)
  if (/^(un)?ban$/.test(action)) return say('n_comments', Number(detail))
  if (/^((un)?block|role)$/.test(action) && hasText(detail)) return say(detail)
  return text(detail) && bdi(detail)
}

const inOneLine = lines => lines.replaceAll('\n', ', ')

// What puts back what an entry has changed. False if that was refused.
const UNDOING = {
  setting: ({subject, was}) => change({[subject]: was}),
  ban: ({subject}) => call('POST', 'comments', {ids: [Number(subject)], banned: false}),
}

/** A button that puts back what was before. */
function undoOf(entry) {
  const putBack = Object.hasOwn(UNDOING, entry.action) && UNDOING[entry.action]
  if (!putBack || typeof entry.was !== 'string') return ''
  return busyButton('undo', async () => {
    if (!await putBack(entry)) return
    show()
    announce(say('undone'))
  })
}

function logRow(entries) {
  const [entry] = entries
  const {who, action, created_at} = entry
  const name = h('b', {}, Object.hasOwn(ACTORS, who) ? say(ACTORS[who]) : bdi(who))
  const key = 'log_' + text(action)
  const did = spaced(hasText(key) ? say(key) : text(action))
  if (entries.length === 1) {
    const head = span(name, ' ', did, subjectOf(entry))
    return line(head, dots(when(created_at), detailOf(entry)), undoOf(entry))
  }
  const links = entries.flatMap(({subject}) => [linkToComment(subject), ' '])
  const group = h('details', {class: 'group'},
    h('summary', {}, name, ' ', did, say('n_comments', entries.length)),
    h('p', {}, ...links))
  return line(group, dots(when(created_at)))
}
