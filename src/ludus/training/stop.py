"""Stop: somebody asked the training to end, by Ctrl-C or SIGTERM. It saves first; the second time it goes."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 3.0
"""How long workers may take to end their blocks once a stop was asked for."""
TELL_S = 1.0
"""How long a screen may take to show that a stop was heard."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Use as a context."""

    def __init__(self, tell: Callable[[], None]) -> None:
        """tell: called the first time, in a thread of its own: who waits for a game may wait for ever"""
        self.asked = ""
        self._tell, self._heard = tell, threading.Event()
        self._teller = threading.Thread(target=self._tell_once, daemon=True)
        self._asked_at = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            self._teller.start()  # a signal can come where no thread could be started
            self._before = {number: signal.signal(number, self._ask) for number in SIGNALS}
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._heard.set()
        if self._teller.is_alive():
            self._teller.join(TELL_S)

    def overdue(self) -> bool:
        """Whether to stop waiting for blocks that were begun."""
        return bool(self.asked) and time.monotonic() - self._asked_at > PATIENCE_S

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked, self._asked_at = signal.Signals(number).name, time.monotonic()
        self._heard.set()

    def _tell_once(self) -> None:
        self._heard.wait()
        if self.asked:
            self._tell()
