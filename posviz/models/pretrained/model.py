"""A pretrained model behind the interface of :mod:`posviz.models`: its own forward pass, recorded layer by layer.

The forward pass is the one of transformers with eager attention in float32. Hooks record what the projections give;
everything after that (rotation, scores, softmax, parts) is computed by posviz, and tests compare its weights with the
model's own.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from posviz.attention import split_heads
from posviz.encodings import Encoding, ModelRope, make
from posviz.models.base import ModelTrace, Positions
from posviz.models.pretrained import pieces
from posviz.models.pretrained.families import Family, Stack
from posviz.models.pretrained.layers import Captured, LayerTrace, ModelDims, frozen
from posviz.models.pretrained.limits import Limits
from posviz.models.pretrained.record import Record, output_of
from posviz.types import PieceInfo, Refusal, Text, Tokens, whole_number

MAX_ID = 1_000_000  # largest position a token may claim in a rotary or bias model


@dataclass(frozen=True, eq=False)
class Position:
    """How a model knows the order. kind: "absolute", "rotary" or "bias". key: the encoding's name in the registry.

    spec: the encoding with the model's own parameters. rows: positions of a learned table, None without one.
    """

    kind: str
    key: str
    spec: Encoding
    rows: int | None
    text: Text


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model with pretrained weights. Made by :func:`posviz.models.pretrained.load`."""

    name: str
    family: Family
    network: nn.Module = field(repr=False)
    backend: Any = field(repr=False)  # tokenizers.Tokenizer
    special_ids: frozenset[int] = field(repr=False)
    unknown_id: int | None = field(repr=False)
    position: Position
    limits: Limits
    card: Mapping[str, Any] = field(repr=False)
    has_head: bool
    lock: Any = field(default_factory=threading.Lock, repr=False)  # hooks belong to one forward pass at a time

    @property
    def config(self) -> Any:
        return self.network.config

    @property
    def n_layers(self) -> int:
        return self.config.num_hidden_layers

    @property
    def n_heads(self) -> int:
        return self.config.num_attention_heads

    @property
    def max_tokens(self) -> int:
        """Most tokens of a sentence, special ones included."""
        return self.limits.tokens if self.position.rows is None else min(self.limits.tokens, self.position.rows)

    @property
    def badge(self) -> Text:
        return Text(
            "pretrained · {name} · {family}, {millions} M parameters", "预训练 · {name} · {family}，{millions} M 参数"
        ).filled(name=self.name, family=self.family.title, millions=f"{self.card['parameters'] / 1e6:.3g}")

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the weights come from, as far as the folder says: package, licence, checksums."""
        return self.card.get("provenance", {})

    @cached_property
    def _byte_level(self) -> bool:
        return pieces.is_byte_level(self.backend)

    # ---------------------------------------------------------------- the sentence
    def tokenize(self, text: str) -> Tokens:
        """The sentence in the model's own pieces; refused when empty or too long for the model."""
        tokens = pieces.tokenize(
            self.backend, text, byte_level=self._byte_level, special=self.special_ids, unknown=self.unknown_id
        )
        self.limits.check_sentence(len(tokens), self.n_layers, self.n_heads, self.position.rows)
        return tokens

    def position_table(self) -> np.ndarray:
        """Float32, read-only. Absolute: (rows, d), row p for position p. Bias: (buckets, H), T5's of the encoder."""
        if self.family.kind == "absolute":
            return frozen(self._get(self.family.table).weight[self.family.first_row :])
        if self.family.kind == "bias":
            return frozen(self._get(self.family.stack.attention, 0).relative_attention_bias.weight)
        raise Refusal(
            Text(
                "{name} has no table of positions: RoPE turns queries and keys",
                "{name} 没有位置表：RoPE 旋转的是查询和键",
            ),
            field="model",
            name=self.name,
        )

    @cached_property
    def mean_row(self) -> torch.Tensor:
        """(d,): mean of the table's rows 1 to the last; row 0 is an outlier in BERT, it belongs to [CLS] alone."""
        table = self._get(self.family.table).weight[self.family.first_row :]
        return table[1:].mean(0) if len(table) > 1 else table[0]

    # ---------------------------------------------------------------- forward passes
    @torch.inference_mode()
    def losses(self, tokens: Tokens, positions: Positions | None = None) -> np.ndarray | None:
        """Nats of every next token, float64: (L - 1,) of a decoder, (L,) of an encoder-decoder that copies the
        sentence; None where the model does not predict the next token."""
        if not self.has_head:
            return None
        positions = self._checked(tokens, positions)
        with self.lock, self._operated(len(tokens), positions):
            logits = self.network(**self._inputs(tokens, positions)).logits[0].double()
        target = torch.tensor(tokens.ids)
        if self.family.decoder is None:
            logits, target = logits[:-1], target[1:]
        return frozen(functional.cross_entropy(logits, target, reduction="none"))

    @torch.inference_mode()
    def trace(self, tokens: Tokens, positions: Positions | None = None) -> ModelTrace:
        """Every layer's attention. An encoder-decoder's decoder reads the sentence too, one place behind."""
        positions = self._checked(tokens, positions)
        self.limits.check_sentence(len(tokens), self.n_layers, self.n_heads, self.position.rows)
        with self.lock, self._operated(len(tokens), positions), self._recorded() as record:
            self.network(**self._inputs(tokens, positions))
        family = self.family
        hidden, last = record.hidden(family.stack, self.n_layers)
        layers = tuple(self._layer(record, family.stack, i, tokens, positions) for i in range(self.n_layers))
        if family.decoder is None or not self._has_decoder:
            return ModelTrace(tokens, hidden, layers, last)
        reading = self.reading(tokens)
        depth = self._decoder_layers
        own_hidden, own_last = record.hidden(family.decoder, depth)
        own = tuple(self._layer(record, family.decoder, i, reading, positions) for i in range(depth))
        cross = tuple(self._layer(record, family.cross, i, reading, positions, keys=tokens) for i in range(depth))
        return ModelTrace(tokens, hidden, layers, last, ModelTrace(reading, own_hidden, own, own_last), cross)

    def reading(self, tokens: Tokens) -> Tokens:
        """What the decoder of an encoder-decoder reads: its start token, then the sentence without its last one."""
        start = self.config.decoder_start_token_id or 0
        written = self.backend.id_to_token(start) or "⟨start⟩"
        infos = (PieceInfo(written, special=True), *tokens.infos[:-1])
        return Tokens(tokens.text, (written, *tokens.pieces[:-1]), (start, *tokens.ids[:-1]), "piece", infos)

    @property
    def _has_decoder(self) -> bool:
        return getattr(self.network, "decoder", None) is not None

    @property
    def _decoder_layers(self) -> int:
        return len(self.network.decoder.block)

    def _get(self, path: str, i: int = 0) -> nn.Module:
        return self.network.get_submodule(path.format(i=i))

    def _checked(self, tokens: Tokens, positions: Positions | None) -> Positions:
        positions = positions or Positions()
        if positions.ids is None:
            return positions
        if len(positions.ids) != len(tokens):
            raise Refusal(
                Text(
                    "there must be one position for each of the {n} tokens, got {got}",
                    "{n} 个词元要各有一个位置，现在有 {got} 个",
                ),
                field="positions",
                n=len(tokens),
                got=len(positions.ids),
            )
        last = MAX_ID if self.position.rows is None else self.position.rows - 1
        for place in positions.ids:
            whole_number("position", place, 0, last)
        return positions

    def _inputs(self, tokens: Tokens, positions: Positions) -> dict[str, Any]:
        ids = torch.tensor([tokens.ids])
        # With a mask of ones, positions that do not count up are not taken for several packed texts.
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "return_dict": True}
        if self.family.kind != "bias":
            inputs["position_ids"] = self._ids(len(tokens), positions)[None] + self.family.first_row
        if self._has_decoder:
            inputs["decoder_input_ids"] = torch.tensor([self.reading(tokens).ids])
        if self.family.has_head and (self.family.decoder is None or self._has_decoder):
            inputs["use_cache"] = False  # encoders have none
        return inputs

    def _ids(self, length: int, positions: Positions) -> torch.Tensor:
        return torch.arange(length) if positions.ids is None else torch.tensor(positions.ids)

    @contextmanager
    def _operated(self, length: int, positions: Positions) -> Iterator[None]:
        """What cannot be said by position ids: another row for all, other distances, or no bias."""
        with ExitStack() as stack:
            if positions.mean and self.family.kind == "absolute":
                row = self.mean_row
                hook = self._get(self.family.table).register_forward_hook(lambda m, a, out: row.expand_as(out))
                stack.callback(hook.remove)
            if self.family.kind == "bias" and (positions.ids is not None or not positions.bias):
                for tower in filter(None, (self.family.stack, self.family.decoder if self._has_decoder else None)):
                    table = self._get(tower.attention, 0).relative_attention_bias
                    stack.callback(table.register_forward_hook(self._rebiased(tower, length, positions)).remove)
            yield

    def _rebiased(self, tower: Stack, length: int, positions: Positions) -> Any:
        ids = self._ids(length, positions)
        buckets = self.spec_of(tower).buckets(ids[None, :] - ids[:, None])

        def hook(module: nn.Embedding, args: tuple, out: torch.Tensor) -> torch.Tensor:
            return functional.embedding(buckets, module.weight) if positions.bias else torch.zeros_like(out)

        return hook

    def spec_of(self, tower: Stack) -> Encoding:
        """The encoding of one tower: a T5 decoder looks back only, and cross-attention knows no positions."""
        if self.family.kind != "bias" or tower is self.family.stack:
            return self.position.spec
        if tower is self.family.cross:
            return make("none")
        spec = self.position.spec
        return make("t5", num_buckets=spec.num_buckets, max_distance=spec.max_distance, bidirectional=False)

    @contextmanager
    def _recorded(self) -> Iterator[Record]:
        record = Record()
        with ExitStack() as stack:
            paths = [self.family.table, self.family.norm, *self.family.words]
            towers = [(self.family.stack, self.n_layers)]
            if self._has_decoder:
                towers += [(self.family.decoder, self._decoder_layers), (self.family.cross, self._decoder_layers)]
            for tower, depth in towers:
                paths.append(tower.final)
                for i in range(depth):
                    names = (tower.block, *tower.qkv, tower.out, *(tower.norms or ()))
                    paths += [name.format(i=i) for name in names]
            for path in dict.fromkeys(filter(None, paths)):
                module = self.network.get_submodule(path)
                hook = module.register_forward_hook(record.hook(path), with_kwargs=True)
                stack.callback(hook.remove)
            if self.family.kind == "bias":
                for tower, _ in towers[:2]:
                    table = self._get(tower.attention, 0).relative_attention_bias
                    stack.callback(table.register_forward_hook(record.bias_hook(tower.attention)).remove)
            yield record

    # ---------------------------------------------------------------- one layer
    def _layer(
        self, record: Record, tower: Stack, i: int, tokens: Tokens, positions: Positions, keys: Tokens | None = None
    ) -> LayerTrace:
        attention = self._get(tower.attention, i)
        q, k, v = self._projected(record, tower, i)
        dims = ModelDims(
            d_model=self.config.hidden_size, n_heads=q.shape[0], head_width=q.shape[-1], n_kv_heads=k.shape[0]
        )
        w_o, b_o = output_of(self._get(tower.out, i), dims)
        spec = self.spec_of(tower)
        turned: dict[str, torch.Tensor] = {}
        if isinstance(spec, ModelRope):
            at = self._ids(len(tokens), positions)
            turned = {"q_turned": spec.rotate(q, at), "k_turned": spec.rotate(k, at)}
        bias = self._bias(record, tower)
        captured = Captured(
            inputs=record.inputs[tower.qkv[0].format(i=i)],
            q=q,
            k=k,
            v=v,
            output=record.outputs[tower.out.format(i=i)],
            w_o=w_o,
            b_o=b_o,
            bias=bias,
            **turned,
            **(self._shares(record, dims) if i == 0 and self.family.kind == "absolute" else {}),
        )
        return LayerTrace(
            captured,
            tokens=tokens,
            spec=spec,
            dims=dims,
            mask=tower.mask,
            scale=float(attention.scaling),
            allowed=self._allowed(attention, tower, len(tokens), len(keys or tokens)),
            key_tokens=keys,
        )

    def _projected(self, record: Record, tower: Stack, i: int) -> Sequence[torch.Tensor]:
        """q (H, L, e), k, v (Hkv, Lk, e)"""
        outs = [record.outputs[path.format(i=i)] for path in tower.qkv]
        if len(outs) == 1:  # side by side
            outs = list(outs[0].chunk(3, -1))
        heads = self.config.num_attention_heads
        width = outs[0].shape[-1] // heads
        made = [split_heads(x, x.shape[-1] // width) for x in outs]
        for at, path in enumerate(tower.norms or ()):
            made[at] = record.outputs[path.format(i=i)].transpose(-3, -2)  # (L, H, e) behind its norm
        return made

    def _bias(self, record: Record, tower: Stack) -> torch.Tensor | None:
        """(H, L, L) of a bias tower, one tensor for all its layers."""
        if self.family.kind != "bias" or tower is self.family.cross:
            return None
        return record.biases[tower.attention]

    def _allowed(self, attention: nn.Module, tower: Stack, rows: int, columns: int) -> np.ndarray:
        if tower.mask != "causal":
            return np.ones((rows, columns), bool)
        behind = np.arange(rows)[:, None] - np.arange(columns)[None, :]
        window = getattr(attention, "sliding_window", None) or columns
        return (behind >= 0) & (behind < window)

    def _shares(self, record: Record, dims: ModelDims) -> dict[str, torch.Tensor]:
        """Position's share of the first layer's input and of its q and k: the norm of a sum, told apart."""
        family, norm = self.family, self._get(self.family.norm)
        added = record.outputs[family.table].expand(len(record.outputs[family.words[0]]), -1)
        whole = added + sum(record.outputs[path] for path in family.words)
        deviation = (whole.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        position = (added - added.mean(-1, keepdim=True)) / deviation * norm.weight
        if len(family.stack.qkv) == 1:  # Conv1D: (d, 3d)
            weights = [w.T for w in self._get(family.stack.qkv[0]).weight.chunk(3, -1)[:2]]
        else:
            weights = [self._get(path).weight for path in family.stack.qkv[:2]]
        q, k = (split_heads(functional.linear(position, w), dims.n_heads) for w in weights)
        return {"position": position, "q_position": q, "k_position": k}
