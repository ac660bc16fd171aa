"""Every head of a 12-layer, 12-head model: the posviz picture beside BertViz's, as a file that stands alone.

Two posviz pictures: the heads with all their weights, and the Studio's grid of them for two sentences.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import libraries
from benchmarks.browser import Browser, chromium
from benchmarks.start import tab_memory
from benchmarks.table import Row, attempt, middle

LAYERS = HEADS = 12
LENGTHS = (24, 128)
MOST = 3e6  # bytes wanted at most, for the longer one
SMALLER, FASTER = 1 / 40, 1 / 20  # wanted of the Studio beside BertViz, for the longer one
VIEWS = ("model_view", "head_view")  # every head; the heads of one layer
PATIENCE = 600_000  # ms that a picture may take: BertViz draws 2.4 million lines of 128 tokens
LONG = 10_000  # ms; an opening that takes longer counts at once and is not made again
TITLES = {"grid": "Studio", "page": "web page"}


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


def alone(kind: str, data: bytes) -> str:
    """The file that a reader saves."""
    from posviz.ui.canvas.bundle import standalone_html

    return standalone_html(kind, data, title="Heads")


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
    times, painted, memory = [], [], []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder, "grid.html")
        for _turn in range(repeat):
            took, data = _timed(lambda: grid(weights))
            times.append(took)
            file.write_text(alone("grid", data), "utf-8")
            paint, resident = _open(browser, file, {})
            painted.append(paint)
            memory.append(resident)
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
        "page": lambda: alone("heads", bundle(weights)),
        **{view: lambda view=view: bertviz(view, weights) for view in VIEWS},
    }
    times: dict[str, list[float]] = {name: [] for name in makers}
    made: dict[str, Any] = {}
    small = attention(2)
    alone("heads", bundle(small)), [bertviz(view, small) for view in VIEWS]  # imports are not build time
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
        most_ratio=SMALLER if limit else None,
    )
    yield Row(f"{what}: built for the Studio", "ms", middle(times["grid"]), middle(times[first]), f"BertViz {first}")
    for view in VIEWS:
        yield Row(f"{what}: web page", "B", size["page"], size[view], names[view], most=limit)
    for view in VIEWS:
        ours, theirs = middle(times["page"]), middle(times[view])
        yield Row(f"{what}: built", "ms", ours, theirs, f"BertViz {view}", detail={"milliseconds": times})
    files = {"grid": alone("grid", made["grid"]), **{name: made[name] for name in ("page", *VIEWS)}}
    yield from attempt(f"{what}: painted", lambda: _painted(what, length, files, repeat))


def _painted(what: str, length: int, files: dict[str, str], repeat: int) -> Iterator[Row]:
    """From opening a file to its picture, after one opening that is not counted; and the tab's memory then.

    BertViz asks a network for require.js, d3 and jQuery. It is handed them at once, which is its best case.
    """
    scripts, detail, instead = {}, {}, {}
    try:
        scripts, detail["libraries"] = libraries.fetch(bertviz(VIEWS[0], attention(2)))
    except RuntimeError as error:
        instead = dict.fromkeys(VIEWS, f"BertViz is left out: {error}")
    shown = {name: text for name, text in files.items() if scripts or name not in VIEWS}
    found, failed = _openings(shown, scripts, length, repeat)
    instead |= failed
    detail["samples"] = found
    for title, unit, i in (("painted", "ms", 0), ("memory of the tab", "B", 1)):
        figures = {name: middle(sample[i] for sample in samples) for name, samples in found.items()}
        for mine, view in (("grid", VIEWS[0]), ("page", VIEWS[0]), ("page", VIEWS[1])):
            yield Row(
                f"{what}: {TITLES[mine]}, {title}",
                unit,
                figures[mine],
                figures.get(view),
                f"BertViz {view}",
                most_ratio=FASTER if (title, mine, length) == ("painted", "grid", max(LENGTHS)) else None,
                instead=instead.get(view, ""),
                detail=detail,
            )


def _openings(
    files: dict[str, str], scripts: dict[str, bytes], length: int, repeat: int
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, str]]:
    """({name: (milliseconds, bytes) of each opening}, {name: why BertViz could not}); the sides take turns."""
    lines = dict(zip(VIEWS, (LAYERS * HEADS * length**2, HEADS * length**2), strict=True))
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in files}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, text in files.items():
            Path(folder, f"{name}.html").write_text(text, "utf-8")
        for _turn in range(1 + repeat):
            for name, done in samples.items():
                if name in failed or (done and done[0][0] > LONG):
                    continue
                try:
                    done.append(_open(browser, Path(folder, f"{name}.html"), scripts, lines.get(name, 0)))
                except (RuntimeError, TimeoutError) as error:
                    if name not in VIEWS:
                        raise
                    failed[name] = f"BertViz {name}: {error or 'no answer'}"
    return {name: done[1:] or done for name, done in samples.items() if name not in failed}, failed


def _open(browser: Browser, file: Path, scripts: dict[str, bytes], lines: int = 0) -> tuple[float, float]:
    """(milliseconds to the picture, resident bytes of the tab) of a saved page in a new window.

    lines: how many BertViz has to draw; 0 for a canvas.
    """
    tab = browser.tab(1920, 1080)
    try:
        tab.intercept(scripts)
        tab.open(file.as_uri())
        painted = tab.run("probe.first", "svg" if lines else "canvas", PATIENCE, patience=PATIENCE / 1000 + 30)
        if painted is None:
            raise RuntimeError(f"nothing was painted in {PATIENCE // 1000} s")
        drawn = tab.run("() => document.getElementsByTagName('line').length")
        if drawn != lines:
            raise RuntimeError(f"{drawn} lines of {lines} were drawn")
        held = tab_memory(browser, tab)
    finally:
        tab.close()
    _until_gone(int(held["pid"]))
    return painted, held["tab"]


def _until_gone(pid: int) -> None:
    """The next tab's memory is that of the largest process: a tab that is closed must not be counted again."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise RuntimeError("a closed tab did not end")
