"""The animated clocks of the Rotation page (``clocks.js``): its data and its mount."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

HEIGHT = 660
"""Height of the canvas in CSS pixels when the page is wide; a narrow page stacks and is taller."""

LABELS = {
    "play": N_("Play"),
    "pause": N_("Pause"),
    "lock": N_("move both (m − n fixed)"),
    "back": N_("one position back"),
    "forward": N_("one position on"),
    "slower": N_("slower"),
    "faster": N_("faster"),
    "speed": N_("speed {value}/s"),
    "range": N_("show"),
    "save": N_("Save"),
    "query": N_("query"),
    "key": N_("key"),
    "legend_query": N_("query at mθ"),
    "legend_key": N_("key at nθ"),
    "legend_angle": N_("rim: (m − n)θ"),
    "pair_title": N_("pair {pair} · θ = {theta}"),
    "turns": N_("turns"),
    "wavelength": N_("wavelength {value} positions"),
    "part": N_("part of the score"),
    "dims": N_("turns dimensions {a} and {b} of {d}"),
    "bars": N_("score, pair by pair"),
    "pile": N_("the parts piled up"),
    "rest": N_("grey: not rotated"),
    "kernel": N_("score against m − n"),
    "score": N_("score q·k/√d"),
    "drift": N_("largest change, both moving"),
    "expected": N_("should be 0"),
    "keys": N_("space: play · ← →: move q · , .: move k · ⇧ ← →: move both · ↑ ↓: pair · [ ]: speed"),
}
"""Every text of the picture, in English; ``{name}`` is filled in by the browser."""

_PAIRINGS = ("half", "interleaved")
_STATE = ("m", "n", "i", "j", "pair")


def bundle(
    *,
    omega: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    tokens: Sequence[Mapping[str, Any]],
    pairing: str,
    max_position: int,
    m: int,
    n: int,
    i: int,
    j: int,
    pair: int,
    scale: float,
    labels: Mapping[str, str] = LABELS,
    height: int = HEIGHT,
    alt: str = "",
    file: str = "posviz-rotation",
) -> bytes:
    """The picture's data as one blob for :func:`show` or ``standalone_html("clocks", ...)``.

    Args:
        omega: ``(n_pairs,)`` float64, radians per position of each pair, fast to slow.
        q: ``(n_tokens, d_head)`` float64, queries before rotation, one row for each of ``tokens``.
        k: ``(n_tokens, d_head)`` float64, keys before rotation. Dimensions from ``2 * n_pairs`` on
            are not rotated.
        tokens: all tokens of A, then of B:
            ``{"label": "我·0", "sentence": "A" | "B", "position": int}``.
        pairing: ``"half"``: pair p turns dims (p, p + n_pairs); ``"interleaved"``: (2p, 2p + 1).
        max_position: last position of the ruler.
        m, n: where the query and the key stand.
        i, j: which of ``tokens`` is the query and which the key.
        pair: the pair shown large.
        scale: factor of the score, ``1 / sqrt(d_head)``.
        labels: translations of :data:`LABELS`.

    Raises:
        ValueError: the arguments do not fit together.
    """
    omega, q, k = (np.asarray(array, dtype=np.float64) for array in (omega, q, k))
    _check_arrays(omega, q, k, scale)
    _check_tokens(tokens, q, k, max_position)
    if pairing not in _PAIRINGS:
        raise ValueError(f"pairing must be one of {', '.join(_PAIRINGS)}, got {pairing!r}")
    if height < 560:
        raise ValueError(f"height must be at least 560, got {height}")
    limits = {
        "m": max_position,
        "n": max_position,
        "i": len(q) - 1,
        "j": len(k) - 1,
        "pair": len(omega) - 1,
    }
    state = dict(zip(_STATE, (m, n, i, j, pair), strict=True))
    for name, value in state.items():
        if not 0 <= value <= limits[name]:
            raise ValueError(f"{name} must be from 0 to {limits[name]}, got {value}")
    missing = [name for name in LABELS if name not in labels]
    if missing:
        raise ValueError(f"labels lacks {', '.join(missing)}")
    meta = {
        **{name: int(value) for name, value in state.items()},
        "tokens": [
            {
                "label": str(t["label"]),
                "sentence": str(t["sentence"]),
                "position": int(t["position"]),
            }
            for t in tokens
        ],
        "pairing": pairing,
        "max_position": int(max_position),
        "d_head": int(q.shape[1]),
        "scale": float(scale),
        "labels": {name: labels[name] for name in LABELS},
        "height": int(height),
        "alt": alt,
        "file": file,
    }
    return pack(meta, {"omega": omega, "q": q, "k": k})


def _check_arrays(omega: np.ndarray, q: np.ndarray, k: np.ndarray, scale: float) -> None:
    if omega.ndim != 1 or not len(omega):
        raise ValueError(f"omega must have the shape (n_pairs,) with n_pairs at least 1, got {omega.shape}")
    if q.ndim != 2 or q.shape != k.shape:
        raise ValueError(f"q and k must both have the shape (n_tokens, d_head), got {q.shape} and {k.shape}")
    if 2 * len(omega) > q.shape[1]:
        raise ValueError(f"{len(omega)} pairs turn {2 * len(omega)} dimensions, but d_head is {q.shape[1]}")
    if not all(np.isfinite(array).all() for array in (omega, q, k)) or not np.isfinite(scale):
        raise ValueError("omega, q, k and scale must be finite")


def _check_tokens(tokens: Sequence[Mapping[str, Any]], q: np.ndarray, k: np.ndarray, max_position: int) -> None:
    if not len(tokens) or len(tokens) != len(q):
        raise ValueError(f"tokens must name each row of q and k: {len(tokens)} tokens, {len(q)} rows")
    if max_position < 1:
        raise ValueError(f"max_position must be at least 1, got {max_position}")
    for token in tokens:
        if token["sentence"] not in ("A", "B"):
            raise ValueError(f"a token's sentence must be A or B, got {token['sentence']!r}")
        if not 0 <= token["position"] <= max_position:
            raise ValueError(f"a token's position must be from 0 to {max_position}, got {token['position']}")


_mount = st.components.v2.component(
    "posviz_clocks",
    # Keeps the page from jumping until the script has made the stage.
    html='<div class="reserve"></div>\n',
    css=style("clocks"),
    js=script("clocks"),
)


def show(data: bytes, *, key: str, on_change: Callable[[], None] = lambda: None) -> None:
    """Mount the picture; ``st.session_state[key].state`` is {"m", "n", "i", "j", "pair"} after a change."""
    _mount(data=data, key=key, on_state_change=on_change)
