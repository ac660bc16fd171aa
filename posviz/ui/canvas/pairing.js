// needs parts/rotor.js, parts/gif.js, parts/clock_panels.js
// The two pairings: one head's dimensions in both memory orders with a line for each from where it is to where it
// goes, and below, for either order, which dimension `rot` takes and with which sign. Data: see pairing.py.

const ROW = 30 // px, height of a row of cells
const GOING = 2 // seconds from one order to the other
const RESTING = 0.6
const ROUND = 2 * (GOING + RESTING)
const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches

class PairingView extends View {
  constructor(host) {
    super(host)
    Object.assign(this, { pair: 0, time: 0, playing: false, raf: 0, recording: false, stale: true })
    this.gif = this.saveButton('GIF', () => saveGif(this))
    this.playButton = element('button', 'play', this.controls)
    Object.assign(this.playButton, { type: 'button', onclick: () => this.play(!this.playing) })
    const row = element('label', 'sweep', this.controls)
    this.sliderName = element('span', '', row)
    this.slider = Object.assign(element('input', '', row), { type: 'range', min: 0, max: 100, step: 1, value: 0 })
    this.slider.oninput = () => this.scrub(Number(this.slider.value) / 100)
    this.keys = element('div', 'keys', this.root)
    this.root.addEventListener('keydown', (event) => event.target !== this.canvas && this.barKey(event))
  }
  destroy() {
    super.destroy()
    cancelAnimationFrame(this.raf)
    this.playing = false
  }
  // ---------------------------------------------------------------- data and state
  changed() {
    const { meta, arrays } = this
    const first = this.pairs === undefined
    this.pairs = arrays.interleaved.length / 2
    this.d = arrays.x.length
    if (this.told !== meta.pair) this.pair = this.told = meta.pair
    // where each dimension of the interleaved order goes; what does not turn stays
    this.goes = Array.from({ length: this.d }, (_, i) => i)
    arrays.permutation.forEach((from, to) => (this.goes[from] = to))
    this.owner = new Int32Array(this.d).fill(-1)
    for (let i = 0; i < 2 * this.pairs; i++) this.owner[arrays.interleaved[i]] = i >> 1
    this.colours = Array.from({ length: this.pairs }, (_, i) => pairColour(this.theme, i, this.pairs))
    this.showControls()
    this.keys.textContent = this.label.keys
    if (first && !still()) this.play(true)
  }
  showControls() {
    const { label } = this
    this.playButton.textContent = this.playing ? label.pause : label.play
    this.sliderName.textContent = label.way
    this.gif.title = this.gif.ariaLabel = `${label.save} GIF`
  }
  // How far the dimensions have gone from the upper row (0) to the lower (1).
  way() {
    const t = this.time % ROUND
    if (t < GOING) return smooth(t / GOING)
    if (t < GOING + RESTING) return 1
    return t < 2 * GOING + RESTING ? 1 - smooth((t - GOING - RESTING) / GOING) : 0
  }
  play(on) {
    this.playing = on
    this.before = performance.now()
    this.showControls()
    this.redraw()
    this.wake()
  }
  scrub(way) {
    this.playing = false
    // the time at which smooth(t) is this far, by halving
    let [low, high] = [0, 1]
    for (let i = 0; i < 30; i++) smooth((low + high) / 2) < way ? (low = (low + high) / 2) : (high = (low + high) / 2)
    this.time = way >= 1 ? GOING : low * GOING
    this.showControls()
    this.redraw()
  }
  select(pair) {
    this.pair = clamp(pair, 0, this.pairs - 1)
    this.redraw()
    this.told = this.pair
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.send('state', { pair: this.pair }), 200)
  }
  wake() {
    if (!this.playing || this.raf || this.recording) return
    this.raf = requestAnimationFrame((now) => {
      this.raf = 0
      if (!this.playing || this.recording) return
      this.advance(clamp((now - this.before) / 1000, 0, 0.1))
      this.before = now
      this.paint()
      this.wake()
    })
  }
  advance(seconds) {
    this.time += seconds
    this.slider.value = String(Math.round(100 * this.way()))
  }
  pose() { return { time: this.time, playing: this.playing } }
  strike(pose) { Object.assign(this, pose) }

  // ---------------------------------------------------------------- the picture
  layout(width) {
    this.wide = width >= 760
    this.root.classList.toggle('narrow', !this.wide)
    const half = this.wide ? Math.floor((width - 48) / 2) : width
    const upper = { x: 0, y: 34, w: width, gap: 104 }
    const top = upper.y + 2 * ROW + upper.gap + 52
    const block = 3 * ROW + 150
    const boxes = [0, 1].map((s) => ({ x: this.wide ? s * (half + 48) : 0, y: top + (this.wide ? 0 : s * block), w: half, gap: 66 }))
    Object.assign(this, { upper, boxes })
    return top + (this.wide ? block : 2 * block) - 6
  }
  cell(box, i) { return box.x + (i * box.w) / this.d }
  draw(ctx) {
    this.order(ctx)
    this.boxes.forEach((box, s) => this.rot(ctx, box, s ? 'half' : 'interleaved'))
    if (ctx === this.ctx) Object.assign(this.canvas.dataset, { way: this.way().toFixed(3), pair: this.pair, playing: this.playing, goes: this.goes[2 * this.pair + 1] })
  }
  row(ctx, box, y, names, ownerOf) {
    const size = box.w / this.d
    for (let i = 0; i < this.d; i++) this.square(ctx, this.cell(box, i), y, size, names(i), ownerOf(i))
  }
  square(ctx, x, y, size, name, owner) {
    const { theme } = this
    const colour = owner < 0 ? theme.content : this.colours[owner]
    const chosen = owner === this.pair
    const fillColour = mix(colour, theme.background, chosen ? 0.1 : 0.55)
    ctx.fillStyle = css(fillColour)
    ctx.fillRect(x, y, size - (size > 5 ? 1 : 0), ROW)
    if (chosen) {
      ctx.strokeStyle = css(theme.text)
      ctx.lineWidth = 2
      ctx.strokeRect(x, y, size - (size > 5 ? 1 : 0), ROW)
    }
    if (size >= 20) this.write(ctx, name, x + size / 2, y + ROW / 2, { align: 'center', colour: inkOn(fillColour, theme), size: size >= 30 ? 14 : 12 })
  }
  link(ctx, x0, y0, x1, y1, owner) {
    const chosen = owner === this.pair
    const colour = owner < 0 ? this.theme.content : this.colours[owner]
    ctx.strokeStyle = css(mix(colour, this.theme.background, chosen ? 0 : 0.45))
    ctx.lineWidth = chosen ? 3 : 1.25
    ctx.beginPath()
    ctx.moveTo(x0, y0)
    ctx.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1)
    ctx.stroke()
  }
  // The chosen pair's links last, on top.
  each(action) {
    const order = Array.from({ length: this.d }, (_, i) => i)
    for (const i of order.filter((i) => this.owner[i] !== this.pair)) action(i)
    for (const i of order.filter((i) => this.owner[i] === this.pair)) action(i)
  }
  order(ctx) {
    const { upper, label, theme, d } = this
    const [top, bottom] = [upper.y, upper.y + ROW + upper.gap]
    const middle = upper.w / d / 2
    const quiet = { size: 15, colour: theme.quiet }
    this.write(ctx, label.interleaved, 0, top - 16, quiet)
    this.write(ctx, label.half, 0, bottom + ROW + 18, quiet)
    const [a, b] = [2 * this.pair, 2 * this.pair + 1]
    const said = fill(label.goes, { a, b, to_a: this.goes[a], to_b: this.goes[b] })
    this.write(ctx, said, upper.w, top - 16, { size: 16, weight: 'bold', align: 'right', max: upper.w * 0.6 })
    this.each((i) => this.link(ctx, this.cell(upper, i) + middle, top + ROW, this.cell(upper, this.goes[i]) + middle, bottom, this.owner[i]))
    ctx.globalAlpha = 0.35
    this.row(ctx, upper, top, String, (i) => this.owner[i])
    ctx.globalAlpha = 1
    for (let i = 0; i < d; i++) {
      ctx.strokeStyle = css(theme.line)
      ctx.lineWidth = 1
      ctx.strokeRect(this.cell(upper, i), bottom, upper.w / d - 1, ROW)
    }
    const way = this.way()
    this.each((i) => {
      const x = this.cell(upper, i) + (this.cell(upper, this.goes[i]) - this.cell(upper, i)) * way
      this.square(ctx, x, top + (bottom - top) * way, upper.w / d, String(i), this.owner[i])
    })
  }
  // in: x; out: what `rot` puts in each place, −x_b where x_a was and x_a where x_b was.
  rot(ctx, box, pairing) {
    const { theme, label, arrays, d } = this
    const dims = arrays[pairing]
    const [top, bottom] = [box.y + 24, box.y + 24 + ROW + box.gap]
    const middle = box.w / d / 2
    const owner = new Int32Array(d).fill(-1)
    const from = Array.from({ length: d }, (_, i) => i)
    const sign = new Int8Array(d)
    for (let i = 0; i < this.pairs; i++) {
      const [a, b] = [dims[2 * i], dims[2 * i + 1]]
      owner[a] = owner[b] = i
      ;[from[a], from[b], sign[a], sign[b]] = [b, a, -1, 1]
    }
    this.write(ctx, fill(label.rot, { name: label[pairing] }), box.x, box.y + 8, { size: 15, colour: theme.quiet, max: box.w })
    const own = this.owner
    this.owner = owner
    this.each((i) => this.link(ctx, this.cell(box, from[i]) + middle, top + ROW, this.cell(box, i) + middle, bottom, owner[i]))
    this.row(ctx, box, top, String, (i) => owner[i])
    this.row(ctx, box, bottom, (i) => (sign[i] < 0 ? `−${from[i]}` : String(from[i])), (i) => (sign[i] ? owner[i] : -1))
    this.owner = own
    const [a, b] = [dims[2 * this.pair], dims[2 * this.pair + 1]]
    const x = arrays[`x_${pairing}`]
    const y = arrays[`y_${pairing}`]
    const number = (v) => minus(v.toFixed(3))
    const lines = [
      fill(label.chosen, { pair: this.pair, a, b }),
      `(x${subscript(a)}, x${subscript(b)}) = (${number(x[a])}, ${number(x[b])}) → (${number(y[a])}, ${number(y[b])})`,
    ]
    lines.forEach((line, i) => this.write(ctx, line, box.x, bottom + ROW + 20 + 23 * i, { size: 15, max: box.w, colour: i ? theme.text : theme.quiet }))
  }

  // ---------------------------------------------------------------- pointer and keys
  hit(x, y) {
    const { upper, boxes, arrays } = this
    const found = (box, dims) => {
      const i = Math.floor(((x - box.x) / box.w) * this.d)
      return i >= 0 && i < this.d ? dims.indexOf(i) >> 1 : -1
    }
    if (y < upper.y + ROW + 8) return found(upper, arrays.interleaved)
    if (y < boxes[0].y) return found(upper, arrays.half)
    const box = boxes.findIndex(({ x: left, w, y: top }) => x >= left && x <= left + w && y >= top && y < top + 3 * ROW + 90)
    return box < 0 ? -1 : found(boxes[box], arrays[box ? 'half' : 'interleaved'])
  }
  pointer(kind, x, y) {
    if (kind !== 'move' && kind !== 'click') return
    const pair = this.hit(x, y)
    this.canvas.style.cursor = pair >= 0 ? 'pointer' : ''
    if (kind === 'click' && pair >= 0) this.select(pair)
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const by = event.shiftKey ? 0.25 : 0.05
    const actions = {
      ' ': () => this.play(!this.playing),
      ArrowLeft: () => this.scrub(clamp(this.way() - by, 0, 1)),
      ArrowRight: () => this.scrub(clamp(this.way() + by, 0, 1)),
      ArrowUp: () => this.select(this.pair - 1),
      ArrowDown: () => this.select(this.pair + 1),
    }
    if (!Object.hasOwn(actions, event.key)) return false
    actions[event.key]()
    return true
  }
  barKey(event) {
    if (event.key !== ' ' || event.target.tagName === 'BUTTON') return
    event.preventDefault()
    this.play(!this.playing)
  }
}

export default mount((host) => new PairingView(host))
