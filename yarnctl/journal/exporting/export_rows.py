"""ExportRows: what one line of a journal adds to the tables of an export.

Instants are ``timestamp[us, UTC]`` (Spark rejects nanoseconds), spans are integers in ms. ``line`` is the
journal's line, the key of a row with its place in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from yarnctl.deciding import records
from yarnctl.deciding.case import RefusedJob, RefusedTask
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.loss_budget import Charge, LossBudget
from yarnctl.deciding.order import verb_of
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import Settings
from yarnctl.journal.file import Line
from yarnctl.journal.rendering import said, text

Kind = Literal["decisions", "orders", "transitions", "rejections", "charges", "looks"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MINUTE_MS = 60_000
UNNAMED = records.ApplicationName("", "", "")

COLUMNS: Mapping[Kind, Mapping[str, str]] = {
    "decisions": {
        "line": "int64", "at": "instant", "decision": "int64", "application": "string", "name": "string",
        "user": "string", "queue": "string", "label": "string", "pending": "int64", "placed": "int64",
        "promised": "int64", "shortfall": "int64", "chosen": "int64", "unmet": "int64", "code": "string",
        "reason": "string", "would": "bool",
    },
    "orders": {
        "line": "int64", "at": "instant", "order": "string", "decision": "int64", "requester": "string",
        "requester_user": "string", "requester_queue": "string", "victim": "string", "victim_user": "string",
        "victim_queue": "string", "attempt": "string", "container": "string", "node": "string",
        "memory_mib": "int64", "vcores": "int64", "serves": "int64", "verb": "string", "lever": "string",
        "predicted_free_ms": "int64", "predicted_lost_ms": "int64", "predicted_overhead_ms": "int64",
        "remaining_ms": "int64", "would": "bool", "predicted_bound_ms": "int64",
    },
    "transitions": {
        "line": "int64", "at": "instant", "order": "string", "source": "string", "event": "string",
        "target": "string", "code": "string", "reason": "string", "container": "string",
        "application": "string", "keys_done": "int64",
    },
    "rejections": {
        "line": "int64", "at": "instant", "decision": "int64", "requester": "string", "queue": "string",
        "kind": "string", "application": "string", "attempt": "string", "node": "string", "code": "string",
        "reason": "string",
    },
    "charges": {
        "line": "int64", "at": "instant", "order": "string", "task": "string", "queue": "string",
        "user": "string", "lever": "string", "memory_mib": "int64", "lost_ms": "int64",
        "lost_mib_ms": "int64", "saved_ms": "int64", "event": "string",
    },
    "looks": {
        "line": "int64", "last_line": "int64", "at": "instant", "looks": "int64", "snapshots": "int64",
        "unreachable": "int64", "facts": "int64", "jobs": "int64", "tasks": "int64",
    },
}  # fmt: skip
"""The columns of each table. ``instant`` is ``timestamp[us, UTC]``."""


class Row(NamedTuple):
    """One row of a table; ``values`` are in the order of its columns, instants in us."""

    kind: Kind
    values: tuple[Any, ...]


class ExportRows:
    """Makes the rows of lines that are read in order, from the journal's begin or from a ``state`` on."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._losses = LossBudget()
        self._minute: list[int] | None = None  # the last row of looks, which is not complete yet

    def of(self, line: Line) -> Iterator[Row]:
        """Yield the rows that one more line completes."""
        record, number = line.record, line.number
        if isinstance(record, records.State):
            yield from self.rest()
            header = record.fresh or record.header
            self._settings = Settings() if header is None else header.settings
            self._losses = LossBudget(record.ledger.losses)
        elif isinstance(record, records.Header):
            self._settings = record.settings
        elif isinstance(record, records.Decision):
            yield from self._decided(number, record)
        elif isinstance(record, records.Transition):
            yield from self._moved(number, record)
        elif isinstance(record, records.Refusal):
            yield _refused(number, record)
            trigger = record.trigger
            yield from _others(number, record, trigger, None)
        elif isinstance(record, Observed):
            yield from self._observed(number, record)

    def rest(self) -> Iterator[Row]:
        """Yield the minute of looks that has begun; the next look begins another row."""
        if self._minute is not None:
            yield Row("looks", tuple(self._minute))
            self._minute = None

    def _observed(self, number: int, observed: Observed) -> Iterator[Row]:
        at_us = observed.at_ms // MINUTE_MS * MINUTE_MS * 1000
        if self._minute is not None and self._minute[2] != at_us:
            yield from self.rest()
        if self._minute is None:
            self._minute = [number, number, at_us, *[0] * 6]
        self._minute[1] = number
        sums = (
            1,
            observed.change is not None,
            observed.cluster == "unreachable",
            len(observed.facts),
            len(observed.tasks),
            sum(map(len, observed.tasks.values())),
        )
        for place, amount in enumerate(sums, 3):
            self._minute[place] += amount

    def _decided(self, number: int, record: records.Decision) -> Iterator[Row]:
        trigger, at_us, would = record.trigger, record.at_ms * 1000, self._settings.observe_only
        own = record.names.get(trigger.application, UNNAMED)
        yield Row(
            "decisions",
            (
                number, at_us, record.number, trigger.application, own.name, own.user, trigger.queue,
                trigger.label, trigger.pending, trigger.placed, trigger.promised, trigger.shortfall,
                len(record.orders), record.unmet, code(trigger.why), text(trigger.why), would,
            ),
        )  # fmt: skip
        for order, pick, pull in zip(record.orders, record.picks, record.pulls, strict=True):
            task, victim = pick.task, record.names.get(pick.application, UNNAMED)
            lever = None if pull is None else pull.lever
            spans = (None,) * 3 if lever is None else (lever.free_in_ms, lever.lost_ms, lever.overhead_ms)
            yield Row(
                "orders",
                (
                    number, at_us, order, record.number, trigger.application, own.user, trigger.queue,
                    pick.application, victim.user, victim.queue, task.attempt, task.container, task.node,
                    task.size[0], task.size[1], pick.serves, verb_of(task, self._settings, pull),
                    None if lever is None else lever.kind, *spans,
                    task.remaining_ms if task.remaining_ms >= 0 else None, would, record.bound_ms.get(order),
                ),
            )  # fmt: skip
            self._losses.charge(order, record.at_ms, task.size, pull, task.remaining_ms)
            if order in self._losses.charges:
                yield _charge(number, record.at_ms, self._losses.charges[order], 0, "charged")
        yield from _others(number, record, trigger, record.number)

    def _moved(self, number: int, record: records.Transition) -> Iterator[Row]:
        at_us, why = record.at_ms * 1000, record.why
        yield Row(
            "transitions",
            (
                number, at_us, record.order, record.source, record.event, record.target,
                None if why is None else code(why), said(why) or None, record.container or None,
                record.application or None, record.keys_done if record.keys_done >= 0 else None,
            ),
        )  # fmt: skip
        before = self._losses.charges.get(record.order)
        if before is not None:
            self._losses.moved(record.order, record.event, record.at_ms)
            after = self._losses.charges.get(record.order, before._replace(lost_ms=0))
            if after != before:
                event = "raised" if after.lost_ms > before.lost_ms else "dropped"
                yield _charge(number, record.at_ms, after, before.lost_ms, event)


def _charge(number: int, at_ms: int, charge: Charge, before_ms: int, event: str) -> Row:
    """Return what a charge changes: the sum over an order's rows is its charge."""
    lost_ms = charge.lost_ms - before_ms
    return Row(
        "charges",
        (
            number, at_ms * 1000, charge.order, charge.task, charge.queue, charge.user, charge.kind,
            charge.memory_mib, lost_ms, lost_ms * charge.memory_mib, charge.saved_ms, event,
        ),
    )  # fmt: skip


def _refused(number: int, record: records.Refusal) -> Row:
    trigger, why = record.trigger, record.why
    first = (number, record.at_ms * 1000, None, trigger.application, trigger.queue, "request")
    return Row("rejections", (*first, trigger.application, None, None, code(why), text(why)))


def _others(
    number: int, record: records.Decision | records.Refusal, trigger: records.Trigger, decision: int | None
) -> Iterator[Row]:
    """Yield the jobs and tasks that were considered and not chosen."""
    begin = (number, record.at_ms * 1000, decision, trigger.application, trigger.queue)
    others: Iterable[RefusedJob | RefusedTask] = (*record.refused_jobs, *record.refused_tasks)
    for one in others:
        what: tuple[str, str, str | None, str | None]
        if isinstance(one, RefusedTask):
            what = ("task", one.application, one.attempt, one.node or None)
        else:
            what = ("application", one.application, None, None)
        yield Row("rejections", (*begin, *what, one.why, None))


def counted(records_read: Iterable[Record]) -> dict[Kind, int]:
    """Return how many rows of each table some records have, by counting the records; looks as they are."""
    counts: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for record in records_read:
        counts["decisions"] += isinstance(record, records.Decision)
        counts["transitions"] += isinstance(record, records.Transition)
        counts["looks"] += isinstance(record, Observed)
        if isinstance(record, records.Decision):
            counts["orders"] += len(record.orders)
        if isinstance(record, records.Decision | records.Refusal):
            counts["rejections"] += len(record.refused_jobs) + len(record.refused_tasks)
            counts["rejections"] += isinstance(record, records.Refusal)
    return counts
