"""Parts of pages that live in the browser: each is a Vue component in static/."""

from typing import Any

import nicegui.elements.echart  # noqa: F401  the charts' library, which curves.js imports
from nicegui import ui

from ludus.ui.web.frame import STATIC


class RunsTable(ui.element, component=STATIC / "runs.js"):
    def __init__(self, runs: list[dict[str, Any]], folder: str) -> None:
        super().__init__()
        self._props.update(initial=runs, folder=folder)


class RunView(ui.element, component=STATIC / "run.js"):
    """What is inside of it is its first tab."""

    def __init__(
        self, name: str, told: dict[str, Any], config: list[dict[str, Any]], link: dict[str, Any] | None
    ) -> None:
        """link: to a game against its agent"""
        super().__init__()
        self._props.update(name=name, initial=told, config=config, link=link)


class CurvesView(ui.element, component=STATIC / "curves.js"):
    """Curves of one run, or of several over each other."""

    def __init__(self, runs: list[str]) -> None:
        super().__init__()
        self._props.update(runs=runs)
