"""Inputs: the input of a step as a record, and the observation rebuilt from that record.

Law: a step without a result is not written; the state that unwritten observations left for later steps
is one value, :class:`LookMemory`. The rounds of one decision are kept back until one of them has a result,
and a decision that has begun to be written is written to its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.governor import HelpMemory
from yarnctl.deciding.model import Fact, HeldTime, JobConsent, Observation, TaskView
from yarnctl.deciding.reasons.demand import TriggerReason
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.snapshot_rows import Reader, SnapshotChange, Writer
from yarnctl.units import Resources

Cluster = Literal["seen", "quiet", "unreachable", "not-requested"]
"""How the cluster was observed; an observation without a requested snapshot has a value of its own."""


class Echo(NamedTuple):
    """An application's usage, and the requests that it should still have (``due``: priority, size, count).

    ``given``: containers since its requests were last reliable, which they are again at ``until_ms``.
    ``early``: its requests that were gone before the containers that met them were observed (one is read
    after the other). ``stale``: how many of its requests are stale.
    """

    due: tuple[tuple[int, Resources, int], ...]
    containers: int
    at_ms: int
    given: int = 0
    until_ms: int = 0
    early: int = 0
    stale: int = 0


class Fitting(NamedTuple):
    """Since when an application's requests fit, until the conclusion is due ``within_ms`` later.

    ``containers``: that it held; ``fitting``: of all applications, then. ``requested``: priorities and sizes
    of its requests when they were concluded not to be granted (empty: not concluded). ``in_vain``: a
    container that was freed for it did not reach it.
    """

    since_ms: int
    within_ms: int
    containers: int
    fitting: int
    requested: tuple[tuple[int, Resources], ...] = ()
    in_vain: bool = False


class LookMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``refused``: the reason given last. ``order``: of urgency. ``sent``, ``declined``: priorities.

    ``waiting``: which applications had how many pending containers at ``waiting_at_ms`` (None: not observed).
    ``silent``: which jobs did not answer, since when, and how. ``self_help``: of governed levers.
    ``fitting``: whose requests fit into free capacity.
    """

    refused: Mapping[str, TriggerReason] = {}
    echoes: Mapping[str, Echo] = {}
    order: tuple[str, ...] = ()
    sent: Mapping[str, tuple[int, int]] = {}
    declined: Mapping[str, tuple[int, int]] = {}
    waiting: Mapping[str, int] | None = None
    waiting_at_ms: int = 0
    silent: Mapping[str, tuple[int, Reason]] = {}
    self_help: HelpMemory | None = None
    fitting: Mapping[str, Fitting] = {}


class Observed(msgspec.Struct, frozen=True, tag="observed", kw_only=True, omit_defaults=True):
    """The input of one step.

    ``since_ms``: the step before. ``as_of_ms`` None: ``at_ms``. ``change`` None: there was no snapshot.
    ``tasks``: of the jobs that answered, what a choice has read; a job that answered before may add to it.
    ``memory``: the state that unwritten observations left (None: none since the last written step).
    ``group_ms``, ``bound_ms``: of the attempts in ``tasks``.
    ``held`` and ``consents``: with a snapshot, those that differ from what was written last;
    ``held_gone`` (payer and window) and ``consents_gone``: those that are no longer there.
    """

    at_ms: int
    cluster: Cluster  # no default: msgspec leaves one out by identity, and a decoded string is another object
    since_ms: int = 0
    as_of_ms: int | None = None
    change: SnapshotChange | None = None
    tasks: Mapping[str, tuple[TaskView, ...]] = {}
    unreachable: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    memory: LookMemory | None = None
    held: tuple[HeldTime, ...] = ()
    consents: tuple[JobConsent, ...] = ()
    held_gone: tuple[tuple[str, int], ...] = ()
    consents_gone: tuple[str, ...] = ()
    group_ms: Mapping[str, int] = {}
    bound_ms: Mapping[str, int] = {}


class InputReader:
    """Rebuilds what steps were given from the changes that were written."""

    def __init__(self) -> None:
        self.rows = Reader()
        self.held: dict[tuple[str, int], HeldTime] = {}
        self.consents: dict[str, JobConsent] = {}

    def observation(self, observed: Observed) -> Observation:
        """Return the observation of a step."""
        snapshot = None if observed.change is None else self.rows.snapshot(observed.change)
        for key in observed.held_gone:
            self.held.pop(key, None)
        for name in observed.consents_gone:
            self.consents.pop(name, None)
        self.held.update(((row.payer, row.window_ms), row) for row in observed.held)
        self.consents.update((row.application, row) for row in observed.consents)
        return Observation(
            now_ms=observed.at_ms,
            as_of_ms=observed.at_ms if observed.as_of_ms is None else observed.as_of_ms,
            snapshot=snapshot,
            cluster="quiet" if observed.cluster == "not-requested" else observed.cluster,
            tasks=observed.tasks,
            unreachable=observed.unreachable,
            late=observed.late,
            facts=observed.facts,
            held=tuple(self.held.values()),
            consents=tuple(self.consents.values()),
            group_ms=observed.group_ms,
            bound_ms=observed.bound_ms,
        )


class BudgetRows:
    """The container time and the consents that were written last."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], HeldTime] = {}
        self._consents: dict[str, JobConsent] = {}

    def changed(self, observed: Observed, observation: Observation) -> Observed:
        """Return the record with what differs; ``observation`` becomes what was written last."""
        held = {(row.payer, row.window_ms): row for row in observation.held}
        consents = {row.application: row for row in observation.consents}
        observed = msgspec.structs.replace(
            observed,
            held=tuple(sorted(row for key, row in held.items() if self._held.get(key) != row)),
            consents=tuple(sorted(row for name, row in consents.items() if self._consents.get(name) != row)),
            held_gone=tuple(sorted(self._held.keys() - held.keys())),
            consents_gone=tuple(sorted(self._consents.keys() - consents.keys())),
        )
        self._held, self._consents = held, consents
        return observed


class InputLog:
    """Collects the inputs of the steps, and decides which of them are written."""

    def __init__(self, settings: Settings) -> None:
        self._writer, self._budgets = Writer(settings), BudgetRows()
        self._touched: set[str] = set()
        self._written: set[str] = set()
        self._rounds: list[tuple[Observed, Observation]] = []
        self._unfinished = False
        self.left_out = False
        """Whether an observation was left out since the last step that was written."""

    def begin_snapshot(self) -> None:
        """Begin another snapshot: none of its tasks has been read."""
        self._touched, self._written = set(), set()

    def touch(self, attempts: Iterable[str]) -> None:
        """Note the attempts without which a plan would have been another."""
        self._touched.update(attempts)

    def tasks(
        self, shown: Mapping[str, tuple[TaskView, ...]], answered: Collection[str]
    ) -> dict[str, tuple[TaskView, ...]]:
        """Return the tasks to write: of all jobs observed for this snapshot those newly read.

        A job that ``answered`` in this round has an entry; one that answered before may get further tasks.
        """
        found: dict[str, tuple[TaskView, ...]] = {}
        for name, tasks in shown.items():
            fresh = tuple(
                task for task in tasks if task.attempt in self._touched and task.attempt not in self._written
            )
            if fresh or name in answered:
                found[name] = fresh
                self._written.update(task.attempt for task in fresh)
        return found

    def close(
        self, observed: Observed, observation: Observation, *, led: bool, goes_on: bool, changed: bool
    ) -> tuple[Observed, ...]:
        """Add a step's input; return the inputs that are written now, those kept back before it first.

        ``led``: the step has a result. ``goes_on``: the decision needs another round. ``changed``: the
        step changed what later decisions depend on, though it has no result.
        """
        self._rounds.append((observed, observation))
        if led or self._unfinished:
            self._unfinished = goes_on
            rounds, self._rounds, self.left_out = self._rounds, [], False
            return tuple(self._written_as(observed, seen) for observed, seen in rounds)
        if not goes_on:
            has_input = len(self._rounds) > 1 or observation.snapshot is not None or bool(observed.facts)
            self.left_out = self.left_out or has_input or changed
            self._rounds = []
        return ()

    def _written_as(self, observed: Observed, observation: Observation) -> Observed:
        """Return an input with the rows that differ from what was written last."""
        if observation.snapshot is None:
            return observed
        observed = msgspec.structs.replace(observed, change=self._writer.change(observation.snapshot))
        return self._budgets.changed(observed, observation)
