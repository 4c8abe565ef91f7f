// The words of a search, and how they are marked in what it finds.

import {h} from './shared.js'

// As the service reads them: a word, or several between quotation marks.
const WORD = /["“”„]([^"“”„]+)["“”„]|(\S+)/g

/** The words of a search in small letters, the longest first: it wins over one that it begins
    with. */
export function wordsOf(query = '') {
  const found = [...query.toLowerCase().matchAll(WORD)]
  const words = found.map(([, quoted = '', word]) => quoted.trim() || word)
  return words.filter(word => word).sort((one, other) => other.length - one.length)
}

/** A text as pieces: every second one, from the second on, is one of the words. */
function pieces(text, words) {
  const folded = text.toLowerCase()
  if (folded.length !== text.length) return [text] // a sign that is longer in lower case
  const found = []
  let start = 0
  for (let at = 0; at < text.length; at += 1) {
    const word = words.find(each => folded.startsWith(each, at))
    if (!word) continue
    found.push(text.slice(start, at), text.slice(at, at + word.length))
    start = at + word.length
    at = start - 1
  }
  return [...found, text.slice(start)]
}

/** Marks words in the texts below an element. Returns whether it found any. */
export function markWords(node, words = []) {
  if (!words.length) return false
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT)
  const texts = []
  while (walker.nextNode()) texts.push(walker.currentNode)
  for (const each of texts) {
    const parts = pieces(each.data, words)
    if (parts.length === 1) continue
    each.replaceWith(...parts.map((part, index) => index % 2 ? h('mark', {}, part) : part))
  }
  return node.querySelector('mark') !== null
}
