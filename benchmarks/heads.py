"""Every head of a 12-layer, 12-head model: the posviz picture beside BertViz's, as a file that stands alone.

Two posviz pictures: the heads with all their weights, and the Studio's grid of them for two sentences.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import LIMIT, Tab, chromium
from benchmarks.start import tab_memory
from benchmarks.table import Row, attempt, middle

LAYERS = HEADS = 12
LENGTHS = (24, 128)
MOST = 3e6  # bytes wanted at most, for the longer one
PATIENCE = 60_000  # ms that BertViz may take to fetch its libraries and to draw
VIEWS = ("model_view", "head_view")


def attention(length: int) -> np.ndarray:
    """(layers, heads, length, length) float32: softmax of normal scores, the same in every run."""
    scores = np.random.default_rng(0).normal(0, 2, (LAYERS, HEADS, length, length))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def words(length: int) -> list[str]:
    return [f"word{i}" for i in range(length)]


def bundle(weights: np.ndarray) -> bytes:
    from posviz.ui.canvas import heads

    length = weights.shape[-1]
    return heads.bundle(
        tokens_a=words(length),
        weights_a=weights.reshape(LAYERS * HEADS, length, length),
        head_labels=[f"{layer}.{head}" for layer in range(LAYERS) for head in range(HEADS)],
        columns=HEADS,
        labels={},
        alt="attention weights",
        file="heads",
    )


def page(weights: np.ndarray) -> str:
    from posviz.ui.canvas.bundle import standalone_html

    return standalone_html("heads", bundle(weights), title="Heads")


def grid(weights: np.ndarray) -> bytes:
    """What the Studio sends of two sentences: small pictures of A, B and A - B, and every head's scores."""
    from posviz import survey
    from posviz.types import Tokens
    from posviz.ui.canvas import grid

    length = weights.shape[-1]
    names = tuple(words(length))
    tokens = [Tokens(" ".join(names), names, tuple(ids)) for ids in (range(length), range(length)[::-1])]
    full = np.ones((length, length), bool)
    found = survey.survey(*((survey.Seen(side, layer, full, side) for layer in weights) for side in tokens))
    return grid.bundle(
        tokens={side: names for side in grid.SIDES},
        thumbs=found.thumbs,
        allowed=found.allowed,
        scores=found.scores,
        uniform=found.uniform,
        look={"side": "a", "measure": "", "sorted": False, "own": False},
        labels={},
        alt="heads",
        file="heads",
    )


def bertviz(view: str, weights: np.ndarray) -> str:
    import bertviz as package
    import torch

    layers = tuple(torch.from_numpy(layer)[None] for layer in weights)
    return getattr(package, view)(layers, words(weights.shape[-1]), html_action="return").data


def measure(repeat: int) -> Iterator[Row]:
    for length in LENGTHS:
        yield from attempt(
            f"12 × 12 heads × {length} tokens", lambda length=length: _length(length, min(3, max(1, repeat // 2)))
        )
    yield from attempt("12 × 12 heads × 512 tokens", lambda: _studio(min(3, max(1, repeat // 2))))


def _studio(repeat: int) -> Iterator[Row]:
    """BertViz writes every weight as text: of 512 tokens that would be some 1.7 GB."""
    what = "12 × 12 heads × 512 tokens, two sentences, Studio"
    weights = attention(512)
    from posviz.ui.canvas.bundle import standalone_html

    times, painted, memory = [], [], []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder, "grid.html")
        for _turn in range(repeat):
            took, data = _timed(lambda: grid(weights))
            times.append(took)
            file.write_text(standalone_html("grid", data, title="Heads"), "utf-8")
            tab = browser.tab(1920, 1080)
            tab.open(file.as_uri())
            painted.append(_first(tab, "canvas", LIMIT))
            memory.append(tab_memory(browser, tab)["tab"])
            tab.close()
    if None in painted:
        raise RuntimeError("the picture did not appear")
    instead = "BertViz: 38 million weights as text"
    yield Row(f"{what}: data sent by the app", "B", len(data), instead=instead)
    together = [took + paint for took, paint in zip(times, painted, strict=True)]
    detail = {"milliseconds": {"survey": times, "painted": painted}}
    yield Row(f"{what}: weights to painted grid", "ms", middle(together), most=2000, instead=instead, detail=detail)
    yield Row(f"{what}: resident memory of the tab", "B", middle(memory), most=300e6, instead=instead)


def _timed(make: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    made = make()
    return (time.perf_counter() - start) * 1000, made


def _length(length: int, repeat: int) -> Iterator[Row]:
    what = f"12 × 12 heads × {length} tokens"
    weights = attention(length)
    makers: dict[str, Callable[[], Any]] = {
        "bundle": lambda: bundle(weights),
        "grid": lambda: grid(weights),
        "page": lambda: page(weights),
        **{view: lambda view=view: bertviz(view, weights) for view in VIEWS},
    }
    times: dict[str, list[float]] = {name: [] for name in makers}
    made: dict[str, Any] = {}
    small = attention(2)
    page(small), [bertviz(view, small) for view in VIEWS]  # imports are not build time
    for _ in range(repeat):
        for name, make in makers.items():
            took, made[name] = _timed(make)
            times[name].append(took)
    size = {name: len(result.encode() if isinstance(result, str) else result) for name, result in made.items()}
    limit = MOST if length == max(LENGTHS) else None
    # BertViz puts its data in place of a marker, which its script names again in a comment.
    copies = {view: made[view].count('"attention": [') for view in VIEWS}
    names = {view: f"BertViz {view}{' (data twice)' if copies[view] == 2 else ''}" for view in VIEWS}
    first = VIEWS[0]
    yield Row(f"{what}: data sent by the app", "B", size["bundle"], size[first], names[first], most=limit)
    yield Row(
        f"{what}: data sent by the Studio",
        "B",
        size["grid"],
        size[first],
        names[first],
        most_ratio=1 / 40 if limit else None,
    )
    yield Row(f"{what}: built for the Studio", "ms", middle(times["grid"]), middle(times[first]), f"BertViz {first}")
    for view in VIEWS:
        yield Row(f"{what}: web page", "B", size["page"], size[view], names[view], most=limit)
    for view in VIEWS:
        ours, theirs = middle(times["page"]), middle(times[view])
        yield Row(f"{what}: built", "ms", ours, theirs, f"BertViz {view}", detail={"milliseconds": times})
    yield from attempt(f"{what}: web page painted", lambda: [_painted(what, made["page"], made["model_view"], repeat)])


def _painted(what: str, ours: str, theirs: str, repeat: int) -> Row:
    """From opening the file to the picture. BertViz fetches require.js, d3 and jQuery from the network."""
    sides = {"posviz": (ours, "canvas", LIMIT), "bertviz": (theirs, "svg", PATIENCE)}
    samples: dict[str, list[float | None]] = {side: [] for side in sides}
    instead = f"BertViz model_view has painted nothing in {PATIENCE // 1000} s"
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for side, (text, _, _) in sides.items():
            Path(folder, f"{side}.html").write_text(text, "utf-8")
        for turn in range(repeat):
            for side, (_, kind, limit) in sides.items():
                if turn and samples[side][-1] is None:
                    continue  # nor will it the next time
                tab = browser.tab(1920, 1080)
                tab.open(Path(folder, f"{side}.html").as_uri())
                samples[side].append(_first(tab, kind, limit))
                if side == "bertviz" and (missing := _missing(tab)):
                    instead = f"BertViz model_view does not paint: no {missing} offline"
                tab.close()
    if None in samples["posviz"]:
        raise RuntimeError("the picture did not appear")
    return Row(
        f"{what}: web page painted",
        "ms",
        middle(samples["posviz"]),
        None if None in samples["bertviz"] else middle(samples["bertviz"]),
        "BertViz model_view",
        instead=instead,
        detail={"milliseconds": samples},
    )


def _first(tab: Tab, kind: str, limit: int) -> float | None:
    """Milliseconds to the first picture; None when none came, also from a page too busy to say so."""
    try:
        return tab.run("probe.first", kind, limit, patience=limit / 1000 + 5)
    except TimeoutError:
        return None


def _missing(tab: Tab) -> str:
    """The host of a script that could not be fetched."""
    try:
        failed = tab.run("() => probe.failed", patience=5)
    except TimeoutError:
        return ""
    return failed[0].split("/")[2] if failed else ""
