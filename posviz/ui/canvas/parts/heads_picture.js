// The heads as a grid, or one head large: where every matrix stands and how it is painted.
// A block is one matrix: { s, h, part, x, y, rows, columns, cell, wide, tall, scale, high, left, top }.
// Needs parts/labels.js, parts/cells.js and parts/heads_data.js.
const MANY_HEADS = 8 // above this the heads are thumbnails without token labels
const NUMBER_CELL = 34
const VECTOR_CELL = 16 // smaller cells are pixels of an image
const SLANT = (55 * Math.PI) / 180

class HeadsPicture extends View {
  // ------------------------------------------------------------ geometry
  layout(width) {
    const beside = width >= 860
    const panelWidth = beside ? clamp(width * 0.25, 264, 340) : width
    const g = { width, beside, panelWidth, room: beside ? width - panelWidth - 40 : width, blocks: [], titles: [], notes: [], charts: [] }
    this.g = g
    if (this.open === null) this.layoutGrid(g)
    else this.layoutOpen(g)
    const drawn = g.blocks.map((b) => (b.cell < VECTOR_CELL ? this.raster(b).mean : 1))
    g.mean = Math.max(1, ...drawn)
    g.legend = legendLayout(this, this.legendItems(g), g.room)
    g.legendTop = g.bottom + 12
    const end = g.legendTop + g.legend.height + 6
    g.panelHeight = this.panelHeight()
    g.panelX = beside ? width - panelWidth : 0
    g.panelY = beside ? 0 : end + 20
    return beside ? Math.max(end, g.panelHeight) : g.panelY + g.panelHeight
  }
  widest(texts, size, weight) {
    this.ctx.font = this.text(size, weight)
    return Math.ceil(Math.max(0, ...texts.map((text) => this.ctx.measureText(text).width)))
  }
  // Room for the labels: of the queries left of the rows, of the keys above the columns.
  tokenRoom(s) { return this.labelRoom(this.data.tokens[s]) }
  keyRoom(s) { return this.labelRoom(this.data.keys[s]) }
  labelRoom(list) {
    if (!this.labelRooms.has(list)) this.labelRooms.set(list, Math.min(96, this.widest(list, 15)))
    return this.labelRooms.get(list)
  }
  // How far a slanted last label leans out; beside the panel there is room for it.
  spill(g) {
    const widest = Math.max(0, ...this.data.sentences.map((s) => this.keyRoom(s)))
    return g.beside ? 0 : Math.max(0, Math.min(90, widest) * Math.cos(SLANT) - 10)
  }
  topAxis(s, cell) {
    const widest = this.keyRoom(s)
    if (widest + 6 <= cell) return { height: 24, every: 1, slant: false }
    const every = Math.ceil(17 / cell)
    if (widest + 6 <= cell * every) return { height: 24, every, slant: false }
    return { height: Math.round(Math.min(90, widest) * Math.sin(SLANT)) + 14, every, slant: true }
  }
  // The largest cell that fits, in whole device pixels where that costs little.
  cellFor(n, size) {
    const ratio = window.devicePixelRatio || 1
    const whole = Math.floor((size * ratio) / n) / ratio
    return whole * n >= size * 0.88 ? whole : size / n
  }
  block(s, h, x, y, cell, more = {}) {
    const [rows, columns] = [this.data.rows(s), this.data.columns(s)]
    const look = { scale: s === 'd' ? 'difference' : s, high: 1, part: null, left: false, top: null }
    return { ...look, ...more, s, h, x, y, rows, columns, cell, wide: cell * columns, tall: cell * rows }
  }

  layoutGrid(g) {
    const { data, meta } = this
    const list = data.sentences
    const spill = this.spill(g)
    const thumbs = meta.heads > MANY_HEADS
    const most = Math.max(1, ...list.map((s) => data.columns(s)))
    g.thumbs = thumbs
    const named = list.length > 1
    g.side = named && g.room >= 560 ? (thumbs ? 56 : 88) : 0
    g.axis = thumbs ? 0 : Math.max(...list.map((s) => (data.cells(s) ? this.tokenRoom(s) : 0))) + 8
    const avail = g.room - g.side - g.axis - (thumbs ? 0 : spill)
    const gap = thumbs ? 8 : 14
    const [across, size] = thumbs ? this.thumbColumns(avail, gap, list.length) : this.fewColumns(avail, gap, most)
    const names = this.nameLines(size + gap - 4, thumbs ? 14 : 15)
    const nameHeight = Math.max(...names.map((lines) => lines.length)) * 17 + 11
    let y = 0
    for (let first = 0; first < meta.heads; first += across) {
      const heads = Array.from({ length: Math.min(across, meta.heads - first) }, (_, k) => first + k)
      heads.forEach((h, k) => g.titles.push({ h, x: g.side + g.axis + k * (size + gap), y, w: size, height: nameHeight, lines: names[h] }))
      y += nameHeight
      for (const s of list) y = this.layoutRow(g, s, heads, { y, size, gap, thumbs, named })
      y += thumbs ? 6 : 14
    }
    g.across = across
    g.bottom = y
  }
  layoutRow(g, s, heads, { y, size, gap, thumbs, named }) {
    const n = this.data.cells(s) && this.data.longest(s)
    if (named && !g.side && !thumbs) { // no room for a name beside the row: above it
      g.notes.push({ text: this.label[`row_${s}`], x: 0, y: y + 10, size: 16, weight: '600', colour: this.nameColour(s) })
      y += 22
    }
    const cell = n ? this.cellFor(n, Math.min(size, n * this.tallest())) : 0
    const top = n && !thumbs ? this.topAxis(s, cell) : null
    y += top?.height ?? 0
    const height = n ? cell * this.data.rows(s) : 72
    if (g.side) this.nameRow(g, s, y, height, thumbs)
    if (!n) g.notes.push({ text: this.label[s === 'd' ? 'no_matches' : `empty_${s}`], x: g.side + g.axis, y: y + 36, size: 15, colour: this.theme.quiet })
    else heads.forEach((h, k) => g.blocks.push(this.block(s, h, g.side + g.axis + k * (size + gap), y, cell, { left: k === 0 && !thumbs, top })))
    return y + height + (thumbs ? 8 : 12)
  }
  // Cells so tall that the rows of all sentences fit below a page's title, where the window is large enough.
  tallest() {
    const rows = this.data.sentences.reduce((sum, s) => sum + this.data.rows(s), 0)
    return clamp((window.innerHeight - 460) / Math.max(1, rows), 52, 84)
  }
  nameRow(g, s, y, height, thumbs) {
    const note = { x: 0, colour: this.nameColour(s), weight: '600' }
    const caption = thumbs ? [] : this.captionLines(s, g.side - 8)
    const middle = y + height / 2 - caption.length * 9
    g.notes.push({ ...note, text: this.label[`row_${s}`], y: middle, size: thumbs ? 16 : 22 })
    caption.forEach((text, i) => g.notes.push({ text, x: 0, y: middle + 24 + i * 19, size: 14, max: g.side - 8, colour: this.theme.quiet }))
  }
  captionLines(s, width) {
    const text = this.meta.captions[s]
    if (!text) return []
    this.ctx.font = this.text(14)
    const lines = wrapText(this.ctx, visible(text), width)
    return lines.length > 3 ? [...lines.slice(0, 2), `${lines[2]}…`] : lines
  }
  nameColour(s) { return s === 'd' ? this.theme.text : this.theme[s] }
  // Up to eight heads: cells large enough for numbers if that is possible, in as few lines as fit.
  fewColumns(avail, gap, most) {
    const { heads } = this.meta
    const wish = Math.max(this.titleWidth(), clamp(most * 26, 64, 110))
    const lines = Math.ceil(heads / Math.max(1, Math.floor((avail + gap) / (wish + gap))))
    const across = Math.ceil(heads / lines)
    return [across, Math.min(300, (avail - (across - 1) * gap) / across)]
  }
  // Thumbnails: as large as a screenful allows; `columns` (heads a layer) keeps layers in line.
  thumbColumns(avail, gap, rows) {
    const { heads, columns } = this.meta
    const least = Math.max(44, this.longestWord() - gap + 4) // a name may reach into the gap
    const most = Math.max(1, Math.floor((avail + gap) / (least + gap)))
    const sizeOf = (n) => Math.min(180, (avail - (n - 1) * gap) / n)
    const fits = (n) => Math.ceil(heads / n) * (34 + rows * (sizeOf(n) + 8)) <= 960
    const whole = (n) => (columns ? columns % n === 0 : Math.ceil(heads / Math.ceil(heads / n)) === n) // lines of one length
    const choices = Array.from({ length: Math.min(most, heads) }, (_, i) => i + 1).filter(whole)
    const across = choices.find(fits) ?? choices.at(-1)
    return [across, sizeOf(across)]
  }
  titleWidth() { return this.widest(this.meta.head_labels, 14) }
  longestWord() { return this.widest(this.meta.head_labels.flatMap((name) => name.split(' ')), 14) }
  nameLines(width, size) {
    this.ctx.font = this.text(size)
    return this.meta.head_labels.map((name) => wrapText(this.ctx, name, width))
  }

  layoutOpen(g) {
    const { data, label } = this
    const h = this.open
    const shown = data.sentences.filter((s) => data.cells(s))
    const three = shown.length > 1 && (g.room >= 1080 || this.numbersFit(shown, (g.room - this.spill(g) - 48) / 3))
    const wanted = three ? 3 : g.room >= 540 ? 2 : 1
    const gap = three && g.room < 1080 ? 24 : 40
    const free = g.room - this.spill(g) - (wanted - 1) * gap
    const widths = shown.length === 1 && wanted === 2 ? [free * 0.6, free * 0.4] : Array(wanted).fill(free / wanted)
    const left = (k) => widths.slice(0, k).reduce((sum, w) => sum + w + gap, 0)
    g.notes.push({ text: this.meta.head_labels[h], x: 0, y: 18, size: 22, weight: '600' })
    const tiles = [...shown.map((s) => ({ s })), ...(shown.length && !this.meta.cross ? [{ chart: 'profile' }] : []), ...(this.arrays.bias_x ? [{ chart: 'bias' }] : [])]
    let y = 50
    for (let i = 0; i < tiles.length; i += wanted) {
      const row = tiles.slice(i, i + wanted).map((one, k) => (one.s ? this.measureTile(one.s, widths[k]) : { ...one, height: 280 }))
      const alone = row.every((one) => one.chart) // a line of charts only: they share it
      const share = Math.min(640, (g.room - (row.length - 1) * gap) / row.length)
      const height = Math.max(...row.map((one) => one.height))
      row.forEach((one, k) => {
        const x = alone ? k * (share + gap) : left(k)
        if (one.chart) return g.charts.push(this.chartBox(one.chart, x, y, alone ? share : widths[k], Math.min(height, 380)))
        g.notes.push({ text: label[`row_${one.s}`], x: x + one.axis, y: y + 12, size: 18, weight: '600', colour: this.nameColour(one.s) })
        g.blocks.push(this.block(one.s, h, x + one.axis, y + 30 + one.top.height, one.cell, { left: true, top: one.top }))
      })
      y += height + 28
    }
    g.across = 1
    g.bottom = this.layoutParts(g, h, shown, y)
  }
  // Whether tiles of this width have cells large enough for numbers: then all of A, B and A − B is seen at once.
  numbersFit(shown, tile) {
    return shown.every((s) => (tile - this.tokenRoom(s) - 8) / this.data.longest(s) >= NUMBER_CELL)
  }
  chartBox(kind, x, y, w, h) {
    this.ctx.font = this.text(15, '600')
    return { kind, x, y, w, h, lines: wrapText(this.ctx, this.label[kind === 'bias' ? 'bias_profile' : 'profile'], w) }
  }
  measureTile(s, tile) {
    const axis = this.tokenRoom(s) + 8
    const n = this.data.longest(s)
    const cell = this.cellFor(n, Math.min(tile - axis, 560, n * 110))
    const top = this.topAxis(s, cell)
    return { s, axis, cell, top, height: 30 + top.height + cell * this.data.rows(s) }
  }
  layoutParts(g, h, shown, y) {
    const { data, label } = this
    const rows = shown.filter((s) => data.partNames(s).length)
    if (!rows.length) return y - 12
    g.partHigh = data.largestPart(h)
    g.notes.push({ text: label.parts_title, x: 0, y: y + 10, size: 16, weight: '600' })
    const names = data.partNames(rows[0])
    const side = 28
    const size = Math.min(220, (g.room - side - (names.length - 1) * 16) / names.length)
    this.ctx.font = this.text(14)
    const heads = names.map((name) => wrapText(this.ctx, label[`part_${name}`], size - 16))
    const lines = Math.max(...heads.map((head) => head.length))
    heads.forEach((head, k) => head.forEach((text, i) => {
      g.notes.push({ text, x: side + k * (size + 16) + 16, y: y + 40 + i * 18, size: 14, swatch: i ? null : names[k] })
    }))
    y += 40 + lines * 18
    for (const s of rows) {
      const cell = this.cellFor(data.longest(s), size)
      g.notes.push({ text: label[`row_${s}`], x: 0, y: y + (cell * data.rows(s)) / 2, size: 18, weight: '600', colour: this.nameColour(s) })
      data.partNames(s).forEach((part, k) =>
        g.blocks.push(this.block(s, h, side + k * (size + 16), y, cell, { part, scale: 'signed', high: g.partHigh })))
      y += cell * data.rows(s) + 14
    }
    return y
  }

  legendItems(g) {
    const { label, data } = this
    const items = data.sentences.filter((s) => data.cells(s)).map((s) => ({ text: label[`legend_${s}`], scale: s === 'd' ? 'difference' : s }))
    if (g.partHigh) items.push({ text: fill(label.legend_parts, { vmax: formatNumber(g.partHigh, 3) }), scale: 'signed' })
    if (data.sentences.some((s) => data.masked(s))) {
      items.push({ text: label.legend_masked, width: 20, paint: (ctx, x, y) => this.hatch(ctx, x, y - 8, 16, 16) })
    }
    const plain = [label.legend_axes]
    if (g.mean > 1) plain.push(fill(label.legend_averaged, { count: g.mean }))
    return [...items, ...plain.map((text) => ({ text, width: 0, paint() {} }))]
  }

  // ------------------------------------------------------------ one matrix
  raster(b) {
    const ratio = window.devicePixelRatio || 1
    const [width, height] = [b.wide, b.tall].map((v) => Math.round(v * ratio))
    const key = [b.s, b.part, b.h, width, height].join('|')
    if (!this.rasters.has(key)) {
      const view = { r0: 0, r1: b.rows, c0: 0, c1: b.columns }
      const vmin = b.scale === 'a' || b.scale === 'b' ? 0 : -b.high
      this.luts[b.scale] ??= lookupTable(this.theme, b.scale)
      const look = { width, height, limit: b.rows, lut: this.luts[b.scale], vmin, vmax: b.high }
      const made = rasterize(this.data.source(b.s, b.h, b.part), view, look)
      this.rasters.set(key, { canvas: made.canvas, mean: made.grid.br })
    }
    return this.rasters.get(key)
  }
  cellValue(b, i, j) {
    return b.part ? this.data.part(b.s, b.part, b.h, i, j) : this.data.weight(b.s, b.h, i, j)
  }
  drawBlock(ctx, b) {
    if (this.data.masked(b.s)) this.hatch(ctx, b.x, b.y, b.wide, b.tall)
    if (b.cell < VECTOR_CELL) {
      ctx.imageSmoothingEnabled = false
      ctx.drawImage(this.raster(b).canvas, b.x, b.y, b.wide, b.tall)
    } else this.drawCells(ctx, b)
    ctx.strokeStyle = css(this.theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(b.x - 0.5, b.y - 0.5, b.wide + 1, b.tall + 1)
    if (b.top) this.drawTopAxis(ctx, b)
    if (b.left) this.drawLeftAxis(ctx, b)
  }
  // Under the cells; only masked ones let it be seen.
  hatch(ctx, x, y, wide, tall) {
    const { theme } = this
    ctx.fillStyle = css(mix(theme.text, theme.background, 0.93))
    ctx.fillRect(x, y, wide, tall)
    ctx.strokeStyle = css(mix(theme.text, theme.background, 0.72))
    ctx.lineWidth = 1
    ctx.beginPath()
    for (let c = 6; c < wide + tall; c += 7) { // the lines x + y = c inside the rectangle
      const [low, high] = [Math.max(0, c - tall), Math.min(wide, c)]
      ctx.moveTo(x + low, y + c - low)
      ctx.lineTo(x + high, y + c - high)
    }
    ctx.stroke()
  }
  drawCells(ctx, b) {
    const size = clamp(b.cell * 0.25, 14, 18)
    ctx.textAlign = 'center'
    ctx.textBaseline = 'middle'
    ctx.font = this.text(size)
    const gap = b.cell >= 24 ? 1 : 0.5
    const masked = this.data.masked(b.s)
    for (let i = 0; i < b.rows; i++) {
      for (let j = 0; j < b.columns; j++) {
        if (!this.data.allowed(b.s, i, j)) continue
        const v = this.cellValue(b, i, j)
        const rgb = SCALES[b.scale](this.theme, clamp(v / b.high, -1, 1))
        const [x, y] = [b.x + j * b.cell, b.y + i * b.cell]
        if (masked) { // hide the hatching between the cells
          ctx.fillStyle = css(this.theme.background)
          ctx.fillRect(x, y, b.cell, b.cell)
        }
        ctx.fillStyle = css(rgb)
        ctx.fillRect(x, y, b.cell - gap, b.cell - gap)
        const text = b.cell >= NUMBER_CELL ? this.cellText(ctx, b, v) : ''
        if (!text) continue
        ctx.fillStyle = css(inkOn(rgb, this.theme))
        ctx.fillText(text, x + (b.cell - gap) / 2, y + (b.cell - gap) / 2)
      }
    }
  }
  // Two decimals; where signs leave no room for the leading zero, without it; never in smaller type.
  cellText(ctx, b, v) {
    const signed = b.part !== null || b.s === 'd'
    const zero = Math.abs(v) < 0.005
    const full = signed && !zero ? formatSigned(v, 2) : Math.abs(v).toFixed(2)
    return [full, full.replace('0.', '.')].find((text) => ctx.measureText(text).width <= b.cell - 4) ?? ''
  }
  drawTopAxis(ctx, b) {
    const colour = this.nameColour(b.s)
    const tokens = this.data.keys[b.s]
    for (let j = 0; j < b.columns; j += b.top.every) {
      const x = b.x + (j + 0.5) * b.cell
      if (!b.top.slant) {
        this.write(ctx, tokens[j], x, b.y - 13, { size: 15, colour, align: 'center' })
        continue
      }
      ctx.save()
      ctx.translate(x + 2, b.y - 6)
      ctx.rotate(-SLANT)
      this.write(ctx, tokens[j], 0, 0, { size: 15, colour, max: 90 })
      ctx.restore()
    }
  }
  drawLeftAxis(ctx, b) {
    const { every } = b.top // as above the columns
    for (let i = 0; i < b.rows; i += every) {
      const y = b.y + (i + 0.5) * b.cell
      this.write(ctx, this.data.tokens[b.s][i], b.x - 7, y, { size: 15, colour: this.nameColour(b.s), align: 'right', max: 97 })
    }
  }

  // ------------------------------------------------------------ the whole
  draw(ctx) {
    const { g, theme } = this
    ctx.lineCap = 'butt'
    for (const title of g.titles) {
      const lit = this.overTitle === title.h
      const style = { size: this.g.thumbs ? 14 : 15, weight: lit ? '600' : 'normal', colour: lit ? theme.text : theme.quiet, align: 'center' }
      title.lines.forEach((line, i) => this.write(ctx, line, title.x + title.w / 2, title.y + title.height - 15 - (title.lines.length - 1 - i) * 17, style))
    }
    this.drawStill(ctx)
    this.drawMarks(ctx)
    for (const chart of g.charts) this.drawChart(ctx, chart)
    drawLegend(this, ctx, g.legend, 0, g.legendTop)
    this.drawPanel(ctx)
  }
  // What a moving pointer does not change. With many blocks it is painted once and copied on.
  drawStill(ctx) {
    const { g } = this
    if (ctx !== this.ctx || g.blocks.length < 24) return this.drawBlocks(ctx)
    if (!g.still) {
      g.still = sheet(this.canvas.width, this.canvas.height)
      const to = g.still.getContext('2d')
      to.scale(this.ratio, this.ratio)
      this.drawBlocks(to)
    }
    ctx.drawImage(g.still, 0, 0, g.still.width / this.ratio, g.still.height / this.ratio)
  }
  drawBlocks(ctx) {
    const { g, theme } = this
    for (const note of g.notes) {
      if (note.swatch) {
        ctx.fillStyle = css(partColour(theme, note.swatch))
        ctx.fillRect(note.x - 16, note.y - 6, 11, 11)
      }
      this.write(ctx, note.text, note.x, note.y, { ...note, colour: note.colour ?? theme.text })
    }
    for (const b of g.blocks) this.drawBlock(ctx, b)
  }
  // The cell under the pointer, else the pinned one; in an open head, that head's cell at the same place.
  chosen() {
    if (this.spot || !this.pin) return this.spot
    return this.open === null ? this.pin : { ...this.pin, h: this.open }
  }
  // The chosen cell, the same words in the other rows, and quietly the same cell in the other heads.
  drawMarks(ctx) {
    const cell = this.chosen()
    if (cell) {
      const same = new Map([[cell.s, [cell.i, cell.j]], ...this.data.partners(cell).map(([s, i, j]) => [s, [i, j]])])
      for (const b of this.g.blocks) {
        if (!same.has(b.s)) continue
        if (b.h !== cell.h && (b.s !== cell.s || b.cell < 5)) continue
        this.mark(ctx, b, ...same.get(b.s), b.h === cell.h && b.s === cell.s ? 2.5 : b.h === cell.h ? 1.5 : 1)
      }
    }
    if (!this.pin || !this.spot) return
    for (const b of this.g.blocks) if (b.h === this.pin.h && b.s === this.pin.s) this.mark(ctx, b, this.pin.i, this.pin.j, 2.5)
  }
  mark(ctx, b, i, j, width) {
    const { theme } = this
    const size = Math.max(3, b.cell)
    const [x, y] = [b.x + (j + 0.5) * b.cell - size / 2, b.y + (i + 0.5) * b.cell - size / 2]
    if (width > 1) {
      ctx.strokeStyle = css(theme.background) // a light edge, so that the mark shows on dark cells too
      ctx.lineWidth = width + 2
      ctx.strokeRect(x - 0.5, y - 0.5, size, size)
    }
    ctx.strokeStyle = css(width > 1 ? theme.text : theme.faint)
    ctx.lineWidth = width
    ctx.strokeRect(x - 0.5, y - 0.5, size, size)
  }
}
