"""Other libraries' environments as tables, and native games as other libraries' environments.

Each name is imported when it is first used, because each needs a library that nobody else here does.
Knows rules and tables; must not know which games there are.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ludus.core import extras
from ludus.core.errors import Usage

if TYPE_CHECKING:
    from ludus.games.adapters.gym_env import GymEnv
    from ludus.games.adapters.gym_table import GymTable
    from ludus.games.adapters.load import user_table
    from ludus.games.adapters.sb3_env import Sb3VecEnv
    from ludus.games.adapters.zoo_env import ZooEnv
    from ludus.games.adapters.zoo_table import ZooTable

__all__ = ["GymEnv", "GymTable", "Sb3VecEnv", "ZooEnv", "ZooTable", "user_table"]

HOMES = {
    "GymEnv": "gym_env",
    "GymTable": "gym_table",
    "Sb3VecEnv": "sb3_env",
    "ZooEnv": "zoo_env",
    "ZooTable": "zoo_table",
    "user_table": "load",
}
PACKAGES = "gymnasium", "pettingzoo"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in PACKAGES:
            raise Usage(f"{name} needs {library}: pip install {library}") from None
        raise extras.explain(error, name) or error from None
