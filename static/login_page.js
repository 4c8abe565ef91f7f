// The page on which a reader comes back from an identity provider, in a window of its own: it hands
// what came of it to the blog's page that opened it, and to no other origin. See login.js.
'use strict'
{
const {origin, page, fragment} = document.body.dataset
if (opener) {
  opener.postMessage(fragment, origin)
  close()
} else {
  // A page on the way has cut the window off from the one that opened it.
  location.replace(`${page}#${fragment}`)
}
}
