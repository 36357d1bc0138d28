"""Bots that choose from observations, many battles at once; so they play wherever observations come from."""

from typing import Any, Protocol

import numpy as np

from ludus.core.dice import legal_choice
from ludus.core.table import Turn
from ludus.games.pokemon import layout
from ludus.games.pokemon.layout import GIMMICK, MOVES, PREVIEW, SWITCH, TEAM

POWER, ACCURACY, DAMAGE, PRIORITY = map(layout.move_columns, ("power", "accuracy", "damage", "priority"))
HP, THREAT, PRESSURE, FASTER = map(layout.column, ("hp", "threat", "pressure", "faster"))
BOOSTS = [layout.column(f"boost_{stat}") for stat in ("atk", "def", "spa", "spd")]
FOE = TEAM
"""Row of the opponent's active Pokémon."""
NEVER = -np.inf


class Bot(Protocol):
    def choose(self, obs: np.ndarray, legal: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Actions, int32 [N]. obs: records [N]; legal: bool [N, A]; rng: a stream for each, uint64 [N, 2]"""
        ...


class Random:
    """Any legal action."""

    def choose(self, obs: np.ndarray, legal: np.ndarray, rng: np.ndarray) -> np.ndarray:
        actions = np.zeros(len(legal), np.int32)
        legal_choice(legal, rng, actions)
        return actions


class MaxPower:
    """The move with the highest base power; anything legal where there is no move."""

    def choose(self, obs: np.ndarray, legal: np.ndarray, rng: np.ndarray) -> np.ndarray:
        actions = Random().choose(obs, legal, rng)
        moves = legal[:, :MOVES]
        power = np.where(moves, obs["numbers"][:, 0, POWER], NEVER)  # [N, 4]
        return np.where(moves.any(1), power.argmax(1), actions).astype(np.int32)


class Heuristic:
    """Attacks with what it expects to hurt most, and leaves when it is badly placed.

    A place on the team is worth what its best move would do to the opponent's active Pokémon, and how the
    types of the two meet.
    """

    def choose(self, obs: np.ndarray, legal: np.ndarray, rng: np.ndarray) -> np.ndarray:
        actions = Random().choose(obs, legal, rng)
        attack = self._attacks(obs, legal)  # [N, 4]
        places = self._places(obs)  # [N, 6]
        bench = np.where(legal[:, SWITCH:PREVIEW], places, NEVER)  # [N, 6]
        best = attack.max(1)
        can_move, can_switch = legal[:, :MOVES].any(1), legal[:, SWITCH:PREVIEW].any(1)
        boosts = obs["numbers"][:, 0, BOOSTS].min(1)
        weak = (best < 0.15) | (boosts <= -0.5)
        # It loses a turn by leaving, so whoever comes must be placed much better.
        better = bench.max(1) > places[:, 0] + np.where(weak, 0.5, 1.5)
        leave = can_switch & (~can_move | (better & (best < 0.8)))
        move = attack.argmax(1)
        gimmick = legal[np.arange(len(legal)), GIMMICK + move] & (best > 0.25) & (best < 0.95)
        actions = np.where(can_move, move + GIMMICK * gimmick, actions)
        return np.where(leave, SWITCH + bench.argmax(1), actions).astype(np.int32)

    def _attacks(self, obs: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """What each move of the active Pokémon is worth, [N, 4]; 1 is a knock-out that can't miss."""
        numbers = obs["numbers"]
        left = np.maximum(numbers[:, FOE, HP], 0.01)[:, None]
        done = np.minimum(numbers[:, 0, DAMAGE] / left, 1.0)
        worth = done * numbers[:, 0, ACCURACY]
        worth += 0.1 * (done >= 1) * (numbers[:, 0, PRIORITY] > 0)
        return np.where(legal[:, :MOVES], worth, NEVER)

    def _places(self, obs: np.ndarray) -> np.ndarray:
        """How well each of the own team would stand against the opponent's active Pokémon, [N, 6]."""
        own = obs["numbers"][:, :TEAM]
        left = np.maximum(obs["numbers"][:, FOE, HP], 0.01)[:, None, None]
        attack = np.minimum(own[:, :, DAMAGE] / left, 1.0).max(2)
        return (
            attack
            + own[:, :, PRESSURE]
            - 1.5 * own[:, :, THREAT]
            + 0.5 * own[:, :, HP]
            + 0.2 * own[:, :, FASTER]
        )


BOTS: dict[str, type[Bot]] = {"random": Random, "max_power": MaxPower, "heuristic": Heuristic}
"""By name, the strongest last."""


class BotPlayer:
    """A bot at a table of battles."""

    def __init__(self, bot: Bot, rng: np.ndarray) -> None:
        self.bot, self.rng = bot, rng

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        streams = self.rng[rows]
        actions = self.bot.choose(turn.obs[rows], turn.legal[rows], streams)
        self.rng[rows] = streams
        return actions

    def snapshot(self) -> dict[str, Any]:
        return {"rng": self.rng.copy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.rng[...] = snapshot["rng"]
