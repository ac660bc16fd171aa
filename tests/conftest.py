"""Hypothesis draws the same examples in every run, so that a red test is red for everybody."""

import os

from hypothesis import HealthCheck, settings

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
