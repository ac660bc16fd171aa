"""Tables: a file is uploaded, stays with its visitor, and the picture is drawn from its numbers."""

import io

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from posviz import encodings

pytestmark = pytest.mark.browser


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def give(one, name: str, data: bytes) -> None:
    """Open the page's box and put a file into it."""
    one.page.get_by_role("button", name="upload a table").click()
    one.page.locator(".st-key-w_table_file input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    )


def test_a_table_of_ones_own(visit) -> None:
    one = visit("/tables?lang=en", still=True)
    with one.changing("picture"):
        give(one, "mine.npy", npy(encodings.make("sinusoidal").table(range(40), 16).numpy()))
        one.until_params(table="upload")
    one.until("() => pv.numbers()[0] === '100 %' && pv.numbers()[1] === '100 %'")
    assert "mine.npy · 40 × 16" in one.drawn_texts()
    one.page.locator(".st-key-w_table_file").wait_for(state="hidden")  # the box closes: the picture is what counts
    # another page and back: it is still there
    one.follow("heatmap")
    one.page.go_back()
    one.until("() => pv.idle() && pv.numbers()[0] === '100 %' && pv.canvas()")
    # the same link in somebody else's window
    other = visit("/tables?lang=en&table=upload", still=True)
    assert other.alerts() == [
        "this link shows a table that somebody uploaded in another session: upload it here to see it"
    ]
    # a file that is none is a sentence in the picture's place
    give(one, "evil.npy", b"\x80\x04\x95rest")
    one.until("() => pv.idle() && pv.alerts().length === 1")
    assert one.alerts() == ["the file is none of .npy, .npz, .safetensors and .csv"]
    assert one.page.locator(".st-key-w_table_file").is_visible()  # for another one


def test_the_page_is_accessible_and_fits(visit) -> None:
    for options in ({"still": True}, {"still": True, "dark": True, "width": 1920, "height": 1080}):
        one = visit("/tables?lang=zh", **options)
        one.until("() => pv.all('canvas[data-painted]').length === 5")
        found = Axe().run(one.page).response["violations"]
        assert [(rule["id"], node["html"][:160]) for rule in found for node in rule["nodes"]] == []
        assert one.ask("() => document.documentElement.scrollWidth <= innerWidth")
