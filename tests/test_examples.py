"""The examples do what they say: an algorithm of one's own, and an environment with several parts."""

import time
from pathlib import Path

import numpy as np
import pytest

import ludus
from ludus import games
from ludus.commands.runs import export
from ludus.core.errors import Stopped, Usage
from ludus.store import checkpoint
from ludus.store.run import read_weights

ROOT = Path(__file__).parent.parent
ALGO = "examples.reinforce"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


class StopsAfter:
    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, metrics: dict) -> None:
        self.count -= 1
        if not self.count:
            raise KeyboardInterrupt


def test_an_own_algorithm_learns_is_evaluated_and_exported(trained):
    folder, _ = trained(
        "gym:CartPole-v1", algo=ALGO, workers="0", rows=8, steps=64, decisions=60_000,
        net={"hidden": (64,)}, reinforce={"learning_rate": 5e-3},
    )  # fmt: skip
    (duel,) = ludus.evaluate(folder, "random", games=30)
    assert duel.mean > 60  # 129 to 413 with six seeds; random play: 22
    export(folder, True, True)
    assert (folder / "policy.onnx").stat().st_size > 1000


def test_an_own_algorithm_goes_on_exactly(trained, tmp_path, monkeypatch):
    """Also where the disk is slow: meanwhile the optimizer goes on."""
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda *args: (time.sleep(0.1), write(*args)))
    told = {
        "algo": ALGO, "workers": "2", "sync": True, "decisions": 12_000, "eval_every": "0",
        "checkpoints": {"every_s": 0.0, "every_decisions": 1_000},
    }  # fmt: skip
    whole, _ = trained("tictactoe", **told)
    broken = str(tmp_path / "broken")
    with pytest.raises((KeyboardInterrupt, Stopped)):
        trained("tictactoe", StopsAfter(4), run=broken, **told)
    trained("tictactoe", run=broken, **told)
    for name, array in read_weights(whole).items():
        np.testing.assert_array_equal(array, read_weights(Path(broken))[name])
    states = games.open("tictactoe").native("played").rules.blank(3)
    assert ludus.load(whole).choose(states).shape == (3,)


def test_what_an_own_algorithm_cannot_do_is_one_line(trained):
    with pytest.raises(Usage, match="local"):
        trained("tictactoe", algo=ALGO, inference="central")


def test_a_dict_of_image_vector_and_tokens_is_learned_from(trained):
    spec = games.open("examples.garden:Garden").spec
    assert {part.name: part.kind for part in spec.parts} == {
        "image": "image", "left": "flat", "things": "tokens",
    }  # fmt: skip
    folder, readings = trained("examples.garden:Garden", workers="2", decisions=4_000)
    assert np.isfinite([reading["losses/value"] for reading in readings]).all()
    from examples.garden import Garden

    agent, env = ludus.load(folder), Garden()
    seen, info = env.reset(seed=1)
    action = agent.act(seen, info["action_mask"])
    assert action.shape == () and info["action_mask"][int(action)]


def test_every_part_of_an_observation_matters():
    """A network's choice depends on each part, and not on bytes between them."""
    import torch

    from ludus.nets import NetConfig
    from ludus.nets.net import Net
    from ludus.nets.parts import as_tensor

    game = games.open("examples.garden:Garden")
    torch.manual_seed(0)
    net, table = Net(game.spec, NetConfig(hidden=(32,))), game.table(4)
    obs = table.reset(0).obs.copy()
    legal = torch.ones(4, game.spec.actions, dtype=torch.bool)
    torch.nn.init.normal_(net.policy.weight)
    before = net(as_tensor(obs), legal)[0]
    for part in game.spec.parts:
        other = obs.copy()
        other[part.name] = (other[part.name] + 1) % 2
        assert not torch.allclose(net(as_tensor(other), legal)[0], before), part.name
    table.close()
