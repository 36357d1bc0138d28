"""Every command and every piece of Python that the README and the tutorials show runs, at a small budget.

Each page has a folder of its own, in which its blocks run in order: what one trains, the next evaluates. A
block whose first line is `# name.ext` is written to that file, as the page tells its reader to do.
"""

import io
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import ludus
from ludus import algos, api
from ludus.config import read_file, resolve
from ludus.games.adapters.registration import register_envs
from ludus.store.run import is_run

ROOT = Path(__file__).parent.parent
GAME_PAGES = ("pokemon.md", "retro.md")  # they need Node or an emulator, and have tests of their own
PAGES = [ROOT / "README.md", *sorted(p for p in ROOT.glob("docs/*.md") if p.name not in GAME_PAGES)]

SKIPPED = {
    "python3": "sets up an environment",
    "pip": "needs a network",
    "make": "minutes; set-up, tests and benchmarks",
    "ludus eval blokus --bots search --against pentobi": "needs Pentobi",
    "ludus eval blokus --bots champion --against pentobi": "needs Pentobi",
    "ludus eval blokus --bots champion --against greedy pentobi": "needs Pentobi",
    'ludus eval blokus --bots search --against "gtp:': "starts `ludus` from the PATH; tests/test_gtp.py does",
    "ludus resume s3://": "needs a bucket; tests/test_mirror.py has one",
    "ludus train my_env:Corridor --pool ray": "needs an environment of one's own; tests/test_ray.py has one",
    "ludus web": "serves until it is interrupted; tests/test_web_runs.py does",
    "ludus doctor": "looks at the installation, which may be the sources; tests/test_cli.py does",
}
"""Beginnings of commands that are not run, and why."""
PLACEHOLDER = re.compile(r"\b(GAME|RUN|FILE|URL|ID|NAME|PROGRAM|MILESTONE|BOT|DIR|N)\b|module:Class|\.\.\.")
"""What a reader has to fill in."""
ALONE = ("ludus games", "ludus runs", "ludus runs --prune --yes")
"""Commands that need no game and no run."""

SMALL_TRAINING = {"--rows": "8", "--steps": "8", "--workers": "0", "--eval-games": "4", "--seconds": "0"}
SMALL_PPO = {"--decisions": "128", "--ppo.minibatch": "32", "--ppo.epochs": "1"}
SMALL_SEARCH = {
    "--decisions": "64", "--alphazero.search.simulations": "2", "--alphazero.fast-simulations": "1",
    "--alphazero.minibatch": "16", "--alphazero.learning-starts": "16", "--net.channels": "4",
    "--net.blocks": "1", "--opponents": "self",
}  # fmt: skip
SMALL = {
    "eval": {"--games": "4", "--think": "2"},
    "analyze": {"--think": "2"},
    "play": {"--think": "2"},
    "bench": {"--seconds": "0.05", "--rows": "8"},
}


class Piece(NamedTuple):
    language: str
    text: str
    line: int


def pieces(page: Path) -> list[Piece]:
    """Blocks of bash, Python and TOML in order, and `ludus ...` within the text, as bash too."""
    text = page.read_text()
    found = []
    for match in re.finditer(r"^( *)```(\w*)\n(.*?)^ *```|`(ludus [^`\n]+)`", text, re.MULTILINE | re.DOTALL):
        _, language, block, inline = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if inline and not PLACEHOLDER.search(inline):
            found.append(Piece("bash", inline, line))
        elif language in ("bash", "python", "toml"):
            found.append(Piece(language, block, line))
    return found


def commands(block: str) -> list[str]:
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part and not part.startswith((". ", "#"))]


def replaced(words: list[str], values: dict[str, str]) -> list[str]:
    """With these flags, in place of those that are there."""
    words = list(words)
    for flag, value in values.items():
        if flag in words:
            at = words.index(flag)
            end = next((i for i in range(at + 1, len(words)) if words[i].startswith("--")), len(words))
            words[at:end] = []
        words += [flag, value]
    return words


def small_training(words: list[str]) -> list[str]:
    def said(flag: str) -> str | None:
        return words[words.index(flag) + 1] if flag in words else None

    file = said("--config")
    config = resolve(words[1], said("--preset"), Path(file) if file else None, said("--algo"))
    group = algos.group_of(config.algo)
    small = {"ppo": SMALL_PPO, "alphazero": SMALL_SEARCH}.get(group, {"--decisions": "128"})
    if config.game.startswith("gym:ALE"):
        small = small | {"--rows": "2"}
    return replaced(words, SMALL_TRAINING | small)


def shrunk(words: list[str]) -> list[str]:
    """The same command with a small budget. words: without `ludus`"""
    if "--help" in words:
        return words
    if words[0] == "train":
        return small_training(words)
    if words[0] == "resume":
        config = read_file(newest_run() if words[1] == "latest" else Path(words[1], "config.toml"))
        return replaced(words, {"--decisions": str(4 * config["decisions"]), "--seconds": "0"})
    words = [re.sub(r"\+\d+$", "+2", word) for word in words]
    small = dict(SMALL.get(words[0], {}))
    thinks = "--think" in words or words[0] == "analyze"
    if words[0] == "eval" and is_run(Path(words[1])):
        thinks = thinks or algos.find(read_file(Path(words[1], "config.toml"))["algo"]).searches
    if words[0] == "eval" and "--hands" in words:
        del small["--games"]
        small["--hands"] = "30"
    if not thinks:
        small.pop("--think", None)
    return replaced(words, small)


def newest_run() -> Path:
    return max(Path("runs").glob("*/config.toml"), key=lambda file: file.stat().st_mtime)


def small_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ludus.train` and `ludus.evaluate` as they are, with small budgets."""

    def train(game: str, **settings):
        tiny = {"decisions": 128, "rows": 8, "steps": 8, "workers": "0", "eval_games": 4}
        return api.train(game, **settings | tiny)

    def evaluate(run, *args, **settings):
        return api.evaluate(run, *args, **settings | {"games": 4})

    monkeypatch.setattr(ludus, "train", train, raising=False)
    monkeypatch.setattr(ludus, "evaluate", evaluate, raising=False)


def run_bash(block: str, where: str, ludus: Callable, done: set[str]) -> None:
    """done: commands of this page that were run already"""
    for command in commands(block):
        if command in done or any(command.startswith(beginning) for beginning in SKIPPED):
            continue
        done.add(command)
        first, *words = shlex.split(command)
        assert first == "ludus", f"{where}: run {command!r} here, or skip it with a reason"
        if all(word.startswith("-") for word in words[1:]) and command not in ALONE:
            check_flags(words, where, ludus)
            continue
        small = shrunk(words)
        sys.stdin = io.StringIO("quit\n")
        code, out, err = ludus(*small, typed="q\n")
        assert code == 0, f"{where}: {command}\nas {small}\n{out[-800:]}\n{err[-800:]}"


def check_flags(words: list[str], where: str, ludus: Callable) -> None:
    """A command that is only named, as in `ludus games --check`, exists and has these flags."""
    code, out, err = ludus(words[0], "--help")
    assert code == 0, f"{where}: ludus {words[0]}: {err}"
    for flag in words[1:]:
        assert flag in out, f"{where}: ludus {words[0]} has no {flag}"


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ludus: Callable, one_core: None
) -> Iterator[Callable]:
    """A folder like a checkout, in which a command can be run."""
    shutil.copytree(ROOT / "examples", "examples")
    Path("docs").symlink_to(ROOT / "docs")
    monkeypatch.setattr(sys, "stdin", sys.stdin)  # each command gets another
    for name, module in list(sys.modules.items()):  # other tests import examples, which are copied here
        if str(ROOT / "examples") in str(getattr(module, "__file__", "")):
            monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    small_python(monkeypatch)
    register_envs()  # as `import ludus` does where Gymnasium was imported before
    yield ludus
    for name in set(sys.modules) - before:  # pages have modules of the same name
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_can_be_done(page, desk):
    names: dict = {"__name__": "page"}  # a page is read from top to bottom
    done: set[str] = set()
    for language, text, line in pieces(page):
        where = f"{page.name}, line {line}"
        first = re.match(r"# ([\w.-]+\.\w+)\n", text)
        if first:
            Path(first[1]).write_text(text)
        elif language == "bash":
            run_bash(text, where, desk, done)
        elif language == "python":
            exec(compile(text, where, "exec"), names)


def test_a_wrong_flag_is_noticed(desk):
    with pytest.raises(AssertionError, match="clip-rnage"):
        run_bash("ludus train tictactoe --preset test --ppo.clip-rnage 0.1\n", "here", desk, set())


def test_a_command_that_does_not_exist_is_noticed(desk):
    with pytest.raises(AssertionError, match="ludus trane"):
        run_bash("ludus trane tictactoe\n", "here", desk, set())


def test_every_skipped_command_is_still_shown():
    bash = [piece.text for page in PAGES for piece in pieces(page) if piece.language == "bash"]
    shown = [command for block in bash for command in commands(block)]
    for beginning in SKIPPED:
        assert any(command.startswith(beginning) for command in shown), beginning
