// needs parts/labels.js, parts/order_picture.js
// The home page. Two panels (without, with position): A's tokens and outputs on the left, B's on the
// right, ties between the same words; below, one bar per encoding.
const SLIDE_MS = 800

class OrderView extends OrderPicture {
  constructor(host) {
    super(host)
    this.at = 0 // 0: B in its own order, 1: each word of B beside its match
    this.spot = null // {kind: 'cell' | 'tie' | 'bar', panel, side, row, dim, match, bar}
    this.button = element('button', '', this.controls)
    this.button.type = 'button'
    this.button.onclick = () => this.play()
  }

  // ------------------------------------------------------------ data
  changed() {
    const { meta } = this
    this.rows = { a: meta.tokens_a.map(visible), b: meta.tokens_b.map(visible) }
    this.slots = Math.max(this.rows.a.length, this.rows.b.length)
    this.matchOf = { a: new Map(meta.matches.map(([i], k) => [i, k])), b: new Map(meta.matches.map(([, j], k) => [j, k])) }
    // Where each row of B slides: beside its match; the others fill the places that stay free, in order.
    const taken = new Set(meta.matches.map(([i]) => i))
    const free = Array.from({ length: this.slots }, (_, i) => i).filter((i) => !taken.has(i))
    this.slotB = this.rows.b.map((_, j) => (this.matchOf.b.has(j) ? meta.matches[this.matchOf.b.get(j)][0] : free.shift()))
    this.stacks = null // painted barcodes, made again by layout()
    this.button.textContent = this.label.slide
    this.button.disabled = !meta.matches.length
    this.button.ariaPressed = String(this.goal === 1)
    if (this.spot && !this.alive(this.spot)) this.point(null)
  }
  alive(spot) {
    if (spot.kind === 'bar') return spot.bar < this.meta.bars.length
    if (spot.kind === 'tie') return spot.match < this.meta.matches.length
    return spot.row < this.rows[spot.side].length && spot.dim < this.meta.d
  }

  // ------------------------------------------------------------ pointer and keys
  hit(x, y) {
    const { g, meta } = this
    for (let i = 0; i < meta.bars.length; i++) {
      const [left, top, w, h] = this.barBox(i)
      if (x >= left && x < left + w && y >= top && y < top + h) return { kind: 'bar', bar: i }
    }
    if (this.at !== 0 && this.at !== 1) return null
    for (let p = 0; p < meta.panels.length; p++) {
      const [px, py] = this.panelAt(p)
      const found = this.hitCell(p, x - px, y - py) ?? this.hitTie(p, x - px, y - py)
      if (found) return found
    }
    return null
  }
  hitCell(panel, x, y) {
    const { g } = this
    const slot = Math.floor((y - g.top) / g.pitch)
    const inside = y >= g.top && y - g.top - slot * g.pitch <= g.bar + g.under + g.strip + 2
    if (!inside) return null
    for (const [column, side] of [['a', 'a'], ['strip', 'a'], ['b', 'b']]) {
      const row = side === 'b' && this.at === 1 ? this.slotB.indexOf(slot) : slot
      const dim = Math.floor(((x - g.x[column]) / g.barWidth) * this.meta.d)
      if (dim >= 0 && dim < this.meta.d && row >= 0 && row < this.rows[side].length) return { kind: 'cell', panel, side, row, dim }
    }
    return null
  }
  hitTie(panel, x, y) {
    const { g } = this
    if (x < g.x.label - 10 || x > g.x.b - 4) return null
    const t = clamp((x - g.x.curve) / (g.x.b - 5 - g.x.curve), 0, 1)
    // The curve's x is 1.5 t (1-t) + t^3 of its width here: solve by bisection, then read its y.
    let [low, high] = [0, 1]
    for (let n = 0; n < 20; n++) {
      const u = (low + high) / 2
      if (1.5 * u * (1 - u) + u ** 3 < t) low = u
      else high = u
    }
    const share = 3 * low * low - 2 * low ** 3
    let best = null
    this.meta.matches.forEach((_, match) => {
      if (this.delta(panel, match) === null) return
      const [from, to] = this.tieEnds(match)
      const distance = Math.abs(from + (to - from) * share - y)
      if (distance < Math.min(12, Math.max(3, g.pitch)) && distance < (best?.distance ?? Infinity)) best = { match, distance }
    })
    return best && { kind: 'tie', panel, match: best.match }
  }
  pointer(kind, x, y) {
    if (kind === 'leave') return this.point(null)
    if (kind === 'move' || kind === 'down') this.point(this.hit(x, y), x, y)
    if (kind === 'click') this.choose(this.hit(x, y))
  }
  choose(spot) {
    if (spot?.kind === 'bar') this.send('encoding', this.meta.bars[spot.bar].sends)
  }
  point(spot, x, y) {
    this.canvas.style.cursor = spot?.kind === 'bar' ? 'pointer' : ''
    const same = JSON.stringify(spot) === JSON.stringify(this.spot)
    this.spot = spot
    const { dataset } = this.canvas
    for (const name of ['kind', 'panel', 'side', 'row', 'dim', 'match', 'bar']) dataset[name] = String(spot?.[name] ?? '')
    dataset.value = spot?.kind === 'cell' ? String(this.value(spot.panel, spot.side, spot.row, spot.dim)) : ''
    if (!spot) this.hideTip()
    else this.showTip(x ?? 0, y ?? 0, this.tipLines(spot))
    if (!same) this.redraw()
  }
  tipLines(spot) {
    const { label, meta, theme } = this
    if (spot.kind === 'bar') {
      const bar = meta.bars[spot.bar]
      return [fill(label.tip_bar, { label: bar.label, value: formatNumber(bar.value, 4) }), label.tip_choose]
    }
    if (spot.kind === 'tie') {
      const [i, j] = meta.matches[spot.match]
      const lines = meta.panels.map((panel, p) =>
        fill(label.tip_bar, { label: panel.title, value: formatNumber(this.delta(p, spot.match), 4) }))
      return [fill(label.tip_tie, { token: isolate(this.rows.a[i]), i, j }), ...lines]
    }
    return this.cellLines(spot, label, theme)
  }
  cellLines({ panel, side, row, dim }, label, theme) {
    const { mean } = this.g
    const head = fill(label.tip_token, { token: isolate(this.rows[side][row]), position: row })
    const lines = [head, fill(label.tip_dimension, { dimension: dim })]
    const other = this.partner(side, row, panel)
    const own = this.value(panel, side, row, dim)
    const value = (name, x) => [fill(label[`tip_value_${name}`], { value: signedText(x, 4) }), css(theme[name])]
    if (other === null) return [...lines, value(side, own), label.no_partner]
    const theirs = this.value(panel, side === 'a' ? 'b' : 'a', other, dim)
    const [a, b] = side === 'a' ? [own, theirs] : [theirs, own]
    lines.push(value('a', a), value('b', b), fill(label.tip_difference, { value: signedText(a - b, 3) }))
    const first = Math.floor(dim / mean) * mean
    if (mean > 1) lines.push(fill(label.tip_averaged, { first, last: Math.min(this.meta.d, first + mean) - 1 }))
    return lines
  }

  // Arrows walk the barcodes (left and right pass from A to B to the next panel, Shift a whole barcode
  // at a time; down from the last row reaches the bars); Enter chooses a bar, Space plays.
  key(event) {
    const { spot, meta } = this
    if (event.key === ' ') return this.play(), true
    if (event.key === 'Escape') return this.point(null), true
    if (event.key === 'Enter' && spot?.kind === 'bar') return this.choose(spot), true
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0]
    if (!dx && !dy) return false
    const start = ['a', 'b'].find((side) => this.rows[side].length)
    let next
    if (spot?.kind === 'bar') next = this.walkBars(spot.bar, dx, dy, start)
    else if (spot?.kind === 'cell') next = this.walkCells(spot, event.shiftKey ? dx * meta.d : dx, dy)
    else next = start ? { kind: 'cell', panel: 0, side: start, row: 0, dim: 0 } : { kind: 'bar', bar: 0 }
    if (this.alive(next)) this.point(next, ...this.centre(next))
    return true
  }
  walkBars(bar, dx, dy, start) {
    const next = bar + dx + dy * this.g.perLine
    if (next < 0 && dy && start) return { kind: 'cell', panel: 0, side: start, row: this.rows[start].length - 1, dim: 0 }
    return { kind: 'bar', bar: clamp(next, 0, this.meta.bars.length - 1) }
  }
  walkCells({ panel, side, row, dim }, dx, dy) {
    const order = this.at === 1 && side === 'b' ? this.slotB.map((slot, j) => [slot, j]).sort((p, q) => p[0] - q[0]).map(([, j]) => j) : null
    if (dy) {
      const place = (order ? order.indexOf(row) : row) + dy
      if (place >= this.rows[side].length) return { kind: 'bar', bar: 0 }
      return { kind: 'cell', panel, side, row: order ? order[Math.max(0, place)] : Math.max(0, place), dim }
    }
    const sides = ['a', 'b'].filter((s) => this.rows[s].length)
    const strip = (panel * sides.length + sides.indexOf(side)) * this.meta.d + dim + dx
    const all = sides.length * this.meta.panels.length * this.meta.d
    const at = clamp(strip, 0, all - 1)
    const column = Math.floor(at / this.meta.d)
    const beside = sides[column % sides.length]
    return { kind: 'cell', panel: Math.floor(column / sides.length), side: beside, row: Math.min(row, this.rows[beside].length - 1), dim: at % this.meta.d }
  }
  centre(spot) {
    const { g } = this
    if (spot.kind === 'bar') {
      const [x, y, w] = this.barBox(spot.bar)
      return [x + w / 2, y]
    }
    const [px, py] = this.panelAt(spot.panel)
    return [px + g.x[spot.side] + ((spot.dim + 0.5) / this.meta.d) * g.barWidth, py + this.rowTop(spot.side, spot.row) + g.bar / 2]
  }

  // ------------------------------------------------------------ the slide
  play() {
    if (this.button.disabled) return
    this.goal = this.goal === 1 ? 0 : 1
    this.button.ariaPressed = String(this.goal === 1)
    this.point(null)
    cancelAnimationFrame(this.frameId)
    const from = this.at
    const start = performance.now()
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    const step = (now) => {
      const t = still ? 1 : clamp((now - start) / SLIDE_MS, 0, 1)
      this.at = from + (this.goal - from) * t
      this.canvas.dataset.slide = String(this.at)
      this.paint()
      if (t < 1) this.frameId = requestAnimationFrame(step)
    }
    step(start)
  }
  destroy() {
    cancelAnimationFrame(this.frameId)
    super.destroy()
  }
}

export default mount((host) => new OrderView(host))
