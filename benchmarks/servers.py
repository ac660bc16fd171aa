"""Streamlit servers on free ports, and what they hold in memory."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
APP = ROOT / "app.py"
EMPTY = ROOT / "benchmarks/apps/empty.py"
HEATMAPS = ROOT / "benchmarks/apps/heatmaps.py"
START_SECONDS = 60


@dataclass(frozen=True)
class Server:
    """A running server: its address, its process, and the perf_counter when it was started."""

    url: str
    pid: int
    started: float

    @property
    def resident(self) -> int:
        return resident(self.pid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serve(script: Path) -> Iterator[Server]:
    """``streamlit run script`` with the project's settings, until the block ends."""
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}", "--server.headless=true"]
    # The working directory holds .streamlit/config.toml: both sides run with the same settings.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(process, port, log)
            yield Server(f"http://127.0.0.1:{port}", process.pid, started)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen, port: int, log) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    log.seek(0)
    raise RuntimeError(f"the server did not start: {log.read().decode(errors='replace')[-300:].strip()}")


def resident(pid: int) -> int:
    """Resident memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) * 1024
