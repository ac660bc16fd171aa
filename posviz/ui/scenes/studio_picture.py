"""What the Studio's views share: what a picture is, the chosen head's traces, the chosen weight."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz.text import visible
from posviz.types import AttentionTrace, Tokens
from posviz.ui import state
from posviz.ui.scenes.studio import Scene

KEY = "studio_canvas"


@dataclass(frozen=True, eq=False)
class Picture:
    """What a view draws: its component, its data, how to mount it, and its numbers."""

    component: str
    data: bytes
    mount: Callable[[], None]
    arrays: Callable[[], Mapping[str, np.ndarray]]
    table: Callable[[], Iterable[list[object]]]
    code: str


def texts(tokens: Tokens) -> list[str]:
    return [visible(piece) for piece in tokens.pieces]


def matched(tokens: Tokens, pairs: Iterable[tuple[int, int]]) -> list[str]:
    return [visible(tokens.pieces[i]) for i, _j in pairs]


def event(key: str, name: str) -> object:
    """What the canvas has just sent; anything can come from a browser."""
    return getattr(st.session_state.get(key), name, None)


def chosen_traces(scene: Scene) -> tuple[AttentionTrace, AttentionTrace]:
    """The chosen layer on A and on B."""
    n, _head = scene.place
    return scene.traces("a")[n], scene.traces("b")[n]


def chosen_cell(scene: Scene) -> tuple[str, int, int]:
    """(side, query, key): the chosen one, else of A the last word and what it looks at most."""
    chosen = state.get("scell")
    if chosen:
        side, i, j = chosen
        trace = scene.traces(side)[0]
        if i < len(trace.tokens) and j < len(trace.keys):
            return side, i, j
    weights = chosen_traces(scene)[0].head_weights(scene.place[1])
    return "a", len(weights) - 1, int(weights[-1].argmax())
