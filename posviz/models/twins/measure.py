"""What the position encoding did to each twin, measured on poems none of them has seen.

``python -m posviz.models.twins measure`` writes ``results.json``; every number on a page comes from there.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posviz import similarity
from posviz.models.twins import corpus, sample, store
from posviz.models.twins.model import SPECS, Twin, losses

SAMPLES = 1000
HEAD_POEMS = 200
# Positions of the tokens that are guessed, first and last. A row of training has TRAINED_LEN tokens from 0 on, and its
# last is only ever a target: no twin was trained to guess from there.
LENGTHS = {"1x": (1, corpus.TRAINED_LEN - 1), "2x": (corpus.TRAINED_LEN, 66), "4x": (67, 128)}
# What the page begins with, written beforehand: a lecture does not wait for it.
PROMPTS = [{"opening": "春", "form": form, "temperature": 0.8, "seed": 0} for form in ("quatrain", "verse", "song")]
ROLES = ("previous", "first", "self", "column", "rhyme", "marks")


def measure(folder: Path, out: Path, samples: int = SAMPLES) -> dict[str, Any]:
    """Measure every trained twin in ``folder``, all its seeds, and write ``out``."""
    twins = {name: [store.load(name, seed, folder) for seed in _seeds(name, folder)] for name in SPECS}
    found = {name: _twin(trained, samples) for name, trained in twins.items() if trained}
    result = {
        "command": "python -m posviz.models.twins measure",
        "date": date.today().isoformat(),
        "samples": samples,
        "temperature": 1.0,
        "held_out": {form: len(corpus.poems("held_out", form)) for form in ("quatrain", "verse2", "verse4")},
        "lengths": {name: list(span) for name, span in LENGTHS.items()},
        "written": [
            {**prompt, "texts": {name: "".join(sample.write(twins[name][0].model, **prompt)) for name in found}}
            for prompt in PROMPTS
        ],
        "twins": found,
    }
    out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return result


def _seeds(name: str, folder: Path) -> list[int]:
    cards = (re.fullmatch(rf"{name}-(\d+)", path.stem) for path in folder.glob(f"{name}-*.json"))
    return sorted(int(match[1]) for match in cards if match)


def _twin(trained: Sequence[store.Trained], samples: int) -> dict[str, Any]:
    each = [_one(twin.model, samples) for twin in trained]
    told = ("command", "trained_steps", "date", "held_out_loss")
    summary: dict[str, Any] = {
        "seeds": [twin.model.seed for twin in trained],
        "cards": [{key: twin.card[key] for key in told} for twin in trained],
    }
    for key in ("loss", "loss_characters", "loss_marks", "well_formed", *(f"loss_{name}" for name in LENGTHS)):
        values = [found[key] for found in each]
        summary[key] = {"mean": _short(np.mean(values)), "each": [_short(v) for v in values]}
    summary["by_position"] = [_short(v, 3) for v in np.mean([found["by_position"] for found in each], axis=0)]
    # Heads have no order that two seeds share: all of the shipped twin, and the strongest of each seed.
    by_seed = [heads(twin.model) for twin in trained]
    summary["heads"] = by_seed[0]
    summary["strongest"] = {role: [max(head[role]["share"] for head in found) for found in by_seed] for role in ROLES}
    if trained[0].name == "learned":
        summary["table"] = learned_table(trained[0].model)
    return summary


def _one(model: Twin, samples: int) -> dict[str, Any]:
    quatrains = _rows("quatrain", end=True)
    nats, target = _losses(model, quatrains), quatrains[:, 1:]
    is_mark = torch.isin(target, torch.tensor([corpus.index()[mark] for mark in corpus.MARKS]))
    is_character = (target >= len(corpus.SPECIAL) + len(corpus.MARKS)) | (target == corpus.index()[corpus.UNKNOWN])
    by_position = _by_position(model)
    texts = sample.write_many(model, samples)
    return {
        "loss": float(nats[target != 0].mean()),
        "loss_characters": float(nats[is_character].mean()),
        "loss_marks": float(nats[is_mark].mean()),
        "by_position": by_position,
        # The mean over positions, so that every position counts alike.
        **{f"loss_{name}": float(np.mean(by_position[first - 1 : last])) for name, (first, last) in LENGTHS.items()},
        "well_formed": sum(map(sample.well_formed, texts)) / len(texts),
    }


def _rows(form: str, *, end: bool) -> torch.Tensor:
    start = "quatrain" if form == "quatrain" else "verse"
    rows = [corpus.encode(text, start, end=end) for text in corpus.poems("held_out", form)]
    return corpus.padded(rows, max(map(len, rows)))


@torch.no_grad()
def _losses(model: Twin, ids: torch.Tensor) -> torch.Tensor:
    """(N, L - 1) float64 nats of every next token."""
    return torch.cat([losses(model, part).double() for part in ids.split(50)])


def _by_position(model: Twin) -> np.ndarray:
    """(128,): mean loss of the token at position 1, 2, ... of sixteen-line verse, lines of 5 and of 7 alike.

    Lines of 5 end at position 96; behind it only those of 7 are left, and a longer line is easier to
    guess at its marks. So each width is averaged by itself first, where it has that position.
    """
    ids = _rows("verse4", end=False)
    nats, there = _losses(model, ids).numpy(), (ids[:, 1:] != 0).numpy()
    short = there.sum(1) < 100
    with np.errstate(invalid="ignore"):
        means = [np.where(there[w], nats[w], 0).sum(0) / there[w].sum(0) for w in (short, ~short)]
    return np.nanmean(means, axis=0)[: LENGTHS["4x"][1]]


def heads(model: Twin, count: int = HEAD_POEMS) -> list[dict[str, Any]]:
    """Of every head: how much of its attention goes to each role, and how much would by chance.

    previous: the token before. first: the start. self: the token itself. column: the same place in the
    line before. rhyme: from the last character of a line to those of earlier lines. marks: to punctuation.
    Mean over the poems of the mean over the queries that have such a key and a choice (the start can only look at
    itself); error: standard error over poems; chance: attention spread evenly over all keys the mask allows.
    """
    texts = corpus.poems("held_out", "quatrain")[:count]
    found: dict[tuple[int, int, str], list[float]] = {}
    chance: dict[str, list[float]] = {role: [] for role in ROLES}
    twin = store.Trained(model.name, model, {})
    for text in texts:
        tokens = twin.tokenize(text, "quatrain")
        wanted = dict(_wanted(text, len(tokens)))
        layers = twin.trace(tokens).layers
        for role, cells in wanted.items():
            rows = cells.any(1)
            even = np.tril(np.ones_like(cells, dtype=float)) / np.arange(1, len(tokens) + 1)[:, None]
            chance[role].append(float((even * cells).sum(1)[rows].mean()))
            for i, layer in enumerate(layers):
                for h, share in enumerate((layer.weights * cells).sum(2)[:, rows].mean(1)):
                    found.setdefault((i, h, role), []).append(float(share))
    result = []
    for i in range(model.config.n_layers):
        for h in range(model.config.n_heads):
            scores = {role: np.array(found[i, h, role]) for role in ROLES}
            result.append(
                {
                    "layer": i,
                    "head": h,
                    **{
                        role: {
                            "share": _short(v.mean()),
                            "error": _short(v.std(ddof=1) / len(v) ** 0.5),
                            "chance": _short(np.mean(chance[role])),
                        }
                        for role, v in scores.items()
                    },
                }
            )
    return result


def _wanted(text: str, length: int) -> Iterator[tuple[str, np.ndarray]]:
    """(role, (L, L) bool): the keys that a role means, for each query."""
    i, j = np.indices((length, length))
    is_mark = np.array([False, *(c in corpus.MARKS for c in text)])
    width = int(np.argmax(is_mark))  # words and mark of one line, also the distance between columns
    ends = np.roll(is_mark, -1)  # the character before a mark
    ends[-1] = False
    yield "previous", (j == i - 1) & (i > 0)
    yield "first", (j == 0) & (i > 0)
    yield "self", (j == i) & (i > 0)
    yield "column", (j == i - width) & (i > width) & ~is_mark[:, None]
    yield "rhyme", ends[:, None] & ends[None, :] & (j < i)
    yield "marks", is_mark[None, :] & (j <= i) & np.cumsum(is_mark).astype(bool)[:, None]


def learned_table(model: Twin) -> dict[str, Any]:
    """The table of the learned twin: its trained rows, those it never used, and what it started from."""
    with torch.no_grad():
        table = model.position.weight.double().numpy()
    start = Twin("learned", seed=model.seed, config=model.config).position.weight.detach().double().numpy()
    used = corpus.TRAINED_LEN - 1  # the last token of a row is only ever a target

    def row(name: str, rows: np.ndarray) -> dict[str, Any]:
        cosine = np.array(similarity.matrix(torch.from_numpy(rows.copy()), "cosine"))
        np.fill_diagonal(cosine, -np.inf)
        nearest = np.abs(cosine.argmax(1) - np.arange(len(rows)))
        mean, spread = similarity.by_distance(torch.from_numpy(rows.copy()), "cosine")
        return {
            "rows": len(rows),
            "norm": _short(np.linalg.norm(rows, axis=1).mean()),
            "neighbour_is_nearest": _short((nearest == 1).mean()),
            "cosine_by_distance": [_short(v) for v in np.asarray(mean)[:8]],
            "spread_by_distance": [_short(v) for v in np.asarray(spread)[:8]],
            "name": name,
        }

    return {
        "trained": row("trained rows", table[:used]),
        "unused": row("rows never used", table[used:]),
        "start": row("the same rows before training", start[:used]),
    }


def _short(value: Any, digits: int = 5) -> float:
    return round(float(value), digits)
