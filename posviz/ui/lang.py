"""Chinese and English: gettext catalogues, the language of this session.

English is the source language. ``make messages`` extracts ``_("…")`` from posviz/ui, pages and app.py
into posviz/ui/locale and compiles it. Encodings carry both languages themselves (``posviz.Text``).
"""

import gettext
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import streamlit as st

from posviz.types import LANGUAGES

LOCALE = Path(__file__).parent / "locale"
NAMES = {"zh": "中文", "en": "EN"}


@lru_cache(maxsize=len(LANGUAGES))
def _catalogue(lang: str) -> gettext.NullTranslations:
    if lang == "en":
        return gettext.NullTranslations()
    return gettext.translation("posviz", LOCALE, languages=[lang], fallback=True)


def current() -> str:
    """The language of this session: what the person chose, else the browser's, else English."""
    chosen = st.session_state.get("lang", "")
    if chosen in LANGUAGES:
        return chosen
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def _(message: str) -> str:
    """``message`` in the session's language."""
    return _catalogue(current()).gettext(message)


def N_(message: str) -> str:
    """Marks a message that is translated later, where it is shown."""
    return message


def joined(*sentences: str) -> str:
    """Sentences one after another: with a space between them, but in Chinese."""
    return ("" if current() == "zh" else " ").join(sentences)


def named(name: str, text: str) -> str:
    """A name, a colon, and what is said of it."""
    return _("{name}: {value}").format(name=name, value=text)


def labels(texts: Mapping[str, str]) -> dict[str, str]:
    """A component's texts (marked with ``N_``) in the session's language."""
    return {key: _(text) for key, text in texts.items()}
