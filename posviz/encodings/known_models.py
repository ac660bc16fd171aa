"""Well-known models' RoPE settings, from ``models.json``: facts with their source, nothing else of the files."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple


class KnownModel(NamedTuple):
    """title: a name to show; source: the model's own file; seen: where the values were read; config: the settings."""

    title: str
    source: str
    seen: str
    config: Mapping[str, Any]


@cache
def known_models() -> Mapping[str, KnownModel]:
    """Key -> model, in the order of the file."""
    listed = json.loads(Path(__file__).with_name("models.json").read_text("utf-8"))["models"]
    return MappingProxyType({m["key"]: KnownModel(m["title"], m["source"], m["seen"], m["config"]) for m in listed})
