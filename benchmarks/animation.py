"""Frames a second of the Rotation page while it plays, beside those of a page where nothing moves."""

from collections.abc import Iterator

from playwright.sync_api import Browser, Page

from benchmarks import browser, servers
from benchmarks.table import Row, attempt, middle

SECONDS = 5
WIDTH = 1560  # of the picture, in CSS pixels
PAIRS = {8: (64, 4), 64: (256, 2), 128: (512, 2)}  # pairs -> d_model, heads
WANTED = {64: 55.0}


def measure(repeat: int) -> Iterator[Row]:
    with servers.serve(servers.APP) as app, servers.serve(servers.EMPTY) as empty, browser.chromium() as chromium:
        for pairs in PAIRS:
            yield from attempt(
                f"rotation: {pairs} pairs playing",
                lambda pairs=pairs: [_rate(chromium, app, empty, pairs, 2 if repeat > 5 else 1)],
            )


def _widen(page: Page) -> None:
    """Make the window as wide as the picture needs it, and wait until it plays again."""
    size = page.viewport_size
    width = page.evaluate("() => probe.deep('canvas[data-painted]').clientWidth")
    page.set_viewport_size({"width": size["width"] + WIDTH - width, "height": size["height"]})
    page.evaluate("() => probe.deep('canvas[data-painted]').scrollIntoView({ block: 'center' })")
    page.wait_for_timeout(1000)


def _rate(chromium: Browser, app: servers.Server, empty: servers.Server, pairs: int, repeat: int) -> Row:
    d_model, heads = PAIRS[pairs]
    # One tab for both, one after the other: two pages that draw at once would slow each other down.
    page = browser.tab(chromium, 1920, 1080, still=False)
    samples = []
    try:
        for _ in range(repeat):
            browser.visit(page, empty.url, "image")
            still = page.evaluate("ms => probe.rate(ms)", SECONDS * 1000)
            browser.visit(page, f"{app.url}/rotation?d_model={d_model}&heads={heads}", "canvas")
            _widen(page)
            samples.append((page.evaluate("ms => probe.rate(ms)", SECONDS * 1000), still))
    finally:
        page.context.close()
    width = samples[-1][0]["width"]
    if any(ours["width"] != WIDTH for ours, _ in samples):
        raise RuntimeError(f"the picture is {width} px wide, not {WIDTH}")
    return Row(
        f"rotation: {pairs} pairs playing, {WIDTH} px wide",
        "fps",
        middle(ours["paints"] for ours, _ in samples),
        middle(theirs["frames"] for _, theirs in samples),
        "empty page",
        least=WANTED.get(pairs),
        detail={"samples": samples},
    )
