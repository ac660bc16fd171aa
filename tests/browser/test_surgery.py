"""Surgery in a real browser: a change of the positions reaches the picture, the words and the link."""

import pytest

pytestmark = pytest.mark.browser

TOLD = "() => [...document.querySelectorAll('.pv-token sub')].map((node) => node.textContent)"


def test_another_change_reaches_words_picture_numbers_and_link(visit) -> None:
    one = visit("/surgery?lang=en&smodel=twin:rope&op=freeze.3")
    assert one.ask(TOLD) == ["3"] * 8
    with one.changing():
        one.segment("w_op", 2)  # frozen, shuffled, shifted, stretched
    one.until_params(op="shift")
    assert one.ask(TOLD) == ["100", "101", "102", "103"] * 2
    assert one.ask("() => document.querySelectorAll('.pv-holds').length") == 1  # a shift is nothing to RoPE
    one.number("w_op_amount", "7")
    one.until_params(op="shift.7")
    one.until("() => pv.idle() && document.querySelector('.pv-token sub')?.textContent === '7'")
    assert one.alerts() == []


def test_what_changed_has_no_difference_row(visit) -> None:
    one = visit("/surgery?lang=en&smodel=twin:sinusoidal")
    assert "A − B" in one.drawn_texts()
    with one.changing("picture"):
        one.segment("w_stage", 2)
    one.until_params(stage="change")
    assert "A − B" not in one.drawn_texts()
    assert one.alerts() == []


def test_the_page_is_for_everybody(visit, subtests) -> None:
    one = visit("/surgery?lang=en", still=True)
    one.assert_for_everybody(subtests)
