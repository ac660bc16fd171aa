// needs parts/curve_colours.js
// Plots under one another with one crosshair. Data: see plots.py. What does not follow the pointer is drawn once
// into a still sheet for each layout.
const LEFT = 66
const RIGHT = 18
const FOOT = 46 // tick labels and the name of the axis
const TITLE = 26
const LEGEND = 24

const grouped = (x) => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ',')
const power = (e) => `10${String(e).replace(/\d/g, (c) => SUPERSCRIPT[c])}`
const plainNumber = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? grouped(x) : formatNumber(x, 4))

class PlotsView extends View {
  constructor(host) {
    super(host)
    Object.assign(this, { at: null, stillSheet: null })
  }
  changed() {
    const { meta, arrays } = this
    if (meta.name !== this.name) this.at = null
    this.name = meta.name
    this.plots = meta.plots.map((plot, p) => ({
      ...plot,
      series: plot.series.map((one, s) => ({ ...one, x: arrays[`x${p}.${s}`], y: arrays[`y${p}.${s}`], high: arrays[`high${p}.${s}`] })),
    }))
    this.stillSheet = null
  }
  colour(name) {
    const { theme } = this
    if (typeof name === 'number') return CURVES[name % CURVES.length][theme.dark ? 1 : 0]
    return { a: theme.a, b: theme.b, quiet: theme.quiet, position: theme.position }[name]
  }

  // ---------------------------------------------------------------- places
  layout(width) {
    this.stillSheet = null
    const w = width - LEFT - RIGHT
    for (const plot of this.plots) plot.rows = plot.legend ? this.legendRows(plot, w) : []
    const extra = this.plots.reduce((sum, p) => sum + TITLE + FOOT + p.rows.length * LEGEND, 0)
    const room = Math.max(100 * this.plots.length, this.meta.height - extra)
    const shares = this.plots.reduce((sum, p) => sum + p.share, 0)
    let y = 0
    for (const plot of this.plots) {
      const top = y + TITLE + plot.rows.length * LEGEND
      const h = Math.round((room * plot.share) / shares)
      plot.box = { top: y, x: LEFT, y: top, w, h, right: LEFT + w, bottom: top + h }
      y = top + h + FOOT
    }
    return y
  }
  // The legend's items in rows that fit.
  legendRows(plot, w) {
    this.ctx.font = this.text(15)
    const rows = [[]]
    let x = 0
    for (const one of plot.series) {
      const wide = Math.min(w, 34 + this.ctx.measureText(one.label).width + 18)
      if (x + wide > w && rows.at(-1).length) {
        rows.push([])
        x = 0
      }
      rows.at(-1).push({ one, x, max: wide - 52 + 20 })
      x += wide
    }
    return rows
  }
  along(value, [low, high], log) {
    return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)
  }
  px(plot, value) { return plot.box.x + clamp(this.along(value, plot.x_range, plot.x_log), 0, 1) * plot.box.w }
  py(plot, value) { return plot.box.bottom - clamp(this.along(value, plot.y_range, plot.y_log), -0.02, 1.02) * plot.box.h }
  valueAt(plot, x) {
    const t = clamp((x - plot.box.x) / plot.box.w, 0, 1)
    const [low, high] = plot.x_range
    return plot.x_log ? low * (high / low) ** t : low + t * (high - low)
  }
  // Round values with their texts.
  ticks([low, high], log, count) {
    if (!log) {
      const step = niceStep(high - low, count)
      const first = Math.ceil(low / step - 1e-9)
      const digits = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 6)
      const text = (v) => (digits ? v.toFixed(digits) : grouped(v)).replace('-', '−')
      return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => [(first + i) * step, text((first + i) * step)])
    }
    const decades = Math.log10(high / low)
    const every = Math.max(1, Math.ceil(decades / count))
    const ticks = []
    for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.0001; e++) {
      const text = e < -3 || e > 5 ? power(e).replace('-', '⁻') : e < 0 ? (10 ** e).toFixed(-e) : grouped(10 ** e)
      if (e % every === 0) ticks.push([10 ** e, text])
    }
    return ticks
  }

  // ---------------------------------------------------------------- drawing
  draw(ctx, width, height) {
    if (ctx === this.ctx) ctx.drawImage(this.still(), 0, 0, width, height)
    else this.plots.forEach((plot) => this.drawPlot(ctx, plot))
    if (this.at !== null) this.drawCrosshair(ctx)
    this.report()
  }
  still() {
    if (this.stillSheet) return this.stillSheet
    const sheet = (this.stillSheet = document.createElement('canvas'))
    ;[sheet.width, sheet.height] = [this.canvas.width, this.canvas.height]
    const ctx = sheet.getContext('2d')
    ctx.scale(this.ratio, this.ratio)
    this.plots.forEach((plot) => this.drawPlot(ctx, plot))
    return sheet
  }
  drawPlot(ctx, plot) {
    this.drawAxes(ctx, plot)
    this.drawLevels(ctx, plot)
    for (const one of plot.series) if (one.style === 'band') this.drawBand(ctx, plot, one)
    for (const one of plot.series) if (one.style === 'line') this.drawLine(ctx, plot, one)
    for (const one of plot.series) if (one.style === 'dots' || one.style === 'rings') this.drawDots(ctx, plot, one)
    this.drawMarks(ctx, plot)
  }
  drawAxes(ctx, plot) {
    const { box } = plot
    const { theme } = this
    this.write(ctx, plot.title, 0, box.top + 12, { size: 16, weight: 'bold', max: this.width })
    plot.rows.forEach((row, r) => row.forEach((item) => this.drawKey(ctx, item, box.x, box.top + TITLE + r * LEGEND + 10)))
    const ys = plot.y_ticks.length ? plot.y_ticks : this.ticks(plot.y_range, plot.y_log, box.h / 44)
    for (const [value, text] of ys) {
      const y = this.py(plot, value)
      ctx.fillStyle = css(theme.line)
      ctx.fillRect(box.x, Math.round(y) - 0.5, box.w, 1)
      this.write(ctx, text, box.x - 8, y, { align: 'right', colour: theme.quiet })
    }
    let last = -Infinity
    for (const [value, text] of this.ticks(plot.x_range, plot.x_log, box.w / 90)) {
      const x = this.px(plot, value)
      ctx.fillStyle = css(theme.faint)
      ctx.fillRect(Math.round(x) - 0.5, box.bottom, 1, 5)
      ctx.font = this.text(14)
      const half = ctx.measureText(text).width / 2
      if (x - half < last + 8) continue
      last = x + half
      this.write(ctx, text, clamp(x, half, this.width - half), box.bottom + 15, { align: 'center', colour: theme.quiet })
    }
    ctx.fillStyle = css(theme.faint)
    ctx.fillRect(box.x, box.bottom - 0.5, box.w, 1)
    this.write(ctx, plot.x_label, box.right, box.bottom + 35, { align: 'right', colour: theme.quiet, max: box.w })
  }
  drawKey(ctx, { one, x, max }, left, y) {
    const colour = css(this.colour(one.colour))
    const at = left + x
    ctx.strokeStyle = ctx.fillStyle = colour
    ctx.lineWidth = 3
    if (one.style === 'band') ctx.fillRect(at, y - 5, 24, 10)
    else if (one.style === 'line') {
      ctx.setLineDash(one.dashed ? [6, 4] : [])
      ctx.beginPath()
      ctx.moveTo(at, y)
      ctx.lineTo(at + 24, y)
      ctx.stroke()
      ctx.setLineDash([])
    } else this.dot(ctx, at + 12, y, 4.5, one.style)
    this.write(ctx, one.label, at + 32, y, { size: 15, colour: this.theme.text, max })
  }
  dot(ctx, x, y, r, style) {
    ctx.beginPath()
    ctx.arc(x, y, r, 0, 2 * Math.PI)
    if (style === 'rings') {
      ctx.lineWidth = 1.6
      ctx.stroke()
    } else ctx.fill()
  }
  // Along the highest values and back along the lowest; where a column holds one distance they are one line.
  drawBand(ctx, plot, one) {
    const middle = (i) => {
      const [from, to] = [one.x[i], Math.max(one.x[i], one.x[i + 1] - 1)]
      return this.px(plot, plot.x_log ? Math.sqrt(from * to) : (from + to) / 2)
    }
    ctx.fillStyle = ctx.strokeStyle = css(this.colour(one.colour), 0.62)
    ctx.lineWidth = 1.6
    ctx.lineJoin = 'round'
    ctx.beginPath()
    for (let i = 0; i < one.y.length; i++) ctx.lineTo(middle(i), this.py(plot, one.high[i]))
    for (let i = one.y.length - 1; i >= 0; i--) ctx.lineTo(middle(i), this.py(plot, one.y[i]))
    ctx.closePath()
    ctx.fill()
    ctx.stroke()
  }
  drawLine(ctx, plot, one) {
    ctx.strokeStyle = css(this.colour(one.colour))
    ctx.lineWidth = typeof one.colour === 'number' ? 1.75 : 2.75
    ctx.lineJoin = 'round'
    ctx.setLineDash(one.dashed ? [6, 4] : [])
    ctx.beginPath()
    let pen = false
    one.y.forEach((value, i) => {
      if (Number.isNaN(value)) {
        pen = false
        return
      }
      const [x, y] = [this.px(plot, one.x[i]), this.py(plot, value)]
      if (pen) ctx.lineTo(x, y)
      else ctx.moveTo(x, y)
      pen = true
    })
    ctx.stroke()
    ctx.setLineDash([])
  }
  drawDots(ctx, plot, one) {
    ctx.fillStyle = ctx.strokeStyle = css(this.colour(one.colour))
    const r = clamp(plot.box.w / one.y.length / 3, 1.8, 4.5)
    one.y.forEach((value, i) => {
      if (!Number.isNaN(value)) this.dot(ctx, this.px(plot, one.x[i]), this.py(plot, value), r, one.style)
    })
  }
  // Horizontal marks; their names come last, see drawMarks.
  drawLevels(ctx, plot) {
    const { box } = plot
    for (const mark of plot.marks.filter((m) => m.axis === 'y')) {
      const y = this.py(plot, mark.at)
      ctx.strokeStyle = css(this.colour(mark.colour))
      ctx.lineWidth = 1.5
      ctx.setLineDash([2, 4])
      ctx.beginPath()
      ctx.moveTo(box.x, y)
      ctx.lineTo(box.right, y)
      ctx.stroke()
      ctx.setLineDash([])
    }
  }
  // Vertical marks; all names over the curves, so that none is covered by a curve or by another.
  drawMarks(ctx, plot) {
    const { box } = plot
    const taken = []
    for (const mark of plot.marks.filter((m) => m.axis === 'y')) {
      const y = this.py(plot, mark.at)
      const at = [y + 11, y - 10, y + 28].find((t) => taken.every((other) => Math.abs(other - t) > 17)) ?? y - 10
      taken.push(at)
      this.label_(ctx, mark.label, box.right - 6, at, 'right', this.colour(mark.colour), box.w - 16)
    }
    const rows = []
    for (const mark of plot.marks.filter((m) => m.axis === 'x').sort((m, n) => m.at - n.at)) {
      const x = this.px(plot, mark.at)
      const colour = this.colour(mark.colour)
      ctx.strokeStyle = css(colour)
      ctx.lineWidth = 1.5
      ctx.setLineDash([2, 4])
      ctx.beginPath()
      ctx.moveTo(x, box.y)
      ctx.lineTo(x, box.bottom)
      ctx.stroke()
      ctx.setLineDash([])
      ctx.font = this.text(14)
      const wide = ctx.measureText(mark.label).width + 10
      const before = x + wide > box.right
      const [from, to] = before ? [x - wide, x] : [x, x + wide]
      let row = rows.findIndex((spans) => spans.every(([a, b]) => to < a || from > b))
      if (row < 0) row = rows.push([]) - 1
      rows[row].push([from, to])
      this.label_(ctx, mark.label, before ? x - 5 : x + 5, box.y + 10 + row * 19, before ? 'right' : 'left', colour, box.w)
    }
  }
  // A name on a strip of the background, so that it is read over curves.
  label_(ctx, text, x, y, align, colour, max) {
    ctx.font = this.text(14)
    const fitted = this.fit(ctx, text, max)
    const wide = ctx.measureText(fitted).width
    ctx.fillStyle = css(this.theme.background, 0.82)
    ctx.fillRect(align === 'right' ? x - wide - 2 : x - 2, y - 9, wide + 4, 18)
    this.write(ctx, fitted, x, y, { align, colour: mix(colour, this.theme.text, 0.25) })
  }

  // ---------------------------------------------------------------- the crosshair
  // The place of every series nearest to the crosshair: an index into its values.
  index(one, value) {
    const count = one.y.length
    if (one.style === 'band') {
      for (let i = count - 1; i > 0; i--) if (one.x[i] <= value + 1e-9) return i
      return 0
    }
    let best = 0
    for (let i = 1; i < count; i++) if (Math.abs(one.x[i] - value) < Math.abs(one.x[best] - value)) best = i
    return best
  }
  steps() {
    const [first] = this.plots
    return first.series.reduce((most, one) => (one.y.length > most.y.length ? one : most))
  }
  drawCrosshair(ctx) {
    const { theme } = this
    for (const plot of this.plots) {
      const x = this.px(plot, this.at)
      ctx.fillStyle = css(theme.faint)
      ctx.fillRect(Math.round(x) - 0.5, plot.box.y, 1, plot.box.h)
      for (const one of plot.series) {
        const i = this.index(one, this.at)
        if (Number.isNaN(one.y[i]) || one.style === 'band') continue
        ctx.fillStyle = css(this.colour(one.colour))
        this.dot(ctx, this.px(plot, one.x[i]), this.py(plot, one.y[i]), 5, 'dots')
      }
    }
  }
  tipLines() {
    const [plot] = this.plots
    const lead = this.steps()
    const i = this.index(lead, this.at)
    const values = lead.style === 'band' ? { x: grouped(lead.x[i]), last: grouped(Math.max(lead.x[i], lead.x[i + 1] - 1)) } : { x: grouped(lead.x[i]) }
    const lines = [fill(plot.x_name, values)]
    this.plots.forEach((each) => {
      if (this.plots.length > 1) lines.push(each.title)
      for (const one of each.series) {
        const j = this.index(one, this.at)
        if (one.style !== 'band' && Math.abs(one.x[j] - this.at) > 0.5 && !each.x_log) continue
        const number = (v) => (Number.isNaN(v) ? '–' : plainNumber(v))
        const same = one.style !== 'band' || Math.abs(one.high[j] - one.y[j]) < 1e-9 * Math.abs(one.y[j])
        const text = same ? number(one.y[j]) : fill(this.label.between, { low: number(one.y[j]), high: number(one.high[j]) })
        lines.push([`${one.label}: ${text}`, css(mix(this.colour(one.colour), this.theme.text, 0.25))])
      }
    })
    return [...lines, this.label.hint]
  }
  follow(value, x, y) {
    this.at = value
    this.showTip(x, y, this.tipLines())
    this.tip.lastChild.className = 'note'
    this.redraw()
  }
  letGo() {
    this.at = null
    this.hideTip()
    this.redraw()
  }
  pointer(kind, x, y) {
    if (kind === 'leave') return this.letGo()
    if (kind !== 'move' && kind !== 'down') return
    const plot = this.plots.find(({ box }) => y >= box.y - 8 && y <= box.bottom + 20 && x >= box.x - 8 && x <= box.right + 8)
    if (!plot) return this.letGo()
    const lead = this.steps()
    this.follow(lead.x[this.index(lead, this.valueAt(plot, x))], x, y)
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const lead = this.steps()
    const now = this.at === null ? -1 : this.index(lead, this.at)
    const by = event.shiftKey ? 10 : 1
    const to = { ArrowLeft: now - by, ArrowRight: now + by, Home: 0, End: lead.y.length - 1 }[event.key]
    if (event.key === 'Escape') this.letGo()
    else if (to === undefined) return false
    else {
      const value = lead.x[clamp(to, 0, lead.y.length - 1)]
      const [plot] = this.plots
      this.follow(value, this.px(plot, value), plot.box.y + plot.box.h / 2)
    }
    return true
  }
  // What the picture shows, for tests and for whoever reads the page's state.
  report() {
    const lead = this.steps()
    const value = this.at === null ? '' : lead.y[this.index(lead, this.at)]
    Object.assign(this.canvas.dataset, { name: this.name, at: this.at ?? '', value, plots: this.plots.length })
  }
}

export default mount((host) => new PlotsView(host))
