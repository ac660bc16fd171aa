"""Chromium over its DevTools protocol, one key press at a time. All times are taken inside the page (``probe.js``).

Not Playwright: it watches the network of every page, and Chromium then copies each websocket message,
as text, to the watcher. That made go.Heatmap, which receives up to 70 MB a press, two to three times slower.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = [
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--password-store=basic",
    "--lang=en-US",
]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LIMIT = 150_000  # ms; go.Heatmap of 5000 x 1024 takes a while
SETTLED = 10_000  # ms that a run may go on after the picture
PROBE = Path(__file__).with_name("probe.js").read_text("utf-8")
ARROW = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
DOWN = {"key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40}
ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}


class Browser:
    """A running Chromium; commands are answered one by one, of the events only requests for ``scripts`` are looked at."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self.scripts: dict[str, bytes] = {}

    def send(
        self, method: str, session: str | None = None, patience: float = LIMIT / 1000 + 30, **params: Any
    ) -> dict[str, Any]:
        """The command's result; TimeoutError after ``patience`` seconds without a word."""
        sent = self._write(method, session, params)
        while True:
            reply = json.loads(self._socket.recv(timeout=patience))
            if reply.get("method") == "Fetch.requestPaused":
                self._answer(reply["params"], reply["sessionId"])
            if reply.get("id") == sent:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def _write(self, method: str, session: str | None, params: dict[str, Any]) -> int:
        self._last += 1
        command = {"id": self._last, "method": method, "params": params}
        self._socket.send(json.dumps(command | ({"sessionId": session} if session else {})))
        return self._last

    def _answer(self, paused: dict[str, Any], session: str) -> None:
        """Hand a script to the tab that waits for it, in place of the network."""
        body = base64.b64encode(self.scripts[paused["request"]["url"]]).decode()
        headers = [{"name": "Content-Type", "value": "text/javascript"}]
        answer = {"requestId": paused["requestId"], "responseCode": 200, "responseHeaders": headers, "body": body}
        self._write("Fetch.fulfillRequest", session, answer)

    def tab(self, width: int = 1280, height: int = 800, *, still: bool = True) -> "Tab":
        """A window with nothing in its cache. still: animations are off, so that a paint means new data."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context, newWindow=True)[
            "targetId"
        ]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, context)
        features = {"prefers-color-scheme": "light", "prefers-reduced-motion": "reduce" if still else "no-preference"}
        tab.send("Page.enable")
        tab.send("Page.addScriptToEvaluateOnNewDocument", source=PROBE)
        tab.send("Emulation.setEmulatedMedia", features=[{"name": k, "value": v} for k, v in features.items()])
        tab.send("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.resize(width, height)
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self._context = context

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def close(self) -> None:
        self._browser.send("Target.disposeBrowserContext", browserContextId=self._context)

    def intercept(self, scripts: dict[str, bytes]) -> None:
        """Answer requests for these addresses from memory: {address: script}."""
        self._browser.scripts |= scripts
        self.send("Fetch.enable", patterns=[{"urlPattern": address} for address in scripts])

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, function: str, *arguments: Any, patience: float = LIMIT / 1000 + 30) -> Any:
        """What a JavaScript function of the page returns, or what its promise brings."""
        text = ", ".join(json.dumps(argument) for argument in arguments)
        done = self.send(
            "Runtime.evaluate",
            patience=patience,
            expression=f"({function})({text})",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in done:
            thrown = done["exceptionDetails"]
            raise RuntimeError(thrown.get("exception", {}).get("description", thrown["text"]).splitlines()[0])
        return done["result"].get("value")

    def open(self, url: str) -> None:
        failed = self.send("Page.navigate", url=url).get("errorText")
        if failed:
            raise RuntimeError(f"{url}: {failed}")

    def visit(self, url: str, kind: str) -> float:
        """Open ``url``; seconds from the navigation to the first picture of that kind."""
        self.open(url)
        painted = self.run("probe.first", kind, LIMIT)
        if painted is None:
            raise RuntimeError(f"no picture appeared in {LIMIT // 1000} s")
        self.run("probe.settled", SETTLED)
        return painted / 1000

    def key(self, key: dict[str, Any]) -> None:
        for event in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=event, **key)

    def choose(self, kind: str, select: str) -> dict[str, Any]:
        """The next option of the select box of that key: opened and marked first, then timed from Enter."""
        self.send("Page.bringToFront")
        self.run(f"() => document.querySelector('.st-key-{select} input').focus()")
        self.key(DOWN)
        self.run("probe.settled", 500)
        self.key(DOWN)
        self.run("probe.settled", 500)
        return self.press(kind, select, ENTER)

    def press(self, kind: str, slider: str, key: dict[str, Any] = ARROW) -> dict[str, Any]:
        """ArrowRight on the slider of that key: ms until another picture is seen, and the bytes that came."""
        self.send("Page.bringToFront")
        self.run("probe.arm", kind, f".st-key-{slider} [role=slider], .st-key-{slider} input", LIMIT)
        self.key(key)
        found = self.run("probe.result", SETTLED)
        if found is None:
            raise RuntimeError("the picture did not change")
        return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A new browser with nothing in its cache."""
    path = os.environ.get("POSVIZ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise RuntimeError("no Chromium found; install it or set POSVIZ_CHROMIUM")
    # ignore_cleanup_errors: its helpers may still write for a moment after it ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            address = _address(process, Path(profile, "DevToolsActivePort"))
            with connect(address, max_size=None, ping_interval=None, proxy=None, open_timeout=30) as socket:
                yield Browser(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen, file: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise RuntimeError("Chromium did not start")
