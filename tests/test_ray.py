"""Training on a Ray cluster of two or three nodes, which are processes on this machine.

Starting it takes as long as a test or two: all tests share it.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

import ludus as package
from ludus import algos
from ludus.commands.runs import _clusters
from ludus.config import Config, overlay, resolve
from ludus.core.errors import Usage
from ludus.store.reader import RunReader
from ludus.training import cluster as joined
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import check, lay_out
from ludus.training.loop import train
from ludus.training.pools import ray as ray_pool
from ludus.training.pools.ray import RayPool
from ludus.training.weights import PastSelves
from pokemon_setup import needs_simulator
from trainings import EXAMPLES, Listeners, gone, limit, ludus_command, reproducible, wait_until

# Read when it is imported. The one that is not in our own list keeps the cluster to the loopback interface.
os.environ |= {**joined.VARIABLES, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
ray = pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: nothing on it is tested, see the extra `ray`")
STORE = 80 * 2**20
SMALL = {"rows": 8, "steps": 8, "eval_every": "0", "log_s": 0.0, "checkpoints": {"every_decisions": 2048}}


class Nodes:
    """A cluster whose nodes are processes with one core each."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        self._before = set(psutil.Process().children(recursive=True))
        self.cluster = Cluster()
        self.nodes = [self.add(f"node-{number}") for number in range(count)]
        self.address = self.cluster.address

    def add(self, name: str, **how):
        if self.cluster.head_node is None:
            how |= {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
        return self.cluster.add_node(
            num_cpus=1, object_store_memory=STORE, node_ip_address="127.0.0.1", node_name=name, **how
        )

    def kill(self, node) -> None:
        self.cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        family = set(psutil.Process().children(recursive=True)) - self._before
        try:
            ray.shutdown()
            self.cluster.shutdown()
        finally:
            for process in family:
                if process.is_running():
                    process.kill()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    found = Nodes(2)
    try:
        yield found
    finally:
        found.close()


def configured(nodes: Nodes, game: str = "tictactoe", **changes) -> Config:
    changes = {"pool": "ray", "ray_address": nodes.address, **SMALL, **changes}
    return overlay(resolve(game, "test", algo=changes.get("algo")), changes, "test")


@pytest.fixture
def pool(nodes: Nodes) -> Iterator[Callable[..., RayPool]]:
    made = []

    def make(**changes) -> RayPool:
        config = configured(nodes, **changes)
        game = open_game(config)
        net = algos.find(config.algo).make_learner(config, game, "cpu").net
        made.append(make_pool(config, game, net, lay_out(config, game), flat_weights(net)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def free_cores(nodes: Nodes) -> float:
    """Of the cluster, as somebody sees who joins it now."""
    joined.connect(nodes.address)
    try:
        return ray.available_resources().get("CPU", 0.0)
    finally:
        joined.leave()


def test_nodes_come_and_go_and_every_decision_is_counted_once(nodes, tmp_path, monkeypatch):
    taken, seen, told, receive = [], [], [], RayPool.receive

    def noted(self, give_up):
        found = receive(self, give_up)
        taken.extend((delivery.slot, delivery.report.begun, delivery.block.decisions) for delivery in found)
        return found

    def watch(metrics: dict) -> bool:
        """A third node is added once both play, then another is killed."""
        now = metrics["nodes/count"], metrics["workers/count"]
        if now not in seen:
            if now == (2, 2):
                nodes.nodes.append(nodes.add("node-new"))
            elif now == (3, 3):
                told.extend(_clusters([Path(changes["run"])]))
                nodes.kill(nodes.nodes.pop(1))
        seen.append(now)
        return now == (2, 2) and (3, 3) in seen

    monkeypatch.setattr(RayPool, "receive", noted)
    changes = {"run": str(tmp_path / "run"), "decisions": 10**9, "seconds": limit(60.0)}
    folder = train(configured(nodes, **changes), Listeners(watch))
    run = RunReader(folder)
    assert told == ["run: 3 workers on 3 nodes: node-0 1, node-1 1, node-new 1"]
    assert run.last["nodes/node-new"] == 1 and "nodes/node-1" not in run.last
    events = Counter(event["event"] for event in run.events())
    assert events["node left"] == events["node joined"] == 1, events
    assert run.last["decisions"] == sum(decisions for _, _, decisions in taken) == 64 * len(taken)
    assert len({block[:2] for block in taken}) == len(taken)  # no worker begins two blocks at once


def test_a_killed_learner_leaves_nothing_and_goes_on(nodes, tmp_path, ludus):
    run, flags = tmp_path / "run", ["--pool", "ray", "--ray-address", nodes.address, "--workers", "1"]
    small = ["--preset", "test", "--rows", "8", "--steps", "8", "--eval-every", "0", "--log-s", "0.1"]
    small += ["--checkpoints.every-decisions", "1024", "--run", str(run)]
    process = subprocess.Popen(
        **ludus_command("train", "tictactoe", *small, *flags, "--decisions", "1e9", cwd=tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert wait_until(lambda: run.exists() and max(_checkpoints(run), default=0) > 0, limit(60)), (
            process.communicate()[1] if process.poll() is not None else "no checkpoint"
        )
    finally:
        process.kill()
        process.communicate()
    assert wait_until(lambda: free_cores(nodes) == len(nodes.nodes), limit(15), 0.5)
    kept = max(_checkpoints(run))
    code, _, err = ludus("resume", str(run), "--decisions", str(kept + 256))
    assert code == 0, err
    assert RunReader(run).last["decisions"] >= kept + 256
    assert wait_until(lambda: free_cores(nodes) == len(nodes.nodes), limit(15), 0.5)


def _checkpoints(run: Path) -> list[int]:
    return RunReader(run).checkpoints() if (run / "config.toml").exists() else []


def test_a_node_with_another_version_is_refused(nodes, pool, tmp_path):
    """It has a whole Ludus of its own, of another version."""
    source = Path(package.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__", "*.safetensors")
    shutil.copytree(source, tmp_path / "other" / "ludus", ignore=skipped)
    file = tmp_path / "other" / "ludus" / "__init__.py"
    other = file.read_text().replace(f'__version__ = "{package.__version__}"', '__version__ = "0.0.1"')
    assert "0.0.1" in other
    file.write_text(other)
    strange = nodes.add("node-strange", env_vars={"PYTHONPATH": str(tmp_path / "other")})
    try:
        with pytest.raises(Usage) as refused:
            pool().receive()
    finally:
        nodes.cluster.remove_node(strange)  # which tells the cluster, so that no other test meets it
    problem = f"node node-strange has Ludus 0.0.1, but the learner has {package.__version__}"
    assert str(refused.value) == f"{problem}: install the same on both"


def test_blocks_lie_in_the_object_store_and_old_ones_are_dropped(pool):
    found = pool(rows=128, steps=32, workers="1", max_lag=2)
    first = found.receive()
    assert len(first) == 1
    for delivery in first:
        columns = [delivery.block[column.name] for column in delivery.block.columns]
        lowest, highest = (end(array.ctypes.data for array in columns) for end in (min, max))
        assert highest - lowest < sum(array.nbytes for array in columns) + 64 * len(columns)  # one buffer
        assert not any(array.flags.owndata for array in columns)
        assert delivery.block["legal"].any(-1).all() and (delivery.block["seat"] < 2).all()
    vector = np.zeros_like(found._vector)
    past = PastSelves(vector)
    past.versions[0], past.odds[0] = 5, 1.0
    found.publish_past(past)
    # A worker elsewhere has a second block on its way, of weights that are too old by now.
    assert len(found._handles[0].asked) == 1
    found.publish(vector, 3, 0.0)
    found.release(first)
    second = found.receive()
    assert found.dropped == found.health().dropped == 1
    assert {delivery.version for delivery in second} == {3}


def test_a_hung_worker_is_replaced_and_not_waited_for(pool, monkeypatch):
    for name, seconds in {"START_S": 600.0, "LATE_S": 0.5, "PULSE_S": 0.2}.items():
        monkeypatch.setattr(ray_pool, name, seconds)
    patience = limit(1.5)
    monkeypatch.setattr(
        ray_pool, "patience_s", lambda least, rows, slowest: 600 if slowest is None else patience
    )
    found = pool(opponents="self:0.5,past:0.5", workers="2")
    handle = found._handles[0]
    while not handle.proven:  # it is waited for longer until it has delivered a block
        found.release(found.receive())
    os.kill(handle.pid, signal.SIGSTOP)
    others = 0
    try:
        end = time.monotonic() + 10 * patience
        while found._handles[0] is handle and time.monotonic() < end:
            found.release(taken := found.receive())
            others += any(delivery.slot != handle.serial for delivery in taken)
    finally:
        os.kill(handle.pid, signal.SIGCONT)
    assert found._handles[0] is not handle and "made no decision" in found.health().reason
    assert found.replaced and others > 1


def test_alphazero_trains_on_ray(nodes, tmp_path):
    changes = {"algo": "alphazero", "decisions": 64, "workers": "1", "rows": 4, "steps": 4}
    folder = train(configured(nodes, **changes, run=str(tmp_path / "run")), Listeners())
    assert RunReader(folder).last["decisions"] >= 64


def test_pokemon_trains_on_ray_and_leaves_no_simulator(nodes, tmp_path):
    needs_simulator()
    simulators: set[psutil.Process] = set()

    def look(metrics: dict) -> None:
        family = psutil.Process().children(recursive=True)
        simulators.update(one for one in family if any("bridge.js" in word for word in one.cmdline()))

    changes = {"decisions": 64, "workers": "1", "rows": 4, "run": str(tmp_path / "run")}
    folder = train(configured(nodes, "pokemon", **changes), Listeners(look))
    assert RunReader(folder).last["decisions"] >= 64
    assert len(simulators) == 1 and wait_until(lambda: gone(list(simulators)), limit(5))


def test_a_console_game_trains_on_ray_as_it_does_here(nodes, tmp_path):
    """Frames reach the learner as they were played: the same losses, to the last digit."""
    pytest.importorskip("stable_retro", reason="STABLE-RETRO IS NOT INSTALLED: console games are not tested")
    pytest.importorskip("cv2")
    last = []
    for pool, workers in (("ray", "1"), ("auto", "0")):
        address = nodes.address if pool == "ray" else ""
        changes = {"pool": pool, "ray_address": address, "workers": workers, "sync": True, "rows": 2}
        folder = train(
            configured(nodes, "retro", **changes, decisions=64, run=str(tmp_path / pool)), Listeners()
        )
        last.append(reproducible([RunReader(folder).last])[0])
    losses = [name for name in last[0] if name.startswith("losses/")]
    assert losses and [last[0][name] for name in losses] == [last[1][name] for name in losses]


def test_code_of_ones_own_is_sent_to_the_nodes(nodes, tmp_path, monkeypatch):
    file = tmp_path / "code" / "my_env.py"
    file.parent.mkdir()
    shutil.copy(EXAMPLES / "my_env.py", file)
    monkeypatch.syspath_prepend(str(file.parent))  # the learner's only
    changes = {"decisions": 64, "workers": "1", "run": str(tmp_path / "run")}
    with pytest.raises(
        Usage, match=r"node node-\w+ can't play: 'my_env:Corridor': there is no module 'my_env'"
    ):
        train(configured(nodes, "my_env:Corridor", **changes), Listeners())
    folder = train(configured(nodes, "my_env:Corridor", **changes, ray_modules=(str(file),)), Listeners())
    assert RunReader(folder).last["decisions"] >= 64


def test_a_sweep_on_ray_trains_side_by_side(nodes, tmp_path, ludus):
    optuna = pytest.importorskip("optuna")
    flags = ["--preset", "test", "--decisions", "512", "--rows", "8", "--steps", "8", "--workers", "0"]
    flags += ["--eval-games", "4", "--log-s", "0", "--pool", "ray", "--ray-address", nodes.address]
    flags += ["--trials", "2", "--parallel", "2", "--space", "ppo.learning_rate=log:1e-4:1e-2"]
    code, _, err = ludus("sweep", "tictactoe", *flags, "--run", str(tmp_path / "sweep"))
    assert code == 0, err
    folders = sorted((tmp_path / "sweep").glob("trial-*"))
    assert [RunReader(folder).last["decisions"] for folder in folders] == [512, 512]
    first, second = optuna.load_study(study_name="sweep", storage=journal(tmp_path / "sweep")).trials
    assert second.datetime_start < first.datetime_complete  # the second did not wait for the first


def journal(folder: Path):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(folder / "study.jsonl")))


def test_the_cluster_file_in_the_documentation_is_one():
    import yaml
    from ray.autoscaler._private.util import prepare_config, validate_config

    page = Path(__file__).parent.parent / "docs" / "cluster.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    config = prepare_config(yaml.safe_load(text))
    validate_config(config)  # refuses unknown keys
    assert config["docker"]["head_image"].partition("-")[0] == f"rayproject/ray:{ray.__version__}"


def test_workers_are_spread_as_far_as_there_are_cores():
    assert joined.spread(4, {"a": 2, "b": 1, "c": 8}, last="a") == {"b": 1, "c": 2, "a": 1}
    assert joined.spread(99, {"a": 2, "b": 1}, last="a") == {"a": 2, "b": 1}


def test_a_cluster_that_does_not_answer_is_told_at_once():
    with pytest.raises(Usage, match=r"--ray-address 127.0.0.1:9: no Ray cluster answers there"):
        joined.connect("127.0.0.1:9")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"ray_address": "ray://host:10001"}, "client"),
        ({"ray_modules": ("nowhere",)}, "no such package or file"),
        ({"ray_modules": (str(Path(__file__).parent / "metrics.json"),)}, "neither a folder nor"),
        ({"workers": "0"}, "plays in its workers"),
        ({"pool": "auto", "ray_address": "auto"}, "add --pool ray"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(changes, line):
    with pytest.raises(Usage, match=line):
        check(replace(Config(algo="ppo", pool="ray"), **changes))
