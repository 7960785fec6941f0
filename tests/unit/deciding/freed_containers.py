"""The records of orders whose containers were received, by the requester or by others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.demand import Unmet
from yarnctl.deciding.records import Decision, Record, Transition, Trigger
from yarnctl.units import Resources


def order(number: int) -> str:
    return f"o-{number:06d}"


def decided(queue: str, numbers: Iterable[int], application: str = "p-1") -> Decision:
    """One decision for an application of ``queue`` with these orders."""
    return Decision(
        number=1, at_ms=0, trigger=Trigger(application, queue, (), 3, 0, 0, 3, Unmet()),
        total=Resources(1, 1),
        orders=tuple(map(order, numbers)), groups=(), picks=(), handed_back=(), unmet=0, refused_jobs=(),
        refused_tasks=(),
    )  # fmt: skip


def taken(number: int, target: Literal["granted", "misdirected"], at_ms: int | None = None) -> Transition:
    return Transition(
        order=order(number), source="freed", event=target, target=target,
        at_ms=number if at_ms is None else at_ms, application="x",
    )  # fmt: skip


def freed(queue: str, number: int, outcome: Literal["granted", "misdirected"], at_ms: int) -> list[Record]:
    """One order for ``queue``, from its decision to its end."""
    return [decided(queue, [number]), taken(number, outcome, at_ms)]


def misdirect(misdirection: Misdirection, queue: str) -> None:
    """Let other applications receive three containers that were freed for ``queue``."""
    for number in (901, 902, 903):
        misdirection.apply(freed(queue, number, "misdirected", 0))
