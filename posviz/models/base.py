"""What every model with trained weights offers: a sentence in, every layer's attention out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from posviz.types import AttentionTrace, Text, Tokens


@dataclass(frozen=True, eq=False)
class ModelTrace:
    """A sentence in a model of N layers.

    hidden (N + 1, L, d)   the residual stream: what enters the first layer, then what leaves each one
    layers                 one AttentionTrace a layer; its ``embedding`` is that layer's normalised input
    """

    tokens: Tokens
    hidden: np.ndarray = field(repr=False)
    layers: tuple[AttentionTrace, ...] = field(repr=False)

    @property
    def pooled(self) -> np.ndarray:
        """(d,): mean over tokens of what leaves the last layer, a sentence vector."""
        return self.hidden[-1].mean(axis=0)


class Model(Protocol):
    """The interface of :mod:`posviz.models`."""

    name: str
    n_layers: int

    @property
    def badge(self) -> Text:
        """Where its weights come from, in one line."""

    @property
    def card(self) -> Mapping[str, Any]:
        """Its provenance: data, steps, seed, command, date."""

    def tokenize(self, text: str) -> Tokens:
        """The sentence in the model's own pieces."""

    def trace(self, tokens: Tokens) -> ModelTrace:
        """Every layer's attention on it."""
