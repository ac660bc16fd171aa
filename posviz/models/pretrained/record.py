"""What the hooks of one forward pass saw of a model's modules."""

from typing import Any

import numpy as np
import torch
from torch import nn

from posviz.models.pretrained.families import Stack
from posviz.models.pretrained.layers import ModelDims, frozen


class Record:
    """What the hooks of one forward pass saw, without the batch axis: inputs and outputs of modules by their path."""

    def __init__(self) -> None:
        self.inputs: dict[str, torch.Tensor] = {}
        self.outputs: dict[str, torch.Tensor] = {}
        self.biases: dict[str, torch.Tensor] = {}

    def bias_hook(self, path: str) -> Any:
        def see(module: nn.Module, args: tuple, out: torch.Tensor) -> None:
            self.biases[path] = out.permute(2, 0, 1)  # (L, L, H) -> (H, L, L)

        return see

    def hook(self, path: str) -> Any:
        def see(module: nn.Module, args: tuple, kwargs: dict, out: Any) -> None:
            first = args[0] if args else kwargs.get("hidden_states")
            if isinstance(first, torch.Tensor):
                self.inputs[path] = first[0]
            out = out[0] if isinstance(out, tuple) else out
            self.outputs[path] = out[0] if out.dim() > 2 else out

        return see

    def hidden(self, tower: Stack, depth: int) -> tuple[np.ndarray, np.ndarray | None]:
        """(N + 1, L, d): what enters the first layer, then what leaves each; and behind the final norm."""
        rows = [self.inputs[tower.block.format(i=0)]]
        rows += [self.outputs[tower.block.format(i=i)] for i in range(depth)]
        last = frozen(self.outputs[tower.final]) if tower.final else None
        return frozen(torch.stack(rows)), last


def output_of(module: nn.Module, dims: ModelDims) -> tuple[torch.Tensor, torch.Tensor | None]:
    """W_O as (H, e, d) and its offset; transformers' Conv1D keeps (in, out), Linear (out, in)."""
    weight = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
    bias = getattr(module, "bias", None)
    return weight.detach().unflatten(0, (dims.n_heads, -1)), None if bias is None else bias.detach()
