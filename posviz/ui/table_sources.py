"""Where a table of positions comes from: computed, a trained twin, a model that was fetched, or an upload."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import streamlit as st
import torch

from posviz import encodings, models, tables, views
from posviz.encodings.base import PositionModule
from posviz.models.twins import corpus, store
from posviz.types import Dims, Refusal, Text, shown
from posviz.ui import asked, blocks, state, waiting
from posviz.ui.lang import N_, _, current

OFF = "off"  # no table beside the encoding
UPLOAD, REFUSED = "_table_upload", "_table_refused"
# What a row of a trained encoding's one table stands for.
WHAT = {"learned": "position", "t5": "bucket", "shaw": "distance"}
FULL = 0.998  # of the cells have their own colour; larger ones share the last
ROWS = {"position": N_("position"), "bucket": N_("bucket of distances"), "distance": N_("distance key − query")}


@dataclass(frozen=True, eq=False)
class Chosen:
    """A table with where it is from.

    key: the same for the same numbers. values (rows, d) float64; first_row: what row 0 is called; used: how many
    rows mean something (training has seen them). code: the lines that leave it in ``table``. module: the encoding
    that reads it, where a row is not a position; then ``code`` leaves that in ``module`` as well.
    """

    key: str
    title: str
    badge: str
    values: np.ndarray
    used: int
    code: str
    what: str = "position"
    first_row: int = 0
    module: PositionModule | None = None


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
    found |= {name: shown(name) for name in asked.names() if _what(name) in ROWS and name not in found}
    if UPLOAD in st.session_state or REFUSED in st.session_state:
        kept = st.session_state.get(UPLOAD)
        found["upload"] = _("your file {name}").format(name=shown(kept.name, 24)) if kept else _("your file")
    return found


def fitting(*whats: str) -> dict[str, str]:
    """Those whose rows are positions, buckets, ... and whose numbers no formula and no dice gave."""
    return {
        key: title
        for key, title in names().items()
        if key not in ("learned", "sinusoidal") and _what(key) in (*whats, "unknown")
    }


def _what(key: str) -> str | None:
    """What a table's rows stand for, "unknown" before a model from the hub is opened; None where there is none."""
    kind, _colon, name = key.partition(":")
    if kind == "twin":
        return WHAT.get(name)
    if key in ("learned", "sinusoidal", "upload"):
        return "position"
    return {"absolute": "position", "bias": "bucket", "rotary": None}.get(models.position_kind(key), "unknown")


def chosen(setting: state.Setting) -> Chosen:
    """The table that the controls ask for; raises :class:`Refusal`."""
    key = state.get("table") or next(iter(names()))
    _check("table", key, names())
    return _made(setting, key)


def beside(setting: state.Setting, key: str, *whats: str) -> Chosen:
    """One of :func:`fitting`; also a model from the hub, whose table may turn out to be another."""
    _check("beside", key, fitting(*whats))
    found = _made(setting, key)
    if found.what not in whats:
        raise Refusal(
            Text(
                "the rows of {name}'s table are not of the kind that this encoding has; choose another table",
                "{name} 的表，行的含义与这种编码不同；请选另一张表",
            ),
            field="beside",
            name=found.title,
        )
    return found


def _check(field: str, key: str, allowed: Mapping[str, str]) -> None:
    if key not in allowed and key != "upload":
        raise Refusal(
            Text("`{name}` must be one of {allowed}, got {got}", "`{name}` 只能是 {allowed} 之一，现在是 {got}"),
            field=field,
            name=field,
            allowed=", ".join(allowed),
            got=shown(key),
        )


def _made(setting: state.Setting, key: str) -> Chosen:
    if key == "upload":
        return _uploaded()
    kind, _colon, name = key.partition(":")
    makers: dict[str, Callable[[], Chosen]] = {
        "twin": lambda: _twin(name),
        "learned": lambda: _learned(setting),
        "sinusoidal": lambda: _sinusoidal(setting),
    }
    return makers.get(kind, lambda: _model(key))()


def limit(values: np.ndarray) -> float:
    """The end of the colours: a few very large numbers must not bleach the others."""
    return float(np.quantile(np.abs(values), FULL)) or float(np.abs(values).max()) or 1.0


def cut(values: np.ndarray) -> str:
    """That the colours end before the largest number, where they do."""
    largest, end = float(np.abs(values).max()), limit(values)
    if largest <= 1.5 * end:
        return ""
    return _("the colours end at {limit}; the largest number is {largest}").format(
        limit=blocks.compact(end), largest=blocks.compact(largest)
    )


# ---------------------------------------------------------------- as the pages of the encodings draw them
def picture(found: Chosen, view: str, rows: int) -> views.Picture:
    """All rows of a table of positions; what the others add to ``rows`` positions."""
    if found.module is not None:
        return views.picture_of(found.module, rows, view=view)
    return replace(views.table_picture(found.values), limit=limit(found.values))


def alikeness(found: Chosen, length: int, kind: str, head: int) -> views.Alikeness:
    """How alike it makes the first positions, of a table those that training has used."""
    if found.module is not None:
        return views.alikeness_of(found.module, length, kind=kind, head=min(head, found.module.dims.n_heads - 1))
    return views.table_alikeness(found.values[: min(length, found.used)], kind=kind)


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
    return [name for name in store.available() if name in WHAT]


def _twin(name: str) -> Chosen:
    twin = store.load(name)
    module = twin.model.position
    offset = module.spec.offset if name == "learned" else 0
    values = tables.check(module.weight.numpy()[offset:])
    code = f"""from posviz.models.twins import store

module = store.load({name!r}).model.position
table = module.weight.double().numpy(){f"[{offset}:]" if offset else ""}"""
    return Chosen(
        key=f"twin:{name}",
        title=_("{name}, trained twin").format(name=_title(name)),
        badge=twin.badge(current()),
        values=values,
        used=corpus.TRAINED_LEN - 1 if name == "learned" else len(values),
        code=code,
        what=WHAT[name],
        first_row=-(len(values) // 2) if name == "shaw" else 0,
        module=None if name == "learned" else module,
    )


def _fetched() -> tuple:
    """Entries of models that were fetched, or that the server offers, and that may have a table."""
    return tuple(e for e in models.catalog() if e.kind in ("local", "hub") and _what(e.key) is not None)


def _model(key: str) -> Chosen:
    with waiting.shown() as progress:
        model = models.open_model(key, progress=progress)
    values = tables.check(model.position_table())
    code = f"""from posviz import models

table = models.open_model({key!r}).position_table()"""
    what, module = "position", None
    if model.position.kind == "bias":
        what, heads = "bucket", values.shape[1]
        module = model.position.spec.build(Dims(d_model=heads, n_heads=heads), 1, torch.Generator())
        module.weight.data = torch.tensor(values)
        code = f"""import torch
from posviz import Dims, models

model = models.open_model({key!r})
table = model.position_table()
module = model.position.spec.build(Dims(d_model={heads}, n_heads={heads}), 1, torch.Generator())
module.weight.data = torch.tensor(table)"""
    return Chosen(key, model.name, model.badge(current()), values, len(values), code, what, module=module)


# ---------------------------------------------------------------- uploaded
def take(name: str, data: bytes) -> None:
    """An uploaded file becomes this session's own table, or a sentence that says why not."""
    st.session_state.pop(REFUSED, None)
    try:
        found = tables.read(data)
    except Refusal as refusal:  # an earlier table stays
        st.session_state[REFUSED] = refusal.kept()
    else:
        st.session_state[UPLOAD] = Upload(shown(name, 60), found, tables.likeliest(found))


def choose(which: str) -> None:
    """Another table of the uploaded file."""
    kept: Upload = st.session_state[UPLOAD]
    st.session_state[UPLOAD] = Upload(kept.name, kept.found, which)


def _uploaded() -> Chosen:
    refusal, kept = st.session_state.get(REFUSED), st.session_state.get(UPLOAD)
    if refusal is not None:
        raise refusal.kept()
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
