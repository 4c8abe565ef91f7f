// What the admin page uses of the widget's scripts. admin.html loads embed.js before.

const {kit} = customElements.get('commentd-thread')

export const {
  Failure, LANGUAGES, button, formatted, h, keep, languageOf, load, loadTexts, recall,
  relativeTime, report, timeOf,
} = kit
export const {duration, readable} = await kit.load('errors.js')
