// The reactions to a page: a part of embed.js where the blog has some. Their emojis are in its
// constant REACTIONS, so that the buttons are there before the list comes, and nothing moves then.
'use strict'

{
  const {prototype} = customElements.get('commentd-thread')
  const {kit} = prototype.constructor
  const {draw, head} = prototype

  /** A button for each emoji, above the form. */
  function addReactions(thread) {
    const buttons = REACTIONS.map(emoji => {
      const key = thread.url + ' ' + emoji
      const pressed = kit.button('', () => react(thread, pressed, key, emoji), {class: 'reaction'})
      pressed.show = (reacted, n) => {
        pressed.count = n
        pressed.ariaPressed = reacted
        pressed.ariaLabel = `${thread.say('react', emoji)} ${n}`
        pressed.replaceChildren(emoji, kit.h('b', {}, String(n || '')))
      }
      pressed.update = () => {
        const isOn = kit.recall('reactions', []).includes(key)
        pressed.show(isOn, thread.totals.reactions?.[emoji] ?? 0)
      }
      pressed.update()
      return pressed
    })
    const props = {class: 'reactions row', role: 'group', ariaLabel: thread.say('reactions')}
    thread.$('.form, .head').before(kit.h('div', props, ...buttons))
  }

  /** Adds a reaction, or takes it back. */
  function react(thread, pressed, key, emoji) {
    const body = {page_url: thread.url, emoji}
    thread.use('reading.js', 'toggle', pressed, {
      list: 'reactions', keep: keys => kit.keep(kit, 'reactions', keys),
      key, path: 'page/react', body,
      countIn: ({reactions}) => reactions[emoji],
      show: count => {
        thread.totals.reactions = {...thread.totals.reactions, [emoji]: count}
      },
    })
  }

  // Another tag of the same blog may have added them.
  if (!prototype.hasReactions) {
    prototype.hasReactions = true
    prototype.draw = function () {
      draw.call(this)
      addReactions(this)
    }
    prototype.head = function () {
      head.call(this)
      for (const pressed of this.shadowRoot.querySelectorAll('.reaction')) pressed.update()
    }
  }
}
