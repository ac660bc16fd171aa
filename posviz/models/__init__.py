"""Models behind one interface (:class:`posviz.models.base.Model`): untrained, trained here, and pretrained.

``catalog()`` lists what this machine has, ``open_model(key)`` opens one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posviz.models.registry import Entry, catalog, open_model

__all__ = ["Entry", "catalog", "open_model"]


def __getattr__(name: str) -> Any:
    """Found when asked for: the twins alone need none of it."""
    if name in __all__:
        from posviz.models import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
