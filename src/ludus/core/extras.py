"""Packages that only some commands need: which extra of pyproject.toml brings each of them."""

import re
from importlib import metadata

from ludus.core.errors import Usage

PACKAGE_OF = {"PIL": "pillow", "pygame": "pygame-ce"}
"""Packages that are imported by another name, beyond - and _."""
NEEDED = ""
"""What comes without any extra."""


def packages() -> dict[str, list[str]]:
    """Extra -> its packages, as pyproject.toml says."""
    found: dict[str, list[str]] = {}
    for requirement in _requirements():
        package = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"""extra == ['"]([\w-]+)""", requirement)
        if package and package[0] != "ludus":
            found.setdefault(extra[1] if extra else NEEDED, []).append(package[0])
    return found


def _requirements() -> list[str]:
    try:
        return metadata.requires("ludus") or []
    except metadata.PackageNotFoundError:  # run from its sources, not installed
        return []


def extra_of(package: str) -> str | None:
    """The extra that brings a package; of several the last, because torch is in `sb3` before `train`."""
    found = [extra for extra, names in packages().items() if extra and package in names]
    return found[-1] if found else None


def fix(package: str) -> str:
    """How to install a package of ours."""
    extra = extra_of(package)
    if extra is None:
        return f"pip install {package}"
    return f"pip install -c constraints.txt -e '.[{extra}]' in the project's folder"


def missing(what: str, package: str) -> Usage:
    """The error for something that needs a package that isn't there."""
    return Usage(f"{what} needs {package}: {fix(package)}")


def explain(error: ModuleNotFoundError, what: str = "this") -> Usage | None:
    """The error for a module that an extra brings; None for any other module."""
    module = (error.name or "").partition(".")[0]
    package = PACKAGE_OF.get(module, module.replace("_", "-"))
    return missing(what, package) if extra_of(package) else None
