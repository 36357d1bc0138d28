"""`ludus train`: resolve the configuration, then train with a dashboard."""

from pathlib import Path

import tyro

from ludus import games, switches
from ludus.config import Config, resolve
from ludus.core.errors import Usage


def parse(args: list[str]) -> Config:
    """Flags on top of what the game's preset and the TOML file say."""
    if not args or args[0].startswith("-"):
        if "-h" in args or "--help" in args:
            args = ["tictactoe", *args]
        else:
            raise Usage("say which game to train, as in `ludus train ofc`")
    game, rest = args[0], args[1:]
    words, rest = _taken(rest, "--set", many=True)
    files, rest = _taken(rest, "--config")
    presets, _ = _taken(rest, "--preset")
    before = resolve(game, presets[-1] if presets else None, Path(files[-1]) if files else None)
    description = (
        f"Train {game}. Shown are the values of the preset {before.preset}; --config FILE reads TOML."
    )
    hidden = tyro.conf.configure(tyro.conf.FlagCreatePairsOff)
    config = tyro.cli(
        hidden(Config), default=before, args=rest, prog=f"ludus train {game}", description=description
    )
    chosen = switches.parsed(game, words) if words else {}
    return _with(config, game, chosen)


def _with(config: Config, game: str, chosen: dict) -> Config:
    from dataclasses import replace

    return replace(config, game=game, switches={**config.switches, **chosen})


def _taken(args: list[str], flag: str, many: bool = False) -> tuple[list[str], list[str]]:
    """The values of a flag, and the arguments without it."""
    values, rest, at = [], [], 0
    while at < len(args):
        if args[at] == flag:
            at += 1
            while at < len(args) and not args[at].startswith("--"):
                values.append(args[at])
                at += 1
                if not many:
                    break
        elif args[at].startswith(f"{flag}="):
            values.append(args[at].partition("=")[2])
            at += 1
        else:
            rest.append(args[at])
            at += 1
    return values, rest


def run(args: list[str]) -> None:
    config = parse(args)
    from ludus.train.loop import train
    from ludus.ui.dashboard import Dashboard

    columns = None if ":" in config.game else getattr(games.find(config.game), "columns", None)
    with Dashboard(config, columns) as dashboard:
        folder = train(config, dashboard.show)
    dashboard.console.print(f"the run is in {folder}")
