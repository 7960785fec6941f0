"""Hadoop's own recorded web answers, byte for byte, as yarnctl's client, a look and ``check`` read them.

They are the files of ``src/test/resources/webapp`` of hadoop-yarn-server-resourcemanager (Apache License
2.0; LICENSE.txt and NOTICE.txt lie in the same jar). None is copied: Maven fetches each version's test jar on
first use, as Hadoop itself. 3.4.2 has 42 of them, written by Jersey 1; 3.5.0 has 46, by Jersey 2. Eleven more
(``V2/*`` and ``scheduler-response-*Mode*``) are only in the sources between two releases.

Law: a file that is not listed here is a failure. The values are those of the configurations in Hadoop's tests
(``TestRMWebServicesCapacitySched*``), by hand: GiB of memory and as many vcores, or MiB and vcores.
"""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.hadoop.artifacts import manager_test_jar
from tests.hadoop.needing import need_recorded
from tests.unit.attach.recorded_case import CLUSTER, RecordedCase, checked
from tests.unit.hadoop.replaying import PATIENT, Heard, Reply
from yarnctl.deciding.model import Snapshot
from yarnctl.hadoop.http.answers import BadAnswer
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire import views
from yarnctl.units import Resources

SINCE_3_5 = frozenset(
    f"configmutation-absolute-hierarchy{legacy}-{when}-update.json"
    for legacy in ("", "-legacy")
    for when in ("before", "after")
)
FILES = {"3.4.2": 42, "3.5.0": 46}
GIB = 1024
Size = int | tuple[int, int]
"""GiB and as many vcores, or MiB and vcores."""


class Tree(NamedTuple):
    """What an answer means: guarantees by path, parents too, of a cluster of ``total`` GiB.

    ``empty``: parents with no leaf below them. ``maximum``: of single queues, the cluster's for the rest.
    """

    guarantees: dict[str, Size]
    total: int = 32
    units: str = "percentage"
    empty: tuple[str, ...] = ()
    maximum: dict[str, Size] | None = None
    made: str = ""
    """How YARN made the queues on demand, of which the names begin with "auto" or "queue"."""


NAMES = ("default", "test_1", "test_1.test_1_1", "test_1.test_1_2", "test_1.test_1_3", "test_2")
WHOLE, HALF, NONE = (4, 16, 2, 2, 12, 12), (2, 8, 1, 1, 6, 6), (0, 0, 0, 0, 0, 0)
FIRST = (0, 16, 2, 2, 12, 0)
"""Absolute capacities are served before percentages and weights, which have nothing left of 16 GiB."""
UNITS = {
    "AbsoluteAndPercentage": "percentage absolute absolute absolute percentage percentage",
    "AbsoluteAndPercentageAndWeight": "weight absolute percentage weight absolute percentage",
    "AbsoluteAndPercentageAndWeightMixed": "mixed mixed weight mixed mixed mixed",
    "AbsoluteAndWeight": "weight absolute absolute absolute weight weight",
    "PercentageAndWeight": "weight percentage percentage percentage weight weight",
}


def tree_of(file: str) -> Tree | None:
    """Return what a file means; None if no file has this name."""
    if file in SINCE_3_5:
        a: Size = 4 if "after" in file else 0
        return Tree({"default": 1, "a": a, "a.b": 0, "a.c": 0}, units="absolute")
    if mixed := re.fullmatch(r"mixed-testScheduler(\w+)-(0|16|32)\.json", file):
        by_size = {0: NONE, 16: HALF if mixed[1] == "PercentageAndWeight" else FIRST, 32: WHOLE}
        return Tree(named(by_size[int(mixed[2])]), int(mixed[2]), UNITS[mixed[1]])
    if plain := re.fullmatch(r"dynamic-test(\w+)Mode-(?:legacy-)?(.+)\.json", file):
        return dynamic(plain[1].lower(), plain[2], "legacy" in file)
    return OTHERS.get(file)


def named(sizes: tuple[int, ...], mark: str = "_") -> dict[str, Size]:
    return {name.replace("test_", f"test{mark}", 2): size for name, size in zip(NAMES, sizes, strict=True)}


def dynamic(unit: str, case: str, is_legacy: bool) -> Tree:
    sizes = {"0": NONE, "16": HALF}.get(case, WHOLE)
    if is_legacy and (unit, case) == ("absolute", "0"):
        sizes = WHOLE  # as configured: legacy absolute capacities are not scaled to a cluster without nodes
    queues: dict[str, Size] = {
        name.replace("test_1", "test1", 1).replace("test_2", "test2"): size
        for name, size in zip(NAMES, sizes, strict=True)
    }
    queues = {name.replace(".test_1_", ".test1_"): size for name, size in queues.items()}
    if case == "before-aqc":
        return Tree(queues, units=unit, empty=("root.test2",))
    if case == "after-aqc":
        return Tree(queues | (MADE_LEGACY if is_legacy else MADE), units=unit, made="dynamicFlexible")
    return Tree(queues, int(case) if case.isdigit() else 32, unit)


MADE_LEGACY: dict[str, Size] = {
    "test2.auto1": 5, "test2.auto2": 5,
    "test2.autoParent1": (512, 0), "test2.autoParent1.auto3": (256, 0), "test2.autoParent1.auto4": (256, 0),
    "test2.autoParent2": (512, 0), "test2.autoParent2.auto5": (512, 0),
    "test2.parent": (512, 0), "test2.parent.autoParent2": (512, 0),
    "test2.parent.autoParent2.auto6": (512, 0), "test2.parent2": (512, 0), "test2.parent2.auto7": (512, 0),
}  # fmt: skip
"""Weights 10, 10, 1, 1, 1, 1 of 12 GiB; of 12 vcores half a vcore is none."""
MADE: dict[str, Size] = MADE_LEGACY | {
    "test2.auto2": (5120, 4),
    "test2.autoParent1": (512, 1), "test2.autoParent1.auto4": (256, 1),
    "test2.autoParent2": (512, 1), "test2.autoParent2.auto5": (512, 1),
    "test2.parent2": (512, 1), "test2.parent2.auto7": (512, 1),
}  # fmt: skip
"""The newer calculation hands the vcores that rounding leaves over to some of the queues."""
PLAIN = Tree({"a": 4, "b": 16, "c": 12}, maximum={"a": 16})
OTHERS = {
    "scheduler-response.json": PLAIN,
    "scheduler-response-PerUserResources.json": PLAIN,
    "scheduler-response-AbsoluteModeLegacyAutoCreation.json": Tree(
        {"default": 28, "managed": 4, "managed.queue1": 2}, units="absolute", made="dynamicLegacy"
    ),
    "scheduler-response-PercentageModeLegacyAutoCreation.json": Tree({"default": 8}, empty=("root.managed",)),
}
XML = frozenset(f"scheduler-response{kind}.xml" for kind in ("", "-PerUserResources", "-NodeLabelDefaultAPI"))
NAMED = sorted(
    {f"mixed-testScheduler{units}-{size}.json" for units in UNITS for size in (0, 16, 32)}
    | {
        f"dynamic-test{case}.json"
        for case in (
            *(f"{mode}Mode-{size}" for mode in ("Absolute", "Percentage", "Weight") for size in (0, 16, 32)),
            *(f"{mode}Mode-{case}" for mode in ("Absolute", "Percentage") for case in ("laqc", "legacy-0")),
            *(f"WeightMode-legacy-{size}" for size in (0, 16, 32)),
            *(f"WeightMode-{of}{when}-aqc" for of in ("", "legacy-") for when in ("before", "after")),
        )
    }
    | set(OTHERS)
)


@cache
def recorded(version: str) -> dict[str, bytes]:
    """Return a version's recorded answers by file."""
    need_recorded(version)
    with zipfile.ZipFile(manager_test_jar(version)) as jar:
        found = [name for name in jar.namelist() if name.startswith("webapp/") and not name.endswith("/")]
        return {name.removeprefix("webapp/"): jar.read(name) for name in found}


class Recorded(RecordedCase):
    """A cluster of nodes of 16 GiB whose scheduler answers with a recorded file."""

    def __init__(self, body: bytes, total: int, kind: str = "application/json;charset=utf-8") -> None:
        self.scheduler = Reply(body, kind=kind)
        size = {"totalResource": {"memory": 16 * GIB, "vCores": 16}}
        free = {"availMemoryMB": 16 * GIB, "availableVirtualCores": 16}
        nodes = [{"id": f"n{at}:8041", "state": "RUNNING"} | size | free for at in range(total // 16)]
        self.answers: dict[str, Any] = {
            CLUSTER + "/info": {"clusterInfo": {"id": 1, "state": "STARTED", "haState": "ACTIVE"}},
            CLUSTER + "/nodes": {"nodes": {"node": nodes}},
            CLUSTER + "/apps": {"apps": {"app": []}},
        }

    def _answer(self, heard: Heard) -> Reply:
        return self.scheduler if heard.path == f"{CLUSTER}/scheduler" else super()._answer(heard)


def vector(size: Size) -> Resources:
    return Resources(size * GIB, size) if isinstance(size, int) else Resources(*size)


def manager(url: str) -> ResourceManager:
    return ResourceManager(Transport([url], limits=PATIENT))


CASES = [(version, file) for version in FILES for file in NAMED + sorted(SINCE_3_5)]
CASES = [case for case in CASES if case[1] not in SINCE_3_5 or case[0] == "3.5.0"]


@pytest.mark.parametrize("version", FILES)
def test_every_recorded_file_is_listed(version: str) -> None:
    listed = {file for of, file in CASES if of == version} | XML
    assert set(recorded(version)) == listed
    assert len(listed) == FILES[version]


def guaranteed(snapshot: Snapshot) -> dict[str, Resources]:
    found = {row.queue: row.guaranteed for row in snapshot.queues}
    return found | {row.queue: row.guaranteed for row in snapshot.parents if row.queue != "root"}


@pytest.mark.parametrize(("version", "file"), CASES)
def test_a_recorded_tree_has_its_guarantees(version: str, file: str, capfd: Any) -> None:
    """By the client, by a look, and in what ``check`` prints for two of its leaves."""
    tree = tree_of(file)
    assert tree is not None
    wanted = {f"root.{name}": vector(size) for name, size in tree.guarantees.items()}
    with Recorded(recorded(version)[file], tree.total).served() as case:
        root = manager(case.url).root_queue()
        found = views.queue_tree(root)
        snapshot = case.snapshot() if tree.total else None
        two = sorted(found.leaves)[0], sorted(tree.empty or found.leaves)[-1]
        finding = checked(case.url, capfd, "--preempting", two[0], "--preemptable", two[1])["queues"]
    above = {path[:end] for path in found.leaves for end in range(len(path)) if path[end] == "."}
    assert set(found.parents) - above == set(tree.empty)
    assert set(found.leaves) | (above - {"root"}) == set(wanted) - set(tree.empty)
    by_client = {row.queue: row for row in views.queue_views(root, vector(tree.total))}
    maximum = {f"root.{name}": vector(size) for name, size in (tree.maximum or {}).items()}
    for path, row in by_client.items():
        assert (path, row.guaranteed) == (path, wanted[path])
        assert (path, row.maximum) == (path, maximum.get(path, vector(tree.total)))
    for above_row in views.parent_views(root, vector(tree.total), ()):
        name = above_row.queue
        assert name in ("root", *tree.empty) or above_row.guaranteed == wanted[name]
    units, made = {}, {}
    for leaf in views.queues_of(root):
        units[leaf.path], made[leaf.path] = leaf.queue.unit, leaf.queue.created
    if " " in tree.units:
        assert [units[f"root.{name}"] for name in NAMES] == tree.units.split()
    else:
        assert {units[path] for path in wanted} == {tree.units}
    names = {path: path.rpartition(".")[2] for path in wanted}
    assert {path for path in wanted if made[path] == tree.made} == {
        path for path in wanted if tree.made and names[path].startswith(("auto", "queue", "parent"))
    }
    if snapshot is not None and not tree.empty:
        by_look = guaranteed(snapshot)
        assert by_look == {path: size for path, size in wanted.items() if path in by_look}
        assert set(by_client) <= set(by_look)
    assert all(path in finding["seen"] for path in two)


@pytest.mark.parametrize("version", FILES)
@pytest.mark.parametrize("file", sorted(XML))
def test_an_answer_in_xml_is_rejected_by_its_type(version: str, file: str, capfd: Any) -> None:
    body = recorded(version)[file]
    with Recorded(body, 32, "application/xml;charset=utf-8").served() as case:
        with pytest.raises(BadAnswer, match="type application/xml; expected JSON with scheduler"):
            manager(case.url).root_queue()
        found = checked(case.url, capfd, "--preempting", "a", "--preemptable", "b")
    assert "an answer of type application/xml" in json.dumps(found)


@pytest.mark.parametrize("version", FILES)
def test_users_and_labels_of_a_recorded_answer(version: str) -> None:
    """PerUserResources: a master of 1 GiB runs for a user in a and in b; nothing else was requested."""
    with Recorded(recorded(version)["scheduler-response-PerUserResources.json"], 32).served() as case:
        root = manager(case.url).root_queue()
    queues = {leaf.queue.name: leaf.queue for leaf in views.leaves(root)}
    users = {name: one.users for name, one in queues.items()}
    assert {name: [row.user for row in each.rows] for name, each in users.items() if each is not None} == {
        "a": ["user1"],
        "b": ["user2"],
        "c": [],
    }
    assert views.user_limits(root, views.queue_views(root, vector(32))) == {}
    share = queues["a"].share_of("root-a-default-label")
    assert share is not None
    assert share.guaranteed is not None
    assert share.guaranteed.resources == Resources(0, 0)
