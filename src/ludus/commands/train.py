"""`ludus train` and `ludus resume`: resolve the configuration, then train with a dashboard."""

import contextlib
import dataclasses
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro
from rich.table import Table
from tyro.conf import UseAppendAction, arg

from ludus import algos, games, switches
from ludus.commands.flags import read_flags
from ludus.config import Config, check_ranges, resolve
from ludus.core.errors import Failure, Stopped, Usage
from ludus.store import checkpoint
from ludus.store.bucket import is_url
from ludus.store.mirror import misfit, trained_elsewhere
from ludus.store.reader import RunReader, find_runs
from ludus.store.restore import restore
from ludus.store.run import (
    CONFIG,
    folder_of,
    is_run,
    keep_sizes,
    peek_config,
    quoted,
    read_config,
    refuse_other,
    trust_run,
)
from ludus.training.profile import TABLE

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
        Annotated[str, arg(metavar="FILE", help="A TOML file with any of these, groups as in [net].")],
        "",
    ),
    "overwrite": (
        Annotated[bool, arg(help="Begin anew; the run that is in the folder is moved aside.")],
        False,
    ),
    "web": (
        Annotated[bool, arg(help="Serve a page to watch it in a browser, in a process of its own.")],
        False,
    ),
    "weights": (
        Annotated[
            str,
            arg(
                metavar="best|MILESTONE",
                help="Weights to go on from, with a new optimizer, if no checkpoint of the run can be read.",
            ),
        ],
        "",
    ),
}
"""Flags that are not fields of the configuration."""
TOTALS = (
    "--decisions and --seconds are totals of the run, over all times it was started: "
    "a run of 120 s goes on for 180 s with --seconds 300."
)


def parse(args: list[str]) -> Config:
    """Flags on top of what the game's preset and the TOML file say."""
    return _parse(args)[0]


def _parse(args: list[str], run: str = "") -> tuple[Config, Any]:
    """The configuration, and all flags. run: the one that goes on, if one does"""
    if not args or args[0].startswith("-"):
        if "-h" in args or "--help" in args:
            args = [games.names()[-1], *args]
        else:
            raise Usage("say which game to train, as in `ludus train ofc`")
    game, rest = args[0], args[1:]
    # What the other flags' defaults are depends on these.
    file, preset, algo = (_value(rest, flag) for flag in ("--config", "--preset", "--algo"))
    before = resolve(game, preset, Path(file) if file else None, algo)
    flags = read_flags(
        tyro.conf.configure(tyro.conf.FlagCreatePairsOff)(_flags(before)),
        args=rest,
        prog=f"ludus resume {run}" if run else f"ludus train {game}",
        description=f"Go on with a run as it was configured, except for what flags say. {TOTALS}"
        if run
        else f"Train {game}. Shown are the values of the preset {before.preset}.",
    )
    said = {name: value for name, value in vars(flags).items() if name not in EXTRA}
    said["settings"] = said.pop(algos.group_of(before.algo))
    words = [word for group in flags.set for word in group]
    chosen = switches.parsed(game, words) if words else {}
    config = dataclasses.replace(before, **said, switches={**before.switches, **chosen})
    config = config if flags.overwrite else keep_sizes(config)
    check_ranges(config)
    return config, flags


def _flags(before: Config) -> Any:
    """A dataclass of all flags with their defaults: the configuration without what is said in other ways."""
    kinds, helps = get_type_hints(Config), switches.helps(Config)
    fields: list[Any] = [
        (name, kind, dataclasses.field(default=default)) for name, (kind, default) in EXTRA.items()
    ]
    for field in dataclasses.fields(Config):
        if field.name not in ("game", "switches"):
            name, kind, text = field.name, kinds[field.name], helps[field.name]
            if name == "settings":
                name, kind = algos.group_of(before.algo), type(before.settings)
                text = (kind.__doc__ or "").partition("\n")[0]
            kind = Annotated[kind, arg(help=text)]  # type: ignore[assignment]
            if kinds[field.name] == tuple[str, ...]:  # as in --notify A --notify B
                kind = Annotated[kind, UseAppendAction]  # type: ignore[assignment]
            default = partial(getattr, before, field.name)
            fields.append((name, kind, dataclasses.field(default_factory=default)))
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


def run(args: list[str], resumed: str = "") -> None:
    """resumed: the run that goes on, if one does"""
    config, flags = _parse(args, resumed)
    overwrite = flags.overwrite
    if not (resumed or overwrite):
        overwrite = _begins_anew(config)
    from ludus.ui.dashboard import Dashboard

    folder = folder_of(config)
    game = games.open(config.game, **config.switches)
    native, columns = game.rules is not None, game.columns
    history = RunReader(folder).metrics() if is_run(folder) and not overwrite else ()
    dashboard = Dashboard(config, columns, history)
    try:
        with _page(folder, flags.web), dashboard:
            _train(config, dashboard, overwrite, flags.weights)
    except Stopped:
        dashboard.summary(folder, native, stopped=True)
        raise
    if config.profile:
        dashboard.console.print(_profile(folder))
    dashboard.summary(folder, native, stopped=False)


def _page(folder: Path, wanted: bool) -> contextlib.AbstractContextManager[None]:
    """The web page beside the training, if it is wanted."""
    if not wanted:
        return contextlib.nullcontext()
    from ludus.commands import web

    return web.beside(folder)


def _train(config: Config, dashboard: "Dashboard", overwrite: bool, weights: str) -> None:
    dashboard.status("loading")
    from ludus.evaluation import Evaluator
    from ludus.training.loop import Audience, train

    class Screen(Audience):
        def status(self, text: str) -> None:
            dashboard.status(text)

        def report(self, metrics: dict[str, Any]) -> None:
            dashboard.show(metrics)

        def event(self, what: str, details: dict[str, Any]) -> None:
            dashboard.tell(what, details)

    evaluator = Evaluator(config)
    dashboard.expect(evaluator.opponents)
    try:
        train(config, Screen(), evaluator, overwrite=overwrite, weights=weights)
    finally:
        evaluator.close()


def _begins_anew(config: Config) -> bool:
    """Whether a run that is there already gives way: it is another training, and has learned nothing."""
    folder = folder_of(config)
    if not is_run(folder):
        return False
    try:
        refuse_other(peek_config(folder, config.algo), config, folder)
    except Failure:
        if checkpoint.has_learned(folder):
            raise
        return True
    return False


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
    if not args or (args[0].startswith("-") and not is_run(Path(args[0]))):
        if "-h" in args or "--help" in args:
            _parse([games.names()[-1], "--help"], "RUN|latest|URL")
        raise Usage("say which run goes on, as in `ludus resume runs/ofc-quick` or `ludus resume latest`")
    flags = [word for word in args[1:] if word != "--trust"]
    if "--overwrite" in flags:
        raise Usage("--overwrite begins anew, and resume goes on: leave it out, or use `ludus train`")
    if is_url(args[0]):
        folder = Path(_value(flags, "--run") or Path("runs") / args[0].rstrip("/").rpartition("/")[2])
        _bring_back(args[0], folder)
        flags = ["--mirror", args[0], *flags]
    else:
        folder = latest() if args[0] == "latest" else Path(args[0])
        if (other := _value(flags, "--run")) is not None:
            raise Usage(
                f"a run goes on in its own folder, not in {other}: to begin another one like it, "
                f"use `ludus train GAME --config {quoted(folder / CONFIG)} --run {quoted(Path(other))}`"
            )
    if "--trust" in args:
        trust_run(folder)
    config = read_config(folder)
    told = [f"--config={folder / CONFIG}", "--algo", config.algo, f"--run={folder}"]
    run([config.game, *told, *flags], str(folder))


def _bring_back(url: str, folder: Path) -> None:
    """The run that is mirrored at url, unless it is here already."""
    if why := trained_elsewhere(url, folder):
        raise Usage(f"can't go on with {url}: {why}")
    if not is_run(folder):
        return restore(url, folder, on_event=lambda text: print(text, file=sys.stderr))
    if why := misfit(url, folder):
        raise Usage(f"{folder} can't go on as {url}: {why}; choose another folder with --run")


def latest(place: Path = Path("runs")) -> Path:
    """The run that was written to last."""
    runs = find_runs(place)
    if not runs:
        raise Usage(f"there is no run in {place}")
    return max(runs, key=lambda folder: max(file.stat().st_mtime for file in folder.iterdir()))
