"""Training a twin: deterministic on the CPU, resumable, one card for each result."""

import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from posviz.models.twins import corpus
from posviz.models.twins.model import Twin, losses

HELD_EVERY = 250


@dataclass(frozen=True)
class Recipe:
    """What every twin is trained with; AdamW, linear warm-up, cosine to 0, gradients clipped."""

    steps: int = 3_000
    batch: int = 64
    rate: float = 3e-3
    warm_up: int = 200
    decay: float = 0.1
    clip: float = 1.0

    def rate_at(self, step: int) -> float:
        """Learning rate of step 0 .. steps - 1."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.rate * 0.5 * (1 + math.cos(math.pi * done))


def optimizer(model: Twin, recipe: Recipe) -> torch.optim.AdamW:
    """Weight decay on the matrices only, not on gains, embeddings or what the encoding trains."""
    matrices = [p for name, p in model.named_parameters() if ".w_" in name]
    others = [p for name, p in model.named_parameters() if ".w_" not in name]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))


def step(model: Twin, adam: torch.optim.AdamW, ids: torch.Tensor, recipe: Recipe, number: int) -> float:
    """One update; the mean loss in nats a token before it."""
    loss = losses(model, ids).sum() / (ids[:, 1:] != 0).sum()
    adam.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    for group in adam.param_groups:
        group["lr"] = recipe.rate_at(number)
    adam.step()
    return float(loss.detach())


@torch.no_grad()
def held_out_loss(model: Twin, count: int | None = None) -> float:
    """Mean loss in nats a token on held-out quatrains."""
    texts = corpus.poems("held_out", "quatrain")[:count]
    ids = corpus.padded([corpus.encode(text, "quatrain", end=True) for text in texts], corpus.TRAINED_LEN)
    total = sum(float(losses(model, part).sum(dtype=torch.float64)) for part in ids.split(100))
    return total / int((ids[:, 1:] != 0).sum())


def train(
    name: str,
    *,
    seed: int = 0,
    recipe: Recipe | None = None,
    folder: Path,
    threads: int = 2,
    log: Callable[[str], None] = print,
    stop_after: int | None = None,
) -> Path:
    """Train a twin, from the last checkpoint in ``folder`` if there is one; returns the card's path.

    The result, ``<name>-<seed>.safetensors`` (float16) and ``<name>-<seed>.json`` (its card), appears in
    ``folder`` when all steps are done. stop_after: leave after that many steps, with a checkpoint.
    """
    recipe = recipe or Recipe()
    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    model, stem = Twin(name, seed=seed), folder / f"{name}-{seed}"
    adam = optimizer(model, recipe)
    history = _resume(model, adam, stem, recipe)
    batches = corpus.batches(seed, recipe.batch)
    for _ in range(history["steps"]):
        next(batches)
    model.train()
    last = min(recipe.steps, history["steps"] + (stop_after or recipe.steps))
    while history["steps"] < last:
        number, began = history["steps"], time.monotonic()
        history["loss"].append(round(step(model, adam, next(batches), recipe, number), 5))
        history["seconds"] += time.monotonic() - began
        history["steps"] = number + 1
        if history["steps"] % HELD_EVERY == 0 or history["steps"] == last:
            history["held_out"].append([history["steps"], round(held_out_loss(model, 300), 5)])
            recent = history["loss"][-HELD_EVERY:]
            log(
                f"{name} seed {seed}: step {history['steps']}/{recipe.steps}, loss {sum(recent) / len(recent):.4f}, "
                f"held out {history['held_out'][-1][1]:.4f}, {history['seconds']:.0f} s"
            )
            _keep(model, adam, stem, history)
    if history["steps"] == recipe.steps:
        return _publish(model, stem, recipe, history, threads)
    return stem.with_suffix(".state.json")


def _moments(model: Twin, adam: torch.optim.AdamW) -> dict[str, torch.Tensor]:
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter.detach()
        for key, value in adam.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = value
    return tensors


def _keep(model: Twin, adam: torch.optim.AdamW, stem: Path, history: dict) -> None:
    """A checkpoint; the state file names the tensors' file, so that the two always belong together."""
    file = stem.with_suffix(f".{history['steps']}.checkpoint")
    save_file(_moments(model, adam), file)
    state = stem.with_suffix(".state.json")
    new = state.with_suffix(".new")
    new.write_text(json.dumps({**history, "checkpoint": file.name}), "utf-8")
    new.replace(state)
    for old in stem.parent.glob(f"{stem.name}.*.checkpoint"):
        if old != file:
            old.unlink()


def _resume(model: Twin, adam: torch.optim.AdamW, stem: Path, recipe: Recipe) -> dict:
    state = stem.with_suffix(".state.json")
    if not state.exists():
        return {"recipe": asdict(recipe), "steps": 0, "seconds": 0.0, "loss": [], "held_out": []}
    history = json.loads(state.read_text("utf-8"))
    if history["recipe"] != asdict(recipe):
        raise SystemExit(f"{state} was trained with another recipe, {history['recipe']}: choose another folder")
    tensors = load_file(stem.parent / history.pop("checkpoint"))
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors[f"model.{name}"])
        moments = {key: tensors[f"{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq")}
        adam.state[parameter] = moments
    return history


def _publish(model: Twin, stem: Path, recipe: Recipe, history: dict, threads: int) -> Path:
    model.eval()
    save_file(
        {name: p.detach().to(torch.float16) for name, p in model.named_parameters()},
        stem.with_suffix(".safetensors"),
        metadata={"encoding": model.name, "seed": str(model.seed)},
    )
    curve = history["loss"]
    card = {
        "encoding": model.name,
        "call": model.spec.call(),
        "seed": model.seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "position_parameters": sum(p.numel() for p in model.position.parameters()),
        "config": asdict(model.config),
        "recipe": asdict(recipe),
        "trained_steps": history["steps"],
        "data": {
            "file": corpus.FILE.name,
            "rows": len(corpus.training_rows()),
            "vocabulary": len(corpus.vocabulary()),
            "trained_length": corpus.TRAINED_LEN,
        },
        "command": f"python -m posviz.models.twins train --encoding {model.name} --seed {model.seed}",
        "date": date.today().isoformat(),
        "seconds": round(history["seconds"]),
        "threads": threads,
        "machine": f"{platform.machine()}, torch {torch.__version__.partition('+')[0]}",
        "held_out_loss": held_out_loss(model),
        "first_losses": curve[:20],
        "loss_curve": [
            [i + 50, round(sum(curve[i : i + 50]) / len(curve[i : i + 50]), 4)] for i in range(0, len(curve), 50)
        ],
        "held_out_curve": history["held_out"],
    }
    path = stem.with_suffix(".json")
    path.write_text(json.dumps(card, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return path
