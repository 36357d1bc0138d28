"""The log of a run: whole lines of several processes, and never more than there is room for."""

import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from ludus.store import log
from ludus.store.log import OLD_LOG, write_line


def write_many(file: str, who: str, most: int) -> None:
    log.MOST_BYTES = most
    for number in range(2_000):
        write_line(Path(file), who, f"line {number} of {who}.")


def test_a_full_log_makes_room_and_no_line_is_torn(tmp_path):
    """Four processes at once, which find it full at the same time."""
    file, most = tmp_path / "log.txt", 60_000
    context = get_context("fork")
    writers = [context.Process(target=write_many, args=(str(file), f"w{i}", most)) for i in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    texts = [(tmp_path / name).read_text() for name in ("log.txt", OLD_LOG)]
    assert sorted(os.listdir(tmp_path)) == [OLD_LOG, "log.txt"]
    assert all(len(text) < most + 4_000 for text in texts)
    lines = "".join(texts).splitlines()
    assert len(lines) > 500 and all(" w" in line and line.endswith(".") for line in lines)
    newest = [line for line in texts[0].splitlines() + texts[1].splitlines() if "line 1999 " in line]
    assert newest  # the last to write is there


PRINTING = """
import os, time, psutil
from pathlib import Path
from ludus.store.log import take_output

take_output(Path("log.txt"), "w0")
for _ in range(100):
    os.write(1, {text})
time.sleep(1.5)
print("the end", psutil.Process().memory_info().rss, flush=True)
time.sleep(0.5)
"""


def run_printing(tmp_path: Path, text: str) -> list[str]:
    """What a process that prints `text` 100 times leaves in the log, without the times."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PRINTING.format(text=text)]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=60)
    return [line.partition(" w0: ")[2] for line in (tmp_path / "log.txt").read_text().splitlines()]


def test_a_process_that_prints_too_much_is_cut_short_and_its_lines_are_counted(tmp_path):
    lines = run_printing(tmp_path, "b'tick\\n' * 1000")
    told = [int(line.split()[0].replace(",", "")) for line in lines if line.endswith("lines left out")]
    assert lines.count("tick") + sum(told) == 100_000 and told
    assert len(lines) < 5_000 and lines[-1].startswith("the end")


def test_a_line_without_end_takes_no_memory(tmp_path):
    lines = run_printing(tmp_path, "b'x' * 2**20")
    assert max(map(len, lines)) <= log.LINE_BYTES and "lines left out" in " ".join(lines)
    memory_bytes = int(lines[-1].split()[-1])
    assert memory_bytes < 80_000_000  # of 100 MB that were printed


@pytest.mark.skipif(sys.platform == "win32", reason="the path is a device")
def test_a_log_that_cannot_be_written_stops_nobody(tmp_path):
    write_line(tmp_path / "none" / "log.txt", "learner", "lost")
    write_line(Path("/dev/full"), "learner", "lost")
