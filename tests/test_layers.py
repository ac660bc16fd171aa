"""Who may import whom, tried in a fresh process and read from the source.

import-linter holds the layers inside posviz (pyproject.toml); this is what it cannot see.
"""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import posviz

ROOT = Path(__file__).parents[1]
# Everything a notebook may use: all of posviz but the app and the figures.
CORE = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "posviz").rglob("*.py")
    if path.relative_to(ROOT).parts[1] not in ("ui", "figures", "models", "lab")
)
# A page may use posviz.ui, what posviz offers to everybody, streamlit, and these for its types.
TYPING = {"__future__", "collections", "dataclasses", "functools", "itertools", "typing"}
FORBIDDEN_CALLS = {"open", "exec", "eval", "compile", "__import__"}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> dict:
    """What a new process has loaded after ``import posviz`` and after the whole core, and said."""
    scratch = tmp_path_factory.mktemp("tmp")
    code = f"""
import json, sys
report = {{}}
import posviz
report["posviz"] = sorted(sys.modules)
import importlib
for name in {CORE!r}:
    importlib.import_module(name)
from posviz import text
report["words"] = text.tokenize("他来到了网易杭研大厦", "word").pieces
report["core"] = sorted(sys.modules)
print(json.dumps(report))
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return {
        **json.loads(run.stdout),
        "stderr": run.stderr,
        "left": [path.name for path in scratch.rglob("*")],
    }


def test_the_core_is_found():
    assert {"posviz.types", "posviz.text", "posviz.attention", "posviz.encodings.rope"} < set(CORE)
    assert not [name for name in CORE if name.startswith("posviz.ui")]


@pytest.mark.parametrize("stage", ["posviz", "core"])
@pytest.mark.parametrize("heavy", ["streamlit", "plotly", "pandas", "transformers", "posviz.ui"])
def test_the_core_loads_neither_the_app_nor_plotly(fresh, stage, heavy):
    assert "posviz" in fresh[stage]
    assert heavy not in fresh[stage]


def test_the_core_warns_of_nothing(fresh):
    assert fresh["stderr"] == ""


def test_jieba_leaves_no_cache_in_the_shared_temporary_folder(fresh):
    """jieba would write its dictionary there as a marshal file, and trust what it finds."""
    assert fresh["words"] == ["他", "来到", "了", "网易", "杭研", "大厦"]
    assert [name for name in fresh["left"] if "jieba" in name] == []


# ---- pages are thin


def complaints(source: str) -> list[str]:
    """What a page's source does that only the layers below may do."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "."]
        else:
            modules = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found += [f"calls {node.func.id}"] * (node.func.id in FORBIDDEN_CALLS)
            if isinstance(node, ast.Attribute) and node.attr in ("read_text", "write_text"):
                found.append(f"calls {node.attr}")
        for module in modules:
            top, *rest = module.split(".")
            if top == "posviz":
                found += [f"imports {module}"] * any(part.startswith("_") for part in rest)
            elif top not in TYPING | {"streamlit"}:
                found.append(f"imports {module}")
        if modules and isinstance(node, ast.ImportFrom) and modules[0].startswith("posviz"):
            private = [a.name for a in node.names if a.name.startswith("_") and a.name != "_"]
            found += [f"imports {name} of {modules[0]}" for name in private]
    return found


SCRIPTS = sorted([*(ROOT / "pages").glob("*.py"), *ROOT.glob("app.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_pages_only_arrange(path):
    assert complaints(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import streamlit as st\nfrom posviz.ui import shell\nfrom posviz.ui.lang import _", []),
        ("from posviz import encodings, attention\nfrom collections.abc import Callable", []),
        ("import numpy as np", ["imports numpy"]),
        ("def f():\n    from torch import nn", ["imports torch"]),
        ("from . import other", ["imports ."]),
        ("import os.path", ["imports os.path"]),
        ("from posviz.ui._private import x", ["imports posviz.ui._private"]),
        ("from posviz.ui.cached import _trace", ["imports _trace of posviz.ui.cached"]),
        ("text = open('x').read()", ["calls open"]),
        ("Path('x').read_text()", ["calls read_text"]),
        ("eval('1')", ["calls eval"]),
    ],
)
def test_the_check_sees_what_it_should(source, found):
    assert complaints(source) == found


def test_nothing_in_the_repository_needs_what_lies_beside_it():
    """A clone is complete: no file reaches for the folder this was written beside."""
    beside = "../" + "shared"
    files = [
        path
        for folder in ("posviz", "pages", "tests", "scripts", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".js", ".json", ".css", ".toml", ".md")
    ]
    assert len(files) > 20
    assert [str(path) for path in files if beside in path.read_text("utf-8")] == []


def test_the_version_is_said_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == posviz.__version__
