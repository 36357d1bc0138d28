"""The mix of opponents: who may sit in the other seats, and how often."""

import math

from ludus.core.errors import Usage
from ludus.core.game import Game
from ludus.search.bot import player_names

SELF, PAST = "self", "past"


def parse_mix(mix: str, game: Game) -> dict[str, float]:
    """`"self:0.6,past:0.3,greedy:0.1"` as shares that add up to 1."""
    shares: dict[str, float] = {}
    for part in mix.split(","):
        name, _, share = part.strip().partition(":")
        try:
            shares[name] = float(share or 1)
        except ValueError:
            raise Usage(f"{part!r} is not an opponent and its share, as in greedy:0.1") from None
        if not 0 <= shares[name] < math.inf:
            raise Usage(f"{part!r}: a share must be a number from 0 on")
    known = [SELF, PAST, *player_names(game)]
    for name in shares:
        if name not in known:
            raise Usage(f"{game.name} has no opponent {name!r}: choose from {', '.join(known)}")
    total = sum(shares.values())
    if not total:
        raise Usage(f"the shares of {mix!r} add up to nothing")
    return {name: share / total for name, share in shares.items() if share}
