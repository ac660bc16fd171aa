"""What is saved opens elsewhere: PNG, SVG, CSV, NPZ, and the page that needs no server."""

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from posviz import encodings

pytestmark = pytest.mark.browser

PAGES = ("order", "heatmap", "similarity", "rotation", "rope", "check", "attention")


def saved(one, label: str):
    with one.page.expect_download() as download:
        one.page.get_by_text(label, exact=True).first.click()
    return download.value


def test_every_page_can_be_saved(visit, offline, subtests) -> None:
    one = visit("/?lang=en&a=%3Cb%3E%26&b=%26%3Cb%3E", still=True)
    for page in PAGES:
        if page != "order":
            one.follow(page)
        with subtests.test(page=page, what="PNG and SVG"):
            check_pictures(one)
        one.segment(f"{page}_details", 2)
        with subtests.test(page=page, what="CSV and NPZ"):
            check_tables(one, page)
        with subtests.test(page=page, what="HTML"):
            check_alone(one, offline)


def check_pictures(one) -> None:
    png = saved(one, "PNG")
    assert png.suggested_filename.startswith("posviz-") and png.suggested_filename.endswith(".png")
    data = png.path().read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) > 10_000
    width = int.from_bytes(data[16:20], "big")
    assert width == 2 * int(one.ask("() => pv.canvas().clientWidth"))
    svg = ET.fromstring(saved(one, "SVG").path().read_text("utf-8"))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(svg.findall(".//{http://www.w3.org/2000/svg}text")) > 5
    for forbidden in ("script", "foreignObject", "b"):
        assert svg.findall(f".//{{http://www.w3.org/2000/svg}}{forbidden}") == []


def check_tables(one, page: str) -> None:
    lines = list(csv.reader(io.StringIO(saved(one, "Numbers as CSV").path().read_text("utf-8-sig"))))
    assert len(lines) > 5 and len({len(line) for line in lines}) == 1
    with np.load(saved(one, "Numbers as NPZ").path(), allow_pickle=False) as arrays:
        assert arrays.files and all(arrays[name].size for name in arrays.files)
        if page == "heatmap":
            truth = encodings.make("sinusoidal").table(range(128), 64).numpy()
            np.testing.assert_allclose(arrays["table"], truth, rtol=0, atol=1e-12)
            np.testing.assert_allclose([[float(x) for x in line[1:]] for line in lines[1:]], truth, rtol=0, atol=1e-12)


def check_alone(one, offline) -> None:
    html = saved(one, "Web page (works offline)")
    assert html.suggested_filename.endswith(".html")
    path = html.path().with_suffix(".html")
    path.write_bytes(html.path().read_bytes())
    offline.page.goto(path.as_uri())
    offline.until("() => pv.canvas() && pv.canvas().width > 300")
    colours = offline.ask(
        """() => {
          const canvas = pv.canvas()
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          return new Set(new Uint32Array(data.buffer)).size
        }"""
    )
    assert colours > 50, "the picture is empty"
    assert offline.page.locator("h1").text_content() == one.page.locator(".pv-title").text_content()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in offline.requests)
