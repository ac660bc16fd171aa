"""Every control changes what is shown and the URL, and the URL alone brings it back in another browser."""

import pytest

pytestmark = pytest.mark.browser


def segment(name: str, index: int):
    return lambda one: one.segment(name, index)


def select(name: str, option: str):
    return lambda one: one.select(name, option)


def number(name: str, value: str):
    return lambda one: one.number(name, value)


def toggle(name: str):
    return lambda one: one.widget(name).locator("label").first.click()


def slider(name: str, key: str, times: int):
    def act(one) -> None:
        one.widget(name).get_by_role("slider").focus()
        for _ in range(times):
            one.page.keyboard.press(key)

    return act


def pills(button: str, name: str, index: int):
    def act(one) -> None:
        one.page.get_by_test_id("stPopover").get_by_role("button", name=button).click()
        one.widget(name).get_by_role("button").or_(one.widget(name).get_by_role("checkbox")).nth(index).click()

    return act


def in_popover(button: str, act):
    def both(one) -> None:
        if not one.page.get_by_test_id("stPopoverBody").is_visible():
            one.page.get_by_test_id("stPopover").get_by_role("button", name=button).click()
        act(one)

    return both


# page, parameters at the start, then (parameter, its text in the URL, what a person does)
SCENES = {
    "sidebar": (
        "/attention?a=dog+bites+man&b=man+bites+dog&model=untrained",
        [
            ("unit", "word", segment("w_unit", 1)),
            ("encoding", "learned", select("w_encoding", "learned")),
            ("learned_std", "0.5", number("w_learned_std", "0.5")),
            ("encoding", "shaw", segment("w_encoding_page", 6)),
            ("shaw_max_relative", "1", number("w_shaw_max_relative", "1")),
            ("d_model", "128", number("w_d_model", "128")),
            ("heads", "8", select("w_heads", "8")),
            ("seed", "7", number("w_seed", "7")),
            ("mask", "causal", segment("w_mask", 1)),
            ("precision", "float64", segment("w_precision", 1)),
            ("encoding", "rope", segment("w_encoding_page", 3)),
            ("rope_pairing", "interleaved", segment("w_rope_pairing", 1)),
            ("rope_partial_rotary_factor", "0.5", number("w_rope_partial_rotary_factor", "0.5")),
            ("base", "500", number("w_base", "500")),
            ("base", "562", slider("w_log_base", "ArrowRight", 1)),
        ],
    ),
    "waves": (
        "/heatmap?",
        [
            ("sinusoidal_layout", "halves", segment("w_sinusoidal_layout", 1)),
            ("max_len", "64", number("w_max_len", "64")),
            ("compare", "on", segment("w_compare", 1)),
            ("base2", "50", number("w_base2", "50")),
            ("d_model2", "32", number("w_d_model2", "32")),
        ],
    ),
    "clocks as a heatmap": (
        "/heatmap?encoding=rope",
        [
            ("view", "sin", segment("w_view", 1)),
            ("view", "angle", segment("w_view", 2)),
            ("compare", "on", segment("w_compare", 1)),
            ("heads2", "2", number("w_heads2", "2")),
        ],
    ),
    "alibi": (
        "/heatmap?encoding=alibi&heads=8",
        [
            ("alibi_causal", "on", toggle("w_alibi_causal")),
            ("head", "3", lambda one: one.page.locator(".thumbs button").nth(3).click()),
            ("compare", "on", segment("w_compare", 1)),
            ("heads2", "4", number("w_heads2", "4")),
        ],
    ),
    "t5": (
        "/heatmap?encoding=t5",
        [
            ("t5_num_buckets", "8", number("w_t5_num_buckets", "8")),
            ("t5_max_distance", "32", number("w_t5_max_distance", "32")),
            ("t5_bidirectional", "off", toggle("w_t5_bidirectional")),
        ],
    ),
    "similarity": (
        "/similarity?",
        [
            ("kind", "dot", segment("w_kind", 0)),
            ("kind", "scaled", segment("w_kind", 2)),
            ("with", "sinusoidal,learned,rope,alibi,t5", pills("curves", "w_with", 4)),
            ("head", "2", in_popover("curves", number("w_head", "2"))),
            ("p", "69", lambda one: (one.canvas.focus(), [one.page.keyboard.press("ArrowRight") for _ in range(5)])),
        ],
    ),
    "rotation": (
        "/rotation?",
        [
            ("head", "2", select("w_head", "head 2")),
            ("rope_pairing", "interleaved", segment("w_rope_pairing_page", 1)),
            ("qi", "2", lambda one: one.page.locator(".chip input[name=i]").nth(2).check()),
            ("ki", "4", lambda one: one.page.locator(".chip input[name=j]").nth(4).check()),
            ("pair", "2", lambda one: (one.canvas.focus(), one.page.keyboard.press("ArrowDown"))),
            ("m", "3", lambda one: (one.canvas.focus(), one.page.keyboard.press("ArrowRight"))),
        ],
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_every_control_shows_and_is_in_the_url(visit, name) -> None:
    path, steps = SCENES[name]
    one = visit(f"{path}&lang=en", still=True)
    if name == "sidebar":
        one.expand()
    for param, value, act in steps:
        with one.changing():
            act(one)
            one.until_params(**{param: value})
        assert one.alerts() == [], (param, value)
    one.page.keyboard.press("Escape")
    one.settle()
    other = visit(one.page.url.removeprefix(one.server), still=True)
    assert other.alerts() == []
    assert other.params() == one.params()
    for each in (one, other):  # neither has a pointer or the keyboard over it
        each.page.mouse.move(3, 3)
        each.ask("() => pv.canvas().blur()")
    other.until_shown(one.shown())
