"""Native games as Gymnasium ids, as in `gymnasium.make("ludus/tictactoe-v0")`."""

import gymnasium

from ludus import games


def register_envs() -> None:
    """Again and again does no harm."""
    for name in games.native_names():
        if f"ludus/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"ludus/{name}-v0", entry_point="ludus:gym_env", kwargs={"game": name})
