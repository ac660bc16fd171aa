"""Large tables: the posviz canvas beside go.Heatmap of float64, both in the smallest page that holds them."""

from collections.abc import Iterator

from benchmarks import servers
from benchmarks.browser import Browser, chromium
from benchmarks.table import Row, attempt, middle

SIZES = ((512, 512), (2048, 512), (5000, 1024))
LARGEST = SIZES[-1]
SIDES = {"waves": "canvas", "cells": "canvas", "plotly": "heatmap"}
EACH = {"waves": 3, "cells": 3, "plotly": 1}  # presses a turn: the posviz side is quick
NAMES = {"waves": "sinusoidal", "cells": "learned"}
FASTER, SMALLER = 1 / 20, 1 / 10


def measure(repeat: int) -> Iterator[Row]:
    with servers.serve(servers.HEATMAPS) as server, chromium() as browser:
        for rows, cols in SIZES:
            times = 1 if (rows, cols) == LARGEST else max(1, repeat // 2)
            yield from attempt(
                f"heatmap {rows} × {cols}",
                lambda rows=rows, cols=cols, times=times: _size(browser, server, rows, cols, times),
            )


def _size(browser: Browser, server: servers.Server, rows: int, cols: int, times: int) -> Iterator[Row]:
    presses: dict[str, list[dict]] = {side: [] for side in SIDES}
    tabs = {}
    try:
        for side, kind in SIDES.items():
            tabs[side] = browser.tab()
            steps = (times + 1) * EACH[side]
            tabs[side].visit(f"{server.url}/?with={side}&rows={rows}&cols={cols}&steps={steps}", kind)
        for turn in range(times + 1):
            for side, kind in SIDES.items():
                # The first press is not counted, but go.Heatmap's largest is not worth another quarter of a minute.
                if side == "plotly" and turn == 0 and (rows, cols) == LARGEST:
                    continue
                for _ in range(EACH[side]):
                    found = tabs[side].press(kind, "value")
                    if turn > 0:
                        presses[side].append(found)
    finally:
        for tab in tabs.values():
            tab.close()
    yield from _rows(presses, rows, cols)


def _rows(presses: dict[str, list[dict]], rows: int, cols: int) -> Iterator[Row]:
    wanted = (rows, cols) == LARGEST
    for side in NAMES:
        for title, unit, keys, limit in (
            ("key press → painted", "ms", ("painted",), FASTER),
            ("bytes", "B", ("websocket", "http"), SMALLER),
        ):
            ours, theirs = (middle(sum(p[key] for key in keys) for p in presses[name]) for name in (side, "plotly"))
            yield Row(
                f"{NAMES[side]} table {rows} × {cols}: {title}",
                unit,
                ours,
                theirs,
                "go.Heatmap",
                most_ratio=limit if wanted else None,
                detail={"posviz": presses[side], "plotly": presses["plotly"]},
            )
