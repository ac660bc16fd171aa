"""The READMEs name every URL parameter and the two commands, the registry's page every encoding, in both languages."""

from pathlib import Path

import pytest

from posviz import __main__ as command
from posviz import encodings
from posviz.ui import params

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_readme_is_complete(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    missing = [p for p in params.PARAMS if f"`{p}`" not in text]
    assert missing == []
    assert "make run" in text and "make test" in text
    for picture in (line.split("](")[1].split(")")[0] for line in text.splitlines() if line.startswith("![")):
        assert (ROOT / picture).is_file()


@pytest.mark.parametrize(("name", "lang"), [("encodings.md", "en"), ("encodings.zh.md", "zh")])
def test_every_encoding_has_its_entry(name: str, lang: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    assert [key for key in encodings.ENCODINGS if f"\n## {key}\n" not in text] == []
    assert text == command.markdown(lang), f"python -m posviz encodings --markdown --lang {lang} > docs/{name}"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_registry_is_printed(lang: str, capsys) -> None:
    assert command.main(["encodings", "--lang", lang]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in lines[1:]] == list(encodings.ENCODINGS)
    assert all(encodings.ENCODINGS[row.split()[0]].title(lang) in row for row in lines[1:])


def test_a_missing_entry_is_seen() -> None:
    """A new registry line changes the page that the test above compares."""
    text = command.markdown("en")
    for key, cls in encodings.ENCODINGS.items():
        assert f"[`{key}`](#{key})" in text and cls.summary.en in text and cls.paper.url in text
        assert all(model.url in text for model in cls.used_by)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_three_lines_give_a_picture(name: str) -> None:
    block = (ROOT / name).read_text("utf-8").split("```python\n")[1].partition("```")[0]
    *before, last = block.strip().splitlines()
    assert len(before) == 2
    namespace: dict = {}
    exec("\n".join(before), namespace)
    figure = eval(last, namespace)
    assert figure.data[0].z.shape == (128, 128)
