"""Installing the simulator: what is found, what is refused, and that nothing half-made is left."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ludus.core.errors import Failure, Usage
from ludus.games.pokemon import install


def script(path: Path, body: str) -> str:
    """A program that runs a piece of Python."""
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with its own cache and path, with a Node that tells its version and nothing else."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("NODE_BIN", raising=False)
    script(tmp_path / "bin/node", "print('v20.1.0')")
    return tmp_path


GOOD_NPM = """
    import pathlib, time
    time.sleep(0.3)
    sim = pathlib.Path("node_modules/pokemon-showdown/dist/sim")
    sim.mkdir(parents=True)
    (sim / "battle.js").touch()
    with (pathlib.Path(__file__).parent / "calls").open("a") as calls:
        calls.write("x")
"""


def test_without_node(machine):
    (machine / "bin/node").unlink()
    with pytest.raises(Usage, match="no `node` on the path: install it, or set NODE_BIN"):
        install.install()


def test_node_bin_that_is_not_there(machine, monkeypatch):
    monkeypatch.setenv("NODE_BIN", "/nowhere/node")
    with pytest.raises(Usage, match=r"\$NODE_BIN is /nowhere/node, which can't be run"):
        install.install()


def test_node_bin_goes_first(machine, monkeypatch):
    other = script(machine / "other", "print('v22.0.0')")
    monkeypatch.setenv("NODE_BIN", other)
    assert install.find_node() == other


@pytest.mark.parametrize("version, message", [("v16.20.0", "is version 16"), ("Python 3", "is not Node")])
def test_node_that_does_not_do(machine, version, message):
    script(machine / "bin/node", f"print({version!r})")
    with pytest.raises(Usage, match=message):
        install.install()


def test_without_npm(machine):
    with pytest.raises(Usage, match="needs npm"):
        install.install()


def test_npm_fails_with_its_reason_and_leaves_nothing(machine):
    script(
        machine / "bin/npm",
        """
        import sys
        open("half-made", "w").close()
        sys.exit("npm warn old\\nnpm error code E404\\nnpm error 404 no such package\\n"
                 "npm error A complete log of this run can be found in: /somewhere")
        """,
    )
    with pytest.raises(Failure, match=r"could not install the Pokémon simulator: 404 no such package$"):
        install.install()
    assert [path.suffix for path in install.folder().parent.iterdir()] == [".lock"]


def test_not_installed_says_how(machine):
    with pytest.raises(Usage, match="not installed: run `ludus pokemon setup`"):
        install.showdown()


def test_two_at_once_install_once(machine):
    script(machine / "bin/npm", GOOD_NPM)
    code = "from ludus.games.pokemon import install; print(install.install())"
    several = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ, text=True)
        for _ in range(3)
    ]
    said = {process.communicate(timeout=120)[0].strip() for process in several}
    assert said == {str(install.showdown())}
    assert (machine / "bin/calls").read_text() == "x"


def test_a_changed_lock_is_another_folder(machine, monkeypatch):
    before = install.folder()
    files = machine / "node"
    files.mkdir()
    for name in install.PINNED:
        (files / name).write_text((install.NODE_FILES / name).read_text() + " ")
    monkeypatch.setattr(install, "NODE_FILES", files)
    assert install.folder() != before
