"""Stop: somebody asked the training to end, by Ctrl-C or SIGTERM. It saves first; the second time it goes."""

import signal
import threading
import time
from typing import Any

PATIENCE_S = 3.0
"""How long workers may take to end their blocks once a stop was asked for."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Use as a context."""

    def __init__(self) -> None:
        self.asked = ""
        self._asked_at = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in SIGNALS}
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def overdue(self) -> bool:
        """Whether to stop waiting for blocks that were begun."""
        return bool(self.asked) and time.monotonic() - self._asked_at > PATIENCE_S

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked, self._asked_at = signal.Signals(number).name, time.monotonic()
