
const LATE = 20 // after the filters of your own scripts, which may add the element
hexo.extend.filter.register('after_render:html', (html, {page}) => {
  if (!page || !page.path || !html.includes('<commentd-thread')) return html
  const folder = path.join(hexo.source_dir, '_data/commentd')
  return withComments(html, folder, hexo.config.root + page.path)
}, LATE)
