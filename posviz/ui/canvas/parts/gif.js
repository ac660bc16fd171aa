// A film as an animated GIF, drawn frame by frame as fast as it can be, not filmed from the screen. 255 colours are
// found in a few of its frames; a pixel that does not change from one frame to the next is left transparent.
// Format: GIF89a specification (CompuServe 1990), with its variable-length LZW codes.

const GIF_FRAMES = 100
const GIF_DELAY = 6 // hundredths of a second
const CLEAR = 255 // the transparent entry of the palette
const bucket = (data, i) => ((data[i] >> 3) << 10) | ((data[i + 1] >> 3) << 5) | (data[i + 2] >> 3)

// 5 bits a channel: the 255 most frequent buckets, each with the mean of its colours.
class GifPalette {
  constructor(images) {
    const [count, sums] = [new Uint32Array(32768), [0, 1, 2].map(() => new Float64Array(32768))]
    for (const data of images)
      for (let i = 0; i < data.length; i += 4) {
        const b = bucket(data, i)
        count[b]++
        for (let c = 0; c < 3; c++) sums[c][b] += data[i + c]
      }
    const used = Array.from(count.keys()).filter((b) => count[b]).sort((a, b) => count[b] - count[a])
    this.colours = used.slice(0, CLEAR).map((b) => sums.map((sum) => Math.round(sum[b] / count[b])))
    this.nearest = new Int16Array(32768).fill(-1)
  }
  find(b) {
    const [red, green, blue] = [(b >> 10) * 8 + 4, ((b >> 5) & 31) * 8 + 4, (b & 31) * 8 + 4]
    let [best, least] = [0, Infinity]
    this.colours.forEach(([r, g, h], i) => {
      const far = (r - red) ** 2 + (g - green) ** 2 + (h - blue) ** 2
      if (far < least) [best, least] = [i, far]
    })
    return (this.nearest[b] = best)
  }
  indices(data) {
    const found = new Uint8Array(data.length / 4)
    for (let i = 0, j = 0; j < found.length; i += 4, j++) {
      const b = bucket(data, i)
      const index = this.nearest[b]
      found[j] = index < 0 ? this.find(b) : index
    }
    return found
  }
}

class GifWriter {
  constructor(width, height, palette) {
    Object.assign(this, { width, height, parts: [] })
    const table = new Uint8Array(768)
    palette.colours.forEach((colour, i) => table.set(colour, 3 * i))
    const size = [width & 255, width >> 8, height & 255, height >> 8]
    this.put([...'GIF89a'].map((c) => c.charCodeAt(0)), size, [0xf7, 0, 0], table)
    this.put([0x21, 0xff, 11], [...'NETSCAPE2.0'].map((c) => c.charCodeAt(0)), [3, 1, 0, 0, 0]) // again and again
  }
  put(...pieces) { for (const piece of pieces) this.parts.push(Uint8Array.from(piece)) }
  frame(indices) {
    const shown = this.last ? indices.map((v, i) => (v === this.last[i] ? CLEAR : v)) : indices
    this.last = indices
    const { width, height } = this
    this.put([0x21, 0xf9, 4, 0x05, GIF_DELAY, 0, CLEAR, 0])
    this.put([0x2c, 0, 0, 0, 0, width & 255, width >> 8, height & 255, height >> 8, 0, 8])
    this.pack(shown)
  }
  // Codes of 9 to 12 bits, low bit first, in blocks of up to 255 bytes.
  pack(indices) {
    const [clear, end] = [256, 257]
    let [bytes, length, buffer, bits] = [new Uint8Array(65536), 0, 0, 0]
    let [next, wide] = [end + 1, 9]
    const put = (code) => {
      buffer |= code << bits
      for (bits += wide; bits >= 8; bits -= 8, buffer >>>= 8) {
        if (length === bytes.length) {
          const larger = new Uint8Array(2 * length)
          larger.set(bytes)
          bytes = larger
        }
        bytes[length++] = buffer & 255
      }
    }
    // open addressing: 4096 codes in 16384 places
    const [keys, codes] = [new Int32Array(16384).fill(-1), new Int16Array(16384)]
    put(clear)
    let prefix = indices[0]
    for (let i = 1; i < indices.length; i++) {
      const key = (prefix << 8) | indices[i]
      let place = (key * 2654435761) >>> 18
      while (keys[place] >= 0 && keys[place] !== key) place = (place + 1) & 16383
      if (keys[place] === key) {
        prefix = codes[place]
        continue
      }
      put(prefix)
      if (next < 4096) {
        if (next === 1 << wide) wide++
        keys[place] = key
        codes[place] = next++
      } else {
        put(clear)
        keys.fill(-1)
        ;[next, wide] = [end + 1, 9]
      }
      prefix = indices[i]
    }
    put(prefix)
    put(end)
    if (bits) put(0)
    for (let at = 0; at < length; at += 255) {
      const block = bytes.subarray(at, Math.min(length, at + 255))
      this.put([block.length], block)
    }
    this.put([0])
  }
  blob() { return new Blob([...this.parts, new Uint8Array([0x3b])], { type: 'image/gif' }) }
}

// The film from where it stands, at its speed; afterwards everything is as it was.
async function saveGif(view) {
  if (view.recording || !view.width) return
  const { width, height, theme } = view
  const kept = view.pose()
  const sheet = Object.assign(document.createElement('canvas'), { width, height })
  const ctx = sheet.getContext('2d', { willReadFrequently: true })
  const image = () => {
    ctx.fillStyle = css(theme.background)
    ctx.fillRect(0, 0, width, height)
    view.draw(ctx, width, height)
    return ctx.getImageData(0, 0, width, height).data
  }
  view.recording = view.gif.disabled = true
  try {
    view.strike({ ...kept, playing: true })
    const looks = []
    for (let i = 0; i < GIF_FRAMES; i++) {
      if (i % 25 === 0) looks.push(image())
      view.advance(GIF_DELAY / 100)
    }
    const palette = new GifPalette(looks)
    const writer = new GifWriter(width, height, palette)
    view.strike({ ...kept, playing: true })
    for (let i = 0; i < GIF_FRAMES; i++) {
      writer.frame(palette.indices(image()))
      view.advance(GIF_DELAY / 100)
      view.gif.textContent = `GIF ${Math.round((100 * (i + 1)) / GIF_FRAMES)} %`
      if (i % 4 === 3) await new Promise((done) => setTimeout(done)) // the page stays alive
    }
    download(`${view.meta.file ?? 'posviz'}.gif`, writer.blob())
  } finally {
    view.recording = view.gif.disabled = false
    view.gif.textContent = 'GIF'
    view.strike(kept)
    view.stale = true
    view.redraw()
    view.wake()
  }
}
