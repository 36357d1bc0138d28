"""What the process of one sitting does whose game runs in real time: it plays on and gives pictures."""

from functools import partial
from pathlib import Path

from ludus.core.view import Json, Live
from ludus.ui.web.deal import PERSON, Deal
from ludus.ui.web.table_engine import opened, seat_player

_playing: tuple[Deal, str, Live] | None = None


def begin(deal: Deal, recording: str) -> Json:
    """What a page needs to know of the game. recording: a file to play again, instead of a new game"""
    live = _live(deal, recording)
    return {"buttons": list(live.buttons), "picture_s": live.picture_s}


def advance(deal: Deal, recording: str, held: tuple[str, ...]) -> tuple[bytes, Json, bool]:
    """The next picture, what is known of the game, and whether it is over."""
    live = _live(deal, recording)
    goes_on = live.advance(held)
    return live.picture(), live.facts(), not goes_on


def _live(deal: Deal, recording: str) -> Live:
    global _playing
    if _playing is None or _playing[:2] != (deal, recording):
        if _playing is not None:
            _playing[2].close()
        _playing = None
        _playing = deal, recording, _begun(deal, recording)
    return _playing[2]


def _begun(deal: Deal, recording: str) -> Live:
    game = opened(deal)
    if recording:
        return game.replay(Path(recording))
    player = deal.players[0]
    make_player = partial(seat_player, game, player=player, seed=deal.seed, seat=0)
    return game.make_live(None if player == PERSON else make_player, deal.seed)
