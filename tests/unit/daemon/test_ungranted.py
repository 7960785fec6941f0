"""When a request that fits counts as not granted, and the records that are read because of it."""

from __future__ import annotations

import msgspec

from tests.golden.tables import app, cluster
from tests.unit.attach.test_activities import Heartbeats
from tests.unit.hadoop.test_activities import BIG, HEADROOM, SKIPPED
from yarnctl.daemon.view.ungranted import Ungranted
from yarnctl.daemon.view.why_waiting import Waiting, sentence
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.reasons.demand import NoTaskMayStop
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.reasons.waiting_reasons import ContainersOrdered, FitsNotGranted


class Waits:
    """One application that fits on two nodes, and the records of heartbeats."""

    def __init__(self) -> None:
        self.beats = Heartbeats(SKIPPED)
        self.ungranted = Ungranted(self.beats.reader)
        self.held = 3
        self.located: dict[str, int] = {}
        self.waiting = Waiting("fits", FitsNotGranted(2, ("a:1", "b:1")), fitting=4)

    def snapshot(self) -> Snapshot:
        view = msgspec.structs.replace(app(BIG, "root.res", self.held), requests=())
        seen = cluster(view, guaranteed={"root.res": 5}, free={"a:1": 2, "b:1": 2})
        return msgspec.structs.replace(seen, located=self.located)

    def tick(self) -> Waiting:
        """Let one second pass; return the reason that is shown."""
        found = self.ungranted.judged({BIG: self.waiting}, self.snapshot(), self.beats.now_ms)
        self.ungranted.read(found, self.snapshot())
        self.beats.now_ms += 1_000
        return found[BIG]


def test_what_fits_is_expected_first_and_then_read_and_explained():
    waits = Waits()
    expected = [waits.tick() for _ in range(4)]
    assert {code(each.why) for each in expected} == {"grant-expected"}
    assert sentence(expected[0]) == (
        "2 containers fit on a:1, b:1; YARN grants one container per node and heartbeat, here within 4 s"
    )
    assert waits.beats.heard == []
    assert sentence(waits.tick()) == (
        "2 containers fit on a:1, b:1; the ResourceManager has not granted them in 4 s"
    )
    waits.tick()
    assert sorted(waits.beats.heard) == ["a:1", "a:1", "b:1", "b:1"]
    assert sentence(waits.tick()).endswith(
        f"not granted them in 6 s; YARN reports at root.res, node a:1: '{HEADROOM}'"
    )


def test_a_grant_and_more_requests_begin_the_wait_anew():
    waits = Waits()
    for _ in range(4):
        waits.tick()
    assert code(waits.tick().why) == "fits-not-granted"
    waits.held += 1
    assert code(waits.tick().why) == "grant-expected"
    for _ in range(3):
        waits.tick()
    assert code(waits.tick().why) == "fits-not-granted"
    waits.waiting = msgspec.structs.replace(waits.waiting, fitting=30)
    assert code(waits.tick().why) == "grant-expected"


def test_requests_that_name_hosts_get_more_time():
    waits = Waits()
    waits.located = {BIG: 2}
    assert {code(waits.tick().why) for _ in range(6)} == {"grant-expected"}
    assert code(waits.tick().why) == "fits-not-granted"


def test_a_rejected_application_is_explained_and_one_with_orders_is_not_read():
    waits = Waits()
    waits.waiting = Waiting("ordered", ContainersOrdered(1, (("r", 1),)))
    for _ in range(3):
        waits.tick()
    assert waits.beats.heard == []
    waits.waiting = Waiting("rejected", NoTaskMayStop())
    assert [bool(waits.tick().yarn) for _ in range(3)] == [False, False, True]
    assert set(waits.beats.heard) == {"a:1", "b:1"}


def test_a_full_node_is_not_read_for_a_request_that_fits_on_none():
    waits = Waits()
    shown = cluster(guaranteed={"root.res": 5}, free={"a:1": 1, "full:1": 0})
    rejected = {BIG: Waiting("rejected", NoTaskMayStop())}
    waits.ungranted.read(rejected, shown)
    assert waits.beats.heard == ["a:1"]
