"""Random trees of queues: the fixes that ``yarnctl check`` prints, applied to the keys, are legal and enough.

The keys are computed to answers here as the CapacityScheduler does: percentages of the parent, weights among
siblings, absolute vectors; a maximum is a part of the parent's maximum.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.thoroughness import more
from yarnctl.attach.check.preflight import CAPACITY, Facts
from yarnctl.attach.check.rules import judge
from yarnctl.hadoop.wire.yarn import (
    ClusterInfo,
    NodeRow,
    QueueAcl,
    QueueAcls,
    QueueInfo,
    QueueList,
    Vector,
)

TOLERANCE = 0.05
"""Percent: the sum of siblings may differ from 100 by so much (CapacityScheduler: 0.0005 of 1)."""
MIB, VCORES = 1_000_000, 4_000
RULES = (
    "production-share", "research-share", "maxima", "user-limit", "am-share", "masters", "acls", "queues",
    "own-preemption", "parallel-apps",
)  # fmt: skip
Keys = dict[str, str]


class Site:
    """Keys of a tree, without their prefix; ``below``: the children's names by path."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # test data
        self.keys: Keys = {}
        self.below: dict[str, list[str]] = {}
        self.unit = self.random.choice(("percentage", "percentage", "weight", "absolute"))
        self._grow("root", 0, (MIB, VCORES))
        self.leaves = [path for path, names in self.below.items() if not names]

    def _grow(self, path: str, depth: int, size: tuple[int, int]) -> None:
        count = self.random.randint(2, 4) if depth == 0 else self.random.choice((0, 0, 1, 2, 3))
        names = [f"q{number}" for number in range(count if depth < 3 else 0)]
        self.below[path] = names
        parts = [self.random.choice((0, 1, 2, 5, 20, 33.3)) for _ in names]
        if not any(parts):
            parts = [1 for _ in names]
        for name, part in zip(names, parts, strict=True):
            self._configure(f"{path}.{name}", part, part / sum(parts), depth, size)
        if self.unit == "percentage" and names:
            shares = [round(part / sum(parts) * 100, 2) for part in parts]
            largest = shares.index(max(shares))
            shares[largest] = round(100 - sum(shares[:largest] + shares[largest + 1 :]), 2)
            for name, share in zip(names, shares, strict=True):
                self.keys[f"{path}.{name}.capacity"] = f"{share:.10g}"
                most = max(share, self.random.choice((share, 40, 80, 100, 100)))
                self.keys[f"{path}.{name}.maximum-capacity"] = f"{most:.10g}"

    def _configure(self, path: str, part: float, ratio: float, depth: int, size: tuple[int, int]) -> None:
        chance, keys = self.random, self.keys
        own = (int(size[0] * ratio), int(size[1] * ratio))
        if self.unit == "weight":
            keys[f"{path}.capacity"] = f"{max(part, 0.5):g}w"
            keys[f"{path}.maximum-capacity"] = f"{chance.choice((100, 100, 99.9, 97)):g}"
        elif self.unit == "absolute":
            keys[f"{path}.capacity"] = f"[memory={own[0]},vcores={own[1]}]"
            most = own if chance.random() < 0.2 else (MIB, VCORES)
            keys[f"{path}.maximum-capacity"] = f"[memory={most[0]},vcores={most[1]}]"
        if chance.random() < 0.1:
            keys[f"{path}.state"] = "STOPPED"
        if chance.random() < 0.4:
            keys[f"{path}.acl_administer_queue"] = chance.choice(("bob", "ann,bob", "yarnctl"))
        if chance.random() < 0.5:
            keys[f"{path}.maximum-am-resource-percent"] = chance.choice(("0.05", "0.3", "1", "10"))
        if chance.random() < 0.3:
            keys[f"{path}.max-parallel-apps"] = chance.choice(("1", "2"))
        keys[f"{path}.user-limit-factor"] = chance.choice(("1", "0.5", "4", "100"))
        self._grow(path, depth + 1, own)


def vector(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\[memory=([0-9]+),vcores=([0-9]+)\]", text)
    assert found, text
    return int(found[1]), int(found[2])


def answer(site: Site, keys: Keys) -> QueueInfo:
    """Return the tree as the scheduler shows it."""
    return _queue(site, keys, "root", (100.0, 100.0), True, None)


def _queue(
    site: Site,
    keys: Keys,
    path: str,
    shown: tuple[float, float],
    runs: bool,
    share: float | None,
    most_share: float = 100.0,
) -> QueueInfo:
    names = site.below[path]
    runs = runs and keys.get(f"{path}.state", "RUNNING") == "RUNNING"
    weights = [float(keys[f"{path}.{name}.capacity"][:-1]) for name in names] if site.unit == "weight" else []
    below = []
    for number, name in enumerate(names):
        child = f"{path}.{name}"
        capacity, maximum = keys[f"{child}.capacity"], keys[f"{child}.maximum-capacity"]
        if site.unit == "absolute":
            absolute = vector(capacity)[0] / MIB * 100
            most = min(vector(maximum)[0] / MIB * 100, shown[1])
            part = absolute / shown[0] * 100 if shown[0] else 0.0
        else:
            part = weights[number] / sum(weights) * 100 if weights else float(capacity)
            absolute, most = shown[0] * part / 100, shown[1] * float(maximum) / 100
        limit = 100.0 if site.unit == "absolute" else float(maximum)
        below.append(_queue(site, keys, child, (absolute, most), runs, part, limit))
    applications = 0 if names else 2
    parallel = int(keys.get(f"{path}.max-parallel-apps", "9"))
    acl = keys.get(f"{path}.acl_administer_queue", " ")
    return QueueInfo(
        path.rpartition(".")[2],
        kind="" if names else "capacitySchedulerLeafQueueInfo",
        guaranteed_percent=shown[0],
        maximum_percent=shown[1],
        capacity_percent=share or 0.0,
        capacity_max_percent=most_share,
        guaranteed=_shown_vector(site, keys, path),
        weight=float(keys[f"{path}.capacity"][:-1]) if site.unit == "weight" and share is not None else -1.0,
        mode=site.unit,
        state="RUNNING" if runs else "STOPPED",
        user_limit_factor=float(keys.get(f"{path}.user-limit-factor", "1")),
        am_ratio=float(keys.get(f"{path}.maximum-am-resource-percent", "0.1")) if not names else None,
        preemption_disabled=keys.get(f"{path}.disable_preemption") == "true",
        parallel_max=parallel,
        applications=applications,
        applications_active=min(applications, parallel),
        acls=QueueAcls((QueueAcl("ADMINISTER_QUEUE", acl),)),
        below=QueueList(tuple(below)) if names else None,
    )


def _shown_vector(site: Site, keys: Keys, path: str) -> Vector | None:
    return Vector(*vector(keys[f"{path}.capacity"])) if site.unit == "absolute" and path != "root" else None


def require_legal(site: Site, keys: Keys) -> None:
    """Check what CapacityScheduler checks as it reads its file."""
    for path, names in site.below.items():
        children = [f"{path}.{name}" for name in names]
        capacities = [keys[f"{child}.capacity"] for child in children]
        maxima = [keys[f"{child}.maximum-capacity"] for child in children]
        if site.unit == "absolute":
            own = (MIB, VCORES) if path == "root" else vector(keys[f"{path}.capacity"])
            for sort in (0, 1):
                assert sum(vector(text)[sort] for text in capacities) <= own[sort], (path, capacities)
            for low, high in zip(capacities, maxima, strict=True):
                assert all(a <= b for a, b in zip(vector(low), vector(high), strict=True)), (path, low, high)
        elif site.unit == "percentage" and names:
            assert abs(sum(map(float, capacities)) - 100) <= TOLERANCE, (path, capacities)
            for low, high in zip(capacities, maxima, strict=True):
                assert 0 <= float(low) <= float(high) <= 100, (path, low, high)
        elif site.unit == "weight":
            assert all(float(text[:-1]) > 0 for text in capacities)
        for child in children:
            stopped = keys.get(f"{path}.state") == "STOPPED"
            assert not (stopped and keys.get(f"{child}.state") == "RUNNING"), child


def applied(keys: Keys, fix: str) -> Keys:
    """Return the keys after the commands of a fix; the words after them are left out."""
    found = dict(keys)
    for command in fix.split("; "):
        if command.startswith(f"set {CAPACITY}"):
            key, _, value = command.removeprefix(f"set {CAPACITY}").partition("=")
            found[key] = value.partition(" (")[0].partition(" or ")[0]
    return found


def facts_of(site: Site, keys: Keys, production: list[str], research: list[str]) -> Facts:
    conf = {
        "yarn.acl.enable": "true", "yarn.admin.acl": "yarn",
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
    }  # fmt: skip
    return Facts(
        caller_identity="yarnctl",
        info=ClusterInfo(1, version="3.4.2"),
        configuration=conf,
        preempting_queues=tuple(production),
        preemptable_queues=tuple(research),
        root=answer(site, keys),
        nodes=(NodeRow("n1:1", capacity=Vector(MIB, VCORES)),),
    )


def roles(site: Site) -> tuple[list[str], list[str]]:
    shuffled = site.random.sample(site.leaves, len(site.leaves))
    first = site.random.randint(1, min(2, len(shuffled) - 1))
    last = site.random.randint(1, min(3, len(shuffled) - first))
    return shuffled[:first], shuffled[first : first + last]


def findings(facts: Facts) -> dict[str, tuple[str, str, str]]:
    return {one.id: (one.severity, one.seen, one.fix) for one in judge(facts) if one.id in RULES}


@pytest.mark.parametrize("begin", [0, *more((30, 60, 90))])
def test_a_printed_fix_ends_its_finding_and_keeps_the_tree_legal(begin: int) -> None:
    fixed: set[str] = set()
    for seed in range(begin, begin + 30):
        site = Site(seed)
        production, research = roles(site)
        require_legal(site, site.keys) if "RUNNING" not in site.keys.values() else None
        for rule, (severity, seen, fix) in findings(facts_of(site, site.keys, production, research)).items():
            if severity == "ok":
                continue
            after = applied(site.keys, fix)
            assert after != site.keys, (seed, rule, seen, fix)
            require_legal(site, after)
            again = findings(facts_of(site, after, production, research))
            assert again[rule][0] == "ok", (seed, rule, site.unit, seen, fix, again[rule])
            fixed.add(rule)
    assert fixed >= {"production-share", "research-share", "maxima", "user-limit", "am-share", "acls"}, fixed


@pytest.mark.parametrize("begin", [0, 30, *more((60, 90))])
def test_two_rounds_of_all_printed_fixes_leave_no_finding(begin: int) -> None:
    """A larger maximum, or a smaller guarantee, can need other limits of users and masters: two rounds."""
    for seed in range(begin, begin + 30):
        site = Site(seed)
        production, research = roles(site)
        keys = dict(site.keys)
        for _ in range(2):
            for _, _, fix in findings(facts_of(site, keys, production, research)).values():
                keys = applied(keys, fix)
            require_legal(site, keys)
        again = findings(facts_of(site, keys, production, research))
        assert not {rule: one for rule, one in again.items() if one[0] != "ok"}, (seed, site.unit)
