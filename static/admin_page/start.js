// The admin page at /admin: the comments that wait, all lists and the settings. This asks for the
// texts, and for the queue, while the other modules are still coming.

import {button, h, load} from './shared.js'
import {askAhead, me} from './service.js'
import {preferredLanguage, speak} from './texts.js'

async function start() {
  const main = document.querySelector('main')
  main.replaceChildren()
  main.ariaBusy = 'true'
  let page
  try {
    const loading = [load('admin_page/page.js'), speak(preferredLanguage())]
    const loaded = await Promise.all(loading)
    page = loaded[0]
  } catch { // it is logged; and there may be no texts
    main.append(
      h('p', {role: 'alert'},
        'The service can’t be reached. ', h('span', {lang: 'zh-CN'}, '暂时连不上服务。')),
      button('Try again · 重试', start, {class: 'main'}))
    main.ariaBusy = null
    return
  }
  page.openPage()
}

if (/^(#queue)?$/.test(location.hash) && me().token) askAhead('comments?status=waiting')
start()
