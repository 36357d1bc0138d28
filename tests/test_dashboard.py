"""The dashboard, drawn from metrics of real trainings (`metrics.json`) at the sizes people have."""

import io
import json
import re
import signal
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from ludus import games
from ludus.config import overlay, resolve
from ludus.ui import dashboard as module
from ludus.ui.dashboard import Dashboard, clock
from ludus.ui.sections import number, sections
from ludus.ui.trend import sparkline

READINGS: dict[str, list[dict]] = json.loads((Path(__file__).parent / "metrics.json").read_text())
"""By game: the first reading, one with an evaluation, and the last."""
SIZES = [(80, 24), (100, 30), (120, 40)]
GAMES = list(READINGS)


def columns_of(game: str):
    return games.open(game).columns


def dashboard_of(game: str, size=(80, 24), terminal=True, **changes) -> Dashboard:
    console = Console(
        width=size[0],
        height=size[1],
        file=io.StringIO(),
        force_terminal=terminal,
        record=True,
        highlight=False,
    )
    budget = {"decisions": READINGS[game][-1]["decisions"]} if game in READINGS else {}
    config = overlay(resolve(game, "test"), {**budget, **changes}, "test")
    found = Dashboard(config, columns_of(game), console=console)
    if game in READINGS and ":" not in game:
        found.expect(["greedy", "random"])
    return found


def capture(dashboard: Dashboard) -> list[str]:
    """What the terminal shows."""
    dashboard.console.export_text()
    dashboard.console.print(dashboard)
    return dashboard.console.export_text().splitlines()


def drawn(game: str, size, readings=None) -> list[str]:
    dashboard = dashboard_of(game, size)
    for metrics in readings or READINGS[game]:
        dashboard.show(metrics | {"learner/learning_rate": 3.3e-4})
    return capture(dashboard)


def shown_rows(game: str) -> list[tuple[str, str | float]]:
    merged: dict = {}
    for metrics in READINGS[game]:
        merged |= metrics | {"learner/learning_rate": 3.3e-4}
    return [row for section in sections(merged, columns_of(game)) for row in section.rows]


def is_whole(name: str, value: str | float, text: str) -> bool:
    forms = {value} if isinstance(value, str) else {number(value, room) for room in range(5, 40)}
    return any(re.search(rf"(^|\s){re.escape(name)}\s+{re.escape(form)}(\s|$)", text) for form in forms)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("game", GAMES)
def test_nothing_is_cut(game, size):
    lines = drawn(game, size)
    assert len(lines) < size[1]
    assert {cell_len(line) for line in lines} == {size[0]}
    text = "\n".join(line.strip("│") for line in lines)
    assert "…" not in text and "..." not in text
    rows = shown_rows(game)
    whole = [name for name, value in rows if is_whole(name, value, text)]
    hidden = re.search(r"\+(\d+) more in metrics.jsonl", text)
    assert len(rows) - len(whole) == (int(hidden[1]) if hidden else 0), set(rows) - set(whole)
    if size != (80, 24):
        assert len(whole) > 0.95 * len(rows)


@pytest.mark.parametrize("game", GAMES)
def test_the_smallest_screen_shows_what_matters(game):
    text = "\n".join(drawn(game, (80, 24)))
    for name in (
        "decisions",
        "left",
        "best",
        "score",
        "policy loss",
        "value loss",
        "learning rate",
        "waiting",
        "cores busy",
    ):
        assert name in text, text
    for name, value in shown_rows(game)[: len(READINGS[game][-1]) // 4]:
        assert is_whole(name, value, text.replace("│", " ")), name


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("game", GAMES)
def test_everything_keeps_its_place(game, size):
    """Whatever the values are: a column that jumps can't be read."""
    readings = READINGS[game]
    likely = ("time/", "workers/", "cpu/", "game/")
    other = {
        name: value if isinstance(value, str | int) else value * (0.5 if name.startswith(likely) else -1234.5)
        for name, value in readings[-1].items()
    }
    other |= {"seconds": 200_000.0, "decisions": 3, "speed/now": 1.0, "memory/bytes": 2**37}
    other |= {"policy/lag": 1e-9, "time/learning": 1e9, "workers/waiting": 0.0, "game/score": -1e4}
    before, after = drawn(game, size), drawn(game, size, [*readings, other])
    names = [name for name, _ in shown_rows(game)]
    places = [
        [(name, y, x) for y, line in enumerate(lines) for name in names if (x := line.find(f" {name} ")) >= 0]
        for lines in (before, after)
    ]
    assert places[0] == places[1] and places[0]
    assert {cell_len(line) for line in after} == {size[0]} and len(after) == len(before)


def test_long_names_are_wrapped_not_cut():
    metrics = READINGS["gym:CartPole-v1"][-1] | {"game/distance to the nearest obstacle": 12.5}
    text = "\n".join(drawn("gym:CartPole-v1", (80, 24), [metrics]))
    for word in ("distance", "nearest", "obstacle", "12.5"):
        assert word in text


def test_what_the_field_calls_them():
    text = "\n".join(drawn("ofc", (100, 30)))
    for name in ("policy loss", "value loss", "entropy", "approx. KL", "clip fraction", "explained variance"):
        assert name in text
    text = "\n".join(drawn("blokus", (100, 30)))
    for name in ("replay size", "policy lag", "grad norm", "learning rate"):
        assert name in text


def test_numbers_fit_their_room():
    for value in (
        0.0,
        1.0,
        -0.123456,
        999.7,
        12_345.6,
        -1_234_567.0,
        9.87e11,
        1e15,
        3.3e-7,
        -1e-12,
        7,
        10**12,
    ):
        for room in range(6, 12):
            text = number(value, room)
            assert len(text) <= room, (value, text)
            known = float(text.replace(",", "").translate({ord("k"): "e3", ord("M"): "e6", ord("G"): "e9"}))
            assert known == pytest.approx(value, rel=0.5)


# ---- is it getting better?


def test_evaluations_are_a_trend_with_the_best():
    dashboard = dashboard_of("ofc", (120, 40))
    base = READINGS["ofc"][0]
    assert not any("against" in line for line in capture(dashboard))
    for step, score in enumerate((-5.0, 3.25, 1.5)):
        found = {"eval/greedy/score": score, "eval/greedy/score_ci": 0.5, "eval/greedy/win": 0.61}
        dashboard.show(base | {"decisions": 1000 * (step + 1)} | found)
    text = "\n".join(capture(dashboard))
    assert re.search(r"against greedy +\+1.50 ± 0.50 +61 % won +▁█▇", text)
    assert re.search(r"best +\+3.25 against greedy at 2,000 decisions", text)
    assert "against random  not evaluated yet" in text


def test_ratings_of_pure_self_play_are_not_shown_as_progress():
    metrics = READINGS["gym:CartPole-v1"][-1] | {"measure": 25.0, "rating/self": 25.0, "seated/self": 1.0}
    assert "rating" not in "\n".join(drawn("tictactoe", (120, 40), [metrics]))


def test_a_resumed_run_shows_its_whole_trend():
    *history, last = READINGS["ofc"]
    dashboard = dashboard_of("ofc")
    dashboard._history = [
        *history,
        last | {"decisions": 10**9, "measure": 99.0},
    ]  # of decisions now made anew
    dashboard.show(last)
    assert len(dashboard.trends.measure.values) == len(READINGS["ofc"])
    assert dashboard.trends.measure.best[0] < 99


def test_sparkline():
    assert sparkline([], 5) == "" and sparkline([1.0], 5) == "▄"
    assert sparkline([0, 1, 2], 5) == "▁▅█" or sparkline([0, 1, 2], 5) == "▁▄█"
    assert len(sparkline([float(i) for i in range(1000)], 20)) == 20


def test_clock_beyond_a_day():
    assert clock(3 * 3600 + 4 * 60 + 5) == "03:04:05"
    assert clock(2 * 86400 + 3 * 3600 + 4 * 60 + 5.9) == "2 d 03:04:05"
    dashboard = dashboard_of("ofc", decisions=10**12)
    dashboard.show(READINGS["ofc"][-1])
    assert re.search(r"\d+ d \d\d:\d\d:\d\d left", "\n".join(capture(dashboard)))


# ---- what happens now


def test_a_panel_says_what_it_waits_for():
    dashboard = dashboard_of("ofc")
    assert any("ludus train ofc" in line for line in capture(dashboard))
    dashboard.status("starting 2 workers, first block 31 %")
    assert any("starting 2 workers, first block 31 %" in line for line in capture(dashboard))
    dashboard.show(READINGS["ofc"][0])
    assert not any("first block" in line for line in capture(dashboard))


def test_troubles_are_shown_at_once_and_stay():
    dashboard = dashboard_of("ofc")
    dashboard.tell("worker replaced", {"reason": "worker 1 was killed by SIGKILL " * 4, "count": 1})
    assert any("worker replaced" in line for line in capture(dashboard))
    for metrics in READINGS["ofc"]:
        dashboard.show(metrics)
    for place in range(5):
        dashboard.tell("mirror", {"reason": f"trouble {place}"})
    lines = capture(dashboard)
    text = "\n".join(lines)
    assert "trouble 4" in text and "+3 earlier troubles in events.jsonl" in text and len(lines) < 24


def test_compiling_is_seen_while_it_lasts():
    dashboard = dashboard_of("ofc")
    with dashboard:
        import sys

        print("compiling ofc (once for this version) ...", end=" ", file=sys.stderr, flush=True)
        assert "compiling ofc" in dashboard._status
        print("7.9 s", file=sys.stderr, flush=True)
    assert "compiling ofc (once for this version) ... 7.9 s" in dashboard.console.export_text()


# ---- not a terminal


def test_plain_lines_are_few_and_the_last_is_among_them(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    dashboard = dashboard_of("ofc", (80, 24), terminal=False)
    last = READINGS["ofc"][-1]
    with dashboard:
        for step in range(300):
            dashboard.show(last | {"decisions": step, "seconds": float(step)})
            now += 1.0
    lines = [line for line in dashboard.console.export_text().splitlines() if "decisions" in line]
    assert 20 < len(lines) <= 32 and lines[-1].startswith("299 decisions")
    assert "against greedy" in lines[-1] and "foul %" in lines[-1]


def test_plain_status_is_told_at_most_every_few_seconds(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    dashboard = dashboard_of("ofc", terminal=False)
    for step in range(100):
        now += 0.1
        dashboard.status(f"first block {step} %")
    assert 2 <= len(dashboard.console.export_text().splitlines()) <= 4


def test_the_end_says_what_came_of_it_and_what_to_do_next(ludus):
    code, out, err = ludus("train", "tictactoe", "--preset", "test", "--decisions", "2000", "--workers", "0")
    assert code == 0, err
    assert re.search(r"done after [\d,]+ decisions", out)
    assert re.search(r"against greedy +[+-][\d.]+ ± [\d.]+ +\d+ % won +best", out)
    for command in ("eval runs/", "play tictactoe --run runs/", "resume runs/tictactoe-test --decisions"):
        assert f"  ludus {command}" in out


def test_a_stopped_training_says_how_to_go_on(training):
    process, _ = training
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped after" in out and re.search(r"\n  ludus resume \S+run\n", out)
    assert "press Ctrl-C again to end at once" in out
