"""Hostile servers on loopback, and how long the orders of an honest job beside them take.

Law: the servers run in processes of their own: only their answers burden the one that is measured. The
port has the bounds of ``yarnctl run``. A tick is a daemon's: the lock's renewal, a look at all applications
but those that did not answer lately, orders for hostile ones, then one for the honest job. Measured are the
time from a tick's begin until the honest order is sent (from the first tick in which the job was not seen, if
it was not), and how late each renewal has ended, once with usual answers and once with hostile ones.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import time
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import msgspec

from tests.soak.hostile_world import (
    HONEST,
    KINDS,
    PRODUCTION,
    HostileCluster,
    Hostility,
    mutating,
    orders_for,
)
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.connection.application_guard import wait_for
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import MASTER_BYTES, AttachedPort, hdfs_limits, loop_limits
from yarnctl.daemon.running import clock_ms
from yarnctl.deciding.model import Action, ObservationRequest, Suspend, TaskView
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.frameworks.registry import all_frameworks
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.lock import LOCK_PATH, LockFile
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs

DELAY_MAX_MS = 1_000
TICK_MS = 250
TWINS = 1
"""Hostile applications of each framework and of each way to be hostile."""
WAYS = ("silent", "drips", "endless", "huge", "slow", "mutated", "in turn")
SILENT_S = 30
"""As in ``deciding.settings``: so long one that did not answer is not asked again."""
QUIET_S = 3
"""So long all answer as usual: they have to be seen before they can be ordered."""
HUGE_BYTES = 60 << 20
ORDERED, ORDERS_EACH = 3, 2
"""Hostile applications that get orders in a tick, and how many each."""


class Ticks(NamedTuple):
    """What a run came to; spans in ms. ``seen``: how applications were seen, and how often.

    ``waited_ms``: what the guard has waited for applications in each tick, as a part of ``order_ms``.
    """

    order_ms: list[float]
    waited_ms: list[float]
    renewal_late_ms: list[float]
    honest_hidden: int
    seen: Counter[str]


# --- the servers' process -------------------------------------------------------------------------------


def hostility(way: str, seed: int, huge: bytes) -> Hostility:
    """Return how an application answers, after a while."""
    begins_s = time.monotonic() + QUIET_S
    mutate = mutating(random.Random(seed), 0.5)

    def answer(heard: Heard, reply: Reply) -> Reply:
        now_s = time.monotonic()
        if now_s < begins_s or (way == "in turn" and int(now_s / 2) % 2):
            return reply
        match way:
            case "silent" | "in turn":
                return reply._replace(delay_s=3600)
            case "drips":
                return reply._replace(drip_s=0.2)
            case "endless":
                return reply._replace(endless=b" " * 65536)
            case "huge":
                return reply._replace(body=huge)
            case "slow":
                return reply._replace(delay_s=1.0)
            case _:
                return mutate(heard, reply)

    return answer


def serve(pipe: Connection, seed: int, now_ms: int, is_hostile: bool) -> None:
    """Serve until told to stop; all of these servers know the same applications."""
    huge = b'[{"id":"1","x":"' + b"y" * HUGE_BYTES + b'"}]' if is_hostile else b""
    with HostileCluster() as cluster:
        cluster.now_ms = now_ms
        cluster.on_kill = lambda _attempt: None
        names = []
        for number, (way, kind) in enumerate((way, kind) for way in WAYS for kind in KINDS * TWINS):
            names.append(cluster.twin(100 + number, kind))
            if is_hostile:
                cluster.hostile[names[-1]] = hostility(way, seed + number, huge)
        pipe.send((cluster.rm.url, cluster.hdfs.replay.url, tuple(names)))
        pipe.recv()


class Address(NamedTuple):
    """Where a process serves, and the applications that it knows."""

    manager: str
    store: str
    names: tuple[str, ...]


@contextmanager
def server(seed: int, now_ms: int, *, is_hostile: bool) -> Iterator[Address]:
    """Start a process that serves."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, seed, now_ms, is_hostile), daemon=True)
    process.start()
    try:
        yield Address(*ours.recv())
    finally:
        ours.send("stop")
        process.join(10)
        process.kill()


# --- the measured process -------------------------------------------------------------------------------


def port_to(cluster: Address, applications: Address, store: WebHdfs) -> AttachedPort:
    """Return a port as ``attach`` makes it, but that the hostile applications have a server of their own.

    A real proxy is not slow for all because one application is.
    """
    limits = loop_limits(CallLimits())
    theirs = msgspec.structs.replace(limits, answer_bytes=MASTER_BYTES)
    near, far = (Transport([each.manager], Identity("yarnctl"), theirs) for each in (cluster, applications))

    jobs = MapReduce(far)
    jobs._master = lambda name: MasterClient(near if name == HONEST else far, name)
    told = Attachment(enforce=True, levers=True, stable_observations=1, name_nodes=(cluster.store,))
    return AttachedPort(
        ResourceManager(Transport([cluster.manager], Identity("yarnctl"), limits)),
        store, told, clock_ms, all_frameworks(far) | {KIND: jobs},
    )  # fmt: skip


def run(seconds: int, seed: int, *, is_hostile: bool) -> Ticks:
    found = Ticks([], [], [], 0, Counter())
    draw, known, silent = random.Random(seed), dict[str, tuple[TaskView, ...]](), dict[str, float]()
    now_ms = clock_ms()
    with (
        server(seed, now_ms, is_hostile=False) as cluster,
        server(seed, now_ms, is_hostile=is_hostile) as applications,
    ):
        names, limits = cluster.names, hdfs_limits(CallLimits())
        store = WebHdfs([cluster.store], Identity("yarnctl"), limits, bulk_limits=limits)
        lock = LockFile(store, LOCK_PATH, "measured")
        with closing(port_to(cluster, applications, store)) as port:
            until_s, due_s = time.monotonic() + seconds, time.monotonic()
            orders: tuple[str, ...] = ("",)
            hidden = number = 0
            is_sent, since_s = True, 0.0
            guard = port._connection.guard

            def wait(futures: Collection[Future[Any]], span_ms: int) -> None:
                before_s = time.monotonic()
                wait_for(futures, span_ms)
                found.waited_ms[-1] += (time.monotonic() - before_s) * 1000

            guard.wait = wait
            while time.monotonic() < until_s:
                began_s = time.monotonic()
                since_s = began_s if is_sent else since_s
                found.waited_ms.append(0.0)
                if began_s >= due_s:
                    lock.renew() if lock.held else lock.acquire()
                    found.renewal_late_ms.append((time.monotonic() - due_s) * 1000)
                    due_s += lock.every_ms / 1000
                asked = tuple(name for name in names if silent.get(name, 0) <= began_s)
                seen = port.observe(ObservationRequest(True, (), (HONEST, *asked), orders, (PRODUCTION,)))
                silent |= dict.fromkeys(seen.unreachable, began_s + SILENT_S)
                mine = seen.tasks.get(HONEST, ())
                hidden += seen.cluster != "seen" or len(mine) != 3
                known |= {name: tasks for name, tasks in seen.tasks.items() if tasks}
                found.seen.update(
                    "seen" if name in seen.tasks else "late" if name in seen.late else "unreachable"
                    for name in asked
                )
                number += 1
                given: list[Action] = []
                for name in draw.sample(names, ORDERED):
                    given += draw.sample(list(orders_for(name, known.get(name, ()), number)), 1)
                given += [
                    Suspend(f"h-{number}", HONEST, each.attempt, each.container, 1, 1 << 50)
                    for each in mine[:1]
                ]
                for action in given:
                    port.perform(action)
                orders = tuple(action.order for action in given if hasattr(action, "order"))
                is_sent = bool(mine)
                if is_sent:
                    found.order_ms.append((time.monotonic() - since_s) * 1000)
                time.sleep(TICK_MS / 1000)
    return found._replace(honest_hidden=hidden)


def measure(seconds: int, seed: int) -> int:
    """Measure both, print the figures; return 1 if an order was delayed longer than it may be."""
    usual, hostile = (run(seconds, seed, is_hostile=each) for each in (False, True))
    for name, one in (("usual", usual), ("hostile", hostile)):
        middle_ms, most_ms = statistics.median(one.order_ms), max(one.order_ms)
        print(f"{name} answers: {len(one.order_ms)} ticks, seen {dict(one.seen)}")
        print(f"  until the honest order was sent: {middle_ms:.0f} ms, at most {most_ms:.0f} ms")
        print(f"  of that the guard waited for applications at most {max(one.waited_ms):.0f} ms")
        print(f"  the lock's renewal late by at most {max(one.renewal_late_ms):.0f} ms")
        print(f"  the honest job hidden {one.honest_hidden} times")
    delay_ms = max(hostile.order_ms) - max(usual.order_ms)
    print(f"the slowest honest order is {delay_ms:.0f} ms slower than the slowest with usual answers")
    return int(max(delay_ms, *hostile.waited_ms) > DELAY_MAX_MS)
