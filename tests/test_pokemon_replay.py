"""Replays of battles."""

import re

import numpy as np

from ludus.games.pokemon import replay
from ludus.games.pokemon.table import PokemonTable
from pokemon_setup import needs_simulator, random_choice


def test_a_whole_battle_is_in_its_page(tmp_path):
    needs_simulator()
    table, rng = PokemonTable(2, lines=True), np.random.default_rng(1)
    try:
        turn = table.reset(1)
        while turn.finished is None:
            turn = table.step(random_choice(turn.legal, rng))
    finally:
        table.close()
    row = int(turn.finished.rows[0])
    lines = replay.log_of(table.said, row, 0)
    assert lines[1] == "|gametype|singles" and lines[-1].startswith("|win|p")
    assert not any(line.startswith("|request|") for line in lines)
    replay.save(tmp_path / "battle.html", lines, title="a < b")
    page = (tmp_path / "battle.html").read_text(encoding="utf-8")
    assert "<title>a &lt; b</title>" in page
    found = re.search('class="battle-log-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None and found[1].split("\n") == lines


def test_a_log_cannot_end_its_script(tmp_path):
    replay.save(tmp_path / "x.html", ["|c|a|</script><script>alert(1)</script>"])
    assert "</script><script>alert" not in (tmp_path / "x.html").read_text()
