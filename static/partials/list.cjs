// The comments of your pages, in the place of each <commentd-thread>. `commentd export` wrote this
// file. It does not write it again: change it as you like. To have it anew, delete it.
const fs = require('fs')
const path = require('path')

const STYLE = `<style>
STYLE</style>`

const CHARACTERS = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'}
const escaped = text => String(text).replace(/[&<>"]/g, character => CHARACTERS[character])
const when = (value, markup) => value ? markup(value) : ''
const span = (name, text) => `<span class="commentd-${name}">${escaped(text)}</span> `

function authorOf(comment, texts) {
  const name = `<bdi>${escaped(comment.author)}</bdi>`
  const link = `<a href="${escaped(comment.website)}" rel="nofollow ugc noopener">${name}</a>`
  const signed = escaped(texts.signed)
  const tick = ` <span role="img" aria-label="${signed}" title="${signed}">✓</span>`
  return `<span class="commentd-name">${comment.website ? link : name}` +
    `${comment.role ? tick : ''}</span> `
}

function commentOf(comment, texts) {
  if (comment.gone) return `<p class="commentd-gone">${escaped(comment.gone)}</p>`
  return `<span class="commentd-avatar" aria-hidden="true" ` +
    `style="background-color: oklch(.52 .08 ${comment.face})">${escaped(comment.initial)}</span>` +
    `<div class="commentd-meta">${authorOf(comment, texts)}` +
    when(comment.role === 'admin', () => span('badge', texts.admin)) +
    when(comment.pinned, () => span('badge', texts.pinned)) +
    when(comment.replied_to, name => `<span>› <bdi>${escaped(name)}</bdi></span> `) +
    when(comment.place, place => span('place', place)) +
    `<a href="#comment-${comment.id}" title="${escaped(comment.day_and_time)}">` +
    `<time datetime="${comment.created_at}">${escaped(comment.day)}</time></a> ` +
    when(comment.edited, () => span('edited', texts.edited)) +
    `</div><div class="commentd-text" dir="auto">${comment.html}</div>` +
    when(comment.likes, likes => `<span class="commentd-likes" role="img" ` +
      `aria-label="${escaped(texts.like)} ${likes}">♥ ${likes}</span>`)
}

function listOf(comments, texts) {
  const items = comments.map(comment =>
    `<li id="comment-${comment.id}"><div class="commentd-comment" role="article" ` +
    `aria-label="${escaped(comment.author)}">${commentOf(comment, texts)}</div>` +
    when(comment.replies.length, () =>
      `<div class="commentd-replies">${listOf(comment.replies, texts)}</div>`) +
    '</li>')
  return `<ol class="commentd-list" role="list">${items.join('')}</ol>`
}

/** The comments of the page at a path, as HTML; "" if it has none. */
function commentsOf(folder, url, id) {
  const read = name => JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), 'utf8'))
  const key = decodeURI(url).replace(/\/index\.html$/, '').replace(/\/+$/, '') || '/'
  const name = read('index').pages[key]
  if (!name) return ''
  const page = read(name)
  return `<section class="commentd"${id} aria-label="${escaped(page.texts.comments)}" ` +
    `lang="${page.lang}" dir="${page.dir}">${STYLE}<h2>${escaped(page.heading)}</h2>` +
    `${listOf(page.comments, page.texts)}</section>`
}

/** The HTML of a page with its comments in the place of each element for them. */
function withComments(html, folder, url) {
  const element = /<commentd-thread\b([^>]*)>[^]*?<\/commentd-thread>/g
  return html.replace(element, (_, attributes) => {
    const id = /\sid\s*=\s*["']?[\w-]+["']?/.exec(attributes)
    return commentsOf(folder, url, id ? id[0] : '')
  })
}
