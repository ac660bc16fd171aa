"""Core results kept between reruns and shared by all sessions.

Keyed by parameters, never by arrays; everything kept is read-only. ``_`` arguments are not part of the
key: each is determined by one that is. Small results are many, large ones few, so that a server's
memory stays bounded whatever its visitors ask for.
"""

import streamlit as st
import torch

from posviz import attention, compare, text, views
from posviz.encodings import Encoding
from posviz.types import AttentionTrace, Dims, Refusal, Text, Tokens

LARGE = 250_000  # numbers in a result of which only a few are kept
MAX_CELLS = 2_097_152  # heads x queries x keys that are drawn: 8 heads of 512 tokens


def trace(
    tokens: Tokens, spec: Encoding, dims: Dims, *, seed: int, mask: str, max_len: int, precision: str
) -> AttentionTrace:
    """:func:`posviz.attention.attend`, kept. Refuses more cells than a page can draw."""
    cells = dims.n_heads * len(tokens) ** 2
    if cells > MAX_CELLS:
        raise Refusal(
            Text(
                "{heads} heads of {n} tokens are {cells:,} weights; up to {limit:,} are drawn: "
                "take fewer heads or a shorter sentence",
                "{heads} 个头、{n} 个词元共有 {cells:,} 个权重；最多画 {limit:,} 个：请减少头数或缩短句子",
            ),
            field="heads",
            heads=dims.n_heads,
            n=len(tokens),
            cells=cells,
            limit=MAX_CELLS,
        )
    numbers = 7 * cells + 10 * len(tokens) * dims.d_model  # parts, scores, weights; embedding, q, k, v ...
    keep = _large_trace if numbers > LARGE else _small_trace
    return keep(tokens.text, tokens.unit, spec.call(), spec, dims.d_model, dims.n_heads, seed, mask, max_len, precision)


@st.cache_resource(max_entries=64, show_spinner=False)
def _small_trace(sentence, unit, call, _spec, d_model, n_heads, seed, mask, max_len, precision):
    return _attend(sentence, unit, _spec, d_model, n_heads, seed, mask, max_len, precision)


@st.cache_resource(max_entries=4, show_spinner=False)
def _large_trace(sentence, unit, call, _spec, d_model, n_heads, seed, mask, max_len, precision):
    return _attend(sentence, unit, _spec, d_model, n_heads, seed, mask, max_len, precision)


def _attend(sentence, unit, spec, d_model, n_heads, seed, mask, max_len, precision) -> AttentionTrace:
    return attention.attend(
        text.tokenize(sentence, unit),
        spec,
        Dims(d_model=d_model, n_heads=n_heads),
        seed=seed,
        mask=mask,
        max_len=max_len,
        dtype=getattr(torch, precision),
    )


def difference(
    a: Tokens, b: Tokens, spec: Encoding, dims: Dims, *, seed: int, mask: str, max_len: int, precision: str
) -> compare.Difference:
    """How much the two sentences differ under an encoding, after matching tokens; kept without the traces."""
    return _difference(
        a.text, b.text, a.unit, spec.call(), spec, dims.d_model, dims.n_heads, seed, mask, max_len, precision
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _difference(a, b, unit, call, _spec, d_model, n_heads, seed, mask, max_len, precision) -> compare.Difference:
    traces = [_attend(sentence, unit, _spec, d_model, n_heads, seed, mask, max_len, precision) for sentence in (a, b)]
    return compare.outputs(*traces, compare.match(*(t.tokens for t in traces)))


def picture(
    spec: Encoding, dims: Dims, max_len: int, *, view: str | None, seed: int, rows: int
) -> views.Picture | None:
    """:func:`posviz.views.picture`, kept."""
    keep = _large_picture if rows * dims.d_model > LARGE else _small_picture
    return keep(spec.call(), spec, dims.d_model, dims.n_heads, max_len, view, seed, rows)


@st.cache_resource(max_entries=32, show_spinner=False)
def _small_picture(call, _spec, d_model, n_heads, max_len, view, seed, rows) -> views.Picture | None:
    return views.picture(_spec, Dims(d_model=d_model, n_heads=n_heads), max_len, view=view, seed=seed, rows=rows)


@st.cache_resource(max_entries=6, show_spinner=False)
def _large_picture(call, _spec, d_model, n_heads, max_len, view, seed, rows) -> views.Picture | None:
    return views.picture(_spec, Dims(d_model=d_model, n_heads=n_heads), max_len, view=view, seed=seed, rows=rows)


def alikeness(spec: Encoding, dims: Dims, length: int, *, kind: str, head: int, seed: int) -> views.Alikeness:
    """:func:`posviz.views.alikeness`, kept."""
    keep = _large_alikeness if length**2 > LARGE else _small_alikeness
    return keep(spec.call(), spec, dims.d_model, dims.n_heads, length, kind, head, seed)


@st.cache_resource(max_entries=64, show_spinner=False)
def _small_alikeness(call, _spec, d_model, n_heads, length, kind, head, seed) -> views.Alikeness:
    dims = Dims(d_model=d_model, n_heads=n_heads)
    return views.alikeness(_spec, dims, length, kind=kind, head=head, seed=seed, max_len=length)


@st.cache_resource(max_entries=8, show_spinner=False)
def _large_alikeness(call, _spec, d_model, n_heads, length, kind, head, seed) -> views.Alikeness:
    dims = Dims(d_model=d_model, n_heads=n_heads)
    return views.alikeness(_spec, dims, length, kind=kind, head=head, seed=seed, max_len=length)


def claims(spec: Encoding, dims: Dims, max_len: int, *, length: int, seed: int) -> list:
    """What the encoding promises, measured on positions 0 .. length-1; kept."""
    return _claims(spec.call(), spec, dims.d_model, dims.n_heads, max_len, length, seed)


@st.cache_resource(max_entries=64, show_spinner=False)
def _claims(call, _spec, d_model, n_heads, max_len, length, seed) -> list:
    module = _spec.build(Dims(d_model=d_model, n_heads=n_heads), max_len, torch.Generator().manual_seed(seed))
    return _spec.claims(module, length)
