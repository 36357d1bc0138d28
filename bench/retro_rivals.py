"""Other libraries at console games: stepping 8 games, and PPO on them. `retro.py` starts them.

Each gets a folder with our NES game and its start state, as stable-retro wants it. stable-retro-turbo has the
same module names as stable-retro, so it is installed into a folder of its own, which comes first on the path
of its process:

pip install --no-deps --target .turbo stable-retro-turbo
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

GAMES, STEPS, EPOCHS, MINIBATCH = 8, 128, 3, 256
GAME, STATE = "Gemfall-Nes-v0", "Level1"
BUTTONS = (("A",), ("LEFT", "A"), ("RIGHT", "A"))
"""As the preset of the game has them."""
CONSOLE = ("B", None, "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT", "A")
TURBO = Path(__file__).absolute().parents[1] / ".turbo"
MARK = "result "


class Skip(gymnasium.Wrapper):
    """The usual one: four frames per decision."""

    def step(self, action: Any) -> Any:
        total = 0.0
        for _ in range(4):
            seen, reward, ended, cut, info = self.env.step(action)
            total += float(reward)
            if ended or cut:
                break
        return seen, total, ended, cut, info


class Buttons(gymnasium.ActionWrapper):
    """A few combinations of buttons as discrete actions."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        names = env.unwrapped.buttons
        self._masks = [np.array([name in pressed for name in names], np.int8) for pressed in BUTTONS]
        self.action_space = gymnasium.spaces.Discrete(len(BUTTONS))

    def action(self, action: Any) -> Any:
        return self._masks[int(action)]


def make_env(folder: str) -> Any:
    """stable-retro's environment in the usual wrappers. folder: of integrations"""
    import stable_retro
    from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, ResizeObservation

    stable_retro.data.Integrations.add_custom_path(folder)
    env = stable_retro.RetroEnv(
        GAME, state=STATE, render_mode="rgb_array", use_restricted_actions=stable_retro.Actions.ALL,
        inttype=stable_retro.data.Integrations.CUSTOM,
    )  # fmt: skip
    small = ResizeObservation(GrayscaleObservation(Skip(Buttons(env))), (84, 84))
    return FrameStackObservation(small, 4)


def random_steps_per_s(envs: Any, actions: Callable[[], Any], seconds: float) -> float:
    envs.step(actions())
    begun, steps = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        envs.step(actions())
        steps += 1
    return steps * GAMES / (time.perf_counter() - begun)


class GymEnvs:
    """8 environments in 8 processes, kept between measurements."""

    def __init__(self, folder: str) -> None:
        from gymnasium.vector import AsyncVectorEnv

        self.envs = AsyncVectorEnv([partial(make_env, folder)] * GAMES, context="spawn")
        self.envs.reset(seed=0)

    def steps_per_s(self, seconds: float) -> float:
        rng = np.random.default_rng(0)
        return random_steps_per_s(self.envs, lambda: rng.integers(0, len(BUTTONS), GAMES), seconds)


def turbo(folder: str, seconds: float) -> float:
    """Its native vector environment, as its own page advises, with a thread for each core."""
    import stable_retro

    stable_retro.data.Integrations.add_custom_path(folder)
    envs = stable_retro.RetroVecEnv(
        GAME, state=STATE, inttype=stable_retro.data.Integrations.CUSTOM, render_mode="rgb_array",
        use_restricted_actions=stable_retro.Actions.ALL, num_envs=GAMES,
        num_threads=len(os.sched_getaffinity(0)), obs_resize=(84, 84), obs_grayscale=True,
        obs_resize_algorithm="area", obs_layout="chw", obs_copy="safe_view", frame_skip=4, frame_stack=4,
        info_filter="terminal",
    )  # fmt: skip
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    masks = np.array([[name in pressed for name in CONSOLE] for pressed in BUTTONS], np.int8)
    return random_steps_per_s(envs, lambda: masks[rng.integers(0, len(BUTTONS), GAMES)], seconds)


def sb3(folder: str, seconds: float) -> float:
    """PPO with a network like ours: 16 and 32 filters, 256 units, shared by policy and value."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import SubprocVecEnv
    from torch import nn

    class Small(BaseFeaturesExtractor):
        def __init__(self, space: Any) -> None:
            super().__init__(space, 256)
            self.layers = nn.Sequential(
                nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
                nn.Linear(32 * 9 * 9, 256), nn.ReLU(),
            )  # fmt: skip

        def forward(self, seen: torch.Tensor) -> torch.Tensor:
            return self.layers(seen)

    envs = SubprocVecEnv([partial(make_env, folder)] * GAMES, start_method="spawn")
    model = PPO(
        "CnnPolicy", envs, n_steps=STEPS, batch_size=MINIBATCH, n_epochs=EPOCHS, learning_rate=5e-4,
        policy_kwargs={"features_extractor_class": Small, "net_arch": []}, device="cpu",
    )  # fmt: skip
    batch = GAMES * STEPS
    model.learn(batch)
    begun, updates = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        model.learn(batch, reset_num_timesteps=False)
        updates += 1
    speed = updates * batch / (time.perf_counter() - begun)
    envs.close()
    return speed


def ask(name: str, folder: str, seconds: float) -> float:
    """What a rival measures in a process of its own."""
    first = [str(TURBO)] if name == "turbo" else []
    paths = [*first, str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, __file__, name, folder, str(seconds)], text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_WAIT_POLICY": "PASSIVE"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        sys.exit(f"{name} failed:\n{done.stderr[-2000:]}")
    return json.loads(lines[-1].removeprefix(MARK))


if __name__ == "__main__":
    print(MARK + json.dumps({"turbo": turbo, "sb3": sb3}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))))
