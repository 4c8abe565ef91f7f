// What the admin page uses of the widget's scripts. admin.html loads embed.js before.

const {kit} = customElements.get('commentd-thread')

export const {
  Failure, button, formatted, h, languageOf, load, recall, relativeTime, report, timeOf,
} = kit
const errors = await kit.load('errors.js')
export const {duration, readable} = errors
export const keep = (key, value, area) => errors.keep(kit, key, value, area)
export const LANGUAGES = Object.keys(kit.TEXTS)
export const loadTexts = name => kit.once(`words/${name}.json`, kit.ask)
