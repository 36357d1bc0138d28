"""The faster simulator plays the same battles as the untouched one."""

import subprocess

import pytest

from ludus.games.pokemon import install
from pokemon_setup import needs_simulator

BATTLES = {
    "gen9randombattle": 10,
    "gen9randomdoublesbattle": 8,
    "gen7randombattle": 8,
    "gen1randombattle": 10,
}


def hashes(speed: str, format: str, battles: int) -> list[str]:
    program = str(install.NODE_FILES / "compare.js")
    command = [install.find_node(), program, str(install.showdown()), speed, format, "1000", str(battles)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("format", BATTLES)
def test_logs_are_the_same(format):
    needs_simulator()
    plain, fast = (hashes(speed, format, BATTLES[format]) for speed in ("plain", "fast"))
    assert len(set(plain)) == BATTLES[format], "every battle is another"
    assert fast == plain
