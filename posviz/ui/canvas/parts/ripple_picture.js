// Everything the ripple component paints. RippleView (ripple.js) adds the data, the pointer and the keys:
//   this.curves, this.chosen  the curves and the selected one; this.at(curve, k), this.colour(curve)
//   this.rowAt(p), this.similarity(p, k), this.source, this.peak   the matrix
//   this.low, this.high       the distances shown; this.axes.left/right { low, high, decimals } or null
//   this.p, this.k            the row shown; the distance under the pointer, null where there is none
const WIDE = 900 // px from which the matrix stands beside the curves, so that a projector shows both
const HEADER = 66 // the numbers under the pointer, and the names of the axes
const FOOT = 52 // tick labels, and the name of the distance axis
const LANE = 24
const DASHES = {
  left: [[], [14, 4], [7, 3], [16, 3, 3, 3]],
  right: [[6, 5], [2, 4], [9, 4, 2, 4], [9, 4, 2, 4, 2, 4]],
}

const signed = (k) => String(k).replace('-', '−')
const fixed = (x, decimals) => (Number.isFinite(x) ? signed(x.toFixed(decimals)).replace(/^−(0(\.0*)?)$/, '$1') : formatNumber(x))
const isBetween = (x, low, high) => x >= low && x <= high
const tidy = (x) => Math.round(x * 100) / 100 // hundredths of a pixel are enough for the SVG

// Moves labels apart (ys sorted upwards) until `gap` lies between them, within [low, high].
function spreadOut(ys, gap, low, high) {
  const out = ys.map((y) => clamp(y, low, high))
  for (let i = 1; i < out.length; i++) out[i] = Math.max(out[i], out[i - 1] + gap)
  let limit = high
  for (let i = out.length - 1; i >= 0; i--, limit -= gap) out[i] = Math.min(out[i], limit)
  return out
}

class RipplePicture extends View {
  // ---------------------------------------------------------------- places
  layout(width) {
    this.still = null
    const n = this.curves.length
    const beside = width >= WIDE
    const rightAxis = this.axes.right ? 54 : 0
    this.ctx.font = this.text(14)
    const titles = this.ctx.measureText(this.label[this.meta.kind]).width + this.ctx.measureText(this.label.bias).width + 16
    this.ctx.font = this.text(15, 'bold')
    const longest = Math.max(...this.curves.map((c) => this.ctx.measureText(c.label).width)) + 10
    const names = width < 600 ? 0 : clamp(longest, 60, width * (beside ? 0.15 : 0.24))
    const lane = beside ? LANE : LANE + 18
    const room = beside ? this.meta.height - HEADER - FOOT - n * lane - 4 : clamp(width * 0.5, 220, 340)
    const h = Math.max(beside ? 240 : 200, Math.round(room), names ? n * 18 : 0)
    const side = beside ? Math.round(clamp(width * 0.26, 220, Math.min(h - 18, 430))) : Math.min(width - 58, 430)
    const left = 56
    const gap = rightAxis ? 14 : 34 // for the thin lines from the curves to their names
    const w = width - left - rightAxis - (names ? names + gap + 2 : 10) - (beside ? side + 70 : 0)
    const twoTitles = this.axes.left && this.axes.right && titles > w + rightAxis + 40
    const top = HEADER + (twoTitles ? 18 : 0)
    const plot = { x: left, y: top, w, h, right: left + w, bottom: top + h }
    const lanes = { y: plot.bottom + FOOT, h: lane, bottom: plot.bottom + FOOT + n * lane }
    const matrix = beside ? { x: width - side - 2, y: top } : { x: 46, y: lanes.bottom + 58 }
    Object.assign(matrix, { side, right: matrix.x + side, bottom: matrix.y + side })
    this.place = { beside, plot, lanes, matrix, rightAxis, names, twoTitles, namesX: plot.right + rightAxis + gap }
    return beside ? Math.max(lanes.bottom + 4, matrix.bottom + 72) : matrix.bottom + 74
  }
  warp(k) { return this.log ? Math.sign(k) * Math.log2(1 + Math.abs(k)) : k }
  x(k) {
    const { plot } = this.place
    const low = this.warp(this.low)
    return tidy(plot.x + ((this.warp(k) - low) / (this.warp(this.high) - low)) * plot.w)
  }
  y(value, side) {
    const { low, high } = this.axes[side]
    const { plot } = this.place
    return tidy(plot.bottom - ((value - low) / (high - low)) * plot.h)
  }
  distanceAt(x) {
    const { plot } = this.place
    const low = this.warp(this.low)
    const t = low + ((x - plot.x) / plot.w) * (this.warp(this.high) - low)
    const k = this.log ? Math.sign(t) * (2 ** Math.abs(t) - 1) : t
    return clamp(Math.round(k), this.low, this.high)
  }
  cellAt(x, y) {
    const { matrix: m } = this.place
    if (!isBetween(x, m.x, m.right) || !isBetween(y, m.y, m.bottom)) return null
    const cell = (t) => clamp(Math.floor((t / m.side) * this.length), 0, this.length - 1)
    return [cell(y - m.y), cell(x - m.x)]
  }
  distanceTicks() {
    if (!this.log) {
      const step = Math.max(1, niceStep(this.high - this.low, this.place.plot.w / 56))
      const first = Math.ceil(this.low / step)
      return Array.from({ length: Math.floor(this.high / step) - first + 1 }, (_, i) => (first + i) * step)
    }
    const ticks = [0]
    for (let power = 1; power <= this.high; power *= 10) {
      for (const k of [1, 2, 5].map((m) => m * power)) {
        if (k <= this.high && this.x(k) - this.x(ticks.at(-1)) >= 34) ticks.push(k)
      }
    }
    return this.both ? [...ticks.slice(1).map((k) => -k), ...ticks] : ticks
  }

  // ---------------------------------------------------------------- drawing
  draw(ctx, width, height) {
    if (ctx === this.ctx) ctx.drawImage(this.stillSheet(), 0, 0, width, height)
    else this.drawStill(ctx)
    this.drawReadout(ctx)
    this.drawRow(ctx)
    this.drawCrosshair(ctx)
    this.drawMatrixAxes(ctx)
    this.drawChosenRow(ctx)
    this.report()
  }
  // What depends on neither p nor k: painted once per layout, so that the pointer is followed at once.
  stillSheet() {
    if (this.still) return this.still
    this.still = sheet(this.canvas.width, this.canvas.height)
    const ctx = this.still.getContext('2d')
    ctx.scale(this.ratio, this.ratio)
    this.drawStill(ctx)
    return this.still
  }
  drawStill(ctx) {
    this.drawAxes(ctx)
    for (const curve of this.curves) this.drawBand(ctx, curve)
    for (const curve of this.curves) this.drawCurve(ctx, curve)
    this.drawNames(ctx)
    this.curves.forEach((curve, i) => this.drawLane(ctx, curve, i))
    this.drawMatrix(ctx)
  }
  rule(ctx, x1, y1, x2, y2, colour, width = 1) {
    ctx.strokeStyle = css(colour)
    ctx.lineWidth = width
    ctx.beginPath()
    ctx.moveTo(x1, y1)
    ctx.lineTo(x2, y2)
    ctx.stroke()
  }
  // p, k and the value stand in columns of fixed width, so that nothing moves while the numbers change.
  drawReadout(ctx) {
    const { plot, matrix, beside } = this.place
    const size = beside ? 20 : 16
    const end = beside ? matrix.x - 46 : this.width
    const slot = (text) => {
      ctx.font = this.text(size, 'bold')
      return ctx.measureText(text).width + size
    }
    const far = '0'.repeat(String(this.farthest).length)
    const [xk, xv] = [slot(`p = ${far}`), slot(`p = ${far}`) + slot(`k = −${far}`)]
    const x = beside ? plot.x : 8
    this.write(ctx, `p = ${this.p}`, x, 15, { size, weight: 'bold', colour: this.theme.positionText })
    if (this.k === null) return
    this.write(ctx, `k = ${signed(this.k)}`, x + xk, 15, { size, weight: 'bold' })
    this.write(ctx, this.valueText(), x + xv, 15, { size, max: end - x - xv })
  }
  valueText() {
    const { axis } = this.chosen
    const value = this.similarity(this.p, this.k)
    if (value === undefined) return '–'
    return fill(this.label[axis === 'right' ? 'value_bias' : 'value'], {
      p: this.p, j: this.p + this.k, value: fixed(value, this.axes[axis].decimals),
    })
  }
  drawAxes(ctx) {
    const { plot } = this.place
    this.drawValueAxis(ctx, 'left')
    this.drawValueAxis(ctx, 'right')
    if (this.low < 0) this.rule(ctx, this.x(0), plot.y, this.x(0), plot.bottom, this.theme.line)
    this.rule(ctx, plot.x, plot.bottom, plot.right, plot.bottom, this.theme.faint)
    for (const k of this.distanceTicks()) {
      this.rule(ctx, this.x(k), plot.bottom, this.x(k), plot.bottom + 5, this.theme.faint)
      this.write(ctx, signed(k), this.x(k), plot.bottom + 16, { colour: this.theme.quiet, align: 'center' })
    }
    const max = this.place.beside ? plot.w : this.width - 16
    this.write(ctx, this.label.distance, plot.x, plot.bottom + 38, { colour: this.theme.quiet, max })
  }
  // [y, text] of every tick
  valueTicks(side) {
    const { low, high } = this.axes[side]
    const step = niceStep(high - low, this.place.plot.h / 56)
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9))
    const ticks = []
    for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push([this.y(i * step, side), fixed(i * step, decimals)])
    return ticks
  }
  drawValueAxis(ctx, side) {
    if (!this.axes[side]) return
    const { plot, names, namesX, twoTitles } = this.place
    const colour = this.theme.quiet
    for (const [y, text] of this.valueTicks(side)) {
      if (side === 'left' || !this.axes.left) this.rule(ctx, plot.x, y, plot.right, y, Number(text) === 0 ? this.theme.faint : this.theme.line)
      else this.rule(ctx, plot.right, y, plot.right + 5, y, this.theme.faint)
      if (side === 'left') this.write(ctx, text, plot.x - 8, y, { colour, align: 'right' })
      else this.write(ctx, text, plot.right + 8, y, { colour })
    }
    // Both titles on one line, or on two where they would meet.
    if (side === 'left') this.write(ctx, this.label[this.meta.kind], 8, plot.y - (twoTitles ? 38 : 20), { colour })
    else this.write(ctx, this.label.bias, names ? namesX - 14 : this.width - 2, plot.y - 20, { colour, align: 'right' })
  }
  // The distances gathered by pixel column: where many share a column, its extremes are kept, so that no
  // ripple is lost. pick(k) -> [low, high]; null ends a line at a gap.
  columns(pick, from, to) {
    const out = []
    for (let k = from; k <= to;) {
      const start = this.x(k)
      let column = null
      for (let x = start; k <= to && (!column || x - start < 1); x = this.x(++k)) {
        const [low, high] = pick(k)
        if (!Number.isFinite(low)) {
          if (column) break
          k++
          break
        }
        column ??= { x, first: low, low, high }
        Object.assign(column, { end: x, last: low, low: Math.min(column.low, low), high: Math.max(column.high, high) })
      }
      out.push(column)
    }
    return out
  }
  trace(ctx, columns, side) {
    let pen = false
    ctx.beginPath()
    for (const c of columns) {
      if (c && pen) ctx.lineTo(c.x, this.y(c.first, side))
      else if (c) ctx.moveTo(c.x, this.y(c.first, side))
      if (c && c.end > c.x) {
        const [near, far] = c.first < c.last ? [c.low, c.high] : [c.high, c.low] // no way twice
        for (const v of [near, far, c.last]) ctx.lineTo(c.end, this.y(v, side))
      }
      pen = c !== null
    }
  }
  get dense() { return this.high - this.low > this.place.plot.w }
  // The distances of a curve that are on the screen.
  shown(curve) { return [Math.max(this.low, -curve.centre), Math.min(this.high, curve.centre)] }
  drawBand(ctx, curve) {
    const axis = this.axes[curve.axis]
    if (curve.spread.reduce((a, b) => Math.max(a, b)) < (axis.high - axis.low) * 1e-3) return
    const pick = (k) => {
      const [m, s] = [this.at(curve, k), curve.spread[curve.centre + k]]
      return [m - s, m + s]
    }
    const columns = this.columns(pick, ...this.shown(curve))
    ctx.beginPath()
    for (const c of columns) ctx.lineTo(c.x, this.y(c.high, curve.axis))
    for (const c of columns.reverse()) ctx.lineTo(c.x, this.y(c.low, curve.axis))
    ctx.closePath()
    ctx.fillStyle = css(this.colour(curve), this.theme.dark ? 0.2 : 0.13)
    ctx.fill()
  }
  drawCurve(ctx, curve) {
    const pick = (k) => [this.at(curve, k), this.at(curve, k)]
    ctx.save()
    ctx.lineJoin = 'round'
    ctx.setLineDash(DASHES[curve.axis][curve.dash % 4])
    ctx.strokeStyle = css(this.colour(curve))
    ctx.lineWidth = this.dense ? 1.25 : 2
    this.trace(ctx, this.columns(pick, ...this.shown(curve)), curve.axis)
    ctx.stroke()
    ctx.restore()
    this.drawRises(ctx, curve)
  }
  // A short stroke under the curve at each rise, while they can be told apart (and, for other curves than
  // the selected one, are few); the strips always show all.
  drawRises(ctx, curve) {
    const [from, to] = this.shown(curve)
    const at = []
    for (let k = from; k <= to; k++) if (curve.marks[curve.centre + k]) at.push(k)
    const apart = curve === this.chosen ? 3 : 9
    if (at.some((k, i) => i && this.x(k) - this.x(at[i - 1]) < apart)) return
    for (const k of at) {
      const y = this.y(this.at(curve, k), curve.axis)
      this.rule(ctx, this.x(k), y + 6, this.x(k), y + 13, this.colour(curve), 1.5)
    }
  }
  drawRow(ctx) {
    const row = this.rowAt(this.p)
    const pick = (k) => [row[this.p + k], row[this.p + k]]
    const [from, to] = [Math.max(this.low, -this.p), Math.min(this.high, this.length - 1 - this.p)]
    if (from > to) return
    ctx.save()
    ctx.lineJoin = 'round'
    this.trace(ctx, this.columns(pick, from, to), this.chosen.axis)
    // Where the ripples are closer than the line is wide, a bold line would fill them up.
    const halo = this.dense ? [] : [[this.theme.background, 6]]
    for (const [colour, width] of [...halo, [this.colour(this.chosen), this.dense ? 1.75 : 3.5]]) {
      if (width < 6 && this.chosen.axis === 'right') ctx.setLineDash([9, 5])
      ctx.strokeStyle = css(colour)
      ctx.lineWidth = width
      ctx.stroke()
    }
    ctx.restore()
  }
  // Names at the ends of the curves, moved apart, with a thin line back to the end.
  drawNames(ctx) {
    const { plot, names, namesX } = this.place
    if (!names) return
    const ends = this.curves.map((curve) => {
      const last = this.shown(curve)[1]
      return { curve, x: this.x(last), y: this.y(this.at(curve, last), curve.axis) }
    })
    ends.sort((a, b) => a.y - b.y)
    const ys = spreadOut(ends.map((e) => e.y), Math.min(19, (plot.h - 16) / ends.length), plot.y + 8, plot.bottom - 8)
    ends.forEach(({ curve, x, y }, i) => {
      this.rule(ctx, x + 2, y, namesX - 12, ys[i], mix(this.colour(curve), this.theme.background, 0.55))
    })
    if (this.axes.right) this.liftTicks(ctx)
    ends.forEach(({ curve }, i) => {
      const weight = curve === this.chosen ? 'bold' : 'normal'
      this.write(ctx, curve.label, namesX - 8, ys[i], { size: 15, weight, colour: this.colour(curve), max: names })
    })
  }
  // The right axis stands between the curves and their names: its numbers go over the thin lines.
  liftTicks(ctx) {
    const { plot, rightAxis } = this.place
    for (const [y, text] of this.valueTicks('right')) {
      ctx.fillStyle = css(this.theme.background)
      ctx.fillRect(plot.right + 6, y - 9, rightAxis - 10, 18)
      this.write(ctx, text, plot.right + 8, y, { colour: this.theme.quiet })
    }
  }
  drawLane(ctx, curve, i) {
    const { plot, lanes, beside, namesX } = this.place
    const top = lanes.y + i * lanes.h
    const y = beside ? top + 4 : top + 22
    ctx.fillStyle = css(this.theme.panel)
    ctx.fillRect(plot.x, y, plot.w, 14)
    this.drawMarks(ctx, curve, y)
    const colour = this.colour(curve)
    const [left, line] = beside ? [namesX - 8, y + 8] : [8, top + 10]
    ctx.setLineDash(DASHES[curve.axis][curve.dash % 4])
    this.rule(ctx, left, line, left + 26, line, colour, 2.5)
    ctx.setLineDash([])
    const x = left + 34
    const space = this.width - x - 4
    const weight = curve === this.chosen ? 'bold' : 'normal'
    this.write(ctx, curve.label, x, line, { size: 15, weight, colour, max: space * 0.45 })
    const used = Math.min(ctx.measureText(curve.label).width, space * 0.45) + 10
    ctx.font = this.text(14)
    const texts = [3, 2, 1].map((n) => this.risesText(curve, n))
    texts.push(curve.rises.length ? fill(this.label.rises_count, { count: curve.rises.length, total: curve.steps }) : texts[0])
    const text = texts.find((t) => ctx.measureText(t).width <= space - used) ?? texts[3]
    this.write(ctx, text, x + used, line, { colour: this.theme.quiet, max: space - used })
  }
  // The nearest `n` of them: "rises at 11, 13, ... (1000 of 2047)".
  risesText({ rises, steps }, n) {
    if (!rises.length) return this.label.never
    const nearest = [...rises].sort((a, b) => Math.abs(a) - Math.abs(b) || b - a).slice(0, n).map(signed)
    const list = [...nearest, ...(rises.length > n ? ['…'] : [])].join(this.label.separator)
    return fill(this.label.rises, { list, count: rises.length, total: steps })
  }
  // One mark a rise; where several distances share a pixel column, the share that rises is the strength.
  drawMarks(ctx, curve, y) {
    const [from, to] = this.shown(curve)
    const colour = this.colour(curve)
    for (let k = from; k <= to;) {
      const start = this.x(k)
      const first = k
      let rises = 0
      do rises += curve.marks[curve.centre + k++]
      while (k <= to && this.x(k) - start < 1)
      if (!rises) continue
      ctx.fillStyle = css(colour, Math.max(0.45, rises / (k - first)))
      ctx.fillRect(start - 0.75, y, 1.5, 14)
    }
  }
  drawCrosshair(ctx) {
    const { plot, lanes, beside } = this.place
    if (this.k === null || !isBetween(this.k, this.low, this.high)) return
    const x = this.x(this.k)
    this.rule(ctx, x, plot.y, x, beside ? lanes.bottom : plot.bottom, this.theme.position)
    for (const curve of this.curves) {
      const value = this.at(curve, this.k)
      if (curve !== this.chosen && value !== undefined) this.dot(ctx, x, this.y(value, curve.axis), 4, this.colour(curve))
    }
    const value = this.similarity(this.p, this.k)
    if (Number.isFinite(value)) this.dot(ctx, x, this.y(value, this.chosen.axis), 6.5, this.theme.position)
  }
  dot(ctx, x, y, radius, colour) {
    ctx.fillStyle = css(colour)
    ctx.strokeStyle = css(this.theme.background)
    ctx.lineWidth = 2
    ctx.beginPath()
    ctx.arc(x, y, radius, 0, 2 * Math.PI)
    ctx.fill()
    ctx.stroke()
  }

  // ---------------------------------------------------------------- the matrix
  image(side) {
    const size = Math.max(1, Math.round(side * this.ratio))
    const key = `${size} ${css(this.theme.background)} ${css(this.theme.text)}`
    if (this.picture?.key === key) return this.picture
    const n = this.length
    const look = { width: size, height: size, limit: n, lut: lookupTable(this.theme, 'signed') }
    const scale = { vmin: -(this.peak || 1), vmax: this.peak || 1 }
    const { canvas, grid } = rasterize(this.source, { r0: 0, r1: n, c0: 0, c1: n }, { ...look, ...scale })
    this.picture = { key, canvas, block: grid.br }
    return this.picture
  }
  drawMatrix(ctx) {
    const { x, y, side, right, bottom } = this.place.matrix
    const { canvas, block } = this.image(side)
    ctx.drawImage(canvas, x, y, side, side)
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x - 0.5, y - 0.5, side + 1, side + 1)
    const note = block > 1 ? fill(this.label.averaged, { n: block }) : this.label.exact
    this.write(ctx, note, right, y - 20, { colour: this.theme.quiet, align: 'right' })
    const used = ctx.measureText(note).width + 12
    const start = x - 40
    this.write(ctx, this.chosen.label, start, y - 20, { size: 15, weight: 'bold', colour: this.colour(this.chosen), max: right - start - used })
    this.write(ctx, `↓ ${this.label.row}`, x - 40, bottom + 36, { colour: this.theme.quiet })
    this.write(ctx, `${this.label.column} →`, right, bottom + 36, { colour: this.theme.quiet, align: 'right' })
    this.drawColourBar(ctx, x, right, bottom + 58)
  }
  drawMatrixAxes(ctx) {
    const { x, y, side, bottom } = this.place.matrix
    const step = Math.max(1, niceStep(this.length, side / 72))
    const cell = side / this.length
    const column = this.k === null ? -1 : this.p + this.k
    const far = (a, b) => b < 0 || b >= this.length || Math.abs(a - b) * cell > 36
    for (let i = 0; i < this.length; i += step) {
      const at = (i + 0.5) * cell
      const colour = this.theme.quiet
      if (Math.abs(i - this.p) * cell > 18) this.write(ctx, String(i), x - 8, y + at, { colour, align: 'right' })
      if (far(i, column) && at < side - 10) this.write(ctx, String(i), x + at, bottom + 14, { colour, align: 'center' })
    }
    if (isBetween(column, 0, this.length - 1)) {
      const at = clamp(x + (column + 0.5) * cell, x + 8, x + side - 12)
      this.rule(ctx, x + (column + 0.5) * cell, y, x + (column + 0.5) * cell, bottom + 4, this.theme.position)
      this.write(ctx, String(column), at, bottom + 14, { weight: 'bold', align: 'center' })
    }
  }
  // The row lies between two teal lines, its own colours untouched; a thin line keeps the place to return to.
  drawChosenRow(ctx) {
    const { x, y, side } = this.place.matrix
    const cell = side / this.length
    if (this.home !== this.p) this.rule(ctx, x, y + (this.home + 0.5) * cell, x + side, y + (this.home + 0.5) * cell, this.theme.position, 1.5)
    const height = Math.max(cell, 5)
    const middle = y + (this.p + 0.5) * cell
    ctx.strokeStyle = css(this.theme.background)
    ctx.lineWidth = 4
    ctx.strokeRect(x - 1, middle - height / 2 - 1, side + 2, height + 2)
    ctx.strokeStyle = css(this.theme.position)
    ctx.lineWidth = 2
    ctx.strokeRect(x - 1, middle - height / 2 - 1, side + 2, height + 2)
    this.write(ctx, String(this.p), x - 8, middle, { weight: 'bold', colour: this.theme.positionText, align: 'right', size: 15 })
  }
  drawColourBar(ctx, left, right, y) {
    this.bar256 ??= element('canvas', '')
    Object.assign(this.bar256, { width: 256, height: 1 })
    this.bar256.getContext('2d').putImageData(new ImageData(lookupTable(this.theme, 'signed'), 256, 1), 0, 0)
    const end = formatNumber(this.peak, 3)
    const colour = this.theme.quiet
    this.write(ctx, end, right, y, { colour, align: 'right' })
    const size = ctx.measureText(`−${end}`).width + 6
    this.write(ctx, this.peak ? `−${end}` : end, left, y, { colour })
    ctx.drawImage(this.bar256, left + size, y - 5, right - left - 2 * size, 10)
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(left + size, y - 5, right - left - 2 * size, 10)
  }
  // What browser tests read.
  report() {
    const value = this.k === null ? undefined : this.similarity(this.p, this.k)
    const values = this.k === null ? [] : this.curves.map((c) => this.at(c, this.k) ?? '')
    Object.assign(this.canvas.dataset, {
      position: this.p, pinned: this.pinned, home: this.home, k: this.k ?? '', value: value ?? '', values: values.join(' '),
      range: `${this.low} ${this.high}`, averaged: this.picture.block,
    })
  }
}
