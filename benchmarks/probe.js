// Runs in every measured page, before its own scripts. Times are performance.now(), taken in the page.
// A press is over in the frame that shows a picture other than the one before it.
window.probe = (() => {
  const log = { sent: [], received: [] } // [time, bytes] of every websocket message
  const failed = [] // scripts that did not load
  addEventListener('error', ({ target }) => target?.src && failed.push(target.src), true)
  const size = (data) => data.byteLength ?? data.size ?? data.length
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args)
      this.addEventListener('message', (event) => log.received.push([performance.now(), size(event.data)]))
    }
    send(data) {
      log.sent.push([performance.now(), size(data)])
      super.send(data)
    }
  }

  // Components live in shadow roots.
  function deep(selector, root = document) {
    const found = root.querySelector(selector)
    if (found) return found
    for (const node of root.querySelectorAll('*')) {
      const inner = node.shadowRoot && deep(selector, node.shadowRoot)
      if (inner) return inner
    }
    return null
  }
  function hash(canvas) {
    const { width, height } = canvas
    const cells = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, width, height).data.buffer)
    let h = 2166136261
    for (let i = 0; i < cells.length; i++) h = Math.imul(h ^ cells[i], 16777619)
    return `${width}x${height} ${h >>> 0}`
  }
  // tick: cheap, asked every frame, changes with every paint. look: what is seen; equal looks are the same picture.
  const KINDS = {
    canvas: { selector: 'canvas[data-painted]', tick: (n) => n.dataset.painted, look: hash },
    image: { selector: '[data-testid=stImage] img', tick: (n) => n.complete && n.naturalWidth ? n.src : '', look: (n) => n.src, decode: true },
    heatmap: { selector: '.heatmaplayer image', tick: (n) => n.getAttribute('href') ?? n.getAttribute('xlink:href'), look: (n) => n.getAttribute('href') ?? n.getAttribute('xlink:href') },
    // Its lines are made in one go, so the next frame has them all; painting them may take the one after it too.
    svg: { selector: '#vis svg', tick: (n) => String(n.childElementCount || ''), look: (n) => String(n.childElementCount), frames: 2 },
  }
  // After this frame has been rendered.
  const rendered = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = done
    requestAnimationFrame(() => port2.postMessage(0))
  })
  const frame = () => new Promise(requestAnimationFrame)
  let node = null
  function find(kind) {
    if (!node?.isConnected || !node.matches(kind.selector)) node = deep(kind.selector)
    return node
  }
  // The time at which a picture that looks other than `before` is on the screen; null after `limit` ms, or when the page is broken.
  async function changed(kind, before, limit) {
    let tick = before.tick
    const end = performance.now() + limit
    while (performance.now() < end && !failed.length) {
      const picture = find(kind)
      const now = picture ? kind.tick(picture) : ''
      if (now && now !== tick) {
        tick = now
        if (kind.decode) await picture.decode()
        for (let i = kind.frames ?? 1; i > 0; i--) await rendered()
        const time = performance.now()
        if (kind.look(picture) !== before.look) return time
      }
      await frame()
    }
    return null
  }
  const idle = () => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  async function settled(limit) {
    const end = performance.now() + limit
    for (let quiet = 0; quiet < 6 && performance.now() < end; await frame()) quiet = idle() ? quiet + 1 : 0
  }
  let press = null
  return {
    deep,
    failed,
    // From the navigation to the first picture.
    first: (name, limit) => changed(KINDS[name], { tick: '', look: null }, limit),
    async arm(name, selector, limit) {
      await frame()
      await frame()
      const kind = KINDS[name]
      const picture = find(kind)
      document.querySelector(selector).focus()
      const before = { tick: kind.tick(picture), look: kind.look(picture) }
      press = { from: [log.sent.length, log.received.length], resources: performance.getEntriesByType('resource').length }
      performance.setResourceTimingBufferSize(100_000)
      press.done = changed(kind, before, limit)
      addEventListener('keydown', () => { press.start = performance.now() }, { capture: true, once: true })
    },
    settled,
    // Another page of the app is there and done.
    async arrived(path, limit) {
      const end = performance.now() + limit
      while (location.pathname !== path) {
        if (performance.now() > end) throw new Error(`the page stayed at ${location.pathname}`)
        await frame()
      }
      await settled(limit)
    },
    async result(limit) {
      const painted = await press.done
      if (painted === null) return null
      await settled(limit)
      const { start, from } = press
      const sent = log.sent.slice(from[0])
      const received = log.received.slice(from[1])
      const inTime = received.filter(([time]) => time <= painted)
      const files = performance.getEntriesByType('resource').slice(press.resources)
      return {
        painted: painted - start,
        sent: sent.length ? sent[0][0] - start : null,
        first: inTime.length ? inTime[0][0] - start : null,
        last: inTime.length ? inTime[inTime.length - 1][0] - start : null,
        finished: received.length ? received[received.length - 1][0] - start : null,
        websocket: received.reduce((sum, [, bytes]) => sum + bytes, 0),
        messages: received.length,
        http: files.reduce((sum, file) => sum + file.transferSize, 0),
      }
    },
    // Paints a second of the canvas, and frames a second of the browser, for `ms`.
    async rate(ms) {
      const picture = find(KINDS.canvas)
      const paints = () => Number(picture?.dataset.painted ?? 0)
      await frame()
      const [start, before] = [performance.now(), paints()]
      let frames = 0
      let longest = 0
      let last = start
      while (last - start < ms) {
        await frame()
        const now = performance.now()
        longest = Math.max(longest, now - last)
        last = now
        frames++
      }
      const seconds = (last - start) / 1000
      return { paints: (paints() - before) / seconds, frames: frames / seconds, longest, width: picture?.clientWidth ?? innerWidth }
    },
  }
})()
