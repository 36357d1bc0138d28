"""An actor at its table: what every worker process, and the process of the learner, makes of a plan."""

import numpy as np

from ludus import algos, games
from ludus.algos import Actor, Plan
from ludus.core.table import Table
from ludus.training.seating import Seating
from ludus.training.weights import Past


def make_actor(plan: Plan, index: int, past: Past, beat: np.ndarray) -> tuple[Actor, Table]:
    """beat: int64 [3], see `Actor`"""
    game, algorithm = games.open(plan.game, **plan.switches), algos.find(plan.algo)
    table = game.table(plan.rows)

    seating = Seating(
        plan, index, game, table, past, lambda table, slot: algorithm.make_opponent(plan, table)
    )
    return algorithm.make_actor(plan, index, game, table, seating, beat), table
