// needs parts/rotor.js, parts/gif.js, parts/ruler.js, parts/film.js, parts/clock_panels.js, parts/turn_panels.js, parts/score_strip.js
// Two sets of clocks at the same positions: two models (what a scaling does), one base beside a swept one, or
// float64 beside bfloat16. Every pair says how often it has come round, and what is new or wrong about its angle.
// Data: see turns.py. The frequencies come from there; here they are multiplied with positions, in doubles.

const LONG_SPANS = [64, 512, 4096]
const FASTEST = 16_384 // positions a second
const BASE_SPEEDS = [0.125, 0.25, 0.5, 1, 2] // factors of ten a second
const ALARM = { light: [163, 34, 27], dark: [247, 151, 143] }

// A side sees the view's m, n, theme and drawing through its prototype, and has its own clocks.
function makeSide(view, s) {
  const { meta, arrays } = view
  const { letter, title, scale } = meta.sides[s]
  const side = Object.create(view)
  const [q, k] = [arrays[`q${s}`], arrays[`k${s}`]]
  const omega = arrays[`omega${s}`]
  Object.assign(side, { letter, title, colour: s ? view.theme.b : view.theme.a, met: arrays[`met${s}`] ?? null, version: 0 })
  Object.assign(side, { pairs: omega.length, live: meta.mode === 'base' && s === 1, stiff: meta.mode === 'digits' && s === 1 })
  const narrow = side.stiff ? new NarrowRotor(q, k, omega, arrays.narrow, meta.rounded, meta.pairing, scale) : null
  side.rotor = narrow ?? new Rotor(q, k, omega, meta.pairing, scale)
  side.most = (Math.max(...omega) * meta.max_position) / TURN
  return Object.assign(Object.defineProperties(side, SIDE_GETTERS), SIDE_METHODS, MODES[meta.mode])
}
const SIDE_GETTERS = {
  pair: { get() { return Math.min(Object.getPrototypeOf(this).pair, this.pairs - 1) } },
  // Position ids are whole numbers: where digits count, the clocks tick.
  m: { get() { return this.tick(Object.getPrototypeOf(this).m) } },
  n: { get() {
    const view = Object.getPrototypeOf(this)
    return view.locked ? this.m - (view.m - view.n) : this.tick(view.n)
  } },
}
const SIDE_METHODS = {
  tick(position) { return position },
  turns(i) { return Math.abs(this.rotor.angle(i, this.m)) / TURN },
  wraps(i) { return Math.floor(this.turns(i)) },
  blurred(i) { return this.moves() * Math.abs(this.rotor.omega[i]) > BLUR },
  bad() { return false },
  remark(i) { return [this.wavelength(this.rotor.omega[i]), false] },
  countBad() {
    let count = 0
    for (let i = 0; i < this.pairs; i++) count += this.bad(i)
    return count
  },
}
const MODES = {
  two: {
    // An angle that no distance in training had.
    bad(i) {
      const reached = Math.min(1, Math.abs(this.rotor.between(i, this.m, this.n)) / TURN)
      return reached > this.met[i] * (1 + 1e-9)
    },
    verdict() {
      const count = this.countBad()
      return [fill(this.label.new, { count, pairs: this.pairs }), count > 0]
    },
  },
  base: {
    liveTitle() {
      const base = this.bases[this.notch]
      return `${this.letter} · base ${base < 1e4 ? base : Math.round(base).toLocaleString('en')}`
    },
    verdict() {
      const { critical, bounds } = this.arrays
      const [round, bound] = this.live ? [critical[this.notch], bounds[this.notch]] : this.meta.home
      return [fill(this.label.base_facts, { critical: round, bound: bound ? bound.toLocaleString('en') : '–' }), false]
    },
  },
  digits: {
    tick(position) { return Math.round(position) },
    bad(i) { return this.stiff && Math.max(Math.abs(this.off(i, this.m)), Math.abs(this.off(i, this.n))) > this.meta.limit },
    off(i, position) {
      const error = this.rotor.angle(i, position) - position * this.rotor.omega[i]
      return error - TURN * Math.round(error / TURN)
    },
    verdict() {
      if (!this.stiff) return [this.label.exact, false]
      const count = this.countBad()
      return [fill(this.label.wrong, { count, pairs: this.pairs }), count > 0]
    },
    remark(i) { return [fill(this.label.off, { value: formatNumber(this.off(i, this.m), 3) }), this.bad(i)] },
  },
}

class TurnsView extends FilmView {
  constructor(host) {
    super(host)
    Object.assign(this, { notch: 0, j: 1, leads: false })
    this.strip = new ScoreStrip(this)
    this.sides = []
  }
  makeMore() {
    const row = element('label', 'sweep', this.controls)
    this.sweepName = element('span', '', row)
    this.slider = Object.assign(element('input', '', row), { type: 'range', min: 0, step: 1 })
    this.slider.oninput = () => this.sweepTo(Number(this.slider.value))
    this.sweep = row
  }
  state() { return { m: Math.round(this.to.m), n: Math.round(this.to.n), pair: this.pair, notch: this.notch } }

  // ---------------------------------------------------------------- data and state
  changed() {
    const { meta, arrays } = this
    const { max_position: max } = meta
    this.bases = arrays.bases
    this.cursor = null
    const trained = meta.mode === 'two' ? meta.trained : 0
    this.spans = [...new Set([...LONG_SPANS, trained])].filter((s) => s && s < max).concat(max).slice(-3)
    if (meta.mode === 'base') this.speeds = BASE_SPEEDS
    else this.speeds = SPEEDS.concat([128, 256, 512, 1024, 2048, 4096, 8192, FASTEST].filter((v) => v < max / 4))
    this.pairs = Math.max(arrays.omega0.length, arrays.omega1.length)
    if (this.seen === undefined || !this.spans.includes(this.span)) this.begin()
    this.speed = Math.min(this.speed, this.speeds.length - 1)
    const fresh = this.seen === undefined
    this.adopt()
    this.notch = clamp(this.notch, 0, (this.bases?.length ?? 1) - 1)
    this.reveal()
    this.paintbox()
    this.slider.max = String((this.bases?.length ?? 1) - 1)
    this.sweep.hidden = !this.bases
    this.showControls()
    this.keys.textContent = this.label.keys
    if (fresh && !stillness()) this.play(true)
  }
  // How much of the ruler is seen at first, and how fast it is crossed: in about half a minute.
  begin() {
    const { mode, max_position: max } = this.meta
    this.span = mode === 'two' ? max : this.spans.find((s) => s >= 512) ?? max
    this.low = 0
    this.locked = mode === 'digits' && this.meta.rounded !== 'frequencies' // those err with the distance
    if (mode === 'base') this.speed = 2
    else this.speed = this.speeds.findLastIndex((v) => v <= Math.max(1, this.span / 30))
  }
  paintbox() {
    const { theme, meta } = this
    this.alarm = ALARM[theme.dark ? 'dark' : 'light']
    this.sides = meta.sides.map((_, s) => makeSide(this, s))
    for (const side of this.sides) {
      const each = (colour) => Array.from({ length: side.pairs }, (_, i) => css(colour(pairColour(theme, i, side.pairs))))
      side.ink = {
        dark: each((c) => mix(c, theme.text, 0.08)),
        light: each((c) => mix(c, theme.background, theme.dark ? 0.36 : 0.48)),
        wedge: each((c) => mix(c, theme.background, 0.78)),
        face: each((c) => mix(c, theme.background, 0.9)),
      }
      Object.assign(side, { head: new SideHead(side), grid: new SideGrid(side), one: new SidePair(side) })
    }
    this.extremes = meta.mode === 'base' ? [-0.6, 1] : null
    this.panels = [...this.sides.flatMap(({ head, grid, one }) => [head, grid, one]), this.strip, this.ruler]
    this.strip.curves = []
    this.turnTo()
    this.stale = true
  }
  turnTo() {
    if (!this.bases) return
    const side = this.sides[1]
    side.rotor.omega = this.arrays.frequencies.subarray(this.notch * side.pairs, (this.notch + 1) * side.pairs)
    side.version = this.notch
  }
  // While the base of B is swept A stands still: its three panels come first.
  movingPanels() { return this.frozen ? this.panels.slice(3) : this.panels }
  weigh() {
    const frozen = Boolean(this.bases && this.playing)
    if (frozen !== this.frozen) Object.assign(this, { frozen, stale: true })
    for (const side of this.sides) side.score = side.rotor.measure(side.m, side.n)
    this.strip.measure()
  }
  // Positions that the film moves on from one frame to the next.
  moves() { return this.playing && !this.bases ? this.speeds[this.speed] / 60 : 0 }

  // ---------------------------------------------------------------- what a person does
  paceLabel() { return this.bases ? this.label.speed_base : this.label.speed }
  showControls() {
    super.showControls()
    this.sweepName.textContent = this.label.sweep
    this.slider.value = String(this.notch)
    if (this.bases) this.slider.setAttribute('aria-valuetext', formatNumber(this.bases[this.notch], 4))
  }
  lock(on) {
    super.lock(on)
    this.stale = true
  }
  sweepTo(notch) {
    this.notch = notch
    this.cursor = null
    if (this.playing) this.play(false)
    this.turnTo()
    this.showControls()
    this.redraw()
    this.report()
  }
  // With a base to sweep, that is what plays; else the positions.
  advance(seconds) {
    if (!this.bases) {
      super.advance(seconds)
      return
    }
    const last = this.bases.length - 1
    const move = this.direction * this.speeds[this.speed] * this.meta.per_decade * seconds
    this.cursor = clamp((this.cursor ?? this.notch) + move, 0, last)
    if (this.cursor <= 0 || this.cursor >= last) this.direction = this.cursor <= 0 ? 1 : -1
    this.notch = Math.round(this.cursor)
    this.slider.value = String(this.notch)
    this.turnTo()
  }
  pose() { return { ...super.pose(), notch: this.notch, cursor: this.cursor } }
  strike(pose) {
    super.strike(pose)
    this.turnTo()
  }

  // ---------------------------------------------------------------- the picture
  layout(width) {
    const wide = width >= STACK
    this.root.classList.toggle('narrow', !wide)
    const w = wide ? Math.floor((width - 40) / 2) : width
    const foot = 100 + 96 // the chosen pair, the strip
    const tall = this.meta.height + clamp((width - 900) * 0.22, 0, 150) // larger clocks in a large window
    let y = 0
    this.sides.forEach((side, s) => {
      const x = wide ? s * (w + 40) : 0
      if (!wide && s) y += 14
      const top = wide ? 0 : y
      side.head.place({ x, y: top, w })
      const room = wide ? tall - RULER - foot - 30 - 20 : 0
      side.grid.place({ x, y: top + 28, w: w - 4, h: room })
      const below = top + 28 + (wide ? room + 8 : side.grid.height + 8)
      side.one.place({ x, y: below, w, h: 100 })
      y = below + 100
    })
    this.strip.place({ x: 0, y: y + 4, w: width, h: 96 })
    this.ruler.place({ x: 0, y: y + 100, w: width })
    this.stale = true
    return y + 100 + RULER
  }
  publish() {
    const { m, n } = this.playing || this.drag ? this : this.to
    const [a, b] = this.sides
    const state = { m, n, pair: this.pair, playing: this.playing, locked: this.locked, notch: this.notch, fps: this.fps.toFixed(1) }
    const scores = { score: a.score, other: b.score, bad: a.countBad(), worse: b.countBad() }
    const turns = { turns: a.turns(a.pair), turned: b.turns(b.pair), wraps: a.wraps(a.pair) }
    Object.assign(this.canvas.dataset, state, scores, turns, { mode: this.meta.mode })
  }
  wavelength(omega) {
    const length = TURN / Math.abs(omega) // ∞ where a pair rests
    return fill(this.label.wavelength, { value: length < 1e7 ? Math.round(length).toLocaleString('en') : formatNumber(length, 3) })
  }

  // ---------------------------------------------------------------- pointer
  hit(x, y) { return Math.max(...this.sides.map((side) => side.grid.hit(x, y))) }
  hover(x, y, near, pair) {
    this.canvas.style.cursor = near ? 'grab' : pair >= 0 ? 'pointer' : ''
    if (pair < 0) {
      this.hideTip()
      return
    }
    const lines = this.sides.filter((side) => pair < side.pairs).map((side) => {
      const turns = fill(this.label.wraps, { turns: side.turns(pair).toFixed(2), wraps: side.wraps(pair) })
      return [`${side.letter}: ${side.remark(pair)[0]} · ${turns}`, css(mix(side.colour, this.theme.text, 0.25))]
    })
    this.showTip(x, y, [fill(this.label.pair, { pair }), ...lines])
  }
}

export default mount((host) => new TurnsView(host))
