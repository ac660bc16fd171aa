// The scores of both sides against the query's position, right above the ruler and to its scale: one curve and one
// dot for each side. A panel as in clock_panels.js.

const MOST_SAMPLES = 8192

class ScoreStrip {
  constructor(view) {
    this.view = view
    this.curves = []
  }
  place({ x, y, w, h }) { Object.assign(this, { x: x + 24, w: w - 48, left: x, y: y + 26, h: h - 34 }) }
  across(position) { return this.x + ((position - this.view.low) / this.view.span) * this.w }
  height(value) { return this.y + this.h - ((value - this.bottom) / (this.top - this.bottom)) * this.h }
  // Only what a change makes necessary is worked out again: `key` says what a curve depends on.
  measure() {
    const { view } = this
    const shared = [view.low, view.span, view.locked ? view.m - view.n : `n${view.n}`]
    view.sides.forEach((side, s) => {
      const key = [...shared, side.version].join()
      if (this.curves[s]?.key === key) return
      this.curves[s] = { key, ...this.sampled(side) }
      if (!side.live) view.stale = true // a swept curve is no part of the still layer
    })
    const values = this.curves.flatMap(({ low, high }) => [low, high])
    const [low, high] = view.extremes ?? [Math.min(0, ...values), Math.max(0, ...values)]
    const room = (high - low || 1) * 0.06
    Object.assign(this, { bottom: low - room, top: high + room })
  }
  // Samples at whole positions, or finer where there is room, from `from` in steps of `step`.
  sampled(side) {
    const { view } = this
    const lead = view.m - view.n
    if (side.stiff) return this.stepwise(side, view.locked ? lead : null)
    if (view.locked) return this.bounded(Float64Array.of(side.score, side.score), view.low, view.span)
    const across = Math.ceil((side.live ? 0.5 : 1.25) * this.w) // one that changes in every frame is made of fewer
    const fine = Math.min(Math.max(view.span, across), MOST_SAMPLES)
    const { values } = side.rotor.kernel(view.low - view.n, view.span / fine, fine + 1)
    return this.bounded(values, view.low, view.span / fine)
  }
  stepwise(side, lead) {
    const { view } = this
    const step = Math.max(1, Math.ceil(view.span / MOST_SAMPLES))
    const from = Math.max(view.low, Math.ceil(lead ?? 0))
    const values = new Float64Array(Math.max(1, Math.floor((view.low + view.span - from) / step) + 1))
    for (let j = 0; j < values.length; j++) {
      const m = from + j * step
      values[j] = side.rotor.measure(m, lead === null ? Math.round(view.n) : m - lead)
    }
    return this.bounded(values, from, step)
  }
  bounded(values, from, step) {
    let [low, high] = [Infinity, -Infinity]
    for (const value of values) {
      if (value < low) low = value
      if (value > high) high = value
    }
    return { values, from, step, low, high }
  }
  still(ctx) {
    const { view, x, y, w, h } = this
    const { theme, label } = view
    const text = view.locked ? label.strip_both : label.strip
    view.write(ctx, text, this.left, y - 14, { size: 15, colour: theme.quiet, max: w * 0.5 })
    if (this.bottom < 0 && this.top > 0) {
      ctx.fillStyle = css(theme.line)
      ctx.fillRect(x, Math.round(this.height(0)) - 0.5, w, 1)
      view.write(ctx, '0', x - 8, this.height(0), { align: 'right', colour: theme.quiet })
    }
    ctx.fillStyle = css(theme.faint)
    ctx.fillRect(x - 0.5, y, 1, h)
    // a swept curve changes in every frame
    view.sides.forEach((side, s) => side.live || this.line(ctx, this.curves[s], side.colour))
  }
  // Finer than the pixels, a stroke from the lowest to the highest value in each.
  line(ctx, curve, colour) {
    const { values, from, step } = curve
    ctx.strokeStyle = css(mix(colour, this.view.theme.background, 0.25))
    ctx.lineWidth = 1.5
    ctx.lineJoin = 'bevel'
    ctx.beginPath()
    const each = values.length > 3 * this.w ? Math.ceil(values.length / this.w) : 1
    for (let j = 0; j < values.length; j += each) {
      const part = values.subarray(j, j + each)
      const x = this.across(from + (j + (part.length - 1) / 2) * step)
      ctx.lineTo(x, this.height(Math.min(...part)))
      if (each > 1) ctx.lineTo(x, this.height(Math.max(...part)))
    }
    ctx.stroke()
  }
  moving(ctx) {
    const { view, x, y, w } = this
    view.sides.forEach((side, s) => side.live && this.line(ctx, this.curves[s], side.colour))
    let right = x + w
    for (const side of [...view.sides].reverse()) {
      ctx.fillStyle = css(side.colour)
      circle(ctx, clamp(this.across(side.m), x, x + w), this.height(side.score), 5)
      ctx.fill()
      const text = `${side.letter} ${minus(side.score.toFixed(5))}`
      view.write(ctx, text, right, y - 14, { size: 16, weight: 'bold', align: 'right', colour: side.colour })
      right -= 118
    }
    const error = view.sides[1].score - view.sides[0].score
    view.write(ctx, `B − A = ${formatNumber(error, 3)}`, right, y - 14, { size: 15, align: 'right', colour: view.theme.quiet })
  }
}
