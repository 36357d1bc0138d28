"""A run: a folder with everything a training produced. Others may read it while it is written."""

import dataclasses
import importlib.metadata
import json
import os
import time
from pathlib import Path
from typing import Any

import tomli_w

import ludus
from ludus.config import Config, overlay
from ludus.core.errors import Failure, Usage

CONFIG, METRICS, EVENTS, WEIGHTS = "config.toml", "metrics.jsonl", "events.jsonl", "weights.safetensors"


class Run:
    def __init__(self, folder: Path, config: Config) -> None:
        self.folder, self.config = folder, config
        self._metrics = (folder / METRICS).open("a", buffering=1)
        self._events = (folder / EVENTS).open("a", buffering=1)

    @classmethod
    def create(cls, config: Config) -> "Run":
        folder = Path(config.run or f"runs/{config.game.replace(':', '-').replace('/', '-')}-{config.preset}")
        if is_run(folder):
            raise Usage(f"{folder} holds a run already: choose another folder with --run, or remove it")
        folder.mkdir(parents=True, exist_ok=True)
        values = dataclasses.asdict(config)
        libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
        values["versions"] = {"ludus": ludus.__version__, **libraries}
        (folder / CONFIG).write_text(tomli_w.dumps(values))
        (folder / METRICS).write_text("")
        (folder / EVENTS).write_text("")
        return cls(folder, config)

    def metrics(self, values: dict[str, Any]) -> None:
        self._metrics.write(json.dumps(values) + "\n")

    def event(self, what: str, **details: Any) -> None:
        self._events.write(json.dumps({"time": time.time(), "event": what, **details}) + "\n")

    def save(self, tensors: dict[str, Any]) -> None:
        """The newest weights, never half written."""
        from safetensors.torch import save_file

        temporary = self.folder / f"{WEIGHTS}.new"
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, temporary)
        os.replace(temporary, self.folder / WEIGHTS)

    def close(self) -> None:
        self._metrics.close()
        self._events.close()


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).exists()


def read_config(folder: Path) -> Config:
    import tomllib

    if not is_run(folder):
        raise Usage(f"{folder} is not a run: it has no {CONFIG}")
    values = tomllib.loads((folder / CONFIG).read_text())
    values.pop("versions", None)
    return overlay(Config(), values, str(folder / CONFIG))


def read_weights(folder: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise Failure(f"{folder} has no readable weights yet ({error})") from None
