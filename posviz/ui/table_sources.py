"""Where a table of positions comes from: computed, a trained twin, a model that was fetched, or an upload."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import streamlit as st
import torch

from posviz import encodings, models, tables
from posviz.models.twins import corpus, store
from posviz.types import Refusal, Text, shown
from posviz.ui import state
from posviz.ui.lang import N_, _, current

UPLOAD, REFUSED = "_table_upload", "_table_refused"
ROWS = {"position": N_("position"), "bucket": N_("bucket of distances"), "distance": N_("distance key − query")}


@dataclass(frozen=True, eq=False)
class Chosen:
    """A table with where it is from.

    key: the same for the same numbers. values (rows, d) float64; first_row: what row 0 is called; used: how many
    rows mean something (training has seen them). code: the lines that leave it in ``table``.
    """

    key: str
    title: str
    badge: str
    values: np.ndarray
    used: int
    code: str
    what: str = "position"
    first_row: int = 0


@dataclass(frozen=True, eq=False)
class Upload:
    """A file of this session: its name and the tables in it."""

    name: str
    found: Mapping[str, np.ndarray]
    which: str


def names() -> dict[str, str]:
    """key -> title of what can be chosen here."""
    lang = current()
    found = {f"twin:{name}": _("{name}, trained twin").format(name=_title(name)) for name in _trained()}
    found |= {"learned": _("learned, untrained"), "sinusoidal": _title("sinusoidal")}
    found |= {entry.key: entry.title(lang) for entry in _fetched()}
    if UPLOAD in st.session_state or REFUSED in st.session_state:
        found["upload"] = _("your own")
    return found


def chosen(setting: state.Setting) -> Chosen:
    """The table that the controls ask for; raises :class:`Refusal`."""
    key = state.get("table") or next(iter(names()))
    if key == "upload":
        return _uploaded()
    if key not in names():
        raise Refusal(
            Text("`table` must be one of {allowed}, got {got}", "`table` 只能是 {allowed} 之一，现在是 {got}"),
            field="table",
            allowed=", ".join(names()),
            got=shown(key),
        )
    kind, _colon, name = key.partition(":")
    makers: dict[str, Callable[[], Chosen]] = {
        "twin": lambda: _twin(name),
        "learned": lambda: _learned(setting),
        "sinusoidal": lambda: _sinusoidal(setting),
    }
    return makers.get(kind, lambda: _model(key))()


def _title(name: str) -> str:
    return encodings.ENCODINGS[name].title(current())


# ---------------------------------------------------------------- computed
def _sizes(setting: state.Setting) -> str:
    return f"Dims(d_model={setting.dims.d_model}, n_heads={setting.dims.n_heads}), {setting.max_len}"


def _sinusoidal(setting: state.Setting) -> Chosen:
    spec, d, length = setting.other("sinusoidal"), setting.dims.d_model, setting.max_len
    spec.fits(setting.dims)
    code = f"from posviz import encodings\n\ntable = {spec.call()}.table(range({length}), {d}).numpy()"
    values = tables.check(spec.table(range(length), d).numpy())
    return Chosen(f"{spec.call()} {d} {length}", _title("sinusoidal"), "", values, length, code)


def _learned(setting: state.Setting) -> Chosen:
    spec, length = setting.other("learned"), setting.max_len
    module = spec.build(setting.dims, length, torch.Generator().manual_seed(setting.seed))
    code = f"""import torch
from posviz import Dims, encodings

spec = {spec.call()}
module = spec.build({_sizes(setting)}, torch.Generator().manual_seed({setting.seed}))
table = module.weight.detach().double().numpy()[spec.offset :]"""
    values = tables.check(module.weight.detach().numpy()[spec.offset :])
    badge = _("untrained · seed {seed}").format(seed=setting.seed)
    key = f"{spec.call()} {_sizes(setting)} {setting.seed}"
    return Chosen(key, _("learned, untrained"), badge, values, length, code)


# ---------------------------------------------------------------- trained
def _trained() -> list[str]:
    """The twins whose encoding is one trained table."""
    return [name for name in store.available() if name in ("learned", "t5", "shaw")]


def _twin(name: str) -> Chosen:
    twin = store.load(name)
    module = twin.model.position
    offset = module.spec.offset if name == "learned" else 0
    values = tables.check(module.weight.numpy()[offset:])
    what = {"learned": "position", "t5": "bucket", "shaw": "distance"}[name]
    code = f"""from posviz.models.twins import store

table = store.load({name!r}).model.position.weight.double().numpy(){f"[{offset}:]" if offset else ""}"""
    return Chosen(
        key=f"twin:{name}",
        title=_("{name}, trained twin").format(name=_title(name)),
        badge=twin.badge(current()),
        values=values,
        used=corpus.TRAINED_LEN - 1 if name == "learned" else len(values),
        code=code,
        what=what,
        first_row=-(len(values) // 2) if name == "shaw" else 0,
    )


def _fetched() -> tuple:
    """Entries of models that were fetched, or that the server offers; none where models cannot be opened."""
    catalog = getattr(models, "catalog", None)
    return tuple(entry for entry in catalog() if entry.kind in ("local", "hub")) if catalog else ()


def _model(key: str) -> Chosen:
    with st.spinner(_("Opening {name} …").format(name=key.partition(":")[2])):
        model = models.open_model(key)
    values = tables.check(model.position_table())
    code = f"""from posviz import models

table = models.open_model({key!r}).position_table()"""
    what = "bucket" if model.position.kind == "bias" else "position"
    return Chosen(key, model.name, model.badge(current()), values, len(values), code, what)


# ---------------------------------------------------------------- uploaded
def take(name: str, data: bytes) -> None:
    """An uploaded file becomes this session's own table, or a sentence that says why not."""
    for kept in (UPLOAD, REFUSED):
        st.session_state.pop(kept, None)
    try:
        found = tables.read(data)
    except Refusal as refusal:
        st.session_state[REFUSED] = refusal
    else:
        st.session_state[UPLOAD] = Upload(shown(name, 60), found, tables.likeliest(found))
    state.put("table", "upload")


def choose(which: str) -> None:
    """Another table of the uploaded file."""
    kept: Upload = st.session_state[UPLOAD]
    st.session_state[UPLOAD] = Upload(kept.name, kept.found, which)


def _uploaded() -> Chosen:
    refusal, kept = st.session_state.get(REFUSED), st.session_state.get(UPLOAD)
    if refusal is not None:
        raise refusal
    if kept is None:
        raise Refusal(
            Text(
                "this link shows a table that somebody uploaded in another session: upload it here to see it",
                "这个链接里的表是在另一个会话里上传的：请在这里上传后再看",
            ),
            field="table",
        )
    values = tables.check(kept.found[kept.which])
    digest = sha256(values.tobytes()).hexdigest()
    name = kept.name + (f" · {kept.which}" if kept.which else "")
    code = f"""from pathlib import Path
from posviz import tables

table = tables.check(tables.read(Path({kept.name!r}).read_bytes())[{kept.which!r}])"""
    badge = _("your own file · it stays in this session")
    return Chosen(f"upload {values.shape} {digest}", name, badge, values, len(values), code)
