// The ruler at the foot of a film, with a handle for the query (m) and one for the key (n). A panel as in clock_panels.js.

class RulerPanel {
  constructor(view) { this.view = view }
  place({ x, y, w }) { Object.assign(this, { edge: x + w, x: x + 24, y: y + 72, w: w - 48 }) }
  at(position) { return this.x + ((position - this.view.low) / this.view.span) * this.w }
  position(x) { return this.view.low + ((x - this.x) / this.w) * this.view.span }
  near(y) { return Math.abs(y - this.y) < 26 }
  still(ctx) {
    const { view, x, y, w } = this
    const { theme, low, span } = view
    ctx.fillStyle = css(theme.faint)
    ctx.fillRect(x, y - 0.75, w, 1.5)
    const step = Math.max(1, niceStep(span, w / 80))
    const minor = step >= 5 ? step / 5 : 1
    for (let i = Math.ceil(low / minor); i * minor <= low + span; i++) {
      const major = i % Math.round(step / minor) === 0
      ctx.fillStyle = css(theme.faint)
      ctx.fillRect(this.at(i * minor) - 0.5, y - (major ? 9 : 5), 1, major ? 9 : 5)
      if (major) view.write(ctx, String(i * minor), this.at(i * minor), y + 26, { align: 'center', colour: theme.quiet })
    }
    this.q = this.name(ctx, 'q', view.i, 'm')
    this.k = this.name(ctx, 'k', view.j, 'n')
  }
  // A handle's name: the token's text fitted once, and a place of fixed width for the running position.
  name(ctx, role, index, position) {
    const { view } = this
    const token = view.meta.tokens[index]
    ctx.font = view.text(16)
    const text = view.fit(ctx, token.label, clamp(this.edge / 2 - 140, 40, 220))
    const middle = ctx.measureText(text).width
    const value = ctx.measureText(`${position} = ${view.meta.max_position}.8`).width
    ctx.font = view.text(16, 'bold')
    const lead = ctx.measureText(`${role}  `).width
    const colour = token.sentence === 'B' ? view.theme.b : view.theme.a
    return { role, text, position, lead, middle, total: lead + middle + 10 + value, colour }
  }
  moving(ctx) {
    const { view, y } = this
    const { m, n, theme } = view
    const [xm, xn] = [this.at(m), this.at(n)]
    ctx.fillStyle = css(theme.position)
    ctx.fillRect(Math.min(xm, xn), y - 2.5, Math.abs(xm - xn), 5)
    // The key is the larger disc, so that both are seen where they meet.
    for (const [x, r, colour] of [[xn, 13, theme.content], [xm, 9.5, theme.text]]) {
      circle(ctx, x, y, r + 1.5)
      ctx.fillStyle = css(theme.background)
      ctx.fill()
      circle(ctx, x, y, r)
      ctx.fillStyle = css(colour)
      ctx.fill()
    }
    this.names(ctx, m >= n ? [this.k, xn, n, this.q, xm, m] : [this.q, xm, m, this.k, xn, n])
    const distance = `m − n = ${minus(view.shown(m - n))}`
    const look = { size: 16, weight: 'bold', align: 'center', colour: theme.positionText }
    view.write(ctx, distance, clamp((xm + xn) / 2, 64, this.edge - 64), y - 58, look)
  }
  // The name of the left handle reaches left, of the right one right: they cannot meet.
  names(ctx, [a, xa, pa, b, xb, pb]) {
    const middle = (xa + xb) / 2
    let left = Math.max(0, Math.min(xa + 13, middle - 10) - a.total)
    const right = Math.min(this.edge - b.total, Math.max(xb - 13, middle + 10, left + a.total + 20))
    left = Math.max(0, Math.min(left, right - a.total - 20))
    this.write(ctx, a, left, pa)
    this.write(ctx, b, right, pb)
  }
  write(ctx, name, x, position) {
    const { view } = this
    const y = this.y - 32
    const { text, quiet } = view.theme
    view.write(ctx, name.role, x, y, { size: 16, weight: 'bold', colour: name.role === 'q' ? text : quiet })
    view.write(ctx, name.text, x + name.lead, y, { size: 16, colour: name.colour })
    const at = x + name.lead + name.middle + 10
    view.write(ctx, `${name.position} = ${view.shown(position)}`, at, y, { size: 16, colour: quiet })
  }
}
