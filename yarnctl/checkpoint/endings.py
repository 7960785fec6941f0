"""Endings: what the ResourceManager, or else the history server, says of an application's end.

Law: reading only; a source that does not answer, or does not know, gives an ending without a state: unknown
is not finished. The fields are those of GET /ws/v1/cluster/apps/{id} and of the history server's
/ws/v1/history/mapreduce/jobs/{id} (facts, section 1.2). ``finishedTime`` is 0 without the right VIEW_APP.
"""

from __future__ import annotations

import msgspec
from msgspec import field

from yarnctl.checkpoint.holding import JOB
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.problems import Missing
from yarnctl.hadoop.resource_manager import ROOT
from yarnctl.hadoop.shapes import One
from yarnctl.hadoop.transport import Transport

HISTORY = "/ws/v1/history/mapreduce/jobs"


class Ending(msgspec.Struct, frozen=True):
    """``state`` "" : unknown, ``why`` says so. ``ended_at_ms`` 0: not ended, or not told."""

    state: str = ""
    ended_at_ms: int = 0
    user: str = ""
    why: str = ""


class _Application(msgspec.Struct, frozen=True):
    application: str = field(name="id")
    state: str = ""
    user: str = ""
    finished_at_ms: int = field(name="finishedTime", default=0)


class _Job(msgspec.Struct, frozen=True):
    job: str = field(name="id")
    state: str = ""
    user: str = ""
    finished_at_ms: int = field(name="finishTime", default=0)


_APPLICATION = One(_Application, "app")
_JOB = One(_Job, "job")


class Endings:
    """Asks the ResourceManager, then the history server if there is one; remembers what is unreachable."""

    def __init__(self, manager: Transport, history: Transport | None = None) -> None:
        self._manager: Transport | None = manager
        self._history = history
        self.unreachable: list[str] = []

    def of(self, application: str) -> Ending:
        """Return what is known of an application's end."""
        number = application.removeprefix("application_")
        if not JOB.fullmatch(f"job_{number}"):
            return Ending(why="no application's id")
        seen = self._ask_manager(application)
        if seen.state and (seen.ended_at_ms or self._history is None):
            return seen
        told = self._ask_history(f"job_{number}")
        return told if told.state else msgspec.structs.replace(seen, why=seen.why or told.why)

    def _ask_manager(self, application: str) -> Ending:
        if self._manager is None:
            return Ending(why="the ResourceManager does not answer")
        try:
            row = self._manager.read(f"{ROOT}/apps/{application}", _APPLICATION)
        except Missing:
            return Ending(why="the ResourceManager does not know it (any more)")
        except YarnctlError as error:
            self.unreachable.append(str(error))
            self._manager = None
            return Ending(why="the ResourceManager does not answer")
        if row.application != application:
            return Ending(why="the ResourceManager speaks of another application")
        return Ending(row.state, row.finished_at_ms, row.user)

    def _ask_history(self, job: str) -> Ending:
        if self._history is None:
            return Ending()
        try:
            row = self._history.read(f"{HISTORY}/{job}", _JOB)
        except Missing:
            return Ending(why="neither ResourceManager nor history server know it")
        except YarnctlError as error:
            self.unreachable.append(str(error))
            self._history = None
            return Ending(why="the history server does not answer")
        if row.job != job:
            return Ending(why="the history server speaks of another job")
        return Ending(row.state, row.finished_at_ms, row.user)
