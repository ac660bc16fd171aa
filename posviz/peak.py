"""The most memory that a computation holds at one moment, counted tensor by tensor."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
    """Counts the storages of all tensors that operations make inside, from making to freeing, views once.

    now, most: bytes at this moment and at the fullest one. What was there before is not counted, nor is what a
    single kernel uses inside itself. Of this thread only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: set[int] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch would load its compiler, 800 modules, for the first operation

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, torch.Tensor):
                self._count(made.untyped_storage(), given)
        return result

    def _count(self, storage: torch.UntypedStorage, given: set[int]) -> None:
        place = storage._cdata
        if place in given or place in self._known:
            return
        self._known.add(place)
        self.now += storage.nbytes()
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._freed, place, storage.nbytes())

    def _freed(self, place: int, size: int) -> None:
        self._known.discard(place)
        self.now -= size


def peak(compute: Callable[[], Any]) -> int:
    """Bytes of the tensors alive together at the fullest moment of ``compute()``, its result included."""
    with torch.no_grad(), Peak() as counted:
        compute()
    return counted.most
