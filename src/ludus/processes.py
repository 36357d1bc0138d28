"""Processes that we start: one thread each for matrix products, and nothing they started outlives them.

Every process leads a group of its own. It ends that group when the process that started it is gone, and who
ends a process ends its group. What left the group carries a mark in its environment. `Family` is for code of
others that runs in this process. Knows the operating system, nothing of games.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import connection, context, get_all_start_methods, parent_process
from pathlib import Path
from typing import Any

import psutil

from ludus.core.errors import Usage

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""There is a process for each core: a thread for each core in each of them would make all of them slow."""
FAMILY = "LUDUS_FAMILY"
"""The variable with the marks of all families that a process belongs to."""
PR_SET_PDEATHSIG = 1
_running: weakref.WeakSet[Any] = weakref.WeakSet()


class _Process:
    """What our processes do beside those of `multiprocessing`."""

    needs_main = False
    """Whether it needs the main module, as for a game `__main__:Class`."""
    mark = ""

    def start(self) -> None:
        self.mark = uuid.uuid4().hex
        main: Any = contextlib.nullcontext() if self.needs_main else _without_main()
        with _environment(ONE_THREAD), main:
            super().start()  # type: ignore[misc]
        _running.add(self)

    def run(self) -> None:
        _lead_group()
        os.environ[FAMILY] = _marks_with(self.mark)
        try:
            super().run()  # type: ignore[misc]
        finally:
            kill(children())


class SpawnProcess(_Process, context.SpawnProcess):
    pass


class SpawnContext(context.SpawnContext):
    Process = SpawnProcess  # type: ignore[assignment]


CONTEXTS: dict[str, type[context.BaseContext]] = {"spawn": SpawnContext}

if "forkserver" in get_all_start_methods():  # not on Windows

    class ForkServerProcess(_Process, context.ForkServerProcess):
        pass

    class ForkServerContext(context.ForkServerContext):
        Process = ForkServerProcess  # type: ignore[assignment]

    class ForkProcess(_Process, context.ForkProcess):
        pass

    class ForkContext(context.ForkContext):
        Process = ForkProcess  # type: ignore[assignment]

    CONTEXTS |= {"forkserver": ForkServerContext, "fork": ForkContext}


def make_context(start_method: str = "auto", preload: Sequence[str] = ()) -> Any:
    """A context of `multiprocessing` whose processes are ours. preload: modules that a fork server imports"""
    if start_method == "auto":
        start_method = "forkserver" if "forkserver" in CONTEXTS else "spawn"
    if start_method not in CONTEXTS:
        raise Usage(
            f"processes can't start by {start_method} here: take --start-method {' or '.join(CONTEXTS)}"
        )
    context = CONTEXTS[start_method]()
    if preload and start_method == "forkserver":
        context.set_forkserver_preload(list(preload))
    return context


def start_fork_server(preload: Sequence[str]) -> None:
    """Now, so that it imports while we do other things; nothing where there is none."""
    if "forkserver" in CONTEXTS:
        from multiprocessing import forkserver

        make_context("forkserver", preload)
        with _environment(ONE_THREAD):
            forkserver.ensure_running()


def end(process: Any, patience_s: float = 0.0) -> None:
    """End a process and all that it started. patience_s: for leaving by itself"""
    if process.is_alive() and not _is_dead(process.pid):
        family = children(process.pid)
    else:  # one that was killed has left its children, perhaps in sessions of their own
        family = set() if process.exitcode == 0 else _marked(process.mark)
    process.join(max(0.0, patience_s))
    if process.is_alive():
        process.kill()
    _kill_group(process.pid)
    kill(family)
    process.join()
    _running.discard(process)


def _is_dead(pid: int) -> bool:
    """Sooner than `is_alive` knows, which waits for the fork server's word."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def children(pid: int | None = None) -> set[psutil.Process]:
    """All that a process, or this one, has started, and what they have; those that left the group too."""
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return set()


def kill(some: Iterable[psutil.Process]) -> None:
    for one in some:
        with contextlib.suppress(psutil.Error):
            one.kill()


class Family:
    """What code of others starts in this process, told apart from what we or our caller start.

    Found are children of ours, and by the mark what no longer has its parent.
    """

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._children: set[psutil.Process] = set()

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Whatever is started inside belongs to it."""
        before = _own_children()
        try:
            with _environment({FAMILY: _marks_with(self._mark)}):
                yield
        finally:
            for pid in _own_children() - before:
                with contextlib.suppress(psutil.Error):  # it has ended already
                    self._children.add(psutil.Process(pid))

    def end(self) -> None:
        spared, found = _our_own(), _marked(self._mark)
        for child in self._children:
            with contextlib.suppress(psutil.Error):  # it has ended already
                if child.pid not in spared:
                    found |= {child, *child.children(recursive=True)}
        kill(one for one in found if one.pid not in spared)
        self._children.clear()


def _own_children() -> set[int]:
    """Of this process itself; on Linux fast enough to be asked before and after every block."""
    try:
        tasks = Path("/proc/self/task").iterdir()
        return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    except OSError:  # another system, or a thread that has just ended
        return {child.pid for child in psutil.Process().children()}


def _our_own() -> set[int]:
    """Processes that we started, and those that `multiprocessing` keeps for us."""
    from multiprocessing import resource_tracker

    server = sys.modules.get("multiprocessing.forkserver")
    kept = {
        getattr(getattr(server, "_forkserver", None), "_forkserver_pid", None),
        getattr(resource_tracker._resource_tracker, "_pid", None),
    }
    return {pid for pid in kept if pid is not None} | {process.pid for process in list(_running)}


def _marks_with(mark: str) -> str:
    """Families may be in families: a sweep's trial has workers."""
    return f"{os.environ.get(FAMILY, '')} {mark}".strip()


def _marked(mark: str) -> set[psutil.Process]:
    """All processes of a family, wherever they are."""
    found = set()
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if mark in one.environ().get(FAMILY, "").split():
                found.add(one)
    return found


@contextlib.contextmanager
def ended_on_error() -> Iterator[None]:
    """Whatever is started inside ends if something goes wrong there, Ctrl-C too."""
    before = set(_running)
    try:
        yield
    except BaseException:
        for process in set(_running) - before:
            end(process)
        raise


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        end(process)


def _lead_group() -> None:
    """Of a process that has just started."""
    _running.clear()  # of the parent's, if we are its fork
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(ONE_THREAD)
    if "torch" in sys.modules:  # forked from the learner, with its threads
        sys.modules["torch"].set_num_threads(1)
    if hasattr(os, "setsid"):
        with contextlib.suppress(PermissionError):  # it leads one already
            os.setsid()
    if sys.platform == "linux":
        # A stopped process can't see that its parent died: have the kernel continue it then.
        _let_fork_server_die()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _let_fork_server_die() -> None:
    """With the learner: it is our parent, and lives as long as anybody holds this descriptor."""
    server = sys.modules.get("multiprocessing.forkserver")
    held = getattr(getattr(server, "_forkserver", None), "_forkserver_alive_fd", None)
    if held is not None:
        os.close(held)
        server._forkserver._forkserver_alive_fd = None  # type: ignore[union-attr]


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is None:
        return
    connection.wait([parent.sentinel])
    kill(children())
    _kill_group(os.getpid())
    os._exit(1)


def _kill_group(leader: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in it
            os.killpg(leader, signal.SIGKILL)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for a process that is about to start; ours stay as they were."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """A child imports the main module first: a script without a `__main__` guard would begin again in it, and
    what was read from stdin can't be imported. Ours need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
