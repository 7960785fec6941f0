"""Configuration: GET /conf, and GET and PUT /scheduler-conf (facts, sections 1.1 and 11).

Law: what is said here is what the emulator does; a key that means something else is left out.
JSON where the client accepts it, XML otherwise, as Hadoop's ConfServlet. The scheduler's keys are kept as
text, as in capacity-scheduler.xml. A change is checked as a whole and then takes effect at once or not at
all. Where the store is "file", as by default in Hadoop, nothing can be changed: 400.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.preemption import PreemptionConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.service import LiveResourceManager
from emulator.live.rest.dialect import CONSTANT_FIELDS
from emulator.live.wire.hadoop_request import bad
from emulator.live.wire.web import HttpProblem, Reply, WebRequest, json_reply
from emulator.scenario.scheduler_file import SchedulerFile, queues_of_keys
from yarnctl.errors import BadInput


class DaemonConfiguration:
    """The settings of one ResourceManager at ``url``. ``more`` are added and win."""

    def __init__(
        self,
        manager: LiveResourceManager,
        scheduler: SchedulerConfiguration,
        url: str,
        name_node: str,
        more: dict[str, str],
    ) -> None:
        self._manager = manager
        self._scheduler = scheduler
        self._url = url
        self._name_node = name_node
        self._more = more

    def entries(self) -> dict[str, tuple[str, str]]:
        """Return key -> value and the file it would be in."""
        settings, timing = self._manager.settings, self._manager.settings.timing
        web, name_node = urlsplit(self._url).netloc, urlsplit(self._name_node).netloc
        own = {
            "core-site.xml": {"fs.defaultFS": f"webhdfs://{name_node}"},
            "hdfs-site.xml": {"dfs.namenode.http-address": name_node},
            "mapred-site.xml": {
                "mapreduce.job.reduce.slowstart.completedmaps": f"{timing.slow_start_ratio:g}",
                "mapreduce.jobhistory.webapp.address": web,
            },
            "yarn-site.xml": {
                "yarn.resourcemanager.hostname": urlsplit(self._url).hostname or "",
                "yarn.resourcemanager.webapp.address": web,
                "yarn.resourcemanager.am.max-attempts": str(settings.max_attempts),
                "yarn.resourcemanager.max-completed-applications": str(settings.finished_kept),
                "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(timing.nm_heartbeat_ms),
                "yarn.nm.liveness-monitor.expiry-interval-ms": str(self._manager.node_expiry_ms),
                "yarn.am.liveness-monitor.expiry-interval-ms": str(self._manager.am_expiry_ms),
                "yarn.scheduler.configuration.store.class": "memory" if self._scheduler.mutable else "file",
                "yarn.cluster.max-application-priority": str(settings.max_priority),
            },
            "capacity-scheduler.xml": self._scheduler.keys,
            "monitor": _monitor_entries(settings.preemption),
            "emulator": self._more,
        }
        files = {name: CONSTANT_FIELDS["conf"].get(name, {}) | entries for name, entries in own.items()}
        return {key: (value, name) for name, entries in files.items() for key, value in entries.items()}

    def answer(self, request: WebRequest) -> Reply:
        """Answer GET /conf, the whole or the key ``name``."""
        entries = self.entries()
        name = request.query.get("name", "")
        if name:
            if name not in entries:
                raise HttpProblem(404, "NotFoundException", f"Property {name[:100]} not found")
            entries = {name: entries[name]}
        rows = [
            {"key": key, "value": value, "isFinal": False, "resource": source}
            for key, (value, source) in sorted(entries.items())
        ]
        if "json" in request.header("accept") or request.query.get("format") == "json":
            return json_reply({"property": rows[0]} if name else {"properties": rows})
        lines = "".join(
            f"<property><name>{escape(key)}</name><value>{escape(value)}</value><final>false</final>"
            f"<source>{escape(source)}</source></property>"
            for key, (value, source) in sorted(entries.items())
        )
        text = f'<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>{lines}</configuration>'
        return Reply(200, text.encode(), "text/xml;charset=utf-8")


MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."


def _monitor_entries(config: PreemptionConfig | None) -> dict[str, str]:
    if config is None:
        return {}
    return {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        f"{MONITOR}monitoring_interval": str(config.monitoring_interval_ms),
        f"{MONITOR}max_wait_before_kill": str(config.max_wait_before_kill_ms),
        f"{MONITOR}total_preemption_per_round": f"{config.total_per_round_ratio:g}",
        f"{MONITOR}natural_termination_factor": f"{config.natural_termination_ratio:g}",
        f"{MONITOR}max_ignored_over_capacity": f"{config.max_ignored_over_capacity_ratio:g}",
    }


PREFIX = "yarn.scheduler.capacity."
IMMUTABLE = "Configuration change only supported by MutableConfScheduler."
APPLIED = "Configuration change successfully applied."
MOST_CHANGES = 1000

Change = tuple[str, str, str]
"""Queue's path ("" for a global key), key, value; or the path and REMOVE or ADD in the place of a key."""
REMOVE, ADD = "remove-queue", "add-queue"
ORDER = {REMOVE: 0, ADD: 1}
"""Hadoop removes queues first, then adds, then updates, whatever the order in the request."""


class SchedulerConfiguration:
    """The keys, and what a change of them does to the scheduler. ``mutable``: the store can be changed."""

    def __init__(self, manager: LiveResourceManager, mutable: bool) -> None:
        self.mutable = mutable
        self._manager = manager
        self.keys = _keys(manager)
        manager.is_excused = self.is_excused

    def queue_text(self, queue: str, key: str, default: str) -> str:
        """Return a queue's key."""
        return self.keys.get(f"{PREFIX}root.{queue}.{key}", default)

    def queue_number(self, queue: str, key: str, default: int) -> int:
        """Return a queue's key as a whole number, the default where it is none."""
        text = self.queue_text(queue, key, "")
        return int(text) if text.isascii() and text.lstrip("-").isdigit() and len(text) < 10 else default

    def is_excused(self, queue: str) -> bool:
        """Return whether YARN's own preemption leaves a leaf alone, by its own key or the nearest parent's.

        Where the policy's monitor is off, every leaf shows so.
        """
        if self._manager.settings.preemption is None:
            return True
        path = f"root.{queue}"
        while path:
            found = self.keys.get(f"{PREFIX}{path}.disable_preemption", "")
            if found:
                return found.lower() == "true"
            path = path.rpartition(".")[0]
        return False

    def change(self, changes: list[Change]) -> None:
        """Make changes; a Problem (400) and nothing changed if any cannot be made."""
        scheduler = self._manager.actor.scheduler
        if isinstance(scheduler, TreeScheduler):
            self._change_tree(scheduler, changes)
            return
        configs = {name: queue.config for name, queue in scheduler.queues.items()}
        keys = dict(self.keys)
        for path, key, value in changes:
            if key in ORDER:
                raise bad("queues are added and removed only where they come from a scheduler file")
            if not path:
                keys[key] = value
                continue
            name = path.removeprefix("root.")
            if name not in configs or not path.startswith("root."):
                raise bad(f"Queue {path[:100]} is not a queue that can be updated")
            keys[f"{PREFIX}{path}.{key}"] = value
            configs[name] = _changed(configs[name], key, value)
            if not value:
                del keys[f"{PREFIX}{path}.{key}"]
        total = sum(config.capacity_ratio for config in configs.values())
        if abs(total - 1) > 1e-6:
            raise bad(f"Illegal capacity sum of {total * 100:g} for children of queue root")
        self._manager.now_ms()
        for name, config in configs.items():
            scheduler.queues[name].config = config
        self.keys = keys
        scheduler.resize(*self._manager.actor.total)
        self._count_users()

    def _change_tree(self, scheduler: TreeScheduler, changes: list[Change]) -> None:
        """Read the changed keys as a file is read; an empty value removes a key."""
        keys, known = dict(self.keys), {f"root.{name}".rstrip(".") for name in scheduler.nodes}
        for path, key, value in sorted(changes, key=lambda change: ORDER.get(change[1], 2)):
            above, _, name = path.rpartition(".")
            if key == ADD:
                if path in known or above not in known:
                    raise bad(f"Can't add queue {path[:100]}: it exists, or its parent does not")
                names = [each for each in (keys.get(f"{PREFIX}{above}.queues", ""), name) if each]
                keys[f"{PREFIX}{above}.queues"] = ",".join(names)
                known.add(path)
                continue
            if path and path not in known:
                raise bad(f"Queue {path[:100]} is not a queue that can be updated")
            if key == REMOVE:
                keys = {key: value for key, value in keys.items() if not key.startswith(f"{PREFIX}{path}.")}
                siblings = keys.get(f"{PREFIX}{above}.queues", "").split(",")
                keys[f"{PREFIX}{above}.queues"] = ",".join(each for each in siblings if each.strip() != name)
                continue
            whole = f"{PREFIX}{path}.{key}" if path else key
            keys[whole] = value
            if not value:
                del keys[whole]
        found = self._read(scheduler, keys)
        self._manager.now_ms()
        scheduler.take(found)
        self.keys = keys
        self._count_users()

    @staticmethod
    def _read(scheduler: TreeScheduler, keys: dict[str, str]) -> SchedulerFile:
        """Return the queues of changed keys; a Problem (400) if Hadoop would not take them."""
        source = scheduler.source
        created = source.on_demand if isinstance(source, SchedulerFile) else ()
        left = [f"{PREFIX}root.{path.rpartition('.')[0]}." for path in created]
        kept = tuple(
            path
            for path, above in zip(created, left, strict=True)
            if any(key.startswith(above) for key in keys)
        )
        try:
            found = queues_of_keys("scheduler-conf", keys, None, kept)
        except BadInput as error:
            raise bad(str(error)) from None
        parents, leaves = {each.name for each in found.parents}, {each.name for each in found.leaves}
        for name, queue in scheduler.nodes.items():
            if name in (parents if queue.leaf is not None else leaves):
                raise bad(f"the emulator makes no parent of a leaf, and no leaf of a parent: {queue.path}")
            if name not in parents | leaves and not (queue.stopped and scheduler.is_empty(name)):
                state = "DRAINING" if queue.stopped else "RUNNING"
                raise bad(
                    f"{queue.path} is deleted from the new capacity scheduler configuration, but the queue is"
                    f" not yet in stopped state. Current State : {state}"
                )
        return found

    def _count_users(self) -> None:
        """Count what users hold anew: the scheduler does so only where there is a limit."""
        for queue in self._manager.actor.scheduler.queues.values():
            queue.users.clear()
        for container in self._manager.containers.values():
            app = container.actor.app
            if app.queue.user_mib is not None:
                app.queue.users[app.user] = app.queue.users.get(app.user, 0) + container.actor.memory_mib


def _keys(manager: LiveResourceManager) -> dict[str, str]:
    if manager.settings.keys:
        delay = "node-locality-delay"
        return {f"{PREFIX}{delay}": CONSTANT_FIELDS["schedulerKeys"][delay], **manager.settings.keys}
    configs = [queue.config for queue in manager.actor.scheduler.queues.values()]
    keys = CONSTANT_FIELDS["schedulerKeys"] | {
        "maximum-am-resource-percent": f"{max((config.am_ratio for config in configs), default=0.1):g}",
        "root.queues": ",".join(config.name for config in configs),
    }
    for config in configs:
        factor = -1.0 if config.user_limit_factor is None else config.user_limit_factor
        own = {
            "capacity": f"{config.capacity_ratio * 100:g}",
            "maximum-capacity": f"{config.maximum_ratio * 100:g}",
            "maximum-am-resource-percent": f"{config.am_ratio:g}",
            "user-limit-factor": f"{factor:g}",
            "priority": "0",
        }
        own |= CONSTANT_FIELDS["queueKeys"]
        if manager.settings.preemption is not None:
            del own["disable_preemption"]
        keys |= {f"root.{config.name}.{key}": value for key, value in own.items()}
    return {PREFIX + key: value for key, value in keys.items()}


def _changed(config: QueueConfig, key: str, value: str) -> QueueConfig:
    """Return a queue's configuration with one key changed; keys without effect here are only kept."""
    if key == "maximum-capacity":
        most = _number(key, value, 0, 100) / 100
        if most < config.capacity_ratio - 1e-9:
            raise bad(f"Illegal queue capacity setting: maximum-capacity={value} < capacity")
        return msgspec.structs.replace(config, maximum_ratio=most)
    if key == "capacity":
        return msgspec.structs.replace(config, capacity_ratio=_number(key, value, 0, 100) / 100)
    if key == "maximum-am-resource-percent":
        return msgspec.structs.replace(config, am_ratio=_number(key, value, 0, 1))
    if key == "user-limit-factor":
        factor = _number(key, value, -1, 1e6)
        return msgspec.structs.replace(config, user_limit_factor=None if factor < 0 else factor)
    return config


def _number(key: str, value: str, least: float, most: float) -> float:
    try:
        number = float(value)
    except ValueError:
        raise bad(f"{key}={value[:60]!r} is not a number") from None
    if not least <= number <= most:
        raise bad(f"{key}={value[:60]} is not between {least:g} and {most:g}")
    return number


# --- bodies -----------------------------------------------------------------------------------


def read_changes(body: bytes, kind: str) -> list[Change]:
    """Return the changes that a body asks for, in XML (the documented form) or JSON."""
    changes = _from_xml(body) if kind.endswith("/xml") else _from_json(body)
    if not changes:
        raise bad("the request has no change")
    if len(changes) > MOST_CHANGES:
        raise bad(f"more than {MOST_CHANGES} changes")
    return changes


def _from_xml(body: bytes) -> list[Change]:
    if b"<!" in body:  # no document type, hence no entities that grow
        raise bad("document types, comments and CDATA are not read")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  # see above
    except (ElementTree.ParseError, ValueError, UnicodeError, LookupError) as error:
        raise bad(f"not XML: {error}") from None
    if root.tag != "sched-conf":
        raise bad(f"expected sched-conf, not {root.tag[:40]}")
    changes: list[Change] = []
    for part in root:
        if part.tag == REMOVE:
            changes.append(((part.text or "").strip(), REMOVE, ""))
        elif part.tag in ("update-queue", ADD):
            path = part.findtext("queue-name", "").strip()
            if part.tag == ADD:
                changes.append((path, ADD, ""))
            changes += [(path, *_entry(entry)) for entry in part.iterfind("params/entry")]
        elif part.tag == "global-updates":
            changes += [("", *_entry(entry)) for entry in part.iterfind("entry")]
        else:
            raise bad(f"{part.tag[:40]} is not supported by the emulator")
    return changes


def _entry(entry: ElementTree.Element) -> tuple[str, str]:
    key = entry.findtext("key", "").strip()
    if not key:
        raise bad("an entry without a key")
    return key, entry.findtext("value", "").strip()


def _from_json(body: bytes) -> list[Change]:
    try:
        root: Any = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise bad(f"not JSON: {error}") from None
    root = root.get("sched-conf", root) if isinstance(root, dict) else root
    if not isinstance(root, dict):
        raise bad("expected an object")
    unknown = set(root) - {"update-queue", "global-updates", *ORDER}
    if unknown:
        raise bad(f"{min(unknown)[:40]} is not supported by the emulator")
    changes: list[Change] = []
    removed = root.get(REMOVE, [])
    changes += [(str(path), REMOVE, "") for path in (removed if isinstance(removed, list) else [removed])]
    changes += [(str(part.get("queue-name", "")), ADD, "") for part in _many(root.get(ADD))]
    for part in (*_many(root.get(ADD)), *_many(root.get("update-queue"))):
        entries = [entry for params in _many(part.get("params")) for entry in _many(params.get("entry"))]
        changes += [(str(part.get("queue-name", "")), *_pair(entry)) for entry in entries]
    for part in _many(root.get("global-updates")):
        changes += [("", *_pair(entry)) for entry in _many(part.get("entry"))]
    return changes


def _many(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects; one object counts as a list of one."""
    rows = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise bad("expected objects")
    return rows


def _pair(entry: dict[str, Any]) -> tuple[str, str]:
    key, value = entry.get("key"), entry.get("value", "")
    if not isinstance(key, str) or not key or isinstance(value, dict | list):
        raise bad("an entry without a key")
    return key, str(value)
