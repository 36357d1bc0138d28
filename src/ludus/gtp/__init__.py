"""Blokus by the Go Text Protocol (GTP 2), as Pentobi speaks it: Ludus as an engine, and engines as opponents.

`engine.py` answers commands, `client.py` asks another program, `match.py` plays against it, and `pentobi.py`
knows what Pentobi calls things. Knows rules and bots, not how bots came to be.
"""
