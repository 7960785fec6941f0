"""Checking: no field that no cluster or controller can have.

Law: everything is checked before anything is run or written; the first problem is a BadInput that names the
place of the field. The two own queues have their guarantees from ``shares`` and ``caps``; a table with their
name gives them limits only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.cluster.faults import NodeSlow
from emulator.scenario.record import (
    MAX_COUNT,
    MAX_NODES,
    MAX_RATIO,
    MAX_SEED,
    MAX_SLOTS,
    MAX_SPAN_MS,
    TIMINGS,
    QueueEntry,
    Scenario,
    Tuning,
    Where,
    WorkloadEntry,
)
from emulator.scenario.scheduler_file import is_queue_name, read_scheduler_file
from emulator.virtual.schemes import SCHEMES
from emulator.workload.spec import parse_spec
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES, RATIO_MAX
from yarnctl.errors import BadInput
from yarnctl.traces.job import LONGEST_MS, Job, JobClass, SparkShape
from yarnctl.traces.trace_file import is_name

OWN: tuple[JobClass, ...] = ("production", "research")
"""The queues that every scheme has, by the class of jobs that goes there."""

MAX_FACTOR = 1000
MAX_USERS = 10_000
SPARK_BOUNDS = (
    ("executors", 1, 100_000),
    ("cores", 1, 1_000),
    ("task_ms", 0, LONGEST_MS),
    ("block_mib", 0, 1 << 20),
    ("move_mib_per_s", 1, 1 << 20),
    ("start_ms", 0, 3_600_000),
    ("min_executors", 0, 100_000),
)
"""What an application of Spark may be, by field of ``[workloads.spark]``."""


def check(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first field that no cluster or controller can have."""
    _check_cluster(scenario, where)
    _check_rules(scenario, where)
    _check_ratios(scenario, where)
    _check_tuning(scenario.tuning, where)
    _check_faults(scenario, where)
    _check_file(scenario, where)
    check_queues(scenario, where)
    check_workloads(scenario, where)


def _check_cluster(scenario: Scenario, where: Where) -> None:
    within(where, "nodes", scenario.nodes, 1, MAX_NODES)
    sized = scenario.node_memory_mib is not None or scenario.node_vcores is not None
    if scenario.slots is not None and sized:
        raise BadInput(where("slots"), "slots and a node size exclude each other", "give one of them")
    if scenario.slots is not None:
        within(where, "slots", scenario.slots, 1, MAX_SLOTS)
    elif scenario.node_memory_mib is None or scenario.node_vcores is None:
        remedy = "give slots, or node_memory_mib and node_vcores"
        raise BadInput(where("slots"), "the node size is missing", remedy)
    else:
        within(where, "node_memory_mib", scenario.node_memory_mib, 1, 1 << 40)
        within(where, "node_vcores", scenario.node_vcores, 1, 1 << 20)


def _check_rules(scenario: Scenario, where: Where) -> None:
    if scenario.production is None and scenario.research is None and not scenario.workloads:
        raise BadInput(where("production"), "no workload", "give production, research, or [[workloads]]")
    if not scenario.schemes:
        raise BadInput(where("schemes"), "no scheme", f"use some of {', '.join(SCHEMES)}")
    for name in scenario.schemes:
        known(where, "schemes", name, SCHEMES)
    if len(set(scenario.schemes)) < len(scenario.schemes):
        raise BadInput(where("schemes"), "a scheme is named twice", "name each scheme once")
    known(where, "job_policy", scenario.job_policy, JOB_POLICIES)
    known(where, "task_policy", scenario.task_policy, TASK_POLICIES)
    known(where, "profile", scenario.profile, PROFILES)
    known(where, "timing", scenario.timing, TIMINGS)
    for name in () if scenario.measured is None else scenario.measured.__struct_fields__:
        value = getattr(scenario.measured, name)
        if name.endswith("_ms"):
            within(where, f"measured.{name}", value, 1 if "heartbeat" in name else 0, MAX_SPAN_MS)
    within(where, "seed", scenario.seed, 0, MAX_SEED)


def _check_ratios(scenario: Scenario, where: Where) -> None:
    for field in ("load", "production_peak", "research_peak"):
        value = getattr(scenario, field)
        if value is not None and not 0 < value < math.inf:
            raise BadInput(where(field), f"{value} is not a positive number")
    for field in ("shares", "caps"):
        values = getattr(scenario, field)
        if not all(0 < value <= 1 for value in values) or sum(values) > 1 + 1e-9:
            raise BadInput(
                where(field), f"{list(values)}: each part must be above 0, and their sum at most 1"
            )
    if not 0 < scenario.am_ratio <= 1:
        raise BadInput(where("am_ratio"), f"{scenario.am_ratio} is not above 0 and at most 1")
    if not 0 <= scenario.may_lose <= 1:
        raise BadInput(where("may_lose"), f"{scenario.may_lose} is not within 0 to 1")
    if not 0 <= scenario.second_worth <= RATIO_MAX:
        raise BadInput(where("second_worth"), f"{scenario.second_worth} is not within 0 to {RATIO_MAX}")
    if scenario.room_within_ms is not None:
        within(where, "room_within_ms", scenario.room_within_ms, 1, MAX_SPAN_MS)


def _check_tuning(tuning: Tuning, where: Where) -> None:
    for field in tuning.__struct_fields__:
        value = getattr(tuning, field)
        if value is None or isinstance(value, str | bool):
            continue
        most = MAX_SPAN_MS if field.endswith("_ms") else MAX_RATIO if "ratio" in field else MAX_COUNT
        within(where, f"tuning.{field}", value, 1 if field.endswith("tick_ms") else 0, most)


def _check_faults(scenario: Scenario, where: Where) -> None:
    most = {"at_ms": LONGEST_MS, "until_ms": LONGEST_MS, "node": scenario.nodes - 1, "ratio": MAX_RATIO}
    for index, fault in enumerate(scenario.faults):
        place = f"faults[{index}]"
        for field in fault.__struct_fields__:
            within(where, f"{place}.{field}", getattr(fault, field), 0, most.get(field, MAX_COUNT))
        until_ms = getattr(fault, "until_ms", None)
        if until_ms is not None and until_ms <= fault.at_ms:
            raise BadInput(where(f"{place}.until_ms"), f"{until_ms} is not after at_ms, {fault.at_ms}")
        if isinstance(fault, NodeSlow) and fault.ratio <= 0:
            raise BadInput(where(f"{place}.ratio"), f"{fault.ratio} is not above 0")


def check_fault_jobs(scenario: Scenario, found: tuple[Job, ...], where: Where) -> None:
    """Raise BadInput for the first fault that names a job beyond the last one."""
    for index, fault in enumerate(scenario.faults):
        job: int = getattr(fault, "job", 0)
        if job >= len(found):
            problem = f"{job}: the workload has {len(found)} jobs, counted from 0"
            raise BadInput(where(f"faults[{index}].job"), problem, "use a smaller number")


# --- queues beyond production and research -------------------------------------------------------


def shown(value: object) -> str:
    """Return a number as text; Python itself refuses to print one of thousands of digits."""
    return "a number this large" if isinstance(value, int) and value.bit_length() > 100 else str(value)


def within(where: Where, field: str, value: float, low: int, high: int) -> None:
    """Raise BadInput unless a value is within both bounds."""
    if not low <= value <= high:
        raise BadInput(where(field), f"{shown(value)} is not within {low} to {high}")


def known(where: Where, field: str, value: str, names: Mapping[str, object]) -> None:
    """Raise BadInput unless a name is one of those that there are."""
    if value not in names:
        raise BadInput(where(field), f"unknown: {value[:40]!r}", f"use one of {', '.join(names)}")


FILE_SCHEMES = ("soft-cap", "kill", "yarn", "yarn-tuned", "natjam", "mix")
"""What runs on the queues of a file: other schemes set shares of their own."""


def _check_file(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for a scheduler file that cannot be used, or for a field that it would override."""
    plain = Scenario(nodes=1)
    if scenario.scheduler_xml is None:
        for field in ("production_queue", "research_queue"):
            if getattr(scenario, field) != getattr(plain, field):
                raise BadInput(where(field), "has no effect without scheduler_xml", "remove it")
        if scenario.node_labels:
            raise BadInput(where("node_labels"), "has no effect without scheduler_xml", "remove it")
        return
    _check_labels(scenario, where)
    for field in ("shares", "caps", "am_ratio", "queues", "mode"):
        if getattr(scenario, field) not in (getattr(plain, field), "guarantees"):
            raise BadInput(where(field), "is set by scheduler_xml", "remove one of them")
    for name in scenario.schemes:
        if name not in FILE_SCHEMES:
            problem = f"{name} does not run on the queues of a scheduler_xml"
            raise BadInput(where("schemes"), problem, f"use some of {', '.join(FILE_SCHEMES)}")
    for field in ("production_queue", "research_queue"):
        require_leaf(scenario, getattr(scenario, field), where(field))


def _check_labels(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for labels that the nodes do not have room for, or that jobs request and no node has."""
    names = [label.name for label in scenario.node_labels]
    for index, label in enumerate(scenario.node_labels):
        if not is_queue_name(label.name) or names.count(label.name) > 1:
            problem = f"{label.name[:60]!r} is not a label, or has two tables"
            raise BadInput(where(f"node_labels[{index}].name"), problem, "use letters, digits, - and _")
        within(where, f"node_labels[{index}].nodes", label.nodes, 0, scenario.nodes)
    count = sum(label.nodes for label in scenario.node_labels)
    if count > scenario.nodes:
        problem = f"{count} nodes have labels, of {scenario.nodes}"
        raise BadInput(where("node_labels"), problem, "use fewer nodes with labels, or more nodes")
    for leaf in read_scheduler_file(Path(scenario.scheduler_xml or "")).leaves:
        if leaf.default_label and leaf.default_label not in names:
            problem = f"the queue {leaf.name} requests the label {leaf.default_label}, which no node has"
            raise BadInput(where("node_labels"), problem, "add a [[node_labels]] table for it")


def _check_label(scenario: Scenario, entry: WorkloadEntry, label: str, place: str) -> None:
    """Raise BadInput for a label of a workload that no node has, or that its queue may not request."""
    if label not in [each.name for each in scenario.node_labels]:
        raise BadInput(place, f"no node has the label {label[:60]!r}", "add a [[node_labels]] table for it")
    own = scenario.production_queue if entry.job_class == "production" else scenario.research_queue
    leaf = read_scheduler_file(Path(scenario.scheduler_xml or "")).leaf(entry.queue or own)
    if leaf is not None and leaf.accessible is not None and label not in leaf.accessible:
        problem = f"the queue {leaf.name} may not request {label}"
        raise BadInput(place, problem, "add it to the queue's accessible-node-labels")


def require_leaf(scenario: Scenario, name: str, place: str) -> str:
    """Return the path of a leaf of the scheduler file that takes applications. Raises BadInput."""
    file = read_scheduler_file(Path(scenario.scheduler_xml or ""))
    leaf = file.leaf(name)
    if leaf is None and (found := file.created(path := name.removeprefix("root."))) is not None:
        leaf = found.leaf(path)
    if leaf is None:
        remedy = f"use one of {', '.join(each.name for each in file.leaves)}"
        raise BadInput(place, f"{name[:60]!r} names no leaf queue of scheduler_xml, or several", remedy)
    if leaf.stopped:
        raise BadInput(place, f"the queue {leaf.name} is STOPPED", "start it, or use another")
    return leaf.name


def names_of(scenario: Scenario) -> dict[str, None]:
    """Return the names of all queues of a scenario."""
    return dict.fromkeys((*OWN, *(entry.name for entry in scenario.queues)))


def check_queues(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first queue that no scheduler can have."""
    if scenario.queues and scenario.mode == "deadlines":
        remedy = 'remove [[queues]], or give mode = "queues"'
        raise BadInput(where("queues[0]"), "under mode deadlines there is one queue for all", remedy)
    seen: dict[str, None] = {}
    for index, entry in enumerate(scenario.queues):
        _check_queue(entry, lambda field, index=index: where(f"queues[{index}].{field}"))  # type: ignore[misc]
        if entry.name in seen:
            problem = f"{entry.name!r} has two tables"
            raise BadInput(where(f"queues[{index}].name"), problem, "keep one of them")
        seen[entry.name] = None
    _check_sums(scenario, where)


def _check_queue(entry: QueueEntry, where: Callable[[str], str]) -> None:
    if not is_name(entry.name) or entry.name in ("root", "default"):
        problem = f"{entry.name[:40]!r} is not a valid queue name"
        raise BadInput(
            where("name"), problem, "use 1 to 200 characters without blanks, and not root or default"
        )
    for field in ("guaranteed_ratio", "maximum_ratio", "am_ratio"):
        value = getattr(entry, field)
        if value is not None and not 0 < value <= 1:
            raise BadInput(
                where(field), f"{value} is not above 0 and at most 1", "give a part of the cluster"
            )
    factor = entry.user_limit_factor
    if factor is not None and not 0 < factor <= MAX_FACTOR:
        remedy = "1.0 lets one user hold the queue's guarantee"
        raise BadInput(
            where("user_limit_factor"), f"{factor} is not above 0 and at most {MAX_FACTOR}", remedy
        )
    if entry.name in OWN:
        for field in ("guaranteed_ratio", "role"):
            if getattr(entry, field) is not None:
                remedy = "use shares and caps" if field == "guaranteed_ratio" else "remove it"
                raise BadInput(where(field), f"{entry.name} has a fixed one", remedy)
    elif entry.guaranteed_ratio is None:
        raise BadInput(where("guaranteed_ratio"), "is missing", "give the guaranteed part of the cluster")
    elif entry.maximum_ratio is not None and entry.maximum_ratio < entry.guaranteed_ratio:
        problem = f"{entry.maximum_ratio} is below the guarantee, {entry.guaranteed_ratio}"
        raise BadInput(where("maximum_ratio"), problem, "use the guarantee or more")


def _check_sums(scenario: Scenario, where: Where) -> None:
    """Guarantees make at most the whole cluster, under the shares and, where a scheme has them, the caps."""
    more = math.fsum(entry.guaranteed_ratio or 0 for entry in scenario.queues)
    used = ["shares"]
    if any(SCHEMES[name].caps for name in scenario.schemes if name in SCHEMES):
        used.append("caps")
    for field in used if more else ():
        total = more + sum(getattr(scenario, field))
        if total > 1 + 1e-9:
            problem = f"guarantees, those of [[queues]] included, sum up to {total:g} of the cluster"
            raise BadInput(where(field), problem, f"reduce {field}: the other queues need {more:g}")


def _check_spark(shape: SparkShape, place: str) -> None:
    """Raise BadInput for the first number of an application of Spark that is out of bounds."""
    for field, low, high in SPARK_BOUNDS:
        value = getattr(shape, field)
        if not low <= value <= high:
            raise BadInput(place, f"{field}: {shown(value)} is not within {low} to {high}")


def check_workloads(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first workload that cannot be loaded or has no queue."""
    for index, entry in enumerate(scenario.workloads):
        place = f"workloads[{index}]"
        try:
            parse_spec(entry.spec)
        except BadInput as error:
            raise BadInput(where(f"{place}.spec"), f"{error.where}: {error.problem}", error.remedy) from None
        if entry.queue is not None:
            if scenario.mode == "deadlines":
                problem = "under mode deadlines there is one queue for all"
                raise BadInput(where(f"{place}.queue"), problem, "remove it")
            if scenario.scheduler_xml is not None:
                require_leaf(scenario, entry.queue, where(f"{place}.queue"))
            else:
                known(where, f"{place}.queue", entry.queue, names_of(scenario))
        within(where, f"{place}.users", len(entry.users), 0, MAX_USERS)
        for user in entry.users:
            if not is_name(user):
                problem = f"{user[:40]!r} is not a valid user name"
                raise BadInput(where(f"{place}.users"), problem, "use 1 to 200 characters without blanks")
        for field in ("map_label", "reduce_label"):
            if label := getattr(entry, field):
                _check_label(scenario, entry, label, where(f"{place}.{field}"))
        if entry.spark is not None:
            _check_spark(entry.spark, where(f"{place}.spark"))
        if entry.peak is not None and not 0 < entry.peak < math.inf:
            raise BadInput(
                where(f"{place}.peak"), f"{entry.peak} is not a positive number", "1.0 fills the cluster"
            )
