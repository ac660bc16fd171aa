"""One head of one layer in numbers: inside one weight, or all of multi-head attention step by step.

``bundle`` joins everything the canvas draws into one blob (see ``bundle.py``); ``show`` mounts it.
The nine steps are those of Vaswani et al. 2017, arXiv 1706.03762, section 3.2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import streamlit as st

from posviz.types import AttentionTrace
from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.canvas.steps_labels import LABELS as LABELS

MODES = ("cell", "steps")
STEPS = 9
PAIRINGS = ("half", "interleaved")
MAX_TOKENS = 512
MAX_WIDTH = 8192  # of a model
EXACT_CELLS = 65_536  # larger arrays travel as means over blocks, and exactly only where a number is shown
_ACROSS = 256  # blocks of such an array down and across, at most
_ERROR = 1e-3  # of sums, relative: models compute in float32


@dataclass(frozen=True, eq=False)
class Rotary:
    """How a head's dimensions turn in pairs.

    pairing: "half" (i, i + width/2) or "interleaved" (2i, 2i+1); width = 2 * pairs, the rest is not turned.
    angles (L, pairs): radians at each query's position; key_angles (K, pairs) where keys have others.
    """

    pairing: str
    angles: np.ndarray = field(repr=False)
    key_angles: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Head:
    """One head of one layer: L queries, K keys (K = L unless there are ``key_tokens``), H heads.

    x (L, d)                  the layer's input
    q_all (L, H * e)          all heads' queries side by side, before any rotation
    q (L, e), k, v (K, e)     this head's, before any rotation
    q_rotated, k_rotated      after it (equal to q, k if the encoding turns nothing)
    scale                     factor of q.k
    parts: name -> (L, K)     scaled terms whose sum is ``scores``, as AttentionTrace.parts
    bias, scores (L, K)       scores = q_rotated . k_rotated * scale + bias, before the mask
    allowed (L, K)            bool: query i may look at key j
    weights (L, K)            softmax over the allowed keys
    head_output (L, e)        weights @ v
    concat (L, H * e)         all heads' outputs side by side
    w_o (H * e, d), b_o (d,)  of the projection at the end; b_o None: it has no bias
    output (L, d)             concat @ w_o + b_o
    """

    tokens: Sequence[str]
    head: int
    n_heads: int
    x: np.ndarray = field(repr=False)
    q_all: np.ndarray = field(repr=False)
    q: np.ndarray = field(repr=False)
    k: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    q_rotated: np.ndarray = field(repr=False)
    k_rotated: np.ndarray = field(repr=False)
    scale: float
    parts: Mapping[str, np.ndarray] = field(repr=False)
    bias: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    allowed: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    head_output: np.ndarray = field(repr=False)
    concat: np.ndarray = field(repr=False)
    w_o: np.ndarray = field(repr=False)
    output: np.ndarray = field(repr=False)
    b_o: np.ndarray | None = field(default=None, repr=False)
    key_tokens: Sequence[str] | None = None
    rotary: Rotary | None = None

    @property
    def products(self) -> np.ndarray:
        """(L, K): q.k, not scaled."""
        return np.asarray(self.q_rotated) @ np.asarray(self.k_rotated).T

    @property
    def value_norms(self) -> np.ndarray:
        """(K,): the length of v_j W_O of this head; times the weight it is what key j adds to the output."""
        width = np.shape(self.v)[1]
        return np.linalg.norm(self.v @ np.asarray(self.w_o)[self.head * width : (self.head + 1) * width], axis=1)


class Cell(TypedDict):
    """Query and key, as indices."""

    row: int
    col: int


class State(TypedDict):
    """What was last chosen in the picture; None before that."""

    cell: Cell | None
    step: int | None


def from_trace(
    trace: AttentionTrace,
    w_o: np.ndarray,
    head: int,
    *,
    b_o: np.ndarray | None = None,
    rotary: Rotary | None = None,
) -> Head:
    """Head ``head`` of ``trace``. w_o: (H * e, d), y = x @ w_o. Raises ValueError for a head that is not there."""
    heads = trace.q.shape[0]
    if not 0 <= head < heads:
        raise ValueError(f"head must be from 0 to {heads - 1}, got {head}")

    def joined(x: np.ndarray) -> np.ndarray:  # (H, L, e) -> (L, H * e)
        return x.transpose(1, 0, 2).reshape(x.shape[1], -1)

    return Head(
        tokens=trace.tokens.pieces,
        head=head,
        n_heads=heads,
        x=trace.hidden,
        q_all=joined(trace.q),
        q=trace.q[head],
        k=trace.k[head],
        v=trace.v[head],
        q_rotated=trace.q_rotated[head],
        k_rotated=trace.k_rotated[head],
        scale=trace.scale,
        parts={name: part[head] for name, part in trace.parts.items()},
        bias=trace.bias[head],
        scores=trace.scores[head],
        allowed=trace.allowed,
        weights=trace.weights[head],
        head_output=trace.head_outputs[head],
        concat=joined(trace.head_outputs),
        w_o=w_o,
        output=trace.output,
        b_o=b_o,
        rotary=rotary,
    )


# ------------------------------------------------------------ checks


def _check_shapes(head: Head) -> None:
    queries = len(head.tokens)
    keys = queries if head.key_tokens is None else len(head.key_tokens)
    if not 1 <= queries <= MAX_TOKENS or not 1 <= keys <= MAX_TOKENS:
        raise ValueError(f"tokens must be 1 to {MAX_TOKENS}, got {queries} queries and {keys} keys")
    if not 0 <= head.head < head.n_heads:
        raise ValueError(f"head must be from 0 to {head.n_heads - 1}, got {head.head}")
    if np.ndim(head.q) != 2 or np.ndim(head.x) != 2:
        raise ValueError(f"q and x must have two axes, got shapes {np.shape(head.q)} and {np.shape(head.x)}")
    width, model = np.shape(head.q)[1], np.shape(head.x)[1]
    if max(head.n_heads * width, model) > MAX_WIDTH:
        raise ValueError(f"a model may be {MAX_WIDTH} wide, got {max(head.n_heads * width, model)}")
    joined = head.n_heads * width
    want = {name: (queries, width) for name in ("q", "q_rotated", "head_output")}
    want |= {name: (keys, width) for name in ("k", "v", "k_rotated")}
    want |= {name: (queries, keys) for name in ("bias", "scores", "allowed", "weights")}
    want |= {"x": (queries, model), "output": (queries, model), "w_o": (joined, model)}
    want |= {"q_all": (queries, joined), "concat": (queries, joined)}
    if head.b_o is not None:
        want["b_o"] = (model,)
    for name, shape in want.items():
        _check_array(name, getattr(head, name), shape)
    for name, part in head.parts.items():
        _check_array(f"parts[{name!r}]", part, (queries, keys))
    if np.asarray(head.allowed).dtype != np.bool_:
        raise ValueError(f"allowed must be booleans, got {np.asarray(head.allowed).dtype}")
    if not np.isfinite(head.scale):
        raise ValueError(f"scale must be finite, got {head.scale}")


def _check_array(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if np.shape(array) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {np.shape(array)}")
    if name not in ("bias", "scores") and not name.startswith("parts") and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} NaN or infinite cells")


def _check_sums(head: Head) -> None:
    """What is drawn as a sum must be one, or the picture would teach something false."""
    allowed = np.asarray(head.allowed)
    scores = np.asarray(head.scores)[allowed]

    def same(what: str, got: np.ndarray, want: np.ndarray) -> None:
        error = np.abs(got - want) / (1 + np.abs(want))
        if not error.max(initial=0) <= _ERROR:  # NaN is refused too
            raise ValueError(f"{what}, off by {error.max():g}")

    bias = np.asarray(head.bias)[allowed]
    same("scores are not q_rotated . k_rotated * scale + bias", head.products[allowed] * head.scale + bias, scores)
    if head.parts:
        same("the parts do not add up to the scores", sum(np.asarray(p)[allowed] for p in head.parts.values()), scores)
    if np.abs(np.asarray(head.weights)[~allowed]).max(initial=0) > 1e-5:
        raise ValueError("allowed masks cells whose weight is not 0")
    same("weights @ v is not head_output", np.asarray(head.weights) @ head.v, np.asarray(head.head_output))
    end = np.asarray(head.concat) @ head.w_o + (0 if head.b_o is None else np.asarray(head.b_o))
    same("concat @ w_o is not output", end, np.asarray(head.output))


def _rotary(head: Head, arrays: dict[str, np.ndarray]) -> dict[str, Any] | None:
    rotary = head.rotary
    if rotary is None:
        return None
    if rotary.pairing not in PAIRINGS:
        raise ValueError(f"pairing must be one of {', '.join(PAIRINGS)}, got {rotary.pairing!r}")
    key_angles = rotary.angles if rotary.key_angles is None else rotary.key_angles
    pairs, width = np.shape(rotary.angles)[-1], np.shape(head.q)[1]
    if not 1 <= pairs <= width // 2:
        raise ValueError(f"angles must be of 1 to {width // 2} pairs for a head {width} wide, got {pairs}")
    _check_array("angles", rotary.angles, (len(head.q), pairs))
    _check_array("key_angles", key_angles, (len(head.k), pairs))
    arrays["angles"] = np.asarray(rotary.angles, np.float64)
    if rotary.key_angles is not None:
        arrays["key_angles"] = np.asarray(key_angles, np.float64)
    return {"pairing": rotary.pairing, "pairs": pairs}


# ------------------------------------------------------------ packing


class _Tables:
    """Matrices for JavaScript: exact while small, else means over blocks and the rows whose numbers are shown."""

    def __init__(self, row: int, pictures: bool) -> None:
        self.row, self.pictures = row, pictures
        self.arrays: dict[str, np.ndarray] = {}
        self.meta: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: np.ndarray, *, row: bool = True) -> None:
        array = np.where(np.isfinite(array), array, np.nan)  # masked cells are NaN
        rows, cols = array.shape
        limit = float(np.abs(array[np.isfinite(array)]).max(initial=0))
        entry: dict[str, Any] = {"rows": rows, "cols": cols, "limit": limit, "block": None}
        self.meta[name] = entry
        if array.size <= EXACT_CELLS:
            self.arrays[name] = array.astype(np.float32)
            return
        if row:
            self.arrays[f"{name}.row"] = array[self.row].astype(np.float32)
        if self.pictures:
            entry["block"] = [-(-size // _ACROSS) for size in (rows, cols)]
            blocks = _block_means(array, *entry["block"])
            entry["step"] = float(np.nanmax(np.abs(blocks), initial=0)) / 127 or 1.0
            steps = np.rint(np.nan_to_num(blocks) / entry["step"]) + 127
            self.arrays[f"{name}.blocks"] = np.where(np.isnan(blocks), 255, steps).astype(np.uint8)


def _block_means(array: np.ndarray, down: int, across: int) -> np.ndarray:
    """Means of blocks of down x across cells, NaN left out (NaN where nothing is left)."""
    starts = np.arange(0, array.shape[0], down), np.arange(0, array.shape[1], across)

    def sums(x: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.add.reduceat(x, starts[0], axis=0), starts[1], axis=1)

    count = sums(np.isfinite(array).astype(float))
    return np.divide(sums(np.nan_to_num(array)), count, out=np.full(count.shape, np.nan), where=count > 0)


def _fill(head: Head, tables: _Tables, steps: bool) -> None:
    """Everything that one of the two modes draws."""
    vectors = {"q": head.q, "k": head.k, "q_rotated": head.q_rotated, "k_rotated": head.k_rotated}
    if steps:
        vectors |= {"v": head.v, "head_output": head.head_output}
    for name, vector in vectors.items():
        same = name.endswith("_rotated") and np.array_equal(vector, vectors[name[0]])
        if not same:
            tables.arrays[name] = np.asarray(vector, np.float32)
    allowed = np.asarray(head.allowed)
    tables.arrays["allowed"] = allowed.astype(np.uint8)
    tables.arrays["value_norms"] = head.value_norms.astype(np.float32)
    tables.add("products", head.products)
    tables.add("scores", head.scores)
    tables.add("weights", np.where(allowed, head.weights, np.nan))
    if np.asarray(head.bias).any():
        tables.add("bias", head.bias)
    if not steps:
        for name, part in head.parts.items():
            tables.add(f"part_{name}", part)
        return
    tables.add("scaled", head.products * head.scale)
    tables.add("masked", np.where(allowed, head.scores, np.nan))
    for name in ("x", "q_all", "concat", "output"):
        tables.add(name, np.asarray(getattr(head, name)))
    tables.add("w_o", np.asarray(head.w_o), row=False)
    tables.arrays["w_o.col"] = np.asarray(head.w_o)[:, 0].astype(np.float32)
    if head.b_o is not None:
        tables.arrays["b_o"] = np.asarray(head.b_o, np.float32)


def bundle(
    head: Head,
    *,
    mode: str,
    row: int,
    col: int,
    step: int = 1,
    side: str = "a",
    scale_text: str = "√d",
    bias_note: str = "",
    labels: Mapping[str, str],
    alt: str,
    file: str,
) -> bytes:
    """Check and pack one picture.

    mode: "cell" (inside the weight of query ``row`` on key ``col``) or "steps" (the nine steps, at ``step``).
    side: "a" or "b", the colour of weights. scale_text: what q.k is divided by, e.g. "√16".
    bias_note: what step 4 says, in the session's language. Raises ValueError.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    if side not in ("a", "b"):
        raise ValueError(f"side must be a or b, got {side!r}")
    if not 1 <= step <= STEPS:
        raise ValueError(f"step must be from 1 to {STEPS}, got {step}")
    _check_shapes(head)
    _check_sums(head)
    texts = {**LABELS, **labels}
    for name in head.parts:
        if f"part_{name}" not in texts:
            raise ValueError(f"parts[{name!r}] has no text: labels needs 'part_{name}'")
    keys = head.tokens if head.key_tokens is None else head.key_tokens
    if not (0 <= row < len(head.tokens) and 0 <= col < len(keys)):
        raise ValueError(f"cell ({row}, {col}) is outside {len(head.tokens)} queries and {len(keys)} keys")
    tables = _Tables(row, mode == "steps")
    rotary = _rotary(head, tables.arrays)
    _fill(head, tables, mode == "steps")
    meta = {
        "mode": mode,
        "side": side,
        "step": step,
        "tokens": list(head.tokens),
        "keys": list(keys),
        "cross": head.key_tokens is not None,
        "head": head.head,
        "heads": head.n_heads,
        "cell": {"row": row, "col": col},
        "width": int(np.shape(head.q)[1]),
        "scale": float(head.scale),
        "scale_text": scale_text,
        "bias_note": bias_note,
        "rotated": "q_rotated" in tables.arrays or "k_rotated" in tables.arrays,
        "rotary": rotary,
        "parts": list(head.parts),
        "tables": tables.meta,
        "labels": texts,
        "alt": alt,
        "file": file,
    }
    return pack(meta, tables.arrays)


_COMPONENT = st.components.v2.component("posviz_steps", html="<div></div>", css=style("steps"), js=script("steps"))


def show(
    data: bytes,
    *,
    key: str,
    height: int | str = "content",
    on_cell: Callable[[], None] | None = None,
    on_step: Callable[[], None] | None = None,
) -> State:
    """Mount the picture; returns the cell and the step last chosen in it.

    ``on_cell`` and ``on_step`` run before the rerun (``st.session_state[key].cell``, ``.step`` are new).
    The room is reserved by steps.css before the script has drawn, so the page below does not jump.
    """
    nothing = lambda: None  # noqa: E731
    result = _COMPONENT(
        data=data, key=key, height=height, on_cell_change=on_cell or nothing, on_step_change=on_step or nothing
    )
    return {"cell": result.cell, "step": result.step}
