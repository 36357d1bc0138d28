"""What documents say twice, or beside the code, they say alike."""

import re
from pathlib import Path

import pytest

from ludus.training.faults import KILLED_TRIES, TRIES

ROOT = Path(__file__).parent.parent
PAGES = {file.relative_to(ROOT): file.read_text() for file in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
TARGETS = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
MINUTES = re.compile(r"(\w+) minutes?\b")


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
