"""Whatever the URL or a person gives: one sentence or a working page, and it can be put right."""

from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

WORKS = None
# (query, the sentence; WORKS: a picture and no sentence)
LINKS = [
    ("d_model=abc", "`d_model` must be a whole number from 1 to 1024, got 'abc'"),
    ("d_model=64&d_model=128", "the link gives `d_model` more than once: 64, 128"),
    (
        "encoding=%3Cscript%3Ealert(1)%3C/script%3E",
        "`encoding` must be one of none, sinusoidal, learned, rope, alibi, t5, shaw, got <script>alert(1)</script>",
    ),
    ("a=" + "x" * 10_000, "the sentence has 10,000 tokens; up to 512 are shown"),
    ("a=%00%00b", WORKS),
    ("a=%ED%A0%80%FF", WORKS),
    ("a=" + quote("好" * 512) + "&max_len=512", WORKS),
]
# The same through Back and Forward, in an open page.
STEPS = [
    ("base=nan", "`base` must be a finite number above 1 and up to 1e+12, got nan"),
    ("base=inf", "`base` must be a finite number above 1 and up to 1e+12, got inf"),
    ("base=1", "`base` must be a finite number above 1 and up to 1e+12, got 1.0"),
    ("d_model=0", "`d_model` must be a whole number from 1 to 1024, got 0"),
    (
        "d_model=65",
        "`n_heads` must divide d_model, got 4 heads for d_model 65; d_model 65 can be split into 1, 5, 13 heads",
    ),
    ("d_model=28&encoding=rope", "`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32"),
    ("max_len=2", "`max_len` must be at least the sentence's 3 tokens, got 2"),
    ("max_len=1e99", "`max_len` must be a whole number from 1 to 8192, got '1e99'"),
    ("heads=-3", None),
    ("mask=half", "`mask` must be one of none, causal, got half"),
    ("unit=&encoding=rope", "`unit` must be one of character, word, byte, got “”"),
    ("nonsense=1&__proto__=2", WORKS),
    ("a=" + quote("שלום עולם \u202eabc"), WORKS),
    ("a=" + quote("👩‍👩‍👧‍👦é👍🏽") + "&b=" + quote("👍🏽"), WORKS),
    ("seed=1&seed=1", "the link gives `seed` more than once: 1, 1"),
]


def assert_one_sentence(one, query: str, sentence: str | None) -> None:
    one.until("() => pv.idle() && (pv.alerts().length || pv.canvas())")
    if sentence is WORKS and "heads" not in query:
        one.until("() => pv.idle() && pv.canvas() && pv.numbers().length && !pv.alerts().length")
    else:
        one.until("() => pv.idle() && pv.alerts().length && !pv.canvas()")
        alerts = one.alerts()
        assert len(alerts) == 1 and (sentence is None or alerts == [sentence]), (query, alerts)
    body = one.page.locator("body").inner_text()
    assert "Traceback" not in body and "Exception" not in body, query
    assert one.page.get_by_test_id("stException").count() == 0
    # the rest of the page is there and can be used
    assert one.page.locator(".pv-title").is_visible()
    assert one.widget("a").locator("input").is_editable()
    assert one.widget("w_d_model").locator("input").is_editable()


def correct(one, query: str) -> None:
    """Put it right with the control that shows it."""
    if query.startswith("a="):
        one.type("a", "我爱你")
    elif query.startswith("d_model"):
        one.number("w_d_model", "32")
    elif query.startswith("encoding"):
        one.select("w_encoding", "RoPE")


@pytest.mark.parametrize(("query", "sentence"), LINKS, ids=[q[:24] for q, _ in LINKS])
def test_a_bad_link_is_one_sentence_and_can_be_put_right(visit, query, sentence) -> None:
    one = visit(f"/?lang=en&{query}")
    assert_one_sentence(one, query, sentence)
    correct(one, query)
    one.until("() => pv.idle() && pv.canvas() && pv.numbers().length && !pv.alerts().length")
    if query.startswith("a="):
        one.until("() => document.querySelector('.pv-strip .pv-a').textContent === 'A我0爱1你2'")


def test_bad_values_one_after_another(visit, subtests) -> None:
    one = visit("/?lang=en")
    good = one.shown()
    for query, sentence in STEPS:
        with subtests.test(query=query):
            one.ask(
                "query => { history.pushState(null, '', `/?lang=en&${query}`); dispatchEvent(new PopStateEvent('popstate')) }",
                query,
            )
            one.until("want => pv.idle() && !pv.same(pv.shown(), want)", good)
            assert_one_sentence(one, query, sentence)
        one.page.go_back()
        one.until_shown(good)


@pytest.mark.parametrize("page", ["heatmap", "similarity", "rotation", "attention"])
def test_every_page_answers_with_one_sentence(visit, page) -> None:
    one = visit(f"/{page}?lang=en&d_model=30&heads=4")
    assert_one_sentence(
        one,
        "d_model",
        "`n_heads` must divide d_model, got 4 heads for d_model 30; d_model 30 can be split into 1, 2, 3, 5, 6, 10, 15, 30 heads",
    )
    correct(one, "d_model")
    one.until("() => pv.idle() && pv.canvas() && !pv.alerts().length")


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script><b>bold</b>",
    "$x^2$ **fett** :red[rot] `code` [link](http://example.org)",
    "</span></div><h1>out</h1>&lt;&amp;",
    "javascript:alert(1)\\u003cb\\u003e{{7*7}}${7*7}",
)


def test_hostile_sentences_are_shown_as_text(visit) -> None:
    one = visit("/?unit=word&lang=en", reduced_motion="reduce")
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
    one.follow("attention")
    assert any("&lt;script" in t or t == "&lt;" for t in one.drawn_texts())
