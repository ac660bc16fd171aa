"""The untrained, seeded layer as a :class:`posviz.models.base.Model` of one layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from posviz import attention, text
from posviz.encodings import Encoding, make
from posviz.models.base import ModelTrace
from posviz.types import Dims, Text, Tokens, read_only


@dataclass(frozen=True)
class Untrained:
    """:func:`posviz.attention.attend` with these arguments; only position means anything in it."""

    spec: Encoding = field(default_factory=lambda: make("sinusoidal"))
    dims: Dims = field(default_factory=lambda: Dims(d_model=64, n_heads=4))
    seed: int = 0
    mask: str = "none"
    max_len: int = 512
    unit: str = "character"
    precision: str = "float64"
    name: str = field(default="untrained", init=False)
    n_layers: int = field(default=1, init=False)

    @property
    def max_tokens(self) -> int:
        return self.max_len

    @property
    def badge(self) -> Text:
        return Text(
            "untrained · seed {seed} · weights depend on the seed only, not on the encoding",
            "未训练 · 种子 {seed} · 权重只取决于种子，与编码无关",
        ).filled(seed=self.seed)

    @property
    def card(self) -> Mapping[str, Any]:
        return {"encoding": self.spec.call(), "seed": self.seed, "mask": self.mask, "trained_steps": 0}

    def tokenize(self, sentence: str) -> Tokens:
        return text.tokenize(sentence, self.unit)

    def trace(self, tokens: Tokens) -> ModelTrace:
        dtype = getattr(torch, self.precision)
        layer = attention.attend(
            tokens, self.spec, self.dims, seed=self.seed, mask=self.mask, max_len=self.max_len, dtype=dtype
        )
        return ModelTrace(tokens, read_only(np.stack([layer.hidden, layer.residual])), (layer,))

    def output_projection(self) -> np.ndarray:
        """(H, e, d): W_O of the layer, head by head; its traces do not keep it."""
        w_o = attention.untrained_projections(self.dims.d_model, self.seed).w_o
        return read_only(w_o.unflatten(0, (self.dims.n_heads, -1)))
