"""Algorithms. Each is a folder that offers, without importing torch, a `Config`, `refuse(config, spec)` (what
can't be trained so), `bots(config)` (who plays along), `columns(config, spec)` (what a block holds of each
decision) and `make_learner(config, spec, device)`, where `config` is that of the whole training.
"""

import importlib
from types import ModuleType


def find(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
