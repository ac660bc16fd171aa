// needs parts/rotor.js, parts/clock_panels.js, parts/score_panels.js
// The Rotation page: one clock per RoPE pair, the chosen pair large, every pair's part of the score, the score
// against distance, and a ruler on which the query (m) and the key (n) move. All of it is computed here, in
// doubles, for every frame. What does not move is drawn once into a still layer; see draw().

const GRID = 2 ** 20 // moving positions are multiples of 1/GRID: m − n is exact and only R(m)q · R(n)k rounds
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64] // positions a second
const RULER = 108 // px
const STACK = 760 // narrower than this: one column
const ECHO = 10_000 // ms in which the server may repeat what it was told
const GLIDE = 180 // ms from one position to the next when it does not play
const onGrid = (x) => Math.round(x * GRID) / GRID
const stillness = () => matchMedia('(prefers-reduced-motion: reduce)').matches

class ClocksView extends View {
  constructor(host) {
    super(host)
    Object.assign(this, { m: 0, n: 0, to: { m: 0, n: 0 }, i: 0, j: 0, pair: 0, low: 0, span: 64, direction: 1, speed: 2 })
    Object.assign(this, { playing: false, locked: true, visible: true, fps: 0, before: 0, frames: 0, raf: 0, sent: [] })
    this.layer = document.createElement('canvas')
    Object.assign(this, { grid: new ClockGrid(this), chosen: new ChosenPair(this), sum: new ScorePanel(this), ruler: new RulerPanel(this) })
    this.makeControls()
    this.tokens = element('div', 'tokens', this.root)
    this.keys = element('div', 'keys', this.root)
    this.root.addEventListener('keydown', (event) => event.target !== this.canvas && this.barKey(event))
    // Out of sight it costs nothing.
    this.watcher = new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting
      this.wake()
    })
    this.watcher.observe(this.canvas)
  }
  destroy() {
    super.destroy()
    cancelAnimationFrame(this.raf)
    clearTimeout(this.timer)
    this.watcher.disconnect()
    this.visible = false
  }

  // ---------------------------------------------------------------- controls
  makeControls() {
    const button = (parent, action, text = '') => {
      const node = element('button', '', parent)
      node.type = 'button'
      node.textContent = text
      node.onclick = (event) => {
        action()
        this.backToCanvas(event)
      }
      return node
    }
    const group = () => element('span', 'segments', this.controls)
    this.playButton = button(this.controls, () => this.play(!this.playing))
    this.playButton.className = 'play'
    this.lockButton = button(this.controls, () => this.lock(!this.locked))
    const steps = group()
    this.backButton = button(steps, () => this.step(-1), '−1')
    this.nextButton = button(steps, () => this.step(1), '+1')
    const speeds = group()
    this.slower = button(speeds, () => this.hurry(-1), '−')
    this.pace = element('output', 'pace', speeds)
    this.faster = button(speeds, () => this.hurry(1), '+')
    this.ranges = group()
    this.ranges.setAttribute('role', 'group')
    this.makeButton = button
  }
  // After a click with the mouse the keys belong to the picture again: the space bar always stops the film.
  backToCanvas(event) {
    if (event.detail) this.canvas.focus({ preventScroll: true })
  }
  showControls() {
    const { label } = this
    const name = (node, text) => (node.ariaLabel = node.title = text)
    this.playButton.textContent = this.playing ? label.pause : label.play
    this.lockButton.textContent = label.lock
    this.lockButton.ariaPressed = String(this.locked)
    name(this.backButton, label.back)
    name(this.nextButton, label.forward)
    name(this.slower, label.slower)
    name(this.faster, label.faster)
    this.pace.textContent = fill(label.speed, { value: SPEEDS[this.speed] })
    this.ranges.ariaLabel = label.range
    this.ranges.hidden = this.spans.length < 2
    const key = `${label.range} ${this.spans}`
    if (key !== this.ranges.dataset.key) this.makeRanges(key)
    for (const node of this.ranges.querySelectorAll('button')) node.ariaPressed = String(Number(node.value) === this.span)
  }
  makeRanges(key) {
    this.ranges.dataset.key = key
    this.ranges.replaceChildren()
    element('span', 'lead', this.ranges).textContent = this.label.range
    for (const span of this.spans) {
      const node = this.makeButton(this.ranges, () => this.setSpan(span), String(span))
      node.value = String(span)
      node.ariaLabel = node.title = `${this.label.range} ${span}`
    }
  }
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
  // Take positions from the server only when they are news: neither what it said last time nor an echo.
  adopt() {
    const { m, n, i, j, pair, max_position: max, tokens } = this.meta
    const incoming = JSON.stringify({ m, n, i, j, pair })
    this.sent = this.sent.filter(({ time }) => performance.now() - time < ECHO)
    const echo = this.sent.findIndex(({ text }) => text === incoming)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (incoming !== this.seen) {
      Object.assign(this, { m, n, i, j, pair, to: { m, n } })
      this.glide = null
    }
    this.seen = this.told = incoming
    this.pair = Math.min(this.pair, this.pairs - 1)
    for (const role of ['i', 'j']) this[role] = Math.min(this[role], tokens.length - 1)
    for (const role of ['m', 'n']) {
      this[role] = Math.min(this[role], max)
      this.to[role] = Math.min(this.to[role], max)
    }
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
  }
  // Tell the server when a change has ended.
  report() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      const state = { m: Math.round(this.to.m), n: Math.round(this.to.n), i: this.i, j: this.j, pair: this.pair }
      const text = JSON.stringify(state)
      if (text === this.told) return
      this.told = text
      this.sent.push({ text, time: performance.now() })
      this.send('state', state)
    }, 200)
  }

  // ---------------------------------------------------------------- what a person does
  play(on) {
    this.playing = on
    if (on) this.reveal()
    else this.go(Math.round(this.m), Math.round(this.m) - Math.round(this.m - this.n))
    this.showControls()
    this.wake()
  }
  lock(on) {
    this.locked = on
    if (on) this.m = this.n + Math.round(this.m - this.n) // whole distances only
    if (this.playing) this.reveal()
    this.showControls()
    this.redraw()
  }
  hurry(by) {
    this.speed = clamp(this.speed + by, 0, SPEEDS.length - 1)
    this.showControls()
  }
  step(by, both = this.locked) {
    const { m, n } = this.playing ? { m: Math.round(this.m), n: Math.round(this.n) } : this.to
    const max = this.meta.max_position
    const move = both ? clamp(by, -Math.min(m, n), max - Math.max(m, n)) : clamp(by, -m, max - m)
    this.take(m + move, both ? n + move : n)
  }
  // A person puts the positions: the film stops.
  take(m, n) {
    if (this.playing) {
      this.playing = false
      this.showControls()
    }
    this.go(m, n)
  }
  go(m, n) {
    const max = this.meta.max_position
    // Both ends inside the ruler without changing their distance where that is possible.
    const shift = Math.max(0, -Math.min(m, n)) - Math.max(0, Math.max(m, n) - max)
    this.to = { m: clamp(m + shift, 0, max), n: clamp(n + shift, 0, max) }
    this.reveal(this.to)
    this.glide = { m: this.m, n: this.n, time: performance.now() }
    if (stillness()) this.glide.time = -Infinity
    this.report()
    this.wake()
  }
  choose(role, index) {
    this[role] = index
    this.aim()
    const { position } = this.meta.tokens[index]
    const rest = this.playing ? { m: Math.round(this.m), n: Math.round(this.n) } : this.to
    if (role === 'i') this.take(position, rest.n)
    else this.take(rest.m, position)
  }
  select(pair) {
    this.pair = clamp(pair, 0, this.pairs - 1)
    this.stale = true
    this.redraw()
    this.report()
  }
  setSpan(span) {
    this.span = span
    this.low = 0
    this.reveal()
    this.sum.curve = null
    this.stale = true
    this.showControls()
    this.redraw()
  }
  // Move or widen the visible stretch of the ruler until both positions are on it.
  reveal({ m, n } = this) {
    const [from, to, before] = [Math.min(m, n), Math.max(m, n), `${this.low} ${this.span}`]
    while (to - from > this.span) this.span = this.spans[this.spans.indexOf(this.span) + 1]
    if (from < this.low || to > this.low + this.span) this.low = to <= this.span ? 0 : Math.round((from + to - this.span) / 2)
    this.low = clamp(this.low, 0, this.meta.max_position - this.span)
    if (before === `${this.low} ${this.span}`) return
    this.sum.curve = null
    this.stale = true
    this.showControls()
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

  // ---------------------------------------------------------------- time
  wake() {
    if (this.raf || !this.visible) return
    this.before = this.counted = performance.now()
    this.frames = 0
    this.raf = requestAnimationFrame((now) => this.frame(now))
  }
  frame(now) {
    this.raf = 0
    const seconds = clamp((now - this.before) / 1000, 0, 0.1)
    this.before = now
    if (this.playing) this.advance(seconds)
    else if (this.glide) this.settle(now)
    this.paint()
    this.count(now)
    if (this.visible && (this.playing || this.glide || this.slide)) this.raf = requestAnimationFrame((next) => this.frame(next))
  }
  // Frames a second, over about the last second.
  count(now) {
    this.frames++
    if (now - this.counted < 1000) return
    this.fps = (this.frames * 1000) / (now - this.counted)
    Object.assign(this, { frames: 0, counted: now })
  }
  // Along the visible ruler and back again, slowing down before each turn.
  advance(seconds) {
    const distance = this.locked ? this.m - this.n : 0
    const [from, to] = [this.low + Math.max(0, distance), this.low + this.span + Math.min(0, distance)]
    const margin = Math.min(this.m - from, to - this.m) / Math.max(1, (to - from) * 0.03)
    const move = this.direction * SPEEDS[this.speed] * seconds * clamp(margin, 0.1, 1)
    const m = clamp(onGrid(this.m + move), from, Math.max(from, to))
    if (m <= from || m >= to) this.direction = m <= from ? 1 : -1
    if (this.locked) this.n = m - distance
    this.m = m
    this.to = { m: Math.round(m), n: Math.round(this.n) }
  }
  settle(now) {
    const t = clamp((now - this.glide.time) / GLIDE, 0, 1)
    const between = (role) => onGrid(this.glide[role] + (this.to[role] - this.glide[role]) * smooth(t))
    const together = this.glide.m - this.glide.n === this.to.m - this.to.n
    this.m = between('m')
    this.n = together ? this.m - (this.to.m - this.to.n) : between('n')
    if (t === 1) this.glide = null
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
  // On screen the still layer is copied and only hands, bars, numbers and handles are drawn; a saved picture is drawn whole.
  draw(ctx, width, height) {
    this.weigh()
    if (!this.sum.curve) this.sum.measure()
    const panels = [this.grid, this.chosen, this.sum, this.ruler]
    if (ctx === this.ctx) {
      if (this.stale) this.renew(panels, width, height)
      ctx.drawImage(this.layer, 0, 0, width, height)
    } else for (const panel of panels) panel.still(ctx)
    for (const panel of panels) panel.moving(ctx)
    if (ctx === this.ctx) this.publish()
  }
  renew(panels, width, height) {
    const { layer, ratio } = this
    ;[layer.width, layer.height] = [Math.round(width * ratio), Math.round(height * ratio)]
    const ctx = layer.getContext('2d')
    ctx.scale(ratio, ratio)
    for (const panel of panels) panel.still(ctx)
    this.stale = false
  }
  publish() {
    const { m, n } = this.playing || this.drag ? this : this.to
    const { score, pair, playing, locked, i, j } = this
    const state = { m, n, score, pair, playing, locked, i, j, drift: this.start.drift ?? '', fps: this.fps.toFixed(1) }
    Object.assign(this.canvas.dataset, state)
  }
  // A position as text: whole at rest, with one decimal on the move.
  shown(position) { return this.playing || this.drag || this.glide ? position.toFixed(1) : String(Math.round(position)) }
  wavelength(pair) {
    const omega = Math.abs(this.arrays.omega[pair])
    return fill(this.label.wavelength, { value: omega ? formatNumber(TURN / omega, 3) : '∞' })
  }

  // ---------------------------------------------------------------- pointer and keys
  pointer(kind, x, y, event) {
    if (!this.width) return
    const near = this.ruler.near(y)
    const pair = near ? -1 : Math.max(this.grid.hit(x, y), this.sum.hit(x, y))
    if (kind === 'down' && near && event.button === 0) this.grab(x, event)
    else if (kind === 'move' && this.drag) this.pull(x)
    else if (kind === 'up' && this.drag) this.release()
    else if (kind === 'click' && pair >= 0) this.select(pair)
    else if (kind === 'move') this.hover(x, y, near, pair)
    else if (kind === 'leave') this.hideTip()
  }
  // The nearer handle comes to the pointer; taken by itself it keeps its offset.
  grab(x, event) {
    this.canvas.setPointerCapture(event.pointerId)
    const [dm, dn] = [Math.abs(x - this.ruler.at(this.m)), Math.abs(x - this.ruler.at(this.n))]
    Object.assign(this, { playing: false, glide: null, drag: dm <= dn ? 'm' : 'n' })
    this.offset = Math.min(dm, dn) < 16 ? this.ruler.at(this[this.drag]) - x : 0
    this.showControls()
    this.hideTip()
    this.pull(x)
  }
  pull(x) {
    const [held, other] = this.drag === 'm' ? ['m', 'n'] : ['n', 'm']
    const lead = this.locked ? this[other] - this[held] : 0
    const [from, to] = [this.low + Math.max(0, -lead), this.low + this.span - Math.max(0, lead)]
    this[held] = clamp(onGrid(this.ruler.position(x + this.offset)), from, Math.max(from, to))
    if (this.locked) this[other] = this[held] + lead
    this.redraw()
  }
  release() {
    this.drag = null
    const m = Math.round(this.m)
    this.go(m, this.locked ? m - Math.round(this.m - this.n) : Math.round(this.n))
  }
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
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const actions = {
      ' ': () => this.play(!this.playing),
      ArrowLeft: () => this.step(-1, event.shiftKey),
      ArrowRight: () => this.step(1, event.shiftKey),
      ArrowUp: () => this.select(this.pair - 1),
      ArrowDown: () => this.select(this.pair + 1),
      '[': () => this.hurry(-1),
      ']': () => this.hurry(1),
    }
    if (!Object.hasOwn(actions, event.key)) return false
    actions[event.key]()
    return true
  }
  // The film stops with one key wherever the focus is inside; buttons keep their own space bar.
  barKey(event) {
    if (event.key !== ' ' || event.target.tagName === 'BUTTON') return
    event.preventDefault()
    this.play(!this.playing)
  }
}

export default mount((host) => new ClocksView(host))
