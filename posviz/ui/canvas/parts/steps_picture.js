// Multi-head attention in nine steps, for steps.js: each step is a line of matrices with signs between them.
// Needs parts/labels.js, parts/cells.js and parts/steps_data.js.
const AXIS_TYPE = 14
const LEAN = Math.PI / 4 // of tokens above narrow columns

// What each step shows. `name` is drawn, `source` its numbers; rows/cols: 'queries' and 'keys' get tokens;
// mark: {row, col} are outlined, `slice` [from, to] of columns too; `heads` cuts between heads.
function stepItems(n, view) {
  const { data, meta, cell, dim, out } = view
  const { width, heads, head } = meta
  const [h, slice] = [head, [head * width, (head + 1) * width]]
  const turned = meta.rotated
  const vector = (source, name, more = {}) => ({ source, name, rows: 'queries', scale: 'signed', ...more })
  const square = (source, name, more = {}) => ({ source, name, rows: 'queries', cols: 'keys', scale: 'signed', mark: cell, ...more })
  const sign = (text, under = '') => ({ sign: text, under })
  const row = { row: cell.row }
  const key = { row: cell.col }
  const divided = `/ ${meta.scale_text}`
  const q = turned ? `Q̃${sub(h)}` : `Q${sub(h)}`
  const k = turned ? `K̃${sub(h)}ᵀ` : `K${sub(h)}ᵀ`
  const product = q + k
  const steps = {
    1: [vector('x', 'X', { mark: row }), sign('· W^Q ='), vector('q_all', 'Q', { mark: row, heads, slice, all: true }), sign('→'),
      vector('q', `Q${sub(h)}`, { mark: row, result: true }), vector('k', `K${sub(h)}`, { rows: 'keys', mark: key, result: true }), vector('v', `V${sub(h)}`, { rows: 'keys', mark: key, result: true })],
    2: [vector('q_rotated', q, { mark: row }), sign('·'), { source: 'k_transposed', name: k, cols: 'keys', scale: 'signed', mark: { col: cell.col } }, sign('='), square('products', product, { result: true })],
    3: [square('products', product), sign(divided), sign('='), square('scaled', `${product} ${divided}`, { result: true, limit: view.sumLimit() })],
    4: data.biased
      ? [square('scaled', `${product} ${divided}`, { limit: view.sumLimit() }), sign('+'), square('bias', view.label.part_bias, { limit: view.sumLimit() }), sign('='), square('scores', 'S', { result: true, limit: view.sumLimit() })]
      : [square('scaled', `${product} ${divided}`, { limit: view.sumLimit() }), sign('+ 0'), sign('='), square('scores', 'S', { result: true, limit: view.sumLimit() })],
    5: [square('scores', 'S', { limit: view.sumLimit() }), sign('+'), square('mask', view.label.name_mask), sign('='), square('masked', 'S′', { result: true, limit: view.sumLimit() })],
    6: [square('masked', 'S′', { limit: view.sumLimit() }), sign('→', 'softmax'), square('weights', view.label.name_weights, { scale: meta.side, limit: 1, result: true })],
    7: [square('weights', view.label.name_weights, { scale: meta.side, limit: 1, mark: row }), sign('·'), vector('v', `V${sub(h)}`, { rows: 'keys', mark: { col: dim } }), sign('='), vector('head_output', `O${sub(h)}`, { mark: { row: cell.row, col: dim }, result: true })],
    8: [vector('head_output', `O${sub(h)}`, { mark: row }), sign('→'), vector('concat', 'O', { mark: row, heads, slice, all: true, result: true })],
    9: [vector('concat', 'O', { mark: row, heads, all: true }), sign('·'), { source: 'w_o', name: 'W^O', scale: 'signed', mark: { col: out } }, sign(view.arrays.b_o ? '+ b =' : '='), vector('output', 'Y', { mark: { row: cell.row, col: out }, result: true })],
  }
  return steps[n]
}
const sub = (n) => String(n).replace(/\d/g, (c) => '₀₁₂₃₄₅₆₇₈₉'[c])

class StepsPicture {
  constructor(view) {
    this.view = view
    this.rasters = new Map()
  }
  renew() { this.rasters.clear() }
  layout(width) {
    const { view } = this
    this.width = width
    this.narrow = width < 660
    this.top = this.narrow ? 136 : 96 // above the matrices: the step's name and what it does
    const legend = legendLayout(view, this.legendItems(), width)
    this.steps = Array.from({ length: 9 }, (_, n) => this.place(n + 1))
    const tall = Math.max(...this.steps.map((step) => step.height))
    for (const { items, height } of this.steps) for (const item of items) item.y += this.narrow ? 0 : (tall - height) / 2
    view.ctx.font = view.text(15)
    const hint = wrapText(view.ctx, view.label.hint_steps, width)
    const sums = this.top + tall + 14
    Object.assign(this, { legend, hint, sums, legendTop: sums + (this.narrow ? 84 : 58) })
    this.hintTop = this.legendTop + legend.height + 6
    return this.hintTop + hint.length * 21 + 4
  }
  legendItems() {
    const { meta, label, data, theme } = this.view
    const items = [{ text: label.legend_signed, scale: 'signed' }, { text: label.legend_weights, scale: meta.side }]
    if (data.masks) items.push({ text: label.legend_masked, width: 18, paint: (ctx, x, y) => hatchBox(ctx, theme, x, y - 8, 18, 16) })
    items.push({ text: label.legend_marks, width: 16, paint: (ctx, x, y) => this.outline(ctx, x + 2, y - 7, 14, 14) })
    const coarse = Object.values(meta.tables).some(({ rows, cols }) => rows > 150 || cols > 150)
    if (coarse) items.push({ text: label.legend_averaged, width: 0, paint: () => {} })
    return items
  }
  size(item) {
    if (item.source === 'mask') return [this.view.data.tokens.length, this.view.data.keys.length]
    const { rows, cols } = this.view.data.source(item.source)
    return [rows, cols]
  }
  names(axis) { return axis === 'queries' ? this.view.data.tokens : this.view.data.keys }

  // ------------------------------------------------------------ where everything stands
  // Widths and heights in proportion to the counts, between 64 and 300 px; then narrowed until the line fits.
  place(n) {
    const items = stepItems(n, this.view).map((item) => ({ ...item }))
    const most = this.narrow ? clamp(this.width * 0.36, 110, 200) : clamp(this.width * 0.27, 260, 400)
    const tokens = Math.max(this.view.data.tokens.length, this.view.data.keys.length)
    const unit = clamp(most / tokens, 1, 60)
    const long = (count) => clamp(count * unit, 64, most)
    const { ctx } = this.view
    for (const item of items) {
      if (item.sign) item.w = Math.max(26, this.wide(ctx, item.sign, 20), item.under ? 60 : 0)
      else this.measure(item, long)
    }
    return this.narrow ? this.stack(items) : this.line(items)
  }
  measure(item, long) {
    const { view } = this
    const [rows, cols] = this.size(item)
    Object.assign(item, { nr: rows, nc: cols, w: item.all ? Math.max(long(cols), this.narrow ? 110 : 200) : long(cols), h: long(rows), left: 0 })
    view.ctx.font = view.text(AXIS_TYPE)
    if (item.rows && item.h / rows >= 15) {
      const widest = Math.max(...this.names(item.rows).map((t) => view.ctx.measureText(t).width))
      item.left = Math.min(widest, this.narrow ? 60 : 76) + 8
    }
  }
  line(items) {
    const gap = 16
    const matrices = items.filter((item) => !item.sign)
    const fixed = items.reduce((sum, item) => sum + (item.sign ? item.w : item.left), 0) + gap * (items.length - 1)
    const share = Math.min(1, (this.width - 6 - fixed) / matrices.reduce((sum, item) => sum + item.w, 0))
    const axis = this.axes(matrices, share)
    const tall = Math.max(...matrices.map((item) => item.h))
    let x = 2 // room for an outline
    for (const item of items) {
      if (item.sign) Object.assign(item, { x, y: this.top + axis + 24 + tall / 2 })
      else {
        item.w *= share
        Object.assign(item, { x: x + item.left, y: this.top + axis + 24 + (tall - item.h) / 2, axis })
      }
      x += item.w + (item.left ?? 0) + gap
    }
    return { items, height: axis + 24 + tall + 50 }
  }
  // On a narrow page they flow like words.
  stack(items) {
    const axis = this.axes(items.filter((item) => !item.sign), 1)
    let [x, y, tall, line] = [2, this.top, 0, []] // room for an outline
    const end = () => { // signs stand in the middle of their line
      for (const item of line) item.y = y + axis + 24 + (item.sign ? tall / 2 : 0)
      y += line.length ? axis + 24 + tall + 62 : 0
      ;[x, tall, line] = [2, 0, []]
    }
    items.forEach((item, n) => {
      const next = items[n + 1] // a sign stays with the matrix behind it
      const wide = item.sign ? item.w + 10 + (next.sign ? next.w : next.w + next.left) : item.w + item.left
      if (x > 2 && x + wide > this.width - 4) end()
      Object.assign(item, { x: x + (item.left ?? 0), axis: item.sign ? undefined : axis })
      x += item.w + (item.left ?? 0) + 10
      tall = Math.max(tall, item.sign ? 0 : item.h)
      line.push(item)
    })
    end()
    return { items, height: y - this.top }
  }
  // Room above the matrices for the tokens of their columns: none, upright, or leaning.
  axes(matrices, share) {
    const { view } = this
    view.ctx.font = view.text(AXIS_TYPE)
    let room = 0
    for (const item of matrices) {
      const column = (item.w * share) / item.nc
      if (!item.cols || column < 15) continue
      const widest = Math.max(...this.names(item.cols).map((t) => view.ctx.measureText(t).width))
      item.upright = widest <= column - 2
      item.tokens = true
      room = Math.max(room, item.upright ? 20 : Math.min(60, widest * Math.sin(LEAN)) + 14)
    }
    return room
  }

  // ------------------------------------------------------------ drawing
  draw(ctx) {
    const { view, hint } = this
    const { theme, label, meta, step } = view
    const now = this.steps[step - 1]
    view.write(ctx, `${step} · ${label[`step_${step}`]}`, 0, 15, { size: 20, weight: '600' })
    const cell = fill(label.cell_title, { head: fill(label.head, { head: meta.head }), query: view.tokenName(view.cell.row), key: view.keyName(view.cell.col) })
    ctx.font = view.text(20, '600')
    if (!this.narrow) view.write(ctx, cell, this.width, 15, { size: 15, colour: theme.quiet, align: 'right', max: this.width * 0.6 })
    ctx.font = view.text(16)
    wrapText(ctx, this.sentence(step), this.width).slice(0, this.narrow ? 4 : 2).forEach((line, i) => view.write(ctx, line, 0, 44 + i * 22, { size: 16, colour: theme.quiet, max: this.width }))
    for (const item of now.items) item.sign ? this.drawSign(ctx, item) : this.drawMatrix(ctx, item)
    ctx.font = view.text(this.narrow ? 16 : 19)
    const lines = this.arithmetic(step).split('\n').flatMap((line) => wrapText(ctx, line, this.width))
    const sums = this.narrow ? this.top + now.height : this.sums
    lines.slice(0, this.narrow ? 3 : 2).forEach((line, i) => view.write(ctx, line, 0, sums + 14 + i * 26, { size: this.narrow ? 16 : 19, max: this.width }))
    drawLegend(view, ctx, this.legend, 0, this.legendTop)
    hint.forEach((line, i) => view.write(ctx, line, 0, this.hintTop + 11 + i * 21, { size: 15, colour: theme.quiet }))
  }
  sentence(step) {
    const { label, meta, data } = this.view
    const [from, to] = [meta.head * meta.width, (meta.head + 1) * meta.width - 1]
    const which = {
      2: meta.rotated ? 'say_2_turned' : 'say_2',
      3: meta.scale === 1 ? 'say_3_none' : 'say_3',
      4: data.biased ? 'say_4' : 'say_4_none',
      5: data.masks ? 'say_5' : 'say_5_none',
    }[step] ?? `say_${step}`
    const text = fill(label[which], { heads: meta.heads, width: meta.width, scale: meta.scale_text, head: meta.head, from, to })
    return step === 4 && meta.bias_note ? meta.bias_note : text
  }
  drawSign(ctx, { x, y, w, sign, under }) {
    const { view } = this
    this.formula(ctx, sign, x + (w - this.wide(ctx, sign, 20)) / 2, y, { size: 20 })
    if (under) view.write(ctx, under, x + w / 2, y - 22, { size: 15, align: 'center', colour: view.theme.quiet })
  }
  // W^O: the letter behind ^ is raised.
  pieces(text, size) { return text.split(/(\^\w)/).map((part) => (part[0] === '^' ? { text: part[1], size: size * 0.72, up: size * 0.34 } : { text: part, size, up: 0 })) }
  wide(ctx, text, size, weight = 'normal') {
    return this.pieces(text, size).reduce((sum, part) => {
      ctx.font = this.view.text(part.size, weight)
      return sum + ctx.measureText(part.text).width
    }, 0)
  }
  formula(ctx, text, x, y, { size, weight }) {
    for (const part of this.pieces(text, size)) {
      this.view.write(ctx, part.text, x, y - part.up, { size: part.size, weight })
      x += ctx.measureText(part.text).width
    }
  }
  drawMatrix(ctx, item) {
    const { view } = this
    const { theme, label } = view
    const { x, y, w, h } = item
    this.formula(ctx, item.name, x, y - item.axis - 14, { size: 17, weight: '600' })
    if (item.heads > 1) {
      view.write(ctx, label.all_heads, x + this.wide(ctx, item.name, 17, '600') + 10, y - item.axis - 14, { size: 14, colour: theme.quiet })
    }
    ctx.save()
    ctx.beginPath()
    ctx.rect(x - 1, y - 1, w + 2, (h + 2) * (item.result ? view.reveal : 1))
    ctx.clip()
    if (item.source === 'mask') this.drawMask(ctx, item)
    else this.drawHeat(ctx, item)
    ctx.restore()
    ctx.strokeStyle = css(theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1)
    this.drawTokens(ctx, item)
    this.drawCuts(ctx, item)
    this.drawMarks(ctx, item)
    const shape = fill(label.shape, { rows: item.nr, cols: item.nc })
    view.write(ctx, shape, x, y + h + 15, { size: 14, colour: theme.quiet })
    if (item.source === 'mask') return
    const limit = item.limit ?? view.limit(item.source)
    view.write(ctx, item.scale === 'signed' ? `±${short(limit)}` : `0–${limit}`, x, y + h + 34, { size: 14, colour: theme.quiet })
  }
  drawHeat(ctx, item) {
    const { view } = this
    const { data, theme } = view
    const { x, y, w, h, nr, nc } = item
    hatchBox(ctx, theme, x, y, w, h) // masked cells let it be seen
    const limit = item.limit ?? view.limit(item.source)
    const [vmin, vmax] = item.scale === 'signed' ? [-limit || -1, limit || 1] : [0, limit]
    if (nr * nc <= 1024) { // few cells are drawn as such, so that an SVG has them too
      const [cw, ch] = [w / nc, h / nr]
      for (let r = 0; r < nr; r++) {
        for (let c = 0; c < nc; c++) {
          const v = data.value(item.source, r, c)
          if (v - v !== 0) continue
          ctx.fillStyle = css(SCALES[item.scale](theme, clamp(v / vmax, -1, 1)))
          ctx.fillRect(x + c * cw, y + r * ch, cw + 0.3, ch + 0.3)
        }
      }
      return
    }
    const name = [item.source, item.scale, Math.round(w), Math.round(h), view.ratio].join()
    if (!this.rasters.has(name)) {
      const source = data.source(item.source)
      const size = { width: Math.round(w * view.ratio), height: Math.round(h * view.ratio), limit: nr }
      this.rasters.set(name, rasterize(source, { r0: 0, r1: nr, c0: 0, c1: nc }, { ...size, lut: lookupTable(theme, item.scale), vmin, vmax }).canvas)
    }
    ctx.drawImage(this.rasters.get(name), x, y, w, h)
  }
  drawMask(ctx, { x, y, w, h, nr, nc }) {
    const { data, theme } = this.view
    const [cw, ch] = [w / nc, h / nr]
    ctx.fillStyle = css(theme.background)
    ctx.fillRect(x, y, w, h)
    for (let r = 0; r < nr; r++) {
      for (let c = 0; c < nc; c++) {
        if (data.allowed(r, c)) continue
        const from = c
        while (c + 1 < nc && !data.allowed(r, c + 1)) c++
        hatchBox(ctx, theme, x + from * cw, y + r * ch, (c + 1 - from) * cw, ch)
      }
    }
  }
  drawTokens(ctx, item) {
    const { view } = this
    const { theme, cell } = view
    const { x, y, w, h, nr, nc } = item
    const look = (mine) => ({ size: AXIS_TYPE, weight: mine ? '600' : 'normal', colour: mine ? theme.text : theme.quiet })
    if (item.left) {
      const chosen = item.rows === 'keys' ? cell.col : cell.row
      this.names(item.rows).forEach((t, r) => view.write(ctx, t, x - 6, y + ((r + 0.5) * h) / nr, { ...look(r === chosen), align: 'right', max: item.left - 6 }))
    }
    if (!item.tokens) return
    this.names(item.cols).forEach((t, c) => {
      const at = x + ((c + 0.5) * w) / nc
      if (item.upright) return view.write(ctx, t, at, y - 11, { ...look(c === cell.col), align: 'center' })
      ctx.save()
      ctx.translate(at + 3, y - 5)
      ctx.rotate(-LEAN)
      view.write(ctx, t, 0, 0, { ...look(c === cell.col), max: 78 })
      ctx.restore()
    })
  }
  // Between the heads.
  drawCuts(ctx, { x, y, w, h, heads }) {
    if (!heads || heads < 2 || w / heads <= 6) return
    ctx.fillStyle = css(this.view.theme.background)
    for (let n = 1; n < heads; n++) ctx.fillRect(x + (n * w) / heads - 1, y, 2, h)
  }
  drawMarks(ctx, { x, y, w, h, nr, nc, mark, slice }) {
    if (slice) this.outline(ctx, x + (slice[0] / nc) * w, y - 2, ((slice[1] - slice[0]) / nc) * w, h + 4)
    if (!mark) return
    const [cw, ch] = [w / nc, h / nr]
    const { row, col } = mark
    if (row !== undefined) this.outline(ctx, x, y + row * ch, w, ch, col !== undefined)
    if (col !== undefined) this.outline(ctx, x + col * cw, y, cw, h, row !== undefined)
    if (row !== undefined && col !== undefined) this.outline(ctx, x + col * cw, y + row * ch, cw, ch)
  }
  outline(ctx, x, y, w, h, thin = false) {
    const { theme } = this.view
    ctx.strokeStyle = css(thin ? theme.quiet : theme.text)
    ctx.lineWidth = thin ? 1 : 2
    const out = thin ? 0.5 : 1 // around the cells, not over them: they may be narrow
    ctx.strokeRect(x - out, y - out, w + 2 * out, h + 2 * out)
  }

  // ------------------------------------------------------------ the numbers in words of mathematics
  arithmetic(step) {
    const { data, meta, cell, dim, out, arrays } = this.view
    const { row: i, col: j } = cell
    const at = (name, r, c) => data.value(name, r, c)
    const signed = (x) => (x < 0 ? `(${short(x)})` : short(x))
    const list = (n, value) => Array.from({ length: n }, (_, c) => value(c))
    const sum = (pairs, end, result) => {
      const shown = pairs.slice(0, 3).map(([a, b]) => `${signed(a)} × ${signed(b)}`).join(' + ')
      return `${shown}${pairs.length > 3 ? ' + …' : ''}${end} = ${short(result)}`
    }
    const few = (name, r) => list(Math.min(4, meta.width), (c) => short(at(name, r, c))).join(', ') + (meta.width > 4 ? ', …' : '')
    const score = at('scores', i, j)
    const divided = `${signed(at('products', i, j))} / ${meta.scale_text} = ${short(at('scaled', i, j))}`
    if (step === 1) return `q = (${few('q', i)})\nk = (${few('k', j)})`
    if (step === 2) return `q · k = ${sum(list(meta.width, (c) => [at('q_rotated', i, c), at('k_rotated', j, c)]), '', at('products', i, j))}`
    if (step === 3) return divided
    if (step === 4) return data.biased ? `${signed(at('scaled', i, j))} + ${signed(at('bias', i, j))} = ${short(score)}` : `s = ${short(score)}`
    if (step === 5) return data.allowed(i, j) ? `s = ${short(score)}` : `s = ${short(score)} − ∞ = −∞`
    if (step === 6) return this.softmaxText(i, j, score)
    if (step === 7) return sum(list(data.keys.length, (c) => [data.weight(i, c), at('v', c, dim)]).filter(([w]) => w > 0), '', at('head_output', i, dim))
    if (step === 8) return `O${sub(meta.head)} = (${few('head_output', i)})`
    const pairs = list(meta.heads * meta.width, (c) => [at('concat', i, c), at('w_o', c, out)])
    return sum(pairs, arrays.b_o ? ` + ${signed(arrays.b_o[out])}` : '', at('output', i, out))
  }
  softmaxText(i, j, score) {
    const { data } = this.view
    if (!data.allowed(i, j)) return 'exp(−∞) = 0'
    const open = data.row(i).filter((one) => one.allowed)
    const terms = open.slice(0, 3).map((one) => `exp(${short(one.score)})`).join(' + ')
    return `exp(${short(score)}) / (${terms}${open.length > 3 ? ' + …' : ''}) = ${data.weight(i, j).toFixed(3)}`
  }

  // ------------------------------------------------------------ pointer
  hit(x, y) {
    for (const item of this.steps[this.view.step - 1].items) {
      if (item.sign || x < item.x || y < item.y || x >= item.x + item.w || y >= item.y + item.h) continue
      return { item, r: Math.floor(((y - item.y) / item.h) * item.nr), c: Math.floor(((x - item.x) / item.w) * item.nc) }
    }
    return null
  }
  point(found, x, y) {
    const { view } = this
    view.canvas.style.cursor = found ? 'pointer' : ''
    if (!found) return view.hideTip()
    const { item, r, c } = found
    const name = (axis, n) => (axis === 'keys' ? view.keyName(n) : axis === 'queries' ? view.tokenName(n) : fill(view.label.tip_dimension, { n }))
    const value = item.source === 'mask' ? (view.data.allowed(r, c) ? 0 : -Infinity) : view.data.value(item.source, r, c)
    const lines = [item.name.replace('^O', 'ᴼ'), `${name(item.rows, r)} · ${name(item.cols, c)}`]
    if (value === undefined) lines.push(view.label.tip_unknown)
    else lines.push(Number.isNaN(value) ? view.label.legend_masked : short(value))
    view.showTip(x, y, lines)
  }
  // A row, a column or a cell of the tokens is followed; a dimension of V, O or Y too.
  click(found) {
    if (!found) return
    const { view } = this
    const { item, r, c } = found
    if (item.source === 'v' && view.step === 7) view.dim = c
    if (item.source === 'head_output') view.dim = c
    if (['output', 'w_o'].includes(item.source) && view.data.value('w_o', 1, c) !== undefined) view.out = c
    const row = item.rows === 'queries' ? r : view.cell.row
    const col = item.cols === 'keys' ? c : item.rows === 'keys' ? r : view.cell.col
    view.choose(row, col)
  }
  arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0] }
}
