"""What the web page costs a training, and how fast it is. Each figure is printed as `figure NAME VALUE UNIT`.

python bench/web.py [start open lag cost]
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import tomli_w

from figures import figure
from ludus.commands.web import NICE
from ludus.config import plain, resolve
from ludus.store.lines import METRICS, last_line

LINES, PEAK_AT, PEAK = 1_000_000, 654_321, 4.2e9
METRICS_OF_A_LINE = 50
VISITORS, PHASE_S, ROUNDS, WARM_UP_S = 20, 15.0, 4, 20.0
LAGS = 10
VIEW = "Object.values(mounted_app.$refs).find((one) => one?.drawn)"
CHART = "Score/Measure"
HERE = "here"


# ---- runs and servers


def write_run(folder: Path, lines: int) -> None:
    """A run of many lines such as a training writes, with one peak."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(tomli_w.dumps(plain(resolve("tictactoe", "test"))))
    (folder / "events.jsonl").write_text(json.dumps({"time": time.time(), "event": "end"}) + "\n")
    rest = {f"losses/part{number}": number / 7 for number in range(METRICS_OF_A_LINE - 4)}
    tail = json.dumps({**rest, "layout": "workers and learner take turns on 2 cores"})[1:]
    with (folder / METRICS).open("w") as out:
        for number in range(lines):
            value = PEAK if number == PEAK_AT else 12345.678901234567 + number % 1000
            head = f'{{"seconds": {2.0009 * number}, "decisions": {1024 * number}, "measure": {value}, '
            out.write(f"{head}{tail}\n")


@contextmanager
def serving(runs: Path) -> Iterator[tuple[str, psutil.Process, float]]:
    """`ludus web`: its address, its process, and how long it took to answer."""
    begun = time.perf_counter()
    words = [sys.executable, "-m", "ludus.cli", "web", "--runs", str(runs), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "ludus web did not say where it is"
        urllib.request.urlopen(found[0]).read()
        yield found[0], psutil.Process(process.pid), time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browsing() -> Iterator[Any]:
    """A page of a real browser."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("LUDUS_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise SystemExit("no chromium: set $LUDUS_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        yield page
        browser.close()


# ---- figures


def start(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for _ in range(2):  # the first one may compile Python's files
        with serving(folder) as (_, _, seconds):
            pass
    figure("web.start", seconds, "s")


def open_long(folder: Path) -> None:
    """From the visit to the drawn curve with its peak; the first in the life of the server."""
    write_run(folder / "long", LINES)
    with (folder / "long" / METRICS).open("rb") as data:  # so that the disk is not what is measured
        while data.read(1 << 24):
            pass
    with serving(folder) as (url, process, _), browsing() as page:
        page.goto(url)  # what all pages have in common, and the browser's own start
        page.wait_for_selector("[data-run=long]")
        time.sleep(3)
        most = Watcher(process)
        begun = time.perf_counter()
        page.goto(f"{url}/run/long")
        page.locator(f'[data-chart="{CHART}"]').wait_for()
        drawn = f"() => {VIEW}?.known.long?.series.measure[1].some((y) => Math.abs(y - {PEAK}) < 1e3)"
        page.wait_for_function(drawn)
        page.wait_for_selector(f'[data-chart="{CHART}"] canvas')
        figure("web.open", time.perf_counter() - begun, "s")
        figure("web.open.memory", most.stop() / 1e6, "MB")
        figure("web.open.lines", LINES, f"lines, {(folder / 'long' / METRICS).stat().st_size / 1e9:.2f} GB")


class Watcher:
    """The most memory that a process has at any time."""

    def __init__(self, process: psutil.Process) -> None:
        self._process, self._most, self._over = process, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self._most = max(self._most, self._process.memory_info().rss)

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most


def lag(folder: Path) -> None:
    """From a line in the file to the point in the browser's curve: the longest of some."""
    write_run(folder / "growing", 100)
    waited = []
    with serving(folder) as (url, _, _), browsing() as page:
        page.goto(f"{url}/run/growing")
        page.wait_for_selector(f'[data-chart="{CHART}"] canvas')
        page.wait_for_function("() => window.socket?.connected")
        for number in range(LAGS):
            time.sleep(1.3)  # at another time of the server's second each
            value = 1e6 + number
            line = {"seconds": 300 + number, "decisions": 200_000 + number, "measure": value}
            with (folder / "growing" / METRICS).open("a") as out:
                out.write(json.dumps(line) + "\n")
            begun = time.perf_counter()
            point = f"{VIEW}.drawn['{CHART}'].getOption().series[0].data.at(-1)[1] === {value}"
            page.wait_for_function(f"() => {point}")
            waited.append(time.perf_counter() - begun)
    figure("web.lag", max(waited), f"s (of {LAGS}; mean {sum(waited) / len(waited):.2f})")


def cost(folder: Path) -> None:
    """Phases with and without visitors take turns in one training: what else the machine does hits both."""
    run = folder / "trained"
    words = ["train", "ofc", "--web", "--decisions", "1000000000000", "--eval-every", "0"]
    training = subprocess.Popen(
        [sys.executable, "-m", "ludus.cli", *words, "--run", str(run)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert training.stdout is not None
        found = re.search(r"http://\S+", training.stdout.readline())
        assert found, "the training did not say where its page is"
        threading.Thread(target=training.stdout.read, daemon=True).start()
        while not (run / METRICS).exists() or last_line(run / METRICS) is None:
            time.sleep(0.5)
        time.sleep(WARM_UP_S)
        page = next(one for one in psutil.Process(training.pid).children() if one.nice() == NICE)
        quiet, watched, busy = [], [], []
        for _ in range(ROUNDS):
            quiet.append(_speed(run))
            with visitors(f"{found[0]}/run/trained"):
                before = sum(page.cpu_times()[:2])
                watched.append(_speed(run))
                busy.append((sum(page.cpu_times()[:2]) - before) / PHASE_S)
        lost = 100 * (1 - sum(watched) / sum(quiet))
        spread = 100 * (max(quiet) - min(quiet)) / (sum(quiet) / ROUNDS)
        figure("web.cost.cpu", 100 * sum(busy) / ROUNDS, "% of a core")
        figure("web.cost", lost, f"% (speed without visitors varied by {spread:.1f} %)")
    finally:
        training.terminate()
        training.wait()


def _speed(run: Path) -> float:
    """Decisions a second over the next while."""
    before = last_line(run / METRICS)
    time.sleep(PHASE_S)
    after = last_line(run / METRICS)
    assert before and after
    return (after["decisions"] - before["decisions"]) / (after["seconds"] - before["seconds"])


@contextmanager
def visitors(url: str) -> Iterator[None]:
    """Pages that are open, in a process of their own that takes no time from the training."""
    words = [sys.executable, __file__, "--visit", url]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline().strip() == HERE
        yield
    finally:
        process.kill()
        process.wait()


async def visit(url: str) -> None:
    """What browsers do whose pages are open: they listen and answer, and draw at their own cost."""
    import aiohttp

    os.nice(19)
    told: set[int] = set()
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as tasks:
        for number in range(VISITORS):
            tasks.create_task(_watch(http, url, number, told))
        while len(told) < VISITORS:  # until everybody has seen the curves grow
            await asyncio.sleep(0.1)
        print(HERE, flush=True)


async def _watch(http: Any, url: str, number: int, told: set[int]) -> None:
    """One page. told: gets the number when the curves grow"""
    host, _, name = url.partition("/run/")
    async with http.get(url) as answer:
        found = re.search(r"'client_id': '([\w-]+)'", await answer.text())
    assert found, "the page names no client"
    async with http.get(f"{host}/data/{name}/curves") as answer:
        await answer.read()
    query = {
        "client_id": found[1], "implicit_handshake": "true", "tab_id": str(uuid.uuid4()),
        "old_tab_id": "null", "document_id": str(uuid.uuid4()), "next_message_id": "0", "EIO": "4",
        "transport": "websocket",
    }  # fmt: skip
    place = f"{host.replace('http', 'ws', 1)}/_nicegui_ws/socket.io/"
    async with http.ws_connect(place, params=query, origin=host) as channel:
        async for message in channel:
            if message.data.startswith("0"):
                await channel.send_str("40")
            elif message.data == "2":
                await channel.send_str("3")
            elif "curves" in message.data:
                told.add(number)


def main() -> None:
    parts = {"start": start, "open": open_long, "lag": lag, "cost": cost}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(parts))
    parser.add_argument("--visit", metavar="URL", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.visit:
        return asyncio.run(visit(args.visit))
    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): figures may be worse", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or parts:
            parts[name](Path(folder) / name)


if __name__ == "__main__":
    main()
