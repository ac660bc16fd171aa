"""``python -m benchmarks [name ...] [--repeat N] [--json FILE]``: measure and print the table; results/ keeps that of a whole run."""

import argparse
import json
import os
import platform
import sys
import time
from datetime import datetime
from importlib import metadata
from pathlib import Path

from benchmarks import animation, encodings, heads, heatmaps, models, pages, pretrained, start, twins
from benchmarks.table import Row, attempt, markdown

SECTIONS = {
    "pages": pages.measure,
    "heatmaps": heatmaps.measure,
    "heads": heads.measure,
    "models": models.measure,
    "animation": animation.measure,
    "start": start.measure,
    "twins": twins.measure,
    "pretrained": pretrained.measure,
    "encodings": encodings.measure,
}
RESULTS = Path(__file__).with_name("results")
PACKAGES = ("streamlit", "plotly", "torch", "numpy", "transformers", "bertviz")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measure posviz beside other tools.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(SECTIONS)} (all)")
    parser.add_argument("--repeat", type=int, default=11, metavar="N", help="key presses a page; slow things get fewer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there as well")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in SECTIONS]
    if unknown:
        parser.error(f"name must be one of {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    if options.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {options.repeat}")
    header = _header(arguments)
    started, rows = time.perf_counter(), []
    for name in options.names or SECTIONS:
        before = time.perf_counter()
        rows += attempt(name, lambda name=name: SECTIONS[name](options.repeat))
        print(f"{name}: {time.perf_counter() - before:.0f} s", file=sys.stderr, flush=True)
    header["seconds"] = round(time.perf_counter() - started)
    header["load after"] = _load()
    text = f"{_line(header)}\n\n{markdown(rows)}\n"
    print(text)
    _keep(header, rows, text, options)
    return 1 if any(row.failure for row in rows) else 0


def _keep(header: dict, rows: list[Row], text: str, options: argparse.Namespace) -> None:
    data = json.dumps({"header": header, "rows": [row.as_json() for row in rows]}, ensure_ascii=False, indent=1) + "\n"
    if not options.names:  # a part does not replace the whole
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "latest.json").write_text(data, "utf-8")
        (RESULTS / "latest.md").write_text(text, "utf-8")
    if options.json:
        options.json.write_text(data, "utf-8")


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _header(arguments: list[str]) -> dict:
    return {
        "command": " ".join(["python -m benchmarks", *arguments]),
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "CPUs": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load before": _load(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {package: _version(package) for package in PACKAGES},
    }


def _line(header: dict) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    return (
        f"`{header['command']}` · {header['date']} · {header['CPUs']} CPUs, load {header['load before']} before and "
        f"{header['load after']} after · {header['system']} · {versions} · headless Chromium without a GPU · "
        f"medians · {header['seconds']} s"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
