"""Core results kept between reruns and shared by all sessions.

Keyed by parameters, never by arrays; everything kept is read-only. Small results are many, large ones few,
so that a server's memory stays bounded whatever its visitors ask for. functools' cache, not Streamlit's: a page
asks up to thirty times a run, and Streamlit's takes a millisecond to answer, this one a microsecond.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import torch

from posviz import attention, compare, comparison, myths, views, workbench
from posviz.encodings import Encoding
from posviz.models import surgery
from posviz.models.base import Model, ModelTrace
from posviz.models.pretrained.model import Progress
from posviz.models.twins import store
from posviz.models.untrained import Untrained
from posviz.survey import Survey
from posviz.survey import survey as make_survey
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
    return keep(tokens, spec, dims, seed, mask, max_len, precision)


def _attend(tokens, spec, dims, seed, mask, max_len, precision) -> AttentionTrace:
    dtype = getattr(torch, precision)
    return attention.attend(tokens, spec, dims, seed=seed, mask=mask, max_len=max_len, dtype=dtype)


_small_trace = lru_cache(maxsize=64)(_attend)
_large_trace = lru_cache(maxsize=4)(_attend)


@lru_cache(maxsize=256)
def difference(
    a: Tokens, b: Tokens, spec: Encoding, dims: Dims, *, seed: int, mask: str, max_len: int, precision: str
) -> compare.Difference:
    """How much the two sentences differ under an encoding, after matching tokens; kept without the traces."""
    traces = [_attend(side, spec, dims, seed, mask, max_len, precision) for side in (a, b)]
    return compare.outputs(*traces, compare.match(a, b))


@lru_cache(maxsize=64)
def twin_trace(name: str, sentence: str) -> ModelTrace:
    """Every layer of the trained twin of that name on a sentence."""
    twin = store.load(name)
    return twin.trace(twin.tokenize(sentence))


def model_trace(model: Model, name: str, sentence: str) -> ModelTrace:
    """Every layer of a model on a sentence. name: of a model that is loaded once for all."""
    if isinstance(model, Untrained):
        tokens = model.tokenize(sentence)
        keep = _large_untrained if model.dims.n_heads * len(tokens) ** 2 > LARGE // 7 else _small_untrained
        return keep(model, tokens)
    if name.startswith("twin:"):
        return twin_trace(model.name, sentence)
    with _pretrained_lock:  # two visitors who ask for the same wait for one computation
        return _pretrained_trace(model, sentence)


@lru_cache(maxsize=4)  # two sentences of two models; 512 tokens of 12 layers are 240 MB
def _pretrained_trace(model: Model, sentence: str) -> ModelTrace:
    return model.trace(model.tokenize(sentence), progress=_progress.get())


# Who wants to hear how far a computation is; no part of its result, so no part of the cache's keys.
_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def telling(progress: Progress) -> Iterator[None]:
    """In this block a real model that has to be computed says how far it is."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


_pretrained_lock = threading.Lock()


def outcome(model: Model, name: str, a: str, b: str, operation: surgery.Operation) -> surgery.Outcome:
    """:func:`posviz.models.surgery.operate`, kept; the intact traces are those of every page."""
    if name.startswith("twin:"):
        return _twin_outcome(model, name, a, b, operation)
    with _outcome_lock:  # two visitors who ask for the same wait for one computation
        return _pretrained_outcome(model, name, a, b, operation)


def _outcome(model: Model, name: str, a: str, b: str, operation: surgery.Operation) -> surgery.Outcome:
    before = tuple(model_trace(model, name, sentence) for sentence in (a, b))
    return surgery.operate(
        model, before[0].tokens, before[1].tokens, operation, before=before, progress=_progress.get()
    )


_twin_outcome = lru_cache(maxsize=32)(_outcome)
_pretrained_outcome = lru_cache(maxsize=2)(_outcome)  # the largest hold four traces, 500 MB of their own
_outcome_lock = threading.Lock()


def _untrained(model: Untrained, tokens: Tokens) -> ModelTrace:
    return model.trace(tokens)


_small_untrained = lru_cache(maxsize=32)(_untrained)
_large_untrained = lru_cache(maxsize=2)(_untrained)

_SURVEYS: OrderedDict[tuple, Survey] = OrderedDict()


def survey(scene: Any) -> Survey:
    """Of a Studio scene: made once for its model, sentences and treatment of special tokens (``scene.key``)."""
    found = _SURVEYS.get(scene.key)
    if found is None:
        found = _SURVEYS[scene.key] = make_survey(scene.layers("a"), scene.layers("b"))
        while len(_SURVEYS) > 16:
            _SURVEYS.popitem(last=False)
    return found


@lru_cache(maxsize=256)
def twin_log_probability(name: str, sentence: str) -> float:
    """Natural logarithm of the probability that a trained twin gives to a sentence, its end included."""
    twin = store.load(name)
    return float(twin.log_probabilities(twin.tokenize(sentence)).sum())


def picture(
    spec: Encoding,
    dims: Dims,
    max_len: int,
    *,
    view: str | None,
    seed: int,
    rows: int,
    patch: tuple[int, int] | None = None,
) -> views.Picture | None:
    """:func:`posviz.views.picture`, kept."""
    large = rows * dims.d_model > LARGE or (view == "bias" and dims.n_heads * rows**2 > LARGE)
    keep = _large_picture if large else _small_picture
    return keep(spec, dims, max_len, view=view, seed=seed, rows=rows, patch=patch)


_small_picture = lru_cache(maxsize=32)(views.picture)
_large_picture = lru_cache(maxsize=6)(views.picture)


def alikeness(spec: Encoding, dims: Dims, length: int, *, kind: str, head: int, seed: int) -> views.Alikeness:
    """:func:`posviz.views.alikeness`, kept."""
    keep = _large_alikeness if length**2 > LARGE else _small_alikeness
    return keep(spec, dims, length, kind=kind, head=head, seed=seed, max_len=length)


_small_alikeness = lru_cache(maxsize=64)(views.alikeness)
_large_alikeness = lru_cache(maxsize=8)(views.alikeness)


@lru_cache(maxsize=64)
def claims(spec: Encoding, dims: Dims, max_len: int, *, length: int, seed: int) -> list:
    """What the encoding promises, measured on positions 0 .. length-1; kept."""
    return spec.claims(spec.build(dims, max_len, torch.Generator().manual_seed(seed)), length)


@lru_cache(maxsize=256)
def measured(spec: Encoding, dims: Dims, max_len: int, tokens: Tokens, *, seed: int) -> comparison.Measured | Refusal:
    """:func:`posviz.comparison.measure`, kept; the refusal where the sizes do not suit the encoding."""
    try:
        return comparison.measure(spec, dims, max_len, tokens, seed=seed)
    except Refusal as refusal:
        return refusal.kept()


@lru_cache(maxsize=256)
def cost(spec: Encoding, dims: Dims) -> comparison.Cost:
    """:func:`posviz.comparison.cost`, kept: measured once for these sizes."""
    return comparison.cost(spec, dims)


@lru_cache(maxsize=128)
def finding(key: str, case: myths.Case) -> myths.Finding:
    """:func:`posviz.myths.measure`, kept."""
    return myths.measure(key, case)


rope_facts = lru_cache(maxsize=256)(workbench.facts)
"""Facts of a model's RoPE at two lengths, kept."""
