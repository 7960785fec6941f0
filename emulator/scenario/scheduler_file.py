"""Read the queues of a ``capacity-scheduler.xml``: the tree, its shares, orders, priorities and states.

A key that the emulator does not model is an error that names it, unless its value changes nothing: Hadoop's
default, or a setting that grants no container (``KEPT``). The children of a parent have percentages, weights
or absolute resources. The emulator has no locality delay, whether or not the file says so. A queue created
on demand is read as if the file named it, with its parent's templates. Where the file sets the time after
which Hadoop's AutoCreatedQueueDeletionPolicy deletes one, this policy runs; otherwise none is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from emulator.scenario.queue_mappings import DEFAULT, GROUPS, MAPPINGS, mappings_of, require_rules
from emulator.scenario.scheduler_keys import (
    BOTH,
    CALCULATOR,
    CREATED_MAX,
    CREATION,
    EXPIRY,
    GENERAL,
    INSTEAD,
    KEPT,
    LABEL_KEY,
    MEMORY_ALONE,
    MONITOR,
    PREFIX,
    TEMPLATE,
    TOLERANCE_PERCENT,
)
from yarnctl.errors import BadInput
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file
from yarnctl.units import NOTHING, Resources, fits, plus


class SchedulerFile(NamedTuple):
    """The queues of a file, root first among the parents, and its keys as text.

    ``on_demand``: the paths below root of leaves that were created for applications.
    """

    leaves: tuple[TreeLeafConfig, ...]
    parents: tuple[ParentConfig, ...]
    keys: Mapping[str, str]
    on_demand: tuple[str, ...] = ()

    @property
    def expiry_ms(self) -> int | None:
        """How long a queue on demand stays after its last submission, once it is empty (None: for ever)."""
        seconds = self.keys.get(f"{PREFIX}{EXPIRY}")
        return None if seconds is None else int(seconds) * 1000

    @property
    def counts_memory_alone(self) -> bool:
        """Whether the file's calculator is Hadoop's default, which it is also without the key."""
        calculator = self.keys.get(f"{PREFIX}{CALCULATOR}", MEMORY_ALONE)
        return bool(self.keys) and calculator == MEMORY_ALONE

    def placed(self, user: str, queue: str) -> str:
        """Return the queue of an application of a user that names ``queue``: queue-mappings are followed."""
        target = mappings_of(self.keys).target(user, queue)
        if not target:
            return queue
        return target if self.is_leaf(target) else DEFAULT

    def is_leaf(self, name: str) -> bool:
        """Return whether there is a leaf of this name, or one would be created."""
        return self.leaf(name) is not None or self.created(name.removeprefix("root.")) is not None

    def stays(self, path: str) -> bool:
        """Return whether a leaf on demand is never deleted."""
        reader = _Reader("queues on demand", self.keys, {}, self.on_demand)
        return reader.stays(f"root.{path}")

    def leaf(self, name: str) -> TreeLeafConfig | None:
        """Return the leaf with a path, or with a last part that no other has; None: there is none."""
        by_name = {leaf.name: leaf for leaf in self.leaves}
        path = leaf_of(name, by_name)
        return None if path is None else by_name[path]

    def without(self, paths: Collection[str]) -> SchedulerFile:
        """Return the queues without some leaves that were created on demand."""
        left = tuple(path for path in self.on_demand if path not in paths)
        return _Reader("queues on demand", self.keys, {}, left).read()

    def created(self, path: str) -> SchedulerFile | None:
        """Return the queues with one leaf more, by its path below root; None: no parent creates it."""
        parents = {parent.name: parent for parent in self.parents}
        leaves = {leaf.name for leaf in self.leaves}
        if len(self.on_demand) >= CREATED_MAX or not all(map(is_queue_name, path.split("."))):
            return None
        if path in parents or any(each in leaves for each in (path, *_beginnings(path))):
            return None
        above = next((each for each in _beginnings(path) if each in parents), "")
        while parents[above].on_demand:
            above = above.rpartition(".")[0]
        depth = path.removeprefix(above).removeprefix(".").count(".") + 1
        if depth > parents[above].depth_on_demand:
            return None
        return _Reader("queues on demand", self.keys, {}, (*self.on_demand, path)).read()


def read_scheduler_file(path: Path) -> SchedulerFile:
    """Return the queues of a capacity-scheduler.xml. Raises BadInput that names each key it cannot use."""
    entries: dict[str, SiteEntry] = {}
    merge(entries, read_file(path))
    site = HadoopSite(entries)
    return queues_of_keys(
        str(path), {name: site.text(name) for name in entries}, {name: site.where(name) for name in entries}
    )


def queues_of_keys(
    file: str,
    keys: Mapping[str, str],
    where: Mapping[str, str] | None = None,
    on_demand: tuple[str, ...] = (),
) -> SchedulerFile:
    """Return the queues of some keys and the leaves ``on_demand``; ``where``: each key's place for errors.

    Raises BadInput, also for templates of which no queue could be created.
    """
    found = _Reader(file, keys, where or {}, on_demand).read()
    mappings = f"{PREFIX}{MAPPINGS}"
    require_rules(keys, (where or {}).get(mappings, f"{file}: {mappings}"), found.is_leaf)
    for parent in found.parents:
        if parent.depth_on_demand:
            trials = [f"{parent.name}.trial-leaf".removeprefix(".")]
            if parent.depth_on_demand > 1:
                trials.append(f"{parent.name}.trial-parent.leaf".removeprefix("."))
            _Reader(file, keys, where or {}, (*on_demand, *trials)).read()
    return found


class _Share(NamedTuple):
    """A queue's part of its parent: a ratio, with the weight that it comes from, or absolute resources."""

    ratio: float
    weight: float | None = None
    absolute: Resources | None = None


class _Reader:
    """One reading. ``problems``: keys that cannot be used; all are reported at once."""

    def __init__(
        self, file: str, keys: Mapping[str, str], where: Mapping[str, str], on_demand: tuple[str, ...]
    ) -> None:
        self.file = file
        self.keys = keys
        self.where = where
        self.on_demand = on_demand
        self.created: dict[str, None] = {}
        found = (LABEL_KEY.search(key) for key in keys)
        self.labels = sorted({each[1] for each in found if each is not None})
        self.below: dict[str, tuple[str, ...]] = {}
        self.leaves: list[TreeLeafConfig] = []
        self.parents: list[ParentConfig] = []
        self.problems: list[BadInput] = []

    def read(self) -> SchedulerFile:
        self._name_queues("root")
        self._name_created()
        named = not self.problems
        self._check_names()
        if named:
            self._add("root", ParentConfig(), _Share(1.0))
        if self.problems:
            first, *more = self.problems
            if not more:
                raise first
            lines = " | ".join(str(each).removeprefix(f"{self.file}:").strip() for each in self.problems)
            raise BadInput(self.file, f"{len(self.problems)} keys cannot be used: line {lines}")
        static = [leaf for leaf in self.leaves if not leaf.on_demand]
        best = max(static, key=lambda leaf: (leaf.priority, leaf.capacity_ratio), default=None)
        leaves = tuple(replace(leaf, preempting=leaf is best) for leaf in self.leaves)
        return SchedulerFile(leaves, tuple(self.parents), self.keys, self.on_demand)

    def stays(self, path: str) -> bool:
        """Return whether a queue on demand is never deleted."""
        self._name_queues("root")
        self._name_created()
        return self._value(path, f"{CREATION}queue-auto-removal.enable", "true") == "false"

    # --- names ----------------------------------------------------------------------------

    def _name_queues(self, path: str) -> None:
        text = self.keys.get(f"{PREFIX}{path}.queues", "")
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if path == "root" and not names and not self._creates(path):
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

    def _name_created(self) -> None:
        """Name the queues that were created on demand, and the parents that were created with them."""
        for leaf in self.on_demand:
            for path in (*reversed([*_beginnings(f"root.{leaf}")]), f"root.{leaf}"):
                if path not in self.below:
                    above, _, name = path.rpartition(".")
                    self.below[above] += (name,)
                    self.below[path] = ()
                    self.created[path] = None

    def _creates(self, path: str) -> bool:
        return self._value(path, f"{CREATION}enabled", "false") == "true"

    def _check_names(self) -> None:
        """Report every key that the emulator does not model."""
        for key, value in self.keys.items():
            if not key.startswith(PREFIX):
                if key != GROUPS and (key != MONITOR or value != "false"):
                    self._refuse(key, "is not modelled by the emulator", "remove it", whole=True)
                continue
            own = key.removeprefix(PREFIX)
            queue = next((path for path in _beginnings(own) if path in self.below), None)
            known = GENERAL if queue is None else BOTH
            name = own if queue is None else own.removeprefix(f"{queue}.")
            if queue is not None:
                name = TEMPLATE.sub("", name)
            if queue is not None and name.startswith(KEPT):
                continue
            if queue is not None and LABEL_KEY.fullmatch(name):
                continue
            if name not in known:
                problem = "is not modelled by the emulator, or its queue is in no queues key"
                self._refuse(own, problem, _instead(name) or "remove it")
                continue
            usable = known[name]
            if usable is not None and value not in usable:
                shown = " or ".join(each or "an empty value" for each in usable)
                remedy = _instead(name) or f"use {shown}"
                self._refuse(own, f"{value[:60]!r} is not modelled by the emulator", remedy)
        expiry = self.keys.get(f"{PREFIX}{EXPIRY}", "0")
        if not (expiry.isascii() and expiry.isdigit() and len(expiry) < 10):
            self._refuse(EXPIRY, f"{expiry[:60]!r} is not a number of seconds", "use for example 300")

    # --- values ---------------------------------------------------------------------------

    def _add(self, path: str, parent: ParentConfig, share: _Share) -> None:
        """Add a queue with this share of the cluster, and all below it."""
        name = path.removeprefix("root").removeprefix(".")
        share_ratio = share.ratio
        most, absolute_most = parent.maximum_ratio, None
        if share.absolute is None:
            most *= self._number(path, "maximum-capacity", 100, 100) / 100
        else:
            absolute_most = self._absolute_maximum(path, share.absolute)
        if path == "root":
            for key in ("capacity", "maximum-capacity"):
                if self._number(path, key, 100, 100) != 100:
                    self._refuse(f"root.{key}", "is not 100", "remove it: root is the cluster")
        if most < share_ratio - 1e-9:
            problem = f"{most * 100:g} % of the cluster is below the capacity, {share_ratio * 100:g} %"
            self._refuse(f"{path}.maximum-capacity", problem, "use the capacity or more")
        priority = int(self._number(path, "priority", 0, 2**31 - 1, least=-(2**31)))
        stopped = self._is_stopped(path, parent.stopped)
        inherited = "true" if parent.preemption_disabled else "false"
        disabled = self._value(path, "disable_preemption", inherited).lower() == "true"
        labels = self._label_ratios(path, parent)
        accessible, default_label = self._access(path, parent)
        if not self.below[path] and not self._creates(path):
            leaf = self._leaf(path, share_ratio, most, priority, stopped)
            leaf = replace(
                leaf,
                weight=share.weight,
                absolute=share.absolute,
                absolute_maximum=absolute_most,
                preemption_disabled=disabled,
                labels=labels,
                accessible=accessible,
                default_label=default_label,
            )
            self.leaves.append(leaf)
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
            weight=share.weight,
            absolute=share.absolute,
            absolute_maximum=absolute_most,
            preemption_disabled=disabled,
            labels=labels,
            accessible=accessible,
            default_label=default_label,
            depth_on_demand=self._depth(path),
            on_demand=path in self.created,
        )
        self.parents.append(own)
        for child, part in self._shares(path, share.absolute).items():
            self._add(child, own, part._replace(ratio=share_ratio * part.ratio))

    def _label_ratios(self, path: str, parent: ParentConfig) -> dict[str, tuple[float, float]]:
        """Return what a queue may have of each partition, as ratios of it; nothing where no key names it."""
        found = {}
        for label in self.labels:
            key = f"accessible-node-labels.{label}"
            if path != "root" and not any(
                f"{PREFIX}{self._key(path, f'{key}.{limit}')}" in self.keys
                for limit in ("capacity", "maximum-capacity")
            ):
                continue
            least, most = (1.0, 1.0) if path == "root" else parent.labels.get(label, (0.0, 0.0))
            ratio = least * self._number(path, f"{key}.capacity", 0, 100) / 100
            maximum = most * self._number(path, f"{key}.maximum-capacity", 100, 100) / 100
            if maximum < ratio - 1e-9:
                self._refuse(f"{path}.{key}.maximum-capacity", "is below the capacity", "use it or more")
            whole = sum(
                self._number(f"{path}.{child}", f"{key}.capacity", 0, 100) for child in self.below[path]
            )
            if whole and abs(whole - 100) > TOLERANCE_PERCENT:
                problem = f"the capacities of its children in partition {label} add up to {whole:g}"
                self._refuse(f"{path}.queues", problem, "use shares that add up to 100, or none")
            found[label] = (ratio, maximum)
        return found

    def _access(self, path: str, parent: ParentConfig) -> tuple[tuple[str, ...] | None, str]:
        """Return the labels that a queue may request (None: all), and the one that it does by default."""
        accessible = parent.accessible
        text = self._value(path, "accessible-node-labels", "").strip()
        if f"{PREFIX}{self._key(path, 'accessible-node-labels')}" in self.keys:
            names = tuple(name.strip() for name in text.split(",") if name.strip())
            accessible = None if "*" in names else names
        inherited = parent.default_label
        if accessible is not None and inherited not in accessible:
            inherited = ""
        label = self._value(path, "default-node-label-expression", inherited).strip()
        if label and accessible is not None and label not in accessible:
            problem = f"{label[:60]!r} is not accessible to the queue"
            remedy = "add it to accessible-node-labels"
            self._refuse(f"{path}.default-node-label-expression", problem, remedy)
        return accessible, label

    def _depth(self, path: str) -> int:
        return int(self._number(path, f"{CREATION}maximum-queue-depth", 2, 30)) if self._creates(path) else 0

    def _absolute_maximum(self, path: str, least_resources: Resources) -> Resources | None:
        key = f"{path}.maximum-capacity"
        if not (text := self._value(path, "maximum-capacity", "")):
            return None
        most = self._resources(key, text)
        if not fits(least_resources, most):
            self._refuse(key, f"{text} is below the capacity", "use the capacity or more")
        return most

    def _leaf(
        self, path: str, share_ratio: float, most: float, priority: int, stopped: bool
    ) -> TreeLeafConfig:
        created = path in self.created  # Hadoop sets no limit of users or masters in a queue on demand
        general = "1" if created else self._value("", "maximum-am-resource-percent", "0.1")
        factor = self._number(path, "user-limit-factor", -1 if created else 1, 1e6, least=-1)
        return TreeLeafConfig(
            name=path.removeprefix("root."),
            capacity_ratio=share_ratio,
            maximum_ratio=most,
            am_ratio=self._number(path, "maximum-am-resource-percent", general, 1000),
            user_limit_factor=None if factor < 0 else factor,
            priority=priority,
            fair=self._choice(path, "ordering-policy", "fifo", ("fifo", "fair")) == "fair",
            stopped=stopped,
            user_percent=int(self._number(path, "minimum-user-limit-percent", 100, 100)),
            on_demand=created,
        )

    def _shares(self, path: str, parent_resources: Resources | None) -> dict[str, _Share]:
        """Return the children's parts of their parent, which make 1, or their absolute resources."""
        children = [f"{path}.{name}" for name in self.below[path]]
        texts = {
            child: self._value(child, "capacity", "1w" if child in self.created else "") for child in children
        }
        weighted = [child for child, text in texts.items() if text.endswith("w")]
        for child in children:
            if child in self.created and child not in weighted:
                self._refuse(self._key(child, "capacity"), "is not a weight", "use a weight, as in 1w")
                return {}
        if weighted and len(weighted) < len(children):
            remedy = "use percentages, or weights, for all children of a parent"
            if any(child in self.created for child in children):
                remedy = "use weights for the children of a parent that creates queues"
            self._refuse(f"{path}.queues", "its children mix weights and percentages", remedy)
            return {}
        if weighted:
            weights = {
                child: self._parsed(self._key(child, "capacity"), text[:-1], 1e6)
                for child, text in texts.items()
            }
            whole = sum(weights.values()) or 1.0
            return {child: _Share(weight / whole, weight) for child, weight in weights.items()}
        absolute = [child for child, text in texts.items() if text.startswith("[")]
        if absolute or parent_resources is not None:
            return self._absolute_shares(path, parent_resources, texts)
        if not texts:
            return {}
        before = len(self.problems)
        shares = {child: self._parsed(f"{child}.capacity", text, 100) for child, text in texts.items()}
        total = sum(shares.values())
        if len(self.problems) == before and abs(total - 100) > TOLERANCE_PERCENT:
            problem = f"the capacities of its children add up to {total:g}"
            self._refuse(f"{path}.queues", problem, "use shares that add up to 100")
        return {child: _Share(share / 100) for child, share in shares.items()}

    def _absolute_shares(
        self, path: str, parent_resources: Resources | None, texts: Mapping[str, str]
    ) -> dict[str, _Share]:
        """Return children that have resources in the place of shares, as their parent has, or root."""
        if not all(text.startswith("[") for text in texts.values()) or (
            path != "root" and parent_resources is None
        ):
            remedy = "use absolute resources for a parent and all its children, or for none"
            self._refuse(f"{path}.queues", "its children mix absolute resources and shares", remedy)
            return {}
        found = {child: self._resources(f"{child}.capacity", text) for child, text in texts.items()}
        whole = NOTHING
        for each in found.values():
            whole = plus(whole, each)
        if parent_resources is not None and not fits(whole, parent_resources):
            problem = f"its children have {whole.memory_mib} MiB, {whole.vcores} vcores, more than the queue"
            self._refuse(f"{path}.queues", problem, "use smaller capacities")
        return {child: _Share(0.0, None, each) for child, each in found.items()}

    def _resources(self, key: str, text: str) -> Resources:
        parts = dict(part.partition("=")[::2] for part in text.strip("[] ").replace(" ", "").split(","))
        memory = parts.pop("memory", None) or parts.pop("memory-mb", "")
        vcores = parts.pop("vcores", "")
        if (
            parts
            or not text.endswith("]")
            or not re.fullmatch("[0-9]{1,12},[0-9]{1,9}", f"{memory},{vcores}")
        ):
            self._refuse(key, f"{text[:60]!r} is not modelled by the emulator", "use [memory=MIB,vcores=N]")
            return NOTHING
        return Resources(int(memory), int(vcores))

    def _is_stopped(self, path: str, above: bool) -> bool:
        state = self._choice(
            path, "state", "STOPPED" if above else "RUNNING", ("RUNNING", "STOPPED"), upper=True
        )
        if above and state == "RUNNING":
            self._refuse(
                f"{path}.state", "RUNNING below a parent that is STOPPED", "stop it, or start the parent"
            )
        return state == "STOPPED"

    def _key(self, path: str, key: str) -> str:
        """Return the key that sets a queue's value: its own, or one of its parent's templates."""
        own = f"{path}.{key}" if path else key
        if path not in self.created or f"{PREFIX}{own}" in self.keys:
            return own
        above = f"{path.rpartition('.')[0]}.{CREATION}"
        kind = "parent" if self.below[path] else "leaf"
        candidates = (f"{above}{kind}-template.{key}", f"{above}template.{key}")
        return next((each for each in candidates if f"{PREFIX}{each}" in self.keys), own)

    def _value(self, path: str, key: str, default: str) -> str:
        return self.keys.get(f"{PREFIX}{self._key(path, key)}", default)

    def _choice(
        self, path: str, key: str, default: str, values: Sequence[str], *, upper: bool = False
    ) -> str:
        text = self._value(path, key, default)
        text = text.upper() if upper else text
        if text not in values:
            problem = f"{text[:60]!r} is not modelled by the emulator"
            self._refuse(self._key(path, key), problem, f"use {' or '.join(values)}")
            return values[0]
        return text

    def _number(self, path: str, key: str, default: float | str, most: float, *, least: float = 0) -> float:
        return self._parsed(self._key(path, key), self._value(path, key, str(default)), most, least)

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


def _instead(name: str) -> str:
    return next((remedy for beginning, remedy in INSTEAD.items() if name.startswith(beginning)), "")


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
