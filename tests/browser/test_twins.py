"""Twins: they write while one watches, can be stopped, and a link brings the same poems back."""

import pytest

from posviz.models.twins import store

pytestmark = pytest.mark.browser

POEMS = "() => [...document.querySelectorAll('.pv-poem div')].map((node) => node.textContent.replace('▍', ''))"


def test_poems_appear_character_by_character_and_the_link_keeps_them(visit) -> None:
    one = visit("/twins?lang=en")
    first = one.ask(POEMS)
    assert len(first) == len(store.available()) and all(poem.startswith("春") for poem in first)

    # another opening: some lengths between nothing and the whole are seen
    box = one.widget("w_opening").locator("input")
    one.ask(
        """() => {
          window.seen = new Set()
          const look = () => {
            const poem = document.querySelector('.pv-poem div')?.textContent ?? ''
            if (poem.startsWith('明月')) window.seen.add(poem.length)
            requestAnimationFrame(look)
          }
          look()
        }"""
    )
    box.fill("明月")
    box.press("Enter")
    one.until("() => pv.picture() && document.querySelector('.pv-poem b')?.textContent === '明月' && pv.idle()")
    assert one.ask("() => window.seen.size") > 1  # as often as the browser was drawn meanwhile
    one.until_params(opening="明月")
    poems = one.ask(POEMS)
    assert poems != first
    other = visit(one.page.url.removeprefix(one.server))
    assert other.ask(POEMS) == poems

    one.page.get_by_role("button", name="throw the dice again").click()
    one.until_params(dice="1")
    one.until(
        "poem => pv.idle() && pv.picture() && document.querySelector('.pv-poem div').textContent !== poem", poems[0]
    )


def test_writing_can_be_stopped_and_taken_up_again(visit) -> None:
    one = visit("/twins?lang=en&form=verse&opening=%E5%A4%A9")
    stop, on = (one.page.get_by_role("button", name=name) for name in ("stop writing", "go on writing"))
    for _ in range(5):  # a slow browser may press the button when the poems are finished
        one.page.get_by_role("button", name="throw the dice again").click()
        stop.wait_for()
        one.ask("() => [...document.querySelectorAll('button')].find(b => b.textContent === 'stop writing')?.click()")
        one.until("() => pv.idle()")
        if on.is_visible():
            break
    on.wait_for()
    part = one.ask(POEMS)
    on.click()
    on.wait_for(state="hidden")  # first: until the click has reached the server all is idle
    one.until("() => pv.idle() && pv.picture() && !document.querySelector('.pv-cursor')")
    whole = one.ask(POEMS)
    assert all(text.startswith(start) for text, start in zip(whole, part, strict=True))
    assert whole != part


def test_a_dot_opens_its_head_in_the_studio(visit) -> None:
    one = visit("/twins?lang=en")
    one.page.locator(".st-key-twins_heads .main-svg").first.wait_for()
    dot = one.page.locator(".st-key-twins_heads .point").last  # a head of the last twin, by its share on punctuation
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    one.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    one.until("() => pv.idle() && new URL(location).searchParams.get('shead') !== null")
    params = one.ask("() => Object.fromEntries(new URL(location).searchParams)")
    assert params["smodel"] == f"twin:{store.available()[-1]}" and params["sview"] == "head"
    one.page.get_by_role("link", name="look at this head →").click()
    one.until("() => location.pathname === '/studio' && pv.idle() && pv.picture()")
    one.until_params(slayer=params["slayer"], shead=params["shead"], smodel=params["smodel"])
    assert one.ask("() => document.querySelectorAll('.pv-refusal').length") == 0


def test_the_page_is_for_everybody(visit, subtests) -> None:
    one = visit("/twins?lang=en&a=%E9%BE%98", still=True)
    one.assert_for_everybody(subtests)


def test_a_script_as_an_opening_is_text(visit) -> None:
    one = visit("/twins?lang=en&opening=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    assert all(poem.startswith("<img␣src=x␣onerror=alert(1)>") for poem in one.ask(POEMS))
    assert one.ask("() => document.querySelectorAll('.pv-poem img').length") == 0
