"""The same bones on every page: navigation, shared controls, header, the picture or one sentence, proof, details."""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
import torch

from posviz.types import Refusal
from posviz.ui import blocks, controls, params, state
from posviz.ui.lang import N_, _, current

ROOT = Path(__file__).parents[2]

# A sentence is small: two threads gain nothing on it, and on a busy machine they wait for each other
# (30 times slower when measured with both cores taken). Visitors share the cores instead.
torch.set_num_threads(1)

# The thread that sends must not wait 5 ms for the one that draws each time it has sent a message, nor the other
# way round after each torch call.
sys.setswitchinterval(0.0005)


@dataclass(frozen=True)
class PageInfo:
    """One page: its file and URL, its name in the navigation, and which of the sidebar's controls change it now."""

    name: str
    title: str
    controls: tuple[str, ...] | Callable[[], tuple[str, ...]] = controls.PARTS


def _of_a_model() -> tuple[str, ...]:
    """The untrained layer follows all of them; a model that nobody named is the twin of the encoding."""
    name = state.raw("smodel")
    return controls.PARTS if name == "untrained" else ("sentences",) if name else ("sentences", "encoding")


def _of_a_table() -> tuple[str, ...]:
    """A computed table follows the sizes; one that was trained or uploaded is as it is."""
    return ("sizes", "base", "more") if state.raw("table") in ("learned", "sinusoidal") else ()


PAGES = (
    PageInfo("order", N_("Why order matters")),
    PageInfo("heatmap", N_("What an encoding looks like")),
    PageInfo("similarity", N_("How alike positions are")),
    PageInfo("rotation", N_("How RoPE turns")),
    PageInfo("rope", N_("RoPE beyond its length"), ()),
    PageInfo("check", N_("Check my RoPE code"), ("base",)),
    PageInfo("attention", N_("What every head looks at")),
    PageInfo("studio", N_("Every head of a model"), _of_a_model),
    PageInfo("surgery", N_("A model without its positions"), _of_a_model),
    PageInfo("twins", N_("What position teaches"), ()),
    PageInfo("tables", N_("What a table has learned"), _of_a_table),
    PageInfo("compare", N_("All encodings compared")),
    PageInfo("myths", N_("Myths, measured"), ("sizes", "base", "more")),
)


def _pages() -> list[st.Page]:
    """This session's pages in its language; made once, since a page looks for its file."""
    lang = current()
    kept = st.session_state.get("_pages")
    if kept is None or kept[0] != lang:
        kept = st.session_state["_pages"] = (lang, _new_pages())
    return kept[1]


def _new_pages() -> list[st.Page]:
    def page(info: PageInfo, url_path: str, **options) -> st.Page:
        return st.Page(ROOT / "pages" / f"{info.name}.py", title=_(info.title), url_path=url_path, **options)

    home, *others = PAGES
    pages = [page(home, "home", default=True), *(page(info, info.name) for info in others)]
    # The first page lives at "/"; its own name in a URL must not end in "page not found".
    again = page(home, home.name, visibility="hidden")
    return [*pages, again]


def run() -> None:
    """All of app.py: language, URL, sidebar, the chosen page."""
    st.set_page_config("posviz", ROOT / "posviz/ui/icon.png", "wide", "expanded")
    blocks.style()
    _start_again_once()
    state.bind()
    pages = _pages()
    page = st.navigation(pages, position="hidden")
    info = next((info for info in PAGES if info.name == page.url_path), PAGES[0])
    parts = info.controls() if callable(info.controls) else info.controls
    draw_sidebar = controls.sidebar(pages[: len(PAGES)], parts)
    st.session_state["_in_shell"] = True
    st.session_state["_ways_back"] = set()
    first = st.session_state.setdefault("_first", True)
    if first:  # somebody has come: the navigation at once, also where the page takes its time
        draw_sidebar()
        st.session_state["_first"] = False
    try:
        page.run()
    finally:  # also when the page went wrong
        if not first:
            draw_sidebar()


_fresh = True  # until the first st.navigation of the process


def _start_again_once() -> None:
    """The process's first run began in Streamlit's older scheme for ``pages/`` (see ``open_page``): its widgets
    would belong to another page than those of the next run, and the first visitor's first change, or what the
    link says, would be lost. So it draws none."""
    global _fresh
    if _fresh:
        _fresh = False
        st.navigation(_new_pages(), position="hidden")
        # Streamlit collects garbage after every run, before the last of it is sent. What torch and streamlit
        # have loaded by now stays anyway: without those objects a collection takes no time.
        gc.freeze()
        st.rerun()


def page(name: str) -> st.Page:
    """A page by its name, to switch to."""
    return next(page for page, info in zip(_pages(), PAGES, strict=False) if info.name == name)


def open_page() -> state.Setting:
    """First line of every page.

    On a fresh server Streamlit takes ``pages/`` for its older scheme and runs a deep link's file alone,
    until the first ``st.navigation`` of the process: call it, and run again through app.py.
    """
    if not st.session_state.pop("_in_shell", False):
        st.navigation(_pages(), position="hidden")
        st.rerun()
    return state.Setting()


def header(
    setting: state.Setting,
    question: str,
    claim: str,
    *,
    strip: bool = True,
    tools: Callable[[], None] | None = None,
    strip_tools: Callable[[], None] | None = None,
) -> None:
    """The question, one sentence of claim, and the sentences as tokens with their positions.

    tools: draws the page's own controls at the right of the claim; strip_tools: beside the tokens.
    """
    blocks.title(question)
    if tools:  # beside the claim where both have room, else below it
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="page_head"
        ):
            blocks.claim(claim, width="content")
            with (
                st.container(horizontal=True, width="content", vertical_alignment="bottom", key="tools"),
                guard(quiet=True),
            ):
                tools()
    else:
        blocks.claim(claim)
    if strip:
        place = st.container(horizontal=True, vertical_alignment="center", gap="medium")
        with place, guard(quiet=True):
            blocks.strip(setting.loose_tokens("a"), setting.loose_tokens("b"))
        if strip_tools:
            with place, guard(quiet=True):
                strip_tools()


@contextmanager
def guard(*, quiet: bool = False) -> Iterator[None]:
    """Show a refusal as one sentence where the picture would be; everything else stays usable."""
    try:
        yield
    except Refusal as refusal:
        if not quiet:
            blocks.refusal(refusal.text(current()))
            _way_back(getattr(refusal, "param", ""))


def _way_back(name: str) -> None:
    """A control's value that means nothing: its box may stand where nothing is drawn now."""
    if name and name not in st.session_state["_ways_back"]:
        st.session_state["_ways_back"].add(name)
        st.button(
            _("back to the default of {name}").format(name=f"`{name}`"),
            key=f"default_{name}",
            on_click=state.put,
            args=(name, params.find(name).default),
        )


def proof(items: Sequence[blocks.Number]) -> None:
    """Two to four numbers computed live, each with what it should be."""
    blocks.numbers(items)


def details(
    key: str,
    *,
    formula: Callable[[], None] | None = None,
    code: Callable[[], str] | None = None,
    save: Callable[[], None] | None = None,
    badge: str = "",
) -> None:
    """Formula, code and downloads on demand; only the open one is computed. badge: where weights come from."""
    offered = {"formula": formula, "code": code, "save": save}
    names = {"formula": _("Formula with these numbers"), "code": _("Code"), "save": _("Save")}
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        opened = st.segmented_control(
            _("Details"),
            [name for name, shown in offered.items() if shown],
            format_func=names.__getitem__,
            key=f"{key}_details",
            label_visibility="collapsed",
        )
    with right:
        if badge:
            blocks.badge(badge)
    if opened == "code" and code:
        text = code()
        where = "# run it in the folder of posviz, or after: pip install -e .\n" if "posviz" in text else ""
        st.code(where + text, language="python")
    elif opened and offered[opened]:
        offered[opened]()


def untrained(setting: state.Setting) -> str:
    """The badge of everything that shows weights of the seeded layer."""
    return _("untrained · seed {seed} · weights depend on the seed only, not on the encoding").format(seed=setting.seed)
