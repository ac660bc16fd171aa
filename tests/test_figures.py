"""Figures: the numbers drawn are the numbers given, texts stay texts, colours and refusals."""

import base64
import itertools
import re
import subprocess
import sys

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import pytest
import torch

import posviz
from posviz import attention, compare, encodings, figures, similarity, text, views
from posviz.figures import colours as palettes
from posviz.figures import labels
from posviz.figures.heads import Grid
from posviz.types import Refusal, Tokens

DIMS = posviz.Dims(d_model=16, n_heads=4)
TABLE = {"x_label": "dimension", "y_label": "position", "title": "A table"}


BEFORE_AFTER = (
    {"A": [1.0, 2.0], "B": [0.5]},
    {"A": [3.0, 2.5], "B": [4.0]},
    {"A": ["<b>", "$x$"], "B": ["你"]},
)
ROLES = {
    "none": {"previous": [0.25, 0.5], "marks": [1.0, 0.0]},
    "rope": {"previous": [0.125, 0.75], "marks": [0.5, 0.25]},
}


def table(values, **options) -> go.Figure:
    return figures.heatmap(values, **{**TABLE, **options})


def layer(sentence: str, **options) -> posviz.AttentionTrace:
    return attention.attend(text.tokenize(sentence), encodings.make("sinusoidal"), DIMS, **options)


def every(dark: bool = False, lang: str = "en") -> dict[str, go.Figure]:
    """One figure of each kind."""
    a, b = layer("我爱你"), layer("你爱我")
    causal = layer("我爱你我爱你", mask="causal")
    pairs = compare.match(a.tokens, b.tokens)
    theta = encodings.make("rope").inv_freq(16)
    curve = similarity.by_distance(encodings.make("sinusoidal").table(range(24), 16))
    shown = {"dark": dark, "lang": lang}
    return {
        "heatmap": table([[0.5, np.nan], [-1.0, 0.0]], parameters="base 10000", **shown),
        "curves": figures.similarity_curves({"sinusoidal": (range(24), *curve)}, **shown),
        "heads": figures.attention_heads(a.weights, a.tokens, **shown),
        "causal": figures.attention_heads(causal.weights, causal.tokens, sentence="B", allowed=causal.allowed, **shown),
        "difference": figures.attention_difference(compare.weights(a, b, pairs), a.tokens, **shown),
        "parts": figures.score_parts(a.parts, cell=(0, 1, 2), **shown),
        "clock": figures.rotation_clock(9 * theta, 5 * theta, m=9, n=5, **shown),
        "losses": figures.loss_by_position({"rope": np.arange(40) / 9.0}, trained_len=20, **shown),
        "before_after": figures.losses_before_after(*BEFORE_AFTER, **shown),
        "roles": figures.head_roles(ROLES, {"previous": 0.1, "marks": 0.2}, ["0", "1"], chosen=(1, 0), **shown),
    }


def panels(figure: go.Figure, heads: int, n: int) -> np.ndarray:
    """(H, n, n) read back from the composed heatmap."""
    grid = Grid.fitting(heads, n)
    return np.stack([figure.data[0].z[grid.place(head)] for head in range(heads)])


def message(function, *args, **options) -> str:
    with pytest.raises(ValueError) as caught:
        function(*args, **options)
    assert isinstance(caught.value, Refusal)
    chinese = caught.value.text("zh")
    assert re.search(r"[\u4e00-\u9fff]", chinese) and "{" not in chinese
    return str(caught.value)


def numbers_in(texts) -> list[str]:
    """The text of cells without the colour around it."""
    return [re.sub(r"<[^>]*>", "", t) for t in np.ravel(texts)]


# ---------------------------------------------------------------- what all have in common


@pytest.mark.parametrize(("dark", "lang"), [(False, "en"), (True, "zh")])
def test_type_and_colours_can_be_read_in_every_figure(dark, lang):
    colours = palettes.palette(dark)
    for name, figure in every(dark, lang).items():
        data = figure.to_plotly_json()
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == palettes.css(colours.background), name
        assert "Noto Sans CJK SC" in figure.layout.font.family and "sans-serif" in figure.layout.font.family
        sizes = list(_found(data, "size", within="font"))
        assert sizes and min(sizes) >= 14, (name, sizes)
        for colour in _found(data, "color", within="font"):
            rgb = tuple(map(int, re.findall(r"\d+", colour)[:3]))
            assert palettes.contrast(rgb, colours.background) >= 4.5, (name, colour)
        assert bool(re.search(r"[\u4e00-\u9fff]", figure.layout.title.text)) == (lang == "zh" and name != "heatmap")


def _found(tree, key, within="", inside=False):
    """Every scalar called ``key`` below a name that ends in ``within``."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            below = inside or name.endswith(within)
            if below and name == key and not isinstance(value, dict | list | tuple):
                yield value
            yield from _found(value, key, within, below)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _found(value, key, within, inside)


@pytest.mark.parametrize("default", ["plotly_dark", "none"])
def test_the_default_template_changes_nothing(default, monkeypatch):
    expected = {name: figure.to_json() for name, figure in every().items()}
    monkeypatch.setattr(pio.templates, "default", default)
    assert {name: figure.to_json() for name, figure in every().items()} == expected


def test_saved_html_asks_no_other_host():
    for name, figure in every().items():
        html = figure.to_html(include_plotlyjs=False)
        assert "http:" not in html and "https:" not in html, name
        assert "sendChartToCloud" in figure.layout.modebar.remove  # plotly.js offers to upload the figure
        assert "cdn" not in html.lower(), name
        assert "<script src" not in html and "<link" not in html, name


def test_few_traces():
    big = np.full((64, 8, 8), 0.125)
    assert len(figures.attention_heads(big, list("abcdefgh")).data) == 2
    angles = np.linspace(0, 9, 512)
    assert len(figures.rotation_clock(angles, angles).data) <= 50


def test_arrays_are_copies_nobody_can_write_to():
    values = np.eye(3)
    z = table(values).data[0].z
    assert z.dtype == np.float64 and not z.flags.writeable
    values[:] = 7
    assert z.max() == 1
    for name, figure in every().items():
        for trace in figure.data:
            arrays = [trace[name] for name in trace if isinstance(trace[name], np.ndarray)]
            assert all(array.dtype in (np.float64, object) for array in arrays), name
            assert not any(array.flags.writeable for array in arrays), name


def test_only_the_figures_load_plotly():
    code = "import sys, posviz; assert 'plotly' not in sys.modules; from posviz import figures; assert 'plotly' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=posviz.__path__[0] + "/..")


# ---------------------------------------------------------------- texts


HOSTILE = ("<b>x</b>", "&lt;", "$x^2$", "%{z}", "</script><script>alert(1)</script>", "a\nb", " ", "\u202eevil")


def test_plain_text_is_drawn_as_it_is():
    assert labels.plain("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert labels.plain("&lt;") == "&amp;lt;"
    assert labels.plain("$x$ 100% %{z}") == "&#36;x&#36; 100&#37; &#37;{z}"
    assert labels.plain("a\nb\x00") == "a\ufffdb\ufffd"
    assert labels.plain("  ") == "␣␣"
    assert labels.plain("👩‍👧") == "👩‍👧"


def test_hostile_texts_stay_texts_in_every_place():
    names = [f"{piece}·{i}" for i, piece in enumerate(HOSTILE)]
    weights = np.full((2, len(names), len(names)), 0.125)
    told = " ".join(HOSTILE)
    made = [
        figures.heatmap(
            weights[0],
            x_label=told,
            y_label=told,
            z_label=told,
            title=told,
            parameters=told,
            row_labels=names,
            col_labels=names,
        ),
        figures.attention_heads(weights, names, title=told, provenance=told),
        figures.attention_difference(weights, names, title=told, provenance=told),
        figures.similarity_curves(
            {told: ([0, 1], [1, 0], [0, 1])}, x_label=told, y_label=told, title=told, parameters=told
        ),
        figures.score_parts({told: 1.0}, title=told, parameters=told),
        figures.rotation_clock([1.0], [2.0], title=told, parameters=told),
        figures.head_roles({told: {told: [0.5]}}, {told: 0.1}, [told], title=told, parameters=told),
    ]
    ours = re.compile(
        r"</?(b|span|extra|br)( style='color:rgb\([\d, ]+\)')?>|%\{(x|y|z|text|hovertext|customdata(\[\d\])?)(:\.\d[gf%])?\}"
    )
    for figure in made:
        texts = [t for t in _strings(figure.to_plotly_json()) if not t.startswith("data:image")]
        assert any("&lt;b&gt;x&lt;/b&gt;" in t for t in texts)
        for t in texts:
            rest = ours.sub("", t)
            assert not set("<>$%\n\u202e") & set(rest), rest
        html = figure.to_html(include_plotlyjs=False)
        assert "alert(1)</script>" not in html and "<script>alert" not in html


def _strings(tree):
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _strings(value)
    elif isinstance(tree, list | tuple) or (isinstance(tree, np.ndarray) and tree.dtype == object):
        for value in tree:
            yield from _strings(value)


def test_labels_differ():
    tokens = Tokens("我我", ("我", "我"), (1, 1))
    assert labels.labels_of("tokens", tokens, 2) == ("我·0", "我·1")
    assert labels.labels_of("tokens", ["the", "the"], 2) == ("the·0", "the·1")
    assert labels.labels_of("tokens", ["a", "b"], 2) == ("a", "b")
    assert labels.labels_of("row_labels", range(-1, 2), 3) == ("-1", "0", "1")
    assert labels.labels_of("tokens", ["\x00", "\x01"], 2) == ("\x00·0", "\x01·1")  # drawn alike
    figure = table(np.eye(2), row_labels=tokens, col_labels=["<b>", "<b>"])
    assert figure.data[0].y == ("我·0", "我·1")
    assert figure.data[0].x == ("&lt;b&gt;·0", "&lt;b&gt;·1")
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "category"  # "1" is no number


def test_a_long_label_is_cut_on_the_axis_and_whole_on_hover():
    long = "antidisestablishmentarianism·12"
    assert labels.short(long) == "antidisest…·12"
    assert labels.short("a" * 30) == "a" * 13 + "…"
    figure = table(np.eye(2), row_labels=[long, "x"])
    assert figure.layout.yaxis.ticktext == ("antidisest…·12", "x")
    assert figure.data[0].y == (long, "x")
    figure = figures.attention_heads(np.full((1, 2, 2), 0.5), [long, "x"])
    assert figure.layout.yaxis.ticktext == ("antidisest…·12", "x")
    assert figure.data[0].customdata[0, 1].tolist() == [0, long, "x"]


def test_wide_labels_are_turned_and_dense_ones_thinned():
    assert table(np.eye(3), col_labels=list("abc")).layout.xaxis.tickangle == 0
    assert table(np.eye(3), col_labels=["abcdefghij", "b", "c"]).layout.xaxis.tickangle == -90
    rows = table(np.ones((200, 4)), row_labels=range(200)).layout.yaxis.ticktext
    assert rows[:3] == ("0", "7", "14")


def test_long_titles_are_broken():
    assert labels.wrapped("one two three", 41, 10) == ["one two", "three"]
    assert labels.wrapped("一二三四五", 30, 10) == ["一二三", "四五"]
    assert labels.wrapped("", 30, 10) == []
    assert table(np.eye(2), title="word " * 60).layout.title.text.count("<br>") >= 3


def test_numbers_as_text():
    assert [labels.number(v, 2, sign=True) for v in (0.153, -0.2, -0.001, 0.0)] == ["+0.15", "−0.20", "0.00", "0.00"]
    assert labels.number(-3.0, 0) == "−3"
    assert [labels.decimals_for(v) for v in (1e-9, 0.05, 1.0, 12.0, 1e6)] == [6, 4, 2, 1, 0]


# ---------------------------------------------------------------- heatmap


def test_heatmap_shows_the_values_given():
    values = encodings.make("sinusoidal").table(range(40), 16)
    figure = table(values, z_label="value")
    trace = figure.data[0]
    np.testing.assert_array_equal(trace.z, values.numpy())
    assert trace.zmin == -trace.zmax == -float(values.abs().max())
    assert list(figure.layout.yaxis.range) == [39.5, -0.5]  # position 0 at the top
    assert figure.layout.xaxis.title.text == "dimension" and figure.layout.yaxis.title.text == "position"
    assert trace.colorbar.title.text == "value"
    assert figure.layout.title.text == "A table"
    assert not trace.hoverongaps and "%{z:.6g}" in trace.hovertemplate


def test_tensors_of_any_kind():
    leaf = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    np.testing.assert_array_equal(table(leaf).data[0].z, np.ones((2, 2)))
    np.testing.assert_array_equal(table([[True, False]]).data[0].z, [[1, 0]])


@pytest.mark.parametrize("dark", [False, True])
def test_zero_lies_in_the_middle_of_purple_and_green(dark):
    colours = palettes.palette(dark)
    trace = table([[-3.0, 1.0]], dark=dark).data[0]
    assert (trace.zmin, trace.zmax) == (-3, 3)
    assert [stop for stop, _ in trace.colorscale] == [0, 0.5, 1]
    ends = tuple(map(palettes.css, (colours.negative, colours.background, colours.positive)))
    assert tuple(colour for _, colour in trace.colorscale) == ends
    if not dark:
        assert ends == ("rgb(118, 42, 131)", "rgb(255, 255, 255)", "rgb(27, 120, 55)")
    assert dict(zip(trace.colorbar.tickvals, trace.colorbar.ticktext, strict=True)) == {-3: "−3", 0: "0", 3: "3"}


def test_values_from_zero_on():
    trace = table([[0.0, 2.0]], signed=False).data[0]
    assert (trace.zmin, trace.zmax) == (0, 2)
    assert [colour for _, colour in trace.colorscale] == ["rgb(255, 255, 255)", "rgb(15, 157, 138)"]


def test_limit_fixes_the_scale_and_keeps_the_values():
    trace = table([[5.0, -1.0]], limit=2).data[0]
    assert (trace.zmin, trace.zmax) == (-2, 2)
    assert trace.z.tolist() == [[5, -1]]
    assert (table(np.zeros((2, 2))).data[0].zmax, table(np.full((1, 2), np.nan)).data[0].zmax) == (1, 1)


def test_masked_cells_are_empty_over_a_hatched_ground():
    figure = table([[1.0, np.nan, -np.inf], [0.0, 2.0, np.inf]])
    assert np.isnan(figure.data[0].z).tolist() == [[False, True, True], [False, False, True]]
    assert numbers_in(figure.data[0].text) == ["+1.00", "", "", "0.00", "+2.00", ""]
    (image,) = figure.layout.images
    assert (image.layer, image.x, image.y, image.sizex, image.sizey) == ("below", -0.5, -0.5, 3, 2)
    svg = base64.b64decode(image.source.split(",")[1]).decode()
    cell = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    assert re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", svg.split('fill="url')[0].rsplit("<path", 1)[1]) == [
        (f"{cell / 2:.1f}", "0.0", f"{cell:.1f}"),
        (f"{cell:.1f}", f"{cell / 2:.1f}", f"{cell / 2:.1f}"),
    ]
    assert [a.text for a in figure.layout.annotations] == ["hatched: masked"]
    assert not table(np.eye(2)).layout.images and not table(np.eye(2)).layout.annotations
    dense = np.where(np.indices((300, 300)).sum(0) % 2, np.nan, 1.0)
    assert len(table(dense).layout.images[0].source) < 100_000


def test_numbers_stand_in_large_cells_and_can_be_read():
    figure = table([[1.0, -0.25], [0.004, 0.5]])
    assert numbers_in(figure.data[0].text) == ["+1.00", "−0.25", "0.00", "+0.50"]
    assert figure.data[0].text[0][0].startswith("<span style='color:rgb(255, 255, 255)'>")
    assert figure.data[0].text[1][0].startswith("<span style='color:rgb(4, 5, 8)'>")
    assert table(np.eye(30)).data[0].text is None
    assert table([[123456.0]], limit=1).data[0].text is None  # no room


@pytest.mark.parametrize("dark", [False, True])
def test_ink_is_readable_on_every_colour(dark):
    colours = palettes.palette(dark)
    scales = [colours.signed(1), colours.difference(1), *(colours.sequential(1, c) for c in (colours.a, colours.b))]
    for scale, value in itertools.product(scales, np.linspace(-1, 1, 41)):
        assert palettes.contrast(scale.ink(value), scale.at(value)) >= 4.5


def test_square_tables_have_square_cells_and_no_figure_is_larger_than_a_screen():
    for rows, cols in [(1, 1), (3, 3), (128, 128), (1, 500), (500, 1), (2000, 64), (12, 40)]:
        layout = table(np.ones((rows, cols))).layout
        margin = layout.margin
        width, height = layout.width - margin.l - margin.r, layout.height - margin.t - margin.b
        assert layout.width <= 1100 and layout.height <= 760
        if rows == cols:
            assert width == pytest.approx(height, abs=1)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: table([1.0, 2.0]),
            "`values` must be real numbers of shape (rows, cols) with no axis empty, got shape (2,)",
        ),
        (
            lambda: table(np.ones((0, 3))),
            "`values` must be real numbers of shape (rows, cols) with no axis empty, got shape (0, 3)",
        ),
        (
            lambda: table([["a", "b"]]),
            "`values` must be real numbers of shape (rows, cols) with no axis empty, got [['a', 'b']]",
        ),
        (
            lambda: table([[1.0], [2.0, 3.0]]),
            "`values` must be real numbers of shape (rows, cols) with no axis empty, got [[1.0], [2.0, 3.0]]",
        ),
        (
            lambda: table([[1j]]),
            "`values` must be real numbers of shape (rows, cols) with no axis empty, got [[1j]]",
        ),
        (
            lambda: table(np.broadcast_to(0.0, (2049, 2048))),
            "a figure holds up to 4,194,304 values, got `values` of shape (2049, 2048); "
            "take a part of it, or average blocks",
        ),
        (
            lambda: table([[1.0, -0.5]], signed=False),
            "`values` must not be negative where `signed` is False, got -0.5; set `signed` to True",
        ),
        (lambda: table(np.eye(2), limit=0), "`limit` must be a finite number above 0, got 0"),
        (lambda: table(np.eye(2), limit=np.inf), "`limit` must be a finite number above 0, got inf"),
        (lambda: table(np.eye(2), limit="1"), "`limit` must be a finite number above 0, got '1'"),
        (lambda: table(np.eye(2), limit=True), "`limit` must be a finite number above 0, got True"),
        (
            lambda: table(np.eye(2), row_labels=["a"]),
            "`row_labels` must be a sequence of 2 labels, one for each row or column, got 1",
        ),
        (
            lambda: table(np.eye(2), col_labels="ab"),
            "`col_labels` must be a sequence of 2 labels, one for each row or column, got 'ab'",
        ),
        (
            lambda: table(np.eye(2), row_labels=5),
            "`row_labels` must be a sequence of 2 labels, one for each row or column, got 5",
        ),
    ],
)
def test_heatmap_refuses(call, expected):
    assert message(call) == expected


# ---------------------------------------------------------------- curves


def test_curves_are_the_values_given_with_their_bands():
    learned = views.alikeness(encodings.make("learned"), DIMS, 12)
    sinusoidal = views.alikeness(encodings.make("sinusoidal"), DIMS, 12)
    figure = figures.similarity_curves(
        {
            "learned": (learned.distances, learned.mean, learned.spread),
            "rope": (range(12), sinusoidal.mean, np.zeros(12)),
        }
    )
    named = {trace.name.split("  ")[0]: trace for trace in figure.data if trace.name}
    np.testing.assert_array_equal(named["learned"].y, learned.mean)
    np.testing.assert_array_equal(named["learned"].x, learned.distances)
    np.testing.assert_array_equal(named["learned"].customdata, learned.spread)
    low, high = figure.data[:2]  # bands lie under the lines; a spread of zero has none
    np.testing.assert_array_equal(low.y, learned.mean - learned.spread)
    np.testing.assert_array_equal(high.y, learned.mean + learned.spread)
    assert high.fill == "tonexty" and sum(trace.fill is not None for trace in figure.data) == 1
    assert figure.layout.yaxis.range[0] < low.y.min() and figure.layout.yaxis.range[1] > high.y.max()


def test_rises_are_those_of_the_core_and_are_said():
    mean = views.alikeness(encodings.make("sinusoidal"), posviz.Dims(d_model=128, n_heads=4), 64).mean
    starts = similarity.rises(mean)
    figure = figures.similarity_curves({"sinusoidal": (range(64), mean, np.zeros(64))})
    broad = next(trace for trace in figure.data if trace.line.width == 8)
    np.testing.assert_array_equal(broad.x.reshape(-1, 3)[:, 0], starts)
    np.testing.assert_array_equal(broad.y.reshape(-1, 3)[:, :2], np.stack([mean[starts], mean[starts + 1]], 1))
    assert np.isnan(broad.y.reshape(-1, 3)[:, 2]).all()
    (name,) = [trace.name for trace in figure.data if trace.name]
    some = ", ".join(map(str, starts[:3]))
    assert re.sub(r"<[^>]*>", "", name) == f"sinusoidal  rises at {some}, … ({len(starts)} of 63)"
    assert starts[0] == 11  # the first rise of d = 128, base 1e4


def test_what_is_said_of_falling_short_and_two_sided_curves():
    def said(curve, lang="en"):
        figure = figures.similarity_curves({"f": curve}, lang=lang)
        return re.sub(r"<[^>]*>", "", figure.data[-1].name)

    assert said(([0, 1, 2], [3, 2, 1], [0, 0, 0])) == "f  never rises"
    assert said(([0, 1, 2], [3, 2, 2.5], [0, 0, 0])) == "f  rises at 1 (1 of 2)"
    assert said(([0, 1, 2], [3, 2, 2.5], [0, 0, 0]), "zh") == "f  在 1 处上升（2 步中有 1 步）"
    assert said(([-1, 0, 1], [0, 1, 0], [0, 0, 0])) == "f  never rises"  # the way up to 0 is no rise
    assert said(([0, 1, 2, 3], [1, np.nan, 0, 2], [0, 0, 0, 0])) == "f  rises at 2 (1 of 3)"
    assert said(([0], [1], [0])) == "f  never rises"


def test_curves_differ_by_colour_and_dash():
    many = {str(i): ([0, 1], [i, 0], [0, 0]) for i in range(28)}
    lines = [trace.line for trace in figures.similarity_curves(many).data]
    assert len({(line.color, line.dash) for line in lines}) == 28
    for colours in (palettes.LIGHT, palettes.DARK):
        taken = {colours.a, colours.b, colours.position, colours.content}
        assert not taken & set(colours.curves)
        assert all(palettes.contrast(c, colours.background) >= 4.5 for c in colours.curves)


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        ({}, "`curves` must be a mapping name -> (distances, mean, spread) with at least one curve, got none"),
        ([1], "`curves` must be a mapping name -> (distances, mean, spread) with at least one curve, got list"),
        ({"a": ([0], [1])}, "a curve must be (distances, mean, spread), got 2 parts for a"),
        ({"a": 3}, "a curve must be (distances, mean, spread), got 0 parts for a"),
        ({"a": ([0, 1], [1], [0, 0])}, "distances, mean and spread must be equally long, got 2, 1, 2 for a"),
        ({"a": ([0, 0], [1, 1], [0, 0])}, "the distances of a must be finite and increase"),
        ({"a": ([0, 1], [1, 1], [0, -0.5])}, "the spread of a must not be negative, got -0.5"),
        (
            {"a": ([[0, 1]], [1, 1], [0, 0])},
            "`distances` must be real numbers of shape (n,) with no axis empty, got shape (1, 2)",
        ),
    ],
)
def test_curves_refuse(curves, expected):
    assert message(figures.similarity_curves, curves) == expected


# ---------------------------------------------------------------- heads


def test_every_head_shows_its_weights():
    trace = layer("我爱你")
    figure = figures.attention_heads(trace.weights, trace.tokens, provenance="untrained, seed 0")
    heatmap = figure.data[0]
    np.testing.assert_array_equal(panels(figure, 4, 3), trace.weights)
    assert np.isfinite(heatmap.z).sum() == trace.weights.size  # nothing but the panels
    assert len(heatmap.x) == heatmap.z.shape[1] + 1 and len(heatmap.y) == heatmap.z.shape[0] + 1
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert [colour for _, colour in heatmap.colorscale] == ["rgb(255, 255, 255)", "rgb(31, 79, 191)"]
    assert list(figure.data[1].text) == ["head 0", "head 1", "head 2", "head 3"]
    assert figure.layout.yaxis.ticktext == ("我·0", "爱·1", "你·2")
    assert figure.layout.xaxis.ticktext == ("我·0", "爱·1", "你·2") * 4
    assert figure.layout.annotations[0].text == "untrained, seed 0"
    place = Grid.fitting(4, 3).place(2)
    assert heatmap.customdata[place][1, 2].tolist() == [2, "爱·1", "你·2"]
    assert numbers_in(heatmap.text[place]) == [f"{w:.2f}" for w in trace.weights[2].ravel()]


def test_sentence_b_is_orange_and_origin_is_never_left_open():
    trace = layer("你爱我")
    figure = figures.attention_heads(trace.weights, trace.tokens, sentence="B")
    assert figure.data[0].colorscale[1][1] == "rgb(180, 86, 10)" == figure.layout.yaxis.tickfont.color
    assert figure.layout.title.text == "What each head of sentence B looks at"
    assert figure.layout.annotations[0].text == "weights of unstated origin"


def test_forbidden_cells_are_empty():
    trace = layer("我爱你我", mask="causal")
    figure = figures.attention_heads(trace.weights, trace.tokens, allowed=trace.allowed)
    shown = panels(figure, 4, 4)
    np.testing.assert_array_equal(np.isnan(shown), np.broadcast_to(~trace.allowed, (4, 4, 4)))
    np.testing.assert_array_equal(shown[:, trace.allowed], trace.weights[:, trace.allowed])
    assert len(figure.layout.images) == 1
    assert figure.layout.annotations[0].text == "weights of unstated origin · hatched: masked"


def test_difference_of_two_sentences():
    a, b = layer("我爱你"), layer("你爱我")
    pairs = compare.match(a.tokens, b.tokens)
    difference = compare.weights(a, b, pairs)
    figure = figures.attention_difference(difference, [a.tokens.labels[i] for i, _ in pairs])
    np.testing.assert_array_equal(panels(figure, 4, 3), difference)
    heatmap = figure.data[0]
    assert heatmap.zmin == -heatmap.zmax == -np.abs(difference).max()
    assert [c for _, c in heatmap.colorscale] == ["rgb(180, 86, 10)", "rgb(255, 255, 255)", "rgb(31, 79, 191)"]
    assert figures.attention_difference(difference, a.tokens, limit=1).data[0].zmax == 1


def test_weights_shared_by_many_tokens_can_be_shown_on_a_shorter_scale():
    heatmap = figures.attention_heads(np.full((1, 50, 50), 0.02), list(map(str, range(50))), limit=0.1).data[0]
    assert (heatmap.zmin, heatmap.zmax) == (0, 0.1)


def test_rounding_noise_stays_white():
    a, b = (attention.attend(text.tokenize(s), encodings.make("none"), DIMS) for s in ("我爱你", "你爱我"))
    difference = compare.weights(a, b, compare.match(a.tokens, b.tokens))
    heatmap = figures.attention_difference(difference, a.tokens).data[0]
    assert np.abs(difference).max() < 1e-12 and heatmap.zmax == 0.01
    assert set(numbers_in(heatmap.text)) == {"0.00", ""}


@pytest.mark.parametrize(("heads", "n"), [(1, 1), (4, 3), (5, 3), (12, 3), (12, 24), (64, 8), (3, 100), (1, 512)])
def test_panels_fit_a_screen_and_do_not_overlap(heads, n):
    grid = Grid.fitting(heads, n)
    assert grid.width * grid.cell <= 1081 and grid.height * grid.cell <= 801
    assert grid.rows * grid.columns >= heads > (grid.rows - 1) * grid.columns
    x, y = grid.edges()
    assert (np.diff(x) > 0).all() and (np.diff(y) > 0).all()
    values = np.arange(heads * n * n, dtype=float).reshape(heads, n, n)
    composed = grid.compose(values, np.nan, float)
    assert composed.shape == (len(y) - 1, len(x) - 1)
    assert np.isfinite(composed).sum() == values.size
    for head in range(heads):
        np.testing.assert_array_equal(composed[grid.place(head)], values[head])
        left, top = grid.corner(head)
        rows, columns = grid.place(head)
        assert (x[columns.start], y[rows.start]) == (left, top)
        assert x[columns.stop] == pytest.approx(left + n)


def test_heads_stand_in_full_rows_where_they_can():
    assert [(Grid.fitting(h, 3).columns, Grid.fitting(h, 3).rows) for h in (1, 4, 8, 12)] == [
        (1, 1),
        (4, 1),
        (4, 2),
        (4, 3),
    ]


def test_hover_of_a_very_large_figure_counts():
    figure = figures.attention_heads(np.full((1, 201, 201), 1 / 201), [str(i) for i in range(201)])
    data = figure.data[0].customdata
    assert data.dtype == np.int16 and data[3, 5].tolist() == [0, 3, 5]


SQUARE = np.full((2, 3, 3), 1 / 3)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: figures.attention_heads(np.eye(3), "abc"),
            "`weights` must be real numbers of shape (heads, tokens, tokens) with no axis empty, got shape (3, 3)",
        ),
        (
            lambda: figures.attention_heads(np.ones((2, 3, 4)), list("abc")),
            "`weights` must have as many keys as queries, got shape (2, 3, 4)",
        ),
        (
            lambda: figures.attention_heads(SQUARE, ["a", "b"]),
            "`tokens` must be a sequence of 3 labels, one for each row or column, got 2",
        ),
        (
            lambda: figures.attention_heads(SQUARE, "abc"),
            "`tokens` must be a sequence of 3 labels, one for each row or column, got 'abc'",
        ),
        (lambda: figures.attention_heads(SQUARE, list("abc"), sentence="C"), "`sentence` must be A or B, got C"),
        (
            lambda: figures.attention_heads(SQUARE * 6, list("abc")),
            "`weights` must be from 0 to 1, as after the softmax, got 2 to 2",
        ),
        (
            lambda: figures.attention_heads(-SQUARE, list("abc")),
            "`weights` must be from 0 to 1, as after the softmax, got -0.333333 to -0.333333",
        ),
        (
            lambda: figures.attention_heads(SQUARE, list("abc"), allowed=np.ones((3, 2), dtype=bool)),
            "`allowed` must be True or False for each query and key, shape (3, 3), got bool of shape (3, 2)",
        ),
        (
            lambda: figures.attention_heads(SQUARE, list("abc"), allowed=np.ones((3, 3))),
            "`allowed` must be True or False for each query and key, shape (3, 3), got float64 of shape (3, 3)",
        ),
        (
            lambda: figures.attention_difference(np.ones((2, 3, 4)), list("abc")),
            "`difference` must have as many keys as queries, got shape (2, 3, 4)",
        ),
        (
            lambda: figures.attention_difference(SQUARE, list("abc"), limit=-1),
            "`limit` must be a finite number above 0, got -1",
        ),
    ],
)
def test_heads_refuse(call, expected):
    assert message(call) == expected


# ---------------------------------------------------------------- parts of a score


@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "rope", "alibi", "t5"])
def test_parts_add_up_to_the_score(encoding):
    trace = attention.attend(text.tokenize("我爱你"), encodings.make(encoding), DIMS)
    bar = figures.score_parts(trace.parts, cell=(1, 0, 2)).data[0]
    assert bar.x[:-1].tolist() == [part[1, 0, 2] for part in trace.parts.values()]
    assert bar.x[-1] == pytest.approx(trace.scores[1, 0, 2], abs=1e-12)
    assert bar.y[-1] == "score (sum)"


def test_content_is_grey_and_position_teal():
    names = ("content_content", "content_position", "position_content", "position_position")
    bar = figures.score_parts(dict.fromkeys(names, 1.0)).data[0]
    colours = palettes.LIGHT
    grey, mixed, _, teal, ink = bar.marker.color
    assert (grey, teal, ink) == tuple(map(palettes.css, (colours.content, colours.position, colours.text)))
    assert mixed == bar.marker.color[2] == palettes.css(palettes.mix(colours.position, colours.background, 0.38))
    assert bar.y[:4] == ("content·content", "content·position", "position·content", "position·position")
    for name in ("bias", "rotation"):
        assert figures.score_parts({"content": 1, name: 2}).data[0].marker.color[:2] == (grey, teal)
    chinese = figures.score_parts({"content": 1, "bias": -2}, lang="zh").data[0]
    assert chinese.y == ("内容", "偏置", "分数（总和）") and list(chinese.text) == ["+1.00", "−2.00", "−1.00"]


@pytest.mark.parametrize(
    ("parts", "cell", "expected"),
    [
        ({}, None, "`parts` must be a mapping name -> number with at least one part, got none"),
        (3, None, "`parts` must be a mapping name -> number with at least one part, got int"),
        (
            {"a": np.ones((1, 2, 2))},
            None,
            "`parts` must all be single numbers where no `cell` is given, got a (1, 2, 2)",
        ),
        (
            {"a": np.ones((1, 2, 2)), "b": np.ones((1, 3, 3))},
            (0, 0, 0),
            "`parts` must all be (heads, queries, keys) where `cell` is given, got a (1, 2, 2), b (1, 3, 3)",
        ),
        ({"a": np.ones((1, 2, 2))}, (0, 0, 2), "`cell` must be (head, query, key) within (1, 2, 2), got (0, 0, 2)"),
        ({"a": np.ones((1, 2, 2))}, (0, 0), "`cell` must be (head, query, key) within (1, 2, 2), got (0, 0)"),
        ({"a": np.ones((1, 2, 2))}, (0, 0, -1), "`cell` must be (head, query, key) within (1, 2, 2), got (0, 0, -1)"),
        ({"a": np.nan}, None, "the part a must be a finite number, got nan"),
        ({"a": "x"}, None, "the part a must be a finite number, got x"),
    ],
)
def test_parts_refuse(parts, cell, expected):
    assert message(figures.score_parts, parts, cell=cell) == expected


# ---------------------------------------------------------------- clocks


def hands(figure: go.Figure, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The angles of keys and queries, measured on the figure, in (-pi, pi]."""
    lines = [trace for trace in figure.data if trace.line.width == 4]
    points = [np.stack([trace.x, trace.y], 1).reshape(-1, 3, 2) for trace in lines]
    every = np.concatenate(points)
    tips = every[:, 1] - every[:, 0]
    np.testing.assert_allclose(np.hypot(*tips.T), 0.9)
    angle = np.arctan2(tips[:, 1], tips[:, 0])
    return angle[:count], angle[count:]


@pytest.mark.parametrize("pairs", [1, 8, 16, 40])
def test_hands_point_where_the_pairs_are_turned(pairs):
    theta = encodings.make("rope").inv_freq(2 * pairs).numpy()
    figure = figures.rotation_clock(9 * theta, 5 * theta, m=9, n=5)
    keys, queries = hands(figure, pairs)
    np.testing.assert_allclose(np.exp(1j * keys), np.exp(5j * theta), atol=1e-12)
    np.testing.assert_allclose(np.exp(1j * queries), np.exp(9j * theta), atol=1e-12)
    faces = figure.data[-1].customdata
    np.testing.assert_array_equal(faces, np.stack([np.arange(pairs), 9 * theta, 5 * theta, 9 * theta - 5 * theta], 1))
    note = figure.layout.annotations[0].text.replace("<br>", " ")
    assert note.startswith("strong hand: query at position 9 · faint hand: key at position 5 · wedge:")


def test_wedges_go_the_short_way():
    figure = figures.rotation_clock([3.0], [-3.0])  # 6 radians apart, or 0.28 the other way
    wedge = figure.data[0]
    arc = np.unwrap(np.arctan2(wedge.y[1:-2], wedge.x[1:-2]))
    assert abs(arc[-1] - arc[0]) == pytest.approx(2 * np.pi - 6)


def test_pairs_run_from_fast_to_slow():
    light = palettes.LIGHT
    assert [light.pair(i, 3) for i in range(3)] == [(201, 74, 38), (196, 170, 60), (32, 84, 140)]
    assert light.pair(0, 1) == (201, 74, 38)
    figure = figures.rotation_clock(np.arange(8.0), np.arange(8.0))
    strong = [trace.line.color for trace in figure.data if trace.line.width == 4][8:]
    assert strong == [palettes.css(light.pair(i, 8)) for i in range(8)]


@pytest.mark.parametrize(
    ("q", "k", "expected"),
    [
        ([1.0, 2.0], [1.0], "`angles_q` and `angles_k` must have one angle for each pair, got 2 and 1"),
        ([np.nan], [1.0], "angles must be finite"),
        ([[1.0]], [1.0], "`angles_q` must be real numbers of shape (pairs,) with no axis empty, got shape (1, 1)"),
        ([1.0], [], "`angles_k` must be real numbers of shape (pairs,) with no axis empty, got shape (0,)"),
    ],
)
def test_clocks_refuse(q, k, expected):
    assert message(figures.rotation_clock, q, k) == expected


# ---------------------------------------------------------------- losses


def test_losses_before_and_after_are_drawn_as_given() -> None:
    before, after, pieces = BEFORE_AFTER
    drawn = figures.losses_before_after(before, after, pieces)
    assert [list(line.y) for line in drawn.data] == [[1.0, 2.0], [3.0, 2.5], [0.5], [4.0]]
    assert [line.line.dash for line in drawn.data] == ["dot", "solid"] * 2
    assert drawn.data[0].line.color == drawn.data[1].line.color != drawn.data[2].line.color
    assert [line.name for line in drawn.data] == ["A, intact", "A, operated", "B, intact", "B, operated"]
    assert "<b>" not in str(drawn.data[0].customdata)  # a token is text, not markup


def test_losses_need_a_token_each() -> None:
    before, after, pieces = BEFORE_AFTER
    got = message(figures.losses_before_after, before, after, {**pieces, "A": ["x"]})
    assert got == "there must be one token for each of the 2 losses of A, got 1"


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(("given", "got"), [({}, "nothing"), ({"A": [1.0]}, "A"), (5, "5")])
def test_losses_need_both_sentences(place, given, got) -> None:
    arguments = [given if i == place else one for i, one in enumerate(BEFORE_AFTER)]
    name = ("before", "after", "pieces")[place]
    assert message(figures.losses_before_after, *arguments) == f"`{name}` must be a mapping with A and B, got {got}"


def test_every_head_is_a_dot_at_its_share() -> None:
    strongest = {name: {"previous": [0.5, 0.9], "marks": [1.0, 0.5]} for name in ROLES}
    figure = figures.head_roles(
        ROLES, {"previous": 0.1, "marks": 0.2}, ["first", "second"], strongest=strongest, chosen=(1, 0)
    )
    of = {
        mode: [trace for trace in figure.data if trace.mode == mode and trace.marker.color != "rgba(0,0,0,0)"]
        for mode in ("markers", "lines", "text")
    }
    drawn = [(trace.xaxis, *trace.x, set(trace.y)) for trace in of["markers"]]
    assert drawn == [("x", 0.25, 0.5, {0}), ("x", 0.125, 0.75, {1}), ("x2", 1.0, 0.0, {0}), ("x2", 0.5, 0.25, {1})]
    assert [list(trace.customdata[1]) for trace in of["markers"]] == [[0, 1], [1, 1], [0, 1], [1, 1]]
    assert [list(trace.marker.size) for trace in of["markers"]] == [[9, 13], [9, 13], [13, 9], [13, 9]]
    assert [list(trace.x) for trace in of["lines"]] == [[0.5, 0.9], [0.5, 0.9], [0.5, 1.0], [0.5, 1.0]]
    # the number stands right of the bar, or of the dot where that lies further right
    assert [(trace.text[0], *trace.x) for trace in of["text"]] == [
        ("50 &#37;", pytest.approx(0.98)),
        ("75 &#37;", pytest.approx(0.98)),
        ("100 &#37;", pytest.approx(1.08)),
        ("50 &#37;", pytest.approx(1.08)),
    ]
    rings = [(t.xaxis, *t.x, *t.y) for t in figure.data if t.marker.color == "rgba(0,0,0,0)"]
    assert rings == [("x", 0.125, 1), ("x2", 0.5, 1)]
    assert [(shape.xref, shape.x0) for shape in figure.layout.shapes] == [("x", 0.1), ("x2", 0.2)]
    assert "dotted: chance, 10 &#37;" in [note.text for note in figure.layout.annotations]


@pytest.mark.parametrize(
    ("shares", "chance", "expected"),
    [
        ({}, {"previous": 0.1}, "there must be at least one model and one role, got 0 and 1"),
        ({"rope": {}}, {}, "there must be at least one model and one role, got 1 and 0"),
        (
            {"rope": {"previous": [0.1]}},
            {"previous": 0.1},
            "rope must have one share of previous for each of the 2 heads, got 1",
        ),
        ({"a": {}}, {"x": 0.1}, "`shares` says nothing about x in a"),
        ({"a": 1}, {"x": 0.1}, "`shares` says nothing about x in a"),
        (5, {"x": 0.1}, "there must be at least one model and one role, got 0 and 1"),
        ({"a": {"x": [0.1, 0.2]}}, {"x": "0"}, "`chance` must be a finite number from 0 and up to 1, got '0'"),
    ],
)
def test_head_roles_refuse(shares, chance, expected) -> None:
    assert message(figures.head_roles, shares, chance, ["0", "1"]) == expected


@pytest.mark.parametrize("chosen", [(0, 5), (2, 0), (-1, 0), (0,), 1, (0.0, 1)])
def test_the_chosen_head_is_one_of_them(chosen) -> None:
    got = message(figures.head_roles, ROLES, {"previous": 0.1}, ["0", "1"], chosen=chosen)
    assert got == f"`chosen` must be (model, head) within (2, 2), got {chosen}"


def test_several_trainings_are_those_of_every_model() -> None:
    got = message(figures.head_roles, ROLES, {"previous": 0.1}, ["0", "1"], strongest={"none": {"previous": [0.5]}})
    assert got == "`strongest` says nothing about previous in rope"
