"""What the two fetched models show, as measured before; skipped where `make models` has not been run."""

import numpy as np
import pytest

from posviz import similarity
from posviz.models import open_model
from posviz.models.base import Positions
from posviz.models.registry import models_folder

pytestmark = pytest.mark.models

MINILM, SMOLLM = "all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"
SENTENCE = "The old man who lives in the house near the river walks to the market every morning with his dog."


@pytest.fixture(scope="module")
def minilm():
    return _open(MINILM)


@pytest.fixture(scope="module")
def smollm():
    return _open(SMOLLM)


def _open(name: str):
    if not (models_folder() / name).is_dir():
        pytest.skip(f"{name} is not in {models_folder()}: `make models` fetches it")
    return open_model(f"local:{name}")


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_neighbours_are_alike_in_minilms_table(minilm) -> None:
    table = minilm.position_table()
    assert table.shape == (512, 384)
    cosines = similarity.matrix(table.astype(np.float64), kind="cosine")
    found = {k: float(np.diagonal(cosines, k).mean()) for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 400)}
    want = [0.851, 0.592, 0.504, 0.294, 0.432, 0.220, 0.137, 0.079, -0.031, -0.163]
    np.testing.assert_allclose(list(found.values()), want, atol=0.002)
    np.fill_diagonal(cosines, -1)
    near = np.abs(cosines.argmax(1) - np.arange(512)) == 1
    assert near.mean() > 0.99
    assert np.linalg.norm(table[0]) == pytest.approx(2.36, abs=0.01)


def test_minilm_has_a_previous_token_head(minilm) -> None:
    layer = minilm.trace(minilm.tokenize(SENTENCE)).layers[0]
    previous = [float(np.diagonal(head, -1).mean()) for head in layer.weights]
    assert int(np.argmax(previous)) == 2 and previous[2] > 0.95


def test_order_is_gone_when_every_position_is_the_mean(minilm) -> None:
    a, b = (minilm.tokenize(text) for text in ("dog bites man", "man bites dog"))
    intact = cosine(minilm.trace(a).pooled, minilm.trace(b).pooled)
    alike = Positions(mean=True)
    assert intact == pytest.approx(0.907, abs=0.002)
    assert cosine(minilm.trace(a, alike).pooled, minilm.trace(b, alike).pooled) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("shift", [1, 100, 20_000])
def test_smollm_does_not_notice_a_shift(smollm, shift) -> None:
    tokens = smollm.tokenize(SENTENCE)
    moved = smollm.trace(tokens, Positions(ids=tuple(range(shift, shift + len(tokens)))))
    pairs = zip(smollm.trace(tokens).layers, moved.layers, strict=True)
    assert max(np.abs(a.weights - b.weights).max() for a, b in pairs) <= 3e-4


def test_smollm_loses_the_thread_when_its_positions_are_stretched(smollm) -> None:
    """Also that its weights were converted rightly: a wrong order of rows would make English improbable."""
    tokens = smollm.tokenize("The capital of France is Paris, and the capital of Germany is Berlin.")
    intact = smollm.losses(tokens).mean()
    stretched = smollm.losses(tokens, Positions(ids=tuple(4 * i for i in range(len(tokens))))).mean()
    assert intact < 2.0
    assert stretched > intact + 2.0


def test_smollms_fragments(smollm) -> None:
    tokens = smollm.tokenize("我爱你")
    assert tokens.pieces == ("我¹⁄₂", "我²⁄₂", "爱¹⁄₃", "爱²⁄₃", "爱³⁄₃", "你¹⁄₂", "你²⁄₂")
    assert b"".join(info.raw for info in tokens.infos).decode() == "我爱你"


@pytest.mark.parametrize("name", [MINILM, SMOLLM])
def test_their_weights_are_the_models_own(name) -> None:
    import torch

    model = _open(name)
    tokens = model.tokenize(SENTENCE)
    with torch.no_grad():
        own = model.network(torch.tensor([tokens.ids]), output_attentions=True).attentions
    for layer, theirs in zip(model.trace(tokens).layers, own, strict=True):
        np.testing.assert_allclose(layer.weights, theirs[0].numpy(), rtol=0, atol=1e-5)
    assert model.provenance["licence"] == "Apache-2.0" and len(model.provenance["weights_sha256"]) == 64
