"""The shipped twins: weights, cards, and a twin as a :class:`posviz.models.base.Model`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from posviz import attention, trained
from posviz.models.base import ModelTrace
from posviz.models.twins import corpus
from posviz.models.twins.model import SPECS, Config, Twin
from posviz.text import visible
from posviz.types import MAX_CHARACTERS, PieceInfo, Refusal, Text, Tokens, read_only

WEIGHTS = Path(__file__).with_name("weights")
RESULTS = trained.RESULTS
# How the special tokens are drawn; an unknown character stands between the brackets of a reading gap.
SHOWN = {corpus.UNKNOWN: "⟨?⟩", corpus.END: "⏎", **{start: "▸" for start in corpus.STARTS.values()}}


@cache
def available(folder: Path = WEIGHTS) -> tuple[str, ...]:
    """Names of the encodings of which a trained twin is there, in the family's order."""
    return tuple(name for name in SPECS if (folder / f"{name}-0.json").is_file())


def results() -> Mapping[str, Any]:
    """What was measured on all trained twins (``python -m posviz.models.twins measure``); {} before that."""
    return trained.twins() or {}


@cache
def load(name: str, seed: int = 0, folder: Path = WEIGHTS) -> "Trained":
    """A trained twin; :class:`Refusal` when there is none, or its card says it was not trained."""
    if name not in SPECS:
        raise Refusal(
            Text("a twin must be one of {allowed}, got {got}", "孪生模型只能是 {allowed} 之一，现在是 {got}"),
            field="twin",
            allowed=", ".join(SPECS),
            got=name,
        )
    stem = folder / f"{name}-{seed}"
    if not stem.with_suffix(".json").is_file() or not stem.with_suffix(".safetensors").is_file():
        raise Refusal(
            Text(
                "there is no trained twin {name} with seed {seed}; trained are {allowed}",
                "没有训练好的孪生模型 {name}（种子 {seed}）；训练好的有 {allowed}",
            ),
            field="twin",
            name=name,
            seed=seed,
            allowed=", ".join(available(folder)) or "–",
        )
    card = json.loads(stem.with_suffix(".json").read_text("utf-8"))
    if card["trained_steps"] < 1 or card["trained_steps"] != card["recipe"]["steps"]:
        raise Refusal(
            Text(
                "twin {name} cannot be called trained: {got} of {want} steps",
                "孪生模型 {name} 不能算训练过：只训练了 {got} 步，共 {want} 步",
            ),
            field="twin",
            name=name,
            got=card["trained_steps"],
            want=card["recipe"]["steps"],
        )
    model = Twin(name, seed=seed, config=Config(**card["config"]))
    weights = {key: value.float() for key, value in load_file(stem.with_suffix(".safetensors")).items()}
    model.load_state_dict(weights, strict=True)
    return Trained(name, model.eval().requires_grad_(False), card)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained twin."""

    name: str
    model: Twin
    card: Mapping[str, Any]

    @property
    def n_layers(self) -> int:
        return self.model.config.n_layers

    @property
    def title(self) -> Text:
        return self.model.spec.title

    @property
    def badge(self) -> Text:
        texts = self.card["data"]["rows"]
        return Text(
            "bundled twin · trained on {n:,} texts of classical Chinese, {steps:,} steps · seed {seed}",
            "随附的孪生模型 · 用 {n:,} 段古典诗词训练 {steps:,} 步 · 种子 {seed}",
        ).filled(n=texts, steps=self.card["trained_steps"], seed=self.card["seed"])

    @property
    def max_tokens(self) -> int:
        """How many tokens it takes, its start included."""
        return self.model.config.max_len

    def tokenize(self, text: str, form: str = "song") -> Tokens:
        """Start, then one token for each character; an unknown one keeps its place and is drawn in ⟨brackets⟩."""
        if len(text) > MAX_CHARACTERS or len(text) + 1 > self.max_tokens:
            raise Refusal(
                Text(
                    "the twins take up to {limit} characters, got {got:,}",
                    "孪生模型最多接受 {limit} 个字，现在是 {got:,} 个",
                ),
                field="text",
                limit=self.max_tokens - 1,
                got=len(text),
            )
        if not text:
            raise Refusal(
                Text("the sentence is empty; type at least one character", "句子是空的；请至少输入一个字"), field="text"
            )
        ids = corpus.encode(text, form)
        unknown = corpus.index()[corpus.UNKNOWN]
        pieces = [SHOWN[corpus.STARTS[form]]]
        pieces += [_bracketed(c) if i == unknown else c for c, i in zip(text, ids[1:], strict=True)]
        infos = [PieceInfo(corpus.STARTS[form], special=True)]
        infos += [PieceInfo(c, c.encode("utf-8", "replace"), span=(i, i + 1)) for i, c in enumerate(text)]
        return Tokens(text, tuple(pieces), tuple(ids), "character", tuple(infos))

    def unknown(self, text: str) -> str:
        """The characters of ``text`` that the twins have never learned, each once."""
        return "".join(dict.fromkeys(c for c in text if c not in corpus.index()))

    @torch.no_grad()
    def trace(self, tokens: Tokens) -> ModelTrace:
        """Every layer's attention. In the first layer content and position are told apart, behind it they are mixed."""
        model = self.model
        content = model.embedded(torch.tensor(tokens.ids))
        x = model.position.embed(content)
        hidden, layers = [read_only(x)], []
        for i, block in enumerate(model.blocks):
            part = content if i == 0 else x
            embedding, added = _normed_parts(block.norm_1, part, x - part)
            layer = attention.trace(
                tokens,
                embedding,
                model.position,
                block.projections,
                seed=model.seed,
                mask="causal",
                added=added,
            )
            layers.append(layer)
            x = x + torch.from_numpy(layer.output.copy())
            x = x + torch.nn.functional.gelu(block.norm_2(x) @ block.w_in) @ block.w_out
            hidden.append(read_only(x))
        return ModelTrace(tokens, read_only(np.stack(hidden)), tuple(layers))

    @torch.no_grad()
    def log_probabilities(self, tokens: Tokens, *, end: bool = True) -> torch.Tensor:
        """(L,) or (L - 1,): natural logarithm of the probability of every next token, with the end's if wanted."""
        ids = [*tokens.ids, corpus.index()[corpus.END]] if end else list(tokens.ids)
        logits, _ = self.model(torch.tensor([ids[:-1]]))
        return logits[0].double().log_softmax(-1).gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]


def _bracketed(c: str) -> str:
    """An unknown character as it is shown; one that nobody could see as its code: ⟨200D⟩."""
    seen = visible(c)
    return seen if seen.startswith("⟨") else f"⟨{c}⟩"


def _normed_parts(
    norm: torch.nn.LayerNorm, content: torch.Tensor, position: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """LayerNorm of a sum, told apart: both parts centred and divided by the deviation of the sum."""
    whole = content + position
    deviation = (whole.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()

    def part(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(-1, keepdim=True)) / deviation * norm.weight

    return part(content), part(position)
