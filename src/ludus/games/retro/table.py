"""RetroTable: console games as a table. One emulator, and a save state for every row."""

from typing import Any

import numpy as np

from ludus.core import dice, seeds
from ludus.core.errors import Failure, Usage
from ludus.core.spec import Part, Spec
from ludus.core.table import Finished, LastSeen, Table, Turn, refuse_illegal
from ludus.games.retro import buttons, catalog, states
from ludus.games.retro.catalog import Integration
from ludus.games.retro.emulator import Emulator
from ludus.games.retro.frames import FrameRing
from ludus.games.retro.judges import make_judge
from ludus.games.retro.options import REWARD_PARTS, Options
from ludus.games.retro.pixels import shrink
from ludus.games.retro.recording import Recorder
from ludus.games.retro.starts import Starts, chance

WATCHED = ("score", "lives")
"""Variables that shaping and statistics look at, where a game has them."""
NOTHING = -1
"""Instead of an action: no buttons."""


def make_spec(integration: Integration, options: Options) -> Spec:
    """Needs no emulator."""
    missing = [
        (part, name)
        for part, name in (("score", "score"), ("life_lost", "lives"), ("life_gained", "lives"))
        if getattr(options, part) and name not in integration.variables
    ]
    for part, name in missing:
        known = ", ".join(integration.variables)
        raise Usage(f"{part} needs the variable {name!r}, but {integration.game} has only {known}")
    stack = options.frame_stack
    parts = [f"reward_{part}" for part in REWARD_PARTS if getattr(options, part)]
    return Spec(
        game=f"retro:{integration.game}",
        seats=1,
        actions=len(buttons.names(integration, options.buttons)),
        parts=(Part("frames", (stack, options.size, options.size), kind="image", stack=stack),),
        stats=("length", "start", *watched(integration), *parts),
        zero_sum=False,
    )


def watched(integration: Integration) -> list[str]:
    return [name for name in WATCHED if name in integration.variables]


class RetroTable(Table):
    """A finished game starts anew in the same step. Rows play exactly as in emulators of their own."""

    finite = True

    def __init__(self, game: str, rows: int, options: Options | None = None) -> None:
        self.options, self.rows = options or Options(), rows
        self.integration = catalog.find(game, self.options.scenario)
        if self.integration.scripted and rows > 1:
            raise Usage(f"{game} computes rewards in Lua, which allows one game per process: take rows 1")
        self.spec = make_spec(self.integration, self.options)
        self.buttons = buttons.names(self.integration, self.options.buttons)
        self._masks = buttons.masks(self.integration, [*self.buttons, ""])  # uint8 [A + 1, buttons]
        self._watched = watched(self.integration)
        names = states.chosen_names(self.integration, self.options.states)
        self.emulator = Emulator(self.integration)
        try:
            self.starts = Starts(names, states.load_states(self.emulator, names), self.options.prioritised)
            self._judge = make_judge(self.emulator, rows)
        except BaseException:
            self.emulator.close()
            raise
        self._loaded = -1  # the row whose game is in the emulator
        self._states = [b""] * rows
        self._recorders: dict[int, Recorder] = {}
        self._make_arrays()

    def _make_arrays(self) -> None:
        n = self.rows
        self._all_rows = np.arange(n)
        self.ring = FrameRing(n, self.options.frame_stack, self.options.size)
        self._rng = np.zeros((n, 2), np.uint64)
        self._held = np.zeros(n, np.int64)  # the action whose buttons the last frame had
        self._start = np.zeros(n, np.int64)
        self._length = np.zeros(n, np.int64)
        self._idle = np.zeros(n, np.int64)  # decisions since the integration last paid anything
        self._seen = np.zeros((n, len(self._watched)), np.int64)
        self._weights = np.array([getattr(self.options, part) for part in REWARD_PARTS])  # [P]
        self._paid = np.zeros((n, len(REWARD_PARTS)))  # of the present game, by part
        self._legal = np.ones((n, self.spec.actions), bool)
        self._seat = np.zeros(n, np.int8)
        self._reward = np.zeros((n, 1), np.float32)
        self._ended = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)

    def reset(self, seed: int) -> Turn:
        self._rng[:] = seeds.rows(seed, self.rows, "table")
        self.starts.returns[:] = np.nan
        self._reward[:] = self._ended[:] = self._truncated[:] = 0
        for row in range(self.rows):
            self._begin(row)
        return self._turn(None, None)

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        """actions: int32 [N]; with `rows`, only those move and have an action."""
        moving = self._all_rows if rows is None else rows
        refuse_illegal(self._legal, moving, actions, self.spec.game)
        self.ring.advance(np.setdiff1d(self._all_rows, moving))
        self._reward[:] = self._ended[:] = self._truncated[:] = 0
        for row, action in zip(moving.tolist(), actions.tolist(), strict=True):
            self._play(row, action)
        return self._turn(*self._start_anew())

    def snapshot(self) -> dict[str, Any]:
        """Empty if Lua knows part of the future."""
        kept = self.room()
        if kept:
            self.save_into(kept)
        return kept

    def room(self) -> dict[str, np.ndarray]:
        """Arrays for a snapshot."""
        if self.integration.scripted:
            return {}
        states = np.zeros((self.rows, len(self.emulator.power_on)), np.uint8)
        room = {"states": states, "frames": np.zeros_like(self.ring.stacks)}
        return room | {name: np.zeros_like(array) for name, array in self._kept().items()}

    def save_into(self, kept: dict[str, np.ndarray]) -> None:
        """Write a snapshot into the arrays of `room`."""
        for row, state in enumerate(self._states):
            kept["states"][row] = np.frombuffer(state, np.uint8)
        kept["frames"][...] = self.ring.stacks
        for name, array in self._kept().items():
            kept[name][...] = array

    def restore(self, snapshot: dict[str, Any]) -> Turn:
        wanted = {name: array.shape for name, array in self.room().items()}
        if not wanted or wanted != {name: snapshot[name].shape for name in wanted if name in snapshot}:
            raise Failure(f"{self.spec.game}: the snapshot's table had other rows, options or emulator")
        for name, array in self._kept().items():
            array[...] = snapshot[name]
        self.ring.stacks[...] = snapshot["frames"]
        self._states = [state.tobytes() for state in snapshot["states"]]
        self._loaded = -1
        self._close_recordings()
        self._reward[:] = self._ended[:] = self._truncated[:] = 0
        return self._turn(None, None)

    def record(self, row: int, file: str) -> None:
        """Write the row's next game, from its start to its end, to a .bk2 file."""
        if not 0 <= row < self.rows:
            raise Usage(f"{self.spec.game}: there is no row {row} to record, only 0..{self.rows - 1}")
        recorder = Recorder(file)
        if row in self._recorders:
            self._recorders[row].close()
        self._recorders[row] = recorder

    def read(self, row: int, *variables: str) -> list[int]:
        """Values of the row's game by name in data.json, e.g. for a scripted player."""
        self._load(row)
        return self.emulator.read(variables)

    def memory(self, row: int) -> np.ndarray:
        """A copy of the memory of the row's console, uint8 [M]."""
        self._load(row)
        return self.emulator.memory()

    def screen(self, row: int) -> np.ndarray:
        """What a person would see of the row's game, one frame later. uint8 [H, W, 3]"""
        self._load(row)
        self.emulator.hold(self._masks[self._held[row]], 1)
        self._loaded = -1
        return self.emulator.screen()

    def close(self) -> None:
        self._close_recordings()
        self.emulator.close()

    def _kept(self) -> dict[str, np.ndarray]:
        return {
            "rng": self._rng, "held": self._held, "start": self._start, "length": self._length,
            "idle": self._idle, "seen": self._seen, "paid": self._paid,
            "values": self._judge.values, "returns": self.starts.returns,
        }  # fmt: skip

    def _load(self, row: int) -> None:
        if self._loaded != row:
            self.emulator.load(self._states[row])
            self._loaded = row

    def _begin(self, row: int) -> None:
        """A new game in the row; its first frame is the ring's newest."""
        stream, emulator = self._rng[row], self.emulator
        start = self._start[row] = self.starts.draw(stream)
        frames = 1 + dice.below(stream, self.options.noop_max + 1)
        emulator.load(self.starts.states[start], self.starts.names[start])
        if recorder := self._recorders.get(row):
            recorder.begin(emulator, self.starts.states[start], frames)
        emulator.hold(emulator.nothing, frames)
        self._judge.begin(row)
        self._seen[row] = emulator.read(self._watched)
        self._states[row], self._loaded = emulator.save(), row
        self._held[row], self._length[row], self._idle[row] = NOTHING, 0, 0
        self._paid[row] = 0
        shrink(emulator.screen(), self.ring.newest(row))
        self.ring.blank(row)

    def _play(self, row: int, action: int) -> None:
        """One decision: some frames with the same buttons, of which only the last is looked at."""
        self._load(row)
        emulator, judge, recorder = self.emulator, self._judge, self._recorders.get(row)
        paid, done, held = 0.0, False, int(self._held[row])
        for _ in range(self.options.frame_skip):
            if held != action and (not self.options.sticky or chance(self._rng[row]) >= self.options.sticky):
                held = action
            emulator.press(self._masks[held])
            if recorder:
                recorder.frame(self._masks[held])
            emulator.frame()
            reward, done = judge.frame(row)
            paid += reward
            if done:
                break
        self._held[row] = held
        self._states[row] = emulator.save()
        shrink(emulator.screen(), self.ring.newest(row))
        self._settle(row, paid, done)

    def _settle(self, row: int, paid: float, done: bool) -> None:
        """What the decision pays, and whether the game goes on."""
        seen = dict(zip(self._watched, self._seen[row].tolist(), strict=True))
        self._seen[row] = self.emulator.read(self._watched)
        now = dict(zip(self._watched, self._seen[row].tolist(), strict=True))
        lives = now.get("lives", 0) - seen.get("lives", 0)
        gained = 0 if done else max(0, lives)  # at its end a game may write anything there
        parts = self._weights * (paid, now.get("score", 0) - seen.get("score", 0), max(0, -lives), gained, 1)
        self._paid[row] += parts
        self._reward[row] = parts.sum()
        self._length[row] += 1
        self._idle[row] = 0 if paid else self._idle[row] + 1
        options = self.options
        cut = 0 < options.max_steps <= self._length[row] or 0 < options.idle_steps <= self._idle[row]
        self._ended[row], self._truncated[row] = done, cut and not done

    def _start_anew(self) -> tuple[Finished | None, LastSeen | None]:
        """Begin new games in the rows that ended."""
        over = np.flatnonzero(self._ended | self._truncated)
        if not len(over):
            return None, None
        score = self._paid[over].sum(1).astype(np.float32)[:, None]  # [F, 1]
        active = self._paid[over][:, self._weights != 0]
        stats = np.column_stack([self._length[over], self._start[over], self._seen[over], active])
        cut = np.flatnonzero(self._truncated)
        last = LastSeen(cut, np.zeros(len(cut), np.int64), self.ring.stacks[cut]) if len(cut) else None
        for row, returned in zip(over.tolist(), score[:, 0].tolist(), strict=True):
            self.starts.report(int(self._start[row]), returned)
            self._end_recording(row)
            self._begin(row)
        return Finished(over, score, stats.astype(np.float32)[:, None]), last

    def _end_recording(self, row: int) -> None:
        recorder = self._recorders.get(row)
        if recorder and recorder.begun:
            recorder.close()
            del self._recorders[row]

    def _close_recordings(self) -> None:
        for recorder in self._recorders.values():
            recorder.close()
        self._recorders.clear()

    def _turn(self, finished: Finished | None, last_obs: LastSeen | None) -> Turn:
        return Turn(
            self.ring.stacks, self._legal, self._seat, self._reward, self._ended, self._truncated,
            finished, last_obs,
        )  # fmt: skip
