"""Configurations that change what a family computes: our weights are still the model's own, or it is refused."""

import json
import shutil

import numpy as np
import pytest
import torch

from posviz.models import pretrained
from posviz.types import Refusal

SENTENCE = "the dog bites the man and a mouse"
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16}


def changed(made, tmp_path, name: str, **changes):
    folder = shutil.copytree(made(name), tmp_path / name)
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return pretrained.load(folder)


def check(model) -> None:
    tokens = model.tokenize(SENTENCE)
    inputs = model._inputs(tokens, pretrained.model.Positions())
    with torch.no_grad():
        out = model.network(**inputs, output_attentions=True)
    theirs = out.encoder_attentions if "encoder_attentions" in out else out.attentions
    for layer, own in zip(model.trace(tokens).layers, theirs, strict=True):
        np.testing.assert_allclose(layer.weights, own[0].numpy(), rtol=0, atol=1e-5)
        assert (layer.weights[:, ~layer.allowed] == 0).all()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("bert", {"is_decoder": True}),
        ("bert", {"num_attention_heads": 4}),
        ("roberta", {"model_type": "xlm-roberta"}),
        ("roberta", {"model_type": "camembert"}),
        ("gpt2", {"scale_attn_weights": False}),
        ("gpt2", {"reorder_and_upcast_attn": True}),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": False}),
        ("t5", {"relative_attention_max_distance": 40}),
        ("llama", {"rope_parameters": LLAMA3}),
        ("llama", {"rope_parameters": YARN}),
        ("llama", {"rope_parameters": None, "rope_theta": 300.0}),
        ("llama", {"rope_parameters": None, "rope_theta": 300.0, "rope_scaling": {"type": "linear", "factor": 3.0}}),
        ("llama", {"model_type": "mistral", "sliding_window": 3}),
        ("llama", {"model_type": "mistral", "sliding_window": None}),
        ("qwen2", {"use_sliding_window": False, "layer_types": ["full_attention"] * 2}),
    ],
)
def test_what_a_config_changes_is_in_the_trace(made, tmp_path, name, changes) -> None:
    check(changed(made, tmp_path, name, **changes))


def test_a_t5_encoder_alone(made, tmp_path) -> None:
    from transformers import T5EncoderModel

    folder = tmp_path / "encoder"
    shutil.copytree(made("t5"), folder)
    T5EncoderModel.from_pretrained(made("t5")).save_pretrained(folder)
    model = pretrained.load(folder)
    check(model)
    tokens = model.tokenize(SENTENCE)
    trace = model.trace(tokens)
    assert trace.decoder is None and trace.cross == () and model.losses(tokens) is None
    assert not model.has_head


def test_a_decoder_without_a_head_still_shows_its_attention(made, tmp_path) -> None:
    from transformers import LlamaModel

    folder = tmp_path / "headless"
    shutil.copytree(made("llama"), folder)
    LlamaModel.from_pretrained(made("llama")).save_pretrained(folder)
    model = pretrained.load(folder)
    assert not model.has_head and model.losses(model.tokenize(SENTENCE)) is None
    check(model)


def test_a_masked_language_model_opens_as_its_encoder(made, tmp_path) -> None:
    from transformers import BertForMaskedLM

    folder = tmp_path / "mlm"
    shutil.copytree(made("bert"), folder)
    BertForMaskedLM.from_pretrained(made("bert")).save_pretrained(folder)
    one, other = pretrained.load(made("bert")), pretrained.load(folder)
    tokens = one.tokenize(SENTENCE)
    np.testing.assert_array_equal(one.trace(tokens).hidden, other.trace(tokens).hidden)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(made, tmp_path, dtype) -> None:
    from transformers import GPT2LMHeadModel

    folder = tmp_path / "half"
    shutil.copytree(made("gpt2"), folder)
    GPT2LMHeadModel.from_pretrained(made("gpt2")).to(dtype).save_pretrained(folder)
    model = pretrained.load(folder)
    assert {p.dtype for p in model.network.parameters()} == {torch.float32}
    check(model)
    assert model.card["stored_as"] in ("F16", "BF16")


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (
            "bert",
            {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
            "quantised weights are not read: config.json has a `quantization_config`",
        ),
        (
            "llama",
            {"rope_parameters": {"rope_type": "magic"}},
            "`rope_type` must be one of ",
        ),
        ("llama", {"num_key_value_heads": 3}, ""),
        ("llama", {"hidden_act": "__import__('os')"}, ""),
        ("gpt2", {"n_head": 7}, ""),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(made, tmp_path, name, changes, sentence) -> None:
    with pytest.raises(Refusal) as refusal:
        changed(made, tmp_path, name, **changes)
    assert str(refusal.value).startswith(sentence) and "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("qwen2", {"use_sliding_window": False}),  # but its layer_types say sliding_attention
        ("t5", {"relative_attention_max_distance": 12}),  # fewer than the decoder's exact buckets
    ],
)
def test_a_config_that_contradicts_itself_is_one_sentence(made, tmp_path, name, changes) -> None:
    model = changed(made, tmp_path, name, **changes)
    for run in (model.trace, model.losses):
        with pytest.raises(Refusal) as refusal:
            run(model.tokenize(SENTENCE))
        assert str(refusal.value).startswith(f"{name} cannot be computed on this sentence: ")
