"""Agents of runs at native games: one whose network remembers plays as it did in training."""

import numpy as np
import pytest

from ludus import games, match
from ludus.agent import run_bot
from ludus.algos.agent import PolicyBot, RememberingBot, look
from ludus.core import seeds
from ludus.core.conformance import Play
from ludus.core.errors import Usage
from ludus.core.rules import RandomBot
from ludus.games.ofc.hand import STREETS
from ludus.store.checkpoint import listed
from ludus.store.run import read_config


@pytest.fixture
def remembering(trained):
    """A short training of tic-tac-toe with a memory; its folder."""
    folder, _ = trained("tictactoe", workers="0", decisions=1_000, net={"hidden": (8,), "memory": 8})
    assert listed(folder)
    return folder


class Noted:
    """Plays as another bot and writes down what it saw and chose, game by game and seat by seat."""

    def __init__(self, rules, bot) -> None:
        self.rules, self.bot, self.notes = rules, bot, {}

    def start(self, games: int) -> None:
        self.bot.start(games)

    def choose_in(self, rows, states, rng):
        (obs, legal), seats = look(self.rules, states), self.rules.seat(states)
        actions = self.bot.choose_in(rows, states, rng)
        for row, seat, *seen in zip(rows, seats, obs, legal, actions, strict=True):
            self.notes.setdefault((int(row), int(seat)), []).append(seen)
        return actions


def test_an_agent_with_memory_remembers_every_game_and_seat_on_its_own(remembering):
    game = games.open("tictactoe")
    rules, agent = game.rules, run_bot(game, remembering)
    rng = np.random.default_rng(0)
    for tensor in agent.policy.net.parameters():  # so that what it remembers decides
        tensor.data.copy_(tensor.data.new_tensor(rng.normal(0, 2, tuple(tensor.shape))))
    noted = Noted(rules, agent)
    for lineup in ([noted, RandomBot(rules)], [noted, noted]):
        noted.notes.clear()
        match.played(match.game_steps(rules, lineup, 20, seed=3))
        forgetful = 0
        for story in noted.notes.values():
            memory = blank = np.zeros((1, 16), np.float32)
            for obs, legal, action in story:
                logits, _, memory = agent.policy.look(obs[None], memory)
                alone = agent.policy.look(obs[None], blank)[0]
                assert np.where(legal, logits[0], -np.inf).argmax() == action
                forgetful += np.where(legal, alone[0], -np.inf).argmax() != action
        assert forgetful > 5  # else this would not have been a test of memory


def test_an_agent_with_memory_plays_matches_and_refuses_to_look_ahead(remembering):
    found = match.duel(games.open("tictactoe"), str(remembering), "random", 6, cores=1)
    assert found.points.shape == (6, 2)
    game = games.open("tictactoe")
    rules, agent = game.rules, run_bot(game, remembering)
    assert isinstance(agent, RememberingBot)
    with pytest.raises(Usage, match="can't look ahead"):
        run_bot(game, remembering, "64")
    with pytest.raises(Usage, match="whole games"):
        agent.choose(rules.blank(1), np.zeros((1, 2), np.uint64))


def test_eval_and_play_take_an_agent_with_memory(remembering, ludus, one_core):
    code, out, err = ludus("eval", str(remembering), "--against", "random", "--games", "20")
    assert code == 0 and "random" in out, err
    code, out, err = ludus("play", "tictactoe", "--against", str(remembering), typed="b2\nq")
    assert code == 0 and "seat 1" in out, err


# ---- without look-ahead


def first_choices(rules, agent, states):
    obs, legal = look(rules, states)
    return np.where(legal, agent.policy.logits(obs), -np.inf).argmax(1)


def test_a_search_agent_without_look_ahead_takes_its_networks_first_choices():
    game = games.open("connect4")
    alone = run_bot(game, game.champion, "0")
    states = np.concatenate([some for some, _ in Play(game.rules, rows=8).decisions(20)])
    assert (
        alone.choose(states, seeds.rows(0, len(states))) == first_choices(game.rules, alone, states)
    ).all()


def test_without_look_ahead_nothing_is_judged_but_the_last_street_is_exact():
    game = games.open("ofc")
    alone = run_bot(game, game.champion, "0")
    judging = PolicyBot(game.rules, alone.policy)
    states = np.concatenate([some for some, _ in Play(game.rules, rows=32).decisions(30)])
    rng = seeds.rows(0, len(states))
    chosen, judged = alone.choose(states, rng), judging.choose(states, rng)
    before = states["street"] < STREETS - 1
    assert (chosen[before] == first_choices(game.rules, alone, states[before])).all()
    assert (chosen[~before] == judged[~before]).all() and not before.all()
    assert (chosen != judged)[states["street"] == STREETS - 2].any()


def test_a_search_agent_doubts_its_priors_as_its_run_says():
    game = games.open("blokus")
    temperature = read_config(game.champion).settings.play_temperature
    assert temperature > 1 and run_bot(game, game.champion, "100ms").config.prior_temperature == temperature


def test_a_policy_looks_ahead_as_its_run_says_if_it_is_not_told_how_far():
    game = games.open("ofc")
    futures = read_config(game.champion).settings.play_futures
    assert futures > 0 and run_bot(game, game.champion).futures == futures
    assert run_bot(game, game.champion, "8").futures == 8
    assert type(run_bot(game, game.champion, "0")) is PolicyBot


@pytest.mark.parametrize(
    "changes", [["train", "gym:CartPole-v1"], ["train", "tictactoe", "--algo", "ppo", "--net.memory", "8"]]
)
def test_looking_ahead_by_default_is_refused_where_nobody_can(changes, ludus):
    code, _, err = ludus(*changes, "--ppo.play-futures", "8")
    assert code == 2 and "--ppo.play-futures is for native games" in err


def test_an_agent_with_memory_never_looks_ahead(remembering):
    assert isinstance(run_bot(games.open("tictactoe"), remembering, "0"), RememberingBot)
