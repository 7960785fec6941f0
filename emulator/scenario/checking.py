"""Checking: no field that no cluster or controller can have.

Law: everything is checked before anything is run or written; the first problem is a BadInput that
names the place of the field.
"""

from __future__ import annotations

import math

from emulator.cluster.faults import NodeSlow
from emulator.scenario.extra_queues import check_queues, check_workloads, known, within
from emulator.scenario.record import (
    MAX_COUNT,
    MAX_NODES,
    MAX_RATIO,
    MAX_SEED,
    MAX_SLOTS,
    MAX_SPAN_MS,
    TIMINGS,
    Scenario,
    Tuning,
    Where,
)
from emulator.virtual.schemes import SCHEMES
from emulator.workload.job import LONGEST_MS, Job
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES
from yarnctl.errors import BadInput


def check(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first field that no cluster or controller can have."""
    _check_cluster(scenario, where)
    _check_rules(scenario, where)
    _check_ratios(scenario, where)
    _check_tuning(scenario.tuning, where)
    _check_faults(scenario, where)
    check_queues(scenario, where)
    check_workloads(scenario, where)


def _check_cluster(scenario: Scenario, where: Where) -> None:
    within(where, "nodes", scenario.nodes, 1, MAX_NODES)
    sized = scenario.node_memory_mib is not None or scenario.node_vcores is not None
    if scenario.slots is not None and sized:
        raise BadInput(where("slots"), "slots and a node size are both given", "give one of them")
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
        raise BadInput(where("schemes"), "no scheme", f"some of {', '.join(SCHEMES)}")
    for name in scenario.schemes:
        known(where, "schemes", name, SCHEMES)
    if len(set(scenario.schemes)) < len(scenario.schemes):
        raise BadInput(where("schemes"), "a scheme stands twice")
    known(where, "job_policy", scenario.job_policy, JOB_POLICIES)
    known(where, "task_policy", scenario.task_policy, TASK_POLICIES)
    known(where, "profile", scenario.profile, PROFILES)
    known(where, "timing", scenario.timing, TIMINGS)
    within(where, "seed", scenario.seed, 0, MAX_SEED)


def _check_ratios(scenario: Scenario, where: Where) -> None:
    for field in ("load", "production_peak", "research_peak"):
        value = getattr(scenario, field)
        if value is not None and not 0 < value < math.inf:
            raise BadInput(where(field), f"{value} is not a positive number")
    for field in ("shares", "caps"):
        values = getattr(scenario, field)
        if not all(0 < value <= 1 for value in values) or sum(values) > 1 + 1e-9:
            raise BadInput(where(field), f"{list(values)}: parts must be above 0 and make at most 1 together")
    if not 0 < scenario.am_ratio <= 1:
        raise BadInput(where("am_ratio"), f"{scenario.am_ratio} is not above 0 and at most 1")


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
            raise BadInput(where(f"faults[{index}].job"), problem, "give a job that there is")
