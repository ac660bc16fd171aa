"""Similarity: the matrix, its row among the curves, and which curves."""

import pytest

from posviz import encodings, similarity

pytestmark = pytest.mark.browser


# Where the matrix is: there the pointer becomes a hand.
MATRIX = """() => {
  const canvas = pv.canvas(), box = canvas.getBoundingClientRect()
  const place = { left: Infinity, top: Infinity, right: 0, bottom: 0 }
  for (let y = 3; y < box.height; y += 24) for (let x = 3; x < box.width; x += 24) {
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y }))
    if (canvas.style.cursor !== 'pointer') continue
    Object.assign(place, { left: Math.min(place.left, x), top: Math.min(place.top, y) })
    Object.assign(place, { right: Math.max(place.right, x), bottom: Math.max(place.bottom, y) })
  }
  canvas.dispatchEvent(new PointerEvent('pointerleave'))
  return place
}"""
WIDE = {"width": 1600, "height": 1000}


def in_matrix(one, across: float, down: float) -> tuple[float, float]:
    """A point of the window in the matrix, by its share of width and height."""
    place, box = one.ask(MATRIX), one.box()
    assert place["right"] > place["left"]
    return (
        box["x"] + place["left"] + across * (place["right"] - place["left"]),
        box["y"] + place["top"] + down * (place["bottom"] - place["top"]),
    )


def test_the_pointer_moves_the_row_and_a_click_keeps_it(visit) -> None:
    one = visit("/similarity?lang=en&kind=dot", **WIDE)
    assert one.data("position", "pinned") == ("64", "false")  # the middle, until somebody chooses
    square = similarity.matrix(encodings.make("sinusoidal").table(range(128), 64), "dot")

    def row_at(down: float) -> int:
        one.point(*in_matrix(one, 0.5, down))
        p, k, value = one.data("position", "k", "value")
        assert abs(float(value) - square[int(p), int(p) + int(k)]) < 1e-5  # it travels as float32
        return int(p)

    with one.changing("picture"):
        first = row_at(0.2)
    second = row_at(0.6)
    assert 0 < first < second < 128
    one.page.mouse.click(*in_matrix(one, 0.5, 0.6))
    one.until_params(p=str(second))
    one.point(3, 3)
    one.until_data(position=second, pinned="true", home=second)
    one.canvas.focus()
    one.page.keyboard.press("End")
    one.until_params(p="127")
    one.page.keyboard.press("Escape")  # back to the position that the page chose
    one.until_params(p="64")
    one.until_data(position=64)


def test_which_curves_and_which_similarity(visit) -> None:
    one = visit("/similarity?lang=en", **WIDE)
    assert one.canvas.get_attribute("aria-label") == "Similarity against distance for sinusoidal, learned, RoPE, ALiBi"
    one.page.get_by_test_id("stPopover").get_by_role("button", name="curves").click()
    with one.changing("picture"):
        one.widget("w_with").get_by_text("RoPE", exact=True).click()
        one.until_params(**{"with": "sinusoidal,learned,alibi"})
    with one.changing("picture"):
        one.widget("w_with").get_by_text("Shaw", exact=True).click()
        one.until_params(**{"with": "sinusoidal,learned,alibi,shaw"})
    assert one.canvas.get_attribute("aria-label") == "Similarity against distance for sinusoidal, learned, ALiBi, Shaw"
    one.page.keyboard.press("Escape")

    table = encodings.make("sinusoidal").table(range(128), 64)
    for index, kind in enumerate(("dot", "cosine", "scaled")):
        one.segment("w_kind", index)
        one.until_params(kind=None if kind == "cosine" else kind)
        one.settle()
        one.point(*in_matrix(one, 0.7, 0.3))
        square = similarity.matrix(table, kind)
        p, k = (int(v) for v in one.data("position", "k"))
        one.until("want => Math.abs(Number(pv.canvas().dataset.value) - want) < 1e-5", float(square[p, p + k]))
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
    mean = similarity.by_distance(spec.table(range(512), 64), "cosine").mean[k]
    assert abs(float(means[0]) - mean) < 1e-9
