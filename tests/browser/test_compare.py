"""Compare and Myths: what only a browser sees of the table, the pair, and a prediction."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from posviz.encodings import ENCODINGS

pytestmark = pytest.mark.browser
ROWS = "() => pv.all('tr[id^=row-]').map((row) => row.id.slice(4))"
WIDE = {"width": 1600, "height": 1000}


def test_the_table_is_filtered_sorted_and_in_the_link(visit) -> None:
    one = visit("/compare?lang=en", **WIDE)
    assert one.ask(ROWS) == list(ENCODINGS)
    one.segment("w_enters", 3)
    one.until_params(enters="rotary")
    one.until("() => pv.idle() && pv.all('tr[id^=row-]').length === 4")
    one.select("w_sort", "name")
    one.until_params(sort="name")
    one.until("() => pv.idle()")
    rotary = [name for name, cls in ENCODINGS.items() if cls.kind == "rotary"]
    assert one.ask(ROWS) == sorted(rotary, key=lambda name: ENCODINGS[name].title.en.lower())
    again = visit("/compare?lang=en&enters=rotary&sort=name", **WIDE)
    assert again.ask(ROWS) == one.ask(ROWS)


def test_two_encodings_side_by_side(visit) -> None:
    one = visit("/compare?lang=en&one=sincos_2d&two=alibi", **WIDE)
    one.until("() => pv.idle() && pv.all('canvas[data-painted]').length >= 2")
    with one.changing("picture"):
        one.segment("w_pair_view", 3)
        one.until_params(pair_view="order")
    assert {"2-D sin-cos", "ALiBi"} <= set(one.drawn_texts())


def test_a_click_on_a_patch_moves_the_comparison(visit) -> None:
    one = visit("/heatmap?lang=en&encoding=rope_2d", **WIDE)
    box = one.box()
    with one.changing("picture"):
        one.page.mouse.click(box["x"] + box["width"] * 0.15, box["y"] + box["height"] * 0.35)
        one.until("() => new URLSearchParams(location.search).has('row')")
    params = one.params()
    assert 0 <= int(params["row"]) < 8 and 0 <= int(params["col"]) < 12


def test_a_prediction_is_revealed_and_kept_in_the_link(visit) -> None:
    one = visit("/?lang=en", **WIDE)
    one.page.goto(one.server + "/myths?lang=en")
    one.until("() => pv.idle() && pv.numbers().length === 3")
    one.widget("myth_falls").get_by_text("true", exact=True).click()
    one.until_params(guesses="falls:true")
    one.until("() => pv.idle() && pv.all('.pv-verdict').length === 1")
    assert "Measured: false" in one.page.locator(".pv-verdict").inner_text()
    one.page.get_by_role("button", name="Reveal all").click()
    one.until("() => pv.idle() && pv.all('.pv-verdict').length === 13")
    assert re.search("falls:true", one.params()["guesses"])
    one.page.get_by_role("button", name="Start again").click()
    one.until("() => pv.idle() && pv.all('.pv-verdict').length === 0")


def test_both_pages_are_accessible_and_fit(visit) -> None:
    one = visit("/compare?lang=zh", still=True)
    for page in ("compare", "myths"):
        one.page.goto(f"{one.server}/{page}?lang=zh&guesses=unique:depends")
        one.until("() => pv.idle() && pv.numbers().length >= 3")
        found = Axe().run(one.page).response["violations"]
        assert [(rule["id"], node["html"][:160]) for rule in found for node in rule["nodes"]] == []
        assert one.ask("() => document.documentElement.scrollWidth <= innerWidth")
