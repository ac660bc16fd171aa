"""The home page and the sentences: typing, cutting, examples, swapping, the bars."""

import re

import pytest

from posviz.ui.controls import PRESETS

pytestmark = pytest.mark.browser


def strip(one) -> dict[str, str]:
    return {side: one.page.locator(f".pv-strip .pv-{side}").text_content() for side in "ab"}


def until_strip(one, side: str, text: str) -> None:
    one.until(
        "([side, text]) => pv.idle() && document.querySelector(`.pv-strip .pv-${side}`).textContent === text",
        [side, text],
    )


def test_the_home_page_answers_at_once(visit) -> None:
    one = visit("/?lang=en")
    assert strip(one) == {"a": "A我0爱1你2", "b": "B你0爱1我2"}
    without, pooled, chosen = one.numbers()
    assert re.search(r"×10⁻[⁶⁷⁸]|^0$", without) and re.search(r"×10⁻[⁶⁷⁸]|^0$", pooled)
    assert float(chosen) > 0.01
    texts = one.drawn_texts()
    assert "No position" in texts and any("sinusoidal" in text for text in texts)


def test_typing_changes_strip_and_picture_while_one_types(visit) -> None:
    one = visit("/?lang=en")
    with one.changing("picture"), one.changing("numbers"):
        one.type("a", "我很爱你")  # no Enter
        until_strip(one, "a", "A我0很1爱2你3")
    one.until_params(a="我很爱你", b=None)
    assert "Unmatched: 1 of A's and 0 of B's words" in one.page.locator(".pv-note").first.text_content()

    # the same in a new browser
    other = visit(one.page.url.removeprefix(one.server))
    other.until_shown(one.shown())

    # key by key, and empty in between
    box = one.widget("b").locator("input")
    box.fill("")
    one.until("() => pv.alerts().length === 1")
    assert one.alerts() == ["Sentence B is empty: type a word, or choose one of the examples."]
    box.press_sequentially("ab")
    until_strip(one, "b", "Ba0b1")
    one.until("() => pv.alerts().length === 0 && pv.canvas()")


def test_unit_examples_and_swap(visit) -> None:
    one = visit("/?a=dog+bites+man&b=man+bites+dog&lang=en")
    assert strip(one)["a"].startswith("Ad0o1g2")
    for index, unit, text in ((1, "word", "Adog0bites1man2"), (2, "byte", None), (0, None, None)):
        with one.changing("picture"):
            one.segment("w_unit", index)
            one.until_params(unit=unit)
        if text:
            until_strip(one, "a", text)

    for i in (0, 4):
        a, b, unit = PRESETS[i]
        one.page.get_by_role("button", name="examples").click()
        with one.changing("picture"):
            one.page.get_by_role("menuitem").nth(i).click()
        one.until(
            "([a, b]) => ['a', 'b'].every((side, i) =>"
            " document.querySelector(`.st-key-${side} input`).value === [a, b][i])",
            [a, b],
        )
        one.until_params(unit=None if unit == "character" else unit)
        one.page.get_by_role("menu").wait_for(state="hidden")

    before = strip(one)
    with one.changing("picture"):
        one.page.get_by_role("button", name="swap").click()
        until_strip(one, "a", "A" + before["b"][1:])
    until_strip(one, "b", "B" + before["a"][1:])
    one.until_params(a="man bites dog", b="dog bites man")


def test_bars_choose_the_encoding_and_the_slide_matches_words(visit) -> None:
    one = visit("/?lang=en")
    box = one.box()
    # the first arrow key lands on a barcode, down from the last row on the bars
    one.canvas.focus()
    for key in ("ArrowDown", *["ArrowDown"] * 3, "ArrowRight", "ArrowRight", "ArrowRight"):
        one.page.keyboard.press(key)
    one.until_data(kind="bar", bar=3)
    with one.changing("picture"):
        one.page.keyboard.press("Enter")
        one.until_params(encoding="rope")
    one.until("() => document.querySelector('.st-key-w_encoding input').value === 'RoPE'")

    # a bar by mouse, found where the pointer says so
    one.box()
    hit = one.ask(
        """() => {
          const canvas = pv.canvas(), box = canvas.getBoundingClientRect()
          for (let y = box.height - 40; y > box.height / 2; y -= 8)
            for (let x = 10; x < box.width; x += 20) {
              canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y }))
              if (canvas.dataset.kind === 'bar' && canvas.dataset.bar === '4') return [x, y]
            }
        }"""
    )
    one.canvas.click(position={"x": hit[0] + 4, "y": hit[1]})
    one.until_params(encoding="alibi")
    assert box["width"] > 700

    one.settle()
    one.keep()
    one.page.locator(".controls button").first.click()
    one.until_data(slide=1)
    assert not one.same()
    one.page.locator(".controls button").first.click()
    one.until_data(slide=0)
    assert one.same()
