"""Heard: the protocol lines and requests of one battle, as a table of one row has said them."""

import json
from typing import Any

from ludus.games.pokemon.replay import EVERYTHING
from ludus.games.pokemon.table import PokemonTable

SIDES = ("p1", "p2")
FIRST = 0
"""The battle that is listened to: after its end the table has begun another."""


class Heard:
    def __init__(self, table: PokemonTable) -> None:
        """table: of one row, with lines"""
        self.table = table
        self.log: list[str] = []  # everything, also what is hidden from one of the seats
        self.lines: list[list[str]] = [[], []]  # by seat
        self.requests: list[dict[str, Any]] = [{}, {}]  # by seat, the newest

    def take(self) -> None:
        """Take what the table has said since the last time."""
        for _, battle, channel, line in self.table.said:
            if battle != FIRST:
                continue
            if channel == EVERYTHING:
                self.log.append(line)
            elif line.startswith("|request|"):
                self.requests[channel] = json.loads(line.removeprefix("|request|"))
            else:
                self.lines[channel].append(line)
        self.table.said.clear()
