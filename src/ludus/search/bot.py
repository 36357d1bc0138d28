"""Search as a bot, without a network: every game for two or more that hides nothing has it."""

import numpy as np

from ludus.core.rules import Rules, States, Streams
from ludus.search import Result, Search, SearchConfig


class SearchBot:
    """Looks ahead a number of positions and takes the move it tried most."""

    def __init__(self, rules: Rules, simulations: int = 200) -> None:
        self.rules, self.config = rules, SearchConfig(simulations, exploration=3.0, first_play=0.0)
        self.search = Search(rules, 1, self.config)

    def choose(self, states: States, rng: Streams) -> np.ndarray:
        return self.think(states, rng).best

    def think(self, states: States, rng: Streams) -> Result:
        if len(states) > len(self.search.states):
            self.search = Search(self.rules, len(states), self.config)
        self.search.start(states)
        return self.search.run(rng)
