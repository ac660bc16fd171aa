// needs parts/labels.js, parts/links_data.js, parts/links_picture.js
// The link view of one head: queries left, keys right, a line for every weight; A and beside it B.
const LOOK_LISTS = ['a', 'b', 'a_keys', 'b_keys']

class LinksView extends LinksPicture {
  constructor(host) {
    super(host)
    this.spot = null // {side, column: 'q' | 'k', n} under the pointer or the keyboard's cursor
    this.scrolls = {} // "aq" -> px
    this.sent = [] // looks whose echo has not come back yet
    this.drag = null
    this.makeControls()
    this.live = element('div', 'live', this.root)
    this.live.setAttribute('aria-live', 'polite')
  }
  makeControls() {
    const box = element('label', 'slider', this.controls)
    this.slider = element('input', '', box)
    Object.assign(this.slider, { type: 'range', min: '0', step: '0.01' })
    this.sliderText = element('span', '', box)
    this.slider.oninput = () => this.take({ threshold: Number(this.slider.value) }, false)
    this.slider.onchange = () => this.tell()
    this.tops = element('div', 'segments', this.controls)
    this.tops.setAttribute('role', 'group')
    this.clear = element('button')
    this.saves.prepend(this.clear)
    Object.assign(this.clear, { type: 'button', onclick: () => this.letGo() })
  }

  // ------------------------------------------------------------ data
  changed() {
    const { meta, label } = this
    this.data = new LinksData(meta, this.arrays)
    if (this.spot && !(this.spot.n < (this.data.side(this.spot.side)?.tokens(this.spot.column).length ?? 0))) this.spot = null
    this.takeLook()
    this.slider.max = String(meta.max_threshold)
    this.tops.replaceChildren()
    Object.assign(element('span', 'lead', this.tops), { textContent: label.top_k })
    this.tops.ariaLabel = label.top_k
    for (const count of meta.top_k) {
      const button = element('button', '', this.tops)
      button.textContent = count ? fill(label.top_count, { count }) : label.top_all
      Object.assign(button, { type: 'button', value: String(count), onclick: () => this.take({ top_k: count }) })
    }
    this.clear.textContent = label.clear
    this.showState()
  }
  // The server's choice counts when it is news; the echo of an own one, perhaps late, is not.
  takeLook() {
    const { look } = this.meta
    const name = this.nameOf(look)
    const echo = this.sent.indexOf(name)
    if (echo >= 0) this.sent.splice(0, echo + 1)
    else if (name !== this.lastLook) this.look = structuredClone(look)
    this.lastLook = name
    for (const list of LOOK_LISTS) { // the sentence may have become shorter
      const side = this.data.side(list[0])
      const size = side?.tokens(list.length > 1 ? 'k' : 'q').length ?? 0
      this.look[list] = this.look[list].filter((n) => n < size)
    }
  }
  nameOf(look) { return JSON.stringify([look.threshold, look.top_k, ...LOOK_LISTS.map((list) => look[list])]) }
  take(change, tell = true) {
    Object.assign(this.look, change)
    this.showState()
    this.redraw()
    if (tell) this.tell()
  }
  tell() {
    const name = this.nameOf(this.look)
    if (name === (this.sent.at(-1) ?? this.lastLook)) return
    this.sent.push(name)
    if (this.sent.length > 50) this.sent.shift()
    this.send('look', structuredClone(this.look))
  }
  showState() {
    const { look, label, spot } = this
    this.slider.value = String(look.threshold)
    this.sliderText.textContent = fill(label.threshold, { value: look.threshold.toFixed(2) })
    for (const button of this.tops.querySelectorAll('button')) button.setAttribute('aria-pressed', String(Number(button.value) === look.top_k))
    this.clear.style.visibility = this.chosen() ? '' : 'hidden'
    const { dataset } = this.canvas
    dataset.look = JSON.stringify(look)
    dataset.spot = spot ? [spot.side, spot.column, spot.n].join() : ''
    for (const side of this.data.sides) {
      const { queries, keys } = this.focus(side)
      const { q, k } = side.numbers(queries, keys)
      dataset[`numbers${side.name.toUpperCase()}`] = JSON.stringify((k ?? q ?? []).slice(0, 64))
    }
  }
  chosen() { return LOOK_LISTS.some((list) => this.look[list].length) }
  letGo() {
    if (this.chosen()) this.take({ a: [], b: [], a_keys: [], b_keys: [] })
  }
  // A token and, where it is matched, the same word of the other sentence.
  toggle(spot) {
    const partner = this.data.partner(spot)
    const on = !this.look[spot.side + PART[spot.column]].includes(spot.n)
    const both = [spot]
    if (partner !== null && partner !== undefined) both.push({ ...spot, side: spot.side === 'a' ? 'b' : 'a', n: partner })
    const change = {}
    for (const { side, column, n } of both) {
      const list = side + PART[column]
      const rest = this.look[list].filter((one) => one !== n)
      change[list] = on ? [...rest, n].sort((x, y) => x - y) : rest
    }
    this.take(change)
  }

  // ------------------------------------------------------------ pointer
  // {panel, part: 'q' | 'k' | 'lines' | 'strip', column, n}
  hit(x, y) {
    const panel = this.g.panels.find((p) => x >= p.x && x <= p.x + p.w && y >= p.y && y < p.y + p.h)
    if (!panel) return null
    for (const column of ['q', 'k']) {
      const strip = this.strip(panel, column)
      if (panel.long[column] && x >= strip.x && x < strip.x + STRIP) return { panel, part: 'strip', column }
    }
    const column = x < panel.left ? 'q' : x > panel.right ? 'k' : null
    if (!column) return { panel, part: 'lines' }
    const n = Math.floor((y - panel.y + this.scrolled(panel, column)) / panel.pitch)
    return n < panel.side.tokens(column).length ? { panel, part: column, column, n } : { panel, part: 'lines' }
  }
  pointer(kind, x, y, event) {
    if (kind === 'leave' && !this.drag) return this.point(null)
    if (kind === 'wheel') return this.wheel(x, y, event)
    if (kind === 'down') this.startDrag(x, y, event)
    if (kind === 'up') return this.endDrag()
    if (kind === 'move' && this.drag) return this.moveDrag(y)
    const hit = this.hit(x, y)
    if (kind === 'click') return this.click(hit)
    if (kind === 'move') this.point(hit?.n === undefined ? null : { side: hit.panel.side.name, column: hit.column, n: hit.n })
    this.canvas.style.cursor = hit && hit.part !== 'lines' ? 'pointer' : ''
  }
  click(hit) {
    const moved = this.moved
    this.moved = false
    if (!moved && hit?.n !== undefined) this.toggle({ side: hit.panel.side.name, column: hit.column, n: hit.n })
  }
  point(spot) {
    if (JSON.stringify(spot) === JSON.stringify(this.spot)) return
    this.spot = spot
    const other = spot ? this.data.partner(spot) : undefined
    const panel = this.g.panels.find((one) => one.side.name !== spot?.side)
    if (panel && other !== null && other !== undefined) this.reveal(panel, spot.column, other)
    this.showState()
    this.redraw()
  }
  wheel(x, y, event) {
    const hit = this.hit(x, y)
    if (!hit || !event.deltaY || event.ctrlKey) return
    const by = event.deltaY * (event.deltaMode === 1 ? hit.panel.pitch : 1)
    const moved = this.columnsOf(hit).map((column) => this.scrollTo(hit.panel, column, this.scrolled(hit.panel, column) + by))
    if (!moved.some(Boolean)) return // at the end the page itself scrolls on
    event.preventDefault()
    if (hit.n !== undefined) this.point({ ...this.spot, n: this.hit(x, y)?.n ?? hit.n })
    this.redraw()
  }
  columnsOf(hit) { return hit.column ? [hit.column] : ['q', 'k'] }
  startDrag(x, y, event) {
    const hit = this.hit(x, y)
    this.moved = false
    if (!hit || !this.columnsOf(hit).some((column) => hit.panel.long[column])) return
    this.canvas.setPointerCapture(event.pointerId)
    const from = this.columnsOf(hit).map((column) => [column, this.scrolled(hit.panel, column)])
    this.drag = { ...hit, y, from }
    if (hit.part === 'strip') this.moveDrag(y)
  }
  moveDrag(y) {
    const { panel, part, column, from } = this.drag
    if (part === 'strip') {
      const long = panel.side.tokens(column).length * panel.pitch
      this.scrollTo(panel, column, ((y - panel.y) / panel.h) * long - panel.h / 2)
      this.moved = true
    } else if (this.moved || Math.abs(y - this.drag.y) > 4) {
      this.moved = true
      for (const [one, start] of from) this.scrollTo(panel, one, start + this.drag.y - y)
    }
    this.redraw()
  }
  endDrag() { this.drag = null }

  // ------------------------------------------------------------ keys
  // Up and down walk a column, left and right change it, Enter keeps a token, Escape lets go.
  key(event) {
    if (event.key === 'Escape') {
      if (!this.spot && !this.chosen()) return false
      this.point(null)
      this.letGo()
      return true
    }
    if ((event.key === 'Enter' || event.key === ' ') && this.spot) return this.toggle(this.spot), true
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const next = this.walk(event.key)
    if (!next) return false
    this.point(next)
    const panel = this.g.panels.find((one) => one.side.name === next.side)
    this.reveal(panel, next.column, next.n)
    this.say(panel.side, next)
    this.redraw()
    return true
  }
  walk(key) {
    const columns = this.data.sides.filter((side) => side.q.length).flatMap((side) => ['q', 'k'].map((column) => ({ side, column })))
    if (!columns.length || !['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'PageUp', 'PageDown', 'Home', 'End'].includes(key)) return null
    if (!this.spot) return { side: columns[0].side.name, column: 'q', n: 0 }
    const at = columns.findIndex(({ side, column }) => side.name === this.spot.side && column === this.spot.column)
    const { side, column } = columns[clamp(at + ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0), 0, columns.length - 1)]
    const count = side.tokens(column).length
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -20, PageDown: 20, Home: -count, End: count }[key] ?? 0
    return { side: side.name, column, n: clamp(this.spot.n + by, 0, count - 1) }
  }
  // The strongest weights of the token, for who cannot see the lines.
  say(side, { column, n }) {
    const other = column === 'q' ? 'k' : 'q'
    const list = side.numbers(column === 'q' ? [n] : [], column === 'k' ? [n] : [])[other]
    const best = list.map((w, m) => [w, m]).sort((x, y) => y[0] - x[0]).slice(0, 5)
    const texts = best.map(([w, m]) => fill(this.label.said_weight, { token: this.tokenName(side, other, m), weight: side.text(w) }))
    this.live.textContent = fill(this.label.said, { token: this.tokenName(side, column, n), list: texts.join(', ') })
  }
}

export default mount((host) => new LinksView(host))
