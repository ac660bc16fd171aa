"""From a folder or a hub's name to a :class:`Pretrained`: looked at first, loaded second, checked last."""

import importlib
import json
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from posviz.encodings import make, rope_from_config
from posviz.models.pretrained import folder as folders
from posviz.models.pretrained import hub
from posviz.models.pretrained.families import Family
from posviz.models.pretrained.limits import Limits, from_environment
from posviz.models.pretrained.model import Position, Pretrained
from posviz.types import Refusal, Text, shown

Progress = Callable[[float, Text], None]
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
        config = _config(folder)
        kind = _class(folder, config)
        _check_weights(folder, config, kind, limits, name)
        position = _position(folder, config)
        say(0.5, Text("loading the weights", "载入权重"))
        network, has_head = _network(folder, config, kind)
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
        path = Path(text).expanduser()
        if isinstance(where, Path) or path.is_dir() or not hub.is_name(text):
            return path, path.name or path.resolve().name
    check_installed()
    hub.check_allowed(text, limits)
    if not hub.is_name(text):
        raise folders._refused(Text("{path} is not a model's name", "{path} 不是模型的名字"), Path(text))
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


def _unreadable(folder: folders.Folder, error: Exception) -> Refusal:
    """One sentence for whatever transformers had to say about a config."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Refusal(
        Text(
            "config.json does not describe a {family} model: {why}",
            "config.json 描述的不是一个 {family} 模型：{why}",
        ),
        field="config",
        family=folder.family.title,
        why=shown(lines[-1] if lines else type(error).__name__, 120),
    )


def _config(folder: folders.Folder) -> Any:
    from transformers import AutoConfig

    try:
        config = AutoConfig.for_model(**folder.config)
        config.name_or_path = ""
    except Exception as error:
        raise _unreadable(folder, error) from None
    config._attn_implementation = "eager"
    return config


def _class(folder: folders.Folder, config: Any) -> Any:
    """The class that is loaded; of a T5 without decoder weights, the encoder alone."""
    import transformers

    family = folder.family
    if family.decoder is not None and not any(name.startswith("decoder.") for name in folder.tensors):
        return getattr(transformers, {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}[config.model_type])
    return getattr(transformers, family.auto)


def _empty(kind: Any, config: Any, family: Family) -> torch.nn.Module:
    """The network without memory for its weights."""
    options = {} if family.has_head else {"add_pooling_layer": False}
    with torch.device("meta"):
        return kind.from_config(config, **options) if hasattr(kind, "from_config") else kind(config, **options)


def _check_weights(folder: folders.Folder, config: Any, kind: Any, limits: Limits, name: str) -> None:
    """Compare what the config asks for with what the files hold, before anything is allocated.

    A layer of a file that claims other shapes, or a config that claims more than the files have, ends here.
    """
    try:
        asked = _parameters(folder)
        limits.check_parameters(asked, name)
        network = _empty(kind, config, folder.family)
        wanted = sum(p.numel() for p in network.parameters())
    except Refusal:
        raise
    except Exception as error:
        raise _unreadable(folder, error) from None
    limits.check_parameters(wanted, name)
    head = config.vocab_size * config.hidden_size if folder.family.has_head else 0  # may be tied, or left out
    if wanted - head > folder.numbers:
        raise Refusal(
            Text(
                "config.json describes {want:,} weights, but the files hold {got:,}",
                "config.json 描述了 {want:,} 个权重，而文件里只有 {got:,} 个",
            ),
            field="model",
            want=wanted - head,
            got=folder.numbers,
        )


def _parameters(folder: folders.Folder) -> int:
    """A lower bound of a model's size from the numbers of its config alone: embeddings and attention."""

    def first(*keys: str) -> int:
        return next((folder.config[key] for key in keys if folder.config.get(key) is not None), 1)

    width = first("hidden_size", "n_embd", "d_model")
    layers = first("num_hidden_layers", "n_layer", "num_layers")
    head = first("num_attention_heads", "n_head", "num_heads") * first("head_dim", "d_kv")
    table = first("max_position_embeddings", "n_positions") if folder.family.kind == "absolute" else 0
    inner = first("intermediate_size", "n_inner", "d_ff")
    return width * (first("vocab_size") + table + layers * (2 * head + inner + width))


def _network(folder: folders.Folder, config: Any, kind: Any) -> tuple[torch.nn.Module, bool]:
    options = {} if folder.family.has_head else {"add_pooling_layer": False}
    try:
        network, info = kind.from_pretrained(
            folder.path,
            config=config,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation="eager",
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise _weights(folder, shown(lines[0] if lines else type(error).__name__, 160)) from None
    missing = sorted(info["missing_keys"])
    has_head = folder.family.has_head and kind.__name__.startswith("Auto")
    if has_head and missing == ["lm_head.weight"]:
        missing, has_head = [], False
    if missing:
        raise Refusal(
            Text(
                "the weight files lack {count} tensors of the model, {name} among them",
                "权重文件缺少模型的 {count} 个张量，其中有 {name}",
            ),
            field="model",
            count=len(missing),
            name=shown(missing[0], 80),
        )
    for name, parameter in network.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            bad = parameter.numel() - int(torch.isfinite(parameter).sum())
            raise Refusal(
                Text(
                    "weights must be finite, but {name} holds {count:,} NaN or infinite numbers",
                    "权重必须是有限数，但 {name} 里有 {count:,} 个 NaN 或无穷大",
                ),
                field="model",
                name=shown(name, 80),
                count=bad,
            )
    return network.eval().requires_grad_(False), has_head


def _weights(folder: folders.Folder, why: str) -> Refusal:
    return Refusal(
        Text("the weights in {path} do not fit config.json: {why}", "{path} 里的权重和 config.json 对不上：{why}"),
        field="model",
        path=shown(str(folder.path), 80),
        why=why,
    )


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
    about = folder.path / ABOUT
    provenance = json.loads(about.read_text("utf-8")) if about.is_file() and about.stat().st_size < 100_000 else {}
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


def cells(model: Pretrained, tokens: int) -> int:
    """Weights of one trace, heads x layers x tokens^2."""
    return math.prod((model.n_layers, model.n_heads, tokens, tokens))
