"""A key press on each page, beside an empty Streamlit page with one slider and one picture."""

from collections.abc import Iterator

from benchmarks import servers
from benchmarks.browser import Browser, Tab, chromium
from benchmarks.table import Row, attempt, middle

WARM = 2  # presses before the measured ones
STEPS = 25  # presses a page has before it meets bases that another one has computed: results are shared
FIRST = -0.5  # the first page's base is 10^(FIRST + STEPS * 0.05)
PAGES = ("order", "heatmap", "similarity", "rotation", "attention")
SLIDER = "w_log_base"
WANTED = 1.5


def address(server: servers.Server, name: str, number: int = 0) -> str:
    """A page with a base of its own, so that every press computes what no page has computed before."""
    exponent = FIRST + (number + 1) * STEPS * 0.05
    model = "&model=untrained" if name == "attention" else ""  # a twin has its own base
    return f"{server.url}/{name}?base={float(f'{10**exponent:.3g}'):.12g}{model}"


def measure(repeat: int) -> Iterator[Row]:
    repeat = min(repeat, STEPS - WARM - 1)
    with servers.serve(servers.APP) as app, servers.serve(servers.EMPTY) as empty, chromium() as browser:
        presses: dict[str, list[dict]] = {}
        failures: dict[str, str] = {}
        tabs = _open(browser, app, empty, failures)
        for turn in range(WARM + repeat):
            for name, (tab, kind, slider) in list(tabs.items()):
                try:
                    found = tab.press(kind, slider)
                except Exception as error:
                    failures[name] = str(error)
                    del tabs[name]
                    continue
                if turn >= WARM:
                    presses.setdefault(name, []).append(found)
    yield from _rows(presses, failures)


def _open(browser: Browser, app: servers.Server, empty: servers.Server, failures: dict[str, str]) -> dict:
    sides = {"empty": (empty.url, "image", "value")}
    sides |= {name: (address(app, name, i), "canvas", SLIDER) for i, name in enumerate(PAGES)}
    tabs: dict[str, tuple[Tab, str, str]] = {}
    for name, (url, kind, slider) in sides.items():
        try:
            tab = browser.tab()
            tab.visit(url, kind)
            tabs[name] = (tab, kind, slider)
        except Exception as error:
            failures[name] = str(error)
    return tabs


def _rows(presses: dict[str, list[dict]], failures: dict[str, str]) -> Iterator[Row]:
    for name in PAGES:
        yield from attempt(f"{name}: key press → painted", lambda name=name: [_time(name, presses, failures)])
    for name in PAGES:
        yield from attempt(f"{name}: bytes a key press brings", lambda name=name: [_bytes(name, presses, failures)])


def _both(name: str, presses: dict[str, list[dict]], failures: dict[str, str]) -> tuple[list[dict], list[dict]]:
    for side in (name, "empty"):
        if side in failures:
            raise RuntimeError(f"{side}: {failures[side]}")
    return presses[name], presses["empty"]


def _time(name: str, presses: dict[str, list[dict]], failures: dict[str, str]) -> Row:
    ours, theirs = _both(name, presses, failures)
    medians = {
        side: {key: middle(p[key] for p in found) for key in ("sent", "first", "last", "painted", "finished")}
        for side, found in (("posviz", ours), ("empty", theirs))
    }
    return Row(
        f"{name}: key press → painted",
        "ms",
        medians["posviz"]["painted"],
        medians["empty"]["painted"],
        "empty page",
        most_ratio=WANTED,
        detail={"milliseconds": medians, "posviz": ours, "empty": theirs},
    )


def _bytes(name: str, presses: dict[str, list[dict]], failures: dict[str, str]) -> Row:
    ours, theirs = _both(name, presses, failures)
    brought = [middle(p["websocket"] + p["http"] for p in found) for found in (ours, theirs)]
    return Row(f"{name}: bytes a key press brings", "B", *brought, "empty page")
