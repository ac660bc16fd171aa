// needs parts/labels.js, parts/part_colours.js, parts/cells.js, parts/steps_data.js, parts/cell_picture.js, parts/steps_picture.js
// One head in numbers: inside one weight (mode "cell"), or multi-head attention in nine steps (mode "steps").
const PACE = 2600 // ms a step stands while playing
const REVEAL = 700 // ms in which a step's result appears
const STEPS = 9

class StepsView extends View {
  constructor(host) {
    super(host)
    this.cell = null
    this.step = null
    this.dim = 0 // the dimension of V and O that step 7 computes
    this.out = 0 // and the one of the output, step 9
    this.reveal = 1
    this.playing = null // its timer
    this.sent = { cell: [], step: [] } // what was told and has not come back yet
    this.last = {}
    this.pictures = { cell: new CellPicture(this), steps: new StepsPicture(this) }
    this.makeControls()
  }
  makeControls() {
    this.row = element('div', 'steps')
    this.root.insertBefore(this.row, this.bar) // a line of its own
    this.row.setAttribute('role', 'group')
    this.buttons = Array.from({ length: STEPS }, (_, n) => {
      const button = element('button', '', this.row)
      Object.assign(button, { type: 'button', onclick: () => this.goTo(n + 1) })
      element('b', '', button).textContent = String(n + 1)
      element('span', '', button)
      return button
    })
    this.run = element('div', 'run', this.controls)
    const button = (name, action) => Object.assign(element('button', name, this.run), { type: 'button', onclick: action })
    this.back = button('', () => this.goTo(this.step - 1))
    this.play = button('play', () => this.toggle())
    this.next = button('', () => this.goTo(this.step + 1))
    this.live = element('div', 'live', this.root)
    this.live.setAttribute('aria-live', 'polite')
  }
  get picture() { return this.pictures[this.meta.mode] }

  // ------------------------------------------------------------ data
  changed() {
    const { meta, label } = this
    this.data = new StepsData(meta, this.arrays)
    this.limits = new Map()
    this.pictures.steps.renew()
    this.pictures.cell.spot = null
    this.hideTip()
    const fresh = this.cell === null
    this.take('cell', meta.cell)
    this.take('step', meta.step)
    // Only one row of a long sentence is here: that row it is.
    if (!this.data.local) this.cell = { row: meta.cell.row, col: this.cell.row === meta.cell.row ? this.cell.col : meta.cell.col }
    this.cell.row = Math.min(this.cell.row, this.data.tokens.length - 1)
    this.cell.col = Math.min(this.cell.col, this.data.keys.length - 1)
    this.dim = Math.min(this.dim, meta.width - 1)
    if (this.out && this.data.value('w_o', 1, this.out) === undefined) this.out = 0
    const steps = meta.mode === 'steps'
    for (const node of [this.row, this.run]) node.classList.toggle('hidden', !steps)
    if (!steps) this.stop()
    this.row.ariaLabel = label.steps
    this.buttons.forEach((button, n) => {
      button.querySelector('span').textContent = label[`step_${n + 1}`]
      button.title = button.ariaLabel = `${n + 1} ${label[`step_${n + 1}`]}`
    })
    for (const [button, sign, text] of [[this.back, '‹', label.previous], [this.next, '›', label.next]]) {
      Object.assign(button, { textContent: sign, title: text, ariaLabel: text })
    }
    if (fresh) this.reveal = 1
    this.showState()
  }
  // The server's choice counts when it is news; the echo of an own one, perhaps late, is not.
  take(name, value) {
    const key = JSON.stringify(value)
    const echo = this.sent[name].indexOf(key)
    if (echo >= 0) this.sent[name].splice(0, echo + 1)
    else if (key !== this.last[name]) this[name] = structuredClone(value)
    this.last[name] = key
  }
  tell(name, value) {
    this.sent[name].push(JSON.stringify(value))
    if (this.sent[name].length > 50) this.sent[name].shift()
    this.send(name, value)
  }
  layout(width) {
    this.root.classList.toggle('narrow', width < 760)
    return this.picture.layout(width)
  }
  draw(ctx) { this.picture.draw(ctx) }
  tokenName(i) { return fill(this.label.token, { token: isolate(this.data.tokens[i]), position: i }) }
  keyName(j) { return fill(this.label.token, { token: isolate(this.data.keys[j]), position: j }) }
  limit(name) {
    const inner = name === 'k_transposed' ? 'k_rotated' : name
    if (!this.limits.has(inner)) this.limits.set(inner, this.data.limit(inner.endsWith('_rotated') && !this.arrays[inner] ? inner[0] : inner))
    return this.limits.get(inner)
  }
  // What is added up has one scale.
  sumLimit() { return Math.max(...['scaled', 'bias', 'scores'].filter((name) => this.meta.tables[name]).map((name) => this.limit(name))) }

  // ------------------------------------------------------------ choosing
  choose(row, col) {
    const { cell } = this
    if (row < 0 || col < 0 || row >= this.data.tokens.length || col >= this.data.keys.length) return
    if (row === cell.row && col === cell.col) return this.redraw()
    const next = { row, col }
    if (row !== cell.row && !this.data.local) return this.send('cell', next) // its numbers come with the answer
    this.cell = next
    this.tell('cell', next)
    this.picture.layout(this.width) // its marks
    this.showState()
    this.redraw()
  }
  goTo(step) {
    if (step < 1 || step > STEPS) return
    this.stop()
    this.show(step)
  }
  show(step) {
    if (step === this.step) return
    this.step = step
    this.tell('step', step)
    this.hideTip()
    this.showState()
    this.live.textContent = `${step} ${this.label[`step_${step}`]}. ${this.pictures.steps.sentence(step)}`
    this.startReveal()
  }
  showState() {
    this.buttons.forEach((button, n) => button.setAttribute('aria-pressed', String(n + 1 === this.step)))
    this.back.disabled = this.step === 1
    this.next.disabled = this.step === STEPS
    this.play.textContent = this.playing === null ? this.label.play : this.label.pause
    const { dataset } = this.canvas
    const { row, col } = this.cell
    Object.assign(dataset, { mode: this.meta.mode, step: String(this.step), row: String(row), col: String(col) })
    dataset.score = String(this.data.value('scores', row, col))
    dataset.value = String(this.data.weight(row, col))
    dataset.playing = String(this.playing !== null)
    dataset.sum = this.meta.mode === 'steps' ? this.pictures.steps.arithmetic(this.step) : ''
  }

  // ------------------------------------------------------------ playing
  get still() { return matchMedia('(prefers-reduced-motion: reduce)').matches }
  startReveal() {
    cancelAnimationFrame(this.frame)
    this.reveal = 1
    if (this.still) return this.redraw()
    const start = performance.now()
    const grow = (now) => {
      this.reveal = clamp((now - start) / REVEAL, 0.02, 1)
      if (this.reveal < 1) this.frame = requestAnimationFrame(grow)
      this.redraw()
    }
    this.reveal = 0.02
    this.frame = requestAnimationFrame(grow)
  }
  toggle() {
    if (this.playing !== null) return this.stop()
    if (this.step === STEPS) this.show(1)
    this.playing = setInterval(() => this.step < STEPS ? this.show(this.step + 1) : this.stop(), PACE)
    this.showState()
  }
  stop() {
    if (this.playing === null) return
    clearInterval(this.playing)
    this.playing = null
    this.showState()
  }
  saveSvg() { this.whole(() => super.saveSvg()) }
  savePng() { this.whole(() => super.savePng()) }
  // A saved picture shows the step as it ends.
  whole(action) {
    const { reveal } = this
    this.reveal = 1
    action()
    this.reveal = reveal
  }
  destroy() {
    this.stop()
    cancelAnimationFrame(this.frame)
    super.destroy()
  }

  // ------------------------------------------------------------ pointer and keys
  pointer(kind, x, y) {
    if (kind === 'leave') this.picture.point(null)
    else if (kind === 'click') this.picture.click(this.picture.hit(x, y))
    else if (kind === 'move' || kind === 'down') this.picture.point(this.picture.hit(x, y), x, y)
    else return
    if (this.meta.mode === 'cell') this.redraw()
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false
    const by = this.picture.arrows[event.key]
    if (by) return this.choose(this.cell.row + by[0], this.cell.col + by[1]), true
    if (this.meta.mode !== 'steps') return false
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') return this.goTo(this.step + (event.key === 'ArrowLeft' ? -1 : 1)), true
    if (event.key === ' ') return this.toggle(), true
    return false
  }
}

export default mount((host) => new StepsView(host))
