// The view of all comments, with a search; and the list of comments that the queue shows too.

import {h} from './shared.js'
import {commentRow} from './comment_row.js'
import {link, main} from './elements.js'
import {filterState} from './filter.js'
import {counts, showBlogs, showCounts} from './frame.js'
import {finder, makeList} from './lists.js'
import {wordsOf} from './marks.js'
import {setFirstCurrent} from './moderation.js'
import {say} from './texts.js'

export {keys} from './moderation.js'

// -- List ---------------------------------------------------------------------

const FILTERED = ['waiting', 'spam'] // the statuses that the spam filter gives

/** An empty queue leads to the comments that readers reported. */
function leadToReported() {
  const empty = main.querySelector('.none')
  if (!(counts.reported > 0) || empty.children.length) return
  empty.append(h('p', {}, link('#queue?status=reported', say('n_reported', counts.reported))))
}

/** The comments with a status, or of all. `none` is the text of an empty list. */
export function commentList(query, none) {
  const onResponse = response => {
    showCounts(response.counts)
    showBlogs(response.blogs)
    setFirstCurrent()
    if (query.status === 'waiting') leadToReported()
    main.querySelector('.filter')?.remove()
    if (FILTERED.includes(query.status)) main.append(filterState(response.filter))
  }
  const words = wordsOf(query.q)
  const row = comment => commentRow(comment, query.status, words)
  return makeList({path: 'comments', query, none, draw: row, then: onResponse})
}

// -- View ---------------------------------------------------------------------

const STATUSES = ['all', 'visible', 'waiting', 'reported', 'spam', 'deleted']

// What the list may be narrowed by, with the type of the field.
const FIELDS = {author: 'text', page_name: 'text', since: 'date', until: 'date'}

// What the list may be limited to, with the text of the link to all.
const LIMITS = {page: 'onepage', comment: 'onecomment'}

export function draw(params) {
  const limit = Object.keys(LIMITS).find(name => params.has(name))
  const list = chosen =>
    commentList({status: 'all', ...Object.fromEntries(chosen)}, 'none_found')
  const [form, found] = finder('comments', params, {status: STATUSES}, list, FIELDS)
  const linkToAll = limit ? h('p', {class: 'small'}, link('#comments', say(LIMITS[limit]))) : ''
  main.append(form, linkToAll, found)
}
