// The numbers of one head, for steps.js: its vectors, its matrices and what can be said exactly about them.
// Needs parts/labels.js and parts/cells.js.
class Transposed extends Source {
  constructor(inner) { super({ rows: inner.cols, cols: inner.rows }).inner = inner }
  value(r, c) { return this.inner.value(c, r) }
}
// Only one row of a large matrix is here.
class RowSource extends Source {
  constructor(spec, row, values) { Object.assign(super(spec), { row, values }) }
  value(r, c) { return r === this.row ? this.values[c] : undefined }
}

class StepsData {
  constructor(meta, arrays) {
    Object.assign(this, { meta, arrays, sources: new Map() })
    this.tokens = meta.tokens.map(visible)
    this.keys = meta.keys.map(visible)
    this.local = arrays.products !== undefined // every row is here, not only the chosen one
  }
  source(name) {
    if (!this.sources.has(name)) this.sources.set(name, this.make(name))
    return this.sources.get(name)
  }
  make(name) {
    const { meta, arrays } = this
    if (name === 'k_transposed') return new Transposed(this.source('k_rotated'))
    if (name.endsWith('_rotated') && !arrays[name]) return this.source(name[0])
    const spec = meta.tables[name]
    if (!spec) return new DenseSource({ rows: arrays[name].length / meta.width, cols: meta.width }, arrays[name])
    if (arrays[name]) return new DenseSource(spec, arrays[name])
    const [row, blocks] = [arrays[`${name}.row`], arrays[`${name}.blocks`]]
    if (!blocks) return new RowSource(spec, meta.cell.row, row)
    const overview = Float32Array.from(blocks, (b) => (b === 255 ? NaN : (b - 127) * spec.step))
    overview.shape = blocks.shape
    const first = name === 'w_o' ? { col: 0, exactCol: arrays['w_o.col'] } : { col: -1 }
    const parts = { overview, exactRow: row, exactCol: first.exactCol }
    return new OverviewSource({ ...spec, at: [0, 0], row: row ? meta.cell.row : -1, col: first.col }, parts)
  }
  // undefined where the number is not here, NaN where it is masked
  value(name, r, c) { return this.source(name).value(r, c) }
  limit(name) {
    const spec = this.meta.tables[name]
    if (spec) return spec.block ? 127 * spec.step : spec.limit // of what is drawn
    return this.source(name).values.reduce((most, v) => Math.max(most, Math.abs(v)), 0)
  }
  allowed(i, j) { return this.arrays.allowed[i * this.keys.length + j] === 1 }
  weight(i, j) { return this.allowed(i, j) ? this.value('weights', i, j) : 0 }
  get masks() { return this.arrays.allowed.includes(0) }
  get biased() { return this.meta.tables.bias !== undefined }

  // Every key of a query: score, exp(score - max), weight, and the length of what it adds to the output.
  row(i) {
    const list = this.keys.map((_, j) => {
      const allowed = this.allowed(i, j)
      const weight = this.weight(i, j)
      return { allowed, score: this.value('scores', i, j), weight, part: weight * this.arrays.value_norms[j] }
    })
    const most = list.reduce((top, one) => (one.allowed ? Math.max(top, one.score) : top), -Infinity)
    for (const one of list) one.exp = one.allowed ? Math.exp(one.score - most) : 0
    return list
  }
  // Elements of q and k in the order they are drawn; two that turn together stand side by side.
  elements() {
    const { width, rotary } = this.meta
    if (!rotary) return Array.from({ length: width }, (_, n) => ({ n, pair: null }))
    const { pairing, pairs } = rotary
    const turned = Array.from({ length: pairs }, (_, p) => (pairing === 'half' ? [p, p + pairs] : [2 * p, 2 * p + 1]))
    const rest = Array.from({ length: width - 2 * pairs }, (_, n) => ({ n: n + 2 * pairs, pair: null }))
    return [...turned.flatMap((two, pair) => two.map((n) => ({ n, pair, two }))), ...rest]
  }
  angles(i, j, pair) {
    const { angles, key_angles: own } = this.arrays
    const { pairs } = this.meta.rotary
    return [angles[i * pairs + pair], (own ?? angles)[j * pairs + pair]]
  }
}

// Hatching for masked cells; the pictures' own share of it is a rectangle.
function hatchBox(ctx, theme, x, y, w, h) {
  ctx.save()
  ctx.fillStyle = css(mix(theme.text, theme.background, 0.93))
  ctx.fillRect(x, y, w, h)
  ctx.strokeStyle = css(mix(theme.text, theme.background, 0.72))
  ctx.lineWidth = 1
  ctx.beginPath()
  for (let c = 6; c < w + h; c += 7) { // the lines x + y = c inside the box
    const [low, high] = [Math.max(0, c - h), Math.min(w, c)]
    ctx.moveTo(x + low, y + c - low)
    ctx.lineTo(x + high, y + c - high)
  }
  ctx.stroke()
  ctx.restore()
}
const short = (x) => formatNumber(x, 3)
