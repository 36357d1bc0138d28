"""What this machine lets us use. Knows the operating system, nothing of games."""

import os
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
CORES = "LUDUS_CORES"
"""The variable that tells how many cores this process and those it starts may use."""


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def core_quota() -> float | None:
    """Cores' worth of time that a container grants, or None without a limit."""
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def usable_cores() -> int:
    quota, told = core_quota(), os.environ.get(CORES, "")
    limits = [
        cores(),
        *([round(quota)] if quota is not None else []),
        *([int(told)] if told.isdecimal() else []),
    ]
    return max(1, min(limits))


def memory_bytes() -> tuple[int, int]:
    """All of it and what is free, within the container's limit if there is one."""
    memory = psutil.virtual_memory()
    total, free = memory.total, memory.available
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return total, free
    return min(total, limit), min(free, limit - used)
