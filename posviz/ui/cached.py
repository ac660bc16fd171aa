"""Core results kept between reruns and shared by all sessions.

Keyed by parameters, never by arrays; everything kept is read-only. ``_`` arguments are not part of the
key: each is determined by one that is.
"""

import streamlit as st
import torch

from posviz import attention, compare, text, views
from posviz.encodings import Encoding
from posviz.types import AttentionTrace, Dims, Tokens

_ENTRIES = 64


def trace(
    tokens: Tokens, spec: Encoding, dims: Dims, *, seed: int, mask: str, max_len: int, precision: str
) -> AttentionTrace:
    """:func:`posviz.attention.attend`, kept."""
    return _trace(
        tokens.text, tokens.unit, spec.call(), spec, dims.d_model, dims.n_heads, seed, mask, max_len, precision
    )


@st.cache_resource(max_entries=_ENTRIES, show_spinner=False)
def _trace(sentence, unit, call, _spec, d_model, n_heads, seed, mask, max_len, precision) -> AttentionTrace:
    return attention.attend(
        text.tokenize(sentence, unit),
        _spec,
        Dims(d_model=d_model, n_heads=n_heads),
        seed=seed,
        mask=mask,
        max_len=max_len,
        dtype=getattr(torch, precision),
    )


def difference(a: Tokens, b: Tokens, spec: Encoding, dims: Dims, **layer) -> compare.Difference:
    """How much the two sentences differ under an encoding, after matching tokens."""
    return compare.outputs(trace(a, spec, dims, **layer), trace(b, spec, dims, **layer), compare.match(a, b))


def picture(
    spec: Encoding, dims: Dims, max_len: int, *, view: str | None, seed: int, rows: int
) -> views.Picture | None:
    """:func:`posviz.views.picture`, kept."""
    return _picture(spec.call(), spec, dims.d_model, dims.n_heads, max_len, view, seed, rows)


@st.cache_resource(max_entries=16, show_spinner=False)
def _picture(call, _spec, d_model, n_heads, max_len, view, seed, rows) -> views.Picture | None:
    return views.picture(_spec, Dims(d_model=d_model, n_heads=n_heads), max_len, view=view, seed=seed, rows=rows)


def alikeness(spec: Encoding, dims: Dims, length: int, *, kind: str, head: int, seed: int) -> views.Alikeness:
    """:func:`posviz.views.alikeness`, kept."""
    return _alikeness(spec.call(), spec, dims.d_model, dims.n_heads, length, kind, head, seed)


@st.cache_resource(max_entries=32, show_spinner=False)
def _alikeness(call, _spec, d_model, n_heads, length, kind, head, seed) -> views.Alikeness:
    dims = Dims(d_model=d_model, n_heads=n_heads)
    return views.alikeness(_spec, dims, length, kind=kind, head=head, seed=seed, max_len=length)
