"""Links, Back and Forward, pages, language: what a person chose stays, wherever they go."""

from urllib.parse import quote

import pytest

from posviz.ui.shell import PAGES

pytestmark = pytest.mark.browser

GIVEN = {"a": "狗咬人", "b": "人咬狗", "w_d_model": "128", "w_max_len": "64", "w_base": "500"}
SHARED = f"a={quote('狗咬人')}&b={quote('人咬狗')}&d_model=128&heads=2&base=500&max_len=64&encoding=rope&lang=en"


def assert_values_of_the_link(one) -> None:
    for name, value in GIVEN.items():
        assert one.widget(name).locator("input").input_value() == value, name
    assert one.widget("w_encoding").get_by_role("combobox").input_value() == "RoPE"
    assert one.widget("w_heads").get_by_role("combobox").input_value() == "2"


@pytest.mark.parametrize("path", ["/rotation", "/order"])
def test_a_deep_link_opens_a_fresh_server(fresh_server, visit, path) -> None:
    model = "&model=untrained" if path == "/attention" else ""  # d_model, changed below, is not a twin's
    one = visit(f"{path}?{SHARED}{model}", at=fresh_server)
    assert one.page.locator(".pv-brand").is_visible()
    one.until("count => document.querySelectorAll('.st-key-nav a').length === count", len(PAGES))
    assert one.alerts() == []
    assert_values_of_the_link(one)
    # nothing of Streamlit's own navigation, and no "page not found"
    assert one.page.get_by_test_id("stSidebarNav").count() == 0
    assert one.page.get_by_role("dialog").count() == 0
    if path == "/rotation":
        assert one.page.locator(".chip").first.text_content() == "狗·0"
        assert one.canvas.get_attribute("aria-label").startswith("One clock for each of 32 pairs")
    else:
        assert one.page.locator(".pv-strip .pv-a").text_content() == "A狗0咬1人2"
    # the very first change on this server arrives
    with one.changing():
        one.number("w_d_model", "64")
        one.until_params(d_model=None)


def test_back_and_forward_across_parameters_and_pages(visit) -> None:
    one = visit("/heatmap?lang=en")
    first = one.shown()
    with one.changing():
        one.number("w_d_model", "128")
    one.until_params(d_model="128")
    second = one.shown()
    with one.changing():
        one.number("w_max_len", "64")
    one.until_params(d_model="128", max_len="64")
    third = one.shown()

    one.page.go_back()
    one.until_params(d_model="128", max_len=None)
    one.until_shown(second)
    assert one.widget("w_max_len").locator("input").input_value() == "128"
    one.page.go_back()
    one.until_params(d_model=None, max_len=None)
    one.until_shown(first)
    one.page.go_forward()
    one.until_params(d_model="128")
    one.until_shown(second)
    one.page.go_forward()
    one.until_params(d_model="128", max_len="64")
    one.until_shown(third)

    one.follow("attention")
    one.until_params(d_model="128", max_len="64")
    fourth = one.shown()
    one.page.go_back()
    one.page.wait_for_url("**/heatmap*")
    one.until_shown(third)
    one.until_params(d_model="128", max_len="64")
    one.page.go_forward()
    one.page.wait_for_url("**/attention*")
    one.until_shown(fourth)


def test_page_links_keep_the_parameters(visit) -> None:
    one = visit(f"/order?{SHARED}", still=True)
    for page in ("heatmap", "similarity", "rotation", "attention", "order"):
        one.follow(page)
        one.until_params(d_model="128", heads="2", base="500", max_len="64", encoding="rope", a="狗咬人", b="人咬狗")
        assert_values_of_the_link(one)
        assert one.alerts() == []


# Every translated control away from its default.
SWITCHED = (
    "unit=byte&encoding=rope&rope_pairing=interleaved&mask=causal&precision=float64&view=sin&compare=on&base2=500&heads2=2"
    "&kind=scaled&with=t5,shaw&head=2&p=7&m=20&n=3&qi=2&ki=4&pair=3"
)
CHOICES = """() => Object.fromEntries([...document.querySelectorAll('[class*=st-key-w_], [class*=_details]')].map((node) => [
  node.className.match(/st-key-\\S+/)[0],
  [...node.querySelectorAll('[role=radio], [role=checkbox], [aria-pressed], [aria-selected], input[type=checkbox]')]
    .map((one) => one.ariaChecked ?? one.ariaPressed ?? one.ariaSelected ?? String(one.checked)).join()
    || node.querySelector('input:not([role=combobox])')?.value
]))"""


def open_details(one, page: str, index: int) -> None:
    """The formula or the code, and nothing else."""
    one.segment(f"{page}_details", index)
    shown = ".katex" if index == 0 else "[data-testid=stCode]"
    one.until(
        "([key, index, shown]) => pv.idle() && document.querySelector(shown)"
        " && document.querySelectorAll(`.st-key-${key}_details [role=radio]`)[index].ariaChecked === 'true'",
        [page, index, shown],
    )


def test_switching_the_language_resets_nothing(visit) -> None:
    one = visit(f"/heatmap?lang=en&{SWITCHED}", still=True)
    one.expand()
    assert len(one.params()) == SWITCHED.count("=") + 1
    for page in ("heatmap", "similarity", "rotation", "attention", "order"):
        if page != "heatmap":
            one.follow(page)
        open_details(one, page, 0)
        choices, numbers, params = one.ask(CHOICES), one.numbers(), one.params()
        del choices["st-key-w_lang"], choices[f"st-key-{page}_details"], params["lang"]
        for lang in ("zh", "en", "zh"):
            one.language(lang)
            # a value would be lost in the second run after the switch: make one
            open_details(one, page, 1 if lang != "en" else 0)
            now = one.ask(CHOICES)
            del now["st-key-w_lang"], now[f"st-key-{page}_details"]
            assert now == choices, (page, lang)
            assert one.numbers() == numbers, (page, lang)
            have = one.params()
            assert have.pop("lang") == lang
            assert have == params, (page, lang)
        one.language("en")


def test_the_browsers_language_comes_first_and_the_choice_stays(visit) -> None:
    one = visit("/", locale="zh-CN")
    assert "谁爱谁" in one.page.locator(".pv-title").text_content()
    one.language("en")
    one.until_params(lang="en")
    one.follow("attention")
    assert "Same words" in one.page.locator(".pv-title").text_content()
    one.until_params(lang="en")
