"""A model as a link carries it: the name of a well-known one, or the part of a config.json that concerns RoPE."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from posviz.encodings.config_json import read_config
from posviz.encodings.diagnosis import Finding, diagnose
from posviz.encodings.known_models import known_models
from posviz.encodings.model_config import essential, ropes_of
from posviz.encodings.model_rope import ModelRope
from posviz.types import Refusal, Text, shown

LONGEST_LINK = 12_000  # characters of settings that still travel in a link


class Model(NamedTuple):
    """What a parameter means: title, where the numbers are from ("" if pasted), settings, RoPE by layer, findings."""

    title: str
    source: str
    config: Mapping[str, Any]
    ropes: Mapping[str, ModelRope]
    findings: tuple[Finding, ...]


@lru_cache(maxsize=64)
def model(raw: str) -> Model:
    """The model that a parameter's text stands for; :class:`posviz.Refusal` names what is wrong with it."""
    known = known_models()
    if raw in known:
        title, source, config = known[raw].title, known[raw].source, known[raw].config
    elif raw.lstrip().startswith("{"):
        if len(raw) > LONGEST_LINK:
            raise too_long(len(raw))
        config = read_config(raw)
        title, source = shown(config.get("model_type") or "config.json", 24), ""
    else:
        raise Refusal(
            Text(
                "a model must be one of {allowed}, or a JSON object, got {got}",
                "模型必须是 {allowed} 之一，或一个 JSON 对象，现在是 {got}",
            ),
            field="model",
            allowed=", ".join(known),
            got=shown(raw) or "“”",
        )
    return Model(title, source, config, ropes_of(config), tuple(diagnose(config)))


def too_long(size: int) -> Refusal:
    return Refusal(
        Text(
            "what the file says about RoPE has {size:,} characters; up to {limit:,} are taken",
            "文件里关于 RoPE 的部分有 {size:,} 个字符；最多接受 {limit:,} 个",
        ),
        field="config",
        size=size,
        limit=LONGEST_LINK,
    )


def from_file(text: str | bytes) -> str:
    """The parameter's text for a pasted or uploaded config.json, checked; refused with one sentence."""
    raw = json.dumps(essential(read_config(text)), ensure_ascii=False, separators=(",", ":"))
    if len(raw) > LONGEST_LINK:
        raise too_long(len(raw))
    model(raw)
    return raw


def read(name: str, raw: str) -> str:
    """A parameter that names a model: its own text, after it could be read."""
    model(raw)
    return raw


def read_optional(name: str, raw: str) -> str:
    """The same, or nothing: no second model."""
    return raw if raw in ("", "none") else read(name, raw)
