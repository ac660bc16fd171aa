"""Two sets of clocks at the same positions: a picture of the Rotation page (``turns.js``): its data and its mount."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from posviz.precision import ROUNDED, SEEN
from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

HEIGHT = 600
MODES = ("two", "base", "digits")

LABELS: dict[str, str] = {
    "play": N_("Play"),
    "pause": N_("Pause"),
    "lock": N_("move both"),
    "back": N_("one position back"),
    "forward": N_("one position on"),
    "slower": N_("slower"),
    "faster": N_("faster"),
    "speed": N_("speed {value}/s"),
    "speed_base": N_("{value} decades/s"),
    "range": N_("show"),
    "save": N_("Save"),
    "sweep": N_("base of B"),
    "base_facts": N_("d_crit {critical} · Σ cos < 0 from {bound}"),
    "new": N_("{count} / {pairs} beyond training"),
    "exact": N_("exact"),
    "wrong": N_("{count} / {pairs} visibly wrong"),
    "off": N_("off by {value} rad"),
    "pair": N_("pair {pair}"),
    "wraps": N_("{turns} turns, {wraps} whole"),
    "turned": N_("turns (log), ≤ {most}"),
    "wavelength": N_("wavelength {value}"),
    "strip": N_("score while q moves"),
    "strip_both": N_("score while both move"),
    "keys": N_("space: play · ← →: move q · , .: move k · ⇧ ← →: move both · ↑ ↓: pair · [ ]: speed"),
}


@dataclass(frozen=True, eq=False)
class Side:
    """One set of clocks: title ("" where it changes with the base), (pairs,) frequencies in float64, (d,) query and
    key before they are turned, factor of the score; met (pairs,): turns met in training, where that is the question.
    """

    title: str
    omega: np.ndarray
    q: np.ndarray
    k: np.ndarray
    scale: float
    met: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Bases:
    """What B runs through: (n,) bases, (n, pairs) frequencies, (n,) critical dimensions and bounds (0: none found);
    notch: which one is shown; per_decade: how many to a factor of ten; home: A's critical dimension and bound.
    """

    bases: np.ndarray
    frequencies: np.ndarray
    critical: np.ndarray
    bounds: np.ndarray
    notch: int
    per_decade: int
    home: tuple[int, int]


def bundle(
    sides: Sequence[Side],
    *,
    mode: str,
    max_position: int,
    m: int,
    n: int,
    pair: int,
    tokens: Sequence[Mapping[str, Any]],
    pairing: str = "half",
    bases: Bases | None = None,
    narrow: np.ndarray | None = None,
    rounded: str = "",
    trained: int = 0,
    labels: Mapping[str, str] = LABELS,
    height: int = HEIGHT,
    alt: str = "",
    file: str = "posviz-turns",
) -> bytes:
    """The picture's data for :func:`show` or ``standalone_html("turns", ...)``.

    mode: "two", with ``met`` on both sides; "base", with ``bases`` for B; "digits", with B's frequencies in
    bfloat16 as ``narrow`` and what is rounded. trained: a length to zoom to. tokens: the query, then the key. Raises ValueError on what does not fit.
    """
    _check(sides, mode, bases, narrow, rounded)
    if len(tokens) != 2:
        raise ValueError(f"tokens must be the query and the key, got {len(tokens)}")
    pairs = max(len(side.omega) for side in sides)
    for name, value, limit in (("m", m, max_position), ("n", n, max_position), ("pair", pair, pairs - 1)):
        if not 0 <= value <= limit:
            raise ValueError(f"{name} must be from 0 to {limit}, got {value}")
    missing = [name for name in LABELS if name not in labels]
    if missing:
        raise ValueError(f"labels lacks {', '.join(missing)}")
    arrays = {}
    for s, side in enumerate(sides):
        arrays |= {f"{name}{s}": np.asarray(getattr(side, name), np.float64) for name in ("omega", "q", "k")}
        if side.met is not None:
            arrays[f"met{s}"] = np.asarray(side.met, np.float64)
    meta: dict[str, Any] = {
        "mode": mode,
        **{"m": int(m), "n": int(n), "pair": int(pair), "notch": 0, "max_position": int(max_position)},
        "tokens": [{name: token[name] for name in ("label", "sentence", "position")} for token in tokens],
        "sides": [
            {"letter": letter, "title": side.title, "scale": float(side.scale)}
            for letter, side in zip("AB", sides, strict=True)
        ],
        **{"pairing": pairing, "rounded": rounded, "limit": SEEN, "trained": trained},
        "labels": {name: labels[name] for name in LABELS},
        **{"height": int(height), "alt": alt, "file": file},
    }
    if bases is not None:
        meta |= {"notch": bases.notch, "per_decade": bases.per_decade, "home": list(bases.home)}
        arrays |= {"bases": bases.bases, "frequencies": bases.frequencies}
        arrays |= {"critical": bases.critical.astype(np.int32), "bounds": bases.bounds.astype(np.int32)}
    if narrow is not None:
        arrays["narrow"] = np.asarray(narrow, np.float64)
    return pack(meta, arrays)


def _check(sides: Sequence[Side], mode: str, bases: Bases | None, narrow: np.ndarray | None, rounded: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    if len(sides) != 2:
        raise ValueError(f"two sides are shown, got {len(sides)}")
    for side in sides:
        if (
            side.omega.ndim != 1
            or not len(side.omega)
            or 2 * len(side.omega) > len(side.q)
            or len(side.q) != len(side.k)
        ):
            raise ValueError(
                f"{side.title!r}: {side.omega.shape} pairs do not fit {len(side.q)} and {len(side.k)} dimensions"
            )
        if not all(np.isfinite(array).all() for array in (side.omega, side.q, side.k)):
            raise ValueError(f"{side.title!r}: numbers must be finite")
        if (side.met is not None) != (mode == "two") or (side.met is not None and side.met.shape != side.omega.shape):
            raise ValueError("met is one number for each pair, for mode two")
    if (bases is not None) != (mode == "base"):
        raise ValueError("bases are for mode base")
    if bases is not None and bases.frequencies.shape != (len(bases.bases), len(sides[1].omega)):
        raise ValueError(f"frequencies of {bases.frequencies.shape} do not fit {len(bases.bases)} bases")
    if (narrow is not None) != (mode == "digits") or (mode == "digits" and rounded not in ROUNDED):
        raise ValueError("narrow frequencies and what is rounded are for mode digits")


_mount = st.components.v2.component(
    "posviz_turns",
    html='<div class="reserve"></div>\n',
    css=style("turns"),
    js=script("turns"),
)


def show(data: bytes, *, key: str, on_change: Callable[[], None] = lambda: None) -> None:
    """Mount the picture; ``st.session_state[key].state`` is {"m", "n", "pair", "notch"} after a change."""
    _mount(data=data, key=key, on_state_change=on_change)
