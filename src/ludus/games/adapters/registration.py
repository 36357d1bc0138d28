"""Native games as Gymnasium ids, as in `gymnasium.make("ludus/tictactoe-v0")`."""

from pathlib import Path

import gymnasium

from ludus import games


def register_envs() -> None:
    for name in games.names():
        if Path(games.__path__[0], name, "rules.py").exists():
            gymnasium.register(f"ludus/{name}-v0", entry_point="ludus:gym_env", kwargs={"game": name})
