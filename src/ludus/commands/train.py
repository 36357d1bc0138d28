"""`ludus train` and `ludus resume`: resolve the configuration, then train with a dashboard."""

import dataclasses
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro
from rich.table import Table
from tyro.conf import UseAppendAction, arg

from ludus import games, switches
from ludus.commands.runs import found
from ludus.config import Config, resolve
from ludus.core.errors import Stopped, Usage
from ludus.store.mirror import is_url, misfit, restore
from ludus.store.run import CONFIG, METRICS, folder_of, is_run, read_config, read_lines
from ludus.train.profile import TABLE

if TYPE_CHECKING:
    from ludus.ui.dashboard import Dashboard

EXTRA: dict[str, Any] = {
    "set": (
        Annotated[
            tuple[tuple[str, ...], ...],
            UseAppendAction,
            arg(
                metavar="SWITCH=VALUE",
                help="Rule switches, as in `--set seats=2`; `ludus games GAME` lists them.",
            ),
        ],
        (),
    ),
    "config": (
        Annotated[str, arg(metavar="FILE", help="A TOML file with any of these, groups as in [ppo].")],
        "",
    ),
}
"""Flags that are not fields of the configuration."""


def parse(args: list[str]) -> Config:
    """Flags on top of what the game's preset and the TOML file say."""
    if not args or args[0].startswith("-"):
        if "-h" in args or "--help" in args:
            args = ["tictactoe", *args]
        else:
            raise Usage("say which game to train, as in `ludus train ofc`")
    game, rest = args[0], args[1:]
    # What the other flags' defaults are depends on these two.
    file, preset = _value(rest, "--config"), _value(rest, "--preset")
    before = resolve(game, preset, Path(file) if file else None)
    flags = tyro.cli(
        tyro.conf.configure(tyro.conf.FlagCreatePairsOff)(_flags(before)),
        args=rest,
        prog=f"ludus train {game}",
        description=f"Train {game}. Shown are the values of the preset {before.preset}.",
    )
    said = {name: value for name, value in vars(flags).items() if name not in EXTRA}
    words = [word for group in flags.set for word in group]
    chosen = switches.parsed(game, words) if words else {}
    return dataclasses.replace(before, **said, switches={**before.switches, **chosen})


def _flags(before: Config) -> Any:
    """A dataclass of all flags with their defaults: the configuration without what is said in other ways."""
    kinds, helps = get_type_hints(Config), switches.helps(Config)
    fields: list[Any] = [
        (name, kind, dataclasses.field(default=default)) for name, (kind, default) in EXTRA.items()
    ]
    for field in dataclasses.fields(Config):
        if field.name not in ("game", "switches"):
            kind: Any = Annotated[kinds[field.name], arg(help=helps[field.name])]  # type: ignore[name-defined]
            if kinds[field.name] == tuple[str, ...]:  # as in --notify A --notify B
                kind = Annotated[kind, UseAppendAction]
            default = partial(getattr, before, field.name)
            fields.append((field.name, kind, dataclasses.field(default_factory=default)))
    return dataclasses.make_dataclass("Flags", fields)


def _value(args: list[str], flag: str) -> str | None:
    """What a flag is given, the last time it is."""
    found = None
    for word, after in zip(args, [*args, ""][1:], strict=True):
        if word == flag:
            found = after
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found


def run(args: list[str]) -> None:
    config = parse(args)
    from ludus.ui.dashboard import Dashboard

    native, folder = ":" not in config.game, folder_of(config)
    columns = getattr(games.find(config.game), "columns", None) if native else None
    history = read_lines(folder / METRICS) if is_run(folder) else []
    dashboard = Dashboard(config, columns, history)
    try:
        with dashboard:
            _train(config, dashboard)
    except Stopped:
        dashboard.summary(folder, native, stopped=True)
        raise
    if config.profile:
        dashboard.console.print(_profile(folder))
    dashboard.summary(folder, native, stopped=False)


def _train(config: Config, dashboard: "Dashboard") -> None:
    dashboard.status("loading")
    from ludus.evaluation import Evaluator
    from ludus.train.loop import train

    evaluator = Evaluator(config)
    dashboard.expect(evaluator.opponents)
    try:
        train(config, dashboard.show, dashboard.tell, dashboard.status, evaluator)
    finally:
        evaluator.close()


def _profile(folder: Path) -> Table:
    """Where the time went, as `Profile` wrote it."""
    table = Table("process", "phase", "seconds", "count", "µs each", box=None, pad_edge=False)
    for process, phase, seconds, count, each in json.loads((folder / TABLE).read_text()):
        table.add_row(process, phase, f"{seconds:.2f}", f"{count:,}", f"{each:,.1f}")
    for column in table.columns[2:]:
        column.justify = "right"
    return table


def resume(args: list[str]) -> None:
    """Go on with a run as it was configured; flags change what may change."""
    if not args or args[0].startswith("-"):
        raise Usage("say which run goes on, as in `ludus resume runs/ofc-quick` or `ludus resume latest`")
    flags = args[1:]
    if is_url(args[0]):
        folder = Path(_value(flags, "--run") or Path("runs") / args[0].rstrip("/").rpartition("/")[2])
        _bring_back(args[0], folder)
        flags = ["--mirror", args[0], *flags]
    else:
        folder = latest() if args[0] == "latest" else Path(args[0])
    game = read_config(folder).game
    run([game, "--config", str(folder / CONFIG), "--run", str(folder), *flags])


def _bring_back(url: str, folder: Path) -> None:
    """The run that is mirrored at url, unless it is here already."""
    if not is_run(folder):
        return restore(url, folder, on_event=lambda text: print(text, file=sys.stderr))
    if why := misfit(url, folder):
        raise Usage(f"{folder} can't go on as {url}: {why}; choose another folder with --run")


def latest(place: Path = Path("runs")) -> Path:
    """The run that was written to last."""
    runs = found(place)
    if not runs:
        raise Usage(f"there is no run in {place}")
    return max(runs, key=lambda folder: max(file.stat().st_mtime for file in folder.iterdir()))
