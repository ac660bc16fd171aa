// Token labels and legends, for the components that say `needs parts/labels.js` in their first line.

// Typed text can hold anything: control characters and blank tokens get a visible sign, so that no
// label is empty, and directional isolates keep Arabic from reordering what stands beside it.
const visible = (text) => {
  const signs = text.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/\u007f/g, '\u2421')
  return /^\s*$/.test(signs) ? '\u2423'.repeat(Math.max(1, signs.length)) : signs
}
const isolate = (text) => `\u2068${text}\u2069`
const signedText = (x, digits = 3) => (x > 0 ? '+' : '') + formatNumber(x, digits)

// Lines no wider than `max`, broken at spaces or beside a Chinese word, never inside an isolate().
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
const CLOSING = /^[,.;:!?·，。；：、）)\]%]/
const words = (text) => [...new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text)].map((s) => s.segment)
const mayBreak = (before, after) => {
  if (CLOSING.test(after) || /^\s/.test(after)) return false
  return /\s$/.test(before) || CJK.test(before.replace(/\u2069$/, '').slice(-1)) || CJK.test(after.replace(/^\u2068/, '')[0])
}
function wrapText(ctx, text, max) {
  const whole = text.split(/(\u2068[^\u2069]*\u2069)/).flatMap((part) => (part[0] === '\u2068' ? [part] : words(part)))
  const chunks = [''] // what must stay together
  for (const part of whole) mayBreak(chunks.at(-1), part) ? chunks.push(part) : (chunks[chunks.length - 1] += part)
  const lines = ['']
  for (const chunk of chunks) {
    const longer = lines.at(-1) + chunk
    if (lines.at(-1) === '' || ctx.measureText(longer.trimEnd()).width <= max) lines[lines.length - 1] = longer
    else lines.push(chunk)
  }
  return lines.map((line) => line.trimEnd())
}

const LEGEND = { swatch: 64, gap: 10, between: 28, line: 21, size: 14 }
// items: {text, scale} for a colour ramp, or {text, paint(ctx, x, y)} for a sign of `width` px (centre y).
// Returns where each goes, flowing over as many lines as the width needs.
function legendLayout(view, items, width) {
  const ctx = view.ctx
  ctx.font = view.text(LEGEND.size)
  let [x, y, height] = [0, 0, 0]
  const places = items.map((item) => {
    const sign = item.width ?? LEGEND.swatch
    const room = Math.max(60, width - sign - LEGEND.gap)
    const lines = wrapText(ctx, item.text, room)
    const size = sign + LEGEND.gap + Math.max(...lines.map((line) => ctx.measureText(line).width))
    if (x > 0 && x + size > width) [x, y] = [0, height]
    const place = { item, sign, lines, x, y }
    height = Math.max(height, y + lines.length * LEGEND.line + 4)
    x += size + LEGEND.between
    return place
  })
  return { places, height }
}

function drawLegend(view, ctx, { places }, left, top) {
  for (const { item, sign, lines, x, y } of places) {
    const middle = top + y + LEGEND.line / 2
    if (item.scale) drawRamp(view, ctx, item.scale, left + x, middle - 6, sign, 12)
    else item.paint(ctx, left + x, middle)
    lines.forEach((line, i) => {
      const at = left + x + sign + (sign ? LEGEND.gap : 0)
      view.write(ctx, line, at, middle + i * LEGEND.line, { size: LEGEND.size, colour: view.theme.quiet })
    })
  }
}

function drawRamp(view, ctx, scale, x, y, w, h) {
  const steps = 32
  for (let i = 0; i < steps; i++) {
    const t = isDiverging(scale) ? (i / (steps - 1)) * 2 - 1 : i / (steps - 1)
    ctx.fillStyle = css(SCALES[scale](view.theme, t))
    ctx.fillRect(x + (i * w) / steps, y, w / steps + 0.5, h)
  }
  ctx.strokeStyle = css(view.theme.line)
  ctx.lineWidth = 1
  ctx.strokeRect(x - 0.5, y - 0.5, w + 1.5, h + 1)
}
