"""Starting jobs: what hurried jobs will ask for first is put into the snapshot while their masters start.

Law: what is foreseen, and for how long, is the deciding half's (``deciding/foresight``); here it gets a job's
name and user, and the size that the scheduler would make of the ask. Off (``ahead_max`` 0) it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from yarnctl.attach.connection.connection import Connection
from yarnctl.deciding.foresight import Prediction
from yarnctl.deciding.model import ApplicationView, ContainerAsk, Snapshot
from yarnctl.units import Resources

LEAST_KEYS = ("yarn.scheduler.minimum-allocation-mb", "yarn.scheduler.minimum-allocation-vcores")
LEAST = Resources(1024, 1)
"""YARN's defaults of the smallest allocation, of which every ask is made a multiple (vcores: at least)."""


class StartingJob(NamedTuple):
    """A job whose master starts, and what it is known by."""

    application: str
    name: str
    user: str


FirstAsksOf = Callable[[StartingJob], tuple[ContainerAsk, ...]]
"""Says what a starting job will ask for first, in the sizes that it asks for; (): not known (yet)."""


class PredictedDemand:
    """Adds to snapshots what starting jobs will ask for."""

    def __init__(self, link: Connection, first_asks: FirstAsksOf) -> None:
        settings = link.settings
        self._link = link
        self._first_asks = first_asks
        self._prediction = Prediction(settings.predicted_max, settings.preempting_queues, self._predicted)
        self._wanted = settings.predicted_max > 0

    @property
    def expected(self) -> bool:
        """Say whether a job is still to ask for itself, so that the cheap gate is not to be trusted."""
        return self._prediction.expects

    def added(self, snapshot: Snapshot, now_ms: int) -> Snapshot:
        """Return a snapshot with what is foreseen."""
        if not self._wanted:
            return snapshot
        shown = self._prediction.predict(snapshot.applications, now_ms)
        return msgspec.structs.replace(snapshot, applications=shown)

    def _predicted(self, view: ApplicationView) -> tuple[ContainerAsk, ...]:
        row = self._link.rows.get(view.application)
        if row is None:
            return ()
        asks = self._first_asks(StartingJob(row.application, row.name, row.user))
        known = self._link.configuration or {}
        return tuple(ask._replace(size=normalised(ask.size, known)) for ask in asks)


def normalised(size: Resources, configuration: Mapping[str, str]) -> Resources:
    """Return what the capacity scheduler makes of an ask: memory in multiples of the smallest allocation."""
    told = [configuration.get(key, "").strip() for key in LEAST_KEYS]
    least = [
        int(text) if text.isascii() and text.isdigit() and int(text) else default
        for text, default in zip(told, LEAST, strict=True)
    ]
    return Resources(-(-size.memory_mib // least[0]) * least[0], max(size.vcores, least[1]))
