"""What every head of a model does on two sentences: a small picture and a few measured numbers of each.

A model of 12 x 12 heads has 38 million weights on 512 tokens; what a grid of them shows is less than two
million. Layers are taken one after another, so that no more than one layer's weights are held at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posviz import compare
from posviz.types import AttentionTrace, Refusal, Text, Tokens, read_only, shown, whole_number

THUMB = 48  # cells along a side of a small picture
SCORES = ("previous", "next", "first", "same", "entropy", "distance", "change")


@dataclass(frozen=True, eq=False)
class Seen:
    """One layer as it is looked at: tokens (L), weights (H, L, Lk) float, allowed (L, Lk) bool.

    keys: the Lk tokens looked at; the same but in cross-attention.
    """

    tokens: Tokens
    weights: np.ndarray = field(repr=False)
    allowed: np.ndarray = field(repr=False)
    keys: Tokens

    @property
    def square(self) -> bool:
        """Whether the tokens look at themselves."""
        return self.keys is self.tokens


def see(trace: AttentionTrace, *, head: int | None = None, special: bool = True, renormalise: bool = False) -> Seen:
    """A layer, or one of its heads (H = 1), with or without its special tokens, such as [CLS].

    special: False leaves their rows and columns out; the rows left then sum to less than 1. renormalise: each
    row divided by what is left of it (a row with nothing left stays 0).
    """
    tokens, keys, allowed = trace.tokens, trace.keys, trace.allowed
    weights = trace.weights if head is None else trace.head_weights(head)[None]
    if special or not any(tokens.special + keys.special):
        return Seen(tokens, weights, allowed, keys)
    rows, columns = (np.flatnonzero(~np.array(side.special)) for side in (tokens, keys))
    weights, allowed = weights[:, rows][:, :, columns], allowed[rows][:, columns]
    if renormalise:
        left = weights.sum(-1, keepdims=True)
        weights = np.divide(weights, left, out=np.zeros_like(weights), where=left > 0)
    short = without_special(tokens)
    return Seen(short, read_only(weights), read_only(allowed), short if keys is tokens else without_special(keys))


def without_special(tokens: Tokens) -> Tokens:
    """The tokens that are words of the sentence."""
    keep = [i for i, hidden in enumerate(tokens.special) if not hidden]
    return replace(
        tokens,
        pieces=tuple(tokens.pieces[i] for i in keep),
        ids=tuple(tokens.ids[i] for i in keep),
        infos=tuple(tokens.infos[i] for i in keep) if tokens.infos else (),
    )


@dataclass(frozen=True, eq=False)
class Survey:
    """Every head of N layers x H heads on sentences A and B.

    tokens_a, tokens_b: the sentences. pairs: the matched tokens (i in A, j in B).
    thumbs: "a", "b" (N, H, t, tk) and "d" (A - B over the matched tokens) float32: blocks of at most THUMB along
    a side, each the share of a query's attention that falls on a block of keys, mean over the block's queries.
    allowed: "a", "b", "d" (t, tk) bool, False where no query of the block may look at any key of it.
    scores: name -> (N, H) float64, see :func:`head_scores` and :func:`change`; "distance" in tokens. In
    cross-attention only "entropy" and "change".
    uniform: name -> what a head would score in A that looks at all allowed keys alike.
    row_error: largest |sum of a row of weights - 1| of both sentences.
    """

    tokens_a: Tokens
    tokens_b: Tokens
    pairs: tuple[tuple[int, int], ...]
    thumbs: Mapping[str, np.ndarray] = field(repr=False)
    allowed: Mapping[str, np.ndarray] = field(repr=False)
    scores: Mapping[str, np.ndarray] = field(repr=False)
    uniform: Mapping[str, float] = field(repr=False)
    row_error: float

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, heads)"""
        return self.scores["entropy"].shape


def survey(a: Iterable[Seen], b: Iterable[Seen]) -> Survey:
    """Look at every head of both sentences; ``a`` and ``b`` give one layer after another. Scores are those of A."""
    rows: dict[str, list[np.ndarray]] = {}
    thumbs: dict[str, list[np.ndarray]] = {side: [] for side in "abd"}
    allowed: dict[str, np.ndarray] = {}
    pairs, key_pairs, uniform, tokens, row_error = (), (), {}, None, 0.0
    for one, other in zip(a, b, strict=True):
        if tokens is None:
            tokens = one.tokens, other.tokens
            pairs = compare.match(*tokens)
            key_pairs = pairs if one.square else compare.match(one.keys, other.keys)
            masks = {"a": one.allowed, "b": other.allowed}
            masks["d"] = compare.matched(one.allowed, pairs, key_pairs, 0) | compare.matched(
                other.allowed, pairs, key_pairs, 1
            )
            allowed = {side: read_only(pooled(mask[None].astype(np.float32))[0] > 0) for side, mask in masks.items()}
            even = one.allowed / np.maximum(1, one.allowed.sum(-1, keepdims=True))
            uniform = {name: float(value[0]) for name, value in _scores(even[None], one).items()}
        row_error = max(row_error, *(float(np.abs(x.weights.sum(-1) - 1).max(initial=0)) for x in (one, other)))
        for name, values in _scores(one.weights, one).items():
            rows.setdefault(name, []).append(values)
        left, right = (compare.matched(x.weights, pairs, key_pairs, side) for side, x in enumerate((one, other)))
        rows.setdefault("change", []).append(_moved(left, right))
        thumbs["a"].append(pooled(one.weights))
        thumbs["b"].append(pooled(other.weights))
        thumbs["d"].append(pooled(left - right))
    if tokens is None:
        raise ValueError("a survey needs at least one layer")
    return Survey(
        *tokens,
        pairs,
        {side: read_only(np.stack(layers), np.float32) for side, layers in thumbs.items()},
        allowed,
        {name: read_only(np.stack(layers)) for name, layers in rows.items()},
        uniform,
        row_error,
    )


def _scores(weights: np.ndarray, seen: Seen) -> dict[str, np.ndarray]:
    """Those that mean something: a key of another sentence is neither before nor after a query."""
    if seen.square:
        return head_scores(weights, seen.allowed)
    return {"entropy": spread_out(weights, seen.allowed)}


def pooled(weights: np.ndarray, most: int = THUMB) -> np.ndarray:
    """(H, L, Lk) -> (H, t, tk), both at most ``most``: the sum over a block's keys, the mean over its queries.

    Unlike a mean over both it does not fade: a head that looks at one key alone stays 1 at any size.
    """
    rows, columns = (np.arange(0, n, max(1, -(-n // most))) for n in weights.shape[-2:])
    if len(rows) == weights.shape[-2] and len(columns) == weights.shape[-1]:
        return weights
    sums = np.add.reduceat(np.add.reduceat(weights, columns, axis=-1), rows, axis=-2)
    return sums / np.diff([*rows, weights.shape[-2]])[:, None]


def head_scores(weights: np.ndarray, allowed: np.ndarray) -> dict[str, np.ndarray]:
    """name -> (H,) of weights (H, L, L), means over the queries that have a choice (two allowed keys or more).

    previous, next: weight of the key one before, one after, over the queries that have such a key.
    first: weight of key 0, over the queries behind it. same: weight of the query's own key.
    entropy: -sum w ln w over ln(number of allowed keys): 0 one key, 1 all alike. distance: sum w |i - j| in tokens.
    NaN where no query counts, as for a sentence of one token.
    """
    choice = allowed.sum(-1) >= 2
    places = np.arange(weights.shape[-1])
    away = np.abs(places[:, None] - places).astype(weights.dtype)
    return {
        "previous": _mean(np.diagonal(weights, -1, -2, -1), choice[1:]),
        "next": _mean(np.diagonal(weights, 1, -2, -1), choice[:-1]),
        "first": _mean(weights[:, 1:, 0], choice[1:]),
        "same": _mean(np.diagonal(weights, 0, -2, -1), choice),
        "entropy": spread_out(weights, allowed),
        "distance": _mean(np.einsum("hij,ij->hi", weights, away), choice),
    }


def spread_out(weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """(H,): the entropy of :func:`head_scores`, also of (H, L, Lk) weights."""
    keys = allowed.sum(-1)
    logs = np.log(np.maximum(weights, np.finfo(weights.dtype).tiny))  # 0 ln 0 = 0
    entropy = -np.einsum("hij,hij->hi", weights, logs)
    return _mean(entropy / np.log(np.maximum(keys, 2)), keys >= 2)


def _mean(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(H, n) -> (H,) over the queries that count."""
    if not counts.any():
        return np.full(values.shape[0], np.nan)
    return values[:, counts].mean(-1, dtype=np.float64)


def change(
    a: np.ndarray,
    b: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    key_pairs: Sequence[tuple[int, int]] | None = None,
) -> np.ndarray:
    """(H,): how far a word's attention moves from A to B, 0 (not at all) to 1 (to other words altogether).

    The total variation distance 1/2 sum |w_A - w_B| over the matched keys (``key_pairs``, default the matched
    queries ``pairs``), all others counted as one, mean over the matched queries; NaN without matched words.
    """
    key_pairs = pairs if key_pairs is None else key_pairs
    return _moved(*(compare.matched(x, pairs, key_pairs, side) for side, x in enumerate((a, b))))


def _moved(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """:func:`change` of the matched parts (H, M, Mk) of both sentences."""
    if not left[0].size:
        return np.full(len(left), np.nan)
    rest = np.abs(left.sum(-1) - right.sum(-1))  # rows sum to 1: what falls on other words
    return (0.5 * (np.abs(left - right).sum(-1) + rest)).mean(-1, dtype=np.float64)


# ---------------------------------------------------------------- many heads as one matrix
AGGREGATES = ("mean", "max", "rollout")


def aggregate(
    layers: Iterable[Seen],
    *,
    how: str = "mean",
    only_layers: Sequence[int] | None = None,
    only_heads: Sequence[int] | None = None,
) -> np.ndarray:
    """(L, Lk) float64 of the chosen layers' chosen heads (default: all).

    how: "mean" or "max" of their weights, or "rollout" (Abnar and Zuidema 2020, arXiv 2005.00928, section 3):
    the product over layers of (mean over heads + identity) / 2, how much of a token's first vector may have
    reached each token of the last layer. Raises :class:`Refusal` for another name, an empty choice, a head that there is not, or the rollout of
    cross-attention: what one layer wrote into its queries is not what the next one reads as keys.
    """
    if how not in AGGREGATES:
        raise Refusal(
            Text("`how` must be one of {allowed}, got {got}", "`how` 只能是 {allowed} 之一，现在是 {got}"),
            field="how",
            allowed=", ".join(AGGREGATES),
            got=shown(how),
        )
    total, count = None, 0
    for n, layer in enumerate(layers):
        if how == "rollout" and layer.keys is not layer.tokens:
            raise Refusal(
                Text(
                    "rollout follows tokens that look at one another through the layers; in cross-attention the {n} "
                    "queries are the decoder's tokens, the {keys} keys the encoder's: choose the mean or the largest weight",
                    "展开（rollout）沿各层追踪互相关注的词元；交叉注意力中 {n} 个查询是解码器的词元，"
                    "{keys} 个键是编码器的：请选平均或最大",
                ),
                field="how",
                n=len(layer.tokens),
                keys=len(layer.keys),
            )
        if only_layers is not None and n not in only_layers:
            continue
        weights = layer.weights
        if only_heads is not None:
            weights = weights[[whole_number("head", head, 0, len(weights) - 1) for head in only_heads]]
        if not len(weights):
            continue
        if how == "max":
            new = weights.max(axis=0).astype(np.float64)
            total = new if total is None else np.maximum(total, new)
        elif how == "mean":
            new = weights.mean(axis=0, dtype=np.float64)
            total = new if total is None else total + new
        else:
            step = 0.5 * (weights.mean(axis=0, dtype=np.float64) + np.eye(weights.shape[-1]))
            total = step if total is None else step @ total
        count += 1
    if total is None:
        raise Refusal(
            Text("choose at least one layer and one head", "请至少选一层和一个头"),
            field="heads",
        )
    return read_only(total / count if how == "mean" else total)


def contributions(weights: np.ndarray, v: np.ndarray, w_o: np.ndarray) -> np.ndarray:
    """(L,): length of what each key gives to a query through one head, |w_j v_j W_O^h|.

    weights (L,): the query's row. v (L, e): the head's values. w_o (e, d): the head's rows of the output
    projection. Kobayashi et al. 2020, arXiv 2004.10102, equation 4: a large weight on a short vector does little.
    """
    given = np.asarray(v, np.float64) @ np.asarray(w_o, np.float64)
    return weights * np.linalg.norm(given, axis=-1)
