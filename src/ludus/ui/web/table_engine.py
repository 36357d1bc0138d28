"""What the process of one sitting does: a game that is known by its table, decision by decision.

Gives the same answers as `engine`. The game is stepped on as actions come; a new process plays them again.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from ludus import games, match
from ludus.agent import TableAgent, run_player
from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.film import Chooser
from ludus.core.game import Game
from ludus.core.table import Table, Turn
from ludus.core.view import Json
from ludus.search.bot import make_player
from ludus.store.player import PlayerName, parse_player
from ludus.store.run import peek_config
from ludus.ui.web.deal import PERSON, Deal

ROW = np.zeros(1, np.int64)
HINTS = 5


def describe(name: str, runs: tuple[tuple[str, str], ...]) -> Json:
    """As `engine.describe`: what a page needs to know of a game without rules before it begins."""
    return {**_described(name), "runs": [run for run, folder in runs if _is_of(name, Path(folder))]}


@functools.lru_cache(16)  # a simulator may have to start for it
def _described(name: str) -> Json:
    game = games.open(name)
    return {
        "title": game.description().partition(":")[0],
        "about": game.description(),
        "page": game.page,
        "seats": game.spec.seats,
        "hidden": True,
        "bots": game.bots,
        "champion": False,
        "switches": [],
        "script": "own" if game.web_script else "plain",
        "marks": [],
        "colours": [],
    }


def _is_of(game: str, run: Path) -> bool:
    try:
        return peek_config(run).game == game
    except Failure:
        return False


def opened(deal: Deal) -> Game:
    """The game, as the first run among its players knows it."""
    runs = [found.run for player in deal.players if (found := _agent(player)) and found.run]
    return match.run_game(runs[0], deal.game, []) if runs else games.open(deal.game)


def _agent(player: str) -> PlayerName | None:
    """The agent of a run, by its folder. Only the server names one: a bot's name is never a folder."""
    return parse_player(player) if Path(player).is_absolute() else None


def seat_player(game: Game, table: Table, player: str, seed: int, seat: int) -> Chooser:
    """A bot by its name, or the agent of a run."""
    if (found := _agent(player)) and found.run:
        return run_player(game, found.run, found.at, table)
    if player not in game.bots:
        raise Usage(f"{game.name} has no player {player!r}")
    return make_player(game, player, table, seeds.rows(seed, 1, "choice", seat))


class TableGame:
    """The only game of this process."""

    def __init__(self, deal: Deal) -> None:
        self.deal = deal
        self.game = opened(deal)
        self.view = self.game.make_table_view()
        self.players = [
            None if player == PERSON else seat_player(self.game, self.view.table, player, deal.seed, seat)
            for seat, player in enumerate(deal.players)
        ]
        self.advisers: dict[str, Chooser] = {}
        self.actions: tuple[int, ...] = ()
        self.score: list[float] | None = None
        """Once it is over."""
        self.turn = self.view.table.reset(deal.seed)
        self.view.follow(self.turn)

    @property
    def mover(self) -> int:
        return int(self.turn.seat[0])

    def catch_up(self, actions: tuple[int, ...]) -> None:
        """Play the actions that came since; whoever plays sees again what they saw."""
        for action in actions[len(self.actions) :]:
            if player := self.players[self.mover]:
                player.choose(ROW, self.turn)
            self.step(action)

    def step(self, action: int) -> None:
        if self.score is not None or not (
            0 <= action < self.turn.legal.shape[1] and self.turn.legal[0, action]
        ):
            raise Usage("this move is not possible now")
        self.turn = self.view.table.step(np.array([action], np.int32))
        self.actions = (*self.actions, action)
        if self.turn.finished is not None:
            self.score = self.turn.finished.score[0].tolist()
        else:
            self.view.follow(self.turn)

    def position(self) -> Json:
        persons, over = self.deal.persons, self.score is not None
        shown = self.view.show(persons[0] if persons else None)
        return {
            **shown,
            "moves": [] if over else shown["moves"],
            "number": len(self.actions),
            "hidden": True,
            "over": over,
            "turn": None if over else self.mover,
            "score": self.score or [0.0] * len(self.players),
            "log": [],  # a choice may be a secret: what came of it is the view's to tell
            "settled": [],
            "ending": self._ending(),
            "text": "",
        }

    def _ending(self) -> str:
        if self.score is None:
            return ""
        told = zip(self.deal.names, self.score, strict=True)
        cut = "It was cut off. " if self.turn.truncated[0] else ""
        return f"{cut}Final score: {', '.join(f'{name} {points:+g}' for name, points in told)}."


_playing: TableGame | None = None


def _at(deal: Deal, actions: tuple[int, ...]) -> TableGame:
    """The game after these actions."""
    global _playing
    if _playing is None or _playing.deal != deal or actions[: len(_playing.actions)] != _playing.actions:
        if _playing is not None:
            _playing.view.table.close()
        _playing = None
        _playing = TableGame(deal)
    _playing.catch_up(actions)
    return _playing


def position(deal: Deal, actions: tuple[int, ...]) -> Json:
    return _at(deal, actions).position()


def play(deal: Deal, actions: tuple[int, ...], action: int) -> Json:
    """The position after a person's choice."""
    game = _at(deal, actions)
    game.step(action)
    return game.position()


def answer(deal: Deal, actions: tuple[int, ...]) -> tuple[int, Json]:
    """What the bot or agent whose turn it is does, and the position after it."""
    game = _at(deal, actions)
    player = game.players[game.mover]
    assert player is not None
    action = int(player.choose(ROW, game.turn)[0])
    game.step(action)
    return action, game.position()


def advise(deal: Deal, actions: tuple[int, ...], adviser: str) -> Json:
    """What a player would do, the likeliest first, with the policy's share of each."""
    game = _at(deal, actions)
    if game.score is not None:
        return {"ideas": [], "heat": [], "values": []}
    if adviser not in game.advisers:
        game.advisers[adviser] = seat_player(
            game.game, game.view.table, adviser, deal.seed, len(game.players)
        )
    ranked = _ranked(game.advisers[adviser], game.turn)
    ideas = [
        {
            "action": action,
            "text": game.view.words(action),
            "share": round(share, 4),
            "value": None,
            "visits": 0,
        }
        for action, share in ranked[:HINTS]
    ]
    return {"ideas": ideas, "heat": [], "values": []}


def _ranked(adviser: Any, turn: Turn) -> list[tuple[int, float]]:
    """Legal actions and their shares of a policy; of a bot its only choice."""
    if not isinstance(adviser, TableAgent):
        return [(int(adviser.choose(ROW, turn)[0]), 1.0)]
    if adviser.memory is not None:
        raise Usage("an agent with memory can't say what it thinks: choose another for hints")
    logits = np.where(turn.legal[0], adviser.policy.logits(turn.obs[:1])[0], -np.inf)
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    best = np.argsort(-shares, kind="stable")
    return [(int(action), float(shares[action])) for action in best if turn.legal[0, action]]
