"""The bots: legal at every decision, and each stronger than the one before."""

import numpy as np
import pytest

from ludus.core import seeds
from ludus.games.pokemon.bots import BOTS
from ludus.games.pokemon.table import PokemonTable
from pokemon_setup import needs_simulator

ROWS = 20


def wins(first: str, second: str, battles: int) -> float:
    """How often the first wins, one battle in each row and both seats in turn; ties are losses."""
    table = PokemonTable(ROWS)
    players = [BOTS[first](), BOTS[second]()]
    rng, won, played = seeds.rows(4, ROWS), 0, 0
    swapped = np.arange(ROWS) % 2  # whether the first sits in seat 1
    try:
        turn = table.reset(4)
        done = np.zeros(ROWS, int)
        while played < battles:
            actions = np.zeros(ROWS, np.int32)
            for who, player in enumerate(players):
                rows = np.flatnonzero((turn.seat ^ swapped) == who)
                streams = rng[rows]
                actions[rows] = player.choose(turn.obs[rows], turn.legal[rows], streams)
                rng[rows] = streams
            turn = table.step(actions)
            if turn.finished is None:
                continue
            for row, score, _ in zip(*turn.finished[:3], strict=True):
                if done[row] < battles // ROWS:  # short battles must not count more
                    done[row] += 1
                    played += 1
                    won += int(score[swapped[row]] > 0)
    finally:
        table.close()
    return won / played


@pytest.mark.parametrize(
    "first, second, share",
    [("max_power", "random", 0.75), ("heuristic", "random", 0.95), ("heuristic", "max_power", 0.7)],
)
def test_strength(first, second, share):
    needs_simulator()
    assert wins(first, second, 40) >= share


def test_bots_choose_legal_actions_in_team_previews():
    needs_simulator()
    table = PokemonTable(4, "gen9bssfactory")
    try:
        turn = table.reset(1)
        for name, bot in BOTS.items():
            actions = bot().choose(turn.obs, turn.legal, seeds.rows(1, 4))
            assert turn.legal[np.arange(4), actions].all(), name
            assert actions.dtype == np.int32
    finally:
        table.close()
