"""Evaluations that games share: the network is asked less, and the answers are the same."""

import numpy as np
import pytest
import torch

from ludus.algos import Plan
from ludus.algos.alphazero import record
from ludus.algos.alphazero.central import SearchCentral
from ludus.algos.alphazero.evaluators import DeviceNetwork, PlayingCopies
from ludus.config import resolve
from ludus.search import cache
from ludus.search.cache import EvaluationCache, hash_rows
from test_board_net import CONFIG, NAMES, RULES, asked, make_net, positions

ROWS = 6


def opened(rules, net):
    """A network with a cache, and the same without."""
    shared = PlayingCopies(net, EvaluationCache(rules.spec))
    return shared, DeviceNetwork(rules, shared, ROWS), DeviceNetwork(rules, PlayingCopies(net), ROWS)


def assert_same(found, expected):
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_what_comes_twice_is_not_evaluated_again(rules):
    _, network, plain = opened(rules, make_net(rules))
    states = np.unique(positions(rules, 24))
    known, new = states[:8], states[8:]
    for recalled in (0, 0, len(known), len(known)):
        assert_same(asked(network, rules, known), asked(plain, rules, known))
        assert network.recalled == recalled
    mixed = np.concatenate([new[:3], known[:4], new[3:], known[4:]])
    assert_same(asked(network, rules, mixed), asked(plain, rules, mixed))
    assert network.recalled == len(known)


@pytest.mark.parametrize("rules", RULES[:2], ids=NAMES[:2])
def test_groups_share_it_and_a_position_may_come_twice_in_one_batch(rules):
    copies, network, plain = opened(rules, make_net(rules))
    states = np.repeat(np.unique(positions(rules, 12))[:5], 3)
    asked(network, rules, states)
    other = DeviceNetwork(rules, copies, ROWS)
    assert_same(asked(other, rules, states), asked(plain, rules, states))
    assert other.recalled == len(states)


def test_new_weights_outdate_it():
    rules = RULES[0]
    copies, network, _ = opened(rules, make_net(rules))
    states = np.unique(positions(rules, 12))
    for _ in range(2):
        asked(network, rules, states)
    other = make_net(rules)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    plain = DeviceNetwork(rules, PlayingCopies(other), ROWS)
    for _ in range(cache.VERSIONS):
        copies.update(lambda net: net.load_state_dict(other.state_dict()))
        asked(network, rules, states)
        assert network.recalled == len(states)
    copies.update(lambda net: net.load_state_dict(other.state_dict()))
    for recalled in (0, len(states)):  # they were seen before, so they are kept at once
        assert_same(asked(network, rules, states), asked(plain, rules, states))
        assert network.recalled == recalled


@pytest.mark.parametrize("small", ["ENTRIES", "SEEN", "LONGEST"])
def test_without_room_it_only_forgets(small, monkeypatch):
    monkeypatch.setattr(cache, small, 4)
    rules = RULES[1]
    _, network, plain = opened(rules, make_net(rules))
    states = positions(rules, 40)
    for _ in range(4):
        assert_same(asked(network, rules, states), asked(plain, rules, states))
        assert network.recalled < len(states)


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_any_changed_bit_is_another_position(rules):
    state = np.frombuffer(positions(rules, 2)[:1].tobytes(), np.uint8)
    changed = np.repeat(state[None], 1 + 8 * len(state), 0)
    for bit in range(8 * len(state)):
        changed[1 + bit, bit // 8] ^= 1 << bit % 8
    keys = np.zeros(len(changed), np.uint64)
    hash_rows(changed, keys)
    assert len(np.unique(keys)) == len(keys) and keys.all()
    # They differ in all bits: some choose a place, others tell positions at the same place apart.
    ones = np.unpackbits(keys.view(np.uint8)).reshape(len(keys), 64).mean(0)
    assert (abs(ones - 0.5) < 5 * 0.5 / len(keys) ** 0.5).all()


@pytest.mark.parametrize("overlap", [False, True])
def test_only_games_that_play_on_while_weights_change_share(overlap):
    """Others can be resumed exactly: what is evaluated must not depend on what was before."""
    rules, config = RULES[0], resolve("connect4", "test", algo="alphazero")
    plan = Plan("connect4", {}, "alphazero", config.settings, CONFIG, 4, 4, "self", seed=1, workers=1)
    central = SearchCentral(plan, rules, make_net(rules), record(config.settings, rules.spec), overlap)
    assert (central.playing.cache is not None) == overlap
