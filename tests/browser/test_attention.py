"""Attention: every cell of every head against the trace, by pointer; masked, opened, coloured."""

import numpy as np
import pytest

from posviz import Dims, attention, compare, encodings, text
from posviz.ui.canvas import heads
from posviz.ui.canvas.bundle import standalone_html

pytestmark = pytest.mark.browser

A, B, WHITE = (31, 79, 191), (180, 86, 10), (255, 255, 255)
# Moves a pointer over all of the picture: cell -> [left, top, right, bottom, value, masked] in the canvas.
SCAN = """() => {
  const canvas = pv.canvas(), box = canvas.getBoundingClientRect(), found = {}
  const at = (x, y) => canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y }))
  for (let y = 2; y < box.height; y += 10) for (let x = 2; x < box.width; x += 10) {
    at(x, y)
    const { sentence, head, row, col, value, masked } = canvas.dataset
    if (!sentence) continue
    const key = [sentence, head, row, col].join()
    const cell = (found[key] ??= [x, y, x, y, Number(value), masked === 'true'])
    cell[2] = Math.max(cell[2], x)
    cell[3] = Math.max(cell[3], y)
  }
  canvas.dispatchEvent(new PointerEvent('pointerleave'))
  return found
}"""


def traces(encoding: str = "sinusoidal", mask: str = "none"):
    made = [
        attention.attend(
            text.tokenize(s, "character"),
            encodings.make(encoding),
            Dims(d_model=64, n_heads=4),
            seed=0,
            mask=mask,
            max_len=128,
        )
        for s in ("我爱你", "你爱我")
    ]
    return (*made, compare.weights(*made, compare.match(made[0].tokens, made[1].tokens)))


def unpin(one) -> None:
    """No cell chosen: the picture opens with the most telling one."""
    one.canvas.focus()
    if one.data("pinned"):
        one.page.keyboard.press("Escape")
    one.until_data(sentence="", pinned="")


def test_every_cell_is_the_weight_of_the_trace(visit) -> None:
    one = visit("/attention?model=untrained&lang=en")
    unpin(one)
    cells = one.ask(SCAN)
    a, b, difference = traces()
    assert len(cells) == 3 * 4 * 9
    for key, (*_, value, masked) in cells.items():
        side, *place = key.split(",")
        truth = {"a": a.weights, "b": b.weights, "d": difference}[side][tuple(map(int, place))]
        assert abs(value - truth) < 1e-6, key
        assert not masked
    # colours, at a corner of the cell, where no number is written
    box = one.box()
    for key, end, weights in (("a,0,1,0", A, a.weights[0, 1, 0]), ("b,2,0,2", B, b.weights[2, 0, 2])):
        left, top, right, bottom, *_ = cells[key]
        x, y = box["x"] + left + (right - left) * 0.15, box["y"] + top + (bottom - top) * 0.15
        colour = one.ask("([x, y]) => pv.pixel(x, y)", [x, y])
        want = [w + (e - w) * float(weights) for w, e in zip(WHITE, end, strict=True)]
        assert max(abs(p - q) for p, q in zip(colour, want, strict=True)) <= 3, (key, colour, want)


def test_queries_over_keys_of_another_sentence(offline, tmp_path) -> None:
    """As in cross-attention: every cell of a rectangle is where its query and its key meet, and can be pinned."""
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(5), size=(1, 2)), rng.dirichlet(np.ones(4), size=(1, 3))
    pairs, key_pairs = [(0, 2), (1, 0)], [(0, 3), (2, 1), (4, 0)]
    difference = np.array([[[a[0, i, k] - b[0, j, m] for k, m in key_pairs] for i, j in pairs]])
    data = heads.bundle(
        tokens_a=["x", "y"],
        keys_a=list("abcde"),
        weights_a=a,
        tokens_b=list("yzx"),
        keys_b=list("ecza"),
        weights_b=b,
        diff_tokens=["x", "y"],
        diff_keys=list("ace"),
        difference=difference,
        pairs=pairs,
        key_pairs=key_pairs,
        opened=True,
        labels={},
        alt="heads",
        file="heads",
    )
    page = tmp_path / "heads.html"
    page.write_text(standalone_html("heads", data, title="Heads"), "utf-8")
    offline.page.goto(page.as_uri())
    cells = offline.ask(SCAN) if offline.data("painted") else {}
    truth = {"a": a, "b": b, "d": difference}
    wanted = {f"{side},{h},{i},{j}": v for side, cube in truth.items() for (h, i, j), v in np.ndenumerate(cube)}
    assert set(cells) == set(wanted)
    for key, (*_, value, masked) in cells.items():
        assert abs(value - wanted[key]) < 1e-6 and not masked, key
    left, top, right, bottom, *_ = cells["a,0,1,4"]
    assert left > cells["a,0,1,0"][2] and top > cells["a,0,0,4"][3]  # keys across, queries down
    box = offline.box()
    x, y = box["x"] + (left + right) / 2, box["y"] + (top + bottom) / 2
    offline.page.mouse.click(x, y)
    offline.until_data(pinned="a,0,1,4")
    x, y = box["x"] + left + (right - left) * 0.15, box["y"] + top + (bottom - top) * 0.15
    colour = offline.ask("([x, y]) => pv.pixel(x, y)", [x, y])
    np.testing.assert_allclose(colour, np.array(WHITE) + (np.array(A) - WHITE) * a[0, 1, 4], atol=3)
    said = offline.drawn_texts()
    assert "mean weight by distance (key − query)" not in said and "c" in said


def test_hovering_shows_where_the_score_comes_from(visit) -> None:
    one = visit("/attention?model=untrained&lang=en")
    unpin(one)
    hint = "Point at a cell"
    assert any(t.startswith(hint) for t in one.drawn_texts())
    left, top, right, bottom, *_ = one.ask(SCAN)["a,1,1,2"]
    box = one.box()
    with one.changing("picture"):
        one.point(box["x"] + (left + right) / 2, box["y"] + (top + bottom) / 2)
    one.until_data(sentence="a", head=1, row=1, col=2)
    texts = one.drawn_texts()
    assert not any(t.startswith(hint) for t in texts)
    a, _, _ = traces()
    for name, part in a.parts.items():
        assert name.replace("_", " · ") in texts
        assert f"{part[1, 1, 2]:+.2f}".replace("-", "−") in texts, name
    assert f"{a.scores[1, 1, 2]:+.2f}".replace("-", "−") in texts
    assert "softmax → weight" in texts and f"{a.weights[1, 1, 2]:.3f}" in texts
    # a click keeps it when the pointer leaves
    one.page.mouse.click(box["x"] + (left + right) / 2, box["y"] + (top + bottom) / 2)
    one.until_data(pinned="a,1,1,2")
    one.point(3, 3)
    one.until_data(sentence="a", head=1, row=1, col=2)


def test_masked_cells_look_masked(visit) -> None:
    one = visit("/attention?model=untrained&mask=causal&lang=en")
    unpin(one)
    cells = one.ask(SCAN)
    for key, (*_, value, masked) in cells.items():
        side, _, i, j = key.split(",")
        if side != "d":
            assert masked == (int(j) > int(i)), key
            assert not masked or value == 0, key
    box = one.box()

    def colours(key: str) -> set[tuple[int, ...]]:
        """Along a line above the number."""
        left, top, right, bottom, *_ = cells[key]
        return {
            tuple(one.ask("([x, y]) => pv.pixel(x, y)", [box["x"] + x, box["y"] + top + (bottom - top) * 0.15]))
            for x in np.linspace(left + 6, right - 6, 14)
        }

    hatched = colours("a,0,0,2")
    assert len(hatched) > 1 and all(max(c) - min(c) < 24 for c in hatched), hatched
    assert not hatched & {WHITE}, "a masked cell must not look like a weight of zero"
    assert all(c[2] - c[0] > 24 for c in colours("a,0,0,0")), "the only key has all the weight: blue"
    assert "masked" in one.drawn_texts()


def test_a_heads_title_opens_it_and_escape_returns(visit) -> None:
    one = visit("/attention?model=untrained&lang=en")
    box = one.box()
    titles = one.ask(
        """() => {
          const canvas = pv.canvas(), box = canvas.getBoundingClientRect(), xs = []
          for (let x = 0; x < box.width; x += 6) {
            canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + 14 }))
            if (canvas.style.cursor === 'pointer') xs.push(x)
          }
          canvas.dispatchEvent(new PointerEvent('pointerleave'))
          return xs
        }"""
    )
    assert titles
    one.keep()
    one.page.mouse.click(box["x"] + titles[-1], box["y"] + 14)
    one.until_data(open=3)
    texts = one.drawn_texts()
    assert "Head 3" in texts and "Head 0" not in texts
    assert "parts of the score" in texts
    one.page.keyboard.press("PageUp")
    one.until_data(open=2)
    one.page.keyboard.press("Escape")
    one.until_data(open="")
    one.point(3, 3)
    one.until("() => pv.same(pv.picture(), pv.kept)")


def test_without_position_the_difference_is_all_zero(visit) -> None:
    one = visit("/attention?model=untrained&encoding=none&lang=en")
    unpin(one)
    cells = {key: cell for key, cell in one.ask(SCAN).items() if key.startswith("d,")}
    assert len(cells) == 4 * 9
    assert max(abs(cell[4]) for cell in cells.values()) < 1e-6
    box = one.box()
    left, top, right, bottom, *_ = cells["d,1,0,2"]
    corner = [box["x"] + left + (right - left) * 0.15, box["y"] + top + (bottom - top) * 0.15]
    colour = one.ask("([x, y]) => pv.pixel(x, y)", corner)
    assert min(colour) >= 252, colour
    assert one.page.locator(".pv-number").first.text_content().startswith(one.numbers()[0])
    # with an encoding it is not: the same weights, in place
    with one.changing("picture"):
        one.segment("w_encoding_page", 1)
        one.until_params(encoding=None)
    unpin(one)
    cells = {key: cell for key, cell in one.ask(SCAN).items() if key.startswith("d,")}
    assert max(abs(cell[4]) for cell in cells.values()) > 1e-3
