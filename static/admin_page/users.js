// The view of the accounts: blocked, and made an admin or a moderator.

import {button, h} from './shared.js'
import {
  badge, bdi, dots, findComments, line, link, main, replaceRow, span, when,
} from './elements.js'
import {openDialog, ownPassword} from './forms.js'
import {finder, makeList} from './lists.js'
import {busyButton} from './notices.js'
import {call} from './service.js'
import {say} from './texts.js'

export function draw(params) {
  const list = chosen =>
    makeList({path: 'users', query: Object.fromEntries(chosen), draw: userRow})
  const [form, found] = finder('users', params, {}, list)
  const linkToAll = params.has('user') && h('p', {class: 'small'}, link('#users', say('oneuser')))
  main.append(form, linkToAll || '', found)
}

function userRow(user) {
  const {email, nickname, role, blocked, comments, created_at, you, picture, trusted} = user
  const isAdmin = role === 'admin'
  const isMod = role === 'moderator'
  const roleButton = (word, props) =>
    button(say(word), () => openRole(row, user, word), props)
  const block = () => change(row, user, {blocked: !blocked})
  const removePicture = async () => {
    await call('DELETE', `users/${user.id}/picture`)
    return replaceRow(row, userRow({...user, picture: ''}))
  }
  const row = line(
    h('p', {class: 'row'},
      picture && h('img', {class: 'portrait', alt: '', src: 'pictures/' + picture}),
      h('b', {}, bdi(nickname)),
      isAdmin && badge('admin'),
      isMod && badge('moderator'),
      blocked && badge('blocked'),
      trusted && badge('trusted'),
      you && span(say('you'))),
    dots(
      bdi(email),
      findComments(email, say('n_comments', comments)),
      span(say('since'), ' ', when(created_at))),
    picture && busyButton('remove_picture', removePicture, {class: 'danger'}),
    isAdmin ? roleButton('demote', {class: 'danger'}) : roleButton('promote'),
    isAdmin ? '' : roleButton(isMod ? 'dismiss' : 'appoint', isMod ? {class: 'danger'} : {}),
    you ? '' : busyButton(blocked ? 'unblock' : 'block', block, blocked ? {} : {class: 'danger'}))
  return row
}

/** Changes an account. Returns the element that gets the focus. */
async function change(row, user, changed) {
  await call('PATCH', 'users/' + user.id, changed)
  const {role = user.role, blocked = user.blocked} = changed
  return replaceRow(row, userRow({...user, role, blocked}))
}

// What each button makes of an account.
const ROLES = {promote: 'admin', appoint: 'moderator', demote: 'user', dismiss: 'user'}

function openRole(row, user, word) {
  const role = ROLES[word]
  const work = ({password}) => change(row, user, {role, password})
  openDialog(say(word), word, [bdi(user.nickname), ownPassword()], work)
}
