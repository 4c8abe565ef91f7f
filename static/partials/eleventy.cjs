
module.exports = config => config.addTransform('commentd', function (html) {
  const {url} = this.page
  if (!url || !String(html).includes('<commentd-thread')) return html
  return withComments(html, path.join(__dirname, '_data/commentd'), url)
})
