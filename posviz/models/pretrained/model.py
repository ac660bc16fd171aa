"""A pretrained model behind the interface of :mod:`posviz.models`: its own forward pass, recorded layer by layer.

The forward pass is the one of transformers with eager attention in float32. Hooks record what the projections give;
everything after that (rotation, scores, softmax, parts) is computed by posviz, and tests compare its weights with the
model's own.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from posviz.encodings import Encoding, make
from posviz.models.base import ModelTrace, Positions
from posviz.models.pretrained import assemble, pieces
from posviz.models.pretrained.families import Family, Stack
from posviz.models.pretrained.layers import frozen
from posviz.models.pretrained.limits import Limits
from posviz.models.pretrained.record import Record
from posviz.types import PieceInfo, Refusal, Text, Tokens, shown, whole_number

Progress = Callable[[float, Text], None]
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
            "pretrained · {name} · {family}, {millions} M parameters", "预训练 · {name} · {family}，{millions} M 个参数"
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
        self.limits.check_sentence(len(tokens), self._attentions, self.n_heads, self.position.rows)
        return tokens

    def position_table(self) -> np.ndarray:
        """Float32, read-only. Absolute: (rows, d), row p for position p. Bias: (buckets, H), T5's of the encoder."""
        if self.family.kind == "absolute":
            return frozen(self.module(self.family.table).weight[self.family.first_row :])
        if self.family.kind == "bias":
            return frozen(self.module(self.family.stack.attention, 0).relative_attention_bias.weight)
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
        table = self.module(self.family.table).weight[self.family.first_row :]
        return table[1:].mean(0) if len(table) > 1 else table[0]

    # ---------------------------------------------------------------- forward passes
    @torch.inference_mode()
    def losses(self, tokens: Tokens, positions: Positions | None = None) -> np.ndarray | None:
        """Nats of every next token, float64: (L - 1,) of a decoder, (L,) of an encoder-decoder that copies the
        sentence; None where the model does not predict the next token. A trace holds them, too."""
        if not self.has_head:
            return None
        positions = self._checked(tokens, positions)
        with self.lock, self._operated(len(tokens), positions):
            return self._losses(self._run(tokens, positions), tokens)

    def _losses(self, out: Any, tokens: Tokens) -> np.ndarray | None:
        if not self.has_head:
            return None
        logits, target = out.logits[0], torch.tensor(tokens.ids)
        if self.family.decoder is None:
            logits, target = logits[:-1], target[1:]
        # a few rows at a time: all of them as float64 would be 200 MB for 512 tokens of a large vocabulary
        rows = zip(logits.split(64), target.split(64), strict=True)
        parts = [functional.cross_entropy(part.double(), goal, reduction="none") for part, goal in rows]
        return frozen(torch.cat(parts)) if len(target) else None

    @torch.inference_mode()
    def trace(
        self, tokens: Tokens, positions: Positions | None = None, *, progress: Progress | None = None
    ) -> ModelTrace:
        """Every layer's attention. An encoder-decoder's decoder reads the sentence too, one place behind.

        progress: called with a share from 0 to 1 and what is being done, layer by layer.
        """
        positions = self._checked(tokens, positions)
        self.limits.check_sentence(len(tokens), self._attentions, self.n_heads, self.position.rows)
        with self.lock, self._operated(len(tokens), positions), self._recorded(progress) as record:
            losses = self._losses(self._run(tokens, positions), tokens)
        family = self.family
        hidden, last = record.hidden(family.stack, self.n_layers)
        layers = tuple(assemble.layer(self, record, family.stack, i, tokens, positions) for i in range(self.n_layers))
        if not self._decoder_layers:
            return ModelTrace(tokens, hidden, layers, last, losses=losses)
        reading, depth = self.reading(tokens), self._decoder_layers
        own_hidden, own_last = record.hidden(family.decoder, depth)
        own = tuple(assemble.layer(self, record, family.decoder, i, reading, positions) for i in range(depth))
        cross = tuple(
            assemble.layer(self, record, family.cross, i, reading, positions, keys=tokens) for i in range(depth)
        )
        return ModelTrace(tokens, hidden, layers, last, ModelTrace(reading, own_hidden, own, own_last), cross, losses)

    def reading(self, tokens: Tokens) -> Tokens:
        """What the decoder of an encoder-decoder reads: its start token, then the sentence without its last one."""
        start = self.config.decoder_start_token_id or 0
        written = self.backend.id_to_token(start) or "⟨start⟩"
        infos = (PieceInfo(written, special=True), *tokens.infos[:-1])
        return Tokens(tokens.text, (written, *tokens.pieces[:-1]), (start, *tokens.ids[:-1]), "piece", infos)

    @property
    def _decoder_layers(self) -> int:
        """0 without a decoder that reads what an encoder made."""
        decoder = getattr(self.network, "decoder", None) if self.family.decoder else None
        return 0 if decoder is None else len(decoder.block)

    @property
    def _attentions(self) -> int:
        """Layers of attention in a trace: a decoder's layer looks at its own sentence and at the encoder's."""
        return self.n_layers + 2 * self._decoder_layers

    def module(self, path: str, i: int = 0) -> nn.Module:
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

    def _run(self, tokens: Tokens, positions: Positions) -> Any:
        """The forward pass; a config that contradicts itself may only fail here."""
        try:
            return self.network(**self._inputs(tokens, positions))
        except Exception as error:
            raise Refusal(
                Text(
                    "{name} cannot be computed on this sentence: {why}",
                    "{name} 在这个句子上算不出来：{why}",
                ),
                field="model",
                name=shown(self.name),
                why=shown(" ".join(str(error).split()) or type(error).__name__, 160),
            ) from None

    def _inputs(self, tokens: Tokens, positions: Positions) -> dict[str, Any]:
        ids = torch.tensor([tokens.ids])
        # With a mask of ones, positions that do not count up are not taken for several packed texts.
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "return_dict": True}
        if self.family.kind != "bias":
            inputs["position_ids"] = self.ids(len(tokens), positions)[None] + self.family.first_row
        if self._decoder_layers:
            inputs["decoder_input_ids"] = torch.tensor([self.reading(tokens).ids])
        if self.family.has_head and (self.family.decoder is None or self._decoder_layers):
            inputs["use_cache"] = False  # encoders have none
        return inputs

    def ids(self, length: int, positions: Positions) -> torch.Tensor:
        return torch.arange(length) if positions.ids is None else torch.tensor(positions.ids)

    @contextmanager
    def _operated(self, length: int, positions: Positions) -> Iterator[None]:
        """What cannot be said by position ids: another row for all, other distances, or no bias."""
        with ExitStack() as stack:
            if positions.mean and self.family.kind == "absolute":
                row = self.mean_row
                hook = self.module(self.family.table).register_forward_hook(lambda m, a, out: row.expand_as(out))
                stack.callback(hook.remove)
            if self.family.kind == "bias" and (positions.ids is not None or not positions.bias):
                for tower in filter(None, (self.family.stack, self.family.decoder if self._decoder_layers else None)):
                    table = self.module(tower.attention, 0).relative_attention_bias
                    stack.callback(table.register_forward_hook(self._rebiased(tower, length, positions)).remove)
            yield

    def _rebiased(self, tower: Stack, length: int, positions: Positions) -> Any:
        ids = self.ids(length, positions)
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
    def _recorded(self, progress: Progress | None) -> Iterator[Record]:
        record = Record()
        with ExitStack() as stack:
            paths = [self.family.table, self.family.norm, *self.family.words]
            towers = [(self.family.stack, self.n_layers)]
            if self._decoder_layers:
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
            if progress:
                blocks = [tower.block.format(i=i) for tower, depth in towers[:2] for i in range(depth)]
                for done, path in enumerate(blocks, 1):
                    hook = _telling(progress, done / len(blocks), done, len(blocks))
                    stack.callback(self.network.get_submodule(path).register_forward_hook(hook).remove)
            if self.family.kind == "bias":
                for tower, _ in towers[:2]:
                    table = self.module(tower.attention, 0).relative_attention_bias
                    stack.callback(table.register_forward_hook(record.bias_hook(tower.attention)).remove)
            yield record


def _telling(progress: Progress, share: float, done: int, count: int) -> Any:
    """A hook that says that a layer is done."""
    text = Text("layer {done} of {count}", "第 {done} 层，共 {count} 层").filled(done=done, count=count)
    return lambda module, args, out: progress(share, text)
