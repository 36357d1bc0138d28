"""What all pages have in common: header, navigation, light and dark, colours and the style of plain elements.

There is no Tailwind: pages use the classes and variables of static/frame.css, which come with the page, so
that nothing moves while it loads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nicegui import ui

from ludus.ui.web.site import THEME

STATIC = Path(__file__).parent / "static"
LINKS = {"Runs": "/", "Compare": "/compare", "Play": "/play", "Watch": "/watch"}
TOGGLE = """() => {
    const dark = !Quasar.Dark.isActive;
    Quasar.Dark.set(dark);
    document.getElementById("nicegui-color-scheme").setAttribute("content", dark ? "dark" : "light");
    fetch("/theme", {method: "POST", body: dark ? "dark" : "light"});
}"""


@contextmanager
def page_frame(title: str) -> Iterator[None]:
    """Around a page's content; title: of the browser's tab, and the page's first heading"""
    client = ui.context.client
    client.title = f"{title} - Ludus"
    client.content.classes("frame")
    ui.add_css(STATIC / "frame.css")
    ui.add_head_html(f"<script>{(STATIC / 'frame.js').read_text()}</script>")
    ui.dark_mode({"dark": True, "light": False}.get(client.request.cookies.get(THEME, "")))
    with ui.element("header").classes("top"):
        ui.link("Skip to the content", "#content").classes("skip")
        ui.link("Ludus", "/").classes("brand")
        with ui.element("nav").props('aria-label="Pages"'):
            for name, place in LINKS.items():
                link = ui.link(name, place)
                if _leads_to(place, client.request.url.path):
                    link.props('aria-current="page"')
        switch = ui.element("button").classes("plain").props('type=button aria-label="Switch light and dark"')
        switch.on("click", js_handler=TOGGLE)
        with switch:
            ui.html('<span aria-hidden="true">◐</span>', sanitize=False, tag="span")
    with ui.element("main").props("id=content tabindex=-1"):
        with ui.element("h1"):
            ui.html(_escaped(title), sanitize=False, tag="span")
        yield


def _leads_to(place: str, path: str) -> bool:
    if place == "/":
        return path == "/" or path.startswith("/run/")
    return path == place or path.startswith(f"{place}/")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
