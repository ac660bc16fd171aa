// What the heads picture knows about its sentences: 'a', 'b' and 'd' (the difference of matched words).
// Needs parts/labels.js and parts/cells.js.

// One matrix of one head, as rasterize() of cells.js wants it: masked cells are NaN. A cell is
// (raw - zero) * step, with raw from `array` at `start`; means are taken over the raw numbers, because
// sixteen heads of 512 tokens are twelve million cells.
class HeadSource extends Source {
  constructor([rows, cols], array, start, zero, step, mask) {
    Object.assign(super({ rows, cols }), { array, start, zero, step, mask })
  }
  block(need) { return [Math.max(...need), Math.max(...need)] } // as many rows as columns: "means of 2×2 cells"
  value(r, c) {
    const at = r * this.cols + c
    return this.mask && !this.mask[at] ? NaN : (this.array[this.start + at] - this.zero) * this.step
  }
  means({ br, nr, bc, nc }) {
    const { array, start, zero, step, mask, rows, cols } = this
    const [sums, counts] = [new Float64Array(nr * nc), new Float64Array(nr * nc)]
    for (let r = 0; r < rows; r++) {
      const line = Math.floor(r / br) * nc
      for (let c = 0, block = line, left = bc; c < cols; c++) {
        const at = r * cols + c
        if (!mask || mask[at]) {
          sums[block] += array[start + at]
          counts[block]++
        }
        if (--left === 0) [block, left] = [block + 1, bc]
      }
    }
    return sums.map((sum, k) => (counts[k] ? (sum / counts[k] - zero) * step : NaN))
  }
}

class HeadsData {
  constructor(meta, arrays) {
    Object.assign(this, { meta, arrays })
    this.sentences = ['a', 'b', 'd'].filter((s) => meta.tokens[s])
    const seen = (lists) => Object.fromEntries(this.sentences.map((s) => [s, lists[s].map(visible)]))
    Object.assign(this, { tokens: seen(meta.tokens), keys: seen(meta.keys) })
    this.profiles = new Map()
    // sentence -> its token -> where that is in the difference
    const inD = (pairs) => ({ a: new Map(pairs?.map(([i], k) => [i, k])), b: new Map(pairs?.map(([, j], k) => [j, k])) })
    Object.assign(this, { rowsInD: inD(meta.pairs), columnsInD: inD(meta.key_pairs) })
  }
  rows(s) { return this.tokens[s]?.length ?? 0 } // queries
  columns(s) { return this.keys[s]?.length ?? 0 }
  longest(s) { return Math.max(this.rows(s), this.columns(s)) }
  cells(s) { return this.rows(s) * this.columns(s) }
  allowed(s, i, j) {
    const mask = this.arrays[`${s}.allowed`]
    return !mask || mask[i * this.columns(s) + j] !== 0
  }
  masked(s) { return Boolean(this.arrays[`${s}.allowed`]) }
  index(s, h, i, j) { return (h * this.rows(s) + i) * this.columns(s) + j }
  weight(s, h, i, j) {
    const raw = this.arrays[`${s}.weights`][this.index(s, h, i, j)]
    if (!this.meta.rounded) return raw
    return s === 'd' ? (raw - 127) / 127 : raw / 255
  }
  error(s) { return this.meta.rounded ? (s === 'd' ? 0.5 / 127 : 0.5 / 255) : 0 }
  partNames(s) { return (this.meta.parts[s] ?? []).map((p) => p.name).filter((name) => name !== 'scores') }
  part(s, name, h, i, j) {
    return this.arrays[`${s}.${name}`][this.index(s, h, i, j)] * this.step(s, name)
  }
  step(s, name) { return this.meta.parts[s].find((p) => p.name === name).step || 1 } // of 16-bit parts
  score(s, h, i, j) {
    if (this.arrays[`${s}.scores`]) return this.part(s, 'scores', h, i, j)
    return this.partNames(s).reduce((sum, name) => sum + this.part(s, name, h, i, j), 0)
  }
  hasScore(s) { return Boolean(this.meta.parts[s]?.length) }
  largestPart(h) {
    let largest = 0
    for (const s of this.sentences) {
      for (const name of this.partNames(s)) {
        const size = this.cells(s)
        const [array, from] = [this.arrays[`${s}.${name}`], h * size]
        let high = 0
        for (let i = from; i < from + size; i++) high = Math.max(high, Math.abs(array[i]))
        largest = Math.max(largest, high * this.step(s, name))
      }
    }
    return largest || 1
  }
  source(s, h, name) {
    const shape = [this.rows(s), this.columns(s)]
    const mask = this.arrays[`${s}.allowed`]
    const start = h * this.cells(s)
    if (name) return new HeadSource(shape, this.arrays[`${s}.${name}`], start, 0, this.step(s, name), mask)
    const [zero, step] = this.meta.rounded ? (s === 'd' ? [127, 1 / 127] : [0, 1 / 255]) : [0, 1]
    return new HeadSource(shape, this.arrays[`${s}.weights`], start, zero, step, mask)
  }
  // The same words in another row of the picture: [sentence, row, col] for each that has them.
  partners({ s, i, j }) {
    const { pairs, key_pairs: keyPairs } = this.meta
    if (!pairs || !keyPairs || !this.sentences.includes('d')) return []
    const [row, col] = s === 'd' ? [i, j] : [this.rowsInD[s].get(i), this.columnsInD[s].get(j)]
    if (row === undefined || col === undefined) return []
    const all = [['a', pairs[row][0], keyPairs[col][0]], ['b', pairs[row][1], keyPairs[col][1]], ['d', row, col]]
    return all.filter(([other]) => other !== s)
  }
  // Mean weight by key - query: { low, mean, count }, distance low + k; only where the tokens look at themselves.
  profile(s, h) {
    const key = `${s}${h}`
    if (this.profiles.has(key)) return this.profiles.get(key)
    const n = this.rows(s)
    const [sum, count] = [new Float64Array(2 * n - 1), new Int32Array(2 * n - 1)]
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        if (!this.allowed(s, i, j)) continue
        sum[j - i + n - 1] += this.weight(s, h, i, j)
        count[j - i + n - 1]++
      }
    }
    const made = { low: 1 - n, mean: Array.from(sum, (v, k) => (count[k] ? v / count[k] : NaN)), count }
    this.profiles.set(key, made)
    return made
  }
}
