"""How strong the committed agents are, as `figure NAME VALUE UNIT`, with 95 % intervals in the unit.

`strength.py --help` lists parts and sizes. Deals are mirrored, and either half has seeds of its own.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import connect4_positions
from figures import figure
from ludus import games, match
from ludus.core import seeds
from ludus.core.conformance import legal_of
from ludus.core.duel import Duel
from ludus.core.statistics import Z
from ludus.search.bot import warm_up

PARTS = ("ofc", "ofc.think", "blokus.vs_old", "blokus.classic", "connect4")


@dataclass
class Sizes:
    parts: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which of ofc, ofc.think, blokus.vs_old, blokus.classic, connect4. Default: all."""
    agent: str = "champion"
    """OFC's agent, perhaps with look-ahead: `champion+128`."""
    hands: int = 18_000
    """Of OFC against greedy and against rollout; against expert a sixth as many."""
    think: str = "256"
    """How far OFC's agent looks ahead in `ofc.think`: futures, or a time."""
    think_hands: int = 6_000
    old: str = ""
    """The run of an older Blokus Duo agent."""
    classic: str = "champion"
    """Blokus Classic's agent, perhaps with look-ahead: `champion+100ms`."""
    games: int = 400
    """Of Blokus Duo; of Blokus Classic a quarter as many."""
    connect4: str = "champion+200"
    """Connect four's player, perhaps a run: `runs/connect4-quick+200`."""
    positions: int = 2006
    """Of connect four, of all depths from 8 stones on: no more than were solved."""
    seed: int = 0


def between(name: str, value: float, margin: float, unit: str) -> None:
    figure(name, value, f"{unit} ± {margin:.2g}")


def share(name: str, good: float, of: float) -> None:
    """A share of independent trials, in %."""
    part = good / of
    between(name, 100 * part, 100 * Z * math.sqrt(part * (1 - part) / of), "%")


def ofc_duel(challenger: str, opponent: str, hands: int, seed: int) -> Duel:
    game = games.open("ofc").native("played")
    unit = game.spec.seats * game.unit[1]
    warm_up(game, {opponent} & set(game.bots))
    return match.duel(game, challenger, opponent, max(2, -(-hands // unit)), seed)


def points(name: str, duel: Duel) -> None:
    per_game = games.open("ofc").unit[1]
    between(name, duel.mean / per_game, duel.margin / per_game, "points/hand")


def ofc(sizes: Sizes) -> None:
    for opponent, hands in (
        ("greedy", sizes.hands),
        ("rollout", sizes.hands),
        ("expert", sizes.hands // 6),
    ):
        duel = ofc_duel(sizes.agent, opponent, hands, sizes.seed)
        points(f"ofc.vs_{opponent}", duel)
        if opponent == "rollout":
            normal = duel.stats["hands"] * duel.points.size
            share("ofc.entry", duel.stats["entries"] * duel.points.size, normal)
            share("ofc.foul", duel.stats["fouls"] * duel.points.size, normal)


def ofc_think(sizes: Sizes) -> None:
    """Against its policy alone."""
    duel = ofc_duel(f"{sizes.agent}+{sizes.think}", f"{sizes.agent}+0", sizes.think_hands, sizes.seed)
    points("ofc.think", duel)


def blokus_vs_old(sizes: Sizes) -> None:
    if not sizes.old:
        return print("blokus.vs_old left out: --old RUN names an older agent's run", file=sys.stderr)
    game = games.open("blokus")
    duel = match.duel(game, "champion+100ms", f"{Path(sizes.old)}+100ms", sizes.games // 2, sizes.seed)
    between("blokus.vs_old", 100 * duel.won.mean(), 100 * duel.win_margin, "% won")


def blokus_classic(sizes: Sizes) -> None:
    game = games.open("blokus", board="classic")
    duel = match.duel(game, sizes.classic, "search+500", max(2, sizes.games // 16), sizes.seed)
    between("blokus.classic", 100 * duel.won.mean(), 100 * duel.win_margin, "% first places")


def connect4(sizes: Sizes) -> None:
    """The share of solved positions in which the player keeps the value of the position: wins what is won,
    draws what is drawn. In half of them every move does."""
    game, solved = games.open("connect4").native("played"), connect4_positions.load()
    player, count = match.player(sizes.connect4, game), min(sizes.positions, len(solved.states))
    some = np.linspace(0, len(solved.states) - 1, count).astype(np.int64)
    states, perfect = solved.states[some], solved.perfect[some]
    groups = [slice(start, start + 64) for start in range(0, count, 64)]
    actions = [player.choose(states[group], seeds.rows(sizes.seed, len(states[group]))) for group in groups]
    kept = perfect[np.arange(count), np.concatenate(actions)]
    is_choice = (perfect != legal_of(game.rules, states)).any(1)
    share("connect4.perfect", kept.sum(), count)
    share("connect4.perfect_where_it_matters", kept[is_choice].sum(), is_choice.sum())


def main() -> None:
    sizes = tyro.cli(Sizes, description=__doc__)
    unknown = set(sizes.parts) - set(PARTS)
    if unknown:
        sys.exit(f"strength.py has no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    work = dict(zip(PARTS, (ofc, ofc_think, blokus_vs_old, blokus_classic, connect4), strict=True))
    for part in sizes.parts or PARTS:
        work[part](sizes)


if __name__ == "__main__":
    main()
