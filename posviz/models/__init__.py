"""Models behind one interface (:class:`posviz.models.base.Model`): untrained, trained here, and pretrained.

``catalog()`` lists what this machine has, ``open_model(key)`` opens one, ``position_kind(key)`` says how it knows the order.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posviz.models.registry import Entry, catalog, open_model, position_kind

__all__ = ["Entry", "catalog", "open_model", "position_kind"]


def __getattr__(name: str) -> Any:
    """Found when asked for: the twins alone need none of it."""
    if name in __all__:
        from posviz.models import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
