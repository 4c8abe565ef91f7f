// A browser still has drafts, likes and logins of the last demo here: they are of nobody now.
'use strict'
{
  const key = location.origin + '/demo'
  const version = document.documentElement.dataset.version
  if (localStorage.getItem(key) !== version) {
    for (const storage of [localStorage, sessionStorage]) {
      for (const name of Object.keys(storage)) {
        if (name.startsWith(location.origin)) storage.removeItem(name)
      }
    }
    localStorage.setItem(key, version)
  }
}
