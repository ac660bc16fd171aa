"""The poems the twins are trained on, their vocabulary and batches.

``poems.txt.gz`` is made by ``scripts/make_poems.py``, which says where the texts are from.
"""

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import torch

from posviz.types import Refusal, Text, shown

FILE = Path(__file__).with_name("poems.txt.gz")
VOCABULARY = Path(__file__).with_name("vocabulary.txt")
FORMS = ("quatrain", "verse", "song")
PAD, UNKNOWN, END = "⟨pad⟩", "⟨?⟩", "⟨end⟩"
# A text begins with its form: a quatrain ends after four lines, a verse goes on, a song is free.
STARTS = {form: f"⟨{form}⟩" for form in FORMS}
SPECIAL = (PAD, UNKNOWN, END, *STARTS.values())
MARKS = "，。？！；、"
TRAINED_LEN = 34  # start, up to 32 characters and marks, end
MIN_COUNT = 20  # rarer characters are unknown: 0.85 % of the training text


@cache
def poems(split: str, form: str) -> tuple[str, ...]:
    """Texts of a split ("train", "held_out") and form, in the file's order."""
    return tuple(text for where, kind, text in _rows() if (where, kind) == (split, form))


@cache
def _rows() -> tuple[tuple[str, str, str], ...]:
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        rows = (tuple(line.rstrip("\n").split("\t")) for line in lines if not line.startswith("#"))
        return tuple(row for row in rows if len(row) == 3)


def count_vocabulary() -> tuple[str, ...]:
    """Special tokens, marks, then the characters of the training texts by how often they occur."""
    counts = Counter(c for form in FORMS for text in poems("train", form) for c in text)
    common = [c for c, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= MIN_COUNT]
    return (*SPECIAL, *MARKS, *(c for c in common if c not in MARKS))


@cache
def vocabulary() -> tuple[str, ...]:
    """``count_vocabulary`` as it was counted for the training, one piece a line: an app need not read the poems."""
    return tuple(VOCABULARY.read_text("utf-8").splitlines())


@cache
def index() -> dict[str, int]:
    return {piece: i for i, piece in enumerate(vocabulary())}


def start(form: str) -> str:
    """The piece that a text of this form begins with."""
    if form not in FORMS:
        raise Refusal(
            Text("`form` must be one of {allowed}, got {got}", "`form` 只能是 {allowed} 之一，现在是 {got}"),
            field="form",
            allowed=", ".join(FORMS),
            got=shown(form),
        )
    return STARTS[form]


def encode(text: str, form: str = "song", *, end: bool = False) -> list[int]:
    """Start, one id for each character (unknown ones too), and the end if wanted."""
    known = index()
    ids = [known[start(form)], *(known.get(c, known[UNKNOWN]) for c in text)]
    return [*ids, known[END]] if end else ids


def padded(rows: Sequence[Sequence[int]], width: int) -> torch.Tensor:
    """(N, width) int64, filled up with the padding's id 0."""
    result = torch.zeros(len(rows), width, dtype=torch.int64)
    for i, row in enumerate(rows):
        result[i, : len(row)] = torch.tensor(row)
    return result


@cache
def training_rows() -> torch.Tensor:
    """(N, TRAINED_LEN) int64: quatrains and songs with their end; of a verse only how it begins."""
    rows = [encode(text, form, end=form != "verse") for form in FORMS for text in poems("train", form)]
    return padded(rows, TRAINED_LEN)


def batches(seed: int, size: int) -> Iterator[torch.Tensor]:
    """(size, TRAINED_LEN) rows for ever: every row once, in a new order each time; the same for every twin."""
    rows, generator = training_rows(), torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(rows), generator=generator)
        for i in range(0, len(rows) - size + 1, size):
            yield rows[order[i : i + size]]
