"""What the web page knows of runs, without a browser: the list, the facts, and which charts there are."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomli_w

from ludus.config import plain, resolve
from ludus.store import summary
from ludus.store.reader import RunReader
from ludus.ui.web.charts import NO_CHART, charts
from ludus.ui.web.listing import Listing
from ludus.ui.web.watched import WatchedRun

METRICS = json.loads((Path(__file__).parent / "metrics.json").read_text())


def make_run(folder, lines=3, events=("start", "end")):
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(tomli_w.dumps(plain(resolve("tictactoe", "test"))))
    (folder / "events.jsonl").write_text("".join(json.dumps({"event": event}) + "\n" for event in events))
    add_lines(folder, 0, lines)
    return folder


def add_lines(folder, first, last):
    with (folder / "metrics.jsonl").open("a") as out:
        for number in range(first, last):
            line = {"decisions": 10 * number, "seconds": number, "measure": number / 3, "rating/self": 25.0}
            out.write(json.dumps(line) + "\n")


def test_a_run_is_known_by_its_name_in_the_folder_only(tmp_path):
    make_run(tmp_path / "runs" / "one")
    make_run(tmp_path / "outside")
    make_run(tmp_path / "runs" / ".restoring")
    listing = Listing(tmp_path / "runs")
    assert listing.names() == ["one"] and listing.folder("one") == tmp_path / "runs" / "one"
    for name in ("", ".", "..", "../outside", str(tmp_path / "outside"), "one/", "one/../one", ".restoring"):
        assert listing.folder(name) is None
    assert Listing(tmp_path / "none").read() == []


def test_only_runs_that_changed_are_read_again(tmp_path, monkeypatch):
    for name in ("first", "second"):
        make_run(tmp_path / name)
    listing, read = Listing(tmp_path), []
    monkeypatch.setattr(
        "ludus.ui.web.listing.summarize", lambda folder: read.append(folder.name) or summary.summarize(folder)
    )
    assert {one.name: one.state for one in listing.read()} == {"first": "done", "second": "done"}
    add_lines(tmp_path / "second", 3, 5)
    assert {one.name: one.decisions for one in listing.read()} == {"first": 20, "second": 40}
    assert sorted(read[:2]) == ["first", "second"] and read[2:] == ["second"]
    shutil.rmtree(tmp_path / "first")
    assert [one.name for one in listing.read()] == ["second"]


def test_the_mirror_of_a_run_is_running_while_its_machine_lives(tmp_path, monkeypatch):
    folder = make_run(tmp_path / "mirror", events=("start",))
    assert RunReader(folder).state == "broken off"
    (folder / "lease.json").write_text("{}")
    os.utime(folder / "lease.json", (1000, 1000))
    for age_s, state, heard_s in ((0, "running", 0), (107, "running", 100), (180, "broken off", None)):
        monkeypatch.setattr("ludus.store.lease.time", SimpleNamespace(time=lambda now=1000 + age_s: now))
        (found,) = Listing(tmp_path).read()
        assert (found.state, found.heard_s) == (state, heard_s)
        facts = WatchedRun(folder).facts()
        assert (facts["state"], facts["heard_s"]) == (state, heard_s)


def test_a_damaged_run_is_listed_with_its_problem(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.toml").write_text("not TOML")
    (found,) = Listing(tmp_path).read()
    assert found.state == "damaged" and "is not TOML" in found.problem


def test_a_sparkline_is_spread_over_the_whole_file(tmp_path):
    folder = make_run(tmp_path / "long", lines=5000)
    values = summary.spark(folder / "metrics.jsonl")
    assert len(values) == summary.SAMPLES and values[0] == 0 and values == tuple(sorted(values))
    assert values[20] == pytest.approx(2500 / 3, rel=0.1)
    assert summary.spark(make_run(tmp_path / "short") / "metrics.jsonl") == (0, 0.3333, 0.6667)
    assert summary.spark(tmp_path / "none") == ()


def test_a_page_that_was_opened_before_the_first_metrics_gets_them(tmp_path):
    folder = make_run(tmp_path / "one", lines=0)
    run = WatchedRun(folder)
    whole = run.whole()
    assert whole["charts"] == [] and run.news() is None
    add_lines(folder, 0, 2)
    news = run.news()
    assert news["from"] == whole["offset"] and news["series"]["measure"][0].tolist() == [0, 10]
    assert run.whole()["charts"]


def test_curves_are_told_in_pieces_that_fit_together(tmp_path):
    run = WatchedRun(make_run(tmp_path / "one"))
    assert run.news() is None  # nobody has the curves yet
    whole = run.whole()
    add_lines(run.folder, 3, 5)
    news = run.news()
    assert news["from"] == whole["offset"] and news["series"]["measure"][0].tolist() == [30, 40]
    assert run.news() is None
    assert run.whole()["offset"] == news["offset"]
    (run.folder / "metrics.jsonl").unlink()
    add_lines(run.folder, 7, 9)
    assert run.news()["from"] == -1 and run.whole()["series"]["measure"][0].tolist() == [70, 80]


def test_facts_before_and_after_the_curves_are_read(tmp_path):
    run = WatchedRun(make_run(tmp_path / "one"))
    before = run.facts()
    run.whole()
    assert run.facts() == before
    assert (before["state"], before["decisions"], before["share"]) == ("done", 20, 1.0)
    assert before["opponents"] == [{"name": "self", "rating": 25.0}]


@pytest.mark.parametrize("game", METRICS)
def test_every_metric_is_in_one_chart(game):
    names = {name for line in METRICS[game] for name, value in line.items() if not isinstance(value, str)}
    drawn = [name for chart in charts(sorted(names)) for name in chart["series"]]
    assert len(drawn) == len(set(drawn))
    beside = {name for name in names if name.startswith("eval/") and name.endswith(("_ci", "/games"))}
    parts = {name for name in names if name.startswith("time/")}  # of --profile
    assert names - set(drawn) - parts == beside | (names & set(NO_CHART))
