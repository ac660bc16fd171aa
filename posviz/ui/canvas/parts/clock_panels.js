// The left half and the top of the Rotation picture: the clocks, the chosen pair large, the dimensions it turns.
// A panel has place(box), still(ctx) for what stands and moving(ctx) for what is drawn in every frame; `view`
// holds the state (m, n, pair, rotor, ink, theme, label). Angles run from three o'clock, counter-clockwise.

const subscript = (i) => String(i).replace(/\d/g, (c) => '₀₁₂₃₄₅₆₇₈₉'[c])
const minus = (text) => String(text).replace('-', '−')
const smooth = (t) => t * t * (3 - 2 * t)

function wedge(ctx, x, y, r, from, angle) {
  ctx.beginPath()
  ctx.moveTo(x, y)
  ctx.arc(x, y, r, -from, -from - angle, angle > 0)
  ctx.closePath()
  ctx.fill()
}
function hand(ctx, x, y, r, angle) {
  ctx.beginPath()
  ctx.moveTo(x, y)
  ctx.lineTo(x + r * Math.cos(angle), y - r * Math.sin(angle))
  ctx.stroke()
}
// (m − n)θ on the rim from three o'clock: it stands still when both move.
function rim(ctx, x, y, r, angle) {
  ctx.moveTo(x + r, y)
  ctx.arc(x, y, r, 0, -angle, angle > 0)
}
function circle(ctx, x, y, r) {
  ctx.beginPath()
  ctx.arc(x, y, r, 0, TURN)
}

class ClockGrid {
  constructor(view) { this.view = view }
  // Without a height (one narrow column) the clocks have one size and the grid is as tall as it must be.
  place({ x = 0, y, w, h }) {
    const { pairs } = this.view
    const grid = h ? this.largest(w, h) : this.regular(w)
    const left = grid.label ? 0 : 44
    const pitch = grid.label ? 76 : 8
    const step = h ? Math.min(grid.d + pitch, h / grid.rows) : grid.d + (grid.label ? 34 : 4)
    Object.assign(this, grid, { x, left: x + left, w, y: y + 6, cell: (w - left) / grid.cols, step, r: Math.max(3, grid.d / 2) })
    this.height = Math.ceil(step * Math.ceil(pairs / grid.cols))
  }
  // From which size on each clock has its name below it.
  named() { return 28 }
  // The arrangement with the largest clocks; full rows, and rows of four, are worth a little size.
  largest(w, h) {
    const { pairs } = this.view
    const attempt = (label) => {
      let best = { worth: -1 }
      for (let cols = 1; cols <= pairs; cols++) {
        const rows = Math.ceil(pairs / cols)
        const d = Math.floor(Math.min((w - (label ? 0 : 44)) / cols - (label ? 10 : 5), h / rows - (label ? 30 : 6), 140))
        const worth = Math.max(0, d) * (pairs % cols === 0 ? 1.25 : cols % 4 === 0 ? 1.1 : 1)
        if (worth > best.worth) best = { d, cols, rows, label, worth }
      }
      return best
    }
    const labelled = attempt(true)
    return labelled.d >= this.named() ? labelled : attempt(false)
  }
  regular(w) {
    const { pairs } = this.view
    const label = pairs <= 64
    const most = Math.floor((w - (label ? 0 : 44)) / (label ? 44 : 22))
    const cols = Math.min(pairs, [32, 16, 8, 4].find((c) => c <= most) ?? 1)
    const d = Math.floor(Math.min(48, (w - (label ? 0 : 44)) / cols - 6))
    return { d, cols, rows: Math.ceil(pairs / cols), label }
  }
  centre(i) {
    return [this.left + ((i % this.cols) + 0.5) * this.cell, this.y + Math.floor(i / this.cols) * this.step + this.r]
  }
  hit(x, y) {
    const col = Math.floor((x - this.left) / this.cell)
    const row = Math.floor((y - this.y + 4) / this.step)
    const i = row * this.cols + col
    return col >= 0 && col < this.cols && row >= 0 && i < this.view.pairs ? i : -1
  }
  still(ctx) {
    const { view, r } = this
    const { theme } = view
    this.legend(ctx)
    for (let i = 0; i < view.pairs; i++) {
      const [x, y] = this.centre(i)
      const chosen = i === view.pair
      ctx.strokeStyle = css(chosen ? theme.text : theme.line)
      ctx.lineWidth = chosen ? 2.5 : 1.25
      circle(ctx, x, y, r + (chosen ? 3 : 0))
      ctx.stroke()
      const look = { colour: chosen ? theme.text : theme.quiet, weight: chosen ? 'bold' : 'normal' }
      if (this.label) view.write(ctx, `θ${subscript(i)}`, x, y + r + 15, { ...look, align: 'center' })
      else if (i % this.cols === 0 && (this.step > 15 || (i / this.cols) % 2 === 0))
        view.write(ctx, `θ${subscript(i)}`, this.x, y, { colour: theme.quiet })
    }
  }
  legend(ctx) {
    const { view } = this
    const { theme, label, ink } = view
    const items = [[label.legend_query, ink.dark[0]], [label.legend_key, ink.light[0]], [label.legend_angle, css(theme.position)]]
    let [x, y] = [0, 15]
    items.forEach(([text, colour], i) => {
      ctx.font = view.text(15)
      const wide = 28 + ctx.measureText(text).width
      if (x + wide > this.w) [x, y] = [0, y + 24]
      ctx.strokeStyle = colour
      ctx.lineWidth = 4
      ctx.lineCap = i < 2 ? 'round' : 'butt'
      ctx.beginPath()
      if (i < 2) {
        ctx.moveTo(x + 2, y)
        ctx.lineTo(x + 20, y)
      } else ctx.arc(x + 4, y + 6, 14, -1.35, 0)
      ctx.stroke()
      view.write(ctx, text, x + 28, y, { size: 15, colour: i < 2 ? theme.quiet : theme.positionText })
      x += wide + 22
    })
    ctx.lineCap = 'butt'
  }
  moving(ctx) {
    const { view, r } = this
    const { m, n, ink, pairs, rotor } = view
    const centres = Array.from({ length: pairs }, (_, i) => this.centre(i))
    ctx.lineCap = r > 14 ? 'round' : 'butt'
    ctx.lineWidth = Math.max(1.5, r * 0.11)
    centres.forEach(([x, y], i) => {
      const [query, key] = [rotor.angle(i, m), rotor.angle(i, n)]
      ctx.fillStyle = ink.wedge[i]
      wedge(ctx, x, y, r * 0.66, key % TURN, rotor.between(i, m, n) % TURN)
      ctx.strokeStyle = ink.light[i]
      hand(ctx, x, y, r * 0.86, key)
      ctx.strokeStyle = ink.dark[i]
      hand(ctx, x, y, r * 0.86, query)
    })
    ctx.lineCap = 'butt'
    ctx.strokeStyle = css(view.theme.position)
    ctx.lineWidth = Math.max(1.5, r * 0.09)
    ctx.beginPath()
    centres.forEach(([x, y], i) => rim(ctx, x, y, r, rotor.between(i, m, n) % TURN))
    ctx.stroke()
  }
}

// The chosen pair: a large clock, its angles, and the two dimensions it turns.
class ChosenPair {
  constructor(view) { this.view = view }
  place({ x, y, w }) {
    const r = clamp(w * 0.165, 58, 80)
    const gap = w < 420 ? 16 : 28
    Object.assign(this, { x, y, w, r, cx: x + r + 4, cy: y + r + 8, left: x + 2 * r + 8 + gap, right: x + w })
    this.row = w < 420 ? 24 : clamp(r / 3.1, 26, 28)
    this.strip = y + Math.max(2 * r + 16, 34 + 5 * this.row) + 22
    this.height = this.strip + 46 - y
  }
  line(i) { return this.y + 20 + i * this.row }
  still(ctx) {
    const { view, cx, cy, r, left, right } = this
    const { theme, label, pair } = view
    const omega = view.arrays.omega[pair]
    ctx.strokeStyle = css(theme.line)
    ctx.lineWidth = 1.5
    circle(ctx, cx, cy, r)
    ctx.stroke()
    this.size = right - left < 250 ? 15 : 16
    const quiet = { size: this.size, colour: theme.quiet, max: right - left }
    const title = fill(label.pair_title, { pair, theta: formatNumber(omega) })
    view.write(ctx, title, left, this.line(0), { ...quiet, size: this.size + 1, weight: 'bold', colour: theme.text })
    this.columns(ctx)
    view.write(ctx, view.wavelength(pair), left, this.line(4) + 4, quiet)
    view.write(ctx, label.part, left, this.line(5) + 4, quiet)
    this.partAt = Math.min(left + ctx.measureText(label.part).width + 10, right - 60)
    const [a, b] = view.rotor.dims[pair]
    view.write(ctx, fill(label.dims, { a, b, d: view.meta.d_head }), this.x, this.strip - 8, { ...quiet, size: 15, max: this.w })
  }
  // mθ, nθ and (m−n)θ with a place for each number as wide as its largest value on this ruler: nothing moves.
  columns(ctx) {
    const { view, left, right, size } = this
    const { theme, label } = view
    ctx.font = view.text(size)
    const wide = (text) => ctx.measureText(text).width
    const most = Math.abs(view.arrays.omega[view.pair]) * (view.low + view.span)
    this.digits = most >= 1000 ? 1 : most >= 10 ? 2 : 3
    const rad = left + wide('(m−n)θ') + 8 + wide(`−${most.toFixed(this.digits)}`)
    const turns = rad + 5 + wide('rad') + 8 + wide(`−${(most / TURN).toFixed(2)}`)
    this.rad = rad
    this.turns = turns + 5 + wide(label.turns) <= right ? turns : 0
    ;['mθ', 'nθ', '(m−n)θ'].forEach((text, i) => {
      const look = { size, colour: i === 2 ? theme.positionText : theme.quiet }
      view.write(ctx, text, left, this.line(i + 1) + 2, look)
      view.write(ctx, 'rad', rad + 5, this.line(i + 1) + 2, look)
      if (this.turns) view.write(ctx, label.turns, turns + 5, this.line(i + 1) + 2, look)
    })
  }
  moving(ctx) {
    const { view, cx, cy, r, size } = this
    const { m, n, ink, pair, theme } = view
    const omega = view.arrays.omega[pair]
    const angle = ((m - n) * omega) % TURN
    ctx.fillStyle = ink.wedge[pair]
    wedge(ctx, cx, cy, r * 0.6, (n * omega) % TURN, angle)
    ctx.strokeStyle = css(theme.position)
    ctx.lineWidth = 5
    ctx.beginPath()
    rim(ctx, cx, cy, r, angle)
    ctx.stroke()
    ctx.lineCap = 'round'
    ctx.lineWidth = 6
    ctx.strokeStyle = ink.light[pair]
    hand(ctx, cx, cy, r * 0.82, n * omega)
    ctx.strokeStyle = ink.dark[pair]
    hand(ctx, cx, cy, r * 0.82, m * omega)
    ctx.lineCap = 'butt'
    ;[m, n, m - n].forEach((p, i) => {
      const look = { size, align: 'right', colour: i === 2 ? theme.positionText : theme.text }
      view.write(ctx, minus((p * omega).toFixed(this.digits)), this.rad, this.line(i + 1) + 2, look)
      if (this.turns) view.write(ctx, minus(((p * omega) / TURN).toFixed(2)), this.turns, this.line(i + 1) + 2, look)
    })
    view.write(ctx, formatSigned(view.rotor.parts[pair], clamp(view.decimals - 2, 1, 5)), this.partAt, this.line(5) + 4, { size })
    this.dimensions(ctx)
  }
  // One head's dimensions in memory order, each in its pair's colour; when the pairing changes they slide over.
  dimensions(ctx) {
    const { view, x, w, strip } = this
    const { order, pair, slide } = view
    const size = w / order.length
    const t = slide ? clamp((performance.now() - slide.time) / 900, 0, 1) : 1
    if (t === 1) view.slide = null
    const at = (d) => x + (t < 1 ? slide.from[d] + (d - slide.from[d]) * smooth(t) : d) * size
    const gap = size > 5 ? 1 : 0
    order.forEach((owner, d) => {
      ctx.fillStyle = owner < 0 ? view.ink.rest : view.ink.light[owner]
      if (owner !== pair) ctx.fillRect(at(d), strip + 10, size - gap, 16)
    })
    for (const d of view.rotor.dims[pair]) {
      const wide = Math.max(6, size)
      const left = clamp(at(d) + (size - wide) / 2, x + 2, x + w - wide - 2)
      ctx.fillStyle = css(view.theme.text)
      ctx.fillRect(left - 2, strip + 4, wide + 4 - gap, 28)
      ctx.fillStyle = view.ink.dark[pair]
      ctx.fillRect(left, strip + 6, wide - gap, 24)
    }
  }
}
