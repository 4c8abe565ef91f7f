// The view of the pages: closed and reopened, given a title and a URL, merged, and deleted.

import {button, h} from './shared.js'
import {badge, dots, line, link, linkToPage, main, removeRow, replaceRow} from './elements.js'
import {inputField, openDialog} from './forms.js'
import {refreshCounts, show} from './frame.js'
import {finder, makeList} from './lists.js'
import {putBack} from './moderation.js'
import {announce, busyButton} from './notices.js'
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
    button(say('edit'), () => openEdit(row, page)),
    button(say('to_deleted'), () => openDelete(row, page), {class: 'danger'}))
  return row
}

/** Deletes a page with its comments. Undoing brings back the comments, but no views and likes: so
    it is asked about. */
function openDelete(row, page) {
  const remove = async () => {
    const {comments} = await call('DELETE', 'pages/' + page.id)
    const undo = async () => {
      await putBack(comments.map(({id}) => ({comment: {id}})), comments)
      show()
    }
    announce(say('page_deleted'), comments.length ? undo : undefined)
    refreshCounts()
    return removeRow(row)
  }
  const fields = [linkToPage(page), h('p', {}, say('delete_page_lead'))]
  openDialog(say('delete_page'), 'to_deleted', fields, remove)
}

/** Changes a page. Returns the element that gets the focus. */
async function change(row, id, changed) {
  const {page} = await call('PATCH', 'pages/' + id, changed)
  if (changed.merge) return show() // that changes another row too
  return replaceRow(row, pageRow(page))
}

/** Where there is a page at the new URL, the button is pressed again to merge both. */
function openEdit(row, {id, page_url, page_title}) {
  let toMerge // the URL of the other page, once the service has said so
  const title = {value: text(page_title), dir: 'auto', maxLength: 200}
  const url = {value: text(page_url), required: true, maxLength: 2048}
  const fields = [
    inputField('page_title', 'page_title', title),
    h('p', {class: 'small'}, say('title_lead')),
    inputField('page_url', 'page_url', url),
    h('p', {class: 'small'}, say('rename_lead')),
  ]
  openDialog(say('edit'), 'save', fields, async (filled, form) => {
    const wanted = filled.page_url
    const changed = toMerge === wanted ? {merge: true} : {}
    if (wanted !== text(page_url)) changed.page_url = wanted
    if (filled.page_title !== text(page_title)) changed.page_title = filled.page_title
    try {
      return await change(row, id, changed)
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
