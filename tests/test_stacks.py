"""Stacks of frames: blocks keep each frame once, and what is learned is the same."""

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.wrappers import FrameStackObservation

from ludus import algos, games, processes
from ludus.algos import Plan
from ludus.algos.ppo import Config as PpoConfig
from ludus.algos.ppo.stacks import BLANK, places
from ludus.config import Config as TrainConfig
from ludus.config import resolve
from ludus.core.block import Block, block_bytes
from ludus.core.game import Game
from ludus.games.adapters import GymTable
from ludus.nets import NetConfig
from ludus.nets.net import flat_size, flatten
from ludus.training.seating import Seating
from ludus.training.weights import Past

SIZE, ROWS, STEPS = 24, 3, 20


class Noise(gymnasium.Env):
    """Frames of noise; episodes of 1 to 7 steps, every third of which is cut off."""

    observation_space = gymnasium.spaces.Box(0, 255, (SIZE, SIZE), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self) -> None:
        self.episode = 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.left = int(self.np_random.integers(1, 8))
        return self._frame(), {}

    def step(self, action):
        self.left -= 1
        done, cut = self.left == 0, self.episode % 3 == 0
        return self._frame(), float(action), done and not cut, done and cut, {}

    def _frame(self):
        return self.np_random.integers(1, 255, (SIZE, SIZE), np.uint8)


class Plain(GymTable):
    """The same observations, which nobody is told are stacks."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        part = dataclasses.replace(self.spec.parts[0], stack=0)
        self.spec = dataclasses.replace(self.spec, parts=(part,))


class NoiseGame(Game):
    def __init__(self, kind, padding: str, memory: int) -> None:
        self.name, self.switches = "noise", {}
        self.kind, self.padding = kind, padding
        self.spec = self.table(1).spec
        settings = PpoConfig(epochs=2, minibatch=16, learning_rate=0.01)
        net = NetConfig(hidden=(8,), memory=memory)
        self.config = TrainConfig(rows=ROWS, steps=STEPS, net=net, settings=settings)

    def table(self, rows):
        return self.kind(lambda: FrameStackObservation(Noise(), 4, padding_type=self.padding), rows)


def learned(kind, padding="reset", memory=0, central=False, learns=True):
    """A learner after two updates from two actors' blocks, and the last block. learns: or only played"""
    torch.manual_seed(0)
    game = NoiseGame(kind, padding, memory)
    ppo, config = algos.find("ppo"), game.config
    learner = ppo.make_learner(config, game, "cpu")
    vector = np.zeros(flat_size(learner.net), np.float32)
    flatten(learner.net, vector)
    plan = Plan("noise", {}, "ppo", config.settings, config.net, ROWS, STEPS, seed=5, workers=2)
    columns = ppo.columns(config, game.spec)
    beside = ppo.make_central(plan, game, learner.net, columns, False) if central else None
    pairs = []
    for index in range(2):
        table = game.table(ROWS)
        seating = Seating(plan, index, game, table, Past(processes.make_context(), vector), None)
        if beside:
            actor, (block,) = beside.add(index, table, seating)
        else:
            actor = ppo.make_actor(plan, index, game, table, seating, np.zeros(3, np.int64))
            block = Block(columns, STEPS, ROWS)
        pairs.append((actor, block))
    for _ in range(2):
        flatten(learner.net, vector)
        for actor, block in pairs:
            actor.load(vector, 0.0)
            actor.fill(block)
        if learns:
            learner.learn([block for _, block in pairs], off_policy=False)
    return learner, pairs[-1][1]


@pytest.mark.parametrize("padding", ["reset", "zero"])
@pytest.mark.parametrize(("memory", "central"), [(0, False), (6, False), (0, True), (6, True)])
def test_what_is_learned_is_the_same_as_from_whole_stacks(padding, memory, central):
    """Blocks begin in the middle of games; games end in blocks, also one after another."""
    once, block = learned(GymTable, padding, memory, central)
    whole, plain = learned(Plain, padding, memory, central)
    assert block["ended"].any(0).all() and not block["ended"].all()
    kept = getattr(block, "tensors", {}).get("frames")
    kept = block["frames"] if kept is None else kept.numpy()
    seen = getattr(plain, "tensors", {}).get("obs")
    seen = plain["obs"] if seen is None else seen.numpy()
    assert kept.shape == (STEPS + 3, ROWS, SIZE, SIZE)
    assert (kept[3:] == seen[:, :, -1]).all()
    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(once.net.state_dict()[name], tensor), name


def test_a_central_network_with_memory_plays_by_the_memories_it_keeps():
    """What it expected and how likely its choices were, again from the memories in its blocks."""
    learner, block = learned(Plain, memory=6, central=True, learns=False)
    data = learner._gather([block])
    value, logp = learner._look(data)
    assert block["memory"].any() and block["fresh"].any() and not block["fresh"].all()
    assert torch.allclose(value, data["value"], atol=1e-5) and torch.allclose(logp, data["logp"], atol=1e-5)
    assert not torch.allclose(learner._look(data | {"memory": 0 * data["memory"]})[0], value, atol=1e-5)


def test_planes_do_not_reach_beyond_the_start_of_a_game():
    ended = np.array([[0, 1], [0, 0], [1, 0], [0, 0], [0, 0]], bool)
    first, blank = (places(ended, 3, padding) // 2 for padding in ("first", "blank"))
    assert first[:, 0].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 5, 5], [5, 5, 6]]
    assert first[:, 1].tolist() == [[0, 1, 2], [3, 3, 3], [3, 3, 4], [3, 4, 5], [4, 5, 6]]
    assert blank[:, 0].tolist()[3:] == [[BLANK, BLANK, 5], [BLANK, 5, 6]]
    assert blank[:, 1].tolist()[1:3] == [[BLANK, BLANK, 3], [BLANK, 3, 4]]


@pytest.mark.parametrize("game", ["retro:Gemfall-Nes-v0", "gym:ALE/Pong-v5"])
def test_a_decision_takes_one_frame(game):
    pytest.importorskip("stable_retro" if game.startswith("retro") else "ale_py")
    config = resolve(game)
    spec = games.open(game, **config.switches).spec
    assert spec.stack == 4 and spec.obs_shape == (4, 84, 84)
    columns = algos.find("ppo").columns(config, spec)
    assert block_bytes(columns, 128, 8) / (128 * 8) < 7.1 * 1024


def test_blocks_of_a_resumed_actor_are_the_same():
    pytest.importorskip("stable_retro")
    game = games.open("retro:Gemfall-Nes-v0", max_steps=9, size=24)
    config = TrainConfig(rows=2, steps=8, net=NetConfig(hidden=(8,)), settings=PpoConfig())
    plan = Plan(game.name, game.switches, "ppo", config.settings, config.net, 2, 8)
    table, ppo = game.table(2), algos.find("ppo")
    try:
        past = Past(processes.make_context(), np.zeros(1, np.float32))
        seating = Seating(plan, 0, game, table, past, None)
        actor = ppo.make_actor(plan, 0, game, table, seating, np.zeros(3, np.int64))
        first, second, again = (Block(ppo.columns(config, game.spec), 8, 2) for _ in range(3))
        actor.fill(first)
        kept = actor.snapshot()
        actor.fill(second)
        actor.restore(kept)
        actor.fill(again)
        assert (second["frames"] == again["frames"]).all()
        assert (second["frames"][:3] == first["frames"][-3:]).all()  # the same game goes on
        assert second["ended"].any()
    finally:
        table.close()
