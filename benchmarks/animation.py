"""Frames a second of the Rotation page while it plays, beside those of a page where nothing moves.

One set of clocks, and the films that show two: two models' scalings, and a base that is swept.
"""

import time
from collections.abc import Iterator

from benchmarks import servers
from benchmarks.browser import Browser, Tab, chromium
from benchmarks.table import Row, attempt, middle

SECONDS = 5
STILL_SECONDS = 2
WINDOW = 1920, 1080
WIDTH = 1560  # of the picture, in CSS pixels
PAIRS = {8: (64, 4), 64: (256, 2), 128: (512, 2)}  # pairs -> d_model, heads
WANTED = {64: 55.0}
# what plays -> its query, all with 64 pairs on each side
FILMS = {
    "two scalings": "watch=two",
    "sweep of the base": "watch=base&d_model=256&heads=2",
}


def measure(repeat: int) -> Iterator[Row]:
    with servers.serve(servers.APP) as app, servers.serve(servers.EMPTY) as empty, chromium() as browser:
        times = 2 if repeat > 5 else 1
        for pairs, (d_model, heads) in PAIRS.items():
            what, query = f"rotation: {pairs} pairs playing", f"d_model={d_model}&heads={heads}"
            wanted = WANTED.get(pairs)
            yield from attempt(
                what,
                lambda what=what, query=query, wanted=wanted: [_rate(browser, app, empty, what, query, wanted, times)],
            )
        for film, query in FILMS.items():
            what = f"rotation: {film}, 2 × 64 pairs playing"
            yield from attempt(
                what, lambda what=what, query=query: [_rate(browser, app, empty, what, query, WANTED[64], times)]
            )


def _widen(tab: Tab) -> None:
    """Make the window as wide as the picture needs it, and wait until it plays again."""
    window = WINDOW[0]
    for _ in range(5):  # margins may grow with the window
        width = tab.run("() => probe.deep('canvas[data-painted]').clientWidth")
        if width == WIDTH:
            break
        window += WIDTH - width
        tab.resize(window, WINDOW[1])
        time.sleep(0.5)
    tab.run("() => probe.deep('canvas[data-painted]').scrollIntoView({ block: 'center' })")
    time.sleep(1)


def _rate(
    browser: Browser,
    app: servers.Server,
    empty: servers.Server,
    what: str,
    query: str,
    wanted: float | None,
    repeat: int,
) -> Row:
    # One tab for both, one after the other: two pages that draw at once would slow each other down.
    tab = browser.tab(*WINDOW, still=False)
    samples = []
    try:
        for _ in range(repeat):
            tab.visit(empty.url, "image")
            still = tab.run("probe.rate", STILL_SECONDS * 1000)
            tab.visit(f"{app.url}/rotation?{query}", "canvas")
            _widen(tab)
            samples.append((tab.run("probe.rate", SECONDS * 1000), still))
    finally:
        tab.close()
    width = samples[-1][0]["width"]
    if any(ours["width"] != WIDTH for ours, _ in samples):
        raise RuntimeError(f"the picture is {width} px wide, not {WIDTH}")
    return Row(
        f"{what}, {WIDTH} px wide",
        "fps",
        middle(ours["paints"] for ours, _ in samples),
        middle(theirs["frames"] for _, theirs in samples),
        "empty page",
        least=wanted,
        detail={"samples": samples},
    )
