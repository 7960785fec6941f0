"""What to do after ``yarnctl check``: how to apply the fixes here, and the options of ``yarnctl run``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from yarnctl.attach.check.preflight import CAPACITY, CheckResult, Facts, key_parts, number_of
from yarnctl.attach.eligibility.permission import policy_is_on
from yarnctl.hadoop.resource_manager import LEAST_KEYS

BY_FILE = (
    "edit capacity-scheduler.xml on each ResourceManager, all keys of one fix together, then run"
    " yarn rmadmin -refreshQueues"
)
BY_REST = "send all keys of one fix in one PUT to /ws/v1/cluster/scheduler-conf"
STORE = "yarn.scheduler.configuration.store.class"
MAY_LOSE = "2%"  # Of the container time of an hour: 72 s of work for each container
IN_FLIGHT_LEAST = 4
CONTAINER_MIB = 1024


class NextSteps(msgspec.Struct, frozen=True):
    """``apply``: how to apply the fixes of queues ("": there is none); ``run``: the options of the daemon."""

    apply: str
    run: tuple[str, ...]


def next_steps(facts: Facts, results: Iterable[CheckResult]) -> NextSteps | None:
    """Return the steps for a cluster and its check results; None if its queues were not read."""
    if facts.root is None:
        return None
    keys = {key: text for one in results if one.severity != "ok" for key, text in one.keys.items()}
    return NextSteps(_apply(facts, keys) if keys else "", run_options(facts))


def _apply(facts: Facts, keys: Mapping[str, str]) -> str:
    # Only an administrator sees the keys of a store, and refreshQueues fails where there is one
    if facts.scheduler is None and facts.setting(STORE) in (None, "file"):
        return BY_FILE
    if any(re.search("[,;:=' ]", text) for text in keys.values()):
        return BY_REST
    by_queue: dict[str, list[str]] = {}
    for key, text in keys.items():
        path, name = key_parts(facts, key)
        by_queue.setdefault(path, []).append(f"{name}={text}" if path else f"{CAPACITY}{name}={text}")
    general = ",".join(by_queue.pop("", ()))
    updates = ";".join(f"{path}:{','.join(pairs)}" for path, pairs in by_queue.items())
    words = ["yarn schedulerconf"] + ([f"-update '{updates}'"] if updates else [])
    return " ".join(words + ([f"-global {general}"] if general else []))


def run_options(facts: Facts) -> tuple[str, ...]:
    """Return options that suit the cluster.

    Names of parents stay. Names that stand for no queue are replaced: by the running leaf queue with the
    largest guarantee, and the one with the smallest; by one queue with deadlines if there is only one.
    """
    mode = facts.mode
    if mode == "guarantees":
        return ("--mode", mode, *_filters(facts), *_tail(facts, mode))
    production, research = (
        list(facts.resolved(names).as_named(names))
        for names in (facts.preempting_queues, facts.preemptable_queues)
    )
    if not production or (mode == "queues" and not research):
        running = [leaf for leaf in facts.leaves if leaf.queue.state in ("RUNNING", "")]
        ranked = sorted(running, key=lambda leaf: (-leaf.queue.guaranteed_percent, leaf.path))
        if not ranked:
            return ()
        production, research = [ranked[0].path], [ranked[-1].path]
        mode = "queues" if len(ranked) > 1 and mode == "queues" else "deadlines"
    words = ["--mode", mode] if mode != "queues" else []
    words += [word for path in production for word in ("--preempting", path)]
    words += [word for path in research for word in ("--preemptable", path)] if mode == "queues" else []
    return (*words, *_tail(facts, mode))


def _tail(facts: Facts, mode: str) -> Iterator[str]:
    """Yield the options that name no queue."""
    yield from ("--in-flight-least", str(_in_flight_least(facts)))
    if mode != "deadlines":
        yield from ("--eviction", "mix", "--may-lose", MAY_LOSE)
    if facts.yarn_preemption != "off":
        yield from ("--yarn-preemption", facts.yarn_preemption)
    elif facts.scheduler is not None and policy_is_on(facts.configuration or {}):
        yield from ("--yarn-preemption", "switch")
    if facts.allow_priority and mode == "deadlines":
        yield "--allow-priority"
    if facts.admission:
        yield from ("--admission", facts.admission)


def _filters(facts: Facts) -> Iterator[str]:
    """Yield the options that name queues, for a role that not every leaf has."""
    every = [leaf.path for leaf in facts.leaves]
    roles = (("--preempting", facts.preempting_queues), ("--preemptable", facts.preemptable_queues))
    for option, names in roles:
        found = facts.resolved(names)
        for path in found.as_named(names) if len(found.of(names)) < len(every) else ():
            yield from (option, path)


def _in_flight_least(facts: Facts) -> int:
    """Return the default, or half of the containers that a small cluster runs at once, at least one."""
    least = number_of(facts.setting(LEAST_KEYS[0])) or 0
    total = sum(node.total.memory_mib for node in facts.nodes or () if not node.partition)
    containers = total // max(CONTAINER_MIB, int(least))
    return max(1, min(IN_FLIGHT_LEAST, containers // 2)) if facts.nodes else IN_FLIGHT_LEAST
