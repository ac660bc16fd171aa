"""What real trainings found, where results of them are shipped; None where there are none yet.

The twins are small causal models that differ in their position encoding only. Their measurements lie in
``posviz/models/twins/results.json``, written by ``python -m posviz.models.twins measure``.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "models" / "twins" / "results.json"


@lru_cache(maxsize=1)
def twins() -> Mapping[str, Any] | None:
    """The shipped measurements of the twins, or None."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else None


def measured() -> tuple[str, ...]:
    """The encodings of which a trained twin was measured."""
    return tuple((twins() or {}).get("twins", {}))


def loss(encoding: str, length: str) -> float | None:
    """Mean loss in nats a token of the twin with this encoding, at "1x", "2x" or "4x" the trained length.

    None where no such twin was trained and measured.
    """
    found = (twins() or {}).get("twins", {}).get(encoding, {}).get(f"loss_{length}")
    return None if found is None else float(found["mean"])


def stretch(encoding: str) -> float | None:
    """How much the twin's loss grows from the trained length to four times it, nats; None if not measured."""
    short, long = loss(encoding, "1x"), loss(encoding, "4x")
    return None if short is None or long is None else long - short
