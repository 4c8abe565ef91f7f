// The page at /: the widget itself, the tag to paste, the way to the admin page, and the setup
// checklist. In order: Texts, Elements, Tag, Setup, Start.
'use strict'
{
  // -- Texts ------------------------------------------------------------------

  const TEXTS = {
    en: {
      works: 'It works.',
      lead: 'Your comment service is running. This is what your readers will see. Write the first comment: it is kept on this machine.',
      try: 'Try it',
      tag: 'Put it on your blog',
      paste: 'Paste this line where you want the comments:',
      copy: 'Copy',
      copied: 'Copied.',
      select: 'Selected. Press Ctrl+C or ⌘C to copy.',
      setup: 'Setup checklist',
      where: 'Add these lines to commentd.ini in the folder where commentd was started (make the file if there is none). Each [section] once. Then restart. Run “commentd check” for details.',
      moderate: 'Moderate comments',
      admin: 'There’s no admin yet. Open the one-time link printed in the terminal (restart for a new one).',
      at_admin: 'On the admin page you approve, reply and block.',
      admin_page: 'Open the admin page',
      mail: 'No mail server: emails, with the codes of new accounts, are printed to the terminal.',
      origins: 'Any site can use this service. List your blog so that only it can.',
      public_url: 'The service is only reachable on this machine. Put Caddy or nginx in front and set its public URL. After that, this page is off; the tag and this checklist are on the admin page, under Settings.',
      trusted_proxy: 'Requests come through a proxy that isn’t listed in trusted_proxy, so all visitors share one IP address.',
      captcha: 'The captcha is off or uses a public test key. The default, altcha, needs no key.',
      limits: 'Rate limits are off. Remove “enabled = no” from [limits].',
      disk: 'The disk is nearly full.',
      rights: 'File or folder permissions are wrong.',
      clock: 'The clock of this machine is wrong.',
      outbox: 'Emails could not be delivered.',
      backup: 'There is no recent backup.',
      versions: 'A package is older than it should be.',
      done: 'All set.',
    },
    zh: {
      works: '跑起来了。',
      lead: '评论服务已在运行。读者看到的就是下面这样。写一条评论试试，它存在这台机器上。',
      try: '试一试',
      tag: '放进你的博客',
      paste: '把这一行贴到要显示评论的地方：',
      copy: '复制',
      copied: '已复制。',
      select: '已选中，按 Ctrl+C 或 ⌘C 复制。',
      setup: '上线前的设置',
      where: '把下面几行写进启动 commentd 的目录里的 commentd.ini（没有就新建，每个 [小节] 只写一次），再重启。运行 commentd check 可以看到详情。',
      moderate: '管理评论',
      admin: '还没有管理员。请打开终端里显示的一次性链接；过期了就重启服务，会得到新的。',
      at_admin: '在管理页面里审核、回复、屏蔽。',
      admin_page: '打开管理页面',
      mail: '没有配置邮件服务器：邮件（包括注册验证码）会打印在终端里。',
      origins: '现在任何网站都能嵌入并发表评论。填上你的博客地址，就只允许它使用。',
      public_url: '服务只在本机可用。在前面放上 Caddy 或 nginx，并填上对外的网址。之后这个页面不再显示；要贴的代码和这份清单，在管理页面的“设置”里。',
      trusted_proxy: '有反向代理在转发请求，但没有写进 trusted_proxy，所有访客会被当成同一个人。',
      captcha: '没有人机验证，或者用的是公开的测试密钥。默认的 altcha 不需要密钥。',
      limits: '任何人都可以无限发表。请去掉 [limits] 里的 enabled = no。',
      disk: '磁盘快满了。',
      rights: '数据库文件或所在文件夹的权限不对。',
      clock: '这台机器的时钟不对。',
      outbox: '有邮件没能送达。',
      backup: '数据库没有最近的备份。',
      versions: '某个软件包的版本偏旧。',
      done: '全部设置好了。',
    },
  }
  const lang = navigator.language.startsWith('zh') ? 'zh' : 'en'
  const texts = TEXTS[lang]
  const say = key => texts[key]

  // -- Elements ---------------------------------------------------------------

  const $ = id => document.getElementById(id)

  /** h('a', {href}, 'text', node) makes an element; strings become text, never HTML. */
  function h(tag, props = {}, ...children) {
    const node = Object.assign(document.createElement(tag), props)
    node.append(...children)
    return node
  }

  // -- Tag --------------------------------------------------------------------

  const tag = `<script src="${new URL('embed.js', location.href)}" async></script>`

  /** Copies the tag. Plain http has no clipboard, so the line is selected there. */
  async function copy() {
    try {
      await navigator.clipboard.writeText(tag)
      $('copied').textContent = say('copied')
    } catch {
      getSelection().selectAllChildren($('line'))
      $('copied').textContent = say('select')
    }
  }

  // -- Setup ------------------------------------------------------------------

  const LINES = {
    mail: '[mail]\nhost = smtp.example.com\nuser = comments@example.com\npassword = …',
    origins: '[site]\norigins = https://blog.example',
    public_url: '[server]\npublic_url = https://comments.example\ntrusted_proxy = 127.0.0.1',
    trusted_proxy: '[server]\ntrusted_proxy = 127.0.0.1',
  }

  /** What to set, with lines for the configuration file. */
  function checklist(state) {
    const items = []
    for (const [topic, level] of Object.entries(state)) {
      // A note about backups passes by itself: the service makes one within a minute.
      const passes = topic === 'backup' && level === 'note'
      // The admin stands above.
      if (!texts[topic] || topic === 'admin' || passes) continue
      items.push(h('dt', {}, say(topic)))
      if (LINES[topic]) items.push(h('dd', {}, h('pre', {}, LINES[topic])))
    }
    return items.length ? items : [h('dt', {}, say('done'))]
  }

  // -- Start ------------------------------------------------------------------

  document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en'
  addEventListener('DOMContentLoaded', () => {
    for (const node of document.querySelectorAll('[data-text]')) {
      node.textContent = say(node.dataset.text)
    }
    $('line').textContent = tag
    $('copy').addEventListener('click', copy)
    const state = JSON.parse($('state').textContent)
    $('no_admin').hidden = !state.admin
    if (state.public) $('setup').parentElement.remove()
    else $('todo').append(...checklist(state))
  })
}
