"""From a run's page to a game against its agent."""

from typing import Any
from urllib.parse import quote, urlencode

from ludus import games
from ludus.config import Config
from ludus.ui.web.sittings import RUN


def play_link(name: str, config: Config) -> dict[str, Any]:
    """Where the agent of a run can be played, or why it can't be. name: of the run"""
    game = config.game
    if not games.has_page(game):
        return {
            "href": "",
            "text": f"{game} has no page to play on: only games that come with Ludus have one.",
        }
    rules = config.switches if games.find(game).page == "rules" else {}  # others play as they were trained
    asked = {rule: value for rule, value in rules.items() if isinstance(value, str | int | float)}
    query = urlencode({**asked, "against": f"{RUN}{name}"}, quote_via=quote)
    alone = games.find(game).page == "live"
    return {
        "href": f"/play/{quote(game)}?{query}",
        "text": "Watch this agent play" if alone else "Play against this agent",
    }
