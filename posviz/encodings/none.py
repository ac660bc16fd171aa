"""No position at all (NoPE): the control in every comparison."""

from dataclasses import dataclass, field
from typing import ClassVar

from posviz.encodings.base import Capabilities, Encoding, Model, Paper
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class NoPE(Encoding):
    """Attention without positions. Without a mask, permuting the input permutes the output."""

    name: str = field(default="none", init=False)
    kind: ClassVar[str] = "none"
    title: ClassVar[Text] = Text("no position", "无位置")
    summary: ClassVar[Text] = Text(
        "Nothing is added: without a mask, shuffling the words only shuffles the outputs. "
        "A causal mask alone already lets a deep model count.",
        "什么都不加。没有掩码时，打乱词序只会打乱输出的次序。仅凭因果掩码，深层模型就已经能数位置。",
    )
    formula: ClassVar[str] = r"\mathrm{Attention}(PX) = P\,\mathrm{Attention}(X)"
    paper: ClassVar[Paper] = Paper(
        "Haviv et al.",
        2022,
        "Transformer Language Models without Positional Encodings Still Learn Positional Information",
        "2203.16634",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=False
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("Command A", "2504.00698"),)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        return r"\mathrm{PE} = 0"
