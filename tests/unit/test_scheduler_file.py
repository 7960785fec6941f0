"""The queues of a capacity-scheduler.xml, and the keys that the emulator does not model."""

from __future__ import annotations

import pytest

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from emulator.scenario.scheduler_file import leaf_of, read_scheduler_file
from tests.unit.scheduler_files import NESTED, write_file
from yarnctl.errors import BadInput


def test_a_nested_file_is_read_with_ratios_of_the_cluster(tmp_path):
    leaves, parents, keys = read_scheduler_file(
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


def test_hadoops_defaults_and_keys_that_grant_nothing_are_accepted(tmp_path):
    more = {
        "maximum-applications": "10000", "node-locality-delay": "-1", "queue-mappings": "",
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
        ({"root.mkt.minimum-user-limit-percent": "25"}, "'25' is not modelled by the emulator; use 100"),
        ({"root.accessible-node-labels.gpu.capacity": "1"}, "labels.gpu.capacity: is not modelled"),
        ({"root.mkt.accessible-node-labels": "gpu"}, "'gpu' is not modelled"),
        ({"root.users.capacity": "20"}, "its queue is in no queues key; remove it"),
        ({"root.mkt.auto-create-child-queue.enabled": "true"}, "'true' is not modelled"),
        ({"root.mkt.auto-queue-creation-v2.enabled": "true"}, "'true' is not modelled"),
        ({"root.mkt.max-parallel-apps": "6"}, "use 2147483647"),
        ({"root.mkt.ordering-policy": "priority"}, "use fifo or fair"),
        ({"root.ordering-policy": "fair"}, "use utilization or priority-utilization"),
        ({"root.mkt.state": "DRAINING"}, "use RUNNING or STOPPED"),
        ({"root.eng.state": "STOPPED", "root.eng.lab.state": "RUNNING"}, "below a parent that is STOPPED"),
        ({"root.mkt.maximum-capacity": "10"}, "10 % of the cluster is below the capacity, 30 %"),
        ({"root.eng.maximum-capacity": "30"}, "30 % of the cluster is below the capacity, 40 %"),
        ({"root.mkt.capacity": "31"}, "add up to 101"),
        ({"root.mkt.capacity": "1w"}, "mix weights and percentages"),
        ({"root.mkt.capacity": "[memory=1024,vcores=1]"}, "absolute resources are not modelled"),
        ({"root.capacity": "90"}, "is not 100"),
        ({"root.queues": "eng,mkt,res,res"}, "is named twice"),
        ({"node-locality-delay": "40"}, "'40' is not modelled by the emulator; use -1 or 0"),
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
