"""Read the queues of a ``capacity-scheduler.xml``: the tree, its shares, orders, priorities and states.

A key that the emulator does not model is an error that names it, unless its value changes nothing: Hadoop's
default, or a setting that grants no container (``KEPT``). The children of a parent have percentages, or
weights. The emulator counts memory and vcores and has no locality delay, whether or not the file says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from yarnctl.errors import BadInput
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file

PREFIX = "yarn.scheduler.capacity."
KEPT = ("acl_", "disable_preemption", "intra-queue-preemption.disable_preemption")
"""Beginnings of keys that grant no container: they are shown, and the emulator has no such mechanism."""

GENERAL = {
    "maximum-am-resource-percent": None,
    "resource-calculator": ("org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",),
    "node-locality-delay": ("-1", "0"),
    "rack-locality-additional-delay": ("-1", "0"),
    "maximum-applications": ("10000",),
    "user-limit-factor": ("1", "1.0"),
    "minimum-user-limit-percent": ("100",),
    "per-node-heartbeat.multiple-assignments-enabled": ("true",),
    "per-node-heartbeat.maximum-offswitch-assignments": ("1",),
    "per-node-heartbeat.maximum-container-assignments": ("-1", "100"),
    "reservations-continue-look-all-nodes": ("true",),
    "schedule-asynchronously.enable": ("false",),
    "application.fail-fast": ("false",),
    "queue-mappings": ("",),
    "queue-mappings-override.enable": ("false",),
    "workflow-priority-mappings": ("",),
    "workflow-priority-mappings-override.enable": ("false",),
    "max-parallel-apps": ("2147483647",),
    "user.max-parallel-apps": ("2147483647",),
    "legacy-queue-mode.enabled": ("true",),
}
"""General keys, and the values that mean what the emulator does (None: read)."""

BOTH = {
    "capacity": None,
    "maximum-capacity": None,
    "ordering-policy": None,
    "priority": None,
    "state": None,
    "maximum-am-resource-percent": None,
    "minimum-user-limit-percent": ("100",),
    "user-limit-factor": None,
    "accessible-node-labels": ("", "*"),
    "default-node-label-expression": ("",),
    "max-parallel-apps": ("2147483647",),
    "maximum-applications": ("10000",),
    "maximum-application-lifetime": ("-1",),
    "default-application-lifetime": ("-1",),
    "default-application-priority": ("0",),
    "ordering-policy.fair.enable-size-based-weight": ("false",),
    "auto-create-child-queue.enabled": ("false",),
    "auto-queue-creation-v2.enabled": ("false",),
    "allow-zero-capacity-sum": ("false",),
    "reservable": ("false",),
    "queues": None,
}
"""Keys of one queue, and the values that mean what the emulator does (None: read)."""

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
TOLERANCE_PERCENT = 1e-3


class SchedulerFile(NamedTuple):
    """The queues of a file, root first among the parents, and its keys as text."""

    leaves: tuple[TreeLeafConfig, ...]
    parents: tuple[ParentConfig, ...]
    keys: Mapping[str, str]

    def leaf(self, name: str) -> TreeLeafConfig | None:
        """Return the leaf with a path, or with a last part that no other has; None: there is none."""
        by_name = {leaf.name: leaf for leaf in self.leaves}
        path = leaf_of(name, by_name)
        return None if path is None else by_name[path]


def read_scheduler_file(path: Path) -> SchedulerFile:
    """Return the queues of a capacity-scheduler.xml. Raises BadInput that names each key it cannot use."""
    entries: dict[str, SiteEntry] = {}
    merge(entries, read_file(path))
    site = HadoopSite(entries)
    return queues_of_keys(
        str(path), {name: site.text(name) for name in entries}, {name: site.where(name) for name in entries}
    )


def queues_of_keys(
    file: str, keys: Mapping[str, str], where: Mapping[str, str] | None = None
) -> SchedulerFile:
    """Return the queues of some keys; ``where``: each key's place for errors. Raises BadInput."""
    return _Reader(file, keys, where or {}).read()


class _Reader:
    """One reading. ``problems``: keys that cannot be used; all are reported at once."""

    def __init__(self, file: str, keys: Mapping[str, str], where: Mapping[str, str]) -> None:
        self.file = file
        self.keys = keys
        self.where = where
        self.below: dict[str, tuple[str, ...]] = {}
        self.leaves: list[TreeLeafConfig] = []
        self.parents: list[ParentConfig] = []
        self.problems: list[BadInput] = []

    def read(self) -> SchedulerFile:
        self._name_queues("root")
        named = not self.problems
        self._check_names()
        if named:
            self._add("root", ParentConfig(), 1.0)
        if self.problems:
            first, *more = self.problems
            if not more:
                raise first
            lines = " | ".join(str(each).removeprefix(f"{self.file}:").strip() for each in self.problems)
            raise BadInput(self.file, f"{len(self.problems)} keys cannot be used: line {lines}")
        best = max(self.leaves, key=lambda leaf: (leaf.priority, leaf.capacity_ratio))
        leaves = tuple(replace(leaf, preempting=leaf is best) for leaf in self.leaves)
        return SchedulerFile(leaves, tuple(self.parents), self.keys)

    # --- names ----------------------------------------------------------------------------

    def _name_queues(self, path: str) -> None:
        text = self.keys.get(f"{PREFIX}{path}.queues", "")
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if path == "root" and not names:
            self._refuse(f"{path}.queues", "names no queue", "name the queues below root")
        self.below[path] = names
        for name in dict.fromkeys(names):
            if not is_queue_name(name) or names.count(name) > 1:
                problem = f"{name[:60]!r} is not a queue's name, or is named twice"
                self._refuse(f"{path}.queues", problem, "use letters, digits, - and _, each name once")
            elif path.count(".") > 30:
                self._refuse(f"{path}.queues", "is nested more than 30 deep", "use fewer levels")
            else:
                self._name_queues(f"{path}.{name}")

    def _check_names(self) -> None:
        """Report every key that the emulator does not model."""
        for key, value in self.keys.items():
            if not key.startswith(PREFIX):
                if key != MONITOR or value != "false":
                    self._refuse(key, "is not modelled by the emulator", "remove it", whole=True)
                continue
            own = key.removeprefix(PREFIX)
            queue = next((path for path in _beginnings(own) if path in self.below), None)
            known = GENERAL if queue is None else BOTH
            name = own if queue is None else own.removeprefix(f"{queue}.")
            if queue is not None and name.startswith(KEPT):
                continue
            if name not in known:
                problem = "is not modelled by the emulator, or its queue is in no queues key"
                self._refuse(own, problem, "remove it")
                continue
            usable = known[name]
            if usable is not None and value not in usable:
                shown = " or ".join(each or "an empty value" for each in usable)
                self._refuse(own, f"{value[:60]!r} is not modelled by the emulator", f"use {shown}")

    # --- values ---------------------------------------------------------------------------

    def _add(self, path: str, parent: ParentConfig, share_ratio: float) -> None:
        """Add a queue with this share of the cluster, and all below it."""
        name = path.removeprefix("root").removeprefix(".")
        most = parent.maximum_ratio * self._number(path, "maximum-capacity", 100, 100) / 100
        if path == "root":
            for key in ("capacity", "maximum-capacity"):
                if self._number(path, key, 100, 100) != 100:
                    self._refuse(f"root.{key}", "is not 100", "remove it: root is the cluster")
        if most < share_ratio - 1e-9:
            problem = f"{most * 100:g} % of the cluster is below the capacity, {share_ratio * 100:g} %"
            self._refuse(f"{path}.maximum-capacity", problem, "use the capacity or more")
        priority = int(self._number(path, "priority", 0, 2**31 - 1, least=-(2**31)))
        stopped = self._is_stopped(path, parent.stopped)
        if not self.below[path]:
            self.leaves.append(self._leaf(path, share_ratio, most, priority, stopped))
            return
        own = ParentConfig(
            name=name,
            capacity_ratio=share_ratio,
            maximum_ratio=most,
            order=self._choice(  # type: ignore[arg-type]
                path, "ordering-policy", parent.order, ("utilization", "priority-utilization")
            ),
            priority=priority,
            stopped=stopped,
        )
        self.parents.append(own)
        for child, ratio in self._ratios(path).items():
            self._add(child, own, share_ratio * ratio)

    def _leaf(
        self, path: str, share_ratio: float, most: float, priority: int, stopped: bool
    ) -> TreeLeafConfig:
        general = self._value("", "maximum-am-resource-percent", "0.1")
        factor = self._number(path, "user-limit-factor", 1, 1e6, least=-1)
        return TreeLeafConfig(
            name=path.removeprefix("root."),
            capacity_ratio=share_ratio,
            maximum_ratio=most,
            am_ratio=self._number(path, "maximum-am-resource-percent", general, 1),
            user_limit_factor=None if factor < 0 else factor,
            priority=priority,
            fair=self._choice(path, "ordering-policy", "fifo", ("fifo", "fair")) == "fair",
            stopped=stopped,
        )

    def _ratios(self, path: str) -> dict[str, float]:
        """Return the children's parts of their parent, which make 1."""
        children = [f"{path}.{name}" for name in self.below[path]]
        texts = {child: self._value(child, "capacity", "") for child in children}
        weighted = [child for child, text in texts.items() if text.endswith("w")]
        if weighted and len(weighted) < len(children):
            remedy = "use percentages, or weights, for all children of a parent"
            self._refuse(f"{path}.queues", "its children mix weights and percentages", remedy)
            return {}
        if weighted:
            weights = {
                child: self._parsed(f"{child}.capacity", text[:-1], 1e6) for child, text in texts.items()
            }
            whole = sum(weights.values()) or 1.0
            return {child: weight / whole for child, weight in weights.items()}
        absolute = [child for child, text in texts.items() if text.startswith("[")]
        for child in absolute:
            problem = "absolute resources are not modelled by the emulator"
            self._refuse(f"{child}.capacity", problem, "use percentages or weights")
        if absolute:
            return {}
        before = len(self.problems)
        shares = {child: self._parsed(f"{child}.capacity", text, 100) for child, text in texts.items()}
        total = sum(shares.values())
        if len(self.problems) == before and abs(total - 100) > TOLERANCE_PERCENT:
            problem = f"the capacities of its children add up to {total:g}"
            self._refuse(f"{path}.queues", problem, "use shares that add up to 100")
        return {child: share / 100 for child, share in shares.items()}

    def _is_stopped(self, path: str, above: bool) -> bool:
        state = self._choice(
            path, "state", "STOPPED" if above else "RUNNING", ("RUNNING", "STOPPED"), upper=True
        )
        if above and state == "RUNNING":
            self._refuse(
                f"{path}.state", "RUNNING below a parent that is STOPPED", "stop it, or start the parent"
            )
        return state == "STOPPED"

    def _value(self, path: str, key: str, default: str) -> str:
        return self.keys.get(f"{PREFIX}{path}.{key}" if path else f"{PREFIX}{key}", default)

    def _choice(
        self, path: str, key: str, default: str, values: Sequence[str], *, upper: bool = False
    ) -> str:
        text = self._value(path, key, default)
        text = text.upper() if upper else text
        if text not in values:
            problem = f"{text[:60]!r} is not modelled by the emulator"
            self._refuse(f"{path}.{key}", problem, f"use {' or '.join(values)}")
            return values[0]
        return text

    def _number(self, path: str, key: str, default: float | str, most: float, *, least: float = 0) -> float:
        return self._parsed(f"{path}.{key}", self._value(path, key, str(default)), most, least)

    def _parsed(self, key: str, text: str, most: float, least: float = 0) -> float:
        try:
            number = float(text)
        except ValueError:
            self._refuse(key, f"{text[:60]!r} is not a number", "use a number")
            return least
        if not least <= number <= most:
            self._refuse(key, f"{text[:60]} is not between {least:g} and {most:g}", "use a number in between")
            return least
        return number

    def _refuse(self, key: str, problem: str, remedy: str, *, whole: bool = False) -> None:
        name = key if whole else f"{PREFIX}{key}"
        self.problems.append(BadInput(self.where.get(name, f"{self.file}: {name}"), problem, remedy))


def is_queue_name(name: str) -> bool:
    """Return whether a text can be the name of a queue."""
    return bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def leaf_of(name: str, leaves: Mapping[str, object]) -> str | None:
    """Return the path below root of a leaf, named by its path or by a last part that no other leaf has."""
    path = name.removeprefix("root.")
    if path in leaves:
        return path
    found = [each for each in leaves if each.rpartition(".")[2] == name]
    return found[0] if len(found) == 1 else None


def _beginnings(key: str) -> Iterator[str]:
    """Yield the beginnings of a dotted key, the longest first."""
    while "." in key:
        key = key.rpartition(".")[0]
        yield key
