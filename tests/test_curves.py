"""Curves of metrics: exact, with every peak, and they grow with the file."""

import json
import os

import numpy as np
import pytest

from ludus.store import curves as curves_module
from ludus.store.buckets import COUNT, HIGH, LOW, SUM
from ludus.store.curves import Curves


def write(file, lines):
    with file.open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


def line(number, **more):
    return {"seconds": number / 2, "decisions": 10 * number, "score": float(number % 7), **more}


def test_new_lines_are_added_and_a_half_line_waits(tmp_path):
    file = tmp_path / "metrics.jsonl"
    curves = Curves(file)
    assert curves.refresh() == 0  # there is no file yet
    write(file, map(line, range(5)))
    with file.open("a") as out:
        out.write('{"decisions": 50, "sec')
    assert curves.refresh() == 5
    with file.open("a") as out:
        out.write('onds": 25, "score": 99}\n')
    assert curves.refresh() == 1 and curves.refresh() == 0
    decisions, scores = curves.view(100).series["score"]
    assert decisions.tolist() == [0, 10, 20, 30, 40, 50] and scores.tolist() == [0, 1, 2, 3, 4, 99]
    assert curves.last == {"seconds": 25, "decisions": 50, "score": 99}


def test_every_peak_is_kept_and_found_again_up_close(tmp_path, monkeypatch):
    monkeypatch.setattr(curves_module, "CHUNK_BYTES", 4096)
    file = tmp_path / "metrics.jsonl"
    lines = [line(number) for number in range(3000)]
    lines[1234]["score"], lines[2501]["score"] = 1000.0, -1000.0
    write(file, lines)
    curves = Curves(file, most_buckets=64)
    assert curves.refresh() == 3000
    assert curves.buckets.size == 64 and curves.buckets.count == 47
    view = curves.view(20)
    decisions, scores = view.series["score"]
    assert len(scores) <= 2 * 20
    assert decisions[scores.argmax()] == 12340 and scores.max() == 1000
    assert decisions[scores.argmin()] == 25010 and scores.min() == -1000
    assert view.means["seconds"] == pytest.approx(np.interp(view.decisions, [0, 30000], [0, 1500]), abs=70)
    decisions, scores = curves.view(200, 12300, 12400).series["score"]
    near = (decisions >= 12300) & (decisions <= 12400)
    wanted = [lines[number]["score"] for number in range(1230, 1241)]
    assert decisions[near].tolist() == list(range(12300, 12401, 10)) and scores[near].tolist() == wanted


def test_a_long_file_is_read_in_parts_as_in_one_go(tmp_path, monkeypatch):
    file = tmp_path / "metrics.jsonl"
    lines = [line(number, **{"late": number} if number > 2000 else {}) for number in range(3000)]
    write(file, lines)
    with file.open("a") as out:
        out.write('rubbish\n{"decisions": 99999, "sec')
    whole = Curves(file, most_buckets=64)
    whole.refresh()
    monkeypatch.setattr(curves_module, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(curves_module, "PART_BYTES", 16384)
    monkeypatch.setattr(curves_module, "LOOK_BYTES", 16)
    parts = Curves(file, most_buckets=64)
    assert parts.refresh(end=10 * file.stat().st_size) == 3000  # as if it was cut while it was read
    assert parts.buckets.count <= 64
    assert (parts.offset, parts.damaged, parts.last) == (whole.offset, whole.damaged, whole.last)
    data = file.read_bytes()
    for begin, decisions, seconds in zip(parts.buckets.begins, *parts.buckets.clock, strict=True):
        if decisions:
            first = json.loads(data[begin:].partition(b"\n")[0])
            assert (first["decisions"], first["seconds"]) == (decisions, seconds)
    for column in range(len(whole.keys.names)):
        one, other = (curves.buckets.kept[: curves.buckets.count, :, column] for curves in (whole, parts))
        assert one[:, LOW].min() == other[:, LOW].min() and one[:, HIGH].max() == other[:, HIGH].max()
        assert one[:, [SUM, COUNT]].sum(axis=0).tolist() == other[:, [SUM, COUNT]].sum(axis=0).tolist()
    write(file, [])
    assert parts.refresh() == 0 and parts.generation == 1


def test_a_metric_that_comes_later_is_drawn_from_there_on(tmp_path):
    file = tmp_path / "metrics.jsonl"
    write(file, map(line, range(10)))
    curves = Curves(file)
    curves.refresh()
    write(file, [line(10, rating=25.0)])
    curves.refresh()
    decisions, ratings = curves.view(100).series["rating"]
    assert decisions.tolist() == [100] and ratings.tolist() == [25]


def test_a_file_that_was_cut_is_read_anew(tmp_path):
    """As when a run goes on from an earlier checkpoint, and is soon as long as it was."""
    file = tmp_path / "metrics.jsonl"
    write(file, map(line, range(10)))
    curves = Curves(file)
    curves.refresh()
    begun = curves.generation
    os.truncate(file, len(json.dumps(line(0))) + 1)
    write(file, [line(number, score=-1.0) for number in range(1, 30)])
    curves.refresh()
    decisions, scores = curves.view(100).series["score"]
    assert curves.generation == begun + 1 and curves.lines == 30
    assert decisions.tolist() == list(range(0, 300, 10)) and set(scores[1:]) == {-1.0}


def test_keys_without_end_take_no_memory(tmp_path):
    file = tmp_path / "metrics.jsonl"
    write(file, [line(0, **{f"strange{number}": 1 for number in range(5000)}), line(1, **{"x" * 500: 1})])
    curves = Curves(file)
    assert curves.refresh() == 2
    assert len(curves.keys.names) == 512 and curves.view(10).series["score"][1].tolist() == [0, 1]
