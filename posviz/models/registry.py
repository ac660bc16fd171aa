"""Which models there are on this machine, by a key that a link can carry, and how one is opened."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from posviz.models import pretrained
from posviz.models.base import Model
from posviz.models.pretrained.folder import folder_at, kind_of
from posviz.models.pretrained.limits import Limits, from_environment
from posviz.models.pretrained.model import Progress
from posviz.models.twins import store
from posviz.models.untrained import Untrained
from posviz.types import Refusal, Text, shown

ROOT = Path(__file__).resolve().parents[2]
KEPT = 2  # opened models that stay in memory
_opened: OrderedDict[tuple[str, Limits], Model] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class Entry:
    """A model that can be opened. key: "untrained", "twin:rope", "local:SmolLM2-135M-Instruct" or "hub:owner/name".

    kind: "untrained", "twin", "local" (fetched by `make models` or put there) or "hub" (a server's allow-list).
    """

    key: str
    kind: str
    title: Text


def models_folder() -> Path:
    """Where fetched models are: POSVIZ_MODELS, else ``models`` beside a checkout, else a cache in the home folder."""
    given = os.environ.get("POSVIZ_MODELS")
    if given:
        return folder_at(given) or Path(given)
    return ROOT / "models" if (ROOT / "pyproject.toml").is_file() else Path.home() / ".cache" / "posviz" / "models"


def catalog(limits: Limits | None = None) -> tuple[Entry, ...]:
    """What can be opened here without a network: the untrained layer, the twins, the fetched models; on a server
    also its allow-list. Real models are listed where the extra ``models`` is installed."""
    limits = limits or from_environment()
    entries = [Entry("untrained", "untrained", Text("untrained layer", "未训练的一层"))]
    for name in store.available():
        title = store.SPECS[name]().title
        entries.append(
            Entry(f"twin:{name}", "twin", Text("twin, {name}", "孪生模型，{name}").filled(name=title.en))
            if title.en == title.zh
            else Entry(f"twin:{name}", "twin", Text(f"twin, {title.en}", f"孪生模型，{title.zh}"))
        )
    if pretrained.installed():
        entries += [Entry(f"local:{name}", "local", Text(name, name)) for name in _local()]
        entries += [Entry(f"hub:{name}", "hub", Text(name, name)) for name in limits.names or ()]
    return tuple(entries)


def _local() -> list[str]:
    folder = folder_at(models_folder())
    found = folder.glob("*/config.json") if folder else ()
    return sorted(path.parent.name for path in found if not path.parent.name.startswith("."))


def position_kind(key: str) -> str | None:
    """How a model tells the order: "absolute", "rotary" or "bias" of a pretrained one, "additive" ... of a twin;
    None where that is not known before it is opened (on the hub), or there is no such model."""
    kind, colon, name = key.partition(":")
    for (opened, _limits), model in tuple(_opened.items()):
        if opened == key and isinstance(model, pretrained.Pretrained):
            return model.position.kind
    if kind == "twin" and colon:
        return store.SPECS[name]().kind if name in store.SPECS else None
    if kind == "local" and colon:
        inside = Path(name).name == name and not name.startswith(".")  # as ``_local`` lists them
        return kind_of(models_folder() / name) if inside else None
    if (kind == "hub" and colon) or not from_environment().folders:
        return None
    return kind_of(Path(key))


def open_model(key: str, *, limits: Limits | None = None, progress: Progress | None = None) -> Model:
    """The model of a key of :func:`catalog`, or, where folders are allowed, of a folder or a hub's name.

    The last two stay open. Raises :class:`Refusal`.
    """
    limits = limits or from_environment()
    with _lock:  # two visitors who ask for the same model wait for one loading
        if (key, limits) in _opened:
            _opened.move_to_end((key, limits))
            return _opened[key, limits]
        model = _open(key, limits, progress)
        _opened[key, limits] = model
        while len(_opened) > KEPT:
            _opened.popitem(last=False)
        return model


def _open(key: str, limits: Limits, progress: Progress | None) -> Model:
    kind, colon, name = key.partition(":")
    if key == "untrained":
        return Untrained()
    if kind == "twin" and colon:
        return store.load(name)
    if kind == "local" and colon:
        pretrained.check_installed()
        if name not in _local():
            raise Refusal(
                Text(
                    "there is no fetched model {got}; here are {allowed}: `make models` fetches them",
                    "没有下载好的模型 {got}；现有 {allowed}：用 `make models` 下载",
                ),
                field="model",
                got=shown(name),
                allowed=", ".join(_local()) or Text("none", "无"),
            )
        own = Limits(tokens=limits.tokens, parameters=limits.parameters, cells=limits.cells)  # our own folder
        return pretrained.load(models_folder() / name, limits=own, progress=progress)
    where = name if kind == "hub" and colon else key
    return pretrained.load(where, limits=limits, progress=progress)
