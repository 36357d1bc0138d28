"""The code keeps to its design: imports go one way, nobody names what isn't theirs, everything is typed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ludus
from ludus import algos, games

PACKAGE = Path(ludus.__file__).parent
LAYERS = [
    ("", "core", "machine", "processes"),
    ("games", "nets"),
    ("switches", "search"),
    ("algos",),
    ("config",),
    ("store",),
    ("training",),
    ("agent", "analysis", "records"),
    ("match",),
    ("evaluation",),
    ("api",),
    ("sweep",),
    ("ui",),
    ("commands",),
    ("cli",),
    ("__main__",),
]
"""A module imports only from its own layer and those above it here; those of one layer don't know each other,
except for the first."""
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
SOURCES = {file.relative_to(PACKAGE): file.read_text() for file in PACKAGE.rglob("*.py")}


def part_of(module: str) -> str:
    """`games` of `ludus.games.ofc`."""
    return module.removeprefix("ludus").lstrip(".").partition(".")[0]


def imports(file: Path, source: str) -> Iterator[str]:
    """Modules of ours that a file imports, lazily too; not those that only type checkers see."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ludus")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ludus":
            for alias in node.names:
                inside = PACKAGE.joinpath(*(node.module or "").split(".")[1:], alias.name)
                is_module = inside.is_dir() or inside.with_suffix(".py").exists()
                yield f"{node.module}.{alias.name}" if is_module else node.module or ""


def wrong_arrows(sources: dict[Path, str]) -> list[str]:
    found = []
    for file, source in sources.items():
        own = file.parts[0].removesuffix(".py")
        if own == "__init__":  # it imports everything, when asked
            continue
        for module in imports(file, source):
            other = part_of(module)
            same_layer = RANK[other] == RANK[own] and RANK[own] and other != own
            if RANK[other] > RANK[own] or same_layer:
                found.append(f"{file} imports {module}")
    return found


def foreign_names(sources: dict[Path, str]) -> list[str]:
    """Where an algorithm or game is named by code outside its folder: an identifier, or a whole text."""
    homes = {name: Path("algos") / name for name in algos.names()}
    homes |= {name: Path("games") / name for name in games.names()}
    found = []
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            words = {
                ast.Name: lambda node: node.id,
                ast.Attribute: lambda node: node.attr,
                ast.Constant: lambda node: node.value if isinstance(node.value, str) else "",
                ast.alias: lambda node: node.name,
                ast.ImportFrom: lambda node: node.module or "",
            }
            word = words[type(node)](node) if type(node) in words else ""
            for name in {part.lower() for part in word.split(".")} & set(homes):
                if not file.is_relative_to(homes[name]):
                    found.append(f"{file}:{getattr(node, 'lineno', 0)} names {name}")
    return found


def untyped(sources: dict[Path, str]) -> list[str]:
    """Functions outside compiled code without an annotation for everything."""
    found = []
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list} & {"njit", "inner"}:
                continue
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            given += [each for each in (node.args.vararg, node.args.kwarg) if each]
            bare = [each.arg for each in given if each.annotation is None and each.arg not in ("self", "cls")]
            if bare or node.returns is None:
                found.append(f"{file}:{node.lineno} {node.name}")
    return found


def test_every_part_has_its_layer():
    parts = {file.parts[0].removesuffix(".py") for file in SOURCES} - {"__init__"}
    assert parts == set(RANK) - {""}


@pytest.mark.parametrize("look", [wrong_arrows, foreign_names, untyped])
def test_the_code_keeps_to_its_design(look):
    assert look(SOURCES) == []


@pytest.mark.parametrize(
    ("look", "file", "source"),
    [
        (wrong_arrows, "core/spec.py", "from ludus.games import adapters"),
        (wrong_arrows, "games/ofc/bots.py", "def f() -> None:\n    from ludus.search.bot import SearchBot"),
        (wrong_arrows, "algos/ppo/actor.py", "import ludus.training.league"),
        (wrong_arrows, "nets/net.py", "from ludus import games"),
        (wrong_arrows, "store/run.py", "from ludus import match"),
        (foreign_names, "training/loop.py", "fast = config.algo == 'ppo'"),
        (foreign_names, "training/loop.py", "x = config.alphazero.minibatch"),
        (foreign_names, "commands/eval.py", "from ludus.games.blokus import gtp"),
        (foreign_names, "games/ofc/rules.py", "import ludus.games.connect4"),
        (untyped, "training/loop.py", "def f(x) -> None: ..."),
        (untyped, "training/loop.py", "def f(x: int): ..."),
        (untyped, "training/loop.py", "class A:\n    def f(self, *rest) -> None: ..."),
    ],
)
def test_a_planted_violation_is_found(look, file, source):
    assert len(look({Path(file): source})) == 1


def test_what_is_allowed_is_not_found():
    fine = {
        Path(
            "training/loop.py"
        ): "from ludus.algos import Learner\nif TYPE_CHECKING:\n    from ludus.cli import app",
        Path("games/ofc/bots.py"): "from ludus.games.ofc.cards import best\n@njit\ndef f(x):\n    return x",
        Path("config.py"): 'raise Usage("take --algo ppo")',
    }
    assert wrong_arrows(fine) == foreign_names(fine) == untyped(fine) == []
