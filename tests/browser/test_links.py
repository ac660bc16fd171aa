"""Links, Back and Forward, pages, language: what a person chose stays, wherever they go."""

import pytest

pytestmark = pytest.mark.browser

SHARED = "a=狗咬人&b=人咬狗&d_model=128&heads=2&base=500&max_len=64&seed=3&encoding=rope&lang=en"


@pytest.mark.parametrize("path", ["/rotation", "/attention", "/order"])
def test_a_deep_link_opens_a_fresh_server(visit, fresh_server, path) -> None:
    one = visit(f"{path}?{SHARED}", at=fresh_server)
    assert one.page.locator(".pv-brand").is_visible()
    assert one.widget("nav").get_by_role("link").count() == 5
    assert one.alerts() == []
    for name, value in {"a": "狗咬人", "b": "人咬狗", "w_d_model": "128", "w_max_len": "64", "w_base": "500"}.items():
        assert one.widget(name).locator("input").input_value() == value, name
    assert one.widget("w_encoding").get_by_role("combobox").input_value() == "RoPE"
    assert one.widget("w_heads").get_by_role("combobox").input_value() == "2"
    # nothing of Streamlit's own navigation, and no "page not found"
    assert one.page.get_by_test_id("stSidebarNav").count() == 0
    assert one.page.get_by_role("dialog").count() == 0
    if path == "/rotation":
        assert "狗·0" in one.page.locator(".chip").first.text_content()
    else:
        assert "狗0" in one.page.locator(".pv-strip").text_content()


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
