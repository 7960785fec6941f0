"""Deaths and frozen processes at every point of a change, for each kind of setting; in memory.

Law: a life is: record a change, make it, let it become due, restore it, read it back, remove the record. Each
request to HDFS and each change of the setting is two points, before and after its effect.

* ``died``: the process ends at the point. The next leader restores the value, and no record is left.
* ``frozen``: the process stops at the point and continues after the next leader has taken over, which either
  has ended (``idle``) or has changed the setting again (``serving``). It sends nothing but the call that was
  under way; what that call sets is corrected within 5 s, and a driver does not obey it at all: its number is
  not above the last. In the end the value is the one before.

``python -m tests.soak.two_holders`` counts.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from tests.unit.restoring.world import CHANGES, KINDS, Folder, Host, Trap, Values, lowered_value
from yarnctl.deciding.model import ChangeKind
from yarnctl.deciding.reasons.orders import DemandOver, MayNotAct, QueueServing

Fault = Literal["died", "frozen, idle", "frozen, serving"]
FAULTS: tuple[Fault, ...] = ("died", "frozen, idle", "frozen, serving")
CORRECTED_MS = 5_000
WAIT_S = 30.0


class Died(BaseException):
    """kill -9."""


class Case(NamedTuple):
    """One fault at one point (from 1) of the life of one kind of change."""

    kind: ChangeKind
    at: int
    fault: Fault


def live(host: Host, values: Values, kind: ChangeKind) -> None:
    """Change a setting, restore it, and read it back."""
    change = CHANGES[kind]
    if host.restorer.record((change,), QueueServing()) == "":
        values.set(change.target, lowered_value(change))
    host.restorer.make_due(DemandOver())
    host.pass_ms(2_000)


def world(kind: ChangeKind) -> tuple[Folder, Values, Host]:
    """Return a cluster whose setting is as its owner set it, and the first process."""
    hdfs = Folder()
    values = Values(hdfs)
    values.values[CHANGES[kind].target] = CHANGES[kind].before
    return hdfs, values, Host(hdfs, values, "one")


def points(kind: ChangeKind) -> tuple[str, ...]:
    """Return the points of a life without a fault, in order."""
    hdfs, values, host = world(kind)
    hdfs.trap = Trap()
    live(host, values, kind)
    return tuple(hdfs.trap.names)


def cases() -> Iterator[Case]:
    """Return every case."""
    for kind in KINDS:
        for at in range(1, len(points(kind)) + 1):
            for fault in FAULTS:
                yield Case(kind, at, fault)


def play(case: Case) -> str:
    """Return what is wrong with how a case ended, "" if nothing is."""
    return _died(case) if case.fault == "died" else _frozen(case)


def _died(case: Case) -> str:
    hdfs, values, host = world(case.kind)

    def die() -> None:
        raise Died

    hdfs.trap = Trap(case.at, die)
    try:
        live(host, values, case.kind)
    except Died:
        pass
    else:
        return "was not struck"
    hdfs.trap = Trap()
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(60_000)
    return _left(case, hdfs, values)


def _left(case: Case, hdfs: Folder, values: Values) -> str:
    change = CHANGES[case.kind]
    if values.values[change.target] != change.before:
        return f"the value ends as {values.values[change.target]}"
    return f"{len(hdfs.files)} records are left" if hdfs.files else ""


def _frozen(case: Case) -> str:
    """Freeze a process in a thread of its own; whoever runs is the only one that runs."""
    hdfs, values, old = world(case.kind)
    frozen, resumed = threading.Event(), threading.Event()

    def freeze() -> None:
        frozen.set()
        assert resumed.wait(WAIT_S)

    hdfs.trap = Trap(case.at, freeze)

    def life() -> None:
        live(old, values, case.kind)
        old.restorer.make_due(MayNotAct())
        old.pass_ms(60_000)

    thread = threading.Thread(target=life)
    thread.start()
    if not frozen.wait(WAIT_S):
        return "was not struck"
    stuck = hdfs.trap.names[-1]
    hdfs.trap = Trap()
    old.leads = False
    new = Host(hdfs, values, "two", term=2)
    new.restorer.lost()
    new.pass_ms(3_000)
    change = CHANGES[case.kind]
    serving = case.fault == "frozen, serving"
    if serving:
        assert new.restorer.record((change,), QueueServing()) == ""
        values.set(change.target, lowered_value(change))
    wanted = lowered_value(change) if serving else change.before
    before = len(values.requests)
    resumed.set()
    thread.join(WAIT_S)
    late = len(values.requests) - before
    if late > (stuck == "change sent"):
        return f"{late} requests after {stuck}"
    if case.kind == "executors" and values.values[change.target] != wanted:
        return "the driver obeyed an order with an old number"
    new.pass_ms(CORRECTED_MS)
    if values.values[change.target] != wanted:
        return f"a late request stays: {values.values[change.target]}"
    new.restorer.make_due(DemandOver())
    new.pass_ms(60_000)
    return _left(case, hdfs, values)


def summary() -> dict[str, object]:
    """Play all cases; return what came of them."""
    counts: Counter[str] = Counter()
    wrong = 0
    for case in cases():
        counts[case.fault] += 1
        if story := play(case):
            wrong += 1
            print(f"{case}: {story}", file=sys.stderr)
    return {"points": sum(len(points(kind)) for kind in KINDS), **counts, "wrong": wrong}


def main() -> int:
    """Print the summary as JSON; exit status 1 if anything is wrong."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    logging.disable(logging.CRITICAL)
    found = summary()
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
