"""What a training counts as its own."""

import os
import subprocess
import sys
import time

import psutil

from ludus import games
from ludus.training.meter import Meter
from ludus.training.pools import Health

BUSY = """
import sys, time
while time.process_time() < 0.3: pass
print(1, flush=True)
sys.stdin.read()
"""
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


def test_the_first_reading_knows_what_a_worker_used():
    """Else its cores would count as other programs', and the training would make way for itself."""
    meter = Meter(games.open("tictactoe"), 0)
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout.read(1) == b"1", "it has worked"
        cores = meter.read({}, Health(1, 0, (one.pid,), ""))["cpu/workers"]
        lived = time.time() - psutil.Process(one.pid).create_time()
        assert cores > 0.5 * 0.3 / lived
        one.stdin.close()
