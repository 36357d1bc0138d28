"""Players by name at a table that is trained at: the game's bots, `search`, and the champion of the game."""

from pathlib import Path
from typing import Any

import numpy as np

from ludus.algos import Policy
from ludus.core.errors import Usage
from ludus.core.game import CHAMPION, Game, Player
from ludus.core.rules import Streams
from ludus.core.table import Table, Turn
from ludus.search import bot
from ludus.store.policy import load_policy
from ludus.store.run import read_config, read_weights


def make_player(game: Game, name: str, table: Table, rng: Streams) -> Player:
    if name == CHAMPION and game.champion:
        return ChampionPlayer(champion_policy(game, game.champion))
    return bot.make_player(game, name, table, rng)


def champion_policy(game: Game, folder: Path) -> Policy:
    """The champion's network, which must fit the rules of the game."""
    config, weights = read_config(folder), read_weights(folder, "best")
    if config.net.memory:
        raise Usage(f"the champion of {game.name} remembers its games, so it can't play along in a training")
    return load_policy(game, config, weights, f"{game.name}'s champion")


class ChampionPlayer:
    """A policy by its first choice."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        logits = self.policy.logits(turn.obs[rows])
        return np.where(turn.legal[rows], logits, -np.inf).argmax(1).astype(np.int32)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """It remembers nothing."""
