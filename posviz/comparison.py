"""Every column of the comparison of encodings, measured: nothing here is typed in but what a paper says."""

import time
from dataclasses import dataclass

import numpy as np
import torch

from posviz import attention, views
from posviz.encodings import Encoding
from posviz.encodings.base import PositionModule
from posviz.peak import peak
from posviz.types import MAX_LEN, Dims, Refusal, Tokens

EXACT = 1e-9  # relative to the largest value: below it, a spread is rounding
WINDOW = 64  # equal tokens whose scores are compared
ROWS = 64  # positions of the by-distance similarity
CALL = 128  # tokens of the timed attention call


@dataclass(frozen=True)
class Measured:
    """One encoding for some sizes, all measured but the name.

    parameters: trainable numbers. shift: mean |embed(x) - x|, None where nothing is added to the
    embedding. spread: largest deviation among pairs at one distance of the by-distance similarity (64
    positions), relative to its largest value; None for no encoding. scores: the same for the scores of equal
    tokens at the start and the end of 0 .. max_len - 1. content: whether what is added
    changes with the content. reversal: largest difference of the pooled output when the sentence is read
    backwards, noise: what rounding could do. reach: whether position max_len is defined.
    """

    name: str
    parameters: int
    shift: float | None
    spread: float | None
    scores: float
    content: bool
    reversal: float
    noise: float
    reach: bool

    @property
    def nature(self) -> str:
        """ "content", "relative" or "absolute", by the measurements."""
        return "content" if self.content else "relative" if self.scores < EXACT else "absolute"

    @property
    def directional(self) -> bool:
        return self.reversal > self.noise


def measure(spec: Encoding, dims: Dims, max_len: int, tokens: Tokens, *, seed: int = 0) -> Measured:
    """Measure one encoding; raises :class:`Refusal` where the sizes do not suit it."""
    module = spec.build(dims, max_len, torch.Generator().manual_seed(seed)).double()
    reversal, noise = _reversal(spec, dims, max(max_len, len(tokens)), tokens, seed)
    with torch.no_grad():
        return Measured(
            name=spec.name,
            parameters=sum(p.numel() for p in module.parameters()),
            shift=_shift(module, max_len),
            spread=_spread(spec, dims, min(max_len, ROWS), seed),
            scores=_score_spread(module, max_len),
            content=_content(module, max_len),
            reversal=reversal,
            noise=noise,
            reach=_reach(module, max_len),
        )


def _shift(module: PositionModule, max_len: int) -> float | None:
    if module.spec.kind != "additive":
        return None
    sample = module.sample(min(max_len, MAX_LEN))
    return float((module.embed(sample) - sample).abs().mean())


def _spread(spec: Encoding, dims: Dims, length: int, seed: int) -> float | None:
    if spec.kind == "none":
        return None
    found = views.alikeness(spec, dims, length, kind="dot", seed=seed, max_len=length)
    largest = float(np.nanmax(np.abs(found.mean)))
    return float(found.spread.max()) / largest if largest else 0.0


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _score_spread(module: PositionModule, max_len: int) -> float:
    """Scores of equal tokens near the start and at the end: how much those of one distance differ."""
    spec, dims = module.spec, module.dims
    count = min(WINDOW, max_len)
    x = _random(1, dims.d_model).expand(count, -1)
    w_q, w_k = (_random(dims.d_model, dims.d_model, seed=s) * dims.d_model**-0.5 for s in (1, 2))
    found = []
    for start in sorted({0, max_len // 2, max_len - count}):
        at = torch.arange(start, start + count)
        hidden = module.embed(x, at)
        q, k = (attention.split_heads(hidden @ w, dims.n_heads) for w in (w_q, w_k))
        q, k = module.rotate(q, k, at, at)
        scores = q @ k.mT * spec.scale(dims.d_head) + module.bias(q, k, at, at)
        found.append(scores.expand(dims.n_heads, count, count).numpy())
    spread = max(
        np.ptp(np.concatenate([np.diagonal(f, k, axis1=1, axis2=2) for f in found], axis=-1), axis=-1).max()
        for k in range(1 - count, count)
    )
    largest = max(float(np.abs(f).max()) for f in found)
    return float(spread) / largest if largest else 0.0


def _content(module: PositionModule, max_len: int) -> bool:
    """Whether two different contents at the same positions are given something different."""
    dims, count = module.dims, min(WINDOW, max_len)
    at = torch.arange(count)
    found = []
    for seed in (3, 5):
        x = _random(count, dims.d_model, seed=seed)
        q, k = (_random(dims.n_heads, count, dims.d_head, seed=seed + s) for s in (10, 20))
        found.append((module.embed(x, at) - x, module.bias(q, k, at, at).expand(dims.n_heads, count, count)))
    return any(not torch.allclose(a, b, rtol=0, atol=1e-9) for a, b in zip(*found, strict=True))


def _reversal(spec: Encoding, dims: Dims, max_len: int, tokens: Tokens, seed: int) -> tuple[float, float]:
    """Difference of the pooled outputs of a sentence and its mirror image, and what rounding could do."""
    mirrored = Tokens(tokens.text[::-1], tokens.pieces[::-1], tokens.ids[::-1], tokens.unit)
    mask = "causal" if spec.needs_causal_mask else "none"
    there, back = (attention.attend(t, spec, dims, seed=seed, mask=mask, max_len=max_len) for t in (tokens, mirrored))
    noise = 256 * float(np.finfo(np.float64).eps) * float(np.abs(there.residual).max())
    return float(np.abs(there.pooled - back.pooled).max()), noise


def _reach(module: PositionModule, max_len: int) -> bool:
    """Whether position max_len is taken, and gives finite numbers."""
    q = torch.ones(module.dims.n_heads, 1, module.dims.d_head, dtype=torch.float64)
    at = [max_len]
    try:
        parts = [
            module.embed(module.sample(1), at),
            *module.rotate(q, q, at, at),
            module.bias(q, q, at, at),
        ]
    except Refusal:
        return False
    return all(bool(torch.isfinite(part).all()) for part in parts)


@dataclass(frozen=True)
class Cost:
    """One attention call of CALL tokens in float32: seconds of the fastest of a few, and its memory.

    memory: bytes of all tensors alive at the fullest moment of the call, see :mod:`posviz.peak`; those of the
    encoding are what it has above no position.
    """

    seconds: float
    memory: int


def cost(spec: Encoding, dims: Dims, *, repeat: int = 5) -> Cost:
    """Time and memory of :func:`posviz.attention.mix` with the embedding's share."""
    module = spec.build(dims, CALL).eval()
    weights = attention.untrained_projections(dims.d_model, 0)
    x = torch.randn(CALL, dims.d_model, generator=torch.Generator().manual_seed(0))
    mask = "causal" if spec.needs_causal_mask else "none"

    def call() -> None:
        attention.mix(module.embed(x), module, weights, mask=mask)

    samples = []
    with torch.no_grad():
        for _ in range(repeat + 1):
            before = time.perf_counter()
            call()
            samples.append(time.perf_counter() - before)
    return Cost(min(samples[1:]), peak(call))  # the first call warms up; others only add to the fastest
