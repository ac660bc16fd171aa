"""Chromium, one key press at a time. All times are taken inside the page (``probe.js``)."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LIMIT = 180_000  # ms; go.Heatmap of 5000 x 1024 takes a while
PROBE = Path(__file__).with_name("probe.js").read_text("utf-8")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A new browser with nothing in its cache."""
    path = os.environ.get("POSVIZ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise RuntimeError("no Chromium found; install it or set POSVIZ_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def tab(browser: Browser, width: int = 1280, height: int = 800, *, still: bool = True) -> Page:
    """An empty tab with the probe. still: animations are off, so that a paint means new data."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        locale="en-US",
        color_scheme="light",
        reduced_motion="reduce" if still else "no-preference",
    )
    page = context.new_page()
    page.set_default_timeout(LIMIT)
    page.add_init_script(PROBE)
    return page


def visit(page: Page, url: str, kind: str) -> float:
    """Open ``url``; seconds from the navigation to the first picture of that kind."""
    page.goto(url, wait_until="commit")
    painted = page.evaluate("([kind, limit]) => probe.first(kind, limit)", [kind, LIMIT])
    if painted is None:
        raise RuntimeError(f"no picture appeared in {LIMIT // 1000} s")
    settle(page)
    return painted / 1000


def settle(page: Page) -> None:
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")


def press(page: Page, kind: str, slider: str) -> dict[str, Any]:
    """ArrowRight on the slider of that key: ms until another picture is seen, and the bytes that came."""
    page.bring_to_front()
    page.evaluate(
        "args => probe.arm(...args)", [kind, f".st-key-{slider} [role=slider], .st-key-{slider} input", LIMIT]
    )
    page.keyboard.press("ArrowRight")
    found = page.evaluate("limit => probe.result(limit)", 10_000)
    if found is None:
        raise RuntimeError("the picture did not change")
    return found
