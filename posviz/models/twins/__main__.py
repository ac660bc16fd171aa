"""``python -m posviz.models.twins train --encoding rope``: trains the twins."""

import argparse
import sys
from pathlib import Path

from posviz.models.twins import train
from posviz.models.twins.model import SPECS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m posviz.models.twins", description="The twins: train them.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="train twins; goes on where an earlier run was stopped")
    one.add_argument("--encoding", nargs="+", choices=[*SPECS, "all"], default=["all"])
    one.add_argument("--seed", nargs="+", type=int, default=[0])
    one.add_argument("--steps", type=int, default=train.Recipe.steps)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--folder", type=Path, default=Path("build/twins"))
    given = parser.parse_args()
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
