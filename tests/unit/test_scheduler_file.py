"""The queues of a capacity-scheduler.xml, and the keys that the emulator does not model."""

from __future__ import annotations

import pytest

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from emulator.scenario.scheduler_file import leaf_of, read_scheduler_file
from tests.unit.scheduler_files import ABSOLUTE, DOMINANT, LABELLED, MEMORY_ALONE, NESTED, USERS, write_file
from yarnctl.errors import BadInput
from yarnctl.units import Resources


def test_a_nested_file_is_read_with_ratios_of_the_cluster(tmp_path):
    leaves, parents, keys, _ = read_scheduler_file(
        write_file(
            tmp_path, {**NESTED, "root.eng.maximum-capacity": "50", "root.eng.lab.maximum-capacity": "90"}
        )
    )
    assert parents == (
        ParentConfig(order="priority-utilization"),
        ParentConfig(name="eng", capacity_ratio=0.4, maximum_ratio=0.5),
    )
    assert [leaf.name for leaf in leaves] == ["eng.prod", "eng.lab", "mkt", "res"]
    assert [leaf.capacity_ratio for leaf in leaves] == pytest.approx([0.24, 0.16, 0.3, 0.3])
    assert [leaf.maximum_ratio for leaf in leaves] == pytest.approx([0.5, 0.45, 1, 1])
    assert [leaf.name for leaf in leaves if leaf.preempting] == ["res"]  # the highest priority
    assert [leaf.name for leaf in leaves if leaf.fair] == ["res"]
    assert {leaf.am_ratio for leaf in leaves} == {1.0}
    assert keys["yarn.scheduler.capacity.root.eng.capacity"] == "40"


def test_a_parent_without_a_policy_has_its_parents(tmp_path):
    keys = {key: value for key, value in NESTED.items() if key != "root.eng.ordering-policy"}
    assert [each.order for each in read_scheduler_file(write_file(tmp_path, keys)).parents] == [
        "priority-utilization"
    ] * 2


def test_weights_are_parts_of_their_sum(tmp_path):
    weights = {"root.eng.capacity": "2w", "root.mkt.capacity": "1w", "root.res.capacity": "1w"}
    leaves = read_scheduler_file(write_file(tmp_path, {**NESTED, **weights})).leaves
    assert [leaf.capacity_ratio for leaf in leaves] == pytest.approx([0.3, 0.2, 0.25, 0.25])


def test_a_stopped_parent_stops_the_queues_below_it(tmp_path):
    leaves = read_scheduler_file(write_file(tmp_path, {**NESTED, "root.eng.state": "stopped"})).leaves
    assert [leaf.stopped for leaf in leaves] == [True, True, False, False]


def test_a_queue_on_demand_is_read_with_its_parents_templates(tmp_path):
    creation = "root.users.auto-queue-creation-v2"
    more = {
        f"{creation}.template.capacity": "2w",
        f"{creation}.leaf-template.capacity": "3w",
        f"{creation}.leaf-template.user-limit-factor": "4",
        f"{creation}.parent-template.ordering-policy": "utilization",
        f"{creation}.leaf-template.acl_submit_applications": "*",
        f"{creation}.queue-auto-removal.enable": "false",
        f"{creation}.max-queues": "1000",
    }
    file = read_scheduler_file(write_file(tmp_path, {**NESTED, **USERS, **more}))
    users = file.parents[-1]
    assert (users.name, users.depth_on_demand) == ("users", 2)
    assert users.capacity_ratio == pytest.approx(0.1)
    zoe = file.created("users.zoe")
    assert zoe is not None
    team = zoe.created("users.team.ann")
    assert team is not None
    assert team.on_demand == ("users.zoe", "users.team.ann")
    found = {each.name: each for each in team.leaves if each.on_demand}
    assert {name: each.weight for name, each in found.items()} == {"users.zoe": 3, "users.team.ann": 1}
    assert [each.capacity_ratio for each in found.values()] == pytest.approx([0.06, 0.04])
    (made,) = [each for each in team.parents if each.on_demand]
    assert (made.name, made.weight) == ("users.team", 2)
    assert made.capacity_ratio == pytest.approx(0.04)
    assert (found["users.zoe"].user_limit_factor, found["users.zoe"].am_ratio) == (4, 1)
    assert (found["users.team.ann"].user_limit_factor, found["users.team.ann"].preempting) == (None, False)


@pytest.mark.parametrize(
    "path",
    ["zoe", "eng.zoe", "mkt.zoe", "users", "users.a.b.c", "users.a b", "users.", "users..a", "nowhere.a"],
)
def test_no_queue_is_created_where_no_parent_does(tmp_path, path):
    assert read_scheduler_file(write_file(tmp_path, {**NESTED, **USERS})).created(path) is None


def test_a_leaf_and_a_parent_are_not_created_again(tmp_path):
    file = read_scheduler_file(write_file(tmp_path, {**NESTED, **USERS})).created("users.a.b")
    assert file is not None
    assert [file.created(path) for path in ("users.a.b", "users.a", "users.a.b.c")] == [None] * 3
    assert file.created("users.a.c") is not None


def test_shares_of_partitions_are_read_with_ratios_of_each(tmp_path):
    file = read_scheduler_file(write_file(tmp_path, {**NESTED, **LABELLED}))
    leaves = {leaf.name: leaf for leaf in file.leaves}
    assert file.parents[0].labels == {"gpu": (1.0, 1.0), "ne": (1.0, 1.0)}
    assert leaves["eng.lab"].labels == {"gpu": (0.5, 0.5)}
    assert leaves["mkt"].labels["ne"] == (1.0, 1.0)
    assert "gpu" not in leaves["res"].labels
    assert [leaf.default_label for leaf in file.leaves] == ["", "gpu", "", ""]
    assert (leaves["mkt"].accessible, leaves["res"].accessible) == (None, ("ne",))


def test_labels_and_the_default_one_are_inherited(tmp_path):
    more = {"root.eng.accessible-node-labels": "gpu,ne", "root.eng.default-node-label-expression": "ne"}
    more |= {"root.eng.lab.accessible-node-labels": "gpu", "root.mkt.accessible-node-labels": " "}
    leaves = read_scheduler_file(write_file(tmp_path, {**NESTED, **more})).leaves
    assert [leaf.accessible for leaf in leaves] == [("gpu", "ne"), ("gpu",), (), None]
    assert [leaf.default_label for leaf in leaves] == ["ne", "", "", ""]


def test_absolute_resources_are_read(tmp_path):
    leaves = read_scheduler_file(write_file(tmp_path, {**NESTED, **ABSOLUTE})).leaves
    assert [leaf.absolute for leaf in leaves] == [(1000, 2), (3000, 2), (2048, 4), (2048, 4)]
    assert [leaf.absolute_maximum for leaf in leaves] == [None, None, None, Resources(3072, 8)]


@pytest.mark.parametrize(("calculator", "expected"), [(DOMINANT, False), (MEMORY_ALONE, True), (None, True)])
def test_memory_alone_is_counted_without_the_key_as_in_hadoop(tmp_path, calculator, expected):
    path = write_file(tmp_path, {**NESTED, "resource-calculator": calculator or "x"})
    if calculator is None:
        path.write_text(
            path.read_text().replace("resource-calculator", "node-locality-delay").replace(">x<", ">-1<")
        )
    assert read_scheduler_file(path).counts_memory_alone is expected


def test_hadoops_defaults_and_keys_that_grant_nothing_are_accepted(tmp_path):
    more = {
        "maximum-applications": "20000", "root.mkt.maximum-applications": "500",
        "user-metrics.enable": "true", "root.mkt.default-application-priority": "3",
        "root.maximum-application-lifetime": "86400", "root.mkt.default-application-lifetime": "3600",
        "node-locality-delay": "40", "queue-mappings": "",
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "root.capacity": "100", "root.acl_submit_applications": " ", "root.res.acl_administer_queue": "ann",
        "root.res.disable_preemption": "true", "root.accessible-node-labels": "*",
        "root.mkt.minimum-user-limit-percent": "100",
        "yarn.resourcemanager.scheduler.monitor.enable": "false",
    }  # fmt: skip
    assert isinstance(read_scheduler_file(write_file(tmp_path, {**NESTED, **more})).leaves[0], TreeLeafConfig)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"root.mkt.minimum-user-limit-percent": "125"}, "125 is not between 0 and 100"),
        ({"root.accessible-node-labels.gpu.weight": "1"}, "labels.gpu.weight: is not modelled"),
        ({"root.accessible-node-labels.gpu.capacity": "1w"}, "'1w' is not a number"),
        ({**LABELLED, "root.eng.prod.accessible-node-labels.gpu.capacity": "5"}, "gpu add up to 55"),
        ({**LABELLED, "root.res.default-node-label-expression": "gpu"}, "'gpu' is not accessible"),
        ({**LABELLED, "root.eng.accessible-node-labels.gpu.maximum-capacity": "5"}, "is below the capacity"),
        ({"root.users.capacity": "20"}, "its queue is in no queues key; remove it"),
        ({"root.mkt.auto-create-child-queue.enabled": "true"}, "'true' is not modelled"),
        ({"root.mkt.auto-queue-creation-v2.enabled": "yes"}, "'yes' is not modelled"),
        ({"root.mkt.auto-queue-creation-v2.max-queues": "5"}, "use 1000"),
        ({"root.mkt.auto-queue-creation-v2.template.max-parallel-apps": "6"}, "use 2147483647"),
        ({"root.mkt.auto-queue-creation-v2.template.queues": "a"}, "template.queues: is not modelled"),
        ({"root.eng.auto-queue-creation-v2.enabled": "true"}, "use weights for the children of a parent"),
        ({**USERS, "root.users.auto-queue-creation-v2.template.capacity": "5"}, "use a weight, as in 1w"),
        ({**USERS, "root.users.auto-queue-creation-v2.leaf-template.priority": "x"}, "'x' is not a number"),
        ({"root.mkt.max-parallel-apps": "6"}, "use 2147483647"),
        ({"root.mkt.ordering-policy": "priority"}, "use fifo or fair"),
        ({"root.ordering-policy": "fair"}, "use utilization or priority-utilization"),
        ({"root.mkt.state": "DRAINING"}, "use RUNNING or STOPPED"),
        ({"root.eng.state": "STOPPED", "root.eng.lab.state": "RUNNING"}, "below a parent that is STOPPED"),
        ({"root.mkt.maximum-capacity": "10"}, "10 % of the cluster is below the capacity, 30 %"),
        ({"root.eng.maximum-capacity": "30"}, "30 % of the cluster is below the capacity, 40 %"),
        ({"root.mkt.capacity": "31"}, "add up to 101"),
        ({"root.mkt.capacity": "1w"}, "mix weights and percentages"),
        ({"root.mkt.capacity": "[memory=1024,vcores=1]"}, "mix absolute resources and shares"),
        ({**ABSOLUTE, "root.eng.lab.capacity": "[memory=9000,vcores=1]"}, "have 10000 MiB, 3 vcores, more"),
        ({**ABSOLUTE, "root.eng.lab.capacity": "40"}, "mix absolute resources and shares"),
        ({**ABSOLUTE, "root.eng.maximum-capacity": "[memory=1,vcores=4]"}, "is below the capacity"),
        ({**ABSOLUTE, "root.eng.capacity": "[memory=8g,vcores=4]"}, "use [memory=MIB,vcores=N]"),
        ({"root.capacity": "90"}, "is not 100"),
        ({"root.queues": "eng,mkt,res,res"}, "is named twice"),
        ({"node-locality-delay": "7"}, "'7' is not modelled by the emulator; use -1 or 0 or 40"),
        ({"resource-calculator": "org.apache.hadoop.yarn.util.resource.Other"}, "use org"),
        ({"schedule-asynchronously.enable": "true"}, "use false"),
        ({"something.new": "1"}, "something.new: is not modelled"),
        ({"yarn.resourcemanager.scheduler.monitor.enable": "true"}, "monitor.enable: is not modelled"),
        ({"root.mkt.user-limit-factor": "x"}, "'x' is not a number"),
        ({"root.mkt.priority": "1e99"}, "is not between"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_an_error_that_names_the_key(tmp_path, more, why):
    path = write_file(tmp_path, {**NESTED, **more})
    with pytest.raises(BadInput) as caught:
        read_scheduler_file(path)
    assert why in str(caught.value)
    assert str(path) in str(caught.value)
    assert next(reversed(more)).rpartition("yarn.")[2] in str(caught.value) or "queues" in str(caught.value)


def test_all_keys_that_cannot_be_used_are_named_at_once(tmp_path):
    more = {"root.mkt.state": "DRAINING", "root.mkt.max-parallel-apps": "6", "root.x.capacity": "1"}
    with pytest.raises(BadInput, match="3 keys cannot be used") as caught:
        read_scheduler_file(write_file(tmp_path, {**NESTED, **more}))
    assert all(key in str(caught.value) for key in more)


@pytest.mark.parametrize(
    ("name", "path"),
    [("root.a.x", "a.x"), ("a.x", "a.x"), ("y", "b.y"), ("x", None), ("a", None), ("root.y", None)],
)
def test_a_leaf_is_found_by_its_path_or_by_an_unambiguous_last_part(name, path):
    assert leaf_of(name, {"a.x": 1, "b.x": 1, "b.y": 1}) == path


def test_disable_preemption_is_inherited_and_a_leafs_own_value_wins(tmp_path):
    more = {"root.eng.disable_preemption": "true", "root.eng.lab.disable_preemption": "false"}
    leaves = read_scheduler_file(write_file(tmp_path, {**NESTED, **more})).leaves
    assert [leaf.name for leaf in leaves if leaf.preemption_disabled] == ["eng.prod"]
