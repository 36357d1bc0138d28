"""Playing beside the learner while it learns: which weights play, and what belongs together."""

import pytest
import torch

from ludus import algos
from ludus.algos import Plan
from ludus.config import resolve
from ludus.games import open as open_game
from ludus.nets.net import Net
from ludus.processes import make_context
from ludus.training.build import flat_weights
from ludus.training.pools import PoolPlan
from ludus.training.pools.central import CentralPool

WORKERS = 3


@pytest.fixture
def made():
    """A pool of tic-tac-toe that plays on while its blocks are held, and the network it plays with."""
    config, game = resolve("tictactoe", "test", algo="ppo"), open_game("tictactoe")
    torch.manual_seed(0)
    net = Net(game.spec, config.net)
    plan = Plan("tictactoe", {}, "ppo", config.settings, config.net, 8, 6, "self", seed=1, workers=WORKERS)
    columns = algos.find("ppo").columns(config, game.spec)
    pool = CentralPool(PoolPlan(plan, columns, net, flat_weights(net), make_context(), overlap=True))
    yield pool, net
    pool.close()


def prefer(net: Net, action: int) -> None:
    with torch.no_grad():
        net.policy.weight.zero_()
        net.policy.bias.zero_()
        net.policy.bias[action] = 60.0


def test_blocks_keep_what_the_policy_expected(made):
    pool, net = made
    kept = pool.receive()[0].block.tensors
    with torch.no_grad():
        value = net(kept["obs"].flatten(0, 1), kept["legal"].flatten(0, 1))[1]
    torch.testing.assert_close(kept["value"].flatten(), value)
    assert value.std() > 0.01


def test_every_group_gives_one_block_at_a_time_by_turns(made):
    pool, net = made
    slots = []
    for version in range(1, 7):
        deliveries = pool.receive()
        assert [delivery.worker for delivery in deliveries] == list(range(WORKERS))
        assert len({delivery.slot for delivery in deliveries}) == 1
        assert len({delivery.version for delivery in deliveries}) == 1
        slots.append(deliveries[0].slot)
        pool.publish(flat_weights(net), version, 0.0)
        pool.release(deliveries)
    assert slots == [0, 1, 0, 1, 0, 1]


def test_a_block_is_played_by_the_weights_of_its_version_alone(made):
    """Whatever is learned while a group plays reaches it with its next block."""
    pool, net = made
    liked = {0: None}  # by version: the action that its weights always choose where it is legal
    for version in range(1, 9):
        deliveries = pool.receive()
        for delivery in deliveries:
            favourite = liked[delivery.version]
            if favourite is not None:
                block = delivery.block
                legal, action = block.tensors["legal"].numpy(), block.tensors["action"].numpy()
                assert (action[legal[:, :, favourite]] == favourite).all()
                assert legal[:, :, favourite].any()
        liked[version] = version % 9
        prefer(net, version % 9)
        pool.publish(flat_weights(net), version, 0.0)
        pool.release(deliveries)
