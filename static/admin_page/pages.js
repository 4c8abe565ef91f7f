// The view of the pages: closed and reopened, renamed and merged.

import {button, h} from './shared.js'
import {badge, dots, line, link, linkToPage, main, replaceRow} from './elements.js'
import {inputField, openDialog} from './forms.js'
import {show} from './frame.js'
import {finder, makeList} from './lists.js'
import {busyButton} from './notices.js'
import {call} from './service.js'
import {say, text} from './texts.js'

const SORTS = ['latest', 'views', 'comments']

export function draw(params) {
  const list = chosen =>
    makeList({path: 'pages', query: Object.fromEntries(chosen), draw: pageRow, skips: true})
  main.append(...finder('pages', params, {sort: SORTS}, list))
}

function pageRow(page) {
  const {id, total, views, page_likes, closed, closed_by_age} = page
  const close = () => change(row, id, {closed: !closed})
  const row = line(
    linkToPage(page),
    dots(
      link('#comments?page=' + id, say('n_comments', total)),
      say('n_views', views),
      say('n_likes', page_likes),
      closed && badge(closed_by_age ? 'byage' : 'closed')),
    busyButton(closed ? 'reopen' : 'close', close),
    button(say('rename'), () => openRename(row, page)))
  return row
}

/** Changes a page. Returns the element that gets the focus. */
async function change(row, id, changed) {
  const {page} = await call('PATCH', 'pages/' + id, changed)
  if (changed.merge) return show() // that changes another row too
  return replaceRow(row, pageRow(page))
}

/** Where there is a page at the new URL, the button is pressed again to merge both. */
function openRename(row, {id, page_url}) {
  let toMerge // the URL of the other page, once the service has said so
  const url = {value: text(page_url), required: true, maxLength: 2048}
  const fields = [h('p', {}, say('rename_lead')), inputField('page_url', 'page_url', url)]
  openDialog(say('rename'), 'save', fields, async (filled, form) => {
    const wanted = filled.page_url
    const merge = toMerge === wanted ? {merge: true} : {}
    try {
      return await change(row, id, {page_url: wanted, ...merge})
    } catch (error) {
      const isTaken = error.code === 'page_exists'
      const submit = form.querySelector('.main')
      toMerge = isTaken ? wanted : undefined
      submit.textContent = say(isTaken ? 'merge' : 'save')
      submit.classList.toggle('sure', isTaken) // it can't be undone
      throw error
    }
  })
}
