"""What hears of a run beside its folder: messages, the mirror, TensorBoard, profiles, exports."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ludus.core.errors import Failure, Usage
from ludus.store import checkpoint
from ludus.store.run import CONFIG, EVENTS, LOG, METRICS, Run, read_lines, read_weights
from test_runs import After, events, newest_bytes

TOKEN = "abcSECRETabc"


@pytest.fixture
def discord():
    """A server that plays Discord's webhook: (its address, the messages it got)."""
    got: list[str] = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["content"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/api/webhooks/123/{TOKEN}", got
    server.shutdown()


def test_start_progress_best_and_end_reach_discord_and_no_secret_reaches_the_run(
    discord, trained, monkeypatch
):
    address, got = discord
    monkeypatch.setenv("DISCORD_WEBHOOK_URL", address)
    schedule = {"every_s": 0.0, "every_decisions": 2_000}
    folder, _ = trained(
        "gym:CartPole-v1", workers="0", decisions=6_000, notify_decisions=1_000, checkpoints=schedule
    )
    said = "\n".join(got)
    assert all(words in said for words in ("started", "trains", "new best", "is done", "decisions"))
    for file in folder.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file


def test_faults_reach_every_address(discord, trained, importable, monkeypatch):
    address, got = discord
    monkeypatch.delenv("DISCORD_WEBHOOK_URL", raising=False)
    with pytest.raises(Failure, match="the bridge is out"):
        trained("broken_envs:Raising", workers="0", notify=(address, f"{address}again"))
    faults = [text for text in got if "failed" in text]
    assert len(faults) == 2 and all("the bridge is out" in text for text in faults)


def test_a_notifier_that_is_not_there_costs_nothing(trained, monkeypatch):
    monkeypatch.setenv("DISCORD_WEBHOOK_URL", f"http://127.0.0.1:9/api/webhooks/1/{TOKEN}")
    folder, readings = trained("tictactoe", workers="0", decisions=2_000)
    assert readings[-1]["decisions"] >= 2_000
    assert TOKEN not in (folder / EVENTS).read_text() + (folder / LOG).read_text()


def test_a_run_goes_on_from_its_mirror_on_an_empty_machine(trained, ludus, tmp_path):
    bucket = tmp_path / "bucket" / "myrun"
    bucket.parent.mkdir()
    folder, _ = trained("tictactoe", workers="0", decisions=3_000, mirror=f"file://{bucket}")
    assert (bucket / METRICS).read_bytes() == (folder / METRICS).read_bytes()
    empty = tmp_path / "empty"
    empty.mkdir()
    code, _, err = ludus("resume", f"file://{bucket}", "--decisions", "5000", cwd=empty)
    assert code == 0, err
    run = empty / "runs/myrun"
    made = [line["decisions"] for line in read_lines(run / METRICS)]
    assert made[0] < 3_000 and made[-1] >= 5_000  # its whole history came along
    there = bucket / checkpoint.CHECKPOINTS / checkpoint.listed(run)[-1].name / checkpoint.WEIGHTS
    assert there.read_bytes() == newest_bytes(run)


def test_a_new_run_never_writes_over_a_mirror_that_holds_another(trained, tmp_path):
    bucket = f"file://{tmp_path}/bucket"
    trained("tictactoe", workers="0", decisions=1_000, mirror=bucket)
    with pytest.raises(Usage, match="holds another run"):
        trained("tictactoe", workers="0", decisions=1_000, mirror=bucket)


def test_tensorboard_gets_the_metrics(trained):
    folder, readings = trained("tictactoe", workers="0", decisions=2_000, tensorboard=True)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(folder / "tensorboard"))
    board.Reload()
    points = [(event.step, event.value) for event in board.Scalars("losses/policy")]
    assert [step for step, _ in points] == [reading["decisions"] for reading in readings]
    np.testing.assert_allclose([v for _, v in points], [r["losses/policy"] for r in readings], rtol=1e-5)


def test_a_profile_tells_of_every_process_and_opens_in_a_trace_viewer(trained):
    folder, readings = trained("tictactoe", workers="2", decisions=4_000, profile=True)
    rows = json.loads((folder / "profile.json").read_text())
    phases = {(process, phase) for process, phase, *_ in rows}
    assert {("learner", "optimising"), ("learner", "waiting for workers"), ("worker-1", "stepping")} <= phases
    counts = [count for process, phase, _, count, _ in rows if phase == "stepping"]
    assert sum(counts) == readings[-1]["decisions"]
    spans = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert {"name", "ph", "ts", "dur", "pid", "tid"} <= set(spans[0])
    whole = ("waiting for workers", "learning", "publishing", "reporting", "saving")
    learner = sum(seconds for process, phase, seconds, *_ in rows if phase in whole)
    assert 0.5 * readings[-1]["seconds"] < learner < 1.5 * readings[-1]["seconds"]


def test_money_is_counted(trained):
    _, readings = trained("tictactoe", workers="0", decisions=1_000, price_per_hour=3.6)
    last = readings[-1]
    assert last["cost/total"] == pytest.approx(last["seconds"] / 1000)
    assert last["cost/per_million"] == pytest.approx(last["cost/total"] / last["decisions"] * 1e6)


def test_runs_are_listed_with_their_state_and_empty_ones_pruned(trained, ludus, tmp_path):
    trained("tictactoe", workers="0", decisions=1_000, run=str(tmp_path / "runs/whole"))
    with pytest.raises(Exception, match="stopped"):
        trained(
            "tictactoe", After(1, lambda: os.kill(os.getpid(), 2)), workers="0", decisions=90_000,
            run=str(tmp_path / "runs/halved"),
        )  # fmt: skip
    (tmp_path / "runs/empty").mkdir()
    (tmp_path / "runs/empty" / CONFIG).write_text((tmp_path / "runs/whole" / CONFIG).read_text())
    _, listed, _ = ludus("runs")
    rows = {line.split()[0]: line for line in listed.splitlines()[1:]}
    assert "done" in rows["whole"] and "stopped" in rows["halved"] and "broken off" in rows["empty"]
    assert "removed runs/empty" in ludus("runs", "--prune", "--yes")[1]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["halved", "whole"]


def test_two_trainings_of_one_run_are_refused(trained, tmp_path):
    folder, _ = trained("tictactoe", workers="0", decisions=1_000)
    from ludus.store.run import read_config

    held = Run(folder, read_config(folder))
    with pytest.raises(Usage, match="another process"):
        trained("tictactoe", workers="0", decisions=3_000, run=str(folder))
    held.close()


@pytest.mark.parametrize("game", ["tictactoe", "gym:Pendulum-v1", "ofc"])
def test_an_exported_policy_computes_the_same(game, trained, ludus):
    import onnxruntime
    import torch

    from ludus import games
    from ludus.nets.net import Net
    from ludus.store.run import read_config

    folder, _ = trained(game, workers="0", decisions=1_000)
    code, _, err = ludus("export", str(folder), "--onnx", "--csv")
    assert code == 0, err
    table = games.open(game).table(5)
    turn, config = table.reset(9), read_config(folder)
    net = Net(table.spec, config.net)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in read_weights(folder).items()})
    session = onnxruntime.InferenceSession(str(folder / "policy.onnx"))
    inputs = {"obs": turn.obs, "legal": turn.legal}
    wanted = {entry.name for entry in session.get_inputs()}
    logits, value = session.run(None, {name: inputs[name] for name in wanted})
    ours = net(torch.from_numpy(turn.obs), torch.from_numpy(turn.legal))
    np.testing.assert_allclose(logits, ours[0].detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value, ours[1].detach(), rtol=1e-4, atol=1e-5)
    lines = (folder / "metrics.csv").read_text().splitlines()
    assert len(lines) == 1 + len(read_lines(folder / METRICS)) and lines[0].startswith("seconds,decisions")
    assert events(folder, "end")
