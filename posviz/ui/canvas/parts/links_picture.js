// The link view's geometry and drawing, for links.js. Needs parts/labels.js and parts/links_data.js.
const LINKS_TALL = 640 // of the columns; more tokens than fit scroll inside
const LINKS_HEAD = 74 // above the columns: the sentence's name, the headings
const LINES_WIDE = 90 // of the lines, at least
const STRIP = 14 // a column's scroll bar, with its weights in small
const PART = { q: '', k: '_keys' } // a column's name in the look

class LinksPicture extends View {
  layout(width) {
    const { sides } = this.data
    const across = sides.length > 1 && width >= 720
    const longest = Math.max(1, ...sides.flatMap((side) => [side.q.length, side.k.length]))
    const pitch = clamp(LINKS_TALL / longest, 21, 46)
    const body = Math.min(LINKS_TALL, Math.ceil(longest * pitch))
    const gap = clamp(width * 0.04, 24, 64)
    const w = across ? (width - gap) / 2 : Math.min(width, 760)
    const top = this.meta.title ? 34 : 0
    const foot = body < longest * pitch ? 30 : 10
    const panels = sides.map((side, n) => {
      const [x, y] = across ? [n * (w + gap), top] : [0, top + n * (LINKS_HEAD + body + foot + 22)]
      return this.panel(side, { x, y: y + LINKS_HEAD, w, h: body, pitch })
    })
    this.canvas.style.touchAction = panels.some(({ long }) => long.q || long.k) ? 'none' : '' // a finger scrolls the columns
    const legend = legendLayout(this, this.legendItems(pitch), width)
    const legendTop = panels.at(-1).y + body + foot + 12
    this.ctx.font = this.text(15)
    const hint = wrapText(this.ctx, this.label.hint, width)
    this.g = { panels, legend, legendTop, hint, hintTop: legendTop + legend.height + 6 }
    for (const panel of panels) for (const column of ['q', 'k']) this.scrollTo(panel, column, this.scrolled(panel, column))
    return this.g.hintTop + hint.length * 21 + 6
  }
  panel(side, { x, y, w, h, pitch }) {
    const long = { q: side.q.length * pitch > h + 1, k: side.k.length * pitch > h + 1 }
    const strips = (long.q ? STRIP + 6 : 0) + (long.k ? STRIP + 6 : 0)
    const room = w - strips - LINES_WIDE
    // Long words come before large type, and before the bars beside the numbers.
    const fits = (size, numbers) => {
      this.ctx.font = this.text(size, '600')
      const widest = ['q', 'k'].map((c) => Math.max(40, ...side.tokens(c).map((t) => this.ctx.measureText(t).width + 20)))
      const rest = room - 2 * numbers
      return { size, numbers, widest, cut: widest[0] + widest[1] > rest ? Math.max(44, rest / 2) : Infinity }
    }
    const large = this.size(pitch)
    const ways = (w >= 420 ? [[large, 96], [large, 50], [15, 50]] : [[large, 50], [15, 50]]).map((way) => fits(...way))
    const { size, numbers, widest, cut } = ways.find((way) => way.cut === Infinity) ?? ways.at(-1)
    const edge = { q: numbers + (long.q ? STRIP + 6 : 0), k: numbers + (long.k ? STRIP + 6 : 0) }
    const [wideQ, wideK] = widest.map((wide) => Math.min(wide, cut))
    const [left, right] = [x + edge.q + wideQ, x + w - edge.k - wideK]
    return { side, x, y, w, h, pitch, size, long, edge, left, right, numbers, bar: numbers > 60 ? numbers - 56 : 0, thick: this.thick(pitch) }
  }
  thick(pitch) { return clamp(pitch * 0.28, 5, 12) }
  size(pitch) { return pitch < 26 ? 15 : clamp(Math.round(pitch * 0.46), 16, 20) }
  legendItems(pitch) {
    const { theme, label, data } = this
    const thick = this.thick(pitch)
    const items = data.sides.map(({ name }) => ({
      text: label[`legend_${name}`],
      width: 40,
      paint: (ctx, x, y) => {
        ctx.fillStyle = css(theme[name])
        ctx.fillRect(x, y - thick / 2, 40, thick)
      },
    }))
    if (data.sides.some((side) => side.mask)) items.push({ text: label.masked, width: 0, paint: () => {} })
    if (data.sides.some((side) => side.rounded)) items.push({ text: label.legend_rounded, width: 0, paint: () => {} })
    return items
  }

  // ------------------------------------------------------------ scrolling
  scrolled(panel, column) { return this.scrolls[panel.side.name + column] ?? 0 }
  scrollTo(panel, column, to) {
    const most = Math.max(0, panel.side.tokens(column).length * panel.pitch - panel.h)
    const before = this.scrolled(panel, column)
    const after = (this.scrolls[panel.side.name + column] = clamp(to, 0, most))
    return before !== after
  }
  yOf(panel, column, n) { return panel.y + (n + 0.5) * panel.pitch - this.scrolled(panel, column) }
  // The tokens that are seen whole, [first, last].
  seen(panel, column) {
    const from = this.scrolled(panel, column)
    const last = Math.min(panel.side.tokens(column).length, Math.floor((from + panel.h) / panel.pitch + 0.01)) - 1
    return [Math.ceil(from / panel.pitch - 0.01), last]
  }
  reveal(panel, column, n) {
    const [first, last] = this.seen(panel, column)
    if (n >= first && n <= last) return
    this.scrollTo(panel, column, (n + 0.5) * panel.pitch - panel.h / 2)
  }

  // ------------------------------------------------------------ what is alone
  // {queries, keys, missing} of one sentence: the token pointed at, its match in the other, else what is chosen.
  focus({ name }) {
    const { spot, look } = this
    const one = (column, n) => ({ queries: column === 'q' ? [n] : [], keys: column === 'k' ? [n] : [] })
    if (spot?.side === name) return one(spot.column, spot.n)
    const other = spot ? this.data.partner(spot) : undefined
    if (other === null) return { queries: [], keys: [], missing: true }
    if (other !== undefined) return one(spot.column, other)
    return { queries: look[name], keys: look[name + PART.k] }
  }
  linesOf(panel, { queries, keys, missing }) {
    if (missing) return { lines: [], count: 0 }
    if (queries.length || keys.length) return panel.side.lines(queries, keys, this.look)
    const [first, last] = [Math.floor(this.scrolled(panel, 'q') / panel.pitch), Math.ceil((this.scrolled(panel, 'q') + panel.h) / panel.pitch)]
    const shown = panel.side.q.map((_, i) => i).slice(Math.max(0, first), last)
    return panel.side.lines(shown, [], this.look)
  }
  tokenName(side, column, n) { return fill(this.label.token, { token: isolate(side.tokens(column)[n]), position: n }) }
  focusText(side, { queries, keys, missing }, count, drawn) {
    const { label, spot } = this
    if (missing) return fill(label.no_match, { token: isolate(this.data.side(spot.side).tokens(spot.column)[spot.n]) })
    if (drawn < count) return fill(label.left_out, { drawn, count })
    if (queries.length === 1 && !keys.length) return fill(label.of_query, { token: this.tokenName(side, 'q', queries[0]) })
    if (keys.length === 1 && !queries.length) return fill(label.to_key, { token: this.tokenName(side, 'k', keys[0]) })
    if (queries.length) return fill(label.of_queries, { count: queries.length })
    if (keys.length) return fill(label.to_keys, { count: keys.length })
    return fill(label.lines, { count })
  }

  // ------------------------------------------------------------ drawing
  draw(ctx) {
    const { g, theme } = this
    if (this.meta.title) this.write(ctx, this.meta.title, 0, 14, { size: 17, weight: '600', max: this.width })
    for (const panel of g.panels) this.drawPanel(ctx, panel)
    drawLegend(this, ctx, g.legend, 0, g.legendTop)
    g.hint.forEach((line, i) => this.write(ctx, line, 0, g.hintTop + 11 + i * 21, { size: 15, colour: theme.quiet }))
  }
  drawPanel(ctx, panel) {
    const { theme, label } = this
    const { side, x, y, w, h } = panel
    const focus = this.focus(side)
    const found = this.linesOf(panel, focus)
    const [head, colour] = [y - LINKS_HEAD + 16, theme[side.name]]
    this.write(ctx, label[`row_${side.name}`], x, head, { size: 22, weight: '600', colour })
    const text = this.focusText(side, focus, found.count, found.lines.length)
    this.write(ctx, text, x + w, head, { size: 15, colour: theme.text, align: 'right', max: w - 40 })
    this.write(ctx, label.queries, panel.left - 8, y - 20, { size: 14, colour: theme.quiet, align: 'right' })
    this.write(ctx, label.keys, panel.right + 8, y - 20, { size: 14, colour: theme.quiet })
    if (!side.q.length) return this.write(ctx, label.empty, x, y + 14, { size: 15, colour: theme.quiet })
    this.drawLines(ctx, panel, found.lines)
    const numbers = side.numbers(focus.queries, focus.keys)
    for (const column of ['q', 'k']) this.drawColumn(ctx, panel, column, focus, numbers[column])
    for (const column of ['q', 'k']) if (panel.long[column]) this.drawStrip(ctx, panel, column, numbers[column])
    this.canvas.dataset[`lines${side.name.toUpperCase()}`] = String(found.lines.length)
  }
  // As wide as the weight says, from 0 to `thick`: ink is in proportion to the weight.
  drawLines(ctx, panel, lines) {
    const { left, right, y, h, thick } = panel
    ctx.save()
    ctx.beginPath()
    ctx.rect(left, y, right - left, h)
    ctx.clip()
    ctx.strokeStyle = css(this.theme[panel.side.name])
    ctx.lineCap = 'butt'
    const bend = (right - left) * 0.42
    for (const [i, j, weight] of lines) {
      const [from, to] = [this.yOf(panel, 'q', i), this.yOf(panel, 'k', j)]
      ctx.lineWidth = weight * thick
      ctx.beginPath()
      ctx.moveTo(left, from)
      ctx.bezierCurveTo(left + bend, from, right - bend, to, right, to)
      ctx.stroke()
    }
    ctx.restore()
  }
  drawColumn(ctx, panel, column, focus, numbers) {
    const { side, y, h, pitch, left, right } = panel
    const tokens = side.tokens(column)
    const from = Math.max(0, Math.floor(this.scrolled(panel, column) / pitch))
    const to = Math.min(tokens.length, Math.ceil((this.scrolled(panel, column) + h) / pitch))
    ctx.save()
    ctx.beginPath()
    ctx.rect(panel.x, y, panel.w, h)
    ctx.clip()
    for (let n = from; n < to; n++) this.drawToken(ctx, panel, column, n, focus, numbers?.[n])
    ctx.restore()
    if (!panel.long[column]) return
    const [first, last] = this.seen(panel, column)
    const text = fill(this.label.seen, { first: first + 1, last: last + 1, count: tokens.length })
    const at = column === 'q' ? [panel.x, 'left'] : [panel.x + panel.w, 'right']
    this.write(ctx, text, at[0], y + h + 16, { colour: this.theme.quiet, align: at[1], max: panel.w / 2 - 8 })
    ctx.fillStyle = css(this.theme.line)
    for (const edge of [y - 1, y + h]) column === 'q' ? ctx.fillRect(panel.x + panel.edge.q, edge, left - panel.x - panel.edge.q, 1) : ctx.fillRect(right, edge, panel.x + panel.w - panel.edge.k - right, 1)
  }
  drawToken(ctx, panel, column, n, focus, number) {
    const { theme, look } = this
    const { side, pitch, size, left, right, edge } = panel
    const y = this.yOf(panel, column, n)
    const alone = (column === 'q' ? focus.queries : focus.keys).includes(n)
    const chosen = look[side.name + PART[column]].includes(n)
    const masked = side.masked(column, n, focus)
    const [outer, inner] = column === 'q' ? [panel.x + edge.q, left] : [right, panel.x + panel.w - edge.k]
    if (alone || chosen) {
      ctx.fillStyle = css(mix(theme[side.name], theme.background, alone ? 0.78 : 0.88))
      ctx.fillRect(outer, y - pitch / 2 + 1, inner - outer, pitch - 2)
    }
    if (chosen) {
      ctx.strokeStyle = css(theme[side.name])
      ctx.lineWidth = 1.5
      ctx.strokeRect(outer + 1, y - pitch / 2 + 1.5, inner - outer - 2, pitch - 3)
    }
    const [x, align] = column === 'q' ? [left - 8, 'right'] : [right + 8, 'left']
    const style = { size, weight: alone ? '600' : 'normal', colour: masked ? theme.faint : theme.text }
    this.write(ctx, side.tokens(column)[n], x, y, { ...style, align, max: inner - outer - 12 })
    if (number !== undefined) this.drawNumber(ctx, panel, column, y, masked ? null : number)
  }
  // The bar begins at the tokens; the number stands in a column of its own.
  drawNumber(ctx, panel, column, y, number) {
    const { theme } = this
    const { side, bar, edge } = panel
    const sign = column === 'q' ? -1 : 1
    const at = column === 'q' ? panel.x + edge.q : panel.x + panel.w - edge.k
    const end = at + sign * (bar + 4 + 46)
    const text = number === null ? '–' : side.text(number)
    this.write(ctx, text, column === 'q' ? end + 46 : end, y, { size: 15, colour: number === null ? theme.faint : theme.text, align: 'right' })
    if (!bar) return
    const [tall, long] = [8, (v) => clamp(v, 0, 1) * bar]
    ctx.fillStyle = css(mix(theme.text, theme.background, 0.9))
    ctx.fillRect(sign < 0 ? at - bar : at, y - tall / 2, bar, tall)
    ctx.fillStyle = css(theme[side.name])
    if (number) ctx.fillRect(sign < 0 ? at - long(number) : at, y - tall / 2, long(number), tall)
  }
  // The whole column in small: the part that is seen, and a tick as strong as each weight.
  drawStrip(ctx, panel, column, numbers) {
    const { theme } = this
    const { x, y, h } = this.strip(panel, column)
    const count = panel.side.tokens(column).length
    ctx.fillStyle = css(theme.panel)
    ctx.fillRect(x, y, STRIP, h)
    const [top, part] = [this.scrolled(panel, column) / (count * panel.pitch), panel.h / (count * panel.pitch)]
    ctx.fillStyle = css(theme.line)
    ctx.fillRect(x, y + top * h, STRIP, part * h)
    ctx.save()
    ctx.fillStyle = css(theme[panel.side.name])
    numbers?.forEach((w, n) => {
      if (w < LEAST) return
      ctx.globalAlpha = clamp(w, 0, 1)
      ctx.fillRect(x, y + (n / count) * h, STRIP, Math.max(2, h / count))
    })
    ctx.restore()
    ctx.strokeStyle = css(theme.quiet)
    ctx.lineWidth = 1
    ctx.strokeRect(x + 0.5, y + top * h + 0.5, STRIP - 1, part * h - 1)
  }
  strip(panel, column) { return { x: column === 'q' ? panel.x : panel.x + panel.w - STRIP, y: panel.y, h: panel.h } }
}
