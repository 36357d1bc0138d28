"""What a training can be told: defaults < the game's preset < a TOML file < flags. No unknown keys."""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ludus import games
from ludus.algos.ppo import Config as PpoConfig
from ludus.core.errors import Usage
from ludus.nets import NetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "test": {
        "decisions": 20_000,
        "rows": 16,
        "steps": 32,
        "net": {"hidden": (32,)},
        "ppo": {"minibatch": 256},
    },
    "quick": {"decisions": 1_000_000},
    "default": {},
    "gpu": {"rows": 4096, "ppo": {"minibatch": 65536}},
}
"""What a preset means for games that don't say. A game's own `PRESETS` come on top."""


@dataclass(frozen=True)
class Config:
    game: str = ""
    preset: Literal["test", "quick", "default", "gpu"] = "default"
    """test: seconds, proves that everything works. quick: a minute or two. gpu: the large one."""
    run: str = ""
    """Folder of the run; runs/GAME-PRESET unless told."""
    decisions: int = 5_000_000
    """Decisions of the learning policy after which the training ends."""
    seconds: float = 0.0
    """Clock time after which it ends, if that comes first; 0 for no limit."""
    switches: dict[str, Any] = field(default_factory=dict)
    """Rule switches of the game, as `ludus games GAME` lists them."""
    opponents: str = "self"
    """Who sits in the other seats, as shares: self:0.6,past:0.3,greedy:0.1"""
    workers: str = "auto"
    """Worker processes; 0 plays in the learner's own process, for debugging."""
    rows: int = 128
    """Games side by side in each worker."""
    steps: int = 64
    """Decisions of each game in a block."""
    min_batch: int = 0
    """Learn as soon as so many decisions are there; 0 waits for every worker."""
    explore: float = 0.0
    """Spread of temperature over workers: half play bolder, half more carefully."""
    sync: bool = False
    """Reproducible: workers always wait for the newest weights; same seed and workers, same metrics."""
    inference: Literal["auto", "local", "central"] = "auto"
    """Where the policy plays: in the workers, or in the learner's process on its device."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    seed: int = 0
    start: Literal["forkserver", "spawn", "fork"] = "forkserver"
    """How worker processes start."""
    log_s: float = 2.0
    """Seconds between lines of metrics."""
    save_s: float = 60.0
    """Seconds between checkpoints."""
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)


def resolve(game: str, preset: str = "default", file: Path | None = None) -> Config:
    """The configuration before flags."""
    if preset not in PRESETS:
        raise Usage(f"unknown preset {preset!r}: choose from {', '.join(PRESETS)}")
    config = Config(game=game, preset=preset)  # type: ignore[arg-type]
    for layer in (PRESETS[preset], *_game_presets(game, preset)):
        config = overlay(config, layer, f"preset {preset} of {game}")
    return overlay(config, _read(file), str(file)) if file else config


def _game_presets(game: str, preset: str) -> list[dict[str, Any]]:
    if ":" in game:
        return []
    own = getattr(games.find(game), "PRESETS", {})
    return [own.get("default", {})] + ([own[preset]] if preset in own and preset != "default" else [])


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise Usage(f"can't read the configuration {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise Usage(f"{file} is not TOML: {error}") from None


def overlay(config: Any, values: dict[str, Any], source: str) -> Any:
    """A configuration with some values replaced; groups such as [ppo] are gone into."""
    known = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise Usage(f"{source}: unknown key {name!r}: choose from {', '.join(known)}")
        old = known[name]
        if dataclasses.is_dataclass(old):
            changes[name] = overlay(old, value, f"{source} [{name}]")
        elif name == "switches":
            changes[name] = {**old, **value}
        else:
            changes[name] = _as_type(value, old, f"{source}: {name}")
    return dataclasses.replace(config, **changes)


def _as_type(value: Any, old: Any, where: str) -> Any:
    if isinstance(old, tuple) and isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(old, str) and isinstance(value, int):
        return str(value)
    if type(value) is not type(old):
        raise Usage(f"{where} is {value!r}, but must be like {old!r}")
    return value
