"""From a model's config.json to its RoPE: old and new keys, nested text configs, one RoPE for each layer type.

What the keys mean is what transformers 5 does with them (modeling_rope_utils and the models' configuration
files); defaults that a file leaves out are those of the model's class there.
"""

from collections.abc import Mapping
from typing import Any

from posviz.encodings.config_json import check_depth, check_object
from posviz.encodings.model_rope import ModelRope
from posviz.rope_scaling import (
    MAX_POSITIONS,
    SCALINGS,
    DynamicNtk,
    Llama3,
    LongRope,
    Proportional,
    Scaling,
    Yarn,
)
from posviz.types import Refusal, Text, real_number, shown, whole_number

# Other names of the same method, as they are met in files.
ALIASES = {"su": "longrope", "mrope": "default", "deepseek_yarn": "yarn", "none": "default"}
# Models whose code pairs neighbours (2i, 2i+1); all others pair (i, i + width/2). From the rotation in each
# model's file in transformers 5.24; tests read it there.
INTERLEAVED = frozenset(
    [
        "gptj",
        "codegen",
        "cohere",
        "cohere2",
        "deepseek_v2",
        "deepseek_v3",
        "ernie4_5",
        "ernie4_5_moe",
        "glm",
        "glm4",
        "helium",
        "llama4",
        "llama4_text",
        "roformer",
    ]
)
# The share of the head that turns where the file does not say.
PARTIAL = {"gpt_neox": 0.25, "stablelm": 0.25, "phi": 0.5, "glm": 0.5, "glm4": 0.5, "persimmon": 0.5, "nemotron": 0.5}
# The base where the file does not say: of all layers, and of the layers with a sliding window.
BASE = {"cohere": 5e5, "gpt_oss": 1.5e5, "ernie4_5": 5e5, "helium": 1e5, "gemma3_text": 1e6, "modernbert": 1.6e5}
LOCAL_BASE = {"gemma3_text": 1e4, "modernbert": 1e4}
# Layers with a sliding window keep the unscaled RoPE, `rope_scaling` counts for the others only.
SCALED_WHERE_FULL = ("gemma3_text", "gemma3n_text", "olmo3")
TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
FULL, SLIDING = "full_attention", "sliding_attention"


def rope_from_config(config: Mapping[str, Any]) -> ModelRope | dict[str, ModelRope]:
    """The RoPE of a model, or one for each layer type ("full_attention", ...) where the file has several.

    config: what stands in a config.json, parsed. :class:`posviz.Refusal` names the field that cannot be.
    """
    check_object("config", config)
    check_depth(config)
    model = text_config(config)
    parts = layer_parameters(model)
    ropes = {layer: _rope(model, given, layer) for layer, given in parts.items()}
    return ropes[""] if list(ropes) == [""] else ropes


def ropes_of(config: Mapping[str, Any]) -> dict[str, ModelRope]:
    """:func:`rope_from_config`, always as a mapping; the key is "" where there is one for all layers."""
    found = rope_from_config(config)
    return found if isinstance(found, dict) else {"": found}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that describes the language model: the file itself or what it nests for that."""
    for key in TEXT_CONFIGS:
        if isinstance(config.get(key), Mapping):
            inner = text_config(config[key])
            outer = {k: v for k, v in config.items() if k in KEYS and k not in inner}
            return {**outer, **inner}
    return config


def layer_parameters(model: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Layer type -> its RoPE parameters as the file writes them; "" where all layers share them."""
    name = "rope_parameters" if model.get("rope_parameters") is not None else "rope_scaling"
    given = dict(check_object(name, model.get(name) or {}))
    nested = {key: value for key, value in given.items() if isinstance(value, Mapping)}
    if nested and not any(key in given for key in ("rope_type", "type", "factor")):
        return {key: dict(value) for key, value in nested.items()}
    kind = _model_type(model)
    local = _first(model, "rope_local_base_freq", "local_rope_theta") or LOCAL_BASE.get(kind)
    if local is not None or kind in SCALED_WHERE_FULL:
        sliding = {} if local is None else {"rope_theta": local}
        return {FULL: given, SLIDING: sliding}
    return {"": given}


def _first(mapping: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of these keys that is there and not null."""
    return next((mapping[name] for name in names if mapping.get(name) is not None), None)


def _model_type(model: Mapping[str, Any]) -> str:
    value = model.get("model_type")
    return value if isinstance(value, str) else ""


def _needed(mapping: Mapping[str, Any], *names: str) -> Any:
    """The same, or a refusal that names what is missing."""
    value = _first(mapping, *names)
    if value is None:
        raise Refusal(
            Text("`{name}` is missing; RoPE cannot be worked out without it", "缺少 `{name}`；没有它就算不出 RoPE"),
            field=names[0],
            name=names[0],
        )
    return value


def head_width(model: Mapping[str, Any], layer: str = "") -> int:
    """Width of the part of a head that RoPE sees."""
    own = _first(model, "qk_rope_head_dim", "head_dim", "attention_head_size")
    if layer == FULL and model.get("global_head_dim") is not None:
        own = model["global_head_dim"]
    if own is not None:
        return whole_number("head_dim", own, 2, 8192)
    heads = whole_number("num_attention_heads", _needed(model, "num_attention_heads", "n_head"), 1, 8192)
    hidden = whole_number("hidden_size", _needed(model, "hidden_size", "n_embd"), 1, 2**20)
    if hidden % heads:
        raise Refusal(
            Text(
                "`hidden_size` must be a multiple of num_attention_heads where head_dim is missing, got {hidden} and {heads}",
                "没有 head_dim 时 `hidden_size` 必须是 num_attention_heads 的倍数，现在是 {hidden} 和 {heads}",
            ),
            field="hidden_size",
            hidden=hidden,
            heads=heads,
        )
    return hidden // heads


def _share(model: Mapping[str, Any], given: Mapping[str, Any], d_head: int) -> float:
    """The share of the head that turns."""
    value = _first(given, "partial_rotary_factor")
    value = _first(model, "partial_rotary_factor", "rotary_pct", "rope_pct") if value is None else value
    if value is None and model.get("rotary_dim") is not None:
        return whole_number("rotary_dim", model["rotary_dim"], 2, d_head) / d_head
    if value is None:
        return PARTIAL.get(_model_type(model), 1.0)
    return real_number("partial_rotary_factor", value, 0.0, 1.0, above=True)


def base_of(model: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """The base, by whichever name the file has for it."""
    value = _first(given, "rope_theta")
    if value is None:
        value = _first(model, "rope_theta", "rotary_emb_base", "global_rope_theta")
    if value is None:
        value = BASE.get(_model_type(model), 10_000.0)
    return real_number("rope_theta", value, 1.0, 1e12, above=True)


def kind_of(model: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The scaling's name as :data:`posviz.rope_scaling.SCALINGS` has it; an unknown one is refused."""
    said = _first(given, "rope_type", "type")
    kind = ALIASES.get(said, said) if isinstance(said, str) else said
    kind = "default" if kind is None else kind
    if kind == "yarn" and _model_type(model) == "phi3":
        kind = "longrope"  # early Phi-3 files said yarn for what is LongRoPE
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise Refusal(
            Text("`rope_type` must be one of {allowed}, got {got}", "`rope_type` 只能是 {allowed} 之一，现在是 {got}"),
            field="rope_type",
            allowed=", ".join(SCALINGS),
            got=shown(said),
        )
    return kind


def original_length(model: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The length before extension as the file has it; the promised one where it is missing."""
    name = "original_max_position_embeddings"
    return next((place[name] for place in (model, given) if place.get(name) is not None), promised_length(model))


def promised_length(model: Mapping[str, Any]) -> Any:
    return _first(model, *LENGTHS)


def _scaling(kind: str, model: Mapping[str, Any], given: Mapping[str, Any], share: float) -> Scaling:
    """The spec of one method with the numbers of the file; what is missing is refused by its name."""
    if kind == "default":
        return Scaling()
    if kind == "proportional":
        return Proportional(share=share, factor=given.get("factor", 1.0))
    if kind in ("linear", "ntk"):
        return SCALINGS[kind](factor=_needed(given, "factor"))
    if kind == "dynamic":
        return DynamicNtk(factor=_needed(given, "factor"), max_position_embeddings=_needed(model, *LENGTHS))
    original = original_length(model, given)
    original = _needed({"original_max_position_embeddings": original}, "original_max_position_embeddings")
    if kind == "llama3":
        names = ("factor", "low_freq_factor", "high_freq_factor")
        return Llama3(**{n: _needed(given, n) for n in names}, original_max_position_embeddings=original)
    shared = {
        "factor": _stretch(model, given, original),
        "original_max_position_embeddings": original,
        "given_attention_factor": given.get("attention_factor"),
    }
    if kind == "longrope":
        lists = {name: _needed(given, name) for name in ("short_factor", "long_factor")}
        return LongRope(**lists, **shared)
    options = {name: given[name] for name in ("mscale", "mscale_all_dim", "truncate") if given.get(name) is not None}
    turns = {name: given[name] for name in ("beta_fast", "beta_slow") if given.get(name) is not None}
    return Yarn(**shared, **options, **turns)


def _stretch(model: Mapping[str, Any], given: Mapping[str, Any], original: Any) -> Any:
    """The factor, or what the two lengths say where it is missing (Phi-3's files)."""
    if given.get("factor") is not None:
        return given["factor"]
    length = whole_number("max_position_embeddings", _needed(model, *LENGTHS), 1, MAX_POSITIONS)
    return length / whole_number("original_max_position_embeddings", original, 1, MAX_POSITIONS)


def _rope(model: Mapping[str, Any], given: Mapping[str, Any], layer: str) -> ModelRope:
    d_head = head_width(model, layer)
    kind, share = kind_of(model, given), _share(model, given, d_head)
    length = promised_length(model)
    original = original_length(model, given) if kind in ("yarn", "llama3", "longrope") else None
    section = given.get("mrope_section")
    if section is not None:
        section = _section(section)
    return ModelRope(
        d_head=d_head,
        base=base_of(model, given),
        pairing="interleaved" if _interleaved(model) else "half",
        partial_rotary_factor=1.0 if kind == "proportional" else share,
        scaling=_scaling(kind, model, given, share),
        max_position_embeddings=None
        if length is None
        else whole_number("max_position_embeddings", length, 1, MAX_POSITIONS),
        original_max_position_embeddings=original,
        mrope_section=section or (),
        mrope_interleaved=given.get("mrope_interleaved") is True,
        layer_type=layer,
        model_type=_model_type(model),
    )


def _interleaved(model: Mapping[str, Any]) -> bool:
    said = model.get("rope_interleave")
    return said if isinstance(said, bool) else _model_type(model) in INTERLEAVED


def _section(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) > 8:
        raise Refusal(
            Text(
                "`mrope_section` must be a list of three whole numbers, got {got}",
                "`mrope_section` 必须是三个整数的列表，现在是 {got}",
            ),
            field="mrope_section",
            got=shown(value),
        )
    return tuple(whole_number(f"mrope_section[{i}]", number, 0, 8192) for i, number in enumerate(value))


# Every key that is read here or by the diagnosis; the rest of a file says nothing about RoPE.
KEYS = (
    "model_type",
    "hidden_size",
    "n_embd",
    "num_attention_heads",
    "n_head",
    "head_dim",
    "global_head_dim",
    "attention_head_size",
    "qk_rope_head_dim",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "original_max_position_embeddings",
    "rope_theta",
    "rotary_emb_base",
    "global_rope_theta",
    "local_rope_theta",
    "rope_local_base_freq",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "rotary_pct",
    "rope_pct",
    "rotary_dim",
    "rope_interleave",
    "sliding_window",
    "use_sliding_window",
)


def essential(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config.json concerns RoPE, flat: short enough for a link, and read as the whole file is."""
    model = text_config(config)
    return {key: model[key] for key in KEYS if model.get(key) is not None}
