"""What a training can be told: defaults < presets < a TOML file < flags. No unknown keys.

Each algorithm has a group of settings of its own, named after it; only that of the chosen one is kept.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from ludus import algos, games
from ludus.core import ranges
from ludus.core.errors import Failure, Usage
from ludus.core.ranges import Count, NotNegative, Range, Whole
from ludus.nets import NetConfig

SCHEMA = 2
"""Of a run's config.toml. 1 had other names for some settings, and groups of all algorithms."""
PRESETS = ("test", "quick", "default", "gpu")
RENAMED = {"start": "start_method", "explore": "temperature_spread"}
"""Settings by the names that they had in schema 1; algorithms know their own."""


@dataclass(frozen=True)
class Schedule:
    every_s: NotNegative = 60.0
    """Seconds between checkpoints; 0 for none by the clock."""
    every_decisions: Whole = 0
    """Decisions between checkpoints; 0 for none by count."""
    keep: Count = 2
    """How many of the newest are kept."""
    milestone: Whole = 1_000_000
    """Decisions between weights that are kept for good; 0 for none."""


@dataclass(frozen=True)
class Config:
    game: str = ""
    """What is trained: a game of `ludus games`, gym:ID, zoo:ID or module:Class."""
    algo: str = ""
    """Algorithm: ppo, alphazero, or the module of your own. Default: as the game's preset says."""
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
    start_from: str = ""
    """Run whose weights the training starts from, or `champion`: to go on under other rules or settings."""
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
    pool: Literal["auto", "ray"] = "auto"
    """Where workers are: auto: on this machine; ray: on all machines of a Ray cluster."""
    ray_address: str = ""
    """Ray cluster: auto (this machine is part of it) or HOST:PORT. Default: Ray on this machine alone."""
    ray_modules: tuple[str, ...] = ()
    """Packages (folders) or .py files that Ray sends to its nodes. Default: none, all is installed there."""
    max_lag: Count = 20
    """Ray: blocks are dropped if their weights are more than so many updates old."""
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
    settings: Any = None
    """Settings of the algorithm, in files and flags a group of its name."""


def resolve(
    game: str, preset: str | None = None, file: Path | None = None, algo: str | None = None
) -> Config:
    """The configuration before flags. preset, algo: as flags say; else the file's, else the default ones."""
    values = read_file(file) if file else {}
    preset = preset or values.get("preset", "default")
    if preset not in PRESETS:
        raise Usage(f"unknown preset {preset!r}: choose from {', '.join(PRESETS)}")
    own = games.find(game).presets(game)
    layers = [_generic()["default"], _generic()[preset], own.get("default", {}), own.get(preset, {})]
    if not algo and (algo := values.get("algo")) and algos.imports_code(str(algo)):
        raise Usage(f"{file} has algo = {algo!r}, which imports code: if you trust it, say so as --algo")
    algo = algo or next(layer["algo"] for layer in reversed(layers) if "algo" in layer)
    settings = algos.find(algo).settings_type()
    config = Config(game=game, preset=preset, algo=algo, settings=settings)  # type: ignore[arg-type]
    for layer in layers:
        config = overlay(config, {**layer, "algo": algo}, f"preset {preset} of {game}")
    return overlay(config, {**values, "game": game, "preset": preset, "algo": algo}, str(file))


def default_algo() -> str:
    """Of a training whose game and file don't say."""
    return _generic()["default"]["algo"]


@functools.cache
def _generic() -> dict[str, dict[str, Any]]:
    """What presets mean for games that don't say."""
    return tomllib.loads(Path(__file__).with_name("presets.toml").read_text())


def read_file(file: Path) -> dict[str, Any]:
    """The values of a TOML file, under today's names."""
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise Usage(f"can't read the configuration {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Usage(f"{file} is not TOML: {error}") from None
    return upgraded(values, str(file))


def upgraded(values: dict[str, Any], source: str) -> dict[str, Any]:
    """Of a run's config.toml of any schema, what is a setting. A file of one's own has no schema."""
    is_run = values.pop("versions", None) is not None  # a run's own config.toml may be used again
    schema = values.pop("schema", 1 if is_run else SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise Failure(f"{source} has schema {schema}, of a newer Ludus than this: pip install -U ludus")
    if schema == 1:
        values = _renamed(values, RENAMED)
        for name in algos.names():
            if isinstance(values.get(name), dict):
                values[name] = _renamed(values[name], algos.find(name).renamed)
    return values


def _renamed(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """names: old to new; a name in a group is written as in `search.c_puct`"""
    found = {names.get(name, name): value for name, value in values.items()}
    for group in {name.partition(".")[0] for name in names if "." in name} & set(found):
        inner = {
            o.partition(".")[2]: n.partition(".")[2] for o, n in names.items() if o.startswith(f"{group}.")
        }
        found[group] = {inner.get(name, name): value for name, value in found[group].items()}
    return found


def plain(config: Config) -> dict[str, Any]:
    """As it is written to a file: plain values, and the algorithm's settings under its name."""
    values = dataclasses.asdict(config)
    values[algos.group_of(config.algo)] = values.pop("settings")
    return {"schema": SCHEMA, **values}


def check_ranges(config: Config) -> None:
    """Refuse the first value that is out of its range, by the name that its flag has."""
    ranges.check(dataclasses.replace(config, settings=None))
    ranges.check(config.settings, f"{algos.group_of(config.algo)}.")


def overlay(config: Any, values: dict[str, Any], source: str) -> Any:
    """A configuration with some values replaced; groups such as [net] are gone into."""
    known = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}
    if isinstance(config, Config):
        if values.get("algo", config.algo) != config.algo:  # its settings would be another's
            raise Usage(f"{source}: algo is {values['algo']!r}, but the settings are those of {config.algo}")
        known[algos.group_of(config.algo)] = known.pop("settings")
        others = set(algos.names()) - set(known)
        values = {name: value for name, value in values.items() if name not in others}
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
            place = name if name in kinds else "settings"
            changes[place] = overlay(old, value, f"{source} [{name}]")
        elif name == "switches":
            changes[name] = {**old, **value}
        elif name in kinds:
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
