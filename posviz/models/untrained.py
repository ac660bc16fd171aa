"""The foundation's untrained, seeded layer as a model of one layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posviz import attention, text
from posviz.encodings import Encoding, make
from posviz.models.base import ModelTrace
from posviz.types import Dims, Text, Tokens, read_only


@dataclass(frozen=True)
class Untrained:
    """:func:`posviz.attention.attend` behind the interface of :mod:`posviz.models`."""

    spec: Encoding = field(default_factory=lambda: make("sinusoidal"))
    dims: Dims = field(default_factory=lambda: Dims(d_model=64, n_heads=4))
    seed: int = 0
    mask: str = "none"
    max_len: int = 512
    unit: str = "character"
    name: str = field(default="untrained", init=False)
    n_layers: int = field(default=1, init=False)

    @property
    def max_tokens(self) -> int:
        return self.max_len

    @property
    def badge(self) -> Text:
        return Text("untrained · seed {seed}", "未训练 · 种子 {seed}").filled(seed=self.seed)

    @property
    def card(self) -> Mapping[str, Any]:
        return {"encoding": self.spec.call(), "seed": self.seed, "trained_steps": 0}

    def tokenize(self, sentence: str) -> Tokens:
        return text.tokenize(sentence, self.unit)

    def trace(self, tokens: Tokens) -> ModelTrace:
        layer = attention.attend(tokens, self.spec, self.dims, seed=self.seed, mask=self.mask, max_len=self.max_len)
        return ModelTrace(tokens, read_only(np.stack([layer.hidden, layer.residual])), (layer,))
