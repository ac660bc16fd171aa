// One side of the picture of turns.js: its title, its clocks with what they have been through, the chosen pair, and
// how many turns each pair has made. Panels as in clock_panels.js; `view` is a side, which sees the whole view's m, n,
// pair and theme through its prototype.

const BLUR = Math.PI / 2 // more than this from one frame to the next: a hand cannot be followed
const COUNTED = 76 // px: room for a clock's name and its turns
const FEWEST = 1e-3 // turns at the foot of the bars

class SideHead {
  constructor(view) { this.view = view }
  place({ x, y, w }) { Object.assign(this, { x, y: y + 12, w }) }
  still() {}
  moving(ctx) {
    const { view, x, y, w } = this
    view.write(ctx, view.title || view.liveTitle(), x, y, { size: 16, weight: 'bold', colour: view.colour, max: w * 0.6 })
    const room = w - Math.min(w * 0.6, ctx.measureText(view.title || view.liveTitle()).width) - 14
    const [text, alarm] = view.verdict()
    const colour = alarm ? view.alarm : view.theme.quiet
    view.write(ctx, text, x + w, y, { size: 15, align: 'right', colour, max: room })
  }
}

class SideGrid extends ClockGrid {
  named() { return 40 }
  still(ctx) {
    const { view, r } = this
    for (let i = 0; i < view.pairs; i++) {
      const [x, y] = this.centre(i)
      const chosen = i === view.pair
      ctx.strokeStyle = css(chosen ? view.theme.text : view.theme.line)
      ctx.lineWidth = chosen ? 2.5 : 1.25
      circle(ctx, x, y, r + (chosen ? 3 : 0))
      ctx.stroke()
      if (!this.label && i % this.cols === 0 && (this.step > 15 || (i / this.cols) % 2 === 0))
        view.write(ctx, `θ${subscript(i)}`, this.x, y, { colour: view.theme.quiet })
    }
    this.metArcs(ctx)
  }
  moving(ctx) {
    const { view, r } = this
    const { ink, pairs } = view
    const centres = Array.from({ length: pairs }, (_, i) => this.centre(i))
    this.faces(ctx, centres)
    ctx.lineCap = r > 14 ? 'round' : 'butt'
    centres.forEach(([x, y], i) => {
      if (view.blurred(i)) {
        ctx.fillStyle = ink.wedge[i]
        circle(ctx, x, y, r * 0.86)
        ctx.fill()
        return
      }
      ctx.lineWidth = Math.max(1.5, r * 0.11)
      ctx.strokeStyle = ink.light[i]
      hand(ctx, x, y, r * 0.86, view.rotor.angle(i, view.n))
      ctx.strokeStyle = ink.dark[i]
      hand(ctx, x, y, r * 0.86, view.rotor.angle(i, view.m))
    })
    ctx.lineCap = 'butt'
    this.rims(ctx, centres)
    if (!this.label) return
    centres.forEach(([x, y], i) => {
      const look = i === view.pair ? { weight: 'bold' } : { colour: view.theme.quiet }
      const text = this.cell < COUNTED ? `θ${subscript(i)}` : `θ${subscript(i)} · ${view.wraps(i)}`
      view.write(ctx, text, x, y + r + 15, { ...look, align: 'center' })
    })
  }
  // Once round, a face is tinted: its hand has been everywhere.
  faces(ctx, centres) {
    const { view, r } = this
    centres.forEach(([x, y], i) => {
      if (!view.wraps(i)) return
      ctx.fillStyle = view.ink.face[i]
      circle(ctx, x, y, r - 0.5)
      ctx.fill()
    })
  }
  // What training covered, around the rim.
  metArcs(ctx) {
    const { view, r } = this
    if (!view.met) return
    ctx.strokeStyle = css(view.theme.content)
    ctx.lineWidth = Math.max(1.5, r * 0.1)
    ctx.beginPath()
    for (let i = 0; i < view.pairs; i++) {
      if (view.met[i] >= 1) continue
      const [x, y] = this.centre(i)
      ctx.moveTo(x + r + ctx.lineWidth / 2, y)
      ctx.arc(x, y, r + ctx.lineWidth / 2, 0, -view.met[i] * TURN, true)
    }
    ctx.stroke()
  }
  // The angle between the hands on the rim; red, and ringed, where it is new or wrong.
  rims(ctx, centres) {
    const { view, r } = this
    const { m, n } = view
    const bad = Array.from({ length: view.pairs }, (_, i) => view.bad(i))
    const arcs = (wanted, colour, wide) => {
      ctx.strokeStyle = css(colour)
      ctx.lineWidth = wide
      ctx.beginPath()
      centres.forEach(([x, y], i) => {
        if (bad[i] === wanted && (wanted || !view.blurred(i))) rim(ctx, x, y, r, view.rotor.between(i, m, n) % TURN)
      })
      ctx.stroke()
    }
    const wide = Math.max(1.5, r * 0.1)
    arcs(false, view.theme.position, wide)
    if (!bad.includes(true)) return
    arcs(true, view.alarm, wide * 1.5)
    ctx.lineWidth = 1
    ctx.beginPath()
    centres.forEach(([x, y], i) => {
      if (!bad[i]) return
      ctx.moveTo(x + r + wide, y)
      ctx.arc(x, y, r + wide, 0, TURN)
    })
    ctx.stroke()
  }
}

// The chosen pair's clock and numbers, and beside them the turns of all pairs.
class SidePair {
  constructor(view) { this.view = view }
  place({ x, y, w, h }) {
    const text = clamp(w * 0.4, 150, 210)
    Object.assign(this, { x, y, w, h, r: h / 2 - 8, text, left: x + h - 2 })
    const from = this.left + text + 46
    this.bars = { x: from, y: y + 20, w: x + w - from, h: h - 26 }
  }
  line(i) { return this.y + 14 + i * 23 }
  at(turns) {
    const { y, h } = this.bars
    const [low, high] = [Math.log(FEWEST), Math.log(Math.max(2, this.view.most))]
    return y + h - (clamp((Math.log(turns || FEWEST) - low) / (high - low), 0, 1)) * h
  }
  still(ctx) {
    const { view, x, y, h, r, bars } = this
    const { theme, label } = view
    ctx.strokeStyle = css(theme.line)
    ctx.lineWidth = 1.5
    circle(ctx, x + h / 2 - 4, y + h / 2, r)
    ctx.stroke()
    const most = Math.round(view.most).toLocaleString('en')
    const look = { align: 'right', colour: theme.quiet }
    view.write(ctx, fill(label.turned, { most }), bars.x + bars.w, y + 8, { ...look, max: bars.w + 62 })
    view.write(ctx, '1', bars.x - 8, this.at(1), look)
    ctx.fillStyle = css(theme.faint)
    ctx.fillRect(bars.x, Math.round(this.at(1)) - 0.5, bars.w, 1)
    ctx.fillRect(bars.x, bars.y + bars.h, bars.w, 1)
  }
  moving(ctx) {
    const { view, bars } = this
    const step = bars.w / view.pairs
    const thin = step - (step > 4 ? 1.5 : step > 2 ? 0.5 : 0)
    for (let i = 0; i < view.pairs; i++) {
      const top = this.at(view.turns(i))
      ctx.fillStyle = view.bad(i) ? css(view.alarm) : view.ink.dark[i]
      ctx.fillRect(bars.x + i * step, top, thin, bars.y + bars.h - top)
      if (i === view.pair) ctx.fillRect(bars.x + i * step - 1, bars.y + bars.h + 2, thin + 2, 3)
      if (!view.met || view.met[i] >= 1) continue
      ctx.fillStyle = css(view.theme.content)
      ctx.fillRect(bars.x + i * step - 0.5, this.at(view.met[i]) - 1, thin + 1, 2)
    }
    this.clock(ctx)
    this.numbers(ctx)
  }
  clock(ctx) {
    const { view, x, y, h, r } = this
    const { pair, ink, m, n, rotor } = view
    const [cx, cy] = [x + h / 2 - 4, y + h / 2]
    ctx.fillStyle = ink.wedge[pair]
    wedge(ctx, cx, cy, r * 0.6, rotor.angle(pair, n) % TURN, rotor.between(pair, m, n) % TURN)
    ctx.lineCap = 'round'
    ctx.lineWidth = 4
    ctx.strokeStyle = ink.light[pair]
    hand(ctx, cx, cy, r * 0.82, rotor.angle(pair, n))
    ctx.strokeStyle = ink.dark[pair]
    hand(ctx, cx, cy, r * 0.82, rotor.angle(pair, m))
    ctx.lineCap = 'butt'
  }
  numbers(ctx) {
    const { view, left, text } = this
    const { label, pair, theme } = view
    const quiet = { size: 15, colour: theme.quiet, max: text + 4 }
    const omega = view.rotor.omega[pair]
    view.write(ctx, `${fill(label.pair, { pair })} · θ ${formatNumber(omega, 3)}`, left, this.line(0), { ...quiet, weight: 'bold', colour: theme.text })
    const radians = minus(view.rotor.angle(pair, view.m).toFixed(2))
    view.write(ctx, `mθ = ${radians} rad`, left, this.line(1), quiet)
    view.write(ctx, fill(label.wraps, { turns: minus(view.turns(pair).toFixed(2)), wraps: view.wraps(pair) }), left, this.line(2), quiet)
    const [last, bad] = view.remark(pair)
    view.write(ctx, last, left, this.line(3), { ...quiet, colour: bad ? view.alarm : theme.quiet })
  }
}
