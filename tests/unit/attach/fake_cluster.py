"""A scripted cluster: ResourceManager and masters on one loopback port, a little HDFS on another.

Law: it decides nothing. A test says what stands there and what becomes of a change; the answers have the
shapes of the facts, natural (3.5) or, for containers, mapped (3.4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.hadoop.little_hdfs import PREFIX, LittleHdfs, remote
from tests.unit.hadoop.replaying import PATIENT, Heard, Replay, Reply
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.observing.cluster_state import FirstAsksOf
from yarnctl.attach.port import AttachedPort
from yarnctl.frameworks.framework import Framework
from yarnctl.frameworks.registry import all_frameworks
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.task_runner.runner.protocol.generations import write_checkpoint
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import Manifest, TaskId, canonical
from yarnctl.task_runner.runner.protocol.stores import Spool
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store
from yarnctl.units import Resources

ROOT = "/ws/v1/cluster"
SLOT = Resources(1024, 1)
EPOCH = 1_700_000_000_000
REDUCER = ("python3", "red.py", "a b")


class OwnedHdfs(LittleHdfs):
    """A renamed file keeps its owner; ``denied``, ``silent``: what is refused, or breaks the server."""

    denied = ""
    silent = ""

    def answer(self, heard: Heard) -> Reply:
        if self.denied and heard.path.startswith(PREFIX + self.denied):
            return remote("AccessControlException")
        if self.silent and heard.path.startswith(PREFIX + self.silent):
            return Reply("", 500)
        return super().answer(heard)

    def _rename(self, path: str, heard: Heard) -> Reply:
        reply = super()._rename(path, heard)
        if path not in self.files and path in self.owners:
            self.owners[heard.query["destination"]] = self.owners.pop(path)
        return reply


def application(number: int) -> str:
    return f"application_{EPOCH}_{number:04d}"


def container(number: int, of: int) -> str:
    return f"container_{EPOCH}_{number:04d}_01_{of:06d}"


def task(number: int, of: int) -> str:
    return f"task_{EPOCH}_{number:04d}_r_{of:06d}"


def attempt(number: int, of: int, nth: int = 0) -> str:
    return f"attempt_{EPOCH}_{number:04d}_r_{of:06d}_{nth}"


@dataclass
class App:
    """One application; ``containers``: id -> (node, priority); ``tasks``: task -> attempts as JSON.

    ``label`` is its own, ``ask_label`` that of its requests (None: not in the answer), ``ask_labels`` those
    of each if they differ; ``ask_others`` and,
    by container, ``held_others``: other resources by name. ``ask_fields``: more fields of each request; with
    ``resourceName`` None they are SchedulingRequests.
    """

    number: int
    queue: str
    user: str = "ann"
    state: str = "RUNNING"
    kind: str = "MAPREDUCE"
    containers: dict[str, tuple[str, int]] = field(default_factory=dict)
    asks: list[tuple[int, Resources, int]] = field(default_factory=list)
    tasks: dict[str, list[dict]] = field(default_factory=dict)
    maps: dict[str, list[dict]] = field(default_factory=dict)
    mib_seconds: int = 0
    configuration: dict[str, str] = field(default_factory=dict)
    submitted_at_ms: int = EPOCH
    elapsed_ms: int = 0
    reserved_mib: int = 0
    has_uses: bool = True
    tags: str = ""
    priority: int = 0
    served_priority: int = 0
    maps_finished_at_ms: int = 0
    name: str = ""
    label: str | None = None
    ask_label: str | None = None
    ask_labels: list[str | None] = field(default_factory=list)
    ask_others: dict[str, int] = field(default_factory=dict)
    ask_fields: list[dict[str, Any]] = field(default_factory=list)
    held_others: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return application(self.number)

    def label_of(self, place: int) -> str | None:
        """Return the label of a request."""
        return self.ask_labels[place] if self.ask_labels else self.ask_label


class FakeCluster:
    """Use as a context manager. ``changes``: what was asked for by POST and PUT, in order.

    ``queues``: leaf (its path, or its name below root) -> share; ``parents``: paths of further parent queues.
    ``states``, ``policies``: state and ordering policy of a leaf, by the name in ``queues``.
    ``says_paths``: an application's row names its queue by the path. ``label_shares``: label -> leaf -> its
    share of the nodes with the label; ``shared``: the labels that are not exclusive; ``node_others``: node ->
    its other resources by name. ``scheduler_keys`` None: the scheduler's store cannot be changed.
    """

    def __init__(self, mapped: bool = False) -> None:
        self.mapped = mapped
        self.epoch = EPOCH
        self.nodes: dict[str, Resources] = {}
        self.apps: dict[str, App] = {}
        self.queues = {"production": 95.0, "research": 5.0}
        self.parents: list[str] = []
        self.says_paths = False
        self.labels: dict[str, str] = {}
        self.queue_labels: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.policies: dict[str, str] = {}
        self.label_shares: dict[str, dict[str, float]] = {}
        self.shared: set[str] = set()
        self.node_others: dict[str, dict[str, int]] = {}
        self.preemption_disabled = True
        self.intra_disabled: bool | None = None
        self.configuration = {"yarn.resourcemanager.scheduler.monitor.enable": "false"}
        self.scheduler_keys: dict[str, str] | None = None
        self.changes: list[str] = []
        self.granted_at_ms: dict[str, int] = {}
        self.groups_read: dict[str, int] = {}
        self.activities: Callable[[dict[str, str]], dict] | None = None
        self.broken: list[tuple[str, Reply]] = []
        self.on_kill: Callable[[str], None] = self.killed
        self.drivers: dict[str, Callable[[str, Mapping[str, str]], Reply | None]] = {}
        self.job_managers: dict[str, Callable[[Heard], Reply | None]] = {}
        self.hdfs = OwnedHdfs()
        self.now_ms = EPOCH + 1_000_000
        self.hdfs.clock = lambda: self.now_ms

    def __enter__(self) -> FakeCluster:
        self.rm = Replay(self.answer)
        self.rm.__enter__()
        self.hdfs.serve().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.rm.__exit__()
        self.hdfs.replay.__exit__()

    # --- setting up ---------------------------------------------------------------------------

    def add(self, app: App) -> App:
        self.apps[app.id] = app
        return app

    def research(self, number: int, nodes: list[str], **more) -> App:
        """Add a research job: its master on the first node, one reduce on each of the others."""
        app = self.add(App(number, "research", **more))
        app.configuration = self.carried()
        for place, node in enumerate(nodes):
            app.containers[container(number, place + 1)] = (node, 10 if place else 0)
            if place:
                app.tasks[task(number, place)] = [self.running(number, place, place + 1)]
        return app

    def running(self, number: int, of: int, place: int, nth: int = 0, **more) -> dict:
        row = {
            "id": attempt(number, of, nth), "state": "RUNNING", "type": "REDUCE", "progress": 100.0,
            "startTime": self.now_ms - 60_000, "finishTime": 0, "elapsedTime": 0,
            "shuffleFinishTime": self.now_ms - 55_000, "mergeFinishTime": self.now_ms - 50_000,
            "assignedContainerId": container(number, place), "nodeHttpAddress": "n:8042",
            "status": "yarnctl phase=run groups=50 done=5000 known=100000 all=1 gen=0 can=1",
        }  # fmt: skip
        return {**row, **more}

    def mapping(self, app: App, place: int, node: str, **more) -> dict:
        """Add a running map of a job, in a container of its own."""
        name = container(app.number, place)
        app.containers[name] = (node, 20)
        row = {
            "id": f"attempt_{EPOCH}_{app.number:04d}_m_{place:06d}_0", "state": "RUNNING", "type": "MAP",
            "progress": 25.0, "startTime": self.now_ms - 20_000, "finishTime": 0,
            "assignedContainerId": name, "status": "map", **more,
        }  # fmt: skip
        app.maps[f"task_{EPOCH}_{app.number:04d}_m_{place:06d}"] = [row]
        return row

    @property
    def store_url(self) -> str:
        return self.hdfs.replay.url.replace("http:", "webhdfs:") + "/yarnctl/checkpoints"

    def carried(self, options: str = "--restartable", **environment: str) -> dict[str, str]:
        """Return the configuration of a job that carries the runner."""
        words = {
            "YARNCTL_STORE": self.store_url,
            "YARNCTL_REQUESTS": self.store_url.replace("checkpoints", "requests"),
            "YARNCTL_REQUESTS_OWNER": "yarnctl",
            **environment,
        }
        command = f"sh yarnctl_task.py {options} -- python3 red.py 'a b'"
        return {
            "stream.reduce.streamprocessor": command.replace(" ", "+").replace("'", "%27"),
            "stream.addenvironment": " ".join(f"{name}={value}" for name, value in words.items()),
            "mapreduce.reduce.speculative": "false",
            "mapreduce.job.ubertask.enable": "false",
            "mapreduce.job.reduces": "3",
        }

    def port(
        self,
        first_asks: FirstAsksOf = lambda _: (),
        frameworks: Mapping[str, Framework] | None = None,
        **settings,
    ) -> AttachedPort:
        """Return a port onto this cluster, with its clock; ``frameworks`` None: all of the product."""
        told: dict[str, Any] = {
            "name_nodes": (self.hdfs.replay.url,),
            "enforce": True,
            "stable_observations": 1,
        }
        told |= {"look_ms": 60_000, "look_wait_ms": 60_000, "order_wait_ms": 60_000, **settings}
        transport = Transport([self.rm.url], limits=PATIENT)
        hdfs = WebHdfs([self.hdfs.replay.url], Identity("yarnctl"), PATIENT, bulk_limits=PATIENT)
        return AttachedPort(
            ResourceManager(transport),
            hdfs,
            Attachment(**told),
            lambda: self.now_ms,
            all_frameworks(transport) if frameworks is None else frameworks,
            first_asks,
        )

    # --- what happens -------------------------------------------------------------------------

    def killed(self, attempt_id: str) -> None:
        """End an attempt at once: its container is gone."""
        for app in self.apps.values():
            for rows in (*app.tasks.values(), *app.maps.values()):
                for row in rows:
                    if row["id"] == attempt_id and row["state"] == "RUNNING":
                        row["state"] = "KILLED"
                        row["finishTime"] = self.now_ms
                        app.containers.pop(row["assignedContainerId"], None)

    def attempt(self, number: int, of: int, nth: int = 0) -> dict:
        return self.apps[application(number)].tasks[task(number, of)][nth]

    def save(
        self,
        number: int,
        of: int,
        order: str,
        generation: int = 1,
        groups: int = 50,
        user: str = "ann",
        **more,
    ) -> Manifest:
        """Do what the runner does: write a part and a manifest."""
        ids = TaskId(f"job_{EPOCH}_{number:04d}", task(number, of), attempt(number, of))
        output = Spool(1 << 20)
        output.add(b"saved output\n")
        fields = {
            "schema": 1, "tool": "yarnctl", "version": "0.1.0", "job": ids.job, "task": ids.task,
            "attempt": ids.attempt, "container": "", "past_containers": [], "host": "h", "user": user,
            "order": order, "created_at_ms": self.now_ms, "took_ms": {}, "generation": generation,
            "previous_generation": generation - 1, "key_rule": KeyRule().as_json(),
            "reducer": list(REDUCER), "groups_done": groups, "keys_digest": "0" * 64, "last_key": "aw==",
            "input_bytes": 5000, "parts": [], "counters": {}, **more,
        }  # fmt: skip
        store = open_store(self.store_url, user)
        return write_checkpoint(store, ids, fields, output)

    def answered(self, number: int, of: int, order: str, word: str, generation: int = 0) -> None:
        """Do what the runner does when it does not save."""
        ids = TaskId(f"job_{EPOCH}_{number:04d}", task(number, of), attempt(number, of))
        store = open_store(self.store_url, "ann")
        data = canonical(
            {
                "schema": 1,
                "order": order,
                "attempt": ids.attempt,
                "answer": word,
                "generation": generation,
                "reason": "because",
            }
        )
        store.make_folder(ids.folder)
        store.create(f"{ids.folder}/answer-{order}-{ids.attempt}.json", len(data), [data])

    # --- answering ----------------------------------------------------------------------------

    def break_(self, pattern: str, reply: Reply) -> None:
        """Answer ``METHOD /path`` that matches like this from now on."""
        self.broken.append((pattern, reply))

    def answer(self, heard: Heard) -> Reply:
        asked = f"{heard.method} {heard.path}"
        for pattern, reply in self.broken:
            if re.search(pattern, asked):
                return reply
        flink = re.match(r"/proxy/(\w+)/", heard.path)
        if flink and flink[1] in self.job_managers:
            return self.job_managers[flink[1]](heard) or _missing()
        if heard.method != "GET":
            return self._change(heard)
        if heard.path == "/conf":
            rows = [{"key": key, "value": value} for key, value in self.configuration.items()]
            return _json({"properties": rows})
        if heard.path.startswith("/proxy/"):
            return self._master(heard)
        if self.activities is not None and heard.path.endswith("/scheduler/activities"):
            return _json(self.activities(dict(heard.query)))
        return self._cluster(heard.path.removeprefix(ROOT))

    def _change(self, heard: Heard) -> Reply:
        signal = re.fullmatch(rf"{ROOT}/containers/(\w+)/signal/(\w+)", heard.path)
        if signal:
            self.changes.append(f"{signal[2]} {signal[1]}")
            return Reply(b"signal success")
        kill = re.search(r"/attempts/(\w+)/state$", heard.path)
        if kill and heard.method == "PUT":
            self.changes.append(f"KILL {kill[1]}")
            self.on_kill(kill[1])
            return _json({"state": "KILLED"})
        priority = re.search(r"/apps/(\w+)/priority$", heard.path)
        if priority and heard.method == "PUT":
            self.changes.append(f"PRIORITY {priority[1]} {heard.body.decode()}")
            if priority[1] in self.apps:
                app = self.apps[priority[1]]
                app.priority = json.loads(heard.body)["priority"]
                if app.priority:  # YARN's scheduler ignores a request for the priority of the submission
                    app.served_priority = app.priority
            return Reply(heard.body)
        return _missing()

    def _cluster(self, path: str) -> Reply:
        if path == "/info":
            return _json({"clusterInfo": {"id": self.epoch, "state": "STARTED", "haState": "ACTIVE"}})
        if path == "/scheduler":
            return _json({"scheduler": {"schedulerInfo": self._queues()}})
        if path == "/scheduler-conf" and self.scheduler_keys is not None:
            rows = [{"name": key, "value": value} for key, value in self.scheduler_keys.items()]
            return _json({"property": rows})
        if path == "/nodes":
            return _json({"nodes": {"node": [self._node(name) for name in self.nodes]}})
        if path == "/apps":
            alive = [app for app in self.apps.values() if app.state in ("ACCEPTED", "RUNNING")]
            return _json({"apps": {"app": [self._app(app) for app in alive]} if alive else {}})
        if path == "/get-node-labels":
            names = dict.fromkeys(self.labels.values())
            rows = [{"name": name, "exclusivity": str(name not in self.shared).lower()} for name in names]
            return _json({"nodeLabelInfo": rows[0] if len(rows) == 1 else rows})
        match = re.fullmatch(r"/apps/(\w+)(/.*)?", path)
        app = self.apps.get(match[1]) if match else None
        if match is None or app is None:
            return _missing()
        below = match[2] or ""
        if not below:
            return _json({"app": self._app(app, whole=True)})
        if below == "/state":
            return _json({"state": app.state})
        if below == "/appattempts":
            attempts: list[dict[str, Any]] = [
                {"id": 1, "startTime": 1, "containerId": container(app.number, 1)}
            ]
            return _json({"appAttempts": {"appAttempt": attempts}})
        if below.endswith("_000001/containers"):
            return self._containers(app)
        return _missing()

    def _queues(self) -> dict:
        """Return the tree of queues; a name with dots is a path, else a leaf below root."""
        root: dict = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": []}}
        for name in [*self.parents, *self.queues]:
            *above, last = name.removeprefix("root.").split(".")
            place = root
            for part in above:
                place = self._below(place, part)
            if name in self.queues:
                place["queues"]["queue"].append(self._leaf(name, last))
            else:
                self._below(place, last)
        return root

    def _below(self, place: dict, name: str) -> dict:
        """Return a parent queue below another one, made where there is none."""
        for row in place["queues"]["queue"]:
            if row["queueName"] == name and "queues" in row:
                return row
        made: dict = {"queueName": name, "state": "RUNNING", "queues": {"queue": []}}
        place["queues"]["queue"].append(made)
        return made

    def _leaf(self, name: str, last: str) -> dict:
        share = self.queues[name]
        total = sum(size.memory_mib for node, size in self.nodes.items() if node not in self.labels)
        apps = [app for app in self.apps.values() if app.queue == name]
        held = sum(self._held(app) for app in apps if app.state in ("ACCEPTED", "RUNNING"))
        pending = sum(count for app in apps for _, _, count in app.asks)
        guaranteed = {"memory": int(total * share / 100), "vCores": int(total * share / 100) // 1024}
        label = self.queue_labels.get(name)
        leaf: dict = {
            "type": "capacitySchedulerLeafQueueInfo",
            "queueName": last,
            "absoluteCapacity": share,
            "absoluteMaxCapacity": 100.0,
            "state": self.states.get(name, "RUNNING"),
            "orderingPolicyInfo": self.policies.get(name, ""),
            "pendingContainers": pending,
            "minEffectiveCapacity": guaranteed,
            "maxEffectiveCapacity": {"memory": total, "vCores": total // 1024},
            "resourcesUsed": self._used(apps, "", held),
            "userLimitFactor": 100.0,
            "preemptionDisabled": self.preemption_disabled,
            "intraQueuePreemptionDisabled": self.intra_disabled,
        }
        if label:
            leaf["defaultNodeLabelExpression"] = label
        if self.label_shares:
            shares: list[dict] = [{"partitionName": "", "effectiveMinResource": guaranteed}]
            shares[0]["effectiveMaxResource"] = leaf["maxEffectiveCapacity"]
            shares += [self._label_share(each, name) for each in self.label_shares]
            leaf["capacities"] = {"queueCapacitiesByPartition": shares}
            uses = [row for app in apps for row in self._uses(app)]
            leaf["resources"] = {"resourceUsagesByPartition": _summed(uses)}
        return leaf

    def _label_share(self, label: str, name: str) -> dict:
        total = sum(self.nodes[node].memory_mib for node, each in self.labels.items() if each == label)
        share = self.label_shares[label].get(name, 0.0)
        memory_mib, most_mib = int(total * share / 100), total if share else 0
        return {
            "partitionName": label,
            "effectiveMinResource": {"memory": memory_mib, "vCores": memory_mib // 1024},
            "effectiveMaxResource": {"memory": most_mib, "vCores": most_mib // 1024},
        }

    def _held(self, app: App) -> int:
        """Return how many containers an application holds on nodes without a label."""
        return sum(node not in self.labels for node, _ in app.containers.values())

    def _node(self, name: str) -> dict:
        size = self.nodes[name]
        used = sum(node == name for app in self.apps.values() for node, _ in app.containers.values())
        return {
            "id": name, "state": "RUNNING", "rack": "/default-rack", "numContainers": used,
            "usedMemoryMB": used * 1024, "availMemoryMB": size.memory_mib - used * 1024,
            "usedVirtualCores": used, "availableVirtualCores": size.vcores - used,
            **({"nodeLabels": [self.labels[name]]} if name in self.labels else {}), **self._others(name),
        }  # fmt: skip

    def _others(self, node: str) -> dict:
        """Return the vectors of a node that has other resources."""
        if node not in self.node_others:
            return {}
        size, others = self.nodes[node], self.node_others[node]
        used = self._held_others(list(self.apps.values()), [node])
        told = {"memory": size.memory_mib, "vCores": size.vcores}
        free = {name: count - used.get(name, 0) for name, count in others.items()}
        return {
            "totalResource": told | {"resourceInformations": _amounts(told, others)},
            "availableResource": told | {"resourceInformations": _amounts(told, free)},
        }

    def _held_others(self, apps: list[App], nodes: list[str]) -> dict[str, int]:
        """Return what applications hold of other resources on these nodes."""
        found: dict[str, int] = {}
        for app in apps:
            for name, others in app.held_others.items():
                if name in app.containers and app.containers[name][0] in nodes:
                    for other, count in others.items():
                        found[other] = found.get(other, 0) + count
        return found

    def _used(self, apps: list[App], label: str, slots: int) -> dict:
        """Return what applications use of the nodes with a label."""
        told: dict = {"memory": slots * 1024, "vCores": slots}
        nodes = [node for node in self.nodes if self.labels.get(node, "") == label]
        others = self._held_others(apps, nodes)
        return told | ({"resourceInformations": _amounts(told, others)} if self.node_others else {})

    def _app(self, app: App, whole: bool = False) -> dict:
        count = len(app.containers)
        row: dict = {
            "id": app.id, "user": app.user, "name": app.name, "queue": self._said(app.queue),
            "state": app.state, "progress": 10.0,
            "diagnostics": "", "applicationType": app.kind, "applicationTags": app.tags,
            "priority": app.priority, "startedTime": app.submitted_at_ms, "allocatedMB": count * 1024,
            "allocatedVCores": count, "reservedMB": app.reserved_mib, "reservedVCores": 0,
            "runningContainers": count or -1, "memorySeconds": app.mib_seconds,
            "elapsedTime": app.elapsed_ms,
        }  # fmt: skip
        if app.has_uses:
            row["resourceInfo"] = {"resourceUsagesByPartition": self._uses(app)}
        if app.label is not None:
            row["appNodeLabelExpression"] = app.label
        if whole:
            row["resourceRequests"] = [
                {
                    "priority": priority,
                    "resourceName": place,
                    "numContainers": n,
                    "capability": self._capability(app, size),
                }
                | ({} if app.label_of(at) is None else {"nodeLabelExpression": app.label_of(at)})
                | (app.ask_fields[at] if app.ask_fields else {})
                for at, (priority, size, n) in enumerate(app.asks)
                for place in ("*", "/default-rack", "n1")
                if place == "*" or not app.ask_fields or "resourceName" not in app.ask_fields[at]
            ]
        return row

    def _said(self, queue: str) -> str:
        """Return a queue as an application's row names it: by its path from 3.4 on, by its name before."""
        last = queue.rpartition(".")[2]
        if not self.says_paths:
            return last
        return queue if queue.startswith("root.") else f"root.{queue}"

    def _capability(self, app: App, size: Resources) -> dict:
        told: dict = {"memory": size.memory_mib, "vCores": size.vcores}
        return told | ({"resourceInformations": _amounts(told, app.ask_others)} if app.ask_others else {})

    def _uses(self, app: App) -> list[dict]:
        """Return an application's use and pending sum, by the partition of its containers and requests."""
        default = app.label or self.queue_labels.get(app.queue, "")
        given = [app.label_of(place) for place in range(len(app.asks))]
        asked = [default if label is None else label for label in given]
        labels = [self.labels.get(node, "") for node, _ in app.containers.values()]
        return [
            {
                "partitionName": label,
                "used": self._used([app], label, labels.count(label)),
                "pending": self._pending(app, asked, label),
            }
            for label in dict.fromkeys(["", *labels, *asked])
        ]

    @staticmethod
    def _pending(app: App, asked: list[str], label: str) -> dict:
        sizes = [(size, n) for at, (_, size, n) in enumerate(app.asks) if asked[at] == label]
        told = {"memory": sum(size.memory_mib * n for size, n in sizes)}
        told["vCores"] = sum(size.vcores * n for size, n in sizes)
        return told | ({"resourceInformations": _amounts(told, app.ask_others)} if app.ask_others else {})

    def _containers(self, app: App) -> Reply:
        rows: list[dict] = [
            {
                "containerId": name,
                "allocatedMB": 1024,
                "allocatedVCores": 1,
                "assignedNodeId": node,
                "priority": priority,
                "startedTime": self.granted_at_ms.get(name, 5),
                "containerState": "RUNNING",
            }
            | _allocated(app.held_others.get(name, {}))
            for name, (node, priority) in app.containers.items()
        ]
        if not self.mapped:
            return _json({"containers": {"container": rows}} if rows else {"containers": {}})
        texts = [_as_texts(row) for row in rows]
        return _json({"container": texts[0] if len(texts) == 1 else texts} if texts else None)

    def _master(self, heard: Heard) -> Reply:
        path = heard.path
        spark = re.fullmatch(r"/proxy/(\w+)/(?:api/v1/)?((?:applications|version|metrics).*)", path)
        if spark and spark[1] in self.drivers:
            return self.drivers[spark[1]](spark[2], heard.query) or _missing()
        info = re.fullmatch(r"/proxy/(\w+)/ws/v1/mapreduce/info", path)
        if info and info[1] in self.apps and self.apps[info[1]].state == "RUNNING":
            return _json({"info": {"appId": info[1]}})
        match = re.fullmatch(r"/proxy/(\w+)/ws/v1/mapreduce/jobs(/job_\w+)?(/.*)?", path)
        app = self.apps.get(match[1]) if match else None
        if match is None or app is None or app.state != "RUNNING":
            return Reply("<html>not running</html>", 302, "text/html", (("Location", "/cluster/app"),))
        below = match[3] or ""
        if below == "/conf":
            rows = [{"name": key, "value": value} for key, value in app.configuration.items()]
            return _json({"conf": {"path": "job.xml", "property": rows}})
        if below == "/tasks" and heard.query.get("type") == "m":
            over = {"id": "m", "type": "MAP", "finishTime": app.maps_finished_at_ms, "state": "SUCCEEDED"}
            running = [
                {"id": name, "type": "MAP", "state": "RUNNING"}
                | {key: row[key] for key in ("startTime", "progress")}
                for name, (row, *_) in app.maps.items()
            ]
            return _json({"tasks": {"task": [over, *running]}})
        if below == "/tasks":
            rows = [
                {
                    "id": name,
                    "type": "REDUCE",
                    "state": "RUNNING"
                    if any(one["state"] == "RUNNING" for one in each)
                    else each[-1]["state"],
                }
                for name, each in app.tasks.items()
            ]
            return _json({"tasks": {"task": rows}})
        found = re.fullmatch(r"/tasks/(\w+)/attempts", below)
        attempts = {**app.tasks, **app.maps}
        if found and found[1] in attempts:
            return _json({"taskAttempts": {"taskAttempt": attempts[found[1]]}})
        found = re.fullmatch(r"/tasks/\w+/attempts/(\w+)/counters", below)
        if found and found[1] in self.groups_read:
            counter = {"name": "REDUCE_INPUT_GROUPS", "value": self.groups_read[found[1]]}
            group = {"counterGroupName": "org.apache.hadoop.mapreduce.TaskCounter", "counter": [counter]}
            return _json({"jobTaskAttemptCounters": {"id": found[1], "taskAttemptCounterGroup": [group]}})
        return _missing()


def _amounts(told: dict, others: dict[str, int]) -> dict:
    """Return the resources of a vector as Hadoop lists them."""
    named = {"memory-mb": told["memory"], "vcores": told["vCores"], **others}
    return {"resourceInformation": [{"name": name, "value": value} for name, value in named.items()]}


def _summed(rows: list[dict]) -> list[dict]:
    """Return the sums of rows by partition."""
    sums: dict[str, int] = {}
    for row in rows:
        name = row["partitionName"]
        sums[name] = sums.get(name, 0) + row["used"]["vCores"]
    return [
        {"partitionName": name, "used": {"memory": count * 1024, "vCores": count}}
        for name, count in sums.items()
    ]


def _allocated(others: dict[str, int]) -> dict:
    """Return the resources of a container as Hadoop lists them."""
    if not others:
        return {}
    named = {"memory-mb": 1024, "vcores": 1, **others}
    return {"allocatedResources": {"entry": [{"key": name, "value": n} for name, n in named.items()]}}


def _as_texts(value: object) -> object:
    """Return an answer with numbers as texts, as Jersey's mapped form has them."""
    if isinstance(value, dict):
        return {key: _as_texts(each) for key, each in value.items()}
    return [_as_texts(each) for each in value] if isinstance(value, list) else str(value)


def _json(value: object) -> Reply:
    return Reply(json.dumps(value))


def _missing() -> Reply:
    return Reply('{"RemoteException":{"exception":"NotFoundException","message":"no such thing"}}', 404)
