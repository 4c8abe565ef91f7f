// Puts emails that come while the page is open above those that are there.

const PAUSE = 1000 // ms

/** What the page would be if it were loaded now. */
async function loadAgain() {
  const response = await fetch(location.pathname)
  return new DOMParser().parseFromString(await response.text(), 'text/html')
}

async function look() {
  try {
    const emails = [...(await loadAgain()).querySelectorAll('.email')]
    for (const email of emails.reverse()) {
      if (document.getElementById(email.id)) continue
      document.getElementById('emails').prepend(document.adoptNode(email))
      document.getElementById('none').hidden = true
    }
  } catch {
    return // the demo has ended
  }
  setTimeout(look, PAUSE)
}

look()
