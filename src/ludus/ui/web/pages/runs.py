"""The first page: all runs."""

from nicegui import ui

from ludus.store.reader import find_runs
from ludus.ui.web.frame import page_frame
from ludus.ui.web.site import Site


def register(site: Site) -> None:
    @ui.page("/")
    def runs() -> None:
        with page_frame("Runs"):
            for folder in find_runs(site.runs):
                ui.label(folder.name)
