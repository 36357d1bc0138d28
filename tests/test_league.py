"""The league: who won, whatever the number of seats, and what a game that was cut off was worth to whom."""

import itertools
from multiprocessing import get_context

import numpy as np
import pytest

from ludus import algos
from ludus.algos import Plan
from ludus.algos.ppo.actor import PpoActor
from ludus.config import overlay, resolve
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.errors import Usage
from ludus.core.game import Game, RandomPlayer
from ludus.core.report import Report
from ludus.core.spec import Part, Spec
from ludus.core.table import Finished, Turn
from ludus.nets import NetConfig
from ludus.training.build import open_game
from ludus.training.seating import LEARNER, Seating
from ludus.training.weights import Past
from ludus.training.worker import make_actor

# ---- ratings


class Scores:
    """A table of whose games only the seats are known."""

    rows = 1

    def __init__(self, seats: int) -> None:
        self.spec = Spec("made up", seats, 2, (Part("obs", (1,)),))


def share_won(lineup: list[int], scores: list[list[float]]) -> float:
    """What the learning policy took of games with these scores against random players, number 1."""
    table, game = Scores(len(lineup)), Game()
    game.name, game.spec = "made up", table.spec
    plan = Plan(game.name, {}, "ppo", None, NetConfig(), 1, 1, "self:0.5,random:0.5")
    seating, report = Seating(plan, 0, game, table, None, None), Report(stats=np.zeros(0))
    for score in scores:
        seating.lineup[0] = lineup
        done = Finished(np.array([0]), np.array([score], np.float32), np.zeros((1, len(lineup), 0)))
        seating._note_results(done, seating.lineup[done.rows] == LEARNER, report)
    count, wins = report.results["random"]
    return wins / count


@pytest.mark.parametrize("lineup", [[0, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]])
def test_equal_players_take_a_half_whatever_their_seats(lineup):
    places = [float(place) for place in range(len(lineup))]
    assert share_won(lineup, list(itertools.permutations(places))) == pytest.approx(0.5)
    assert share_won(lineup, [[1.0] * len(lineup)]) == pytest.approx(0.5)


def test_every_pair_of_seats_counts():
    assert share_won([0, 1, 1], [[5, 3, 9]]) == pytest.approx(0.5)  # above one, below the other
    assert share_won([0, 0, 1], [[5, 3, 4]]) == pytest.approx(0.5)
    assert share_won([0, 0, 1], [[5, 4, 4]]) == pytest.approx(0.75)
    assert share_won([0, 1], [[2, 1], [1, 1], [0, 1]]) == pytest.approx(0.5)
    assert share_won([0, 1, 1], [[2, 1, 0]]) == 1 and share_won([0, 0, 1], [[1, 0, 2]]) == 0


# ---- games that are cut off


class Seen:
    """A policy that always takes the first action and values a position by the two numbers it is shown."""

    def load(self, vector) -> None: ...

    def look(self, obs, memory=None):
        return np.zeros((len(obs), 1), np.float32), self.value(obs), None

    def draw(self, logits, legal, rng, temperature):
        return np.zeros(len(legal), np.int32), np.zeros(len(legal), np.float32)

    def value(self, obs, memory=None):
        return 100 * obs[:, 0] + obs[:, 1]


def filled(opponents: str, moves: int, steps: int = 12) -> tuple[Block, PpoActor]:
    config = overlay(resolve("cut_env:Cut"), {"opponents": opponents}, "test")
    plan = Plan(
        config.game, {"moves": moves}, config.algo, config.settings, config.net, 4, steps, opponents, seed=1
    )
    past = Past(get_context(), np.zeros(1, np.float32))
    actor, _ = make_actor(plan, 0, past, np.zeros(3, np.int64))
    actor.policy = Seen()
    block = Block(algos.find("ppo").columns(config, actor.spec), steps, 4)
    actor.fill(block)
    return block, actor


def test_every_seat_of_a_game_cut_off_is_worth_what_it_sees_itself(importable):
    block, _ = filled("self", moves=3)
    assert block["ended"].any()
    for t, n in np.argwhere(block["ended"]):
        assert block["bootstrap"][t, n].tolist() == [103, 203]
    assert (block["bootstrap"][~block["ended"]] == 0).all()


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_a_game_that_an_opponent_cuts_off_is_worth_what_we_see(importable, moves):
    """Whoever makes the last move, and however many games the opponents play among themselves until ours."""
    block, actor = filled("self:0.3,random:0.7", moves)
    assert block["ended"].any()
    for t, n in np.argwhere(block["ended"]):
        assert block["bootstrap"][t, n].tolist() == [100 + moves, 200 + moves]
    actor.table.close()


def test_a_game_that_was_lost_is_worth_nobody_knows_what(importable):
    _, actor = filled("self", moves=100, steps=2)
    actor.turn = actor.turn._replace(truncated=np.array([True, False, True, False]))
    assert np.isnan(actor._bootstrap()).all(1).tolist() == [True, False, True, False]


# ---- random opponents


def test_random_players_draw_vectors_from_the_whole_box():
    low, high = np.array([[-2.0, 0.0]], np.float32), np.array([[1.0, 10.0]], np.float32)
    spec, rows = Spec("box", 2, 0, (Part("obs", (1,)),), box=(low, high)), 400
    player = RandomPlayer(spec, seeds.rows(0, rows))
    turn = Turn(*[np.zeros((rows, 0), bool)] * 6)
    drawn = np.concatenate([player.choose(np.arange(rows), turn) for _ in range(20)])
    assert drawn.shape == (20 * rows, 1, 2) and drawn.dtype == np.float32
    assert (drawn >= low).all() and (drawn <= high).all()
    np.testing.assert_allclose(drawn.mean(0), (low + high) / 2, atol=0.15)
    np.testing.assert_allclose(drawn.min(0), low, atol=0.05)
    np.testing.assert_allclose(drawn.max(0), high, atol=0.05)


def test_random_opponents_play_vectors_in_training(trained, importable):
    _, readings = trained(
        "cut_env:Cut", switches={"vectors": True}, opponents="self:0.4,random:0.3,past:0.3", workers="0",
        decisions=2_000,
    )  # fmt: skip
    assert readings[-1]["seated/random"] > 0.05 and readings[-1]["seated/past"] > 0.05


def test_random_opponents_without_bounds_are_refused(importable):
    told = {"switches": {"vectors": True, "unbounded": True}, "opponents": "self:0.5,random:0.5"}
    with pytest.raises(Usage, match="without bounds"):
        open_game(overlay(resolve("cut_env:Cut", "test"), told, "test"))
