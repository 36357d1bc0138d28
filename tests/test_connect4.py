"""Connect four against known counts and another's implementation, and what mirrors do."""

import numpy as np
import pytest

from ludus import games, match
from ludus.core import seeds
from ludus.core.conformance import Play, legal_of, observation_of, score_of
from ludus.core.errors import Usage

RULES = games.open("connect4").rules


def test_as_many_positions_as_others_counted():
    """OEIS A212693: different positions after n moves."""
    states = RULES.blank(1)
    for count in (7, 49, 238, 1120, 4263, 16422):
        row, column = np.nonzero(legal_of(RULES, states))
        states = states[row]
        RULES.play(states, column.astype(np.int32), seeds.rows(0, len(states)))
        states = np.unique(states)
        assert len(states) == count


def test_the_same_games_as_pettingzoos():
    env = pytest.importorskip("pettingzoo.classic.connect_four_v3").raw_env()
    for seed in range(30):
        env.reset()
        play = Play(RULES, seed, rows=1)
        for states, actions in play.decisions():
            seen = env.observe(env.agent_selection)
            assert (seen["observation"].transpose(2, 0, 1) == observation_of(RULES, states)[0]).all()
            assert (seen["action_mask"] == legal_of(RULES, states)[0]).all()
            env.step(int(actions[0]))
        assert [env.rewards[agent] for agent in env.agents] == score_of(RULES, play.states)[0].tolist()


def test_a_mirrored_game_is_the_same_game():
    mirror = RULES.symmetries[1]
    play = Play(RULES, rows=50)
    mirrored = play.states.copy()
    for states, actions in play.decisions():
        mirrored = mirrored[~RULES.over(mirrored)]
        turned = mirror.turn_planes(observation_of(RULES, states))
        assert (observation_of(RULES, mirrored) == turned).all()
        assert (legal_of(RULES, mirrored) == legal_of(RULES, states)[:, mirror.actions]).all()
        RULES.play(mirrored, mirror.actions[actions], seeds.rows(0, len(mirrored)))


def test_greedy_beats_random():
    assert match.duel(games.open("connect4"), "greedy", "random", 100, cores=1).mean > 0.8


@pytest.mark.parametrize("text", ["X", "X" * 47, "X....../" + "/".join(["......."] * 5)])
def test_positions_that_cannot_be_are_refused(text):
    with pytest.raises(Usage, match="not a position"):
        RULES.parse(text)
