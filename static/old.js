// A link to the plain page of comments, for browsers that are too old for the widget. `embed.js`
// loads it there.
'use strict'
{
const script = document.currentScript
const url = location.pathname + location.search
const link = document.createElement('a')
link.href = new URL('thread?' + new URLSearchParams({url}), script.src)
link.textContent = 'Old browser? Comments are here. 浏览器太旧，评论在此。'
const thread = document.querySelector('commentd-thread')
if (thread) {
  thread.textContent = ''
  thread.append(link)
  thread.style.height = 'auto' // themes hold that of the widget
} else script.after(link)
}
