"""Admit requests on a cluster; the loop calls the controller after each tick.

It changes nothing on the cluster. A change of its state is written to the journal before it is applied, so
that a crash at any point loses no answered request. Without an open admission the cluster is not queried.
While the ResourceManager does not answer, there is no round, no expiry and no end.

If the wall clock was set back between two runs, one record moves all times that are counted from
(``ClockSetBack``), and work continues at once. Deadlines are times of the wall clock, and stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import msgspec

from yarnctl.daemon.admission.backlog import ClusterUse, Size
from yarnctl.daemon.admission.feedback import ClusterCapacity, Estimates, Feedback, WantedJob
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.admission.late_desk import DelayedPromise, LateDesk, SeenProgress
from yarnctl.daemon.admission.market_desk import UNTRUSTED, MarketDesk, Quote
from yarnctl.daemon.admission.placement_desk import PoolSizes, UserRun, alternatives_of, placed_runs, places
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.daemon.admission.reconciler import ASKED_ABOUT_MAX, Manager, Reconciler
from yarnctl.daemon.admission.request_queue import (
    AccountCommand,
    Command,
    PendingCommand,
    QuoteRequest,
    Refusal,
    RequestedAdmission,
    RequestQueue,
    WithdrawRequest,
)
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import Pool
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionStarted,
    ClockSetBack,
    GateSet,
)
from yarnctl.deciding.admission.gate import decide, expired, granted_in
from yarnctl.deciding.admission.late.late_promises import LatePromise
from yarnctl.deciding.admission.mechanisms import MECHANISMS, OwnChoices
from yarnctl.deciding.admission.pricing.accounts import Account, Payment
from yarnctl.deciding.admission.records import Estimate, Plan, Request
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.reasons.verdicts import GateReason, LeaseOver, Undecided, WithdrawnByRequester
from yarnctl.deciding.records import Record
from yarnctl.journal.rendering import text

_LOG = logging.getLogger("yarnctl.daemon")

PLANS_EVERY_MS = 10_000  # The interval of writing new predictions, if nothing else changes
ESTIMATE_MS = 3_000  # The maximum time for which a request waits for an estimate
WAITING_MAX = 1_000
WAITING_SHARE = 4  # One user may have one in this many of the waiting requests
COMMANDS_MAX = 32  # Commands executed after one tick: each is written to the disk
PROMISES_A_TICK = 1_600  # The maximum number of promises that prices of one tick's requests are compared with

END_IT = "end the application to free its containers"
NO_ESTIMATE = "send the request again with the same request_key, or include an estimate"


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's settings: the mechanism, and its ``queues`` (none: all), or its ``pools``."""

    allocator: str
    instance: str
    queues: tuple[str, ...] = ()
    choices: OwnChoices | None = None
    lease_ms: int = 120_000
    pools: tuple[PoolSettings, ...] = ()


class AdmissionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's published state, with every kept admission, the newest first.

    ``ran_ms``: the running times of ended admissions, by id. ``priced``: deadlines have a price. ``late``:
    the running ones that will miss their deadline, by id. ``delayed``: what these delay, with its new quote.
    """

    allocator: str
    capacity: int | None
    container_mib: int | None
    waiting: int
    reserved: int
    learned: int
    problem: GateReason | ClientFault | None
    lease_ms: int
    admissions: tuple[Admission, ...] = ()
    accounts: Mapping[str, Account] = {}
    payments: Mapping[str, Payment] = {}
    quotes: Mapping[str, Quote] = {}
    pools: tuple[Pool, ...] = ()
    runs: tuple[UserRun, ...] = ()
    ran_ms: Mapping[str, int] = {}
    queues: QueueTree | None = None
    priced: bool = False
    late: Mapping[str, LatePromise] = {}
    delayed: Mapping[str, DelayedPromise] = {}


class AdmissionController:
    """Admits requests on one cluster.

    ``size`` measures the cluster, or each pool by name (raises YarnctlError). ``history_worker`` None: no
    history, so no estimates and no feedback. ``last_ms``: the last time of the run before (0: not known).
    ``wall_ahead_ms`` returns the wall clock minus the daemon's. ``queues`` returns the cluster's newest
    queues (None: queues are compared by name).
    """

    def __init__(
        self,
        settings: AdmissionSettings,
        manager: Manager,
        size: Callable[[], Size] | Mapping[str, Callable[[], Size]],
        request_queue: RequestQueue,
        *,
        store: AdmissionStore | None = None,
        history_worker: HistoryWorker | None = None,
        last_ms: int = 0,
        wall_ahead_ms: Callable[[], int] = lambda: 0,
        queues: Callable[[], QueueTree | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._queues = queues
        self.request_queue = request_queue
        self.store = store or AdmissionStore()
        self._reconciler = Reconciler(manager, self.store, settings.instance, wall_ahead_ms, queues)
        measures = size if isinstance(size, Mapping) else {"": size}
        self._pool_sizes = PoolSizes(settings.pools, settings.queues, measures)
        self._history_worker = history_worker
        self._estimates = None if history_worker is None else Estimates(history_worker)
        self._answers: dict[PendingCommand, str | Refusal] = {}
        self._leases: dict[str, int] = {}
        self._planned_at_ms = 0
        self._asked_about = 0
        self._last_ms = max(last_ms, self.store.now_ms)
        self.market_desk = MarketDesk(self.store, settings.instance)
        self._feedback = None if history_worker is None else Feedback(history_worker, self.store)
        self._shown: tuple[tuple[object, ...], AdmissionStatus] | None = None
        self.late_desk = LateDesk(self.store)

    def set_queues(self, settings: AdmissionSettings, sizes: Mapping[str, Callable[[], Size]]) -> None:
        """Replace the queues' names by their paths, once they are known."""
        self.settings = settings
        self._pool_sizes = PoolSizes(settings.pools, settings.queues, sizes)

    @property
    def sells(self) -> bool:
        """Whether deadlines have a price; also known before the cluster's size is."""
        return MECHANISMS[self.settings.allocator].sells

    def after_tick(
        self,
        write: Callable[[Record], None],
        now_ms: int,
        *,
        paused: bool = False,
        suspendable: Collection[str] = (),
        progress: SeenProgress | None = None,
    ) -> None:
        """After a tick: execute queued commands, poll if a poll is due, run a round.

        While ``paused`` no request is admitted or rejected. ``suspendable``: applications with such
        containers now. ``progress``: of the newest snapshot, for promises that will be missed.
        """
        self.market_desk.suspendable = suspendable
        if now_ms < self._last_ms:
            self._set_back(write, now_ms)
        self._last_ms = now_ms
        commands = self.request_queue.handed()
        active = bool(commands or self.store.opened)
        if active or self.store.gate is None:
            self._measure(write, now_ms)
        self._settle(write, now_ms)
        if self._feedback is not None:
            self._feedback.reconcile(lambda record: self._note(write, record), now_ms)
        if active and self.store.gate is not None:
            self._work(write, now_ms, commands, paused)
        if progress is not None:
            self.late_desk.look(progress, self._reconciler.last, self.market_desk.blocking())

    def _set_back(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Continue by a clock that was set back: leases and polls begin anew, as after a start."""
        by_ms = self._last_ms - now_ms
        _LOG.warning("the clock was set back by %d s; admission continues by the new time", by_ms // 1000)
        self._note(write, ClockSetBack(now_ms, by_ms))
        self._leases, self._planned_at_ms, self.market_desk.quotes = {}, 0, {}
        self.request_queue.renewals()
        self._reconciler.begin_anew()
        self._pool_sizes.begin_anew()
        if self._feedback is not None:
            self._feedback.begin_anew(now_ms)

    def _work(
        self, write: Callable[[Record], None], now_ms: int, commands: Sequence[PendingCommand], paused: bool
    ) -> None:
        if self.market_desk.is_open and commands:  # prices are computed from a fresh poll only
            self._reconciler.reconcile(lambda record: self._note(write, record), now_ms, asked=True)
        if self._execute(write, now_ms, commands) and self._answers:
            self.request_queue.wake()  # else all wait for estimates, and the history worker wakes the loop
        self._renew_leases(write, now_ms)
        fresh = self._reconciler.reconcile(lambda record: self._note(write, record), now_ms)
        seen = self._reconciler.last
        if seen is None or paused or (self._feedback and self._feedback.is_training(now_ms)):
            return
        if fresh or self._undecided():
            self._run_round(write, now_ms, seen)

    def _execute(
        self, write: Callable[[Record], None], now_ms: int, commands: Sequence[PendingCommand]
    ) -> bool:
        """Execute queued commands, fewer with a price the more promises; return whether some are left."""
        self._asked_about = self.market_desk.compared = executed = 0
        for pending in commands:
            is_priced = isinstance(pending.command, RequestedAdmission | QuoteRequest)
            if executed == COMMANDS_MAX or (is_priced and self.market_desk.compared >= PROMISES_A_TICK):
                continue
            executed += 1
            self._execute_one(write, now_ms, pending)
        return executed < len(commands)

    def _settle(self, write: Callable[[Record], None], now_ms: int) -> None:
        self.market_desk.settle(
            lambda record: self._note(write, record), now_ms, learning=self._feedback is not None
        )

    def _note(self, write: Callable[[Record], None], record: Record) -> None:
        write(record)
        self.store.take(record)

    def _measure(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Write the gate's settings if the cluster's size, or a setting, has changed."""
        settings, gate = self.settings, self.store.gate
        before = self._pool_sizes.problem
        pools = self._pool_sizes.poll(gate, now_ms)
        if self._pool_sizes.problem is not None and self._pool_sizes.problem != before:
            problem = text(self._pool_sizes.problem)
            _LOG.warning("admission paused: cluster capacity is unknown: %s", problem)
        if pools is None:
            return
        choices = settings.choices or MECHANISMS[settings.allocator].choices
        if gate is None or (gate.mechanism, gate.pools, gate.choices) != (settings.allocator, pools, choices):
            self._note(write, GateSet(now_ms, settings.allocator, pools, choices))

    def _execute_one(self, write: Callable[[Record], None], now_ms: int, pending: PendingCommand) -> None:
        if pending in self._answers:
            return
        wanted = self._with_path(pending.command)
        if isinstance(wanted, Refusal):
            self._answers[pending] = wanted
            return
        if isinstance(wanted, WithdrawRequest):
            answer = self._withdraw(write, now_ms, wanted.admission)
            if answer is not None:
                self._answers[pending] = answer
            return
        if isinstance(wanted, AccountCommand):
            note = partial(self._note, write)
            self._answers[pending] = self.market_desk.account(note, now_ms, wanted)
            return
        if isinstance(wanted, QuoteRequest):
            estimate = self._estimate(pending, wanted, now_ms)
            offered = self.market_desk.quoted(wanted, estimate, self._reconciler.last, now_ms)
            if offered is not None:
                self._answers[pending] = offered
            return
        known = self.store.by_key(wanted.key)
        if known is not None:
            same = _same(wanted, known)
            self._answers[pending] = known.admission if same else _key_used(wanted.key)
            return
        ready = self._refusal(wanted) or self._completed(pending, wanted, now_ms)
        if isinstance(ready, Refusal):
            self._answers[pending] = ready
        elif ready is not None and self.request_queue.start(pending):
            self._answers[pending] = self._ask(write, now_ms, pending, ready)

    def _with_path(self, wanted: Command) -> Command | Refusal:
        """Return a command with its queue's full path, or why its name is not one of a leaf queue."""
        tree = self._queues()
        if tree is None or not isinstance(wanted, RequestedAdmission | QuoteRequest) or not wanted.queue:
            return wanted
        path = tree.resolve(wanted.queue)
        if isinstance(path, str):
            return msgspec.structs.replace(wanted, queue=path)
        return Refusal("no-such-queue", text(path), "use the full path of a leaf queue")

    def _completed(
        self, pending: PendingCommand, request: RequestedAdmission, now_ms: int
    ) -> RequestedAdmission | Refusal | None:
        """Return a request with its estimate and options; None: an answer is still missing."""
        answered = self._estimate(pending, request, now_ms)
        if answered is None or isinstance(answered, Refusal):
            return answered
        (estimate,) = answered
        unseen = self.market_desk.unpriced(request, estimate, self._reconciler.last, now_ms)
        if unseen:
            return unseen if isinstance(unseen, Refusal) else None
        found = alternatives_of(self.store, request, estimate)
        if isinstance(found, Refusal):
            return found
        return msgspec.structs.replace(request, estimate=estimate, alternatives=found)

    def _refusal(self, request: RequestedAdmission) -> Refusal | None:
        queues = self.store.queues
        anywhere = request.alternatives is not None and not request.queue
        if queues and not anywhere and request.queue not in queues:
            problem = f"queue {request.queue} is not under admission control"
            return Refusal("queue-not-gated", problem, f"use one of {', '.join(queues)}")
        if self.market_desk.is_untrusted(request.estimate):
            return UNTRUSTED
        waiting = self.store.open("waiting")
        own, share = sum(each.user == request.user for each in waiting), WAITING_MAX // WAITING_SHARE
        if len(waiting) >= WAITING_MAX:
            problem = f"the admission queue is full ({WAITING_MAX} waiting)"
            return Refusal("queue-full", problem, "retry later")
        if own >= share:
            problem = f"the share of user {request.user} is full ({own} waiting, maximum {share})"
            return Refusal("queue-full", problem, "withdraw a request, or retry when one has started")
        return None

    def _estimate(
        self, pending: PendingCommand, wanted: RequestedAdmission | QuoteRequest, now_ms: int
    ) -> tuple[Estimate | None] | Refusal | None:
        """Return the estimate, None while the history has not answered: a slow history rejects no request."""
        gate = self.store.gate
        placed = isinstance(wanted, RequestedAdmission) and wanted.alternatives is not None
        if placed or wanted.estimate is not None or self._estimates is None or gate is None:
            return (wanted.estimate,)
        if pending.at_ms is None or pending.at_ms > now_ms:
            pending.at_ms = now_ms
        job = WantedJob(wanted.name, wanted.user, wanted.kind, wanted.containers)
        size = ClusterCapacity(gate.capacity, self.store.container_mib)
        asked = self._estimates.of(job, size, now_ms)
        if not asked.done and now_ms - pending.at_ms < ESTIMATE_MS:
            return None
        untold = not asked.done or (asked.problem is not None and not asked.never)
        if untold and (MECHANISMS[gate.mechanism].needs_estimate or places(self.store)):
            because = "" if asked.problem is None else f": {text(asked.problem)}"
            problem = f"no estimate of the job's work yet{because}"
            return Refusal("no-estimate-yet", problem, NO_ESTIMATE)
        found = asked.value if asked.done else None
        return (found if isinstance(found, Estimate) and found.mean_ms > 0 else None,)

    def _ask(
        self,
        write: Callable[[Record], None],
        now_ms: int,
        pending: PendingCommand,
        request: RequestedAdmission,
    ) -> str:
        number = self.store.numbered + 1
        name = f"adm-{self.settings.instance}-{number}"
        ordered_at_ms = now_ms - self.request_queue.waited_ms(pending)
        recorded = Request(
            number,
            ordered_at_ms,
            request.deadline_ms,
            request.containers,
            request.estimate,
            request.kind,
            budget=request.budget,
            alternatives=request.alternatives,
        )
        self._note(
            write,
            AdmissionAsked(now_ms, name, request.name, request.user, request.queue, recorded, request.key),
        )
        self._leases[name] = now_ms
        return name

    def _withdraw(self, write: Callable[[Record], None], now_ms: int, name: str) -> str | Refusal | None:
        """Withdraw an admission that no application has used; None: the next tick decides.

        A client may have submitted its job a moment ago, and a running job is not refunded: so query first.
        """
        found = self.store.admissions.get(name)
        if found is None:
            return Refusal("not-found", f"admission {name} is unknown", "list them with GET /v1/admissions")
        if found.state == "running":
            return Refusal("already-running", f"admission {name} runs as {found.application}", END_IT)
        if found.state not in ("waiting", "admitted"):
            return name
        if found.reservation is not None:
            if self._asked_about >= ASKED_ABOUT_MAX:
                return None
            refusal = self._in_use(write, now_ms, found)
            if refusal is not None:
                return refusal
        self._note(write, AdmissionClosed(now_ms, name, "withdrawn", WithdrawnByRequester()))
        return name

    def _in_use(self, write: Callable[[Record], None], now_ms: int, admission: Admission) -> Refusal | None:
        took = None if self._reconciler.unreachable else self._claimant(now_ms, admission)
        if took is None:
            fault = self._reconciler.problem
            because = "" if fault is None else f": {text(fault)}"
            return Refusal(
                "cluster-unreachable",
                f"cannot check whether an application uses admission {admission.admission}{because}",
                "withdraw it again when the ResourceManager answers; until then the admission is unchanged",
            )
        if not took:
            return None
        if admission.state == "admitted":
            self._note(write, AdmissionStarted(now_ms, admission.admission, took))
            return Refusal("already-running", f"admission {admission.admission} runs as {took}", END_IT)
        problem = f"{took} was submitted with the tag of {admission.admission} before its turn"
        return Refusal("already-running", problem, END_IT)

    def _claimant(self, now_ms: int, admission: Admission) -> str | None:
        """Query the application of an admission; after a fault nothing more is queried in this tick."""
        took = self._reconciler.claimant(admission, now_ms)
        self._asked_about = ASKED_ABOUT_MAX if took is None else self._asked_about + 1
        return took

    def _renew_leases(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Withdraw requests with an expired lease; after a start every lease begins anew.

        A request with a sold deadline is kept while its application is in YARN, or while that is unknown.
        """
        for name, until_ms in self.request_queue.renewals().items():
            self._leases[name] = max(self._leases.get(name, 0), until_ms)
        waiting = {each.admission for each in self.store.open("waiting")}
        self._leases = {name: at_ms for name, at_ms in self._leases.items() if name in waiting}
        for name in sorted(waiting):
            if now_ms - self._leases.setdefault(name, now_ms) > self.settings.lease_ms:
                self._end_lease(write, now_ms, self.store.admissions[name])

    def _end_lease(self, write: Callable[[Record], None], now_ms: int, admission: Admission) -> None:
        if admission.reservation is not None:
            if self._reconciler.unreachable or self._asked_about >= ASKED_ABOUT_MAX:
                return
            took = self._claimant(now_ms, admission)
            if took is None:
                return
            if took:
                self._leases[admission.admission] = now_ms
                return
        why = LeaseOver(self.settings.lease_ms)
        self._note(write, AdmissionClosed(now_ms, admission.admission, "withdrawn", why))

    def _undecided(self) -> bool:
        return any(isinstance(each.plan.reason, Undecided) for each in self.store.open("waiting"))

    def _run_round(self, write: Callable[[Record], None], now_ms: int, cluster_use: ClusterUse) -> None:
        """Run a round after the ``Reconciler`` has checked expiry; write it if it changes anything."""
        gate = self.store.gate
        if gate is None or not gate.waiting or expired(gate, now_ms):
            return
        blocking = self.market_desk.blocking()
        after, decided = decide(
            gate, now_ms, cluster_use.loads, self.store.balances(), blocking, cluster_use.pool_loads
        )
        plans = self.store.has_changed(decided)
        if not self._is_changed(plans, now_ms):
            return
        self._planned_at_ms = now_ms
        made = granted_in(gate, after)
        self._note(
            write, AdmissionRound(now_ms, cluster_use.loads, plans, made, blocking, cluster_use.pool_loads)
        )
        self._settle(write, now_ms)
        for plan in plans:
            if plan.verdict != "defer":
                name = f"adm-{self.settings.instance}-{plan.sequence}"
                _LOG.info("%s: %s, %d containers: %s", name, plan.verdict, plan.containers, text(plan.reason))

    def _is_changed(self, plans: Sequence[Plan], now_ms: int) -> bool:
        """Return whether to write plans now: verdicts at once, predictions every ``PLANS_EVERY_MS``."""
        if any(plan.verdict != "defer" for plan in plans) or self._undecided():
            return True
        return bool(plans) and now_ms - self._planned_at_ms >= PLANS_EVERY_MS

    def shown(self) -> AdmissionStatus:
        """Return the state to publish."""
        store, gate = self.store, self.store.gate
        problem = self._reconciler.problem or self._pool_sizes.problem
        queues = self._queues()
        late, delayed = dict(self.late_desk.late), dict(self.late_desk.delayed)
        state = (store.version, problem, self.market_desk.numbered, queues, late, delayed)
        if self._shown is not None and self._shown[0] == state:
            return self._shown[1]
        status = AdmissionStatus(
            allocator=self.settings.allocator,
            capacity=None if gate is None else gate.capacity,
            container_mib=None if gate is None else store.container_mib,
            waiting=store.counted("waiting"),
            reserved=0 if gate is None else sum(each.containers for each in gate.reserved),
            learned=0 if gate is None else gate.memory.completed,
            problem=problem,
            lease_ms=self.settings.lease_ms,
            admissions=tuple(reversed(store.admissions.values())),
            accounts=store.accounts.accounts,
            payments=store.accounts.payments,
            quotes=self.market_desk.quotes,
            pools=() if gate is None else gate.pools,
            runs=placed_runs(store),
            ran_ms=dict(store.ran_ms),
            priced=self.sells,
            queues=queues,
            late=late,
            delayed=delayed,
        )
        self._shown = (state, status)
        return status

    def published(self) -> None:
        """After :meth:`shown` is published: answer executed commands, and wake waiting threads."""
        answers, self._answers = self._answers, {}
        problem = self._reconciler.problem or self._pool_sizes.problem
        self.request_queue.problem = "" if problem is None else text(problem)
        self.request_queue.announce(answers)

    def stop(self) -> None:
        """Release all waiting threads; reservations stay in the journal."""
        self.request_queue.close()
        if self._history_worker is not None:
            self._history_worker.close()


def _same(request: RequestedAdmission, admission: Admission) -> bool:
    before = admission.request
    asked = (request.name, request.user, request.queue, request.containers, request.deadline_ms, request.kind)
    return (*asked, request.budget) == (
        admission.name,
        admission.user,
        admission.queue,
        before.tasks,
        before.deadline_ms,
        before.kind,
        before.budget,
    )


def _key_used(key: str) -> Refusal:
    problem = f"request_key {key} was used for another request"
    return Refusal("request-key-used", problem, "use a new request_key for each request")
