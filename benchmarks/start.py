"""From nothing to the first picture: imports, a fresh server, a cold browser; and what is held in memory then."""

import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import pages, servers
from benchmarks.browser import LIMIT, Browser, Tab, chromium
from benchmarks.table import Row, attempt, middle

MODULES = {"posviz": ("torch", "import torch"), "posviz.ui.shell": ("streamlit", "import streamlit")}


def measure(repeat: int) -> Iterator[Row]:
    few = min(3, max(1, repeat // 5))
    yield from attempt("imports", lambda: _imports(min(3, max(1, repeat // 3))))
    yield from attempt("first page", lambda: _first_pages(few))
    yield from attempt("memory", lambda: _memory())


def _imports(repeat: int) -> Iterator[Row]:
    """In a new interpreter each, after one that fills the disk's cache; beside what it is built on."""
    names = [name for module, (other, _) in MODULES.items() for name in (module, other)]
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeat + 1):
        for name in names:
            took = _import(name)
            if turn:
                times[name].append(took)
    for module, (other, _) in MODULES.items():
        detail = {"milliseconds": {name: times[name] for name in (module, other)}}
        yield Row(f"import {module}", "ms", middle(times[module]), middle(times[other]), other, detail=detail)


def _import(name: str) -> float:
    code = f"import time; t = time.perf_counter(); import {name}; print((time.perf_counter() - t) * 1000)"
    done = subprocess.run([sys.executable, "-c", code], cwd=servers.ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout)


def _first_pages(repeat: int) -> Iterator[Row]:
    sides = {"posviz": (servers.APP, "canvas"), "empty": (servers.EMPTY, "image")}
    fresh: dict[str, list[float]] = {side: [] for side in sides}
    command: dict[str, list[float]] = {side: [] for side in sides}
    warm: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(repeat):
        for side, (script, kind) in sides.items():
            with servers.serve(script) as server:
                healthy = time.perf_counter() - server.started
                fresh[side].append(_cold_visit(server.url, kind))
                command[side].append(healthy + fresh[side][-1])
                warm[side].append(_cold_visit(server.url, kind))
    for what, times in (
        ("command → first picture (fresh server, cold browser)", command),
        ("address → first picture (fresh server, cold browser)", fresh),
        ("address → first picture (later visitor, cold browser)", warm),
    ):
        ours, theirs = (middle(times[side]) for side in ("posviz", "empty"))
        yield Row(what, "s", ours, theirs, "empty page", detail={"seconds": times})


def _cold_visit(url: str, kind: str) -> float:
    with chromium() as browser:
        return browser.tab().visit(url, kind)


def _memory() -> Iterator[Row]:
    held = {}
    for side, script in (("posviz", servers.APP), ("empty", servers.EMPTY)):
        with servers.serve(script) as server, chromium() as browser:
            tab = browser.tab()
            if side == "posviz":
                tab.visit(server.url, "canvas")
                _walk(tab)
            else:
                tab.visit(server.url, "image")
            held[side] = {"server": server.resident, **tab_memory(browser, tab)}
    for what, key in (
        ("resident memory of the server, all pages visited", "server"),
        ("resident memory of the browser tab, all pages visited", "tab"),
        ("JavaScript heap of the tab, all pages visited", "heap"),
    ):
        yield Row(what, "B", held["posviz"][key], held["empty"][key], "empty page")


def _walk(tab: Tab) -> None:
    """Through all pages by their links and back, in one session."""
    for name in (*pages.PAGES[1:], ""):  # the first link leads home, wherever the others stand
        tab.run(
            "name => [...document.querySelectorAll('.st-key-nav a')]"
            ".find((link, i) => name ? new URL(link.href).pathname === `/${name}` : i === 0).click()",
            name,
        )
        tab.run("probe.arrived", f"/{name}", 30_000)
        if tab.run("probe.first", "canvas", LIMIT) is None:
            raise RuntimeError(f"{name or 'home'}: no picture")
        tab.run("probe.settled", LIMIT)


def tab_memory(browser: Browser, tab: Tab) -> dict[str, float]:
    """The largest renderer process is the tab's; the heap after a collection. pid: that process."""
    tab.send("HeapProfiler.collectGarbage")
    heap = tab.send("Runtime.getHeapUsage")["usedSize"]
    processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [int(process["id"]) for process in processes if process["type"] == "renderer"]
    held, pid = max((servers.resident(pid), pid) for pid in renderers)
    return {"heap": heap, "tab": held, "pid": pid}
