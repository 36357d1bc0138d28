"""Evaluation during training: who plays, what it costs, and that the training never notices."""

import json
import os
import signal
from types import SimpleNamespace

import pytest

from ludus import algos, evaluation
from ludus.config import overlay, resolve
from ludus.core.errors import Stopped, Usage
from ludus.core.rules import RandomBot
from ludus.evaluation import SHARE, Evaluator
from ludus.store import checkpoint
from ludus.store.run import EVENTS, METRICS, read_lines, read_weights
from ludus.training.loop import Audience, train
from trainings import Listeners, reproducible


def config_of(game: str, **changes):
    return overlay(resolve(game, "test"), changes, "test")


def run(tmp_path, name: str, evaluated: bool = True, game: str = "tictactoe", **changes):
    config = config_of(game, run=str(tmp_path / name), workers="0", sync=True, **changes)
    readings: list[dict] = []
    evaluator = {"evaluate": Evaluator(config)} if evaluated else {}
    folder = train(config, Listeners(readings.append), **evaluator)
    return folder, readings


def evaluations(readings: list[dict]) -> list[dict]:
    return [
        {name: value for name, value in line.items() if name.startswith("eval/")}
        for line in readings
        if "eval/decisions" in line
    ]


def test_it_is_reproducible_and_the_training_never_notices(tmp_path):
    told = {"decisions": 4000, "eval_every": 1000, "eval_games": 20}
    folder, once = run(tmp_path, "once", **told)
    _, again = run(tmp_path, "again", **told)
    _, without = run(tmp_path, "without", evaluated=False, **told)
    assert evaluations(once) == evaluations(again)
    made = [found["eval/decisions"] for found in evaluations(once)]
    assert len(made) >= 4 and made[-1] == once[-1]["decisions"]
    for name in ("greedy", "random"):
        assert {f"eval/{name}/{part}" for part in ("score", "score_ci", "win", "win_ci", "games")} <= set(
            evaluations(once)[0]
        )
    plain = [
        {name: value for name, value in line.items() if not name.startswith("eval/")}
        for line in reproducible(once)
    ]
    assert json.dumps(plain) == json.dumps(reproducible(without))
    events = [line for line in read_lines(folder / EVENTS) if line["event"] == "evaluation"]
    assert [line["eval/decisions"] for line in events] == made


def test_a_resumed_run_is_evaluated_as_one_that_was_never_interrupted(tmp_path):
    told = {"decisions": 6000, "eval_every": 1500, "eval_games": 10, "workers": "0", "sync": True}
    told["checkpoints"] = {"every_s": 0.0, "every_decisions": 1000}
    configs = {name: config_of("tictactoe", run=str(tmp_path / name), **told) for name in ("whole", "broken")}
    train(configs["whole"], Audience(), evaluate=Evaluator(configs["whole"]))

    def interrupt(metrics: dict) -> None:
        if metrics["decisions"] > 2500:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        train(configs["broken"], Listeners(interrupt), evaluate=Evaluator(configs["broken"]))
    train(configs["broken"], Audience(), evaluate=Evaluator(configs["broken"]))
    whole, broken = (reproducible(read_lines(tmp_path / name / METRICS)) for name in ("whole", "broken"))
    assert broken == whole and len(evaluations(whole)) >= 4


def test_it_tells_a_good_agent_from_a_bad_one(tmp_path):
    """The weights that play are those of the learner, now."""
    config = config_of("tictactoe", eval_games=100, sync=True)
    evaluator = Evaluator(config)
    net = algos.find("ppo").make_learner(config, evaluator.game, "cpu").net
    weights = {name: tensor.numpy().copy() for name, tensor in net.state_dict().items()}
    middle, corner = ({**weights, "policy.bias": weights["policy.bias"].copy()} for _ in range(2))
    for prefer, order in ((middle, [4, 0, 2, 6, 8, 1, 3, 5, 7]), (corner, [1, 3, 5, 7, 0, 2, 6, 8, 4])):
        prefer["policy.weight"] = prefer["policy.weight"] * 0
        prefer["policy.bias"][order] = range(9, 0, -1)
    scores = [
        evaluator(0, 1, lambda: chosen, True).metrics["eval/random/score"]  # noqa: B023
        for chosen in (middle, corner)
    ]
    assert scores[0] > scores[1]


def test_the_best_weights_are_those_that_did_best_against_the_strongest_opponent(tmp_path):
    told = {"decisions": 4000, "eval_every": 1000, "eval_games": 20}
    folder, readings = run(tmp_path, "best", **told)
    best = max(evaluations(readings), key=lambda found: found["eval/greedy/score"])
    note = checkpoint.read_best(folder)
    assert (note.decisions, note.measure) == (best["eval/decisions"], best["eval/greedy/score"])
    assert note.name == "points/game against greedy"
    again = Evaluator(config_of("tictactoe", sync=True, **told))
    kept = again(0, 1, lambda: read_weights(folder, "best"), True)
    assert kept.measure == pytest.approx(note.measure)  # the same deals


@pytest.mark.parametrize("step_s", [0.001, 0.2, 5.0])
def test_it_takes_a_bounded_share_of_the_time(monkeypatch, step_s):
    now = spent = 0.0

    def steps(rules, agent, bot, deals, seed, opening):
        nonlocal now, spent
        import numpy as np

        for _ in range(30):
            now += step_s
            spent += step_s
            yield
        return np.zeros((deals, 2)), np.ones((deals, 2)), np.zeros((deals, 2, 3))

    monkeypatch.setattr(evaluation.time, "monotonic", lambda: now)
    monkeypatch.setattr(evaluation.match, "mirrored_steps", steps)
    config = config_of("tictactoe", decisions=1_000_000)
    evaluator = Evaluator(config)
    monkeypatch.setattr(evaluation, "Agent", lambda *args, **more: SimpleNamespace(bot=RandomBot))
    found = 0
    for decisions in range(0, 1_000_000, 1000):
        now += 2.0
        found += bool(evaluator(max(decisions - 1000, 0), decisions, dict, False))
        assert spent <= SHARE * now + step_s
    assert found >= (10 if step_s < 0.1 else 2 if step_s < 1 else 0)
    before = spent
    last = evaluator(999_000, 1_000_000, dict, True)
    assert spent - before <= max(evaluation.LAST_S, SHARE * now) + step_s
    assert bool(last) == (step_s < 0.1)  # what can't be done in time is not done


class Broken:
    decides = True

    def __call__(self, before, decisions, weights, last):
        raise ValueError("no such luck")


def test_it_fails_without_harm(tmp_path):
    config = config_of("tictactoe", run=str(tmp_path / "run"), workers="0", decisions=3000)
    told: list[tuple[str, dict]] = []
    audience = Audience()
    audience.event = lambda *event: told.append(event)
    train(config, audience, evaluate=Broken())
    failed = [details["reason"] for what, details in told if what == "evaluation failed"]
    assert failed == ["ValueError: no such luck"]
    assert told[-2][0] == "end" or told[-1][0] == "end"


def test_environments_are_evaluated_against_random_play(tmp_path):
    _, readings = run(tmp_path, "zoo", game="zoo:classic/tictactoe_v3", decisions=1500, eval_games=20)
    assert 0 <= evaluations(readings)[-1]["eval/random/win"] <= 1
    assert Evaluator(config_of("gym:CartPole-v1")).opponents == []  # its score tells
    _, readings = run(
        tmp_path, "gym", game="gym:CartPole-v1", decisions=1500, eval_games=4, eval_against="alone"
    )
    assert evaluations(readings)[-1]["eval/alone/score"] > 5


def test_agents_that_search_are_evaluated_too(tmp_path):
    _, readings = run(tmp_path, "az", game="connect4", decisions=300, eval_games=4)
    assert set(evaluations(readings)[-1]) >= {"eval/greedy/win", "eval/random/win"}


def test_agents_with_memory_are_evaluated_too(tmp_path):
    _, readings = run(tmp_path, "memory", decisions=1500, eval_every=500, eval_games=8, net={"memory": 8})
    assert evaluations(readings)


def test_who_and_when(tmp_path):
    assert Evaluator(config_of("ofc")).opponents == ["greedy", "random"]
    assert Evaluator(config_of("tictactoe", eval_against="search, random")).opponents == ["search", "random"]
    assert Evaluator(config_of("tictactoe", eval_every=0)).opponents == []
    with pytest.raises(Usage, match="eval_against"):
        Evaluator(config_of("tictactoe", eval_against="nobody"))
    with pytest.raises(Usage, match="eval_against"):
        Evaluator(config_of("gym:CartPole-v1", eval_against="greedy"))


class Slow:
    """An evaluation that is never complete."""

    decides = True

    def __call__(self, before, decisions, weights, last):
        return None


def test_until_an_evaluation_is_complete_the_trainings_own_measure_finds_the_best(tmp_path):
    told = {"decisions": 3_000, "workers": "0", "run": str(tmp_path / "run")}
    folder = train(overlay(resolve("tictactoe", "test"), told, "test"), Listeners(), Slow())
    best = checkpoint.read_best(folder)
    assert best is not None and best.name == "rating"


def test_the_first_games_are_no_evaluation(tmp_path):
    """What they found gives way, after a resume too."""
    for decisions, name in ((480, "points/hand of its first games"), (4_800, "points/hand")):
        told = {"decisions": decisions, "workers": "0", "sync": True, "run": str(tmp_path / "run")}
        train(overlay(resolve("ofc", "test"), told, "test"), Listeners(), Slow())
        assert checkpoint.read_best(tmp_path / "run").name == name
