"""Other libraries at one and the same work, each printed as `figure rival.NAME VALUE UNIT`.

The work is PPO on `masked_env.Masked`: 16 environments x 128 steps, 4 epochs of minibatches of 256, separate
policy and value networks of 256-256 tanh, on the CPU. Only MaskablePPO masks; the others are spared that.
Every rival runs in a process of its own, so that threads and variables of one don't reach the next. Sample
Factory and PufferLib want an older Gymnasium than ours, so they run in the environment `.venv-rivals`.
Nothing here may import Ludus but `ofc_sb3_time`: it isn't installed there.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from masked_env import ACTIONS, FEATURES, Masked

ENVS, STEPS, EPOCHS, MINIBATCH, RATE = 16, 128, 4, 256, 3e-4
BATCH = ENVS * STEPS
OTHER_PYTHON = Path(__file__).absolute().parents[1] / ".venv-rivals/bin/python"

make_env = partial(Masked, mask_in_info=False)


def steps_per_s(update: Callable[[], object], seconds: float) -> float:
    """update: one rollout and what is learned from it. The first warms up and isn't counted."""
    update()
    start, updates = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        update()
        updates += 1
    return updates * BATCH / (time.perf_counter() - start)


# ---- Stable-Baselines3


def sb3_maskable_subproc(seconds: float) -> float:
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return sb3(MaskablePPO, SubprocVecEnv([make_env] * ENVS), seconds)


def sb3_dummy(seconds: float) -> float:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    return sb3(PPO, DummyVecEnv([make_env] * ENVS), seconds)


def sb3(algorithm: type, envs, seconds: float) -> float:
    model = algorithm(
        "MlpPolicy", envs, n_steps=STEPS, batch_size=MINIBATCH, n_epochs=EPOCHS, learning_rate=RATE,
        policy_kwargs={"net_arch": {"pi": [256, 256], "vf": [256, 256]}}, device="cpu",
    )  # fmt: skip
    speed = steps_per_s(lambda: model.learn(BATCH, reset_num_timesteps=False), seconds)
    envs.close()
    return speed


# ---- Sample Factory


def make_for_factory(name: str, cfg=None, env_config=None, render_mode: str | None = None) -> Masked:
    return make_env()


def sample_factory(seconds: float) -> float:
    """Its updates run in a loop of its own, so they are counted from there."""
    from sample_factory.algo.runners.runner import AlgoObserver
    from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
    from sample_factory.envs.env_utils import register_env
    from sample_factory.train import make_runner

    class Clock(AlgoObserver):
        def __init__(self):
            self.times = []

        def on_training_step(self, runner, training_iteration_since_resume):
            self.times.append(time.perf_counter())
            if self.times[-1] - self.times[0] > seconds:
                runner.cfg.train_for_env_steps = 0

    register_env("masked", make_for_factory)
    with tempfile.TemporaryDirectory() as folder:
        # Measured on 2 cores: one worker beside the learner is faster than two, and than all in one process.
        switches = {
            "env": "masked", "experiment": "rival", "train_dir": folder, "device": "cpu",
            "async_rl": True, "num_workers": 1, "num_envs_per_worker": ENVS, "rollout": STEPS,
            "batch_size": MINIBATCH, "num_batches_per_epoch": BATCH // MINIBATCH, "num_epochs": EPOCHS,
            "learning_rate": RATE, "use_rnn": False, "actor_critic_share_weights": False,
            "nonlinearity": "tanh", "normalize_input": False, "normalize_returns": False,
        }  # fmt: skip
        words = [f"--{name}={value}" for name, value in switches.items()]
        words += ["--encoder_mlp_layers", "256", "256"]
        _, runner = make_runner(parse_full_cfg(parse_sf_args(words)[0], words))
        clock = Clock()
        runner.register_observer(clock)
        runner.init()
        runner.run()
    return (len(clock.times) - 1) * BATCH / (clock.times[-1] - clock.times[0])


# ---- PufferLib


def pufferlib(seconds: float) -> float:
    import pufferlib.emulation
    import pufferlib.vector
    import torch
    from pufferlib.pufferl import PuffeRL

    def layers(outputs: int) -> torch.nn.Module:
        linear, tanh = torch.nn.Linear, torch.nn.Tanh
        return torch.nn.Sequential(
            linear(FEATURES, 256), tanh(), linear(256, 256), tanh(), linear(256, outputs)
        )

    class Policy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.policy, self.value = layers(ACTIONS), layers(1)

        def forward(self, obs, state=None):
            return self.policy(obs), self.value(obs)

        forward_eval = forward

    make_puffer = partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=make_env)
    # Serial, because its processes wait by spinning: on 2 cores two of them are six times slower.
    envs = pufferlib.vector.make(make_puffer, num_envs=ENVS, backend="Serial")
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "env": "masked", "data_dir": folder, "device": "cpu", "seed": 0, "torch_deterministic": True,
            "cpu_offload": False, "precision": "float32", "compile": False, "use_rnn": False,
            "total_timesteps": 10**9, "checkpoint_interval": 10**9,
            "batch_size": BATCH, "bptt_horizon": STEPS, "update_epochs": EPOCHS,
            "minibatch_size": MINIBATCH, "max_minibatch_size": MINIBATCH,
            "optimizer": "adam", "learning_rate": RATE, "anneal_lr": False,
            "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_eps": 1e-8, "max_grad_norm": 0.5,
            "gamma": 0.99, "gae_lambda": 0.95, "clip_coef": 0.2, "vf_coef": 0.5, "vf_clip_coef": 0.2,
            "ent_coef": 0.0, "vtrace_rho_clip": 1.0, "vtrace_c_clip": 1.0,
            "prio_alpha": 0.0, "prio_beta0": 1.0,
        }  # fmt: skip
        trainer = PuffeRL(config, envs, Policy())

        def update() -> None:
            trainer.evaluate()
            trainer.train()

        speed = steps_per_s(update, seconds)
        trainer.close()
    return speed


# ---- time to strength


def ofc_sb3_time(limit_s: float, target: float = 5.0) -> tuple[float, bool]:
    """Seconds of training until OFC hands against two random bots bring `target` points; and whether they do.

    Evaluating is not in the time. Everything that isn't set here is the library's default.
    """
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv([make_ofc] * 4)
    model = MaskablePPO("MlpPolicy", envs, learning_rate=1e-4, batch_size=256, n_steps=2048, device="cpu")
    spent_s, points = 0.0, ofc_points(model)
    while points < target and spent_s < limit_s:
        start = time.perf_counter()
        model.learn(20_000, reset_num_timesteps=False)
        spent_s += time.perf_counter() - start
        points = ofc_points(model)
        print(f"{spent_s:.0f} s, {model.num_timesteps} steps: {points:+.2f} points a hand", flush=True)
    envs.close()
    return spent_s, points >= target


def make_ofc():
    import ludus

    return ludus.gym_env("ofc", opponents="random", hands=1)


def ofc_points(model, hands: int = 2000) -> float:
    """Mean of the policy's likeliest actions against random bots, a third of the hands in each seat."""
    import numpy as np

    from ludus import games, match
    from ludus.core.rules import RandomBot

    rules = games.open("ofc", hands=1).native("played").rules
    opponent, total = RandomBot(rules), 0.0

    class Learned:
        def choose(self, states, rng):
            obs = np.zeros((len(states), *rules.spec.obs_shape), rules.spec.obs_dtype)
            legal = np.zeros((len(states), rules.spec.actions), bool)
            rules.observe(states, obs)
            rules.legal(states, legal)
            return model.predict(obs, action_masks=legal, deterministic=True)[0].astype(np.int32)

    seats, points = rules.spec.seats, np.zeros((hands // rules.spec.seats, rules.spec.seats), np.float32)
    for seat in range(seats):
        lineup = [Learned() if other == seat else opponent for other in range(seats)]
        steps = match.game_steps(rules, lineup, len(points), model.num_timesteps + seat)
        rules.score(match.played(steps), points)
        total += float(points[:, seat].mean()) / seats
    return total


# ---- running them

OTHER = "make .venv-rivals"
NEEDS = {
    "sb3_maskable_subproc": ("sb3_contrib", "pip install sb3-contrib"),
    "sb3_dummy": ("stable_baselines3", "pip install stable-baselines3"),
    "sample_factory": ("sample_factory", OTHER),
    "pufferlib": ("pufferlib", OTHER),
    "ofc_sb3_time": ("sb3_contrib", "pip install sb3-contrib"),
}
"""For each rival: the module it needs, and what brings it."""
MARK = "result "


def in_fresh_process(name: str, seconds: float, other_python: str) -> Any:
    """What a rival's function returns, or None if it isn't installed."""
    install = NEEDS[name][1]
    python = other_python if install == OTHER else sys.executable
    command = [python, str(Path(__file__).absolute()), "--here", name, "--seconds", str(seconds)]
    with tempfile.TemporaryDirectory() as folder:  # PufferLib leaves a link in the current one
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    results = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not results:
        raise SystemExit(f"{name} failed:\n{done.stdout[-3000:]}")
    result = json.loads(results[-1].removeprefix(MARK))
    if result is None:
        print(f"{name} is not installed: {install}", flush=True)
    return result


def run_here(name: str, seconds: float) -> None:
    found = importlib.util.find_spec(NEEDS[name][0])
    print(f"\n{MARK}{json.dumps(globals()[name](seconds) if found else None)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which of {', '.join(NEEDS)}; all unless told"
    )
    parser.add_argument("--seconds", type=float, default=15, help="of steady training, for each rival")
    parser.add_argument("--limit-s", type=float, default=900, help="of training, for ofc_sb3_time")
    parser.add_argument("--python", default=str(OTHER_PYTHON), help="that has Sample Factory and PufferLib")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        return run_here(args.here, args.seconds)
    other_python = str(Path(args.python).absolute()) if Path(args.python).exists() else sys.executable
    for name in args.names or NEEDS:
        timed = name == "ofc_sb3_time"
        result = in_fresh_process(name, args.limit_s if timed else args.seconds, other_python)
        if result is None:
            continue
        value, unit = (
            (result, "steps/s") if not timed else (result[0], "s" if result[1] else "s, not reached")
        )
        print(f"figure rival.{name} {value:.0f} {unit}", flush=True)


if __name__ == "__main__":
    main()
