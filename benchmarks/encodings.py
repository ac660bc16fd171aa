"""Every table and bias at 4096 x 512: posviz beside transformers, beside two small libraries, beside a plain loop.

A table has 4096 positions of 512 dimensions; a bias 512 queries of 4096 keys, one head. The loop is what a
tutorial writes, one cell at a time; it is measured on a few rows and scaled. Libraries that are not installed
are named, not fetched.
"""

import importlib.util
import math
import time
from collections.abc import Callable, Iterator

import torch

from benchmarks.table import Row, attempt, middle
from posviz import encodings
from posviz.encodings import ENCODINGS
from posviz.types import Dims

POSITIONS, WIDTH = 4096, 512
LOOP_ROWS = 2  # of the plain loop; scaled to all of them
OPTIONAL = {"rotary_embedding_torch": "rope", "positional_encodings": "sinusoidal"}


def measure(repeat: int) -> Iterator[Row]:
    """One row for each encoding and each counterpart."""
    repeat = min(repeat, 5)
    torch.set_num_threads(1)  # as the app does; on a busy machine more threads only wait for each other
    for name in ENCODINGS:
        yield from attempt(f"encodings: {name}", lambda name=name: _rows(name, repeat))
    for module, name in OPTIONAL.items():
        if importlib.util.find_spec(module) is None:
            yield Row(f"encodings: {name}", "ms", instead=f"{module} is not installed: install it to measure it")
        else:
            yield Row(f"encodings: {name}", "ms", _time(_ours(name), repeat), _time(_library(module), repeat), module)


def _rows(name: str, repeat: int) -> Iterator[Row]:
    if ENCODINGS[name].kind == "none":
        return
    ours = _time(_ours(name), repeat)
    theirs = THEIRS.get(name)
    others = {"transformers": theirs and theirs(), "a plain loop": _loop(name)}
    for versus, other in others.items():
        what = f"encodings: {name}, 4096 x 512"
        if other is None:
            if versus == "transformers":
                yield Row(what, "ms", ours, instead="no counterpart in transformers")
        elif versus == "transformers":
            yield Row(what, "ms", ours, _time(other, repeat), versus)
        else:
            yield Row(what, "ms", ours, _time(other, 1) * POSITIONS / LOOP_ROWS, versus)


def _time(make: Callable[[], object], repeat: int) -> float:
    """Median milliseconds of a call, after one that warms up."""
    samples = []
    with torch.no_grad():
        for _ in range(repeat + 1):
            before = time.perf_counter()
            make()
            samples.append((time.perf_counter() - before) * 1000)
    return middle(samples[1:] or samples)


def _ours(name: str) -> Callable[[], object]:
    """Table, turned vectors or bias of that size, from the spec's own module."""
    spec = encodings.make(name)
    if spec.kind == "additive":
        module = spec.build(Dims(d_model=WIDTH, n_heads=1), POSITIONS)
        sample = module.sample(POSITIONS).float()
        return lambda: module.embed(sample)
    module = spec.build(Dims(d_model=WIDTH, n_heads=1), POSITIONS)
    if spec.kind == "rotary":
        x = torch.ones(1, POSITIONS, WIDTH)
        at = torch.arange(POSITIONS)
        return lambda: module.rotate(x, x, at, at)
    q, k = torch.ones(1, WIDTH, WIDTH), torch.ones(1, POSITIONS, WIDTH)
    return lambda: module.bias(q, k, torch.arange(WIDTH), torch.arange(POSITIONS))


# ---- transformers


def _m2m_100() -> Callable[[], object]:
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding as M2M

    return lambda: M2M.get_embedding(POSITIONS, WIDTH)


def _llama() -> Callable[[], object]:
    from transformers.models.llama import modeling_llama as llama

    config = llama.LlamaConfig(hidden_size=WIDTH, num_attention_heads=1, max_position_embeddings=POSITIONS)
    table, x, at = llama.LlamaRotaryEmbedding(config), torch.ones(1, 1, POSITIONS, WIDTH), torch.arange(POSITIONS)[None]
    return lambda: llama.apply_rotary_pos_emb(x, x, *table(x, at))


def _t5() -> Callable[[], object]:
    from transformers.models.t5.modeling_t5 import T5Attention, T5Config

    block = T5Attention(T5Config(d_model=WIDTH, d_kv=WIDTH, num_heads=1), has_relative_attention_bias=True, layer_idx=0)
    return lambda: block.compute_bias(WIDTH, POSITIONS)


def _mpt() -> Callable[[], object]:
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    return lambda: build_mpt_alibi_tensor(1, POSITIONS).expand(1, WIDTH, POSITIONS).clone()


def _mae() -> Callable[[], object]:
    from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

    return lambda: build_2d_sinusoidal_position_embedding(height=64, width=64, embed_dim=WIDTH)


def _wav2vec2() -> Callable[[], object]:
    from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2Config, Wav2Vec2PositionalConvEmbedding

    layer, x = Wav2Vec2PositionalConvEmbedding(Wav2Vec2Config(hidden_size=WIDTH)), torch.ones(1, POSITIONS, WIDTH)
    return lambda: layer(x)


# Each imports its part of transformers when its row is measured, not before.
THEIRS = {"sinusoidal": _m2m_100, "rope": _llama, "t5": _t5, "alibi": _mpt, "sincos_2d": _mae, "conv": _wav2vec2}


# ---- a plain loop, one cell at a time


def _loop(name: str) -> Callable[[], object] | None:
    cell = CELLS.get(name)
    if cell is None:
        return None
    return lambda: [[cell(p, c) for c in range(WIDTH)] for p in range(1, LOOP_ROWS + 1)]


def _wave(p: int, c: int) -> float:
    angle = p / 10_000 ** (c // 2 * 2 / WIDTH)
    return math.cos(angle) if c % 2 else math.sin(angle)


CELLS: dict[str, Callable[[int, int], float]] = {
    "sinusoidal": _wave,
    "rope": _wave,
    "alibi": lambda p, c: -(2.0**-8) * abs(p - c),
    "kerple": lambda p, c: -math.log(1 + 0.5 * abs(p - c)),
    "t5": lambda p, c: float(p - c if abs(p - c) < 8 else 8 + int(math.log(abs(p - c) / 8) / math.log(16) * 8)),
}


# ---- libraries that may be there


def _library(module: str) -> Callable[[], object]:
    if module == "rotary_embedding_torch":
        from rotary_embedding_torch import RotaryEmbedding

        rotary, x = RotaryEmbedding(dim=WIDTH), torch.ones(1, 1, POSITIONS, WIDTH)
        return lambda: rotary.rotate_queries_or_keys(x)
    from positional_encodings.torch_encodings import PositionalEncoding1D

    layer, x = PositionalEncoding1D(WIDTH), torch.ones(1, POSITIONS, WIDTH)
    return lambda: (setattr(layer, "cached_penc", None), layer(x))
