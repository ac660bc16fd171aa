"""Studio: pixels of a known head, the way from the grid to one weight, and a link that brings it all back."""

import numpy as np
import pytest

from posviz import survey
from posviz.models.twins import store

pytestmark = pytest.mark.browser

A_BLUE, TEAL, WHITE = np.array([31, 79, 191]), np.array([15, 157, 138]), 255.0


def layers():
    twin = store.load("rope")
    return twin.trace(twin.tokenize("我爱你")).layers


def test_the_grid_shows_the_weights_and_opens_a_head(visit) -> None:
    one = visit("/studio?lang=en&encoding=rope")
    one.canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        one.page.keyboard.press(key)
    one.until_data(head="2,2")
    one.frames()
    x, y, size = map(float, one.data("place").split(","))
    box = one.box()
    weights = layers()[2].weights[2]
    cell = size / len(weights)
    for i in range(len(weights)):
        for j in range(i + 1):  # what is not masked
            got = one.ask(
                "([x, y]) => pv.pixel(x, y)", [box["x"] + x + (j + 0.5) * cell, box["y"] + y + (i + 0.5) * cell]
            )
            np.testing.assert_allclose(got, WHITE + (A_BLUE - WHITE) * weights[i, j], atol=3)

    one.page.keyboard.press("Enter")
    one.until_params(sview="head", slayer="3", shead="2")
    one.settle()
    one.until_data(open="0")
    one.page.go_back()
    one.until_params(sview=None)


def test_sorted_by_a_measure_and_a_link_that_keeps_it(visit) -> None:
    one = visit("/studio?lang=en&encoding=rope")
    one.page.locator("select").select_option("previous")
    one.until_params(smeasure="previous", ssorted=None)  # the heads keep their places until somebody sorts
    one.page.get_by_role("button", name="strongest first").click()
    one.until_params(smeasure="previous", ssorted="on")
    scores = np.stack([survey.head_scores(layer.weights, layer.allowed)["previous"] for layer in layers()])
    best = [f"{k // 4}.{k % 4}" for k in np.argsort(-scores, axis=None, kind="stable")]
    one.until_data(order=" ".join(best))
    one.canvas.focus()
    for k, key in enumerate(("ArrowDown", "ArrowRight", "ArrowRight")):  # the tiles have the colours of the scores
        one.page.keyboard.press(key)
        one.until_data(head=best[k].replace(".", ","))
        one.frames()
        x, y, size = map(float, one.data("place").split(","))
        box = one.box()
        got = one.ask("([x, y]) => pv.pixel(x, y)", [box["x"] + x - 2.5, box["y"] + y + size / 2])
        np.testing.assert_allclose(got, WHITE + (TEAL - WHITE) * sorted(scores.flat)[-1 - k], atol=3)
    other = visit(one.page.url.removeprefix(one.server))
    assert other.data("order", "measure") == (" ".join(best), "previous")


def test_from_a_weight_to_the_nine_steps(visit) -> None:
    one = visit("/studio?lang=en&encoding=rope&sview=weight&slayer=3&shead=2&scell=b.2.1", still=True)
    picture = one.ask("() => pv.picture()")
    one.segment("w_sview", 4)
    one.until("before => pv.idle() && pv.canvas() && !pv.same(pv.picture(), before)", picture)
    one.page.get_by_role("button", name="6").first.click()
    one.until_params(sview="steps", sstep="6")
    one.canvas.focus()
    one.page.keyboard.press("ArrowRight")
    one.until_params(sstep="7")


@pytest.mark.parametrize("view", ["grid", "lines", "steps"])
def test_the_page_is_for_everybody(visit, subtests, view: str) -> None:
    one = visit(f"/studio?lang=en&sview={view}&a=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", still=True)
    one.assert_for_everybody(subtests)
