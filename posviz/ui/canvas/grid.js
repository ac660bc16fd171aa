// needs parts/labels.js, parts/cells.js
// The Studio's grid: one small picture a head, layers down, heads across, or sorted by a measured score.
// Beside it the head under the pointer, large, with everything that was measured of it.
const GAP = 10
const STRIP = 6 // the bar of a score in the panel
const FOOT = 20 // the line of text under a picture on its tile
const LEAST = 84 // the smallest picture that has room for its name and number
const ROW = 33 // a score in the panel
const RAMP = 120 // the scale of the tiles in the legend
const NAMED = 15 // px of a row or column that a name needs
const SLOPE = 0.9 // radians: of names too wide for their columns
const INKS = [[4, 5, 8], [255, 255, 255]] // of text on a tile

// WCAG's contrast ratio, 1 to 21
const brightness = (rgb) => rgb.map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
function contrast(a, b) {
  const [low, high] = [brightness(a), brightness(b)].sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}

class GridView extends View {
  constructor(host) {
    super(host)
    Object.assign(this, { look: null, spot: null, sent: [], sheets: new Map() })
    this.sides = this.segmentsOf(['a', 'b', 'd'], (side) => this.change({ side }))
    const label = element('label', '', this.controls)
    this.measureName = element('span', '', label)
    this.measure = element('select', '', label)
    this.measure.onchange = () => this.change({ measure: this.measure.value })
    this.sorted = this.toggle(() => this.change({ sorted: !this.look.sorted }))
    this.own = this.toggle(() => this.change({ own: !this.look.own }))
  }
  segmentsOf(values, choose) {
    const group = element('span', 'segments', this.controls)
    group.setAttribute('role', 'group')
    const buttons = values.map((value) => {
      const button = element('button', '', group)
      Object.assign(button, { type: 'button', onclick: () => choose(value) })
      button.dataset.value = value
      return button
    })
    return { group, buttons }
  }
  toggle(action) {
    const button = element('button', '', this.controls)
    return Object.assign(button, { type: 'button', onclick: action })
  }

  // ------------------------------------------------------------ data
  changed() {
    const { meta, label } = this
    this.sheets.clear()
    const seen = (lists) => Object.fromEntries(Object.entries(lists).map(([s, list]) => [s, list.map(visible)]))
    Object.assign(this, { tokens: seen(meta.tokens), keys: seen(meta.keys) })
    this.takeLook()
    this.sides.group.ariaLabel = label.side
    this.sides.buttons.forEach((b) => { b.textContent = label[`side_${b.dataset.value}`] })
    this.measureName.textContent = label.measure
    const options = [['', label.plain], ...meta.measures.map(({ name }) => [name, label[name]])]
    this.measure.replaceChildren(...options.map(([value, text]) => Object.assign(document.createElement('option'), { value, textContent: text })))
    this.sorted.textContent = label.sorted
    this.own.textContent = label.own
    if (this.spot && (this.spot.n >= meta.layers || this.spot.h >= meta.heads)) this.spot = null
    this.showState()
  }
  // The server's look counts when it is news; the echo of an own change, perhaps late, is not.
  takeLook() {
    const key = JSON.stringify(this.meta.look)
    const echo = this.sent.indexOf(key)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (key !== this.told) this.look = { ...this.meta.look }
    this.told = key
  }
  change(part) {
    this.look = { ...this.look, ...part }
    if (!this.look.measure) this.look.sorted = false // there is nothing to sort by
    this.sent.push(JSON.stringify(this.look))
    if (this.sent.length > 50) this.sent.shift()
    this.send('look', { ...this.look })
    this.showState()
    this.resize()
  }
  showState() {
    const { look } = this
    this.sides.buttons.forEach((b) => b.setAttribute('aria-pressed', String(b.dataset.value === look.side)))
    this.measure.value = look.measure
    this.sorted.setAttribute('aria-pressed', String(look.sorted))
    this.sorted.disabled = !look.measure
    this.own.setAttribute('aria-pressed', String(look.own))
    const { dataset } = this.canvas
    Object.assign(dataset, { side: look.side, measure: look.measure, sorted: String(look.sorted) })
    dataset.head = this.spot ? `${this.spot.n},${this.spot.h}` : ''
    dataset.order = this.order().slice(0, 12).map(({ n, h }) => `${n}.${h}`).join(' ')
  }
  score(name, { n, h }) { return this.arrays[`score.${name}`][n * this.meta.heads + h] }
  // All heads in the order in which they stand.
  order() {
    const { meta, look } = this
    const all = Array.from({ length: meta.layers * meta.heads }, (_, k) => ({ n: Math.floor(k / meta.heads), h: k % meta.heads }))
    if (!look.sorted || !look.measure) return all
    const value = (cell) => this.score(look.measure, cell)
    return all.sort((x, y) => (Number.isNaN(value(x)) ? 1 : Number.isNaN(value(y)) ? -1 : value(y) - value(x)))
  }
  // The head shown large: the one pointed at, else the one the page chose.
  shown() { return this.spot ?? this.meta.chosen }
  // Rows and columns of a small picture.
  cells() { return this.arrays[`${this.look.side}.thumbs`].shape.slice(2) }

  // ------------------------------------------------------------ geometry
  layout(width) {
    const { meta, look } = this
    const beside = width >= 820
    const panel = beside ? clamp(width * 0.3, 280, 380) : width
    const room = beside ? width - panel - 36 : width
    const flow = look.sorted && look.measure
    const g = { width, beside, panel, room, flow, rim: 0, foot: 0, gap: GAP }
    this.g = g
    this.ctx.font = this.text(14)
    if (look.measure) this.measureTiles(g)
    g.left = (flow ? 2 : Math.ceil(this.ctx.measureText(fill(this.label.layer, { layer: meta.layers })).width) + 12) + g.rim
    g.top = (flow ? 3 : 26) + g.rim
    this.measurePanel(g)
    const across = flow ? this.flowColumns(room) : meta.heads
    const size = Math.min((room - g.left - (across - 1) * g.gap - g.rim) / across, Math.max(flow ? LEAST : 40, this.fits(across)))
    Object.assign(g, { across, size: Math.max(12, Math.floor(size)), pitchX: Math.floor(size) + g.gap, pitchY: Math.floor(size) + g.gap + g.foot })
    const bottom = g.top + Math.ceil((meta.layers * meta.heads) / across) * g.pitchY
    g.legend = legendLayout(this, this.legendItems(), room)
    g.legendTop = bottom + 6
    const end = g.legendTop + g.legend.height + 4
    g.panelX = beside ? width - panel : 0
    g.panelY = beside ? 0 : end + 16
    g.places = this.order().map((cell, k) => ({ ...cell, x: g.left + (k % across) * g.pitchX, y: g.top + Math.floor(k / across) * g.pitchY }))
    g.still = null
    return beside ? Math.max(end, g.panelHeight) : g.panelY + g.panelHeight
  }
  // With a measure every picture lies on a tile in the colour of its score: a rim around it, a foot below that says
  // the number where it fits.
  measureTiles(g) {
    const { name, most } = this.measured(this.look.measure)
    this.ctx.font = this.text(14, '600')
    const number = this.ctx.measureText(this.number(name, most)).width
    this.ctx.font = this.text(14)
    const { heads, layers } = this.meta
    const about = g.flow ? LEAST : Math.min((g.room - 80) / heads, window.innerHeight / (layers + 2))
    g.numbered = g.flow || (g.room - 80) / heads > number + 4
    g.rim = g.numbered ? clamp(Math.round(about * 0.05), 5, 9) : 3
    Object.assign(g, { foot: g.numbered ? FOOT : 4, gap: 2 * g.rim + 3 })
  }
  // The size at which the whole grid stands beside the panel, or on the first screen.
  fits(across) {
    const { g, meta } = this
    const height = Math.max(window.innerHeight - 400, g.panelHeight - 60)
    return Math.min(200, height / Math.ceil((meta.layers * meta.heads) / across) - g.gap - g.foot)
  }
  // A sorted grid: the fewest columns with which it fits, and no picture smaller than its name.
  flowColumns(room) {
    const all = this.meta.layers * this.meta.heads
    const { gap } = this.g
    const most = clamp(Math.floor((room + gap) / (LEAST + gap)), 1, all)
    for (let across = Math.min(3, most); across < most; across++) {
      if ((room + gap) / across - gap <= this.fits(across)) return across
    }
    return most
  }
  measurePanel(g) {
    this.ctx.font = this.text(14)
    g.lines = [this.label.uniform, this.label.hint].flatMap((text) => wrapText(this.ctx, text, g.panel))
    g.large = Math.min(g.panel, clamp(window.innerHeight * 0.27, 180, 280))
    g.panelHeight = 34 + g.large + 50 + this.meta.measures.length * ROW + g.lines.length * 19 + 8
  }
  legendItems() {
    const { label, look } = this
    const scale = look.side === 'd' ? 'difference' : look.side
    const block = Math.ceil(this.keys[look.side].length / Math.max(1, this.cells()[1]))
    const plain = [label.legend_axes, ...(block > 1 ? [fill(label.legend_pooled, { count: block })] : [])]
    const items = [{ text: look.own ? label.legend_own : label[`legend_${look.side}`], scale }]
    if (look.measure) items.push(this.tileLegend())
    return [...items, ...plain.map((text) => ({ text, width: 0, paint() {} }))]
  }
  // The scale of the tiles, and in it what a head scores that looks at all alike.
  tileLegend() {
    const { label, look } = this
    const { name, most, uniform } = this.measured(look.measure)
    const range = { name: label[name], most: name === 'distance' ? most : 1 }
    const text = uniform === null ? fill(label.legend_tile, range) : fill(label.legend_tile_even, { ...range, value: this.number(name, uniform) })
    return { text, width: RAMP, paint: (ctx, x, y) => {
      drawRamp(this, ctx, 'position', x, y - 7, RAMP, 14)
      if (uniform !== null) this.evenMark(ctx, x + clamp(uniform / most, 0, 1) * RAMP, y - 10, 20)
    } }
  }
  evenMark(ctx, x, y, tall) {
    ctx.fillStyle = css(this.theme.text)
    ctx.fillRect(x - 1, y, 2, tall)
  }

  // ------------------------------------------------------------ one head
  // Its cells as a canvas, one pixel each.
  sheetOf({ n, h }) {
    const { look, meta } = this
    const key = [look.side, look.own, n, h].join()
    if (this.sheets.has(key)) return this.sheets.get(key)
    const [rows, columns] = this.cells()
    const made = sheet(columns, rows)
    if (!rows || !columns) return made
    const array = this.arrays[`${look.side}.thumbs`]
    const mask = this.arrays[`${look.side}.allowed`]
    const start = (n * meta.heads + h) * rows * columns
    const signed = look.side === 'd'
    const zero = signed ? 127 : 0
    let most = signed ? 127 : 255
    if (look.own) {
      most = 1
      for (let k = 0; k < rows * columns; k++) most = Math.max(most, Math.abs(array[start + k] - zero))
    }
    this.tables ??= {}
    const lut = new Uint32Array((this.tables[look.side + this.theme.dark] ??= lookupTable(this.theme, signed ? 'difference' : look.side)).buffer)
    const image = new ImageData(columns, rows)
    const pixels = new Uint32Array(image.data.buffer)
    for (let k = 0; k < rows * columns; k++) {
      if (mask && !mask[k]) continue
      const v = (array[start + k] - zero) / most
      pixels[k] = lut[Math.round(clamp(signed ? 127.5 + v * 127.5 : v * 255, 0, 255))]
    }
    made.getContext('2d').putImageData(image, 0, 0)
    this.sheets.set(key, made)
    return made
  }
  drawHead(ctx, cell, x, y, size) {
    const { theme } = this
    ctx.fillStyle = css(mix(theme.text, theme.background, 0.93)) // what is masked stays this grey
    ctx.fillRect(x, y, size, size)
    const most = Math.max(...this.cells())
    if (Math.min(...this.cells())) {
      ctx.imageSmoothingEnabled = size < most // shrinking blends, enlarging keeps the cells
      ctx.drawImage(this.sheetOf(cell), x, y, size, size)
    }
    ctx.strokeStyle = css(theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1)
  }
  measured(name) { return this.meta.measures.find((one) => one.name === name) }
  number(name, value) {
    if (Number.isNaN(value)) return '–'
    return value.toFixed(name === 'distance' ? 1 : 2)
  }
  // What the tile of a head is painted in; a head without a score has none.
  tint(cell) {
    const value = this.score(this.look.measure, cell)
    return Number.isNaN(value) ? null : SCALES.position(this.theme, clamp(value / this.measured(this.look.measure).most, 0, 1))
  }
  drawTile(ctx, place) {
    const { g, look, theme } = this
    const tint = this.tint(place)
    const [x, y] = [place.x - g.rim, place.y - g.rim]
    const [wide, tall] = [g.size + 2 * g.rim, g.size + 2 * g.rim + g.foot]
    if (tint) {
      ctx.fillStyle = css(tint)
      ctx.fillRect(x, y, wide, tall)
    }
    ctx.strokeStyle = css(theme.line)
    ctx.lineWidth = 1
    ctx.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1)
    if (!g.numbered) return
    const ink = tint ? INKS.reduce((one, other) => (contrast(one, tint) >= contrast(other, tint) ? one : other)) : theme.text
    const foot = place.y + g.size + g.rim / 2 + g.foot / 2 + 1
    const number = this.number(look.measure, this.score(look.measure, place))
    if (g.flow) {
      this.write(ctx, `${place.n + 1}·${place.h}`, place.x, foot, { colour: ink })
      this.write(ctx, number, place.x + g.size, foot, { align: 'right', weight: '600', colour: ink })
    } else this.write(ctx, number, place.x + g.size / 2, foot, { align: 'center', weight: '600', colour: ink })
  }

  // ------------------------------------------------------------ the whole
  draw(ctx) {
    const { g } = this
    this.drawStill(ctx)
    const at = this.shown()
    const place = g.places.find(({ n, h }) => n === at.n && h === at.h)
    ctx.strokeStyle = css(this.theme.text)
    ctx.lineWidth = this.spot ? 2.5 : 1.5
    const far = g.rim + 2
    ctx.strokeRect(place.x - far, place.y - far, g.size + 2 * far, g.size + 2 * far + g.foot)
    this.canvas.dataset.place = [place.x, place.y, g.size].join()
    drawLegend(this, ctx, g.legend, 0, g.legendTop)
    this.drawPanel(ctx)
  }
  // Hundreds of small pictures are painted once; a moving pointer copies them.
  drawStill(ctx) {
    const { g } = this
    if (ctx !== this.ctx) return this.drawAll(ctx)
    if (!g.still) {
      g.still = sheet(this.canvas.width, this.canvas.height)
      const to = g.still.getContext('2d')
      to.scale(this.ratio, this.ratio)
      this.drawAll(to)
    }
    ctx.drawImage(g.still, 0, 0, g.still.width / this.ratio, g.still.height / this.ratio)
  }
  drawAll(ctx) {
    const { g, meta, label, look, theme } = this
    if (!g.flow) {
      for (let h = 0; h < meta.heads; h++) {
        const text = h || g.pitchX > 90 ? String(h) : `${label.heads} 0`
        this.write(ctx, g.pitchX > 90 ? fill(label.head, { head: h }) : text, g.left + h * g.pitchX + g.size / 2, 10, { colour: theme.quiet, align: 'center' })
      }
      for (let n = 0; n < meta.layers; n++) {
        this.write(ctx, fill(label.layer, { layer: n + 1 }), 0, g.top + n * g.pitchY + g.size / 2, { colour: theme.quiet })
      }
    }
    for (const place of g.places) {
      if (look.measure) this.drawTile(ctx, place)
      this.drawHead(ctx, place, place.x, place.y, g.size)
    }
    if (!this.tokens[look.side].length) this.write(ctx, label.no_matches, g.left, g.top + 30, { size: 16, colour: theme.quiet })
  }
  drawPanel(ctx) {
    const { g, label, theme, look } = this
    let [x, y] = [g.panelX, g.panelY + this.shift()]
    const cell = this.shown()
    this.write(ctx, fill(label.title, { layer: cell.n + 1, head: cell.h }), x, y + 12, { size: 18, weight: '600' })
    this.write(ctx, label[`side_${look.side}`], x + g.panel, y + 12, { size: 18, weight: '600', align: 'right', colour: look.side === 'd' ? theme.text : theme[look.side] })
    y += 34
    const size = this.drawLarge(ctx, cell, x, y)
    y += size + 26
    this.write(ctx, label.scores_of, x, y, { size: 15, weight: '600' })
    y += 24
    for (const { name, most, uniform } of this.meta.measures) {
      const value = this.score(name, cell)
      this.write(ctx, label[name], x, y, { size: 15, colour: name === look.measure ? theme.positionText : theme.text, weight: name === look.measure ? '600' : 'normal', max: g.panel - 70 })
      this.write(ctx, this.number(name, value), x + g.panel, y, { size: 15, weight: '600', align: 'right' })
      const px = (v) => clamp(v / most, 0, 1) * g.panel
      ctx.fillStyle = css(theme.line)
      ctx.fillRect(x, y + 11, g.panel, STRIP)
      ctx.fillStyle = css(theme.position)
      if (value > 0) ctx.fillRect(x, y + 11, px(value), STRIP)
      if (uniform !== null) this.evenMark(ctx, x + px(uniform), y + 8, STRIP + 6)
      y += ROW
    }
    g.lines.forEach((line, i) => this.write(ctx, line, x, y + i * 19, { colour: theme.quiet }))
  }
  // The head large, with its tokens where they can be read; returns its height.
  drawLarge(ctx, cell, x, y) {
    const { g, look, theme } = this
    const [tokens, keys] = [this.tokens[look.side], this.keys[look.side]]
    const [rows, columns] = this.cells()
    const named = rows > 0 && tokens.length === rows && keys.length === columns && Math.max(rows, columns) * NAMED <= g.large - 60
    ctx.font = this.text(14)
    const widest = (list) => Math.ceil(Math.max(...list.map((t) => ctx.measureText(t).width)))
    const left = named ? Math.min(84, widest(tokens)) + 8 : 0
    const slanted = named && widest(keys) > (g.large - left) / columns - 3
    const top = !named ? 0 : slanted ? Math.round(Math.min(84, widest(keys)) * Math.sin(SLOPE)) + 14 : 20
    const size = g.large - Math.max(left, top)
    this.drawHead(ctx, cell, x + left, y + top, size)
    if (!named) return g.large
    const colour = look.side === 'd' ? theme.text : theme[look.side]
    tokens.forEach((token, i) => this.write(ctx, token, x + left - 8, y + top + ((i + 0.5) * size) / rows, { colour, align: 'right', max: left - 8 }))
    keys.forEach((token, j) => {
      const middle = x + left + ((j + 0.5) * size) / columns
      if (!slanted) return this.write(ctx, token, middle, y + 8, { colour, align: 'center' })
      ctx.save()
      ctx.translate(middle + 2, y + top - 7)
      ctx.rotate(-SLOPE)
      this.write(ctx, token, 0, 0, { colour, max: 84 })
      ctx.restore()
    })
    return top + size
  }
  // A tall grid: the panel comes to where the reader is.
  shift() {
    if (!this.g.beside) return 0
    const hidden = 72 - this.canvas.getBoundingClientRect().top // Streamlit's header covers the first 60 px
    return hidden > 72 ? clamp(hidden, 0, Math.max(0, this.height - this.g.panelHeight)) : 0
  }

  // ------------------------------------------------------------ pointer and keys
  hit(x, y) {
    const { g } = this
    return g.places.find((p) => x >= p.x - g.rim && x < p.x + g.size + g.rim && y >= p.y - g.rim && y < p.y + g.size + g.foot + g.rim) ?? null
  }
  pointer(kind, x, y) {
    if (kind !== 'move' && kind !== 'click' && kind !== 'down') return
    const found = this.hit(x, y)
    this.canvas.style.cursor = found ? 'pointer' : ''
    if (found) this.point(found)
    if (kind === 'click' && found) this.open(found)
  }
  point({ n, h }) {
    if (this.spot?.n === n && this.spot.h === h) return
    this.spot = { n, h }
    this.showState()
    this.redraw()
  }
  open({ n, h }) { this.send('open', { layer: n, head: h }) }
  // Arrows walk the grid, Enter opens the head.
  key(event) {
    const { places, across } = this.g
    if (event.key === 'Enter' && this.spot) return this.open(this.spot), true
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key]
    if (!step) return false
    const at = this.spot ? places.findIndex(({ n, h }) => n === this.spot.n && h === this.spot.h) + step : 0
    if (places[at]) this.point(places[at])
    return true
  }
}

export default mount((host) => new GridView(host))
