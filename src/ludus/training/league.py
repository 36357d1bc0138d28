"""League: past selves, and everybody's rating. Kept by the learner."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.training.opponents import PAST, SELF
from ludus.training.pools import Delivery, Pool
from ludus.training.weights import PAST_SLOTS, PastSelves

SPREAD = 3.0


class League:
    """Past selves and everybody's rating, kept by the learner."""

    def __init__(self, pool: Pool, first: np.ndarray, decisions: int) -> None:
        """first: the weights that the training begins with, float32 [size]"""
        from openskill.models import PlackettLuce

        self.model, self.pool = PlackettLuce(), pool
        # Until there is another, the past self is the one we begin as.
        self.past = PastSelves(first)
        self.ratings: dict[str, Any] = {SELF: self.model.rating()}
        self.every = max(decisions // 40, 1)
        """Decisions between two past selves."""
        self._next, self._slot = 0, 0
        self._names: list[str | None] = [None] * PAST_SLOTS

    def add(
        self, deliveries: list[Delivery], vector: Callable[[], np.ndarray], version: int, decisions: int
    ) -> None:
        """Rate by the games just played, and remember ourselves from time to time. vector: our weights"""
        for delivery in deliveries:
            for name, (count, wins) in delivery.report.results.items():
                self._rate(name, wins / count)
        if decisions >= self._next:
            self._next = decisions + self.every
            self._remember(vector(), version)

    def _rate(self, name: str, share: float) -> None:
        """One rated game for each block: won if we took more than half of the games."""
        if name.startswith(f"{PAST}@") and name not in self._names:
            return  # it has left the league in the meantime
        ours, theirs = self.ratings[SELF], self.ratings.setdefault(name, self.model.rating())
        scores = [share, 1 - share]
        (ours,), (theirs,) = self.model.rate([[ours], [theirs]], scores=scores)
        self.ratings[SELF], self.ratings[name] = ours, theirs

    def _remember(self, vector: np.ndarray, version: int) -> None:
        name, old = f"{PAST}@{version}", self._names[self._slot]
        if old is not None:
            self.ratings.pop(old, None)
        self.past.weights[self._slot], self.past.versions[self._slot] = vector, version
        mine = self.ratings[SELF]
        self.ratings[name] = self.model.rating(mine.mu, mine.sigma)
        self._names[self._slot] = name
        self._slot = (self._slot + 1) % PAST_SLOTS
        skill = np.array([self.ratings[n].mu if n else -np.inf for n in self._names])
        odds = np.exp(
            (skill - skill.max()) / SPREAD
        )  # a self that is SPREAD better is drawn 2.7 times as often
        self.past.odds[:] = odds / odds.sum()
        self.pool.publish_past(self.past)

    def state_dict(self) -> dict[str, Any]:
        ratings = {name: [rating.mu, rating.sigma] for name, rating in self.ratings.items()}
        return {
            "ratings": ratings, "next": self._next, "slot": self._slot, "names": list(self._names),
            "past": self.past.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.ratings = {name: self.model.rating(*rating) for name, rating in state["ratings"].items()}
        self._next, self._slot, self._names = state["next"], state["slot"], list(state["names"])
        self.past.load_state_dict(state["past"])
        self.pool.publish_past(self.past)

    def metrics(self) -> dict[str, float]:
        newest = {f"rating/{name}": rating.mu for name, rating in self.ratings.items() if PAST not in name}
        past = [rating.mu for name, rating in self.ratings.items() if PAST in name]
        return newest | ({"rating/past": float(np.mean(past))} if past else {})
