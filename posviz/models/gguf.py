"""A Llama stored as GGUF, as a folder that transformers opens: tensors dequantised one by one, tokenizer rebuilt.

GGUF keeps the rows of W_q and W_k in pairs (2i, 2i + 1), so that neighbours turn together; Hugging Face's Llama
turns (i, i + width/2). One is a permutation of the other (:func:`posviz.rotation.permutation`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posviz.rotation import permutation

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL = 3  # the type of a token that never comes from text


def name_of(name: str) -> str:
    """``blk.3.attn_q.weight`` is Llama's ``model.layers.3.self_attn.q_proj.weight``."""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in NAMES:
        raise ValueError(f"no Llama has a tensor {name!r}")
    layer = f"model.layers.{match[1]}." if match[1] else ""
    return f"{layer}{NAMES[match[2]]}.{match[3]}"


def unpaired(rows: np.ndarray, heads: int) -> np.ndarray:
    """(H * e, d): rows of each head from pairs side by side to Hugging Face's halves."""
    width = rows.shape[0] // heads
    return rows.reshape(heads, width, -1)[:, permutation(width).numpy()].reshape(rows.shape)


def convert(file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors (float16) and tokenizer.json of a GGUF Llama into ``folder``."""
    from gguf import GGUFReader
    from safetensors.torch import save_file

    reader = GGUFReader(str(file))
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    if fields["general.architecture"] != "llama":
        raise ValueError(f"a Llama is needed, got {fields['general.architecture']!r}")
    config = config_of(fields)
    save_file(dict(tensors(reader, config)), folder / "model.safetensors", metadata={"format": "pt"})
    config["tie_word_embeddings"] = not any(t.name == "output.weight" for t in reader.tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    _tokenizer(fields, folder)


def config_of(fields: dict[str, Any]) -> dict[str, Any]:
    heads = fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields.get("llama.attention.head_count_kv", heads),
        "max_position_embeddings": fields["llama.context_length"],
        "rope_theta": float(fields.get("llama.rope.freq_base", 10_000.0)),
        "rms_norm_eps": round(float(fields["llama.attention.layer_norm_rms_epsilon"]), 9),
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id"),
        "hidden_act": "silu",
    }


def tensors(reader: Any, config: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor by Hugging Face's name, float16."""
    from gguf.quants import dequantize

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.split(".")[-2]
        if part in heads:
            values = unpaired(values, heads[part])
        yield name_of(tensor.name), torch.from_numpy(values.astype(np.float16))


def _tokenizer(fields: dict[str, Any], folder: Path) -> None:
    """A byte-level BPE with SmolLM's cutting: digits one by one, then GPT-2's pattern."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    if (fields["tokenizer.ggml.model"], fields["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        raise ValueError("the tokenizer of SmolLM is needed")
    words = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    special = [word for word, kind in zip(words, kinds, strict=True) if kind == CONTROL]
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    made.save(str(folder / "tokenizer.json"))
    named = {
        f"{name}_token": words[fields[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if f"tokenizer.ggml.{key}_token_id" in fields
    }
    about = {"tokenizer_class": "PreTrainedTokenizerFast", **named, "additional_special_tokens": special}
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
