"""Pages that are text are saved as one HTML file and as CSV."""

import csv
import io
import re

import streamlit as st

from posviz.ui import save


def made(monkeypatch, **given) -> dict[str, str]:
    found = {}
    monkeypatch.setattr(st, "download_button", lambda label, make, name, mime, **_: found.update({name: make()}))
    save.document("x", title="<b>&", caption="d_model 64", **given)
    return found


def test_a_document_needs_no_network_and_keeps_its_rules(monkeypatch):
    found = made(monkeypatch, body=lambda: '<p class="pv-myth">1</p>', table=lambda: [["a"], [1]])
    page = found["posviz-x.html"]
    assert "<h1>&lt;b&gt;&amp;</h1>" in page and '<p class="pv-myth">1</p>' in page
    assert ".pv-myth { font-size" in page and "stMainBlockContainer" not in page
    assert not re.search(r"src=|@import|url\(", page)
    assert page.count("{") == page.count("}")


def test_the_numbers_are_read_back(monkeypatch):
    found = made(monkeypatch, body=str, table=lambda: [["名字", "x"], ['a,"b"', 0.1]])
    text = found["posviz-x.csv"]
    assert text.startswith("\ufeff")
    assert list(csv.reader(io.StringIO(text[1:]))) == [["名字", "x"], ['a,"b"', "0.1"]]
