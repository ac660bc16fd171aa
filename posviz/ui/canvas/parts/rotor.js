// RoPE in double precision for one query and one key: which dimensions a pair turns, the score as a Transformer
// computes it, and its closed form against distance; and what is left of it with fewer digits.

const TURN = 2 * Math.PI
const pairDims = (i, pairs, pairing) => (pairing === 'half' ? [i, i + pairs] : [2 * i, 2 * i + 1])
// −1 for a dimension that is not rotated (partial RoPE).
const pairOfDim = (d, pairs, pairing) => (d >= 2 * pairs ? -1 : pairing === 'half' ? d % pairs : d >> 1)

class Rotor {
  constructor(q, k, omega, pairing, scale) {
    const rest = q.reduce((sum, x, d) => (d < 2 * omega.length ? sum : sum + scale * x * k[d]), 0)
    Object.assign(this, { q, k, omega, scale, rest, parts: new Float64Array(omega.length), partial: q.length > 2 * omega.length })
    this.dims = Array.from(omega, (_, i) => pairDims(i, omega.length, pairing))
    const size = (v, [a, b]) => Math.hypot(v[a], v[b])
    this.tallest = this.dims.reduce((top, ab) => Math.max(top, Math.abs(scale) * size(q, ab) * size(k, ab)), Math.abs(rest)) || 1
  }
  // By how many radians a pair is turned at a position, and from a key at n to a query at m.
  angle(i, position) { return position * this.omega[i] }
  between(i, m, n) { return (m - n) * this.omega[i] }
  // Turn q by mθ, turn k by nθ, then multiply and add; `parts` keeps what each pair gave.
  measure(m, n) {
    const { q, k, parts } = this
    let score = 0
    for (let i = 0; i < parts.length; i++) {
      const [a, b] = this.dims[i]
      const [atM, atN] = [this.angle(i, m), this.angle(i, n)]
      const [cosM, sinM, cosN, sinN] = [Math.cos(atM), Math.sin(atM), Math.cos(atN), Math.sin(atN)]
      const qa = q[a] * cosM - q[b] * sinM
      const qb = q[a] * sinM + q[b] * cosM
      const ka = k[a] * cosN - k[b] * sinN
      const kb = k[a] * sinN + k[b] * cosN
      parts[i] = this.scale * (qa * ka + qb * kb)
      score += parts[i]
    }
    return score + this.rest
  }
  // R(m)q · R(n)k = (q_a k_a + q_b k_b) cos((m−n)θ) + (q_a k_b − q_b k_a) sin((m−n)θ), summed over the pairs:
  // `count` values from distance `from` in steps of `step`, and the extremes of every partial sum on the way.
  kernel(from, step, count) {
    const { q, k, omega, scale } = this
    const values = new Float64Array(count)
    let [low, high] = [Math.min(0, this.rest), Math.max(0, this.rest)]
    this.dims.forEach(([a, b], i) => {
      const even = scale * (q[a] * k[a] + q[b] * k[b])
      const odd = scale * (q[a] * k[b] - q[b] * k[a])
      const stepCos = Math.cos(step * omega[i])
      const stepSin = Math.sin(step * omega[i])
      let c = Math.cos(from * omega[i])
      let s = Math.sin(from * omega[i])
      for (let j = 0; j < count; j++) {
        const sum = (values[j] += even * c + odd * s)
        if (sum < low) low = sum
        if (sum > high) high = sum
        const turned = c * stepCos - s * stepSin
        s = s * stepCos + c * stepSin
        c = turned
      }
    })
    for (let j = 0; j < count; j++) {
      values[j] += this.rest
      low = Math.min(low, values[j])
      high = Math.max(high, values[j])
    }
    return { values, from, step, low, high }
  }
}

// A number as bfloat16 holds it, as torch rounds it: to float32 first, then to the nearest with 8 bits, ties to even.
const asBits = new Uint32Array(1)
const asFloat = new Float32Array(asBits.buffer)
function bfloat16(x) {
  asFloat[0] = x
  asBits[0] = (asBits[0] + 0x7fff + ((asBits[0] >>> 16) & 1)) & 0xffff0000
  return asFloat[0]
}

// The same with angles of fewer digits; `what` says which: "positions", "frequencies" (already rounded in `narrow`),
// "angle" (both, and their product). Its scores depend on where both stand, not on their distance alone.
class NarrowRotor extends Rotor {
  constructor(q, k, omega, narrow, what, pairing, scale) {
    super(q, k, omega, pairing, scale)
    Object.assign(this, { narrow, what })
  }
  angle(i, position) {
    const { what, omega, narrow } = this
    if (what === 'positions') return bfloat16(position) * omega[i]
    if (what === 'frequencies') return position * narrow[i]
    return bfloat16(bfloat16(position) * narrow[i])
  }
  between(i, m, n) { return this.angle(i, m) - this.angle(i, n) }
}
