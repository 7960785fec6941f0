"""The client of Spark's history server: the executors of an application that has ended, or runs.

Source: https://spark.apache.org/docs/latest/monitoring.html (REST API). Of an application that ran in
``cluster`` mode each attempt has its own path. A preempted container's reason is that of ``YarnAllocator``:
"Container ... was preempted."
"""

from __future__ import annotations

import re

from yarnctl.errors import BadInput
from yarnctl.frameworks.spark import rest
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

DAEMON = "Spark history server"
PREEMPTED = "was preempted"
APPLICATION = OneDecoder(rest.HistoryApplication, owned=True)
APPLICATIONS = ListDecoder(rest.HistoryApplication, owned=True)
EXECUTORS = ListDecoder(rest.HistoryExecutor, owned=True)

_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")


class SparkHistory:
    """One Spark history server. Methods raise Unreachable, Rejected, and Missing for an unknown id."""

    def __init__(self, transport: Transport) -> None:
        self._to = transport

    def applications(self, since_ms: int) -> tuple[rest.HistoryApplication, ...]:
        """Return the applications that have ended since an instant, those of YARN alone."""
        rows = self._to.read("/api/v1/applications", APPLICATIONS, {"status": "completed"})
        return tuple(
            row
            for row in rows
            if _APPLICATION.fullmatch(row.application)
            and max((each.ended_at_ms for each in row.attempts), default=-1) >= since_ms
        )

    def executors(self, application: str) -> tuple[rest.HistoryExecutor, ...]:
        """Return the executors of all attempts of an application, also those that were removed."""
        return tuple(
            executor
            for path in self._attempts(application)
            for executor in self._to.read(f"{path}/allexecutors", EXECUTORS)
        )

    def stages(self, application: str) -> tuple[rest.Stage, ...]:
        """Return the stages of all attempts of an application."""
        return tuple(
            stage
            for path in self._attempts(application)
            for stage in self._to.read(f"{path}/stages", rest.STAGES)
        )

    def settings(self, application: str) -> dict[str, str]:
        """Return the settings in effect; :func:`container_mib` reads an executor's container from them."""
        path = self._attempts(application)[-1]
        return dict(self._to.read(f"{path}/environment", rest.ENVIRONMENT).pairs)

    def _attempts(self, application: str) -> list[str]:
        if not _APPLICATION.fullmatch(application):
            remedy = "use the form application_<time>_<number>"
            raise BadInput(f"id {application[:60]!r}", "not an application id", remedy)
        path = f"/api/v1/applications/{application}"
        attempts = [each.attempt for each in self._to.read(path, APPLICATION).attempts]
        if not attempts:
            raise Missing(f"{self._to.pinned}{path}: no attempt is known")
        return [f"{path}/{attempt}" if attempt else path for attempt in attempts]


_UNITS = {"": 1, "b": 1 / (1 << 20), "k": 1 / 1024, "m": 1, "g": 1024, "t": 1 << 20, "p": 1 << 30}
_SIZE = re.compile(r"([0-9]+)([bkmgtp]?)b?", re.IGNORECASE)


def container_mib(settings: dict[str, str]) -> int:
    """Return an executor's container in MiB: its memory and overhead (Spark's configuration page, YARN).

    The overhead is ``spark.executor.memoryOverhead``, else the larger of 384 MiB and a tenth.
    """
    memory = _mib(settings.get("spark.executor.memory", "1g"))
    factor = settings.get("spark.executor.memoryOverheadFactor", "0.1")
    overhead = settings.get("spark.executor.memoryOverhead")
    try:
        more = _mib(overhead) if overhead else max(384, int(memory * float(factor)))
    except ValueError:
        more = 384
    off_heap = settings.get("spark.memory.offHeap.enabled") == "true"
    return memory + more + (_mib(settings.get("spark.memory.offHeap.size", "0b")) if off_heap else 0)


def _mib(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    return int(int(match[1]) * _UNITS[match[2].lower()]) if match else 0
