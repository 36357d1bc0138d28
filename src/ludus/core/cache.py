"""Where we keep what can be made again: compiled code, and games of the web page that may be gone on with."""

import os
from pathlib import Path


def cache_home() -> Path:
    home = os.environ.get("LUDUS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(home or Path.home() / ".cache") / "ludus"
