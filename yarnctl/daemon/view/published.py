"""Publish the daemon's state as one immutable view per tick, for API, page and command line.

Publishing replaces one reference, so a reader in another thread sees a complete view, old or new. Nothing
here reads a clock: times are those of the port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from yarnctl.api.cluster_answers import LoopState, Mode
from yarnctl.daemon.admission.admission_controller import AdmissionStatus
from yarnctl.daemon.view.histogram import Histogram
from yarnctl.daemon.view.occupancy import Occupancy, Sample, sample_of
from yarnctl.daemon.view.recent_events import LoggedEvent, RecentEvents
from yarnctl.daemon.view.recent_orders import Checkpoint, Decided, RankedRecord, RecentOrders
from yarnctl.daemon.view.reporting import Reporting
from yarnctl.daemon.view.ungranted import Ungranted
from yarnctl.daemon.view.waits import QueueWaits, Waits
from yarnctl.daemon.view.when_followed import Following, When, unforetold
from yarnctl.daemon.view.why_waiting import Waiting, waiting_reasons
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.loss_budget import BudgetStanding, standings
from yarnctl.deciding.model import (
    ApplicationView,
    Change,
    HeldTime,
    JobConsent,
    Observation,
    Snapshot,
    Withheld,
)
from yarnctl.deciding.order import ORDER_VERBS
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.reasons.demand import StandingAside
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ClusterUnseen, HdfsUnwritable, LockUnconfirmed, ModeReason
from yarnctl.deciding.records import Decision, Epoch, Performed, Record, Refusal, SavedLost, Transition
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.deciding.time_lost import TimeLost, Waited
from yarnctl.hadoop.http.request_counts import RequestKey, RequestTally
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.loop import ClusterIdentity


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """All counters.

    ``asked`` counts orders by verb, ``ended`` by their last state, both without orders that were not sent.
    ``checkpoints_lost``: checkpoints that the next attempt did not use; ``keys_lost``: the keys in them, if
    known. ``actions`` counts by (action, outcome). ``saved``, ``freed``: times from order to checkpoint, to
    end.
    """

    decisions: int = 0
    refusals: int = 0
    epochs: int = 0
    keys_saved: int = 0
    checkpoints_lost: int = 0
    keys_lost: int = 0
    asked: Mapping[str, int] = {}
    ended: Mapping[str, int] = {}
    actions: Mapping[tuple[str, str], int] = {}
    saved: Histogram = Histogram()
    freed: Histogram = Histogram()


class Counting:
    """Counts the records of the journal."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._asked_orders: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._actions: dict[tuple[str, str], int] = {}
        self._dirty = False

    def apply(self, record: Record, stories: Sequence[OrderStory]) -> None:
        """Count one record; ``stories``: those that it changed."""
        self._dirty = True
        counts = self._counts
        if isinstance(record, Decision):
            self._counts = msgspec.structs.replace(counts, decisions=counts.decisions + 1)
        elif isinstance(record, Transition):
            self._moved(record, stories[0] if stories else None)
        elif isinstance(record, Performed):
            self._performed(record)
        elif isinstance(record, Refusal):
            self._counts = msgspec.structs.replace(counts, refusals=counts.refusals + 1)
        elif isinstance(record, SavedLost):
            lost, keys = counts.checkpoints_lost + 1, counts.keys_lost + max(0, record.keys_lost)
            self._counts = msgspec.structs.replace(counts, checkpoints_lost=lost, keys_lost=keys)
        elif isinstance(record, Epoch):
            self._counts = msgspec.structs.replace(counts, epochs=counts.epochs + 1)

    def _performed(self, performed: Performed) -> None:
        key = (performed.action, str(performed.outcome.__struct_config__.tag))
        self._actions[key] = self._actions.get(key, 0) + 1
        if performed.action in ORDER_VERBS and not isinstance(performed.outcome, Withheld):
            self._asked_orders[performed.action] = self._asked_orders.get(performed.action, 0) + 1

    def _moved(self, transition: Transition, story: OrderStory | None) -> None:
        if story is not None and story.sent == "withheld":
            return
        counts = self._counts
        if story is not None and transition.source != transition.target:
            span_ms = max(0, transition.at_ms - story.ordered_at_ms)
            if transition.target == "checkpointed":
                keys_saved = counts.keys_saved + max(0, transition.keys_done)
                saved = counts.saved.plus(span_ms)
                self._counts = msgspec.structs.replace(counts, saved=saved, keys_saved=keys_saved)
            elif transition.target == "freed":
                self._counts = msgspec.structs.replace(counts, freed=counts.freed.plus(span_ms))
        if transition.target not in OPEN:
            self._ended[transition.target] = self._ended.get(transition.target, 0) + 1

    def counts(self) -> Counts:
        """Return the current counters as a value."""
        if self._dirty:
            self._dirty = False
            self._counts = msgspec.structs.replace(
                self._counts,
                asked=dict(self._asked_orders),
                ended=dict(self._ended),
                actions=dict(self._actions),
            )
        return self._counts


NO_DEMAND_TICKS = 2  # After this many ticks without a snapshot the guard blocks it


class LoopStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of the loop. ``why``: one or two reasons why it is not running; none if it is.

    ``reachable``: whether the ResourceManager answered last; ``tick_ms``: the time of the last tick (None: no
    tick yet). ``problem``: why the cluster does not answer now; ``store_problem``: why HDFS or the lock
    cannot be used. ``aside``: why no container is freed for some queues now. ``leads``: whether this daemon
    has the lock (None: it only observes, and needs none). ``lock``: where the lock is ("": none is needed);
    ``leader``: the other daemon that has it, with its host ("": none was seen). ``changes``: settings that it
    lowered and has not restored. ``requests``: those that this process has sent.
    ``resource_manager``: the address of its web pages ("": not known).
    """

    mode: Mode = "observe"
    resource_manager: str = ""
    state: LoopState = "starting"
    why: tuple[ModeReason, ...] = ()
    reachable: bool = False
    ticks: int = 0
    tick_ms: float | None = None
    tick_errors: int = 0
    last_error: str = ""
    last_error_at_ms: int | None = None
    problem: ModeReason | None = None
    store_problem: HdfsUnwritable | LockUnconfirmed | None = None
    started_at_ms: int = 0
    cluster: ClusterIdentity | None = None
    aside: tuple[StandingAside, ...] = ()
    leads: bool | None = None
    lock: Literal["", "hdfs", "zookeeper"] = ""
    leader: str = ""
    requests: Mapping[RequestKey, RequestTally] = {}
    changes: tuple[Change, ...] = ()


class SuspendedTasks(NamedTuple):
    """The number of an application's suspended tasks and drained executors, with the time of the last."""

    tasks: int
    last_at_ms: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The published state. Times in ms of the port's clock.

    ``snapshot`` is the newest one, of ``snapshot_at_ms``. While no preempting application has pending
    requests (``no_demand``) the loop does not poll, so it may be old; then it shows no pending requests.
    ``entries``: open orders and those not yet retired, oldest first. ``ended`` (retired), ``decisions``,
    ``refusals``, ``rankings`` and ``checkpoints``: newest first. ``left_alone``: attempts that cannot be
    suspended now, with the reason.
    ``budgets``: empty without the mix. ``admission`` None: off. ``version`` grows with every view.
    ``waiting``: why each preempting application of ``snapshot`` with pending requests waits. ``time_lost``:
    what waited since this daemon's start, by cause. ``reporting``: sums of the last days, which go on.
    ``waits``: how long production has waited since this daemon's start, by queue.
    ``when``: foretells when an application of ``snapshot`` starts and ends, with what is known by then.
    ``events``: oldest first, of the ranks ``events_from`` to ``events_to``; earlier ones are no longer kept.
    """

    version: int
    now_ms: int
    loop: LoopStatus
    settings: Settings = DEFAULT
    snapshot: Snapshot | None = None
    snapshot_at_ms: int | None = None
    no_demand: bool = False
    entries: tuple[OrderStory, ...] = ()
    ended: tuple[OrderStory, ...] = ()
    decisions: tuple[Decided, ...] = ()
    refusals: tuple[RankedRecord, ...] = ()
    rankings: tuple[RankedRecord, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    occupancy: Sequence[Sample] = ()
    unreachable: tuple[str, ...] = ()
    counts: Counts = Counts()
    admission: AdmissionStatus | None = None
    left_alone: Mapping[str, EligibilityReason] = {}
    budgets: tuple[BudgetStanding, ...] = ()
    suspended: Mapping[str, SuspendedTasks] = {}
    waiting: Mapping[str, Waiting] = {}
    time_lost: tuple[Waited, ...] = ()
    reporting: Reporting | None = None
    waits: Mapping[str, QueueWaits] = {}
    when: Callable[[str, int], When] = unforetold
    events: tuple[LoggedEvent, ...] = ()
    events_from: int = 1
    events_to: int = 0


def suspended_of(ledger: Ledger) -> dict[str, SuspendedTasks]:
    """Count suspended tasks and drained executors that have not resumed, by application."""
    freed_at_ms: dict[str, list[int]] = {}
    for shrunk in ledger.regrowing.shrunk.values():
        freed_at_ms[shrunk.application] = [shrunk.at_ms] * len(shrunk.orders)
    for order in ledger.suspended.values():
        freed_at_ms.setdefault(order.victim, []).append(order.freed_at_ms or order.ordered_at_ms)
    return {name: SuspendedTasks(len(instants), max(instants)) for name, instants in freed_at_ms.items()}


def demand_waits(view: ApplicationView, settings: Settings) -> bool:
    """Return whether a preempting application has pending requests."""
    return bool(view.requests) and settings.may_preempt(view.queue)


def quieted(snapshot: Snapshot, settings: Settings) -> Snapshot:
    """Return a snapshot without pending requests of preempting applications."""
    applications = tuple(
        msgspec.structs.replace(view, requests=()) if demand_waits(view, settings) else view
        for view in snapshot.applications
    )
    left_out = dict(snapshot.left_out)
    for view in snapshot.applications if left_out else ():
        if settings.may_preempt(view.queue):
            left_out.pop(view.application, None)
    return msgspec.structs.replace(snapshot, applications=applications, left_out=left_out)


class Control(Protocol):
    """The control of the loop by requests with a token. Each method returns before the loop reacts."""

    def pause(self, why: str, for_ms: int | None) -> None:
        """Stop deciding and acting after the current tick; ``why`` is shown. ``for_ms`` None: no end."""

    def go_on(self) -> None:
        """End an operator's pause and those of all queues."""

    def resume(self, queue: str) -> None:
        """End the pause of one queue."""


class Publisher:
    """Makes a view of each tick. One thread writes; any may read :attr:`view`.

    ``ungranted`` completes the reasons why applications wait (None: not).
    ``record`` gets the journal's records in their order. ``tick`` is called after each tick with its
    observation; ``set_status`` if only the loop's status is new.
    """

    def __init__(self, status: LoopStatus | None = None, now_ms: int = 0) -> None:
        self._view = View(version=0, now_ms=now_ms, loop=status or LoopStatus())
        self._recent = RecentOrders()
        self._occupancy = Occupancy()
        self._counted = Counting()
        self._time_lost = TimeLost()
        self._reporting = Reporting()
        self._waits = Waits()
        self._following = Following()
        self._events = RecentEvents()
        self.admission: AdmissionStatus | None = None
        self.left_alone: Mapping[str, EligibilityReason] = {}
        self.ungranted: Ungranted | None = None
        self._held: tuple[HeldTime, ...] = ()
        self._consents: tuple[JobConsent, ...] = ()

    @property
    def view(self) -> View:
        """The newest view."""
        return self._view

    def record(self, records: Sequence[Record]) -> None:
        """Apply records that were written to the journal; the next view shows them."""
        for record in records:
            changed = self._recent.apply(record)
            self._counted.apply(record, changed)
            self._events.apply(record, changed)
            self._reporting.apply(record, changed)

    def story(self, order: str) -> OrderStory | None:
        """Return the story of a recent order."""
        return self._recent.story(order)

    def set_status(self, status: LoopStatus, now_ms: int) -> None:
        """Publish a new status of the loop; the rest is unchanged."""
        view = self._view
        self._events.look(status.state, status.why, max(view.now_ms, now_ms))
        self._view = msgspec.structs.replace(
            view,
            version=view.version + 1,
            now_ms=max(view.now_ms, now_ms),
            loop=status,
            admission=self.admission,
            left_alone=self.left_alone,
            events=self._events.events,
            events_from=self._events.oldest,
            events_to=self._events.newest,
        )

    def tick(
        self,
        controller: Controller,
        observation: Observation,
        status: LoopStatus,
        snapshot: Snapshot | None = None,
        now_ms: int | None = None,
    ) -> None:
        """Publish the result of a tick; ``now_ms``: its time, if later than that of ``observation``.

        ``snapshot``: one made for the view only (without pending preempting requests ``observation`` has
        none).
        """
        last = self._view
        snapshot, at_ms, quiet = self._shown(controller, observation, snapshot)
        recent = self._recent
        recent.update(controller.ledger)
        if snapshot is not None:
            self._waits.look(snapshot, controller.settings, observation.now_ms)
        self._time_lost.look(controller.verdicts, observation.now_ms)
        self._events.look(status.state, status.why, observation.now_ms)
        self._view = View(
            version=last.version + 1,
            now_ms=max(last.now_ms, observation.now_ms, now_ms or 0),
            loop=status,
            settings=controller.settings,
            snapshot=snapshot,
            snapshot_at_ms=None if snapshot is None else at_ms,
            no_demand=quiet,
            entries=recent.entries,
            ended=recent.ended,
            decisions=recent.decisions,
            refusals=tuple(recent.refusals),
            rankings=tuple(recent.rankings),
            checkpoints=tuple(recent.checkpoints),
            occupancy=self._occupancy.samples,
            unreachable=(*observation.unreachable, *observation.late),
            counts=self._counted.counts(),
            admission=self.admission,
            left_alone=self.left_alone,
            budgets=self._budgets(controller, observation),
            suspended=suspended_of(controller.ledger),
            waiting=self._waiting(controller, status, snapshot, observation.now_ms),
            time_lost=self._time_lost.rows(),
            reporting=self._reporting,
            waits=self._waits.by_queue(observation.now_ms),
            when=self._following.when,
            events=self._events.events,
            events_from=self._events.oldest,
            events_to=self._events.newest,
        )

    def _waiting(
        self, controller: Controller, status: LoopStatus, snapshot: Snapshot | None, now_ms: int
    ) -> Mapping[str, Waiting]:
        if snapshot is None:
            return {}
        blocked = None if status.state == "running" else next(iter(status.why), ClusterUnseen())
        orders = controller.ledger.open.values()
        waiting = waiting_reasons(snapshot, controller.settings, orders, controller.verdicts, blocked)
        return waiting if self.ungranted is None else self.ungranted.judged(waiting, snapshot, now_ms)

    def _budgets(self, controller: Controller, observation: Observation) -> tuple[BudgetStanding, ...]:
        settings = controller.settings
        if settings.levers is None:
            return ()
        if observation.held:
            self._held, self._consents = observation.held, observation.consents
        losses, queues = controller.ledger.losses, settings.preemptable_queues or self._paying_queues()
        return tuple(
            standings(losses, observation.now_ms, settings.levers, queues, self._held, self._consents)
        )

    def _paying_queues(self) -> tuple[str, ...]:
        """Return the queues that held container time; the other payers are users and tagged jobs."""
        jobs = {each.application for each in self._consents}
        payers = {each.payer for each in self._held} - jobs
        return tuple(sorted(payer for payer in payers if not payer.startswith("user:")))

    def _shown(
        self, controller: Controller, observation: Observation, snapshot: Snapshot | None
    ) -> tuple[Snapshot | None, int, bool]:
        settings = controller.settings
        fresh = snapshot if observation.snapshot is None else observation.snapshot
        if fresh is None:
            return self._kept(observation, settings)
        fresh = merged(fresh)
        at_ms = observation.now_ms if observation.snapshot is None else observation.as_of_ms
        waits = any(demand_waits(view, settings) for view in fresh.applications)
        if fresh is not self._view.snapshot and self._occupancy.is_due(at_ms):
            opened = sum(not order.observed for order in controller.ledger.open.values())
            self._occupancy.add(sample_of(fresh, controller.settings, at_ms, opened))
        self._following.look(fresh, at_ms)
        return fresh, at_ms, observation.snapshot is None and observation.cluster == "quiet" and not waits

    def _kept(self, observation: Observation, settings: Settings) -> tuple[Snapshot | None, int, bool]:
        last, at_ms = self._view, self._view.snapshot_at_ms or 0
        old = observation.now_ms - at_ms >= NO_DEMAND_TICKS * settings.tick_ms
        quiet = observation.cluster == "quiet" and (last.no_demand or old)
        if quiet and not last.no_demand and last.snapshot is not None:
            return quieted(last.snapshot, settings), at_ms, quiet
        return last.snapshot, at_ms, quiet
