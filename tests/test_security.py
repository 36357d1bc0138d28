"""What a run from a stranger may do: nothing but be read. Every attack here must leave no mark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

from commandline import one_line
from ludus import games
from ludus.agent import load
from ludus.core.errors import Usage
from ludus.games.adapters.load import imported
from ludus.store import trust
from ludus.store.run import peek_config, read_config, trust_run

PLANTED = "planted_for_test"
MODULE = """
import pathlib, gymnasium, numpy as np
pathlib.Path({mark!r}).touch()
class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def __init__(self, size=0): pass
    def reset(self, *, seed=None, options=None): return np.zeros(2, np.float32), {{}}
    def step(self, action): return np.zeros(2, np.float32), float(action), True, False, {{}}
env = parallel_env = Game = algorithm = Env
"""
SHELL = {"args": "touch mark", "shell": True}
ATTACKS = [
    ("subprocess:Popen", SHELL),
    ("gym:subprocess:Popen", SHELL),
    ("zoo:subprocess:Popen", SHELL),
    ("os:system", {"command": "touch mark"}),
    (f"{PLANTED}:Env", {}),
    (f"gym:{PLANTED}:Env", {}),
    (f"gym:{PLANTED}:Env-v0", {}),
    (f"gym:{PLANTED}/Env-v0", {}),
    (f"zoo:{PLANTED}", {}),
    (f"zoo:{PLANTED}:env", {}),
    (f"zoo:../{PLANTED}", {}),
    (f"zoo:classic/../{PLANTED}", {}),
    (f"zoo:classic/{PLANTED}_v1", {}),  # which is in this folder, not in PettingZoo
    (f"gym:ALE/{PLANTED}", {}),
    ("zoo:utils/env", {}),
    (PLANTED, {}),
    (f"ofc.{PLANTED}", {}),
    (f"..{PLANTED}", {}),
    ("gym:", {}),
    ("GymV21Environment-v0", {"env_id": f"{PLANTED}:Env-v0"}),
    ("gym:GymV21Environment-v0", {"env_id": f"{PLANTED}:Env-v0"}),
    ("gym:CartPole-v1", {"entry_point": f"{PLANTED}:Env", "vector_entry_point": f"{PLANTED}:Env"}),
    ("gym:CartPole-v1", {"id": f"{PLANTED}:Env"}),
    ("gym:CartPole-v1", {"additional_wrappers": [f"{PLANTED}:Env"]}),
    ("gym:CartPole-v1", {"name": PLANTED, "rows": 3, "source": f"{PLANTED}:Env"}),
    ("tictactoe", {"board": f"{PLANTED}:Env"}),
]
ALGORITHMS = [PLANTED, f"classic.{PLANTED}", f"..{PLANTED}", "ppo.evil", "os"]
COMMANDS = [("eval",), ("export", "--onnx"), ("resume", "--seconds", "1", "--workers", "0")]


@pytest.fixture(autouse=True)
def stranger(tmp_path, monkeypatch):
    """The current folder holds a planted module, and this user trusts nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(trust, "_accepted", set())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    text = MODULE.format(mark=str(tmp_path / "mark"))
    for place in (tmp_path, tmp_path / "run", tmp_path / "classic"):
        place.mkdir(exist_ok=True)
        (place / f"{PLANTED}.py").write_text(text)
        (place / f"{PLANTED}_v1.py").write_text(text)
    yield
    for name in [name for name in sys.modules if PLANTED in name]:
        del sys.modules[name]


def write_run(folder: Path, game: str, switches: dict, algo: str = "ppo") -> Path:
    """The run of a stranger: as far as `ludus` is concerned, any folder with a config.toml."""
    folder.mkdir(exist_ok=True)
    told = {"schema": 2, "game": game, "algo": algo, "switches": switches, algo.rpartition(".")[2]: {}}
    (folder / "config.toml").write_text(tomli_w.dumps(told))
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(("game", "switches"), ATTACKS, ids=str)
def test_a_strangers_run_executes_nothing(ludus, tmp_path, game, switches, command):
    write_run(tmp_path / "run", game, switches)
    code, _, err = ludus(command[0], "run", *command[1:])
    assert code in (1, 2) and "ludus: unexpected" not in one_line(err)
    assert not (tmp_path / "mark").exists()
    if games.imports_code(game):
        assert "which imports code: add --trust if you trust this run" in err and game in err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_strangers_algorithm_is_not_imported(ludus, tmp_path, algo, command):
    write_run(tmp_path / "run", "tictactoe", {}, algo)
    code, _, err = ludus(command[0], "run", *command[1:])
    assert code == 2 and algo in err and "which imports code: add --trust" in one_line(err)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "words",
    [
        "eval tictactoe --run run",
        "eval tictactoe --bots run greedy --games 2",
        "play tictactoe --run run",
        "analyze tictactoe --run run",
        "gtp tictactoe --run run",
    ],
)
def test_whoever_names_the_game_does_not_trust_the_algorithm(ludus, tmp_path, words):
    write_run(tmp_path / "run", "tictactoe", {}, PLANTED)
    code, _, err = ludus(*words.split())
    assert code == 2 and PLANTED in one_line(err) and "--trust" in err
    assert not (tmp_path / "mark").exists()


def test_to_look_at_a_run_imports_no_algorithm(ludus, tmp_path):
    write_run(tmp_path / "run", "tictactoe", {}, PLANTED)
    (tmp_path / "run" / "metrics.jsonl").write_text('{"decisions": 1, "seconds": 1}\n')
    code, out, _ = ludus("runs", ".")
    assert code == 0 and "tictactoe" in out
    assert ludus("export", "run", "--csv")[0] == 0
    (tmp_path / "run" / "best.safetensors").touch()  # what has learned nothing gives way
    code, _, err = ludus("train", "tictactoe", "--preset", "test", "--run", "run", "--workers", "0")
    assert code == 2 and f"algo {PLANTED}, not ppo" in one_line(err)
    with pytest.raises(Usage, match="--trust"):
        load("run")
    assert not (tmp_path / "mark").exists()


def test_a_trusted_run_may_import_its_algorithm_and_no_other(ludus, tmp_path):
    folder = write_run(tmp_path / "run", "tictactoe", {}, PLANTED)
    code, _, err = ludus("resume", "run", "--trust")
    assert code == 2 and "is a module without `algorithm`" in one_line(err)
    assert (tmp_path / "mark").exists()
    trust._accepted.clear()  # another process
    with pytest.raises(Usage, match="is a module without"):
        read_config(folder)
    write_run(tmp_path / "copy", "tictactoe", {}, PLANTED)
    write_run(folder, "tictactoe", {}, f"{PLANTED}_v1")
    for other in (tmp_path / "copy", folder):
        with pytest.raises(Usage, match="--trust"):
            read_config(other)


def test_a_strangers_run_is_refused_in_its_own_folder_and_from_a_mirror(ludus, tmp_path, monkeypatch):
    write_run(tmp_path / "run", f"{PLANTED}:Env", {})
    (tmp_path / "run" / "metrics.jsonl").write_text('{"decisions": 1, "seconds": 1}\n')
    assert ludus("runs", ".")[0] == 0 and ludus("export", "run", "--csv")[0] == 0  # to look is safe
    for url, more in ((f"file://{tmp_path}/run", []), (f"file://{tmp_path}/run", ["--run", "copy"])):
        code, _, err = ludus("resume", url, *more)
        assert code == 2 and "--trust" in one_line(err)
    monkeypatch.chdir(tmp_path / "run")
    code, _, err = ludus("eval", ".")
    assert code == 2 and "--trust" in one_line(err)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "game", ["tictactoe", "ofc", "gym:CartPole-v1", "gym:ALE/Pong-v5", "zoo:classic/connect_four_v3"]
)
def test_games_of_known_libraries_need_no_trust(tmp_path, game):
    assert not games.imports_code(game)
    assert read_config(write_run(tmp_path / "run", game, {})).game == game


def test_whoever_names_the_game_or_trusts_the_run_may_open_it(tmp_path):
    folder = write_run(tmp_path / "run", f"{PLANTED}:Env", {})
    with pytest.raises(Usage, match="--trust"):
        read_config(folder)
    assert read_config(folder, f"{PLANTED}:Env") == read_config(folder) == peek_config(folder)
    with pytest.raises(Usage, match="is a run of"):
        read_config(folder, "other:Env")
    trust._accepted.clear()  # another process
    with pytest.raises(Usage, match="--trust"):
        read_config(folder)
    trust_run(folder)
    trust._accepted.clear()
    assert read_config(folder).game == f"{PLANTED}:Env"
    assert (tmp_path / "state/ludus/trusted-runs").stat().st_mode & 0o077 == 0


def test_trust_is_for_this_game_with_these_arguments_in_this_folder(tmp_path):
    trusted = write_run(tmp_path / "run", f"{PLANTED}:Env", {})
    trust_run(trusted)
    assert read_config(trusted)
    for folder, game, switches in [
        ("run", f"{PLANTED}:Other", {}),
        ("run", f"{PLANTED}:Env", {"size": 3}),
        ("other", f"{PLANTED}:Env", {}),
    ]:
        with pytest.raises(Usage, match="--trust"):
            read_config(write_run(tmp_path / folder, game, switches))


def test_ones_own_run_needs_no_flag_and_a_trusted_one_needs_it_once(ludus, tmp_path, monkeypatch):
    flags = ["--preset", "test", "--workers", "0", "--run", "mine"]
    code, _, err = ludus("train", f"{PLANTED}:Env", "--decisions", "1024", *flags)
    assert code == 0, err
    (tmp_path / "mark").unlink()
    trust._accepted.clear()  # another process
    code, _, err = ludus("resume", "mine", "--decisions", "2048")
    assert code == 0, err
    assert ludus("eval", "mine", "--games", "10")[0] == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    trust._accepted.clear()
    assert ludus("eval", "mine", "--games", "10")[0] == 2
    assert ludus("eval", f"{PLANTED}:Env", "--run", "mine", "--games", "10")[0] == 0
    trust._accepted.clear()
    assert ludus("resume", "mine", "--decisions", "3072")[0] == 2
    assert ludus("resume", "mine", "--decisions", "3072", "--trust")[0] == 0
    trust._accepted.clear()
    assert ludus("eval", "mine", "--games", "10")[0] == 0
    # The same command again names the game, so it goes on without any note.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of a third"))
    trust._accepted.clear()
    assert ludus("train", f"{PLANTED}:Env", "--decisions", "4096", *flags)[0] == 0


def test_files_in_the_current_folder_never_take_the_place_of_installed_modules(tmp_path):
    """Neither for the commands nor for an environment of one's own, which is looked for there last."""
    for name in ("json", "numpy", "gymnasium", "jax", "cv2", "ale_py", "sitecustomize_x"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    source = str(Path(games.__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {source!r}); from ludus.cli import main; main(sys.argv[1:])"
    env = os.environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": ""}
    words = ["bench", "gym:CartPole-v1", "--rows", "1", "--seconds", "0.01"]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mark").exists()
    assert imported(PLANTED) is not None and sys.path[-1] == str(tmp_path) != sys.path[0]


def test_a_file_for_config_does_not_choose_the_game(ludus, tmp_path):
    (tmp_path / "told.toml").write_text(
        'game = "subprocess:Popen"\nrows = 3\n[switches]\nargs = "touch mark"'
    )
    code, _, err = ludus("train", "tictactoe", "--config", "told.toml", "--workers", "0")
    assert code == 2 and "args" in one_line(err)
    assert not (tmp_path / "mark").exists()


def test_a_file_for_config_does_not_choose_code_of_an_algorithm(ludus, tmp_path):
    (tmp_path / "told.toml").write_text(f'algo = "{PLANTED}"')
    train = ("train", "tictactoe", "--config", "told.toml", "--workers", "0")
    code, _, err = ludus(*train)
    assert code == 2 and PLANTED in one_line(err) and "--algo" in err
    assert not (tmp_path / "mark").exists()
    assert "is a module without `algorithm`" in one_line(ludus(*train, "--algo", PLANTED)[2])
    assert (tmp_path / "mark").exists()


OTHER = {"game": "", "algo": 'game = "tictactoe"'}


@pytest.mark.parametrize("name", ['"\\u001b]0;evil\\u0007:Env"', "3"])
@pytest.mark.parametrize("key", ["game", "algo"])
def test_a_name_that_is_none_or_that_a_terminal_obeys_is_not_shown(ludus, tmp_path, key, name):
    (tmp_path / "run" / "config.toml").write_text(f"{key} = {name}\n{OTHER[key]}")
    code, _, err = ludus("eval", "run")
    assert code == 1 and "\x1b" not in one_line(err) and "which is none" in err


def test_a_strangers_run_connects_to_nobody(ludus, tmp_path):
    switches = {"backend": "websocket", "servers": "ws://127.0.0.1:9/showdown/websocket"}
    run = write_run(tmp_path / "run", "pokemon", switches)
    code, _, err = ludus("resume", str(run))
    assert code == 2 and "connects to ws://127.0.0.1:9/showdown/websocket: add --trust" in one_line(err)


def test_a_run_does_not_choose_who_is_told_about_it(ludus, tmp_path):
    (tmp_path / "run" / "config.toml").write_text('game = "tictactoe"\nnotify = ["json://strange.example"]')
    code, _, err = ludus("resume", "run", "--seconds", "1", "--workers", "0")
    assert code == 2 and "--notify" in one_line(err)


def test_a_user_without_a_home_can_still_trust_a_run(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "run", f"{PLANTED}:Env", {})
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(Usage, match="--trust"):
        read_config(folder)
    trust_run(folder)
    assert read_config(folder)
