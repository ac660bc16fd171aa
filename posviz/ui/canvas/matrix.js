// needs parts/labels.js, parts/cells.js, parts/matrix_picture.js
// A large matrix with its margins: the crossing column as a wave, the crossing row as bars.
// One panel, or two side by side on one scale with tied crosshairs and zoom.

const NARROW = 700
const MAX_WINDOW = 1_000_000

// n within [low, high] even when high < low.
const within = (n, low, high) => Math.max(low, Math.min(high, n))

// A range of whole cells, zoomed by `factor` around the cell coordinate `at`.
function zoomRange(range, total, at, factor) {
  const span = range[1] - range[0]
  let next = Math.round(span * factor)
  if (next === span) next += Math.sign(factor - 1)
  next = within(next, Math.min(2, total), total)
  const from = within(Math.round(at - ((at - range[0]) * next) / span), 0, total - next)
  return [from, from + next]
}
function shiftRange([from, to], total, by) {
  const start = within(from + by, 0, total - (to - from))
  return [start, start + to - from]
}

class MatrixView extends MatrixPicture {
  constructor(host) {
    super(host)
    this.thumbs = element('div', 'thumbs')
    this.canvas.before(this.thumbs)
    this.live = element('div', 'live', this.root)
    this.live.setAttribute('aria-live', 'polite')
    this.makeControls()
    this.rasters = []
    this.sent = [] // clicks whose echo has not come back yet
  }
  makeControls() {
    const group = element('div', 'segments', this.controls)
    const add = (text, action) => {
      const button = element('button', '', group)
      Object.assign(button, { type: 'button', textContent: text, onclick: action })
      return button
    }
    this.zoomOut = add('−', () => this.zoomBy(1.6))
    this.zoomIn = add('+', () => this.zoomBy(1 / 1.6))
    this.resetButton = add('', () => this.reset())
  }

  // -------------------------------------------------------------- data
  changed() {
    const { meta, arrays, label } = this
    this.lut = lookupTable(this.theme, meta.scale)
    this.inks = Array.from({ length: 256 }, (_, i) => [...this.lut.subarray(i * 4, i * 4 + 3)])
    this.panels = meta.panels.map((spec, i) => {
      const source = makeSource(spec.source, `p${i}`, arrays)
      const names = (list) => list?.map((token) => isolate(visible(token)))
      const labels = { row_labels: names(spec.row_labels), col_labels: names(spec.col_labels) }
      return { ...spec, ...labels, source, cols: source.cols, info: arrays[`p${i}.info`] }
    })
    this.tied = this.panels.every((p) => p.cols === this.panels[0].cols)
    this.rasters = []
    this.keepView()
    this.keepPin()
    this.resetButton.textContent = label.reset
    for (const [button, name] of [[this.zoomOut, 'zoom_out'], [this.zoomIn, 'zoom_in']]) button.title = button.ariaLabel = label[name]
    this.showThumbs()
  }
  // The zoom survives an update unless it no longer fits.
  keepView() {
    const rows = Math.max(...this.panels.map((p) => p.rows))
    const keep = (range, before, total) => (!range || range[1] - range[0] === before || range[1] > total ? [0, total] : range)
    this.rowRange = keep(this.rowRange, this.totalRows, rows)
    this.colRanges = this.panels.map((p, i) => keep(this.colRanges?.[i], this.totalCols?.[i], p.cols))
    if (this.tied) this.colRanges.fill(this.colRanges[0])
    this.totalRows = rows
    this.totalCols = this.panels.map((p) => p.cols)
  }
  // The server may move the crosshair; the echo of a click made here must not move it back.
  keepPin() {
    const told = JSON.stringify(this.meta.selected)
    const echo = this.sent.indexOf(told)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (told !== this.told && this.meta.selected) this.pin = { row: this.meta.selected[0], cols: this.panels.map(() => this.meta.selected[1]) }
    this.told = told
    const { row, cols } = this.pin ?? { row: Math.floor(this.totalRows * (this.panels[0].masked ? 0.7 : 0.3)), cols: this.panels.map((p) => Math.floor(p.cols * 0.33)) }
    this.pin = this.fitCross(row, cols)
    this.hover &&= this.fitCross(this.hover.row, this.hover.cols)
    if (this.mouse) requestAnimationFrame(() => this.mouse && this.hoverAt(...this.mouse)) // its value may be new
  }
  fitCross(row, cols) {
    const fit = this.panels.map((p, i) => within(cols[i] ?? cols[0], 0, p.cols - 1))
    return { row: within(row, 0, this.totalRows - 1), cols: this.tied ? fit.fill(fit[0]) : fit }
  }
  showThumbs() {
    const list = this.meta.thumbnails ?? []
    this.head = this.meta.head
    this.thumbs.style.display = list.length ? '' : 'none'
    this.thumbs.setAttribute('role', 'group')
    this.thumbs.setAttribute('aria-label', this.label.thumbnails)
    while (this.thumbs.children.length > list.length) this.thumbs.lastChild.remove()
    list.forEach(({ label, source }, i) => {
      const button = this.thumbs.children[i] ?? element('button', '', this.thumbs)
      button.type = 'button'
      button.onclick = () => this.chooseHead(i)
      button.ariaPressed = String(i === this.head)
      const size = 64 * (window.devicePixelRatio || 1)
      const cells = makeSource(source, `t${i}`, this.arrays)
      const view = { r0: 0, r1: cells.rows, c0: 0, c1: cells.cols }
      const { canvas } = rasterize(cells, view, { width: size, height: size, limit: cells.rows, lut: this.lut, ...this.domain() })
      const name = element('span')
      name.textContent = label
      button.replaceChildren(canvas, name)
    })
  }
  chooseHead(index) {
    if (index === this.head) return
    this.head = index
    ;[...this.thumbs.children].forEach((button, i) => { button.ariaPressed = String(i === index) })
    this.send('head', index)
  }
  domain() { return { vmin: this.meta.vmin, vmax: this.meta.vmax } }
  colour(v) {
    const { vmin, vmax } = this.meta
    return this.inks[Math.round(clamp(((v - vmin) / (vmax - vmin)) * 255, 0, 255))]
  }
  rowName(r, panel = this.panels[0]) { return panel.row_labels?.[r] ?? integer(panel.row_start + r) }
  colName(c, panel) { return panel.col_labels?.[c] ?? String(c) }
  limit(panel) { return Math.min(panel.valid_rows, panel.rows) }
  value(panel, r, c) { return r < this.limit(panel) ? panel.source.value(r, c) : NaN }
  // The exact cell, or the mean of the block around it while the exact one is not loaded.
  shown(panel, r, c) {
    if (r >= this.limit(panel)) return NaN
    return panel.source.value(r, c) ?? panel.source.mean(r, r + 1, c, c + 1)
  }
  valueText(panel, r, c, digits = 6) {
    if (r >= this.limit(panel)) return this.label.beyond
    const v = panel.source.value(r, c)
    if (v === undefined) return fill(this.label.about, { value: formatNumber(this.shown(panel, r, c), 4) })
    return Number.isFinite(v) ? precise(v, digits) : this.label.masked
  }

  // -------------------------------------------------------------- layout
  layout(width) {
    const used = this.bar.offsetHeight + 6 + (this.thumbs.offsetHeight ? this.thumbs.offsetHeight + 6 : 0)
    return Math.max(260, this.meta.height - used)
  }
  plan(width, height) {
    const narrow = width < NARROW
    const top = this.panels.some((p) => p.ruler?.length || p.info || p.col_labels || p.source.overview) ? 54 : 32
    const left = this.axisWidth() + (this.panels[0].y_label ? 30 : 10)
    if (narrow) return this.planStack(width, height, top, left)
    const side = clamp(width * 0.2, 196, 280)
    const bars = clamp(height * 0.15, 64, 110)
    const bottom = 10 + bars + 28
    const gap = this.tied ? 22 : 28
    const n = this.panels.length
    const w = (width - left - side - 28 - gap * (n - 1)) / n
    const h = height - top - bottom
    const panels = this.panels.map((_, i) => {
      const x = left + i * (w + gap)
      return { x, y: top, w, h, top, bars: { x, y: top + h + 10, w, h: bars } }
    })
    const x = width - side - 4
    return { narrow, left, panels, wave: { x, y: top, w: side, h }, corner: { x, y: top + h + 10, w: side, h: bars + 28 } }
  }
  // On a phone the panels stand above each other and the wave lies below them.
  planStack(width, height, top, left) {
    const n = this.panels.length
    const [wave, corner] = [n > 1 ? 56 : 76, 54]
    const each = (height - wave - 40 - corner) / n
    const bars = n > 1 ? (each - top > 190 ? 40 : 0) : 60 // two low panels go without
    const h = each - top - bars - (bars ? 40 : 32)
    const w = width - left - 6
    const panels = this.panels.map((_, i) => {
      const y = i * each + top
      return { x: left, y, w, h, top, bars: { x: left, y: y + h + (bars ? 8 : 0), w, h: bars } }
    })
    const y = n * each + 28
    return { narrow: true, left, panels, wave: { x: left, y, w, h: wave }, corner: { x: left, y: y + wave + 12, w, h: corner } }
  }
  axisWidth() {
    const labels = this.panels[0].row_labels
    const texts = labels ? labels.slice(0, 400) : [this.rowName(0), this.rowName(this.totalRows - 1)]
    this.ctx.font = this.text(14)
    return Math.min(120, Math.max(...texts.map((t) => this.ctx.measureText(t).width), 12))
  }
  view(i) { return { r0: this.rowRange[0], r1: this.rowRange[1], c0: this.colRanges[i][0], c1: this.colRanges[i][1] } }
  y(box, r) { return box.y + ((r - this.rowRange[0]) / (this.rowRange[1] - this.rowRange[0])) * box.h }
  x(box, i, c) { return box.x + ((c - this.colRanges[i][0]) / (this.colRanges[i][1] - this.colRanges[i][0])) * box.w }
  rowAt(box, y) { return within(this.rowRange[0] + Math.floor(((y - box.y) / box.h) * (this.rowRange[1] - this.rowRange[0])), this.rowRange[0], this.rowRange[1] - 1) }
  colAt(box, i, x) {
    const [from, to] = this.colRanges[i]
    return within(from + Math.floor(((x - box.x) / box.w) * (to - from)), from, to - 1)
  }

  // For browser tests.
  report(ms) {
    const { row, cols } = this.focus
    const grids = this.rasters.map(({ grid }) => `${grid.br}x${grid.bc}`)
    const values = this.panels.map((panel, i) => String(this.value(panel, row, cols[i])))
    const state = { row, col: cols.join(), value: values.join(), averaged: grids.join(), view: [...this.rowRange, ...this.colRanges.flat()].join() }
    Object.assign(this.canvas.dataset, state, { pin: [this.pin.row, ...this.pin.cols].join(), ms: ms.toFixed(1) })
  }
  // Ask for exact cells once the view is fine enough to show them.
  wantWindow() {
    const missing = this.panels.filter((p, i) => p.source.overview && !p.source.has(this.view(i)) && this.needsExact(i))
    if (!missing.length) return
    const [r0, r1] = this.rowRange
    const ranges = missing.map((p) => this.colRanges[this.panels.indexOf(p)])
    const window = this.enlarge([r0, Math.min(r1, missing[0].rows), Math.min(...ranges.map((r) => r[0])), Math.max(...ranges.map((r) => r[1]))], missing[0])
    if (!window || window.join() === this.asked) return
    clearTimeout(this.asking)
    this.asking = setTimeout(() => {
      this.asked = window.join()
      this.canvas.dataset.window = this.asked
      this.send('window', window)
    }, 150)
  }
  needsExact(i) {
    const { source } = this.panels[i]
    const { r0, r1, c0, c1 } = this.view(i)
    const { canvas } = this.rasters[i]
    return (r1 - r0) / canvas.height <= source.br - 1 || (c1 - c0) / canvas.width <= source.bc - 1
  }
  enlarge([r0, r1, c0, c1], panel) {
    if ((r1 - r0) * (c1 - c0) > MAX_WINDOW) return null
    for (let extra = 0.25; ; extra = extra > 0.02 ? extra / 2 : 0) {
      const [dr, dc] = [Math.ceil((r1 - r0) * extra), Math.ceil((c1 - c0) * extra)]
      const wide = [Math.max(0, r0 - dr), Math.min(panel.source.rows, r1 + dr), Math.max(0, c0 - dc), Math.min(panel.cols, c1 + dc)]
      if ((wide[1] - wide[0]) * (wide[3] - wide[2]) <= MAX_WINDOW) return wide
    }
  }

  // -------------------------------------------------------------- zoom
  get zoomed() {
    const full = (range, total) => range[1] - range[0] === total
    return !full(this.rowRange, this.totalRows) || this.colRanges.some((range, i) => !full(range, this.totalCols[i]))
  }
  setCols(i, range) { this.tied ? this.colRanges.fill(range) : (this.colRanges[i] = range) }
  // Around a cell of panel i (fractions of cells allowed); axes: 'rows', 'cols' or 'both'.
  zoomAt(i, row, col, factor, axes = 'both') {
    if (axes !== 'cols') this.rowRange = zoomRange(this.rowRange, this.totalRows, row, factor)
    if (axes !== 'rows') this.setCols(i, zoomRange(this.colRanges[i], this.totalCols[i], col, factor))
    this.redraw()
  }
  // The buttons and keys zoom around the crosshair, if it is in view.
  zoomBy(factor) {
    const near = (x, [from, to]) => (x >= from && x < to ? x + 0.5 : (from + to) / 2)
    this.panels.forEach((_, i) => {
      const col = near(this.pin.cols[i], this.colRanges[i])
      if (i === 0) this.zoomAt(0, near(this.pin.row, this.rowRange), col, factor)
      else if (!this.tied) this.zoomAt(i, 0, col, factor, 'cols')
    })
  }
  reset() {
    this.rowRange = [0, this.totalRows]
    this.colRanges = this.totalCols.map((total) => [0, total])
    this.redraw()
  }

  // -------------------------------------------------------------- pointer
  // zone: cells, bars (they share the columns) or wave (it shares the rows).
  hit(x, y) {
    if (!this.boxes) return null
    const inside = (b, pad = 0) => x >= b.x - pad && x < b.x + b.w + pad && y >= b.y - pad && y < b.y + b.h + pad
    for (const [i, box] of this.boxes.panels.entries()) {
      if (inside(box)) return { zone: 'cells', i, row: this.rowAt(box, y), col: this.colAt(box, i, x) }
      if (inside(box.bars, 4)) return { zone: 'bars', i, row: this.pin.row, col: this.colAt(box.bars, i, x) }
    }
    const { wave, narrow } = this.boxes
    if (!inside(wave, 4)) return null
    const row = narrow ? this.rowAt({ y: wave.x, h: wave.w }, x) : this.rowAt(wave, y)
    return { zone: 'wave', i: 0, row, col: this.pin.cols[0] }
  }
  crosshair({ i, row, col }) {
    const cols = this.tied ? this.panels.map(() => col) : this.pin.cols.map((c, k) => (k === i ? col : c))
    return { row, cols }
  }
  pointer(kind, x, y, event) {
    if (kind === 'down') this.startDrag(x, y, event)
    else if (kind === 'move' && this.drag && this.dragTo(x, y)) return
    else if (kind === 'move') this.hoverAt(x, y)
    else if (kind === 'up') this.endDrag(event)
    else if (kind === 'leave') this.leave()
    else if (kind === 'click') this.click(x, y)
    else if (kind === 'double') this.reset()
    else if (kind === 'wheel') this.wheel(x, y, event)
  }
  leave() {
    this.mouse = null
    if (this.drag?.moved) return
    this.hideTip()
    if (this.hover) this.redraw()
    this.hover = null
  }
  hoverAt(x, y) {
    const hit = this.hit(x, y)
    this.canvas.style.cursor = hit ? 'crosshair' : ''
    if (!hit) return this.leave()
    this.mouse = [x, y]
    const next = this.crosshair(hit)
    this.showTip(x, y, this.tipLines(hit, next))
    if (this.hover?.row === next.row && this.hover.cols.join() === next.cols.join()) return
    this.hover = next
    this.redraw()
  }
  tipLines({ i, row, col }, { cols }) {
    const panel = this.panels[i]
    const lines = [fill(this.label.cell, { row: this.rowName(row, panel), col: this.colName(col, panel) })]
    this.panels.forEach((p, k) => {
      const text = this.valueText(p, row, cols[k])
      lines.push(this.panels.length > 1 ? `${p.title} · ${text}` : fill(this.label.value, { value: text }))
    })
    if (panel.info) lines.push(fill(this.label.column_info, { value: formatNumber(panel.info[col], 4) }))
    return lines
  }
  click(x, y) {
    const dragged = this.dragged
    this.dragged = false
    // A click is rounded to whole pixels, the press before it is not: pin the cell that was shown.
    const hit = !dragged && this.hit(...(this.pressed ?? [x, y]))
    if (!hit) return
    this.pin = this.crosshair(hit)
    this.tell(hit.i)
    this.redraw()
  }
  // `cell` for the server; its echo in meta.selected is expected.
  tell(i) {
    const cell = { panel: i, row: this.pin.row, col: this.pin.cols[i] }
    const text = JSON.stringify(cell)
    if (text === this.toldCell) return
    this.toldCell = text
    this.sent = [...this.sent.slice(-20), JSON.stringify([cell.row, cell.col])]
    this.send('cell', cell)
  }
  wheel(x, y, event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !event.deltaY) return
    const hit = this.hit(x, y)
    if (!hit || (event.deltaY > 0 && !this.zoomed)) return // the page scrolls on
    event.preventDefault()
    const lines = event.deltaMode ? 33 : 1
    const factor = Math.exp(clamp(event.deltaY * lines, -240, 240) * 0.002)
    const axes = { cells: 'both', bars: 'cols', wave: 'rows' }[hit.zone]
    this.zoomAt(hit.i, hit.row + 0.5, hit.col + 0.5, factor, axes)
    this.hoverAt(x, y)
  }

  // A drag selects a rectangle to zoom into; once zoomed it moves the picture (with Shift it still selects).
  startDrag(x, y, event) {
    this.dragged = false
    this.pressed = [x, y]
    const hit = this.hit(x, y)
    if (event.button || !hit || hit.zone !== 'cells') return
    this.drag = { ...hit, x, y, pan: this.zoomed && !event.shiftKey, rows: this.rowRange, cols: this.colRanges[hit.i] }
    this.canvas.setPointerCapture?.(event.pointerId)
  }
  dragTo(x, y) {
    const { drag } = this
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 5) return false
    drag.moved = true
    this.mouse = null
    this.hideTip()
    this.hover = null
    const box = this.boxes.panels[drag.i]
    if (drag.pan) {
      const by = (range, pixels, size) => Math.round((-pixels * (range[1] - range[0])) / size)
      this.rowRange = shiftRange(drag.rows, this.totalRows, by(drag.rows, y - drag.y, box.h))
      this.setCols(drag.i, shiftRange(drag.cols, this.totalCols[drag.i], by(drag.cols, x - drag.x, box.w)))
      this.canvas.style.cursor = 'grabbing'
    } else {
      const [ax, ay] = [clamp(x, box.x, box.x + box.w), clamp(y, box.y, box.y + box.h)]
      drag.rect = [Math.min(ax, drag.x), Math.min(ay, drag.y), Math.abs(ax - drag.x), Math.abs(ay - drag.y)]
    }
    this.redraw()
    return true
  }
  endDrag(event) {
    const { drag } = this
    this.drag = null
    if (!drag?.moved) return
    this.dragged = true // the click that follows is not a click
    this.canvas.style.cursor = 'crosshair'
    if (drag.rect && event.type !== 'pointercancel' && Math.min(drag.rect[2], drag.rect[3]) > 3) this.zoomTo(drag)
    this.redraw()
  }
  zoomTo({ i, rect: [x, y, w, h] }) {
    const box = this.boxes.panels[i]
    const widen = ([from, to], total) => {
      if (to - from > 1 || total < 2) return [from, to]
      const start = Math.min(from, total - 2)
      return [start, start + 2]
    }
    const [rows, cols] = [[this.rowAt(box, y), this.rowAt(box, y + h) + 1], [this.colAt(box, i, x), this.colAt(box, i, x + w) + 1]]
    this.rowRange = widen(rows, this.totalRows)
    this.setCols(i, widen(cols, this.totalCols[i]))
  }

  // -------------------------------------------------------------- keys
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    const far = event.shiftKey ? 10 : 1
    if (steps[event.key]) this.moveTo(...steps[event.key].map((n) => n * far))
    else if (event.key === '+' || event.key === '=') this.zoomBy(1 / 1.6)
    else if (event.key === '-' || event.key === '_') this.zoomBy(1.6)
    else if (event.key === '0') this.reset()
    else if (event.key === 'Enter') this.tell(0)
    else if (event.key === 'Escape' && this.drag) this.drag = null
    else return false
    this.redraw()
    return true
  }
  moveTo(down, right) {
    this.hover = this.mouse = null
    this.hideTip()
    const row = within(this.pin.row + down, 0, this.totalRows - 1)
    const cols = this.pin.cols.map((c, i) => within(c + right, 0, this.totalCols[i] - 1))
    this.pin = { row, cols }
    const follow = (range, total, at) => shiftRange(range, total, at < range[0] ? at - range[0] : Math.max(0, at + 1 - range[1]))
    this.rowRange = follow(this.rowRange, this.totalRows, row)
    cols.forEach((col, i) => this.setCols(i, follow(this.colRanges[i], this.totalCols[i], col)))
    this.live.textContent = this.tipLines({ i: 0, row, col: cols[0] }, this.pin).join(', ')
    clearTimeout(this.telling)
    this.telling = setTimeout(() => this.tell(0), 400) // once the keys rest
  }
  destroy() {
    clearTimeout(this.telling)
    clearTimeout(this.asking)
    super.destroy()
  }
}

export default mount((host) => new MatrixView(host))
