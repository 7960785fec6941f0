"""Hadoop's own recorded scheduler answers, reduced to the fields that yarnctl reads: what is made of them.

The trees, their configurations and the forms of the answers are those of apache/hadoop (Apache License 2.0),
hadoop-yarn-server-resourcemanager: ``src/test/resources/webapp/dynamic-*``, ``mixed-*`` and
``scheduler-response-*``, with ``TestRMWebServicesCapacitySchedulerMixedMode`` and its neighbours. The values
are computed here from the configurations' meaning; no file is copied.

Law: the trees of :data:`CONFIGURATIONS` are written in different units so that each gives the same guarantees
on 32 GiB and 32 vcores.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.unit.hadoop.replaying import Replay, Reply
from tests.unit.test_check import but
from yarnctl.attach.check.next_steps import BY_FILE, BY_REST, STORE, next_steps
from yarnctl.attach.check.preflight import set_keys, warn
from yarnctl.attach.check.rules import check_results, judge
from yarnctl.attach.check.unmodelled import unmodelled
from yarnctl.deciding.model import ParentView
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import OtherScheduler, ResourceManager
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import Resources

TOTAL = Resources(32768, 32)
GIB = 1024
PARENT, LEAF = "root.test_1", "capacitySchedulerLeafQueueInfo"
GUARANTEES = {
    "root.default": 4,
    "root.test_1": 16,
    "root.test_1.test_1_1": 2,
    "root.test_1.test_1_2": 2,
    "root.test_1.test_1_3": 12,
    "root.test_2": 12,
}
"""Of each queue, in GiB and in vcores, for every configuration."""
ALL_PERCENT = ("12.5", "50", "12.5", "12.5", "75", "37.5")
CONFIGURATIONS = {
    "percentage": ALL_PERCENT,
    "weight": ("4w", "16w", "2w", "2w", "12w", "12w"),
    "absolute": ("[4]", "[16]", "[2]", "[2]", "[12]", "[12]"),
    "absolute-and-percentage": ("25", "[16]", "[2]", "[2]", "100", "75"),
    "absolute-and-weight": ("1w", "[16]", "[2]", "[2]", "1w", "3w"),
    "percentage-and-weight": ("1w", "50", "12.5", "12.5", "1w", "3w"),
    "absolute-percentage-and-weight": ("1w", "[16]", "50", "1w", "[12]", "75"),
    "different-by-resource": ("mixed", "mixed", "1w", "mixed", "mixed", "mixed"),
}
"""The ``capacity`` of the queues of GUARANTEES, in their order; [16]: 16 GiB and 16 vcores."""


def unit(capacity: str) -> str:
    if capacity == "mixed":
        return "mixed"
    return "absolute" if capacity.startswith("[") else "weight" if capacity.endswith("w") else "percentage"


def vector(size: int) -> dict[str, Any]:
    """Return a vector of so many GiB and vcores, as the answers have it."""
    rows = (("memory-mb", size * GIB), ("vcores", size))
    named = [{"name": name, "resourceType": "COUNTABLE", "value": value} for name, value in rows]
    return {
        "memory": size * GIB,
        "vCores": size,
        "resourceInformations": {"resourceInformation": named},
    }


def queue(path: str, capacity: str, size: int, of: int, below: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one queue below root: ``size`` GiB of its parent's ``of``; its maximum is the cluster."""
    percent = size / 32 * 100
    shares = {
        "partitionName": "",
        "capacity": size / of * 100,
        "absoluteCapacity": percent,
        "absoluteMaxCapacity": 100,
        "effectiveMinResource": vector(size),
        "effectiveMaxResource": vector(32),
    }
    weight = float(capacity[:-1]) if capacity.endswith("w") else -1
    row: dict[str, Any] = {
        "type": LEAF, "queuePath": path, "capacity": size / of * 100, "maxCapacity": 100,
        "absoluteCapacity": percent, "absoluteMaxCapacity": 100, "weight": weight, "normalizedWeight": 0,
        "queueName": path.rpartition(".")[2], "isAbsoluteResource": unit(capacity) == "absolute",
        "state": "RUNNING", "resourcesUsed": vector(0),
        "capacities": {"queueCapacitiesByPartition": [shares]},
        "minEffectiveCapacity": vector(size), "maxEffectiveCapacity": vector(32), "queuePriority": 0,
        "orderingPolicyInfo": "utilization" if below else "fifo", "mode": unit(capacity),
        "queueType": "parent" if below else "leaf", "creationMethod": "static",
        "autoCreationEligibility": "off", "userLimit": 100, "userLimitFactor": 1, "users": {},
    }  # fmt: skip
    if below:
        row["queues"] = {"queue": below}
        del row["type"]
    return row


def tree(capacities: tuple[str, ...]) -> dict[str, Any]:
    """Return GET /scheduler of a configuration; root's own shares are not shown."""
    by_path = dict(zip(GUARANTEES, capacities, strict=True))

    def made(path: str, of: int) -> dict[str, Any]:
        size = GUARANTEES[path]
        below = [made(one, size) for one in by_path if one.rpartition(".")[0] == path]
        return queue(path, by_path[path], size, of, below)

    rows = [made(path, 32) for path in by_path if path.count(".") == 1]
    return scheduler(rows)


def scheduler(rows: list[dict[str, Any]]) -> dict[str, Any]:
    root = {
        "type": "capacityScheduler", "capacity": 100, "maxCapacity": 100, "weight": -1, "queueName": "root",
        "queuePath": "root", "isAbsoluteResource": False, "queues": {"queue": rows},
        "orderingPolicyInfo": "utilization", "mode": "percentage", "queueType": "parent",
    }  # fmt: skip
    return {"scheduler": {"schedulerInfo": root}}


def by_moxy(value: Any) -> Any:
    """Return an answer in MOXy's form: ``@xsi.type``, a list of one as a bare object, "" for an empty one."""
    if isinstance(value, dict):
        found = {("@xsi.type" if name == "type" else name): by_moxy(part) for name, part in value.items()}
        return found or ""
    if isinstance(value, list):
        rows = [by_moxy(row) for row in value]
        return rows[0] if len(rows) == 1 else rows
    return value


FORMS: tuple[Callable[[Any], Any], ...] = (lambda answer: answer, by_moxy)


def read(answer: dict[str, Any], form: Callable[[Any], Any] = FORMS[0]) -> yarn.QueueInfo:
    return yarn.SCHEDULER.read(json.dumps(form(answer)).encode())


def seen(root: yarn.QueueInfo) -> dict[str, yarn.QueueInfo]:
    """Return every queue by its path."""
    found = {}

    def walk(one: yarn.QueueInfo, path: str) -> None:
        found[path] = one
        for child in one.children:
            walk(child, f"{path}.{child.name}")

    walk(root, "root")
    return found


@pytest.mark.parametrize("form", FORMS, ids=("natural", "moxy"))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_tree_in_any_unit_gives_the_same_guarantees(name: str, form: Callable[[Any], Any]) -> None:
    root = read(tree(CONFIGURATIONS[name]), form)
    found = {view.queue: view for view in views.queue_views(root, TOTAL)}
    assert set(found) == {path for path in GUARANTEES if path != PARENT}
    for path, view in found.items():
        size = GUARANTEES[path]
        assert view.guaranteed == Resources(size * GIB, size)
        assert view.maximum == TOTAL
    assert views.queue_tree(root).parents == ("root", PARENT)
    nodes = [yarn.NodeRow("n:1", "RUNNING", available_mib=TOTAL.memory_mib, available_vcores=TOTAL.vcores)]
    assert [row for row in views.parent_views(root, TOTAL, nodes) if row.queue == PARENT] == [
        ParentView(queue=PARENT, guaranteed=Resources(16 * GIB, 16), maximum=TOTAL, used=Resources(0, 0))
    ]
    for (path, capacity), one in zip(
        zip(GUARANTEES, CONFIGURATIONS[name], strict=True),
        (seen(root)[path] for path in GUARANTEES),
        strict=True,
    ):
        assert one.unit == unit(capacity), path
        assert one.guaranteed_percent == GUARANTEES[path] / 32 * 100


def advised(name: str) -> str:
    """Return the fix of shares for research in the larger queue of a configuration."""
    facts = but(
        root=read(tree(CONFIGURATIONS[name])),
        nodes=(yarn.NodeRow("n:1", "RUNNING", available_mib=32 * GIB, available_vcores=32),),
        preempting_queues=("root.default",),
        preemptable_queues=("root.test_2",),
    )
    return next(one.fix for one in judge(facts) if one.id == "production-share")


PREFIX = "set yarn.scheduler.capacity."
GENERAL = "set the capacity and maximum-capacity of these queues and their siblings"


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_fix_has_the_unit_of_the_queues_or_names_no_value(name: str) -> None:
    """Where siblings differ in their units a percentage is one of the rest: no value is known."""
    fix = advised(name)
    if name in ("percentage", "weight", "absolute"):
        keys = dict(one.removeprefix(PREFIX).split("=", 1) for one in fix.split("; "))
        units = {unit(text) for key, text in keys.items() if key.endswith(".capacity")}
        assert units == {name}
        assert "root.test_2.capacity" in keys
    else:
        assert fix.startswith(GENERAL)


def test_an_answer_before_3_0_has_shares_of_the_cluster_only() -> None:
    """Hadoop 2.9, as recorded in a public simulator: no paths, no effective vectors, no policies."""
    rows = []
    for name, percent in (("queueA", 30), ("queueB", 70)):
        share = {"partitionName": "", "capacity": percent, "absoluteCapacity": percent,
                 "absoluteMaxCapacity": percent}  # fmt: skip
        rows.append({
            "type": LEAF, "queueName": name, "capacity": percent, "maxCapacity": percent,
            "absoluteCapacity": percent, "absoluteMaxCapacity": percent, "state": "RUNNING",
            "resourcesUsed": {"memory": 0, "vCores": 0}, "users": None, "userLimit": 100,
            "capacities": {"queueCapacitiesByPartition": [share]}, "preemptionDisabled": False,
            "AMResourceLimit": {"memory": 0, "vCores": 0},
        })  # fmt: skip
    root = {"type": "capacityScheduler", "queueName": "root", "capacity": 100, "queues": {"queue": rows}}
    body = json.dumps({"scheduler": {"schedulerInfo": root}}).encode()
    twice = body.replace(
        b'"queueName": "root"', b'"entry": {"key": "a"}, "entry": {"key": "b"}, "queueName": "root"'
    )
    found = yarn.SCHEDULER.read(twice)
    views_by_path = {view.queue: view for view in views.queue_views(found, TOTAL)}
    assert views_by_path["root.queueA"].guaranteed == Resources(9830, 9)
    assert views_by_path["root.queueA"].maximum == Resources(9830, 9)
    assert views_by_path["root.queueB"].guaranteed == Resources(22937, 22)
    assert {one.unit for one in found.children} == {"percentage"}


@pytest.mark.parametrize("name", ["percentage", "weight", "absolute"])
def test_without_nodes_nothing_is_guaranteed(name: str) -> None:
    """As the files ``*-0.json``: the effective vectors are 0, whatever is configured."""
    answer = tree(CONFIGURATIONS[name])

    def empty(row: dict[str, Any]) -> None:
        row["minEffectiveCapacity"] = row["maxEffectiveCapacity"] = vector(0)
        share = row["capacities"]["queueCapacitiesByPartition"][0]
        share["effectiveMinResource"] = share["effectiveMaxResource"] = vector(0)
        for child in row.get("queues", {}).get("queue", ()):
            empty(child)

    for row in answer["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        empty(row)
    root = read(answer)
    nothing = Resources(0, 0)
    assert {view.guaranteed for view in views.queue_views(root, nothing)} == {nothing}
    assert {view.guaranteed for view in views.parent_views(root, nothing, ())} == {nothing}


# --- queues that YARN makes ------------------------------------------------------------------------


def on_demand(kind: str, number: int = 2) -> dict[str, Any]:
    """Return a tree with a parent that makes queues for users, and so many that it has made."""
    made = [queue(f"root.managed.user{at}", "50", 8, 16, []) for at in range(number)]
    for row in made:
        row["creationMethod"] = kind
        row["isAutoCreatedLeafQueue"] = kind == "dynamicLegacy"
        row["userLimitFactor"] = 0.5
    parent = queue("root.managed", "50", 16, 32, made or [{}])
    parent |= {"queues": {"queue": made}} if made else {"queues": {}}
    parent["autoCreationEligibility"] = "legacy" if kind == "dynamicLegacy" else "flexible"
    stopped = queue("root.default", "0", 0, 32, [])
    stopped["state"] = "STOPPED"
    return scheduler([stopped, parent, queue("root.prod", "50", 16, 32, [])])


@pytest.mark.parametrize("form", FORMS, ids=("natural", "moxy"))
@pytest.mark.parametrize("kind", ["dynamicLegacy", "dynamicFlexible"])
def test_a_parent_that_makes_queues_is_no_leaf_while_it_has_none(
    kind: str, form: Callable[[Any], Any]
) -> None:
    before = views.queue_tree(read(on_demand(kind, 0), form))
    after = views.queue_tree(read(on_demand(kind, 2), form))
    assert (before.leaves, before.parents) == (("root.default", "root.prod"), ("root", "root.managed"))
    assert after.leaves == ("root.default", "root.managed.user0", "root.managed.user1", "root.prod")


@pytest.mark.parametrize(
    ("kind", "template"),
    [
        ("dynamicLegacy", "leaf-queue-template"),
        ("dynamicFlexible", "auto-queue-creation-v2.leaf-template"),
    ],
)
def test_a_fix_of_a_queue_that_yarn_made_sets_the_template(kind: str, template: str) -> None:
    """A dynamic queue has no keys of its own in capacity-scheduler.xml."""
    facts = but(
        root=read(on_demand(kind)),
        preempting_queues=("root.prod",),
        preemptable_queues=("root.managed.user0",),
    )
    results = check_results(facts)
    assert results["user-limit"].keys[f"root.managed.{template}.user-limit-factor"] == "4"
    assert not [key for one in results.values() for key in one.keys if ".user0." in key]
    steps = next_steps(facts, results.values())
    assert steps is not None
    assert f"root.managed:{template}.user-limit-factor=4" in steps.apply


@pytest.mark.parametrize(
    ("keys", "applied"),
    [
        (
            {"node-locality-delay": "-1"},
            "yarn schedulerconf -global yarn.scheduler.capacity.node-locality-delay=-1",
        ),
        (
            {"node-locality-delay": "-1", "root.prod.capacity": "5"},
            "yarn schedulerconf -update 'root.prod:capacity=5'"
            " -global yarn.scheduler.capacity.node-locality-delay=-1",
        ),
        ({"root.prod.capacity": "[memory=1,vcores=1]"}, BY_REST),
        ({"root.prod.acl_administer_queue": "ann staff"}, BY_REST),
    ],
)
def test_keys_of_the_whole_scheduler_have_their_own_option(keys: dict[str, str], applied: str) -> None:
    """As ``SchedConfCLI`` reads them: a queue's keys without its path, global keys with their prefix."""
    facts = but(root=read(on_demand("static", 0)))
    steps = next_steps(facts, [warn("seen", set_keys(facts, keys))])
    assert steps is not None
    assert steps.apply == applied
    none_shown = next_steps(but(root=facts.root, scheduler=None), [warn("seen", set_keys(facts, keys))])
    assert none_shown is not None
    assert none_shown.apply == BY_FILE
    not_admin = but(root=facts.root, scheduler=None, configuration={STORE: "memory"})
    stored = next_steps(not_admin, [warn("seen", set_keys(facts, keys))])
    assert stored is not None
    assert stored.apply == applied, "the keys of a store are not shown to an ordinary user"


def test_a_stopped_queue_is_not_suggested() -> None:
    facts = but(root=read(on_demand("dynamicLegacy")), preempting_queues=("a",), preemptable_queues=("b",))
    steps = next_steps(facts, ())
    assert steps is not None
    assert "root.default" not in steps.run


# --- users ------------------------------------------------------------------------------------------


def test_a_users_limit_of_nothing_means_unknown() -> None:
    """PerUserResources: a master runs, and nothing was requested so far."""
    answer = tree(ALL_PERCENT)
    rows = answer["scheduler"]["schedulerInfo"]["queues"]["queue"]
    user = {"username": "user1", "resourcesUsed": vector(0), "userResourceLimit": vector(0)}
    rows[0]["users"] = {"user": [user]}
    for form in FORMS:
        root = read(answer, form)
        assert root.children[0].users is not None
        assert views.user_limits(root, views.queue_views(root, TOTAL)) == {}


def weighted(
    weight: float, used: int, limit: int, factor: float = 1.0, guaranteed: Resources | None = None
) -> dict[str, dict[str, Resources]]:
    """Return the limits in root.default (4 GiB, or ``guaranteed``) of its only active user, with a weight."""
    answer = tree(ALL_PERCENT)
    row = answer["scheduler"]["schedulerInfo"]["queues"]["queue"][0]
    row["userLimitFactor"] = factor
    user = {"username": "ann", "resourcesUsed": vector(used), "userResourceLimit": vector(limit)}
    row["users"] = {"user": [user | {"isActive": True, "userWeight": weight}]}
    root = read(answer)
    queues = views.queue_views(root, TOTAL)
    if guaranteed is not None:
        queues = tuple(msgspec.structs.replace(view, guaranteed=guaranteed) for view in queues)
    return views.user_limits(root, queues)


def test_a_user_with_a_weight_in_a_queue_without_a_guarantee_has_no_limit_of_its_own() -> None:
    assert weighted(0.5, 0, 0, guaranteed=Resources(0, 0)) == {}


@pytest.mark.parametrize(
    ("weight", "used", "limit", "factor", "wanted"),
    [
        (1.0, 1, 2, 1.0, None),  # It rises with the use, up to the limit of the queue
        (1.0, 4, 4, 1.0, None),  # This is the limit of the queue
        (0.5, 1, 1, 1.0, 2),  # Up to 4 GiB x .5
        (0.5, 2, 2, 1.0, 2),
        (2.0, 4, 4, 1.0, 8),  # Beyond that of the other users
        (2.0, 8, 8, 1.0, 8),
        (0.5, 1, 1, 16.0, 32),  # 4 x 16 x .5 is the cluster
        (0.5, 1, 1, -1.0, None),
        (0.5, 0, 0, 1.0, 2),  # Nothing was requested so far
    ],
)
def test_a_user_with_a_weight_has_an_own_limit(
    weight: float, used: int, limit: int, factor: float, wanted: int | None
) -> None:
    found = weighted(weight, used, limit, factor)
    assert found == ({} if wanted is None else {"root.default": {"ann": Resources(wanted * GIB, wanted)}})


# --- features that are not modelled -------------------------------------------------------------

KEY = "yarn.scheduler.capacity."


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({f"{KEY}schedule-asynchronously.enable": "true"}, "asynchronous scheduling"),
        ({f"{KEY}multi-node-placement-enabled": "TRUE"}, "multi-node placement"),
        ({f"{KEY}reservations-continue-look-all-nodes": "false"}, "reservations that stay on their node"),
        ({"yarn.resourcemanager.placement-constraints.handler": "scheduler"}, "placement constraints"),
        (
            {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"},
            "opportunistic containers",
        ),
    ],
)
def test_a_feature_that_is_not_modelled_is_named_with_the_key_that_ends_it(
    keys: dict[str, str], name: str
) -> None:
    root = read(tree(ALL_PERCENT))
    [found] = unmodelled(keys, root)
    assert found.name == name
    assert unmodelled({found.key: found.value}, root) == ()
    facts = but(root=root, scheduler=keys, preempting_queues=("default",), preemptable_queues=("test_2",))
    result = check_results(facts)["features"]
    assert result.severity == "warn"
    assert f"set {found.key}={found.value}" in result.fix
    assert "features" not in check_results(but())


@pytest.mark.parametrize(
    ("path", "policy", "name"),
    [
        ("root.default", "fifo", None),
        ("root.default", "FifoOrderingPolicy", None),
        ("root.default", "fifo-with-partitions", None),
        ("root.default", "fair", None),
        ("root.default", "FairOrderingPolicy", None),
        ("root.default", "FairOrderingPolicy with sizeBasedWeight", "the size-based weight of root.default"),
        ("root.default", "com.example.Own", "the ordering policy com.example.Own of root.default"),
        ("root.test_1", "priority-utilization", None),
        ("root.test_1", "com.example.Own", "the ordering policy com.example.Own of root.test_1"),
    ],
)
def test_a_policy_that_is_not_modelled_is_named(path: str, policy: str, name: str | None) -> None:
    answer = tree(ALL_PERCENT)
    rows = answer["scheduler"]["schedulerInfo"]["queues"]["queue"]
    next(row for row in rows if row["queuePath"] == path)["orderingPolicyInfo"] = policy
    root = read(answer)
    assert [one.name for one in unmodelled({}, root)] == ([] if name is None else [name])
    is_fair = any(path in parent.fair for parent in views.parent_views(root, TOTAL, ()))
    assert is_fair is policy.lower().startswith("fair")


# --- other schedulers -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["type", "@xsi.type"])
@pytest.mark.parametrize("kind", ["fairScheduler", "fifoScheduler"])
def test_another_scheduler_is_named_by_the_type_of_its_answer(name: str, kind: str) -> None:
    answer = {"scheduler": {"schedulerInfo": {name: kind, "capacity": 1}}}
    with Replay(Reply(json.dumps(answer))) as replay, Transport([replay.url]) as to:
        with pytest.raises(OtherScheduler) as refused:
            ResourceManager(to).root_queue()
        assert isinstance(refused.value, BadInput)
        assert refused.value.kind == kind[:1].upper() + kind[1:]
