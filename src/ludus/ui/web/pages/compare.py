"""Several runs over each other."""

from fastapi import Request
from nicegui import ui

from ludus.ui.web.frame import STATIC, page_frame
from ludus.ui.web.hub import RUN, hub_of
from ludus.ui.web.parts import CurvesView
from ludus.ui.web.site import Site

MOST = 8
"""Runs in one picture: as many as there are colours."""


def register(site: Site) -> None:
    hub = hub_of(site)

    @ui.page("/compare")
    def compare(request: Request) -> None:
        ui.add_css(STATIC / "runs.css")
        known = hub.listing.names()[::-1]
        chosen = [name for name in dict.fromkeys(request.query_params.getlist("run")) if name in known][:MOST]
        for name in chosen:
            hub.subscribe(ui.context.client, RUN + name)
        with page_frame("Compare runs"):
            _choose(known, chosen)
            if len(chosen) > 1:
                CurvesView(chosen)
            else:
                ui.label("Choose two runs at least.").classes("note")


def _choose(known: list[str], chosen: list[str]) -> None:
    """A plain form: it works by keyboard, and its address can be kept."""
    with ui.element("details").props("" if len(chosen) > 1 else "open").classes("panel"):
        with ui.element("summary"):
            ui.label(f"Runs to compare (at most {MOST})")
        with ui.element("form").props('method=get action="/compare"'):
            with ui.element("fieldset").classes("choices"):
                with ui.element("legend").classes("hidden"):
                    ui.label("Runs")
                for name in known:
                    with ui.element("label"):
                        box = ui.element("input").props("type=checkbox name=run")
                        box._props["value"] = name
                        if name in chosen:
                            box.props("checked")
                        ui.label(name)
            with ui.element("button").props("type=submit").classes("main"):
                ui.label("Compare")
