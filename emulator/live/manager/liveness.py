"""Silence: who has not been heard of for so long that it counts as gone.

Law: one event for all. A heartbeat only notes its instant; the event looks at everybody and comes back
when the one that has been silent for longest would be due, so that a loss is told at its very instant.
When *this* process was held up (it stood still, the machine slept), what others said meanwhile still waits to
be read: nobody is lost then, and they get some time to be heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

After = Callable[[int, Callable[[None], object], None], None]


class Silence:
    """``deadlines_ms`` yields the instants at which somebody would be lost; ``lose`` loses whoever is due.

    ``after`` puts an event that many ms ahead; ``now_ms`` is kernel time, ``lag_ms`` how far it is behind the
    clock. An event that comes ``late_ms`` late is put off by ``grace_ms``. Nobody to watch: no event.
    """

    def __init__(
        self,
        deadlines_ms: Callable[[], Iterable[int]],
        lose: Callable[[], None],
        after: After,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int],
        late_ms: int,
        grace_ms: int,
    ) -> None:
        self._deadlines_ms = deadlines_ms
        self._lose = lose
        self._after = after
        self._now_ms = now_ms
        self._lag_ms = lag_ms
        self._late_ms = late_ms
        self._grace_ms = grace_ms
        self._due_ms: int | None = None

    def watch(self) -> None:
        """Look when the first would be due; call when there is somebody new."""
        due_ms = min(self._deadlines_ms(), default=None)
        if due_ms is not None and (self._due_ms is None or due_ms < self._due_ms):
            self._due_ms = due_ms
            self._after(max(1, due_ms - self._now_ms()), self._look, None)

    def _look(self, _: None) -> None:
        if self._due_ms is None or self._now_ms() < self._due_ms:
            return  # an earlier event has looked, and put a later one in
        lag_ms = self._lag_ms()
        if lag_ms >= self._late_ms:
            self._due_ms = self._now_ms() + lag_ms + self._grace_ms
            self._after(lag_ms + self._grace_ms, self._look, None)
            return
        self._due_ms = None
        self._lose()
        self.watch()
