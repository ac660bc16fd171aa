"""A model's folder, looked at before anything is loaded: what is there, how large it is, and what it must not do.

Nothing here imports transformers or allocates what a file asks for; safetensors reads headers only.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from posviz.encodings.config_json import read_config
from posviz.encodings.model_config import ropes_of
from posviz.models.pretrained.families import Family, family_of
from posviz.types import Refusal, Text, shown, whole_number

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
TOKENIZERS = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))
MAX_TOKENIZER = 64_000_000  # bytes of a tokenizer's file
MAX_SHARDS = 200
# What a config may ask for: (keys, largest). More than any published model of these families has.
SIZES = (
    (("num_hidden_layers", "n_layer", "num_layers"), 256),
    (("num_decoder_layers",), 256),
    (("num_attention_heads", "n_head", "num_heads"), 512),
    (("num_key_value_heads",), 512),
    (("hidden_size", "n_embd", "d_model"), 32_768),
    (("head_dim", "d_kv"), 8_192),
    (("intermediate_size", "n_inner", "d_ff"), 262_144),
    (("vocab_size",), 4_000_000),
    (("max_position_embeddings", "n_positions"), 100_000_000),
    (("type_vocab_size",), 1_000_000),
    (("relative_attention_num_buckets",), 4_096),
)
_OPTIONAL = ("n_inner", "num_key_value_heads", "head_dim", "num_decoder_layers")


@dataclass(frozen=True)
class Folder:
    """A folder that may be loaded. tensors: name -> shape in the weight files; numbers: how many they hold."""

    path: Path
    config: Mapping[str, Any]
    family: Family
    tensors: Mapping[str, tuple[int, ...]]
    dtypes: frozenset[str]

    @property
    def numbers(self) -> int:
        return sum(map(math.prod, self.tensors.values()))


def look(path: Path) -> Folder:
    """What a folder holds, or a :class:`Refusal` that says why it cannot be opened."""
    found = folder_at(path)
    if found is None:
        raise refused(Text("{path} is not a folder", "{path} 不是文件夹"), path)
    path = found
    config = read_json(path, "config.json")
    if config is None:
        raise refused(Text("the folder {path} has no config.json", "文件夹 {path} 里没有 config.json"), path)
    for name, given in (("config.json", config), ("tokenizer_config.json", read_json(path, "tokenizer_config.json"))):
        if given and given.get("auto_map"):
            raise refused(
                Text(
                    "{file} asks to run code that comes with the model (`auto_map`), which posviz never does",
                    "{file} 要求运行模型自带的代码（`auto_map`），posviz 从不这样做",
                ),
                path,
                file=name,
            )
    family = family_of(config)
    _check_sizes(config)
    _check_quantised(config)
    if family.kind == "rotary":
        ropes_of(config)  # names what in the file cannot be
    _check_tokenizer(path)
    tensors, dtypes = {}, set()
    for name, shape, dtype in _headers(path):
        tensors[name] = shape
        dtypes.add(dtype)
    return Folder(path, config, family, tensors, frozenset(dtypes))


def folder_at(where: str | Path) -> Path | None:
    """The folder of that name, its ~ expanded; None where there is none, or no system could have one."""
    try:
        path = Path(where).expanduser()
        return path if path.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, the home of nobody
        return None


def kind_of(path: Path) -> str | None:
    """How the model in a folder tells the order, by its config alone; None where that cannot be said."""
    found = folder_at(path)
    try:
        return _kind(found, (found / "config.json").stat().st_mtime_ns) if found else None
    except OSError:
        return None


@lru_cache(maxsize=64)  # a page asks several times a run; a file that has changed is read again
def _kind(path: Path, _changed: int) -> str | None:
    try:
        config = read_json(path, "config.json")
        return family_of(config).kind if config else None
    except Refusal:
        return None


def refused(text: Text, path: Path, **values: Any) -> Refusal:
    return Refusal(text, field="model", path=shown(str(path), 80), **values)


def _file(path: Path, name: str) -> Path | None:
    """A plain file of the folder, or None; a link may only lead into the folder or a hub cache's ``blobs``."""
    file = path / name
    try:
        if not file.exists() and not file.is_symlink():
            return None
    except (OSError, ValueError):  # no name that a file can have
        return None
    target, home = file.resolve(), path.resolve()
    if not target.is_file():
        raise refused(Text("{file} in {path} is not a plain file", "{path} 里的 {file} 不是普通文件"), path, file=name)
    cache = home.parent.parent / "blobs"  # snapshots/<revision>/config.json -> ../../blobs/<hash>
    if home not in target.parents and target.parent != cache:
        raise refused(
            Text("{file} in {path} is a link that leads out of the folder", "{path} 里的 {file} 是指向文件夹外的链接"),
            path,
            file=name,
        )
    return file


def read_json(path: Path, name: str) -> dict[str, Any] | None:
    """The JSON object in a file of the folder; None where there is none."""
    file = _file(path, name)
    if file is None:
        return None
    with file.open("rb") as stream:
        return read_config(stream.read(1_000_001))  # one more than is allowed, never all of it


def _check_sizes(config: Mapping[str, Any]) -> None:
    for keys, most in SIZES:
        for key in keys:
            value = config.get(key)
            if value is None and (key in _OPTIONAL or key not in config):
                continue
            whole_number(key, value, 1, most)
    kind = config.get("position_embedding_type", "absolute")
    if kind not in ("absolute", None):
        raise Refusal(
            Text(
                "`position_embedding_type` must be absolute, got {got}",
                "`position_embedding_type` 只能是 absolute，现在是 {got}",
            ),
            field="position_embedding_type",
            got=shown(kind),
        )


def _check_quantised(config: Mapping[str, Any]) -> None:
    if config.get("quantization_config") is not None:
        raise Refusal(
            Text(
                "quantised weights are not read: config.json has a `quantization_config`",
                "不读量化过的权重：config.json 里有 `quantization_config`",
            ),
            field="quantization_config",
        )


def _check_tokenizer(path: Path) -> None:
    found = [names for names in TOKENIZERS if all(_file(path, name) for name in names)]
    if not found:
        raise refused(
            Text(
                "the folder {path} has no tokenizer: one of {allowed} is needed",
                "文件夹 {path} 里没有分词器：需要 {allowed} 之一",
            ),
            path,
            allowed=", ".join(" + ".join(names) for names in TOKENIZERS),
        )
    for name in (name for names in found for name in names):
        size = (path / name).stat().st_size
        if size > MAX_TOKENIZER:
            raise refused(
                Text(
                    "{file} in {path} has {size:,} bytes; up to {limit:,} are read",
                    "{path} 里的 {file} 有 {size:,} 字节；最多读 {limit:,} 字节",
                ),
                path,
                file=name,
                size=size,
                limit=MAX_TOKENIZER,
            )


def _weight_files(path: Path) -> list[Path]:
    single, index = _file(path, "model.safetensors"), read_json(path, "model.safetensors.index.json")
    if single:
        return [single]
    if index:
        given = index["weight_map"].values() if isinstance(index.get("weight_map"), dict) else ()
        names = sorted(set(given)) if all(isinstance(name, str) for name in given) else []
        bad = [name for name in names if "/" in name or "\\" in name]
        files = [] if bad or not 0 < len(names) <= MAX_SHARDS else [_file(path, name) for name in names]
        if not files or None in files:
            raise refused(
                Text(
                    "model.safetensors.index.json in {path} names files that are not in the folder",
                    "{path} 里的 model.safetensors.index.json 列出的文件不在文件夹里",
                ),
                path,
            )
        return [file for file in files if file]
    pickles = sorted(file.name for file in path.iterdir() if file.suffix in PICKLES)
    if pickles:
        raise refused(
            Text(
                "weights are read from .safetensors only, since other formats can run code; {path} has {got}",
                "权重只读 .safetensors，因为别的格式可能运行代码；{path} 里只有 {got}",
            ),
            path,
            got=shown(", ".join(pickles), 80),
        )
    raise refused(Text("the folder {path} has no model.safetensors", "文件夹 {path} 里没有 model.safetensors"), path)


def _headers(path: Path) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Name, shape and type of every tensor; the header is checked against the file by safetensors."""
    from safetensors import SafetensorError, safe_open

    for file in _weight_files(path):
        try:
            with safe_open(file, framework="np") as opened:
                for name in opened.keys():  # noqa: SIM118 (no mapping)
                    part = opened.get_slice(name)
                    yield name, tuple(part.get_shape()), part.get_dtype()
        except (SafetensorError, OSError) as error:
            raise refused(
                Text("{file} in {path} is damaged: {why}", "{path} 里的 {file} 已损坏：{why}"),
                path,
                file=file.name,
                why=shown(str(error), 80),
            ) from None
