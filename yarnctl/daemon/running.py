"""Running: from what the user said to a daemon that runs, with everything checked before anything starts.

Law: nothing is half-started. What is wrong is said before the first request; what was started is stopped
in the opposite order, also after an error.
"""

from __future__ import annotations

import logging
import secrets
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from yarnctl.attach.attaching import attach, loop_limits
from yarnctl.attach.discover import discover_name_nodes, require_name_nodes
from yarnctl.attach.settings import Attachment
from yarnctl.config import Cluster
from yarnctl.daemon.guards import Gate, GuardedPort, Misdirection
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.naming import NamedPort
from yarnctl.daemon.state_dir import StateDir
from yarnctl.daemon.view import LoopStatus, Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.settings import Settings
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.lock import LockFile
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.journal.file import JournalFile
from yarnctl.journal.rebuild import Rebuilt, mend, rebuild

_LOG = logging.getLogger("yarnctl.daemon")

LOCK_PATH = "/yarnctl/lock"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a daemon is told. ``ticks``: stop after so many (None: run on)."""

    cluster: Cluster
    attachment: Attachment
    settings: Settings
    state_dir: Path
    ticks: int | None = None


def clock_ms() -> int:
    """Return the wall clock in ms since the epoch."""
    return time.time_ns() // 1_000_000


def with_hdfs(plan: Plan) -> Plan:
    """Find HDFS by the ResourceManager's own configuration if nobody named it.

    Raises Unreachable if the ResourceManager does not answer and BadInput if it names none; a daemon
    that only observes does without.
    """
    if plan.cluster.name_nodes:
        return plan
    try:
        manager = plan.cluster.resource_manager()
        found = discover_name_nodes(manager, plan.cluster.resource_managers[0])
        if plan.attachment.enforce:
            found = require_name_nodes(found)
    except YarnctlError as error:
        if plan.attachment.enforce:
            raise
        _LOG.warning("HDFS is not known: %s", error)
        return plan
    return msgspec.structs.replace(plan, cluster=msgspec.structs.replace(plan.cluster, name_nodes=found))


Serve = Callable[[Loop, StateDir], Callable[[], None]]
"""Starts the service for a loop and returns how to stop it."""


def run(plan: Plan, serve: Serve | None = None) -> None:
    """Run the daemon until SIGTERM, SIGINT or its last tick."""
    plan = with_hdfs(plan)
    with ExitStack() as stack:
        state = stack.enter_context(StateDir(plan.state_dir, lambda: secrets.token_hex(4)))
        torn = mend(state.journal)
        if torn is not None:
            _LOG.warning("the journal ended in half a line; it was moved to %s", torn)
        rebuilt = rebuild(state.journal)
        port = attach(plan.cluster, plan.attachment, clock_ms)
        stack.callback(port.close)
        named = NamedPort(port, state.instance)
        loop, journal = make_loop(plan, state, named, rebuilt)
        stack.callback(journal.file.close)
        if serve is not None:
            stack.callback(serve(loop, state))
        _stop_on_signals(loop, stack)
        loop.run(plan.ticks)
        journal.close()


def make_loop(
    plan: Plan, state: StateDir, port: NamedPort, rebuilt: Rebuilt | None
) -> tuple[Loop, JournalFile]:
    """Put controller, port, guards, journal and publisher together."""
    enforce = plan.attachment.enforce
    misdirection = Misdirection()
    publisher = Publisher(LoopStatus(mode="enforce" if enforce else "observe"), clock_ms())
    if rebuilt is not None:
        misdirection.take(rebuilt.recent)
        publisher.record(rebuilt.recent)
        port.adopt(rebuilt.remembered.ledger.open.values())
        _LOG.info("%d orders go on from the journal", len(rebuilt.remembered.ledger.open))
    lock = _lock(plan, state) if enforce else None
    gate = Gate(lock, port.standing_aside, misdirection)
    controller = Controller(plan.settings, remembered=rebuilt.remembered if rebuilt else None)
    journal = JournalFile(state.journal)
    loop = Loop(
        controller,
        GuardedPort(port, gate, enforce=enforce),
        journal,
        publisher,
        clock_ms=clock_ms,
        lock=lock,
        priorities=rebuilt.priorities if rebuilt else None,
        keep_priorities=plan.attachment.allow_priority and plan.settings.mode == "deadlines",
    )
    return loop, journal


def _lock(plan: Plan, state: StateDir) -> LockFile:
    """Return the cluster-wide lock: one daemon that acts per cluster, in HDFS, renewed."""
    limits = loop_limits(plan.cluster.limits)
    store = WebHdfs(plan.cluster.name_nodes, plan.cluster.identity, limits, ca_file=plan.cluster.ca_file)
    return LockFile(store, LOCK_PATH, state.instance)


def _stop_on_signals(loop: Loop, stack: ExitStack) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.signal(number, lambda *_: loop.stop())
        stack.callback(signal.signal, number, before)


def cluster_name(cluster: Cluster) -> str:
    """Return host:port of the first ResourceManager: what the default state directory is named after."""
    return urlsplit(cluster.resource_managers[0]).netloc.rpartition("@")[2]
