"""Rotation: the film runs, stops, and the score stands still while query and key move together."""

import pytest
import torch

from posviz import Dims, attention, encodings, text

pytestmark = pytest.mark.browser


def number(one, name: str) -> float:
    return float(one.data(name))


def until_playing(one, on: bool) -> None:
    one.until_data(playing=str(on).lower())


def score_of(pairing: str, m: int, n: int, *, query: int = 1, key: int = 0, head: int = 0) -> float:
    spec, dims = encodings.make("rope", pairing=pairing), Dims(d_model=64, n_heads=4)
    trace = attention.attend(text.tokenize("我爱你", "character"), spec, dims, seed=0, max_len=128, dtype=torch.float64)
    q, k = (torch.tensor(x[head, [i]]) for x, i in ((trace.q, query), (trace.k, key)))
    return float(spec.rotate(q, [m]) @ spec.rotate(k, [n]).T) * spec.scale(dims.d_head)


def test_the_film_moves_and_the_score_stands_still(visit, measured) -> None:
    one = visit("/rotation?d_model=128&heads=1&lang=en")
    assert one.canvas.get_attribute("aria-label").startswith("One clock for each of 64 pairs")
    until_playing(one, True)
    seen = []
    for _ in range(6):
        last = seen[-1][0] if seen else -1
        one.until("last => Math.abs(Number(pv.canvas().dataset.m) - last) > 0.3", last)
        seen.append(tuple(float(v) for v in one.data("m", "n", "score")))
    positions, keys, scores = zip(*seen, strict=True)
    assert max(positions) - min(positions) > 1
    assert {m - n for m, n in zip(positions, keys, strict=True)} == {4.0}
    assert max(scores) - min(scores) < 1e-6
    assert number(one, "drift") < 1e-6

    one.until("() => Number(pv.canvas().dataset.fps) > 0")
    rates = [number(one, "fps")]
    for _ in range(3):
        one.frames(65)
        rates.append(number(one, "fps"))
    measured(f"rotation at 64 pairs: {max(rates):.0f} frames a second, best of {len(rates)} seconds ({rates})")
    assert max(rates) > 5


def test_pause_steps_and_speed(visit) -> None:
    one = visit("/rotation?lang=en")
    play = one.page.locator("button.play")
    until_playing(one, True)
    play.click()
    until_playing(one, False)
    one.until("() => Number.isInteger(Number(pv.canvas().dataset.m))")
    rest = one.data("m", "n")
    one.frames(20)
    assert one.data("m", "n") == rest
    assert abs(number(one, "score") - score_of("half", *(int(v) for v in rest))) < 1e-9

    # after the click the keys belong to the picture
    one.page.keyboard.press("Space")
    until_playing(one, True)
    one.until("last => Number(pv.canvas().dataset.m) !== last", float(rest[0]))
    one.page.keyboard.press("Space")
    until_playing(one, False)
    one.until("() => Number.isInteger(Number(pv.canvas().dataset.m))")

    m, n = (int(v) for v in one.data("m", "n"))
    score = number(one, "score")
    one.page.keyboard.press("Shift+ArrowRight")  # both
    one.until_data(m=m + 1, n=n + 1)
    one.until("want => Math.abs(Number(pv.canvas().dataset.score) - want) < 1e-6", score)
    one.until_params(m=str(m + 1), n=str(n + 1))

    lock = one.page.locator(".controls > button[aria-pressed]").first
    step = one.page.locator(".controls").get_by_text("+1", exact=True)
    assert lock.get_attribute("aria-pressed") == "true"
    step.click()
    one.until_data(m=m + 2, n=n + 2)
    lock.click()
    assert lock.get_attribute("aria-pressed") == "false"
    step.click()
    one.until_data(m=m + 3, n=n + 2)
    one.page.keyboard.press("ArrowLeft")  # the query alone
    one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("ArrowLeft")
    one.until_data(m=m, n=n + 2)
    one.until("want => Math.abs(Number(pv.canvas().dataset.score) - want) < 1e-6", score_of("half", m, n + 2))
    assert abs(number(one, "score") - score) > 1e-6

    with one.changing("numbers"):
        one.page.keyboard.press("ArrowRight")
        one.until_params(m=str(m + 1))
    pair = int(one.data("pair"))
    one.page.keyboard.press("ArrowDown")
    one.until_data(pair=pair + 1)
    one.until_params(pair=str(pair + 1))

    pace = one.page.locator("output.pace")
    before = pace.text_content()
    one.page.keyboard.press("]")
    assert pace.text_content() != before


def test_the_handles_of_the_ruler_can_be_pulled(visit) -> None:
    one = visit("/rotation?m=20&n=10&lang=en", still=True)
    box = one.box()
    y = box["y"] + box["height"] - 50
    one.page.mouse.move(box["x"] + box["width"] * 0.3, y)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=8)
    one.frames()
    moved = tuple(float(v) for v in one.data("m", "n"))
    assert moved[0] - moved[1] == 10 and moved[0] != 20
    one.page.mouse.up()
    one.until("() => Number.isInteger(Number(pv.canvas().dataset.m))")
    m, n = (int(v) for v in one.data("m", "n"))
    assert m - n == 10 and m > 20
    one.until_params(m=str(m), n=str(n))


def test_both_pairings_agree_with_the_core(visit) -> None:
    one = visit("/rotation?m=9&n=5&lang=en", still=True)
    for index, pairing in ((0, "half"), (1, "interleaved"), (0, "half")):
        if one.widget("w_rope_pairing_page").get_by_role("radio").nth(index).get_attribute("aria-checked") != "true":
            with one.changing("picture"):
                one.segment("w_rope_pairing_page", index)
            one.until_params(rope_pairing=None if pairing == "half" else pairing)
        score = score_of(pairing, 9, 5)
        one.until("want => Math.abs(Number(pv.canvas().dataset.score) - want) < 1e-9", score)
        one.until("want => pv.numbers()[0] === want", f"{score:.6f}".replace("-", "−"))
        one.canvas.focus()
        one.page.keyboard.press("Shift+ArrowRight")
        one.until_data(m=10, n=6)
        one.until("want => Math.abs(Number(pv.canvas().dataset.score) - want) < 1e-6", score)
        one.page.keyboard.press("Shift+ArrowLeft")
        one.until_data(m=9, n=5)
        one.until_params(m="9", n="5")


def test_reduced_motion_does_not_start_by_itself(visit) -> None:
    one = visit("/rotation?lang=en", still=True)
    assert one.data("playing", "m", "n") == ("false", "9", "5")
    one.keep()
    one.frames(30)
    assert one.data("playing", "m") == ("false", "9")
    assert one.same()
    one.page.locator("button.play").click()  # but it can be started
    until_playing(one, True)
    one.until("() => Number(pv.canvas().dataset.m) !== 9")
