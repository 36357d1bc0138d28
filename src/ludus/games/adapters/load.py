"""Finds and makes other people's environments: by id, by `module:Class`, or by a factory.

Knows how environments are found; must not know how they are stepped.
"""

import importlib
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from ludus.core.errors import Failure, Usage
from ludus.core.table import Table

Factory = Callable[..., Any]

ATARI = "ALE"
"""The namespace of ale-py, which registers its games when it is imported."""
OWN_ZOO = re.compile(r"(atari|butterfly|classic|sisl)/[a-z0-9_]+_v\d+")
"""Environments that come with PettingZoo."""


def imports_code(kind: str, name: str) -> bool:
    """Whether `gym:name` or `zoo:name` imports a module that the name chooses.

    Environments of Gymnasium, ale-py and PettingZoo themselves don't; all that is not known to be one does.
    """
    if kind == "zoo":
        return not OWN_ZOO.fullmatch(name)
    if ":" in name:
        return True
    if name.startswith(f"{ATARI}/"):
        return False
    import gymnasium

    spec = gymnasium.registry.get(name)
    # An environment of another installed package may import what its arguments say (shimmy's does).
    return spec is None or not str(spec.entry_point).startswith("gymnasium.envs.")


def user_table(path: str, rows: int, /, **kwargs: Any) -> Table:
    """A table of `module:Class`, of Gymnasium or PettingZoo kind. The current folder is searched too."""
    from ludus.games import adapters

    factory = named(path)
    if isinstance(factory, type):
        kind = factory
    else:
        sample = make_all(factory, path, 1, kwargs)[0]
        kind = type(sample)
        close_all([sample], path)
    zoo = sys.modules.get("pettingzoo")
    if zoo and issubclass(kind, (zoo.AECEnv, zoo.ParallelEnv)):
        return adapters.ZooTable(factory, rows, path, **kwargs)
    return adapters.GymTable(factory, rows, path, **kwargs)


def make_all(factory: Factory, name: str, rows: int, kwargs: dict[str, Any]) -> list[Any]:
    try:
        made = [factory(**kwargs) for _ in range(rows)]
    except Failure:
        raise
    except (TypeError, ImportError) as error:
        raise Usage(f"{name} can't be made: {error}") from error
    except (Exception, SystemExit) as error:
        raise Failure(f"{name} can't be made: {type(error).__name__}: {error}") from error
    if any(env is None for env in made):
        raise Usage(f"{name} gives None, not an environment")
    if len({id(env) for env in made}) < rows:
        raise Usage(f"{name} gives the same environment each time: make a new one for every row")
    return made


def close_all(envs: list[Any], name: str) -> None:
    for env in envs:
        try:
            getattr(env, "close", lambda: None)()
        except Exception as error:
            raise Failure(f"{name}: close raised {type(error).__name__}: {error}") from error


def name_of(source: str | Factory, kind: str) -> str:
    """What to call environments that `source` makes."""
    return f"{kind}:{source}" if isinstance(source, str) else getattr(source, "__name__", str(source))


def named(path: str) -> Any:
    """The object at `module:name`."""
    module, _, attribute = path.partition(":")
    found = imported(module)
    if found is None:
        raise Usage(f"{path!r}: there is no module {module!r}, neither in this folder nor installed")
    if not callable(getattr(found, attribute, None)):
        raise Usage(f"{path!r}: module {module!r} has no class or function {attribute!r}")
    return getattr(found, attribute)


def imported(module: str, search_here: bool = True) -> Any | None:
    """The module, or None where there is none of that name. search_here: also in the current folder."""
    here = os.getcwd()
    if search_here and here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that no file there takes the place of an installed module
    try:
        with warnings.catch_warnings():
            # PettingZoo warns of its module paths since 1.27; they are what its users write.
            warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            return None
        raise Usage(f"{module} needs the module {error.name!r}: pip install it") from error
    except (TypeError, ValueError) as error:
        if not all(part.isidentifier() for part in module.split(".")):
            return None  # "", "..x" and the like name no module
        raise _broken(module, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(module, error) from error


def _broken(module: str, error: BaseException) -> Failure:
    where = [f"{frame.filename}, line {frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    place = f" ({where[-1]})" if where and not isinstance(error, SyntaxError) else ""
    return Failure(f"{module} can't be imported: {type(error).__name__}: {error}{place}")


def gym_factory(name: str) -> Factory:
    """A Gymnasium id (`CartPole-v1`, `module:Name-v0`, `package/Name-v0`) or `module:Class`."""
    module, _, attribute = name.partition(":")
    if attribute and callable(getattr(imported(module), attribute, None)):
        return named(name)
    if name.startswith(f"{ATARI}/"):
        from ludus.games.adapters.atari import make_atari

        return partial(make_atari, partial(_registered, name))
    return partial(_registered, name)


def _registered(name: str, /, **kwargs: Any) -> Any:
    import gymnasium

    package = name.partition("/")[0]
    known = name in gymnasium.registry or package in (name, ATARI) or ":" in name
    if not known and imported(package):
        # Importing a package is what registers its environments, with or without its name before them.
        name = name if name in gymnasium.registry else name.partition("/")[2]
    try:
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    except gymnasium.error.DependencyNotInstalled as error:
        raise Usage(f"gym:{name}: {error}") from None
    except gymnasium.error.Error as error:
        fix = "`gymnasium.pprint_registry()` lists them; for a package's, write gym:package:Name-v0"
        raise Usage(f"unknown environment gym:{name}: {error}; {fix}") from None


def zoo_factory(name: str) -> Factory:
    """`family/name_v0` of PettingZoo, the same of another package, or `module:Class`."""
    if ":" in name:
        return named(name)
    import pettingzoo  # noqa: F401  (so that a missing library is not taken for a missing environment)

    dotted, family = name.replace("/", "."), name.partition("/")[0]
    try:
        module = imported(f"pettingzoo.{dotted}", search_here=False)
        if module is None and not OWN_ZOO.fullmatch(name):
            module = imported(dotted)
    except Usage as error:
        raise Usage(f"zoo:{name}: {error} (or pip install 'pettingzoo[{family}]')") from error
    except Failure as error:
        raise Failure(f"zoo:{name}: {error}") from error
    factory = getattr(module, "env", None) or getattr(module, "parallel_env", None)
    if factory is None:
        raise Usage(f"unknown environment zoo:{name}: {_zoo_choices(family)}")
    return factory


def _zoo_choices(family: str) -> str:
    package = imported(f"pettingzoo.{family}", search_here=False)
    names = [found.name for found in pkgutil.iter_modules(package.__path__)] if package else []
    names = [f"zoo:{family}/{name}" for name in names if re.search(r"_v\d+$", name)]
    return f"choose from {', '.join(names)}" if names else "write it as in zoo:classic/connect_four_v3"
