"""Matches: who is stronger, by how much, and how sure. Knows rules and bots, not how bots came to be.

Deals are mirrored: every deal is played once for each seat of the challenger, with the same chance,
and counts as one sample, so that luck of the cards and of the seat cancels.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ludus import games, machine, processes, switches
from ludus.agent import TableAgent, run_bot, trained_game
from ludus.algos import Weights
from ludus.config import Config
from ludus.core import seeds
from ludus.core.duel import Duel, wins
from ludus.core.errors import Failure, Usage
from ludus.core.game import Game, Player
from ludus.core.rules import Bot, RandomBot, Rules, States, Streams, Thinks, begin
from ludus.core.table import Table
from ludus.records import Record, Recorder
from ludus.search.bot import bot_names, make_bot, make_player, player_names
from ludus.store.player import PlayerName, full_name, parse_player
from ludus.store.policy import load_policy
from ludus.store.run import read_config

ROWS = 64
"""Environments side by side."""
CHUNK = 50
"""Deals played side by side; also the unit of work of a process, small so that all cores end together."""
OPENING = 2
"""Random first moves in games without chance that don't say how many they need."""
MOST_OPENING = 12
"""First moves at random after which games are still worth playing."""
T = TypeVar("T")
Steps = Generator[None, None, T]
"""Games under way: pauses after every step, so that somebody with other duties can play them bit by bit."""
Results = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Points and wins [deals, seats] and statistics [deals, seats, ...] of the challenger."""


Report = Callable[[float], None]
"""Told which share of a match has been played."""


def untold(share: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class MatchOptions:
    """How matches are played."""

    hands: int | None = None
    games: int | None = None
    seed: int = 0
    opening: int | None = None
    """First moves that are made at random. Default: as `opening_of` says."""
    engine: str = ""
    """The program of an engine, if it is not on the PATH."""
    record: str | None = None
    """A file to which every game is added."""


def opening_of(game: Game, told: int | None) -> int:
    """Random first moves: as told, as the game says, or some if there is no chance to tell games apart."""
    opening = game.opening if told is None else told
    if opening is None:
        opening = OPENING if is_without_chance(game.native("opened").rules) else 0
    if not 0 <= opening <= MOST_OPENING:
        raise Usage(f"an opening has 0 to {MOST_OPENING} moves, not {opening}")
    return opening


def is_without_chance(rules: Rules, rows: int = 8, most: int = 10_000) -> bool:
    """Whether the same decisions lead to the same states whatever the dice say, in some random games."""
    games_, dice = (rules.blank(rows), rules.blank(rows)), (seeds.rows(0, rows), seeds.rows(1, rows))
    choices, anyone = seeds.rows(2, rows), RandomBot(rules)
    for states, rng in zip(games_, dice, strict=True):
        rules.deal(states, rng)
    for _ in range(most):
        if games_[0].tobytes() != games_[1].tobytes():
            return False
        alive = np.flatnonzero(~rules.over(games_[0]))
        if not len(alive):
            return True
        some, some_rng = games_[0][alive], choices[alive]
        actions = anyone.choose(some, some_rng)
        choices[alive] = some_rng
        for states, rng in zip(games_, dice, strict=True):
            some, some_rng = states[alive], rng[alive]
            rules.play(some, actions, some_rng)
            states[alive], rng[alive] = some, some_rng
    return True


def duel(
    game: Game, challenger: str, opponent: str, deals: int, seed: int = 0, cores: int = 0,
    opening: int | None = None, report: Report = untold, record: list[Record] | None = None,
) -> Duel:  # fmt: skip
    """The challenger in each seat in turn, the opponent in all others; on all cores unless told.

    opening: first moves that are made at random, as `opening_of` says unless told
    report: called from time to time with the share of the match that has been played
    record: a list that is given every game
    """
    half, opening = deals // 2, opening_of(game, opening)
    if record is not None and opening and game.spec.chance:
        raise Usage(f"{game.name} can't be recorded with random first moves: leave out --opening")
    told = (game.name, game.switches, challenger, opponent)
    work = [
        (*told, size, seeds.derive(seed, "set", number, "chunk", i), opening, record is not None)
        for number, count in enumerate((half, deals - half))
        for i, size in enumerate(_chunks(count))
    ]
    cores = min(cores or machine.usable_cores(), len(work))
    if cores == 1:
        parts = _counted(map(_play_chunk, *zip(*work, strict=True)), len(work), report)
    else:
        parts = _on_cores(cores, work, report)
    *columns, games_ = zip(*parts, strict=True)
    points, won, counted = map(np.concatenate, columns)
    if record is not None:
        record += [one for some in games_ for one in some]
    stats = dict(zip(game.spec.stats, map(float, counted.mean((0, 1))), strict=True))
    return Duel(challenger, opponent, points, won, stats)


def _counted(parts: Iterable[Any], total: int, report: Report) -> list[Any]:
    """All parts; each is reported when it comes."""
    found = []
    for part in parts:
        found.append(part)
        report(len(found) / total)
    return found


def _on_cores(cores: int, work: list[tuple], report: Report) -> list[Any]:
    context = processes.make_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as pool, processes.ended_on_error():
        # Not by `map`, which cancels what is left after an error: a pool whose processes end then complains.
        parts = [pool.submit(_play_chunk, *some) for some in work]
        try:
            return _counted((part.result() for part in parts), len(work), report)
        except BrokenProcessPool:
            raise Failure("a process of the match died: was it killed, or short of memory?") from None


def _chunks(deals: int) -> list[int]:
    """Sizes of chunks: five at least, so that somebody who waits sees the match go on."""
    size = min(CHUNK, -(-deals // 5))
    return [min(size, deals - start) for start in range(0, deals, size or 1)]


def _play_chunk(
    game: str, switches: dict[str, Any], challenger: str, opponent: str, deals: int, seed: int, opening: int,
    record: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Record]]:  # fmt: skip
    """Points and wins of the challenger by deal and seat, its statistics [deals, seats, ...], and records."""
    opened = games.open(game, **switches).native("played")
    bots = player(challenger, opened), player(opponent, opened)
    recorder = Recorder(opened, challenger, opponent, seed) if record else None
    found = played(mirrored_steps(opened.rules, *bots, deals, seed, opening, recorder))
    return *found, recorder.records if recorder else []


def played(steps: Steps[T]) -> T:
    """Play to the end, at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def mirrored_steps(
    rules: Rules, challenger: Bot, opponent: Bot, deals: int, seed: int, opening: int = 0,
    recorder: Recorder | None = None,
) -> Steps[Results]:  # fmt: skip
    """Deals that are played once in each seat of the challenger."""
    seats, count = rules.spec.seats, len(rules.spec.stats)
    points, won = np.zeros((deals, seats)), np.zeros((deals, seats))
    stats = np.zeros((deals, seats, count), np.float32)
    for seat in range(seats):
        lineup = [challenger if other == seat else opponent for other in range(seats)]
        if recorder:
            recorder.begin(seat, deals)
        final = yield from game_steps(rules, lineup, deals, seed, opening, recorder)
        score = np.zeros((deals, seats), np.float32)
        counted = np.zeros((deals, seats, count), np.float32)
        rules.score(final, score)
        if recorder:
            recorder.end(score)
        rules.stats(final, counted)
        points[:, seat], won[:, seat] = score[:, seat], wins(score)[:, seat]
        stats[:, seat] = counted[:, seat]
    return points, won, stats


def table_duel(
    game: Game, config: Config, weights: Weights, opponent: str, count: int, seed: int = 0, name: str = "",
    report: Report = untold,
) -> Duel:  # fmt: skip
    """A run's policy at a game that is not native: alone, or in each seat against a scripted player.

    Nothing can be dealt twice there, so each game is a deal of its own; seats take turns by row.
    """
    with _table(game, count) as table:
        agent = TableAgent(table, config.net, load_policy(game, config, weights, name))
        return played(table_steps(game, table, agent, opponent, count, seed, name, report))


def bot_alone(game: Game, name: str, count: int, seed: int, report: Report = untold) -> Duel:
    """A scripted player that has a game to itself, on the games that an agent is given for that seed."""
    with _table(game, count) as table:
        bot = make_player(game, name, table, seeds.rows(seed, table.rows, "bot"))
        return played(table_steps(game, table, ScriptedAgent(bot), "", count, seed, name, report))


@contextmanager
def _table(game: Game, count: int) -> Iterator[Table]:
    """For so many games. What they start ends with it."""
    family = processes.Family()
    try:
        with family.joined():
            table = game.table(max(2, min(count, ROWS)))
            try:
                yield table
            finally:
                table.close()
    finally:
        family.end()


class ScriptedAgent:
    """A scripted player in an agent's place."""

    def __init__(self, player: Player) -> None:
        self.choose = player.choose

    def forget(self, ended: np.ndarray) -> None:
        """It remembers nothing."""


def table_steps(
    game: Game,
    table: Table,
    agent: TableAgent | ScriptedAgent,
    opponent: str,
    count: int,
    seed: int,
    name: str,
    report: Report = untold,
) -> Steps[Duel]:
    """As `table_duel`, at a table that is there already. name: of the agent"""
    rows, seats = table.rows, table.spec.seats
    streams = seeds.rows(seed, rows, "opponent")
    other = make_player(game, opponent, table, streams) if seats > 1 else None
    ours, every = np.arange(rows) % seats, np.arange(rows)
    quota = np.full(
        rows, -(-count // rows)
    )  # games of each row: counting the first to end would favour short ones
    total = quota.sum()
    found: list[tuple[int, np.ndarray, np.ndarray]] = []
    turn = table.reset(seed)
    while (quota > 0).any():
        actions = agent.choose(every, turn)
        if other is not None and (theirs := np.flatnonzero(turn.seat != ours)).size:
            actions[theirs] = other.choose(theirs, turn)
        turn = table.step(actions)
        agent.forget(turn.ended | turn.truncated)
        yield
        if turn.finished is None:
            continue
        for row, score, stats in zip(*turn.finished[:3], strict=True):
            if quota[row] > 0:
                found.append((int(ours[row]), score.copy(), stats[ours[row]].copy()))
            quota[row] -= 1
        report(float(1 - quota.clip(0).sum() / total))
    score = np.array([score for _, score, _ in found])
    seat = np.array([seat for seat, _, _ in found])
    every = np.arange(len(found))
    counted = np.array([stats for _, _, stats in found]).mean(0)
    return Duel(
        name, opponent, score[every, seat][:, None], wins(score)[every, seat][:, None],
        dict(zip(table.spec.stats, map(float, counted), strict=True)),
    )  # fmt: skip


def player(name: str, game: Game) -> Bot:
    """A bot of the game by name, its champion, or the agent of a run by its folder, if it fits these rules.

    `FOLDER@best` and `FOLDER@3000000` are earlier weights of it. `FOLDER+64`, `search+2000`, `expert+200` say
    how far it looks ahead, and `FOLDER+100ms` for how long.
    """
    found = parse_player(name, game.champion)
    if found.run:
        refuse_other_rules(found, game)
        return run_bot(game, found.run, found.think, found.at, found.name)
    if _is_path(found.name):
        raise Usage(f"there is no run in {found.name}: `ludus runs` lists those there are")
    if found.name not in bot_names(game):
        raise Usage(f"{game.name} has no bot {found.name!r}: choose from {', '.join(player_names(game))}")
    bot = make_bot(game, found.name)
    if think := found.think:
        if not isinstance(bot, Thinks):
            raise Usage(
                f"{found.name} doesn't look ahead, so it can't think {think}: leave out --think or +{think}"
            )
        bot.limit(think)
    return bot


def as_far(game: Game, name: str, think: str) -> str:
    """An opponent, who looks as far ahead as its rival if it is an agent that can and doesn't say how far."""
    if not think or (game.engine is not None and game.engine.is_name(name)):
        return name
    found = parse_player(name, game.champion)
    if not found.run or found.think or read_config(found.run).net.memory:
        return name
    return full_name(name, think=think)


def _is_path(name: str) -> bool:
    """Whether a name that is neither a run nor a bot was meant as a folder."""
    return os.sep in name or Path(name).is_dir()


def refuse_unknown_run(name: str) -> None:
    """Of a game or run: say what is wrong if it can only be meant as a run's folder."""
    if _is_path(name) and not games.is_name(name):
        problem = "is not a run: it has no config.toml" if Path(name).is_dir() else "does not exist"
        raise Usage(f"{name} {problem}; `ludus runs` lists the runs there are")


def run_game(folder: Path, name: str, words: list[str]) -> Game:
    """The game that a run's agent plays: under the rules it was trained on, in full, except for `words`."""
    config = read_config(folder, name)
    game = trained_game(config).for_evaluation()
    told = switches.parsed(config.game, words)
    return games.open(config.game, **{**game.switches, **told}) if told else game


def refuse_other_rules(agent: PlayerName, game: Game) -> None:
    """A network fits one game, and observations and actions of one shape. agent: of a run"""
    assert agent.run is not None
    trained = trained_game(read_config(agent.run, game.name)).native("played").for_evaluation()
    if _shapes(trained) == _shapes(game):
        return
    before, now = vars(trained.options), vars(game.native("played").options)
    changed = [name for name in now if before[name] != now[name]]
    guilty = [n for n in changed if _shapes(_with(trained, n, now[n])) != _shapes(trained)]
    said = [", ".join(f"{name}={values[name]}" for name in guilty or changed) for values in (before, now)]
    raise Usage(
        f"{agent.name} was trained with {said[0] or 'other rules'}, so its network can't play with "
        f"{said[1] or 'these'}: leave that out, or train another run"
    )


def _with(game: Game, switch: str, value: Any) -> Game:
    return games.open(game.name, **{**game.switches, switch: value})


def _shapes(game: Game) -> tuple[Any, ...]:
    return game.spec.seats, game.spec.actions, game.spec.parts


def game_steps(
    rules: Rules, lineup: list[Bot], n: int, seed: int, opening: int = 0, recorder: Recorder | None = None
) -> Steps[np.ndarray]:
    """Final states of n games with a bot in each seat; equal seeds are equal deals.

    opening: first moves that are made at random, in games that would all be the same without
    """

    def play(rows: np.ndarray, some: States, actions: np.ndarray, streams: Streams) -> None:
        if recorder:
            recorder.add(rows, some, actions)
        rules.play(some, actions, streams)

    states, rng = rules.blank(n), seeds.rows(seed, n, "deal")
    choices, anyone = seeds.rows(seed, n, "choice"), RandomBot(rules)
    rules.deal(states, rng)
    for _ in range(opening):
        open_rows = np.flatnonzero(~rules.over(states))
        some, some_rng = states[open_rows], rng[open_rows]
        play(open_rows, some, anyone.choose(some, some_rng), some_rng)
        states[open_rows], rng[open_rows] = some, some_rng
    choosers = [begin(bot, n) for bot in lineup]
    while True:
        over, seat = rules.over(states).copy(), rules.seat(states).copy()  # rules may give views
        if over.all():
            return states
        for place, choose in enumerate(choosers):
            rows = np.flatnonzero(~over & (seat == place))
            if len(rows):
                some, streams, some_choices = states[rows], rng[rows], choices[rows]
                play(rows, some, choose(rows, some, some_choices), streams)
                states[rows], rng[rows], choices[rows] = some, streams, some_choices
        yield
