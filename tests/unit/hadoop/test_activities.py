"""The records of a node's heartbeat, in the shapes of the facts (section 5.1)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.unit.hadoop.replaying import PATIENT, Heard, Replay, Reply
from yarnctl.hadoop.http.answers import BadAnswer, Missing
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire.node_activities import ACTIVITIES, NodeActivities, ReservationHolder

OLD, BIG, SMALL = (f"application_1700000000000_000{number}" for number in (1, 2, 3))
HEADROOM = f"Queue does not have enough headroom for inner highest-priority request from {OLD}"
SHORT = (
    "Node does not have sufficient resource for request, insufficient resources=[memory-mb]"
    " required=<memory:1024, vCores:2> available=<memory:512, vCores:1>"
)


def element(name: str, state: str, said: str = "", *children: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "allocationState": state}
    return found | ({"diagnostic": said} if said else {}) | ({"children": list(children)} if children else {})


def answer(state: str, root: dict[str, Any]) -> dict[str, Any]:
    allocation = {"partition": "", "finalAllocationState": state, "root": root}
    return {"activities": {"nodeId": "a:1", "timestamp": 1_700_000_000_500, "allocations": [allocation]}}


def read(value: dict[str, Any]) -> NodeActivities:
    return ACTIVITIES.read(msgspec.json.encode(value))


SKIPPED = answer(
    "SKIPPED",
    element(
        "root", "SKIPPED", "",
        element("root.eng", "REJECTED", "Queue hits max-capacity limit"),
        element("root.mkt", "SKIPPED", "Queue does not need more resource"),
        element("root.res", "SKIPPED", HEADROOM),
        element(
            "root.ops", "SKIPPED", "",
            element(BIG, "SKIPPED", "Queue hits user max-capacity limit"),
            element(SMALL, "SKIPPED", "", element(
                "request_20_-1", "SKIPPED", "", element("a:1", "SKIPPED", SHORT))),
        ),
    ),
)  # fmt: skip
RESERVED = answer(
    "RESERVED",
    element("root", "RE_RESERVED", "", element(
        "root.mkt", "RE_RESERVED", "", element(BIG, "RE_RESERVED", "", element(
            "request_10_-1", "RE_RESERVED", "", element("a:1", "RE_RESERVED", SHORT))))),
)  # fmt: skip
FULL = answer(
    "SKIPPED",
    element(
        "root", "REJECTED", "Initial check: node resource is insufficient for minimum allocation"
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("application", "queue", "at", "said"),
    [
        (OLD, "root.eng.prod", "root.eng", "Queue hits max-capacity limit"),
        (OLD, "root.res", "root.res", HEADROOM),
        (SMALL, "root.res", "root.res", HEADROOM),  # not reached: the leaf was left before
        (BIG, "root.ops", BIG, "Queue hits user max-capacity limit"),
        (SMALL, "root.ops", "a:1", SHORT),
        (OLD, "root.ops", "", ""),
        (OLD, "root.engineering", "", ""),
    ],
)
def test_the_lowest_words_on_the_way_to_an_application_count(application, queue, at, said):
    assert read(SKIPPED).words(application, queue) == (at, said)


def test_a_full_node_says_nothing_of_queues():
    assert read(FULL).words(OLD, "root.eng.prod")[0] == "root"
    assert read(FULL).reserved_for() is None


BIG_HOLDS = ReservationHolder(BIG, 10, is_new=False, at_ms=1_700_000_000_500)


def test_a_reserved_node_names_the_application_and_its_request():
    assert (read(RESERVED).reserved_for(), read(SKIPPED).reserved_for()) == (BIG_HOLDS, None)


def test_older_and_shorter_forms():
    """Lists of one as objects, numbers as text; nothing recorded yet; the names before 3.3.0."""
    mapped = {
        "nodeId": "a:1", "timestamp": "1700000000500",
        "allocations": {"finalAllocationState": "RESERVED", "root": {
            "name": "root", "allocationState": "RE_RESERVED", "children": {
                "name": BIG, "allocationState": "RE_RESERVED"}}},
    }  # fmt: skip
    tried = json.loads(json.dumps(mapped).replace("RE_RESERVED", "RESERVED"))
    assert read({"activities": tried}).reserved_for() == BIG_HOLDS._replace(priority=None, is_new=True)
    assert read({"activities": mapped}).reserved_for() == BIG_HOLDS._replace(priority=None)
    assert read(mapped) == read({"activities": mapped})
    waiting = read({"activities": {"nodeId": "a:1", "diagnostic": "waiting for next allocation"}})
    assert (waiting.at_ms, waiting.allocations) == (0, ())
    before = {"nodeId": "a:1", "timeStamp": "Thu Sep 22 12:26:55 PDT 2016", "allocations": []}
    assert read({"activities": before}).at_ms == 0


def test_the_client_asks_for_one_node():
    heard: list[tuple[str, dict[str, str]]] = []

    def answered(request: Heard) -> Reply:
        heard.append((request.path, dict(request.query)))
        return Reply(msgspec.json.encode(SKIPPED), 200 if len(heard) == 1 else 404)

    with Replay(answered) as replay, Transport([replay.url], limits=PATIENT) as transport:
        manager = ResourceManager(transport)
        assert manager.activities("a:1").node == "a:1"
        with pytest.raises((Missing, BadAnswer)):
            manager.activities("a:1")
    path, query = heard[0]
    assert (path, query["nodeId"]) == ("/ws/v1/cluster/scheduler/activities", "a:1")
