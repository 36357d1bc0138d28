"""Compiled code on disk: reused while the sources stay as they are, never after one of them changed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ludus.core.jit import inner, njit

CALLER = """
from ludus.core.jit import njit
from mygame.prices import price

@njit
def total(n):
    return n * price()
"""
PRICES = """
from ludus.core.jit import njit

@njit
def price():
    return {price}
"""


@pytest.fixture
def run(tmp_path):
    """Write mygame with a price, and what another process makes of it: total(2) and whether it compiled."""
    package = tmp_path / "mygame"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rules.py").write_text(CALLER)
    program = (
        "from mygame.rules import total; value = total(2); "
        "print(value, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values()))"
    )
    env = os.environ | {"LUDUS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(price: int) -> tuple[int, int, int]:
        (package / "prices.py").write_text(PRICES.format(price=price))
        result = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        value, hits, misses = map(int, result.stdout.split())
        return value, hits, misses

    return run


def test_an_edit_in_a_called_file_is_never_served_stale(run):
    assert run(price=5) == (10, 0, 1), "the first process compiles"
    assert run(price=5) == (10, 1, 0), "the second finds it on disk"
    assert run(price=7) == (14, 0, 1), "rules.py did not change, but what it calls did"
    assert run(price=5) == (10, 1, 0), "an edit taken back finds the old code"


def test_environments_beside_a_users_game_are_not_read(tmp_path):
    from ludus.core.jit import _sources

    for name in ("game.py", "part/more.py", ".venv/lib/a.py", "part/site-packages/b.py", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    assert [str(file.relative_to(tmp_path)) for file in _sources(tmp_path)] == ["game.py", "part/more.py"]


def test_files_that_vanish_while_they_are_read_are_left_out(tmp_path, monkeypatch):
    """An editor's lock file is a link to nothing, and another program may remove files at any time."""
    from ludus.core import jit

    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "mygame"
    folder.mkdir()
    (folder / "rules.py").write_text("# njit")
    (folder / ".#rules.py").symlink_to("somebody@somewhere.4711")
    gone = folder / "gone.py"
    walk = list(jit._sources(folder))
    monkeypatch.setattr(jit, "_sources", lambda _: [*walk, gone])
    assert [file.name for file in jit._compiled([folder])] == ["rules.py"]
    assert jit.cache_folder.__wrapped__(folder).is_dir()


def test_old_code_that_another_process_forgets_first_is_no_failure(tmp_path, monkeypatch):
    from ludus.core import jit

    newest, gone = tmp_path / "newest", tmp_path / "gone"
    newest.mkdir()
    monkeypatch.setattr(type(tmp_path), "iterdir", lambda _: iter([gone, newest]))
    jit._forget_old(newest)
    assert newest.is_dir()


def test_processes_that_compile_at_the_same_moment_never_mix_up_their_code(tmp_path, monkeypatch):
    """Both read the index before one has written it; the first to write it is the last to write code."""
    monkeypatch.setattr("ludus.core.jit.cache_folder", lambda source: tmp_path)

    def double(x):
        return 2 * x

    first, second, reader = (njit(double)._cache._cache_file for _ in range(3))
    for file in (first, second):
        monkeypatch.setattr(file, "_load_index", dict)
    write = first._save_data
    monkeypatch.setattr(first, "_save_data", lambda *data: (second.save("int", "of int"), write(*data)))
    first.save("float", "of float")
    assert reader.load("int") in (None, "of int") and reader.load("float") in (None, "of float")
    assert {reader.load("int"), reader.load("float")} != {None}


def test_a_function_is_compiled_once_for_all_constants():
    @njit
    def twice(n):
        return 2 * n

    @njit
    def asked():
        return twice(1) + twice(2) + twice(n=3)

    assert asked() == 12 and len(twice.overloads) == 1


def test_what_only_compiled_code_may_call_refuses_python_instead_of_crashing_it():
    @inner
    def half(n):
        return n // 2

    @njit
    def quarter(n):
        return half(half(n))

    for _ in range(2):
        with pytest.raises(TypeError, match="half is for compiled code alone"):
            half(8)
        assert quarter(8) == 2


def test_compiling_is_told_once(tmp_path, monkeypatch, capsys):
    from ludus.core import jit

    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        with jit.announced("a game", tmp_path):
            pass
    told = capsys.readouterr().err
    assert told.count("compiling a game (once for this version) ...") == 1 and told.endswith("s\n")
    jit.cache_folder.cache_clear()


def test_a_cache_that_cannot_be_written_is_told_once_and_does_without(tmp_path):
    (tmp_path / "file").touch()
    env = os.environ | {"LUDUS_CACHE": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ludus.cli", "games", "tictactoe"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "tictactoe" in done.stdout, done.stderr
    assert done.stderr.count("LUDUS_CACHE") == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert os.listdir(tmp_path) == ["file"]  # what was compiled for this command goes with it


def test_compiled_code_depends_on_what_its_modules_import_and_on_nothing_else():
    from ludus.core import jit

    files = jit._compiled([jit.PACKAGE])
    names = {str(file.relative_to(jit.PACKAGE)) for file in files}
    assert {"games/ofc/scoring.py", "core/dice.py", "search/tree.py", "nets/plain.py"} <= names
    assert not any(name.startswith(("commands/", "ui/", "training/", "games/pokemon/")) for name in names)
    for file in files:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("ludus") for name in node.names), file
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ludus."):
                imported = Path(*node.module.split(".")[1:])
                assert {f"{imported}.py", f"{imported}/__init__.py"} & names or {
                    f"{imported / name.name}.py" for name in node.names
                } <= names, (file, node.module)
