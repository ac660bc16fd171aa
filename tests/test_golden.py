"""Numbers from public bug reports and reference implementations; each entry names its source."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

from posviz import encodings, rotation, similarity
from posviz.types import Dims, Refusal

GOLDEN = Path(__file__).parent / "golden"
CASES = {case["id"]: case for case in json.loads((GOLDEN / "cases.json").read_text("utf-8"))}
REFERENCE = json.loads((GOLDEN / "reference.json").read_text("utf-8"))


def case(name: str) -> tuple[dict, dict, object, float]:
    entry = CASES[name]
    assert entry["source"]
    return entry["params"], entry["input"], entry["expected"], entry["tolerance"]


def sinusoidal(params: dict) -> encodings.Encoding:
    return encodings.make("sinusoidal", base=params["base"], layout=params.get("layout", "halves"))


def test_sinusoidal_frequencies():
    params, given, expected, tolerance = case("sin-freq-precedence")
    got = rotation.inv_freq(params["d"], params["base"])[given["index"]]
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["sin-pair-shares-frequency", "sin-layout-halves"])
def test_sinusoidal_tables(name):
    params, given, expected, tolerance = case(name)
    got = sinusoidal(params).table(given["positions"], params["d"])
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_sinusoidal_refuses_an_odd_width():
    params, given, expected, _ = case("sin-odd-d-refused")
    assert expected == {"error": True}
    with pytest.raises(Refusal, match="`d_model` must be even"):
        sinusoidal(params).table(given["positions"], params["d"])
    with pytest.raises(Refusal, match="`d_model` must be even"):
        sinusoidal(params).build(Dims(d_model=params["d"], n_heads=1))


def test_rope_angles_beyond_half_precision():
    params, given, expected, tolerance = case("rope-angle-fp16")
    frequencies = encodings.make("rope", base=params["base"]).inv_freq(params["dim"])
    angle = rotation.angles(torch.tensor([given["position"]]), frequencies)[0, given["pair"]]
    got = [angle, angle.cos(), angle.sin()]
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_rope_frequencies_are_not_rounded():
    params, given, expected, tolerance = case("rope-bf16-inv-freq")
    frequencies = encodings.make("rope", base=params["base"]).inv_freq(params["dim"])
    cosines = rotation.angles(torch.tensor([given["position"]]), frequencies).cos()[0]
    np.testing.assert_allclose(cosines[given["pairs"]], expected, rtol=0, atol=tolerance)
    # as bfloat16 vectors, too: one rounding at the end
    ones = torch.ones(1, params["dim"], dtype=torch.bfloat16)
    turned = encodings.make("rope").rotate(ones, [given["position"]])[0].double()
    half = params["dim"] // 2
    both = (turned[:half] + turned[half:]) / 2  # (cos - sin + sin + cos) / 2
    np.testing.assert_allclose(both[given["pairs"]], expected, rtol=0, atol=0.01)


def test_rope_pairings():
    params, given, expected, tolerance = case("rope-pairing-conventions")
    x = torch.tensor([given["x"]], dtype=torch.float64)
    for pairing in given["styles"]:
        spec = encodings.make("rope", base=params["base"], pairing=pairing)
        got = spec.rotate(x, [given["position"]])[0]
        np.testing.assert_allclose(got, expected[pairing], rtol=0, atol=tolerance)


def test_rope_quarter_turns():
    """rotate_half and rotate_every_two are a quarter turn of every pair."""
    params, given, expected, _ = case("rope-rotate-helpers")
    x = torch.tensor([given["x"]], dtype=torch.float64)
    quarter = torch.full((1, params["dim"] // 2), np.pi / 2, dtype=torch.float64)
    for helper, pairing in (("rotate_every_two", "interleaved"), ("rotate_half", "half")):
        got = rotation.rotate(x, quarter, pairing)
        np.testing.assert_allclose(got[0], expected[helper], rtol=0, atol=1e-15)
        twice = rotation.rotate(got, quarter, pairing)
        np.testing.assert_allclose(twice, -x, rtol=0, atol=1e-15)


def test_rope_keeps_the_norm():
    params, given, expected, tolerance = case("rope-norm-preserved")
    spec = encodings.make("rope", base=params["base"], pairing=params["style"])
    got = spec.rotate(torch.tensor([given["x"]], dtype=torch.float64), [given["position"]])
    assert got.square().sum().item() == pytest.approx(expected, abs=tolerance)


def test_partial_rope():
    params, given, expected, tolerance = case("rope-partial")
    spec = encodings.make(
        "rope",
        base=params["base"],
        pairing=params["style"],
        partial_rotary_factor=params["rotary_dim"] / params["head_dim"],
    )
    got = spec.rotate(torch.tensor([given["x"]], dtype=torch.float64), [given["position"]])[0]
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
    assert spec.inv_freq(params["head_dim"])[1].item() == pytest.approx(0.01, abs=1e-15)


def test_rope_refuses_an_odd_width():
    params, given, expected, _ = case("rope-odd-refused")
    assert expected == {"error": True}
    spec = encodings.make("rope", base=params["base"])
    with pytest.raises(Refusal, match="`d_head` must be even for RoPE, got 65"):
        spec.rotate(torch.zeros(len(given["positions"]), params["dim"]), given["positions"])


def test_alibi_slopes():
    _, given, expected, tolerance = case("alibi-non-power-of-two")
    for heads in given["n_heads"]:
        got = encodings.make("alibi").slopes(heads)
        np.testing.assert_allclose(got, expected[str(heads)], rtol=0, atol=tolerance)


def test_alibi_signs():
    params, given, expected, tolerance = case("alibi-sign-and-softmax-shift")
    module = encodings.make("alibi", causal=params["causal"]).build(
        Dims(d_model=params["n_heads"], n_heads=params["n_heads"])
    )
    q = torch.zeros(params["n_heads"], 1, 1, dtype=torch.float64)
    k = torch.zeros(params["n_heads"], len(given["keys"]), 1, dtype=torch.float64)
    row = module.bias(q, k, [given["query"]], given["keys"])[params["head"], 0]
    np.testing.assert_allclose(row, expected["bias"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(row.softmax(0), expected["softmax_of_bias_only"], rtol=0, atol=tolerance)


def test_t5_buckets():
    params, given, expected, _ = case("t5-buckets")
    relative = given["relative_position_key_minus_query"]
    for side, two_sided in (("bidirectional", True), ("causal", False)):
        spec = encodings.make("t5", **params, bidirectional=two_sided)
        assert spec.buckets(torch.tensor(relative)).tolist() == expected[side]


def test_shaw_clips():
    params, given, expected, _ = case("shaw-clip")
    at = torch.arange(given["N"])
    spec = encodings.make("shaw", max_relative=params["k"])
    assert spec.index(at[None, :] - at[:, None]).tolist() == expected


def test_learned_refuses_what_lies_beyond():
    params, given, expected, _ = case("learned-overflow-refused")
    assert expected == {"error": True}
    module = encodings.make("learned").build(Dims(d_model=4, n_heads=1), params["table_rows"])
    with pytest.raises(Refusal) as caught:
        module.embed(torch.zeros(1, 4), [given["position"]])
    assert str(caught.value) == ("position 512 lies beyond a learned table of 512 rows; allowed are 0 to 511")


def test_rope_decay_bound():
    params, given, expected, tolerance = case("rope-decay-bound")
    frequencies = encodings.make("rope", base=params["base"]).inv_freq(params["dim"])
    got = similarity.rope_bound(torch.tensor(given["distances"]), frequencies)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_no_case_is_left_out():
    source = Path(__file__).read_text("utf-8")
    assert [name for name in CASES if f'"{name}"' not in source] == []
    assert len(CASES) == 17


# ---- tables of reference implementations


def named(entries: list[dict], *keys: str):
    return [pytest.param(entry, id="-".join(f"{key}={entry[key]:g}" for key in keys)) for entry in entries]


@pytest.mark.parametrize("entry", named(REFERENCE["rope_inv_freq"], "head_dim", "base"))
def test_reference_frequencies(entry):
    """transformers works in float32: six digits."""
    got = encodings.make("rope", base=entry["base"]).inv_freq(entry["head_dim"])
    np.testing.assert_allclose(got, entry["inv_freq"], rtol=2e-7)
    same = rotation.inv_freq(entry["head_dim"], entry["base"])
    assert torch.equal(got, same)


@pytest.mark.parametrize(
    "entry",
    named(REFERENCE["t5_buckets"], "num_buckets", "max_distance", "bidirectional"),
)
def test_reference_t5_buckets(entry):
    spec = encodings.make(
        "t5",
        num_buckets=entry["num_buckets"],
        max_distance=entry["max_distance"],
        bidirectional=entry["bidirectional"],
    )
    assert spec.buckets(torch.arange(-300, 301)).tolist() == entry["buckets"]


@pytest.mark.parametrize("entry", named(REFERENCE["alibi_slopes"], "n_heads"))
def test_reference_alibi_slopes(entry):
    got = encodings.make("alibi").slopes(entry["n_heads"])
    np.testing.assert_allclose(got, entry["mpt"], rtol=1e-7)
    np.testing.assert_allclose(got, entry["bloom"], rtol=1e-6)


@pytest.mark.parametrize("entry", named(REFERENCE["wavelengths"], "dim", "base"))
def test_reference_wavelengths(entry):
    got = rotation.wavelengths(rotation.inv_freq(entry["dim"], entry["base"]))
    np.testing.assert_allclose(got, entry["lambda_per_pair"], rtol=5e-9)


@pytest.mark.parametrize("entry", named(REFERENCE["cos_error_d128"], "base", "position"))
def test_reference_errors_are_those_of_float64(entry):
    """The cosines are as good as float64 allows at that position, even at 16,777,217."""
    mp.dps = 50
    theta = rotation.angles(torch.tensor([entry["position"]]), rotation.inv_freq(128, entry["base"]))[0]
    worst = max(
        abs(mp.cos(entry["position"] * mpf(entry["base"]) ** (-mpf(2 * i) / 128)) - value)
        for i, value in enumerate(theta.cos().tolist())
    )
    assert worst < 3 * entry["max_abs_cos_err_float64"]
    assert worst < entry["max_abs_cos_err_float32"] / 1e5
