"""OwnProcesses: a process for each sitting whose game lives in one, such as a simulator or an emulator.

Bounded, and ended when nobody has looked at the sitting for a while. What it started ends with it.
"""

import asyncio
import time
from collections.abc import Callable

from ludus.core.errors import Failure
from ludus.ui.web.workers import Workers

LINGER_S = 10.0
"""For a page that is loaded anew."""
LOOK_S = 1.0


class OwnProcesses:
    def __init__(self, most: int, linger_s: float = LINGER_S) -> None:
        self.most, self.linger_s = most, linger_s
        self._workers: dict[str, Workers] = {}
        self._watched: dict[str, Callable[[], bool]] = {}
        self._left: dict[str, float] = {}
        """Since when nobody looks at a sitting."""
        self._sweeping: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._workers)

    def of(self, name: str, engine: str, is_watched: Callable[[], bool]) -> Workers:
        """The process of a sitting, which starts when it is first asked something."""
        if self._closed:
            raise Failure("the page is being closed")
        if name not in self._workers:
            self._make_room()
            self._workers[name], self._watched[name] = Workers(1, engine=engine), is_watched
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep())
        return self._workers[name]

    def end(self, name: str) -> None:
        """With all that it started. The sitting can go on in another."""
        if workers := self._forget(name):
            workers.close()

    def _forget(self, name: str) -> Workers | None:
        self._watched.pop(name, None)
        self._left.pop(name, None)
        return self._workers.pop(name, None)

    def close(self) -> None:
        """For good: sittings that still go on get no other process."""
        self._closed = True
        for name in list(self._workers):
            self.end(name)

    def _make_room(self) -> None:
        if len(self._workers) < self.most:
            return
        idle = [name for name, is_watched in self._watched.items() if not is_watched()]
        if not idle:
            raise Failure(f"{self.most} such games are being played, which is the most: try again later")
        self.end(idle[0])

    async def _sweep(self) -> None:
        while self._workers:
            await asyncio.sleep(min(LOOK_S, self.linger_s))
            now = time.monotonic()
            for name, is_watched in list(self._watched.items()):
                if is_watched():
                    self._left.pop(name, None)
                elif now - self._left.setdefault(name, now) >= self.linger_s and (
                    workers := self._forget(name)
                ):
                    await asyncio.to_thread(workers.close)
