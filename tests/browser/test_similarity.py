"""Similarity: the matrix, its row among the curves, and which curves."""

import pytest

from posviz import encodings, similarity

pytestmark = pytest.mark.browser


def test_the_pointer_moves_the_row_and_a_click_keeps_it(visit) -> None:
    one = visit("/similarity?lang=en")
    assert one.data("position", "pinned") == ("0", "false")
    square = similarity.matrix(encodings.make("sinusoidal").table(range(128), 64), "dot")
    box = one.box()
    x = box["x"] + box["width"] - 120  # the matrix stands at the right

    def row_at(y: float) -> int:
        one.point(x, box["y"] + y)
        p, k, value = one.data("position", "k", "value")
        assert abs(float(value) - square[int(p), int(p) + int(k)]) < 1e-9
        return int(p)

    with one.changing("picture"):
        first = row_at(130)
    second = row_at(220)
    assert 0 < first < second < 128
    one.page.mouse.click(x, box["y"] + 220)
    one.until_params(p=str(second))
    one.point(3, 3)
    one.until_data(position=second, pinned="true", home=second)
    one.canvas.focus()
    one.page.keyboard.press("End")
    one.until_params(p="127")
    one.page.keyboard.press("Escape")  # back to the position that the page chose
    one.until_params(p=None)
    one.until_data(position=0)


def test_which_curves_and_which_similarity(visit) -> None:
    one = visit("/similarity?lang=en")
    assert one.canvas.get_attribute("aria-label") == "Similarity against distance for sinusoidal, learned, RoPE, ALiBi"
    one.page.get_by_test_id("stPopover").get_by_role("button", name="encodings").click()
    with one.changing("picture"):
        one.widget("w_with").get_by_text("RoPE", exact=True).click()
        one.until_params(**{"with": "sinusoidal,learned,alibi"})
    with one.changing("picture"):
        one.widget("w_with").get_by_text("Shaw", exact=True).click()
        one.until_params(**{"with": "sinusoidal,learned,alibi,shaw"})
    assert one.canvas.get_attribute("aria-label") == "Similarity against distance for sinusoidal, learned, ALiBi, Shaw"
    one.page.keyboard.press("Escape")

    box = one.box()
    table = encodings.make("sinusoidal").table(range(128), 64)
    for index, kind in enumerate(("dot", "cosine", "scaled")):
        one.segment("w_kind", index)
        one.until_params(kind=kind if index else None)
        one.settle()
        one.point(box["x"] + box["width"] - 120, box["y"] + 150)
        square = similarity.matrix(table, kind)
        p, k = (int(v) for v in one.data("position", "k"))
        one.until("want => Math.abs(Number(pv.canvas().dataset.value) - want) < 1e-9", float(square[p, p + k]))
        one.point(3, 3)


def test_range_and_scale_of_the_distance(visit) -> None:
    one = visit("/similarity?max_len=512&lang=en")
    assert one.data("range") == "-64 64"
    for name, expected in (("k ≤ 256", "-256 256"), ("±k", "0 256")):
        with one.changing("picture"):
            one.page.locator(".controls").get_by_text(name, exact=True).click()
        one.until_data(range=expected)
    with one.changing("picture"):
        one.page.locator(".controls").get_by_text("log k", exact=True).click()
    one.until_data(range="0 256")
    # the curves under the pointer: one value for each
    box = one.box()
    one.point(box["x"] + box["width"] * 0.25, box["y"] + 200)
    k = int(one.data("k"))
    means = one.data("values").split(" ")
    assert k > 0 and len(means) == 4
    spec = encodings.make("sinusoidal")
    mean = similarity.by_distance(spec.table(range(512), 64)).mean[k]
    assert abs(float(means[0]) - mean) < 1e-9
