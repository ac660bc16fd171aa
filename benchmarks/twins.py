"""Training and writing: a twin beside torch's own encoder of the same size, and a cache beside none."""

import time
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional

from benchmarks.table import Row, attempt, middle
from posviz.models.twins import corpus, sample, train
from posviz.models.twins.model import Twin

BATCH = 64
CHARACTERS = 96


def measure(repeat: int) -> Iterator[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield from attempt("training", lambda: [_training(max(3, repeat))])
        yield from attempt("writing", lambda: [_writing(max(2, repeat // 3))])
    finally:
        torch.set_num_threads(threads)


class _Torchs(nn.Module):
    """torch.nn.TransformerEncoder as a causal language model: the same widths, layers and vocabulary, no dropout."""

    def __init__(self, twin: Twin) -> None:
        super().__init__()
        d = twin.config.d_model
        layer = nn.TransformerEncoderLayer(
            d, twin.config.n_heads, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, bias=False
        )
        self.tokens = nn.Embedding(len(corpus.vocabulary()), d)
        self.positions = nn.Embedding(twin.config.max_len, d)
        self.encoder = nn.TransformerEncoder(layer, twin.config.n_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.norm(self.encoder(x, mask=mask, is_causal=True)) @ self.tokens.weight.T


def _training(repeat: int) -> Row:
    """Milliseconds of 1000 tokens in whole steps, the two by turns; the learned twin, since torch's has a learned table too."""
    twin = Twin("learned")
    recipe, torchs = train.Recipe(), _Torchs(twin)
    adam, other = train.optimizer(twin, recipe), torch.optim.AdamW(torchs.parameters(), lr=recipe.rate)
    batches = corpus.batches(0, BATCH)

    def ours(ids: torch.Tensor, number: int) -> None:
        train.step(twin, adam, ids, recipe, number)

    def theirs(ids: torch.Tensor, number: int) -> None:
        logits, target = torchs(ids[:, :-1]), ids[:, 1:]
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
        other.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(torchs.parameters(), recipe.clip)
        other.step()

    times: dict[Callable, list[float]] = {ours: [], theirs: []}
    for number in range(repeat + 2):
        ids = next(batches)
        for step in (ours, theirs):
            began = time.perf_counter()
            step(ids, number)
            if number >= 2:  # the first steps warm up
                times[step].append(1e6 * (time.perf_counter() - began) / ids[:, 1:].numel())
    return Row(
        "twin: 1000 tokens trained",
        "ms",
        middle(times[ours]),
        middle(times[theirs]),
        "nn.TransformerEncoder",
        most_ratio=1.0,
        detail={"posviz": times[ours], "torch": times[theirs]},
    )


def _writing(repeat: int) -> Row:
    """Milliseconds a character with keys and values kept, beside computing the whole text again for each."""
    model = Twin("rope").eval()
    cached, again = [], []
    for _ in range(repeat):
        began = time.perf_counter()
        text = list(sample.write(model, "春", form="verse", temperature=1.0, limit=CHARACTERS))
        cached.append(1e3 * (time.perf_counter() - began) / len(text))
        ids = corpus.encode("春", "verse")
        began = time.perf_counter()
        with torch.no_grad():
            for piece in text:
                logits, _ = model(torch.tensor([ids]), last=True)
                sample.probabilities(logits[:, -1], 1.0)
                ids.append(corpus.index()[piece])
        again.append(1e3 * (time.perf_counter() - began) / len(text))
    return Row(
        "twin: one character written",
        "ms",
        middle(cached),
        middle(again),
        "recomputing",
        detail={"cached": cached, "recomputing": again},
    )
