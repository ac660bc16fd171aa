"""The RoPE workbench in a browser: choosing, pasting, uploading, and the crosshair of its pictures."""

import json
import math

import pytest

from posviz import encodings
from posviz.encodings.known_models import known_models

pytestmark = pytest.mark.browser

MINE = {
    "model_type": "llama",
    "head_dim": 64,
    "max_position_embeddings": 16_384,
    "rope_theta": 500_000.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
}


def choose(one, name: str, title: str) -> None:
    box = one.widget(name).get_by_role("combobox")
    box.click()
    box.press_sequentially(title)
    one.page.get_by_role("option", name=title, exact=True).click()


def paste(one, index: int, text: str) -> None:
    one.page.get_by_test_id("stPopover").get_by_role("button").nth(index).click()
    area = one.page.get_by_role("textbox", name="config.json").last
    area.fill(text)
    area.press("Control+Enter")


def test_every_picture_follows_its_button_and_the_link(visit) -> None:
    one = visit("/rope?lang=en", still=True)
    assert one.numbers()[:2] == ["24 / 64", "0 / 64"]
    for index, view in ((1, "waves"), (2, "angles"), (4, "needle")):
        one.segment("w_rview", index)
        one.until_params(rview=view)
        one.until("want => pv.idle() && pv.canvas()?.dataset.name === want", view)
    kept = one.shown()
    again = visit(one.page.url.removeprefix(one.server), still=True)
    again.until_shown(kept)


def test_the_crosshair_reads_the_cores_numbers(visit) -> None:
    one = visit("/rope?lang=en&ra=llama-3.1-8b&rb=none&rlen=131072", still=True)
    rope = encodings.rope_from_config(known_models()["llama-3.1-8b"].config)
    one.canvas.focus()
    one.page.keyboard.press("End")
    one.until_data(at=63)
    for _ in range(2):
        one.page.keyboard.press("Shift+ArrowLeft")
    one.until_data(at=43)
    # the leading curve is linear interpolation: the whole stretch
    assert float(one.data("value")) == pytest.approx(8192 / 131_072)
    tip = one.ask("() => pv.all('.tip')[0].innerText")
    ratio = float(rope.inv_freq()[43] / rope.unscaled_inv_freq()[43])
    assert f"A · Llama 3.1 8B: {ratio:.4f}" in tip, tip
    one.page.keyboard.press("Escape")
    one.until_data(at="")
    box = one.box()
    one.point(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    assert 20 < int(one.data("at")) < 55


def test_the_arcs_say_what_a_pair_does(visit) -> None:
    one = visit("/rope?lang=en&rview=angles", still=True)
    assert one.data("unseen") == "24 0"
    one.canvas.focus()
    one.page.keyboard.press("End")
    one.until_data(pair=63)
    one.page.keyboard.press("ArrowUp")
    one.until_data(pair=47)
    tip = one.ask("() => pv.all('.tip')[0].innerText")
    turns = 32_768 / (2 * math.pi * 1e6 ** (2 * 47 / 128))
    assert f"{turns:.3g} turns in training" in tip, tip


def test_another_model_changes_everything(visit) -> None:
    one = visit("/rope?lang=en", still=True)
    with one.changing():
        choose(one, "w_ra", "Llama 2 7B")
    one.until_params(ra="llama-2-7b")
    with one.changing():
        choose(one, "w_rb", "no second model")
    one.until_params(rb="none")
    with one.changing():
        one.number("w_rlen", "4096")
    one.until("() => pv.numbers()[0] === '0 / 64'")
    one.language("zh")
    one.until("() => pv.numbers()[0] === '0 / 64'")
    assert one.params()["ra"] == "llama-2-7b"


def test_a_pasted_file_is_read_and_stays_in_the_link(visit) -> None:
    one = visit("/rope?lang=en", still=True)
    with one.changing():
        paste(one, 0, json.dumps({**MINE, "vocab_size": 1, "torch_dtype": "x"}, indent=2))
    one.until("() => new URLSearchParams(location.search).get('ra')?.startsWith('{')")
    assert json.loads(one.params()["ra"]) == MINE
    kept = one.shown()
    again = visit(one.page.url.removeprefix(one.server), still=True)
    again.until_shown(kept)


def test_a_file_that_cannot_be_is_answered(visit, tmp_path) -> None:
    one = visit("/rope?lang=en", still=True)
    paste(one, 1, '{"head_dim": 64, "rope_scaling": {"type": "yarn", "factor": "4"}}')
    one.until(
        "() => pv.alerts()[0] === '`original_max_position_embeddings` is missing; RoPE cannot be worked out without it'"
    )
    good = tmp_path / "config.json"
    good.write_text(json.dumps(MINE))
    one.page.get_by_test_id("stFileUploaderDropzoneInput").last.set_input_files(good)
    one.until("() => pv.idle() && !pv.alerts().length && pv.canvas()")
    one.until("() => new URLSearchParams(location.search).get('rb')?.startsWith('{')")
    assert json.loads(one.params()["rb"]) == MINE
