"""Queues that come and go on a live ResourceManager, mapped submissions, and requests for several labels.

Law: what the served answers say is compared with what was done; yarnctl's own readers see the same.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emulator.cluster.entities import NodeLabel
from emulator.live.manager.state import AppRecord, RequestRefused
from emulator.live.wire.messages import Allocate, AskChange
from tests import http_client
from tests.live.test_nested_live import Nested, get, shown
from tests.unit.scheduler_files import LABELLED, NESTED, USERS, write_file

PARTS = {"eng": "40", "mkt": "20", "res": "40"}


@pytest.fixture
def nested(tmp_path: Path) -> Any:
    one = Nested(write_file(tmp_path, NESTED))
    with one.background:
        one.background.run(lambda: one.played.node("n1:1", 20))
        yield one


def put(one: Nested, body: str, kind: str = "xml") -> str:
    """Send a change; return why it was refused ("")."""
    url = f"{one.background.url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
    answer = http_client.put(url, data=body, headers={"Content-Type": f"application/{kind}"})
    return "" if answer.status_code == 200 else answer.text


def update(queue: str, **keys: str) -> str:
    rows = "".join(
        f"<entry><key>{key.replace('_', '-')}</key><value>{value}</value></entry>"
        for key, value in keys.items()
    )
    return f"<update-queue><queue-name>root.{queue}</queue-name><params>{rows}</params></update-queue>"


def shares(**parts: str) -> str:
    return "".join(update(queue, capacity=part) for queue, part in parts.items())


def test_a_queue_is_removed_once_it_is_stopped_and_empty(nested: Nested) -> None:
    played = nested.played
    app = nested.background.run(lambda: played.submit("mkt"))
    removal = f"<sched-conf><remove-queue>root.mkt</remove-queue>{shares(eng='60', res='40')}</sched-conf>"
    assert "Current State : RUNNING" in put(nested, removal)
    assert put(nested, f"<sched-conf>{update('mkt', state='STOPPED')}</sched-conf>") == ""
    assert "Current State : DRAINING" in put(nested, removal)
    nested.background.run(lambda: played.manager.kill(app, "ended"))
    assert "add up to 70" in put(nested, "<sched-conf><remove-queue>root.mkt</remove-queue></sched-conf>")
    assert put(nested, removal) == ""
    assert set(shown(nested)) == {"root", "root.eng", "root.eng.prod", "root.eng.lab", "root.res"}
    assert shown(nested)["root.eng"]["absoluteCapacity"] == 60
    seen = nested.check()
    assert {view.queue for view in seen.queues} == {"root.eng.prod", "root.eng.lab", "root.res"}
    with pytest.raises(RequestRefused, match="unknown queue"):
        nested.background.run(lambda: played.submit("mkt"))
    assert not any(".mkt." in each["name"] for each in get(nested, "scheduler-conf")["property"])


def test_a_parent_is_removed_with_all_below_it(nested: Nested) -> None:
    stopped = update("eng", state="STOPPED")
    assert put(nested, f"<sched-conf>{stopped}</sched-conf>") == ""
    removal = f"<remove-queue>root.eng</remove-queue>{shares(mkt='50', res='50')}"
    assert put(nested, f"<sched-conf>{removal}</sched-conf>") == ""
    assert set(shown(nested)) == {"root", "root.mkt", "root.res"}


def test_queues_are_added_and_serve(nested: Nested) -> None:
    more = "<add-queue><queue-name>root.new</queue-name><params><entry><key>capacity</key>"
    more += "<value>20</value></entry></params></add-queue>"
    assert put(nested, f"<sched-conf>{shares(mkt='20', res='20')}{more}</sched-conf>") == ""
    assert shown(nested)["root.new"]["absoluteCapacity"] == 20
    app = nested.background.run(lambda: nested.played.submit("root.new"))
    assert app.queue == "new"
    nested.background.run(lambda: nested.played.beat("n1:1"))
    assert shown(nested)["root.new"]["numContainers"] == 1
    nested.check()
    assert "it exists" in put(nested, f"<sched-conf>{more}</sched-conf>")
    below = more.replace("root.new", "root.mkt.low").replace(">20<", ">100<")
    assert "makes no parent of a leaf" in put(nested, f"<sched-conf>{below}</sched-conf>")


def test_json_names_them_as_xml_does(nested: Nested) -> None:
    def row(queue: str, key: str, value: str) -> str:
        return f'{{"queue-name":"{queue}","params":{{"entry":[{{"key":"{key}","value":"{value}"}}]}}}}'

    added = row("root.new", "capacity", "30")
    stopped = row("root.res", "state", "STOPPED")
    assert put(nested, f'{{"update-queue":[{stopped}]}}', "json") == ""
    assert put(nested, f'{{"remove-queue":["root.res"],"add-queue":[{added}]}}', "json") == ""
    assert {"root.new"} <= set(shown(nested)) - {"root.res"}


def test_an_application_goes_where_the_mappings_say(tmp_path: Path) -> None:
    rules = {"queue-mappings": "u:ann:eng.lab,u:%user:root.users.%user"}
    expiry = {"auto-queue-creation-v2.queue-expiration-time": "60"}
    one = Nested(write_file(tmp_path, {**NESTED, **USERS, **rules, **expiry}))
    with one.background:
        one.background.run(lambda: one.played.node("n1:1", 20))

        def submit(queue: str, user: str) -> AppRecord:
            return one.background.run(lambda: one.played.submit(queue, user))

        placed = [submit(queue, user).queue for queue, user in (("default", "ann"), ("res", "ann"))]
        assert placed == ["eng.lab", "res"]
        zoe = submit("default", "zoe")
        assert zoe.queue == "users.zoe"
        one.background.run(lambda: one.played.manager.kill(zoe, "ended"))
        one.background.run(one.played.manager.start)
        for _ in range(2):
            assert "root.users.zoe" in shown(one)
            one.background.run(lambda: one.played.pass_ms(61_000))
        assert "root.users.zoe" not in shown(one)
        one.check()


def test_an_application_may_request_nodes_of_several_labels(tmp_path: Path) -> None:
    labels = (NodeLabel(name="gpu", nodes=1), NodeLabel(name="ne", nodes=1, exclusive=False))
    one = Nested(write_file(tmp_path, {**NESTED, **LABELLED}), labels)
    played = one.played

    def play() -> AppRecord:
        for name in ("n1:1", "n2:1", "n3:1"):
            played.node(name, 8)
        app = played.submit("prod")
        one.beat(2)
        played.up(app)
        asks = (AskChange(10, 1024, 1, 9, label="gpu"), AskChange(20, 1024, 1, 2))
        played.manager.allocate(Allocate(application=app.id, attempt=1, number=1, asks=asks))
        one.beat(12)
        return app

    with one.background:
        app = one.background.run(play)
        told = get(one, f"apps/{app.id}")["app"]
        assert [(row["priority"], row["nodeLabelExpression"]) for row in told["resourceRequests"]] == [
            (10, "gpu")
        ]
        rows = {row["partitionName"]: row for row in told["resourceInfo"]["resourceUsagesByPartition"]}
        used = {label: (row["used"]["vCores"], row["pending"]["vCores"]) for label, row in rows.items()}
        assert used == {"": (3, 0), "gpu": (8, 1)}, "all of that node; its master is on another"
        seen = one.check()
        (view,) = [each for each in seen.labelled["gpu"].applications if each.requests]
        assert (view.application, view.requests[0].count) == (app.id, 1)

        refused = partial(
            played.manager.allocate,
            Allocate(application=app.id, attempt=1, number=2, asks=(AskChange(5, 1024, 1, 1, label="no"),)),
        )
        assert "doesn't have permission to access all labels" in one.background.run(refused).refused
