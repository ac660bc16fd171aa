"""A BERT of twelve layers of twelve heads, random weights: every layer traced, beside the model's own attentions.

The other side is what BertViz is given: a forward pass with ``output_attentions=True``, all weights in memory.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from benchmarks.table import Row, attempt, middle

LENGTHS = (128, 512)
WANTED = 1.5  # times the forward pass alone


def measure(repeat: int) -> Iterator[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the app does
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = _model(Path(folder))
            for length in LENGTHS:
                yield from attempt(f"12 × 12 heads, {length} tokens", lambda n=length: _rows(model, n, repeat))
    finally:
        torch.set_num_threads(threads)


def _model(folder: Path):
    """A random BERT with a tokenizer of one word, saved and opened as a user's would be."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel

    from posviz.models import pretrained

    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(BertConfig()).save_pretrained(folder)
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return pretrained.load(folder)


def _rows(model, length: int, repeat: int) -> Iterator[Row]:
    tokens = model.tokenize("a " * length)
    ids, times = torch.tensor([tokens.ids]), max(3, repeat // 4)

    def theirs() -> None:
        with torch.inference_mode():
            model.network(ids, output_attentions=True)

    kept: list = []

    def ours() -> None:
        kept[:] = [model.trace(tokens)]

    own, other = _by_turns(ours, theirs, times)
    name = f"12 × 12 heads, {length} tokens: traced"
    yield Row(name, "s", own, other, "output_attentions", most_ratio=WANTED, detail={"peak MB": _peak()})
    layers = kept[0].layers
    yield Row(
        f"12 × 12 heads, {length} tokens: all weights", "s", _time(lambda: [layer.weights.max() for layer in layers])
    )
    yield Row(f"12 × 12 heads, {length} tokens: one head", "ms", 1e3 * _time(lambda: layers[5].head_weights(3)))


def _by_turns(ours: Callable[[], None], theirs: Callable[[], None], times: int) -> tuple[float, float]:
    """Medians of both, measured by turns so that a busy machine slows both alike."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for kept, run in zip(found, (ours, theirs), strict=True):
            kept.append(_time(run))
    return middle(found[0]), middle(found[1])


def _time(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _peak() -> float:
    """Most memory of this process so far, MB; Linux counts in kilobytes, macOS in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)
