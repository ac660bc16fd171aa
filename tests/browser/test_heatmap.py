"""The heatmap: cells by pointer, wheel and click, against the core's own numbers."""

import math

import numpy as np
import pytest

from posviz import Dims, encodings, views

pytestmark = pytest.mark.browser

WHITE, PURPLE, GREEN = (255, 255, 255), (118, 42, 131), (27, 120, 55)


def find(one, row: int, col: int) -> tuple[float, float]:
    """Move the pointer onto a cell; returns where it is in the window."""
    box = one.box()
    x, y = box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.35

    def at(x: float, y: float) -> tuple[int, int]:
        one.point(x, y)
        r, c = one.data("row", "col")
        return int(r), int(c.split(",")[0])

    start, end = at(x, y), at(x + 120, y + 120)
    down, right = (end[0] - start[0]) / 120, (end[1] - start[1]) / 120
    here = end
    x, y = x + 120, y + 120
    for _ in range(12):
        if here == (row, col):
            return x, y
        x += (col - here[1]) / right
        y += (row - here[0]) / down
        here = at(x, y)
    raise AssertionError(f"cell {row}, {col} was not found; the pointer is over {here}")


def centre(one, row: int, col: int) -> tuple[float, float]:
    """The middle of a cell, from its edges on the screen."""
    x, y = find(one, row, col)

    def last(dx: int, dy: int) -> int:
        step = 0
        while step < 60:
            one.point(x + dx * (step + 1), y + dy * (step + 1))
            if one.data("row", "col") != (str(row), str(col)):
                break
            step += 1
        return step

    return x + (last(1, 0) - last(-1, 0)) / 2, y + (last(0, 1) - last(0, -1)) / 2


def values(one) -> list[float]:
    return [float(v) for v in one.data("value").split(",")]


def expected_colour(value: float, limit: float) -> list[int]:
    step = round(min(255, max(0, (value + limit) / (2 * limit) * 255)))
    t = (step - 127.5) / 127.5
    end = PURPLE if t < 0 else GREEN
    return [round(w + (e - w) * abs(t)) for w, e in zip(WHITE, end, strict=True)]


def test_a_click_pins_a_cell_and_the_formula_has_its_numbers(visit) -> None:
    one = visit("/heatmap?lang=en")
    x, y = find(one, 50, 11)
    one.page.mouse.click(x, y)
    one.until_params(row="50", col="11")
    one.until_data(row=50, col=11, pin="50,11")
    spec = encodings.make("sinusoidal")
    truth = float(spec.table([50], 64)[0, 11])
    assert abs(values(one)[0] - truth) <= 1e-12
    one.until("() => pv.idle() && pv.texts('.katex annotation').some((tex) => tex.includes('PE(50, 11)'))")
    formula = next(tex for tex in one.ask("() => pv.texts('.katex annotation')") if "PE(50, 11)" in tex)
    assert rf"\mathbf{{{truth:.6f}}}" in formula
    assert "10000^{10/64}" in formula and f"{50 / 10000 ** (10 / 64):.6g}" in formula
    # the pinned cell stays when the pointer leaves
    one.point(3, 3)
    one.until_data(row=50, col=11)
    # and the keyboard goes on from there
    one.canvas.focus()
    one.page.keyboard.press("ArrowRight")
    one.until_params(row="50", col="12")
    assert abs(values(one)[0] - float(spec.table([50], 64)[0, 12])) <= 1e-12


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned"])
def test_the_wheel_zooms_from_averages_to_exact_cells(visit, encoding) -> None:
    one = visit(f"/heatmap?max_len=4096&d_model=512&encoding={encoding}&lang=en")
    blocks = [int(n) for n in one.data("averaged").split("x")]
    assert max(blocks) > 1
    assert any("averaged" in text for text in one.drawn_texts())
    box = one.box()
    for i in range(240):
        if one.data("averaged") == "1x1":
            break
        if i % 40 == 0:  # again, should the page have been laid out anew meanwhile
            one.point(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
        one.page.mouse.wheel(0, -240)
        one.frames()
    if encoding == "learned":  # the exact cells come from the server
        one.until("() => pv.canvas().dataset.averaged === '1x1' && Number.isFinite(Number(pv.canvas().dataset.value))")
    assert one.data("averaged") == "1x1"
    assert any("exact" in text for text in one.drawn_texts())
    row, col = (int(v) for v in one.data("row", "col"))
    picture = views.picture(encodings.make(encoding), Dims(d_model=512, n_heads=4), 4096)
    truth = picture.sources[0].cells(row, row + 1, col, col + 1)[0, 0]
    # float32 cells of the learned table; the zoom found another cell than the first
    assert abs(values(one)[0] - truth) <= (1e-12 if encoding == "sinusoidal" else 1e-7)
    # double click: all of it again
    one.page.mouse.dblclick(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
    one.until("want => pv.canvas().dataset.averaged === want", "x".join(map(str, blocks)))


def test_two_bases_side_by_side(visit) -> None:
    one = visit("/heatmap?compare=on&base2=100&lang=en")
    x, y = find(one, 30, 20)
    one.page.mouse.click(x, y)
    one.until_params(row="30", col="20")
    found = values(one)
    for value, base in zip(found, (10_000.0, 100.0), strict=True):
        assert abs(value - float(encodings.make("sinusoidal", base=base).table([30], 64)[0, 20])) <= 1e-12
    texts = one.drawn_texts()
    assert "base 10000" in texts and "base 100" in texts


def test_a_learned_table_ends_and_nothing_is_invented(visit) -> None:
    one = visit("/heatmap?encoding=learned&lang=en")
    x, y = find(one, 140, 5)  # rows 128 .. 143 do not exist
    assert math.isnan(values(one)[0])
    one.point(3, 3)
    area = one.ask("([x, y]) => Array.from({ length: 24 }, (_, i) => pv.pixel(x - 8 + i, y))", [x, y])
    assert len({tuple(c) for c in area}) > 1, "not hatched"
    assert all(max(c) - min(c) < 24 for c in area), f"a colour of the scale where nothing is: {area}"
    assert "beyond the last row of the table" in one.drawn_texts()

    table = views.picture(encodings.make("learned"), Dims(d_model=64, n_heads=4), 128).values()
    x, y = find(one, 100, 5)
    assert abs(values(one)[0] - table[100, 5]) <= 1e-12
    one.page.mouse.click(*find(one, 140, 5))
    one.until("() => pv.idle() && pv.texts('.pv-note').some((text) => text.includes('the table ends at position 127'))")


def test_bias_thumbnails_and_rope_views(visit) -> None:
    one = visit("/heatmap?encoding=alibi&heads=8&lang=en")
    thumbs = one.page.locator(".thumbs button")
    assert thumbs.count() == 8
    slopes = encodings.make("alibi").slopes(8)
    for head in (0, 5):
        thumbs.nth(head).click()
        one.until_params(head=str(head) if head else None)
        one.until("head => pv.idle() && pv.all('.thumbs button')[head].ariaPressed === 'true'", head)
        row, col = (int(v) for v in one.data("row", "col"))
        want = -float(slopes[head]) * abs(row - col)
        one.until("want => Math.abs(Number(pv.canvas().dataset.value) - want) < 1e-12", want)

    one.select("w_encoding", "RoPE")
    one.until("() => pv.idle() && document.querySelector('.st-key-w_view')")
    theta = encodings.make("rope").inv_freq(8)
    for index, view in enumerate((np.cos, np.sin, lambda a: math.remainder(a, 2 * math.pi))):
        one.segment("w_view", index)
        one.until(
            "([i]) => document.querySelectorAll('.st-key-w_view [role=radio]')[i].ariaChecked === 'true'", [index]
        )
        one.until_params(view=(None, "sin", "angle")[index] if index else one.params().get("view"))
        one.settle()
        row, col = (int(v) for v in one.data("row", "col"))
        want = float(view(row * float(theta[col])))
        one.until("want => Math.abs(Number(pv.canvas().dataset.value) - want) < 1e-12", want)


def test_cells_have_the_colour_of_their_value(visit) -> None:
    one = visit("/heatmap?lang=en")
    table = encodings.make("sinusoidal").table(range(128), 64)
    for row, col in ((0, 1), (0, 0), (11, 0), (100, 40)):
        x, y = centre(one, row, col)
        one.point(3, 3)  # no crosshair under the pointer
        colour = one.ask("([x, y]) => pv.pixel(x, y)", [x, y])
        want = expected_colour(float(table[row, col]), 1.0)
        assert max(abs(a - b) for a, b in zip(colour, want, strict=True)) <= 3, (row, col, colour, want)
    assert expected_colour(1.0, 1.0) == list(GREEN)
