"""Twins that write: character by character, with a key-value cache, the same dice for all."""

import re
from collections.abc import Iterator

import torch

from posviz.models.twins import corpus
from posviz.models.twins.model import Twin

MAX_NEW = 96
_NEVER = tuple(corpus.SPECIAL.index(piece) for piece in (corpus.PAD, corpus.UNKNOWN, *corpus.STARTS.values()))
_END = corpus.SPECIAL.index(corpus.END)
_LINES = re.compile(f"([^{corpus.MARKS}]+)([{corpus.MARKS}])")


def probabilities(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """(..., V) -> (..., V): softmax of logits / temperature; padding, unknown and starts are never drawn."""
    scaled = logits.double() / max(temperature, 1e-6)
    scaled[..., list(_NEVER)] = -torch.inf
    return scaled.softmax(-1)


def draw(p: torch.Tensor, dice: torch.Tensor) -> torch.Tensor:
    """(B, V), (B,) in [0, 1) -> (B,): inverse of the cumulative distribution, pieces by how likely they are.

    Sorting makes equal dice mean the same for every twin: a low throw is a likely character in each.
    """
    ordered, pieces = p.sort(dim=-1, descending=True, stable=True)
    at = (ordered.cumsum(-1) <= dice[:, None] * ordered.sum(-1, keepdim=True)).sum(-1, keepdim=True)
    return pieces.gather(-1, at.clamp(max=p.shape[-1] - 1))[:, 0]


def throws(count: int, seed: int) -> torch.Tensor:
    """(count,) float64 in [0, 1): the dice of one text."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def write(
    model: Twin, opening: str, *, form: str = "quatrain", temperature: float = 0.8, seed: int = 0, limit: int = MAX_NEW
) -> Iterator[str]:
    """The characters that follow ``opening``, one at a time, until the end or ``limit``."""
    ids = corpus.encode(opening, form)
    room = min(limit, model.config.max_len - len(ids))
    dice, pieces = throws(max(room, 0), seed), corpus.vocabulary()
    logits, pasts = model(torch.tensor([ids]), last=True)
    for i in range(room):
        new = draw(probabilities(logits[:, -1], temperature), dice[i : i + 1])
        if int(new) == _END:
            return
        yield pieces[int(new)]
        if i + 1 < room:
            logits, pasts = model(new[:, None], pasts, last=True)


@torch.no_grad()
def write_many(
    model: Twin, count: int, *, form: str = "quatrain", temperature: float = 1.0, seed: int = 0
) -> list[str]:
    """``count`` texts from nothing at once, each with dice of its own; "" stands for one without an end."""
    room, pieces = corpus.TRAINED_LEN + 8, corpus.vocabulary()
    dice = torch.stack([throws(room, seed + i) for i in range(count)])
    new = torch.full((count,), corpus.SPECIAL.index(corpus.start(form)))
    texts: list[list[str]] = [[] for _ in range(count)]
    open_ = torch.ones(count, dtype=torch.bool)
    pasts = None
    for i in range(room):
        logits, pasts = model(new[:, None], pasts, last=True)
        new = draw(probabilities(logits[:, -1], temperature), dice[:, i])
        open_ &= new != _END
        if not open_.any():
            break
        for row in open_.nonzero()[:, 0].tolist():
            texts[row].append(pieces[int(new[row])])
    return ["" if still else "".join(text) for text, still in zip(texts, open_.tolist(), strict=True)]


def lines(text: str) -> list[tuple[str, str]]:
    """(words, mark) of each line; words behind the last mark are a line without one."""
    found = _LINES.findall(text)
    rest = text[sum(len(words) + len(mark) for words, mark in found) :]
    return [*found, (rest, "")] if rest else found


def well_formed(text: str) -> bool:
    """Whether a text is a quatrain: four lines of five characters, or of seven, each with its mark."""
    found = lines(text)
    widths = {len(words) for words, _ in found}
    return len(found) == 4 and widths in ({5}, {7}) and all(mark for _, mark in found)


def malformed_lines(text: str) -> list[int]:
    """Numbers of the finished lines that are not as long as the first, or whose first is neither 5 nor 7."""
    found = [words for words, mark in lines(text) if mark]
    if not found:
        return []
    width = len(found[0]) if len(found[0]) in (5, 7) else None
    return [i for i, words in enumerate(found) if len(words) != width]
