"""`ludus eval`: matches between bots and agents of runs: who wins what from whom, and how sure that is."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ludus import algos, machine, match, records
from ludus.agent import use_all_cores
from ludus.core.duel import Duel
from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.core.rules import Thinks
from ludus.core.think import NO_LOOK_AHEAD
from ludus.match import MatchOptions
from ludus.search.bot import SEARCH, bot_names, player_names, warm_up
from ludus.store.player import full_name, parse_player
from ludus.store.run import read_config, read_weights

console = Console(highlight=False, emoji=False)
HANDS, GAMES, FEW_GAMES = 10_000, 1_000, 200
"""Of a match; few if somebody thinks long."""
TOLD_EVERY_S = 60.0
"""How often a match that nobody watches says how far it is."""


def evaluate_run(
    folder: Path, at: str, against: list[str], think: str, words: list[str], how: MatchOptions
) -> None:
    """The agent of a run against each of some bots, under the rules it was trained on, played in full."""
    config = read_config(folder)
    game = match.run_game(folder, config.game, words)
    if game.rules is None:
        return _evaluate_at_table(folder, game, at, against, how)
    read_weights(folder, at)  # fail here, in one place, rather than in every process
    agent = full_name(str(folder), at, think)
    opponents = [match.as_far(game, name, think) for name in against or bot_names(game)[::-1]]
    _play(game, [(agent, name) for name in opponents], how)


def _check(game: Game, names: list[str], how: MatchOptions) -> None:
    """Whether all of them can play, before anything compiles; agents of runs are made later, in full."""
    for name in dict.fromkeys(names):
        if is_engine(game, name):
            assert game.engine is not None
            game.engine.check(name, how.engine, how.seed)
        elif (found := parse_player(name, game.champion)).run:
            match.refuse_other_rules(found, game)
        else:
            match.player(name, game)


def is_engine(game: Game, name: str) -> bool:
    return game.engine is not None and game.engine.is_name(name)


def _evaluate_at_table(folder: Path, game: Game, at: str, against: list[str], how: MatchOptions) -> None:
    """A game that is not native: alone, with scripted players alone beside it; or against those."""
    alone, known = game.spec.seats == 1, bot_names(game)
    if how.record is not None:
        raise Usage(f"{game.name} can't be recorded: that is for native games, those of `ludus games`")
    _refuse_unknown_bots(game, against)
    config, weights, count = read_config(folder), read_weights(folder, at), how.games or GAMES
    names = ["random"] if alone else against or known[::-1]
    duels = []
    for name in names:
        with _progress(game, [str(folder)] if alone else [str(folder), name]) as report:
            duel = match.table_duel(game, config, weights, name, count, how.seed, str(folder), report)
        duels.append(duel)
    if alone:
        return _show_alone(game, duels + _bots_alone(game, against, how))
    cells = [_cells(game, duel) for duel in duels]
    table = Table("agent", "against", "games", "score (95 %)", "won %", *cells[0], box=None, pad_edge=False)
    for duel, shown in zip(duels, cells, strict=True):
        won = f"{100 * duel.won.mean():.1f}{_spread(100 * duel.win_margin, 1)}"
        score = f"{duel.mean:+.2f}{_spread(duel.margin)}"
        who = [f"[bold]{escape(folder.name)}", duel.opponent]
        table.add_row(*who, f"{len(duel.points):,}", score, won, *shown.values())
    console.print(table)


def _refuse_unknown_bots(game: Game, names: list[str]) -> None:
    known = bot_names(game)
    for name in names:
        if name not in known:
            raise Usage(f"{game.name} has no bot {name!r}: choose --against {' or '.join(known)}")


def _bots_alone(game: Game, names: list[str], how: MatchOptions) -> list[Duel]:
    duels = []
    for name in names:
        with _progress(game, [name]) as report:
            duels.append(match.bot_alone(game, name, how.games or GAMES, how.seed, report))
    return duels


def _show_alone(game: Game, duels: list[Duel]) -> None:
    """Those who have a game to themselves, one below the other."""
    cells = [_cells(game, duel) for duel in duels]
    table = Table("agent", "games", "score (95 %)", *cells[0], box=None, pad_edge=False)
    for duel, shown in zip(duels, cells, strict=True):
        name, score = (
            f"[bold]{escape(_label(game, duel.challenger))}",
            f"{duel.mean:+.2f}{_spread(duel.margin)}",
        )
        table.add_row(name, f"{len(duel.points):,}", score, *shown.values())
    console.print(table)


def run_tournament(game: Game, bots: list[str], against: list[str], think: str, how: MatchOptions) -> None:
    """Every bot against every other; or, if they are told whom, against those only."""
    bots = [
        bot if parse_player(bot, game.champion).think else full_name(bot, think=think)
        for bot in bots or bot_names(game)[::-1]
    ]
    if game.spec.seats < 2 and game.rules is None:
        names = list(dict.fromkeys([*bots, *against]))
        _refuse_unknown_bots(game, names)
        return _show_alone(game, _bots_alone(game, names, how))
    if game.spec.seats < 2:
        raise Usage(f"{game.name} has one seat, so there is nobody to play against")
    if against:
        others = [match.as_far(game, other, think) for other in against]
        _play(game, [(bot, other) for bot in bots for other in others], how)
        return
    if len(bots) < 2:
        raise Usage(f"a tournament needs two bots: choose from {', '.join(player_names(game))}")
    duels = _play(game, [(bot, other) for i, bot in enumerate(bots) for other in bots[i + 1 :]], how)
    _rank(bots, duels)


def _play(game: Game, pairs: list[tuple[str, str]], how: MatchOptions) -> list[Duel]:
    """Play the matches and show them. Everything that can be refused is refused before anything compiles."""
    names = [name for pair in pairs for name in pair]
    if how.record is not None:
        _refuse_recording(game, names, Path(how.record))
    if how.games is None and how.hands is None and any(_thinks_long(game, name) for name in names):
        how = replace(how, games=FEW_GAMES)
    unit, per_game = game.unit
    deals = _deals(game, per_game, how)
    _check(game, names, how)
    if how.opening is not None:
        match.opening_of(game, how.opening)
    warm_up(game, set(names) & set(bot_names(game)))
    for name in names:
        if not is_engine(game, name) and parse_player(name, game.champion).run:
            match.player(name, game)  # fail here, in one place, rather than in every process
    how = replace(how, opening=match.opening_of(game, how.opening))
    console.print(_heading(game, f"{deals * game.spec.seats * per_game:,} {unit}s", how))
    start = time.perf_counter()
    duels: list[Duel] = []
    for pair in pairs:
        with _progress(game, pair) as report:
            duels.append(_duel(game, pair, deals, how, report))
    _show(game, duels)
    console.print(f"{len(duels)} matches in {time.perf_counter() - start:.0f} s")
    return duels


def _duel(game: Game, pair: tuple[str, str], deals: int, how: MatchOptions, report: match.Report) -> Duel:
    assert how.opening is not None
    if is_engine(game, pair[1]):
        assert game.engine is not None
        bot = match.player(pair[0], game)
        use_all_cores()  # games follow each other, and one side waits while the other thinks
        return game.engine.duel(bot, pair, deals, how.opening, how.engine, how.seed, report)
    games: list[records.Record] | None = None if how.record is None else []
    found = match.duel(game, *pair, deals, how.seed, machine.usable_cores(), how.opening, report, games)
    if how.record is not None and games is not None:
        records.append(Path(how.record), *games)
    return found


def _refuse_recording(game: Game, names: list[str], file: Path) -> None:
    if any(is_engine(game, name) for name in names):
        raise Usage("games against other programs can't be recorded: leave out --record")
    records.refuse_unwritable(file)


def _heading(game: Game, plays: str, how: MatchOptions) -> str:
    options = game.switches
    said = f"{game.name}: {plays} a match, every deal once in each of {game.spec.seats} seats"
    if how.opening:
        said += f", {how.opening} random first moves"
    return escape(said + (f" ({', '.join(f'{k}={v}' for k, v in options.items())})" if options else ""))


@contextmanager
def _progress(game: Game, names: Sequence[str]) -> Iterator[match.Report]:
    """A bar for one match on a terminal; elsewhere, as in a log file, a line a minute on stderr."""
    name = " - ".join(_label(game, name) for name in names)
    if not console.is_terminal:
        yield _minutely(name)
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20),
        TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _minutely(name: str) -> match.Report:
    start = told = time.monotonic()

    def report(share: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= TOLD_EVERY_S:
            told = now
            print(
                f"{name}: {share:.0%} played after {(now - start) / 60:.0f} min", file=sys.stderr, flush=True
            )

    return report


def _show(game: Game, duels: list[Duel]) -> None:
    """The matches as a table; names that would be broken in two stand above it, with numbers."""
    table = _table(game, duels)
    wide = console.options.update(max_width=1_000)
    if console.measure(table, options=wide).maximum > console.width:
        for number, duel in enumerate(duels, 1):
            console.print(f"{number}  {_names(game, duel, ' against ')}", soft_wrap=True)
        table = _table(game, duels, numbered=True)
    console.print(table)
    for duel in duels:
        console.print(_agreement(game, duel), soft_wrap=True)
        if duel.note:
            console.print(escape(duel.note), soft_wrap=True)
    if len(duels[0].points) == 1:
        console.print("One deal has no confidence interval: play more --games.")
    else:
        alike = ", ".join(_names(game, duel) for duel in duels if duel.margin == 0)
        if alike:
            console.print(f"Every deal ended alike in {alike}: ± 0.00 says nothing about other deals.")
        console.print(
            "[dim]± is the 95 % confidence interval. Halves: the mean of the first and of the second half of "
            "the deals, which have seeds of their own; they should agree.[/]"
        )


def _thinks_long(game: Game, name: str) -> bool:
    if is_engine(game, name):
        return True
    player = parse_player(name, game.champion)
    if player.think:
        return player.think != NO_LOOK_AHEAD
    if player.run:
        return algos.find(read_config(player.run, game.name).algo).searches
    return player.name == SEARCH or isinstance(match.player(player.name, game), Thinks)


def _deals(game: Game, per_game: int, how: MatchOptions) -> int:
    """How many deals to mirror."""
    hands, count, has_hands = how.hands, how.games, game.unit[0] == "hand"
    for number in (hands, count):
        if number is not None and number < 1:
            raise Usage(f"{number} is too few to play")
    if hands is not None and not has_hands:
        raise Usage(f"{game.name} is not played in hands: say how many --games")
    if count is None:
        count = math.ceil((hands or HANDS) / per_game) if has_hands else GAMES
    return math.ceil(count / game.spec.seats)


def _table(game: Game, duels: list[Duel], numbered: bool = False) -> Table:
    (unit, per_game), seats = game.unit, game.spec.seats
    found = [_cells(game, duel) for duel in duels]
    others = "against" if seats == 2 else f"against\n{seats - 1} x"
    heads = (name.replace(" ", "\n") for name in found[0])
    table = Table(
        *(("",) if numbered else ("bot", others)), f"points/{unit}\n(95 %)", *heads,
        box=None, pad_edge=False, collapse_padding=True,
    )  # fmt: skip
    for number, column in enumerate(table.columns):
        column.justify, column.no_wrap = "left" if number < 2 - numbered else "right", True
    for number, (duel, cells) in enumerate(zip(duels, found, strict=True), 1):
        mean, margin = duel.mean / per_game, duel.margin / per_game
        colour = "green" if mean > margin else "red" if mean < -margin else "yellow"
        opponent = _label(game, duel.opponent)
        if is_engine(game, opponent):
            opponent = opponent.split()[0]
        bot = _label(game, duel.challenger)
        names = [str(number)] if numbered else [f"[bold]{escape(bot)}", escape(opponent)]
        table.add_row(*names, f"[{colour}]{mean:+.2f}{_spread(margin)}[/]", *cells.values())
    return table


def _cells(game: Game, duel: Duel) -> dict[str, str]:
    shown = game.columns(duel.stats)
    return {name: value if isinstance(value, str) else f"{value:.2f}" for name, value in shown.items()}


def _spread(margin: float, digits: int = 2) -> str:
    """` ± 0.31`, or nothing without an interval."""
    return f" ± {margin:.{digits}f}" if math.isfinite(margin) else ""


def _label(game: Game, name: str) -> str:
    """Of a run, its folder."""
    return name if is_engine(game, name) else Path(name).name


def _names(game: Game, duel: Duel, between: str = " - ") -> str:
    return escape(f"{_label(game, duel.challenger)}{between}{_label(game, duel.opponent)}")


def _agreement(game: Game, duel: Duel) -> str:
    """Games won, and whether the two halves, dealt from seeds of their own, and the seats tell the same."""
    per_game = game.unit[1]
    won = f"won {100 * duel.won.mean():.1f}{_spread(100 * duel.win_margin, 1)} % of games"
    halves = " ".join(f"{mean / per_game:+.2f}" for mean in duel.halves)
    seats = " ".join(f"{mean / per_game:+.2f}" for mean in duel.by_seat)
    return f"{_names(game, duel)}: {won}; halves {halves}; by seat {seats}"


def _rank(bots: list[str], duels: list[Duel]) -> None:
    """Who beats whom beyond doubt; a pair within its confidence interval is told as open."""
    beaten: dict[str, Any] = {bot: 0 for bot in bots}
    open_pairs = []
    for duel in duels:
        if abs(duel.mean) <= duel.margin:
            open_pairs.append(f"{duel.challenger} and {duel.opponent}")
        else:
            beaten[duel.challenger if duel.mean > 0 else duel.opponent] += 1
    order = sorted(bots, key=lambda bot: -beaten[bot])
    console.print("ranking: " + " > ".join(f"[bold]{escape(bot)}[/]" for bot in order))
    if open_pairs:
        console.print(f"too close to call with so few: {', '.join(open_pairs)}", markup=False)
