"""Which models can be opened, and where in each a layer's projections and positions are.

Names of modules are those of transformers; a new family that is built like one of these is one more entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posviz.types import Refusal, Text, shown


@dataclass(frozen=True)
class Stack:
    """One tower of layers: paths of modules, ``{i}`` is the layer.

    qkv: three projections, or one that holds them side by side (GPT-2). norms: of q and k, head by head, if any.
    final: the norm behind the last layer, "" without one.
    """

    block: str
    attention: str
    qkv: tuple[str, ...]
    out: str
    final: str = ""
    norms: tuple[str, str] | None = None
    mask: str = "none"


@dataclass(frozen=True)
class Family:
    """kind: where position enters: "absolute" (a learned table), "rotary" or "bias".

    auto: the class of transformers that loads it. stack: the tower that reads the sentence; decoder, cross: of an
    encoder-decoder. table: the table of positions, words: all that is added to it before the norm ``norm`` of
    the first layer's input.
    """

    title: str
    model_types: tuple[str, ...]
    kind: str
    auto: str
    stack: Stack
    decoder: Stack | None = None
    cross: Stack | None = None
    table: str = ""
    words: tuple[str, ...] = ()
    norm: str = ""
    first_row: int = 0

    @property
    def has_head(self) -> bool:
        """Whether the class that is loaded ends in the vocabulary."""
        return self.auto != "AutoModel"


_BERT = Stack(
    "encoder.layer.{i}",
    "encoder.layer.{i}.attention.self",
    tuple(f"encoder.layer.{{i}}.attention.self.{name}" for name in ("query", "key", "value")),
    "encoder.layer.{i}.attention.output.dense",
)
_EMBEDDINGS = {
    "table": "embeddings.position_embeddings",
    "words": ("embeddings.word_embeddings", "embeddings.token_type_embeddings"),
    "norm": "embeddings.LayerNorm",
}
_LLAMA = Stack(
    "model.layers.{i}",
    "model.layers.{i}.self_attn",
    tuple(f"model.layers.{{i}}.self_attn.{name}_proj" for name in "qkv"),
    "model.layers.{i}.self_attn.o_proj",
    final="model.norm",
    mask="causal",
)
_QWEN3 = Stack(
    _LLAMA.block,
    _LLAMA.attention,
    _LLAMA.qkv,
    _LLAMA.out,
    final=_LLAMA.final,
    norms=("model.layers.{i}.self_attn.q_norm", "model.layers.{i}.self_attn.k_norm"),
    mask="causal",
)
_GPT2 = Stack(
    "transformer.h.{i}",
    "transformer.h.{i}.attn",
    ("transformer.h.{i}.attn.c_attn",),
    "transformer.h.{i}.attn.c_proj",
    final="transformer.ln_f",
    mask="causal",
)


def _t5(side: str, layer: str, mask: str = "none") -> Stack:
    at = f"{side}.block.{{i}}.{layer}"
    return Stack(
        f"{side}.block.{{i}}",
        at,
        tuple(f"{at}.{name}" for name in "qkv"),
        f"{at}.o",
        final=f"{side}.final_layer_norm",
        mask=mask,
    )


FAMILIES: tuple[Family, ...] = (
    Family("BERT", ("bert",), "absolute", "AutoModel", _BERT, **_EMBEDDINGS),
    Family(
        "RoBERTa",
        ("roberta", "xlm-roberta", "camembert"),
        "absolute",
        "AutoModel",
        _BERT,
        first_row=2,  # behind the padding's row 1
        **_EMBEDDINGS,
    ),
    Family(
        "GPT-2",
        ("gpt2",),
        "absolute",
        "AutoModelForCausalLM",
        _GPT2,
        table="transformer.wpe",
        words=("transformer.wte",),
        norm="transformer.h.0.ln_1",
    ),
    Family(
        "T5",
        ("t5", "mt5"),
        "bias",
        "AutoModelForSeq2SeqLM",
        _t5("encoder", "layer.0.SelfAttention"),
        decoder=_t5("decoder", "layer.0.SelfAttention", "causal"),
        cross=_t5("decoder", "layer.1.EncDecAttention"),
    ),
    Family("Llama", ("llama", "mistral"), "rotary", "AutoModelForCausalLM", _LLAMA),
    Family("Qwen2", ("qwen2",), "rotary", "AutoModelForCausalLM", _LLAMA),
    Family("Qwen3", ("qwen3",), "rotary", "AutoModelForCausalLM", _QWEN3),
)


def family_of(config: Mapping[str, Any]) -> Family:
    """The family of a config.json, or a :class:`Refusal` that lists them."""
    model_type = config.get("model_type")
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    raise Refusal(
        Text(
            "`model_type` must be one of {allowed}, got {got}",
            "`model_type` 只能是 {allowed} 之一，现在是 {got}",
        ),
        field="model_type",
        allowed=", ".join(name for family in FAMILIES for name in family.model_types),
        got=shown(model_type) if model_type else Text("none", "空"),
    )
