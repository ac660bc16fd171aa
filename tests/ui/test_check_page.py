"""Check my code through AppTest: the example, pasted vectors, what cannot be read."""

import json

import numpy as np

from posviz import rope_check
from posviz.rope_check import Convention
from tests.test_pages import open_page, refusals, shown


def pair(**changes) -> tuple[str, str]:
    x = np.random.default_rng(0).normal(size=(2, 16))
    convention = Convention(**{"width": 16, **changes})
    y = rope_check.turn(x, rope_check.angles(convention, np.array([50, 51]), 16, None), convention)
    return json.dumps(x.tolist()), json.dumps(y.tolist())


def test_the_example_is_explained() -> None:
    app = open_page("check", lang="en")
    text = shown(app)
    assert "An example is shown until vectors are pasted." in text
    assert "pairs dimensions 2i and 2i + 1 (GPT-J); every position is one too high" in text


def test_a_link_carries_the_vectors() -> None:
    before, after = pair(sign=-1, base=500_000.0)
    app = open_page("check", lang="en", cq=before, ca=after, cp="50")
    assert refusals(app) == []
    expected = "pairs dimensions i and i + 8 (Llama); turns backwards: the sine has the other sign; base 500000 instead of 10000"
    assert expected in shown(app)


def test_pasting_and_what_differs() -> None:
    before, after = pair()
    app = open_page("check", lang="en", cp="50")
    app.text_area(key="w_cq").set_value(before).run()
    assert refusals(app) == ["vectors are missing: paste those from before and from after the rotation"]
    wrong = json.loads(after)
    wrong[1][3] += 1.0
    app.text_area(key="w_ca").set_value(json.dumps(wrong)).run()
    assert refusals(app) == []
    assert "first differs in vector 1, dimension 3" in shown(app)
    app.text_area(key="w_ca").set_value("exec('1')").run()
    assert refusals(app) == ["`exec('1')` at character 1 is not a number"]
    app.text_area(key="w_ca").set_value(after).run()
    assert "pairs dimensions i and i + 8 (Llama)" in shown(app)


def test_chinese_and_bad_links() -> None:
    assert "每个位置都多 1" in shown(open_page("check", lang="zh"))
    assert refusals(open_page("check", lang="en", cp="-1")) == [
        "`cp` must be a whole number from 0 to 2147483647, got -1"
    ]
    assert refusals(open_page("check", lang="en", cm="llama-3.1-8b")) == ["this model's `d_head` is 128, got 8"]
