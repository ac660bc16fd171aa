"""Whatever the URL or a person gives: one sentence or a working page, and it can be put right."""

from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

# The whole sentences are tests/test_pages.py's: here each must name the parameter and what it got.
WORKS: tuple[str, ...] = ()
# (query, what the sentence says; WORKS: a picture and no sentence)
LINKS = [
    ("d_model=abc", ("d_model", "abc")),
    ("d_model=64&d_model=128", ("d_model", "more than once", "64, 128")),
    ("encoding=%3Cscript%3Ealert(1)%3C/script%3E", ("encoding", "none, sinusoidal", "<script>alert(1)</script>")),
    ("a=" + "x" * 10_000, ("10,000 tokens", "512")),
    ("a=%00%00b", WORKS),
    ("a=%ED%A0%80%FF", WORKS),
    ("a=" + quote("好" * 512) + "&max_len=512", WORKS),
]
# The same through Back and Forward, in an open page.
STEPS = [
    ("base=nan", ("base", "nan", "above 1")),
    ("base=inf", ("base", "inf", "above 1")),
    ("base=1", ("base", "above 1", "got 1")),
    ("d_model=0", ("d_model", "1 to 1024", "got 0")),
    ("d_model=65", ("n_heads", "65", "1, 5, 13 heads")),
    ("d_model=28&encoding=rope", ("d_head", "even", "try d_model 32")),
    ("max_len=2", ("max_len", "3 tokens", "got 2")),
    ("max_len=1e99", ("max_len", "1 to 8192", "1e99")),
    ("heads=-3", ("heads", "-3")),
    ("mask=half", ("mask", "none, causal", "got half")),
    ("unit=&encoding=rope", ("unit", "character, word, byte")),
    ("seed=1&seed=1", ("seed", "more than once", "1, 1")),
    ("nonsense=1&__proto__=2&a=x", WORKS),
    ("a=" + quote("שלום עולם \u202eabc"), WORKS),
    ("a=" + quote("👩‍👩‍👧‍👦é👍🏽") + "&b=" + quote("👍🏽"), WORKS),
]


def assert_one_sentence(one, query: str, parts: tuple[str, ...]) -> None:
    if parts:
        one.until("() => pv.idle() && pv.alerts().length && !pv.canvas()")
        alerts = one.alerts()
        assert len(alerts) == 1 and all(part in alerts[0] for part in parts), (query, alerts)
    else:
        one.until("() => pv.idle() && pv.canvas() && pv.numbers().length && !pv.alerts().length")
    # the rest of the page is there and can be used
    for name in ("a", "w_d_model"):
        one.widget(name).locator("input").wait_for()
        assert one.widget(name).locator("input").is_editable(), (query, name)
    assert one.page.locator(".pv-title").is_visible()
    assert one.page.get_by_test_id("stException").count() == 0
    assert "Traceback" not in one.page.locator("body").inner_text(), query


def correct(one, query: str) -> None:
    """Put it right with the control that shows it."""
    if query.startswith("a="):
        one.type("a", "我爱你")
    elif query.startswith("d_model"):
        one.number("w_d_model", "32")
    elif query.startswith("encoding"):
        one.select("w_encoding", "RoPE")
    one.until("() => pv.idle() && pv.canvas() && pv.numbers().length && !pv.alerts().length")


@pytest.mark.parametrize(("query", "parts"), LINKS, ids=[query[:24] for query, _ in LINKS])
def test_a_bad_link_is_one_sentence_and_can_be_put_right(visit, query, parts) -> None:
    one = visit(f"/?lang=en&{query}")
    assert_one_sentence(one, query, parts)
    correct(one, query)
    if query.startswith("a="):
        one.until("() => document.querySelector('.pv-strip .pv-a').textContent === 'A我0爱1你2'")


def test_bad_values_one_after_another(visit, subtests) -> None:
    one = visit("/?lang=en")
    good = one.shown()
    for query, parts in STEPS:
        with subtests.test(query=query):
            one.ask(
                "query => { history.pushState(null, '', `/?lang=en&${query}`); dispatchEvent(new PopStateEvent('popstate')) }",
                query,
            )
            one.until("want => pv.idle() && !pv.same(pv.shown(), want)", good)
            assert_one_sentence(one, query, parts)
        one.page.go_back()
        one.until_shown(good)


def test_every_page_answers_with_one_sentence(visit, subtests) -> None:
    one = visit("/?lang=en&d_model=30")
    for page in ("heatmap", "similarity", "rotation", "attention"):
        one.follow(page)
        with subtests.test(page=page):
            assert_one_sentence(one, page, ("n_heads", "4 heads", "30", "1, 2, 3, 5, 6, 10, 15, 30 heads"))
    correct(one, "d_model")


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script><b>bold</b>",
    "$x^2$ **fett** :red[rot] `code` [link](http://example.org)",
    "</span></div><h1>out</h1>&lt;&amp;",
    "javascript:alert(1)\\u003cb\\u003e{{7*7}}${7*7}",
)


def test_hostile_sentences_are_shown_as_text(visit) -> None:
    one = visit("/?unit=word&lang=en", still=True)
    count = one.ask("() => pv.all('script, img, b, h1, strong, em, code, a, iframe, .katex').length")
    for sentence in HOSTILE:
        one.type("a", sentence)
        one.type("b", sentence[::-1])
        one.until_params(a=sentence, b=sentence[::-1])
        one.settle()
        shown = one.ask(
            "() => [...document.querySelectorAll('.pv-strip .pv-a bdi')].map((n) => n.textContent).join('')"
        )
        assert shown.replace(" ", "").replace("␣", "") == sentence.replace(" ", ""), shown
        assert one.ask("() => pv.all('script, img, b, h1, strong, em, code, a, iframe, .katex').length") == count, (
            sentence
        )
    for page in ("attention", "rotation", "similarity", "heatmap"):
        one.follow(page)
        assert one.alerts() == []
        assert one.page.locator("img[src=x], h1:text-is('out')").count() == 0
    # in the picture too, and in its SVG
    one.type("a", HOSTILE[1])
    one.until_params(a=HOSTILE[1])
    one.follow("attention")
    assert any("&lt;script" in t or t == "&lt;" for t in one.drawn_texts())
