"""The weights of a run as a policy."""

from ludus import algos
from ludus.algos import Policy, Weights
from ludus.config import Config
from ludus.core.game import Game
from ludus.store.run import check_fit


def load_policy(
    game: Game, config: Config, weights: Weights, source: str = "the run", in_torch: bool = False
) -> Policy:
    """A policy with these weights, which must fit it."""
    policy = algos.find(config.algo).make_policy(game.spec, config.net, in_torch)
    check_fit(source, weights, policy.blank())
    policy.load_named(weights)
    return policy
