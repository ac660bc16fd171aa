"""Every number of the Myths page once more, with numpy alone, from the formulas and the shipped weights."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import posviz
from posviz import attention, myths, text
from posviz.models.twins import corpus
from posviz.myths import MYTHS, Case
from posviz.types import Dims

CASE = Case(Dims(d_model=64, n_heads=4), max_len=128, base=10_000.0)
TWINS = Path(posviz.__file__).parent / "models" / "twins"
E, HEADS = 16, 4


def values(key: str, case: Case = CASE) -> list[float]:
    return [number.value for number in myths.measure(key, case).numbers]


def frequencies(d: int, base: float = 1e4) -> np.ndarray:
    return base ** (-np.arange(0, d, 2) / d)


def sinusoids(length: int, d: int, base: float = 1e4) -> np.ndarray:
    angle = np.arange(length)[:, None] * frequencies(d, base)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


def normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def nearest(rows: np.ndarray) -> np.ndarray:
    alike = normalised(rows) @ normalised(rows).T
    np.fill_diagonal(alike, -2)
    return alike.argmax(axis=1)


def beside(found: np.ndarray) -> float:
    return float(np.mean([abs(int(q) - p) == 1 for p, q in enumerate(found)]))


def weights_of(name: str) -> dict[str, np.ndarray]:
    return {
        key: value.astype(np.float64) for key, value in load_file(TWINS / "weights" / f"{name}-0.safetensors").items()
    }


def test_falls():
    curve = sinusoids(2048, 64) @ sinusoids(1, 64)[0]
    steps = np.diff(curve)
    assert values("falls") == [int((steps > 1e-9).sum()), int(np.flatnonzero(steps > 1e-9)[0])]


def test_neighbours():
    drawn = torch.randn((128, 64), generator=torch.Generator().manual_seed(0)).numpy() * 0.02
    expected = [beside(nearest(sinusoids(128, 64))), beside(nearest(drawn.astype(np.float64)))]
    table = weights_of("learned")["position.weight"][: corpus.TRAINED_LEN - 1]
    trained = nearest(table)
    expected.append(beside(trained))
    assert values("neighbours") == pytest.approx(expected)
    assert expected[0] == 1 and max(expected[1:]) < 0.1
    # verse: lines of seven characters and a mark
    away = np.bincount(np.abs(trained - np.arange(len(trained))))
    said = myths.measure("neighbours", CASE).numbers[2].expected.en
    assert said == f"most often {away.argmax()} positions away" == "most often 8 positions away"


def test_coincide():
    rows = sinusoids(100_000, 64)
    apart = np.linalg.norm(rows - rows[1], axis=1)
    apart[1] = np.inf
    # position 1's nearest among all others, as a distance in positions
    assert values("coincide") == pytest.approx([apart[10_001], apart[2], abs(int(apart.argmin()) - 1)], rel=1e-7)


def test_unique():
    exact = sinusoids(8192, 64)
    rounded = torch.tensor(exact).to(torch.bfloat16).float().numpy()
    # bfloat16 keeps 8 significant bits: whole numbers, frequencies and their products are rounded to them
    positions, narrow = (torch.tensor(x).to(torch.bfloat16) for x in (np.arange(8192), frequencies(64)))
    angle = (positions[:, None] * narrow).float().numpy()
    careless = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    counted = [len({row.tobytes() for row in table}) for table in (exact, rounded, careless)]
    assert values("unique") == counted
    # 256 whole numbers below 256, 128 for every doubling up to 8192, and 8192, to which the last ones are rounded
    assert counted[2] == 256 + 128 * 5 + 1


def test_width():
    angles = [math.degrees(math.acos(np.cos(frequencies(d)).mean())) for d in (16, 64, 256, 1024)]
    assert values("width") == pytest.approx(angles, rel=1e-9)


def test_rope_decays():
    w = frequencies(128)
    kernel = np.cos(np.arange(1024)[:, None] * w).mean(axis=1)
    sums = np.cumsum(np.exp(1j * np.arange(1024)[:, None] * w), axis=1)  # S_1 ... S_64 for each distance
    bound = np.abs(sums).mean(axis=1)
    expected = [int((np.diff(kernel) > 1e-9).sum()), bound[:32].mean(), bound[-32:].mean()]
    assert values("rope_decays") == pytest.approx(expected, rel=1e-9)


def test_rope_endless():
    lengths = 2 * np.pi / frequencies(E)
    found = values("rope_endless")
    assert found[:2] == pytest.approx([int((lengths > 128).sum()), lengths.max()])
    assert found[2] == pytest.approx(grown("rope"), abs=1e-5)  # means of numbers with five decimals


def grown(name: str) -> float:
    twin = json.loads((TWINS / "results.json").read_text("utf-8"))["twins"][name]
    means = [np.mean(twin[f"loss_{length}"]["each"]) for length in ("1x", "4x")]
    return float(means[1] - means[0])


def test_extrapolate():
    found = values("extrapolate")
    angle = 1_000_000 * frequencies(64)
    assert found[0] == np.isfinite(np.concatenate([np.sin(angle), np.cos(angle)])).sum() == 64
    assert found[1] == pytest.approx(grown("sinusoidal"), abs=1e-5)  # both means are of numbers with five decimals


def test_pairings():
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    turn = np.exp(1j * np.arange(8)[:, None] * frequencies(16))
    half, inter = np.empty_like(x), np.empty_like(x)
    pairs = (x[:, :8] + 1j * x[:, 8:]) * turn
    half[:, :8], half[:, 8:] = pairs.real, pairs.imag
    pairs = (x[:, 0::2] + 1j * x[:, 1::2]) * turn
    inter[:, 0::2], inter[:, 1::2] = pairs.real, pairs.imag
    found = values("pairings")
    assert found[0] < 1e-15
    assert found[1] == pytest.approx(np.abs(half - inter).max())


# ---- attention on 我爱你 and 你爱我


def layer(sentence: str, bias: np.ndarray, causal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(weights (H, L, L), x + output (L, d)) of the untrained layer; bias (H, L, L)."""
    tokens = text.tokenize(sentence)
    x = attention.untrained_embedding(tokens, 64, 0).numpy().astype(np.float64)
    w_q, w_k, w_v, w_o = (w.numpy().astype(np.float64) for w in attention.untrained_projections(64, 0))
    q, k, v = ((x @ w).reshape(len(x), HEADS, E).transpose(1, 0, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(E) + bias
    if causal:
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights, x + (weights @ v).transpose(1, 0, 2).reshape(len(x), 64) @ w_o


SWAPPED = [2, 1, 0]  # where each word of 我爱你 stands in 你爱我


def apart(bias: np.ndarray, causal: bool = False) -> float:
    """Largest difference of a word's output in the two sentences."""
    (_, a), (_, b) = (layer(s, bias, causal) for s in ("我爱你", "你爱我"))
    return float(np.abs(a - b[SWAPPED]).max())


NOTHING = np.zeros((HEADS, 3, 3))
DISTANCE = np.abs(np.arange(3)[:, None] - np.arange(3))
ALIBI = -(2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS))[:, None, None] * DISTANCE


def test_identical():
    (a, x), (b, y) = (layer(s, NOTHING) for s in ("我爱你", "你爱我"))
    found = values("identical")
    assert found[0] == pytest.approx(np.abs(a - b).max(), rel=1e-9)
    assert found[1] < 1e-12 and np.abs(a - b[:, SWAPPED][:, :, SWAPPED]).max() < 1e-12
    assert found[2] < 1e-12 and np.abs(x.mean(axis=0) - y.mean(axis=0)).max() < 1e-12


def test_alibi():
    found = values("alibi")
    assert found[0] < 1e-12 and apart(ALIBI) < 1e-12
    assert found[1] == pytest.approx(apart(ALIBI, causal=True), rel=1e-9)


def test_nope():
    found = values("nope")
    assert found[0] < 1e-12 and apart(NOTHING) < 1e-12
    assert found[1] == pytest.approx(apart(NOTHING, causal=True), rel=1e-9)


def angle(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip((normalised(x) * normalised(y)).sum(axis=1), -1, 1))).mean())


def test_destroys():
    words = torch.randn(4096, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    rows = sinusoids(128, 64)
    # interleaved, as the paper has it: a permutation of the columns, but the words are what they are
    mixed = np.empty_like(rows)
    mixed[:, 0::2], mixed[:, 1::2] = rows[:, :32], rows[:, 32:]
    mixed = mixed[np.arange(4096) % 128]
    found = myths.measure("destroys", CASE).numbers
    assert [n.value for n in found[:2]] == pytest.approx([angle(words * s, words * s + mixed) for s in (1.0, 0.02)])
    for number, size in zip(found, (1.0, 0.02), strict=False):
        kept = ((words * size + mixed)[:256] @ normalised(words).T).argmax(axis=1) == np.arange(256)
        assert number.expected.en.startswith(f"{kept.mean():.0%} ")


def test_destroys_in_the_trained_twin():
    x = weights_of("sinusoidal")["tokens"][len(corpus.SPECIAL) :] * math.sqrt(128)
    angles = np.arange(corpus.TRAINED_LEN - 1)[:, None] * frequencies(128)
    rows = np.empty((len(angles), 128))
    rows[:, 0::2], rows[:, 1::2] = np.sin(angles), np.cos(angles)
    mean = np.mean([angle(x, x + row) for row in rows])
    assert values("destroys")[2] == pytest.approx(mean, rel=1e-6)


def test_every_sentence_is_recomputed_here():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert set(MYTHS) <= tested
