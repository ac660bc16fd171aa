"""How far a long computation is, shown once it is clear that it takes time: a bar that flashes up only disturbs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from posviz.models.pretrained.model import Progress
from posviz.types import Text
from posviz.ui.lang import current

PATIENCE = 0.3  # seconds without a bar


@contextmanager
def shown(prefix: str = "") -> Iterator[Progress]:
    """A function to call with a share from 0 to 1 and what is being done; its bar goes when all is done."""
    place, began = st.empty(), time.monotonic()

    def progress(share: float, text: Text) -> None:
        if time.monotonic() - began > PATIENCE:
            place.progress(share, f"{prefix}{text(current())}")

    try:
        yield progress
    finally:
        place.empty()
