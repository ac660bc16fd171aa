// The right bottom of the Rotation picture: every pair's part of the score, the parts piled up, the score against
// distance, and the numbers. A panel as in clock_panels.js.

const AXIS = 52 // for the numbers left of the bars
const LINK = 78 // between the pile and the curve: the score at its height

class ScorePanel {
  constructor(view) { this.view = view }
  place({ x, y, w, h }) {
    const compact = (this.compact = w < 440) // the numbers above the bars instead of beside them
    const share = Math.floor((w - AXIS - LINK) * (compact ? 0.5 : w < 560 ? 0.48 : 0.54))
    const right = x + AXIS + share + LINK
    const bars = y + (compact ? 92 : 30)
    const upper = compact ? 62 : Math.max(76, Math.round((h - 104) * 0.36))
    const pile = bars + upper + 42
    this.bars = { x: x + AXIS, y: bars, w: compact ? w - AXIS - 8 : share, h: upper }
    this.pile = { x: x + AXIS, y: pile, w: share, h: y + h - pile - 30 }
    this.kernel = { x: right, y: pile, w: x + w - right - 8, h: this.pile.h }
    this.sums = compact ? { x, y, w } : { x: right - LINK + 28, y, w: w - AXIS - share - 28 }
    // Score and drift stand side by side where they stand above the bars, else one below the other.
    const { sums } = this
    this.drift = compact ? { x: x + w * 0.46, y: sums.y, w: w * 0.54 } : { x: sums.x, y: sums.y + 56, w: sums.w }
    if (compact) sums.w = w * 0.44
    this.curve = null
  }
  // Enough samples for the line, and every whole distance when they are finer than the pixels.
  measure() {
    const { w, h, y } = this.kernel
    const { span, rotor } = this.view
    const count = Math.max(2 * span, 2 * Math.ceil(w)) + 1
    this.curve = rotor.kernel(-span, (2 * span) / (count - 1), count)
    const { low, high } = this.curve
    const room = (high - low || 1) * 0.04
    this.height = (value) => y + h - ((value - low + room) / (high - low + 2 * room)) * h
    this.view.decimals = clamp(6 - Math.ceil(Math.log10(Math.max(-low, high) || 1)), 1, 8)
  }
  across(distance) { return this.kernel.x + ((distance + this.view.span) / (2 * this.view.span)) * this.kernel.w }
  bar(box) { return box.w / (this.view.pairs + (this.view.rotor.partial ? 1 : 0)) }
  hit(x, y) {
    const box = [this.bars, this.pile].find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y <= b.y + b.h)
    const i = box ? Math.floor((x - box.x) / this.bar(box)) : -1
    return i < this.view.pairs ? i : -1
  }
  // The whole distance under the pointer, or null.
  distanceAt(x, y) {
    const { kernel } = this
    if (x < kernel.x || x > kernel.x + kernel.w || y < kernel.y || y > kernel.y + kernel.h) return null
    return Math.round(((x - kernel.x) / kernel.w) * 2 * this.view.span - this.view.span)
  }
  still(ctx) {
    const { view, bars, pile, kernel, sums } = this
    const { theme, label, rotor } = view
    const quiet = { size: 15, colour: theme.quiet }
    const number = { align: 'right', colour: theme.quiet }
    ctx.fillStyle = css(theme.panel)
    for (const box of [bars, pile])
      ctx.fillRect(box.x + view.pair * this.bar(box) - 1, box.y - 4, Math.max(3, this.bar(box)) + 1, box.h + 8)
    view.write(ctx, label.bars, bars.x - AXIS + 4, bars.y - 20, { ...quiet, max: bars.w + AXIS })
    view.write(ctx, label.pile, pile.x - AXIS + 4, pile.y - 20, { ...quiet, max: pile.w + AXIS })
    const [edge, align] = this.compact ? [kernel.x + kernel.w + 8, 'right'] : [kernel.x, 'left']
    view.write(ctx, label.kernel, edge, pile.y - 20, { ...quiet, align, max: kernel.w + (this.compact ? LINK - 14 : 8) })
    this.rule(ctx, bars.x, bars.y + bars.h / 2, bars.w)
    this.rule(ctx, pile.x, this.height(0), pile.w)
    this.rule(ctx, kernel.x, this.height(0), kernel.w)
    view.write(ctx, formatNumber(rotor.tallest, 2), bars.x - 8, bars.y + 4, number)
    view.write(ctx, '0', bars.x - 8, bars.y + bars.h / 2, number)
    if (bars.h > 70) view.write(ctx, formatNumber(-rotor.tallest, 2), bars.x - 8, bars.y + bars.h - 4, number)
    this.scale(ctx, number)
    if (rotor.partial) view.write(ctx, label.rest, pile.x + pile.w, pile.y + pile.h + 18, { ...number, max: pile.w })
    view.write(ctx, label.score, sums.x, sums.y + 42, { ...quiet, max: sums.w })
    view.write(ctx, label.drift, this.drift.x, this.drift.y + 42, { ...quiet, max: this.drift.w })
    this.line(ctx)
  }
  rule(ctx, x, y, w) {
    ctx.fillStyle = css(this.view.theme.faint)
    ctx.fillRect(x, Math.round(y) - 0.5, w, 1)
  }
  scale(ctx, look) {
    const { low, high } = this.curve
    const step = niceStep(high - low || 1, this.pile.h / 40)
    const digits = clamp(-Math.floor(Math.log10(step)), 0, 6)
    for (let i = Math.ceil(low / step); i * step <= high; i++)
      this.view.write(ctx, i ? minus((i * step).toFixed(digits)) : '0', this.pile.x - 8, this.height(i * step), look)
  }
  // The score against distance; finer than the pixels, a stroke from the lowest to the highest value in each.
  line(ctx) {
    const { view, curve, kernel } = this
    const { theme, span } = view
    ctx.fillStyle = css(theme.line)
    ctx.fillRect(Math.round(this.across(0)) - 0.5, kernel.y, 1, kernel.h)
    for (const d of [-span, 0, span]) {
      const align = d < 0 ? 'left' : d ? 'right' : 'center'
      view.write(ctx, minus(d), this.across(d), kernel.y + kernel.h + 18, { align, colour: theme.quiet })
    }
    ctx.strokeStyle = css(mix(theme.position, theme.background, 0.3))
    ctx.lineWidth = 1.5
    ctx.lineJoin = 'round'
    ctx.beginPath()
    const each = curve.values.length > 3 * kernel.w ? Math.ceil(curve.values.length / kernel.w) : 1
    for (let j = 0; j < curve.values.length; j += each) {
      const part = curve.values.subarray(j, j + each)
      const x = this.across(curve.from + (j + (part.length - 1) / 2) * curve.step)
      ctx.lineTo(x, this.height(Math.min(...part)))
      if (each > 1) ctx.lineTo(x, this.height(Math.max(...part)))
    }
    ctx.stroke()
  }
  moving(ctx) {
    const { view, bars, pile } = this
    const { ink, rotor, pairs } = view
    const [wide, step] = [this.bar(bars), this.bar(pile)]
    const thin = (w) => w - (w > 4 ? 1.5 : w > 2 ? 0.5 : 0)
    const middle = bars.y + bars.h / 2
    let sum = 0
    for (let i = 0; i < pairs + (rotor.partial ? 1 : 0); i++) {
      const part = i < pairs ? rotor.parts[i] : rotor.rest
      const tall = (part / rotor.tallest) * (bars.h / 2)
      const from = this.height(sum)
      const to = this.height(sum + part)
      ctx.fillStyle = i < pairs ? ink.dark[i] : ink.rest
      ctx.fillRect(bars.x + i * wide, Math.min(middle, middle - tall), thin(wide), Math.abs(tall))
      ctx.fillRect(pile.x + i * step, Math.min(from, to) - 0.75, thin(step), Math.abs(from - to) + 1.5)
      sum += part
    }
    this.link(ctx)
    this.numbers(ctx)
  }
  // From the top of the pile across to the dot on the curve: one height, one number.
  link(ctx) {
    const { view, pile, kernel } = this
    const { score, m, n, theme } = view
    const x = clamp(this.across(m - n), kernel.x, kernel.x + kernel.w)
    const y = this.height(score)
    ctx.fillStyle = css(theme.position)
    ctx.fillRect(pile.x + pile.w, y - 0.75, 8, 1.5)
    ctx.fillRect(kernel.x - 6, y - 0.75, x - kernel.x + 6, 1.5)
    circle(ctx, x, y, 6)
    ctx.fill()
    const text = minus(score.toFixed(clamp(view.decimals - 3, 0, 3)))
    view.write(ctx, text, kernel.x - 10, y, { size: 16, weight: 'bold', align: 'right' })
  }
  numbers(ctx) {
    const { view, sums, drift: place } = this
    const { drift } = view.start
    const { theme, label } = view
    view.write(ctx, minus(view.score.toFixed(view.decimals)), sums.x, sums.y + 14, { size: 28, weight: 'bold' })
    const text = drift === null ? '–' : formatNumber(drift)
    view.write(ctx, text, place.x, place.y + 16, { size: 22, weight: 'bold', colour: theme.positionText })
    ctx.font = view.text(22, 'bold')
    const room = ctx.measureText('8.8×10⁻⁸⁸').width + 12
    if (drift !== null) view.write(ctx, label.expected, place.x + room, place.y + 17, { size: 15, colour: theme.quiet, max: place.w - room })
  }
}
