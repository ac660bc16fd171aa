// needs parts/labels.js, parts/part_colours.js, parts/cells.js, parts/heads_data.js, parts/heads_picture.js, parts/heads_panel.js
// The Attention page. Columns are heads, rows A, B and A − B; a cell says where its weight comes from,
// a head's name opens that head large.
class HeadsView extends HeadsPanel {
  constructor(host) {
    super(host)
    this.open = null // the head that is shown large
    this.spot = null // {s, h, i, j} under the pointer or the keyboard's cursor
    this.pin = null
    this.distance = null // {kind, x} under the pointer in a chart
    this.overTitle = null
    this.sent = [] // clicks whose echo has not come back yet
    const button = (action) => {
      const made = element('button', '', this.controls)
      Object.assign(made, { type: 'button', onclick: action })
      return made
    }
    this.back = button(() => this.openHead(null))
    this.previous = button(() => this.openHead(this.open - 1))
    this.next = button(() => this.openHead(this.open + 1))
  }

  // ------------------------------------------------------------ data
  changed() {
    const { meta, label } = this
    this.data = new HeadsData(meta, this.arrays)
    Object.assign(this, { rasters: new Map(), luts: {}, labelRooms: new Map() })
    this.back.textContent = `← ${label.back}`
    this.previous.textContent = '‹'
    this.next.textContent = '›'
    this.previous.title = this.previous.ariaLabel = label.previous
    this.next.title = this.next.ariaLabel = label.next
    if (this.open !== null && this.open >= meta.heads) this.open = null
    if (meta.opened) this.open = 0
    if (this.spot && !this.exists(this.spot)) this.spot = null
    if (this.pin && !this.exists(this.pin)) this.pin = null
    if (this.distance && this.open === null) this.distance = null
    this.takeSelected()
    this.showState()
  }
  exists({ s, h, i, j }) { return h < this.meta.heads && i < this.data.rows(s) && j < this.data.columns(s) }
  // The server's choice counts when it is news; the echo of an own click, perhaps late, is not.
  takeSelected() {
    const { selected } = this.meta
    const key = JSON.stringify(selected)
    const echo = this.sent.indexOf(key)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (key !== this.lastSelected) this.pin = selected && { s: selected.sentence, h: selected.head, i: selected.row, j: selected.col }
    this.lastSelected = key
  }
  showState() {
    for (const button of [this.back, this.previous, this.next]) button.style.display = this.open === null || this.meta.opened ? 'none' : ''
    this.previous.disabled = this.open === 0
    this.next.disabled = this.open === this.meta.heads - 1
    const { dataset } = this.canvas
    const cell = this.chosen()
    dataset.open = String(this.open ?? '')
    dataset.pinned = this.pin ? [this.pin.s, this.pin.h, this.pin.i, this.pin.j].join() : ''
    for (const [name, key] of [['sentence', 's'], ['head', 'h'], ['row', 'i'], ['col', 'j']]) dataset[name] = String(cell?.[key] ?? '')
    dataset.value = cell ? String(this.data.weight(cell.s, cell.h, cell.i, cell.j)) : ''
    dataset.masked = cell ? String(!this.data.allowed(cell.s, cell.i, cell.j)) : ''
    dataset.distance = String(this.distance?.x ?? '')
  }
  openHead(h) {
    if (this.meta.opened || (h !== null && (h < 0 || h >= this.meta.heads))) return
    const focused = this.open !== h
    this.open = h
    Object.assign(this, { spot: null, distance: null, overTitle: null, panelShift: 0 })
    this.hideTip()
    this.showState()
    this.resize()
    this.canvas.dataset.mean = String(this.g.mean)
    if (focused && this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: 'start' })
    if (h === null) this.canvas.focus({ preventScroll: true })
  }

  // ------------------------------------------------------------ pointer
  hit(x, y) {
    for (const b of this.g.blocks) {
      if (x < b.x || y < b.y || x >= b.x + b.wide || y >= b.y + b.tall) continue
      const [i, j] = [[y - b.y, b.rows], [x - b.x, b.columns]].map(([v, n]) => Math.min(n - 1, Math.floor(v / b.cell)))
      return { s: b.s, h: b.h, i, j, block: b }
    }
    return null
  }
  hitTitle(x, y) {
    return this.g.titles.find((t) => x >= t.x && x < t.x + t.w && y >= t.y && y < t.y + t.height)?.h ?? null
  }
  pointer(kind, x, y) {
    if (kind === 'leave') return this.point(null)
    if (kind === 'click') return this.click(x, y)
    if (kind !== 'move' && kind !== 'down') return
    const cell = this.hit(x, y)
    this.point(cell, cell ? null : this.hitTitle(x, y), cell ? null : this.hitChart(x, y), x, y)
  }
  point(found, title = null, distance = null, x = 0, y = 0) {
    const spot = found && { s: found.s, h: found.h, i: found.i, j: found.j }
    const key = JSON.stringify([spot, title, distance])
    if (distance) this.showTip(x, y, this.chartLines(distance))
    else if (found && this.wantsTip(found.block)) this.showTip(x, y, this.cellLines(found))
    else this.hideTip()
    if (key === this.lastKey) return
    Object.assign(this, { lastKey: key, spot, distance, overTitle: title })
    this.canvas.style.cursor = title !== null || spot ? 'pointer' : ''
    this.followView()
    this.showState()
    this.redraw()
  }
  // A tall picture: the panel comes to where the reader is.
  followView() {
    const { g } = this
    if (!g.beside) return
    const hidden = 72 - this.canvas.getBoundingClientRect().top // Streamlit's header covers the first 60 px
    this.panelShift = hidden > 72 ? clamp(hidden, 0, Math.max(0, this.height - g.panelHeight)) : 0
  }
  wantsTip(block) { return !this.g.beside || block.part !== null || block.cell < NUMBER_CELL }
  cellLines({ block, ...cell }) {
    const { data, label } = this
    const lines = [this.cellTitle(cell)]
    if (!data.allowed(cell.s, cell.i, cell.j)) return [...lines, label.masked]
    if (block.part) return [...lines, fill(label.tip_value, { name: label[`part_${block.part}`], value: formatSigned(data.part(cell.s, block.part, cell.h, cell.i, cell.j), 3) })]
    const value = this.precise(data.weight(cell.s, cell.h, cell.i, cell.j), data.error(cell.s), cell.s === 'd')
    return [...lines, [fill(label.tip_value, { name: cell.s === 'd' ? label.difference : label.weight, value }), css(this.nameColour(cell.s))]]
  }
  click(x, y) {
    const title = this.hitTitle(x, y)
    if (title !== null) return this.openHead(title)
    const cell = this.hit(x, y)
    if (cell) this.choose(cell)
  }
  choose({ s, h, i, j }) {
    const { pin } = this
    const again = pin && pin.s === s && pin.h === h && pin.i === i && pin.j === j
    this.pin = again ? null : { s, h, i, j }
    const value = again ? null : { sentence: s, head: h, row: i, col: j }
    this.sent.push(JSON.stringify(value))
    if (this.sent.length > 50) this.sent.shift()
    this.send('cell', value)
    this.showState()
    this.redraw()
  }

  // ------------------------------------------------------------ keys
  // Arrows walk the cells, across the edges into the next head or the next row of the picture; Enter
  // pins, Shift+Enter opens the head, Page Up and Down change the open head, Escape goes back.
  key(event) {
    const cell = this.chosen()
    if (event.key === 'Escape') return this.escape()
    if (event.key === 'Enter' && cell) return event.shiftKey ? this.openHead(this.open === null ? cell.h : null) : this.choose(cell), true
    if (this.open !== null && event.key === 'PageDown') return this.openHead(this.open + 1), true
    if (this.open !== null && event.key === 'PageUp') return this.openHead(this.open - 1), true
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key]
    const first = this.g.blocks.find((b) => !b.part)
    if (!step || !first) return false
    const next = cell ? this.walk(cell, ...step) : { s: first.s, h: first.h, i: 0, j: 0 }
    const block = this.g.blocks.find((b) => b.s === next.s && b.h === next.h && !b.part)
    if (block) this.point({ ...next, block }, null, null, block.x + (next.j + 0.5) * block.cell, block.y + (next.i + 0.5) * block.cell)
    return true
  }
  escape() {
    if (this.open !== null && !this.meta.opened) this.openHead(null)
    else if (this.pin) this.choose(this.pin)
    else if (this.spot) this.point(null)
    else return false
    return true
  }
  walk({ s, h, i, j }, down, right) {
    const rows = this.data.sentences.filter((one) => this.data.cells(one))
    const [tall, wide] = [this.data.rows(s), this.data.columns(s)]
    ;[i, j] = [i + down, j + right]
    if (j < 0 || j >= wide) {
      const beside = this.open === null ? h + right : h
      if (beside < 0 || beside >= this.meta.heads || beside === h) return { s, h, i, j: clamp(j, 0, wide - 1) }
      return { s, h: beside, i, j: j < 0 ? wide - 1 : 0 }
    }
    if (i >= 0 && i < tall) return { s, h, i, j }
    let row = rows.indexOf(s) + down
    if (row < 0 || row >= rows.length) { // past the last row: the heads of the line above or below
      const beyond = this.open === null ? h + down * this.g.across : h
      if (beyond < 0 || beyond >= this.meta.heads || beyond === h) return { s, h, i: clamp(i, 0, tall - 1), j }
      h = beyond
      row = down > 0 ? 0 : rows.length - 1
    }
    const [other, across] = [this.data.rows(rows[row]), this.data.columns(rows[row])]
    return { s: rows[row], h, i: down > 0 ? 0 : other - 1, j: Math.min(j, across - 1) }
  }
}

export default mount((host) => new HeadsView(host))
