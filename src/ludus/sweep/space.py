"""The space of a sweep: which settings vary, and within which values, as people write them."""

import dataclasses
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ludus.config import Config, check_ranges, overlay, plain
from ludus.core.errors import Usage

EXAMPLES = "net.activation=choice:relu,tanh, ppo.epochs=1:4 or ppo.learning_rate=log:1e-4:1e-2"
NOT_VARIED = ("game", "algo", "preset", "run", "schema")
"""What makes trials another training altogether."""


@dataclass(frozen=True)
class Setting:
    """One setting that varies: between two numbers, or among choices."""

    key: str
    """As in a file: `ppo.learning_rate`."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    """As JSON, so that lists are choices too."""

    def suggest(self, trial: Any) -> Any:
        """A value of this setting. trial: Optuna's"""
        if self.choices:
            return json.loads(trial.suggest_categorical(self.key, self.choices))
        if self.whole:
            return trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, log=self.log)

    def value(self, stored: Any) -> Any:
        """What Optuna keeps of it, as the value it is."""
        return json.loads(stored) if self.choices else stored

    def ends(self) -> list[Any]:
        """Values that must all be allowed."""
        if self.choices:
            return [json.loads(choice) for choice in self.choices]
        return [int(self.low), int(self.high)] if self.whole else [self.low, self.high]


def parse(words: Sequence[str], base: Config) -> list[Setting]:
    """The space, once every end of it is a configuration."""
    if not words:
        raise Usage(f"say what to vary with --space, as in {EXAMPLES}")
    settings = [_setting(word, base) for word in words]
    for setting in settings:
        if sum(other.key == setting.key for other in settings) > 1:
            raise Usage(f"--space names {setting.key} twice")
        for value in setting.ends():
            check_ranges(applied(base, {setting.key: value}))
    return settings


def applied(base: Config, values: dict[str, Any]) -> Config:
    """The configuration with some settings changed, by their keys."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *groups, name = key.split(".")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return overlay(base, nested, "--space")


def alone(config: Config) -> Config:
    """As a trial is trained: with the workers of one machine, wherever that is."""
    return dataclasses.replace(config, pool="auto", ray_address="", ray_modules=())


def _setting(word: str, base: Config) -> Setting:
    key, equals, text = word.partition("=")
    key = key.strip().lstrip("-").replace("-", "_")
    if not equals or not key or not text:
        raise Usage(f"--space {word!r} is not a setting and its values, as in {EXAMPLES}")
    before = _value_of(base, key)
    kind, colon, rest = text.partition(":")
    if kind == "choice" and colon:
        return Setting(key, choices=_choices(word, rest))
    if not isinstance(before, int | float) or isinstance(before, bool):
        raise Usage(f"--space {word!r}: {key} is no number, so list its values as in {key}=choice:A,B")
    if kind not in ("log", "uniform"):
        kind, rest = "uniform", text
    low, high = _bounds(word, rest)
    whole = isinstance(before, int)
    if kind == "log" and low <= 0:
        raise Usage(f"--space {word!r}: on a logarithmic scale both ends must be above 0")
    if whole and (low != int(low) or high != int(high)):
        raise Usage(f"--space {word!r}: {key} is a whole number, so both ends must be")
    return Setting(key, low, high, kind == "log", whole)


def _value_of(base: Config, key: str) -> Any:
    value: Any = plain(base)
    if key in NOT_VARIED:
        raise Usage(f"--space can't vary {key}: trials would be different trainings")
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            raise Usage(f"--space: unknown setting {key}: `ludus train {base.game} --help` lists them")
        value = value[name]
    if isinstance(value, dict):
        raise Usage(f"--space: {key} is a group: name one of {', '.join(f'{key}.{name}' for name in value)}")
    return value


def _bounds(word: str, text: str) -> tuple[float, float]:
    ends = text.split(":")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        raise Usage(f"--space {word!r} needs a lowest and a highest value, as in {EXAMPLES}") from None
    if not -float("inf") < low < high < float("inf"):
        raise Usage(f"--space {word!r}: the first value must be below the second")
    return low, high


def _choices(word: str, text: str) -> tuple[str, ...]:
    """Values as in TOML; what is not TOML is taken as words."""
    try:
        values = tomllib.loads(f"values = [{text}]")["values"]
    except tomllib.TOMLDecodeError:
        values = [part.strip() for part in text.split(",")]
    if len(values) < 2:
        raise Usage(f"--space {word!r} has nothing to choose from: give two values or more")
    return tuple(json.dumps(value) for value in values)
