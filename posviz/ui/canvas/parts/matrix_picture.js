// Everything the matrix component paints. MatrixView (matrix.js) adds the data, the layout and the pointer:
//   this.panels, this.meta    what to show; this.boxes where (plan)
//   this.rowRange, this.colRanges[i]   the visible cells of panel i, [from, to)
//   this.pin, this.hover, this.focus   { row, cols: one column per panel }; focus is hover, else pin
const CELL_TEXT = [44, 24] // a cell this large carries its value
const DASH = [[], [6, 4]] // the second panel's lines are dashed

const integer = (x) => (Number.isInteger(x) ? String(x).replace('-', '−') : formatNumber(x, 4))
const bound = (x) => (Math.abs(Math.abs(x) - Math.PI) < 1e-9 ? `${x < 0 ? '−' : ''}π` : integer(x))
// Digits that are zero because the number is (0.5, -11.5) are left out.
const precise = (x, digits) => {
  const [text, shortest] = [formatNumber(x, digits), String(x).replace('-', '−')]
  return shortest.length < text.length && !shortest.includes('e') ? shortest : text
}
const known = (v) => v !== undefined && Number.isFinite(v)

class MatrixPicture extends View {
  draw(ctx, width, height) {
    const started = performance.now()
    this.boxes = this.plan(width, height)
    this.focus = this.hover ?? this.pin
    this.panels.forEach((panel, i) => this.drawPanel(ctx, panel, this.boxes.panels[i], i))
    this.drawWave(ctx, this.boxes.wave)
    this.drawCorner(ctx, this.boxes.corner)
    if (this.drag?.rect) this.drawSelection(ctx)
    this.report(performance.now() - started)
    this.wantWindow()
  }
  raster(i, box) {
    const ratio = window.devicePixelRatio || 1
    const [width, height] = [Math.max(1, Math.round(box.w * ratio)), Math.max(1, Math.round(box.h * ratio))]
    const key = [width, height, ...this.rowRange, ...this.colRanges[i]].join()
    if (this.rasters[i]?.key !== key) {
      const panel = this.panels[i]
      const options = { width, height, limit: this.limit(panel), lut: this.lut, ...this.domain() }
      this.rasters[i] = { key, ...rasterize(panel.source, this.view(i), options) }
    }
    return this.rasters[i]
  }
  drawPanel(ctx, panel, box, i) {
    const raster = this.raster(i, box)
    this.drawTitle(ctx, panel, box, i, raster.grid)
    this.drawTop(ctx, panel, box, i)
    this.hatch(ctx, panel, box)
    ctx.imageSmoothingEnabled = false
    ctx.drawImage(raster.canvas, box.x, box.y, box.w, box.h)
    this.drawCells(ctx, panel, box, i)
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(box.x - 0.5, box.y - 0.5, box.w + 1, box.h + 1)
    if (i === 0 || this.boxes.narrow) this.drawRowAxis(ctx, panel, box)
    if (box.bars.h) this.drawBars(ctx, panel, box.bars, i)
    this.drawColumnAxis(ctx, panel, box.bars, i)
    this.drawCross(ctx, box, i, this.pin, 1)
    if (this.hover) this.drawCross(ctx, box, i, this.hover, 0.7)
    this.drawBeyond(ctx, panel, box)
  }
  statusOf(grid) {
    if (grid.br === 1 && grid.bc === 1) return this.label.exact
    return fill(this.label.averaged, { rows: grid.br, cols: grid.bc })
  }
  // Left the title (with two panels also how this panel's wave is drawn), right what the cells show.
  drawTitle(ctx, panel, box, i, grid) {
    const y = box.y - box.top + 12
    const sample = this.panels.length > 1 ? 34 : 0
    if (sample) this.drawSample(ctx, box.x, y, i)
    ctx.font = this.text(16, 600)
    const title = panel.title ? sample + ctx.measureText(panel.title).width + 20 : sample
    ctx.font = this.text(14)
    const size = fill(this.label.shape, { rows: panel.rows, cols: panel.cols })
    const short = this.statusOf(grid)
    const fits = (text) => title + ctx.measureText(text).width <= box.w
    const status = fits(`${size} · ${short}`) ? `${size} · ${short}` : short
    const used = ctx.measureText(status).width
    const key = panel.masked ? ctx.measureText(this.label.masked).width + 40 : 0
    this.write(ctx, status, box.x + box.w, y, { colour: this.theme.quiet, align: 'right' })
    if (key && title + used + key <= box.w) this.drawMaskedKey(ctx, box.x + box.w - used - key, y)
    const room = box.w - used - sample - 12
    if (panel.title && room > 40) this.write(ctx, panel.title, box.x + sample, y, { size: 16, weight: 600, max: room })
  }
  drawSample(ctx, x, y, i) {
    ctx.setLineDash(DASH[i])
    this.line(ctx, x, y, x + 26, y, this.curveColour(i), 2)
    ctx.setLineDash([])
  }
  // Above the cells: column labels if there are any, else the ruler of wavelengths.
  drawTop(ctx, panel, box, i) {
    const [from, to] = this.colRanges[i]
    const unit = box.w / (to - from)
    if (panel.col_labels) {
      const step = Math.max(1, Math.ceil(30 / unit))
      for (let c = Math.ceil(from / step) * step; c < to; c += step) {
        this.write(ctx, panel.col_labels[c] ?? '', this.x(box, i, c + 0.5), box.y - 14, { align: 'center', max: step * unit - 4 })
      }
      return
    }
    let free = -Infinity
    for (const [c, text] of this.ruler(panel, from, to, box.w)) {
      const x = this.x(box, i, c + 0.5)
      ctx.font = this.text(14)
      const wide = ctx.measureText(text).width
      if (x < free || x + wide > box.x + box.w + 2) continue
      this.line(ctx, x, box.y - 7, x, box.y - 1, this.theme.faint)
      this.write(ctx, text, Math.max(box.x, x - 1), box.y - 16, { colour: this.theme.quiet })
      free = x + wide + 14
    }
  }
  // The given ticks; zoomed in so far that hardly one is left, the columns' own wavelengths.
  ruler(panel, from, to, width) {
    const given = (panel.ruler ?? []).filter(([c]) => c >= from && c < to)
    if (given.length > 2 || !panel.info || (given.length && to - from === panel.cols)) return given
    const step = Math.max(1, niceStep(to - from, width / 90))
    const own = []
    for (let c = Math.ceil(from / step) * step; c < to; c += step) own.push([c, fill(this.label.ruler, { value: formatNumber(panel.info[c], 3) })])
    return own
  }
  line(ctx, x0, y0, x1, y1, colour, width = 1) {
    ctx.strokeStyle = css(colour)
    ctx.lineWidth = width
    ctx.beginPath()
    ctx.moveTo(x0, y0)
    ctx.lineTo(x1, y1)
    ctx.stroke()
  }
  // Lies under the cells: it shows through where a cell is masked or does not exist.
  hatch(ctx, panel, box) {
    if (!panel.masked && this.limit(panel) >= this.rowRange[1]) return
    ctx.save()
    ctx.beginPath()
    ctx.rect(box.x, box.y, box.w, box.h)
    ctx.clip()
    ctx.fillStyle = css(mix(this.theme.text, this.theme.background, 0.9))
    ctx.fillRect(box.x, box.y, box.w, box.h)
    ctx.strokeStyle = css(mix(this.theme.text, this.theme.background, 0.76))
    ctx.lineWidth = 1
    ctx.beginPath()
    for (let d = 0; d < box.w + box.h; d += 9) {
      ctx.moveTo(box.x + d, box.y)
      ctx.lineTo(box.x + d - box.h, box.y + box.h)
    }
    ctx.stroke()
    ctx.restore()
  }
  drawBeyond(ctx, panel, box) {
    const top = Math.max(box.y, this.y(box, this.limit(panel)))
    const tall = box.y + box.h - top
    if (tall <= 0) return
    if (top > box.y) this.line(ctx, box.x, top, box.x + box.w, top, this.theme.quiet)
    if (tall < 26) return
    ctx.font = this.text(15)
    const wide = Math.min(box.w - 8, ctx.measureText(this.label.beyond).width + 20)
    const [x, y] = [box.x + box.w / 2, top + tall / 2]
    ctx.fillStyle = css(this.theme.background)
    ctx.fillRect(x - wide / 2, y - 13, wide, 26)
    this.write(ctx, this.label.beyond, x, y, { size: 15, align: 'center', max: wide - 8 })
  }
  // Large cells: a thin gap between them, larger ones carry their value.
  drawCells(ctx, panel, box, i) {
    const { r0, r1, c0, c1 } = this.view(i)
    const [w, h] = [box.w / (c1 - c0), box.h / (r1 - r0)]
    if (w < 14 || h < 14) return
    for (let c = c0 + 1; c < c1; c++) this.line(ctx, this.x(box, i, c), box.y, this.x(box, i, c), box.y + box.h, this.theme.background)
    for (let r = r0 + 1; r < r1; r++) this.line(ctx, box.x, this.y(box, r), box.x + box.w, this.y(box, r), this.theme.background)
    if (w < CELL_TEXT[0] || h < CELL_TEXT[1]) return
    const places = w >= 76 ? 4 : 2
    const size = clamp(Math.floor(Math.min(w / 5, h / 2.2)), 14, 22)
    for (let r = r0; r < Math.min(r1, this.limit(panel)); r++) {
      for (let c = c0; c < c1; c++) {
        const v = this.value(panel, r, c)
        if (!known(v)) continue
        const text = v === 0 ? '0' : formatSigned(v, Math.abs(v) >= 100 ? 0 : places).replace('+', '')
        this.write(ctx, text, this.x(box, i, c + 0.5), this.y(box, r + 0.5), { size, align: 'center', colour: inkOn(this.colour(v), this.theme) })
      }
    }
  }
  drawRowAxis(ctx, panel, box) {
    const [from, to] = this.rowRange
    const unit = box.h / (to - from)
    const step = panel.row_labels ? Math.max(1, Math.ceil(19 / unit)) : Math.max(1, niceStep(to - from, box.h / 60))
    const width = this.axisWidth()
    const offset = panel.row_labels ? 0 : panel.row_start // ticks at round positions
    for (let p = Math.ceil((from + offset) / step) * step; p - offset < to; p += step) {
      const y = clamp(this.y(box, p - offset + 0.5), box.y + 6, box.y + box.h - 6)
      this.write(ctx, this.rowName(p - offset, panel), box.x - 8, y, { colour: this.theme.quiet, align: 'right', max: width })
    }
    if (!panel.y_label) return
    ctx.save()
    ctx.translate(10, box.y + box.h / 2)
    ctx.rotate(-Math.PI / 2)
    this.write(ctx, panel.y_label, 0, 0, { size: 15, align: 'center' })
    ctx.restore()
  }
  drawColumnAxis(ctx, panel, bars, i) {
    const [from, to] = this.colRanges[i]
    const y = bars.y + bars.h + 16
    ctx.font = this.text(15)
    const name = panel.x_label ? ctx.measureText(panel.x_label).width + 14 : 0
    if (name) this.write(ctx, panel.x_label, bars.x + bars.w, y, { size: 15, align: 'right' })
    const step = Math.max(1, niceStep(to - from, bars.w / 64))
    for (let c = Math.ceil(from / step) * step; c < to; c += step) {
      const x = this.x(bars, i, c + 0.5)
      if (x + 16 > bars.x + bars.w - name) break
      this.write(ctx, integer(c), Math.max(x, bars.x + 4), y, { colour: this.theme.quiet, align: 'center' })
    }
  }
  // Two lines along the edges of the row and of the column; one line while they are thin.
  drawCross(ctx, box, i, { row, cols }, strength) {
    const bars = box.bars
    const bands = []
    const edges = (from, to) => (to - from < 7 ? [(from + to) / 2] : [from, to])
    if (row >= this.rowRange[0] && row < this.rowRange[1]) {
      for (const y of edges(this.y(box, row), this.y(box, row + 1))) bands.push([box.x, y, box.x + box.w, y])
    }
    const [from, to] = this.colRanges[i]
    if (cols[i] >= from && cols[i] < to) {
      for (const x of edges(this.x(box, i, cols[i]), this.x(box, i, cols[i] + 1))) bands.push([x, box.y, x, box.y + box.h])
      const x = this.x(bars, i, cols[i] + 0.5)
      if (cols === this.focus.cols) this.line(ctx, x, box.y + box.h + 2, x, bars.y + bars.h + 3, this.theme.position, 1.5)
    }
    ctx.globalAlpha = strength
    for (const band of bands) this.line(ctx, ...band, this.theme.background, 3.5)
    for (const band of bands) this.line(ctx, ...band, this.theme.position, strength < 1 ? 1.25 : 1.75)
    ctx.globalAlpha = 1
  }
  // From value to pixels across a margin `size` wide, with a little air.
  across(v, size) { return 4 + ((clamp(v, this.meta.vmin, this.meta.vmax) - this.meta.vmin) / (this.meta.vmax - this.meta.vmin)) * (size - 8) }
  get zero() { return clamp(0, this.meta.vmin, this.meta.vmax) }

  // The row as bars. More columns than pixels: each bar spans the lowest to the highest of its columns.
  drawBars(ctx, panel, box, i) {
    const [from, to] = this.colRanges[i]
    const group = Math.ceil((to - from) / box.w)
    const at = (v) => box.y + box.h - this.across(v, box.h)
    this.line(ctx, box.x, at(this.zero), box.x + box.w, at(this.zero), this.theme.line)
    const value = this.lineOf(panel, 'row', this.focus.row, this.view(i))
    for (let c = from; c < to; c += group) {
      let [low, high] = [this.zero, this.zero]
      for (let k = c; k < Math.min(to, c + group); k++) {
        const v = value(k)
        if (known(v)) [low, high] = [Math.min(low, v), Math.max(high, v)]
      }
      const [x, width] = this.barPlace(this.x(box, i, c), this.x(box, i, Math.min(to, c + group)))
      for (const v of [low, high]) {
        if (v === this.zero) continue
        ctx.fillStyle = css(this.barColour(v))
        const [a, b] = [at(v), at(this.zero)]
        ctx.fillRect(x, Math.min(a, b), width, Math.max(0.75, Math.abs(a - b)))
      }
    }
  }
  // Wide bars leave a gap, thin ones end on whole pixels (else they would beat).
  barPlace(from, to) {
    if (to - from >= 4) return [from + (to - from) * 0.1, (to - from) * 0.8]
    const snap = (x) => Math.round(x * this.ratio) / this.ratio
    return [snap(from), Math.max(1 / this.ratio, snap(to) - snap(from))]
  }
  // The cells of one row or column of a view, by index: all exact, or (not loaded yet) all block means.
  lineOf(panel, axis, index, view) {
    const { source } = panel
    const { r0, r1, c0, c1 } = view
    const row = axis === 'row'
    const exact = row ? source.hasLine(index, index + 1, c0, c1) : source.hasLine(r0, Math.min(r1, this.limit(panel)), index, index + 1)
    const cell = exact ? (r, c) => source.value(r, c) : (r, c) => source.coarse(r, c)
    if (row && index >= this.limit(panel)) return () => NaN
    return row ? (c) => cell(index, c) : (r) => cell(r, index)
  }
  // The scale's colour, but never so close to the background that a bar disappears.
  barColour(v) {
    const least = 0.3 * Math.max(Math.abs(this.meta.vmin), Math.abs(this.meta.vmax))
    return this.colour(Math.sign(v) * Math.max(Math.abs(v), least))
  }

  // -------------------------------------------------------------- the wave
  // `place(position, value)` -> [x, y]: position down in the right margin, to the right when it lies below.
  drawWave(ctx, box) {
    const lying = this.boxes.narrow
    const [from, to] = this.rowRange
    const length = lying ? box.w : box.h
    const place = (r, v) => {
      const along = ((r - from) / (to - from)) * length
      return lying ? [box.x + along, box.y + box.h - this.across(v, box.h)] : [box.x + this.across(v, box.w), box.y + along]
    }
    for (const v of new Set([this.meta.vmin, this.zero, this.meta.vmax])) {
      this.line(ctx, ...place(from, v), ...place(to, v), v === this.zero ? mix(this.theme.line, this.theme.text, 0.2) : this.theme.line)
    }
    this.drawWaveTitle(ctx, box)
    const row = this.focus.row + 0.5
    if (row > from && row < to) this.line(ctx, ...place(row, this.meta.vmin), ...place(row, this.meta.vmax), this.theme.position)
    this.panels.forEach((panel, i) => this.drawCurve(ctx, panel, i, place, length))
    this.panels.forEach((panel, i) => {
      const v = this.shown(panel, this.focus.row, this.focus.cols[i])
      if (known(v) && row > from && row < to) this.dot(ctx, ...place(row, v), i)
    })
  }
  drawWaveTitle(ctx, box) {
    const panel = this.panels[0]
    const { cols } = this.focus
    const names = new Set(this.panels.map((p, i) => this.colName(cols[i], p)))
    const title = fill(this.label.column, { col: [...names].join(' / ') })
    const { r0, r1 } = this.view(0)
    const coarse = !panel.source.hasLine(r0, Math.min(r1, this.limit(panel)), cols[0], cols[0] + 1)
    const about = coarse ? fill(this.label.averaged, { rows: panel.source.br, cols: panel.source.bc }) : ''
    if (this.boxes.narrow) {
      const text = about ? `${title} · ${about}` : this.panels.length > 1 ? title : this.withInfo(title, panel, cols[0])
      this.write(ctx, text, box.x, box.y - 14, { size: 15, max: box.w })
      return
    }
    this.heading(ctx, title, box.x, box.y - this.boxes.panels[0].top + 12, box.w)
    if (about) this.write(ctx, about, box.x, box.y - 16, { colour: this.theme.quiet, max: box.w })
    else if (this.panels.length > 1) this.drawWavelengths(ctx, box, box.y - 16)
    else if (panel.info) this.write(ctx, this.withInfo('', panel, cols[0]), box.x, box.y - 16, { colour: this.theme.quiet, max: box.w })
  }
  // Set smaller before it is cut.
  heading(ctx, text, x, y, max) {
    ctx.font = this.text(16, 600)
    const size = ctx.measureText(text).width > max ? 14 : 16
    this.write(ctx, text, x, y, { size, weight: 600, max })
  }
  withInfo(title, panel, col) {
    if (!panel.info) return title
    const info = fill(this.label.column_info, { value: formatNumber(panel.info[col], 4) })
    return title ? `${title} · ${info}` : info
  }
  // The wavelength of each panel's column behind a sample of its line.
  drawWavelengths(ctx, box, y) {
    const each = box.w / this.panels.length
    this.panels.forEach((panel, i) => {
      if (!panel.info) return
      this.drawSample(ctx, box.x + i * each, y, i)
      const text = fill(this.label.ruler, { value: formatNumber(panel.info[this.focus.cols[i]], 3) })
      this.write(ctx, text, box.x + i * each + 32, y, { colour: this.theme.quiet, max: each - 34 })
    })
  }
  curveColour(i) { return i ? this.theme.slow : this.theme.text }
  dot(ctx, x, y, i) {
    ctx.beginPath()
    ctx.arc(x, y, 6, 0, TAU)
    ctx.fillStyle = css(i ? this.theme.background : this.theme.position)
    ctx.fill()
    ctx.strokeStyle = css(i ? this.theme.position : this.theme.background)
    ctx.lineWidth = i ? 2.5 : 1.5
    ctx.stroke()
  }
  // A line through every position; with several positions to a pixel, the band from their lowest to highest.
  drawCurve(ctx, panel, i, place, length) {
    const [from, to] = [this.rowRange[0], Math.min(this.rowRange[1], this.limit(panel))]
    const group = Math.ceil((this.rowRange[1] - this.rowRange[0]) / (length * 1.5))
    ctx.strokeStyle = css(this.curveColour(i))
    ctx.lineWidth = group > 1 ? 1 : 1.75
    ctx.lineJoin = 'round'
    ctx.setLineDash(group > 1 ? [] : DASH[i])
    const value = this.lineOf(panel, 'col', this.focus.cols[i], this.view(i))
    for (const run of this.runs(value, from, to, group, panel.source.wrap)) {
      ctx.beginPath()
      for (const [r, , high] of run) ctx.lineTo(...place(r, high))
      if (group > 1) {
        for (const [r, low] of run.reverse()) ctx.lineTo(...place(r, low))
        ctx.closePath()
        ctx.fillStyle = css(this.curveColour(i))
        ctx.globalAlpha = 0.3
        ctx.fill()
        ctx.globalAlpha = 0.6
      }
      ctx.stroke()
      ctx.globalAlpha = 1
    }
    ctx.setLineDash([])
    if (length / (this.rowRange[1] - this.rowRange[0]) >= 9) this.drawSamples(ctx, value, i, from, to, place)
  }
  // Few positions: they are separate values, not a curve.
  drawSamples(ctx, value, i, from, to, place) {
    ctx.fillStyle = css(this.curveColour(i))
    for (let r = from; r < to; r++) {
      const v = value(r)
      if (!known(v)) continue
      ctx.beginPath()
      ctx.arc(...place(r + 0.5, v), 2.75, 0, TAU)
      ctx.fill()
    }
  }
  // [position, low, high] in unbroken runs: a masked cell or an angle's wrap from pi to -pi leaves a gap.
  runs(value, from, to, group, wrap) {
    const runs = [[]]
    let last = NaN
    for (let r = from; r < to; r += group) {
      let [low, high] = [Infinity, -Infinity]
      for (let k = r; k < Math.min(to, r + group); k++) {
        const v = value(k)
        if (known(v)) [low, high] = [Math.min(low, v), Math.max(high, v)]
      }
      if (low > high || (wrap && group === 1 && Math.abs(low - last) > Math.PI)) runs.push([])
      if (low <= high) runs.at(-1).push([Math.min(r + group / 2, to - 0.5), low, high])
      last = low
    }
    return runs.filter((run) => run.length)
  }

  // -------------------------------------------------------------- the corner: which row, which value, which colours
  drawCorner(ctx, box) {
    const { row, cols } = this.focus
    const title = fill(this.label.row, { row: this.rowName(row) })
    const texts = this.panels.map((panel, i) => this.valueText(panel, row, cols[i], this.panels.length > 1 ? 4 : 6))
    if (this.boxes.narrow) {
      this.write(ctx, title, box.x, box.y + 12, { size: 15, max: box.w * 0.5 - 8 })
      this.write(ctx, texts.join(' · '), box.x, box.y + 36, { size: texts.length > 1 ? 15 : 18, weight: 600, max: box.w * 0.5 - 8 })
      this.drawColourBar(ctx, box.x + box.w * 0.52, box.y + 12, box.w * 0.48)
      return
    }
    this.heading(ctx, title, box.x, box.y + 8, box.w)
    if (texts.length > 1) texts.forEach((text, i) => this.write(ctx, text, box.x + (i * box.w) / 2, box.y + 35, { size: 17, max: box.w / 2 - 6 }))
    else this.drawValue(ctx, texts[0], fill(this.label.at, { col: this.colName(cols[0], this.panels[0]) }), box)
    this.drawColourBar(ctx, box.x, box.y + box.h - 40, box.w)
  }
  drawValue(ctx, text, at, box) {
    this.write(ctx, text, box.x, box.y + 36, { size: 22, max: box.w })
    const wide = ctx.measureText(text).width + 10
    ctx.font = this.text(14)
    if (ctx.measureText(at).width <= box.w - wide) this.write(ctx, at, box.x + wide, box.y + 38, { colour: this.theme.quiet })
    else if (box.h >= 116) this.write(ctx, at, box.x, box.y + 59, { colour: this.theme.quiet, max: box.w })
  }
  drawColourBar(ctx, x, y, width) {
    const { vmin, vmax } = this.meta
    const steps = 128
    for (let i = 0; i < steps; i++) {
      ctx.fillStyle = css(this.inks[Math.round((i / (steps - 1)) * 255)])
      const left = x + (i * width) / steps
      ctx.fillRect(left, y, Math.min(width / steps + 0.7, x + width - left), 11)
    }
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x - 0.5, y - 0.5, width + 1, 12)
    const options = { colour: this.theme.quiet }
    this.write(ctx, bound(vmin), x, y + 26, options)
    this.write(ctx, bound(vmax), x + width, y + 26, { ...options, align: 'right' })
    if (vmin < 0 && vmax > 0) this.write(ctx, '0', x + (width * -vmin) / (vmax - vmin), y + 26, { ...options, align: 'center' })
  }
  drawMaskedKey(ctx, x, y) {
    ctx.fillStyle = css(mix(this.theme.text, this.theme.background, 0.9))
    ctx.fillRect(x, y - 6, 14, 12)
    for (const d of [0, 5, 10]) this.line(ctx, x + d + 4, y - 6, x + d, y + 6, mix(this.theme.text, this.theme.background, 0.6))
    this.write(ctx, this.label.masked, x + 20, y, { colour: this.theme.quiet })
  }
  drawSelection(ctx) {
    const [x, y, w, h] = this.drag.rect
    ctx.globalAlpha = 0.16
    ctx.fillStyle = css(this.theme.position)
    ctx.fillRect(x, y, w, h)
    ctx.globalAlpha = 1
    ctx.strokeStyle = css(this.theme.position)
    ctx.lineWidth = 1.5
    ctx.strokeRect(x, y, w, h)
  }
}
