// One clock face for each pair, fast to slow. The grey arc is what training covered, from three o'clock
// counter-clockwise; the coloured arc goes on from there to angles that training never had. A is the outer ring.
// Data: see arcs.py.
const SIDES = ['A', 'B']
const TURN = 2 * Math.PI

class ArcsView extends View {
  constructor(host) {
    super(host)
    this.pair = null
  }
  changed() {
    const { meta, arrays } = this
    this.rings = meta.rings.map((name, i) => {
      const part = (what) => arrays[`${what}${i}`]
      return { name, side: SIDES[i], trained: part('trained'), wanted: part('wanted'), before: part('before'), after: part('after') }
    })
    this.count = Math.max(...this.rings.map((ring) => ring.trained.length))
    if (this.pair !== null && this.pair >= this.count) this.pair = null
  }
  colour(ring) { return ring.side === 'A' ? this.theme.a : this.theme.b }
  // What of a ring's pair is seen, and what is new, in turns of at most one.
  parts(ring, i) {
    const seen = Math.min(1, ring.trained[i])
    const reached = Math.min(1, ring.wanted[i])
    return { seen, reached, unseen: reached > seen * (1 + 1e-9) }
  }

  // ---------------------------------------------------------------- places
  layout(width) {
    const top = 30 + 24 * this.rings.length
    const room = this.meta.height - top
    let best = { size: 0 }
    for (let cols = 4; cols <= this.count; cols++) {
      const rows = Math.ceil(this.count / cols)
      const size = Math.min(width / cols, room / rows)
      const even = this.count % cols ? 1 : 1.3 // full rows are worth a little
      if (size * even > best.size * (best.even ?? 1)) best = { cols, rows, size, even }
    }
    const cols = best.cols ?? this.count
    const size = clamp(best.size || width / cols, 15, 96)
    this.grid = { cols, size, top, left: Math.max(0, (width - cols * Math.max(size, width / cols)) / 2), step: width / cols }
    return Math.max(180, Math.ceil(top + Math.ceil(this.count / cols) * size + 6))
  }
  centre(i) {
    const { cols, size, top, left, step } = this.grid
    return [left + ((i % cols) + 0.5) * step, top + (Math.floor(i / cols) + 0.5) * size]
  }
  hit(x, y) {
    const { cols, size, top, left, step } = this.grid
    const [col, row] = [Math.floor((x - left) / step), Math.floor((y - top) / size)]
    const i = row * cols + col
    return col >= 0 && col < cols && row >= 0 && i < this.count ? i : null
  }

  // ---------------------------------------------------------------- drawing
  draw(ctx) {
    this.legend(ctx)
    const r = this.grid.size * 0.4
    const thick = Math.max(2, r * (this.rings.length > 1 ? 0.24 : 0.34))
    const small = this.grid.size < 34
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.centre(i)
      this.rings.forEach((ring, k) => this.ring(ctx, ring, i, x, y, r - k * (thick + 2), thick))
      if (!small && (this.count <= 32 || i % 4 === 0 || i === this.count - 1 || i === this.pair)) {
        const colour = mix(pairColour(this.theme, i, this.count), this.theme.text, 0.2)
        this.write(ctx, String(i), x, y, { size: this.grid.size < 50 ? 12 : 14, align: 'center', colour })
      } else {
        ctx.fillStyle = css(pairColour(this.theme, i, this.count))
        ctx.beginPath()
        ctx.arc(x, y, Math.max(1.5, r * 0.14), 0, TURN)
        ctx.fill()
      }
    }
    if (this.pair !== null) {
      const [x, y] = this.centre(this.pair)
      ctx.strokeStyle = css(this.theme.text)
      ctx.lineWidth = 1.5
      ctx.beginPath()
      ctx.arc(x, y, this.grid.size * 0.49, 0, TURN)
      ctx.stroke()
    }
    this.report()
  }
  ring(ctx, ring, i, x, y, r, thick) {
    if (i >= ring.trained.length || r < 2) return
    const { seen, reached, unseen } = this.parts(ring, i)
    const arc = (from, to, colour) => {
      ctx.strokeStyle = css(colour)
      ctx.lineWidth = thick
      ctx.beginPath()
      ctx.arc(x, y, r, -from * TURN, -to * TURN, true)
      ctx.stroke()
    }
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = thick
    ctx.beginPath()
    ctx.arc(x, y, r, 0, TURN)
    ctx.stroke()
    if (seen > 0) arc(0, seen, this.theme.content)
    if (unseen) arc(seen, Math.max(reached, seen + 0.012), this.colour(ring))
  }
  legend(ctx) {
    const { theme, label } = this
    ctx.fillStyle = css(theme.content)
    ctx.fillRect(0, 8, 24, 9)
    this.write(ctx, label.seen, 32, 13, { size: 15 })
    this.rings.forEach((ring, k) => {
      const y = 13 + 24 * (k + 1)
      const unseen = Array.from(ring.trained, (_, i) => i).filter((i) => this.parts(ring, i).unseen).length
      ctx.fillStyle = css(this.colour(ring))
      ctx.fillRect(0, y - 5, 24, 9)
      const text = `${fill(label.unseen, { side: ring.side })} · ${unseen} / ${ring.trained.length} · ${fill(label.ring, ring)}`
      this.write(ctx, text, 32, y, { size: 15, max: this.width - 36 })
    })
  }
  report() {
    const count = (ring) => Array.from(ring.trained, (_, i) => this.parts(ring, i).unseen).filter(Boolean).length
    Object.assign(this.canvas.dataset, { name: 'angles', pair: this.pair ?? '', unseen: this.rings.map(count).join(' ') })
  }

  // ---------------------------------------------------------------- pointer and keys
  choose(pair, x, y) {
    this.pair = pair
    if (pair === null) this.hideTip()
    else this.showTip(x, y, this.tipLines())
    if (pair !== null) this.tip.lastChild.className = 'note'
    this.redraw()
  }
  tipLines() {
    const lines = [fill(this.label.pair, { pair: this.pair })]
    for (const ring of this.rings) {
      if (this.pair >= ring.trained.length) continue
      const colour = css(mix(this.colour(ring), this.theme.text, 0.25))
      if (!Number.isFinite(ring.before[this.pair])) {
        lines.push([fill(this.label.rests, ring), colour])
        continue
      }
      const [before, after] = [ring.before[this.pair], ring.after[this.pair]].map((v) => formatNumber(v, 4))
      const [trained, wanted] = [ring.trained[this.pair], ring.wanted[this.pair]].map((v) => formatNumber(v, 3))
      lines.push([fill(this.label.wavelength, { ...ring, before, after }), colour], [fill(this.label.turns, { ...ring, trained, wanted }), colour])
    }
    return [...lines, this.label.hint]
  }
  pointer(kind, x, y) {
    if (kind === 'leave') this.choose(null)
    else if (kind === 'move' || kind === 'down') this.choose(this.hit(x, y), x, y)
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const now = this.pair ?? -1
    const { cols } = this.grid
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cols, ArrowDown: cols, Home: -now, End: this.count - 1 - now }[event.key]
    if (event.key === 'Escape') this.choose(null)
    else if (by === undefined) return false
    else {
      const pair = clamp(now + by, 0, this.count - 1)
      this.choose(pair, ...this.centre(pair))
    }
    return true
  }
}

export default mount((host) => new ArcsView(host))
