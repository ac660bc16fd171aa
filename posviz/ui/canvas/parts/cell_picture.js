// Inside one weight, for steps.js: q and k element by element, the score piled up, the whole softmax row.
// Needs parts/labels.js, parts/part_colours.js and parts/steps_data.js.
const BARS = ['q', 'k', 'product', 'sum']
const FORMULA = { row_product: 'q × k', column_exp: 'exp(s − max)', column_part: '‖w v Wᴼ‖', strip_part: '‖w v Wᴼ‖' } // the same in every language
const TABLE_KEYS = 16 // more keys are bars, with their numbers on hover

class CellPicture {
  constructor(view) { this.view = view }
  layout(width) {
    const { view } = this
    const { data, ctx, label } = view
    const narrow = width < 620
    const side = width >= 900
    this.width = width
    this.gutter = narrow ? 102 : 116
    const bars = { x: this.gutter, y: 74, w: width - this.gutter - 76, h: 66, gap: 14 }
    bars.end = bars.y + 4 * (bars.h + bars.gap) + 16
    const legend = legendLayout(view, this.legendItems(), width - this.gutter)
    const lower = bars.end + legend.height + 22
    const pile = { x: 0, y: lower, w: side ? Math.min(420, width * 0.36) : width }
    pile.h = 36 + (data.meta.parts.length + 4) * 36
    const table = data.keys.length <= TABLE_KEYS
    const keys = { x: side ? pile.w + 56 : 0, y: side ? lower : lower + pile.h + 28, table, narrow }
    keys.w = width - keys.x
    ctx.font = view.text(15)
    keys.note = wrapText(ctx, label.note_part, keys.w)
    keys.body = keys.y + (table ? 72 : 116)
    keys.row = 32
    keys.strip = { h: 66, gap: 24 }
    const tall = table ? keys.row * (data.keys.length + 1) : 3 * (keys.strip.h + keys.strip.gap) + 24
    keys.end = keys.body + tall
    const hint = wrapText(ctx, label.hint_cell, width)
    const bottom = Math.max(pile.y + pile.h, keys.end + keys.note.length * 20 + 14)
    Object.assign(this, { bars, legend, pile, keys, hint, hintTop: bottom + 14 })
    return this.hintTop + hint.length * 21 + 4
  }
  legendItems() {
    const { data, theme, label } = this.view
    const box = (colour) => (ctx, x, y) => {
      ctx.fillStyle = css(colour)
      ctx.fillRect(x, y - 6, 12, 12)
    }
    const items = []
    if (data.meta.rotary) {
      items.push({ text: label.fast, width: 64, paint: (ctx, x, y) => this.pairRamp(ctx, x, y) })
      if (2 * data.meta.rotary.pairs < data.meta.width) items.push({ text: label.unturned, width: 12, paint: box(theme.content) })
    } else {
      items.push({ text: label.positive, width: 12, paint: box(theme.green) }, { text: label.negative, width: 12, paint: box(theme.purple) })
    }
    if (data.meta.rotated) items.push({ text: label.ghost, width: 12, paint: (ctx, x, y) => this.ghost(ctx, x, y - 6, 12, 12) })
    return items
  }
  pairRamp(ctx, x, y) {
    for (let i = 0; i < 16; i++) {
      ctx.fillStyle = css(pairColour(this.view.theme, i, 16))
      ctx.fillRect(x + i * 4, y - 6, 4.5, 12)
    }
  }
  ghost(ctx, x, y, w, h) {
    ctx.strokeStyle = css(this.view.theme.quiet)
    ctx.lineWidth = 1
    ctx.setLineDash([3, 2])
    ctx.strokeRect(x + 0.5, y + 0.5, Math.max(1, w - 1), h)
    ctx.setLineDash([])
  }

  // ------------------------------------------------------------ numbers of the bars
  // One entry for each element: q, k, product, running sum; `before` is not turned yet.
  series() {
    const { data, cell } = this.view
    let sum = 0
    return data.elements().map((one) => {
      const at = (name, r) => data.value(name, r, one.n)
      const [q, k] = [at('q_rotated', cell.row), at('k_rotated', cell.col)]
      sum += q * k
      return { ...one, q, k, product: q * k, sum, before: { q: at('q', cell.row), k: at('k', cell.col) } }
    })
  }
  colour(one, value) {
    const { data, theme } = this.view
    if (!data.meta.rotary) return value < 0 ? theme.purple : theme.green
    return one.pair === null ? theme.content : pairColour(theme, one.pair, data.meta.rotary.pairs)
  }
  // Left edge and width of element number `place`; pairs stand a little apart.
  slot(place, count) {
    const { bars, view } = this
    const { rotary } = view.data.meta
    const groups = rotary ? rotary.pairs : 0
    const gap = Math.min(6, (bars.w * 0.12) / Math.max(1, groups))
    const step = Math.min(56, (bars.w - groups * gap) / count)
    const before = rotary ? Math.min(groups, Math.floor(place / 2)) : 0
    return { x: bars.x + place * step + before * gap, w: step }
  }

  // ------------------------------------------------------------ drawing
  draw(ctx) {
    const { view, hint } = this
    const { theme, label, cell } = view
    const title = fill(label.cell_title, { head: fill(label.head, { head: view.meta.head }), query: view.tokenName(cell.row), key: view.keyName(cell.col) })
    view.write(ctx, title, 0, 15, { size: 18, weight: '600', max: this.width })
    const series = this.series()
    this.drawBars(ctx, series)
    drawLegend(view, ctx, this.legend, this.gutter, this.bars.end)
    this.drawPile(ctx, series.at(-1).sum)
    this.drawKeys(ctx)
    hint.forEach((line, i) => view.write(ctx, line, 0, this.hintTop + 11 + i * 21, { size: 15, colour: theme.quiet }))
  }
  name(text) { return FORMULA[text] ?? this.view.label[text] }
  heading(ctx, text, x, y, w) { this.view.write(ctx, text, x, y, { size: 16, weight: '600', max: w }) }
  drawBars(ctx, series) {
    const { bars, view } = this
    const { theme, label, cell, data } = view
    this.heading(ctx, data.meta.rotary ? label.pairs : label.elements, 0, 48, this.width)
    const most = (names) => Math.max(1e-12, ...names.flatMap((name) => series.map((one) => Math.abs(one[name]))))
    const before = Math.max(...series.map((one) => Math.max(Math.abs(one.before.q), Math.abs(one.before.k))))
    const limits = { product: most(['product']), sum: most(['sum']) }
    limits.q = limits.k = Math.max(before, most(['q', 'k']))
    if (this.spot?.place !== undefined) this.drawSpot(ctx, series)
    BARS.forEach((name, n) => {
      const [top, middle] = [bars.y + n * (bars.h + bars.gap), bars.y + n * (bars.h + bars.gap) + bars.h / 2]
      ctx.fillStyle = css(theme.faint)
      ctx.fillRect(bars.x, Math.round(middle), this.slot(series.length - 1, series.length).x + this.slot(0, series.length).w - bars.x, 1)
      series.forEach((one, place) => this.drawBar(ctx, { one, name, ...this.slot(place, series.length), middle, unit: bars.h / 2 / limits[name] }))
      const token = { q: view.tokenName(cell.row), k: view.keyName(cell.col) }[name] ?? ''
      view.write(ctx, this.name(`row_${name}`), 0, middle - (token ? 20 : 10), { size: 15, weight: '600', max: this.gutter - 8 })
      if (token) view.write(ctx, token, 0, middle, { size: 15, max: this.gutter - 8 })
      view.write(ctx, `±${short(limits[name])}`, 0, middle + (token ? 20 : 10), { colour: theme.quiet, max: this.gutter - 8 })
      if (name === 'sum') this.drawEnd(ctx, series, middle, bars.h / 2 / limits.sum, top)
    })
  }
  drawBar(ctx, { one, name, x, w, middle, unit }) {
    const value = one[name]
    const tall = Math.abs(value) * unit
    const inset = w > 8 ? w * 0.14 : w > 3 ? 0.5 : 0
    ctx.fillStyle = css(name === 'sum' ? mix(this.view.theme.text, this.view.theme.background, 0.45) : this.colour(one, value))
    ctx.fillRect(x + inset, value < 0 ? middle : middle - tall, Math.max(0.8, w - 2 * inset), tall)
    const before = one.before[name]
    if (before === undefined || !this.view.data.meta.rotated || w < 3 || Math.abs(before - value) * unit < 0.7) return
    const high = Math.abs(before) * unit
    this.ghost(ctx, x + inset, before < 0 ? middle : middle - high, w - 2 * inset, high)
  }
  // The sum ends at the dot product.
  drawEnd(ctx, series, middle, unit) {
    const { theme } = this.view
    const last = this.slot(series.length - 1, series.length)
    const [x, y] = [last.x + last.w, middle - series.at(-1).sum * unit]
    ctx.fillStyle = css(theme.text)
    ctx.beginPath()
    ctx.arc(x + 5, y, 4, 0, 2 * Math.PI)
    ctx.fill()
    this.view.write(ctx, short(series.at(-1).sum), x + 14, y, { size: 16, weight: '600' })
  }
  drawSpot(ctx, series) {
    const { bars } = this
    const pair = series[this.spot.place]?.pair
    ctx.fillStyle = css(mix(this.view.theme.text, this.view.theme.background, 0.9))
    series.forEach((one, place) => {
      if (place !== this.spot.place && (pair === null || one.pair !== pair)) return
      const { x, w } = this.slot(place, series.length)
      ctx.fillRect(x, bars.y - 4, w, bars.end - bars.y - 16)
    })
  }

  // ------------------------------------------------------------ the score
  drawPile(ctx, dot) {
    const { pile, view } = this
    const { data, theme, label, cell, meta } = view
    this.heading(ctx, label.pile, pile.x, pile.y + 12, pile.w)
    const parts = meta.parts.map((name) => [name, data.value(`part_${name}`, cell.row, cell.col)])
    const score = data.value('scores', cell.row, cell.col)
    let [y, at] = [pile.y + 52, 0]
    const ends = parts.map(([, v]) => (at += v))
    const far = Math.max(1e-12, Math.abs(score), Math.abs(dot * data.meta.scale), ...ends.filter(Number.isFinite).map(Math.abs))
    const row = (text, value, look = {}) => {
      this.pileRow(ctx, y, text, value, { far, ...look })
      y += 36
    }
    row(label.dot, dot)
    row(fill(label.scaled, { scale: meta.scale_text }), dot * meta.scale, { from: 0, to: dot * meta.scale, colour: mix(theme.text, theme.background, 0.45) })
    parts.forEach(([name, v], n) => row(label[`part_${name}`], v, { from: ends[n] - v, to: ends[n], colour: partColour(theme, name), signed: true }))
    ctx.fillStyle = css(theme.line)
    ctx.fillRect(pile.x, y - 20, pile.w, 1)
    row(label.score, score, { from: 0, to: score, colour: theme.text, weight: '600' })
    if (!data.allowed(cell.row, cell.col)) return view.write(ctx, label.masked, pile.x, y, { size: 15, colour: theme.quiet, max: pile.w })
    row(label.softmax, data.weight(cell.row, cell.col), { weight: '600', ink: theme[meta.side] })
  }
  pileRow(ctx, y, text, value, { far, from, to, colour, weight = 'normal', ink, signed }) {
    const { pile, view } = this
    const { theme } = view
    const [label, number] = [Math.min(150, pile.w * 0.4), 76]
    const [left, wide] = [pile.x + label + 8, pile.w - label - number - 16]
    const room = from === undefined ? pile.w - number : label
    view.write(ctx, text, pile.x, y, { size: 15, weight, max: room, colour: weight === 'normal' ? theme.quiet : theme.text })
    const shown = Number.isFinite(value) ? (signed && value > 0 ? '+' : '') + short(value) : '–'
    view.write(ctx, shown, pile.x + pile.w, y, { size: 16, weight, align: 'right', colour: ink ?? theme.text })
    if (!Number.isFinite(from + to)) return
    const px = (v) => left + ((v + far) / (2 * far)) * wide
    ctx.fillStyle = css(colour)
    ctx.fillRect(Math.min(px(from), px(to)), y - 7, Math.max(1.5, Math.abs(px(to) - px(from))), 14)
    ctx.fillStyle = css(theme.quiet)
    ctx.fillRect(px(0) - 0.5, y - 10, 1, 20)
  }

  // ------------------------------------------------------------ all keys
  drawKeys(ctx) {
    const { keys, view } = this
    this.heading(ctx, view.label.keys, keys.x, keys.y + 12, keys.w)
    const list = view.data.row(view.cell.row)
    keys.table ? this.drawTable(ctx, list) : this.drawStrips(ctx, list)
    keys.note.forEach((line, i) => view.write(ctx, line, keys.x, keys.end + 20 + i * 20, { size: 15, colour: view.theme.quiet }))
  }
  // Columns: key, score, exp, weight with its bar, contribution with its bar.
  columns() {
    const { x, w, narrow } = this.keys
    const name = narrow ? w * 0.18 : Math.min(120, w * 0.16)
    const number = narrow ? w * 0.19 : Math.min(104, w * 0.18)
    const rest = (w - name - 2 * number) / 2
    const bar = rest - 66 - (narrow ? 4 : 16)
    const end = (n) => x + name + n * number
    return { name, score: end(1), exp: end(2), weight: end(2) + rest, part: end(2) + 2 * rest, bar: bar > 16 ? bar : 0 }
  }
  drawTable(ctx, list) {
    const { keys, view } = this
    const { theme, label } = view
    const at = this.columns()
    const head = { size: 14, colour: theme.quiet, align: 'right' }
    view.write(ctx, label.column_key, keys.x + 8, keys.body - 16, { ...head, align: 'left' })
    for (const name of ['score', 'exp', 'weight', 'part']) {
      const before = { score: keys.x + at.name, exp: at.score, weight: at.exp, part: at.weight }[name]
      ctx.font = view.text(14)
      const lines = wrapText(ctx, this.name(`column_${name}`), at[name] - before - 6).slice(-2)
      lines.forEach((line, i) => view.write(ctx, line, at[name], keys.body - 16 - (lines.length - 1 - i) * 17, head))
    }
    const most = Math.max(1e-12, ...list.map((one) => one.part))
    list.forEach((one, j) => this.drawKey(ctx, one, j, keys.body + j * keys.row, at, most))
    const y = keys.body + list.length * keys.row
    ctx.fillStyle = css(theme.line)
    ctx.fillRect(keys.x, y, keys.w, 1)
    view.write(ctx, label.total, keys.x + 8, y + 16, { size: 15, colour: theme.quiet })
    const sum = (name) => list.reduce((total, one) => total + one[name], 0)
    view.write(ctx, sum('exp').toFixed(3), at.exp, y + 16, { size: 15, colour: theme.quiet, align: 'right' })
    view.write(ctx, sum('weight').toFixed(3), at.weight, y + 16, { size: 15, colour: theme.quiet, align: 'right' })
  }
  drawKey(ctx, one, j, top, at, most) {
    const { keys, view } = this
    const { theme, cell, meta } = view
    const [y, mine] = [top + keys.row / 2, j === cell.col]
    if (mine || this.spot?.key === j) {
      ctx.fillStyle = css(mix(theme[meta.side], theme.background, mine ? 0.86 : 0.94))
      ctx.fillRect(keys.x, top + 1, keys.w, keys.row - 2)
    }
    const style = { size: 15, weight: mine ? '600' : 'normal' }
    view.write(ctx, view.keyName(j), keys.x + 8, y, { ...style, max: at.name - 10, colour: one.allowed ? theme.text : theme.quiet })
    if (!one.allowed) return hatchBox(ctx, theme, keys.x + at.name + 6, top + 4, keys.w - at.name - 6, keys.row - 8)
    const number = (x, text) => view.write(ctx, text, x, y, { ...style, align: 'right' })
    number(at.score, short(one.score))
    number(at.exp, one.exp.toFixed(3))
    number(at.weight, one.weight.toFixed(3))
    number(at.part, short(one.part))
    if (!at.bar) return
    const bar = (end, share, colour) => {
      const left = end - 66 - at.bar
      ctx.fillStyle = css(mix(theme.text, theme.background, 0.9))
      ctx.fillRect(left, y - 6, at.bar, 12)
      ctx.fillStyle = css(colour)
      ctx.fillRect(left, y - 6, at.bar * clamp(share, 0, 1), 12)
    }
    bar(at.weight, one.weight, theme[meta.side])
    bar(at.part, one.part / most, mix(theme.text, theme.background, 0.3))
  }
  // Many keys: three rows of bars; the numbers of the key under the pointer, else of the chosen one, above them.
  drawStrips(ctx, list) {
    const { keys, view } = this
    const { theme, label, cell, meta } = view
    const j = this.spot?.key ?? cell.col
    const one = list[j]
    const numbers = one.allowed ? [[label.column_score, short(one.score)], [FORMULA.column_exp, one.exp.toFixed(3)], [label.column_weight, one.weight.toFixed(3)], [FORMULA.column_part, short(one.part)]] : [[label.masked, '']]
    view.write(ctx, view.keyName(j), keys.x, keys.y + 42, { size: 15, weight: '600', max: keys.w })
    numbers.forEach(([name, value], n) => {
      const x = keys.x + (n * keys.w) / numbers.length
      view.write(ctx, name, x, keys.y + 64, { size: 14, colour: theme.quiet, max: keys.w / numbers.length - 2 })
      view.write(ctx, value, x, keys.y + 86, { size: 16 })
    })
    const inks = { score: null, weight: theme[meta.side], part: mix(theme.text, theme.background, 0.3) }
    Object.entries(inks).forEach(([name, ink], n) => this.drawStrip(ctx, list, name, ink, keys.body + n * (keys.strip.h + keys.strip.gap)))
    this.drawKeyAxis(ctx, list, keys.body + 3 * (keys.strip.h + keys.strip.gap) - keys.strip.gap)
  }
  stripScale() {
    const { x, w } = this.keys
    const left = x + 84
    return { left, pitch: (w - 84) / this.view.data.keys.length }
  }
  drawStrip(ctx, list, name, ink, top) {
    const { keys, view } = this
    const { theme, cell, label } = view
    const { left, pitch } = this.stripScale()
    const { h } = keys.strip
    const most = list.reduce((far, one) => (one.allowed ? Math.max(far, Math.abs(one[name])) : far), 1e-12)
    const signed = name === 'score'
    const zero = signed ? top + h / 2 : top + h
    const unit = (signed ? h / 2 : h) / most
    list.forEach((one, j) => {
      const [x, wide] = [left + j * pitch, Math.max(0.8, pitch - (pitch > 4 ? 1 : 0))]
      if (j === cell.col || this.spot?.key === j) {
        ctx.fillStyle = css(mix(theme.text, theme.background, j === cell.col ? 0.8 : 0.9))
        ctx.fillRect(x - 1, top - 3, Math.max(3, wide + 2), h + 6)
      }
      if (!one.allowed) return
      const tall = Math.abs(one[name]) * unit
      ctx.fillStyle = css(ink ?? (one.score < 0 ? theme.purple : theme.green))
      ctx.fillRect(x, one[name] < 0 ? zero : zero - tall, wide, tall)
    })
    this.hatchRuns(ctx, list, top, h)
    ctx.fillStyle = css(theme.faint)
    ctx.fillRect(left, Math.round(zero), keys.w - 84, 1)
    view.write(ctx, this.name(`strip_${name}`), keys.x, top + 14, { size: 15, max: 80 })
    view.write(ctx, (signed ? '±' : '0–') + short(most), keys.x, top + 36, { colour: theme.quiet, max: 80 })
  }
  hatchRuns(ctx, list, top, h) {
    const { left, pitch } = this.stripScale()
    for (let j = 0; j < list.length; j++) {
      if (list[j].allowed) continue
      const from = j
      while (j + 1 < list.length && !list[j + 1].allowed) j++
      hatchBox(ctx, this.view.theme, left + from * pitch, top, (j + 1 - from) * pitch, h)
    }
  }
  drawKeyAxis(ctx, list, y) {
    const { view } = this
    const { left, pitch } = this.stripScale()
    const every = Math.max(1, pitch >= 19 ? 1 : Math.ceil(niceStep(list.length, (list.length * pitch) / 44)))
    for (let j = 0; j < list.length; j += every) {
      const text = pitch >= 19 ? view.data.keys[j] : String(j)
      view.write(ctx, text, left + (j + 0.5) * pitch, y + 16, { colour: view.theme.quiet, align: 'center', max: pitch >= 19 ? pitch + 4 : 0 })
    }
  }

  // ------------------------------------------------------------ pointer
  // {place} of an element, {key} of a key, or null.
  hit(x, y) {
    const { bars, keys, view } = this
    if (y >= bars.y - 6 && y < bars.end - 10) {
      const count = view.meta.width
      for (let place = 0; place < count; place++) {
        const { x: left, w } = this.slot(place, count)
        if (x >= left && x < left + w) return { place }
      }
      return null
    }
    if (x < keys.x || y < keys.body || y > keys.end) return null
    const { left, pitch } = this.stripScale()
    const key = keys.table ? Math.floor((y - keys.body) / keys.row) : Math.floor((x - left) / pitch)
    return key >= 0 && key < view.data.keys.length && (keys.table || x >= left) ? { key } : null
  }
  point(found, x, y) {
    this.spot = found
    if (found?.place === undefined) this.view.hideTip()
    else this.view.showTip(x, this.bars.end + 110, this.tipLines(this.series()[found.place]))
    this.view.canvas.style.cursor = found?.key !== undefined ? 'pointer' : ''
  }
  tipLines(one) {
    const { view } = this
    const { label, data, cell } = view
    const lines = [fill(label.tip_dimension, { n: one.n })]
    for (const name of ['q', 'k']) {
      const [value, before] = [short(one[name]), short(one.before[name])]
      lines.push(fill(data.meta.rotated ? label.tip_turned : label.tip_value, { name: this.name(`row_${name}`), value, before }))
    }
    lines.push(fill(label.tip_value, { name: FORMULA.row_product, value: short(one.product) }), fill(label.tip_value, { name: label.row_sum, value: short(one.sum) }))
    if (one.pair === null) return lines
    const [query, key] = data.angles(cell.row, cell.col, one.pair)
    lines[0] = `${lines[0]} · ${fill(label.tip_pair, { pair: one.pair, first: one.two[0], second: one.two[1] })}`
    lines.push(fill(label.tip_angles, { query: short(query), key: short(key) }), fill(label.tip_difference, { value: short(query - key) }))
    return lines
  }
  click(found) {
    if (found?.key !== undefined) this.view.choose(this.view.cell.row, found.key)
  }
  arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }
}
