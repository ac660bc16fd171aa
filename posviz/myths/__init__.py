"""Popular sentences about position encodings, each put to a measurement; the verdict comes from the numbers.

A verdict is "true", "false" or "depends"; None where it needs trained models and none are shipped.
"""

from posviz.myths import order, rope, tables
from posviz.myths.base import VERDICTS, Case, Finding, Myth

__all__ = ["MYTHS", "VERDICTS", "Case", "Finding", "Myth", "measure"]

# In the order of the page.
_ORDER = (
    "falls",
    "neighbours",
    "coincide",
    "unique",
    "identical",
    "extrapolate",
    "width",
    "rope_decays",
    "rope_endless",
    "pairings",
    "alibi",
    "nope",
    "destroys",
)
_FOUND = {myth.key: myth for myth in (*tables.MYTHS, *rope.MYTHS, *order.MYTHS)}
MYTHS: dict[str, Myth] = {key: _FOUND[key] for key in _ORDER}


def measure(key: str, case: Case) -> Finding:
    """The finding for one sentence; the same case gives the same numbers."""
    return MYTHS[key].measure(case)
