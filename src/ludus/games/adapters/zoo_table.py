"""ZooTable: PettingZoo environments as a table. Knows PettingZoo; must not know games or training.

Environments whose agents act at the same time become sequential: each agent decides without seeing
what the others have just decided.
"""

import warnings
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.env import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.spec import Spec
from ludus.core.table import Finished, LastSeen, Table, Turn, refuse_infinite
from ludus.games.adapters.load import Factory, close_all, make_all, name_of, zoo_factory
from ludus.games.adapters.spaces import action_form, fitted, obs_form

MASK = "action_mask"


class ZooTable(Table):
    """N environments of one kind. A seat is an agent's place in `possible_agents`."""

    finite = True

    def __init__(self, source: str | Factory, rows: int, name: str = "", /, **kwargs: Any) -> None:
        """source: what follows `zoo:`, or a function or class that makes one environment of `kwargs`.

        name: what it is called where something is said about it
        """
        factory = zoo_factory(source) if isinstance(source, str) else source
        self.name = name or name_of(source, "zoo")
        self.rows, self._all_rows = rows, list(range(rows))
        self.envs = [turn_by_turn(env, self.name) for env in make_all(factory, self.name, rows, kwargs)]
        agents = list(getattr(self.envs[0], "possible_agents", None) or [])
        if not agents:
            raise Usage(f"{self.name} has no possible_agents, so it has no fixed number of seats")
        self._seat_of = {agent: seat for seat, agent in enumerate(agents)}
        action_space, obs_space = self._shared_spaces(agents)
        self._masked_obs = isinstance(obs_space, spaces.Dict) and "observation" in obs_space.spaces
        self._form = action_form(action_space, self.name)
        self.view = obs_form(obs_space["observation"] if self._masked_obs else obs_space, self.name)
        self.spec = Spec(
            game=self.name,
            seats=len(agents),
            actions=self._form.count,
            parts=self.view.parts,
            stats=("length",),
            zero_sum=False,
            box=self._form.box,
        )
        self._make_arrays()

    def _shared_spaces(self, agents: list[Any]) -> tuple[Any, Any]:
        """The action and observation space, which must be the same for all."""
        env, first = self.envs[0], agents[0]
        try:
            with warnings.catch_warnings(action="ignore"):
                for agent in agents:
                    env.action_space(agent), env.observation_space(agent)
        except Exception as error:
            problem = f"has no spaces of {agent} ({type(error).__name__}: {error})"
            raise Usage(
                f"{self.name} {problem}: add action_space(agent) and observation_space(agent)"
            ) from error
        for agent in agents[1:]:
            for what, space in (("actions", env.action_space), ("observations", env.observation_space)):
                if space(agent) != space(first):
                    raise Usage(
                        f"{self.name}: {what} of {agent} are {space(agent)}, of {first} {space(first)}: "
                        "all agents must have the same (supersuit's pad_action_space_v0 and "
                        "pad_observations_v0 make them so)"
                    )
        return env.action_space(first), env.observation_space(first)

    def _make_arrays(self) -> None:
        n, seats, view = self.rows, self.spec.seats, self.view
        self._obs = np.zeros((n, *view.shape), view.dtype)
        self._last_seen: list[tuple[int, int, np.ndarray]] = []  # row, seat and observation of games cut off
        self._legal = np.ones((n, self._form.count), bool)
        self._seat = np.zeros(n, np.int8)
        self._reward = np.zeros((n, seats), np.float32)
        self._ended = np.zeros(n, bool)
        self._truncated = np.zeros(n, bool)
        self._return = np.zeros((n, seats))
        self._length = np.zeros(n)

    def reset(self, seed: int) -> Turn:
        for array in (self._reward, self._ended, self._truncated, self._return, self._length):
            array[:] = 0
        for row, env in enumerate(self.envs):
            try:
                env.reset(seed=seeds.derive(seed, "row", row) % 2**31)
                self._next_decision(row, env)
            except (Exception, SystemExit) as error:
                self._blame(row, "reset", error)
        return self._turn([])

    def step(self, actions: np.ndarray, rows: np.ndarray | None = None) -> Turn:
        """actions: int32 [N], or float32 [N, *shape]; with `rows`, only those move and have an action."""
        moving = self._all_rows if rows is None else rows.tolist()
        chosen = self._form.decode(actions, moving, self._legal, True)
        self._reward[:] = 0
        self._ended[:] = self._truncated[:] = False
        done: list[int] = []
        for row, action in zip(moving, chosen, strict=True):
            env = self.envs[row]
            try:
                if self._step_row(row, env, action):
                    done.append(row)
                self._next_decision(row, env)
            except (Exception, SystemExit) as error:
                self._blame(row, "step", error)
        self._return += self._reward
        self._length[moving] += 1
        return self._turn(done)

    def _step_row(self, row: int, env: Any, action: Any) -> bool:
        """Whether this ended the game; then a new one has begun."""
        env.step(action)
        # `rewards` holds this step's alone, and the empty steps of the dead clear it: read it now.
        for agent, paid in env.rewards.items():
            self._reward[row, self._seat_of[agent]] += np.nan if paid is None else paid
        if not all(is_dead(env, agent) for agent in env.agents):
            return False
        self._start_anew(row, env)
        return True

    def close(self) -> None:
        close_all(self.envs, self.name)

    def _start_anew(self, row: int, env: Any) -> None:
        cut = [agent for agent in env.agents if env.truncations[agent] and not env.terminations[agent]]
        (self._truncated if cut else self._ended)[row] = True
        for agent in cut:
            self._last_seen.append((row, self._seat_of[agent], self._seen(row, env.observe(agent))))
        env.reset()

    def _next_decision(self, row: int, env: Any) -> None:
        """Write the row of the next living agent, after letting the dead take their empty steps."""
        for _ in range(len(self._seat_of)):
            if not is_dead(env, env.agent_selection):
                break
            env.step(None)
        agent = env.agent_selection
        if is_dead(env, agent):
            raise Failure(f"{self.name}: agent {agent} in row {row} is dead and stays to move")
        seen = env.observe(agent)
        self._seat[row] = self._seat_of[agent]
        self._obs[row] = self._seen(row, seen)
        if self._form.count:
            self._legal[row] = self._mask(row, seen, env.infos.get(agent, {}))

    def _seen(self, row: int, seen: Any) -> np.ndarray:
        return fitted(self.view, seen["observation"] if self._masked_obs else seen, row, self.name)

    def _mask(self, row: int, seen: Any, info: dict) -> np.ndarray:
        """bool [A]"""
        given = seen.get(MASK) if self._masked_obs else None
        given = info.get(MASK) if given is None else given
        if given is None:
            return np.ones(self._form.count, bool)
        mask = np.asarray(self._form.mask(given) if self._form.mask else given, bool)
        if mask.shape != (self._form.count,) or not mask.any():
            what = f"has shape {mask.shape} and {mask.sum()} legal actions"
            raise Failure(f"{self.name}: the mask in row {row} {what}")
        return mask

    def _turn(self, done: list[int]) -> Turn:
        finite = np.isfinite(self._reward).all(axis=1)
        if not finite.all():
            raise Failure(f"{self.name}: a reward in row {finite.argmin()} is not a finite number")
        finished = last_obs = None
        if done:
            stats = np.zeros((len(done), self.spec.seats, 1), np.float32)
            stats[:, :, 0] = self._length[done, None]
            finished = Finished(np.array(done), self._return[done].astype(np.float32), stats)
            self._return[done] = self._length[done] = 0
            if self._last_seen:
                rows, seats, obs = zip(*self._last_seen, strict=True)
                last_obs = LastSeen(np.array(rows), np.array(seats), np.stack(obs).astype(self.view.dtype))
                self._last_seen.clear()
        turn = Turn(
            self._obs, self._legal, self._seat, self._reward, self._ended, self._truncated, finished, last_obs
        )
        refuse_infinite(turn, self.name)
        return turn

    def _blame(self, row: int, doing: str, error: BaseException) -> NoReturn:
        if isinstance(error, Failure):
            raise error
        raise Failure(f"{self.name}: {doing} in row {row} raised {type(error).__name__}: {error}") from error


def turn_by_turn(env: Any, name: str) -> AECEnv:
    """The environment, one agent after the other, without the checks that the table does itself."""
    if isinstance(env, ParallelEnv):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*does not have a `render_mode`")  # nobody looks at it
            env = parallel_to_aec(env)
    if not isinstance(env, AECEnv):
        raise Usage(f"{name} is a {type(env).__name__}, not a PettingZoo AECEnv or ParallelEnv")
    while type(env) in (OrderEnforcingWrapper, AssertOutOfBoundsWrapper, TerminateIllegalWrapper):
        env = env.env
    return env


def is_dead(env: AECEnv, agent: Any) -> bool:
    return env.terminations[agent] or env.truncations[agent]
