"""The registry of position encodings. A new one is one file, one line here, and its tests."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from posviz.encodings.alibi import Alibi
from posviz.encodings.base import Capabilities, Claim, Encoding, Knob, Model, Paper, PositionModule
from posviz.encodings.config_json import read_config
from posviz.encodings.conformer import Conformer
from posviz.encodings.conv import Conv
from posviz.encodings.cope import Cope
from posviz.encodings.deberta import Deberta
from posviz.encodings.fire import Fire
from posviz.encodings.kerple import Kerple
from posviz.encodings.learned import Learned
from posviz.encodings.model_config import rope_from_config
from posviz.encodings.model_rope import ModelRope
from posviz.encodings.mrope import MRope
from posviz.encodings.none import NoPE
from posviz.encodings.rope import Rope
from posviz.encodings.rope_2d import Rope2D
from posviz.encodings.sandwich import Sandwich
from posviz.encodings.shaw import Shaw
from posviz.encodings.sincos_2d import SinCos2D
from posviz.encodings.sinusoidal import Sinusoidal
from posviz.encodings.t5 import T5
from posviz.encodings.time2vec import Time2Vec
from posviz.encodings.transformer_xl import TransformerXL
from posviz.encodings.xpos import XPos
from posviz.types import Refusal, Text, shown

ENCODINGS: Mapping[str, type[Encoding]] = MappingProxyType(
    {
        "none": NoPE,
        "sinusoidal": Sinusoidal,
        "learned": Learned,
        "rope": Rope,
        "alibi": Alibi,
        "t5": T5,
        "shaw": Shaw,
        "transformer_xl": TransformerXL,
        "deberta": Deberta,
        "xpos": XPos,
        "kerple": Kerple,
        "fire": Fire,
        "sandwich": Sandwich,
        "cope": Cope,
        "time2vec": Time2Vec,
        "conv": Conv,
        "conformer": Conformer,
        "sincos_2d": SinCos2D,
        "rope_2d": Rope2D,
        "mrope": MRope,
    }
)

# What a lecture needs first: shown side by side where there is no room for all.
BASICS = ("none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw")


def make(name: str, /, **parameters: Any) -> Encoding:
    """The spec of the encoding ``name``; :class:`posviz.Refusal` (a ValueError) on anything it cannot take."""
    if not isinstance(name, str) or name not in ENCODINGS:
        raise Refusal(
            Text(
                "`encoding` must be one of {allowed}, got {got}",
                "`encoding` 只能是 {allowed} 之一，现在是 {got}",
            ),
            field="encoding",
            allowed=", ".join(ENCODINGS),
            got=shown(name),
        )
    cls = ENCODINGS[name]
    known = [f.name for f in dataclasses.fields(cls) if f.init]
    for parameter in parameters:
        if parameter not in known:
            raise Refusal(
                Text(
                    "encoding {name} has no parameter `{got}`; it has {known}",
                    "编码 {name} 没有参数 `{got}`；它的参数有：{known}",
                ),
                field=parameter,
                name=name,
                got=shown(parameter),
                known=", ".join(known) or Text("none", "无"),
            )
    return cls(**parameters)


__all__ = [
    "BASICS",
    "ENCODINGS",
    "Capabilities",
    "Claim",
    "Encoding",
    "Knob",
    "Model",
    "ModelRope",
    "Paper",
    "PositionModule",
    "make",
    "read_config",
    "rope_from_config",
]
