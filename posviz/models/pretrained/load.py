"""From a folder or a hub's name to a :class:`Pretrained`: looked at first, loaded second, checked last."""

import importlib.util
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from posviz.encodings import make, rope_from_config
from posviz.models.pretrained import folder as folders
from posviz.models.pretrained import hub, weights
from posviz.models.pretrained.limits import Limits, from_environment
from posviz.models.pretrained.model import Position, Pretrained, Progress
from posviz.types import Refusal, Text, shown

ABOUT = "posviz.json"  # written by `make models` beside the weights
COMMAND = "make models"


def installed() -> bool:
    """Whether the optional extra is there; nothing of it is loaded."""
    return all(importlib.util.find_spec(name) is not None for name in ("transformers", "tokenizers", "safetensors"))


def check_installed() -> None:
    if not installed():
        raise Refusal(
            Text(
                "real models need the packages of the extra `models`: run {command}",
                "真实模型需要 `models` 这一组可选的软件包：请运行 {command}",
            ),
            field="model",
            command=f"`{COMMAND}`",
        )


def load(where: str | Path, *, limits: Limits | None = None, progress: Progress | None = None) -> Pretrained:
    """A model from a local folder or by its name on the Hugging Face hub.

    Weights as safetensors only, no code that comes with a model, eager attention, float32. limits: default as the
    process' environment says. progress: called with a share from 0 to 1 and what is being done.
    Raises :class:`Refusal`.
    """
    limits, say = limits or from_environment(), progress or (lambda share, text: None)
    path, name = _place(where, limits, say)
    check_installed()
    say(0.3, Text("looking at the files", "检查文件"))
    folder = folders.look(path)
    limits.check_parameters(folder.numbers, name)
    with _quiet():
        config = weights.config_of(folder)
        kind = weights.class_of(folder, config)
        weights.check_weights(folder, config, kind, limits, name)
        position = _position(folder, config)
        say(0.5, Text("loading the weights", "载入权重"))
        network, has_head = weights.read_network(folder, config, kind)
        say(0.9, Text("loading the tokenizer", "载入分词器"))
        backend, special, unknown = _tokenizer(folder, config)
    say(1.0, Text("loaded", "已载入"))
    return Pretrained(
        name=name,
        family=folder.family,
        network=network,
        backend=backend,
        special_ids=special,
        unknown_id=unknown,
        position=position,
        limits=limits,
        card=_card(folder, network, position),
        has_head=has_head,
    )


def _place(where: str | Path, limits: Limits, say: Progress) -> tuple[Path, str]:
    """The folder and what it is called; on a server only names of the allow-list are looked at."""
    text = str(where).strip()
    if isinstance(where, Path) or not limits.hosted:
        if isinstance(where, Path) and limits.hosted:
            hub.check_allowed(text, limits)
        found = folders.folder_at(text)
        if isinstance(where, Path) or found or not hub.is_name(text):
            path = found or Path(text)
            return path, path.name or path.resolve().name
    check_installed()
    hub.check_allowed(text, limits)
    if not hub.is_name(text):
        raise folders.refused(Text("{path} is not a model's name", "{path} 不是模型的名字"), Path(text))
    say(0.0, Text("asking the hub", "询问 hub"))
    return hub.fetch(text, limits), text


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers writes bars and advice to the terminal; what matters is refused here in one sentence."""
    from transformers.utils import logging as their_logging

    before = their_logging.get_verbosity()
    their_logging.set_verbosity(logging.CRITICAL)
    their_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        their_logging.set_verbosity(before)


def _tokenizer(folder: folders.Folder, config: Any) -> tuple[Any, frozenset[int], int | None]:
    """The fast tokenizer without truncation and padding, the ids of its special tokens, and the unknown one."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder.path, config=config, local_files_only=True, trust_remote_code=False, use_fast=True
        )
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Refusal(
            Text("the tokenizer in {path} cannot be read: {why}", "{path} 里的分词器读不了：{why}"),
            field="model",
            path=shown(str(folder.path), 80),
            why=shown(lines[0] if lines else type(error).__name__, 120),
        ) from None
    if backend.get_vocab_size() > config.vocab_size and max(backend.get_vocab().values()) >= config.vocab_size:
        raise Refusal(
            Text(
                "the tokenizer has ids up to {got:,}, but the model's vocabulary has {limit:,} rows",
                "分词器的编号到 {got:,}，而模型的词表只有 {limit:,} 行",
            ),
            field="model",
            got=max(backend.get_vocab().values()),
            limit=config.vocab_size,
        )
    return backend, frozenset(tokenizer.all_special_ids), tokenizer.unk_token_id


def _position(folder: folders.Folder, config: Any) -> Position:
    family = folder.family
    if family.kind == "absolute":
        rows = config.max_position_embeddings - family.first_row
        spec = make("learned", counting="roberta" if family.first_row else "bert")
        text = Text(
            "learned: one trained vector for each of {rows:,} positions, added to the words",
            "可学习：{rows:,} 个位置各有一个训练出来的向量，加到词上",
        ).filled(rows=rows)
        return Position("absolute", "learned", spec, rows, text)
    if family.kind == "bias":
        spec = make(
            "t5",
            num_buckets=config.relative_attention_num_buckets,
            max_distance=config.relative_attention_max_distance,
        )
        text = Text(
            "T5 bias: {buckets} trained numbers a head, added to the scores by distance",
            "T5 偏置：每个头 {buckets} 个训练出来的数，按距离加到分数上",
        ).filled(buckets=spec.num_buckets)
        return Position("bias", "t5", spec, None, text)
    found = rope_from_config(folder.config)
    if isinstance(found, dict):
        raise Refusal(
            Text(
                "the model has a RoPE of its own for each kind of layer ({got}); one for all is needed",
                "模型的各类层有各自的 RoPE（{got}）；这里要求所有层相同",
            ),
            field="model",
            got=", ".join(found),
        )
    text = Text(
        "RoPE: queries and keys turn by their position, base {base:,g}", "RoPE：查询和键按位置旋转，base {base:,g}"
    ).filled(base=found.base)
    return Position("rotary", "rope", found, None, text)


def _card(folder: folders.Folder, network: torch.nn.Module, position: Position) -> dict[str, Any]:
    provenance = folders.read_json(folder.path, ABOUT) or {}
    config = network.config
    return {
        "family": folder.family.title,
        "model_type": config.model_type,
        "parameters": sum(p.numel() for p in network.parameters()),
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "d_model": config.hidden_size,
        "vocabulary": config.vocab_size,
        "positions": position.text.en,
        "stored_as": ", ".join(sorted(folder.dtypes)),
        "licence": provenance.get("licence") or _licence(folder.path),
        "provenance": provenance,
    }


def _licence(path: Path) -> str:
    """What the model's card says, "" where it says nothing."""
    card = path / "README.md"
    if not card.is_file():
        return ""
    with card.open("rb") as stream:
        text = stream.read(4096).decode("utf-8", "replace")
    match = re.search(r"^license:\s*([\w.-]{1,40})\s*$", text, re.MULTILINE)
    return match[1] if match else ""
