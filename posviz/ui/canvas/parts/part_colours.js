// The colours of the parts of a score: content is grey, everything that comes from position a shade of teal.
const SHADES = { content_position: -0.35, position_content: -0.12, position_position: 0.22 }
function partColour(theme, name) {
  if (name === 'content' || name === 'content_content') return theme.content
  const shade = SHADES[name] ?? 0
  return mix(theme.position, shade < 0 ? theme.background : theme.text, Math.abs(shade))
}
