"""AlphaZero: what is remembered of games is true and learned the right way round, and trainings survive."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import solved
from commandline import one_line
from ludus import games, match
from ludus.agent import load
from ludus.algos import Plan
from ludus.algos.alphazero import Config, record, utility
from ludus.algos.alphazero.actor import SelfPlay
from ludus.algos.alphazero.evaluators import CpuNetwork
from ludus.algos.alphazero.learner import AlphaZeroLearner, packed
from ludus.algos.alphazero.replay import Replay, find_listed
from ludus.algos.cuda_graph import copied, rate_of
from ludus.core import seeds
from ludus.core.block import Block
from ludus.core.conformance import Play, check, legal_of, observation_of
from ludus.core.rules import RandomBot
from ludus.nets import NetConfig
from ludus.processes import make_context
from ludus.search import Search, SearchConfig
from ludus.search.evaluators import action_places
from ludus.store import checkpoint
from ludus.store.run import EVENTS, read_lines, read_weights
from ludus.training.build import flat_weights
from ludus.training.seating import Seating
from ludus.training.weights import Past
from trainings import gone, limit, ludus_command, wait_until, workers_of

CONNECT4, BLOKUS = games.open("connect4").rules, games.open("blokus").rules
NET = NetConfig(channels=8, blocks=1)
CONFIG = Config(search=SearchConfig(4, "gumbel", 1.0, width=64), fast_simulations=2, minibatch=32)
TINY = {
    "algo": "alphazero", "rows": 8, "steps": 8, "net": {"channels": 8, "blocks": 1},
    "alphazero": {
        "search": {"simulations": 6}, "fast_simulations": 2, "minibatch": 32, "learning_starts": 128,
    },
}  # fmt: skip


def flat(states, actions, counts, rng, logits, values):
    """An evaluator that knows nothing."""
    logits[:], values[:] = 0, 0


def self_play(name, rows, steps, index=0, workers=1, config=CONFIG, opponents="self"):
    """An actor whose search has no network."""
    plan = Plan(name, {}, "alphazero", config, NET, rows, steps, seed=3, workers=workers, opponents=opponents)
    game = games.open(name)
    table, past = game.table(rows), Past(make_context(), np.zeros(1, np.float32))
    seating = Seating(plan, index, game, table, past, None)
    return SelfPlay(plan, index, table, seating, np.zeros(3, np.int64), flat)


def played_block(rules, steps=32, rows=8, config=CONFIG):
    """Decisions of finished games, found by a search without a network."""
    actor, block = (
        self_play(rules.spec.game, rows, steps, config=config),
        Block(record(config, rules.spec), steps, rows),
    )
    actor.fill(block)
    return block


def column(block, name):
    return block[name].reshape(block.decisions, *block[name].shape[2:])


def states_of(rules, block):
    return column(block, "state").copy().view(rules.spec.state).reshape(-1)


def remembered(rules, block, room=1_000):
    replay = Replay(rules, record(CONFIG, rules.spec), room, seed=0)
    replay.add(block)
    return replay


@pytest.fixture(scope="module")
def connect4_block():
    return played_block(CONNECT4)


@pytest.fixture(scope="module")
def blokus_block():
    return played_block(BLOKUS, steps=40)


# ---- what is remembered


def first_moves(share):
    """With which move each remembered game begins, once all games that were begun by `_spread` are over."""
    config = replace(CONFIG, random_openings=share)
    actor, block = self_play("connect4", 24, 48, config=config), Block(record(config, CONNECT4.spec), 48, 24)
    for _ in range(2):
        actor.fill(block)  # 48 decisions a row, and no game has more than 42
    moves = states_of(CONNECT4, block)["moves"].astype(int)
    return moves[1:][np.diff(moves) != 1]


def test_random_moves_of_an_opening_are_not_remembered():
    assert set(first_moves(0.0)) == {0}
    assert set(first_moves(1.0)) == {2}
    assert set(first_moves(0.5)) == {0, 2}


def test_games_with_others_have_no_random_opening():
    """Only one side would play at random, and be rated by that."""
    config = replace(CONFIG, random_openings=1.0)
    actor = self_play("connect4", 32, 24, config=config, opponents="self:0.5,random:0.5")
    block = Block(record(config, CONNECT4.spec), 24, 32)
    for _ in range(4):  # 96 decisions a row, and no game has more than 42
        actor.fill(block)
    think, searched = actor._think, {True: set(), False: set()}

    def noting(*args):
        for mixed, moves in zip(actor.seating.lineup.any(1), actor.table.states["moves"], strict=True):
            searched[bool(mixed)].add(int(moves))
        return think(*args)

    actor._think = noting
    actor.fill(block)
    assert min(searched[False]) == 2 and {0, 1} <= searched[True]


def test_random_openings_are_made_of_all_moves():
    """A search that always wants the middle plays it, except in an opening."""

    def middle(states, actions, counts, rng, logits, values):
        logits[:], values[:] = np.where(actions == 3, 9, 0)[:, : logits.shape[1]], 0

    config = replace(CONFIG, random_openings=1.0, search=replace(CONFIG.search, noise=0.0))
    actor = self_play("connect4", 32, 48, config=config)
    actor.network, block = middle, Block(record(config, CONNECT4.spec), 48, 32)
    for _ in range(2):
        actor.fill(block)
    states = states_of(CONNECT4, block)
    opened = states[states["moves"] == 2]
    firsts = {CONNECT4.text(state) for state in opened}
    assert len(firsts) > 15  # of 7 * 7


def games_of(rules, block):
    """Slices of a block that are games or the end of one: their moves follow each other."""
    moves = states_of(rules, block)["moves"].astype(int)
    starts = [0, *np.flatnonzero(np.diff(moves) != 1) + 1, len(moves)]
    return [slice(*pair) for pair in zip(starts, starts[1:], strict=False)]


def test_games_are_not_all_at_the_same_point():
    """Games that begin together would end together."""
    actor = self_play("connect4", rows=200, steps=1)
    actor.fill(Block(record(CONFIG, CONNECT4.spec), 1, 200))
    moves = actor.table.states["moves"]
    assert not CONNECT4.over(actor.table.states).any()
    assert len(np.unique(moves)) > 10 and np.bincount(moves).max() < 100


def simulations_by_move(index, monkeypatch):
    actor, told = self_play("connect4", rows=8, steps=32, index=index, workers=2), []
    think = actor._think
    monkeypatch.setattr(actor, "_think", lambda count, full: (told.append(count), think(count, full))[1])
    actor.fill(Block(record(CONFIG, CONNECT4.spec), 32, 8))
    return told[:12]


def test_no_worker_waits_for_one_that_thinks_longer(monkeypatch):
    first, second = (simulations_by_move(index, monkeypatch) for index in (0, 1))
    assert first == second and set(first) == {4, 2}


def test_every_decision_of_a_game_knows_how_it_ended(connect4_block):
    """Played again from the states: the same scores, and a value that whoever won likes."""
    states = states_of(CONNECT4, connect4_block)
    value, score = column(connect4_block, "value"), column(connect4_block, "score")
    found = games_of(CONNECT4, connect4_block)[:-1]  # the last one may go on in the next block
    assert len(found) > 5
    for some in found:
        last = states[some][-1:]
        ends = []
        for action in np.flatnonzero(legal_of(CONNECT4, last)[0]):
            after = last.copy()
            CONNECT4.play(after, np.array([action], np.int32), seeds.rows(0, 1))
            if CONNECT4.over(after)[0]:
                points = np.zeros((1, 2), np.float32)
                CONNECT4.score(after, points)
                ends.append(points[0].tolist())
        assert score[some][0].tolist() in ends
        assert (score[some] == score[some][0]).all()
        assert (value[some] == utility(CONFIG, CONNECT4.spec)(score[some])).all()


def test_whoever_made_the_last_move_and_won_is_taught_a_good_value_and_the_loser_a_bad_one(connect4_block):
    states, replay = states_of(CONNECT4, connect4_block), remembered(CONNECT4, connect4_block)
    score = column(connect4_block, "score")
    checked = 0
    for some in games_of(CONNECT4, connect4_block)[:-1]:
        at = np.arange(some.start, some.stop)[-2:]
        if len(at) == 2 and score[at[1]].any():
            winner = CONNECT4.seat(states[at[1:]])[0]
            assert score[at[1], winner] == 1
            minibatch = replay.minibatch(at, np.zeros(2, int), root_value_weight=0.0, scale=20.0)
            assert minibatch.value[0, 0] < -0.7 and minibatch.value[1, 0] > 0.7
            assert minibatch.score[:, 0].tolist() == pytest.approx([-0.05, 0.05])
            checked += 1
    assert checked > 5


def test_owners_are_the_final_board_as_the_seat_that_decides_sees_it(blokus_block):
    """Squares that are taken already stay with their owner; in the end squares are what was scored."""
    replay, count = remembered(BLOKUS, blokus_block), blokus_block.decisions
    minibatch = replay.minibatch(np.arange(count), np.zeros(count, int), root_value_weight=0.0, scale=1.0)
    owner = minibatch.owner.reshape(count, 2, 14, 14)
    assert (owner >= minibatch.obs[:, [0, 3]]).all() and (owner.sum(1) <= 1).all()
    squares = owner.sum((2, 3)).astype(int)
    plain = squares.max(1) < 89  # who placed everything has 15 or 20 points more
    assert plain.sum() > 100
    assert (squares[:, 0] - squares[:, 1] == minibatch.score[:, 0])[plain].all()
    assert (owner.sum((1, 2, 3)) > minibatch.obs[:, [0, 3]].sum((1, 2, 3))).any()


def test_a_stuck_seat_is_searched_through_and_valued():
    """Where one seat can only pass, the search sees what the other still gets."""
    stuck = [
        states[legal_of(BLOKUS, states)[:, -1]]
        for states, _ in Play(BLOKUS, rows=16).decisions()
        if legal_of(BLOKUS, states)[:, -1].any()
    ]
    states = np.concatenate(stuck)
    points = np.zeros((len(states), 2), np.float32)
    search = Search(BLOKUS, len(states), SearchConfig(60, "gumbel"), flat, lambda score: np.tanh(score / 20))
    search.start(states)
    result = search.run(seeds.rows(0, len(states)))
    assert (result.best == BLOKUS.spec.actions - 1).all() and (result.counts == 1).all()
    assert (search.tree.used[: len(states)] > 2).all()  # beyond the pass
    BLOKUS.score(states, points)
    late = search.tree.edges[np.arange(len(states)), 1] < 5  # few moves are left, so the end is seen
    mover = BLOKUS.seat(states)
    known = result.value[np.arange(len(states)), mover][late]
    assert late.sum() > 5 and (np.abs(known) > 0.01).mean() > 0.8
    assert np.corrcoef(known, points[np.arange(len(states)), mover][late])[0, 1] > 0.6
    assert np.allclose(result.value.sum(1), 0, atol=1e-5)


# ---- replay


def image_games(rules, symmetry, rows, moves):
    """Positions by random play, and those by the turned moves."""
    play, to_image = Play(rules, rows=rows), np.argsort(symmetry.actions)
    image = play.states.copy()
    for states, actions in play.decisions(most=moves):
        if len(states) < rows:
            return
        yield states, image.copy()
        rules.play(image, to_image[actions].astype(np.int32), seeds.rows(0, rows))


@pytest.mark.parametrize(
    ("rules", "number", "moves"),
    [(CONNECT4, 0, 6), (CONNECT4, 1, 12), (BLOKUS, 0, 5), (BLOKUS, 1, 30)],
    ids=["connect4", "connect4 mirrored", "blokus", "blokus flipped"],
)
def test_a_turned_minibatch_is_that_of_the_turned_game(rules, number, moves):
    """Board, legal moves, the search's moves and owners turn together; played, not computed."""
    rows, places = 6, action_places(rules.spec)
    to_image = np.argsort(rules.symmetries[number].actions)
    for states, image in image_games(rules, rules.symmetries[number], rows, moves):
        legal, turned_legal = legal_of(rules, states), legal_of(rules, image)
        block = Block(record(CONFIG, rules.spec), 1, rows)
        block["state"][0] = np.ascontiguousarray(states).view(np.uint8).reshape(rows, -1)
        listed = block["action"].shape[-1]
        for row in range(rows):
            found = np.flatnonzero(legal[row])[:listed]
            block["action"][0, row, : len(found)], block["policy"][0, row, : len(found)] = found, 1
        if rules.spec.owned:
            block["owner"][0] = packed_owners(rules, states)
        minibatch = remembered(rules, block).minibatch(np.arange(rows), np.full(rows, number), 0.0, 1.0)
        assert (minibatch.obs == observation_of(rules, image)).all()
        for row in range(rows):
            assert set(minibatch.places[row, : minibatch.counts[row]]) == set(places[turned_legal[row]])
            count = int(block["policy"][0, row].sum())
            expected = places[to_image[block["action"][0, row, :count]]]
            assert (minibatch.places[row, minibatch.listed[row, :count]] == expected).all()
        if rules.spec.owned:
            bits = np.unpackbits(packed_owners(rules, image), 1, count=minibatch.owner[0].size)
            assert (minibatch.owner.reshape(rows, -1) == bits).all()
            assert number == 0 or (minibatch.owner != 0).any() or not states["mine"].any()


def test_what_a_search_lists_is_found_among_the_legal_actions():
    """What there was no room for is left to the rest, and so is what has no share."""
    legal = np.array([[2, 5, 7, 9], [3, 4, 8, 0]], np.int32)
    actions = np.array([[9, 2, 5, 6], [8, 0, 3, 0]], np.int32)
    policy, out = np.array([[4, 3, 2, 1], [4, 3, 2, 0]], np.float32), np.zeros((2, 4), np.int32)
    find_listed(legal, np.array([4, 3], np.int32), actions, policy, out)
    assert policy.tolist() == [[4, 3, 2, 0], [4, 0, 2, 0]]
    assert out[0, :3].tolist() == [3, 0, 1] and out[1, [0, 2]].tolist() == [2, 0]


def packed_owners(rules, states):
    out = np.zeros((len(states), rules.spec.seats, np.prod(rules.spec.obs_shape[1:])), bool)
    rules.owners(states, rules.seat(states), out)
    return np.packbits(out.reshape(len(states), -1), 1)


@pytest.mark.parametrize("board", ["duo", "classic"])
def test_every_action_has_a_place_of_its_own(board):
    places = games.open("blokus", board=board).rules.spec.places
    assert np.unique(places).size == places.size and places.min() >= 0


def test_newer_decisions_are_drawn_more_often_as_much_as_asked(connect4_block):
    replay = remembered(CONNECT4, connect4_block, room=256)
    replay.add(connect4_block)  # a second time round: the newest is in the middle or at the end
    halves = {}
    for newer in (1.0, 2.0):
        at, which, age = replay.draw(20_000, newer)
        order = (replay.added - 1 - at) % replay.room  # 0 is the newest
        assert order.min() == 0 and order.max() == replay.size - 1 and set(which) == {0, 1}
        halves[newer] = (order < replay.size / 2).mean()
        assert age == pytest.approx(order.mean() / replay.room)
    assert halves[1.0] == pytest.approx(0.5, abs=0.02) and halves[2.0] == pytest.approx(0.71, abs=0.02)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 5), st.integers(1, 40))
def test_what_is_remembered_survives_into_any_room(room, times, other):
    """The newest of all that was added, in its order, and the same draws after it."""
    columns = record(CONFIG, CONNECT4.spec)
    one, two = (Replay(CONNECT4, columns, size, seed=1) for size in (room, other))
    block, added = Block(columns, 1, 7), 0
    for _ in range(times):
        block["score"][0, :, 0] = added + np.arange(7)
        added += 7
        one.add(block)
    two.load_state_dict(one.state_dict())
    kept = min(added, room, other)
    assert two.size == kept
    newest = (two.added - 1 - np.arange(kept)) % other
    assert two._columns["score"][newest, 0].tolist() == list(range(added - 1, added - 1 - kept, -1))
    if kept and other == room:
        pairs = [one.draw(9, 1.5), two.draw(9, 1.5)]
        scores = [replay._columns["score"][pair[0]] for replay, pair in zip((one, two), pairs, strict=True)]
        assert (scores[0] == scores[1]).all()


# ---- seats that don't play against each other


@pytest.fixture
def together(monkeypatch):
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    return games.open("together").rules


def test_a_game_that_is_not_zero_sum_is_valued_for_each_seat(together):
    """Both seats get the same points: what one is told to expect is not what the other loses."""
    config = replace(CONFIG, learning_rate=1e-2, score_scale=4.0)
    assert not [problem for _, problem in check(together) if problem] and together.spec.values == 2
    block = played_block(together, config=config)
    replay = Replay(together, record(config, together.spec), 1_000, seed=0)
    replay.add(block)
    minibatch = replay.minibatch(np.arange(64), np.zeros(64, int), root_value_weight=0.0, scale=4.0)
    assert minibatch.value.shape == (64, 2) and (minibatch.value[:, 0] == minibatch.value[:, 1]).all()
    assert np.allclose(minibatch.value, np.tanh(minibatch.score)) and (minibatch.value >= 0).all()
    torch.manual_seed(0)
    learner, network = AlphaZeroLearner(together, NET, config), CpuNetwork(together, NET)
    for _ in range(80):
        learner._update(packed(minibatch))
    network.load(flat_weights(learner.net))
    states = states_of(together, block)[:64]
    logits, values = np.zeros((64, 3), np.float32), np.zeros((64, 2), np.float32)
    actions, counts = np.tile(np.arange(3, dtype=np.int32), (64, 1)), np.full(64, 3, np.int32)
    network(states, actions, counts, seeds.rows(0, 64), logits, values)
    assert np.corrcoef(values[:, 0], values[:, 1])[0, 1] > 0.5 and values.mean(0).min() > 0


# ---- learning from a minibatch


def test_moves_that_are_not_listed_are_not_unlearned(blokus_block):
    """The policy has a rest for all of them together, which the network learns to leave them."""
    policy = column(blokus_block, "policy")
    listed, full = policy.sum(1), column(blokus_block, "full")
    many = legal_of(BLOKUS, states_of(BLOKUS, blokus_block)).sum(1) > 100
    assert (listed <= 1.001).all() and (listed[many & full] < 0.9).mean() > 0.5
    at = np.flatnonzero(many & full)[:4]
    learner, minibatch = (
        AlphaZeroLearner(BLOKUS, NET, CONFIG),
        remembered(BLOKUS, blokus_block).minibatch(at, np.zeros(len(at), int), 0.0, 20.0),
    )
    choice = torch.zeros((len(at), int(BLOKUS.spec.places.max()) + 1), requires_grad=True)
    nothing = torch.zeros((len(at), 1))
    learner.net = lambda obs: (choice, nothing, nothing, None)
    optimiser = torch.optim.Adam([choice], lr=0.1)
    for _ in range(300):
        losses, _ = learner._losses([torch.from_numpy(part) for part in minibatch[:-1]])
        optimiser.zero_grad()
        losses[0].backward()
        optimiser.step()
    assert abs(losses[0].item()) < 0.01  # nothing is left to learn
    for row in range(len(at)):
        places = torch.from_numpy(minibatch.places[row, : minibatch.counts[row]]).long()
        shares = dict(zip(places.tolist(), choice[row, places].softmax(0).tolist(), strict=True))
        for place, wanted in zip(places[minibatch.listed[row]].tolist(), minibatch.policy[row], strict=True):
            assert shares.pop(place) == pytest.approx(wanted, abs=0.02)
        assert sum(shares.values()) == pytest.approx(1 - minibatch.policy[row].sum(), abs=0.03)
        assert min(shares.values()) > 0.5 * sum(shares.values()) / len(shares)


def test_only_full_searches_teach_the_policy(blokus_block):
    learner, replay = AlphaZeroLearner(BLOKUS, NET, CONFIG), remembered(BLOKUS, blokus_block)
    minibatch = replay.minibatch(np.arange(16), np.zeros(16, int), 0.25, 20.0)
    full = np.arange(16) % 2 == 0

    def losses(policy):
        given = minibatch._replace(full=full, policy=policy)
        return [loss.item() for loss in learner._losses([torch.from_numpy(part) for part in given[:-1]])[0]]

    certain = np.eye(minibatch.policy.shape[1], dtype=np.float32)[0]
    quick, changed = minibatch.policy.copy(), minibatch.policy.copy()
    quick[~full], changed[full] = certain, certain
    before = losses(minibatch.policy)
    assert losses(quick) == before
    assert losses(changed)[0] != before[0] and losses(changed)[1:] == before[1:]


@pytest.mark.parametrize("rules", [CONNECT4, BLOKUS], ids=["connect4", "blokus"])
def test_a_few_decisions_can_be_learned_by_heart(rules, request):
    """Choices, values and owners fit together: else no network could learn them."""
    block = request.getfixturevalue(f"{rules.spec.game}_block")
    torch.manual_seed(0)
    config = replace(CONFIG, learning_rate=1e-2, weight_decay=0.0)
    learner = AlphaZeroLearner(rules, NetConfig(channels=16, blocks=2), config)
    at = np.unique(states_of(rules, block), return_index=True)[1][:8]
    minibatch = remembered(rules, block).minibatch(at, np.arange(8) % 2, 0.0, 20.0)
    page = packed(minibatch._replace(full=np.ones(8, bool)))
    first = learner._update(page).numpy()
    for _ in range(150):
        last = learner._update(page).numpy()
    assert last[0] < 0.3 * first[0] and last[1] < 0.1 and (last[:4] <= first[:4]).all()


# ---- whole trainings


def test_the_learning_rate_that_is_used_is_told(connect4_block):
    config = replace(CONFIG, learning_rate=4e-3, learning_rate_end=0.5, learning_starts=1)
    learner = AlphaZeroLearner(CONNECT4, NET, config)
    for progress, scale, rate in ((0.0, 1.0, 4e-3), (0.5, 1.0, 3e-3), (1.0, 0.5, 1e-3)):
        learner.progress, learner.rate_scale = progress, scale
        told = learner.learn([connect4_block], off_policy=False)
        assert told["learner/learning_rate"] == pytest.approx(rate)
        assert told["learner/updates"] > 0 and rate_of(learner.optimiser) == pytest.approx(rate)


def test_a_checkpoint_of_a_gpu_is_gone_on_from_on_a_cpu(connect4_block):
    first, other = (AlphaZeroLearner(CONNECT4, NET, replace(CONFIG, learning_starts=1)) for _ in range(2))
    first.learn([connect4_block], off_policy=False)
    kept = copied(first.state_dict())
    kept["optimiser"]["param_groups"][0].update(lr=torch.tensor(0.5), capturable=True, weight_decay=0.3)
    other.net.load_state_dict(first.net.state_dict())
    other.load_state_dict(kept)
    for learner in (first, other):
        learner.learn([connect4_block], off_policy=False)
    (group,) = other.optimiser.param_groups
    assert not group["capturable"] and group["weight_decay"] == CONFIG.weight_decay
    assert isinstance(group["lr"], float) and other.replay.added == first.replay.added
    for mine, its in zip(other.net.parameters(), first.net.parameters(), strict=True):
        assert torch.equal(mine, its)


def fewer(changes):
    """The tiny training with some of its groups changed."""
    return {**TINY, **changes, "alphazero": {**TINY["alphazero"], **changes.get("alphazero", {})}}


def test_tictactoe_is_learned_by_the_network_itself(trained, one_core):
    """In all positions in which some moves are mistakes. Ten untrained networks: 0.37 to 0.51 and -0.03 to
    0.08; ten seeds of this training: 0.66 to 0.76 and 0.39 to 0.45."""
    told = {
        "rows": 32, "decisions": 3_000, "workers": "0", "sync": True, "eval_every": "0",
        "net": {"channels": 16, "blocks": 1},
        "alphazero": {
            "search": {"simulations": 16}, "full_share": 1.0, "minibatch": 128, "replay_ratio": 16.0,
            "learning_starts": 256, "learning_rate": 4e-3, "score_weight": 0.0,
        },
    }  # fmt: skip
    folder, _ = trained("tictactoe", **fewer(told))
    right, correlation = solved.known_without_search(load(folder), solved.tictactoe())
    assert right > 0.58 and correlation > 0.25


def test_connect4_is_learned_by_the_network_itself(trained, one_core):
    """Ten untrained networks: -0.11 to 0.06; ten seeds of this training: 0.19 to 0.38."""
    told = {
        "rows": 32, "steps": 16, "decisions": 4_000, "workers": "0", "sync": True, "eval_every": "0",
        "opponents": "self", "net": {"channels": 16, "blocks": 1},
        "alphazero": {
            "search": {"simulations": 16, "c_scale": 0.3}, "full_share": 1.0, "minibatch": 128,
            "replay_ratio": 16.0, "learning_starts": 512, "learning_rate": 4e-3, "score_weight": 0.0,
            "root_value_weight": 0.75,
        },
    }  # fmt: skip
    folder, _ = trained("connect4", **fewer(told))
    _, correlation = solved.known_without_search(load(folder), solved.connect4())
    assert correlation > 0.12


def test_five_workers_killed_at_random_cost_no_decision(trained):
    rng, killed = random.Random(1), []

    def kill_one(metrics: dict) -> None:
        workers = workers_of(psutil.Process())
        if len(killed) < 5 and workers and rng.random() < 0.7:
            time.sleep(rng.random() * 0.02)
            killed.append(rng.choice(workers))
            killed[-1].kill()

    _, readings = trained("connect4", kill_one, **TINY, workers="2", decisions=2_000)
    assert len(killed) == 5 and gone(killed)
    assert 3 <= readings[-1]["workers/replaced"] <= 5
    counts = [reading["decisions"] for reading in readings]
    assert counts == list(range(128, counts[-1] + 1, 128)) and 2_000 <= counts[-1] < 2_128


@pytest.mark.parametrize(("number", "inference"), [(signal.SIGTERM, "local"), (signal.SIGINT, "central")])
def test_a_signal_ends_searches_within_seconds_and_saves(number, inference, tmp_path):
    words = (
        "--preset test --decisions 1000000000 --log-s 0 --device cpu --run run --alphazero.replay-buffer 5000"
    )
    words += f" --alphazero.search.simulations 8 --workers 2 --inference {inference}"
    process = subprocess.Popen(
        **ludus_command("train", "blokus", *words.split(), cwd=tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert any("decisions" in line for line in iter(process.stdout.readline, "")), process.stderr.read()
        family, asked = psutil.Process(process.pid).children(recursive=True), time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - asked < limit(10)
        assert process.returncode == 130 and "ludus resume" in err and "Traceback" not in err
        assert wait_until(lambda: gone(family), 2)
    finally:
        if process.poll() is None:
            process.kill()
    (stopped,) = (event for event in read_lines(tmp_path / "run" / EVENTS) if event["event"] == "stopped")
    assert stopped["decisions"] == int(checkpoint.listed(tmp_path / "run")[-1].name) > 0
    assert all(np.isfinite(array).all() for array in read_weights(tmp_path / "run").values())


# ---- no worker touches a GPU


WATCH = '''
"""Found by every Python that starts here: tells when CUDA is initialised, and what workers know of it."""
import importlib.machinery, os, sys

def tell(*words):
    with open(os.environ["WATCH"], "a") as file:
        print(os.getpid(), *words, file=file)

def watch_cuda(cuda):
    init = cuda._lazy_init
    def lazy_init():
        tell("initialises")
        init()
    cuda._lazy_init = lazy_init

def watch_workers(pool):
    make = pool.make_actor
    def make_actor(*args):
        actor, table = make(*args)
        fill = actor.fill
        def watched(block):
            report = fill(block)
            if "TOUCH" in os.environ:
                import torch
                try:
                    torch.zeros(1, device="cuda")
                except (AssertionError, RuntimeError):
                    pass
            torch = sys.modules.get("torch")
            tell("filled", bool(torch and torch.cuda.is_initialized()))
            return report
        actor.fill = watched
        return actor, table
    pool.make_actor = make_actor

class Finder:
    watched = {"torch.cuda": watch_cuda, "ludus.training.pools.process": watch_workers}

    def find_spec(self, name, path, target=None):
        if name not in self.watched:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            self.watched[name](module)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
'''


@pytest.mark.parametrize(("algo", "touch"), [("alphazero", False), ("ppo", False), ("ppo", True)], ids=str)
def test_no_worker_initialises_cuda(algo, touch, tmp_path):
    """touch: workers that do try are found, so that this test can fail where there is no GPU either."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    words = f"train connect4 --algo {algo} --preset test --workers 2 --decisions 512 --run run --rows 8"
    words += " --steps 16 --net.channels 8 --net.blocks 1 --eval-every 0"
    words += " --alphazero.search.simulations 4" if algo == "alphazero" else ""
    command, told = ludus_command(*words.split(), cwd=tmp_path), tmp_path / "told"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command["env"] |= {"PYTHONPATH": path, "WATCH": str(told), "CUDA_VISIBLE_DEVICES": "0"}
    command["env"] |= {"TOUCH": "1"} if touch else {}
    process = subprocess.run(**command, capture_output=True)
    assert process.returncode == 0, process.stderr
    lines = [line.split() for line in told.read_text().splitlines()]
    filled = {pid for pid, what, *_ in lines if what == "filled"}
    assert len(filled) == 2
    assert {pid for pid, what, *_ in lines if what == "initialises"} == (filled if touch else set())
    assert touch or {rest[0] for _, what, *rest in lines if what == "filled"} == {"False"}


# ---- matches and the command line


class Notes:
    """Plays at random, and keeps the positions in which it was asked first."""

    def __init__(self, rules) -> None:
        self.bot, self.first = RandomBot(rules), None

    def choose(self, states, rng):
        if self.first is None:
            self.first = states.copy()
        return self.bot.choose(states, rng)


def test_matches_of_blokus_begin_with_random_moves_that_are_the_same_whoever_plays():
    one, other = Notes(BLOKUS), Notes(BLOKUS)
    opening = games.open("blokus").opening
    match.played(match.game_steps(BLOKUS, [one, RandomBot(BLOKUS)], 12, 5, opening))
    match.played(match.game_steps(BLOKUS, [other, games.open("blokus").bot("greedy")], 12, 5, opening))
    assert opening == 2 and (one.first == other.first).all()
    pieces = np.bitwise_count(one.first["mine"]).sum(2)
    assert (pieces > 0).all()  # each seat has made a move
    assert len(np.unique(one.first)) == 12


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train gym:CartPole-v1 --algo alphazero", "alphazero plays native games"),
        ("train ofc --algo alphazero", "take --algo ppo"),
        ("eval blokus --bots greedy+100 random", "greedy doesn't look ahead"),
        ("eval blokus --bots search+abc random", "'abc' is neither a number"),
    ],
)
def test_what_alphazero_cannot_do_is_one_line(words, said, ludus, tmp_path):
    code, _, err = ludus(*words.split())
    assert code == 2 and said in one_line(err)
    assert not list(tmp_path.iterdir())


def test_agents_of_runs_are_told_how_far_to_look_ahead(trained, ludus, one_core):
    folder, _ = trained("tictactoe", **TINY, workers="0", decisions=200)
    code, out, _ = ludus("eval", str(folder), "--against", "search+5", "--games", "4")
    assert code == 0 and "search+5" in out and folder.name in out
    code, _, err = ludus("eval", str(folder), "--think", "abc", "--games", "4")
    assert code == 2 and "'abc' is neither" in one_line(err)


@pytest.mark.parametrize(
    ("threads", "think", "leaves"), [(1, "1ms", 4), (8, "1ms", 8), (64, "1ms", 16), (8, "64", 4)]
)
def test_an_agent_has_a_leaf_for_every_thread(threads, think, leaves, monkeypatch):
    """Up to 16, and not where that would be half of a search."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    game = games.open("blokus")
    agent, states = load(game.champion, think=think), BLOKUS.blank(1)
    BLOKUS.deal(states, seeds.rows(1, 1))
    agent.choose(states, seeds.rows(1, 1))
    assert agent.bot.search.leaves == leaves
