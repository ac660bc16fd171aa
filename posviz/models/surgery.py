"""What position does in a trained model: its weights stay, only what it is told about the places changes.

Operations for the three places where position enters: a table of absolute positions, rotation, bias. They work
on the twins and on pretrained models alike.
"""

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from posviz.encodings.base import PositionModule
from posviz.models.base import Model, ModelTrace, Positions
from posviz.models.pretrained import Pretrained
from posviz.models.pretrained.model import Progress
from posviz.models.twins import corpus
from posviz.models.twins.model import Twin
from posviz.models.twins.store import Trained
from posviz.types import Refusal, Text, Tokens, read_only, shown, whole_number

MAX_POSITION = 1_000_000
KINDS = {"additive": "absolute", "rotary": "rotary", "bias": "bias"}
ALL = frozenset(KINDS.values())


@dataclass(frozen=True)
class Change:
    """One kind of operation. kinds: of models it is for. amount: what its number means, None without one."""

    title: Text
    says: Text
    kinds: frozenset[str]
    amount: Text | None = None
    default: int = 0
    high: int = MAX_POSITION


CHANGES: Mapping[str, Change] = {
    "mean": Change(
        Text("mean row", "平均行"),
        Text(
            "every word gets the mean row of the table: no position is told",
            "每个词都得到表的平均行：模型得不到任何位置信息",
        ),
        frozenset({"absolute"}),
    ),
    "remove": Change(
        Text("no bias", "去掉偏置"),
        Text("nothing is added to the scores: no distance is told", "分数上什么都不加：模型得不到任何距离信息"),
        frozenset({"bias"}),
    ),
    "freeze": Change(
        Text("frozen", "都在同一处"),
        Text("every word is told the same position", "告诉每个词同一个位置"),
        ALL,
        Text("position", "位置"),
        default=5,
    ),
    "shuffle": Change(
        Text("shuffled", "打乱"),
        Text("the positions of the sentence are dealt out anew", "把句子的各个位置重新分配"),
        ALL,
        Text("seed", "种子"),
        high=2**31 - 1,
    ),
    "shift": Change(
        Text("shifted", "平移"),
        Text("every position is as much larger", "每个位置都加上同一个数"),
        ALL,
        Text("by", "平移量"),
        default=100,
    ),
    "scale": Change(
        Text("stretched", "拉伸"),
        Text("every position is as many times larger", "每个位置都乘以同一个数"),
        ALL,
        Text("factor", "倍数"),
        default=4,
        high=10_000,
    ),
}


@dataclass(frozen=True)
class Operation:
    """A change with its number; an invalid one cannot be made (:class:`Refusal`). amount None: the default."""

    change: str
    amount: int | None = None

    def __post_init__(self) -> None:
        if self.change not in CHANGES:
            raise Refusal(
                Text("`change` must be one of {allowed}, got {got}", "`change` 只能是 {allowed} 之一，现在是 {got}"),
                field="change",
                allowed=", ".join(CHANGES),
                got=shown(self.change),
            )
        kind = CHANGES[self.change]
        if self.amount is None or kind.amount is None:
            object.__setattr__(self, "amount", kind.default)
        object.__setattr__(self, "amount", whole_number("amount", self.amount, 0, kind.high))

    def positions(self, length: int) -> Positions:
        """What a model is told of a sentence of so many tokens."""
        counted = range(length)
        if self.change == "mean":
            return Positions(mean=True)
        if self.change == "remove":
            return Positions(bias=False)
        if self.change == "freeze":
            return Positions(ids=(self.amount,) * length)
        if self.change == "shift":
            return Positions(ids=tuple(self.amount + i for i in counted))
        if self.change == "scale":
            return Positions(ids=tuple(self.amount * i for i in counted))
        order = torch.randperm(length, generator=torch.Generator().manual_seed(self.amount))
        return Positions(ids=tuple(order.tolist()))

    def call(self) -> str:
        """The Python expression that makes this operation."""
        given = f", {self.amount}" if CHANGES[self.change].amount else ""
        return f"surgery.Operation({self.change!r}{given})"


def kind_of(model: Model) -> str:
    """ "absolute", "rotary" or "bias"; refused where a model has no positions to change."""
    if isinstance(model, Pretrained):
        return model.position.kind
    kind = model.model.spec.kind if isinstance(model, Trained) else "none"
    if kind not in KINDS:
        raise Refusal(
            Text(
                "{name} knows no positions that could be changed; choose a trained model with a position encoding",
                "{name} 没有可以改动的位置；请选一个训练过、带位置编码的模型",
            ),
            field="model",
            name=model.name,
        )
    return KINDS[kind]


def changes_for(model: Model) -> tuple[str, ...]:
    """The changes that mean something in a model."""
    kind = kind_of(model)
    return tuple(name for name, change in CHANGES.items() if kind in change.kinds)


def check(model: Model, operation: Operation) -> None:
    allowed = changes_for(model)
    if operation.change not in allowed:
        raise Refusal(
            Text(
                "{change} is nothing that can be done to {name}; possible are {allowed}",
                "对 {name} 不能做“{change}”；可以做的有：{allowed}",
            ),
            field="change",
            change=CHANGES[operation.change].title,
            name=model.name,
            allowed=Text(
                ", ".join(CHANGES[name].title.en for name in allowed),
                "、".join(CHANGES[name].title.zh for name in allowed),
            ),
        )


# ---------------------------------------------------------------- the operated model
def trace(
    model: Model, tokens: Tokens, operation: Operation | None = None, *, progress: Progress | None = None
) -> ModelTrace:
    """Every layer's attention, after the operation if one is given. progress: as :meth:`Pretrained.trace` has it."""
    if operation is None:
        return model.trace(tokens)
    check(model, operation)
    told = operation.positions(len(tokens))
    if isinstance(model, Pretrained):
        _check_rows(model, operation, told)
        return model.trace(tokens, told, progress=progress)
    return _moved(model, told).trace(tokens)


def _check_rows(model: Pretrained, operation: Operation, told: Positions) -> None:
    """Refuse to send a word beyond the last row of a learned table."""
    rows, furthest = model.position.rows, max(told.ids or (0,))
    if rows is not None and furthest >= rows:
        raise Refusal(
            Text(
                "“{change}” {amount} puts a word at position {got}, but the table of {name} ends at {last}",
                "“{change} {amount}”会把一个词放到位置 {got}，而 {name} 的位置表到 {last} 为止",
            ),
            field="amount",
            change=CHANGES[operation.change].title,
            amount=operation.amount,
            got=furthest,
            name=model.name,
            last=rows - 1,
        )


def losses(model: Model, tokens: Tokens, operation: Operation | None = None) -> np.ndarray | None:
    """Nats of every next token, float64; None where a model does not predict it."""
    if operation is not None:
        check(model, operation)
    told = None if operation is None else operation.positions(len(tokens))
    if isinstance(model, Pretrained):
        return model.losses(tokens, told)
    if not isinstance(model, Trained):
        return None
    twin = model if told is None else _moved(model, told)
    return read_only(-twin.log_probabilities(tokens, end=False)) if len(tokens) > 1 else None


class Moved(PositionModule):
    """A twin's position encoding that is told other positions than 0, 1, 2 ..."""

    def __init__(self, inner: PositionModule, told: Positions) -> None:
        super().__init__(inner.spec, inner.dims, inner.max_len)
        self.inner, self.told = inner, told

    def _at(self, positions: Any) -> torch.Tensor:
        at = torch.as_tensor(positions)
        return at if self.told.ids is None else torch.tensor(self.told.ids)[at]

    def embed(self, x: torch.Tensor, positions: Any = None) -> torch.Tensor:
        at = torch.arange(x.shape[-2]) if positions is None else positions
        if self.told.mean:
            return x + self.mean_row.to(x)
        return self.inner.embed(x, self._at(at))

    @cached_property
    def mean_row(self) -> torch.Tensor:
        """(d,): mean of what the encoding adds at the positions it was trained on, but the first."""
        rows = torch.zeros(corpus.TRAINED_LEN - 1, self.dims.d_model)  # the last token is only ever a target
        return self.inner.embed(rows, range(len(rows)))[1:].mean(0)

    def rotate(self, q: torch.Tensor, k: torch.Tensor, q_pos: Any, k_pos: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inner.rotate(q, k, self._at(q_pos), self._at(k_pos))

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Any, k_pos: Any) -> torch.Tensor:
        if not self.told.bias:
            return q.new_zeros(())
        return self.inner.bias(q, k, self._at(q_pos), self._at(k_pos))


def _moved(trained: Trained, told: Positions) -> Trained:
    """The same twin with other positions; its weights are shared, not copied."""
    twin: Twin = copy.copy(trained.model)
    twin._modules = dict(twin._modules)  # a shallow copy shares the table of its modules
    twin.position = Moved(trained.model.position, told)
    return dataclasses.replace(trained, model=twin)


# ---------------------------------------------------------------- before and after
@dataclass(frozen=True, eq=False)
class Outcome:
    """Two sentences in a model, before and after an operation.

    before, after: traces of A and B. losses_before, losses_after: theirs, None without a prediction.
    """

    operation: Operation
    before: tuple[ModelTrace, ModelTrace] = field(repr=False)
    after: tuple[ModelTrace, ModelTrace] = field(repr=False)
    losses_before: tuple[np.ndarray | None, np.ndarray | None] = field(repr=False)
    losses_after: tuple[np.ndarray | None, np.ndarray | None] = field(repr=False)

    @property
    def alike(self) -> tuple[float, float]:
        """Cosine of the pooled vectors of A and B, before and after."""
        return cosine(*(t.pooled for t in self.before)), cosine(*(t.pooled for t in self.after))

    @property
    def loss(self) -> tuple[float, float] | None:
        """Mean nats a token over both sentences, before and after."""
        if any(x is None for x in (*self.losses_before, *self.losses_after)):
            return None
        return float(np.concatenate(self.losses_before).mean()), float(np.concatenate(self.losses_after).mean())

    @cached_property
    def changes(self) -> np.ndarray:
        """(2, layers, H): largest change of a weight of each head, in A and in B; a layer at a time."""
        return read_only(
            [
                [np.abs(new.weights - old.weights).max((1, 2)) for old, new in zip(b.layers, a.layers, strict=True)]
                for b, a in zip(self.before, self.after, strict=True)
            ]
        )


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def operate(
    model: Model,
    a: Tokens,
    b: Tokens,
    operation: Operation,
    *,
    before: tuple[ModelTrace, ModelTrace] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Both sentences before and after. before: their intact traces, where they are known already."""
    check(model, operation)
    before = before or (trace(model, a), trace(model, b))
    after = tuple(trace(model, tokens, operation, progress=progress) for tokens in (a, b))

    def nats(traces: tuple[ModelTrace, ModelTrace], done: Operation | None) -> tuple[np.ndarray | None, ...]:
        if isinstance(model, Pretrained):  # its trace has them from the same pass
            return tuple(found.losses for found in traces)
        return tuple(losses(model, found.tokens, done) for found in traces)

    return Outcome(operation, before, after, nats(before, None), nats(after, operation))
