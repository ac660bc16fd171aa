// A film on a ruler of positions: play, pause, steps, speed, the visible stretch, two handles for query (m) and key
// (n), keys, frames. A view adds its panels, what they show, and what it reports; see clocks.js and turns.js.

const GRID = 2 ** 20 // moving positions are multiples of 1/GRID: m − n is exact and only R(m)q · R(n)k rounds
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64] // positions a second
const RULER = 108 // px
const STACK = 760 // narrower than this: one column
const ECHO = 10_000 // ms in which the server may repeat what it was told
const GLIDE = 180 // ms from one position to the next when it does not play
const onGrid = (x) => Math.round(x * GRID) / GRID
const stillness = () => matchMedia('(prefers-reduced-motion: reduce)').matches

class FilmView extends View {
  constructor(host) {
    super(host)
    Object.assign(this, { m: 0, n: 0, to: { m: 0, n: 0 }, i: 0, j: 0, pair: 0, low: 0, span: 64, direction: 1, speed: 2 })
    Object.assign(this, { playing: false, locked: true, visible: true, fps: 0, before: 0, frames: 0, raf: 0, sent: [] })
    Object.assign(this, { leads: true, speeds: SPEEDS, layer: document.createElement('canvas'), panels: [], ruler: new RulerPanel(this) })
    this.gif = this.saveButton('GIF', () => saveGif(this))
    this.makeControls()
    this.makeMore()
    this.keys = element('div', 'keys', this.root)
    this.root.addEventListener('keydown', (event) => event.target !== this.canvas && this.barKey(event))
    // Out of sight it costs nothing.
    this.watcher = new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting
      this.wake()
    })
    this.watcher.observe(this.canvas)
  }
  // What a view adds: rows between the picture and the line of keys, and the state that it shares with the server.
  makeMore() {}
  // The pair at a point of the picture, or −1; what depends on the visible stretch is out of date.
  hit() { return -1 }
  forget() {}
  state() { return { m: Math.round(this.to.m), n: Math.round(this.to.n), pair: this.pair } }
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
  paceLabel() { return this.label.speed }
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
    name(this.gif, `${label.save} GIF`)
    this.pace.textContent = fill(this.paceLabel(), { value: this.speeds[this.speed] })
    this.ranges.ariaLabel = label.range
    this.ranges.hidden = this.spans.length < 2
    const key = `${label.range} ${this.spans}`
    if (key !== this.ranges.dataset.key) this.makeRanges(key)
    for (const node of this.ranges.querySelectorAll('button')) node.ariaPressed = String(Number(node.value) === this.span)
  }
  makeRanges(key) {
    this.ranges.dataset.key = key
    this.ranges.replaceChildren()
    if (this.leads) element('span', 'lead', this.ranges).textContent = this.label.range
    for (const span of this.spans) {
      const node = this.makeButton(this.ranges, () => this.setSpan(span), String(span))
      node.value = String(span)
      node.ariaLabel = node.title = `${this.label.range} ${span}`
    }
  }
  // ---------------------------------------------------------------- data and state
  // Take positions from the server only when they are news: neither what it said last time nor an echo.
  adopt() {
    const { max_position: max } = this.meta
    const news = Object.fromEntries(Object.keys(this.state()).map((name) => [name, this.meta[name]]))
    const incoming = JSON.stringify(news)
    this.sent = this.sent.filter(({ time }) => performance.now() - time < ECHO)
    const echo = this.sent.findIndex(({ text }) => text === incoming)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (incoming !== this.seen) {
      Object.assign(this, news, { to: { m: news.m, n: news.n } })
      this.glide = null
    }
    this.seen = this.told = incoming
    this.pair = Math.min(this.pair, this.pairs - 1)
    for (const role of ['m', 'n']) {
      this[role] = Math.min(this[role], max)
      this.to[role] = Math.min(this.to[role], max)
    }
  }
  // Tell the server when a change has ended.
  report() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      const state = this.state()
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
    this.speed = clamp(this.speed + by, 0, this.speeds.length - 1)
    this.showControls()
  }
  step(by, both = this.locked) {
    const { m, n } = this.playing ? { m: Math.round(this.m), n: Math.round(this.n) } : this.to
    const max = this.meta.max_position
    const move = both ? clamp(by, -Math.min(m, n), max - Math.max(m, n)) : clamp(by, -m, max - m)
    this.take(m + move, both ? n + move : n)
  }
  stepKey(by) {
    const rest = this.playing ? { m: Math.round(this.m), n: Math.round(this.n) } : this.to
    this.take(rest.m, clamp(rest.n + by, 0, this.meta.max_position))
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
    this.forget()
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
    this.forget()
    this.stale = true
    this.showControls()
  }
  // ---------------------------------------------------------------- time
  wake() {
    if (this.raf || !this.visible || this.recording) return
    this.before = this.counted = performance.now()
    this.frames = 0
    this.raf = requestAnimationFrame((now) => this.frame(now))
  }
  frame(now) {
    this.raf = 0
    if (this.recording) return
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
    const move = this.direction * this.speeds[this.speed] * seconds * clamp(margin, 0.1, 1)
    const m = clamp(onGrid(this.m + move), from, Math.max(from, to))
    if (m <= from || m >= to) this.direction = m <= from ? 1 : -1
    if (this.locked) this.n = m - distance
    this.m = m
    this.to = { m: Math.round(m), n: Math.round(this.n) }
  }
  // Everything that moves, kept and put back: a film can be drawn ahead of its time (gif.js).
  pose() {
    const { m, n, to, direction, playing, glide, start } = this
    return { m, n, to: { ...to }, direction, playing, glide, start }
  }
  strike(pose) { Object.assign(this, pose, { to: { ...pose.to }, start: pose.start && { ...pose.start } }) }
  settle(now) {
    const t = clamp((now - this.glide.time) / GLIDE, 0, 1)
    const between = (role) => onGrid(this.glide[role] + (this.to[role] - this.glide[role]) * smooth(t))
    const together = this.glide.m - this.glide.n === this.to.m - this.to.n
    this.m = between('m')
    this.n = together ? this.m - (this.to.m - this.to.n) : between('n')
    if (t === 1) this.glide = null
  }

  // ---------------------------------------------------------------- the picture
  // On screen the still layer is copied and only hands, bars, numbers and handles are drawn; a saved picture is drawn whole.
  draw(ctx, width, height) {
    this.weigh()
    const { panels } = this
    if (ctx === this.ctx) {
      if (this.stale) this.renew(panels, width, height)
      ctx.drawImage(this.layer, 0, 0, width, height)
    } else for (const panel of panels) panel.still(ctx)
    const moving = ctx === this.ctx ? this.movingPanels() : panels
    for (const panel of moving) panel.moving(ctx)
    if (ctx === this.ctx) this.publish()
  }
  renew(panels, width, height) {
    const { layer, ratio } = this
    ;[layer.width, layer.height] = [Math.round(width * ratio), Math.round(height * ratio)]
    const ctx = layer.getContext('2d')
    ctx.scale(ratio, ratio)
    const moving = this.movingPanels()
    for (const panel of panels) {
      panel.still(ctx)
      if (!moving.includes(panel)) panel.moving(ctx)
    }
    this.stale = false
  }
  // Those that change from frame to frame; the others are part of the still layer.
  movingPanels() { return this.panels }
  // A position as text: whole at rest, with one decimal on the move.
  shown(position) { return this.playing || this.drag || this.glide ? position.toFixed(1) : String(Math.round(position)) }

  // ---------------------------------------------------------------- pointer and keys
  pointer(kind, x, y, event) {
    if (!this.width) return
    const near = this.ruler.near(y)
    const pair = near ? -1 : this.hit(x, y)
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
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const actions = {
      ' ': () => this.play(!this.playing),
      ArrowLeft: () => this.step(-1, event.shiftKey),
      ArrowRight: () => this.step(1, event.shiftKey),
      ',': () => this.stepKey(-1),
      '.': () => this.stepKey(1),
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
