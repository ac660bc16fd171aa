"""A model's configuration and weights: compared with the files before anything is allocated, finite when loaded."""

from typing import Any

import torch

from posviz.models.pretrained.families import Family
from posviz.models.pretrained.folder import Folder
from posviz.models.pretrained.limits import Limits
from posviz.types import Refusal, Text, shown

LABELS = ("num_labels", "id2label", "label2id")  # of classifiers; a name for each would be made, however many


def config_of(folder: Folder) -> Any:
    from transformers import AutoConfig

    try:
        config = AutoConfig.for_model(**{key: folder.config[key] for key in folder.config if key not in LABELS})
        config.name_or_path = ""
    except Exception as error:
        raise _unreadable(folder, error) from None
    config._attn_implementation = "eager"
    return config


def class_of(folder: Folder, config: Any) -> Any:
    """The class that is loaded; of a T5 without decoder weights, the encoder alone."""
    import transformers

    family = folder.family
    if family.decoder is not None and not any(name.startswith("decoder.") for name in folder.tensors):
        return getattr(transformers, {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}[config.model_type])
    return getattr(transformers, family.auto)


def check_weights(folder: Folder, config: Any, kind: Any, limits: Limits, name: str) -> None:
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


def _empty(kind: Any, config: Any, family: Family) -> torch.nn.Module:
    """The network without memory for its weights."""
    options = {} if family.has_head else {"add_pooling_layer": False}
    with torch.device("meta"):
        return kind.from_config(config, **options) if hasattr(kind, "from_config") else kind(config, **options)


def _parameters(folder: Folder) -> int:
    """A lower bound of a model's size from the numbers of its config alone: embeddings and attention."""

    def first(*keys: str) -> int:
        return next((folder.config[key] for key in keys if folder.config.get(key) is not None), 1)

    width = first("hidden_size", "n_embd", "d_model")
    layers = first("num_hidden_layers", "n_layer", "num_layers")
    head = first("num_attention_heads", "n_head", "num_heads") * first("head_dim", "d_kv")
    table = first("max_position_embeddings", "n_positions") if folder.family.kind == "absolute" else 0
    inner = first("intermediate_size", "n_inner", "d_ff")
    return width * (first("vocab_size") + table + layers * (2 * head + inner + width))


def read_network(folder: Folder, config: Any, kind: Any) -> tuple[torch.nn.Module, bool]:
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


def _weights(folder: Folder, why: str) -> Refusal:
    return Refusal(
        Text("the weights in {path} do not fit config.json: {why}", "{path} 里的权重和 config.json 对不上：{why}"),
        field="model",
        path=shown(str(folder.path), 80),
        why=why,
    )


def _unreadable(folder: Folder, error: Exception) -> Refusal:
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
