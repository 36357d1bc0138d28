"""Settings for console games, as plain values that a configuration file could hold as well."""

from typing import Any

from ludus.retro.catalog import OWN_GAME

GEMFALL: dict[str, Any] = {
    "rows": 8,
    "options": {"buttons": ["A", "LEFT+A", "RIGHT+A"]},  # nothing is lost by always shooting
}

JACKAL: dict[str, Any] = {
    "rows": 8,
    "checkpoint_minutes": 5,
    "options": {
        # The integration pays 100 per change of its score digits; a hundredth of that keeps returns near 1.
        "integration": 0.01,
        "life_lost": -5.0,
        "life_gained": 5.0,
        "time": -0.001,
        "idle_steps": 900,  # a minute
        "sticky": 0.1,
        # The jeep drives in eight directions; A fires forward, B to the north.
        "buttons": [
            "", "UP", "DOWN", "LEFT", "RIGHT", "UP+LEFT", "UP+RIGHT", "DOWN+LEFT", "DOWN+RIGHT",
            "A", "B", "UP+A", "DOWN+A", "LEFT+A", "RIGHT+A", "UP+B", "DOWN+B", "LEFT+B", "RIGHT+B",
            "UP+A+B", "DOWN+A+B", "LEFT+A+B", "RIGHT+A+B",
        ],
    },
}  # fmt: skip

PRESETS: dict[str, dict[str, Any]] = {OWN_GAME: GEMFALL, "Jackal-Nes-v0": JACKAL}
"""By game: `rows` (games at once), `options` (`Options` of its table) and how often to save."""
