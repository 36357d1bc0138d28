"""What a training counts as its own."""

import os
import subprocess
import sys

import psutil

from ludus import games
from ludus.training.meter import Meter
from ludus.training.pools import Health

NESTED = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"


def test_what_a_game_starts_belongs_to_its_training():
    """Else the training would take its own simulators for other programs, and make way for them."""
    meter = Meter(games.open("tictactoe"), 0)
    alone = meter.read({}, Health(0, 0, (), ""))["memory/bytes"]
    with subprocess.Popen(
        [sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout.read(1) == b"1", "the child of the child is there"
        both = [one.pid, *(child.pid for child in psutil.Process(one.pid).children())]
        theirs = sum(psutil.Process(pid).memory_info().rss for pid in both)
        together = meter.read({}, Health(1, 0, (one.pid,), ""))["memory/bytes"]
        assert len(both) == 2 and os.getpid() not in both
        assert together - alone > 0.9 * theirs
        one.stdin.close()
