"""docs/notebook.ipynb: a valid notebook whose cells run from top to bottom and end in pictures."""

import ast
import json
import re
from pathlib import Path

import plotly.graph_objects as go

PATH = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_it_is_a_notebook_of_format_4_without_outputs():
    assert set(NOTEBOOK) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert NOTEBOOK["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", i) for i in ids)
    for cell in NOTEBOOK["cells"]:
        extra = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | extra
        assert all(isinstance(line, str) for line in cell["source"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CODE)
    assert PATH.stat().st_size < 20_000


def test_every_text_is_in_both_languages():
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["source"])
            assert re.search(r"[\u4e00-\u9fff]", source) and re.search(r"[A-Za-z]{4}", source), source


def test_its_cells_run_and_all_but_the_first_end_in_a_picture():
    namespace: dict = {}
    shown = {cell["id"]: run("".join(cell["source"]), namespace) for cell in CODE}
    assert shown.pop("setup") is None
    assert len(shown) >= 7
    for name, figure in shown.items():
        assert isinstance(figure, go.Figure), name
        figure.to_plotly_json()
    assert abs(shown["attention-difference"].data[0].zmax) > 0.1  # order counts
    assert (
        float(abs(namespace["compare"].weights(namespace["blind_a"], namespace["blind_b"], namespace["pairs"])).max())
        < 1e-12
    )


def run(source: str, namespace: dict) -> object:
    """Execute a cell; its last expression is what a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(PATH), "exec"), namespace)
    return eval(compile(ast.Expression(last.value), str(PATH), "eval"), namespace) if last else None
