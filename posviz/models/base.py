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
    last (L, d)            what leaves the model: hidden[-1] after the final norm; None without a final norm
    decoder, cross         of an encoder-decoder: the decoder's own trace, and its layers' cross-attention
                           (queries: ``decoder.tokens``, keys: ``tokens``); else None and ()
    losses                 float64 nats of every next token, of a pretrained model that predicts it, else None
    """

    tokens: Tokens
    hidden: np.ndarray = field(repr=False)
    layers: tuple[AttentionTrace, ...] = field(repr=False)
    last: np.ndarray | None = field(default=None, repr=False)
    decoder: "ModelTrace | None" = field(default=None, repr=False)
    cross: tuple[AttentionTrace, ...] = field(default=(), repr=False)
    losses: np.ndarray | None = field(default=None, repr=False)

    @property
    def pooled(self) -> np.ndarray:
        """(d,): mean over tokens of what leaves the model, a sentence vector."""
        return (self.hidden[-1] if self.last is None else self.last).mean(axis=0)


@dataclass(frozen=True)
class Positions:
    """What a model is told about the places of the words instead of 0, 1, 2 ...

    ids: the position each token claims, whole numbers from 0, the default counts; a token's neighbours in the
    mask stay who they are. mean: every token gets the mean row of the table (absolute models only).
    bias: False takes the bias away (bias models only).
    """

    ids: tuple[int, ...] | None = None
    mean: bool = False
    bias: bool = True


class Model(Protocol):
    """The interface of :mod:`posviz.models`."""

    name: str
    n_layers: int
    max_tokens: int

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
