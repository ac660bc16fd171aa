"""From what the hooks saw to a :class:`LayerTrace`: projections, offsets, rotation, bias, mask, shares of position."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from posviz.attention import split_heads
from posviz.encodings import ModelRope
from posviz.models.base import Positions
from posviz.models.pretrained.families import Stack
from posviz.models.pretrained.layers import Captured, LayerTrace, ModelDims
from posviz.models.pretrained.record import Record, output_of
from posviz.types import Tokens

if TYPE_CHECKING:
    from posviz.models.pretrained.model import Pretrained


def layer(
    model: "Pretrained",
    record: Record,
    tower: Stack,
    i: int,
    tokens: Tokens,
    positions: Positions,
    keys: Tokens | None = None,
) -> LayerTrace:
    """Layer i of a tower as it was recorded; keys: the tokens looked at, in cross-attention."""
    attention = model.module(tower.attention, i)
    q, k, v = _projected(model, record, tower, i)
    dims = ModelDims(
        d_model=model.config.hidden_size, n_heads=q.shape[0], head_width=q.shape[-1], n_kv_heads=k.shape[0]
    )
    w_o, b_o = output_of(model.module(tower.out, i), dims)
    spec = model.spec_of(tower)
    turned: dict[str, torch.Tensor] = {}
    if isinstance(spec, ModelRope):
        at = model.ids(len(tokens), positions)
        turned = {"q_turned": spec.rotate(q, at), "k_turned": spec.rotate(k, at)}
    bias = _bias(model, record, tower)
    captured = Captured(
        inputs=record.inputs[tower.qkv[0].format(i=i)],
        q=q,
        k=k,
        v=v,
        output=record.outputs[tower.out.format(i=i)],
        w_o=w_o,
        b_o=b_o,
        bias=bias,
        **turned,
        **(_shares(model, record, dims) if i == 0 and model.family.kind == "absolute" else {}),
    )
    return LayerTrace(
        captured,
        tokens=tokens,
        spec=spec,
        dims=dims,
        mask=_mask(model, tower),
        scale=float(attention.scaling),
        allowed=_allowed(model, attention, tower, len(tokens), len(keys or tokens)),
        key_tokens=keys,
    )


def _projected(model: "Pretrained", record: Record, tower: Stack, i: int) -> Sequence[torch.Tensor]:
    """q (H, L, e), k, v (Hkv, Lk, e)"""
    outs = [record.outputs[path.format(i=i)] for path in tower.qkv]
    if len(outs) == 1:  # side by side
        outs = list(outs[0].chunk(3, -1))
    heads = model.config.num_attention_heads
    width = outs[0].shape[-1] // heads
    made = [split_heads(x, x.shape[-1] // width) for x in outs]
    for at, path in enumerate(tower.norms or ()):
        made[at] = record.outputs[path.format(i=i)].transpose(-3, -2)  # (L, H, e) behind its norm
    return made


def _bias(model: "Pretrained", record: Record, tower: Stack) -> torch.Tensor | None:
    """(H, L, L) of a bias tower, one tensor for all its layers."""
    if model.family.kind != "bias" or tower is model.family.cross:
        return None
    return record.biases[tower.attention]


def _mask(model: "Pretrained", tower: Stack) -> str:
    """The tower's; a BERT may be set to read like a decoder."""
    reads_back = model.family.decoder is None and getattr(model.config, "is_decoder", False)
    return "causal" if reads_back else tower.mask


def _allowed(model: "Pretrained", attention: nn.Module, tower: Stack, rows: int, columns: int) -> np.ndarray:
    if _mask(model, tower) != "causal":
        return np.ones((rows, columns), bool)
    behind = np.arange(rows)[:, None] - np.arange(columns)[None, :]
    own = model.config if model.config.model_type == "mistral" else attention  # where a family keeps its window
    window = getattr(own, "sliding_window", None) or columns
    return (behind >= 0) & (behind < window)


def _shares(model: "Pretrained", record: Record, dims: ModelDims) -> dict[str, torch.Tensor]:
    """Position's share of the first layer's input and of its q and k: the norm of a sum, told apart."""
    family, norm = model.family, model.module(model.family.norm)
    added = record.outputs[family.table].expand(len(record.outputs[family.words[0]]), -1)
    whole = added + sum(record.outputs[path] for path in family.words)
    deviation = (whole.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    position = (added - added.mean(-1, keepdim=True)) / deviation * norm.weight
    if len(family.stack.qkv) == 1:  # Conv1D: (d, 3d)
        weights = [w.T for w in model.module(family.stack.qkv[0]).weight.chunk(3, -1)[:2]]
    else:
        weights = [model.module(path).weight for path in family.stack.qkv[:2]]
    q, k = (split_heads(functional.linear(position, w), dims.n_heads) for w in weights)
    return {"position": position, "q_position": q, "k_position": k}
