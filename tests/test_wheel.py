"""The wheel works outside the checkout: built, installed in an empty folder, and used from another one."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ludus as package

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "ludus"
NEEDED = [
    "py.typed", "presets.toml", "games/ofc/presets.toml", "games/blokus/presets.toml",
    "games/ofc/champion/config.toml", "games/ofc/champion/best.safetensors",
    "games/blokus/champion/config.toml", "games/blokus/champion/best.safetensors",
]  # fmt: skip


def pip(*words: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, words)]
    subprocess.run(command, check=True, timeout=120)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, because building leaves files beside the sources."""
    place = tmp_path_factory.mktemp("build")
    shutil.copytree(SOURCES, place / "src" / "ludus", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", place / "dist", place)
    (file,) = (place / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs an installed program or Python in an empty folder: what it printed."""
    target, elsewhere = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("elsewhere")
    pip("install", "--no-deps", "--no-index", "--target", target, wheel)
    env = {"PATH": os.environ["PATH"], "HOME": str(elsewhere), "PYTHONPATH": str(target), "COLUMNS": "120"}
    env |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

    def run(*words: str) -> str:
        program = [target / "bin" / "ludus"] if words[0] != "-c" else [sys.executable]
        done = subprocess.run([*program, *words], cwd=elsewhere, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("-c", "import ludus; print(ludus.__file__)")
    assert Path(where.strip()).is_relative_to(target)
    return run


def test_it_holds_all_of_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [file.relative_to(SOURCES.parent) for file in SOURCES.rglob("*") if file.is_file()]
    expected = {file.as_posix() for file in files if "__pycache__" not in file.parts}
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == expected
    assert {f"ludus/{name}" for name in NEEDED} <= names
    assert any(name.endswith("licenses/LICENSE") for name in about)


def test_its_version_is_that_of_the_package(wheel, installed):
    assert wheel.name == f"ludus-{package.__version__}-py3-none-any.whl"
    (about,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("dist-info/METADATA"))
    metadata = email.message_from_bytes(zipfile.ZipFile(wheel).read(about))
    assert metadata["Version"] == package.__version__ and metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT" and 'torch>=2.5; extra == "train"' in metadata.get_all(
        "Requires-Dist"
    )
    assert installed("--version") == f"ludus {package.__version__}\n"
    asked = "import importlib.metadata; print(importlib.metadata.version('ludus'))"
    assert installed("-c", asked).strip() == package.__version__


def test_it_trains_and_evaluates(installed):
    flags = ["--preset", "test", "--workers", "1", "--decisions", "4000", "--eval-every", "0"]
    assert "the run is in first\n" in installed("train", "tictactoe", *flags, "--run", "first")
    assert re.search(
        r"first - random: won \d", installed("eval", "first", "--against", "random", "--games", "20")
    )
    read = "import json, ludus; print(json.dumps(ludus.RunReader('first').last))"
    assert json.loads(installed("-c", read))["decisions"] >= 4000


def test_its_champion_plays(installed):
    """By its policy alone, which compiles no rules."""
    ask = """if True:
        import numpy as np, ludus
        from ludus import games
        agent = ludus.load(games.open("ofc").champion)
        obs = np.zeros((1, *agent.spec.obs_shape), agent.spec.parts[0].dtype)
        print(agent.act(obs, np.arange(agent.spec.actions)[None] == 3))
    """
    assert installed("-c", ask) == "[3]\n"
