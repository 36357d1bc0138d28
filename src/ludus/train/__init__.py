"""Training: workers fill blocks, the learner learns from them, the loop ties them together.

Python users call `ludus.train(...)`, a name that this package takes once it is imported: so it can be called.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, game: str, **settings: Any) -> Path:
        from ludus.api import train

        return train(game, **settings)


sys.modules[__name__].__class__ = _CallablePackage
