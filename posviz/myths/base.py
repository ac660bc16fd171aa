"""What a popular sentence is, what it is tried on, and what was found."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from posviz import attention, rotation, similarity, text
from posviz.encodings import make
from posviz.encodings.base import Claim
from posviz.types import Dims, Text

VERDICTS = ("true", "false", "depends")
PAIR = ("我爱你", "你爱我")
NOISE = 1e-9
NOTHING = Text("", "")


@dataclass(frozen=True)
class Case:
    """What the sentences are tried on: sizes, positions and base of the moment."""

    dims: Dims
    max_len: int
    base: float
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """verdict: by the numbers. numbers: two to four. example: the counter-example, with its numbers."""

    verdict: str | None
    numbers: list[Claim]
    example: Text


@dataclass(frozen=True)
class Myth:
    """A sentence, how it is tried, and one line why. needs_training: it is about trained models."""

    key: str
    sentence: Text
    why: Text
    measure: Callable[[Case], Finding]
    needs_training: bool = False


def number(en: str, zh: str, value: float, expected: Text = NOTHING) -> Claim:
    return Claim(Text(en, zh), value, expected)


def even_width(case: Case) -> int:
    """d_model, or the even number below it (at least 2)."""
    return case.dims.d_model - case.dims.d_model % 2 or 2


def kernel(case: Case, length: int) -> tuple[np.ndarray, torch.Tensor]:
    """(cosine of sinusoidal positions k apart for k < length, the frequencies)."""
    frequencies = rotation.inv_freq(even_width(case), case.base)
    return similarity.rope_kernel(torch.arange(length), frequencies), frequencies


def traces(name: str, mask: str, case: Case, **given: bool):
    return [attention.attend(text.tokenize(s), make(name, **given), case.dims, seed=case.seed, mask=mask) for s in PAIR]


def not_yet(numbers: list[Claim]) -> Finding:
    return Finding(
        None,
        numbers,
        Text("Not measured yet: no trained models of this kind are shipped.", "尚未测量：还没有随附这类训练好的模型。"),
    )
