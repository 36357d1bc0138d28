"""Game: one object that answers everything about a game, whatever kind it is. `games.open` gives it.

`NativeGame` is what a folder with Rules fills in. Knows rules and tables, not which games there are.
"""

import dataclasses
import functools
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

import numpy as np

from ludus.core import seeds
from ludus.core.duel import Duel
from ludus.core.errors import Usage
from ludus.core.rules import Bot, Finishes, Judges, RandomBot, Rules, Solves
from ludus.core.spec import Spec
from ludus.core.table import RulesTable, Table, Turn

if TYPE_CHECKING:
    from ludus.core.film import Chooser, Film
    from ludus.core.screen import Screen, TableScreen
    from ludus.core.view import Live, TableView, View

RANDOM = "random"
PRESETS = "presets.toml"
WEB_SCRIPT = "web.js"
CHAMPION = "champion"
"""The name of the trained agent that comes with a game, and of its run's folder beside the class."""
Switches = dict[str, Any]
Stats = Mapping[str, float]
Page = Literal["none", "rules", "table", "live"]


class Player(Protocol):
    """Chooses in some rows of a table, from what their seats may know."""

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        """Actions for some rows, int32 [len(rows)]."""
        ...

    def snapshot(self) -> dict[str, Any]: ...

    def restore(self, snapshot: dict[str, Any]) -> None: ...


@dataclasses.dataclass(frozen=True)
class Visit:
    """How somebody plays on a server of the game."""

    server: str
    """Its address."""
    name: str = ""
    """The account. Default: a new one."""
    password: str = ""
    opponent: str = ""
    """Whom to challenge. Default: take all challenges."""
    ladder: bool = False
    """Let the server find opponents."""
    games: int = 1


class Engine(Protocol):
    """A game's link to programs that play it by a protocol of their own."""

    opponents: str
    """How their names are written, for people."""

    def is_name(self, name: str) -> bool:
        """Whether an opponent's name means such a program."""
        ...

    def check(self, name: str, program: str, seed: int) -> None:
        """Refuse a program that can't be started or can't play this game."""
        ...

    def duel(
        self, challenger: Bot, names: tuple[str, str], deals: int, opening: int, program: str, seed: int,
        report: Callable[[float], None],
    ) -> Duel:  # fmt: skip
        """A match of a bot against the program. names: of both"""
        ...

    def serve(self, make_bot: Callable[[Any], Bot], seed: int) -> None:
        """Play by the protocol on stdin and stdout. make_bot: of this game, perhaps under other rules"""
        ...


class Game:
    """What everybody may ask about a game. Kinds of games are subclasses."""

    name: str
    """As it was opened."""
    spec: Spec
    switches: Switches
    """As it was opened with."""
    rules: Rules | None = None
    """Of a native game: from them come search, analysis, mirrored matches and play by people."""
    options_type: ClassVar[type | None] = None
    """The switches as a dataclass; None for environments, of which only Python knows the types."""
    engine: Engine | None = None
    in_threads: bool = False
    """Whether tables release the GIL, so that threads can step them side by side; else processes must."""
    fast: bool = False
    """Whether a decision costs so little that blocks are large."""
    opening: int | None = None
    """Random first moves of a match. Default: some if the game has no chance."""
    measure_name: str = ""
    """What `measure` gives, in a few words."""
    page: ClassVar[Page] = "none"
    """How a browser plays it: not at all, by its rules, decision by decision at a table, or in real time."""
    recordings: ClassVar[str] = ""
    """How the files end that `replay` takes, as in `.bk2`."""

    @classmethod
    def description(cls) -> str:
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    @classmethod
    def variants(cls) -> list[str]:
        """Names of further games of this kind that can be played on this machine, as in `gym:ID`."""
        return []

    @classmethod
    def presets(cls, name: str) -> dict[str, dict[str, Any]]:
        """Settings for training the game of this name, by preset: `presets.toml` beside the class."""
        return _presets(Path(inspect.getfile(cls)).with_name(PRESETS))

    @classmethod
    def commands(cls) -> dict[str, Callable[..., None]]:
        """Commands of its own, as in `ludus GAME COMMAND`; their arguments are flags."""
        return {}

    @property
    def champion(self) -> Path | None:
        """The run of the trained agent that comes with the game: a folder `champion...` beside the class.

        Of several, the one whose switches agree most with these.
        """

        def agreement(config: Path) -> int:
            trained = tomllib.loads(config.read_text())["switches"]
            return sum(1 if self.switches.get(name) == value else -1 for name, value in trained.items())

        configs = sorted(Path(inspect.getfile(type(self))).parent.glob(f"{CHAMPION}*/config.toml"))
        return max(configs, key=agreement).parent if configs else None

    @property
    def bots(self) -> list[str]:
        """Names of its own scripted players, the strongest last."""
        return [RANDOM]

    @property
    def unit(self) -> tuple[str, int]:
        """What results are counted by, and how many of them a game has."""
        return "game", 1

    def table(self, rows: int) -> Table:
        raise NotImplementedError

    def encode(self, seen: Any) -> np.ndarray:
        """One observation as the game gives it to people's own code, as one array or record of ours."""
        return np.asarray(seen, self.spec.obs_dtype)

    def player(self, name: str, table: Table, rng: np.ndarray) -> Player:
        """A scripted player at a table of this game. rng: uint64 [rows, 2], its streams"""
        if name == RANDOM:
            return RandomPlayer(self.spec, rng)
        raise Usage(f"{self.name} has no bot {name!r}: choose from {', '.join(self.bots)}")

    def film(self, make_player: "Callable[[Table], Chooser]", seed: int) -> "Film":
        """A game as pictures. make_player: gives who plays all seats of a table"""
        raise Usage(f"{self.name} has no pictures to make a video of: it is for environments that render")

    def columns(self, stats: Stats) -> Mapping[str, str | float]:
        """Statistics as people read them, from the means of a game."""
        return stats

    def measure(self, stats: Stats) -> float | None:
        """How good a policy is by its own games; None: that can't be told from them."""
        return None

    def for_evaluation(self) -> "Game":
        """The same under the rules that results are reported for."""
        return self

    def make_table_screen(self) -> "TableScreen":
        """How people see and type a game that has no rules here, with a table of its own."""
        raise Usage(f"{self.name} can't be played here: that is for native games, those of `ludus games`")

    def make_table_view(self) -> "TableView":
        """How a browser sees a game whose page is `table`, with a table of its own."""
        raise Usage(f"{self.name} has no page to play on")

    def make_live(self, make_player: "Callable[[Table], Chooser] | None", seed: int) -> "Live":
        """A game whose page is `live`. make_player: gives who plays at a table; None for a person"""
        raise Usage(f"{self.name} has no page to play on")

    def replay(self, recording: Path) -> "Live":
        """A recorded game, as `make_live` gives one."""
        raise Usage(f"{self.name} has no recordings to play again")

    @property
    def web_script(self) -> Path | None:
        """The JavaScript module that draws it in a browser, if it has its own."""
        file = Path(inspect.getfile(type(self))).with_name(WEB_SCRIPT)
        return file if file.exists() else None

    def online_table(self, visit: Visit, say: Callable[[str], None]) -> Table:
        """One seat on a server of the game, as a table of one row. say: told of opponents and results"""
        raise Usage(f"{self.name} has no servers to play on: leave out --server")

    def warm_up(self, bots: Iterable[str] = ()) -> None:
        """Compile what it will need, and say so if that takes a while. bots: of its own that will play"""

    def native(self, what: str) -> "NativeGame":
        """This game, for what only native games can do. what: as in `played here`"""
        raise Usage(f"{self.name} can't be {what}: that is for native games, those of `ludus games`")


def merged(values: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Groups of settings, with others on top."""
    found = {**values, **more}
    for name in set(values) & set(more):
        if isinstance(values[name], dict) and isinstance(more[name], dict):
            found[name] = merged(values[name], more[name])
    return found


@functools.cache
def _presets(file: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(file.read_text()) if file.exists() else {}


class NativeGame(Game):
    """A game by Rules. Its class names its `options_type` and makes rules, and perhaps bots and a screen."""

    options_type: ClassVar[type]
    """The rule switches, a frozen dataclass; the string under a field is its help."""
    evaluated: ClassVar[Switches] = {}
    """What evaluation changes of the switches a run was trained with."""
    in_threads, fast = True, True
    page = "rules"
    rules: Rules

    def __init__(self, name: str, switches: Switches) -> None:
        known = [field.name for field in dataclasses.fields(self.options_type)]
        for switch in switches:
            if switch not in known:
                raise Usage(f"{name} has no switch {switch!r}: choose from {', '.join(known) or 'none'}")
        self.name, self.switches = name, switches
        self.options = self.options_type(**switches)
        self.rules = self.make_rules(self.options)
        self.spec = dataclasses.replace(self.rules.spec, game=name)

    def make_rules(self, options: Any) -> Rules:
        raise NotImplementedError

    def make_bots(self) -> dict[str, Callable[[], Bot]]:
        """Functions that make the game's own bots, by name, the strongest last."""
        return {}

    def make_screen(self) -> "Screen":
        """How people see it."""
        from ludus.core.screen import PlainScreen

        return PlainScreen(self.rules)

    def make_view(self) -> "View":
        """How a browser sees it."""
        from ludus.core.view import default_view

        return default_view(self.rules, self.make_screen())

    @property
    def bots(self) -> list[str]:
        return [RANDOM, *self.make_bots()]

    def bot(self, name: str) -> Bot:
        """One of its own bots by name."""
        if name == RANDOM:
            return RandomBot(self.rules)
        offered = self.make_bots()
        if name not in offered:
            raise Usage(f"{self.name} has no bot {name!r}: choose from {', '.join(self.bots)}")
        return offered[name]()

    def table(self, rows: int) -> RulesTable:
        return RulesTable(self.rules, rows)

    def player(self, name: str, table: Table, rng: np.ndarray) -> Player:
        if name == RANDOM:
            return RandomPlayer(self.spec, rng)
        return BotPlayer(self.bot(name), table, rng)

    def native(self, what: str) -> "NativeGame":
        return self

    def for_evaluation(self) -> "NativeGame":
        return type(self)(self.name, {**self.switches, **self.evaluated}) if self.evaluated else self

    def warm_up(self, bots: Iterable[str] = ()) -> None:
        from ludus.core import jit

        rules, table, spec = self.rules, self.table(2), self.spec
        with jit.announced(self.name, self._folder()):
            table.reset(0)
            table.step(RandomBot(rules).choose(table.states, seeds.rows(0, 2)))
            rules.stats(table.states, np.zeros((2, spec.seats, len(spec.stats)), np.float32))
            rules.redeal(table.states.copy(), seeds.rows(0, 2))
            if isinstance(rules, Finishes):
                rules.finish(table.states, np.zeros(2, np.int32))
            if isinstance(rules, Judges):
                rules.judge(table.states, np.zeros((2, 1), np.int32))
            if isinstance(rules, Solves):
                rules.solve(table.states, 1, np.zeros((2, spec.seats), np.float32))
        for name in set(bots) - {RANDOM}:
            self.warm_up_bot(name, self.bot(name))

    def warm_up_bot(self, name: str, bot: Bot) -> None:
        from ludus.core import jit

        states = self.rules.blank(2)
        self.rules.deal(states, seeds.rows(0, 2))
        with jit.announced(f"{self.name}'s bot {name}", self._folder()):
            bot.choose(states, seeds.rows(0, 2))

    def _folder(self) -> Path:
        return Path(sys.modules[type(self).__module__].__file__ or "").resolve().parent


class _Streams:
    """A player whose only state is a random stream for each row."""

    rng: np.ndarray

    def snapshot(self) -> dict[str, Any]:
        return {"rng": self.rng.copy()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.rng[...] = snapshot["rng"]


class BotPlayer(_Streams):
    """A bot at a table of native games."""

    def __init__(self, bot: Bot, table: Table, rng: np.ndarray) -> None:
        self.bot, self.table, self.rng = bot, cast(RulesTable, table), rng

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        streams = self.rng[rows]
        actions = self.bot.choose(self.table.states[rows], streams)
        self.rng[rows] = streams
        return actions


class RandomPlayer(_Streams):
    """Any legal action, or any vector within its bounds, at any table."""

    def __init__(self, spec: Spec, rng: np.ndarray) -> None:
        refuse_random(spec)
        self.spec, self.rng = spec, rng

    def choose(self, rows: np.ndarray, turn: Turn) -> np.ndarray:
        from ludus.core.dice import legal_choice, uniforms

        streams, actions = self.rng[rows], blank_actions(self.spec, len(rows))
        if self.spec.box is None:
            legal_choice(turn.legal[rows], streams, actions)
        else:
            low, high = self.spec.box
            shares = np.empty((low.size, len(rows)), np.float32)
            for share in shares:
                uniforms(streams, share)
            actions[...] = low + shares.T.reshape(actions.shape) * (high - low)
        self.rng[rows] = streams
        return actions


def blank_actions(spec: Spec, n: int) -> np.ndarray:
    """Room for n actions: int32 [n], or float32 [n, *shape] of vectors."""
    return np.zeros((n, *spec.box[0].shape), np.float32) if spec.box else np.zeros(n, np.int32)


def refuse_random(spec: Spec) -> None:
    """Vectors without bounds can't be drawn with equal chances."""
    if spec.box is not None and not (np.isfinite(spec.box[0]).all() and np.isfinite(spec.box[1]).all()):
        raise Usage(f"{spec.game} has actions without bounds, so nobody can play at random: leave out random")
