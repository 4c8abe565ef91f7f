// The tag that a blog needs, to be copied. Settings and welcome show it.

import {button, h} from './shared.js'
import {announce} from './notices.js'
import {say} from './texts.js'

export function tagSection() {
  const tag = `<script src="${new URL('embed.js', location.href)}" async></script>`
  const code = h('code', {}, tag)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(tag)
      announce(say('copied'))
    } catch { // plain http has no clipboard
      getSelection().selectAllChildren(code)
      announce(say('mark'))
    }
  }
  return [
    h('h2', {}, say('tag')),
    h('p', {}, say('paste')),
    h('pre', {class: 'tag', tabIndex: 0, dir: 'ltr'}, code),
    button(say('copy'), copy, {class: 'main'}),
  ]
}
