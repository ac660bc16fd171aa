"""``python -m posviz.models.twins train --encoding rope``: trains, measures and runs the twins."""

import argparse
import sys
from pathlib import Path

from posviz.models.twins import corpus, measure, sample, store, train
from posviz.models.twins.model import SPECS


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m posviz.models.twins", description="The twins: train, measure, let write."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="train twins; goes on where an earlier run was stopped")
    one.add_argument("--encoding", nargs="+", choices=[*SPECS, "all"], default=["all"])
    one.add_argument("--seed", nargs="+", type=int, default=[0])
    one.add_argument("--steps", type=int, default=train.Recipe.steps)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--folder", type=Path, default=Path("build/twins"))
    all_ = commands.add_parser("measure", help="measure all trained twins of a folder and write results.json")
    all_.add_argument("--folder", type=Path, default=Path("build/twins"))
    all_.add_argument("--out", type=Path, default=store.RESULTS)
    text = commands.add_parser("write", help="let a twin go on with an opening")
    text.add_argument("opening")
    text.add_argument("--encoding", choices=SPECS, default="rope")
    text.add_argument("--form", choices=corpus.FORMS, default="quatrain")
    text.add_argument("--temperature", type=float, default=0.8)
    text.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    {"train": _train, "measure": _measure, "write": _write}[given.command](given)


def _measure(given: argparse.Namespace) -> None:
    if not store.available(given.folder):
        raise SystemExit(f"no trained twin is in {given.folder}: `python -m posviz.models.twins train` makes them")
    measure.measure(given.folder, given.out)
    _say(f"{given.out} written")


def _write(given: argparse.Namespace) -> None:
    model = store.load(given.encoding).model
    print(given.opening, end="", flush=True)
    for piece in sample.write(model, given.opening, form=given.form, temperature=given.temperature, seed=given.seed):
        print(piece, end="", flush=True)
    print()


def _train(given: argparse.Namespace) -> None:
    names = list(SPECS) if "all" in given.encoding else given.encoding
    for seed in given.seed:
        for name in names:
            recipe = train.Recipe(steps=given.steps)
            done = given.folder / f"{name}-{seed}.json"
            if done.exists():
                print(f"{done} is there", flush=True)
                continue
            train.train(name, seed=seed, recipe=recipe, folder=given.folder, threads=given.threads, log=_say)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
