"""Another model on the RoPE workbench: from the key that chooses it to the new picture, beside an empty page's slider."""

from collections.abc import Iterator

from benchmarks import servers
from benchmarks.browser import Browser, chromium
from benchmarks.table import Row, attempt, middle

VIEWS = ("ratio", "angles", "kernel", "needle")
SELECT = "w_ra"
MODELS = "ra=llama-2-7b&rb=deepseek-v3"
WARM = 1
WANTED = 2.5


def measure(repeat: int) -> Iterator[Row]:
    with servers.serve(servers.APP) as app, servers.serve(servers.EMPTY) as empty, chromium() as browser:
        tab = browser.tab()
        tab.visit(empty.url, "image")
        theirs = middle(tab.press("image", "value")["painted"] for _ in range(WARM + repeat))
        tab.close()
        for view in VIEWS:
            yield from attempt(
                f"rope, {view}: another model → painted",
                lambda view=view: [_switch(browser, app, view, theirs, repeat)],
            )


def _switch(browser: Browser, app: servers.Server, view: str, theirs: float, repeat: int) -> Row:
    """The next model for side A, chosen with the keyboard: each is one that was not shown before."""
    tab = browser.tab()
    samples = []
    try:
        tab.visit(f"{app.url}/rope?{MODELS}&rview={view}", "canvas")
        for _ in range(WARM + repeat):
            samples.append(tab.choose("canvas", SELECT))
    finally:
        tab.close()
    kept = samples[WARM:]
    return Row(
        f"rope, {view}: another model → painted",
        "ms",
        middle(sample["painted"] for sample in kept),
        theirs,
        "empty page",
        most_ratio=WANTED,
        detail={"samples": kept},
    )
