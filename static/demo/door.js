// The link in the terminal signs this browser in, once. Then the admin page opens.

import {keep} from '../admin_page/shared.js'
import {me, rememberMe} from '../admin_page/service.js'

/** The secret in the URL, if there is one. */
const [, link] = /^#link=(.+)/.exec(location.hash) ?? []

/** Whether the link was still good. */
async function enter() {
  const response = await fetch(location.pathname, {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({link}),
  })
  if (!response.ok) return false
  rememberMe(await response.json())
  keep('lang', document.documentElement.lang)
  return true
}

// Where the link comes into the page that is open already.
addEventListener('hashchange', () => location.reload())

history.replaceState(null, '', location.pathname) // so that it is not kept
const isIn = me().token || (link && await enter())
if (isIn) document.querySelector('#entered a').click()
else document.getElementById(link ? 'used' : 'locked').hidden = false
