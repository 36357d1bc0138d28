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

from connect4_solver import UNSOLVED, keeps_value, new_table, solve
from figures import figure
from ludus import games, match
from ludus.core import seeds
from ludus.core.duel import Duel
from ludus.core.rules import RandomBot
from ludus.core.statistics import Z
from ludus.search.bot import warm_up

PARTS = ("ofc", "ofc.think", "blokus.vs_old", "blokus.classic", "connect4")


@dataclass
class Sizes:
    parts: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which of ofc, ofc.think, blokus.vs_old, blokus.classic, connect4. Default: all."""
    agent: str = "champion"
    """OFC's agent, perhaps with look-ahead: `champion+128`."""
    hands: int = 6000
    """Of OFC against greedy; against rollout half, against expert a sixth as many."""
    think: str = "256"
    """How far OFC's agent looks ahead in `ofc.think`: futures, or a time."""
    think_hands: int = 900
    old: str = ""
    """The run of an older Blokus Duo agent."""
    classic: str = ""
    """The run of a Blokus Classic agent."""
    games: int = 400
    """Of Blokus Duo; of Blokus Classic a quarter as many."""
    positions: int = 2000
    """Of connect four."""
    least_stones: int = 8
    """Stones on the board of the emptiest position of connect four."""
    nodes: int = 20_000_000
    """That the solver of connect four searches before it gives a position up."""
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
        ("rollout", sizes.hands // 2),
        ("expert", sizes.hands // 6),
    ):
        duel = ofc_duel(sizes.agent, opponent, hands, sizes.seed)
        points(f"ofc.vs_{opponent}", duel)
        if opponent == "rollout":
            normal = duel.stats["hands"] * duel.points.size
            share("ofc.entry", duel.stats["entries"] * duel.points.size, normal)
            share("ofc.foul", duel.stats["fouls"] * duel.points.size, normal)


def ofc_think(sizes: Sizes) -> None:
    points("ofc.think", ofc_duel(f"{sizes.agent}+{sizes.think}", sizes.agent, sizes.think_hands, sizes.seed))


def blokus_vs_old(sizes: Sizes) -> None:
    if not sizes.old:
        return left_out("blokus.vs_old", "--old RUN names an older agent's run")
    game = games.open("blokus")
    duel = match.duel(game, "champion+100ms", f"{Path(sizes.old)}+100ms", sizes.games // 2, sizes.seed)
    between("blokus.vs_old", 100 * duel.won.mean(), 100 * duel.win_margin, "% won")


def blokus_classic(sizes: Sizes) -> None:
    if not sizes.classic:
        return left_out("blokus.classic", "--classic RUN names an agent's run")
    game = games.open("blokus", board="classic")
    duel = match.duel(game, sizes.classic, "search+500", max(2, sizes.games // 16), sizes.seed)
    between("blokus.classic", 100 * duel.won.mean(), 100 * duel.win_margin, "% first places")


def left_out(name: str, how: str) -> None:
    print(f"{name} left out: {how}", file=sys.stderr)


def connect4_positions(count: int, least_stones: int, seed: int) -> np.ndarray:
    """Distinct open positions of games in which every other move is at random, as many of each depth.

    Random games alone would end soon and be decided by gifts.
    """
    game = games.open("connect4").native("played")
    rules, bots = game.rules, (game.bot("greedy"), RandomBot(game.rules))
    found: dict[int, dict[bytes, np.ndarray]] = {}
    for number in range(50):
        states, rng = rules.blank(400), seeds.rows(seed, 400, "positions", number)
        rules.deal(states, rng)
        while not rules.over(states).all():
            open_rows = np.flatnonzero(~rules.over(states))
            for state in states[open_rows]:
                if state["moves"] >= least_stones:
                    found.setdefault(int(state["moves"]), {})[state.tobytes()] = state.copy()
            coin = rng[open_rows, 0] >> np.uint64(63)
            for side, bot in enumerate(bots):
                rows = open_rows[coin == side]
                if len(rows):
                    some, streams = states[rows], rng[rows]
                    rules.play(some, bot.choose(some, streams), streams)
                    states[rows], rng[rows] = some, streams
    depths = sorted(found)
    taken = [list(found[depth].values())[: -(-count // len(depths))] for depth in depths]
    return np.array([state for states in taken for state in states])


def connect4(sizes: Sizes) -> None:
    """The share of positions in which the agent at 200 simulations keeps the value of the position."""
    agent = match.player("champion+200", games.open("connect4"))
    states = connect4_positions(sizes.positions, sizes.least_stones, sizes.seed)
    actions = np.concatenate(
        [
            agent.choose(states[i : i + 64], seeds.rows(sizes.seed, len(states[i : i + 64])))
            for i in range(0, len(states), 64)
        ]
    )
    keys, known = new_table()
    solved, perfect = 0, 0
    for state, action in zip(states, actions, strict=True):
        mine, taken = state["discs"][state["moves"] % 2], state["discs"][0] | state["discs"][1]
        value = solve(mine, taken, int(state["moves"]), keys, known, sizes.nodes)
        kept = UNSOLVED
        if value != UNSOLVED:
            kept = keeps_value(mine, taken, int(action), value, keys, known, sizes.nodes)
        solved += kept != UNSOLVED
        perfect += kept == 1
    figure("connect4.solved", solved, f"of {len(states)} positions with {sizes.least_stones} stones and more")
    share("connect4.perfect", perfect, solved)


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
