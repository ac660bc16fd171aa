"""One layer of a pretrained model: queries, keys and values are kept, all that is tokens x tokens is computed when asked.

At 512 tokens, twelve layers of twelve heads have 38 million weights, and as many numbers in every part of the
scores; q, k and v of all layers are 57 MB.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from posviz.encodings.base import Encoding
from posviz.types import AttentionTrace, Dims, Tokens

KEEP = 2_000_000  # cells of a layer that are still kept once computed


@dataclass(frozen=True, kw_only=True)
class ModelDims(Dims):
    """Sizes of a layer as the model has them: d_head need not be d_model / n_heads, keys may have fewer heads."""

    head_width: int
    n_kv_heads: int

    def __post_init__(self) -> None:
        """Checked where the config was read; the bounds of :class:`Dims` are those of the app's controls."""

    @property
    def d_head(self) -> int:
        return self.head_width


class Parts(Mapping[str, np.ndarray]):
    """Parts of the scores, each computed when it is asked for."""

    def __init__(self, names: tuple[str, ...], make: Callable[[str], np.ndarray]) -> None:
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def frozen(x: torch.Tensor | np.ndarray) -> np.ndarray:
    """The same memory, read-only."""
    array = (x.detach().numpy() if isinstance(x, torch.Tensor) else x).view()
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Captured:
    """What was recorded of a layer; all float32.

    inputs (L, d): what the projections saw. q (H, L, e), k, v (Hkv, Lk, e): with their offsets and norms, before any
    rotation. q_turned, k_turned: after it. bias (H, L, Lk) or None. output (L, d): W_O's.
    position (L, d), q_position, k_position (H, L, e): the shares of position where it can still be told apart.
    """

    inputs: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    output: torch.Tensor
    w_o: torch.Tensor
    b_o: torch.Tensor | None
    q_turned: torch.Tensor | None = None
    k_turned: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    position: torch.Tensor | None = None
    q_position: torch.Tensor | None = None
    k_position: torch.Tensor | None = None


class LayerTrace(AttentionTrace):
    """An :class:`AttentionTrace` whose large arrays are computed on access and kept only while they are small.

    Where position was added to the words (first layer of an absolute model) the scores split into four parts and
    the projections' offsets count as content; behind that, content and position are mixed and only content is
    meaningful. Ask for ``weights`` once and keep the array; ``head_weights(h)`` computes one head.
    """

    def __init__(
        self,
        captured: Captured,
        *,
        tokens: Tokens,
        spec: Encoding,
        dims: ModelDims,
        mask: str,
        scale: float,
        allowed: np.ndarray,
        key_tokens: Tokens | None = None,
    ) -> None:
        given = {
            "tokens": tokens,
            "spec": spec,
            "dims": dims,
            "seed": 0,
            "mask": mask,
            "scale": scale,
            "allowed": frozen(allowed),
            "key_tokens": key_tokens,
            "hidden": frozen(captured.inputs),
            "output": frozen(captured.output),
            "w_o": frozen(captured.w_o),
            "b_o": None if captured.b_o is None else frozen(captured.b_o),
            "_captured": captured,
        }
        self.__dict__.update(given)  # frozen: nobody else writes here

    def __repr__(self) -> str:
        return f"LayerTrace({len(self.tokens)} x {len(self.keys)} tokens, {self.dims})"

    def _grouped(self, x: torch.Tensor) -> torch.Tensor:
        """(Hkv, L, e) -> (H, L, e): each key head serves several query heads."""
        groups = self.dims.n_heads // x.shape[0]
        return x if groups == 1 else x.repeat_interleave(groups, 0)

    @cached_property
    def position(self) -> np.ndarray:  # type: ignore[override]
        added = self._captured.position
        return np.broadcast_to(np.float32(0), self.hidden.shape) if added is None else frozen(added)

    @cached_property
    def embedding(self) -> np.ndarray:  # type: ignore[override]
        return self.hidden if self._captured.position is None else frozen(self.hidden - self.position)

    @cached_property
    def q(self) -> np.ndarray:  # type: ignore[override]
        return frozen(self._captured.q)

    @cached_property
    def k(self) -> np.ndarray:  # type: ignore[override]
        return frozen(self._grouped(self._captured.k))

    @cached_property
    def v(self) -> np.ndarray:  # type: ignore[override]
        return frozen(self._grouped(self._captured.v))

    @cached_property
    def q_rotated(self) -> np.ndarray:  # type: ignore[override]
        turned = self._captured.q_turned
        return self.q if turned is None else frozen(turned)

    @cached_property
    def k_rotated(self) -> np.ndarray:  # type: ignore[override]
        turned = self._captured.k_turned
        return self.k if turned is None else frozen(self._grouped(turned))

    @property
    def bias(self) -> np.ndarray:  # type: ignore[override]
        shape = (self.dims.n_heads, len(self.tokens), len(self.keys))
        bias = self._captured.bias
        return np.broadcast_to(np.float32(0), shape) if bias is None else np.broadcast_to(frozen(bias), shape)

    def _kept(self, name: str, make: Callable[[], torch.Tensor]) -> np.ndarray:
        if name in self.__dict__:
            return self.__dict__[name]
        made = frozen(make())
        if made.size <= KEEP:
            self.__dict__[name] = made
        return made

    @property
    def scores(self) -> np.ndarray:  # type: ignore[override]
        return self._kept("_scores", lambda: self._scores_of(slice(None)))

    @property
    def weights(self) -> np.ndarray:  # type: ignore[override]
        return self._kept("_weights", lambda: self._weights_of(slice(None)))

    @property
    def parts(self) -> Mapping[str, np.ndarray]:  # type: ignore[override]
        return Parts(self._part_names, lambda name: frozen(self._part(name, slice(None))))

    @cached_property
    def head_outputs(self) -> np.ndarray:  # type: ignore[override]
        return frozen(self._weights_of(slice(None)) @ self._grouped(self._captured.v))

    def head_scores(self, head: int) -> np.ndarray:
        return frozen(self._scores_of(head))

    def head_weights(self, head: int) -> np.ndarray:
        return frozen(self._weights_of(head))

    def head_parts(self, head: int) -> Mapping[str, np.ndarray]:
        return {name: frozen(self._part(name, head)) for name in self._part_names}

    # In torch, not numpy: an app that gives each visitor one thread tells torch, and a BLAS of its own would not know.
    def _scores_of(self, heads: int | slice) -> torch.Tensor:
        kept = self._captured
        q = kept.q if kept.q_turned is None else kept.q_turned
        k = self._grouped(kept.k if kept.k_turned is None else kept.k_turned)
        product = q[heads] @ k[heads].mT
        product *= self.scale
        if kept.bias is not None:
            product += kept.bias[heads]
        return product

    def _weights_of(self, heads: int | slice) -> torch.Tensor:
        scores = self._scores_of(heads)
        if not self.allowed.all():
            scores.masked_fill_(torch.tensor(~self.allowed), -torch.inf)
        return scores.softmax(-1)

    @property
    def _part_names(self) -> tuple[str, ...]:
        if self._captured.q_position is not None:
            return "content_content", "content_position", "position_content", "position_position"
        if self._captured.q_turned is not None:
            return "content", "rotation"
        return ("content",) if self._captured.bias is None else ("content", "bias")

    def _part(self, name: str, heads: int | slice) -> torch.Tensor:
        kept = self._captured
        if name == "bias":
            return kept.bias[heads]
        if name == "rotation":
            return self._scores_of(heads) - self._part("content", heads)
        q, k = kept.q[heads], self._grouped(kept.k)[heads]
        if name != "content":
            q_share, k_share = name.split("_")
            q_position, k_position = kept.q_position[heads], kept.k_position[heads]
            q = q_position if q_share == "position" else q - q_position
            k = k_position if k_share == "position" else k - k_position
        return (q @ k.mT) * self.scale
