"""The films of the Rotation page through AppTest, and the core behind them: rounded angles, the sweep of the base."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from posviz import encodings, precision, workbench
from posviz.encodings.known_models import known_models
from posviz.rotation import inv_freq, permutation, rotate
from posviz.types import Refusal
from posviz.ui import params, shell
from posviz.ui.scenes import film_base, film_digits
from tests.test_pages import html, open_page, refusals, shown

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "golden/cases.json").read_text("utf-8"))}


# ---------------------------------------------------------------- rounded angles
def test_rounded_frequencies_give_the_reported_cosines() -> None:
    """The public report: what bf16 inv_freq makes of cos at position 4095, to its four digits."""
    case = CASES["rope-bf16-inv-freq"]
    reported = [float(x) for x in re.findall(r"-?\d\.\d+", case["why"])]
    w = inv_freq(case["params"]["dim"], case["params"]["base"])
    at = torch.tensor([case["input"]["position"]])
    narrow = precision.rounded_angles(at, w, "bfloat16", "frequencies").cos()[0, case["input"]["pairs"]]
    np.testing.assert_allclose(narrow, reported, atol=5e-5)
    exact = precision.rounded_angles(at, w, "float64", "frequencies").cos()[0, case["input"]["pairs"]]
    np.testing.assert_allclose(exact, case["expected"], atol=case["tolerance"])


def test_positions_collide_beyond_256() -> None:
    w = torch.tensor([1.0, 0.01], dtype=torch.float64)
    theta = precision.rounded_angles(torch.arange(255, 261), w, "bfloat16", "positions")
    assert theta[:, 0].tolist() == [255.0, 256.0, 256.0, 258.0, 260.0, 260.0]
    assert theta[2, 1] == theta[1, 1] == 2.56
    errors = precision.angle_errors(w.numpy(), 300, "bfloat16", "positions")
    assert precision.first_seen(errors).tolist() == [257, -1]
    assert np.abs(errors[:257]).max() == 0.0


@pytest.mark.parametrize("what", precision.ROUNDED)
def test_first_seen_is_the_first(what: str) -> None:
    w = inv_freq(32, 10_000.0).numpy()
    errors = precision.angle_errors(w, 2048, "bfloat16", what)
    for pair, first in enumerate(precision.first_seen(errors)):
        wrong = [p for p in range(2048) if abs(errors[p, pair]) > precision.SEEN]
        assert first == (wrong[0] if wrong else -1)
    # the short way round, and what torch itself makes of the whole product
    assert np.abs(errors).max() <= math.pi
    if what == "angle":
        narrow = torch.arange(2048).to(torch.bfloat16)[:, None] * torch.tensor(w).to(torch.bfloat16)
        exact = np.arange(2048)[:, None] * w
        np.testing.assert_allclose(np.cos(errors), np.cos(narrow.double().numpy() - exact), atol=1e-9)


def test_what_is_rounded_has_a_name() -> None:
    with pytest.raises(Refusal) as caught:
        precision.rounded_angles(torch.arange(2), torch.ones(1), "bfloat16", "everything")
    assert caught.value.text("en") == "`rounded` must be one of positions, frequencies, angle, got everything"
    assert caught.value.text("zh") == "`rounded` 只能是 positions, frequencies, angle 之一，现在是 everything"


@pytest.mark.parametrize("what", precision.ROUNDED)
def test_score_drift_is_the_difference_of_two_scores(what: str) -> None:
    q, k = torch.randn(2, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    w = inv_freq(16, 10_000.0)
    found = precision.score_drift(q.numpy(), k.numpy(), w.numpy(), "half", (301, 297), "bfloat16", what)
    scores = []
    for name in ("bfloat16", "float64"):
        theta = precision.rounded_angles(torch.tensor([301, 297]), w, name, what)
        turned = [rotate(x[None], row[None], "half")[0] for x, row in zip((q, k), theta, strict=True)]
        scores.append(float(turned[0] @ turned[1]))
    assert found == pytest.approx(scores[0] - scores[1], abs=1e-12)
    assert found != 0.0
    assert precision.score_drift(q.numpy(), k.numpy(), w.numpy(), "half", (301, 297), "float64", what) == 0.0


# ---------------------------------------------------------------- the sweep
def test_the_sweep_holds_every_bases_own_numbers() -> None:
    found = workbench.sweep(32, 4096)
    assert (found.bases[0], found.bases[-1], len(found.bases)) == (100.0, 1e7, 251)
    assert (np.diff(found.bases) > 0).all()
    for at in (0, 100, 137, 250):
        w = inv_freq(32, found.bases[at])
        np.testing.assert_array_equal(found.frequencies[at], w)
        assert found.context_bound[at] == (workbench.context_bound(w) or 0)
        assert found.critical_dimension[at] == 2 * int(
            np.ceil(16 * math.log(4096 / 2 / math.pi, found.bases[at])).clip(max=16)
        )


@pytest.mark.parametrize(("width", "base"), [(16, 1e4), (64, 5e5), (128, 1e2)])
def test_the_context_bound_is_the_first_negative_sum(width: int, base: float) -> None:
    w = inv_freq(width, base)
    bound = workbench.context_bound(w)
    sums = (torch.arange(bound + 1, dtype=torch.float64)[:, None] * w).cos().sum(1)
    assert sums[bound] < 0 and (sums[:bound] >= -1e-9).all()


def test_the_context_bound_is_looked_for_beyond_the_first_blocks() -> None:
    assert workbench.context_bound(inv_freq(128, 1e6)) > workbench.BLOCK * workbench.BLOCKS


def test_unscaled_keeps_everything_else() -> None:
    for model in known_models().values():
        found = encodings.rope_from_config(model.config)
        for rope in found.values() if isinstance(found, dict) else (found,):
            plain = rope.unscaled()
            assert torch.equal(plain.inv_freq(100_000), rope.unscaled_inv_freq())
            assert plain.attention_factor() == 1.0
            assert (plain.trained_length, plain.pairing, plain.width) == (rope.trained_length, rope.pairing, rope.width)


# ---------------------------------------------------------------- pages
@pytest.mark.parametrize("watch", params.WATCH)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_film_in_both_languages(watch: str, lang: str) -> None:
    app = open_page("rotation", lang=lang, watch=watch)
    assert not app.exception and refusals(app) == []
    assert bool(re.search("[\u4e00-\u9fff]{4}", shown(app))) == (lang == "zh")
    assert len(re.findall("pv-number", html(app))) >= 3
    assert "pv-fails" not in html(app)


@pytest.mark.parametrize("watch", [watch for watch in params.WATCH if watch != "one"])
def test_details_of_every_film(watch: str) -> None:
    app = open_page("rotation", lang="en", watch=watch)
    for detail in ("formula", "code", "save"):
        app.session_state["rotation_details"] = detail
        app.run()
        assert not app.exception and refusals(app) == []
        if detail == "code":
            namespace: dict = {}
            exec(app.code[0].value, namespace)
            assert len(namespace["values"]) >= 2
    assert len(app.get("download_button")) == 3


def test_two_scalings_of_one_model() -> None:
    text = shown(open_page("rotation", lang="en", watch="two", ra="llama-3.1-8b", rb="none", rlen="65536"))
    rope = encodings.rope_from_config(known_models()["llama-3.1-8b"].config)
    plain = workbench.facts(rope.unscaled(), 8192, 65_536)
    assert re.search(rf"\s{plain.unseen} / 64\s", text) and re.search(r"\s0 / 64\s", text), text


def test_the_numbers_of_the_films_are_the_cores() -> None:
    text = shown(open_page("rotation", lang="en", watch="base", notch="200"))
    bounds = [workbench.context_bound(inv_freq(16, base)) for base in (1e4, 1e6)]
    assert " · ".join(f"{bound:,}" for bound in bounds) in text
    assert "B: base 1,000,000" in text
    text = shown(open_page("rotation", lang="en", watch="digits"))
    assert re.search(r"257\s+pair 0", text), text
    first = film_digits.first_seen(encodings.make("rope"), 16, 2048, "positions")
    assert f"{(first >= 0).sum()} / 8" in text
    text = shown(open_page("rotation", lang="en", watch="pairing"))
    assert "score after the permutation with the other pairing: change" in text


def test_the_permutation_is_what_the_film_says() -> None:
    x = torch.randn(1, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    theta = inv_freq(12, 100.0)[None] * 7
    order = permutation(12)
    np.testing.assert_allclose(
        rotate(x[:, order], theta, "half"), rotate(x, theta, "interleaved")[:, order], atol=1e-15
    )


BAD = [
    ("watch", "three", "`watch` must be one of one, two, base, digits, pairing, got three"),
    ("rounded", "all", "`rounded` must be one of positions, frequencies, angle, got all"),
    ("m", "-1", "`m` must be a whole number from 0 to 16777216, got -1"),
    ("notch", "x", "`notch` must be a whole number from 0 to 16384, got 'x'"),
    ("ra", "llama-9", "a model must be one of " + ", ".join(known_models()) + ", or a JSON object, got llama-9"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD, ids=[name for name, *_ in BAD])
def test_bad_links_are_one_sentence(name: str, value: str, sentence: str) -> None:
    app = open_page("rotation", lang="en", **({"watch": "two"} | {name: value}))
    assert not app.exception
    assert refusals(app) == [sentence]


def test_odd_heads_are_refused_in_every_film() -> None:
    for watch in ("one", "base", "digits", "pairing"):
        app = open_page("rotation", lang="en", watch=watch, d_model="28")
        assert refusals(app) == ["`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32"]


def test_a_sweep_is_kept() -> None:
    before = film_base.sweep.cache_info().misses
    open_page("rotation", watch="base", d_model="96", heads="4")
    open_page("rotation", watch="base", d_model="96", heads="4", m="3")
    assert film_base.sweep.cache_info().misses - before <= 1


# ---------------------------------------------------------------- the sidebar
# Of the pages whose sidebar follows what is chosen (see test_studio.py): what a plain link shows.
AT_FIRST = {"studio": ("sentences", "encoding"), "surgery": ("sentences", "encoding"), "tables": ()}


@pytest.mark.parametrize("info", shell.PAGES, ids=lambda info: info.name)
def test_the_sidebar_shows_what_changes_the_page(info: shell.PageInfo) -> None:
    parts = AT_FIRST.get(info.name, info.controls)
    app = open_page(info.name, lang="en")
    kinds = ("number_input", "selectbox", "slider", "button_group")
    keys = {widget.key for kind in kinds for widget in app.sidebar.get(kind) if getattr(widget, "key", None)}
    wanted = {"encoding": "w_encoding", "sizes": "w_d_model", "base": "w_base", "more": "w_seed"}
    for part, key in wanted.items():
        assert (key in keys) == (part in parts), (part, keys)


def test_what_the_sidebar_does_not_show_is_kept() -> None:
    app = open_page("heatmap", lang="en", a="狗咬人", d_model="128", encoding="rope")
    for name in ("twins", "rope", "check", "order"):
        app.switch_page(f"pages/{name}.py")
        app.run()
        assert not app.exception
        assert (app.session_state["a"], app.session_state["d_model"], app.session_state["encoding"]) == (
            "狗咬人",
            "128",
            "rope",
        )
    assert app.text_input(key="a").value == "狗咬人"
    assert app.number_input(key="w_d_model").value == 128
