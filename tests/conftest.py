"""Hypothesis draws the same examples in every run, so that a red test is red for everybody."""

import functools
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# After every run of a page Streamlit looks through all objects for what can be freed: as long as the run itself takes.
os.environ.setdefault("STREAMLIT_RUNNER_POST_SCRIPT_GC", "false")

# Matrices of a few cells: threads would only wait for each other. Read when torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "posviz",
    derandomize=True,
    database=None,
    deadline=None,  # no test is decided by how fast a machine is
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("posviz")


@pytest.fixture(scope="session", autouse=True)
def _one_look_for_components() -> Iterator[None]:
    """Every new AppTest reads what is said of each installed package, to find Streamlit components: once will do."""
    if "streamlit" not in sys.modules:  # none of the tests that were collected needs it
        yield
        return
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield
