"""Our `njit`: compiled code on disk, in a folder named by a hash of the sources it came from.

Numba checks only the file of the function itself, so a change in a function that is called from
another file would be served stale. Here any change of the sources that compiled code may call leads to
a fresh folder: the compiled modules of `core` and `games` (with what they import) for the games here, for
the rest of the package those of the same folder as well, and for a game that lives elsewhere its own folder.
"""

import atexit
import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core.types.misc import unliteral

from ludus.core.cache import cache_home

PACKAGE = Path(__file__).resolve().parent.parent
SHARED = [PACKAGE / "core", PACKAGE / "games"]
NOT_OURS = ("__pycache__", "site-packages", "node_modules")
KEEP_DAYS = 14
FAST_WITH_NAN = {"reassoc", "contract", "arcp", "nsz"}
"""For `fastmath` where NaN must stay NaN, so that a diverging training is noticed."""
DECORATORS = b"njit", b"@inner"
IMPORT = re.compile(
    r"^from (\.*)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE
)  # parsing takes ten times longer
NAME = re.compile(r"\w+")


def njit(function: Callable | None = None, **options: Any) -> Callable:
    """`numba.njit` that releases the GIL and keeps its machine code for the next process."""
    if function is None:
        return functools.partial(njit, **options)
    before = numba_config.CACHE_DIR
    numba_config.CACHE_DIR = str(cache_folder(Path(function.__code__.co_filename).resolve().parent))
    try:
        options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options
        return _in_files_of_its_own(_without_literals(numba.njit(**options)(function)))
    finally:
        numba_config.CACHE_DIR = before


def inner(function: Callable | None = None, **options: Any) -> Callable:
    """`njit` for what only compiled code calls: what Python would call is left out, which takes 30 % of the
    time that a search takes to compile."""
    if function is None:
        return functools.partial(inner, **options)
    compiled: Any = njit(function, no_cpython_wrapper=True, **options)

    def refuse(*args: Any, **kws: Any) -> None:
        raise TypeError(f"{function.__name__} is for compiled code alone: @njit is for what Python calls too")

    compiled._compile_for_args = refuse
    compiled._insert = lambda *entry: None  # else a call by Python would jump to nowhere
    return compiled


def _without_literals(compiled: Any) -> Any:
    """Numba compiles a function once more for every constant that compiled code calls it with."""
    template = compiled.get_call_template

    def for_any_value(args: Any, kws: Any) -> Any:
        return template([unliteral(arg) for arg in args], {key: unliteral(arg) for key, arg in kws.items()})

    compiled.get_call_template = for_any_value
    return compiled


def _in_files_of_its_own(compiled: Any) -> Any:
    """Numba numbers the files of a function's machine code. Two processes that compile it at the same moment
    for different arguments take the same number, and from then on one's code runs with the other's arguments:
    a crash."""
    if file := getattr(compiled._cache, "_cache_file", None):
        file._data_name = lambda number: file._data_name_pattern.replace("{number:d}", os.urandom(8).hex())
    return compiled


@functools.cache
def cache_folder(source: Path) -> Path:
    """Where the code compiled from `source` (a folder) is kept."""
    if any(source.is_relative_to(shared) for shared in SHARED):
        files = _compiled(SHARED)
    elif source.is_relative_to(PACKAGE):
        files = _compiled([*SHARED, source])
    else:
        files = [*_compiled(SHARED), *_sources(source)]
    folder = _root() / _hash(files)
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _forget_old(folder)
        with tempfile.TemporaryFile(dir=folder):  # whether it can be written to
            return folder
    except OSError as error:
        _use_temporary_folder(f"{folder}: {error.strerror}")
        return cache_folder.__wrapped__(source)


@contextmanager
def announced(what: str, source: Path) -> Iterator[None]:
    """Say that `what` is being compiled, and for how long, if this version has not been yet."""
    mark = cache_folder(source) / f"{what.replace(os.sep, '-')}.compiled"
    if mark.exists():
        yield
        return
    print(f"compiling {what} (once for this version) ...", end=" ", file=sys.stderr, flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    mark.touch()


def _use_temporary_folder(why: str) -> None:
    """In this process and those it starts."""
    folder = tempfile.mkdtemp(prefix="ludus-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["LUDUS_CACHE"] = folder
    print(
        f"ludus: compiled code can't be kept ({why}), so this command compiles again: "
        "set LUDUS_CACHE to a folder that can be written to",
        file=sys.stderr,
    )


def _root() -> Path:
    return cache_home() / "compiled"


def _hash(files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=10)
    for file in files:
        digest.update(str(file).encode())
        digest.update(_read(file))
    return digest.hexdigest()


def _read(file: Path) -> bytes:
    """Nothing where a file is gone by now or links to nothing: Python can't import it either."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _compiled(folders: list[Path]) -> list[Path]:
    """The files in `folders` that hold compiled code, and all of this package that they import."""
    found: set[Path] = set()
    new = {
        file
        for folder in folders
        for file in _sources(folder)
        if any(name in _read(file) for name in DECORATORS)
    }
    while new:
        found |= new
        new = {other for file in new for other in _imports(file)} - found
    return sorted(found)


def _imports(file: Path) -> Iterator[Path]:
    """Files of this package that `file` imports when it is loaded: compiled code sees no later imports."""
    for dots, module, names in IMPORT.findall(_read(file).decode()):
        start = file.parents[len(dots) - 1] if dots else PACKAGE.parent
        place = start.joinpath(*module.split("."))
        for name in NAME.findall(names):
            source = _source(place / name) or _source(place)
            if source:
                yield source


def _source(module: Path) -> Path | None:
    """The file of a module of this package, if it is one."""
    if not module.is_relative_to(PACKAGE):
        return None
    files = (module.with_name(module.name + ".py"), module / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _sources(folder: Path) -> Iterator[Path]:
    """Its Python files, in order. A user's folder may hold a whole environment, which is not his game."""
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in NOT_OURS and not name.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))


def _forget_old(newest: Path) -> None:
    for other in newest.parent.iterdir():
        with suppress(FileNotFoundError):  # another process may be tidying up too
            age_days = (time.time() - other.stat().st_mtime) / 86400
            if other != newest and age_days > KEEP_DAYS:
                shutil.rmtree(other, ignore_errors=True)
