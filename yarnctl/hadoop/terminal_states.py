"""The end of an application as the ResourceManager tells it, and of its job as the history server does.

Law: each function is one question and returns our record. ``finishedTime`` is 0 without the right VIEW_APP
(facts, section 1.2); the history server calls it ``finishTime``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from yarnctl.hadoop.http.problems import BadAnswer, explain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ROOT
from yarnctl.hadoop.wire.decoders import One

HISTORY = "/ws/v1/history/mapreduce/jobs"
TERMINAL = ("FINISHED", "FAILED", "KILLED", "SUCCEEDED", "ERROR")
"""YARN's states of an application and the history server's of a job that nothing follows."""


class End(msgspec.Struct, frozen=True):
    """``state`` in the daemon's own word; ``ended_at_ms`` 0: not ended, or not told."""

    name: str
    state: str
    user: str
    ended_at_ms: int


class _Application(msgspec.Struct, frozen=True):
    name: str = field(name="id")
    state: str = ""
    user: str = ""
    finished_at_ms: int = field(name="finishedTime", default=0)


class _Job(msgspec.Struct, frozen=True):
    name: str = field(name="id")
    state: str = ""
    user: str = ""
    finished_at_ms: int = field(name="finishTime", default=0)


_APPLICATION = One(_Application, "app")
_JOB = One(_Job, "job")


def application_end(manager: Transport, application: str) -> End:
    """Ask a ResourceManager; raises as the transport does, BadAnswer if it speaks of another one."""
    return _told(manager, f"{ROOT}/apps/{application}", _APPLICATION, application)


def job_end(history: Transport, job: str) -> End:
    """Ask a history server; raises as the transport does, BadAnswer if it speaks of another one."""
    return _told(history, f"{HISTORY}/{job}", _JOB, job)


def _told(to: Transport, path: str, shape: One[Any], name: str) -> End:
    row: _Application | _Job = to.read(path, shape)
    if row.name != name:
        raise BadAnswer(explain(to.pinned + path, "it speaks of another one", name))
    return End(row.name, row.state, row.user, row.finished_at_ms)
