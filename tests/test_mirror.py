"""Mirrors of runs: in a folder, and on an S3 server of this machine that comes and goes."""

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote

import pytest

from ludus.core.errors import Failure, Usage
from ludus.store import lease
from ludus.store.bucket import address, http_allowed, is_url, list_checkpoints, open_store
from ludus.store.checkpoint import milestones
from ludus.store.mirror import Mirror, misfit, trained_elsewhere
from ludus.store.restore import restore
from ludus.store.run import read_lines
from trainings import limit, ludus_command

SECRET = "s3cr3t-key"
STAMP = "Fri, 01 Jan 2100 00:00:00 GMT"


def write_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('game = "ofc"\n')
    (folder / "metrics.jsonl").write_text('{"decisions": 1}\n')
    (folder / "events.jsonl").write_text(f'{{"time": {time.time_ns()}}}\n')
    (folder / "log.txt").write_text("worker 1: hello\n")
    return folder


def write_checkpoint(run: Path, name: str, size: int = 1000) -> None:
    """As training does it: under a name that doesn't count, then renamed."""
    unfinished = run / "checkpoints" / f".{name}"
    unfinished.mkdir(parents=True)
    files = {"weights.safetensors": os.urandom(size), "trainer.pt": os.urandom(10)}
    sums = {}
    for file, content in files.items():
        (unfinished / file).write_bytes(content)
        sums[file] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (unfinished / "manifest.json").write_text(json.dumps({"files": sums}))
    unfinished.rename(run / "checkpoints" / name)


def write_milestone(run: Path, decisions: int) -> None:
    (run / "milestones").mkdir(exist_ok=True)
    (run / "milestones" / f"{decisions:012d}.safetensors").write_bytes(os.urandom(100))


def tree(folder: Path) -> dict[str, bytes]:
    """All of a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def until(true, wait_s: float = 10.0) -> None:
    end = time.monotonic() + wait_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def took(wanted: lease.Lease) -> bool:
    with contextlib.suppress(lease.Held):  # its owner may renew it at the same moment
        wanted.hold()
        return True
    return False


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def copy(url: str, run: Path) -> None:
    assert Mirror(url, run).close(10)


@pytest.fixture
def run(tmp_path):
    run = write_run(tmp_path / "run")
    write_checkpoint(run, "1000")
    return run


class S3:
    """A server that can be stopped and started again on the same port, and keeps what it holds."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()
        self.port = self._server.get_host_and_port()[1]
        self.url, self.runs = f"http://127.0.0.1:{self.port}", True

    def stop(self) -> None:
        self._server.stop()
        self.runs = False

    def ask(self, method: str, path: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/{path}", method=method)).close()


@pytest.fixture(scope="module")
def server():
    server = S3()
    yield server
    server.stop()


@pytest.fixture
def s3(server, monkeypatch):
    """The server with one empty bucket, and the variables that lead to it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if not server.runs:  # a test failed after it had stopped it
        server.start()
    server.ask("POST", "moto-api/reset")
    server.ask("PUT", "bucket")
    return server


@pytest.fixture(params=["file", "s3"])
def url(request, tmp_path):
    if request.param == "file":
        return f"file://{tmp_path}/mirror%20of%20runs/a"
    request.getfixturevalue("s3")
    return "s3://bucket/runs/a"


# ---- addresses


def test_only_urls_are_urls():
    assert is_url("s3://b/p") and is_url("gs://b") and is_url("file:///p")
    assert not is_url("runs/ofc") and not is_url("/runs") and not is_url("http://x/y")


@pytest.mark.parametrize(
    ("flag", "environ", "expected"),
    [
        ("s3://b/p/", {}, "s3://b/p"),
        ("file:///p/q", {"CLOUD_PROVIDER": "gcs", "GCS_BUCKET": "b"}, "file:///p/q"),
        ("", {}, None),
        ("", {"CLOUD_PROVIDER": "none", "GCS_BUCKET": "b"}, None),
        ("", {"CLOUD_PROVIDER": "local"}, None),
        ("", {"CLOUD_PROVIDER": "gcs", "GCS_BUCKET": "b"}, "gs://b"),
        ("", {"CLOUD_PROVIDER": "GCS", "GCS_BUCKET": "b", "GCS_PREFIX": "/p/q/"}, "gs://b/p/q"),
        ("", {"CLOUD_PROVIDER": "s3", "S3_BUCKET": "b"}, "s3://b"),
        ("", {"CLOUD_PROVIDER": "aws", "S3_BUCKET": "b", "S3_PREFIX": "p"}, "s3://b/p"),
    ],
)
def test_the_address_comes_from_the_flag_or_the_environment(flag, environ, expected):
    assert address(flag, environ) == expected


@pytest.mark.parametrize(
    ("flag", "environ", "said"),
    [
        ("", {"CLOUD_PROVIDER": "moon"}, "gcs, s3"),
        ("", {"CLOUD_PROVIDER": "gcs"}, "GCS_BUCKET"),
        ("runs/a", {}, "s3://bucket/prefix"),
        ("s3://", {}, "s3://bucket/prefix"),
        ("file://relative/path", {}, "file:///path"),
        (f"s3://me:{SECRET}@bucket/p", {}, "without credentials"),
        (f"gs://bucket/p?key={SECRET}", {}, "without credentials"),
    ],
)
def test_a_wrong_address_is_a_usage_error_without_secrets(flag, environ, said):
    with pytest.raises(Usage, match=re.escape(said)) as error:
        address(flag, environ)
    assert SECRET not in str(error.value) and "\n" not in str(error.value)


# ---- there and back


def test_a_run_comes_back_byte_for_byte(run, url, tmp_path):
    write_checkpoint(run, "2000", size=11_000_000)  # in several parts
    write_milestone(run, 1_000_000)
    (run / "checkpoints" / ".3000").mkdir()
    copy(url, run)
    restore(url, tmp_path / "deep" / "back")
    (run / "checkpoints" / ".3000").rmdir()
    assert tree(tmp_path / "deep" / "back") == tree(run)
    assert os.listdir(tmp_path / "deep") == ["back"]


def test_what_grows_and_what_is_new_is_copied_again(run, url, tmp_path):
    copying = Mirror(url, run, every_s=0.05)
    until(lambda: copying.state()["pending"] == 0)
    append(run / "metrics.jsonl", '{"decisions": 2}')
    (run / "best.json").write_text("{}")
    write_milestone(run, 1_000_000)
    until(lambda: copying.state()["pending"] == 0)
    assert copying.close(5)
    restore(url, tmp_path / "back")
    assert tree(tmp_path / "back") == tree(run)


def test_a_poke_copies_soon(run, url):
    copying = Mirror(url, run, every_s=1000)
    until(lambda: copying.state()["last_success"])
    write_checkpoint(run, "2000")
    assert copying.state()["pending"] == 1
    copying.poke()
    until(lambda: copying.state()["pending"] == 0)
    assert copying.state() | {"last_success": 0} == {
        "last_success": 0,
        "pending": 0,
        "errors": 0,
        "failing": False,
    }
    copying.close(5)


def test_removed_checkpoints_are_removed_once_a_newer_one_is_there(run, url, tmp_path):
    copying = Mirror(url, run, every_s=0.02)
    until(lambda: copying.state()["pending"] == 0)
    write_milestone(run, 1)
    shutil.rmtree(run / "checkpoints" / "1000")
    before = copying.state()["last_success"]
    until(lambda: copying.state()["last_success"] > before + 0.1)
    restore(url, tmp_path / "early")
    assert os.listdir(tmp_path / "early" / "checkpoints") == ["1000"]
    write_checkpoint(run, "2000")
    assert copying.close(5)
    restore(url, tmp_path / "late")
    assert os.listdir(tmp_path / "late" / "checkpoints") == ["2000"]
    assert tree(tmp_path / "late" / "milestones") == tree(run / "milestones") != {}


def test_a_checkpoint_removed_while_it_is_copied_is_no_error(run, tmp_path):
    write_checkpoint(run, "2000")
    (run / "checkpoints" / "1000" / "trainer.pt").unlink()  # a removal that is under way
    heard: list[str] = []
    copying = Mirror(f"file://{tmp_path}/mirror", run, on_event=heard.append)
    assert not copying.close(0.3)  # since that one is not in the mirror
    assert heard == []
    restore(f"file://{tmp_path}/mirror", tmp_path / "back")
    assert os.listdir(tmp_path / "back" / "checkpoints") == ["2000"]


def test_a_mirror_that_holds_another_run_is_left_as_it_is(run, url, tmp_path):
    other = write_run(tmp_path / "other")
    assert not misfit(url, run)
    copy(url, other)
    assert misfit(url, run) and not misfit(url, other)
    heard: list[str] = []
    copying = Mirror(url, run, on_event=heard.append)
    until(lambda: heard)
    assert not copying.close(0.1) and "it holds another run" in heard[0]
    restore(url, tmp_path / "back")
    assert tree(tmp_path / "back") == tree(other)


def test_a_mirror_that_is_ahead_is_left_as_it_is(run, url, tmp_path):
    """Another machine went on with the run: this one must not remove what it made."""
    behind = shutil.copytree(run, tmp_path / "behind")
    write_checkpoint(run, "2000")
    copy(url, run)
    heard: list[str] = []
    copying = Mirror(url, behind, on_event=heard.append)
    until(lambda: heard)
    assert not copying.close(0.1) and "it holds a newer checkpoint" in heard[0]
    restore(url, tmp_path / "back")
    assert tree(tmp_path / "back") == tree(run)


# ---- two machines


@pytest.fixture
def other(run, tmp_path):
    """The same run on another machine."""
    return shutil.copytree(run, tmp_path / "other")


def test_two_machines_never_copy_to_one_mirror(run, other, url):
    heard: list[str] = []
    ours = Mirror(url, run, every_s=0.05)
    until(lambda: ours.state()["last_success"])
    theirs = Mirror(url, other, on_event=heard.append, retry_s=0.05)
    assert "trains it" in theirs.refusal(10) and not ours.refusal(0)
    assert "trains it" in trained_elsewhere(url, other) and not trained_elsewhere(url, run)
    write_checkpoint(other, "2000")
    until(lambda: heard)
    assert "trains it" in heard[0] and not theirs.close(0.2)
    assert "2000" not in list_checkpoints(open_store(url))
    assert ours.close(10)
    copy(url, other)  # now that nobody else does
    assert "2000" in list_checkpoints(open_store(url))


def test_a_machine_that_is_gone_loses_its_lease_and_hears_of_it(run, other, url, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_S", 0.1)
    heard: list[str] = []
    ours = Mirror(url, run, every_s=0.05, retry_s=0.05, on_event=heard.append)
    until(lambda: ours.state()["last_success"])
    age_s, store = lease._age_s, open_store(url)
    monkeypatch.setattr(lease, "_age_s", lambda asked: lease.STALE_S if asked is store else age_s(asked))
    theirs = lease.Lease(store, other)
    until(lambda: took(theirs))  # to them no sign of life is recent enough
    until(lambda: heard)
    assert "trains it" in heard[0]
    theirs.release()
    until(lambda: len(heard) == 2)
    assert "works again" in heard[1] and ours.close(10)
    assert not trained_elsewhere(url, other)


def test_the_same_folder_takes_its_own_lease_again_at_once(run, url):
    killed = lease.Lease(open_store(url, make=True), run)
    killed.hold()
    killed._over.set()
    copy(url, run)


def test_a_lease_that_is_given_back_is_not_renewed(run, tmp_path, monkeypatch):
    """Though its sign of life is on its way: it would lock out all others for minutes."""
    monkeypatch.setattr(lease, "BEAT_S", 0.01)
    store, renews = open_store(f"file://{tmp_path}/mirror", make=True), threading.Event()
    held = lease.Lease(store, run)
    held.hold()
    create = held._create

    def create_late() -> bool:
        renews.set()
        time.sleep(0.3)
        return create()

    monkeypatch.setattr(held, "_create", create_late)
    assert renews.wait(60)
    held.release()
    held._beating.join(60)
    assert not lease._read(store)


def test_a_training_is_refused_while_another_machine_trains_the_run(trained, tmp_path):
    bucket = f"file://{tmp_path}/bucket"
    folder, _ = trained("tictactoe", workers="0", decisions=1_000, mirror=bucket)
    other = shutil.copytree(folder, tmp_path / "other")
    before = (other / "config.toml").read_bytes()
    held = lease.Lease(open_store(bucket), folder)
    held.hold()
    with pytest.raises(Usage, match="trains it"):
        trained("tictactoe", workers="0", decisions=2_000, run=str(other), mirror=bucket)
    assert (other / "config.toml").read_bytes() == before
    held.release()
    trained("tictactoe", workers="0", decisions=2_000, run=str(other), mirror=bucket)


def test_half_a_line_is_cut_when_a_run_comes_back(run, url, tmp_path):
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"decis')
    copy(url, run)
    restore(url, tmp_path / "back")
    assert (tmp_path / "back" / "metrics.jsonl").read_text() == '{"decisions": 1}\n'


# ---- Google's buckets


class Gcs(BaseHTTPRequestHandler):
    """As much of Google's server as a mirror asks for."""

    held: ClassVar[dict[str, bytes]] = {}

    def answer(self, code: int, body: bytes = b"") -> None:
        self.send_response(code)
        for name, value in {"Content-Length": len(body), "ETag": '"1"', "Last-Modified": STAMP}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.held[unquote(self.path)] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_DELETE(self) -> None:
        del self.held[unquote(self.path)]
        self.answer(204)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if not query:
            content = self.held.get(unquote(path))
            return self.answer(404) if content is None else self.answer(200, content)
        start = f"{path}/{parse_qs(query)['prefix'][0]}"
        entry = (
            "<Contents><Key>{}</Key><Size>{}</Size><LastModified>{}</LastModified><ETag>1</ETag></Contents>"
        )
        found = [
            entry.format(key.removeprefix(f"{path}/"), len(content), "2100-01-01T00:00:00Z")
            for key, content in self.held.items()
            if key.startswith(start)
        ]
        self.answer(200, f"<ListBucketResult>{''.join(found)}</ListBucketResult>".encode())

    def log_message(self, *words) -> None:
        pass


def test_a_bucket_of_google_is_found_by_its_variables_and_gives_the_run_back(trained, tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gcs)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    key = {"gcs_base_url": f"http://127.0.0.1:{server.server_port}", "disable_oauth": True}
    (tmp_path / "key.json").write_text(
        json.dumps(key | dict.fromkeys(("client_email", "private_key", "private_key_id"), ""))
    )
    variables = {"CLOUD_PROVIDER": "gcs", "GCS_BUCKET": "bucket", "GCS_PREFIX": "runs"}
    variables |= {"GOOGLE_SERVICE_ACCOUNT": str(tmp_path / "key.json"), "AWS_ALLOW_HTTP": "true"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    folder, _ = trained("tictactoe", workers="0", decisions=2_000, checkpoints={"milestone": 1_000})
    restore(f"gs://bucket/runs/{folder.name}", tmp_path / "back")
    server.shutdown()
    kept = {name: content for name, content in tree(folder).items() if name != ".lock"}
    assert tree(tmp_path / "back") == kept and len(kept) == 13


# ---- what S3 sees


@pytest.fixture
def puts(caplog):
    """Keys that were put since it was last asked."""
    caplog.set_level(logging.INFO, "werkzeug")

    def puts() -> list[str]:
        found = re.findall(r"PUT /bucket/runs/a/(\S+) HTTP", caplog.text)
        caplog.clear()
        return [key for key in found if not key.startswith("lease.")]

    return puts


def test_the_manifest_goes_last_and_nothing_goes_twice(run, s3, puts, tmp_path):
    write_milestone(run, 1_000_000)
    copy("s3://bucket/runs/a", run)
    sent = puts()
    checkpoint = [key for key in sent if key.startswith("checkpoints/")]
    assert checkpoint[-1] == "checkpoints/1000/manifest.json" and len(checkpoint) == 3
    assert sent[:2] == ["events.jsonl", "config.toml"] and sent.index(checkpoint[-1]) < sent.index(
        "metrics.jsonl"
    )

    write_checkpoint(run, "2000")
    copy("s3://bucket/runs/a", run)  # as after a restart
    assert {key.split("/")[1] for key in puts() if "/" in key} == {"2000"}

    restore("s3://bucket/runs/a", tmp_path / "back")
    copy("s3://bucket/runs/a", tmp_path / "back")  # as on another machine
    assert not [key for key in puts() if "/" in key]


def test_another_checkpoint_of_the_same_name_replaces_the_old_one(run, s3, tmp_path):
    copy("s3://bucket/runs/a", run)
    shutil.rmtree(run / "checkpoints" / "1000")
    write_checkpoint(run, "1000")
    copy("s3://bucket/runs/a", run)
    restore("s3://bucket/runs/a", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(run)


def test_a_server_that_goes_away_is_told_once_and_training_goes_on(run, s3, tmp_path):
    heard: list[str] = []
    copying = Mirror(
        "s3://bucket/runs/a", run, every_s=0.05, retry_s=0.05, longest_retry_s=0.1, on_event=heard.append
    )
    until(lambda: copying.state()["pending"] == 0)
    s3.stop()
    write_checkpoint(run, "2000")
    shutil.rmtree(run / "checkpoints" / "1000")
    errors = copying.state()["errors"]
    while copying.state()["errors"] < errors + 2:
        copying.poke()
        time.sleep(0.01)
    assert len(heard) == 1
    assert re.search(r"s3://bucket/runs/a fails \((Connection refused|no connection)\)", heard[0])
    assert SECRET not in heard[0] and "someone" not in heard[0]

    s3.start()
    until(lambda: copying.state()["pending"] == 0 and len(heard) == 2)
    assert "works again" in heard[1]
    assert copying.close(5)
    restore("s3://bucket/runs/a", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(run)


def test_what_is_written_about_the_mirror_itself_is_copied_too(run, s3, tmp_path):
    s3.stop()
    events = run / "events.jsonl"
    copying = Mirror("s3://bucket/runs/a", run, retry_s=0.05, on_event=lambda text: append(events, text))
    until(lambda: "fails" in events.read_text())
    s3.start()
    assert copying.close(5)
    restore("s3://bucket/runs/a", tmp_path / "back")
    assert "works again" in (tmp_path / "back" / "events.jsonl").read_text()


def test_close_gives_up_on_a_dead_server(run, s3):
    s3.stop()
    copying = Mirror("s3://bucket/given-up/a", run)  # elsewhere: it may go on beside the next test
    began = time.monotonic()
    assert not copying.close(0.3)
    assert time.monotonic() - began < limit(1)
    s3.start()


def test_a_server_that_never_answers_holds_up_nobody(run, s3, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        copying = Mirror("s3://bucket/runs/a", run)
        silent.accept()  # so it waits for an answer now
        began = time.monotonic()
        copying.poke()
        assert copying.state()["pending"] == 5
        assert not copying.close(0.1)
        assert time.monotonic() - began < limit(0.5)


def test_a_missing_bucket_is_told_in_one_line(run, s3):
    heard: list[str] = []
    copying = Mirror("s3://elsewhere/a", run, on_event=heard.append)
    until(lambda: heard)
    copying.close(0)
    assert "the server answers 404 Not Found" in heard[0] and "\n" not in heard[0]


def test_plain_http_is_for_this_machine_only():
    assert http_allowed({"AWS_ENDPOINT_URL": "http://localhost:9000"})
    assert not http_allowed({"AWS_ENDPOINT_URL": "http://10.0.0.1:9000"})
    assert http_allowed({"AWS_ENDPOINT_URL": "http://10.0.0.1:9000", "AWS_ALLOW_HTTP": "true"})


# ---- what is not restored


@pytest.fixture
def damaged(run, tmp_path):
    """A mirror in a folder, to be damaged: (its url, its checkpoints)."""
    write_checkpoint(run, "2000")
    copy(f"file://{tmp_path}/mirror", run)
    return f"file://{tmp_path}/mirror", tmp_path / "mirror" / "checkpoints"


def test_a_torn_checkpoint_is_not_restored(damaged, tmp_path):
    url, checkpoints = damaged
    (checkpoints / "2000" / "manifest.json").unlink()
    restore(url, tmp_path / "back")
    assert os.listdir(tmp_path / "back" / "checkpoints") == ["1000"]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("weights.safetensors", b"other", "weights.safetensors is not what manifest.json says"),
        ("weights.safetensors", None, "weights.safetensors is missing"),
        ("manifest.json", b"{", "manifest.json can't be read"),
        ("manifest.json", b'{"files": {"../../x": {"sha256": ""}}}', "names files that are not its own"),
    ],
)
def test_a_damaged_checkpoint_is_left_out_and_told(damaged, tmp_path, file, content, said):
    url, checkpoints = damaged
    if content is None:
        (checkpoints / "2000" / file).unlink()
    else:
        (checkpoints / "2000" / file).write_bytes(content)
    heard: list[str] = []
    restore(url, tmp_path / "back", on_event=heard.append)
    assert os.listdir(tmp_path / "back" / "checkpoints") == ["1000"]
    assert len(heard) == 1 and "2000" in heard[0] and said in heard[0]


def test_a_run_with_damaged_checkpoints_only_is_not_restored(damaged, tmp_path):
    url, checkpoints = damaged
    for name in ("1000", "2000"):
        (checkpoints / name / "trainer.pt").write_bytes(b"other")
    with pytest.raises(Failure, match=r"trainer.pt is not what"):
        restore(url, tmp_path / "back")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "mirror"}


def test_corruption_on_s3_is_found(run, s3, tmp_path):
    copy("s3://bucket/runs/a", run)
    open_store("s3://bucket/runs/a").put("checkpoints/1000/weights.safetensors", b"other")
    with pytest.raises(Failure, match=r"weights.safetensors is not what"):
        restore("s3://bucket/runs/a", tmp_path / "back")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_nothing_is_left_behind_where_there_is_no_run(s3, tmp_path):
    with pytest.raises(Failure, match="holds no run"):
        restore("s3://bucket/nothing", tmp_path / "back")
    with pytest.raises(Failure, match="no such folder"):
        restore(f"file://{tmp_path}/nowhere", tmp_path / "back")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_the_mirror_cant_be_reached(s3, tmp_path):
    s3.stop()
    with pytest.raises(
        Failure, match=r"can't restore the run from s3://bucket/a: Connection refused"
    ) as error:
        restore("s3://bucket/a", tmp_path / "back")
    assert SECRET not in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
    s3.start()


def test_a_run_is_never_restored_over_something(run, url):
    copy(url, run)
    with pytest.raises(Usage, match="is there already"):
        restore(url, run)


# ---- as people use it: by the command line, the machine gone


TRAIN = ["train", "tictactoe", "--preset", "test", "--workers", "0", "--log-s", "0"]
SCHEDULE = ["--checkpoints.every-s", "0", "--checkpoints.every-decisions", "1000"]
SCHEDULE += ["--checkpoints.milestone", "2000"]
NIGHT = "s3://bucket/runs/night"


def made(run: Path) -> list[int]:
    return [line["decisions"] for line in read_lines(run / "metrics.jsonl")]


def test_a_run_goes_on_from_s3_on_an_empty_machine_with_all_it_had(s3, ludus, one_core, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for machine in (first, second, third):
        machine.mkdir()
    code, _, err = ludus(*TRAIN, *SCHEDULE, "--decisions", "5000", "--mirror", NIGHT, cwd=first)
    assert code == 0, err
    before = tree(first / "runs/tictactoe-test")
    shutil.rmtree(first)

    code, _, err = ludus("resume", NIGHT, "--decisions", "9000", cwd=second)
    assert code == 0, err
    run = second / "runs/night"
    assert tree(run)["metrics.jsonl"].startswith(before["metrics.jsonl"])
    assert made(run) == list(range(512, 9_217, 512))
    assert [event["decisions"] for event in read_lines(run / "events.jsonl") if event["event"] == "resume"]
    old = {name: content for name, content in before.items() if name.startswith("milestones/")}
    assert len(old) == 2 and len(milestones(run)) == 4 and old.items() <= tree(run).items()

    restore(NIGHT, third / "night")
    lasting = {name: content for name, content in tree(run).items() if name not in (".lock", "log.txt")}
    assert lasting.items() <= tree(third / "night").items()
    assert len(os.listdir(third / "night/checkpoints")) == 2
    for at in (str(int(milestones(run)[0].stem)), "best"):
        code, out, err = ludus(
            "eval", "night", "--at", at, "--against", "random", "--games", "100", cwd=third
        )
        assert code == 0 and "random" in out, err


@pytest.mark.parametrize("stopped", [False, True], ids=["to its end", "until SIGTERM"])
def test_a_server_that_goes_away_in_the_middle_stops_no_training(stopped, s3, ludus, tmp_path):
    seconds = "60" if stopped else "4"
    flags = [*TRAIN, "--decisions", "1000000000", "--seconds", seconds, "--checkpoints.every-s", "0.3"]
    training = subprocess.Popen(
        **ludus_command(*flags, "--mirror", NIGHT, cwd=tmp_path), stdout=subprocess.PIPE
    )
    while "decisions" not in training.stdout.readline():
        pass
    s3.stop()
    try:
        while "Connection refused" not in training.stdout.readline():
            pass
        asked = time.monotonic()
        if stopped:
            training.terminate()
        out, _ = training.communicate(timeout=30)
    finally:
        s3.start()
    assert f"mirror incomplete: {NIGHT} is behind" in out
    assert training.returncode == (130 if stopped else 0)
    assert not stopped or time.monotonic() - asked < limit(5)

    run = tmp_path / "runs/tictactoe-test"
    more = str(made(run)[-1] + 1_000)
    code, out, err = ludus("resume", str(run), "--decisions", more, "--seconds", "0")
    assert code == 0 and "mirror" not in out, err
    restore(NIGHT, tmp_path / "back")
    assert made(tmp_path / "back") == made(run) and made(run)[-1] >= int(more)
    assert os.listdir(tmp_path / "back/checkpoints") == os.listdir(run / "checkpoints")


def test_a_folder_that_is_not_what_the_mirror_holds_is_not_taken_for_it(run, s3, ludus, tmp_path):
    copy(NIGHT, run)
    shutil.copytree(run, tmp_path / "runs/night")
    write_checkpoint(run, "2000")
    copy(NIGHT, run)
    code, _, err = ludus("resume", NIGHT)
    assert code == 2 and f"runs/night can't go on as {NIGHT}: it holds a newer" in err
    shutil.rmtree(tmp_path / "runs")
    write_run(tmp_path / "runs/night")
    code, _, err = ludus("resume", NIGHT)
    assert code == 2 and f"runs/night can't go on as {NIGHT}: it holds another" in err
