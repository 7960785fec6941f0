"""Records of nodes' heartbeats: when one is read, how long it counts, and what it corrects."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application
from tests.unit.hadoop.replaying import Reply
from tests.unit.hadoop.test_activities import FULL, OLD, SKIPPED, answer, element, read
from yarnctl.attach.observing.activity_reader import (
    AGAIN_MS,
    ARMED_MS,
    HEARTBEAT_KEY,
    KEPT_MS,
    NODES_MAX,
    PAUSE_MS,
    READS_MAX,
    ActivityReader,
)
from yarnctl.attach.observing.cluster_state import ways_to_reserve
from yarnctl.deciding.model import ObservationRequest
from yarnctl.errors import Unreachable
from yarnctl.hadoop.wire.node_activities import NodeActivities, YarnWords
from yarnctl.units import Resources, times


class Heartbeats:
    """Answers as YARN does: the last record, which is renewed by a heartbeat after a request."""

    def __init__(self, record: dict) -> None:
        self.now_ms = 1_000_000
        self.heard: list[str] = []
        self.record = read(record)
        self.is_broken = self.is_silent = False
        self.last: dict[str, int] = {}
        self.reader = ActivityReader(self.read, lambda: self.now_ms)

    def read(self, node: str) -> NodeActivities:
        self.heard.append(node)
        if self.is_broken:
            raise Unreachable("timed out")
        at_ms = self.last.get(node, 5)  # what was recorded hours ago
        if not self.is_silent:
            self.last[node] = self.now_ms
        return msgspec.structs.replace(self.record, node=node, at_ms=at_ms)

    def tick(self, *nodes: str, span_ms: int = 1_000) -> list[str]:
        self.heard.clear()
        self.reader.renew(nodes)
        self.now_ms += span_ms
        return list(self.heard)


@pytest.mark.parametrize(
    ("told", "found_ms"),
    [("3000", 3_000), (" 500 ", 500), ("0", 1_000), ("-5", 1_000), ("9" * 5_000, 1_000), ("9" * 30, 1_000)],
)
def test_heartbeat_ms_of_a_number_that_is_no_interval_is_the_default(told, found_ms):
    """Python reads no number of 5,000 digits, and no record can have one of 30."""
    configuration = {HEARTBEAT_KEY: told}
    reader = ActivityReader(Heartbeats(SKIPPED).read, lambda: 0, lambda: configuration)
    assert reader.heartbeat_ms() == found_ms


def test_a_record_counts_only_if_it_was_made_after_a_first_request():
    beats = Heartbeats(SKIPPED)
    beats.tick("a:1")
    assert beats.reader.records() == {}
    beats.tick("a:1")
    assert list(beats.reader.records()) == ["a:1"]
    words = beats.reader.words(OLD, "root.eng.prod")
    assert words == YarnWords("a:1", "root.eng", "Queue hits max-capacity limit")
    assert str(words) == "YARN reports at root.eng, node a:1: 'Queue hits max-capacity limit'"


def test_the_same_record_twice_is_an_old_one():
    beats = Heartbeats(SKIPPED)
    beats.is_silent = True
    for _ in range(20):
        beats.tick("a:1")
    assert beats.reader.records() == {}


def test_a_first_request_long_ago_proves_nothing():
    beats = Heartbeats(SKIPPED)
    beats.tick("a:1", span_ms=ARMED_MS + 1)
    beats.tick("a:1")
    assert beats.reader.records() == {}


def test_a_record_is_as_old_as_the_request_that_armed_it():
    """The heartbeat that it describes came right after: a reservation may have moved since."""
    beats = Heartbeats(SKIPPED)
    beats.tick("a:1", span_ms=ARMED_MS)
    beats.reader.renew(["a:1"])
    assert list(beats.reader.records()) == ["a:1"]
    beats.now_ms += 1
    assert beats.reader.records() == {}, f"{KEPT_MS} ms after the first request"


def test_a_record_is_kept_for_a_while_and_read_again_while_it_is_needed():
    beats = Heartbeats(SKIPPED)
    beats.tick("a:1")
    beats.tick("a:1")
    reads = [bool(beats.tick("a:1")) for _ in range(12)]
    assert sum(reads) == 6, f"twice in {AGAIN_MS} ms, as the first answer is old: {reads}"
    assert beats.reader.records()
    beats.now_ms += KEPT_MS
    assert beats.reader.records() == {}


def test_a_tick_reads_few_nodes_and_comes_to_all_suspects():
    beats = Heartbeats(SKIPPED)
    beats.reader.suspects = tuple(f"n{number}:1" for number in range(2 * NODES_MAX))
    seen: set[str] = set()
    for _ in range(NODES_MAX):
        found = beats.tick("a:1")
        assert len(found) <= READS_MAX
        seen |= set(found)
    assert len(seen) == NODES_MAX + 1


def test_a_fault_stops_reading_for_a_minute():
    beats = Heartbeats(SKIPPED)
    beats.is_broken = True
    assert beats.tick("a:1", "b:1") == ["a:1"]
    beats.is_broken = False
    assert beats.tick("a:1") == []
    beats.now_ms += PAUSE_MS
    assert beats.tick("a:1") == ["a:1"]


def test_the_words_are_one_line_of_printable_text():
    words = YarnWords("a:1", "root.é", "no\n\x1b[1mroom  " + "x" * 1000)
    assert str(words).startswith(r"YARN reports at root.\xe9, node a:1: 'no \x1b[1mroom xxx")
    assert len(str(words)) < 400


# --- the node of a reservation ------------------------------------------------------------------------

WANTED = ObservationRequest(probe_queues=("root.production",))


def reserving(cluster: FakeCluster, node: str) -> App:
    """Three nodes of three slots with one free; research has reserved two slots on ``node``."""
    for number in range(3):
        cluster.nodes[f"r{number}:1"] = times(SLOT, 3)
        cluster.research(20 + number, [f"r{number}:1", f"r{number}:1"])
    big = cluster.add(App(9, "research", asks=[(10, times(SLOT, 2), 1)], reserved_mib=2048, state="ACCEPTED"))
    reserved = element("root", "RE_RESERVED", "", element(
        "root.research", "RE_RESERVED", "", element(
            big.id, "RE_RESERVED", "", element("request_10_-1", "RE_RESERVED"))))  # fmt: skip

    def answered(query: dict[str, str]) -> dict:
        told = answer("RESERVED", reserved) if query["nodeId"] == node else FULL
        told["activities"] |= {"nodeId": query["nodeId"], "timestamp": cluster.now_ms}
        return told

    cluster.activities = answered
    return big


def test_a_record_names_the_one_node_that_a_reservation_protects(cluster: FakeCluster):
    big = reserving(cluster, "r1:1")
    port = cluster.port()

    def shot():
        found = port.observe(WANTED).snapshot
        assert found is not None
        port.activities.renew(())
        cluster.now_ms += 1_000
        return found

    every = {f"r{number}:1": big.id for number in range(3)}
    assert shot().reserved_by_node == every
    assert shot().reserved_by_node == every  # the first answers may be old
    found = shot()
    assert found.reserved_by_node == {"r1:1": big.id}
    assert found.reserved_priority == {"r1:1": 10}
    assert set(found.free_by_node) >= {"r0:1", "r2:1"}
    assert "r1:1" not in found.free_by_node

    del cluster.apps[application(21)]  # a slot is free beside it: YARN fills the reservation there
    found = shot()
    assert found.reserved_by_node == {"r1:1": big.id}
    assert found.free_by_node["r1:1"] == times(SLOT, 3)


def test_of_two_records_of_one_reservation_the_later_counts(cluster: FakeCluster):
    big = reserving(cluster, "r1:1")
    of_one = cluster.activities
    assert of_one is not None

    def of_two(query: dict[str, str]) -> dict:
        if query["nodeId"] != "r0:1":
            return of_one(query)
        told = of_one({"nodeId": "r1:1"})
        told["activities"] |= {"nodeId": "r0:1", "timestamp": cluster.now_ms - 500}
        return told

    cluster.activities = of_two
    port = cluster.port()
    for _ in range(3):
        seen = port.observe(WANTED).snapshot
        assert seen is not None
        port.activities.renew(())
        cluster.now_ms += 1_000
    assert seen is not None
    assert seen.reserved_by_node == {"r1:1": big.id}


@pytest.mark.parametrize(
    ("sum_", "sizes", "ways"),
    [
        ((2048, 4, 2), [(1024, 2, 1), (1536, 3)], [[(1024, 2, 1)] * 2]),
        ((3072, 6), [(1024, 2), (1536, 3)], [[(1536, 3)] * 2, [(1024, 2)] * 3]),
        ((3072, 6), [(1024, 2)], [[(1024, 2)] * 3]),
        ((3072, 6), [(2048, 1), (512, 4)], [[(2048, 1)]]),
    ],
)
def test_ways_to_reserve_add_up_in_every_resource(sum_, sizes, ways):
    found = ways_to_reserve(Resources(*sum_), [Resources(*size) for size in sizes])
    assert found == [[Resources(*size) for size in way] for way in ways]


def test_without_records_every_suspect_is_protected(cluster: FakeCluster):
    big = reserving(cluster, "r1:1")
    cluster.break_("GET .*/scheduler/activities", Reply("", 404))
    port = cluster.port()
    for _ in range(4):
        seen = port.observe(WANTED)
        assert seen.cluster == "seen"
        assert seen.snapshot is not None
        assert set(seen.snapshot.reserved_by_node.values()) == {big.id}
        assert len(seen.snapshot.reserved_by_node) == 3
        port.activities.renew(())
        cluster.now_ms += 1_000


def test_a_node_below_the_smallest_container_is_full(cluster: FakeCluster):
    reserving(cluster, "r1:1")
    cluster.configuration["yarn.scheduler.minimum-allocation-mb"] = "2048"
    seen = cluster.port().observe(WANTED).snapshot
    assert seen is not None
    assert seen.reserved_by_node == {}
