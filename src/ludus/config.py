"""What a training can be told: defaults < the game's preset < a TOML file < flags. No unknown keys."""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from ludus import games
from ludus.algos.alphazero import Config as AlphaZeroConfig
from ludus.algos.ppo import Config as PpoConfig
from ludus.core.errors import Usage
from ludus.core.ranges import Count, NotNegative, Range, Whole
from ludus.nets import NetConfig
from ludus.store.checkpoint import Schedule

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

ENVIRONMENTS: dict[str, Any] = {
    "steps": 128,
    "ppo": {"learning_rate": 1e-3, "epochs": 10, "minibatch": 256},
}
"""What every preset of gym:, zoo: and module:Class begins with. Their decisions are few and dear, so blocks
are small and learned from often: with the values for native games, CartPole's 100,000 decisions would be six
updates. Four epochs of 128 failed Acrobot with half of the seeds, ten of 256 with none."""


@dataclass(frozen=True)
class Config:
    game: str = ""
    """What is trained: a game of `ludus games`, gym:ID, zoo:ID or module:Class."""
    algo: Literal["ppo", "alphazero"] = "ppo"
    """Algorithm."""
    preset: Literal["test", "quick", "default", "gpu"] = "default"
    """test: seconds, proves that everything works. quick: a minute or two. gpu: the large one."""
    run: str = ""
    """Folder of the run. Default: runs/GAME-PRESET."""
    decisions: Count = 5_000_000
    """Decisions of the learning policy after which the training ends: in all, also when it is resumed."""
    seconds: NotNegative = 0.0
    """Clock time after which it ends, if that comes first: in all, as above; 0 for no limit."""
    switches: dict[str, Any] = field(default_factory=dict)
    """Rule switches of the game, as `ludus games GAME` lists them."""
    opponents: str = "self"
    """Who sits in the other seats, as shares: self:0.6,past:0.3,greedy:0.1"""
    workers: Annotated[str, Range(0, 4096, word="auto")] = "auto"
    """Worker processes; 0 plays in the learner's own process, for debugging."""
    rows: Whole = 0
    """Games side by side in each worker; 0: by the game's measured speed, for blocks of at most 2 s."""
    steps: Whole = 0
    """Decisions of each game in a block; 0: 64, and fewer in a slow search."""
    min_batch: Whole = 0
    """Learn as soon as so many decisions are there; 0 waits for every worker."""
    temperature_spread: Annotated[float, Range(0, 1, open_high=True)] = 0.0
    """Spread of the sampling temperature over workers: from 1 - spread to 1 + spread."""
    sync: bool = False
    """Reproducible: workers always wait for the newest weights; same seed and workers, same metrics."""
    inference: Literal["auto", "local", "central"] = "auto"
    """Where the policy plays: in the workers, or in the learner's process on its device."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the learner computes; auto takes a GPU if there is one."""
    seed: int = 0
    """From which all randomness of the run is derived."""
    start_method: Literal["auto", "forkserver", "spawn", "fork"] = "auto"
    """How worker processes start; auto: forkserver, on Windows spawn."""
    log_s: NotNegative = 2.0
    """Seconds between lines of metrics; with --sync there is one for every update."""
    eval_every: Annotated[str, Range(0, word="auto")] = "auto"
    """Decisions between evaluations; 0 for none. auto: a twentieth of the run, at most 3 % of its time."""
    eval_against: str = ""
    """Bots that evaluations play against, as in greedy,random. Default: the game's first bot and random."""
    eval_games: Whole = 0
    """Games of an evaluation against each opponent; 0: 200, or 40 for agents that search."""
    checkpoints: Schedule = field(default_factory=Schedule)
    """When the run is saved, and what is kept."""
    notify: tuple[str, ...] = ()
    """Where to tell of start, progress, faults and end: apprise URLs (and $DISCORD_WEBHOOK_URL)."""
    notify_minutes: NotNegative = 30.0
    """Minutes between two messages of progress; 0 for none by the clock."""
    notify_decisions: Whole = 0
    """Decisions between two messages of progress; 0 for none by count."""
    mirror: str = ""
    """Where to copy the run in the background: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///FOLDER."""
    tensorboard: bool = False
    """Write the metrics for TensorBoard too."""
    profile: bool = False
    """Tell where every process's time went at the end, and write trace.json for a browser's trace viewer."""
    price_per_hour: NotNegative = 0.0
    """What an hour of this machine costs: the metrics then say what the training does."""
    net: NetConfig = field(default_factory=NetConfig)
    """The network."""
    ppo: PpoConfig = field(default_factory=PpoConfig)
    """PPO settings."""
    alphazero: AlphaZeroConfig = field(default_factory=AlphaZeroConfig)
    """AlphaZero settings; for native games on boards."""


def resolve(game: str, preset: str | None = None, file: Path | None = None) -> Config:
    """The configuration before flags. preset: as flags say; else the file's, else the default one."""
    values = _read(file) if file else {}
    preset = preset or values.get("preset", "default")
    if preset not in PRESETS:
        raise Usage(f"unknown preset {preset!r}: choose from {', '.join(PRESETS)}")
    config = Config(game=game, preset=preset)  # type: ignore[arg-type]
    for layer in (ENVIRONMENTS if ":" in game else {}, PRESETS[preset], *_game_presets(game, preset)):
        config = overlay(config, layer, f"preset {preset} of {game}")
    return overlay(config, {**values, "game": game, "preset": preset}, str(file))


def _game_presets(game: str, preset: str) -> list[dict[str, Any]]:
    if ":" in game:
        return []
    own = getattr(games.find(game), "PRESETS", {})
    return [own.get("default", {})] + ([own[preset]] if preset in own and preset != "default" else [])


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise Usage(f"can't read the configuration {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise Usage(f"{file} is not TOML: {error}") from None
    values.pop("versions", None)  # a run's own config.toml may be used again
    return values


def overlay(config: Any, values: dict[str, Any], source: str) -> Any:
    """A configuration with some values replaced; groups such as [ppo] are gone into."""
    known = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}
    kinds = get_type_hints(type(config))
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise Usage(f"{source}: unknown key {name!r}: choose from {', '.join(known)}")
        old = known[name]
        if isinstance(old, dict) or dataclasses.is_dataclass(old):
            if not isinstance(value, dict):
                raise Usage(f"{source}: {name} is {value!r}, but must be a group [{name}]")
        if dataclasses.is_dataclass(old):
            changes[name] = overlay(old, value, f"{source} [{name}]")
        elif name == "switches":
            changes[name] = {**old, **value}
        else:
            changes[name] = _as_type(value, old, kinds[name], f"{source}: {name}")
    return dataclasses.replace(config, **changes)


def _as_type(value: Any, old: Any, kind: Any, where: str) -> Any:
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise Usage(f"{where} is {value!r}, but must be one of {', '.join(get_args(kind))}")
    if isinstance(old, tuple) and isinstance(value, list | tuple):
        element = get_args(kind)[0]
        if all(type(part) is element for part in value):
            return tuple(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if isinstance(old, float | str):
            return type(old)(value)
    if type(value) is not type(old):
        raise Usage(f"{where} is {value!r}, but must be like {old!r}")
    return value
