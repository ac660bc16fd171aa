"""What may be loaded and traced: everything a person has on a laptop, an allow-list on a hosted server."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from posviz.types import MAX_TOKENS, Refusal, Text, shown


@dataclass(frozen=True)
class Limits:
    """Upper bounds, all checked before anything of that size is allocated.

    tokens: of a sentence, special ones included. parameters: numbers in the weights (4 bytes each once loaded).
    cells: layers of attention x heads x tokens^2 of one trace. folders: whether a folder may be named.
    names: hub names that may be loaded, None for any.
    """

    tokens: int = MAX_TOKENS
    parameters: int = 1_600_000_000
    cells: int = 128_000_000
    folders: bool = True
    names: tuple[str, ...] | None = None

    @property
    def hosted(self) -> bool:
        return not self.folders

    def check_parameters(self, count: int, name: str) -> None:
        if count > self.parameters:
            raise Refusal(
                Text(
                    "{name} has {got:,} parameters; up to {limit:,} are loaded here",
                    "{name} 有 {got:,} 个参数；这里最多载入 {limit:,} 个",
                ),
                field="model",
                name=shown(name),
                got=count,
                limit=self.parameters,
            )

    def check_sentence(self, tokens: int, layers: int, heads: int, rows: int | None) -> None:
        """Refuse a sentence longer than this, than the model's table of positions, or with too many weights."""
        allowed = self.tokens if rows is None else min(self.tokens, rows)
        if tokens > allowed:
            why = Text("are shown", "能显示") if allowed == self.tokens else Text("have a position", "有位置")
            raise Refusal(
                Text(
                    "the sentence has {got:,} tokens in this model, special ones included; up to {limit:,} {why}",
                    "这个句子在该模型里有 {got:,} 个词元（含特殊词元）；{why}的最多 {limit:,} 个",
                ),
                field="text",
                got=tokens,
                limit=allowed,
                why=why,
            )
        cells = layers * heads * tokens**2
        if cells > self.cells:
            raise Refusal(
                Text(
                    "{layers} layers of {heads} heads on {n} tokens are {cells:,} weights; up to {limit:,} are computed: "
                    "take a shorter sentence",
                    "{layers} 层、每层 {heads} 个头、{n} 个词元共有 {cells:,} 个权重；最多计算 {limit:,} 个：请缩短句子",
                ),
                field="text",
                layers=layers,
                heads=heads,
                n=tokens,
                cells=cells,
                limit=self.cells,
            )


def from_environment(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits of this process: POSVIZ_HOSTED=1 closes folders and all names but POSVIZ_ALLOWED (commas between)."""
    if environment.get("POSVIZ_HOSTED", "") in ("", "0"):
        return Limits()
    names = tuple(filter(None, (name.strip() for name in environment.get("POSVIZ_ALLOWED", "").split(","))))
    return Limits(parameters=200_000_000, cells=80_000_000, folders=False, names=names)
