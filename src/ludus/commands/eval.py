"""`ludus eval`: matches between bots and agents of runs: who wins what from whom, and how sure that is."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ludus import games, machine, match, switches
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.gtp.match import EngineDuel, command_line, engine_duel, is_engine
from ludus.match import MatchOptions
from ludus.store.player import parse_player
from ludus.store.run import peek_config, read_config, read_weights

console = Console(highlight=False)
HANDS, GAMES, FEW_GAMES = 10_000, 1_000, 200
"""Of a match; few if somebody thinks long."""


def evaluate_run(
    folder: Path,
    at: str,
    against: list[str],
    think: str,
    words: list[str],
    how: MatchOptions,
) -> None:
    """The agent of a run against each of some bots, under the rules it was trained on, played in full."""
    config = read_config(folder)
    if ":" in config.game:
        return _evaluate_at_table(folder, at, against, how)
    read_weights(folder, at)  # fail here, in one place, rather than in every process
    options = match.run_switches(folder, config.game, words)
    agent = f"{folder}{f'@{at}' if at else ''}{f'+{think}' if think else ''}"
    rules = games.rules(config.game, **options)
    opponents = against or games.bot_names(config.game)[::-1]
    _play(config.game, rules, options, [(agent, name) for name in opponents], how)


def _check(game: str, rules: Rules, names: list[str], how: MatchOptions) -> None:
    """Whether all of them can play, before anything compiles; agents of runs are made later, in full."""
    for name in dict.fromkeys(names):
        if is_engine(name):
            command_line(name, rules, how)
        elif (found := parse_player(name)).is_run:
            match.refuse_other_rules(Path(found.name), game, rules)
        else:
            match.player(name, game, rules)


def _evaluate_at_table(folder: Path, at: str, against: list[str], how: MatchOptions) -> None:
    """Somebody else's environment: alone, or against random play, since it has no bots."""
    if set(against) - {"random"}:
        raise Usage(f"{read_config(folder).game} has no bots: choose --against random")
    duel = match.table_duel(folder, "random", how.games or GAMES, how.seed, at)
    table = Table("agent", "games", "score (95 %)", "win %", *duel.stats, box=None, pad_edge=False)
    won = f"{100 * duel.won.mean():.1f}{_spread(100 * duel.win_margin, 1)}"
    won = "-" if read_seats(folder) == 1 else won
    stats = [f"{mean:.2f}" for mean in duel.stats.values()]
    score = f"{duel.mean:+.2f}{_spread(duel.margin)}"
    table.add_row(f"[bold]{folder.name}", f"{len(duel.points):,}", score, won, *stats)
    console.print(table)


def read_seats(folder: Path) -> int:
    config = read_config(folder)
    table = games.table(config.game, 1, **config.switches)
    table.close()
    return table.spec.seats


def run_tournament(
    game: str,
    bots: list[str],
    against: list[str],
    think: str,
    words: list[str],
    how: MatchOptions,
) -> None:
    """Every bot against every other; or, if they are told whom, against those only."""
    options = switches.parsed(game, words)
    rules = games.rules(game, **options)
    bots = [f"{bot}+{think}" if think else bot for bot in bots or games.bot_names(game)[::-1]]
    if rules.spec.seats < 2:
        raise Usage(f"{game} has one seat, so there is nobody to play against")
    if against:
        pairs = [(bot, other) for bot in bots for other in against]
        _play(game, rules, options, pairs, how)
        return
    if len(bots) < 2:
        raise Usage(f"a tournament needs two bots: choose from {', '.join(games.bot_names(game))}")
    pairs = [(bot, other) for i, bot in enumerate(bots) for other in bots[i + 1 :]]
    duels = _play(game, rules, options, pairs, how)
    _rank(bots, duels)


def _play(
    game: str,
    rules: Rules,
    options: dict[str, Any],
    pairs: list[tuple[str, str]],
    how: MatchOptions,
) -> list[match.Duel]:
    """Play the matches and show them. Everything that can be refused is refused before anything compiles."""
    module, names = games.find(game), [name for pair in pairs for name in pair]
    if how.games is None and any(_thinks_long(name) for name in names):
        how = replace(how, games=FEW_GAMES)
    unit, per_game = getattr(module, "unit", lambda rules: ("game", 1))(rules)
    deals = _deals(game, rules, per_game, how)
    _check(game, rules, names, how)
    if how.opening is not None:
        match.opening_of(game, rules, how.opening)
    games.warm_up(game, rules, set(names) & set(games.bot_names(game)))
    for name in names:
        if parse_player(name).is_run:
            match.player(name, game, rules)  # fail here, in one place, rather than in every process
    how = replace(how, opening=match.opening_of(game, rules, how.opening))
    console.print(_heading(game, rules, options, f"{deals * rules.spec.seats * per_game:,} {unit}s", how))
    start = time.perf_counter()
    duels: list[match.Duel] = []
    for pair in pairs:
        with _progress(pair) as report:
            if is_engine(pair[1]):
                duels.append(engine_duel(game, *pair, deals, how, report, **options))
                continue
            cores = machine.usable_cores()
            duels.append(match.duel(game, *pair, deals, how.seed, cores, how.opening, report, **options))
    _show(module, duels, unit, per_game, rules.spec.seats)
    console.print(f"{len(duels)} matches in {time.perf_counter() - start:.0f} s")
    return duels


def _heading(game: str, rules: Rules, options: dict[str, Any], plays: str, how: MatchOptions) -> str:
    said = f"{game}: {plays} a match, every deal once in each of {rules.spec.seats} seats"
    if how.opening:
        said += f", {how.opening} random first moves"
    return escape(said + (f" ({', '.join(f'{k}={v}' for k, v in options.items())})" if options else ""))


@contextmanager
def _progress(pair: tuple[str, str]) -> Iterator[match.Report]:
    """A bar for one match, if somebody watches."""
    columns = (
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20),
        TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(" - ".join(map(_label, pair)), total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _show(module: ModuleType, duels: list[match.Duel], unit: str, per_game: int, seats: int) -> None:
    """The matches as a table; names that would be broken in two stand above it, with numbers."""
    table = _table(module, duels, unit, per_game, seats)
    wide = console.options.update(max_width=1_000)
    if console.measure(table, options=wide).maximum > console.width:
        for number, duel in enumerate(duels, 1):
            console.print(f"{number}  {_names(duel, ' against ')}", soft_wrap=True)
        table = _table(module, duels, unit, per_game, seats, numbered=True)
    console.print(table)
    for duel in duels:
        console.print(_agreement(duel, per_game), soft_wrap=True)
        if isinstance(duel, EngineDuel):
            console.print(_pace(duel), soft_wrap=True)
    if len(duels[0].points) == 1:
        console.print("One deal has no confidence interval: play more --games.")
    else:
        alike = ", ".join(_names(duel) for duel in duels if duel.margin == 0)
        if alike:
            console.print(f"Every deal ended alike in {alike}: ± 0.00 says nothing about other deals.")
        console.print(
            "[dim]± is the 95 % confidence interval. Halves: the mean of the first and of the second half of "
            "the deals, which have seeds of their own; they should agree.[/]"
        )


def _thinks_long(name: str) -> bool:
    if is_engine(name):
        return True
    player = parse_player(name)
    return peek_config(Path(player.name)).algo == "alphazero" if player.is_run else player.name == "search"


def _deals(game: str, rules: Rules, per_game: int, how: MatchOptions) -> int:
    """How many deals to mirror."""
    hands, count = how.hands, how.games
    for number in (hands, count):
        if number is not None and number < 1:
            raise Usage(f"{number} is too few to play")
    has_hands = any(switch.name == "hands" for switch in switches.listed(games.find(game).Options))
    if hands is not None and not has_hands:
        raise Usage(f"{game} is not played in hands: say how many --games")
    if count is None:
        count = math.ceil((hands or HANDS) / per_game) if has_hands else GAMES
    return math.ceil(count / rules.spec.seats)


def _table(
    module: ModuleType, duels: list[match.Duel], unit: str, per_game: int, seats: int, numbered: bool = False
) -> Table:
    columns = getattr(module, "columns", lambda stats: {name: f"{mean:.2f}" for name, mean in stats.items()})
    found: list[dict[str, str]] = [columns(duel.stats) for duel in duels]
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
        opponent = _label(duel.opponent)
        if is_engine(opponent):
            opponent = opponent.split()[0]
        names = [str(number)] if numbered else [f"[bold]{escape(_label(duel.challenger))}", escape(opponent)]
        table.add_row(*names, f"[{colour}]{mean:+.2f}{_spread(margin)}[/]", *cells.values())
    return table


def _spread(margin: float, digits: int = 2) -> str:
    """` ± 0.31`, or nothing without an interval."""
    return f" ± {margin:.{digits}f}" if math.isfinite(margin) else ""


def _label(name: str) -> str:
    """Of a run, its folder."""
    return name if is_engine(name) else Path(name).name


def _names(duel: match.Duel, between: str = " - ") -> str:
    return escape(f"{_label(duel.challenger)}{between}{_label(duel.opponent)}")


def _agreement(duel: match.Duel, per_game: int) -> str:
    """Games won, and whether the two halves, dealt from seeds of their own, and the seats tell the same."""
    won = f"won {100 * duel.won.mean():.1f}{_spread(100 * duel.win_margin, 1)} % of games"
    halves = " ".join(f"{mean / per_game:+.2f}" for mean in duel.halves)
    seats = " ".join(f"{mean / per_game:+.2f}" for mean in duel.by_seat)
    return f"{_names(duel)}: {won}; halves {halves}; by seat {seats}"


def _pace(duel: EngineDuel) -> str:
    """How long both thought: strength is worth little without its price."""
    told = [
        f"{_label(name)} {1000 * sum(spent) / len(spent):.1f} ms a move (at most {1000 * max(spent):.1f})"
        for name, spent in zip((duel.challenger, duel.opponent), duel.seconds, strict=True)
        if spent
    ]
    return "; ".join(told) + (f"; the engine resigned {duel.resigned} games" if duel.resigned else "")


def _rank(bots: list[str], duels: list[match.Duel]) -> None:
    """Who beats whom beyond doubt; a pair within its confidence interval is told as open."""
    beaten: dict[str, Any] = {bot: 0 for bot in bots}
    open_pairs = []
    for duel in duels:
        if abs(duel.mean) <= duel.margin:
            open_pairs.append(f"{duel.challenger} and {duel.opponent}")
        else:
            beaten[duel.challenger if duel.mean > 0 else duel.opponent] += 1
    order = sorted(bots, key=lambda bot: -beaten[bot])
    console.print("ranking: " + " > ".join(f"[bold]{bot}[/]" for bot in order))
    if open_pairs:
        console.print(f"too close to call with so few: {', '.join(open_pairs)}")
