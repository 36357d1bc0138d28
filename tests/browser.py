"""Tests in a real browser, `chromium` on the PATH or $LUDUS_CHROMIUM, and `ludus web` in its own process."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

MISSING = "no chromium: set $LUDUS_CHROMIUM, or install it (apt install chromium)"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium() -> str | None:
    return os.environ.get("LUDUS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def run_async(work: Coroutine) -> None:
    """In a thread of its own, because an open Playwright has a running event loop in ours."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def pytest_terminal_summary(terminalreporter):
    """What was skipped for want of a browser is said in a line that nobody overlooks."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if MISSING in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(
            f"SKIPPED {len(skipped)} tests of the web page: {MISSING}", red=True, bold=True
        )


@pytest.fixture(scope="module")
def chromium():
    """One browser for a module; each test opens a context of its own."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if not (program := find_chromium()):
        pytest.skip(MISSING)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Visit:
    """Pages of one visitor, and all that went wrong in them."""

    def __init__(self, browser, expected: str = "", listening: bool = False, **options):
        """expected: problems with this text are none. listening: keep what comes from the server"""
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self.context.set_default_timeout(60_000)
        self.expected, self.listening = expected, listening
        self.problems: list[str] = []
        self.received: list[str] = []

    def open(self, url: str):
        page = self.context.new_page()
        page.on("console", lambda message: message.type == "error" and self._note(message.text))
        page.on("pageerror", lambda error: self._note(str(error)))
        if self.listening:
            page.on("response", self._keep)
            page.on("websocket", lambda channel: channel.on("framereceived", self._hear))
        page.goto(url)
        page.wait_for_selector("main h1")
        return page

    def _note(self, problem: str) -> None:
        if not (self.expected and self.expected in problem):
            self.problems.append(problem)

    def _keep(self, response) -> None:
        self.received.append(f"{response.url} {response.all_headers()}")
        if 200 <= response.status < 300 and "/_nicegui/" not in response.url:
            self.received.append(response.body().decode(errors="replace"))

    def _hear(self, frame) -> None:
        self.received.append(str(frame))


@pytest.fixture
def visit(chromium):
    """Makes visits, in whose pages nothing may have gone wrong by the end of the test."""
    made: list[Visit] = []

    def visit(**options) -> Visit:
        made.append(Visit(chromium, **options))
        return made[-1]

    yield visit
    for one in made:
        one.context.close()
    assert [one.problems for one in made] == [[]] * len(made)


def accessibility_problems(page) -> list[str]:
    return page.evaluate((Path(__file__).parent / "accessible.js").read_text())


class WebServer:
    """`ludus web` as people start it."""

    def __init__(self, runs: Path, *flags: str, port: int = 0, **environ: str):
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", **environ}
        env.pop("PYTEST_CURRENT_TEST", None)  # NiceGUI would take itself to be under test
        self.command = [sys.executable, "-m", "ludus.cli", "web", "--runs", str(runs), "--port"]
        self.flags, self.env, self.port = flags, env, port
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self.command, str(self.port), *self.flags], env=self.env, text=True, stdout=subprocess.PIPE
        )
        self.said = self.process.stdout.readline()
        assert " at http" in self.said, self.said
        self.address = self.said.partition(" at ")[2].split()[0]
        self.port = int(self.address.rpartition(":")[2].partition("/")[0])
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """A server over a folder of runs, both for a whole module: (server, folder)."""
    pytest.importorskip("nicegui")
    runs = tmp_path_factory.mktemp("web") / "runs"
    runs.mkdir()
    server = WebServer(runs)
    yield server, runs
    server.stop()
