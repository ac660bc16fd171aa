// needs parts/cells.js, parts/ripple_picture.js
// The Similarity page: curves over the distance k from the chosen position, and the position x position
// matrix whose row p is the bold one among them. Data and labels: see ripple.py.
const RANGES = [64, 256, 1024]

function sameArray(a, b) {
  if (a?.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false
  return true
}

// k = 0 .. K-1 -> k = -(K-1) .. K-1, the same on both sides
function mirrored(half) {
  const both = new Float64Array(2 * half.length - 1)
  half.forEach((x, k) => { both[half.length - 1 + k] = both[half.length - 1 - k] = x })
  return both
}

class RippleView extends RipplePicture {
  constructor(host) {
    super(host)
    // p: the row shown; home: where it returns to when the pointer leaves (the page's position, or the one
    // pinned by a click); k: the distance under the pointer
    Object.assign(this, { p: 0, home: 0, pinned: false, k: null, sent: [], reach: 0, both: true, log: false })
    this.ranges = element('div', 'segments', this.controls)
    this.ranges.setAttribute('role', 'group')
    this.bothButton = this.toggle('±k', 'both')
    this.logButton = this.toggle('log k', 'log')
    this.live = element('div', 'live', this.root)
    this.live.setAttribute('aria-live', 'polite')
  }
  toggle(text, name) {
    const button = element('button', '', this.controls)
    Object.assign(button, { type: 'button', textContent: text })
    button.dataset.name = name
    button.onclick = () => {
      this[name] = !this[name]
      this.rescale()
      this.resize()
    }
    return button
  }

  // ---------------------------------------------------------------- data
  changed() {
    const { meta, arrays } = this
    this.curves = meta.curves.map((curve, i) => {
      const half = (name) => (curve.two_sided ? arrays[name + i] : mirrored(arrays[name + i]))
      const [mean, spread] = [half('mean'), half('spread')]
      const [marks, centre] = [new Uint8Array(mean.length), (mean.length - 1) / 2]
      for (const k of arrays[`rises${i}`]) {
        marks[centre + k] = 1
        if (!curve.two_sided) marks[centre - k] = 1
      }
      return { ...curve, mean, spread, marks, centre, rises: arrays[`rises${i}`], steps: arrays[`mean${i}`].length - 1 }
    })
    this.chosen = this.curves[meta.selected]
    if (meta.length !== this.length || !sameArray(this.matrix, arrays.matrix)) {
      Object.assign(this, { length: meta.length, matrix: arrays.matrix, picture: null })
      const Kind = this.matrix.shape.length === 2 ? DenseSource : ToeplitzSource
      this.source = new Kind({ rows: this.length, cols: this.length }, this.matrix)
      this.peak = 0
      for (const x of this.matrix) if (Number.isFinite(x)) this.peak = Math.max(this.peak, Math.abs(x))
    }
    this.farthest = Math.max(this.length - 1, ...this.curves.map((c) => c.centre))
    this.reach ||= this.farthest > 96 ? 64 : Infinity
    this.adopt(meta.position)
    this.refreshControls()
    this.rescale()
  }
  // The server's position counts when it is news, not when it is the late echo of an earlier click.
  adopt(position) {
    const echo = this.sent.indexOf(position)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (position !== this.known) Object.assign(this, { p: position, home: position, page: position, pinned: false })
    this.known = position
    for (const name of ['home', 'p', 'page']) this[name] = Math.min(this[name], this.length - 1)
  }
  // Row p as j = 0 .. L-1, a view without copying.
  rowAt(p) {
    const n = this.length
    return this.matrix.shape.length === 2 ? this.matrix.subarray(p * n, (p + 1) * n) : this.matrix.subarray(n - 1 - p, 2 * n - 1 - p)
  }
  similarity(p, k) { return this.rowAt(p)[p + k] } // undefined outside
  at(curve, k) { return curve.mean[curve.centre + k] }
  colour(curve) { return this.theme.dark ? curve.dark : curve.light }

  refreshControls() {
    const options = [...RANGES.filter((k) => k < this.farthest), this.farthest]
    if (String(options) !== this.options) {
      this.options = String(options)
      this.ranges.replaceChildren()
      for (const k of options) {
        const button = element('button', '', this.ranges)
        Object.assign(button, { type: 'button', textContent: `k ≤ ${k}` })
        button.onclick = () => {
          this.reach = k === this.farthest ? Infinity : k
          this.rescale()
          this.resize()
        }
      }
    }
    this.ranges.style.display = options.length > 1 ? '' : 'none'
    this.ranges.ariaLabel = this.label.range
    options.forEach((k, i) => {
      const button = this.ranges.children[i]
      button.title = button.ariaLabel = fill(this.label.range_option, { k })
      button.dataset.k = k
    })
    for (const button of [this.bothButton, this.logButton]) button.title = button.ariaLabel = this.label[button.dataset.name]
  }
  rescale() {
    const far = Math.max(1, Math.min(this.reach, this.farthest))
    this.high = far
    this.low = this.both ? -far : 0
    this.axes = { left: this.valueAxis('left'), right: this.valueAxis('right') }
    for (const button of this.ranges.children) button.ariaPressed = String(Number(button.dataset.k) === far)
    this.bothButton.ariaPressed = String(this.both)
    this.logButton.ariaPressed = String(this.log)
  }
  // The scale covers every curve with its spread, and the selected curve in every row: it does not move with p.
  valueAxis(side) {
    let [low, high] = [0, 0]
    const take = (x) => {
      if (x < low) low = x
      if (x > high && x < Infinity) high = x
    }
    const curves = this.curves.filter((c) => c.axis === side)
    if (!curves.length) return null
    for (const c of curves) {
      for (let i = Math.max(0, c.centre + this.low); i <= Math.min(c.mean.length - 1, c.centre + this.high); i++) {
        take(c.mean[i] - c.spread[i])
        take(c.mean[i] + c.spread[i])
      }
    }
    if (this.chosen.axis === side) this.eachShown(take)
    const room = (high - low || 1) * 0.05
    const digits = 4 - Math.ceil(Math.log10(Math.max(-low, high) || 1))
    return { low: low < 0 ? low - room : low, high: high > 0 || low === 0 ? high + room : high, decimals: clamp(digits, 0, 8) }
  }
  eachShown(take) {
    if (this.matrix.shape.length === 1) {
      const zero = this.length - 1
      for (const x of this.matrix.subarray(Math.max(0, zero + this.low), zero + this.high + 1)) if (x > -Infinity) take(x)
      return
    }
    for (let p = 0; p < this.length; p++) {
      const row = this.rowAt(p)
      const last = Math.min(this.length - 1, p + this.high)
      for (let j = Math.max(0, p + this.low); j <= last; j++) if (row[j] > -Infinity) take(row[j])
    }
  }

  // ---------------------------------------------------------------- pointer and keys
  pointer(kind, x, y) {
    const cell = this.cellAt(x, y)
    if (kind === 'move' || kind === 'down') this.hover(x, y, cell)
    else if (kind === 'leave') this.rest()
    else if (kind === 'click' && cell) this.pin(this.p) // the row last pointed at: a click's place is rounded
  }
  hover(x, y, cell) {
    const { plot, lanes } = this.place
    this.canvas.style.cursor = cell ? 'pointer' : 'default'
    if (cell) {
      this.p = cell[0]
      this.k = cell[1] - this.p
      this.showTip(x, y, [this.valueText(), `k = ${signed(this.k)}`, this.label.hint])
      this.tip.lastChild.className = 'note'
    } else if (isBetween(x, plot.x - 6, plot.right + 6) && isBetween(y, plot.y - 6, lanes.bottom)) {
      this.p = this.home
      this.k = this.distanceAt(x)
      this.showValues(x, y)
    } else return this.rest()
    this.redraw()
  }
  rest() {
    Object.assign(this, { p: this.home, k: null })
    this.hideTip()
    this.redraw()
  }
  // The values at distance k, decimal points under each other.
  showValues(x, y) {
    const { axis } = this.chosen
    const rows = [[this.chosen, fill(this.label.tip_row, { p: this.p }), this.similarity(this.p, this.k), 0, 'chosen']]
    for (const c of this.curves) rows.push([c, c.label, this.at(c, this.k), c.spread[c.centre + this.k], ''])
    this.showTip(x, y, [`k = ${signed(this.k)}`, '', this.label.tip_note])
    const grid = this.tip.children[1]
    grid.className = 'values'
    this.tip.lastChild.className = 'note'
    for (const [curve, name, value, spread, className] of rows) {
      const { decimals, low, high } = this.axes[curve.axis] ?? this.axes[axis]
      element('i', '', grid).style.borderColor = css(this.colour(curve))
      element('span', `name ${className}`, grid).textContent = name
      element('span', `number ${className}`, grid).textContent = value === undefined ? '–' : fixed(value, decimals)
      element('span', 'number', grid).textContent = spread > (high - low) * 1e-6 ? `± ${fixed(spread, decimals)}` : ''
    }
    this.setTip(x, y)
  }
  // Once the rows have given it its size: beside the crosshair, where it leaves the peak at k = 0 free;
  // on a narrow screen under the curves.
  setTip(x, y) {
    const { offsetWidth: w, offsetHeight: h } = this.tip
    const { plot, beside } = this.place
    const before = this.k < 0 ? x - 16 >= w : x + 16 + w > this.width
    const left = before ? Math.max(0, x - w - 16) : Math.min(x + 16, Math.max(0, this.width - w))
    const top = beside ? clamp(y - h / 2, 0, Math.max(0, this.height - h)) : plot.bottom + 8
    this.tip.style.transform = `translate(${left}px, ${this.canvas.offsetTop + top}px)`
  }
  pin(p, delay = 0) {
    Object.assign(this, { p, home: p, pinned: true })
    this.tell(delay)
    this.redraw()
  }
  tell(delay = 0) {
    clearTimeout(this.timer)
    const say = () => {
      if (this.home === (this.sent.at(-1) ?? this.known)) return
      this.sent.push(this.home)
      this.send('position', this.home)
    }
    if (delay) this.timer = setTimeout(say, delay)
    else say()
  }
  key(event) {
    const step = event.shiftKey ? 10 : 1
    const last = this.length - 1
    const to = { ArrowLeft: this.home - step, ArrowRight: this.home + step, Home: 0, End: last }[event.key]
    const by = { ArrowUp: step, ArrowDown: -step }[event.key]
    if (event.key === 'Escape') this.letGo()
    else if (to !== undefined) this.pin(clamp(to, 0, last), 300) // told once the key rests
    else if (by) this.k = clamp((this.k ?? 0) + by, this.low, this.high)
    else return false
    if (this.k !== null) this.showValues(this.x(this.k), this.place.plot.y + this.place.plot.h / 2)
    this.live.textContent = this.k === null ? `p = ${this.p}` : this.valueText()
    this.redraw()
    return true
  }
  // Back to the position that the page chose.
  letGo() {
    Object.assign(this, { home: this.page, pinned: false })
    this.rest()
    this.tell()
  }
  destroy() {
    clearTimeout(this.timer)
    super.destroy()
  }
}

export default mount((host) => new RippleView(host))
