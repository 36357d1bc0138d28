"""`ludus eval`: matches between bots and agents of runs: who wins what from whom, and how sure that is."""

import math
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ludus import games, machine, match, switches
from ludus.core.errors import Usage
from ludus.core.rules import Rules
from ludus.gtp.match import EngineDuel, command_line, engine_duel, is_engine
from ludus.match import Terms
from ludus.store.run import is_run, read_config, read_weights

console = Console(highlight=False)
HANDS, GAMES, FEW_GAMES = 10_000, 1_000, 200
"""Of a match; few if somebody thinks long."""


def evaluate_run(
    folder: Path,
    at: str,
    against: list[str],
    think: str,
    words: list[str],
    terms: Terms,
) -> None:
    """The agent of a run against each of some bots, under the rules it was trained on, played in full."""
    config = read_config(folder)
    if ":" in config.game:
        return _evaluate_at_table(folder, at, against, terms)
    read_weights(folder, at)  # fail here, in one place, rather than in every process
    module = games.find(config.game)
    options = {**config.switches, **getattr(module, "EVALUATED", {}), **switches.parsed(config.game, words)}
    agent = f"{folder}{f'@{at}' if at else ''}{f'+{think}' if think else ''}"
    rules = games.rules(config.game, **options)
    known = games.bot_names(config.game)
    _check(config.game, rules, [agent, *against] if think else against, terms)
    opponents = against or known[::-1]
    _play(config.game, rules, options, [(agent, name) for name in opponents], terms)


def _check(game: str, rules: Rules, names: list[str], terms: Terms) -> None:
    """Whether all of them can play, before the first one begins."""
    for name in names:
        if is_engine(name):
            command_line(name, rules, terms)
        else:
            match.player(name, game, rules)


def _evaluate_at_table(folder: Path, at: str, against: list[str], terms: Terms) -> None:
    """Somebody else's environment: alone, or against random play, since it has no bots."""
    if set(against) - {"random"}:
        raise Usage(f"{read_config(folder).game} has no bots: choose --against random")
    duel = match.table_duel(folder, "random", terms.games or GAMES, terms.seed, at)
    table = Table("agent", "games", "score (95 %)", "win %", *duel.stats, box=None, pad_edge=False)
    won = "-" if read_seats(folder) == 1 else f"{100 * duel.won.mean():.1f} ± {100 * duel.win_margin:.1f}"
    stats = [f"{mean:.2f}" for mean in duel.stats.values()]
    score = f"{duel.mean:+.2f} ± {duel.margin:.2f}"
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
    terms: Terms,
) -> None:
    """Every bot against every other; or, if they are told whom, against those only."""
    options = switches.parsed(game, words)
    rules = games.rules(game, **options)
    bots = [f"{bot}+{think}" if think else bot for bot in bots or games.bot_names(game)[::-1]]
    if rules.spec.seats < 2:
        raise Usage(f"{game} has one seat, so there is nobody to play against")
    if against:
        _check(game, rules, [*bots, *against], terms)
        pairs = [(bot, other) for bot in bots for other in against]
        _play(game, rules, options, pairs, terms)
        return
    if len(bots) < 2:
        raise Usage(f"a tournament needs two bots: choose from {', '.join(games.bot_names(game))}")
    pairs = [(bot, other) for i, bot in enumerate(bots) for other in bots[i + 1 :]]
    duels = _play(game, rules, options, pairs, terms)
    _rank(bots, duels)


def _play(
    game: str, rules: Rules, options: dict[str, Any], pairs: list[tuple[str, str]], terms: Terms
) -> list[match.Duel]:
    """Play the matches and show them."""
    module, known = games.find(game), games.bot_names(game)
    match.opening_of(game, terms.opening)  # refused before anybody thinks
    games.warm_up(game, rules, {name for pair in pairs for name in pair if name in known})
    if terms.games is None and any(_thinks_long(name) for pair in pairs for name in pair):
        terms = replace(terms, games=FEW_GAMES)
    unit, per_game = getattr(module, "unit", lambda rules: ("game", 1))(rules)
    deals = _deals(game, rules, per_game, terms)
    plays = f"{deals * rules.spec.seats * per_game:,} {unit}s"
    console.print(f"{game}: {plays} a match, every deal once in each of {rules.spec.seats} seats", end="")
    console.print(
        escape(f" ({', '.join(f'{name}={value}' for name, value in options.items())})" if options else "")
    )
    start = time.perf_counter()
    duels: list[match.Duel] = []
    for challenger, opponent in pairs:
        with console.status(f"{challenger} against {opponent} ..."):
            if is_engine(opponent):
                duels.append(engine_duel(game, challenger, opponent, deals, terms, **options))
                continue
            told = terms.seed, machine.usable_cores(), terms.opening
            duels.append(match.duel(game, challenger, opponent, deals, *told, **options))
    console.print(_table(module, duels, unit, per_game, rules.spec.seats))
    for duel in duels:
        console.print(_agreement(duel, per_game))
        if isinstance(duel, EngineDuel):
            console.print(_pace(duel))
    console.print(f"{len(duels)} matches in {time.perf_counter() - start:.0f} s")
    return duels


def _thinks_long(name: str) -> bool:
    bot = name.partition("+")[0].partition("@")[0]
    searches = is_run(Path(bot)) and read_config(Path(bot)).algo == "alphazero"
    return is_engine(name) or bot == "search" or searches


def _deals(game: str, rules: Rules, per_game: int, terms: Terms) -> int:
    """How many deals to mirror. Two at least, because one has no spread."""
    hands, count = terms.hands, terms.games
    for number in (hands, count):
        if number is not None and number < 1:
            raise Usage(f"{number} is too few to play")
    has_hands = any(switch.name == "hands" for switch in switches.listed(games.find(game).Options))
    if hands is not None and not has_hands:
        raise Usage(f"{game} is not played in hands: say how many --games")
    if count is None:
        count = math.ceil((hands or HANDS) / per_game) if has_hands else GAMES
    return max(2, math.ceil(count / rules.spec.seats))


def _table(module: ModuleType, duels: list[match.Duel], unit: str, per_game: int, seats: int) -> Table:
    columns = getattr(module, "columns", lambda stats: {name: f"{mean:.2f}" for name, mean in stats.items()})
    found: list[dict[str, str]] = [columns(duel.stats) for duel in duels]
    others = "against" if seats == 2 else f"against\n{seats - 1} x"
    heads = (name.replace(" ", "\n") for name in found[0])
    table = Table(
        "bot", others, f"points/{unit}\n(95 %)", *heads, box=None, pad_edge=False, collapse_padding=True
    )
    for column in table.columns[:2]:
        column.overflow = "fold"  # a name that is cut names nobody
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "right", True
    for duel, cells in zip(duels, found, strict=True):
        mean, margin = duel.mean / per_game, duel.margin / per_game
        colour = "green" if mean > margin else "red" if mean < -margin else "yellow"
        points = f"[{colour}]{mean:+.2f} ± {margin:.2f}[/]"
        opponent = _label(duel.opponent)
        if is_engine(opponent):
            opponent = opponent.split()[0]
        table.add_row(f"[bold]{_label(duel.challenger)}", opponent, points, *cells.values())
    return table


def _label(name: str) -> str:
    """Of a run, its folder."""
    return name if is_engine(name) else Path(name).name


def _agreement(duel: match.Duel, per_game: int) -> str:
    """Games won, and whether the two halves, dealt from seeds of their own, and the seats tell the same."""
    won = f"won {100 * duel.won.mean():.1f} ± {100 * duel.win_margin:.1f} % of games"
    halves = " ".join(f"{mean / per_game:+.2f}" for mean in duel.seed_sets)
    seats = " ".join(f"{mean / per_game:+.2f}" for mean in duel.by_seat)
    names = f"{_label(duel.challenger)} - {_label(duel.opponent)}"
    return f"{names}: {won}; seed sets {halves}; by seat {seats}"


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
