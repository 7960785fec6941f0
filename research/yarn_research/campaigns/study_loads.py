"""What the study on a real Hadoop plays: loads, schemes and the order of a round (research/notes/study.md).

Law: pure; written before the first run. A load names its jobs as they are without yarnctl; a scheme adds
what it needs. Who runs when follows from the load's name and the round's number alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from tests.hadoop.jobs import RESTARTABLE, Plan
from yarn_research.campaigns.schemes import MUTABLE, QUEUE, TUNED, Changes, Scheme
from yarnctl.traces.lengths import length_table

SLOTS = 12
RESEARCH, PRODUCTION = SLOTS - 1, SLOTS // 4
JAVA = "wordcount"
"""The work of a job of Hadoop's examples: ``maps`` files of text, no reducer of ours, no task runner."""
MAP_KIB = 1024
EXPANDED = "expand"
"""A mapper that makes each value 64 KiB long."""


class Load(NamedTuple):
    """Jobs that are played together; ``production`` follow each other by ``apart_s``.

    ``arrives_s`` is a third of what research takes alone, about: the first of production comes then. Where
    there is ``begun_ratio`` it comes when so many of research's key groups have begun, however fast that is.
    ``ran_before``: the production job has run twice, short, before the first round. ``is_nested``: both queues
    lie one level lower, beside an idle one.
    """

    name: str
    research: Plan
    production: tuple[Plan, ...]
    schemes: tuple[str, ...]
    rounds: int
    arrives_s: float = 36.0
    begun_ratio: float = 0.0
    apart_s: float = 0.0
    ran_before: bool = True
    is_nested: bool = False


def groups(longest_s: float, reduces: int, key_s: float) -> tuple[int, ...]:
    """Return key groups per reduce by the paper's table of lengths (facts/natjam.md, section 1)."""
    return tuple(round(longest_s * ratio / key_s) for ratio in length_table()[:reduces])


def _research(
    longest_s: float, key_s: float, work: str = "sleep", values: int = 3, mapper: str = "/bin/cat"
) -> Plan:
    groups_of = groups(longest_s, RESEARCH, key_s)
    return Plan("research", "research", groups_of, key_s, values=values, mapper=mapper, work=work)


def _production(
    longest_s: float, key_s: float, work: str = "sleep", values: int = 3, mapper: str = "/bin/cat"
) -> Plan:
    groups_of = groups(longest_s, PRODUCTION, key_s)
    return Plan(
        "production", "production", groups_of, key_s, values=values, user="bob", mapper=mapper, work=work
    )


def _java(name: str, queue: str, maps: int, user: str) -> Plan:
    return Plan(name, queue, (0,), 0.0, maps, 0, user, work=JAVA)


MOST = ("production-alone", "research-alone", "as-shipped", "mix-2", "yarn-tuned")
THREE = ("as-shipped", "mix-2", "yarn-tuned")
KILLED = "mix-2-killed"
"""Follows ``mix-2`` in each round: what that chose is killed, as late, without yarnctl."""
PRICED = ("mix-2", KILLED, "yarn-tuned", "soft-cap")
"""Of the price of a second (research/notes/plan-second-worth.md)."""
ALONE = ("mix-2",)
"""Of more runs for the same plan, whose levers alone are judged."""

LOADS = {
    load.name: load
    for load in (
        Load(
            "sleeping",
            _research(90.0, 0.1),
            (_production(22.0, 0.1),),
            (*MOST, "yarn-capped", "victims-killed"),
            rounds=8,
        ),
        Load(
            "map-heavy",
            _java("research", "research", 44, "alice"),
            (_java("production", "production", 6, "bob"),),
            MOST,
            rounds=8,
            arrives_s=20.0,
        ),
        Load(
            "processor",
            _research(20.0, 0.05, work="compute"),
            (_production(5.0, 0.05, work="compute"),),
            THREE,
            rounds=4,
        ),
        Load(
            "disk",
            _research(38.4, 0.1, work="write", values=1, mapper=EXPANDED),
            (_production(19.2, 0.1, work="write", values=1, mapper=EXPANDED),),
            THREE,
            rounds=4,
        ),
        Load(
            "disk-long",
            _research(38.4, 0.1, work="write-more", values=1, mapper=EXPANDED),
            (_production(19.2, 0.1, work="write-more", values=1, mapper=EXPANDED),),
            THREE,
            rounds=4,
            begun_ratio=1 / 3,
        ),
        Load(
            "never-ran",
            _research(90.0, 0.1),
            (_production(22.0, 0.1),),
            THREE,
            rounds=4,
            ran_before=False,
        ),
        Load(
            "bursts",
            _research(90.0, 0.1),
            tuple(
                Plan(f"production-{part}", "production", groups(8.0, 2, 0.1), user="bob") for part in "abc"
            ),
            THREE,
            rounds=4,
            apart_s=15.0,
        ),
        Load("paper", _research(60.0, 0.1), (_production(15.0, 0.1),), PRICED, rounds=5, arrives_s=24.0),
        Load(
            "short-tasks",
            _java("research", "research", 44, "alice"),
            (_java("production", "production", 6, "bob"),),
            PRICED,
            rounds=5,
            arrives_s=20.0,
        ),
        Load(
            "nested",
            _research(60.0, 0.1),
            (_production(15.0, 0.1),),
            PRICED,
            rounds=5,
            arrives_s=24.0,
            is_nested=True,
        ),
    )
}
LOADS |= {
    f"{name}-levers": LOADS[name]._replace(name=f"{name}-levers", schemes=ALONE)
    for name in ("paper", "short-tasks", "nested")
}

_SHIPPED = Scheme("as-shipped", 95, 5, attached=True)
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("production-alone", 95, 5, with_research=False),
        Scheme("research-alone", 95, 5, with_production=False),
        _SHIPPED,
        _SHIPPED._replace(name="mix-2", options=("--eviction", "mix", "--may-lose", "2%")),
        Scheme("yarn-tuned", 95, 5, monitored=True, settings=TUNED),
        Scheme("yarn-capped", 95, 5, monitored=True, settings={**TUNED, **MUTABLE}),
        _SHIPPED._replace(name="victims-killed", options=("--order-timeout-s", "1", "--kill-on-timeout")),
        Scheme(KILLED, 95, 5),
        Scheme("soft-cap", 25, 75),
    )
}
CAPPED = "yarn-capped"
"""Under this scheme the bench itself lowers research's maximum while production runs."""


_ABOVE = {"production": "prod", "research": "shared"}
_BESIDE = {"production": "reports", "research": "adhoc"}
_LEAF = ("disable_preemption", "user-limit-factor", "minimum-user-limit-percent")
"""What a leaf of the nested tree has of the flat queue; capacities are its parent's."""


def changes(scheme: Scheme, load: Load) -> Changes:
    """Return what the ResourceManager's files must say: the two queues below root, or one level lower."""
    told = scheme.changes()
    flat = dict(told["capacity-scheduler"])
    nested = {f"{QUEUE}queues": "prod,shared"}
    for leaf, above in _ABOVE.items():
        nested[f"{QUEUE}{above}.queues"] = f"{leaf},{_BESIDE[leaf]}"
        nested |= {f"{QUEUE}{above}.{leaf}.capacity": "90", f"{QUEUE}{above}.{_BESIDE[leaf]}.capacity": "10"}
        for key, value in flat.items():
            queue, _, name = key.removeprefix(QUEUE).partition(".")
            if queue == leaf and value is not None:
                nested[f"{QUEUE}{above}.{f'{leaf}.' if name in _LEAF else ''}{name}"] = value
    if load.is_nested:
        queues = {**flat, **nested}
    else:
        queues = {**dict.fromkeys(nested), **flat, f"{QUEUE}queues": "production,research"}
    return {**told, "capacity-scheduler": queues}


def order_of(load: Load, number: int) -> list[str]:
    """Return the schemes of a round (from 1), in the order in which they run."""
    found = list(load.schemes)
    random.Random(f"{load.name}-{number}").shuffle(found)
    if KILLED in found:
        found.remove(KILLED)
        found.insert(found.index("mix-2") + 1, KILLED)
    return found


def wanted(loads: Mapping[str, Load]) -> list[tuple[Load, int]]:
    """Return every round: the first of each load, the second of each, and so on."""
    most = max((load.rounds for load in loads.values()), default=0)
    return [
        (load, number) for number in range(1, most + 1) for load in loads.values() if number <= load.rounds
    ]


def named(plan: Plan, load: Load, number: int) -> Plan:
    """Return a job as its run names it: one that never ran before has a name in letters of its own.

    A job is known again by its name without numbers, so a number does not make it another.
    """
    if load.ran_before or plan.queue != "production":
        return plan
    letters = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return plan._replace(name=f"{plan.name}-{letters}")


def wrapped(plan: Plan, scheme: Scheme) -> Plan:
    """Return research as it is submitted under a scheme: with the task runner where there can be one."""
    return plan._replace(wrap=RESTARTABLE) if scheme.attached and plan.work != JAVA else plan
