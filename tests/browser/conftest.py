"""One server and one Chromium for all browser tests; every visit is a stranger's, and its console is read.

A test waits for what it expects (a number, a pixel, a parameter in the URL), never for a time.
``visit("/heatmap?d_model=128")`` opens a page without cookies or stored settings. When the test ends, errors in
the browser's console, dialogs, and requests to anywhere but the server fail it. Visits share only the browser's
cache of the server's files and its compiled scripts, which halves the time of a run.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, sync_playwright

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "test-results"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # one renderer for all visits, see ``contexts``
]
WAIT = 90_000  # ms; long, because it only decides how long a failure takes

# What a test asks the page. The components live in shadow roots, the standalone page has none.
HELPERS = """
window.pv = {
  all(selector, root = document) {
    const hosts = [...root.querySelectorAll('*')].filter((node) => node.shadowRoot)
    return [...root.querySelectorAll(selector), ...hosts.flatMap((host) => pv.all(selector, host.shadowRoot))]
  },
  canvas() { return pv.all('canvas[data-painted]')[0] },
  // What a page is about is there: its canvas, if it has a component; no poem is being written.
  drawn() {
    if (document.querySelector('.pv-cursor')) return false
    return Boolean(pv.canvas() || !document.querySelector('[data-testid^=stBidiComponent]'))
  },
  // The script has run, and every widget has been loaded.
  idle() {
    const app = document.querySelector('[data-testid=stApp]')
    return app?.dataset.testScriptState === 'notRunning' && !app.querySelector('[data-testid=stSkeleton]')
  },
  texts(selector) { return [...document.querySelectorAll(selector)].map((node) => node.textContent) },
  numbers() { return pv.texts('.pv-number strong') },
  // names in code style are written as in the core's sentence: `d_model`
  alerts() { return [...document.querySelectorAll('[role=alert]')].map((e) => e.innerHTML.replace(/<[/]?code>/g, '`')).map(pv.plain) },
  plain(html) { const e = document.createElement('div'); e.innerHTML = html; return e.textContent },
  // The mean colour of every 16 x 16 pixels: the edges of letters differ a little from paint to paint.
  picture() {
    const canvas = pv.canvas()
    if (!canvas?.width) return []
    const { width, height } = canvas
    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
    const across = Math.ceil(width / 16)
    const sums = new Float64Array(across * Math.ceil(height / 16) * 3)
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i += 4) {
        const block = ((y >> 4) * across + (x >> 4)) * 3
        for (let c = 0; c < 3; c++) sums[block + c] += (data[i + c] * data[i + 3]) / 255
      }
    }
    return [width, height, ...Array.from(sums, (sum) => sum / 256)]
  },
  shown() { return { numbers: pv.numbers(), alerts: pv.alerts(), picture: pv.picture() } },
  same(a, b) {
    if (a.picture) return a.numbers.join() === b.numbers.join() && a.alerts.join() === b.alerts.join() && pv.same(a.picture, b.picture)
    return a.length === b.length && a.every((v, i) => v === b[i] || Math.abs(v - b[i]) < 5)
  },
  // The colour at a point of the window, as [r, g, b].
  pixel(x, y) {
    const canvas = pv.canvas()
    const box = canvas.getBoundingClientRect()
    const scale = canvas.width / box.width
    return [...canvas.getContext('2d').getImageData((x - box.left) * scale, (y - box.top) * scale, 1, 1).data].slice(0, 3)
  },
  frames(count) {
    return new Promise((done) => {
      const next = () => (count-- > 0 ? requestAnimationFrame(next) : done())
      next()
    })
  },
}
"""


# ---------------------------------------------------------------- server and browser
@contextmanager
def running_server() -> Iterator[str]:
    """A fresh Streamlit server of its own; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    SHOTS.mkdir(exist_ok=True)
    log = SHOTS / f"server-{port}.log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    # as it is shipped: without what tests/conftest.py sets for the tests that run pages themselves
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_healthy(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    said = log.read_text("utf-8")
    log.unlink()
    assert "Traceback" not in said, f"the server wrote a traceback:\n{said[-4000:]}"


def _wait_healthy(process: subprocess.Popen, url: str, log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text('utf-8')[-4000:]}")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is ended ends its server too
    with running_server() as url:
        yield url


@pytest.fixture
def fresh_server() -> Iterator[str]:
    """A server that nobody has visited yet."""
    with running_server() as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("POSVIZ_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        reason = "no Chromium: install it (Debian: apt install chromium) or set POSVIZ_CHROMIUM to its path"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def contexts(browser: Browser, server: str) -> Iterator[Callable[[str], BrowserContext]]:
    """contexts(locale) -> the windows of one language; they share the cache.

    A window that nobody looks at keeps their renderer alive between two visits, and with it the scripts that it has
    compiled: a visit costs a quarter less.
    """
    made: dict[str, BrowserContext] = {}

    def get(locale: str) -> BrowserContext:
        if locale not in made:
            made[locale] = browser.new_context(locale=locale)
            made[locale].new_page().goto(f"{server}/_stcore/health")
        return made[locale]

    yield get
    for context in made.values():
        context.close()


# ---------------------------------------------------------------- a visit
class Visit:
    """One person's browser window on the app."""

    def __init__(self, context: BrowserContext, server: str) -> None:
        self.server = server
        self.context = context
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.add_init_script(HELPERS)
        self.page.on("request", lambda request: self._request(request.url))
        self.page.on("websocket", lambda socket: self._request(socket.url))
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("crash", lambda: self.problems.append("the page crashed"))
        if server.startswith("http"):
            stored = {"origin": server, "storageTypes": "cookies,local_storage,indexeddb,cache_storage,service_workers"}
            context.new_cdp_session(self.page).send("Storage.clearDataForOrigin", stored)

    def _request(self, url: str) -> None:
        self.requests.append(url)
        here = urlsplit(self.server).netloc
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).netloc != here:
            self.problems.append(f"request to {url[:200]}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type != "error":
            return
        url = message.location["url"]
        # Streamlit asks for these below the page's own path first, and then at the root.
        known = re.fullmatch(r"http://[\d.:]+/\w+/_stcore/(health|host-config)", url)
        if known and "404" in message.text:
            return
        self.problems.append(f"console: {message.text[:500]} ({url})")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    # -------------------------------------------------------------- opening and waiting
    def open(self, path: str) -> "Visit":
        self.page.goto(self.server + path, wait_until="commit")
        return self.settle()

    def settle(self) -> "Visit":
        """Until the script has run, and the picture (or the sentence in its place) is there."""
        self.until("() => pv.idle() && (pv.alerts().length || (pv.numbers().length && pv.drawn()))")
        return self

    def until(self, script: str, value: Any = None) -> Any:
        """Wait until a function of the page returns something; returns it."""
        return self.page.wait_for_function(script, arg=value, polling=50).json_value()

    def ask(self, script: str, value: Any = None) -> Any:
        return self.page.evaluate(script, value)

    def frames(self, count: int = 2) -> None:
        """Until the browser has painted so many frames."""
        self.ask("count => pv.frames(count)", count)

    def params(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.page.url).query, keep_blank_values=True)
        return {name: values[-1] for name, values in found.items()}

    def until_params(self, **expected: str | None) -> None:
        """Wait for these values in the URL; None: not there, the default."""
        self.until(
            "want => { const have = new URLSearchParams(location.search);"
            " return Object.entries(want).every(([name, value]) => have.get(name) === value) }",
            expected,
        )

    # -------------------------------------------------------------- what is shown
    def numbers(self) -> list[str]:
        return self.ask("() => pv.numbers()")

    def alerts(self) -> list[str]:
        return self.ask("() => pv.alerts()")

    def shown(self) -> dict[str, list]:
        """The numbers, the sentences in the picture's place, and the picture."""
        return self.ask("() => pv.shown()")

    def until_shown(self, expected: dict[str, list]) -> None:
        """Wait for the same numbers and the same picture."""
        try:
            self.until("want => pv.idle() && pv.same(pv.shown(), want)", expected)
        except Error:
            now = self.shown()
            assert (now["numbers"], now["alerts"]) == (expected["numbers"], expected["alerts"])
            raise AssertionError("another picture") from None

    def keep(self, what: str = "picture") -> None:
        """Remember what is shown; see ``same``."""
        self.ask(f"() => {{ pv.kept = pv.{what}() }}")

    def same(self, what: str = "picture") -> bool:
        """Is it still what ``keep`` saw?"""
        return self.ask(f"() => pv.same(pv.{what}(), pv.kept)")

    @contextmanager
    def changing(self, what: str = "shown") -> Iterator[None]:
        """What is done inside must change the numbers or the picture."""
        before = self.ask(f"() => pv.{what}()")
        yield
        self.until(f"before => pv.idle() && pv.canvas() && !pv.same(pv.{what}(), before)", before)

    @property
    def canvas(self) -> Locator:
        return self.page.locator("canvas[data-painted]").first

    def data(self, *names: str) -> Any:
        """The canvas says what it shows: one value, or a tuple."""
        dataset = self.until("() => pv.canvas() && { ...pv.canvas().dataset }")
        return dataset[names[0]] if len(names) == 1 else tuple(dataset[name] for name in names)

    def until_data(self, **expected: str) -> None:
        self.until(
            "want => { const have = pv.canvas()?.dataset;"
            " return have && Object.entries(want).every(([name, value]) => have[name] === value) }",
            {name: str(value) for name, value in expected.items()},
        )

    def box(self) -> dict[str, float]:
        """Where the canvas stands in the window, scrolled into sight."""
        self.canvas.scroll_into_view_if_needed()
        return self.canvas.bounding_box()

    def point(self, x: float, y: float) -> None:
        """Move the pointer, and let the picture follow."""
        self.page.mouse.move(x, y)
        self.frames()

    def drawn_texts(self) -> list[str]:
        """Every text in the picture, from its SVG."""
        with self.page.expect_download() as download:
            self.ask("() => pv.all('button.save').find((node) => node.textContent === 'SVG').click()")
        svg = Path(download.value.path()).read_text("utf-8")
        return re.findall(r"<text[^>]*>([^<]*)</text>", svg)

    def faults(self) -> list[tuple[str, list[str]]]:
        """What axe finds: (rule, the beginning of each element)."""
        found = Axe().run(self.page).response["violations"]
        return [(rule["id"], [node["html"][:150] for node in rule["nodes"]]) for rule in found]

    def assert_for_everybody(self, subtests: pytest.Subtests) -> None:
        """Accessible in light and dark, and no wider than a phone."""
        for dark in (False, True):
            self.page.emulate_media(color_scheme="dark" if dark else "light")
            self.frames(10)
            with subtests.test(dark=dark):
                assert self.faults() == []
        self.page.set_viewport_size({"width": 400, "height": 900})
        self.frames(10)
        assert self.ask("() => document.scrollingElement.scrollWidth - innerWidth") <= 0

    # -------------------------------------------------------------- widgets
    def widget(self, name: str) -> Locator:
        return self.page.locator(f".st-key-{name}").first

    def type(self, side: str, sentence: str) -> None:
        self.widget(side).locator("input").fill(sentence)

    def segment(self, name: str, index: int) -> None:
        self.widget(name).get_by_role("radio").nth(index).click()

    def select(self, name: str, option: str) -> None:
        self.widget(name).get_by_role("combobox").click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def number(self, name: str, value: str) -> None:
        box = self.widget(name).locator("input")
        box.fill(value)
        box.press("Enter")

    def expand(self) -> None:
        """Open the folded controls of the sidebar."""
        details = self.page.get_by_test_id("stExpander").locator("details")
        if details.get_attribute("open") is None:
            details.locator("summary").click()
        self.widget("w_seed").locator("input").wait_for(state="visible")

    def language(self, lang: str) -> None:
        self.segment("w_lang", ("zh", "en").index(lang))
        self.until(
            "zh => pv.idle() && /[\\u4e00-\\u9fff]/.test(document.querySelector('.pv-title')?.textContent) === zh",
            lang == "zh",
        )

    def follow(self, page: str) -> None:
        """A click on a page's link in the sidebar."""
        order = ("order", "heatmap", "similarity", "rotation", "rope", "check", "attention")
        title = self.ask("() => document.querySelector('.pv-title').textContent")
        self.widget("nav").get_by_role("link").nth(order.index(page)).click()
        self.until(
            "before => pv.idle() && (document.querySelector('.pv-title')?.textContent ?? before) !== before", title
        )
        self.settle()


@pytest.fixture
def visit(
    request: pytest.FixtureRequest, contexts: Callable[[str], BrowserContext], server: str
) -> Iterator[Callable[..., Visit]]:
    """visit(path, ...) -> a window of a stranger: size, colours and motion as given, English and light otherwise."""
    visits: list[Visit] = []

    def start(
        path: str,
        *,
        at: str = server,
        width: int = 1280,
        height: int = 800,
        locale: str = "en-US",
        dark: bool = False,
        still: bool = False,
    ) -> Visit:
        made = Visit(contexts(locale), at)
        visits.append(made)
        made.page.set_viewport_size({"width": width, "height": height})
        made.page.emulate_media(
            color_scheme="dark" if dark else "light", reduced_motion="reduce" if still else "no-preference"
        )
        return made.open(path)

    yield start
    for number, one in enumerate(visits):
        if request.node.stash.get(_FAILED, False):
            name = re.sub(r"\W+", "-", request.node.name)[:100]
            with suppress(Error):
                one.page.screenshot(path=SHOTS / f"{name}-{number}.png")
        one.page.close()
    problems = [problem for one in visits for problem in one.problems]
    assert problems == []


@pytest.fixture
def offline(browser: Browser) -> Iterator[Visit]:
    """A window without any network, for saved pages."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US", offline=True)
    one = Visit(context, "")
    yield one
    context.close()
    assert one.problems == []


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A line for the end of the test run: measured, not judged."""
    return lambda line: request.node.user_properties.append(("measured", line))


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if call.when == "call" and report.failed:
        item.stash[_FAILED] = True
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    # from the reports, which come from every worker process
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for name, line in getattr(report, "user_properties", ()):
            if name == "measured" and report.when == "call":
                terminalreporter.write_line(f"measured: {line}")
