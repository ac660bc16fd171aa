"""Tables of positions: every measurement beside another way to it, on tables whose answer is known."""

import io

import numpy as np
import pytest
import torch
from safetensors.torch import save

from posviz import encodings, tables
from posviz.models.twins import corpus, store
from posviz.types import Refusal

RNG = np.random.default_rng(0)
RANDOM = RNG.normal(size=(100, 24))
SINES = encodings.make("sinusoidal").table(range(100), 24).numpy()


def trained() -> np.ndarray:
    return store.load("learned").model.position.weight.detach().double().numpy()


# ---- reading


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_tables_in_a_file_are_found_among_other_arrays() -> None:
    found = tables.read(npz(bias=np.ones(5), wte=RANDOM, wpe=SINES, cube=np.ones((2, 3, 4))))
    assert set(found) == {"wte", "wpe"} and tables.likeliest(found) == "wpe"
    vit = tables.read(save({"vit.embeddings.position_embeddings": torch.tensor(SINES)[None]}))
    assert next(iter(vit.values())).shape == (100, 24)
    for names, best in (
        (("a", "b"), "a"),
        (("decoder.embed_tokens", "decoder.embed_positions"), "decoder.embed_positions"),
        (("blocks.0", "pos_embed"), "pos_embed"),
    ):
        assert tables.likeliest(dict.fromkeys(names, SINES)) == best


BAD = [
    (np.ones(5), "a table has two axes, rows and dimensions, got the shape (5,)", "表应有两个轴：行和维度，现在的形状是 (5,)"),
    (np.ones((2, 3, 4)), "a table has two axes, rows and dimensions, got the shape (2, 3, 4)", "表应有两个轴：行和维度，现在的形状是 (2, 3, 4)"),
    (np.ones((1, 4)), "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 1 × 4", "表应有 2 到 8,192 行，每行 1 到 4,096 个数，总共不超过 2,097,152 个，现在是 1 × 4"),
    (np.ones((0, 4)), "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 0 × 4", "表应有 2 到 8,192 行，每行 1 到 4,096 个数，总共不超过 2,097,152 个，现在是 0 × 4"),
    (np.ones((4, 0)), "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 4 × 0", "表应有 2 到 8,192 行，每行 1 到 4,096 个数，总共不超过 2,097,152 个，现在是 4 × 0"),
    (np.ones((8193, 1), np.int8), "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 8,193 × 1", "表应有 2 到 8,192 行，每行 1 到 4,096 个数，总共不超过 2,097,152 个，现在是 8,193 × 1"),
    (np.ones((8192, 513), np.int8), "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 8,192 × 513", "表应有 2 到 8,192 行，每行 1 到 4,096 个数，总共不超过 2,097,152 个，现在是 8,192 × 513"),
    (np.ones((2, 2), complex), "a table holds real numbers, got complex128", "表里必须是实数，现在是 complex128"),
    (np.ones((2, 2), bool), "a table holds real numbers, got bool", "表里必须是实数，现在是 bool"),
    (np.array([["a"], ["b"]]), "a table holds real numbers, got <U1", "表里必须是实数，现在是 <U1"),
    (np.array([[1, 2], [3, np.nan], [np.inf, 1]]), "2 cells are no finite numbers, the first one (nan) in row 1, dimension 1: all must be finite", "有 2 个格子不是有限数，第一个（nan）在第 1 行第 1 维：必须全是有限数"),
    (np.array([[1, -np.inf], [3, 4]]), "1 cells are no finite numbers, the first one (-inf) in row 0, dimension 1: all must be finite", "有 1 个格子不是有限数，第一个（-inf）在第 0 行第 1 维：必须全是有限数"),
    (np.array([[1, 2], [3, 1e200]]), "the largest number is 1e+200; up to 1e100 are taken", "最大的数是 1e+200；最大取到 1e100"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "english", "chinese"), BAD, ids=range(len(BAD)))
def test_what_is_no_table_is_one_sentence(array: np.ndarray, english: str, chinese: str) -> None:
    with pytest.raises(Refusal) as caught:
        tables.check(array)
    assert str(caught.value) == english
    assert caught.value.text("zh") == chinese


def test_files_without_a_table() -> None:
    with pytest.raises(Refusal, match=r"a table has two axes, rows and dimensions, got the shape \(5,\)"):
        tables.read(npz(a=np.ones(5)))
    with pytest.raises(Refusal) as caught:
        tables.read(npz(a=np.ones(5), b=np.ones((1, 9))))
    assert str(caught.value) == "none of the 2 arrays is a table of 2 to 8,192 rows: a, b"
    with pytest.raises(Refusal, match="a table has 2 to 8,192 rows"):
        tables.read(b"a,b,c\n")
    with pytest.raises(Refusal, match=r"a table has 2 to 8,192 rows .* got 1 × 3"):
        tables.read(b"1,2,3\n")


def test_a_checked_table_is_float64_and_cannot_be_changed() -> None:
    table = tables.check(np.asfortranarray(RANDOM.astype(">f4")))
    assert table.dtype == np.float64 and not table.flags.writeable
    np.testing.assert_array_equal(table, RANDOM.astype(np.float32))


# ---- what is in them


@pytest.mark.parametrize("table", [RANDOM, SINES, trained()[:33]], ids=["random", "sinusoidal", "trained"])
def test_neighbours_one_by_one(table: np.ndarray) -> None:
    found = tables.analyse(table).neighbours
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    steps = []
    for p, row in enumerate(unit):
        others = sorted((q for q in range(len(unit)) if q != p), key=lambda q: -(row @ unit[q]))
        assert row @ unit[found.nearest[p]] == pytest.approx(row @ unit[others[0]])
        steps.append(abs(int(found.nearest[p]) - p))
    assert found.beside == pytest.approx(np.mean(np.array(steps) == 1))
    assert found.usual == max(set(steps), key=lambda s: (steps.count(s), -s))


def test_chances_are_what_random_tables_give() -> None:
    many = [tables.analyse(np.random.default_rng(s).normal(size=(30, 8))) for s in range(40)]
    mean = {
        "beside": np.mean([f.neighbours.beside for f in many]),
        "explained": np.mean([f.distances.explained for f in many]),
        "waves": np.mean([f.waves.total for f in many]),
        "linear": np.mean([f.sinusoids.explained for f in many]),
    }
    said = many[0]
    assert mean["beside"] == pytest.approx(said.neighbours.chance, abs=0.02)
    assert mean["explained"] == pytest.approx(said.distances.chance, abs=0.02)
    assert mean["waves"] == pytest.approx(said.waves.chance, abs=0.03)
    assert mean["linear"] == pytest.approx(said.sinusoids.chance, abs=0.03)


def test_sinusoids_are_seen_as_what_they_are() -> None:
    found = tables.analyse(SINES)
    assert found.neighbours.beside == 1.0 and found.neighbours.usual == 1
    assert found.distances.explained == pytest.approx(1, abs=1e-12)
    assert found.distances.spread.max() < 1e-12
    assert found.norms.median == pytest.approx(np.sqrt(12)) and not len(found.norms.outliers)
    assert found.waves.total > 0.99
    wavelengths = 2 * np.pi * 10_000.0 ** (2 * (np.arange(24) // 2) / 24)
    seen = wavelengths < 100  # those that turn at least once
    np.testing.assert_allclose(found.waves.periods[seen], wavelengths[seen], rtol=0.02)
    assert found.sinusoids.alike == pytest.approx(1) and found.sinusoids.explained == pytest.approx(1)


def test_turned_and_scaled_sinusoids_are_still_alike() -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(24, 24)))
    found = tables.sinusoids(3.0 * SINES @ turn + 5.0)
    assert found.alike == pytest.approx(1) and found.explained == pytest.approx(1)
    assert tables.sinusoids(RANDOM).alike < 0.4


@pytest.mark.parametrize("scale", [1e99, 1e-99, 1e-200])
def test_alikeness_knows_no_scale(scale: float) -> None:
    want, got = tables.sinusoids(RANDOM), tables.sinusoids(RANDOM * scale)
    assert got.alike == pytest.approx(want.alike, rel=1e-9) and want.alike > 0
    assert got.explained == pytest.approx(want.explained, rel=1e-9)


def test_linear_alikeness_by_its_definition() -> None:
    """CKA through centring matrices, and the fit by least squares."""
    n = len(RANDOM)
    centre = np.eye(n) - 1 / n
    k, s = (centre @ x @ x.T @ centre for x in (RANDOM, SINES))
    found = tables.sinusoids(RANDOM)
    assert found.alike == pytest.approx(np.trace(k @ s) / np.sqrt(np.trace(k @ k) * np.trace(s @ s)))
    basis = np.column_stack([np.ones(n), SINES])
    left = RANDOM - basis @ np.linalg.lstsq(basis, RANDOM, rcond=1e-7)[0]
    centred = RANDOM - RANDOM.mean(axis=0)
    assert found.explained == pytest.approx(1 - (left**2).sum() / (centred**2).sum(), abs=0.02)


def test_distances_by_a_loop() -> None:
    found = tables.analyse(RANDOM).distances
    unit = RANDOM / np.linalg.norm(RANDOM, axis=1, keepdims=True)
    groups = [np.array([unit[p] @ unit[p + k] for p in range(100 - k)]) for k in range(100)]
    np.testing.assert_allclose(found.mean, [g.mean() for g in groups], atol=1e-12)
    np.testing.assert_allclose(found.spread, [g.std() for g in groups], atol=1e-12)
    everything = np.concatenate(groups[1:])
    within = sum(((g - g.mean()) ** 2).sum() for g in groups[1:])
    assert found.explained == pytest.approx(1 - within / ((everything - everything.mean()) ** 2).sum())


@pytest.mark.parametrize("shape", [(100, 24), (10, 24), (2, 3), (9, 1)])
def test_components_are_those_of_an_svd(shape: tuple[int, int]) -> None:
    table = RNG.normal(size=shape)
    found = tables.components(table)
    u, s, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    count = min(3, len(s))
    np.testing.assert_allclose(found.shares, (s**2 / (s**2).sum())[:count], atol=1e-10)
    np.testing.assert_allclose(np.abs(found.scores), np.abs(u * s)[:, :count], atol=1e-6)


@pytest.mark.parametrize("period", [2.5, 7.0, 33.3, 90.0])
def test_one_wave_is_found_in_noise(period: float) -> None:
    at = np.arange(120)
    column = 2 + np.cos(2 * np.pi * at / period + 1) + 0.05 * RNG.normal(size=120)
    found = tables.waves(np.stack([column, RNG.normal(size=120)], axis=1))
    assert found.periods[0] == pytest.approx(period, rel=0.03)
    assert found.explained[0] > 0.97 > 0.3 > found.explained[1]


def test_waves_by_least_squares() -> None:
    """The share of the frequency that was chosen, by numpy's own fit."""
    found, at = tables.waves(RANDOM), np.arange(100)
    for c in range(24):
        w = 2 * np.pi / found.periods[c]
        basis = np.column_stack([np.ones(100), np.cos(w * at), np.sin(w * at)])
        left = RANDOM[:, c] - basis @ np.linalg.lstsq(basis, RANDOM[:, c], rcond=None)[0]
        # about the middle cosine and sine are orthogonal, and the sine has no mean
        assert found.explained[c] == pytest.approx(1 - left.var() / RANDOM[:, c].var(), abs=1e-9)


def test_outliers_are_farther_than_five_robust_deviations() -> None:
    table = RANDOM.copy()
    table[7] *= 20
    found = tables.norms(table)
    lengths = np.sqrt((table**2).sum(axis=1))
    away = np.abs(lengths - np.median(lengths))
    assert found.outliers.tolist() == np.flatnonzero(away > 5 * 1.4826 * np.median(away)).tolist() == [7]
    flat = np.ones((10, 4))
    flat[3] = 1.001
    assert tables.norms(flat).outliers.tolist() == [3], "where most are equally long, any other is one"
    assert not len(tables.norms(np.ones((5, 2))).outliers)


def test_the_trained_table_has_learned_lines_of_verse() -> None:
    """Rows that training used are long; the nearest are a line of seven characters and its mark away."""
    whole = tables.analyse(trained())
    assert whole.norms.outliers.tolist() == list(range(corpus.TRAINED_LEN - 1))
    used = tables.analyse(trained()[: corpus.TRAINED_LEN - 1])
    assert used.neighbours.usual == 8 and used.neighbours.beside < used.neighbours.chance
    assert used.distances.explained > 5 * used.distances.chance


@pytest.mark.parametrize(
    "table",
    [np.zeros((2, 1)), np.ones((5, 3)), np.arange(12.0).reshape(4, 3), np.eye(2), np.full((3, 2), 1e100)],
    ids=["zeros", "ones", "line", "two", "large"],
)
def test_tables_with_nothing_in_them_are_no_error(table: np.ndarray) -> None:
    found = tables.analyse(table)
    for part in (found.neighbours, found.distances, found.norms, found.components, found.waves, found.sinusoids):
        for value in vars(part).values():
            assert np.isfinite(value).all()
