// What the link view draws, for links.js: weights, which lines are wanted, and the numbers beside the tokens.
const LEAST = 0.0005 // a weight that is written as 0.000 has no line
const MOST_LINES = 3000 // of one sentence; beyond, the canvas would stutter

class LinkSide {
  constructor(name, meta, arrays) {
    Object.assign(this, { name, ...meta.sides[name] })
    this.weights = arrays[`${name}.weights`]
    this.mask = arrays[`${name}.allowed`]
    this.q = this.queries.map(visible)
    this.k = this.keys.map(visible)
    this.unit = this.rounded ? 1 / 255 : 1
    this.tops = new Map()
  }
  tokens(column) { return column === 'q' ? this.q : this.k }
  weight(i, j) { return this.weights[i * this.k.length + j] * this.unit }
  allowed(i, j) { // a bit a cell
    const n = i * this.k.length + j
    return !this.mask || ((this.mask[n >> 3] >> (7 - (n & 7))) & 1) === 1
  }
  // The key with the count-th largest weight of a query ends its list; of equal weights the earlier key counts.
  top(i, count) {
    const name = `${i}|${count}`
    if (!this.tops.has(name)) {
      const order = this.k.map((_, j) => j).sort((a, b) => this.weight(i, b) - this.weight(i, a) || a - b)
      this.tops.set(name, new Set(order.slice(0, count)))
    }
    return this.tops.get(name)
  }
  // Lines [i, j, weight], weakest first, of the queries and keys given as lists; `left` were too many.
  lines(queries, keys, { threshold, top_k: count }) {
    const [found, seen] = [[], new Set()]
    const take = (i, j) => {
      const w = this.weight(i, j)
      if (w < LEAST || w < threshold || (count && !this.top(i, count).has(j))) return
      const name = i * this.k.length + j
      if (seen.has(name)) return
      seen.add(name)
      found.push([i, j, w])
    }
    for (const i of queries) for (let j = 0; j < this.k.length; j++) take(i, j)
    for (const j of keys) for (let i = 0; i < this.q.length; i++) take(i, j)
    found.sort((x, y) => x[2] - y[2])
    return { lines: found.slice(-MOST_LINES), count: found.length }
  }
  // Beside the keys: the mean over the chosen queries; beside the queries: what they give the chosen keys in all.
  numbers(queries, keys) {
    const sum = (list, at) => list.reduce((total, n) => total + at(n), 0)
    return {
      k: queries.length ? this.k.map((_, j) => sum(queries, (i) => this.weight(i, j)) / queries.length) : null,
      q: keys.length ? this.q.map((_, i) => sum(keys, (j) => this.weight(i, j))) : null,
    }
  }
  masked(column, n, { queries, keys }) {
    if (column === 'k') return queries.length > 0 && queries.every((i) => !this.allowed(i, n))
    return keys.length > 0 && keys.every((j) => !this.allowed(n, j))
  }
  text(w) { return w.toFixed(this.rounded ? 2 : 3) }
}

class LinksData {
  constructor(meta, arrays) {
    this.sides = ['a', 'b'].filter((s) => meta.sides[s]).map((s) => new LinkSide(s, meta, arrays))
    const both = (pairs) => ({ a: new Map(pairs ?? []), b: new Map((pairs ?? []).map(([i, j]) => [j, i])) })
    this.partners = { q: both(meta.pairs), k: both(meta.key_pairs) }
    this.matched = { q: meta.pairs !== null, k: meta.key_pairs !== null }
  }
  side(name) { return this.sides.find((one) => one.name === name) }
  // The same word in the other sentence: an index, null when it is not there, undefined when nothing is matched.
  partner({ side, column, n }) {
    if (this.sides.length < 2 || !this.matched[column]) return undefined
    return this.partners[column][side].get(n) ?? null
  }
}
