"""Run a daemon from its options; everything is checked before anything starts.

Parts are stopped in the reverse order of their start, also after an error.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from yarnctl.attach.check.preflight import Facts
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import (
    Attachment,
    discover_name_nodes,
    name_nodes_in,
    require_name_nodes,
)
from yarnctl.attach.eligibility.permission import switch_by_hand
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.attach.port import attach, hdfs_limits
from yarnctl.config import ClusterAddress
from yarnctl.daemon.admission.admission_controller import AdmissionController
from yarnctl.daemon.admission.building import (
    AdmissionOptions,
    make_admission_controller,
    open_histories,
    set_queue_paths,
)
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.at_once import AT_ONCE, OrdersAtOnce
from yarnctl.daemon.daemon_lock import NamedLock, lead, make_lock
from yarnctl.daemon.first_asks import FirstAsks
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.named_queues import (
    admission_with_paths,
    named_in,
    resolve_at_start,
    rules_with_paths,
    with_paths,
)
from yarnctl.daemon.notices.webhook import Webhook, promise_event
from yarnctl.daemon.preemption_switch import PreemptionSwitch
from yarnctl.daemon.questions.what_if_desk import WhatIfDesk
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.daemon.safe_folders import Folders
from yarnctl.daemon.state_dir import StateDir
from yarnctl.daemon.view.published import LoopStatus, Publisher
from yarnctl.daemon.view.ungranted import Ungranted
from yarnctl.deciding.admission.payments import sold_deadlines
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.model import Change, OrderAction, Snapshot, TaskView
from yarnctl.deciding.order import Order, set_back
from yarnctl.deciding.queue_hold import Misdirection, QueueLimits
from yarnctl.deciding.queue_names import NamedQueues, QueueTree, Resolved
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.settings import LossRule, Settings, validate
from yarnctl.deciding.what_if.supposed import LostNode
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.gateway import READ_ONLY, USE_YARN_UI, service_at
from yarnctl.hadoop.http.session import passed_ns
from yarnctl.hadoop.lock import LOCK_PATH
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress
from yarnctl.journal.file import JournalFile
from yarnctl.journal.fold import Fold, ledger_of, state_of
from yarnctl.journal.rebuild import Rebuilt, rebuild
from yarnctl.journal.rendering import joined
from yarnctl.loop import ClusterPort
from yarnctl.restoring.change_file import command_for, described, stored_records
from yarnctl.restoring.restorer import Restorer
from yarnctl.service_manager import notify

APART_MS = 5_000  # The difference of the wall clock that is logged: checkpoints contain its time


def wall_ns() -> int:
    """Return the wall clock in ns since the epoch."""
    return time.time_ns()


class SteadyClock:
    """Returns ms since the epoch. ``wall_ns`` and ``passed_ns``: see the functions of these names."""

    def __init__(
        self, wall_ns: Callable[[], int] = wall_ns, passed_ns: Callable[[], int] = passed_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._passed_ns = passed_ns
        self._offset_ns = wall_ns() - passed_ns()
        self._logged_ms = 0

    def __call__(self) -> int:
        """Return the time."""
        now_ms = (self._offset_ns + self._passed_ns()) // 1_000_000
        self._compare(self._wall_ns() // 1_000_000 - now_ms)
        return now_ms

    def ahead_ms(self) -> int:
        """Return the wall clock, which may have been set since the start, minus this clock."""
        return self._wall_ns() // 1_000_000 - self()

    def _compare(self, ahead_ms: int) -> None:
        if abs(ahead_ms - self._logged_ms) < APART_MS:
            return
        self._logged_ms = ahead_ms
        if abs(ahead_ms) >= APART_MS:
            by = f"{abs(ahead_ms) / 1000:.0f} s {'forward' if ahead_ms > 0 else 'back'}"
            _LOG.warning("the wall clock was set %s; yarnctl keeps its own time until it is restarted", by)


_LOG = logging.getLogger("yarnctl.daemon")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a daemon. ``ticks``: stop after this many (None: never).

    ``store_root``: the folder of checkpoints, created if it is missing. ``journal_bytes``: the size at which
    the journal continues in a new file (None: never). ``admitting`` None: off. ``history``: the history
    server for predicted demand ("": found). ``optional_queues``: the names of queues that may be missing.
    ``webhook``: the address that receives events ("": none). ``lock`` None: it is in HDFS.
    """

    cluster: ClusterAddress
    attachment: Attachment
    settings: Settings
    state_dir: Path
    store_root: str = "/yarnctl/checkpoints"
    journal_bytes: int | None = 64 << 20
    ticks: int | None = None
    admitting: AdmissionOptions | None = None
    history: str = ""
    optional_queues: frozenset[str] = frozenset()
    webhook: str = ""
    lock: ZooKeeperAddress | None = None


class HostPermission(Protocol):
    """The part of :class:`yarnctl.attach.eligibility.permission.Permission` that a host needs."""

    host: Callable[[], ModeReason | None]  # Returns why the host may not act now, or None
    term: Callable[[], int]  # Returns the last term of the lock that this process held

    def why_nothing(self) -> ModeReason | None:
        """Return why no action may be sent now, or None."""

    def preempted_queues(self) -> tuple[str, ...]:
        """Return the preemptable leaf queues in which YARN itself may preempt, as last observed."""

    def is_preemptable(self, queue: str) -> bool:
        """Return whether a queue's applications are preemptable."""


class QueueSettings(Protocol):
    """The part of :class:`yarnctl.attach.observing.cluster_state.Queues` that a host needs."""

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Return a preemptable queue's path and configured limits, or why they are unknown."""

    def preemption_key(self, queue: str) -> str:
        """Return a queue's own key of YARN's preemption ("": absent). Raises as the client does."""


class Attached(ClusterPort, Protocol):
    """A ClusterPort that adopts earlier orders, with the other methods that a daemon needs."""

    @property
    def permission(self) -> HostPermission:
        """The permission check."""

    @property
    def last_problem(self) -> ModeReason | None:
        """Why the last observation of the cluster failed; None: it succeeded."""

    @property
    def activities(self) -> ActivityReader:
        """The reader of YARN's records of single heartbeats."""

    def left_alone(self) -> Mapping[str, EligibilityReason]:
        """Return attempt -> why its runner cannot suspend it."""

    @property
    def restorer(self) -> Restorer:
        """Restores settings that were lowered."""

    @property
    def queue_settings(self) -> QueueSettings:
        """The reader of queues' settings."""

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        """Track open orders that were made under the ResourceManager ``epoch``."""

    def expect(self, orders: Iterable[Order]) -> None:
        """Observe whether the tasks of these orders resume."""

    def announce(self, actions: Sequence[OrderAction]) -> None:
        """Prepare for orders that several threads are about to perform."""

    def has_news(self) -> bool | None:
        """Return whether an observation of orders would find saved work; None: none is awaited."""

    def observe_soon(self) -> Snapshot | None:
        """Poll the cluster for the view; None if it does not answer."""

    def tasks_of(self, applications: tuple[str, ...]) -> Mapping[str, tuple[TaskView, ...]]:
        """Return the tasks of the applications that answer."""

    def node_load(self, node: str, snapshot: Snapshot, require_time: Callable[[], None]) -> LostNode:
        """Return a node's size and what runs on it; raises BadInput for an unknown one.

        ``require_time`` raises Unreachable once that takes too long.
        """

    def use_budgets(self, budgets: tuple[LossRule, ...], left_alone_users: tuple[str, ...]) -> None:
        """Use other loss budgets, with queues by path, and other users that opt out from now on."""


clock_ms = SteadyClock()  # This process's clock: ms since the epoch


def with_hdfs(plan: Plan) -> Plan:
    """Return the plan with the NameNodes of the ResourceManager's configuration, if no option names them.

    Raises Unreachable if the ResourceManager does not answer and BadInput if it names none; a daemon
    that only observes does without.
    """
    if service_at(plan.cluster.resource_managers[0]) == "RESOURCEMANAGER":
        if plan.attachment.enforce:
            raise BadInput(plan.cluster.resource_managers[0], READ_ONLY, USE_YARN_UI)
        _LOG.warning("%s: %s", plan.cluster.resource_managers[0], READ_ONLY)
    if plan.cluster.name_nodes:
        return _with_inner_names(plan) if plan.cluster.authentication == "basic" else plan
    try:
        cluster = found_hdfs(plan.cluster, required=plan.attachment.enforce)
    except YarnctlError as error:
        if plan.attachment.enforce:
            raise
        _LOG.warning("cannot find HDFS: %s", error)
        return plan
    return msgspec.structs.replace(plan, cluster=cluster)


def _with_inner_names(plan: Plan) -> Plan:
    """Return the plan with the NameNodes' names inside the cluster, by which jobs name their HDFS."""
    try:
        configuration = plan.cluster.resource_manager().configuration()
        inner = name_nodes_in(configuration, plan.cluster.resource_managers[0])
    except YarnctlError as error:
        _LOG.warning("cannot find the names of HDFS behind the gateway: %s", error)
        return plan
    known = (*plan.attachment.name_nodes, *inner)
    return msgspec.structs.replace(
        plan, attachment=msgspec.structs.replace(plan.attachment, name_nodes=known)
    )


def found_hdfs(cluster: ClusterAddress, *, required: bool) -> ClusterAddress:
    """Return the cluster with the NameNodes that the ResourceManager's configuration names."""
    found = discover_name_nodes(cluster, cluster.resource_manager(), cluster.resource_managers[0])
    if required:
        found = require_name_nodes(found)
    return msgspec.structs.replace(cluster, name_nodes=found)


class Service(Protocol):
    """The running API and page."""

    def reload(self) -> None:
        """Read the certificate's files again."""

    def stop(self) -> None:
        """End within a few seconds."""


Serve = Callable[[Loop, StateDir], Service]
"""Starts the service for a loop."""


Reread = Callable[[], tuple[Plan, Callable[[], None]]]
"""Reads the settings again: the plan with those that can change while a daemon runs, and what logs them.

Of the plan, the names of queues, the budgets and the controller's settings count."""


def run(plan: Plan, serve: Serve | None = None, reread: Reread | None = None) -> None:
    """Run the daemon until SIGTERM, SIGINT or its last tick; SIGHUP reloads settings and certificate."""
    plan = with_hdfs(plan)
    with ExitStack() as stack:
        state = stack.enter_context(StateDir(plan.state_dir, lambda: secrets.token_hex(4)))
        half = "the journal ended with an incomplete line, which was moved to %s"
        rebuilt = rebuild(state.journal, moved=lambda torn: _LOG.warning(half, torn))
        attachment = msgspec.structs.replace(
            plan.attachment, store_root=plan.store_root, instance=state.instance
        )
        names = QueueNames(named_in(attachment, plan.settings, plan.admitting, plan.optional_queues))
        must_undo = rebuilt is not None and rebuilt.must_undo
        resolve_at_start(names, plan.cluster, must_undo=must_undo)
        require_switchable(plan, names, must_undo=must_undo)
        if names.found is not None:  # container time is counted by path
            budgets = rules_with_paths(attachment.budgets, names.found)
            attachment = msgspec.structs.replace(attachment, budgets=budgets)
        first_asks = _first_asks(plan, names, stack) if attachment.predicted_max else None
        predicted = (lambda _: ()) if first_asks is None else first_asks.of
        port = attach(plan.cluster, attachment, clock_ms, predicted, names)
        stack.callback(port.close)
        if not attachment.enforce:
            _list_changes(plan, () if rebuilt is None else rebuilt.changes)
        loop, journal = make_loop(plan, state, port, rebuilt, first_asks, names, reread)
        stack.push(journal)
        if plan.webhook:
            webhook = Webhook(plan.webhook)
            stack.callback(webhook.close)
            loop.recorder.on_record = partial(webhook.report, loop.publisher)
            if loop.admission is not None:
                loop.admission.late_desk.report = lambda job, news: webhook.offer(promise_event(job, news))
        service = None if serve is None else serve(loop, state)
        if service is not None:
            stack.callback(service.stop)  # after the loop has released the lock
        _stop_on_signals(loop, stack, service)
        loop.run(plan.ticks)


def _first_asks(plan: Plan, names: QueueNames, stack: ExitStack) -> FirstAsks:
    history_worker = HistoryWorker(lambda: open_histories(plan.history, plan.cluster), lambda: None)
    first_asks = FirstAsks(history_worker, clock_ms, names.means_preempting)
    stack.callback(first_asks.close)
    first_asks.learn()
    return first_asks


def make_loop(
    plan: Plan,
    state: StateDir,
    attached: Attached,
    rebuilt: Rebuilt | None,
    first_asks: FirstAsks | None = None,
    names: QueueNames | None = None,
    reread: Reread | None = None,
) -> tuple[Loop, JournalFile]:
    """Build controller, port, guard, journal, publisher and loop.

    ``first_asks``: the source of predicted demand. ``names``: resolved names of queues (None: the plan's).
    ``reread``: reads the settings again; it requires ``names``.
    """
    given = plan
    if names is not None and names.found is not None:
        plan = _with_paths(plan, names.named, names.found)
    enforce = plan.attachment.enforce
    web = plan.cluster.resource_managers[0].rstrip("/")
    publisher = Publisher(
        LoopStatus(mode="enforce" if enforce else "observe", resource_manager=web), clock_ms()
    )
    publisher.ungranted = Ungranted(attached.activities)
    _go_on(rebuilt, attached, publisher)
    lock = _lock(plan, state) if enforce else None
    misdirection = Misdirection() if rebuilt is None else rebuilt.misdirection
    folders = _folders(plan) if enforce else None
    guard = WriteGuard(lock, attached.permission.why_nothing, misdirection, folders)
    guard.paused = None if rebuilt is None else rebuilt.paused_from(clock_ms())
    admission = _admission(plan, state, rebuilt, names)
    sold = None if admission is None or not admission.sells else partial(sold_deadlines, admission.store)
    settings = msgspec.structs.replace(plan.settings, deadlines=None if sold is None else "sold")
    controller = Controller(settings, remembered=rebuilt.remembered if rebuilt else None)
    journal = JournalFile(state.journal, segment_bytes=plan.journal_bytes, fold=_fold(rebuilt))
    attached.permission.host = lambda: guard.closed()[1]
    orders = rebuilt.remembered.ledger.open if rebuilt else ()
    guarded = GuardedPort(attached, guard, enforce=enforce, clock_ms=clock_ms, open_orders=orders, sold=sold)
    guarded.orders = OrdersAtOnce(guarded.perform, attached.announce, AT_ONCE)
    guarded.news = attached.has_news
    if lock is not None:
        lead(attached.restorer, lock, hdfs_client(plan.cluster))
        attached.permission.term = lambda: lock.term
        guarded.sent_late = attached.restorer.sent_late
    queue_caps = _queue_caps(plan, attached, guarded, names)
    if first_asks is not None:
        first_asks.may_predict = lambda: queue_caps.enabled

    def adopt(controller_before: Controller, named: NamedQueues, resolved: Resolved) -> Controller:
        by_path = _with_paths(given, named, resolved)
        queue_caps.preemptable_queues = by_path.settings.preemptable_queues
        is_first = names is not None and not names.adopted  # later, only leaves below parents change
        if is_first and admission is not None and by_path.admitting is not None:
            set_queue_paths(admission, by_path.admitting, by_path.cluster, state.instance)
        return _continued(controller_before, by_path.settings)

    def reload(controller_before: Controller) -> Controller:
        assert reread is not None
        assert names is not None
        nonlocal given
        found, accept = reread()
        validate(found.settings)
        now = with_reloaded(given, found)
        if problems := names.rename(
            named_in(now.attachment, now.settings, now.admitting, now.optional_queues)
        ):
            raise BadInput("queues", joined(problems), "use the full path of a queue")
        given = now
        accept()
        if names.found is None:  # they are adopted as soon as they are resolved
            return controller_before
        budgets = rules_with_paths(now.attachment.budgets, names.found)
        attached.use_budgets(budgets, now.attachment.left_alone_users)
        next_controller = adopt(controller_before, names.named, names.found)
        return (
            controller_before if next_controller.settings == controller_before.settings else next_controller
        )

    loop = Loop(
        controller,
        guarded,
        journal,
        publisher,
        clock_ms=clock_ms,
        lock=lock,
        restorer=attached.restorer,
        ranks=plan.attachment.allow_priority and plan.settings.mode == "deadlines",
        epoch=rebuilt.epoch if rebuilt else "",
        observe_soon=attached.observe_soon,
        problem=lambda: attached.last_problem,
        left_alone=attached.left_alone,
        queue_caps=queue_caps,
        preemption_switch=_preemption_switch(plan, attached, guarded),
        admission=admission,
        names=names,
        adopt=adopt,
        what_if=WhatIfDesk(attached.tasks_of, attached.node_load),
        reload=None if reread is None else reload,
        in_place=lambda: _require_in_place(state, journal),
        notify=notify,
    )
    loop.recorder.account = plan.attachment.requests_owner
    return loop, journal


def with_reloaded(plan: Plan, new_plan: Plan) -> Plan:
    """Return a running daemon's plan with what may change of a plan that was read again."""
    taken = ("preempting_queues", "preemptable_queues", "left_alone_queues", "left_alone_users", "budgets")
    changed = {name: getattr(new_plan.attachment, name) for name in taken}
    return msgspec.structs.replace(
        plan,
        attachment=msgspec.structs.replace(plan.attachment, **changed),
        settings=new_plan.settings,
        optional_queues=new_plan.optional_queues,
    )


def _fold(rebuilt: Rebuilt | None) -> Fold:
    return Fold() if rebuilt is None else rebuilt.fold


def _continued(controller: Controller, settings: Settings) -> Controller:
    """Return the next controller: its state is that after a restart, which a replay also begins with."""
    settings = msgspec.structs.replace(settings, deadlines=controller.settings.deadlines)
    ledger = ledger_of(state_of(controller.ledger), controller.settings)
    return Controller(settings, remembered=Remembered(ledger, controller.now_ms))


def _require_in_place(state: StateDir, journal: JournalFile) -> None:
    state.require_in_place()
    journal.require_in_place()


def _go_on(rebuilt: Rebuilt | None, attached: Attached, publisher: Publisher) -> None:
    if rebuilt is None:
        return
    publisher.record(rebuilt.recent)
    back_ms = max(0, rebuilt.remembered.now_ms - clock_ms())
    attached.adopt(
        [set_back(order, back_ms) for order in rebuilt.remembered.ledger.open.values()], rebuilt.epoch
    )
    attached.expect(rebuilt.remembered.ledger.suspended.values())
    _LOG.info("%d open orders continue from the journal", len(rebuilt.remembered.ledger.open))
    if (ahead_ms := rebuilt.remembered.now_ms - clock_ms()) > APART_MS:
        message = "the clock was set back by %d s since the last run; orders continue by the new time"
        _LOG.warning(message, ahead_ms // 1000)


def _with_paths(plan: Plan, named: NamedQueues, resolved: Resolved) -> Plan:
    admitting = None if plan.admitting is None else admission_with_paths(plan.admitting, resolved)
    return msgspec.structs.replace(
        plan, settings=with_paths(plan.settings, named, resolved), admitting=admitting
    )


def _admission(
    plan: Plan, state: StateDir, rebuilt: Rebuilt | None, names: QueueNames | None
) -> AdmissionController | None:
    store = None if rebuilt is None else rebuilt.book
    if plan.admitting is None:
        if store is not None and store.opened:
            _LOG.warning("%d open admissions are ignored without --admission", len(store.opened))
        return None
    last_ms = 0 if rebuilt is None else rebuilt.remembered.now_ms
    return make_admission_controller(
        plan.admitting,
        plan.cluster,
        state.instance,
        store,
        clock_ms,
        last_ms=last_ms,
        queues=_newest_tree(names),
    )


def _newest_tree(names: QueueNames | None) -> Callable[[], QueueTree | None]:
    """Return what returns the newest tree of queues; None as long as none was read."""
    return lambda: None if names is None else names.tree


def _lock(plan: Plan, state: StateDir) -> NamedLock:
    holder = f"{state.instance}-{secrets.token_hex(4)}"
    hdfs, root = hdfs_client(plan.cluster), plan.attachment.requests_root
    lock = make_lock(plan.lock, hdfs, holder, state.journal_path, root)
    try:
        lock.require_kind()
    except BadInput:
        raise
    except YarnctlError as error:  # its server does not answer yet; no term begins without it
        _LOG.warning("cannot read the kind of the lock, will retry: %s", error)
    return lock


def _queue_caps(plan: Plan, attached: Attached, guarded: GuardedPort, names: QueueNames | None) -> QueueCaps:
    return QueueCaps(
        attached.queue_settings.limits,
        guarded.perform,
        plan.settings.preemptable_queues,
        attached.restorer,
        enabled=plan.attachment.allow_queue_cap,
        tree=_newest_tree(names),
    )


def _preemption_switch(plan: Plan, attached: Attached, guarded: GuardedPort) -> PreemptionSwitch | None:
    if not plan.attachment.enforce or plan.attachment.yarn_preemption != "switch":
        return None
    return PreemptionSwitch(
        attached.permission.preempted_queues,
        attached.queue_settings.preemption_key,
        guarded.perform,
        attached.permission.is_preemptable,
        attached.restorer,
    )


def require_switchable(plan: Plan, names: QueueNames, *, must_undo: bool) -> None:
    """Raise BadInput, with what to do by hand, if the ResourceManager's scheduler cannot be changed.

    With ``must_undo`` it is only logged, as for a ResourceManager that does not answer yet.
    """
    if not plan.attachment.enforce or plan.attachment.yarn_preemption != "switch":
        return
    try:
        plan.cluster.resource_manager().scheduler_configuration()
    except YarnctlError as problem:
        if isinstance(problem, Rejected) and not must_undo:
            remedy = switch_by_hand(sorted(names.preemptable) or plan.settings.preemptable_queues)
            raise BadInput("--yarn-preemption switch", f"is not possible: {problem}", remedy) from None
        _LOG.warning("cannot read whether the scheduler can be changed: %s", problem)


def _list_changes(plan: Plan, changes: Iterable[Change]) -> None:
    """Log what an earlier run lowered, and the command that restores it: this daemon only observes."""
    if not plan.cluster.name_nodes:
        found = tuple(changes)
    else:
        try:
            stored = stored_records(hdfs_client(plan.cluster), LOCK_PATH)
        except YarnctlError as problem:
            _LOG.warning("cannot read the records of lowered settings: %s", problem)
            return
        found = tuple(change for one in stored if one.record is not None for change in one.record.changes)
    for change in found:
        by_hand = command_for(change)
        also = f", or: {by_hand}" if by_hand else ""
        message = "yarnctl lowered %s and has not restored it; if no daemon runs: yarnctl restore --all%s"
        _LOG.warning(message, described(change), also)


def _folders(plan: Plan) -> Folders:
    """Return yarnctl's folders in HDFS after a first check; raises BadInput if they are not safe."""
    begin = Facts(
        caller_identity=plan.attachment.requests_owner,
        requests_root=plan.attachment.requests_root,
        store_root=plan.store_root,
    )
    folders = Folders(hdfs_client(plan.cluster), begin)
    folders.require(clock_ms())
    return folders


def hdfs_client(cluster: ClusterAddress) -> WebHdfs:
    """Return a client for lock, records and folders with the loop's bounds."""
    limits = hdfs_limits(cluster.limits)
    return WebHdfs(cluster.name_nodes, cluster.identity, limits, bulk_limits=limits, ca_file=cluster.ca_file)


def _stop_on_signals(loop: Loop, stack: ExitStack, service: Service | None) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.signal(number, lambda *_: loop.stop())
        stack.callback(signal.signal, number, before)
    has_terminal = os.isatty(0)

    def hung_up(*_: object) -> None:
        if has_terminal and not os.isatty(0):  # Its terminal was closed: end in order
            loop.stop()
        else:
            loop.reload()
            if service is not None:
                service.reload()

    stack.callback(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, hung_up))


def cluster_name(cluster: ClusterAddress) -> str:
    """Return host:port of the first ResourceManager, the name of the default state directory."""
    return urlsplit(cluster.resource_managers[0]).netloc.rpartition("@")[2]
