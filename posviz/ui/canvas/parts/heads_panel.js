// Beside the heads: where one weight comes from; in the open head also its profile by distance.
// Needs parts/labels.js and parts/heads_picture.js.
const PART_ROW = 46

class HeadsPanel extends HeadsPicture {
  panelHeight() {
    const { data } = this
    const parts = Math.max(...data.sentences.map((s) => data.partNames(s).length))
    const two = data.sentences.includes('d') && data.partNames('b').length > 0
    return 66 + parts * (PART_ROW + (two ? 8 : 0)) + (parts ? 60 : 0) + 90 + 96 + 66
  }
  tokenText(list, i) { return fill(this.label.token, { token: isolate(list[i]), position: i }) }
  cellTitle({ s, h, i, j }) {
    const name = s === 'd' ? (list, k) => isolate(list[k]) : (list, k) => this.tokenText(list, k)
    const [query, key] = [name(this.data.tokens[s], i), name(this.data.keys[s], j)]
    return fill(this.label.cell_title, { head: this.meta.head_labels[h], query, key })
  }
  precise(x, error, signed = false) {
    const value = signed && Math.abs(x) >= 0.0005 ? formatSigned(x, error ? 2 : 3) : Math.abs(x).toFixed(error ? 2 : 3)
    return error ? fill(this.label.precise, { value, error: error.toFixed(3) }) : value
  }
  drawPanel(ctx) {
    const { g, theme, label } = this
    const cell = this.chosen()
    const at = { x: g.panelX, y: g.panelY + (this.panelShift ?? 0), w: g.panelWidth }
    if (!cell) {
      ctx.font = this.text(15)
      wrapText(ctx, label.hint, at.w).forEach((line, i) => this.write(ctx, line, at.x, at.y + 14 + i * 22, { size: 15, colour: theme.quiet }))
      return
    }
    ctx.font = this.text(16, '600')
    const lines = wrapText(ctx, this.cellTitle(cell), at.w).slice(0, 3)
    lines.forEach((line, i) => this.write(ctx, line, at.x, at.y + 14 + i * 21, { size: 16, weight: '600', max: at.w }))
    at.y += Math.max(2, lines.length) * 21 + 16
    if (!this.data.allowed(cell.s, cell.i, cell.j)) this.panelLine(ctx, at, label.masked, '')
    else this.drawSources(ctx, at, cell)
    if (this.pin && !this.spot && this.pin.h === cell.h) this.panelLine(ctx, at, label.pinned, '', { quiet: true })
  }
  // A text at the left, its number at the right; the text wraps.
  panelLine(ctx, at, text, number, { weight = 'normal', colour, quiet } = {}) {
    const room = at.w - (number ? 96 : 0)
    ctx.font = this.text(15, weight)
    const lines = wrapText(ctx, text, room)
    const ink = quiet ? this.theme.quiet : this.theme.text
    lines.forEach((line, i) => this.write(ctx, line, at.x, at.y + 10 + i * 20, { size: 15, weight, colour: ink }))
    if (number) this.write(ctx, number, at.x + at.w, at.y + 10, { size: 15, weight, colour: colour ?? ink, align: 'right' })
    at.y += lines.length * 20 + 8
  }
  // The sides whose numbers a cell shows: itself, or A and B for a difference.
  sidesOf(cell) {
    if (cell.s !== 'd') return [cell]
    return this.data.partners(cell).map(([s, i, j]) => ({ s, h: cell.h, i, j }))
  }
  drawSources(ctx, at, cell) {
    const { data, label, theme } = this
    const sides = this.sidesOf(cell)
    const scored = sides.filter(({ s }) => data.hasScore(s))
    if (scored.length) this.drawWaterfall(ctx, at, scored)
    const weight = (side) => this.precise(data.weight(side.s, side.h, side.i, side.j), data.error(side.s))
    if (cell.s === 'd') {
      for (const side of sides) this.panelLine(ctx, at, label[`weight_${side.s}`], weight(side), { colour: theme[side.s] })
      const difference = this.precise(data.weight('d', cell.h, cell.i, cell.j), data.error('d'), true)
      this.panelLine(ctx, at, label.difference, difference, { weight: '600' })
    } else {
      this.panelLine(ctx, at, scored.length ? label.softmax : label.weight, weight(cell), { weight: '600', colour: theme[cell.s] })
      this.drawRowWeights(ctx, at, cell)
    }
    this.drawMean(ctx, at, cell)
  }
  drawMean(ctx, at, cell) {
    const block = this.g.blocks.find((b) => b.s === cell.s && b.h === cell.h && !b.part)
    const count = block && block.cell < VECTOR_CELL ? this.raster(block).mean : 1
    if (count === 1) return
    const [r, c] = [cell.i, cell.j].map((k) => Math.floor(k / count) * count)
    const [bottom, right] = [Math.min(block.rows, r + count), Math.min(block.columns, c + count)]
    const mean = this.data.source(cell.s, cell.h).mean(r, bottom, c, right)
    this.panelLine(ctx, at, fill(this.label.averaged, { count, value: this.precise(mean, this.data.error(cell.s), cell.s === 'd') }), '', { quiet: true })
  }
  // Each bar starts where the one before ended, so that they pile up to the score.
  drawWaterfall(ctx, at, sides) {
    const { data, label, theme } = this
    const names = data.partNames(sides[0].s)
    const values = sides.map(({ s, h, i, j }) => names.map((name) => data.part(s, name, h, i, j)))
    const scores = sides.map(({ s, h, i, j }) => data.score(s, h, i, j))
    const ends = values.map((list, k) => [0, ...list.map((_, n) => list.slice(0, n + 1).reduce((a, b) => a + b, 0)), scores[k]])
    const far = Math.max(...ends.flat().map(Math.abs)) // zero stays in the middle, whatever the signs
    const [low, high] = [-far, far]
    const px = (v) => at.x + ((v - low) / (high - low || 1)) * at.w
    const thick = sides.length > 1 ? 10 : 12
    const bar = (k, y, from, to, colour) => {
      ctx.fillStyle = css(colour)
      const [left, right] = [px(from), px(to)].sort((a, b) => a - b)
      ctx.fillRect(left, y + k * (thick + 3), Math.max(1.5, right - left), thick)
      ctx.fillStyle = css(theme.quiet)
      ctx.fillRect(px(0) - 0.5, y + k * (thick + 3) - 2, 1, thick + 4) // zero
    }
    const numbers = (y, list, weight) => list.forEach((v, k) =>
      this.write(ctx, formatSigned(v, 2), at.x + at.w - (list.length - 1 - k) * 62, y, { size: 15, weight, align: 'right', colour: sides.length > 1 ? theme[sides[k].s] : theme.text }))
    names.forEach((name, n) => {
      this.write(ctx, label[`part_${name}`], at.x, at.y + 9, { size: 15, colour: theme.quiet })
      numbers(at.y + 9, values.map((list) => list[n]))
      sides.forEach((_, k) => bar(k, at.y + 21, ends[k][n], ends[k][n + 1], partColour(theme, name)))
      at.y += PART_ROW + (sides.length > 1 ? 8 : 0)
    })
    ctx.fillStyle = css(theme.line)
    if (names.length) ctx.fillRect(at.x, at.y, at.w, 1)
    at.y += 8
    this.write(ctx, fill(label.score, { scale: this.meta.scale }), at.x, at.y + 11, { size: 15, weight: '600' })
    numbers(at.y + 11, scores, '600')
    sides.forEach((_, k) => bar(k, at.y + 23, 0, scores[k], theme.text))
    at.y += 23 + sides.length * (thick + 3)
    at.y += 12
  }
  // The query's whole row after softmax, so that the weight is seen as a share.
  drawRowWeights(ctx, at, { s, h, i, j }) {
    const { data, theme } = this
    const n = data.columns(s)
    if (n * 2 > at.w) return
    const [pitch, height] = [Math.min(40, at.w / n), 56]
    for (let k = 0; k < n; k++) {
      const x = at.x + k * pitch
      const tall = height * data.weight(s, h, i, k)
      ctx.fillStyle = css(mix(theme.text, theme.background, 0.9))
      ctx.fillRect(x, at.y, Math.max(1, pitch - (n < 60 ? 2 : 0.5)), height)
      ctx.fillStyle = css(k === j ? theme[s] : mix(theme[s], theme.background, 0.55))
      ctx.fillRect(x, at.y + height - tall, Math.max(1, pitch - (n < 60 ? 2 : 0.5)), tall)
    }
    at.y += height + 6
    this.panelLine(ctx, at, this.label.row_weights, '', { quiet: true })
  }

  // ------------------------------------------------------------ by distance
  seriesOf(kind) {
    const { data, theme, label, arrays } = this
    if (kind === 'bias') {
      const wide = arrays.bias_x.length
      const values = Array.from(arrays.bias_y.subarray(this.open * wide, (this.open + 1) * wide))
      return [{ name: label.part_bias, colour: theme.position, xs: Array.from(arrays.bias_x), values }]
    }
    return ['a', 'b'].filter((s) => data.cells(s)).map((s) => {
      const { low, mean, count } = data.profile(s, this.open)
      return { name: label[`row_${s}`], colour: theme[s], xs: mean.map((_, k) => low + k), values: mean, count }
    })
  }
  chartScale(chart) {
    const series = this.seriesOf(chart.kind)
    const points = series.flatMap((one) => one.xs.map((x, k) => [x, one.values[k]])).filter(([, v]) => Number.isFinite(v))
    const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])]
    const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity)
    const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity)
    let [low, high] = [Math.min(0, least(ys)), Math.max(0, most(ys))]
    if (high === low) high = low + 1
    const step = niceStep(high - low, 4)
    ;[low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step]
    const box = { left: chart.x + 52, right: chart.x + chart.w - 10, top: chart.y + 14 + chart.lines.length * 20, bottom: chart.y + chart.h - 28 }
    const [x0, x1] = [least(xs), most(xs)]
    const px = (x) => box.left + ((x - x0 + 0.5) / (x1 - x0 + 1)) * (box.right - box.left)
    const py = (v) => box.bottom - ((v - low) / (high - low)) * (box.bottom - box.top)
    return { series, box, x0, x1, low, high, step, px, py }
  }
  drawChart(ctx, chart) {
    const { theme } = this
    const { series, box, x0, x1, low, high, step, px, py } = this.chartScale(chart)
    chart.lines.forEach((line, i) => this.write(ctx, line, chart.x, chart.y + 12 + i * 20, { size: 15, weight: '600' }))
    const decimals = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 6)
    ctx.lineWidth = 1
    for (let v = low; v <= high + step / 2; v += step) {
      ctx.fillStyle = css(Math.abs(v) < step / 2 ? theme.faint : theme.line)
      ctx.fillRect(box.left, Math.round(py(v)), box.right - box.left, 1)
      this.write(ctx, (Math.abs(v) < step / 2 ? 0 : v).toFixed(decimals).replace('-', '−'), box.left - 8, py(v), { colour: theme.quiet, align: 'right' })
    }
    const pace = Math.max(1, niceStep(x1 - x0 + 1, (box.right - box.left) / 56))
    for (let x = Math.ceil(x0 / pace) * pace; x <= x1; x += pace) {
      this.write(ctx, String(x).replace('-', '−'), px(x), box.bottom + 16, { colour: theme.quiet, align: 'center' })
    }
    const at = this.distance?.kind === chart.kind ? this.distance.x : null
    if (at !== null) {
      ctx.fillStyle = css(theme.faint)
      ctx.fillRect(px(at) - 0.5, box.top, 1, box.bottom - box.top)
    }
    for (const one of series) this.drawSeries(ctx, one, { px, py, at, dots: x1 - x0 < 48 })
  }
  drawSeries(ctx, { xs, values, colour }, { px, py, at, dots }) {
    ctx.strokeStyle = ctx.fillStyle = css(colour)
    ctx.lineWidth = 2
    ctx.lineJoin = 'round'
    ctx.beginPath()
    let pen = false
    values.forEach((v, k) => {
      if (Number.isFinite(v)) pen ? ctx.lineTo(px(xs[k]), py(v)) : ctx.moveTo(px(xs[k]), py(v))
      pen = Number.isFinite(v)
    })
    ctx.stroke()
    values.forEach((v, k) => {
      if (!Number.isFinite(v) || (!dots && xs[k] !== at)) return
      ctx.beginPath()
      ctx.arc(px(xs[k]), py(v), xs[k] === at ? 5 : 3, 0, 2 * Math.PI)
      ctx.fill()
    })
  }
  // The distance under the pointer, or null.
  hitChart(x, y) {
    for (const chart of this.g.charts) {
      if (x < chart.x || x > chart.x + chart.w || y < chart.y || y > chart.y + chart.h) continue
      const { box, x0, x1 } = this.chartScale(chart)
      const found = Math.floor(x0 + ((x - box.left) / (box.right - box.left)) * (x1 - x0 + 1))
      if (found >= x0 && found <= x1) return { kind: chart.kind, x: found }
    }
    return null
  }
  chartLines({ kind, x }) {
    const lines = [fill(this.label.tip_distance, { distance: String(x).replace('-', '−') })]
    for (const one of this.seriesOf(kind)) {
      const k = one.xs.indexOf(x)
      if (k < 0 || !Number.isFinite(one.values[k])) continue
      const value = formatNumber(one.values[k], 3)
      const template = one.count ? this.label.tip_mean : this.label.tip_value
      lines.push([fill(template, { name: one.name, value, count: one.count?.[k] }), css(one.colour)])
    }
    return lines
  }
}
