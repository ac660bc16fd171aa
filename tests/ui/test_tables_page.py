"""The Tables page through AppTest: every source, uploads good and bad, and what stays in the session."""

import io
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save
from streamlit.testing.v1 import AppTest

from posviz import encodings, models, tables
from posviz.models.twins import store
from posviz.models.twins.model import Twin
from posviz.types import Refusal, Text
from tests.test_pages import html, open_page, refusals, shown

SINES = encodings.make("sinusoidal").table(range(60), 16).numpy()


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def upload(app: AppTest, data: bytes, name: str = "mine.npz") -> AppTest:
    return app.file_uploader(key="w_table_file").set_value((name, data, "application/octet-stream")).run()


def values(app: AppTest) -> list[str]:
    return re.findall(r"<strong>([^<]*)</strong>", html(app))


@pytest.mark.parametrize("table", ["", "twin:learned", "learned", "sinusoidal"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_table_and_its_code(table: str, lang: str) -> None:
    app = open_page("tables", lang=lang, table=table)
    assert not app.exception and refusals(app) == []
    app.session_state["tables_details"] = "code"
    app.run()
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    assert float(values(app)[1].removesuffix(" %")) == pytest.approx(
        100 * namespace["values"].distances.explained, abs=0.5
    )


def test_the_story_of_the_trained_table() -> None:
    text = shown(open_page("tables", lang="en"))
    assert "of 160 · training has used the first 33" in text
    assert "by chance 6.1 %" in text
    whole = shown(open_page("tables", lang="en", trows="160"))
    assert re.search(r"rows of unusual length: more than 5 robust deviations from the median\s+33", whole)


@pytest.mark.parametrize(("trows", "count"), [("10", 10), ("128", 128), ("500", 128)])
def test_rows_are_chosen_and_more_than_there_are_were_another_tables(trows: str, count: int) -> None:
    app = open_page("tables", lang="en", table="sinusoidal", trows=trows)
    assert refusals(app) == []
    app.session_state["tables_details"] = "code"
    app.run()
    assert f"tables.analyse(table[:{count}])" in app.code[0].value


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tview": "x"}, "`tview` must be one of rows, alike, got x"),
        ({"table": "x" * 201}, "`table` must be a name of up to 200 characters, got " + "x" * 39 + "…"),
        ({"trows": "1"}, "`trows` must be a whole number from 2 to 8192, got 1"),
        (
            {"table": "upload"},
            "this link shows a table that somebody uploaded in another session: upload it here to see it",
        ),
        (
            {"table": "sinusoidal", "d_model": "1024", "heads": "1", "max_len": "8192"},
            "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 8,192 × 1,024",
        ),
        (
            {"table": "learned", "max_len": "1"},
            "a table has 2 to 8,192 rows of 1 to 4,096 numbers, up to 2,097,152 in all, got 1 × 64",
        ),
    ],
)
def test_bad_links_are_one_sentence(given: dict[str, str], sentence: str) -> None:
    assert refusals(open_page("tables", lang="en", **given)) == [sentence]


def test_a_table_that_is_not_here_is_refused_with_those_that_are(monkeypatch) -> None:
    monkeypatch.setattr(models, "catalog", lambda: (), raising=False)
    here = [f"twin:{name}" for name in store.available() if name in ("learned", "t5", "shaw")]
    assert refusals(open_page("tables", lang="en", table="bert")) == [
        f"`table` must be one of {', '.join(here)}, learned, sinusoidal, got bert"
    ]


@pytest.mark.parametrize("table", ["twin:learned", "sinusoidal"])
def test_how_alike_rows_are_is_drawn_too(table: str) -> None:
    app = open_page("tables", lang="en", table=table, tview="alike")
    assert not app.exception and refusals(app) == []


@pytest.mark.parametrize(("name", "rows"), [("t5", "bucket of distances"), ("shaw", "distance key − query")])
def test_twins_of_other_kinds_name_their_rows(monkeypatch, name: str, rows: str) -> None:
    """Their tables hold a row for each bucket, or for each distance from -K to K."""
    twin = SimpleNamespace(model=Twin(name).eval().requires_grad_(False), badge=Text("bundled twin", "孪生模型"))
    monkeypatch.setattr(store, "available", lambda: (name,))
    monkeypatch.setattr(store, "load", lambda name: twin)
    for view in ("rows", "alike"):
        app = open_page("tables", lang="en", table=f"twin:{name}", tview=view)
        assert not app.exception and refusals(app) == []
        drawn = str([e.proto for e in app.get("bidi_component")])
        assert rows.partition("−")[0].strip() in drawn


def test_an_upload_is_measured_and_stays() -> None:
    app = upload(open_page("tables", lang="en"), npz(wte=np.ones((9, 4)), wpe=SINES))
    assert refusals(app) == []
    assert values(app)[:2] == ["100 %", "100 %"], "the likeliest of the two"
    assert "your own file · it stays in this session" in shown(app)
    app.selectbox(key="w_table_which").set_value("wte").run()
    assert refusals(app) == []
    app.switch_page("pages/order.py").run()
    app.switch_page("pages/tables.py").run()
    assert refusals(app) == []
    assert app.selectbox(key="w_table_which").value == "wte"
    # somebody else's link to it shows a sentence, not the table
    other = open_page("tables", lang="en", table="upload")
    assert len(refusals(other)) == 1


def test_a_bad_upload_is_one_sentence_and_the_page_goes_on() -> None:
    app = upload(open_page("tables", lang="zh"), b"\x80\x04\x95", "evil.npy")
    assert refusals(app) == ["文件不是 .npy、.npz、.safetensors，也不是 .csv"]
    app.selectbox(key="w_table").set_value("sinusoidal").run()
    assert refusals(app) == []
    holed = SINES.copy()
    holed[3, 5] = np.nan
    app = upload(app, save({"wpe": torch.tensor(holed)}), "holed.safetensors")
    assert refusals(app) == ["有 1 个格子不是有限数，第一个（nan）在第 3 行第 5 维：必须全是有限数"]


def test_the_code_of_an_upload_reads_its_file(tmp_path, monkeypatch) -> None:
    data = npz(wpe=SINES)
    app = upload(open_page("tables", lang="en"), data, "a 'b'.npz")
    app.session_state["tables_details"] = "code"
    app.run()
    (tmp_path / "a 'b'.npz").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    assert namespace["values"].neighbours.beside == 1.0


@pytest.mark.parametrize("name", ["<script>alert(1)</script>.npy", "$x$ *b* `c`.npy", "名字.npy", "\x07\u202e.npy"])
def test_any_file_name_is_text(name: str) -> None:
    buffer = io.BytesIO()
    np.save(buffer, SINES)
    app = upload(open_page("tables", lang="en"), buffer.getvalue(), name)
    assert not app.exception and refusals(app) == []
    assert "<script>" not in html(app)


def test_fetched_models_are_offered_where_there_are_some(monkeypatch) -> None:
    """Where models can be opened, those with a table show it, and RoPE's say that they have none."""

    def opened(key: str, **_):
        if key == "local:llama":
            none = Refusal(Text("llama has no table of positions", "llama 没有位置表"))
            return SimpleNamespace(position_table=lambda: (_ for _ in ()).throw(none))
        table = SINES.astype(np.float32)
        position = SimpleNamespace(kind="absolute")
        return SimpleNamespace(
            name="bert", badge=Text("pretrained", "预训练"), position=position, position_table=lambda: table
        )

    entries = tuple(SimpleNamespace(key=f"local:{n}", kind="local", title=Text(n, n)) for n in ("bert", "llama"))
    monkeypatch.setattr(models, "catalog", lambda: (*entries, SimpleNamespace(kind="twin")), raising=False)
    monkeypatch.setattr(models, "open_model", opened, raising=False)
    app = open_page("tables", lang="en", table="local:bert")
    assert refusals(app) == [] and values(app)[0] == "100 %" and "pretrained" in shown(app)
    assert refusals(open_page("tables", lang="en", table="local:llama")) == ["llama has no table of positions"]


def test_limits_of_the_page_are_the_readers() -> None:
    config = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text("utf-8"))
    assert config["server"]["maxUploadSize"] * 1_000_000 == tables.MAX_BYTES
