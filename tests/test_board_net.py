"""The network of a search: the same numbers wherever it is asked, and weights that travel whole."""

import gc
import threading
import weakref

import numpy as np
import pytest
import torch

from ludus import games
from ludus.algos import Plan
from ludus.algos.alphazero import record
from ludus.algos.alphazero.evaluators import CpuNetwork, DeviceNetwork, PlayingCopies
from ludus.config import resolve
from ludus.core import seeds
from ludus.core.conformance import Play, legal_of, observation_of
from ludus.nets import NetConfig, int8
from ludus.nets.board import Block, BoardNet, places_and_values
from ludus.nets.int8 import Int8Net
from ludus.processes import make_context
from ludus.search import list_legal
from ludus.store import checkpoint
from ludus.store.checkpoint import Checkpoint
from ludus.training.build import flat_weights
from ludus.training.players import champion_policy
from ludus.training.pools import PoolPlan
from ludus.training.pools.central import CentralPool

CONFIG = NetConfig(channels=8, blocks=2)
RULES = [
    games.open("connect4").rules,
    games.open("blokus").rules,
    games.open("blokus", board="classic").rules,
]
NAMES = ["connect4", "blokus", "classic"]


def make_net(rules):
    """With every layer at work: new blocks would not show what they do."""
    torch.manual_seed(1)
    net = BoardNet(rules.spec, CONFIG).eval()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return net


def positions(rules, rows):
    """Of different lengths, so that they have different numbers of legal moves."""
    return np.concatenate([states[:2] for states, _ in Play(rules, rows=4).decisions(rows // 2)])


def asked(network, rules, states):
    n, actions = len(states), np.zeros((len(states), rules.spec.actions), np.int32)
    counts = np.zeros(n, np.int32)
    list_legal(rules, states, actions, counts)
    logits, values = np.zeros(actions.shape, np.float32), np.zeros((n, rules.spec.seats), np.float32)
    network(states, actions, counts, seeds.rows(0, n), logits, values)
    return [logits[row, :count] for row, count in enumerate(counts)], values


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_all_evaluators_give_the_same_numbers(rules, monkeypatch):
    monkeypatch.setattr("ludus.algos.alphazero.evaluators.SMALLEST", 2)  # batches of 2, 4 and 6
    monkeypatch.setattr(int8, "IS_FAST", False)
    net = make_net(rules)
    vector = flat_weights(net)
    here, there = (
        CpuNetwork(rules, CONFIG),
        DeviceNetwork(rules, PlayingCopies(BoardNet(rules.spec, CONFIG)), 6),
    )
    here.load(vector)
    there.load(vector)
    named = CpuNetwork(rules, CONFIG)
    named.load_named({name: tensor.numpy() for name, tensor in net.state_dict().items()})
    for count in (1, 10, 16, 3, 6):  # fewer than it sees at a time, and more
        states = positions(rules, 16)[:count]
        logits, values = asked(here, rules, states)
        assert np.ptp(np.concatenate(logits)) > 0.1
        for network in (there, named):
            others, other_values = asked(network, rules, states)
            np.testing.assert_allclose(other_values, values, atol=1e-5)
            for one, other in zip(logits, others, strict=True):
                np.testing.assert_allclose(other, one, atol=1e-4)


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_alone_and_in_a_batch_a_position_looks_the_same(rules):
    net, obs = make_net(rules), torch.from_numpy(observation_of(rules, positions(rules, 8)))
    with torch.no_grad():
        together = net(obs)
        for row in range(len(obs)):
            for all_rows, one in zip(together, net(obs[row : row + 1]), strict=True):
                assert (all_rows is None) == (one is None)
                if one is not None:
                    np.testing.assert_allclose(all_rows[row], one[0], rtol=1e-4, atol=1e-5)
    choice, value = net.look(obs)
    assert torch.equal(choice, together[0]) and torch.equal(value, together[1])
    assert (choice[0] - choice[-1]).abs().max() > 1e-3  # it does see what is there


@pytest.mark.parametrize("rules", RULES[1:], ids=NAMES[1:])
def test_choice_and_owners_are_what_their_layers_say(rules):
    """By one product for both, though each has weights of its own."""
    net, obs = make_net(rules), torch.from_numpy(observation_of(rules, positions(rules, 4)))
    with torch.no_grad():
        x, (choice, _, _, owner) = net.body(obs), net(obs)
        squares = net.policy(x)
        torch.testing.assert_close(choice[:, : squares.shape[1]], squares)
        torch.testing.assert_close(owner, net.owner(x))
    assert choice.shape[1] == rules.spec.places.max() + 1 and (squares.std(1) > 0.01).all()


@pytest.mark.parametrize("outputs", ["as many", 91])
@pytest.mark.parametrize("squares", [1, 3])
@pytest.mark.parametrize("size", [(3, 3, 4), (5, 6, 12), (6, 7, 32), (4, 9, 40), (14, 14, 96), (3, 20, 64)])
def test_products_of_integers_are_exact(size, squares, outputs):
    *board, channels = size
    outputs, rng = channels if outputs == "as many" else outputs, np.random.default_rng(2)
    x = rng.integers(-127, 128, size).astype(np.float32)
    x[0, 0, 0] = int8.LEVELS  # so that 1 stands for 1
    out = rng.integers(-127, 128, (*board, outputs)).astype(np.float32)
    weight = rng.integers(-127, 128, (outputs, channels, squares, squares)).astype(np.float32)
    scale, bias = np.ones(outputs, np.float32), rng.integers(-9, 9, outputs).astype(np.float32)
    wanted = torch.nn.functional.conv2d(
        torch.relu(torch.from_numpy(x).double().permute(2, 0, 1))[None], torch.from_numpy(weight).double(),
        torch.from_numpy(bias).double(), padding="same",
    )[0].permute(1, 2, 0).numpy()  # fmt: skip
    tiles = int8.in_tiles(torch.from_numpy(weight), torch.from_numpy(scale))
    image, sums = int8.make_image(*size), int8.make_sums(size[1], outputs)
    for keep in (0, 1):
        found = out.copy()
        int8.convolve(x, squares, tiles, scale, bias, np.float32(keep), image, sums, found)
        assert np.array_equal(found, keep * out + wanted)


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_a_network_in_integers_says_nearly_the_same(rules):
    net, obs = make_net(rules), observation_of(rules, positions(rules, 20))
    for one, other in zip(places_and_values(net, obs), Int8Net(net)(obs), strict=True):
        apart = np.abs(one - other)
        assert apart.max() < 0.2 * one.std() and one.shape == other.shape


@pytest.mark.parametrize("name", ["connect4", "blokus"])
def test_a_champion_in_integers_plays_the_same(name):
    """Of 100 positions: first choices in 96 to 100, values 0.008 apart."""
    game = games.open(name)
    policy = champion_policy(game, game.champion)
    rules, whole = game.rules, policy.net
    states = np.concatenate([states for states, _ in Play(rules, rows=4).decisions(25)])
    legal, obs = torch.from_numpy(legal_of(rules, states)), torch.from_numpy(observation_of(rules, states))
    with torch.inference_mode():
        one, value = whole.look(obs)
    other, other_value = (torch.from_numpy(array) for array in Int8Net(whole)(obs.numpy()))
    one, other = (x[:, policy.places].masked_fill(~legal, -torch.inf).log_softmax(1) for x in (one, other))
    assert (value - other_value).abs().mean() < 0.03
    assert (one.argmax(1) == other.argmax(1)).float().mean() > 0.85
    apart = torch.where(legal, one.exp() * (one - other), 0).sum(1)
    assert 0 < apart.mean() < 0.02  # it is another computation, with nearly the same result


@pytest.mark.parametrize("threads", [1, 3])
def test_in_integers_a_position_looks_the_same_alone_and_in_a_batch(threads):
    rules, before = RULES[2], torch.get_num_threads()
    look, obs = Int8Net(make_net(rules)), observation_of(rules, positions(rules, 10))
    try:
        torch.set_num_threads(threads)
        together, alone = look(obs), [look(obs[row : row + 1]) for row in range(len(obs))]
    finally:
        torch.set_num_threads(before)
    for row, (choice, value) in enumerate(alone):
        assert np.array_equal(together[0][row], choice[0])
        assert np.array_equal(together[1][row], value[0])
    assert np.abs(together[0][0] - together[0][-1]).max() > 0.1


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_self_play_in_integers_has_the_newest_weights(rules, monkeypatch):
    monkeypatch.setattr(int8, "IS_FAST", True)
    network, net, states = CpuNetwork(rules, CONFIG), make_net(rules), positions(rules, 6)
    before, _ = asked(network, rules, states)
    wanted = Int8Net(net)(observation_of(rules, states))[1][:, 0]
    ours = np.arange(len(states)), rules.seat(states)
    old = weakref.ref(network.evaluate)
    network.load(flat_weights(net))
    gc.collect()  # a cycle may hold it for a while
    assert old() is None  # workers get new weights for days
    logits, values = asked(network, rules, states)
    np.testing.assert_allclose(values[ours], wanted, atol=1e-2)
    assert np.abs(np.concatenate(logits) - np.concatenate(before)).max() > 0.1
    renewed = CpuNetwork(rules, CONFIG)
    renewed.load_named({name: tensor.numpy() for name, tensor in net.state_dict().items()})
    np.testing.assert_allclose(asked(renewed, rules, states)[1], values, atol=1e-2)


def test_integers_are_taken_where_they_are_faster(monkeypatch):
    net = make_net(RULES[0])
    for is_fast in (True, False):
        monkeypatch.setattr(int8, "IS_FAST", is_fast)
        assert isinstance(int8.fastest(net), Int8Net) == is_fast
    monkeypatch.setattr(int8, "IS_FAST", True)
    odd = BoardNet(RULES[0].spec, NetConfig(channels=10, blocks=1))
    assert not isinstance(int8.fastest(odd), Int8Net)  # an instruction adds up four products


@pytest.mark.parametrize("pooled", [False, True])
def test_a_new_block_changes_nothing(pooled):
    block, x = Block(8, pooled), torch.randn(3, 8, 5, 5)
    assert torch.equal(block(x), x)
    torch.nn.init.ones_(block.second.weight)
    assert (block(x) - x).abs().max() > 0.1


def test_weights_kept_in_channels_last_come_back_as_they_were(tmp_path):
    rules = RULES[1]
    net = make_net(rules).to(memory_format=torch.channels_last)
    assert not net.stem.weight.is_contiguous()
    weights = {
        name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in net.state_dict().items()
    }
    checkpoint.write(tmp_path, Checkpoint(1, weights, {}))
    again = BoardNet(rules.spec, CONFIG).to(memory_format=torch.channels_last)
    again.load_state_dict(checkpoint.read(checkpoint.listed(tmp_path)[0]).weights)
    assert not again.stem.weight.is_contiguous()
    one, two = flat_weights(net), flat_weights(again)
    assert (one == two).all() and one.any()


class Busy(DeviceNetwork):
    """Stands in the middle of an evaluation until it is told to go on."""

    begun, go_on = threading.Event(), threading.Event()

    def _look(self, which, size):
        self.begun.set()
        assert self.go_on.wait(20)
        return super()._look(which, size)


def test_weights_never_change_under_an_evaluation(monkeypatch):
    """The first new weights go into the copy that nobody uses; the next ones wait for the evaluation."""
    rules = RULES[0]
    monkeypatch.setattr("ludus.algos.alphazero.central.DeviceNetwork", Busy)
    config = resolve("connect4", "test", algo="alphazero")
    plan = Plan("connect4", {}, "alphazero", config.settings, CONFIG, 4, 4, "self", seed=1, workers=2)
    net, columns = make_net(rules), record(config.settings, rules.spec)
    vector = flat_weights(net)
    pool = CentralPool(PoolPlan(plan, columns, net, vector, make_context()))
    network, states = pool._actors[1].network, positions(rules, 4)
    used = list(pool._central.playing.nets[0].parameters())
    before = [parameter.clone() for parameter in used]
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    evaluating = threading.Thread(target=asked, args=(network, rules, states))
    evaluating.start()
    assert Busy.begun.wait(20)
    pool.publish(vector, 1, 0.0)
    assert all((parameter == 0).all() for parameter in pool._central.playing.nets[1].parameters())
    publishing = threading.Thread(target=pool.publish, args=(vector, 2, 0.0))
    publishing.start()
    publishing.join(0.3)
    unchanged = all(torch.equal(*pair) for pair in zip(before, used, strict=True))
    Busy.go_on.set()
    evaluating.join()
    publishing.join()
    assert unchanged and all((parameter == 0).all() for parameter in used)
