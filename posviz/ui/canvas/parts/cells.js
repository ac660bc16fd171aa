// Where the cells of a matrix come from, and how they become pixels. Every source answers
//   value(r, c)           the exact cell; NaN or an infinity where it is masked; undefined where not loaded
//   mean(r0, r1, c0, c1)  the mean over a block, masked cells left out; NaN when nothing is left
//   means(grid)           the means of a grid of blocks, row by row (Float64Array)
//   block(need, view)     the smallest block, at least `need`, that it can average exactly in this view
// A grid is { r0, br, nr, rows, c0, bc, nc, cols }: nr x nc blocks of br x bc cells from (r0, c0), cut off
// at row `rows` and column `cols`. A view is { r0, r1, c0, c1 }.
const TAU = 2 * Math.PI

class Source {
  constructor(spec) { Object.assign(this, { rows: spec.rows, cols: spec.cols }) }
  block(need) { return need }
  has() { return true } // are all cells of a view known?
  hasLine() { return true } // and those of one row or column?
  mean(r0, r1, c0, c1) {
    let [sum, count] = [0, 0]
    for (let r = r0; r < r1; r++) {
      for (let c = c0; c < c1; c++) {
        const v = this.value(r, c)
        if (v - v === 0) { // finite
          sum += v
          count++
        }
      }
    }
    return count ? sum / count : NaN
  }
  means(grid) {
    const { r0, br, nr, rows, c0, bc, nc, cols } = grid
    const out = new Float64Array(nr * nc)
    for (let i = 0; i < nr; i++) {
      const [from, to] = [r0 + i * br, Math.min(rows, r0 + (i + 1) * br)]
      for (let j = 0; j < nc; j++) {
        out[i * nc + j] = this.mean(from, to, c0 + j * bc, Math.min(cols, c0 + (j + 1) * bc))
      }
    }
    return out
  }
}

class DenseSource extends Source {
  constructor(spec, values) { super(spec).values = values }
  value(r, c) { return this.values[r * this.cols + c] }
}

// sin or cos of (start + r) * omega[c], or that angle itself wrapped to (-pi, pi].
class SinusoidSource extends Source {
  constructor(spec, omega, isCos) { Object.assign(super(spec), { start: spec.start, wrap: spec.wrap, omega, isCos }) }
  value(r, c) {
    const angle = (this.start + r) * this.omega[c]
    if (this.wrap) return angle - TAU * Math.ceil((angle - Math.PI) / TAU)
    return this.isCos[c] ? Math.cos(angle) : Math.sin(angle)
  }
  // The mean of n samples around an angle is the angle's own sine times this (the Dirichlet kernel).
  damping(n, omega) {
    const half = omega / 2
    if (Math.abs(Math.sin(half)) < 1e-9) return Math.cos(n * half) / Math.cos(half) // the limit, e.g. omega = 0
    return Math.sin(n * half) / (n * Math.sin(half))
  }
  mean(r0, r1, c0, c1) {
    if (this.wrap || r1 - r0 === 1) return super.mean(r0, r1, c0, c1)
    const [n, middle] = [r1 - r0, this.start + (r0 + r1 - 1) / 2]
    let sum = 0
    for (let c = c0; c < c1; c++) {
      const angle = middle * this.omega[c]
      sum += this.damping(n, this.omega[c]) * (this.isCos[c] ? Math.cos(angle) : Math.sin(angle))
    }
    return sum / (c1 - c0)
  }
  means(grid) {
    if (this.wrap) return super.means(grid)
    const { r0, br, nr, rows, c0, bc, nc, cols } = grid
    const out = new Float64Array(nr * nc)
    const whole = Math.min(nr, Math.floor((rows - r0) / br)) // the last row of blocks may be cut off
    for (let j = 0; j < nc; j++) {
      const [from, to] = [c0 + j * bc, Math.min(cols, c0 + (j + 1) * bc)]
      for (let c = from; c < to; c++) this.addColumn(out, j, c, grid, whole, to - from)
      if (whole < nr) out[whole * nc + j] = this.mean(r0 + whole * br, rows, from, to)
    }
    return out
  }
  // One sine per 32 blocks; between them the angle is turned on by the angle addition theorem.
  addColumn(out, j, c, { r0, br, nc }, whole, share) {
    const omega = this.omega[c]
    const factor = (br === 1 ? 1 : this.damping(br, omega)) / share
    const [stepSin, stepCos] = [Math.sin(br * omega), Math.cos(br * omega)]
    let [sin, cos] = [0, 1]
    for (let i = 0; i < whole; i++) {
      if (i % 32 === 0) {
        const angle = (this.start + r0 + i * br + (br - 1) / 2) * omega
        ;[sin, cos] = [Math.sin(angle), Math.cos(angle)]
      }
      out[i * nc + j] += factor * (this.isCos[c] ? cos : sin)
      const next = sin * stepCos + cos * stepSin
      cos = cos * stepCos - sin * stepSin
      sin = next
    }
  }
}

// value = profile[c - r + rows - 1]. A block is a difference of prefix sums of prefix sums.
class ToeplitzSource extends Source {
  constructor(spec, profile) {
    super(spec).profile = profile
    this.sums = this.twice((v) => (Number.isFinite(v) ? v : 0))
    this.counts = this.twice((v) => (Number.isFinite(v) ? 1 : 0))
  }
  twice(pick) {
    const sums = new Float64Array(this.rows + this.cols + 1)
    let once = 0
    for (let i = 0; i < this.rows + this.cols; i++) {
      sums[i + 1] = sums[i] + once
      if (i < this.profile.length) once += pick(this.profile[i])
    }
    return sums
  }
  value(r, c) { return this.profile[c - r + this.rows - 1] }
  mean(r0, r1, c0, c1) {
    if (r1 - r0 === 1 && c1 - c0 === 1) return super.mean(r0, r1, c0, c1)
    const [top, end] = [this.rows - r0, this.rows - r1]
    const over = (s) => s[c1 + top] - s[c1 + end] - s[c0 + top] + s[c0 + end]
    const count = Math.round(over(this.counts))
    return count ? over(this.sums) / count : NaN
  }
}

// Block means of a table too large to send, and exact cells where somebody looked.
class OverviewSource extends Source {
  constructor(spec, arrays) {
    Object.assign(super(spec), arrays)
    ;[this.br, this.bc] = spec.block
    this.across = this.overview.shape[1]
    this.at = spec.at
    this.line = { row: spec.row, col: spec.col } // one exact row and column, for the margins
  }
  covers(r0, r1, c0, c1) {
    if (!this.window) return false
    const [top, left, [height, width]] = [...this.at, this.window.shape]
    return r0 >= top && r1 <= top + height && c0 >= left && c1 <= left + width
  }
  has({ r0, r1, c0, c1 }) { return this.covers(r0, Math.min(r1, this.rows), c0, c1) }
  hasLine(r0, r1, c0, c1) {
    if (this.br === 1 && this.bc === 1) return true
    const crossed = (r1 - r0 === 1 && r0 === this.line.row) || (c1 - c0 === 1 && c0 === this.line.col)
    return crossed || this.covers(r0, r1, c0, c1)
  }
  coarse(r, c) { return this.overview[Math.floor(r / this.br) * this.across + Math.floor(c / this.bc)] }
  block(need, view) {
    if (this.has(view)) return need
    const up = (n, step) => Math.ceil(n / step) * step
    return [up(need[0], this.br), up(need[1], this.bc)]
  }
  value(r, c) {
    if (this.covers(r, r + 1, c, c + 1)) return this.window[(r - this.at[0]) * this.window.shape[1] + c - this.at[1]]
    if (r === this.line.row) return this.exactRow[c]
    if (c === this.line.col) return this.exactCol[r]
    return this.br === 1 && this.bc === 1 ? this.overview[r * this.across + c] : undefined
  }
  mean(r0, r1, c0, c1) {
    if (this.covers(r0, r1, c0, c1)) return super.mean(r0, r1, c0, c1)
    const { br, bc } = this
    let [sum, weight] = [0, 0]
    for (let i = Math.floor(r0 / br); i * br < r1; i++) {
      const tall = Math.min(r1, (i + 1) * br) - Math.max(r0, i * br)
      for (let j = Math.floor(c0 / bc); j * bc < c1; j++) {
        const v = this.overview[i * this.across + j]
        if (v - v !== 0) continue
        const area = tall * (Math.min(c1, (j + 1) * bc) - Math.max(c0, j * bc))
        sum += area * v
        weight += area
      }
    }
    return weight ? sum / weight : NaN
  }
}

// spec.kind and the arrays named `${prefix}.omega` and so on (see matrix.py).
function makeSource(spec, prefix, arrays) {
  const get = (name) => arrays[`${prefix}.${name}`]
  if (spec.kind === 'dense') return new DenseSource(spec, get('values'))
  if (spec.kind === 'sinusoid') return new SinusoidSource(spec, get('omega'), get('is_cos'))
  if (spec.kind === 'toeplitz') return new ToeplitzSource(spec, get('profile'))
  const [overview, window, exactRow, exactCol] = ['overview', 'window', 'row', 'col'].map(get)
  return new OverviewSource(spec, { overview, window, exactRow, exactCol })
}

// ---------------------------------------------------------------- from cells to pixels
// The grid whose blocks are the smallest that still cover at least one of width x height pixels each.
function gridFor(source, view, width, height, limit) {
  const need = [Math.ceil((view.r1 - view.r0) / height), Math.ceil((view.c1 - view.c0) / width)]
  const [br, bc] = source.block(need.map((n) => Math.max(1, n)), { ...view, r1: Math.min(view.r1, limit) })
  const [r0, c0] = [Math.floor(view.r0 / br) * br, Math.floor(view.c0 / bc) * bc]
  const nr = Math.max(0, Math.ceil((Math.min(view.r1, limit) - r0) / br))
  return { r0, br, nr, rows: Math.min(limit, source.rows), c0, bc, nc: Math.ceil((view.c1 - c0) / bc), cols: source.cols }
}

function sheet(width, height) {
  const canvas = document.createElement('canvas')
  ;[canvas.width, canvas.height] = [Math.max(1, width), Math.max(1, height)]
  return canvas
}

// One pixel per block; masked blocks stay transparent.
function colourBlocks(values, grid, lut, vmin, vmax) {
  const canvas = sheet(grid.nc, grid.nr)
  if (!grid.nr) return canvas
  const image = new ImageData(grid.nc, grid.nr)
  const [pixels, colours] = [new Uint32Array(image.data.buffer), new Uint32Array(lut.buffer)]
  const factor = 255 / (vmax - vmin)
  for (let i = 0; i < values.length; i++) {
    const v = values[i]
    if (v - v === 0) pixels[i] = colours[Math.round(clamp((v - vmin) * factor, 0, 255))]
  }
  canvas.getContext('2d').putImageData(image, 0, 0)
  return canvas
}

// The view at width x height device pixels. Blocks a few pixels large are first enlarged by whole numbers and
// then fitted smoothly: their edges blend, but all look equally wide (no beats over interleaved columns).
function rasterize(source, view, { width, height, limit, lut, vmin, vmax }) {
  const grid = gridFor(source, view, width, height, limit)
  let blocks = colourBlocks(source.means(grid), grid, lut, vmin, vmax)
  const [ky, kx] = [height / (view.r1 - view.r0), width / (view.c1 - view.c0)] // pixels per cell
  const canvas = sheet(width, height)
  const ctx = canvas.getContext('2d')
  const [sy, sx] = [Math.ceil(ky * grid.br), Math.ceil(kx * grid.bc)]
  if (Math.min(sy, sx) < 5) {
    const large = sheet(grid.nc * sx, grid.nr * sy)
    const to = large.getContext('2d')
    to.imageSmoothingEnabled = false
    to.drawImage(blocks, 0, 0, large.width, large.height)
    blocks = large
  } else ctx.imageSmoothingEnabled = false
  const [w, h] = [grid.nc * grid.bc * kx, grid.nr * grid.br * ky]
  if (grid.nr) ctx.drawImage(blocks, (grid.c0 - view.c0) * kx, (grid.r0 - view.r0) * ky, w, h)
  // A block cut off by the last row is drawn whole: take back what would be invented.
  if (grid.nr && view.r1 > limit) ctx.clearRect(0, (limit - view.r0) * ky, width, height)
  return { canvas, grid }
}
