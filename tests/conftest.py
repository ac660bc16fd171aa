"""Hypothesis draws the same examples in every run, so that a red test is red for everybody."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "posviz",
    derandomize=True,
    database=None,
    deadline=None,  # no test is decided by how fast a machine is
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("posviz")
