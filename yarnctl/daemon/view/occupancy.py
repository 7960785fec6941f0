"""Sample the usage of each role over time, with an interval that grows with the number of samples.

When there are too many samples, every second one is dropped and the spacing doubles, until it is
``SPACING_MAX_MS``. From then on the oldest are dropped. 2,048 samples cover nine hours.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yarnctl.api.cluster_answers import Role
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.settings import Settings
from yarnctl.units import NOTHING, Resources, plus

ROLES: tuple[Role, ...] = ("preempting", "preemptable", "other")

SAMPLES_MAX = 2048
SPACING_MIN_MS = 1_000
SPACING_MAX_MS = 16_000


class RoleUsage(msgspec.Struct, frozen=True):
    """The usage of one class (``used``, in ``containers``), and the number of its pending containers."""

    used: Resources = NOTHING
    containers: int = 0
    pending: int = 0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster by class at one time; ``open_orders``: the number of orders that are not settled."""

    at_ms: int
    total: Resources
    preempting: RoleUsage
    preemptable: RoleUsage
    other: RoleUsage
    open_orders: int


def role_of(view: ApplicationView, settings: Settings) -> Role:
    """Return an application's role by its queue.

    With deadlines, those with a deadline are preempting; with guarantees, those with pending requests.
    """
    if settings.mode == "deadlines":
        return "preemptable" if view.deadline_at_ms is None else "preempting"
    if settings.mode == "guarantees":
        if view.requests and settings.may_preempt(view.queue):
            return "preempting"
        return "preemptable" if settings.may_be_preempted(view.queue) else "other"
    if view.queue in settings.preempting_queues:
        return "preempting"
    return "preemptable" if view.queue in settings.preemptable_queues else "other"


def pending_of(view: ApplicationView) -> int:
    """Return the number of an application's pending containers."""
    return sum(ask.count for ask in view.requests)


def sample_of(snapshot: Snapshot, settings: Settings, at_ms: int, open_orders: int) -> Sample:
    """Add up a snapshot by class."""
    used = dict.fromkeys(ROLES, NOTHING)
    counts = {name: [0, 0] for name in ROLES}
    for view in snapshot.applications:
        role = role_of(view, settings)
        used[role] = plus(used[role], view.used)
        row = counts[role]
        row[0] += view.containers
        if view.requests:
            row[1] += pending_of(view)
    preempting, preemptable, other = (
        RoleUsage(used[role], containers, pending) for role, (containers, pending) in counts.items()
    )
    return Sample(
        at_ms=at_ms,
        total=snapshot.total,
        preempting=preempting,
        preemptable=preemptable,
        other=other,
        open_orders=open_orders,
    )


class Occupancy:
    """The samples so far, oldest first."""

    def __init__(self, samples_max: int = SAMPLES_MAX) -> None:
        self.samples_max = samples_max
        self.spacing_ms = SPACING_MIN_MS
        self._samples: list[Sample] = []
        self._frozen: tuple[Sample, ...] = ()

    def is_due(self, at_ms: int) -> bool:
        """Return whether a sample of this time would be kept."""
        return not self._samples or at_ms - self._samples[-1].at_ms >= self.spacing_ms

    def add(self, sample: Sample) -> None:
        """Keep a sample that is due; drop samples if there are too many."""
        self._samples.append(sample)
        if len(self._samples) > self.samples_max:
            if self.spacing_ms < SPACING_MAX_MS:
                self._samples = self._samples[::2]
                self.spacing_ms *= 2
            else:
                del self._samples[0]
        self._frozen = tuple(self._samples)

    @property
    def samples(self) -> Sequence[Sample]:
        """All samples as an immutable value."""
        return self._frozen
