"""Read how an application ended, from the ResourceManager or else the history server.

A source that does not answer, or does not know the application, gives no state: unknown is not finished. The
time since the end is computed by the slower of the cluster's clock and the local clock.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.checkpoint.contents import JOB
from yarnctl.errors import YarnctlError
from yarnctl.frameworks.mapreduce.history_server import HistoryServer
from yarnctl.hadoop.http.answers import BadAnswer, Missing
from yarnctl.hadoop.http.transport import HISTORY_INFO, MANAGER_INFO, Transport
from yarnctl.hadoop.resource_manager import ResourceManager


class ApplicationEnd(msgspec.Struct, frozen=True):
    """``state`` "": unknown, with the reason in ``why``. ``ended_at_ms`` 0: not ended, or not known.

    ``is_unknown``: the ResourceManager and the history server both answered that they do not know it.
    """

    state: str = ""
    ended_at_ms: int = 0
    user: str = ""
    why: str = ""
    is_unknown: bool = False


class ApplicationEnds:
    """Reads the ResourceManager, then the history server if there is one; notes which is unreachable."""

    def __init__(self, manager: Transport, history: Transport | None = None) -> None:
        self._manager: Transport | None = manager
        self._history = history
        self.unreachable: list[str] = []
        self.has_history = history is not None

    def of(self, application: str) -> ApplicationEnd:
        """Return an application's terminal state, as far as it is known."""
        number = application.removeprefix("application_")
        if not JOB.fullmatch(f"job_{number}"):
            return ApplicationEnd(why="not an application id")
        seen = self._ask_manager(application)
        if seen.state and (seen.ended_at_ms or self._history is None):
            return seen
        told = self._ask_history(f"job_{number}")
        if told.state:
            return told
        is_forgotten = seen.is_unknown and told.is_unknown
        return msgspec.structs.replace(seen, why=told.why or seen.why, is_unknown=is_forgotten)

    def epoch_ms(self) -> int | None:
        """Return when the ResourceManager that answers was started; None: not known."""
        if self._manager is None:
            return None
        try:
            return ResourceManager(self._manager).identify().epoch
        except YarnctlError:
            return None

    def now_ms(self, clock_ms: Callable[[], int]) -> int | None:
        """Return a time not later than now by the clock of any source that answers; None: not known."""
        asked = [(self._manager, MANAGER_INFO), (self._history, HISTORY_INFO)]
        ahead = [to.ahead_ms(path, clock_ms) for to, path in asked if to is not None]
        known = [span for span in ahead if span is not None]
        return clock_ms() + min(0, *known) if known and len(known) == len(ahead) else None

    def _ask_manager(self, application: str) -> ApplicationEnd:
        if self._manager is None:
            return ApplicationEnd(why="the ResourceManager does not answer")
        try:
            end = ResourceManager(self._manager).application_end(application)
            return ApplicationEnd(end.state, end.ended_at_ms, end.user)
        except Missing:
            return ApplicationEnd(
                why="the ResourceManager does not know the application (any more)", is_unknown=True
            )
        except BadAnswer as error:
            return ApplicationEnd(why=f"the ResourceManager's answer cannot be used: {error}"[:300])
        except YarnctlError as error:
            self.unreachable.append(str(error))
            self._manager = None
            return ApplicationEnd(why="the ResourceManager does not answer")

    def _ask_history(self, job: str) -> ApplicationEnd:
        if self._history is None:
            return ApplicationEnd()
        try:
            told = HistoryServer(self._history).job(job)
            return ApplicationEnd(told.state, told.finished_at_ms, told.user)
        except Missing:
            return ApplicationEnd(
                why="neither the ResourceManager nor the history server knows the application",
                is_unknown=True,
            )
        except BadAnswer as error:
            return ApplicationEnd(why=f"the history server's answer cannot be used: {error}"[:300])
        except YarnctlError as error:
            self.unreachable.append(str(error))
            self._history = None
            return ApplicationEnd(why="the history server does not answer")
