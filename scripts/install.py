"""Install requirement files into the environment of the Python that runs this script.

    python scripts/install.py requirements.txt [requirements-dev.txt ...]

pip alone would do, were it not for torch: on Linux the package index carries a CUDA build of
several gigabytes, and posviz computes on the CPU. PyTorch publishes CPU builds on an index of its
own, so on Linux torch is taken from there first. The index is asked once, for a few seconds at
most: where it does not answer, or has no build for this Python, pip decides alone. No other
package is ever taken from that index.

TORCH_INDEX_URL names another index of CPU builds; empty means that none is asked.

Only the standard library is used: this runs in an environment that has nothing else yet.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import threading
import urllib.request
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_SECONDS = 4.0
# Not compiled ahead: torch and its like have twenty thousand files, of which posviz imports a few.
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-compile"]


def pinned_torch(requirements: Path = ROOT / "requirements.txt") -> str:
    """The version of torch that requirements.txt pins."""
    pin = re.search(r"^torch==([^\s;#]+)", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    if pin is None:
        raise SystemExit(f"{requirements} must pin torch as torch==VERSION.")
    return pin.group(1)


def installed_torch() -> str | None:
    """The installed version without its local part: 2.13.0+cpu is 2.13.0."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def answers(index: str, seconds: float = PROBE_SECONDS) -> bool:
    """Whether the index serves a page for torch, decided within `seconds`.

    The request runs in a thread, because a socket timeout does not bound a slow name look-up.
    """
    served: list[bool] = []

    def ask() -> None:
        certificates = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE")
        try:
            context = ssl.create_default_context(cafile=certificates)
            page = f"{index.rstrip('/')}/torch/"
            with urllib.request.urlopen(page, timeout=seconds, context=context) as reply:
                served.append(reply.status == 200)
        except (OSError, ValueError):
            pass  # unreachable, refused, or not a URL: pip decides alone

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return served == [True]


def install_cpu_torch() -> None:
    """Install the CPU build of the pinned torch, where this platform and its index have one."""
    version = pinned_torch()
    index = os.environ.get("TORCH_INDEX_URL", CPU_INDEX)
    if sys.platform != "linux" or not index or installed_torch() == version:
        return
    if not answers(index):
        print(f"No CPU index at {index}: pip takes torch from where it is configured to.")
        return
    print(f"torch {version}: CPU build from {index}", flush=True)
    done = subprocess.run([*PIP, "--no-deps", "--index-url", index, f"torch=={version}"])
    if done.returncode != 0:
        print("No CPU build of torch for this Python there: pip takes it from elsewhere.")


def main(files: list[str]) -> int:
    if not files:
        print(__doc__)
        return 2
    install_cpu_torch()
    sys.stdout.flush()
    requirements = [argument for file in files for argument in ("-r", file)]
    return subprocess.run([*PIP, *requirements]).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
