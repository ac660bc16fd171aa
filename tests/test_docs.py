"""The READMEs name every URL parameter and the two commands, in both languages."""

from pathlib import Path

import pytest

from posviz.ui import state

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_readme_is_complete(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    missing = [p for p in state.PARAMS if f"`{p}`" not in text]
    assert missing == []
    assert "make run" in text and "make test" in text
    for picture in (line.split("](")[1].split(")")[0] for line in text.splitlines() if line.startswith("![")):
        assert (ROOT / picture).is_file()
