"""Whole trainings: every kind of game, the same again from the same seed, workers that die, and learning."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np
import psutil
import pytest
import torch

import ludus
from ludus import algos, games, machine
from ludus.algos import Plan, ppo
from ludus.algos.ppo.actor import PpoActor
from ludus.algos.ppo.learner import PpoLearner
from ludus.config import Config, overlay, resolve
from ludus.core.block import Block
from ludus.core.duel import Duel
from ludus.core.errors import Failure, Stopped, Usage
from ludus.match import table_duel
from ludus.nets import NetConfig
from ludus.nets.net import Net
from ludus.store.run import LOG, METRICS, read_config, read_weights
from ludus.training.build import flat_weights, make_pool, open_game
from ludus.training.layout import lay_out
from ludus.training.loop import train
from ludus.training.pools.process import TRIES
from ludus.training.weights import Past
from ludus.training.worker import make_actor
from trainings import (
    EXAMPLES,
    README,
    Listeners,
    gone,
    limit,
    reproducible,
    shared_memory,
    wait_until,
    workers_of,
)

# ---- every kind of game


@pytest.mark.parametrize(
    "game",
    [
        "tictactoe",
        "ofc",
        "gym:CartPole-v1",
        "gym:Pendulum-v1",
        "zoo:classic/connect_four_v3",
        "my_env:Corridor",
    ],
)
def test_every_kind_of_game_is_trained_to_the_end_of_its_budget(game, trained, importable, two_cores):
    folder, readings = trained(game, decisions=7_000, log_s=0.2)
    last = readings[-1]
    config = read_config(folder)
    block = config.rows * config.steps * last["workers/count"]
    assert 7_000 <= last["decisions"] < 7_000 + block
    assert last["games"] > 0 and last["workers/replaced"] == 0
    assert np.isfinite([value for value in last.values() if isinstance(value, float)]).all()
    weights = read_weights(folder)
    assert all(np.isfinite(array).all() for array in weights.values())
    written = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    assert written == readings


@pytest.mark.parametrize("changes", [{"workers": "0"}, {"inference": "central", "workers": "2"}], ids=str)
def test_playing_in_the_learners_own_process_starts_no_other(trained, changes):
    children: list[psutil.Process] = []
    before = workers_of(psutil.Process())
    _, readings = trained(
        "tictactoe",
        lambda metrics: children.extend(workers_of(psutil.Process())),
        decisions=6_000,
        opponents="self:0.5,past:0.2,greedy:0.3",
        **changes,
    )
    assert readings[-1]["decisions"] >= 6_000 and readings[-1]["games"] > 500
    assert children == before == []


@pytest.mark.parametrize("game", ["gym:CartPole-v1", "gym:Pendulum-v1", "zoo:classic/connect_four_v3"])
def test_central_inference_plays_environments_in_processes_of_their_own(game, trained):
    children: set[int] = set()
    _, readings = trained(
        game,
        lambda metrics: children.update(child.pid for child in workers_of(psutil.Process())),
        inference="central",
        workers="2",
        decisions=7_000,
        opponents="self:0.5,past",
    )
    assert readings[-1]["decisions"] >= 7_000 and readings[-1]["games"] > 0
    assert len(children) >= 2  # an evaluation has one, too


def test_the_champion_teaches_and_plays_along(trained):
    settings = {"teacher": "champion", "teacher_until": 1.0, "teacher_coef": 5.0, "minibatch": 240}
    _, readings = trained(
        "ofc", workers="0", opponents="self:0.5,champion:0.5", decisions=6_000, ppo=settings
    )
    assert readings[-1]["seated/champion"] == pytest.approx(1 / 3, abs=0.1)
    assert sum(reading["workers/teaching"] for reading in readings) > 0


def test_a_champion_of_other_rules_is_refused_before_anything_starts(trained):
    with pytest.raises(Failure, match="champion"):
        trained("ofc", switches={"seats": 2}, opponents="self:0.5,champion:0.5")


def test_opponents_sit_as_often_as_asked_and_are_counted(trained):
    _, readings = trained(
        "ofc", workers="0", opponents="self:0.5,random:0.3,past:0.2", decisions=12_000, log_s=60.0
    )
    last = readings[-1]
    # Of three seats one is always ours; the other two are drawn.
    assert last["seated/random"] == pytest.approx(0.2, abs=0.03)
    assert last["seated/past"] == pytest.approx(2 / 15, abs=0.03)
    assert last["seated/self"] == pytest.approx(2 / 3, abs=0.03)


def test_the_first_past_self_is_the_one_the_training_begins_as():
    config = overlay(resolve("tictactoe", "test"), {"workers": "0", "opponents": "past"}, "test")
    game = open_game(config)
    net = Net(game.spec, config.net)
    vector = flat_weights(net)
    pool = make_pool(config, game, net, lay_out(config, game), vector)
    (delivery,) = pool.receive()
    assert set(delivery.report.results) == {"past@0"}
    np.testing.assert_array_equal(pool._past.read(0)[0], vector)
    pool.close()


def test_the_clock_ends_a_training_too(trained):
    begun = time.monotonic()
    trained("tictactoe", workers="0", decisions=10**9, seconds=1.0)
    assert 1.0 <= time.monotonic() - begun < 10


# ---- the same again


@pytest.mark.parametrize("game", ["tictactoe", "gym:CartPole-v1"])
def test_the_same_seed_and_workers_give_the_same_training_bit_for_bit(trained, game, two_cores):
    told = {"sync": True, "workers": "2", "decisions": 8_000, "opponents": "self:0.4,past:0.3,random:0.3"}
    (first, a), (again, b), (other, c) = (trained(game, **told, seed=seed) for seed in (7, 7, 8))
    assert reproducible(a) == reproducible(b)
    assert len(a) == 8 and "losses/policy" in reproducible(a)[0] and "game/score" in reproducible(a)[-1]
    for name, array in read_weights(first).items():
        np.testing.assert_array_equal(array, read_weights(again)[name])
    assert reproducible(a) != reproducible(c)
    assert (read_weights(first)["policy.weight"] != read_weights(other)["policy.weight"]).any()


@pytest.mark.parametrize("game", ["tictactoe", "ofc", "gym:CartPole-v1"])
def test_eight_workers_have_streams_of_their_own(game):
    plan = small_plan(game, 16, 8, opponents="self:0.5,random:0.5", seed=3, workers=8)
    blocks = [first_block(plan, index) for index in range(8)]
    for one, other in combinations(blocks, 2):
        assert (one["action"] != other["action"]).any()
        assert (one["obs"] != other["obs"]).any()
        if game != "tictactoe":  # its games all begin alike
            assert (one["obs"][0] != other["obs"][0]).any()
    again = first_block(plan, 5)
    assert (again["action"] == blocks[5]["action"]).all() and (again["obs"] == blocks[5]["obs"]).all()


def small_plan(game: str, rows: int, steps: int, **more) -> Plan:
    return Plan(game, {}, "ppo", ppo.Config(), NetConfig(hidden=(8,)), rows, steps, **more)


def actor_of(plan: Plan, index: int) -> PpoActor:
    past = Past(get_context(), np.zeros(1, np.float32))
    return make_actor(plan, index, past, np.zeros(3, np.int64))[0]


def first_block(plan: Plan, index: int) -> Block:
    actor = actor_of(plan, index)
    net = Net(actor.spec, plan.net)
    for name, tensor in net.state_dict().items():
        tensor.fill_(1.0 if name == "obs_std" else 0.0)  # all choices equal: only luck tells workers apart
    actor.load(flat_weights(net), 0.0)
    columns = algos.find("ppo").columns(Config(settings=plan.settings), actor.spec)
    block = Block(columns, plan.steps, plan.rows)
    actor.fill(block)
    return block


def test_blocks_keep_what_the_policy_expected():
    plan = small_plan("tictactoe", 4, 4, seed=1)
    actor = actor_of(plan, 0)
    torch.manual_seed(0)
    net = Net(actor.spec, plan.net)
    actor.load(flat_weights(net), 0.0)
    block = Block(algos.find("ppo").columns(Config(settings=plan.settings), actor.spec), 4, 4)
    actor.fill(block)
    with torch.no_grad():
        value = net(*(torch.from_numpy(block[name]).flatten(0, 1) for name in ("obs", "legal")))[1]
    np.testing.assert_allclose(block["value"].ravel(), value, atol=1e-5)
    assert value.std() > 0.01


def test_exploration_is_spread_over_workers():
    plan = small_plan("tictactoe", 4, 4, seed=1, workers=3, temperature_spread=0.2)
    assert [actor_of(plan, index).temperature for index in range(3)] == pytest.approx([0.8, 1.0, 1.2])


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_blocks_played_at_another_temperature_are_off_policy(trained, monkeypatch, spread):
    learn, told = PpoLearner.learn, []

    def noted(self, blocks, off_policy):
        told.append(off_policy)
        return learn(self, blocks, off_policy)

    monkeypatch.setattr(PpoLearner, "learn", noted)
    _, readings = trained("tictactoe", workers="2", decisions=4_000, sync=True, temperature_spread=spread)
    assert set(told) == {spread > 0}
    ratio = readings[-1]["policy/lag_ratio"]
    assert ratio > 1e-3 if spread else ratio == 0


# ---- things that go wrong


def test_a_worker_killed_is_replaced_and_no_decision_is_missing(trained):
    killed = []

    def kill_one(metrics: dict) -> None:
        if not killed and metrics["decisions"] >= 6_000:
            killed.append(workers_of(psutil.Process())[0])
            killed[0].kill()

    _, readings = trained("tictactoe", kill_one, workers="2", decisions=16_384)
    assert killed and gone(killed)
    assert readings[-1]["workers/replaced"] == 1
    assert readings[-1]["workers/count"] == 2
    assert readings[-1]["decisions"] == 16_384  # a multiple of two blocks of 16 games and 32 decisions


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_game_that_raises_ends_the_training_with_its_message(trained, importable, workers, tmp_path):
    begun = time.monotonic()
    with pytest.raises(Failure, match="the bridge is out"):
        trained("broken_envs:Raising", workers=workers)
    assert time.monotonic() - begun < 30
    assert re.search(
        r"learner: .*broken_envs\.py\", line \d+, in step", (tmp_path / "run1" / LOG).read_text()
    )
    assert workers_of(psutil.Process()) == []


def test_workers_that_always_die_end_the_training_after_some_tries(trained, importable):
    with pytest.raises(Failure, match=rf"died {TRIES + 1} times"):
        trained("broken_envs:Dying", workers="1")
    assert workers_of(psutil.Process()) == []


# ---- nothing is left behind


def test_no_shared_memory_and_no_worker_is_left_after_a_training(trained):
    used: set[Path] = set()
    trained(
        "tictactoe", lambda _: used.update(shared_memory([psutil.Process()])), workers="2", decisions=3_000
    )
    assert used and not any(path.exists() for path in used)
    assert workers_of(psutil.Process()) == []


@pytest.mark.parametrize("training", ["forkserver", "fork"], indirect=True)
def test_killing_the_learner_leaves_neither_processes_nor_shared_memory(training):
    process, family = training
    used = shared_memory([psutil.Process(process.pid), *family])
    process.kill()
    assert wait_until(lambda: gone(family), limit(5))
    assert used and not any(path.exists() for path in used)


def test_ctrl_c_ends_a_training_in_seconds_with_its_weights_saved(training, tmp_path):
    process, family = training
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the learner and to its workers
    _, err = process.communicate(timeout=limit(5))
    assert process.returncode == 130
    assert "Traceback" not in err
    assert wait_until(lambda: gone(family), 2)
    assert np.isfinite(read_weights(tmp_path / "run")["policy.weight"]).all()


# ---- learning: margins that luck can't cross


WINDOW = 8
"""Readings over which what was learned is averaged: some hundred games."""


def late(readings: list[dict], name: str) -> float:
    values = [metrics[name] for metrics in readings if name in metrics]
    return mean(values[-WINDOW:])


def learned(trained, game: str, reached, **told) -> list[dict]:
    """Train until what shall be reached is, or to the end of the budget. All readings so far."""
    seen: list[dict] = []

    def look(metrics: dict) -> None:
        seen.append(metrics)
        if len(seen) > WINDOW and reached(seen):
            signal.raise_signal(signal.SIGINT)

    with contextlib.suppress(Stopped):
        trained(game, look, **told)
    return seen


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    """Trained as the README says: (folder, readings)."""
    readings: list[dict] = []
    told = {"decisions": 100_000, "log_s": 0.0, "run": str(tmp_path_factory.mktemp("cartpole") / "run")}
    config = overlay(resolve("gym:CartPole-v1"), told, "test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(machine.CORES, "2")
        return train(config, Listeners(readings.append)), readings


def test_cartpole_is_learned_by_the_command_in_the_readme(cartpole):
    _, readings = cartpole
    assert "ludus train gym:CartPole-v1 --decisions 100000" in README.read_text()
    assert readings[0]["game/length"] < 40  # random play falls after 22 steps
    assert late(readings, "game/length") > 450


def test_tictactoe_against_a_random_opponent_is_learned(trained):
    readings = learned(
        trained, "tictactoe", lambda seen: late(seen, "game/score") > 0.65,
        workers="2", decisions=90_000, opponents="random",
        net={"hidden": (64,)}, ppo={"gamma": 1.0, "learning_rate": 3e-3},
    )  # fmt: skip
    assert abs(readings[0]["game/score"]) < 0.35
    assert late(readings, "game/score") > 0.6


def test_foul_boards_become_rare_in_ofc(trained):
    def reached(seen: list[dict]) -> bool:
        return late(seen, "game/fouls") < 0.4 and late(seen, "game/points") > 3

    readings = learned(
        trained, "ofc", reached,
        workers="2", rows=64, decisions=200_000, opponents="random", ppo={"learning_rate": 2e-3},
        # All boards are set by decisions.
        switches={"hands": 1, "fantasyland_hands": "valued", "last_street": "played"},
    )  # fmt: skip
    assert readings[0]["game/fouls"] > 0.5  # random play fouls 58 % of its boards
    assert late(readings, "game/fouls") < 0.42
    assert late(readings, "game/points") > 2


def test_the_example_of_ones_own_environment_learns(tmp_path, two_cores):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "train_my_env.py")],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *scores, last = (line.rpartition(" ")[2] for line in done.stdout.splitlines())
    assert float(scores[-1]) > 0.75  # random moves get about 0
    assert read_weights(tmp_path / last)


def test_python_users_train_by_one_call_as_often_as_they_like(tmp_path):
    """Again and again, and it ends where the caller says so."""
    told = {"preset": "test", "run": tmp_path / "run", "workers": "0", "eval_every": "0", "log_s": 0.0}
    seen: list[int] = []
    for decisions in (1_000, 3_000):
        folder = ludus.train("tictactoe", decisions=decisions, on_report=lambda m: seen.append(1), **told)
        assert folder == tmp_path / "run" and read_weights(folder)
    assert len(seen) == 6
    reports = len(seen)
    ludus.train("tictactoe", decisions=9_000, on_report=lambda m: seen.append(1) or True, **told)
    assert len(seen) == reports + 1  # which ended it


def test_a_run_is_never_written_over(trained):
    folder, _ = trained("tictactoe", workers="0")
    before = (folder / METRICS).read_bytes()
    with pytest.raises(Usage, match="is finished"):
        trained("tictactoe", workers="0", run=str(folder))
    assert (folder / METRICS).read_bytes() == before


def test_memory_learns_what_no_policy_without_it_can(trained, importable):
    """The score is the share of cues recalled; guessing gets a half."""
    learning = {"minibatch": 128, "entropy_coef": 0.0, "learning_rate": 2e-3}
    budget = {"workers": "0", "decisions": 90_000, "steps": 32, "ppo": learning}
    for inference in ("central", "local"):
        readings = learned(
            trained, "cue_env:Cue", lambda seen: late(seen, "game/score") > 0.9,
            net={"hidden": (32,), "memory": 16}, inference=inference, **budget,
        )  # fmt: skip
        assert late(readings, "game/score") > 0.85
    budget["decisions"] = 3 * readings[-1]["decisions"]
    _, readings = trained("cue_env:Cue", net={"hidden": (32,)}, **budget)
    assert late(readings, "game/score") < 0.65


def against_random(folder: Path, count: int) -> Duel:
    config = read_config(folder)
    return table_duel(games.open(config.game), config, read_weights(folder), "random", count)


def test_an_agent_is_evaluated_at_environments_of_others(cartpole, trained):
    duel = against_random(cartpole[0], 20)
    assert len(duel.points) == 20 and duel.mean > 450 and duel.stats["length"] == duel.mean
    folder, _ = trained("zoo:classic/connect_four_v3", workers="0", decisions=2_000)
    duel = against_random(folder, 30)
    assert len(duel.won) >= 30 and 0 <= duel.won.mean() <= 1


def test_a_game_is_found_by_the_name_it_was_opened_by(trained, tmp_path, monkeypatch):
    """Whatever its rules call it."""
    (tmp_path / "own_for_test.py").write_text(
        "import dataclasses\n"
        "from ludus.games import tictactoe\n"
        "class Game(tictactoe.Game):\n"
        "    def make_rules(self, options):\n"
        "        rules = super().make_rules(options)\n"
        "        rules.spec = dataclasses.replace(rules.spec, game='noughts')\n"
        "        return rules\n"
        "    def measure(self, stats):\n"
        "        return 7.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    folder, _ = trained("own_for_test", workers="0", decisions=2_000)
    assert json.loads((folder / "best.json").read_text())["measure"] == 7
