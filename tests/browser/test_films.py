"""The films of the Rotation page in a browser: they move, obey keys, agree with the core, and are saved to move again."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageChops

from posviz import Dims, attention, encodings, precision, text, workbench
from posviz.encodings.known_models import known_models
from posviz.rotation import inv_freq, permutation
from posviz.ui import blocks

pytestmark = pytest.mark.browser

PARTS = Path(__file__).parents[2] / "posviz/ui/canvas/parts"


def number(one, name: str) -> float:
    return float(one.data(name))


def until_close(one, name: str, value: float, within: float = 1e-9) -> None:
    one.until(
        "([name, value, within]) => Math.abs(Number(pv.canvas().dataset[name]) - value) <= within",
        [name, value, within],
    )


def saved(one, label: str) -> Path:
    with one.page.expect_download() as download:
        one.page.get_by_text(label, exact=True).first.click()
    return Path(download.value.path())


def frames(path: Path) -> list[Image.Image]:
    """Every tenth frame of a GIF."""
    with Image.open(path) as image:
        assert (image.format, image.info["loop"]) == ("GIF", 0)
        found = []
        for at in range(0, image.n_frames, 10):
            image.seek(at)
            found.append(image.convert("RGB"))
        assert image.n_frames == 100
    return found


def test_two_scalings_play_and_obey_keys(visit, measured) -> None:
    one = visit("/rotation?watch=two&lang=en")
    one.until_data(playing="true", mode="two")
    start = number(one, "m")
    one.until("last => Math.abs(Number(pv.canvas().dataset.m) - last) > 100", start)
    one.until("() => Number(pv.canvas().dataset.fps) > 0")
    measured(f"two scalings at 64 pairs: {number(one, 'fps'):.0f} frames a second")
    one.canvas.focus()
    one.page.keyboard.press("Space")
    one.until_data(playing="false")
    one.until("() => Number.isInteger(Number(pv.canvas().dataset.m))")
    m, n = (int(v) for v in one.data("m", "n"))
    one.page.keyboard.press("ArrowRight")
    one.until_data(m=m + 1, n=n)
    one.page.keyboard.press(".")
    one.until_data(m=m + 1, n=n + 1)
    one.page.keyboard.press("Shift+ArrowRight")
    one.until_data(m=m + 2, n=n + 2)
    one.until_params(m=str(m + 2), n=str(n + 2))

    ropes = [encodings.rope_from_config(known_models()[key].config) for key in ("qwen2.5-7b", "qwen2.5-7b-yarn")]
    for name, rope in zip(("score", "other"), ropes, strict=True):
        kernel = float((m * rope.inv_freq(131_072)).cos().mean()) * rope.attention_factor() ** 2
        until_close(one, name, kernel, 1e-6)
    pair = int(one.data("pair"))
    one.page.keyboard.press("ArrowDown")
    one.until_data(pair=pair + 1)
    turns = (m + 2) * float(ropes[0].inv_freq()[pair + 1]) / 2 / np.pi
    until_close(one, "turns", turns, 1e-6)
    assert int(one.data("wraps")) == int(turns)


def test_beyond_training_is_what_the_core_counts(visit) -> None:
    rope = encodings.rope_from_config(known_models()["llama-3.1-8b"].config)
    facts = [workbench.facts(one, 8192, 131_071) for one in (rope.unscaled(), rope)]
    one = visit("/rotation?watch=two&ra=llama-3.1-8b&rb=none&rlen=131072&m=131071&n=0&lang=en", still=True)
    assert one.data("playing", "bad", "worse") == ("false", str(facts[0].unseen), str(facts[1].unseen))
    assert facts[0].unseen > 0
    with one.changing("picture"):
        one.page.emulate_media(color_scheme="dark")
    assert Axe().run(one.page).response["violations"] == []


def test_the_base_is_swept_and_kept_in_the_link(visit) -> None:
    one = visit("/rotation?watch=base&lang=en")
    one.until_data(playing="true", mode="base")
    first = one.data("notch")
    one.until("first => pv.canvas().dataset.notch !== first", first)
    one.page.locator("button.play").click()
    one.until_data(playing="false")
    slider = one.page.locator(".sweep input")
    slider.fill("150")
    one.until_data(notch=150)
    one.until_params(notch="150")
    base = float(workbench.sweep(16, 4096).bases[150])
    until_close(one, "other", float((64 * inv_freq(16, base)).cos().mean()))
    one.until("want => pv.numbers()[0] === want", f"91 · {workbench.context_bound(inv_freq(16, base)):,}")
    slider.focus()
    one.page.keyboard.press("Space")  # the film, not the slider
    one.until_data(playing="true")
    assert Axe().run(one.page).response["violations"] == []


def test_bfloat16_ticks_as_torch_rounds(visit) -> None:
    one = visit("/rotation?watch=digits&m=257&n=250&lang=en", still=True)
    spec, dims = encodings.make("rope"), Dims(d_model=64, n_heads=4)
    omega = spec.inv_freq(16).numpy()
    trace = attention.attend(text.tokenize("我爱你", "character"), spec, dims, seed=0, max_len=128, dtype=torch.float64)
    q, k, scale = trace.q[0, 1], trace.k[0, 0], spec.scale(16)
    for index, what in enumerate(precision.ROUNDED):
        if index:
            one.select("w_rounded", ("inv_freq in bfloat16", "both, and the angle")[index - 1])
            one.until_params(rounded=what)
        errors = precision.angle_errors(omega, 258, "bfloat16", what)
        wrong = int((np.abs(errors[[257, 250]]).max(axis=0) > precision.SEEN).sum())
        error = scale * precision.score_drift(q, k, omega, "half", (257, 250), "bfloat16", what)
        one.until(
            "want => Math.abs(Number(pv.canvas()?.dataset.other) - Number(pv.canvas()?.dataset.score) - want) < 1e-12",
            error,
        )
        one.until_data(mode="digits", bad="0", worse=wrong)
        one.until("want => pv.numbers()[2] === want", blocks.compact(error))


def test_bfloat16_is_torchs_bit_by_bit(offline) -> None:
    generator = torch.Generator().manual_seed(0)
    xs = torch.randn(2000, generator=generator, dtype=torch.float64) * 10.0 ** torch.randint(
        -30, 30, (2000,), generator=generator
    )
    ties = torch.arange(0, 1025, dtype=torch.float64)  # 257, 259 ... lie halfway
    xs = torch.cat([xs, ties, -ties, ties / 3, torch.tensor([2.0**-133, 1e-40, 3.3e38])])
    source = (PARTS / "rotor.js").read_text("utf-8") + "\nreturn bfloat16"
    offline.page.goto("about:blank")
    ours = offline.ask("([source, xs]) => xs.map(new Function(source)())", [source, xs.tolist()])
    theirs = xs.to(torch.bfloat16).double()
    assert [
        x for x, a, b in zip(xs.tolist(), ours, theirs.tolist(), strict=True) if float(a) != b
    ] == []  # JSON may write a whole double as an integer


def test_the_permutation_moves_and_a_gif_of_it_is_saved(visit) -> None:
    one = visit("/rotation?watch=pairing&lang=en&d_model=128&heads=4")
    one.until_data(playing="true")
    way = one.data("way")
    one.until("way => pv.canvas().dataset.way !== way", way)
    one.canvas.focus()
    one.page.keyboard.press("Space")
    one.until_data(playing="false")
    for _ in range(4):
        one.page.keyboard.press("Shift+ArrowRight")
    one.until_data(way="1.000")
    pair = int(one.data("pair"))
    one.page.keyboard.press("ArrowDown")
    goes = {int(old): new for new, old in enumerate(permutation(32).tolist())}
    one.until_data(pair=pair + 1, goes=goes[2 * pair + 3])
    one.until_params(pair=str(pair + 1))
    assert Axe().run(one.page).response["violations"] == []

    for _ in range(4):
        one.page.keyboard.press("Shift+ArrowLeft")
    one.until_data(way="0.000")
    one.keep()
    seen = frames(saved(one, "GIF"))
    assert seen[0].width == one.ask("() => pv.canvas().clientWidth")
    assert sum(ImageChops.difference(a, b).getbbox() is not None for a, b in pairwise(seen)) >= 5
    one.until("() => pv.same(pv.picture(), pv.kept)")  # and the page is where it was


def test_a_saved_film_plays_without_a_server(visit, offline) -> None:
    one = visit("/rotation?watch=two&lang=zh&m=1000", still=True, locale="zh-CN")
    one.segment("rotation_details", 2)
    path = saved(one, "网页（可离线打开）")
    path = path.rename(path.with_suffix(".html"))
    offline.page.goto(path.as_uri())
    offline.until("() => pv.canvas()?.dataset.playing === 'true'")
    offline.until("() => Number(pv.canvas().dataset.m) > 2000")
    seen = frames(saved(offline, "GIF"))
    assert ImageChops.difference(seen[0], seen[-1]).getbbox()
    assert offline.page.locator("h1").text_content() == one.page.locator(".pv-title").text_content()
