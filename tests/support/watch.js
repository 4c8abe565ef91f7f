// What tests and benchmarks ask of the widget in the browser; runs before the page's own scripts.
{
  const watch = {shifts: [], told: []}
  window.watch = watch
  const {round, max, min} = Math
  const widget = () => watch.thread ?? document.querySelector('commentd-thread')
  const all = root => [...root.querySelectorAll('*')].flatMap(
    e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e])
  // What a test has in the place of the widget may have no shadow root.
  const inside = () => all(widget()?.shadowRoot ?? watch.thread ?? document.createElement('i'))
  const parent = e => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host
  const box = e => e.getBoundingClientRect()
  const area = r => [r.x, r.y, r.width, r.height].map(round).join(' ')
  const hasText = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
  /** Tells which elements are seen as things are. It looks at each parent of all of them once. */
  const seenNow = () => {
    const clipped = new Map([[widget(), false], [null, false], [undefined, false]])
    const isClipped = e => {
      if (!clipped.has(e)) {
        const {width, height} = box(e)
        const clips = min(width, height) <= 1 && getComputedStyle(e).overflow !== 'visible'
        clipped.set(e, clips || isClipped(parent(e)))
      }
      return clipped.get(e)
    }
    return e =>
      e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !isClipped(e)
  }
  const seen = e => seenNow()(e)
  // What is far from the window has no layout of its own.
  const rendered = () => inside().filter(seenNow())
    .filter(e => e.checkVisibility({contentVisibilityAuto: true}))
  const name = e => e.localName + [...e.classList].map(c => '.' + c).join('')
    + (e.name ? `[name=${e.name}]` : '')
  const spot = e => {
    const around = parent(e)?.closest('.panel, .row, .guest, .body, article, form, dialog')
    return (around ? name(around) + ' ' : '') + name(e)
  }
  const controls = () => inside().filter(e => e.matches(`a[href], button, select,
    input:not([type=hidden]), textarea, summary, [contenteditable], [role=button],
    [tabindex]:not([tabindex^="-"])`)).filter(seenNow())
  watch.controls = () => controls().length
  watch.has = selector => inside().some(e => e.matches(selector) && seen(e))

  // Time and layout

  const moved = ({node, previousRect, currentRect}) => {
    // The nodes of a shadow root are not told, so the one of this size is looked for.
    const e = node ?? inside().find(each => area(box(each)) === area(currentRect))
    const what = e ? `${e.nodeName}.${e.className} "${e.textContent.slice(0, 40)}"` : '?'
    return `${what}: ${area(previousRect)} -> ${area(currentRect)}`
  }
  new PerformanceObserver(list => {
    for (const {value, hadRecentInput, startTime, sources} of list.getEntries()) {
      const what = sources.map(moved).join(' | ')
      if (!hadRecentInput) watch.shifts.push([value, round(startTime), what])
    }
  }).observe({type: 'layout-shift', buffered: true})

  // Contrast: as a browser paints, with each opacity and ground up to the page's

  const brush = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
  const colors = {}
  const rgba = color => {
    if (color in colors) return colors[color]
    brush.clearRect(0, 0, 1, 1)
    brush.fillStyle = color
    brush.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data
    return colors[color] = [r, g, b, a / 255]
  }
  const blend = ([r, g, b, a], [R, G, B, A]) => {
    const whole = a + A * (1 - a)
    const mix = (top, under) => whole && (top * a + under * A * (1 - a)) / whole
    return [mix(r, R), mix(g, G), mix(b, B), whole]
  }
  const painted = (e, color = [0, 0, 0, 0]) => {
    for (; e; e = parent(e)) {
      const {backgroundColor, opacity} = getComputedStyle(e)
      color = blend(color, rgba(backgroundColor))
      color[3] *= opacity
    }
    return blend(color, [255, 255, 255, 1])
  }
  const light = color => color.slice(0, 3).map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], .05)
  const against = (color, under) => {
    const pair = [light(color), light(under)]
    return round(max(...pair) / min(...pair) * 100) / 100
  }
  const on = (e, color) => against(painted(e, rgba(color)), painted(e))
  watch.texts = () => inside().filter(seenNow()).flatMap(e => [
    ...hasText(e) ? [[spot(e), on(e, getComputedStyle(e).color)]] : [],
    ...e.placeholder && !e.value
      ? [[spot(e) + '::placeholder', on(e, getComputedStyle(e, '::placeholder').color)]] : []])

  /** The strongest of ground and borders that tells an element from what is around it. */
  const edge = (e, which) => {
    const style = getComputedStyle(e, which), around = which ? e : parent(e)
    const sides = ['Top', 'Left', 'Bottom', 'Right'].filter(side =>
      style[`border${side}Style`] !== 'none' && parseFloat(style[`border${side}Width`]))
    const own = [style.backgroundColor, ...sides.map(side => style[`border${side}Color`])]
    return max(...own.map(color => on(around, color)))
  }
  /** In forced colours, what has lost its border. */
  watch.bare = () => inside().filter(e =>
    e.matches('.button, .more, input:not([type=radio]), textarea, .badge') && seen(e) && edge(e) < 3)
    .map(spot)
  watch.edges = () => rendered().flatMap(e => {
    const text = e.innerText?.trim(), mine = ratio => [[spot(e), ratio]]
    if (e.matches('[type=radio]')) return [] // the browser draws it
    if (e.matches('.like')) return mine(edge(e, '::before'))
    if (e.matches('input, textarea')) return mine(edge(e))
    if (e.matches('.button')) return mine(edge(e))
    if (e.querySelector('img')) return [] // the picture shows what it is
    // The tint behind an emoji is not what shows that it is a button.
    if (e.matches('.reaction:not([aria-pressed=true])')) return []
    // The tint under the pointer is not what shows that it is a button.
    if (e.matches('button') && text) return edge(e) > 1.1 && !e.matches(':hover') ? mine(edge(e)) : []
    if (!e.matches('button')) return []
    const {content, color} = getComputedStyle(e, '::before')
    if (/^(attr|".)/.test(content) && content !== '""') return mine(on(e, color)) // a sign, such as B
    return mine(max(edge(e), edge(e, '::before'), edge(e, '::after')))
  })

  // Focus

  const active = () => widget().shadowRoot.activeElement
  const modal = () => inside().find(e => e.matches('dialog:modal'))
  // Of choices that exclude each other, Tab reaches the chosen one.
  const stops = () => controls().filter(e => e.tabIndex >= 0 && !e.disabled
    && (e.type !== 'radio' || e.checked) && (modal()?.contains(e) ?? true))
  const ring = e => {
    const {outlineStyle, outlineWidth, outlineOffset, outlineColor, opacity} = getComputedStyle(e)
    if (outlineStyle === 'none' || parseFloat(outlineWidth) < 1) return 0
    if (parseFloat(outlineOffset) <= -parseFloat(outlineWidth)) return on(e, outlineColor) // inside
    const [r, g, b, a] = rgba(outlineColor)
    return against(painted(parent(e), [r, g, b, a * opacity]), painted(parent(e)))
  }
  const visited = new Set()
  watch.start = () => {
    visited.clear()
    const heading = document.querySelector('#comments')
    heading.tabIndex = -1
    heading.focus()
    return !modal()
  }
  watch.stop = () => {
    const e = active()
    if (!e) return null
    visited.add(e)
    const {x, top, bottom, left, right} = box(e)
    const over = inside().filter(o => !o.contains(e)
      && /sticky|fixed/.test(getComputedStyle(o).position) && seen(o)).map(box)
    const covered = bottom <= 0 || top >= innerHeight || over.some(o =>
      o.top <= top && o.bottom >= bottom && o.left <= left && o.right >= right)
    const called = e.ariaLabel || e.labels?.[0]?.textContent || e.textContent
    return {spot: spot(e), ring: ring(e), covered, x: x + scrollX, top: top + scrollY,
      bottom: bottom + scrollY, floats: e.matches('.line, .quote'), rtl: e.matches(':dir(rtl)'),
      name: called.trim(), tag: e.localName}
  }
  watch.modal = () => Boolean(modal())
  watch.missed = () => stops().filter(e => !visited.has(e)).map(spot)
  /** After a key, so that the browser shows the focus. */
  watch.rings = () => stops().map(e => (e.focus({preventScroll: true}), [spot(e), ring(e)]))
  watch.at = selector => active()?.matches(selector)
  // In some languages, there are words between an emoji and its count.
  const isNamed = e => {
    const words = e.innerText.trim().toLowerCase().split(/\s+/)
    const read = e.matches('.reaction') ? words : [words.join(' ')]
    return read.every(part => e.ariaLabel.toLowerCase().includes(part))
  }
  watch.misnamed = () => controls().filter(e => e.ariaLabel && hasText(e) && !isNamed(e)).map(spot)

  // Room

  const isInline = e => /^(inline|contents)$/.test(getComputedStyle(e).display)
  const inSentence = e => {
    if (!e.matches('a') || !isInline(e)) return false
    let block = parent(e)
    while (isInline(block)) block = parent(block)
    const linked = [...block.querySelectorAll('a, button')].map(a => a.textContent).join('')
    return block.textContent.length - linked.length > 20
  }
  const reached = e => {
    e.scrollIntoView({block: 'center'})
    const {x, y, width, height} = box(e), cx = x + width / 2, cy = y + height / 2
    return [[-12, 0], [12, 0], [0, -12], [0, 12]].every(([dx, dy]) => {
      const hit = e.getRootNode().elementFromPoint(cx + dx * .99, cy + dy * .99)
      return e.contains(hit) || hit?.closest('label')?.control === e
    })
  }
  const isFar = e => {
    const {x, y, width, height} = box(e), cx = x + width / 2, cy = y + height / 2
    return stops().filter(o => o !== e && !o.contains(e)).map(box).every(o => Math.hypot(
      max(o.left - cx, 0, cx - o.right), max(o.top - cy, 0, cy - o.bottom)) >= 12)
  }
  /** SC 2.5.8: how many there are, how many have 44 pixels, and which have not even 24, are not met
   * so far around their middles, and have another one so near. */
  watch.targets = () => {
    const free = stops().filter(e => !inSentence(e))
    const has = least => e => min(box(e).width, box(e).height) >= least - .01
    const small = free.filter(e => !has(24)(e) && !reached(e) && !isFar(e))
    return [free.length, free.filter(has(44)).length,
      small.map(e => `\`${spot(e)}\` ${round(box(e).width)} x ${round(box(e).height)}`)]
  }
  /** What a finger finds too small. What stands in the line of a name, which may be a short word,
   * and the line beside replies have no room for its width. A choice is pressed by its text, too. */
  watch.low = least => inside().filter(e => e.matches(
    'button, select, summary, input, textarea, .links a, .meta a') && e.checkVisibility())
    .map(e => e.closest('.choice') ?? e)
    .filter(e => e.matches('.meta a') ? box(e).height < 23.98
      : min(box(e).width, box(e).height) < (e.matches('.line') ? 23.98 : least))
    .map(e => `${spot(e)} ${round(box(e).width)} x ${round(box(e).height)}`)
  // What is read by scrolling it sideways, where the keyboard reaches it.
  const SCROLLED = 'pre *, .body [tabindex="0"] *, .preview [tabindex="0"] *'
  // A dialog cuts off what is wider than it.
  const room = e => e.closest('dialog') ? box(e.closest('dialog')) : {left: 0, right: innerWidth}
  watch.wide = () => inside().filter(seenNow()).filter(e => !e.closest(`${SCROLLED}, .sr`))
    .filter(e => box(e).right > room(e).right + 1 || box(e).left < room(e).left - 1)
    .map(e => `\`${spot(e)}\` leaves the page`)
    .concat(document.documentElement.scrollWidth > innerWidth ? 'the page scrolls sideways' : [])
  /** Texts that a box cuts, or that lie on each other, where nothing is meant to come up. The box of
   * a letter of a formula is far higher than the letter. */
  watch.cut = () => {
    const texts = rendered().filter(e =>
      !e.closest(`${SCROLLED}, .sr, pre, math, .folded, [role=status], .quote, dialog`)).flatMap(e =>
      [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim()).map(n => {
        const range = document.createRange()
        range.selectNodeContents(n)
        return [e, [...range.getClientRects()]]
      }))
    const cut = texts.filter(([e, rects]) => {
      for (let o = e; o !== widget(); o = parent(o)) {
        const b = box(o), {overflowX, overflowY} = getComputedStyle(o), solid = o.matches('button')
        if (rects.some(r => (solid || overflowX !== 'visible') && r.right > b.right + 2
          || (solid || overflowY !== 'visible') && r.bottom > b.bottom + 2)) return true
      }
    }).map(([e]) => `\`${spot(e)}\` is cut`)
    const flat = texts.flatMap(([e, rects]) => rects.map(r => [e, r]))
      .sort((a, b) => a[1].top - b[1].top)
    return cut.concat(flat.flatMap(([e, r], i) => flat.slice(i + 1).filter(([, o]) =>
      min(r.right, o.right) - max(r.left, o.left) > 3
      && min(r.bottom, o.bottom) - o.top > min(r.height, o.height) / 2)
      .map(([o]) => `\`${spot(e)}\` and \`${spot(o)}\` lie on each other`)))
  }
  /** But for pictures of accounts, in texts, and to choose from, which are no texts. */
  const PICTURES = '.portrait, :is(.avatar, .body, .preview, .chosen, .face, .packs, .large) img'
  watch.media = () => inside().filter(e => !e.matches(PICTURES) &&
    e.matches('img, picture, canvas, audio, video, object, embed, iframe, marquee')).map(spot)
  /** What moves for longer than five seconds (SC 2.2.2). */
  watch.moving = () => widget().shadowRoot.getAnimations()
    .filter(each => each.effect.getComputedTiming().endTime > 5000).length
  watch.listen = () => new MutationObserver(() => {
    for (const e of inside().filter(each => each.matches('[role=status], [role=alert], [aria-live]'))) {
      if (e.textContent.trim() && e.textContent !== e.told) watch.told.push(e.textContent)
      e.told = e.textContent
    }
  }).observe(widget().shadowRoot, {childList: true, subtree: true, characterData: true})
}
