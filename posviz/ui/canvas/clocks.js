// needs parts/rotor.js, parts/gif.js, parts/ruler.js, parts/film.js, parts/clock_panels.js, parts/score_panels.js
// The Rotation page: one clock per RoPE pair, the chosen pair large, every pair's part of the score, the score
// against distance, and a ruler on which the query (m) and the key (n) move. All of it is computed here, in
// doubles, for every frame. What does not move is drawn once into a still layer; see film.js.

class ClocksView extends FilmView {
  constructor(host) {
    super(host)
    Object.assign(this, { grid: new ClockGrid(this), chosen: new ChosenPair(this), sum: new ScorePanel(this) })
    this.panels = [this.grid, this.chosen, this.sum, this.ruler]
  }
  makeMore() { this.tokens = element('div', 'tokens', this.root) }
  state() {
    const { m, n } = this.to
    return { m: Math.round(m), n: Math.round(n), i: this.i, j: this.j, pair: this.pair }
  }

  // ---------------------------------------------------------------- controls
  // One radio button per token and role: the browser brings arrows and a single tab stop.
  showTokens() {
    const { tokens } = this.meta
    const key = JSON.stringify([tokens, this.label.query, this.label.key])
    if (key !== this.tokensKey) {
      this.tokensKey = key
      this.tokens.replaceChildren()
      for (const role of ['i', 'j']) this.fillRole(role, tokens)
    }
    for (const input of this.tokens.querySelectorAll('input')) {
      input.checked = this[input.name] === Number(input.value)
      if (input.checked) requestAnimationFrame(() => this.bringInSight(input.parentElement))
    }
  }
  // Scrolls the row of chips only, never the page.
  bringInSight(chip) {
    const row = chip.parentElement
    const hidden = chip.offsetLeft < row.scrollLeft || chip.offsetLeft + chip.offsetWidth > row.scrollLeft + row.clientWidth
    if (hidden) row.scrollLeft = chip.offsetLeft - (row.clientWidth - chip.offsetWidth) / 2
  }
  fillRole(role, tokens) {
    const row = element('div', 'role', this.tokens)
    const title = element('span', '', row)
    title.textContent = role === 'i' ? this.label.query : this.label.key
    const list = element('div', 'chips', row)
    list.setAttribute('role', 'radiogroup')
    list.ariaLabel = title.textContent
    tokens.forEach((token, index) => {
      const chip = element('label', `chip ${token.sentence === 'B' ? 'b' : 'a'}`, list)
      const input = element('input', '', chip)
      Object.assign(input, { type: 'radio', name: role, value: String(index) })
      input.onchange = () => this.choose(role, index)
      input.onclick = (event) => this.backToCanvas(event)
      const text = element('span', '', chip)
      text.dir = 'auto'
      text.textContent = chip.title = token.label
    })
  }

  // ---------------------------------------------------------------- data and state
  changed() {
    const { meta, arrays } = this
    this.pairs = arrays.omega.length
    this.spans = [64, 512].filter((s) => s < meta.max_position).concat(meta.max_position)
    const order = Array.from({ length: meta.d_head }, (_, d) => pairOfDim(d, this.pairs, meta.pairing))
    if (this.order && order.length === this.order.length && String(order) !== String(this.order)) this.shuffle(this.order)
    this.order = order
    const first = this.seen === undefined
    if (first) this.span = this.spans[0]
    this.adopt()
    if (!this.spans.includes(this.span)) this.span = this.spans[0]
    this.reveal()
    this.paintbox()
    this.aim()
    this.showControls()
    this.showTokens()
    this.keys.textContent = this.label.keys
    if (first && !stillness()) this.play(true)
  }
  adopt() {
    super.adopt()
    for (const role of ['i', 'j']) this[role] = Math.min(this[role], this.meta.tokens.length - 1)
  }
  // Colours as strings, once per theme instead of once per hand and frame.
  paintbox() {
    const { theme } = this
    const each = (colour) => Array.from({ length: this.pairs }, (_, i) => css(colour(pairColour(theme, i, this.pairs))))
    this.ink = {
      dark: each((c) => mix(c, theme.text, 0.08)),
      light: each((c) => mix(c, theme.background, theme.dark ? 0.36 : 0.48)),
      wedge: each((c) => mix(c, theme.background, 0.78)),
      rest: css(theme.content),
    }
    for (const name of ['a', 'b']) this.root.style.setProperty(`--${name}`, css(theme[name]))
    this.stale = true
  }
  // A new query or key vector.
  aim() {
    const { q, k, omega } = this.arrays
    const d = this.meta.d_head
    const [qv, kv] = [q.subarray(this.i * d, (this.i + 1) * d), k.subarray(this.j * d, (this.j + 1) * d)]
    this.rotor = new Rotor(qv, kv, omega, this.meta.pairing, this.meta.scale)
    this.start = null
    this.sum.curve = null
    this.stale = true
  }
  // The score now, and how far it has strayed since m − n last changed.
  weigh() {
    const { m, n } = this
    this.score = this.rotor.measure(m, n)
    if (!this.start || this.start.distance !== m - n) this.start = { distance: m - n, score: this.score, m, drift: null }
    if (m !== this.start.m) this.start.drift = Math.max(this.start.drift ?? 0, Math.abs(this.score - this.start.score))
    if (!this.sum.curve) this.sum.measure()
  }
  forget() { this.sum.curve = null }

  // ---------------------------------------------------------------- what a person does
  choose(role, index) {
    this[role] = index
    this.aim()
    const { position } = this.meta.tokens[index]
    const rest = this.playing ? { m: Math.round(this.m), n: Math.round(this.n) } : this.to
    if (role === 'i') this.take(position, rest.n)
    else this.take(rest.m, position)
  }
  // Each cell of the new order starts where the same vector component stood in the old one.
  shuffle(old) {
    const { pairing } = this.meta
    const from = old.map((_, d) => {
      const pair = pairOfDim(d, this.pairs, pairing)
      if (pair < 0) return d
      return pairDims(pair, this.pairs, pairing)[0] === d ? old.indexOf(pair) : old.lastIndexOf(pair)
    })
    if (stillness() || from.includes(-1)) return
    this.slide = { time: performance.now(), from }
    this.wake()
  }

  // ---------------------------------------------------------------- the picture
  layout(width) {
    const wide = width >= STACK
    this.root.classList.toggle('narrow', !wide)
    const left = wide ? Math.floor(width * 0.53) - 20 : width
    const x = wide ? left + 36 : 0
    const upper = this.meta.height - RULER
    this.grid.place({ y: width < 440 ? 60 : 36, w: left, h: wide ? upper - 52 : 0 })
    const y = wide ? 0 : this.grid.y + this.grid.height + 12
    this.chosen.place({ x, y, w: width - x })
    const top = y + this.chosen.height + 12
    const bottom = wide ? upper : top + (width < 440 ? 470 : 310)
    this.sum.place({ x, y: top, w: width - x, h: bottom - top })
    this.ruler.place({ x: 0, y: bottom, w: width })
    this.stale = true
    return bottom + RULER
  }
  publish() {
    const { m, n } = this.playing || this.drag ? this : this.to
    const { score, pair, playing, locked, i, j } = this
    const state = { m, n, score, pair, playing, locked, i, j, drift: this.start.drift ?? '', fps: this.fps.toFixed(1) }
    Object.assign(this.canvas.dataset, state)
  }
  wavelength(pair) {
    const omega = Math.abs(this.arrays.omega[pair])
    return fill(this.label.wavelength, { value: omega ? formatNumber(TURN / omega, 3) : '∞' })
  }


  // ---------------------------------------------------------------- pointer
  hit(x, y) { return Math.max(this.grid.hit(x, y), this.sum.hit(x, y)) }
  hover(x, y, near, pair) {
    this.canvas.style.cursor = near ? 'grab' : pair >= 0 ? 'pointer' : ''
    const distance = this.sum.distanceAt(x, y)
    if (pair >= 0) this.tipPair(x, y, pair)
    else if (!near && distance !== null) this.tipDistance(x, y, distance)
    else this.hideTip()
  }
  tipPair(x, y, pair) {
    const { label, meta } = this
    const [a, b] = this.rotor.dims[pair]
    const title = fill(label.pair_title, { pair, theta: formatNumber(this.arrays.omega[pair]) })
    this.showTip(x, y, [title, this.wavelength(pair), fill(label.dims, { a, b, d: meta.d_head })])
  }
  tipDistance(x, y, distance) {
    const value = minus(this.rotor.kernel(distance, 1, 1).values[0].toFixed(this.decimals))
    this.showTip(x, y, [[`m − n = ${minus(distance)}`, css(this.theme.positionText)], `${this.label.score} = ${value}`])
  }
}

export default mount((host) => new ClocksView(host))
