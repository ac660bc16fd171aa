"""Folders, names and weight files that must not be loaded, each answered by one sentence; and a missing extra."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from posviz.models import pretrained
from posviz.models.pretrained import hub
from posviz.models.pretrained.limits import Limits, from_environment
from posviz.types import Refusal, shown

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy of the tiny BERT that a test may spoil."""
    return Path(shutil.copytree(made("bert"), tmp_path / "model"))


def refused(where, **options) -> str:
    with pytest.raises(Refusal) as refusal:
        pretrained.load(where, **options)
    assert "\n" not in str(refusal.value) and refusal.value.text("zh") != str(refusal.value)
    return str(refusal.value)


def config(folder: Path, **changes) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def weights(folder: Path, change) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


# ---------------------------------------------------------------- what is not there
def test_not_a_folder(tmp_path) -> None:
    missing = tmp_path / "nothing"
    assert refused(missing) == f"{missing} is not a folder"[:200]


def test_an_empty_folder_and_a_file(tmp_path) -> None:
    assert refused(tmp_path).startswith("the folder ") and "has no config.json" in refused(tmp_path)
    file = tmp_path / "a.txt"
    file.write_text("x")
    assert "is not a folder" in refused(file)


def test_no_weights(folder) -> None:
    (folder / "model.safetensors").unlink()
    assert refused(folder).endswith("has no model.safetensors")


def test_no_tokenizer(folder) -> None:
    (folder / "tokenizer.json").unlink()
    assert refused(folder).endswith(
        "has no tokenizer: one of tokenizer.json, vocab.txt, vocab.json + merges.txt is needed"
    )


def test_an_unknown_family_lists_the_known_ones(folder) -> None:
    config(folder, model_type="mamba")
    assert refused(folder) == (
        "`model_type` must be one of bert, roberta, xlm-roberta, camembert, gpt2, t5, mt5, llama, mistral, qwen2, qwen3, "
        "got mamba"
    )


# ---------------------------------------------------------------- what could run code
class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickles_are_never_opened(folder, name, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    said = refused(folder)
    assert said.startswith("weights are read from .safetensors only, since other formats can run code;")
    assert said.endswith(f"has {name}")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_remote_code_is_refused(folder, file) -> None:
    (folder / "evil.py").write_text("open('exploded', 'w')")
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"AutoModel": "evil.Model"}}))
    assert refused(folder) == f"{file} asks to run code that comes with the model (`auto_map`), which posviz never does"


def test_links_out_of_the_folder_are_refused(folder, tmp_path) -> None:
    outside = tmp_path / "secret.json"
    (folder / "config.json").rename(outside)
    (folder / "config.json").symlink_to(outside)
    assert "config.json in " in refused(folder) and refused(folder).endswith("is a link that leads out of the folder")


def test_a_hub_cache_may_link_to_its_blobs(made, tmp_path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for file in made("bert").iterdir():
        shutil.copy(file, blobs / file.name)
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    assert pretrained.load(snapshot).n_layers == 2


def test_a_pipe_is_not_waited_for(folder) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert refused(folder).endswith("is not a plain file") or "不是" in refused(folder)


def test_shards_stay_in_the_folder(folder) -> None:
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    index = {"weight_map": {"x": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refused(folder).endswith("names files that are not in the folder")


@pytest.mark.parametrize(
    "names", [{"a": ["x"]}, {"a": 1, "b": "m1.safetensors"}, {"a": "x" * 5000}, {"a": "x\0"}, {"a": None}, {}, 1]
)
def test_an_index_of_anything_else_is_one_sentence(folder, names) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    assert refused(folder) == (
        f"model.safetensors.index.json in {shown(str(folder), 80)} names files that are not in the folder"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the text is not JSON: line 1, column 2 cannot be read"),
        ("[1]", "`config` must be a JSON object, got [1]"),
        ("\xff", "the file is not text in UTF-8"),
    ],
)
def test_a_broken_provenance_is_one_sentence(folder, tmp_path, text, said) -> None:
    (folder / "posviz.json").write_text(text, "latin-1")
    assert refused(folder) == said
    (folder / "posviz.json").rename(tmp_path / "secret.json")
    (folder / "posviz.json").symlink_to(tmp_path / "secret.json")
    assert refused(folder) == f"posviz.json in {shown(str(folder), 80)} is a link that leads out of the folder"


def test_shards_are_read(made, folder) -> None:
    from transformers import BertModel

    whole = pretrained.load(made("bert"))
    (folder / "model.safetensors").unlink()
    BertModel.from_pretrained(made("bert")).save_pretrained(folder, max_shard_size="8KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    parts = pretrained.load(folder)
    assert parts.card["parameters"] == whole.card["parameters"]
    np.testing.assert_array_equal(parts.position_table(), whole.position_table())


# ---------------------------------------------------------------- damaged and hostile weights
def test_truncated_weights(folder) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "model.safetensors in " in refused(folder) and " is damaged: " in refused(folder)


@pytest.mark.parametrize(
    "head", [b"", b"\x00" * 4, struct.pack("<Q", 2**62), struct.pack("<Q", 8) + b"not json", b"PK\x03\x04" * 99]
)
def test_what_is_no_safetensors(folder, head) -> None:
    (folder / "model.safetensors").write_bytes(head)
    assert " is damaged: " in refused(folder)


def test_a_header_that_claims_terabytes(folder) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert " is damaged: " in refused(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder, value) -> None:
    def spoil(tensors):
        tensors["encoder.layer.1.attention.self.key.weight"][3, 4] = value

    weights(folder, spoil)
    assert refused(folder) == (
        "weights must be finite, but encoder.layer.1.attention.self.key.weight holds 1 NaN or infinite numbers"
    )


def test_a_tensor_of_another_shape(folder) -> None:
    def spoil(tensors):
        tensors["embeddings.position_embeddings.weight"] = torch.zeros(50, 24)

    weights(folder, spoil)
    assert "do not fit config.json: " in refused(folder)


def test_a_missing_tensor(folder) -> None:
    def spoil(tensors):
        del tensors["encoder.layer.1.attention.self.key.bias"]
        tensors["more"] = torch.zeros(1000)

    weights(folder, spoil)
    assert refused(folder) == (
        "the weight files lack 1 tensors of the model, encoder.layer.1.attention.self.key.bias among them"
    )


def test_too_few_numbers_for_the_config(folder) -> None:
    config(folder, num_hidden_layers=200)
    assert refused(folder).startswith("config.json describes ") and "weights, but the files hold " in refused(folder)


# ---------------------------------------------------------------- hostile configs
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"num_hidden_layers": 10**9},
            "`num_hidden_layers` must be a whole number from 1 to 256, got 1000000000",
        ),
        ({"hidden_size": -4}, "`hidden_size` must be a whole number from 1 to 32768, got -4"),
        ({"hidden_size": "24"}, "`hidden_size` must be a whole number from 1 to 32768, got '24'"),
        ({"num_attention_heads": None}, "`num_attention_heads` must be a whole number from 1 to 512, got None"),
        ({"vocab_size": 1e9}, "`vocab_size` must be a whole number from 1 to 4000000, got 1000000000.0"),
        (
            {"hidden_size": 32768, "vocab_size": 4_000_000},
            None,
        ),
        ({"num_attention_heads": 5}, None),
        ({"hidden_act": "nothing"}, None),
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` must be absolute, got relative_key"),
    ],
)
def test_hostile_configs_end_before_anything_is_allocated(folder, changes, sentence) -> None:
    config(folder, **changes)
    said = refused(folder)
    assert said == sentence if sentence else len(said) < 300


def test_labels_of_a_classifier_are_not_made(folder, monkeypatch) -> None:
    """A hundred million of them would be a dictionary of gigabytes before the first check."""
    from transformers import AutoConfig

    make, asked = AutoConfig.for_model, []
    monkeypatch.setattr(AutoConfig, "for_model", lambda **given: asked.append(given) or make(**given))
    config(folder, num_labels=10**8, id2label={"0": "a"}, label2id={"a": 0})
    assert len(pretrained.load(folder).config.id2label) == 2
    assert not {"num_labels", "id2label", "label2id"} & asked[0].keys()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the text is not JSON: line 1, column 2 cannot be read"),
        ("[1]", "`config` must be a JSON object, got [1]"),
        ('{"a": NaN}', "the text holds NaN, which is not a number in JSON"),
        ("\x00", "the text is not JSON: line 1, column 1 cannot be read"),
        ('{"a": "' + "x" * 1_000_001 + '"}', "the file has 1,000,001 bytes; a config.json of up to 1,000,000 is read"),
    ],
)
def test_files_that_are_no_config(folder, text, said) -> None:
    (folder / "config.json").write_text(text)
    assert refused(folder) == said


def test_a_config_of_100_mb_is_not_read(folder) -> None:
    with (folder / "config.json").open("wb") as file:
        file.truncate(100_000_000)
    assert refused(folder) == "the file has 1,000,001 bytes; a config.json of up to 1,000,000 is read"


def test_a_huge_tokenizer_is_not_read(folder) -> None:
    with (folder / "tokenizer.json").open("r+b") as file:
        file.truncate(64_000_001)
    assert refused(folder).endswith("has 64,000,001 bytes; up to 64,000,000 are read")


def test_a_tokenizer_that_is_none(folder) -> None:
    (folder / "tokenizer.json").write_text("{}")
    assert refused(folder).startswith("the tokenizer in ")


def test_a_tokenizer_of_another_model(folder, made) -> None:
    shutil.copy(made("llama") / "tokenizer.json", folder / "tokenizer.json")
    assert refused(folder).startswith("the tokenizer has ids up to ")


# ---------------------------------------------------------------- limits
def test_limits_of_size(made) -> None:
    assert refused(made("bert"), limits=Limits(parameters=100)).endswith("parameters; up to 100 are loaded here")
    model = pretrained.load(made("llama"), limits=Limits(tokens=4))
    with pytest.raises(Refusal) as refusal:
        model.tokenize("the dog bites the man and the cat")
    assert str(refusal.value).endswith("tokens in this model, special ones included; up to 4 are shown")
    model = pretrained.load(made("llama"), limits=Limits(cells=100))
    with pytest.raises(Refusal) as refusal:
        model.tokenize("the dog bites the man")
    assert " layers of " in str(refusal.value) and "up to 100 are computed: take a shorter sentence" in str(
        refusal.value
    )


def test_a_decoder_counts_with_both_of_its_attentions(made) -> None:
    """T5 of 2 + 2 layers and 3 heads: 2 of the encoder, 2 of the decoder on itself, 2 on the encoder."""
    tokens = pretrained.load(made("t5")).tokenize("the dog bites the man")
    cells = 6 * 3 * len(tokens) ** 2
    whole = pretrained.load(made("t5"), limits=Limits(cells=cells)).trace(tokens)
    assert (len(whole.layers), len(whole.decoder.layers), len(whole.cross)) == (2, 2, 2)
    with pytest.raises(Refusal) as refusal:
        pretrained.load(made("t5"), limits=Limits(cells=cells - 1)).trace(tokens)
    assert str(refusal.value) == (
        f"6 layers of 3 heads on {len(tokens)} tokens are {cells:,} weights; up to {cells - 1:,} are computed: "
        "take a shorter sentence"
    )


def test_a_hosted_server_looks_at_its_list_only(made) -> None:
    limits = from_environment({"POSVIZ_HOSTED": "1", "POSVIZ_ALLOWED": "a/b, c"})
    assert limits.hosted and limits.names == ("a/b", "c")
    for where in (made("bert"), str(made("bert")), "/etc", "~", "bert-base-uncased", "../../x"):
        assert refused(where, limits=limits).startswith("on this server a model must be one of a/b, c, got ")
    assert from_environment({}).names is None and not from_environment({"POSVIZ_HOSTED": "0"}).hosted


# ---------------------------------------------------------------- the hub
def test_names_are_names() -> None:
    assert all(map(hub.is_name, ("gpt2", "a/b", "sentence-transformers/all-MiniLM-L6-v2")))
    for bad in ("", "a/b/c", "/a", "a/", "../a", "a/..", "a b", "a--b", "http://x/y", "a\n", "x" * 97, "é/b"):
        assert not hub.is_name(bad), bad


@pytest.fixture
def no_cache(monkeypatch):
    import huggingface_hub
    from huggingface_hub import errors

    def nothing(*args, **kwargs):
        raise errors.LocalEntryNotFoundError("not cached")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", nothing)
    return huggingface_hub


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ConnectionError,
            "some/model is not on this machine, and the hub cannot be reached (ConnectionError); "
            "a local folder works offline",
        ),
        ("RepositoryNotFoundError", "there is no public model some/model on the hub"),
        ("GatedRepoError", "some/model asks for a licence to be accepted on the hub first"),
        (
            "OfflineModeIsEnabled",
            "some/model is not on this machine, and the hub cannot be reached (OfflineModeIsEnabled); "
            "a local folder works offline",
        ),
    ],
)
def test_a_hub_that_does_not_give(no_cache, monkeypatch, error, said) -> None:
    from huggingface_hub import errors

    kind = getattr(errors, error) if isinstance(error, str) else error

    def fail(*args, **kwargs):
        raise kind.__new__(kind)

    monkeypatch.setattr(no_cache.HfApi, "model_info", fail)
    assert refused("some/model") == said


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pytorch_model.bin": 10}, "some/model has no weights as .safetensors; other formats are not read"),
        (
            {"model.safetensors": 10**12},
            "the files of some/model have 1,000,000,000,000 bytes; up to 6,400,000,000 are downloaded",
        ),
        (
            {"model.safetensors": 10, "vocab.json": 5 * 10**9, "notes.txt": 2 * 10**9, "onnx/x.json": 10**9},
            "the files of some/model have 7,000,000,010 bytes; up to 6,400,000,000 are downloaded",
        ),
    ],
)
def test_a_hub_model_is_measured_before_it_is_downloaded(no_cache, monkeypatch, files, said) -> None:
    siblings = [SimpleNamespace(rfilename=name, size=size) for name, size in files.items()]
    about = SimpleNamespace(siblings=siblings, sha="0" * 40)
    monkeypatch.setattr(no_cache.HfApi, "model_info", lambda *args, **kwargs: about)
    assert refused("some/model") == said


def test_only_what_was_measured_is_downloaded(made, monkeypatch) -> None:
    import huggingface_hub
    from huggingface_hub import errors

    names = ["model.safetensors", "[a]*.json", "sub/model.safetensors", "sub/big.json", "evil.py", "model.bin"]
    about = SimpleNamespace(siblings=[SimpleNamespace(rfilename=name, size=1) for name in names], sha="0" * 40)
    got = []

    def download(name, local_files_only=False, allow_patterns=(), **kwargs):
        if local_files_only:
            raise errors.LocalEntryNotFoundError("not cached")
        got.extend(huggingface_hub.utils.filter_repo_objects(names, allow_patterns=allow_patterns))
        return str(made("bert"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *args, **kwargs: about)
    pretrained.load("some/model")
    assert got == names[:2]


def test_a_cached_model_needs_no_network(made, monkeypatch) -> None:
    import huggingface_hub

    def cached(name, local_files_only=False, **kwargs):
        assert local_files_only, "the network was asked"
        return str(made("bert"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    model = pretrained.load("some/model")
    assert model.name == "some/model" and model.badge.en.startswith("pretrained · some/model · BERT, ")


# ---------------------------------------------------------------- the newcomer without the extra
def test_without_the_extra_one_sentence_says_the_command(made) -> None:
    """In a new process in which transformers cannot be imported."""
    code = f"""
import sys
sys.modules["transformers"] = None
from posviz.models import pretrained
from posviz.types import Refusal
assert not pretrained.installed()
for where in ({str(made("bert"))!r}, "some/model"):
    try:
        pretrained.load(where)
    except Refusal as refusal:
        print(refusal.text("en")); print(refusal.text("zh"))
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr
    en = "real models need the packages of the extra `models`: run `make models`"
    zh = "真实模型需要 `models` 这一组可选的软件包：请运行 `make models`"
    assert run.stdout.split("\n") == [en, zh, en, zh, ""]


def test_looking_at_models_loads_no_transformers() -> None:
    code = (
        "import sys; from posviz.models import pretrained; pretrained.installed(); print('transformers' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


def test_progress_goes_up_to_one(made) -> None:
    seen = []
    pretrained.load(made("bert"), progress=lambda share, text: seen.append((share, text.en, text.zh)))
    assert [share for share, *_ in seen] == sorted(share for share, *_ in seen) and seen[-1][0] == 1.0
    assert all(en and zh for _, en, zh in seen)
