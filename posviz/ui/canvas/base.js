// What every posviz canvas shares: the data bundle, the theme, the colours, numbers as text, the
// stage (canvas, tooltip, save buttons) and a 2-D context that records SVG.
// A component file is appended to this one and ends with `export default mount(host => new ItsView(host))`.

// ---------------------------------------------------------------- data
// Layout (see bundle.py): uint32 length of the JSON, the JSON, zero padding to 8, then the arrays.
const DTYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array }

function unpack(data) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data)
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true)
  const meta = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)))
  const arrays = {}
  // A typed array must start at a multiple of its item size: copy once if the bytes themselves do not.
  const start = Math.ceil((4 + length) / 8) * 8
  const body = bytes.slice(start)
  for (const { name, dtype, shape, offset } of meta.arrays) {
    const size = shape.reduce((a, b) => a * b, 1)
    const array = new DTYPES[dtype](body.buffer, body.byteOffset + offset, size)
    array.shape = shape
    arrays[name] = array
  }
  return { meta, arrays }
}

// ---------------------------------------------------------------- theme and colours
const A = { light: [31, 79, 191], dark: [122, 162, 255] }
const B = { light: [180, 86, 10], dark: [255, 170, 92] }
const POSITION = { light: [15, 157, 138], dark: [45, 196, 174] }
const CONTENT = { light: [138, 143, 152], dark: [150, 156, 168] }
const PURPLE = [118, 42, 131]
const GREEN = [27, 120, 55]
const PURPLE_BRIGHT = [196, 132, 214] // the same hues, light enough to be told from a dark zero
const GREEN_BRIGHT = [108, 201, 130]
const FAST = [201, 74, 38]
const MIDDLE = [196, 170, 60]
const SLOW = [32, 84, 140]
const SLOW_BRIGHT = [104, 160, 222]

const mix = (a, b, t) => [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * t))
const css = (rgb, alpha = 1) => (alpha === 1 ? `rgb(${rgb.join(',')})` : `rgba(${rgb.join(',')},${alpha})`)
const clamp = (x, low, high) => Math.min(high, Math.max(low, x))
const luminance = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b) / 255

function parseColour(text, fallback) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text.trim())
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16))
  const rgb = /^rgba?\(([^)]+)\)/.exec(text.trim())
  if (rgb) return rgb[1].split(',').slice(0, 3).map((x) => Math.round(parseFloat(x)))
  return fallback
}

function readTheme(host) {
  const style = getComputedStyle(host)
  const get = (name) => style.getPropertyValue(name)
  const background = parseColour(get('--st-background-color'), [255, 255, 255])
  const dark = luminance(background) < 0.5
  const mode = dark ? 'dark' : 'light'
  const text = parseColour(get('--st-text-color'), dark ? [230, 233, 239] : [28, 35, 48])
  return {
    dark,
    background,
    text,
    quiet: mix(text, background, dark ? 0.28 : 0.36), // >= 4.5:1 on the background
    faint: mix(text, background, 0.62),
    line: mix(text, background, 0.82),
    panel: mix(text, background, 0.95),
    a: A[mode],
    b: B[mode],
    position: POSITION[mode],
    positionText: dark ? POSITION.dark : [10, 118, 104], // AA on white
    content: CONTENT[mode],
    purple: dark ? PURPLE_BRIGHT : PURPLE,
    green: dark ? GREEN_BRIGHT : GREEN,
    slow: dark ? SLOW_BRIGHT : SLOW,
    font: get('--st-font').trim() || 'system-ui, sans-serif',
  }
}

// t in [-1, 1] for the diverging ones, [0, 1] for the sequential ones; zero is the page's background.
const SCALES = {
  signed: (theme, t) => mix(theme.background, t < 0 ? theme.purple : theme.green, Math.abs(t)),
  difference: (theme, t) => mix(theme.background, t < 0 ? theme.b : theme.a, Math.abs(t)),
  a: (theme, t) => mix(theme.background, theme.a, t),
  b: (theme, t) => mix(theme.background, theme.b, t),
  position: (theme, t) => mix(theme.background, theme.position, t),
  content: (theme, t) => mix(theme.background, theme.content, t),
}
const isDiverging = (scale) => scale === 'signed' || scale === 'difference'

// RoPE pairs from fast (warm) to slow (cool).
function pairColour(theme, i, n) {
  const t = n > 1 ? i / (n - 1) : 0
  return t < 0.5 ? mix(FAST, MIDDLE, t * 2) : mix(MIDDLE, theme.slow, t * 2 - 1)
}

// 256 RGBA entries for putImageData, from vmin to vmax.
function lookupTable(theme, scale) {
  const table = new Uint8ClampedArray(256 * 4)
  for (let i = 0; i < 256; i++) {
    const t = isDiverging(scale) ? (i - 127.5) / 127.5 : i / 255
    table.set([...SCALES[scale](theme, t), 255], i * 4)
  }
  return table
}
const inkOn = (rgb, theme) => (luminance(rgb) > 0.55 ? [20, 24, 33] : [255, 255, 255])

// ---------------------------------------------------------------- numbers as text
const SUPERSCRIPT = '⁰¹²³⁴⁵⁶⁷⁸⁹'
function formatNumber(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–'
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞'
  if (x === 0) return '0'
  const size = Math.abs(x)
  const sign = x < 0 ? '−' : ''
  if (size < 1e-4 || size >= 1e7) {
    const [mantissa, exponent] = size.toExponential(1).split('e')
    const power = exponent.replace('+', '').replace('-', '⁻').replace(/\d/g, (c) => SUPERSCRIPT[c])
    return `${sign}${mantissa}×10${power}`
  }
  const decimals = clamp(digits - 1 - Math.floor(Math.log10(size)), 0, 8)
  return sign + size.toFixed(decimals)
}
const formatSigned = (x, decimals = 2) => (x < 0 ? '−' : '+') + Math.abs(x).toFixed(decimals)
// "{name}" -> value; the templates are translated on the server.
const fill = (template, values) => template.replace(/\{(\w+)\}/g, (all, name) => (name in values ? values[name] : all))

// A round step (1, 2, 5 x 10^n) that gives about `count` ticks.
function niceStep(span, count) {
  const raw = span / Math.max(1, count)
  const power = 10 ** Math.floor(Math.log10(raw))
  return power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999)
}

// ---------------------------------------------------------------- SVG
// The subset of CanvasRenderingContext2D that the views use, recorded as SVG (curves, cells and text
// stay vectors; drawImage embeds the image).
class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, out: [], path: '', stack: [], clips: 0, groups: 0 })
    Object.assign(this, { fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: '14px sans-serif' })
    Object.assign(this, { textAlign: 'start', textBaseline: 'alphabetic', lineCap: 'butt', lineJoin: 'miter', dash: [] })
    Object.assign(this, { matrix: [1, 0, 0, 1, 0, 0], imageSmoothingEnabled: true })
    this.ruler = document.createElement('canvas').getContext('2d')
  }
  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap, lineJoin } = this
    const kept = { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap, lineJoin }
    this.stack.push({ ...kept, dash: [...this.dash], matrix: [...this.matrix], groups: this.groups })
  }
  restore() {
    const state = this.stack.pop()
    if (!state) return
    while (this.groups > state.groups) {
      this.out.push('</g>')
      this.groups--
    }
    Object.assign(this, state)
  }
  translate(x, y) {
    const [a, b, c, d, e, f] = this.matrix
    this.matrix = [a, b, c, d, a * x + c * y + e, b * x + d * y + f]
  }
  rotate(angle) {
    const [a, b, c, d, e, f] = this.matrix
    const [s, k] = [Math.sin(angle), Math.cos(angle)]
    this.matrix = [a * k + c * s, b * k + d * s, c * k - a * s, d * k - b * s, e, f]
  }
  scale(x, y) {
    const [a, b, c, d, e, f] = this.matrix
    this.matrix = [a * x, b * x, c * y, d * y, e, f]
  }
  setLineDash(dash) { this.dash = dash }
  measureText(text) {
    this.ruler.font = this.font
    return this.ruler.measureText(text)
  }
  place() {
    return this.matrix.every((v, i) => v === [1, 0, 0, 1, 0, 0][i]) ? '' : ` transform="matrix(${this.matrix.join(' ')})"`
  }
  escape(text) {
    // XML 1.0 has no way to write control characters or lone surrogates.
    const clean = String(text).toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    return clean.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c])
  }
  paint(kind) {
    const alpha = this.globalAlpha === 1 ? '' : ` opacity="${this.globalAlpha}"`
    if (kind === 'fill') return ` fill="${this.escape(this.fillStyle)}"${alpha}`
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : ''
    const join = ` stroke-linecap="${this.lineCap}" stroke-linejoin="${this.lineJoin}"`
    return ` fill="none" stroke="${this.escape(this.strokeStyle)}" stroke-width="${this.lineWidth}"${join}${dash}${alpha}`
  }
  beginPath() { this.path = '' }
  moveTo(x, y) { this.path += `M${x} ${y}` }
  lineTo(x, y) { this.path += `${this.path ? 'L' : 'M'}${x} ${y}` }
  closePath() { this.path += 'Z' }
  bezierCurveTo(a, b, c, d, e, f) { this.path += `C${a} ${b} ${c} ${d} ${e} ${f}` }
  quadraticCurveTo(a, b, c, d) { this.path += `Q${a} ${b} ${c} ${d}` }
  rect(x, y, w, h) { this.path += `M${x} ${y}h${w}v${h}h${-w}Z` }
  roundRect(x, y, w, h) { this.rect(x, y, w, h) }
  arc(x, y, r, from, to, counter = false) {
    let span = counter ? from - to : to - from
    if (span >= 2 * Math.PI - 1e-9) {
      this.path += `M${x + r} ${y}A${r} ${r} 0 1 1 ${x - r} ${y}A${r} ${r} 0 1 1 ${x + r} ${y}`
      return
    }
    span = ((span % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)
    const start = `${this.path ? 'L' : 'M'}${x + r * Math.cos(from)} ${y + r * Math.sin(from)}`
    const end = `${x + r * Math.cos(to)} ${y + r * Math.sin(to)}`
    this.path += `${start}A${r} ${r} 0 ${span > Math.PI ? 1 : 0} ${counter ? 0 : 1} ${end}`
  }
  fill() { this.out.push(`<path d="${this.path}"${this.paint('fill')}${this.place()}/>`) }
  stroke() { this.out.push(`<path d="${this.path}"${this.paint('stroke')}${this.place()}/>`) }
  clip() {
    const id = `clip${++this.clips}`
    this.out.push(`<clipPath id="${id}"><path d="${this.path}"${this.place()}/></clipPath><g clip-path="url(#${id})">`)
    this.groups++
  }
  fillRect(x, y, w, h) {
    this.out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}"${this.paint('fill')}${this.place()}/>`)
  }
  strokeRect(x, y, w, h) {
    this.out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}"${this.paint('stroke')}${this.place()}/>`)
  }
  clearRect() {}
  fillText(text, x, y) {
    const anchor = { start: 'start', left: 'start', center: 'middle', right: 'end', end: 'end' }[this.textAlign]
    const base = { middle: 'central', top: 'hanging', hanging: 'hanging', bottom: 'auto' }[this.textBaseline] || 'auto'
    const style = `font:${this.font}`.replace(/"/g, "'")
    const attributes = ` x="${x}" y="${y}" text-anchor="${anchor}" dominant-baseline="${base}" style="${style}"`
    this.out.push(`<text${attributes}${this.paint('fill')}${this.place()}>${this.escape(text)}</text>`)
  }
  drawImage(image, ...box) {
    const [x, y, w, h] = box.length === 8 ? box.slice(4) : box
    let source = image
    if (box.length === 8) {
      source = document.createElement('canvas')
      ;[source.width, source.height] = [Math.max(1, Math.round(box[2])), Math.max(1, Math.round(box[3]))]
      source.getContext('2d').drawImage(image, ...box.slice(0, 4), 0, 0, source.width, source.height)
    }
    const look = this.imageSmoothingEnabled ? '' : ' style="image-rendering:pixelated"'
    const href = source.toDataURL()
    this.out.push(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none"${look} href="${href}"${this.place()}/>`)
  }
  toString() {
    while (this.groups > 0) {
      this.out.push('</g>')
      this.groups--
    }
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${this.out.join('\n')}</svg>`
  }
}

// ---------------------------------------------------------------- the stage
function element(tag, className, parent) {
  const node = document.createElement(tag)
  if (className) node.className = className
  parent?.append(node)
  return node
}

function download(name, blob) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

// One canvas with a tooltip and save buttons. A view overrides
//   layout(width)              -> height in CSS px for this width
//   draw(ctx, width, height)   paints everything (also used for PNG and SVG)
//   pointer(kind, x, y, event) kind: move, leave, down, up, click, double, wheel
//   key(event)                 return true when the key was used
//   changed()                  new data arrived (this.meta, this.arrays)
// and calls this.redraw() after a change, this.send(name, value) to tell the server.
class View {
  constructor(host) {
    this.host = host
    this.root = element('div', 'stage', host)
    this.bar = element('div', 'bar', this.root)
    this.controls = element('div', 'controls', this.bar)
    this.saves = element('div', 'saves', this.bar)
    this.canvas = element('canvas', '', this.root)
    this.canvas.tabIndex = 0
    this.canvas.setAttribute('role', 'img')
    this.tip = element('div', 'tip', this.root)
    this.ctx = this.canvas.getContext('2d')
    this.pending = 0
    this.png = this.saveButton('PNG', () => this.savePng())
    this.svg = this.saveButton('SVG', () => this.saveSvg())
    this.listen()
    this.observer = new ResizeObserver(() => this.resize())
    this.observer.observe(this.root)
  }
  saveButton(label, action) {
    const button = element('button', 'save', this.saves)
    button.type = 'button'
    button.textContent = label
    button.onclick = action
    return button
  }
  listen() {
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect()
      return [event.clientX - box.left, event.clientY - box.top]
    }
    const on = (type, kind, options) =>
      this.canvas.addEventListener(type, (event) => this.pointer(kind, ...at(event), event), options)
    on('pointermove', 'move')
    on('pointerleave', 'leave')
    on('pointerdown', 'down')
    on('pointerup', 'up')
    on('pointercancel', 'up')
    on('click', 'click')
    on('dblclick', 'double')
    on('wheel', 'wheel', { passive: false })
    this.canvas.addEventListener('keydown', (event) => {
      if (this.key(event)) {
        event.preventDefault()
        event.stopPropagation()
      }
    })
  }
  update(data, component) {
    Object.assign(this, unpack(data))
    this.component = component
    this.theme = readTheme(this.host.host ?? this.host)
    this.label = this.meta.labels ?? {}
    this.canvas.setAttribute('aria-label', this.meta.alt ?? '')
    for (const button of [this.png, this.svg]) button.title = button.ariaLabel = `${this.label.save ?? 'Save'} ${button.textContent}`
    this.changed()
    this.resize()
  }
  send(name, value) { this.component?.setStateValue?.(name, value) }
  resize() {
    const width = Math.floor(this.root.clientWidth)
    if (!width || !this.meta) return
    const height = Math.round(this.layout(width))
    const ratio = window.devicePixelRatio || 1
    if (this.width !== width || this.height !== height || this.ratio !== ratio) {
      Object.assign(this, { width, height, ratio })
      this.canvas.width = Math.round(width * ratio)
      this.canvas.height = Math.round(height * ratio)
      this.canvas.style.height = `${height}px`
    }
    this.paint() // at once: a resized canvas is blank
  }
  redraw() {
    if (!this.pending) this.pending = requestAnimationFrame(() => this.paint())
  }
  paint() {
    cancelAnimationFrame(this.pending)
    this.pending = 0
    if (!this.width || !this.meta) return
    const ctx = this.ctx
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    ctx.clearRect(0, 0, this.width, this.height)
    this.draw(ctx, this.width, this.height)
    this.canvas.dataset.painted = String(Number(this.canvas.dataset.painted ?? 0) + 1) // browser tests wait for it
  }
  // Fonts: text(14), text(20, 'bold').
  text(size, weight = 'normal') { return `${weight} ${size}px ${this.theme.font}` }
  write(ctx, text, x, y, { size = 14, weight = 'normal', colour = this.theme.text, align = 'left', base = 'middle', max = 0 } = {}) {
    ctx.font = this.text(size, weight)
    ctx.fillStyle = css(colour)
    ctx.textAlign = align
    ctx.textBaseline = base
    ctx.fillText(max ? this.fit(ctx, text, max) : text, x, y)
  }
  // Shortened with an ellipsis by whole grapheme clusters, so that an emoji or accent is never cut in half.
  fit(ctx, text, max) {
    if (ctx.measureText(text).width <= max) return text
    const parts = [...new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text)].map((s) => s.segment)
    while (parts.length && ctx.measureText(parts.join('') + '…').width > max) parts.pop()
    return parts.join('') + '…'
  }
  // lines: strings, or [string, css colour]; user text arrives only as textContent.
  showTip(x, y, lines) {
    this.tip.replaceChildren()
    lines.forEach((line, i) => {
      const row = element('div', i ? '' : 'head', this.tip)
      row.textContent = Array.isArray(line) ? line[0] : line
      if (Array.isArray(line)) row.style.color = line[1]
    })
    this.tip.style.display = 'block'
    const { offsetWidth: w, offsetHeight: h } = this.tip
    const top = this.canvas.offsetTop
    const left = x + 16 + w > this.width ? Math.max(0, x - w - 16) : x + 16
    this.tip.style.transform = `translate(${left}px, ${top + clamp(y - h / 2, 0, Math.max(0, this.height - h))}px)`
  }
  hideTip() { this.tip.style.display = 'none' }
  savePng() {
    const sheet = document.createElement('canvas')
    const scale = 2
    ;[sheet.width, sheet.height] = [this.width * scale, this.height * scale]
    const ctx = sheet.getContext('2d')
    ctx.scale(scale, scale)
    ctx.fillStyle = css(this.theme.background)
    ctx.fillRect(0, 0, this.width, this.height)
    this.draw(ctx, this.width, this.height)
    sheet.toBlob((blob) => download(`${this.meta.file ?? 'posviz'}.png`, blob))
  }
  saveSvg() {
    const ctx = new SvgContext(this.width, this.height)
    ctx.fillStyle = css(this.theme.background)
    ctx.fillRect(0, 0, this.width, this.height)
    this.draw(ctx, this.width, this.height)
    download(`${this.meta.file ?? 'posviz'}.svg`, new Blob([ctx.toString()], { type: 'image/svg+xml' }))
  }
  destroy() {
    cancelAnimationFrame(this.pending)
    this.observer.disconnect()
  }
  layout() { return this.meta.height }
  draw() {}
  pointer() {}
  key() { return false }
  changed() {}
}

// Streamlit calls the renderer again for every change of data or theme, with the same parentElement:
// the view is made once and kept, so zoom, hover and animation survive reruns.
const views = new WeakMap()
function mount(make) {
  return (component) => {
    const host = component.parentElement
    let view = views.get(host)
    if (!view) {
      view = make(host)
      views.set(host, view)
    }
    view.update(component.data, component)
    return () => {
      views.get(host)?.destroy()
      views.delete(host)
    }
  }
}
