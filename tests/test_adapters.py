"""Other libraries' own checkers on our games, and other libraries' environments on our tables."""

import subprocess
import sys
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

import ludus
from ludus import games
from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.rules import RandomBot
from ludus.core.spec import Part, Spec
from ludus.games import adapters

GAMES = games.native_names()


def lowest_legal(legal: np.ndarray) -> np.ndarray:
    """legal: bool [N, A] -> int32 [N]"""
    return legal.argmax(axis=1).astype(np.int32)


def any_legal(legal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(np.flatnonzero(row)) for row in legal], np.int32)


class Race:
    """A native game that pays all along: a move pays its number, costs the other seat 1, is never repeated.

    Six moves. Observed: moves made, the last move + 1, and the last draw of chance.
    """

    STATE = np.dtype([("moves", np.int8), ("last", np.int8), ("draw", np.uint8), ("paid", np.int8, 2)])
    spec = Spec(
        game="race", seats=2, actions=3, parts=(Part("obs", (3,)),), state=STATE, stats=(), zero_sum=False
    )

    def blank(self, n):
        return np.zeros(n, self.STATE)

    def chance(self, states, rng):
        rng[:, 0] += rng[:, 1]
        states["draw"] = rng[:, 0] >> np.uint64(56)

    def deal(self, states, rng):
        states[:] = self.blank(1)
        states["last"] = -1
        self.chance(states, rng)

    def seat(self, states):
        return states["moves"] % 2

    def over(self, states):
        return states["moves"] == 6

    def legal(self, states, out):
        out[:] = np.arange(3) != states["last"][:, None]

    def observe(self, states, out):
        out[:] = np.stack([states["moves"], states["last"] + 1, states["draw"]], axis=1)

    def play(self, states, actions, rng):
        mover = self.seat(states)[:, None] == np.arange(2)
        states["paid"] += np.where(mover, actions[:, None], -1).astype(np.int8)
        states["moves"] += 1
        states["last"] = actions
        self.chance(states, rng)

    def score(self, states, out):
        out[:] = states["paid"]

    def text(self, state):
        return f"{state['moves']} {state['last']} {state['draw']}"


# ---- native games as Gymnasium environments


class LegalOnly(gymnasium.Wrapper):
    """The checkers sample actions blindly: take the next legal one instead."""

    def step(self, action):
        legal = np.flatnonzero(self.env.action_masks())
        return self.env.step(legal[action % len(legal)])


def play_gym(env, seed):
    """One game with sampled legal actions: everything it showed."""
    env.action_space.seed(seed)
    seen, info = env.reset(seed=seed)
    story, over = [(seen, info["seat"])], False
    while not over:
        seen, reward, over, _, info = env.step(env.action_space.sample(info["action_mask"]))
        story.append((seen, reward))
    return story, info


HARMLESS = [
    "different from the unwrapped version",  # LegalOnly above
    "Not able to test alternative render modes",  # not made by gymnasium.make
    "minimal resolution for an image",  # SB3 takes a board of bytes for a picture
    "is an image",  # the same, of boards that aren't bytes
    "unconventional shape",
    "is -infinity",  # float observations have no bounds
    "is infinity",
    "probably should be gymnasium.spaces.box",  # masks need a Dict
    "Observation is not a NumPy array",
    "Observation numpy array is all zeros",  # an empty board
    "old environment creation API",  # PettingZoo about itself
]


@contextmanager
def no_complaints():
    """Checkers only warn of many faults: let no unknown warning pass."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    unknown = [str(w.message) for w in heard if not any(known in str(w.message) for known in HARMLESS)]
    assert not unknown


@pytest.mark.parametrize("game", GAMES)
def test_gymnasium_and_sb3_checkers_pass(game):
    from gymnasium.utils.env_checker import check_env
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    with no_complaints():
        check_env(LegalOnly(ludus.gym_env(game, render_mode="ansi")))
        sb3_check_env(LegalOnly(ludus.gym_env(game)), warn=True, skip_render_check=False)


@pytest.mark.parametrize("game", GAMES)
def test_gym_rewards_sum_to_the_learners_score(game):
    for seed in range(5):
        env = ludus.gym_env(game)
        story, info = play_gym(env, seed)
        total = sum(reward for _, reward in story[1:])
        assert total == pytest.approx(env.game.score()[env.seat], abs=1e-4)
        assert not info["action_mask"].any() and not story[-1][0].any()


@pytest.mark.parametrize("game", GAMES)
def test_gym_seed_decides_the_whole_game(game):
    first, _ = play_gym(ludus.gym_env(game), 3)
    env = ludus.gym_env(game)
    play_gym(env, 8)
    again, _ = play_gym(env, 3)
    assert len(first) == len(again)
    for (seen, paid), (seen_again, paid_again) in zip(first, again, strict=True):
        np.testing.assert_array_equal(seen, seen_again)
        assert paid == paid_again
    other = [play_gym(ludus.gym_env(game), seed)[0] for seed in (4, 5, 6)]
    assert any(
        len(story) != len(first) or any((a[0] != b[0]).any() for a, b in zip(story, first, strict=False))
        for story in other
    )


def test_gym_seat_is_fixed_or_drawn():
    env = ludus.gym_env("tictactoe", seat=1)
    seen, info = env.reset(seed=0)
    assert info["seat"] == 1 and seen[1].sum() == 1, "the bot opens when the learner is second"
    drawn = ludus.gym_env("tictactoe")
    assert {drawn.reset(seed=seed)[1]["seat"] for seed in range(20)} == {0, 1}
    with pytest.raises(Usage, match=r"no seat 2: choose from 0\.\.1"):
        ludus.gym_env("tictactoe", seat=2)


def test_gym_reward_counts_what_the_opponent_did_next():
    class Replies:
        """Takes the lowest free cell, so that the second learner below loses by its own choice."""

        def choose(self, states, rng):
            return (states["cells"] == 0).argmax(axis=1).astype(np.int32)

    env = ludus.gym_env("tictactoe", opponents=Replies(), seat=1)
    env.reset(seed=0)  # X at 0
    assert env.step(8)[1:3] == (0.0, False)  # X at 1
    assert env.step(7)[1:3] == (-1.0, True)  # X at 2 wins


def test_gym_pays_every_decision_and_starts_each_game_from_nothing():
    env = adapters.GymEnv(Race(), RandomBot(Race()), seat=1)
    env.reset(seed=0)
    for _ in range(3):
        paid, over = [], False
        while not over:
            action = env.action_masks().argmax()
            _, reward, over, _, _ = env.step(action)
            paid.append(reward - action)
        assert paid == [-2, -1, 0], "the bot moved first, and once after each decision but the last"
        env.reset()


@pytest.mark.parametrize("game", GAMES)
def test_gym_refuses_illegal_actions_and_stays_as_it_was(game):
    env = ludus.gym_env(game, seat=0)
    with pytest.raises(Failure, match="call reset"):
        env.step(0)
    env.reset(seed=1)
    _, _, over, _, info = env.step(env.action_masks().argmax())
    assert not over
    before, size = env.game.states.tobytes(), env.action_space.n
    illegal = [int(a) for a in np.flatnonzero(info["action_mask"] == 0)[:1]]
    for action in [-1, size, 1.5, *illegal]:
        with pytest.raises(Failure) as refused:
            env.step(action)
        assert str(action) in str(refused.value) and "\n" not in str(refused.value)
        assert env.game.states.tobytes() == before
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"].astype(bool))


def test_gym_refuses_to_go_on_after_the_end():
    env = ludus.gym_env("tictactoe")
    play_gym(env, 0)
    with pytest.raises(Failure, match="the game is over: call reset"):
        env.step(0)


@pytest.mark.parametrize("game", GAMES)
def test_gym_renders_text(game):
    env = ludus.gym_env(game, render_mode="ansi")
    env.reset(seed=0)
    assert isinstance(env.render(), str) and env.render()
    with pytest.raises(Usage, match="choose 'ansi'"):
        ludus.gym_env(game, render_mode="human")


# ---- native games as PettingZoo environments


@pytest.mark.parametrize("game", GAMES)
def test_pettingzoo_checkers_pass(game):
    from pettingzoo.test import api_test, seed_test

    with no_complaints():
        api_test(ludus.zoo_env(game, render_mode="ansi"), num_cycles=50)
        seed_test(lambda: ludus.zoo_env(game), num_cycles=50)


def test_pettingzoo_checkers_pass_where_every_step_pays():
    from pettingzoo.test import api_test, seed_test

    with no_complaints():
        api_test(adapters.ZooEnv(Race(), render_mode="ansi"), num_cycles=50)
        seed_test(lambda: adapters.ZooEnv(Race()), num_cycles=50)


@pytest.mark.parametrize("game", GAMES)
def test_zoo_shows_a_game_only_to_the_agent_to_move(game):
    env = ludus.zoo_env(game)
    env.reset(seed=2)
    total = dict.fromkeys(env.agents, 0.0)
    rng = np.random.default_rng(0)
    while env.agents:
        agent = env.agent_selection
        _, reward, over, _, _ = env.last()
        total[agent] += reward
        legal = env.observe(agent)["action_mask"]
        assert legal.any() != over
        for other in set(env.agents) - {agent}:
            view = env.observe(other)
            assert not view["observation"].any() and not view["action_mask"].any()
        env.step(None if over else rng.choice(np.flatnonzero(legal)))
    assert list(total.values()) == pytest.approx(env.game.score().tolist(), abs=1e-4)


@pytest.mark.parametrize("game", GAMES)
def test_zoo_refuses_illegal_actions_and_stays_as_it_was(game):
    env = ludus.zoo_env(game)
    env.reset(seed=0)
    env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    before, agent = env.game.states.tobytes(), env.agent_selection
    illegal = np.flatnonzero(env.observe(agent)["action_mask"] == 0)[:1].tolist()
    for action in [env.action_space(agent).n, None, *illegal]:
        with pytest.raises(Failure, match=str(action)):
            env.step(action)
        assert env.game.states.tobytes() == before and env.agent_selection == agent


# ---- native games for Stable-Baselines3


@pytest.mark.parametrize("game", GAMES)
def test_sb3_rows_play_whole_games(game):
    env = ludus.sb3_env(game, 8)
    env.seed(5)
    env.reset()
    rng = np.random.default_rng(0)
    games_won = 0
    seats = env.seat.copy()
    for _ in range(200):
        masks = np.stack(env.env_method("action_masks"))
        assert (env.rules.seat(env.states) == env.seat).all() and masks.any(axis=1).all()
        obs, reward, done, infos = env.step(any_legal(masks, rng))
        for row in range(8):
            assert infos[row]["TimeLimit.truncated"] is False
            assert ("terminal_observation" in infos[row]) == done[row]
        seats = np.where(done, (seats + 1) % env.rules.spec.seats, seats)
        np.testing.assert_array_equal(seats, env.seat)
        games_won += int((done & (reward > 0)).sum())
    assert obs.dtype == np.float32 and obs.shape == (8, *env.rules.spec.obs_shape)
    assert games_won > 0


@pytest.mark.parametrize("game", GAMES)
def test_sb3_seed_decides_and_rows_do_not_depend_on_their_neighbours(game):
    def story(rows):
        env = ludus.sb3_env(game, rows)
        env.seed(9)
        seen = [env.reset()[:2].copy()]
        for _ in range(40):
            obs, reward, done, _ = env.step(lowest_legal(np.stack(env.env_method("action_masks"))))
            seen += [obs[:2], reward[:2], done[:2]]
        return seen

    few, again, many = story(2), story(2), story(7)
    for a, b, c in zip(few, again, many, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_sb3_pays_every_decision_and_chance_goes_on():
    env = adapters.Sb3VecEnv(Race(), 4, RandomBot(Race()))
    env.seed(0)
    obs = env.reset()
    total, draws, replies = np.zeros(4), set(), set()
    for _ in range(90):
        actions = lowest_legal(np.stack(env.env_method("action_masks")))
        obs, reward, done, _ = env.step(actions)
        total += reward - actions
        assert (total[done] == -3).all(), "three moves of the other seat"
        total[done] = 0
        draws.add(obs[0, 2])
        replies.add((obs[0, 0], obs[0, 1]))
    assert len(draws) > 15, "a stream that is not written back draws the same again"
    assert len({last for moves, last in replies if moves == 1}) == 3, "the bot opens in different ways"


def test_sb3_refuses_illegal_actions():
    env = ludus.sb3_env("tictactoe", 2)
    env.seed(0)
    env.reset()
    taken = int((~env.env_method("action_masks")[1]).argmax())  # the bot opened in row 1
    before = env.states.tobytes()
    with pytest.raises(Failure, match=f"action {taken} in row 1 is illegal"):
        env.step(np.array([0, taken]))
    assert env.states.tobytes() == before


def test_maskable_ppo_trains_and_plays_only_legal_moves(monkeypatch):
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import VecMonitor

    env = ludus.sb3_env("tictactoe", 8)
    steps = []
    take = env.step_async

    def watched(actions):
        assert env._legal[np.arange(8), actions].all()
        steps.append(len(actions))
        take(actions)

    monkeypatch.setattr(env, "step_async", watched)
    model = MaskablePPO("MlpPolicy", VecMonitor(env), n_steps=64, batch_size=128, n_epochs=1, seed=0)
    model.learn(2_000)
    assert sum(steps) >= 2_000
    assert len(model.ep_info_buffer) > 50


# ---- Gymnasium environments as tables


class Counter(gymnasium.Env):
    """Counts its steps: ends at `end`, is cut off at `cut`; action a is legal when a > t."""

    def __init__(self, end=5, cut=99):
        self.observation_space = spaces.Box(0, 99, (2,), np.float64)
        self.action_space = spaces.Discrete(9, start=1)
        self.end, self.cut = end, cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.tag = self.np_random.integers(90)
        return self.see()

    def see(self):
        return np.array([self.t, self.tag], float), {"action_mask": (np.arange(9) >= self.t).astype(np.int8)}

    def step(self, action):
        assert 1 <= action <= 9
        self.t += 1
        seen, info = self.see()
        return seen, float(action), self.t >= self.end, self.t >= self.cut, info


def test_gym_table_ends_pays_and_starts_anew():
    table = adapters.GymTable(Counter, 3, end=2)
    assert (table.spec.seats, table.spec.actions, table.spec.zero_sum) == (1, 9, False)
    turn = table.reset(7)
    assert turn.obs.dtype == np.float32 and turn.legal.all() and not turn.reward.any()
    tags = turn.obs[:, 1].copy()
    assert len(set(tags)) > 1
    turn = table.step(np.array([0, 3, 8], np.int32))
    assert turn.reward[:, 0].tolist() == [1, 4, 9], "the space starts at 1"
    assert not turn.ended.any() and turn.finished is None
    assert (~turn.legal[:, 0]).all() and turn.legal[:, 1:].all()
    turn = table.step(np.array([1, 1, 1], np.int32))
    assert turn.ended.all() and not turn.truncated.any() and turn.last_obs is None
    assert turn.obs[:, 0].tolist() == [0, 0, 0] and turn.legal.all()
    assert turn.finished.rows.tolist() == [0, 1, 2]
    assert turn.finished.score.tolist() == [[3], [6], [11]]
    assert turn.finished.stats.shape == (3, 1, 1) and (turn.finished.stats == 2).all()
    again = adapters.GymTable(Counter, 3, end=2).reset(7)
    np.testing.assert_array_equal(again.obs[:, 1], tags)


def test_gym_table_gives_rows_their_own_derived_seeds():
    table = adapters.GymTable(Counter, 2)
    turn = table.reset(11)
    for row in range(2):
        alone, _ = Counter().reset(seed=seeds.derive(11, "row", row) % 2**31)
        np.testing.assert_array_equal(turn.obs[row], alone)


@pytest.mark.parametrize(("end", "cut", "ended"), [(99, 3, False), (3, 3, True)])
def test_gym_table_truncation_is_not_an_end_unless_it_is_both(end, cut, ended):
    table = adapters.GymTable(Counter, 2, end=end, cut=cut)
    turn = table.reset(0)
    for _ in range(3):
        turn = table.step(np.full(2, 8, np.int32))
    assert (turn.ended == ended).all() and (turn.truncated != ended).all()
    assert turn.finished.score.tolist() == [[27], [27]]
    if not ended:
        assert turn.last_obs.rows.tolist() == [0, 1] and turn.last_obs.seats.tolist() == [0, 0]
        assert turn.last_obs.obs[:, 0].tolist() == [3, 3] and turn.obs[:, 0].tolist() == [0, 0]
    turn = table.step(np.full(2, 7, np.int32))
    assert not turn.ended.any() and not turn.truncated.any() and turn.finished is None
    for _ in range(2):
        turn = table.step(np.full(2, 7, np.int32))
    assert turn.finished.score.tolist() == [[24], [24]] and (turn.finished.stats == 3).all()


def test_gym_table_refuses_illegal_actions_before_any_row_moves():
    table = adapters.GymTable(Counter, 2)
    table.reset(0)
    table.step(np.zeros(2, np.int32))
    with pytest.raises(Failure, match="action 0 in row 1 is illegal"):
        table.step(np.array([1, 0], np.int32))
    with pytest.raises(Failure, match=r"action 9 in row 0 is not in 0\.\.8"):
        table.step(np.array([9, 1], np.int32))
    assert [env.t for env in table.envs] == [1, 1]


@pytest.mark.parametrize(
    "make", [lambda: adapters.GymTable(Counter, 3, end=2), lambda: adapters.ZooTable(Guess, 3)]
)
def test_only_the_rows_that_are_named_move(make):
    table = make()
    before = table.reset(0).obs.copy()
    turn = table.step(np.array([2, 3], np.int32), np.array([2, 0]))
    assert (turn.obs[1] == before[1]).all() and not turn.reward[1].any() and not turn.ended.any()
    with pytest.raises(Failure, match=r"action 99 in row 2 is not in"):
        table.step(np.array([2, 99], np.int32), np.array([0, 2]))
    with pytest.raises(Failure, match="3 actions for 2 rows"):
        table.step(np.array([2, 2, 2], np.int32), np.array([0, 2]))


def test_rows_that_wait_keep_their_episode():
    table = adapters.GymTable(Counter, 3, end=2)
    table.reset(0)
    turn = table.step(np.array([2, 3], np.int32), np.array([2, 0]))
    assert turn.reward[:, 0].tolist() == [4, 0, 3] and turn.obs[:, 0].tolist() == [1, 0, 1]
    turn = table.step(np.array([5, 5], np.int32), np.array([0, 1]))
    assert turn.ended.tolist() == [True, False, False] and turn.finished.score.tolist() == [[10]]
    assert turn.finished.rows.tolist() == [0] and turn.finished.stats.tolist() == [[[2]]]
    turn = table.step(np.array([5, 5, 5], np.int32))
    assert turn.finished.rows.tolist() == [1, 2] and turn.finished.score.tolist() == [[12], [9]]
    assert turn.finished.stats[:, 0, 0].tolist() == [2, 2]


def test_zoo_rows_that_wait_keep_their_game():
    table = adapters.ZooTable(Guess, 2, rounds=1)
    table.reset(0)
    for bid in [1, 2, 3]:
        turn = table.step(np.array([bid], np.int32), np.array([1]))
    assert turn.finished.rows.tolist() == [1] and turn.finished.stats.tolist() == [[[3]] * 3]
    for bid in [1, 2, 3]:
        turn = table.step(np.array([bid], np.int32), np.array([0]))
    assert turn.finished.rows.tolist() == [0] and turn.finished.stats.tolist() == [[[3]] * 3]
    assert turn.truncated.tolist() == [True, False]


def test_gym_table_reads_masks_from_a_method_even_behind_wrappers():
    class Masked(Counter):
        def see(self):
            return super().see()[0], {}

        def action_masks(self):
            return np.arange(9) >= 2 * self.t

    table = adapters.GymTable(lambda: gymnasium.wrappers.TimeLimit(Masked(), 3), 2)
    assert table.reset(0).legal.all()
    assert table.step(np.array([8, 8], np.int32)).legal.sum(axis=1).tolist() == [7, 7]
    table.step(np.array([8, 8], np.int32))
    turn = table.step(np.array([8, 8], np.int32))
    assert turn.truncated.all() and turn.legal.all(), "the mask is of the new episode"


def test_cart_pole_keeps_its_time_limit_and_loses_its_checks():
    table = ludus.table("gym:CartPole-v1", 4, max_episode_steps=5)
    assert table.spec.obs_shape == (4,) and table.spec.actions == 2
    chain = str(table.envs[0])
    assert "TimeLimit" in chain and "OrderEnforcing" not in chain and "PassiveEnvChecker" not in chain
    turn = table.reset(0)
    for step in range(5):
        turn = table.step(np.full(4, step % 2, np.int32))
    assert turn.truncated.all() and (turn.finished.stats == 5).all() and (turn.finished.score == 5).all()


def test_pendulum_takes_vectors():
    table = ludus.table("gym:Pendulum-v1", 2)
    assert table.spec.actions == 0 and table.spec.box[1].tolist() == [2.0]
    turn = table.reset(0)
    assert turn.legal.shape == (2, 0)
    turn = table.step(np.array([[9.0], [2.0]], np.float32))
    assert np.isfinite(turn.reward).all() and (turn.reward < 0).all()
    with pytest.raises(Failure, match="not finite"):
        table.step(np.array([[0.0], [np.nan]], np.float32))
    with pytest.raises(Failure, match="shape"):
        table.step(np.zeros(2, np.float32))


class Spaces(gymnasium.Env):
    """Any spaces; remembers what it was told to do."""

    def __init__(self, observations, actions, seen, mask=None):
        self.observation_space, self.action_space = observations, actions
        self.seen, self.info = seen, {} if mask is None else {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        return self.seen, self.info

    def step(self, action):
        self.told = action
        return self.seen, 0, False, False, self.info


SCALAR = spaces.Box(0, 1, (1,), np.float32), np.zeros(1, np.float32)


def told(actions, number, mask=None):
    table = adapters.GymTable(lambda: Spaces(SCALAR[0], actions, SCALAR[1], mask), 1)
    turn = table.reset(0)
    table.step(np.array([number], np.int32))
    return table.spec.actions, np.asarray(table.envs[0].told).tolist(), turn.legal[0]


def test_vectors_stay_in_their_box():
    space = spaces.Box(-0.1, 0.1, (2,), np.float64)
    table = adapters.GymTable(lambda: Spaces(SCALAR[0], space, SCALAR[1]), 1)
    table.reset(0)
    table.step(np.array([[-3.0, 0.1]], np.float32))
    assert table.envs[0].told.tolist() == [-0.1, 0.1], "and 0.1 in float32 is more than 0.1"


def test_multidiscrete_and_multibinary_actions_are_one_number():
    assert told(spaces.MultiDiscrete([2, 3]), 4)[:2] == (6, [1, 1])
    assert told(spaces.MultiDiscrete([2, 3], start=[5, 0]), 5)[:2] == (6, [6, 2])
    assert told(spaces.MultiBinary(3), 6)[:2] == (8, [1, 1, 0])
    assert told(spaces.MultiBinary((2, 2)), 1)[:2] == (16, [[0, 0], [0, 1]])
    with pytest.raises(Usage, match="5000 combinations, more than 4096"):
        told(spaces.MultiDiscrete([50, 100]), 0)
    with pytest.raises(Usage, match="can't be used"):
        told(spaces.Tuple([spaces.Discrete(2)]), 0)


def test_masks_of_each_choice_make_the_mask_of_all_combinations():
    joined = np.array([0, 1, 1, 0, 1], np.int8)  # of [2, 3]: only 1, and 0 or 2
    apart = (joined[:2], joined[2:])
    for mask in (joined, apart):
        assert np.flatnonzero(told(spaces.MultiDiscrete([2, 3]), 3, mask)[2]).tolist() == [3, 5]
    with pytest.raises(Failure, match="illegal"):
        told(spaces.MultiDiscrete([2, 3]), 4, joined)


@pytest.mark.parametrize(
    ("space", "seen", "flat"),
    [
        (spaces.Discrete(3), 2, [0, 0, 1]),
        (
            spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 9, (2,), np.float64)]),
            (1, np.array([3.0, 4.0])),
            [0, 1, 3, 4],
        ),
        (
            spaces.Dict({"b": spaces.Box(0, 255, (1, 2), np.uint8), "a": spaces.MultiBinary(2)}),
            {"b": np.array([[7, 8]], np.uint8), "a": np.array([0, 1], np.int8)},
            [0, 1, 7, 8],
        ),
    ],
)
def test_observations_of_many_parts_become_one_vector(space, seen, flat):
    table = adapters.GymTable(lambda: Spaces(space, spaces.Discrete(2), seen), 2)
    assert table.reset(0).obs.tolist() == [flat, flat]
    turn = table.step(np.zeros(2, np.int32))
    assert turn.obs.tolist() == [flat, flat] and turn.obs.dtype == np.float32


def test_box_observations_keep_their_shape_and_small_dtype():
    seen = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    table = adapters.GymTable(
        lambda: Spaces(spaces.Box(0, 255, (3, 2, 2), np.uint8), spaces.Discrete(2), seen), 1
    )
    turn = table.reset(0)
    assert turn.obs.dtype == np.uint8 and (turn.obs[0] == seen).all()
    with pytest.raises(Usage, match="no fixed size"):
        adapters.GymTable(lambda: Spaces(spaces.Sequence(spaces.Discrete(2)), spaces.Discrete(2), ()), 1)


class Broken(Counter):
    """Behaves in row 0, and in row 1 breaks in its own way at the second step."""

    made = 0

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.bad = Broken.made == 1
        Broken.made += 1

    def step(self, action):
        seen, reward, ended, cut, info = super().step(action)
        if not self.bad or self.t < 2:
            return seen, reward, ended, cut, info
        if self.how == "raises":
            raise RuntimeError("the emulator went away")
        if self.how == "exits":
            sys.exit(3)
        return {
            "shape": (np.zeros(1), reward, ended, cut, info),
            "scalar": (0.5, reward, ended, cut, info),
            "old": (seen, reward, ended, info),
            "none": None,
            "nan": (seen, float("nan"), ended, cut, info),
            "no reward": (seen, None, ended, cut, info),
            "text reward": (seen, "much", ended, cut, info),
            "nan obs": (seen * np.nan, reward, ended, cut, info),
            "inf obs": (seen - np.inf, reward, ended, cut, info),
            "last obs": (seen - np.inf, reward, False, True, info),
            "wide obs": (np.full(2, 1e300), reward, ended, cut, info),
            "no mask": (seen, reward, ended, cut, {}),
            "nothing legal": (seen, reward, ended, cut, {"action_mask": np.zeros(9, np.int8)}),
            "mask size": (seen, reward, ended, cut, {"action_mask": np.ones(7, np.int8)}),
        }[self.how]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("raises", "raised RuntimeError: the emulator went away"),
        ("shape", r"observation in row 1 has shape \(1,\), but observation_space says \(2,\)"),
        ("scalar", r"observation in row 1 has shape \(\), but observation_space says \(2,\)"),
        ("old", "gave 4, not the 5 values"),
        ("none", "gave NoneType, not the 5 values"),
        ("nan", "reward in row 1 is nan, not a finite number"),
        ("no reward", "reward in row 1 is None, not a finite number"),
        ("text reward", "reward in row 1 is 'much', not a finite number"),
        ("nan obs", "observation in row 1 has nan, not a finite number"),
        ("inf obs", "observation in row 1 has -inf, not a finite number"),
        ("last obs", "observation in row 1 has -inf, not a finite number"),
        pytest.param(
            "wide obs",
            "observation in row 1 has inf, not a finite number",
            marks=pytest.mark.filterwarnings("ignore:overflow"),
        ),
        ("exits", "raised SystemExit: 3"),
        ("no mask", r"gave no info\['action_mask'\], but reset did"),
        ("nothing legal", "no action is legal in row 1"),
        ("mask size", "gave something unusable"),
    ],
)
def test_broken_environments_are_named_with_their_row(how, says):
    Broken.made = 0
    table = adapters.GymTable(Broken, 3, how=how)
    table.reset(0)
    table.step(np.full(3, 8, np.int32))
    with pytest.raises(Failure, match=says) as failure:
        for _ in range(4):
            table.step(np.full(3, 8, np.int32))
    assert str(failure.value).startswith("Broken: ") and "row 1" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_masks_that_come_too_late_or_in_the_wrong_place_are_refused():
    class Late(Counter):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {}

    table = adapters.GymTable(Late, 1)
    table.reset(0)
    with pytest.raises(Failure, match=r"step gives info.*but reset doesn't"):
        table.step(np.zeros(1, np.int32))
    inside = spaces.Dict({"observation": SCALAR[0], "action_mask": spaces.MultiBinary(2)})
    seen = {"observation": SCALAR[1], "action_mask": np.ones(2, np.int8)}
    with pytest.raises(Usage, match="give it in info"):
        adapters.GymTable(lambda: Spaces(inside, spaces.Discrete(2), seen), 1).reset(0)
    with pytest.raises(Failure, match=r"mask in row 0 has shape \(3,\), not \(2,\)"):
        adapters.GymTable(lambda: Spaces(SCALAR[0], spaces.Discrete(2), SCALAR[1], np.ones(3)), 1).reset(0)


def test_broken_resets_are_named_with_their_row():
    class NoSeed(Counter):
        def reset(self):
            return super().reset()

    class OnlyObs(Counter):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0]

    with pytest.raises(Failure, match=r"reset of row 0 raised TypeError.*seed"):
        adapters.GymTable(NoSeed, 2).reset(0)
    with pytest.raises(Failure, match=r"reset of row 0 must give \(observation, info\)"):
        adapters.GymTable(OnlyObs, 2).reset(0)


def odd(**changes):
    """A class of environments that are as they should be, but for `changes`."""

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}

    good = {"observation_space": SCALAR[0], "action_space": spaces.Discrete(2), "reset": reset, "step": step}
    good["observation_space"] = spaces.Box(0, 1, (2,), np.float32)
    return type("Odd", (), {name: value for name, value in {**good, **changes}.items() if value is not ...})


TEXT = spaces.Dict({"word": spaces.Text(5), "number": spaces.Discrete(3)})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"observation_space": ...}, "Odd has no observation_space"),
        ({"action_space": ...}, "Odd has no action_space"),
        ({"action_space": 4}, "Odd has builtins.int as action_space"),
        ({"observation_space": property(lambda self: {}["size"])}, "observation_space raised KeyError"),
        ({"observation_space": spaces.Text(5)}, "have text"),
        ({"observation_space": TEXT}, "have text"),
        ({"observation_space": spaces.Discrete(10**12)}, "1,000,000,000,000 numbers"),
        ({"observation_space": spaces.Box(0, 1, (0,))}, "have no numbers"),
        ({"reset": ...}, "no function 'reset'"),
        ({"step": ...}, "no function 'step'"),
        ({"reset": lambda self: np.zeros(2)}, "reset of row 0 raised TypeError.*Gymnasium calls reset"),
        ({"reset": lambda self, seed: np.zeros(2)}, r"reset of row 0 must give \(observation, info\)"),
        (
            {"reset": lambda self, seed: sys.exit("no licence")},
            "reset of row 0 raised SystemExit: no licence",
        ),
        ({"reset": lambda self, seed: (np.full(2, np.nan), {})}, "observation in row 0 has nan"),
        (
            {"observation_space": spaces.Dict({"a": SCALAR[0]}), "reset": lambda self, seed: ({}, {})},
            "reset of row 0 gave something unusable.*KeyError",
        ),
        ({"close": lambda self: 1 // 0}, "close raised ZeroDivisionError"),
    ],
)
def test_environments_that_are_none_are_named_with_their_fault(changes, says):
    with pytest.raises(Failure, match=says) as failure:
        table = adapters.GymTable(odd(**changes), 2)
        table.reset(0)
        table.close()
    assert str(failure.value).startswith("Odd") and "\n" not in str(failure.value)


def test_an_environment_needs_neither_a_base_class_nor_a_close():
    table = adapters.GymTable(odd(), 2)
    table.reset(0)
    assert table.step(np.zeros(2, np.int32)).ended.all()
    table.close()


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_an_agent_is_not_asked_about_what_is_not_finite(number):
    cartpole = games.open("gym:CartPole-v1")
    assert cartpole.encode(np.zeros(4)).shape == (4,)
    with pytest.raises(Failure, match=f"gym:CartPole-v1: the observation has {number}, not a finite number"):
        cartpole.encode(np.array([0, 0, number, 0]))


def test_a_nan_is_noticed_in_the_step_that_made_it():
    class Once(Counter):
        def step(self, action):
            seen, *rest = super().step(action)
            return (seen * np.nan if self.t == 1 else seen), *rest

    table = adapters.GymTable(Once, 1)
    table.reset(0)
    with pytest.raises(Failure, match="row 0 has nan"):
        table.step(np.zeros(1, np.int32))


def test_an_observation_of_one_number_is_a_vector_of_one():
    scalar = spaces.Box(0, 1, (), np.float32)
    table = adapters.GymTable(lambda: Spaces(scalar, spaces.Discrete(2), np.float32(0.5)), 3)
    assert table.spec.obs_shape == (1,) and (table.reset(0).obs == 0.5).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(:", "SyntaxError: invalid syntax (broken_for_test.py, line 1)"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('no display')", "ValueError: no display"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("from json import nothing", "cannot import name 'nothing'"),
        ("import nothing_for_test", "needs the module 'nothing_for_test'"),
    ],
)
@pytest.mark.parametrize("name", ["broken_for_test:Env", "broken_for_test", "gym:broken_for_test/Env-v0"])
def test_a_module_that_cannot_be_imported_is_named_with_its_fault(text, says, name, tmp_path, monkeypatch):
    (tmp_path / "broken_for_test.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Failure) as failure:
        ludus.table(name, 1)
    assert "broken_for_test" in str(failure.value) and says in str(failure.value)


def test_arguments_may_have_any_name():
    """Also those that our own functions have."""

    class Named(Counter):
        def __init__(self, name, rows, path):
            super().__init__()
            assert (name, rows, path) == ("a", 1, "b")

    sys.modules["named_for_test"] = SimpleNamespace(Named=Named)
    try:
        assert (
            games.open("named_for_test:Named", name="a", rows=1, path="b")
            .table(2)
            .spec.game.endswith("Named")
        )
    finally:
        del sys.modules["named_for_test"]


# ---- Atari


def test_atari_games_are_wrapped_as_usual():
    pytest.importorskip("ale_py")
    table = ludus.table("gym:ALE/Pong-v5", 2)
    assert (table.spec.obs_shape, table.spec.obs_dtype, table.spec.actions) == ((4, 84, 84), np.uint8, 6)
    first = table.reset(0).obs.copy()
    for _ in range(4):
        turn = table.step(np.array([2, 3], np.int32))
    assert turn.obs.any() and (turn.obs != first).any()
    names = str(table.envs[0])
    assert "AtariPreprocessing" in names and "FrameStack" in names and "ClipReward" not in names
    assert table.envs[0].unwrapped.spec.kwargs["frameskip"] == 1  # the wrapper skips instead
    table.close()


def test_the_wrappers_of_atari_games_can_be_set():
    pytest.importorskip("ale_py")
    table = ludus.table("gym:ALE/Pong-v5", 1, frame_stack=2, screen_size=42, clip_rewards=True, difficulty=1)
    assert table.spec.obs_shape == (2, 42, 42) and "ClipReward" in str(table.envs[0])
    table.close()
    table = ludus.table("gym:ALE/Pong-v5", 1, preprocess=False)
    assert table.spec.obs_shape == (210, 160, 3)
    table.close()
    with pytest.raises(Usage, match="gym:ALE/Pongg-v5"):
        ludus.table("gym:ALE/Pongg-v5", 1)


def test_an_atari_game_trains(trained):
    pytest.importorskip("ale_py")
    sizes = {"rows": 2, "steps": 8, "decisions": 48, "workers": "0", "net": {"hidden": (16,)}}
    _, readings = trained("gym:ALE/Pong-v5", **sizes, switches={"clip_rewards": True})
    assert readings[-1]["decisions"] == 48


def test_environments_that_cannot_be_made():
    with pytest.raises(Usage, match="gives None, not an environment"):
        adapters.GymTable(lambda: None, 2)
    one = Counter()
    with pytest.raises(Usage, match="same environment each time"):
        adapters.GymTable(lambda: one, 2)
    with pytest.raises(Usage, match="unexpected keyword argument 'sise'"):
        adapters.GymTable(Counter, 1, sise=3)
    with pytest.raises(Usage, match=r"gym:CartPol-v1.*pprint_registry"):
        ludus.table("gym:CartPol-v1", 1)
    with pytest.raises(Usage, match=r"zoo:classic/connect_five_v1.*choose from.*zoo:classic/connect_four_v3"):
        ludus.table("zoo:classic/connect_five_v1", 1)
    with pytest.raises(Usage, match="no module 'no_such_thing'"):
        ludus.table("no_such_thing:Env", 1)
    with pytest.raises(Usage, match="'json' has no class or function 'Env'"):
        ludus.table("json:Env", 1)


def test_a_missing_library_says_what_to_install():
    code = (
        "import sys; sys.modules['{library}'] = None\n"
        "import ludus\n"
        "try: {call}\n"
        "except ludus.core.errors.Usage as error: print(error)"
    )
    for library, call, fix in [
        ("gymnasium", "ludus.table('gym:CartPole-v1', 1)", "pip install gymnasium"),
        ("pettingzoo", "ludus.table('zoo:classic/connect_four_v3', 1)", "pip install pettingzoo"),
        ("stable_baselines3", "ludus.sb3_env('tictactoe', 1)", "-e '.[sb3]'"),
    ]:
        run = [sys.executable, "-c", code.format(library=library, call=call)]
        assert fix in subprocess.run(run, capture_output=True, text=True, check=True).stdout


def test_importing_ludus_imports_nothing_heavy():
    code = "import sys, ludus; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "numba", "torch", "gymnasium", "pettingzoo", "stable_baselines3"} & set(loaded)


MY_ENV = """
import gymnasium, numpy as np
from gymnasium import spaces

class MyEnv(gymnasium.Env):
    def __init__(self, size=2):
        self.observation_space = spaces.Box(0, 1, (size,), np.float32)
        self.action_space = spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}
    def step(self, action):
        return np.ones(self.observation_space.shape, np.float32), 1.0, bool(action), False, {}

gymnasium.register("my_env_for_test/Registered-v0", MyEnv, max_episode_steps=1)
gymnasium.register("Short-v0", MyEnv)

def my_zoo():
    from pettingzoo.classic.tictactoe.tictactoe import raw_env
    return raw_env()
"""


@pytest.fixture
def my_env(tmp_path, monkeypatch):
    """The module above in the current folder, which is not on the path, as for an installed command."""
    (tmp_path / "my_env_for_test.py").write_text(MY_ENV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield
    sys.modules.pop("my_env_for_test", None)
    for name in ("my_env_for_test/Registered-v0", "Short-v0"):
        gymnasium.registry.pop(name, None)


@pytest.mark.parametrize(
    ("name", "seats", "cut"),
    [
        ("my_env_for_test:MyEnv", 1, False),
        ("gym:my_env_for_test:MyEnv", 1, False),
        ("gym:my_env_for_test/Registered-v0", 1, True),
        ("gym:my_env_for_test/Short-v0", 1, False),
        ("gym:my_env_for_test:Short-v0", 1, False),
        ("my_env_for_test:my_zoo", 2, False),
    ],
)
def test_environments_of_ones_own(my_env, name, seats, cut):
    table = ludus.table(name, 2)
    table.reset(0)
    turn = table.step(np.zeros(2, np.int32))
    assert table.spec.seats == seats and (turn.truncated == cut).all()


def test_switches_reach_an_environment_of_ones_own(my_env):
    assert ludus.table("my_env_for_test:MyEnv", 1, size=5).spec.obs_shape == (5,)


# ---- PettingZoo environments as tables


def test_connect_four_is_a_table_of_two_seats():
    table = ludus.table("zoo:classic/connect_four_v3", 2)
    assert (table.spec.seats, table.spec.actions, table.spec.obs_shape) == (2, 7, (6, 7, 2))
    turn = table.reset(0)
    for move in range(6):
        assert turn.seat.tolist() == [move % 2] * 2 and turn.legal.all()
        turn = table.step(np.array([move % 2, 3], np.int32))
        assert not turn.ended.any() and not turn.reward.any()
    assert turn.legal[1].tolist() == [True, True, True, False, True, True, True], "a full column"
    with pytest.raises(Failure, match="action 3 in row 1 is illegal"):
        table.step(np.array([0, 3], np.int32))
    turn = table.step(np.array([0, 2], np.int32))  # seat 0's fourth in column 0
    assert turn.ended.tolist() == [True, False] and turn.reward.tolist() == [[1, -1], [0, 0]]
    assert turn.finished.rows.tolist() == [0] and turn.finished.score.tolist() == [[1, -1]]
    assert turn.finished.stats.tolist() == [[[7], [7]]]
    assert turn.seat.tolist() == [0, 1] and not turn.obs[0].any() and turn.obs[1].any()


def test_zoo_tables_play_the_same_with_the_same_seed():
    def story():
        table = ludus.table("zoo:classic/leduc_holdem_v4", 4)
        turn, rng, seen = table.reset(3), np.random.default_rng(0), []
        for _ in range(60):
            turn = table.step(any_legal(turn.legal, rng))
            seen.append((turn.obs.copy(), turn.reward.copy(), turn.ended.copy()))
        return seen

    first, again = story(), story()
    assert sum(ended.sum() for _, _, ended in first) > 4
    for left, right in zip(first, again, strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)


class Guess(ParallelEnv):
    """All agents bid at once and the highest is paid; one may die early; `rounds` ends or cuts it off."""

    render_mode = None

    def __init__(self, rounds=3, cut=True, dies=None, sizes=(4, 4, 4)):
        self.metadata = {"name": "guess"}
        self.possible_agents = ["ann", "bob", "cid"]
        self.rounds, self.cut, self.dies, self.sizes = rounds, cut, dies, sizes

    def observation_space(self, agent):
        return spaces.Box(0, 99, (3,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(self.sizes[self.possible_agents.index(agent)])

    def see(self, agents):
        seen = np.array([self.t, *self.last], np.float32)
        masks = {agent: {"action_mask": np.arange(4) != self.t} for agent in agents}
        return {agent: seen for agent in agents}, masks

    def reset(self, seed=None, options=None):
        self.agents, self.t, self.last = self.possible_agents[:], 0, (0, 0)
        return self.see(self.agents)

    def step(self, actions):
        agents = self.agents
        self.t += 1
        self.last = (max(actions.values()), len(actions))
        rewards = {agent: float(actions[agent] == self.last[0]) for agent in agents}
        over = self.t == self.rounds
        ends = {agent: (over and not self.cut) or (agent == self.dies) for agent in agents}
        cuts = {agent: over and self.cut for agent in agents}
        seen, infos = self.see(agents)
        self.agents = [agent for agent in agents if not (ends[agent] or cuts[agent])]
        return seen, rewards, ends, cuts, infos


def test_agents_that_act_at_once_decide_without_seeing_each_other():
    table = adapters.ZooTable(Guess, 2)
    turn = table.reset(0)
    assert table.spec.seats == 3 and turn.legal.tolist() == [[False, True, True, True]] * 2
    shown = turn.obs.copy()
    for seat, bid in enumerate([3, 1, 3]):
        assert turn.seat.tolist() == [seat] * 2
        np.testing.assert_array_equal(turn.obs, shown)
        assert not turn.reward.any()
        turn = table.step(np.full(2, bid, np.int32))
    assert turn.reward.tolist() == [[1, 0, 1]] * 2 and turn.obs[0].tolist() == [1, 3, 3]
    assert turn.legal[0].tolist() == [True, False, True, True]


@pytest.mark.parametrize("cut", [True, False])
def test_zoo_table_tells_cut_off_from_over(cut):
    table = adapters.ZooTable(Guess, 1, rounds=2, cut=cut)
    table.reset(0)
    for bid in [1, 2, 3, 0, 2, 2]:
        turn = table.step(np.array([bid], np.int32))
    assert turn.truncated[0] == cut and turn.ended[0] != cut
    assert turn.finished.score.tolist() == [[0, 1, 2]] and (turn.finished.stats == 6).all()
    assert turn.obs[0].tolist() == [0, 0, 0] and turn.seat[0] == 0
    if cut:
        assert turn.last_obs.rows.tolist() == [0, 0, 0] and turn.last_obs.seats.tolist() == [0, 1, 2]
        assert turn.last_obs.obs.tolist() == [[2, 2, 3]] * 3
    else:
        assert turn.last_obs is None


def test_dead_agents_are_passed_over_and_keep_their_pay():
    table = adapters.ZooTable(Guess, 1, rounds=2, cut=False, dies="bob")
    turn = table.reset(0)
    seats = []
    for bid in [1, 3, 2, 0, 2]:
        seats.append(int(turn.seat[0]))
        turn = table.step(np.array([bid], np.int32))
    assert seats == [0, 1, 2, 0, 2] and turn.ended[0]
    assert turn.finished.score.tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(("rounds", "bids"), [(2, [1, 3, 2, 0, 2]), (1, [1, 3, 2])], ids=["before", "then"])
def test_an_agent_that_died_when_its_game_was_cut_off_sees_nothing_more(rounds, bids):
    table = adapters.ZooTable(Guess, 1, rounds=rounds, cut=True, dies="bob")
    table.reset(0)
    for bid in bids:
        turn = table.step(np.array([bid], np.int32))
    assert turn.truncated[0] and not turn.ended[0] and turn.last_obs.seats.tolist() == [0, 2]


def test_agents_must_share_their_spaces():
    with pytest.raises(Usage, match=r"actions of bob are Discrete\(5\), of ann Discrete\(4\)"):
        adapters.ZooTable(Guess, 1, sizes=(4, 5, 4))
    with pytest.raises(Usage, match="is a Counter, not a PettingZoo"):
        adapters.ZooTable(Counter, 1)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("raises", "step in row 0 raised ValueError: out of chips"),
        ("none", "a reward in row 0 is not a finite number"),
        ("shape", r"observation in row 0 has shape \(2,\), but observation_space says \(3,\)"),
        ("mask", "the mask in row 0 has shape .4,. and 0 legal actions"),
        ("nan obs", "observation in row 0 has nan, not a finite number"),
        ("inf obs", "observation in row 0 has inf, not a finite number"),
        ("last obs", "observation in row 0 has inf, not a finite number"),
    ],
)
def test_broken_zoo_environments_are_named_with_their_row(how, says):
    class Cheat(Guess):
        def step(self, actions):
            if how == "raises":
                raise ValueError("out of chips")
            seen, rewards, ends, cuts, infos = super().step(actions)
            if how == "none":
                rewards["bob"] = None
            if how == "shape":
                seen = {agent: np.zeros(2, np.float32) for agent in seen}
            if how == "mask":
                infos = {agent: {"action_mask": np.zeros(4, bool)} for agent in infos}
            if how.endswith("obs"):
                seen = {
                    agent: np.full(3, np.nan if how == "nan obs" else np.inf, np.float32) for agent in seen
                }
            if how == "last obs":
                cuts, self.agents = dict.fromkeys(cuts, True), []
            return seen, rewards, ends, cuts, infos

    table = adapters.ZooTable(Cheat, 1)
    table.reset(0)
    table.step(np.array([1], np.int32))
    table.step(np.array([1], np.int32))
    with pytest.raises(Failure, match=says) as failure:
        table.step(np.array([1], np.int32))
    assert str(failure.value).startswith("Cheat: ")
