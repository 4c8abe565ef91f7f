// The pictures of authors: a part of embed.js where accounts can have some. A picture lies upon the
// letter of the name. If it does not come, the letter is seen.
'use strict'

addEventListener('commentd:loaded', ({target: thread}) => {
  if (thread.localName !== 'commentd-thread' || thread.decorators.portrait) return
  const {SERVICE, h} = thread.constructor.kit

  function show({comment, firstChild: article}) {
    const mark = article.querySelector('.avatar')
    if (!mark || !comment.picture) return
    const src = SERVICE + 'pictures/' + comment.picture
    const onerror = ({target}) => target.remove()
    mark.append(h('img', {alt: '', decoding: 'async', onerror, src}))
  }

  thread.decorators.portrait = show
  thread.shadowRoot.querySelectorAll('li[data-id]').forEach(show)
})
