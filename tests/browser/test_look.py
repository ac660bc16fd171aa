"""How it looks: light and dark, narrow and wide, for everybody, and without a network."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error

pytestmark = pytest.mark.browser

PAGES = ("order", "heatmap", "similarity", "rotation", "rope", "check", "attention")
# Violations of Streamlit's own markup, none of ours: rule -> what the element must match.
STREAMLIT: dict[str, str] = {}


def violations(one, **options) -> list[str]:
    found = []
    for rule in Axe().run(one.page, options=options or None).response["violations"]:
        for node in rule["nodes"]:
            known = STREAMLIT.get(rule["id"])
            if not (known and re.search(known, node["html"])):
                found.append(f"{rule['id']}: {node['target']} {node['html'][:200]} {node['failureSummary'][:300]}")
    return found


def tour(one):
    """The pages one after another, without loading the app again."""
    yield "order"
    for page in PAGES[1:]:
        one.follow(page)
        yield page


def luminance(colour: str) -> float:
    parts = [int(float(x)) / 255 for x in re.findall(r"[\d.]+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_accessible_and_readable_in_light_and_dark(visit, subtests) -> None:
    one = visit("/?lang=en", still=True)
    for page in tour(one):
        with subtests.test(page=page, dark=False):
            assert violations(one) == []
        with subtests.test(page=page, dark=True):
            one.keep("shown")
            with one.changing("picture"):
                one.page.emulate_media(color_scheme="dark")
            background = one.ask(
                "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
            )
            assert luminance(background) < 0.02
            # an empty corner of the picture lets the dark page through; saved as PNG it is dark too
            text = one.ask("() => getComputedStyle(document.querySelector('.pv-title')).color")
            assert (luminance(text) + 0.05) / (luminance(background) + 0.05) > 7
            assert violations(one, runOnly=["color-contrast"]) == []
        one.page.emulate_media(color_scheme="light")
        one.until("() => pv.idle() && pv.same(pv.shown(), pv.kept)")


def test_the_zero_of_the_heatmap_is_dark_in_the_dark(visit) -> None:
    one = visit("/heatmap?lang=en", dark=True)
    box = one.box()
    corner = one.ask(
        """() => {
          const canvas = pv.canvas()
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
          let bright = 0, dark = 0
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] < 255) continue
            const sum = data[i] + data[i + 1] + data[i + 2]
            if (sum > 690) bright++
            if (sum < 150) dark++
          }
          return { bright, dark, all: data.length / 4 }
        }"""
    )
    assert box["width"] > 600
    assert corner["bright"] < corner["all"] * 0.01, corner
    assert corner["dark"] > corner["all"] * 0.05, corner


def assert_fits(one, width: int) -> None:
    """Nothing is cut off, and the picture fills the page."""
    one.page.set_viewport_size({"width": width, "height": 900})
    script = """width => {
      const main = document.querySelector('[data-testid=stMain]')
      const block = document.querySelector('[data-testid=stMainBlockContainer]')
      const style = getComputedStyle(block)
      const canvas = pv.canvas()?.getBoundingClientRect()
      if (!canvas) return null // a narrow window is laid out anew
      const room = block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
      return {
        page: document.scrollingElement.scrollWidth - innerWidth,
        main: main.scrollWidth - main.clientWidth,
        beyond: canvas.right - width,
        unused: room - canvas.width,
      }
    }"""
    fits = "sizes => sizes && sizes.page <= 0 && sizes.main <= 0 && sizes.beyond <= 0 && Math.abs(sizes.unused) <= 2"
    try:
        one.page.wait_for_function(f"width => ({fits})(({script})(width))", arg=width, polling=50, timeout=20_000)
    except Error:
        raise AssertionError(f"{width} px: {one.ask(script, width)}") from None


def test_pages_fit_wide_windows_and_nothing_leaves_this_machine(visit, subtests) -> None:
    one = visit("/?lang=en", still=True)
    for page in tour(one):
        for width in (1920, 1280):
            with subtests.test(page=page, width=width):
                assert_fits(one, width)
    assert len(one.requests) > 10
    here = (one.server, one.server.replace("http://", "ws://", 1), "data:", "blob:")
    assert [url for url in one.requests if not url.startswith(here)] == []


def test_pages_fit_a_phone(visit, subtests) -> None:
    one = visit("/?lang=en", width=400, height=900, still=True)
    for page in PAGES:
        if page != "order":
            one.open(f"/{page}?lang=en")  # the sidebar with the links is folded away
        with subtests.test(page=page):
            assert_fits(one, 400)


def test_claims_stand_on_one_line(visit) -> None:
    """Beside the page's controls where both have room, above them where not."""
    one = visit("/heatmap?lang=en&encoding=learned", still=True)
    for page in ("heatmap?lang=en&encoding=learned", "similarity?lang=en", "rotation?lang=en", "rotation?lang=zh"):
        one.page.goto(f"{one.server}/{page}")
        one.settle()
        lines = one.ask(
            "() => { const e = document.querySelector('.pv-claim');"
            " return e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight) }"
        )
        assert round(lines) == 1, page
