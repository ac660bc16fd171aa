// The picture of the home page: where everything stands and how it is painted (order.js adds the
// pointer, the keys and the slide). Needs parts/labels.js.
const NARROW = 720 // below this the two panels stand one under the other
const MOST_ROWS = 20 // above this the barcodes become a dense stack
const SPACE = 18 // smallest distance of two lines of 14 px type
const short = (x) => formatNumber(x, x >= 1 ? 3 : 2).replace('.0×', '×')
const power = (x) => (x >= 1e-3 && x < 1e7 ? String(x) : formatNumber(x, 1).replace('1.0×', ''))
const ease = (t) => (t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2)

class OrderPicture extends View {
  // ------------------------------------------------------------ the data's parts
  delta(panel, match) { return match === undefined ? null : this.meta.panels[panel].delta[match] }
  partner(side, row, panel) {
    const match = this.matchOf[side].get(row)
    return this.delta(panel, match) === null ? null : this.meta.matches[match][side === 'a' ? 1 : 0]
  }
  value(panel, side, row, dim) { return this.arrays[side + panel][row * this.meta.d + dim] }
  deltaText(delta, narrow) {
    if (delta === 0 || delta > this.meta.noise) return fill(this.label.delta, { value: short(delta) })
    if (narrow) return fill(this.label.delta, { value: '0' }) // up to rounding; the tooltip says how much
    return fill(this.label.delta_zero, { value: short(Number(delta.toPrecision(1))) }) // its size says enough
  }

  // ------------------------------------------------------------ geometry
  layout(width) {
    const stacked = width < NARROW
    const dense = this.slots > MOST_ROWS
    const pitch = dense ? clamp(700 / this.slots, 1, 18) : clamp(560 / Math.max(1, this.slots), 28, 88)
    const bar = dense ? pitch : clamp(pitch * 0.4, 13, 36)
    const strip = dense ? 0 : clamp(pitch * 0.125, 5, 11)
    const token = dense ? 14 : clamp(pitch * 0.31, 14, 26)
    const panelWidth = stacked ? width : (width - 40) / 2
    const g = { width, stacked, dense, pitch, bar, strip, token, panelWidth, under: clamp(pitch * 0.09, 2, 8) }
    g.narrow = dense || panelWidth < 440
    this.columns(g)
    g.top = 68 // title and column heads
    const last = dense ? pitch : Math.max(bar + 8 + strip, pitch >= 56 ? bar + 26 : 0)
    g.panelHeight = g.top + Math.max(0, this.slots - 1) * pitch + last + 16
    g.legend = legendLayout(this, this.legendItems(g), width)
    g.legendTop = g.panelHeight * (stacked ? 2 : 1) + (stacked ? 20 : 0) + 6
    g.barsTop = g.legendTop + g.legend.height + 26
    this.g = g
    this.paintStacks()
    return this.barLayout(g)
  }
  // Across a panel: token | barcode of A (| A − B when dense) | label and ties | barcode of B | token.
  columns(g) {
    const { ctx } = this
    const most = clamp(g.panelWidth * 0.2, 56, 160)
    this.tokenSize(g, most - 24)
    const widest = (side) => {
      ctx.font = this.text(g.token)
      const words = this.rows[side].map((word) => ctx.measureText(word).width)
      ctx.font = this.text(14)
      return Math.min(most, Math.max(24, ...words) + ctx.measureText(String(Math.max(0, this.rows[side].length - 1))).width + 4)
    }
    g.tokenWidth = { a: widest('a'), b: widest('b') }
    ctx.font = this.text(14, '600')
    const texts = this.meta.panels.flatMap((p) => p.delta.filter((v) => v !== null).map((v) => this.deltaText(v, g.narrow)))
    if (!texts.length) ctx.font = this.text(14)
    const aside = this.rows.a.length && this.rows.b.length && !texts.length ? ctx.measureText(this.label.no_matches).width / 2 + 24 : 20
    g.labelWidth = Math.max(aside, ...[...new Set(texts)].map((text) => ctx.measureText(text).width))
    g.curve = clamp(g.panelWidth * 0.11, 30, 96)
    g.gap = 12 + g.labelWidth + 8 + g.curve
    const count = g.dense ? 3 : 2
    const room = (g.panelWidth - g.tokenWidth.a - g.tokenWidth.b - g.gap - 20 - (count - 2) * 8) / count
    // Whole device pixels a cell, where that costs little width, so that no dimension looks wider than another.
    const ratio = window.devicePixelRatio || 1
    const cell = Math.floor((room * ratio) / this.meta.d) / ratio
    g.barWidth = cell * this.meta.d > room * 0.8 ? cell * this.meta.d : Math.max(20, room)
    g.mean = Math.max(1, Math.ceil(this.meta.d / (g.barWidth * ratio)))
    g.x = { a: g.tokenWidth.a + 8 }
    g.x.strip = g.dense ? g.x.a + g.barWidth + 8 : g.x.a
    g.x.label = (g.dense ? g.x.strip : g.x.a) + g.barWidth + 12
    g.x.curve = g.x.label + g.labelWidth + 6
    g.x.b = g.x.curve + g.curve + 2
  }
  // Words of ordinary length are set smaller until they fit; longer ones are shortened instead.
  tokenSize(g, room) {
    this.ctx.font = this.text(g.token)
    const words = [...this.rows.a, ...this.rows.b].filter((word) => word.length <= 14)
    const widest = Math.max(1, ...words.map((word) => this.ctx.measureText(word).width))
    g.token = clamp(Math.floor((g.token * room) / widest), Math.min(15, g.token), g.token)
  }
  panelAt(p) {
    const { g } = this
    return g.stacked ? [0, p * (g.panelHeight + 20)] : [p * (g.panelWidth + 40), 0]
  }
  // Top of a row inside its panel; B's rows move while the slide runs.
  rowTop(side, row) {
    const slot = side === 'b' ? row + (this.slotB[row] - row) * ease(this.at) : row
    return this.g.top + slot * this.g.pitch
  }
  legendItems(g) {
    const { meta, label } = this
    const paint = (ctx, x, y) => this.circle(ctx, x + 6, y)
    const lonely = meta.matches.length && meta.panels.some((_, p) => ['a', 'b'].some((side) => this.rows[side].some((_, row) => this.partner(side, row, p) === null)))
    const items = [{ text: fill(label.legend_output, { vmax: formatNumber(meta.vmax, 3) }), scale: 'signed' }]
    if (meta.matches.length) items.push({ text: g.dense ? label.legend_column : label.legend_strip, scale: 'difference' })
    if (lonely) items.push({ text: label.no_partner, paint, width: 14 })
    if (g.mean > 1) items.push({ text: fill(label.legend_averaged, { count: g.mean }), paint() {}, width: 0 })
    return items
  }
  barLayout(g) {
    const { ctx, meta } = this
    const gap = 24
    if (!meta.bars.length) return g.barsTop
    ctx.font = this.text(15, '600')
    const widest = Math.max(96, ...meta.bars.map((bar) => ctx.measureText(bar.label).width)) + 4
    const most = clamp(Math.floor((g.width + gap) / (Math.min(widest, 240) + gap)), 1, meta.bars.length)
    const lines = Math.ceil(meta.bars.length / most)
    g.perLine = Math.ceil(meta.bars.length / lines)
    g.cell = Math.min(240, (g.width - (g.perLine - 1) * gap) / g.perLine)
    g.pace = g.cell + gap
    const values = meta.bars.map((bar) => bar.value ?? 0)
    g.high = Math.max(meta.floor * 10, 10 ** Math.ceil(Math.log10(Math.max(meta.floor, ...values)) - 1e-9))
    ctx.font = this.text(15)
    const title = fill(this.label.bars, { low: power(meta.floor), high: power(g.high) })
    g.barTitle = wrapText(ctx, title, g.width)
    g.barsLine = g.barsTop + g.barTitle.length * 22 + 10
    return g.barsLine + lines * 84
  }
  barBox(i) {
    const { g } = this
    return [(i % g.perLine) * g.pace, g.barsLine + Math.floor(i / g.perLine) * 84, g.cell, 78]
  }

  // ------------------------------------------------------------ barcodes
  paintStacks() {
    const key = [this.g.mean, css(this.theme.background), css(this.theme.text)].join()
    if (this.stacks && this.stackKey === key) return
    this.stackKey = key
    this.stacks = this.meta.panels.map((_, p) => ({
      a: this.stack('signed', this.rows.a.length, (i, k) => this.value(p, 'a', i, k)),
      b: this.stack('signed', this.rows.b.length, (j, k) => this.value(p, 'b', j, k)),
      strip: this.stack('difference', this.rows.a.length, (i, k) => this.difference(p, i, k)),
    }))
  }
  difference(panel, row, dim) {
    const j = this.partner('a', row, panel)
    return j === null ? 0 : this.value(panel, 'a', row, dim) - this.value(panel, 'b', j, dim)
  }
  // One pixel a cell (or a mean of `mean` cells when the screen has fewer pixels than dimensions).
  stack(scale, rows, get) {
    const { meta, g } = this
    const columns = Math.ceil(meta.d / g.mean)
    if (!rows) return null
    const sheet = document.createElement('canvas')
    ;[sheet.width, sheet.height] = [columns, rows]
    const image = new ImageData(columns, rows)
    const table = lookupTable(this.theme, scale)
    for (let i = 0; i < rows; i++) {
      for (let c = 0; c < columns; c++) {
        const last = Math.min(meta.d, (c + 1) * g.mean)
        let sum = 0
        for (let k = c * g.mean; k < last; k++) sum += get(i, k)
        const t = sum / (last - c * g.mean) / meta.vmax
        const at = Math.round(clamp(127.5 + 127.5 * t, 0, 255)) * 4
        // The table has no exact middle; a zero (float noise included) is the page's own colour.
        image.data.set(Math.abs(t) < 1 / 255 ? [...this.theme.background, 255] : table.subarray(at, at + 4), (i * columns + c) * 4)
      }
    }
    sheet.getContext('2d').putImageData(image, 0, 0)
    return sheet
  }

  // ------------------------------------------------------------ drawing
  draw(ctx, width) {
    ctx.lineCap = 'butt'
    this.meta.panels.forEach((_, p) => {
      ctx.save()
      ctx.translate(...this.panelAt(p))
      this.drawPanel(ctx, p)
      ctx.restore()
    })
    drawLegend(this, ctx, this.g.legend, 0, this.g.legendTop)
    if (this.meta.bars.length) this.drawBars(ctx, width)
  }
  drawPanel(ctx, p) {
    const { g, theme, label } = this
    this.write(ctx, this.meta.panels[p].title, 0, 18, { size: 20, weight: '600', max: g.panelWidth })
    this.write(ctx, label.column_a, g.x.a, 52, { size: 15, weight: '600', colour: theme.a })
    this.write(ctx, label.column_b, g.x.b, 52, { size: 15, weight: '600', colour: theme.b })
    if (g.dense && this.meta.matches.length) this.write(ctx, label.column_difference, g.x.strip, 52, { size: 15, colour: theme.quiet })
    this.drawEmpty(ctx)
    this.drawTies(ctx, p)
    for (const side of ['a', 'b']) {
      this.drawBarcodes(ctx, p, side)
      this.drawTokens(ctx, p, side)
    }
    this.drawSpot(ctx, p)
  }
  drawEmpty(ctx) {
    const { g, label, theme } = this
    const middle = g.top + Math.max(1, this.slots) * g.pitch * 0.5 - (this.slots < 2 ? 22 : 0)
    for (const side of ['a', 'b']) {
      if (this.rows[side].length) continue
      ctx.strokeStyle = css(theme.line)
      ctx.lineWidth = 1
      ctx.setLineDash([4, 4])
      ctx.strokeRect(g.x[side] + 0.5, middle - 18.5, g.barWidth, 37)
      ctx.setLineDash([])
      ctx.font = this.text(14)
      wrapText(ctx, label[`empty_${side}`], g.barWidth - 8).forEach((line, i, all) =>
        this.write(ctx, line, g.x[side] + g.barWidth / 2, middle + (i - (all.length - 1) / 2) * 17, { colour: theme.quiet, align: 'center' }))
    }
    if (!this.rows.a.length || !this.rows.b.length || this.meta.matches.length) return
    ctx.font = this.text(14)
    const lines = wrapText(ctx, label.no_matches, g.gap - 44)
    lines.forEach((line, i) =>
      this.write(ctx, line, g.x.label - 12 + g.gap / 2, middle + (i - (lines.length - 1) / 2) * 20, { colour: theme.quiet, align: 'center' }))
  }
  drawBarcodes(ctx, p, side) {
    const { g } = this
    const stack = this.stacks[p][side]
    if (!stack) return
    ctx.imageSmoothingEnabled = false
    if (g.dense && (side === 'a' || this.at === 0)) {
      ctx.drawImage(stack, g.x[side], g.top, g.barWidth, stack.height * g.pitch)
      if (side === 'a' && this.meta.matches.length) ctx.drawImage(this.stacks[p].strip, g.x.strip, g.top, g.barWidth, stack.height * g.pitch)
      this.frame(ctx, g.x[side], g.top, stack.height * g.pitch)
      if (side === 'a' && this.meta.matches.length) this.frame(ctx, g.x.strip, g.top, stack.height * g.pitch)
      return
    }
    for (let row = 0; row < stack.height; row++) {
      const y = this.rowTop(side, row)
      ctx.drawImage(stack, 0, row, stack.width, 1, g.x[side], y, g.barWidth, g.bar)
      if (!g.dense) this.frame(ctx, g.x[side], y, g.bar)
      if (side === 'a' && this.partner('a', row, p) !== null) {
        ctx.drawImage(this.stacks[p].strip, 0, row, stack.width, 1, g.x.strip, y + g.bar + g.under, g.barWidth, g.strip)
        this.frame(ctx, g.x.strip, y + g.bar + g.under, g.strip)
      } else if (g.pitch >= 56 && this.partner(side, row, p) === null && this.meta.matches.length) {
        this.drawAside(ctx, g.x[side], y + g.bar + g.under + 8)
      }
    }
  }
  // Under a barcode where it fits whole; the circle and the legend say it anyway.
  drawAside(ctx, x, y) {
    ctx.font = this.text(14)
    if (ctx.measureText(this.label.no_partner).width > this.g.barWidth + 4) return
    this.write(ctx, this.label.no_partner, x, y, { colour: this.theme.quiet })
  }
  frame(ctx, x, y, height) {
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x - 0.5, y - 0.5, this.g.barWidth + 1, height + 1)
  }
  drawTokens(ctx, p, side) {
    const { g, theme } = this
    const every = Math.ceil(SPACE / g.pitch)
    if (every > 1 && side === 'b' && this.at > 0 && this.at < 1) return // thinned labels would run over each other
    const lit = this.spot?.panel === p || this.spot?.kind === 'tie' ? this.litRow(side, p) : null
    const place = (row) => Math.round((this.rowTop(side, row) - g.top) / g.pitch)
    this.rows[side].forEach((word, row) => {
      const near = lit !== null && lit !== row && every > 1 && Math.abs(place(row) - place(lit)) < every
      if ((every > 1 && place(row) % every && row !== lit) || near) return
      const y = this.rowTop(side, row) + g.bar / 2
      const colour = this.partner(side, row, p) === null && this.meta.matches.length ? theme.quiet : side === 'a' ? theme.a : theme.b
      this.drawToken(ctx, word, row, side, y, colour, row === lit)
    })
  }
  drawToken(ctx, word, row, side, y, colour, bold) {
    const { g } = this
    const weight = bold ? '600' : 'normal'
    ctx.font = this.text(14)
    const digits = ctx.measureText(String(this.rows[side].length - 1)).width // the widest number, so that words line up
    const max = g.tokenWidth[side] - digits - 4
    ctx.font = this.text(g.token, weight)
    const shown = this.fit(ctx, word, max)
    const right = side === 'a' ? g.tokenWidth.a : g.x.b + g.barWidth + 10
    const x = side === 'a' ? right - digits - 3 : right
    this.write(ctx, shown, x, y, { size: g.token, weight, colour, align: side === 'a' ? 'right' : 'left' })
    const at = side === 'a' ? x + 3 : x + ctx.measureText(shown).width + 3
    this.write(ctx, String(row), at, y + (g.token > 17 ? g.token * 0.28 : 0), { size: 14, colour: mix(colour, this.theme.background, 0.2) })
  }
  // The rows that the pointer lights up: the one under it and its match.
  litRow(side, panel) {
    const { spot } = this
    if (!spot || spot.kind === 'bar') return null
    if (spot.kind === 'tie') return this.meta.matches[spot.match][side === 'a' ? 0 : 1]
    return spot.side === side ? spot.row : this.partner(spot.side, spot.row, panel)
  }
  focus() {
    const { spot } = this
    if (!spot || spot.kind === 'bar') return null
    return spot.kind === 'tie' ? spot.match : this.matchOf[spot.side].get(spot.row) ?? null
  }

  drawTies(ctx, p) {
    const { g, meta } = this
    const focus = this.focus()
    const largest = Math.max(meta.noise, ...meta.panels[p].delta.filter((v) => v !== null))
    const labelled = this.labelledTies(p, focus)
    meta.matches.forEach((_, k) => {
      const delta = this.delta(p, k)
      if (delta === null) return
      const differs = delta > meta.noise
      const faded = focus !== null && focus !== k
      const line = differs ? this.theme.position : this.theme.faint
      ctx.globalAlpha = (faded ? 0.12 : 1) * (g.dense && focus !== k ? clamp(30 / meta.matches.length, 0.15, 0.6) : 1)
      ctx.strokeStyle = css(line)
      ctx.lineWidth = (g.dense ? 1 : differs ? 1.5 + 2.5 * (delta / largest) : 1.5) + (focus === k ? 1 : 0)
      this.tiePath(ctx, k)
      ctx.globalAlpha = faded ? 0.25 : 1
      if (labelled.has(k)) this.tieLabel(ctx, k, delta, differs, focus === k)
    })
    ctx.globalAlpha = 1
    ctx.lineWidth = 1
    for (const side of ['a', 'b']) {
      if (g.pitch < 12 || !meta.matches.length) continue
      this.rows[side].forEach((_, row) => {
        if (this.partner(side, row, p) !== null) return
        this.circle(ctx, side === 'a' ? g.x.label : g.x.b - 10, this.rowTop(side, row) + g.bar / 2)
      })
    }
  }
  circle(ctx, x, y) {
    ctx.strokeStyle = css(this.theme.quiet)
    ctx.lineWidth = 1.25
    ctx.beginPath()
    ctx.arc(x, y, 4, 0, 2 * Math.PI)
    ctx.stroke()
  }
  // Beside A's barcode, one label a row, so that none overlaps; when rows are a few px high the largest
  // differences are named first.
  labelledTies(p, focus) {
    const { g, meta } = this
    const shown = new Set()
    const order = meta.matches.map((_, k) => k).filter((k) => this.delta(p, k) !== null)
    if (g.pitch < SPACE) order.sort((k, l) => (l === focus) - (k === focus) || this.delta(p, l) - this.delta(p, k))
    const used = []
    for (const k of order) {
      const y = meta.matches[k][0] * g.pitch
      if (g.pitch < SPACE && used.some((other) => Math.abs(other - y) < SPACE)) continue
      used.push(y)
      shown.add(k)
    }
    return shown
  }
  tieEnds(k) {
    const [i, j] = this.meta.matches[k]
    return [this.rowTop('a', i) + this.g.bar / 2, this.rowTop('b', j) + this.g.bar / 2]
  }
  tiePath(ctx, k) {
    const { g } = this
    const [from, to] = this.tieEnds(k)
    const [left, right] = [g.x.curve, g.x.b - 5]
    ctx.beginPath()
    ctx.moveTo(g.x.label - 9, from)
    ctx.lineTo(g.x.label - 3, from)
    ctx.moveTo(left, from)
    ctx.bezierCurveTo((left + right) / 2, from, (left + right) / 2, to, right, to)
    ctx.stroke()
  }
  tieLabel(ctx, k, delta, differs, strong) {
    const { g, theme } = this
    const [y] = this.tieEnds(k)
    const text = this.deltaText(delta, g.narrow)
    ctx.font = this.text(14, '600')
    if (ctx.measureText(text).width < g.labelWidth - 6) {
      ctx.beginPath() // a short label: the line goes on to the curve
      ctx.moveTo(g.x.label + ctx.measureText(text).width + 6, y)
      ctx.lineTo(g.x.curve, y)
      ctx.stroke()
    }
    this.write(ctx, text, g.x.label, y, { weight: strong || (differs && !g.dense) ? '600' : 'normal', colour: differs ? theme.positionText : theme.quiet })
  }

  // The hovered cell and its partner's, in this panel.
  drawSpot(ctx, p) {
    const { spot, g, theme } = this
    if (!spot || spot.kind === 'bar' || (spot.kind === 'cell' && spot.panel !== p)) return
    if (spot.kind === 'tie' && this.delta(p, spot.match) === null) return
    const cell = (g.barWidth * g.mean) / this.meta.d
    const mark = (x, y, height) => {
      ctx.lineWidth = 1.5
      ctx.strokeStyle = css(theme.text)
      ctx.strokeRect(x - 1, y - 1, g.barWidth + 2, height + 2)
      if (spot.kind === 'cell') ctx.strokeRect(x + Math.floor(spot.dim / g.mean) * cell - 1, y - 4, Math.max(3, cell) + 1, height + 8)
    }
    for (const side of ['a', 'b']) {
      const row = this.litRow(side, p)
      if (row === null) continue
      const y = this.rowTop(side, row)
      mark(g.x[side], y, g.bar)
      if (side === 'a' && this.partner('a', row, p) !== null) mark(g.x.strip, g.dense ? y : y + g.bar + g.under, g.dense ? g.bar : g.strip)
    }
  }

  drawBars(ctx) {
    const { g, meta, theme } = this
    ctx.lineWidth = 1
    g.barTitle.forEach((line, i) => this.write(ctx, line, 0, g.barsTop + 11 + i * 22, { size: 15, colour: theme.quiet }))
    const span = Math.log10(g.high) - Math.log10(meta.floor)
    const part = (value) => clamp((Math.log10(value) - Math.log10(meta.floor)) / span, 0, 1)
    meta.bars.forEach((bar, i) => {
      const [x, y, w, h] = this.barBox(i)
      const lit = this.spot?.kind === 'bar' && this.spot.bar === i
      const weight = bar.selected ? '600' : 'normal'
      this.write(ctx, bar.label, x, y + 15, { size: 15, weight, max: w })
      ctx.fillStyle = css(mix(theme.text, theme.background, 0.9))
      ctx.fillRect(x, y + 29, w, 14)
      if (bar.value) {
        ctx.fillStyle = css(bar.value > meta.noise ? theme.position : theme.content)
        ctx.fillRect(x, y + 29, Math.max(2, w * part(bar.value)), 14)
      }
      if (bar.selected || lit) {
        ctx.strokeStyle = css(bar.selected ? theme.text : theme.faint)
        ctx.lineWidth = 2
        ctx.strokeRect(x + 1, y + 27, w - 2, 18)
      }
      const colour = bar.value > meta.noise ? theme.positionText : theme.quiet
      this.write(ctx, bar.value === null ? '–' : short(bar.value), x, y + 60, { size: 15, weight, colour })
    })
  }
}
