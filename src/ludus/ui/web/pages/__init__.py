"""The pages: each module here defines `register(site)`, which declares its pages. All are found by name."""

import importlib
import pkgutil

from ludus.ui.web.site import Site


def register_all(site: Site) -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}").register(site)
