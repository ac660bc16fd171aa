// What the heads picture knows about its sentences: 'a', 'b' and 'd' (the difference of matched words).
// Needs parts/labels.js and parts/cells.js.
const SHADES = { content_position: -0.35, position_content: -0.12, position_position: 0.22 }

// One matrix of one head, as rasterize() of cells.js wants it: masked cells are NaN.
class HeadSource extends Source {
  constructor(n, get) { super({ rows: n, cols: n }).value = get }
}

class HeadsData {
  constructor(meta, arrays) {
    Object.assign(this, { meta, arrays })
    this.sentences = ['a', 'b', 'd'].filter((s) => meta.tokens[s])
    this.tokens = Object.fromEntries(this.sentences.map((s) => [s, meta.tokens[s].map(visible)]))
    this.profiles = new Map()
    this.inD = { a: new Map(), b: new Map() }
    meta.pairs?.forEach(([i, j], k) => {
      this.inD.a.set(i, k)
      this.inD.b.set(j, k)
    })
  }
  n(s) { return this.tokens[s]?.length ?? 0 }
  allowed(s, i, j) {
    const mask = this.arrays[`${s}.allowed`]
    return !mask || mask[i * this.n(s) + j] !== 0
  }
  masked(s) { return Boolean(this.arrays[`${s}.allowed`]) }
  index(s, h, i, j) { return (h * this.n(s) + i) * this.n(s) + j }
  weight(s, h, i, j) {
    const raw = this.arrays[`${s}.weights`][this.index(s, h, i, j)]
    if (!this.meta.rounded) return raw
    return s === 'd' ? (raw - 127) / 127 : raw / 255
  }
  error(s) { return this.meta.rounded ? (s === 'd' ? 0.5 / 127 : 0.5 / 255) : 0 }
  partNames(s) { return (this.meta.parts[s] ?? []).map((p) => p.name).filter((name) => name !== 'scores') }
  part(s, name, h, i, j) {
    const raw = this.arrays[`${s}.${name}`][this.index(s, h, i, j)]
    return raw * (this.meta.parts[s].find((p) => p.name === name).step || 1)
  }
  score(s, h, i, j) {
    if (this.arrays[`${s}.scores`]) return this.part(s, 'scores', h, i, j)
    return this.partNames(s).reduce((sum, name) => sum + this.part(s, name, h, i, j), 0)
  }
  hasScore(s) { return Boolean(this.meta.parts[s]?.length) }
  largestPart(h) {
    let largest = 0
    for (const s of this.sentences) {
      for (const name of this.partNames(s)) {
        const size = this.n(s) ** 2
        const [array, from] = [this.arrays[`${s}.${name}`], h * size]
        let high = 0
        for (let i = from; i < from + size; i++) high = Math.max(high, Math.abs(array[i]))
        largest = Math.max(largest, high * (this.meta.parts[s].find((p) => p.name === name).step || 1))
      }
    }
    return largest || 1
  }
  source(s, h, name) {
    const get = name ? (i, j) => this.part(s, name, h, i, j) : (i, j) => this.weight(s, h, i, j)
    return new HeadSource(this.n(s), this.masked(s) ? (i, j) => (this.allowed(s, i, j) ? get(i, j) : NaN) : get)
  }
  // The same words in another row of the picture: [sentence, row, col] for each that has them.
  partners({ s, i, j }) {
    if (!this.meta.pairs || !this.sentences.includes('d')) return []
    const [row, col] = s === 'd' ? [i, j] : [this.inD[s].get(i), this.inD[s].get(j)]
    if (row === undefined || col === undefined) return []
    const all = [['a', ...[row, col].map((k) => this.meta.pairs[k][0])], ['b', ...[row, col].map((k) => this.meta.pairs[k][1])], ['d', row, col]]
    return all.filter(([other]) => other !== s)
  }
  // Mean weight by key - query: { low, mean, count }, distance low + k.
  profile(s, h) {
    const key = `${s}${h}`
    if (this.profiles.has(key)) return this.profiles.get(key)
    const n = this.n(s)
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

// Content is grey, everything that comes from position a shade of teal.
function partColour(theme, name) {
  if (name === 'content' || name === 'content_content') return theme.content
  const shade = SHADES[name] ?? 0
  return mix(theme.position, shade < 0 ? theme.background : theme.text, Math.abs(shade))
}
