"""Curves of metrics: exact, with every peak, and they grow with the file."""

import json
import os

import numpy as np
import pytest

from ludus.store import curves as curves_module
from ludus.store.columns import Keys, padded, read
from ludus.store.curves import Curves

STRANGE = [
    '{"decisions": 1, "seconds": 0.5, "a": -1.25e-7, "b": 12345678901234567890, "c": 0}',
    '{"seconds":1e0,"decisions":2,"a":NaN,"b":-Infinity,"c":true,"text":"a \\" {, b"}',
    ' { "decisions" : 3 , "seconds" : 2.0 , "list" : [1, {"x": "]"}] , "c" : 1E+3 }\r',
    '{"decisions": 4, "seconds": 3, "a": 0.00000012345678912345, "long": 123456789.123456789123}',
    '{"decisions": 5, "seconds": 4, "tiny": 5e-324, "huge": 1.7e308, "more": 1e999, "é": 1}',
]
DAMAGED = ['{"decisions": 6', "", "[]", '{"decisions": "x", "seconds": 1}', '{"decisions": 7}', "rubbish"]


def write(file, lines):
    with file.open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


def line(number, **more):
    return {"seconds": number / 2, "decisions": 10 * number, "score": float(number % 7), **more}


def test_lines_are_read_as_json_reads_them():
    keys = Keys()
    found = read(padded("".join(f"{text}\n" for text in [*STRANGE, *DAMAGED]).encode()), keys)
    assert found.damaged == len(DAMAGED) - 1  # an empty line is none
    assert len(found.values) == len(STRANGE)
    for text, row in zip(STRANGE, found.values, strict=True):
        known = {name: value for name, value in zip(keys.names, row, strict=True) if not np.isnan(value)}
        values = json.loads(text)
        wanted = {
            name: value
            for name, value in values.items()
            if type(value) in (int, float) and np.isfinite(value)
        }
        assert known == pytest.approx(wanted, rel=1e-12, abs=1e-320)


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
    monkeypatch.setattr(curves_module, "CHUNK_BYTES", 4096)  # several chunks, in several threads
    monkeypatch.setattr(curves_module, "PART_BYTES", 16384)
    file = tmp_path / "metrics.jsonl"
    lines = [line(number) for number in range(3000)]
    lines[1234]["score"], lines[2501]["score"] = 1000.0, -1000.0
    write(file, lines)
    curves = Curves(file, most_buckets=64)
    assert curves.refresh() == 3000
    assert curves.buckets.size == 64 and 47 <= curves.buckets.count <= 64
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
