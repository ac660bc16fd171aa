"""The data of the Rotation picture: what goes in comes out, and what does not fit is refused."""

import re
from typing import Any

import numpy as np
import pytest

from posviz.ui.canvas import clocks
from posviz.ui.canvas.bundle import script, standalone_html, style
from tests.ui.unpacked import unpack


def arguments(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tokens = [
        {"label": f"{word}·{position}", "sentence": sentence, "position": position}
        for sentence, text in (("A", "我爱你"), ("B", "你爱我"))
        for position, word in enumerate(text)
    ]
    return {
        "omega": 10_000.0 ** -(np.arange(4) / 4),
        "q": rng.normal(size=(6, 10)),
        "k": rng.normal(size=(6, 10)),
        "tokens": tokens,
        "pairing": "half",
        "max_position": 128,
        "m": 9,
        "n": 5,
        "i": 1,
        "j": 2,
        "pair": 3,
        "scale": 10**-0.5,
        **changes,
    }


def test_round_trip() -> None:
    given = arguments()
    meta, arrays = unpack(clocks.bundle(**given))
    for name in ("omega", "q", "k"):
        np.testing.assert_array_equal(arrays[name], given[name])
    for name in ("m", "n", "i", "j", "pair", "pairing", "max_position", "scale", "tokens"):
        assert meta[name] == given[name]
    assert meta["d_head"] == 10
    assert meta["labels"] == clocks.LABELS


def test_narrower_and_integer_arrays_become_float64() -> None:
    _, arrays = unpack(clocks.bundle(**arguments(q=np.ones((6, 10), np.float32), k=np.ones((6, 10), int))))
    assert arrays["q"].sum() == arrays["k"].sum() == 60


def test_any_token_text_travels() -> None:
    tokens = arguments()["tokens"]
    texts = ["</script><script>", "a\0b", "\ud800", "👩‍👩‍👧", "مرحبا", "x" * 400]
    for token, text in zip(tokens, texts, strict=True):
        token["label"] = text
    data = clocks.bundle(**arguments(tokens=tokens))
    assert [token["label"] for token in unpack(data)[0]["tokens"]] == texts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"omega": np.ones((2, 2))}, r"omega must have the shape \(n_pairs,\)"),
        ({"omega": np.ones(0)}, "n_pairs at least 1"),
        ({"omega": np.ones(6)}, "6 pairs turn 12 dimensions, but d_head is 10"),
        ({"q": np.ones((5, 10))}, r"got \(5, 10\) and \(6, 10\)"),
        ({"q": np.ones(10), "k": np.ones(10)}, "q and k must both have the shape"),
        ({"q": np.ones((4, 10)), "k": np.ones((4, 10))}, "6 tokens, 4 rows"),
        ({"k": np.full((6, 10), np.nan)}, "must be finite"),
        ({"scale": float("inf")}, "must be finite"),
        ({"tokens": []}, "0 tokens, 6 rows"),
        ({"pairing": "other"}, "pairing must be one of half, interleaved, got 'other'"),
        ({"max_position": 0}, "max_position must be at least 1, got 0"),
        ({"max_position": 1}, "a token's position must be from 0 to 1, got 2"),
        ({"m": 129}, "m must be from 0 to 128, got 129"),
        ({"n": -1}, "n must be from 0 to 128, got -1"),
        ({"i": 6}, "i must be from 0 to 5, got 6"),
        ({"pair": 4}, "pair must be from 0 to 3, got 4"),
        ({"height": 100}, "height must be at least 560, got 100"),
        ({"labels": {"play": "Play"}}, "labels lacks pause"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clocks.bundle(**arguments(**changes))


def test_refuses_a_third_sentence() -> None:
    tokens = arguments()["tokens"]
    tokens[0]["sentence"] = "C"
    with pytest.raises(ValueError, match="must be A or B, got 'C'"):
        clocks.bundle(**arguments(tokens=tokens))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_closed_form_of_the_picture(pairing: str) -> None:
    """The formula in rotor.js against turning both vectors, with the sign of its sine term."""
    rng = np.random.default_rng(1)
    omega, q, k = 10_000.0 ** -(np.arange(8) / 8), rng.normal(size=16), rng.normal(size=16)
    first, second = (slice(0, 8), slice(8, 16)) if pairing == "half" else (slice(0, 16, 2), slice(1, 16, 2))
    qa, qb, ka, kb = q[first], q[second], k[first], k[second]
    for m, n in ((0, 0), (9, 5), (3, 70), (5000, 4000)):
        turned_q = (qa + 1j * qb) * np.exp(1j * m * omega)
        turned_k = (ka + 1j * kb) * np.exp(1j * n * omega)
        score = (turned_q.real * turned_k.real + turned_q.imag * turned_k.imag).sum()
        angle = (m - n) * omega
        closed = ((qa * ka + qb * kb) * np.cos(angle) + (qa * kb - qb * ka) * np.sin(angle)).sum()
        assert closed == pytest.approx(score, abs=1e-11)


def test_every_label_is_used_and_every_used_label_exists() -> None:
    """``save`` is used by the shared part."""
    used = set(re.findall(r"label\.(\w+)", script("clocks").split("class Rotor", 1)[1]))
    assert used | {"save"} == set(clocks.LABELS)


def test_standalone_page_holds_the_parts() -> None:
    page = standalone_html("clocks", clocks.bundle(**arguments()), title="<RoPE>")
    assert "class Rotor" in page
    assert "class ClockGrid" in page
    assert "class ScorePanel" in page
    assert "&lt;RoPE&gt;" in page
    assert ".chips" in style("clocks")
