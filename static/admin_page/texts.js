// What the page says, in the language of the admin. In order: Values, Texts, Numbers, Languages.

import {h, languageOf, loadTexts, recall} from './shared.js'

// -- Values -------------------------------------------------------------------

// Anybody may have written what the service returns, so no type is taken for granted.
export const text = value => typeof value === 'object' ? '' : String(value ?? '')

/** The rows of a list: all objects in it. */
export const rowsOf = value =>
  Array.isArray(value) ? value.filter(row => row && typeof row === 'object') : []

// -- Texts --------------------------------------------------------------------

let texts // by key: the part `admin` of languages/LANGUAGE.json
export let language

/** Loads the texts of a language, in which the page speaks from then on. */
export async function speak(wanted) {
  texts = await loadTexts('admin-' + wanted)
  language = wanted
}

// The service has some texts in English and in both kinds of Chinese alone.
export const serviceLanguage = () => language.startsWith('zh') ? language : 'en'

export const hasText = key => Object.hasOwn(texts, key)

/** The text of a key, with a name or number at `{n}` and a number at `{m}`. It is the key itself
    where there is no text, since the service may be newer than this page. */
export function say(key, value, second) {
  const plain = text(key)
  const form = hasText(plain) ? plain : `${plain}_${new Intl.PluralRules(language).select(value)}`
  const found = hasText(form) ? texts[form] : plain
  // A name in a sentence is isolated, since it may run from right to left.
  const shown = typeof value === 'string' ? `\u2068${value}\u2069` : number(value)
  return found.replace('{n}', () => shown).replace('{m}', () => number(second))
}

/** A word, and a space behind it unless it ends with a wide sign of Chinese and Japanese. */
export const spaced = word => /[：、]$/.test(word) ? word : word + ' '

/** Sentences after each other. Chinese and Japanese have no space between them. */
export const sentences = (...all) =>
  all.filter(each => each).join(/^(zh|ja)/.test(language) ? '' : ' ')

// -- Numbers ------------------------------------------------------------------

/** A number as people of the language write it. Everything else is a text. */
export function number(value) {
  if (!Number.isFinite(value)) return text(value)
  const size = Math.abs(value)
  let notation = 'standard'
  if (size >= 1e6) notation = 'compact'
  if (size >= 1e15) notation = 'scientific'
  return value.toLocaleString(language, {notation})
}

// -- Languages ----------------------------------------------------------------

// Languages that the browser names by their script or country.
const NAMED_AS = {pt: 'pt-BR', 'zh-CN': 'zh-Hans', 'zh-TW': 'zh-Hant'}

/** How those who speak a language call it: `Italiano`. */
export function nameOfLanguage(tag) {
  const names = new Intl.DisplayNames(tag, {type: 'language'})
  const [first, ...others] = names.of(NAMED_AS[tag] ?? tag)
  return first.toLocaleUpperCase(tag) + others.join('')
}

/** The language that was chosen here, or the first of the browser's that this page has. */
export function preferredLanguage() {
  for (const tag of [recall('lang', ''), ...navigator.languages]) {
    const nearest = languageOf(h('i', {lang: tag}))
    if (tag.slice(0, 2).toLowerCase() === nearest.slice(0, 2)) return nearest
  }
  return 'en'
}
