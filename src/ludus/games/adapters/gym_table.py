"""GymTable: Gymnasium environments as a table. Knows Gymnasium; must not know games or training.

The loop in `step` is all there is between an environment and a block, so it does as little as a loop
written by hand: it writes rows into arrays made once, and checks what it can for all rows together.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.wrappers import FrameStackObservation, OrderEnforcing, PassiveEnvChecker

from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.spec import Padding, Part, Spec
from ludus.core.table import Finished, LastSeen, Table, Turn, refuse_infinite
from ludus.games.adapters.load import Factory, close_all, gym_factory, make_all, name_of
from ludus.games.adapters.spaces import action_form, fitted, obs_form, space_of

MASK = "action_mask"
RAISED = object()


class GymTable(Table):
    """N environments of one kind, one after the other. A finished episode starts anew in the same step."""

    finite = True

    def __init__(self, source: str | Factory, rows: int, name: str = "", /, **kwargs: Any) -> None:
        """source: what follows `gym:`, or a function or class that makes one environment of `kwargs`.

        name: what it is called where something is said about it
        """
        factory = gym_factory(source) if isinstance(source, str) else source
        self.name = name or name_of(source, "gym")
        self.rows, self._all_rows = rows, list(range(rows))
        self.envs = [without_checks(env) for env in make_all(factory, self.name, rows, kwargs)]
        self._form = action_form(space_of(self.envs[0], "action_space", self.name), self.name)
        self.view = obs_form(space_of(self.envs[0], "observation_space", self.name), self.name)
        self.view = replace(self.view, parts=with_stack(self.envs[0], self.view.parts))
        self.spec = Spec(
            game=self.name,
            seats=1,
            actions=self._form.count,
            parts=self.view.parts,
            stats=("length",),
            zero_sum=False,
            box=self._form.box,
        )
        for method in ("reset", "step"):
            if not callable(getattr(self.envs[0], method, None)):
                raise Usage(f"{self.name}: {type(self.envs[0]).__name__} has no function {method!r}")
        self._steps = [env.step for env in self.envs]
        self._masks: list[Callable[[dict], Any]] | None = None
        self._make_arrays()

    def _make_arrays(self) -> None:
        n, view = self.rows, self.view
        self._obs = np.zeros((n, *view.shape), view.dtype)
        self._flat_obs = self._obs.reshape(-1)  # the same numbers in one row
        self._last_obs = np.zeros((n, *view.shape), view.dtype)
        self._legal = np.ones((n, self._form.count), bool)
        self._seat = np.zeros(n, np.int8)
        self._reward = np.zeros((n, 1), np.float32)
        self._paid = self._reward[:, 0]
        self._ended = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)
        self._return = np.zeros(n)
        self._began = np.zeros(n)  # at which of the table's steps each row's episode began
        self._clock = 0
        self._any_done = False

    def reset(self, seed: int) -> Turn:
        for row in range(self.rows):
            seen, info = self._reset_row(row, seeds.derive(seed, "row", row) % 2**31)
            try:
                self._obs[row] = self._fit(row, seen)
                if row == 0:
                    self._masks = self._mask_readers(info)
                if self._masks:
                    self._legal[row] = self._first_mask(row, info)
            except Failure:
                raise
            except Exception as error:
                problem = f"gave something unusable ({type(error).__name__}: {error})"
                raise Failure(f"{self.name}: reset of row {row} {problem}") from error
        for array in (self._reward, self._ended, self._truncated, self._return, self._began):
            array[:] = 0
        self._clock = 0
        return self._looked_at(
            Turn(self._obs, self._legal, self._seat, self._reward, self._ended, self._truncated)
        )

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        """actions: int32 [N], or float32 [N, *shape]; with `rows`, only those move and have an action."""
        moving = self._all_rows if rows is None else rows.tolist()
        steps = self._steps if rows is None else [self._steps[row] for row in moving]
        chosen = self._form.decode(actions, moving, self._legal, self._masks is not None)
        obs, legal, masks, paid = self._obs, self._legal, self._masks, [0.0] * self.rows
        shape, flatten = self.view.shape, self.view.flatten
        if self._any_done:
            self._ended[:] = self._truncated[:] = False
        done: list[int] = []
        row, result, info = 0, RAISED, {}
        try:
            for row, step, action in zip(moving, steps, chosen, strict=True):
                result = RAISED
                result = step(action)
                seen, paid[row], ended, cut, info = result
                if ended or cut:
                    done.append(row)
                    seen, info = self._start_anew(row, seen, ended)
                if flatten or getattr(seen, "shape", None) != shape:
                    seen = self._fit(row, seen)
                obs[row] = seen
                if masks:
                    legal[row] = masks[row](info)
        except Failure:
            raise
        except (Exception, SystemExit) as error:
            self._blame(row, result, error)
        self._refuse_late_mask(info)
        self._pay(paid)
        if rows is not None:
            self._began += 1
            self._began[rows] -= 1
        return self._looked_at(self._turn(done))

    def close(self) -> None:
        close_all(self.envs, self.name)

    def _start_anew(self, row: int, seen: Any, ended: bool) -> tuple[Any, dict]:
        last = self._fit(row, seen)
        if ended:
            self._ended[row] = True
        else:
            self._truncated[row] = True
            self._last_obs[row] = last
        return self._reset_row(row, None)

    def _turn(self, done: list[int]) -> Turn:
        self._return += self._paid
        self._clock += 1
        self._any_done = bool(done)
        finished = last_obs = None
        if done:
            score = self._return[done].astype(np.float32)[:, None]  # [F, 1]
            stats = (self._clock - self._began[done]).astype(np.float32)[:, None, None]  # [F, 1, 1]
            finished = Finished(np.array(done), score, stats)
            self._return[done], self._began[done] = 0, self._clock
            if (cut := np.flatnonzero(self._truncated)).size:
                last_obs = LastSeen(cut, np.zeros(len(cut), np.int64), self._last_obs[cut])
        return Turn(
            self._obs, self._legal, self._seat, self._reward, self._ended, self._truncated, finished, last_obs
        )

    def _reset_row(self, row: int, seed: int | None) -> tuple[Any, dict]:
        try:
            result = self.envs[row].reset() if seed is None else self.envs[row].reset(seed=seed)
        except (Exception, SystemExit) as error:
            problem = f"raised {type(error).__name__}: {error}"
            if isinstance(error, TypeError) and "'seed'" in str(error):
                problem += "; Gymnasium calls reset(seed=..., options=...)"
            raise Failure(f"{self.name}: reset of row {row} {problem}") from error
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            raise Failure(f"{self.name}: reset of row {row} must give (observation, info)")
        return result

    def _mask_readers(self, info: dict) -> list[Callable[[dict], Any]] | None:
        """How to read each row's mask after a reset or step, decided once by what the first reset gave."""
        if not self._form.count:
            return None
        if MASK in info:
            readers: list[Callable[[dict], Any]] = [itemgetter(MASK)] * self.rows
        elif mask_method(self.envs[0]):
            readers = [calling(mask_method(env)) for env in self.envs]
        else:
            self._refuse_mask_in_obs()
            return None
        join = self._form.mask
        return [joining(read, join) for read in readers] if join else readers

    def _refuse_mask_in_obs(self) -> None:
        space = self.envs[0].observation_space
        if isinstance(space, gymnasium.spaces.Dict) and MASK in space.spaces:
            raise Usage(f"{self.name} has {MASK!r} in its observations: give it in info[{MASK!r}] instead")

    def _first_mask(self, row: int, info: dict) -> np.ndarray:
        assert self._masks
        mask = np.asarray(self._masks[row](info))
        if mask.shape != (self._form.count,):
            wrong = f"has shape {mask.shape}, not {(self._form.count,)}"
            raise Failure(f"{self.name}: the mask in row {row} {wrong}")
        return mask

    def _fit(self, row: int, seen: Any) -> np.ndarray:
        """The observation as one array."""
        return fitted(self.view, seen, row, self.name)

    def _looked_at(self, turn: Turn) -> Turn:
        """One product tells for all rows: NaN and infinity stay in it. If it is not finite, it may just be
        too large."""
        plain = self._obs.dtype.kind == "f" and turn.last_obs is None
        if not plain or not math.isfinite(self._flat_obs.dot(self._flat_obs)):
            refuse_infinite(turn, self.name)
        return turn

    def _pay(self, paid: list[Any]) -> None:
        """One sum tells whether all are numbers: NaN and infinity stay in it, other things can't be added."""
        try:
            if math.isfinite(sum(paid)):
                self._paid[:] = paid
                return
        except (TypeError, ValueError):
            pass
        for row, reward in enumerate(paid):
            if not isinstance(reward, int | float | np.number) or not np.isfinite(reward):
                raise Failure(f"{self.name}: the reward in row {row} is {reward!r}, not a finite number")
        self._paid[:] = paid  # only their sum was too much

    def _refuse_late_mask(self, info: Any) -> None:
        if self._masks is None and self._form.count and isinstance(info, dict) and MASK in info:
            raise Failure(f"{self.name}: step gives info[{MASK!r}], but reset doesn't")

    def _blame(self, row: int, result: Any, error: BaseException) -> NoReturn:
        problem = f"gave something unusable ({type(error).__name__}: {error})"
        if result is RAISED:
            problem = f"raised {type(error).__name__}: {error}"
        elif not isinstance(result, tuple) or len(result) != 5:
            count = len(result) if isinstance(result, tuple) else type(result).__name__
            problem = f"gave {count}, not the 5 values (observation, reward, terminated, truncated, info)"
        elif isinstance(error, KeyError) and error.args == (MASK,):
            problem = f"gave no info[{MASK!r}], but reset did"
        raise Failure(f"{self.name}: step in row {row} {problem}") from error


def without_checks(env: Any) -> Any:
    """The environment without Gymnasium's order and type checks, which the table does once for all rows."""
    checks = (OrderEnforcing, PassiveEnvChecker)
    while isinstance(env, checks):
        env = env.env
    outer = env
    while isinstance(outer, gymnasium.Wrapper):
        while isinstance(outer.env, checks):
            outer.env = outer.env.env
        outer = outer.env
    return env


def with_stack(env: Any, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Says of an image of grey frames that Gymnasium stacks them."""
    paddings: dict[str, Padding] = {"zero": "blank", "reset": "first"}
    if not isinstance(env, FrameStackObservation) or env.padding_type not in paddings:
        return parts
    if len(parts) > 1 or parts[0].kind != "image" or parts[0].shape[0] != env.stack_size:
        return parts
    return (replace(parts[0], stack=env.stack_size, padding=paddings[env.padding_type]),)


def mask_method(env: Any) -> Callable[[], Any] | None:
    """`action_masks()` of the environment or of any of its wrappers, as sb3-contrib expects it."""
    while env is not None:
        if hasattr(env, "action_masks"):
            return env.action_masks
        env = getattr(env, "env", None)
    return None


def calling(method: Any) -> Callable[[dict], Any]:
    return lambda info: method()


def joining(read: Callable[[dict], Any], join: Callable[[Any], Any]) -> Callable[[dict], Any]:
    return lambda info: join(read(info))
