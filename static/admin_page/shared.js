// What the admin page uses of the widget's script, which admin.html loads before.

export const {
  Failure, LANGUAGES, button, formatted, h, keep, languageOf, load, loadTexts, recall,
  relativeTime, report, timeOf,
} = customElements.get('commentd-thread').kit
