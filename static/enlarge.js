// Shows a picture of a comment large. Loaded when one is pressed: see images.js.

export const sheet = new CSSStyleSheet()
sheet.replaceSync(MODULE_STYLE)

/** Opens the picture that is in a link. Escape, a press anywhere and the button close it, and the
    focus is at the link again. */
export function enlarge(thread, {button, h}, link) {
  const {alt, src} = link.firstChild
  const close = () => dialog.close()
  const dialog = h('dialog', {
    class: 'large', ariaLabel: alt, onclose: () => dialog.remove(),
    onclick: ({target}) => target.matches('dialog, img') && close(),
  },
  h('img', {alt, referrerPolicy: 'no-referrer', src}),
  h('footer', {}, h('p', {dir: 'auto'}, alt), button(thread.say('close'), close)))
  link.focus() // Safari does not focus a pressed link, and the focus returns there
  thread.$('section').append(dialog)
  dialog.showModal()
}
