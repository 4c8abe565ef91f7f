// The page at /: comments of this very page through the API, and what is still to be set.
// In order: Words, Elements, Service, Proof, Comments, Form, Setup, Start.
'use strict'
{
  // -- Words ------------------------------------------------------------------

  const WORDS = {
    en: {
      works: 'It works.',
      lead: 'Your comment service is running. Write the first comment; nothing leaves this machine.',
      try: 'Try it',
      name: 'Name',
      comment: 'Comment',
      post: 'Post',
      posting: 'Posting…',
      posted: 'Posted. It is kept in the database now.',
      waiting: 'Posted. It waits for approval.',
      more: 'Show more',
      none: 'No comments yet. Yours will be the first.',
      one: '1 comment',
      many: '{n} comments',
      offline: 'The service does not answer. Is it still running? Your text is safe here; try again.',
      often: 'That was a lot in a short time. Please wait {n} seconds.',
      long: 'The comment is too long: {n} characters are allowed.',
      empty: 'Please write something first.',
      naming: 'Please choose another name: 1 to 64 letters, nothing hidden.',
      failed: 'The check for robots failed. Please press the button again.',
      setup: 'What is still to be set',
      where: 'Copy these lines to commentd.ini and start again. “commentd check” says more.',
      mail: 'No mail server: letters, with the codes of new accounts, are printed to the terminal.',
      origins: 'Any site may show and post comments here. Name your blog, so that only it may.',
      public_url: 'The service answers on this machine only. Put Caddy or nginx before it and say its address; this page is then off.',
      unnamed_proxy: 'A proxy passes requests on and is not named, so all visitors look like one.',
      captcha: 'Robots are not kept out, or by a key for trials. The default, altcha, needs no key.',
      limits: 'Anyone may write without end. Take “enabled = no” away from [limits].',
      disk: 'The disk is nearly full.',
      rights: 'The rights of files or of their folder are not as they should be.',
      clock: 'The clock of this machine is wrong.',
      outbox: 'Letters could not be delivered.',
      backup: 'There is no recent copy of the database.',
      versions: 'Python, SQLite or a package is older than it should be.',
      done: 'Nothing: all is set.',
    },
    zh: {
      works: '跑起来了。',
      lead: '评论服务已在运行。写下第一条评论试试，数据只留在这台机器上。',
      try: '试一试',
      name: '昵称',
      comment: '评论',
      post: '发表评论',
      posting: '正在发表…',
      posted: '已发表，已存入数据库。',
      waiting: '已提交，等待审核。',
      more: '显示更多',
      none: '还没有评论，来写第一条吧。',
      one: '1 条评论',
      many: '{n} 条评论',
      offline: '服务没有响应，是不是已经停了？内容还在，稍后再试。',
      often: '操作太频繁，请等 {n} 秒再试。',
      long: '评论太长了，最多 {n} 个字。',
      empty: '请先写点什么。',
      naming: '请换一个昵称：1 到 64 个字，不含看不见的字符。',
      failed: '人机验证没有通过，请再点一次。',
      setup: '还需要设置什么',
      where: '把下面的行写进 commentd.ini 后重新启动。运行 commentd check 可以看到详情。',
      mail: '没有邮件服务器：信件（包括注册验证码）会打印在终端里。',
      origins: '现在任何网站都能嵌入并发表评论。写上你的博客，就只有它可以。',
      public_url: '服务只在本机可用。在前面放上 Caddy 或 nginx，并写上它的地址；之后这个页面会关闭。',
      unnamed_proxy: '有代理在转发请求，但没有登记，所有访客看起来都是同一个人。',
      captcha: '没有人机验证，或者用的是公开的测试密钥。默认的 altcha 不需要密钥。',
      limits: '任何人都可以无限发表。请去掉 [limits] 里的 enabled = no。',
      disk: '磁盘快满了。',
      rights: '数据库文件或所在文件夹的权限不对。',
      clock: '这台机器的时钟不对。',
      outbox: '有邮件没能送达。',
      backup: '数据库没有最近的备份。',
      versions: 'Python、SQLite 或某个软件包的版本偏旧。',
      done: '没有了，全部设置好了。',
    },
  }
  const lang = navigator.language.startsWith('zh') ? 'zh' : 'en'
  const words = WORDS[lang]
  const say = (key, n) => words[key].replace('{n}', n)

  // -- Elements ---------------------------------------------------------------

  const $ = id => document.getElementById(id)

  /** h('a', {href}, 'text', node) makes an element; strings become text, never HTML. */
  function h(tag, props = {}, ...children) {
    const node = Object.assign(document.createElement(tag), props)
    node.append(...children)
    return node
  }

  // -- Service ----------------------------------------------------------------

  /** The JSON of a reply; refusals throw {code, retry}. */
  async function ask(path, body) {
    const options = body && {
      method: 'POST', body: JSON.stringify(body), headers: {'Content-Type': 'application/json'},
    }
    let reply
    try {
      reply = await fetch(path, {credentials: 'omit', signal: AbortSignal.timeout(15000), ...options})
    } catch {
      throw {code: 'offline'}
    }
    const value = await reply.json().catch(() => ({code: 'offline'}))
    if (!reply.ok) throw {...value, retry: reply.headers.get('Retry-After')}
    return value
  }

  // -- Proof ------------------------------------------------------------------

  // SHA-256 (FIPS 180-4), since plain http has no crypto.subtle. The constants are the first
  // 32 bits of the fractional parts of the roots of the first primes; only one block is needed.
  const primes = []
  for (let n = 2; primes.length < 64; n++) if (primes.every(p => n % p)) primes.push(n)
  const fraction = x => ((x - Math.floor(x)) * 2 ** 32) | 0
  const K = Int32Array.from(primes, p => fraction(Math.cbrt(p)))
  const H = Int32Array.from(primes.slice(0, 8), p => fraction(Math.sqrt(p)))
  const W = new Int32Array(64)

  /** The hash of the 16 words in `block`, which are padded already, into `out`. */
  function sha256(block, out) {
    W.set(block)
    for (let i = 16; i < 64; i++) {
      const x = W[i - 15], y = W[i - 2]
      W[i] = W[i - 16] + W[i - 7]
        + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3)
        + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10)
    }
    let [a, b, c, d, e, f, g, k] = H
    for (let i = 0; i < 64; i++) {
      const s = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)
      const one = k + s + (e & f ^ ~e & g) + K[i] + W[i] | 0
      const t = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)
      const two = t + (a & b ^ a & c ^ b & c) | 0
      k = g; g = f; f = e; e = d + one | 0; d = c; c = b; b = a; a = one + two | 0
    }
    out.set([a, b, c, d, e, f, g, k])
    for (let i = 0; i < 8; i++) out[i] += H[i]
  }

  const hex = ints => Array.from(ints, n => (n >>> 0).toString(16).padStart(8, '0')).join('')
  const ints = text => text.match(/.{8}/g).map(word => parseInt(word, 16) | 0)

  /** The token for a captcha, found in slices so that the page never stalls. */
  async function prove() {
    const challenge = await ask('captcha')
    if (challenge.provider === 'none') return 'none'
    const {parameters, signature} = challenge
    const {salt, nonce, keyPrefix} = parameters
    const block = new Int32Array(16), out = new Int32Array(8)
    block.set([...ints(salt), ...ints(nonce)])
    block[9] = 0x80000000 | 0
    block[15] = 36 * 8
    const start = performance.now(), first = ints(keyPrefix)[0]
    for (let counter = 0; ; counter++) {
      block[8] = counter
      sha256(block, out)
      if (out[0] === first && hex(out).startsWith(keyPrefix)) {
        const solution = {counter, derivedKey: hex(out), time: performance.now() - start}
        return btoa(JSON.stringify({challenge: {parameters, signature}, solution}))
      }
      if (counter % 5000 === 0) await new Promise(go => setTimeout(go))
    }
  }

  // -- Comments ---------------------------------------------------------------

  const page_url = location.pathname
  let next = 1, longest = 0

  function article(comment) {
    const when = new Date(comment.created_at.replace(' ', 'T') + '+08:00')
    const time = h('time', {dateTime: when.toISOString()}, when.toLocaleString(lang))
    const meta = h('div', {className: 'meta'}, h('bdi', {}, comment.nickname), comment.location, time)
    return h('li', {tabIndex: -1}, meta, h('p', {className: 'content', dir: 'auto'}, comment.content))
  }

  async function load() {
    const {comments, total, max_comment_length} = await ask(`comments?url=${encodeURIComponent(page_url)}&page=${next}`)
    if (next === 1) $('comments').replaceChildren()
    const items = comments.map(article)
    $('comments').append(...items)
    if (next > 1) items[0]?.focus()
    $('count').textContent = total ? say(total === 1 ? 'one' : 'many', total) : say('none')
    $('more').hidden = $('comments').childElementCount >= total || !comments.length
    longest = max_comment_length
    next++
  }

  // -- Form -------------------------------------------------------------------

  let proof = null

  function explain({code, error, retry}) {
    const known = {
      offline: 'offline', too_many: 'often', content_too_long: 'long', content_missing: 'empty',
      nickname_invalid: 'naming', nickname_taken: 'naming', captcha_failed: 'failed',
    }
    $('status').textContent = known[code] ? say(known[code], retry || longest) : error || say('offline')
  }

  async function post(event) {
    event.preventDefault()
    const form = event.target, button = form.querySelector('button')
    // Not `disabled`, which would drop the focus.
    if (button.ariaDisabled === 'true') return
    button.ariaDisabled = 'true'
    $('status').textContent = say('posting')
    try {
      const captcha_token = await proof || await prove()
      const {nickname, content} = Object.fromEntries(new FormData(form))
      const {comment} = await ask('comments', {page_url, nickname, content, captcha_token})
      form.content.value = ''
      $('status').textContent = say(comment.status === 'visible' ? 'posted' : 'waiting')
      next = 1
      await load()
      $('count').focus()
    } catch (refusal) {
      explain(refusal)
    }
    proof = null
    button.ariaDisabled = 'false'
  }

  // -- Setup ------------------------------------------------------------------

  const LINES = {
    mail: '[mail]\nhost = smtp.example.com\nuser = comments@example.com\npassword = …',
    origins: '[site]\norigins = https://blog.example',
    public_url: '[server]\npublic_url = https://comments.example\ntrusted_proxy = 127.0.0.1',
    unnamed_proxy: '[server]\ntrusted_proxy = 127.0.0.1',
  }

  /** What is not in order, by topic; notes on the machine are for the terminal. */
  function todo(state) {
    const topics = Object.keys(state).filter(key => words[key] && (key in LINES || state[key] !== 'note'))
    return topics.length
      ? topics.flatMap(key => [
        h('dt', {}, say(key)), ...LINES[key] ? [h('dd', {}, h('pre', {}, LINES[key]))] : [],
      ])
      : [h('dt', {}, say('done'))]
  }

  // -- Start ------------------------------------------------------------------

  document.documentElement.lang = lang
  for (const node of document.querySelectorAll('[data-word]')) node.textContent = say(node.dataset.word)
  const state = JSON.parse($('state').textContent)
  if (state.public) $('setup').parentElement.remove()
  else $('todo').append(...todo(state))
  $('form').addEventListener('input', () => { proof ??= prove().catch(() => proof = null) }, {once: true})
  $('form').addEventListener('submit', post)
  $('more').addEventListener('click', () => load().catch(explain))
  load().catch(explain)
}
