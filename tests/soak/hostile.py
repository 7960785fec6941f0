"""``python -m tests.soak hostile --looks N --seed S``: looks at applications whose answers are mutated.

Law: what is answered is a function of the seed. An escape is a look that raises, that hides the cluster or
the honest job, that cannot be written down and read back, or an order that raises. With ``--live SECONDS``
hostile servers answer on loopback, in a process of their own (``hostile_live``), and the delay of the honest
job's orders and of the lock's renewal is measured. Exit status 1: something escaped, or a delay was too long.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

import msgspec

from tests.soak.hostile_world import (
    HONEST,
    KINDS,
    PRODUCTION,
    HostileCluster,
    direct_port,
    mutating,
    orders_for,
)
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.model import Observation, ObservationRequest, TaskView
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.units import decode_vector

EACH = 200
"""Looks with one cluster and one port; then both are made anew."""
ORDERS_EVERY, POLLED_EVERY = 25, 5
"""They go through HDFS, which here has a wire."""
SILENT_EVERY = 20


class Fuzzed(NamedTuple):
    """What a run came to. ``seen``: how an application was seen, and how often."""

    looks: int
    orders: int
    escapes: list[str]
    seen: Counter[str]


class SilentOnes:
    """Applications that do not answer until a look is over; looks wait for all others, by no clock."""

    def __init__(self, port: AttachedPort) -> None:
        self.guard = port._connection.guard
        self.guard.wait = self.wait
        self.names: set[str] = set()
        self.over = threading.Event()

    def wait(self, futures: Collection[Future[Any]], _span_ms: int) -> object:
        with self.guard._lock:
            known = [one for one in self.guard._applications.values() if one.name in self.names]
            hung = {read.done for one in known for read in one.reads.values()}
            hung |= {change.sent for one in known for change in one.changes.values()}
        return wait([each for each in futures if each not in hung])

    def begin(self, names: Collection[str]) -> None:
        self.over, self.names = threading.Event(), set(names)

    def end(self) -> None:
        self.names = set()
        self.over.set()


class Play:
    """One cluster, looked at again and again."""

    def __init__(self, seed: int, make_port: Callable[[HostileCluster], AttachedPort] = direct_port) -> None:
        self.draw = random.Random(seed)
        self.cluster = HostileCluster()
        self.cluster.__enter__()
        self.port = make_port(self.cluster)
        self.silent = SilentOnes(self.port)
        self.orders = 0
        self.known: dict[str, tuple[TaskView, ...]] = {}
        self.seen: Counter[str] = Counter()
        self.port.observe(ObservationRequest())
        self.port.observe(ObservationRequest())
        share = self.draw.choice((0.05, 0.2, 0.6))
        for name in KINDS:
            mutate = mutating(random.Random(self.draw.random()), share)
            self.cluster.hostile[name] = self._hostile(name, mutate)

    def _hostile(self, name: str, mutate: Callable[[Heard, Reply], Reply]) -> Callable[[Heard, Reply], Reply]:
        lock = threading.Lock()

        def answer(heard: Heard, reply: Reply) -> Reply:
            if name in self.silent.names:
                self.silent.over.wait(60)
            with lock:
                return mutate(heard, reply)

        return answer

    def close(self) -> None:
        self.silent.end()
        self.port.close()
        self.cluster.__exit__()

    def look(self, number: int) -> str | None:
        """Look once, and give orders now and then; return what escaped."""
        self.cluster.now_ms += self.draw.choice((250, 1000, 6000))
        if self.draw.randrange(10) == 0:  # settings are read only once of an application
            for reader in self.port._readers.of_kind.values():
                reader.drop([self.draw.choice(KINDS)])
        self.silent.begin([name for name in KINDS if self.draw.randrange(SILENT_EVERY) == 0])
        opened = tuple(self.port._tracking.orders)[-20:] if number % POLLED_EVERY == 0 else ()
        try:
            seen = self.port.observe(ObservationRequest(True, (), (HONEST, *KINDS), opened, (PRODUCTION,)))
            problem = judged(seen)
            self._note(seen)
            if number % ORDERS_EVERY == 0:
                self._give_orders(number)
        except Exception:
            problem = traceback.format_exc()[-1500:]
        finally:
            self.silent.end()
        return problem

    def _note(self, seen: Observation) -> None:
        for name in KINDS:
            how = "seen" if name in seen.tasks else "late" if name in seen.late else "unreachable"
            self.seen[f"{how} {self.cluster.apps[name].kind.lower()}"] += 1
            self.known[name] = seen.tasks.get(name) or self.known.get(name, ())
        self.seen.update(type(fact).__name__ for fact in seen.facts)

    def _give_orders(self, number: int) -> None:
        name = self.draw.choice(KINDS)
        for order in orders_for(name, self.known.get(name, ()), number):
            self.port.perform(order)
            self.orders += 1
        if self.draw.randrange(3) == 0:
            self._resume(number)

    def _resume(self, number: int) -> None:
        """Let a task of the hostile job count as suspended: it is polled until it has resumed."""
        observer: Any = self.port._connected[KIND].observer
        costs, now_ms = observer.resume_costs, self.cluster.now_ms
        task, rows = next(iter(self.cluster.apps[KINDS[2]].tasks.items()))
        costs.began(f"r-{number}", KINDS[2], task, rows[0]["id"], -1, None, 1)
        costs.suspended[f"r-{number}"].polled_at_ms = now_ms - 60_000


def judged(seen: Observation) -> str | None:
    """Return why a look counts as an escape; None: it does not."""
    if seen.cluster != "seen" or seen.snapshot is None:
        return "the cluster was not seen"
    if len(seen.tasks.get(HONEST, ())) != 3 or HONEST in (*seen.unreachable, *seen.late):
        return "the honest job was not seen whole"
    text = msgspec.json.encode(seen)
    if len(text) > 1 << 20:
        return f"it takes {len(text)} bytes to write down"
    if msgspec.json.encode(msgspec.json.decode(text, type=Observation, dec_hook=decode_vector)) != text:
        return "it is read back as another one"
    return None


def fuzz(looks: int, seed: int, make_port: Callable[[HostileCluster], AttachedPort] = direct_port) -> Fuzzed:
    escapes: list[str] = []
    orders, seen = 0, Counter[str]()
    for first in range(0, looks, EACH):
        play = Play(seed + first, make_port)
        try:
            for number in range(first, min(looks, first + EACH)):
                if (problem := play.look(number)) is not None:
                    escapes.append(f"seed {seed}, look {number}: {problem}")
        finally:
            play.close()
        orders += play.orders
        seen += play.seen
    return Fuzzed(looks, orders, escapes, seen)


def main(arguments: list[str]) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak hostile", description=__doc__)
    parser.add_argument("--looks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--live", type=int, default=0, metavar="SECONDS")
    told = parser.parse_args(arguments)
    began = time.monotonic()
    found = fuzz(told.looks, told.seed)
    print(f"{found.looks} looks, {found.orders} orders, {len(found.escapes)} escapes, ", end="")
    print(f"{time.monotonic() - began:.0f} s; seen: {dict(sorted(found.seen.items()))}")
    for escape in found.escapes[:10]:
        print(escape)
    if told.live:
        from tests.soak.hostile_live import measure

        return max(measure(told.live, told.seed), int(bool(found.escapes)))
    return int(bool(found.escapes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
