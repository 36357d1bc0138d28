"""A Ray cluster: how we join it, which nodes it has, and whether their code is ours. No games here."""

import functools
import hashlib
import logging
import os
import platform
import socket
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ludus
from ludus import machine
from ludus.core import extras
from ludus.core.errors import Usage

PACKAGE = Path(ludus.__file__).parent
SENT = (".py", ".whl")
"""Files that Ray sends to nodes as modules, beside the folders of packages."""
REACH_S = 5.0
"""How long a cluster may take to answer at all."""
VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # GPUs are not Ray's to hide
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else it prints what its processes say over the dashboard
    "RAY_prestart_worker_first_driver": "0",  # our workers have an environment of their own: these would idle
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # its own 20 tries take minutes where nobody answers
}
"""Read by Ray when it is imported."""


class Node(NamedTuple):
    id: str
    name: str
    cores: int


def connect(address: str, modules: Sequence[str] = ()) -> bool:
    """Join a cluster; whether this is new, so that it is ours to leave.

    address: "" for Ray on this machine alone, which ends with us. modules: packages or files that
    Ray sends to the nodes
    """
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise extras.explain(error, "--pool ray") or error from None
    if ray.is_initialized():
        return False
    refuse(address, modules)
    if address not in ("", "auto"):
        _reach(address)
    options: dict[str, Any] = {"address": address}
    if not address:
        options = {"address": "local", "num_cpus": machine.usable_cores(), "include_dashboard": False}
    if modules:
        options["runtime_env"] = {"py_modules": [str(Path(module).resolve()) for module in modules]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(logging_level=logging.ERROR, log_to_driver=False, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = " ".join(str(error).split())
        where = f"--ray-address {address}" if address else "--pool ray"
        raise Usage(f"{where}: {said}; `ray start --head` begins a cluster, `ray status` shows it") from None
    return True


def refuse(address: str, modules: Sequence[str]) -> None:
    if address.startswith("ray://"):
        raise Usage(
            f"--ray-address {address} is of Ray's client, through which blocks would be copied: join this "
            "machine to the cluster with `ray start --address HOST:PORT`, and take --ray-address auto"
        )
    for module in modules:
        path = Path(module)
        if not path.exists():
            raise Usage(f"--ray-modules {module}: there is no such package or file")
        if not path.is_dir() and path.suffix not in SENT:
            raise Usage(f"--ray-modules {module} is neither a folder nor a file in {' or '.join(SENT)}")


def _reach(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except (OSError, ValueError) as error:
        raise Usage(
            f"--ray-address {address}: no Ray cluster answers there ({error}): "
            "`ray start --head` on its first machine says the address, as in 10.0.0.1:6379"
        ) from None


def leave() -> None:
    import ray

    ray.shutdown()


def own_node() -> str:
    """The id of the node that we are on."""
    import ray

    return ray.get_runtime_context().get_node_id()


def nodes() -> dict[str, Node]:
    """Those that are alive, by id; each has a name of its own."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]
    names = Counter(_name(node) for node in alive)
    found = {}
    for node in alive:
        name, number = _name(node), node["NodeID"]
        name = name if names[name] == 1 else f"{name}-{number[:4]}"
        found[number] = Node(number, name, int(node["Resources"].get("CPU", 0)))
    return found


def _name(node: dict[str, Any]) -> str:
    """As `ray start --node-name` says, else the machine's."""
    told, address = node.get("NodeName", ""), node["NodeManagerAddress"]
    return told if told and told != address else node.get("NodeManagerHostname") or address


def spread(workers: int, room: dict[str, int], last: str) -> dict[str, int]:
    """So many workers over nodes by turns, as far as there are cores. last: the node whose turn comes last"""
    found: Counter[str] = Counter()
    order = sorted(room, key=lambda node: (node == last, node))
    while found.total() < min(workers, sum(room.values())):
        for node in order:
            if found[node] < room[node] and found.total() < workers:
                found[node] += 1
    return dict(found)


# ---- whose code


@functools.cache
def versions() -> dict[str, str]:
    """What must be the same on all nodes: they exchange arrays and plans."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    return {
        "Python": platform.python_version(), "NumPy": np.__version__, "Ludus": ludus.__version__,
        "code": digest.hexdigest(),
    }  # fmt: skip


def mismatch(node: str, theirs: dict[str, str]) -> str:
    """Why a node can't play for us; "" if it can."""
    ours = versions()
    for what in ("Python", "NumPy", "Ludus"):
        if theirs.get(what) != ours[what]:
            return (
                f"node {node} has {what} {theirs.get(what)}, but the learner has {ours[what]}: "
                "install the same on both"
            )
    if theirs.get("code") != ours["code"]:
        return (
            f"node {node} has other code of Ludus {ours['Ludus']} than the learner: install the same on "
            f"both, or send the learner's with --ray-modules {PACKAGE}"
        )
    return ""
