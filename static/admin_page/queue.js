// The view of what waits for the admin.

import {h} from './shared.js'
import {commentList} from './comments.js'
import {main} from './elements.js'
import {showAgain} from './frame.js'
import {say} from './texts.js'

export {keys} from './comments.js'

const STATUSES = ['waiting', 'reported', 'spam', 'deleted']

export function draw(params) {
  const status = STATUSES.find(each => each === params.get('status')) ?? STATUSES[0]
  const tabs = STATUSES.map(each => {
    const href = each === STATUSES[0] ? '#queue' : '#queue?status=' + each
    const current = each === status ? {'aria-current': 'page'} : {}
    const count = h('span', {'data-count': each})
    return h('li', {}, h('a', {href, onclick: showAgain, ...current}, say(each), count))
  })
  main.append(
    h('nav', {ariaLabel: say('status')}, h('ul', {}, ...tabs)),
    commentList({status}, 'none_' + status))
}
