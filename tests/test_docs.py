"""What documents say twice, or beside the code, they say alike."""

import json
import re
from pathlib import Path

import pytest

from ludus import algos, games
from ludus.cli import app
from ludus.config import RENAMED
from ludus.training.faults import KILLED_TRIES, TRIES
from ludus.ui.sections import LABELS

ROOT = Path(__file__).parent.parent
PAGES = {file.relative_to(ROOT): file.read_text() for file in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
TARGETS = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
MINUTES = re.compile(r"(\w+) minutes?\b")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*\w")


def minutes(text: str, target: str) -> set[str]:
    """How long it takes, wherever the target or its script is named with minutes in the same sentence."""
    named = re.compile(target.replace("-", "[-/]") + r"\b(.*)")
    rest = (found[1].partition(". ")[0] for found in named.finditer(text))
    return {found[1] for line in rest if (found := MINUTES.search(line))}


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith("bench-")])
def test_every_page_says_the_same_of_how_long_a_benchmark_takes(target):
    found = {page: minutes(text, target) for page, text in PAGES.items()}
    found["Makefile"] = minutes((ROOT / "Makefile").read_text(), target)
    assert len(set().union(*found.values())) <= 1, found


def test_deaths_of_workers_are_told_as_the_code_counts_them():
    text = PAGES[Path("docs/long-runs.md")]
    assert TRIES == 5 and "more than five times in a row without a block in between" in text
    assert f"({KILLED_TRIES} if it was killed)" in text


def test_every_metric_is_explained():
    text = PAGES[Path("docs/metrics.md")]
    lines = json.loads((ROOT / "tests" / "metrics.json").read_text())
    reported = {name for readings in lines.values() for metrics in readings for name in metrics}
    for name in sorted(reported | set(LABELS)):
        if not name.startswith(("game/", "seated/", "rating/", "eval/")):  # named after games and opponents
            assert f"`{name}`" in text, name


def test_every_renamed_setting_is_in_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    renamed = {**RENAMED}
    for algo in algos.names():
        renamed |= {f"{algo}.{old}": f"{algo}.{new}" for old, new in algos.find(algo).renamed.items()}
    for old, new in renamed.items():
        line = next((line for line in text.splitlines() if f"`{old}`" in line), "")
        assert f"`{new}`" in line, (old, new)


FOREIGN = {"--black", "--white", "--level", "--same", "--head", "--address"}
"""Flags of other programs that pages name."""


def test_every_flag_that_a_page_names_exists(ludus, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))  # for examples
    helps = [ludus("train", *words, "--help")[1] for words in (["ofc"], ["connect4"])]
    helps += [ludus("train", "gym:CartPole-v1", "--algo", "examples.reinforce", "--help")[1]]
    helps += [ludus(name, "--help")[1] for name in app.names if name != "train"]
    own = [(game, command) for game in games.names() for command in games.find(game).commands()]
    helps += [ludus(game, command, "--help")[1] for game, command in own]
    known = {flag for text in helps for flag in FLAG.findall(text)} | FOREIGN | {"--debug", "--version"}
    for page, text in PAGES.items():
        code = re.findall(r"```bash\n.*?```|`[^`\n]+`", text, re.DOTALL)
        for flag in (flag for piece in code if "pip " not in piece for flag in FLAG.findall(piece)):
            assert flag in known, f"{page} names {flag}, which no command has"
