"""From a 10 MB answer to /apps to victims: the attached port and one step, beside json and dataclasses.

A process of its own serves the same bytes to both from loopback, with every job's progress moving from look
to look. The naive side does the same work in the plain way: it decodes what it needs with json, makes
dataclasses, plays the scheduler over what all queues wait for to see whether the room would go to the requester,
and sorts all victim jobs again for each victim (the paper's rule word for word, as in ``yarn_research.bench.tick``).
It keeps nothing from look to look and gives no reasons. Both must name the same attempts in the same order
(of those that are asked at once, who has most left leaves first), and both know already which jobs carry the
runner and what the others wait for.

The row is wall time; the details have each side's processor time too (the server has a process of its own).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import requests

from yarn_research.bench.decode import PlainApplication, make_apps, read_plainly
from yarn_research.bench.row import Row, spread, without_gc
from yarn_research.bench.tick import RULES
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Suspend
from yarnctl.hadoop.wire.calculator import DOMINANT, KEY
from yarnctl.units import Resources, dominant

ROOT = "/ws/v1/cluster"
ASKER = "application_1700000000001_0001"
NODES, NODE = 1_000, Resources(700 * 1024, 700)
WANTED, REDUCES, BYTES_DONE = 4, 6, 1_000
STORE = "webhdfs://nn:9870/yarnctl"
CARRIED = {
    "stream.reduce.streamprocessor": "sh+yarnctl_task.py+--restartable+--+./red.py",
    "stream.addenvironment": f"YARNCTL_STORE={STORE}/c YARNCTL_REQUESTS={STORE}/requests"
    " YARNCTL_REQUESTS_OWNER=yarnctl",
    "mapreduce.reduce.speculative": "false",
}


# --- the cluster --------------------------------------------------------------------------------


def _static() -> dict[str, bytes]:
    """Return the answers that are the same for everybody."""
    total = {"memory": NODES * NODE.memory_mib, "vCores": NODES * NODE.vcores}
    queues = [
        {
            "type": "capacitySchedulerLeafQueueInfo", "queueName": name, "absoluteCapacity": share,
            "absoluteMaxCapacity": 100, "pendingContainers": WANTED, "userLimitFactor": 100,
            "minEffectiveCapacity": {key: value * share // 100 for key, value in total.items()},
            "maxEffectiveCapacity": total, "preemptionDisabled": True,
            "resourcesUsed": {key: int(value * _held(name)) for key, value in total.items()},
        }
        for name, share in (("production", 86), ("research", 5), *((f"team{at}", 1) for at in range(1, 10)))
    ]  # fmt: skip
    nodes = [
        {
            "id": f"node{at:04d}:45454", "state": "RUNNING", "rack": "/r", "numContainers": 100,
            "usedMemoryMB": NODE.memory_mib, "availMemoryMB": 0, "usedVirtualCores": NODE.vcores,
            "availableVirtualCores": 0, "version": "3.4.2", "nodeHostName": f"node{at:04d}",
        }
        for at in range(NODES)
    ]  # fmt: skip
    tree = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": queues}}
    texts: dict[str, Any] = {
        f"{ROOT}/info": {"clusterInfo": {"id": 1, "haState": "ACTIVE"}},
        "/conf": {"properties": [{"key": "yarn.web-proxy.address", "value": ""}]},
        f"{ROOT}/scheduler-conf": {"property": [{"name": KEY, "value": DOMINANT}]},
        f"{ROOT}/scheduler": {"scheduler": {"schedulerInfo": tree}},
        f"{ROOT}/nodes": {"nodes": {"node": nodes}},
    }
    return {path: json.dumps(value).encode() for path, value in texts.items()}


def _held(queue: str) -> float:
    """Return a queue's part of the cluster: production has nothing, the teams what they are guaranteed."""
    return {"production": 0.0, "research": 0.91}.get(queue, 0.01)


def apps_of(size_bytes: int = 10_000_000) -> tuple[bytes, bytes]:
    """Return two answers to /apps between which every job has got on as a job of ten minutes does in 1 s."""
    requester = {
        "id": ASKER, "user": "p", "queue": "production", "state": "ACCEPTED", "progress": 0.0,
        "applicationType": "MAPREDUCE", "applicationTags": "", "priority": 0,
        "startedTime": 1_700_000_009_000,
        "allocatedMB": 0, "allocatedVCores": 0, "reservedMB": 0, "reservedVCores": 0, "runningContainers": 0,
        "diagnostics": "",
        "resourceInfo": {"resourceUsagesByPartition": [
            {"partitionName": "", "pending": {"memory": 1024 * WANTED, "vCores": WANTED}}]},
    }  # fmt: skip
    rows = json.loads(make_apps(size_bytes))["apps"]["app"]
    nothing = {"memory": 0, "vCores": 0}
    for place, row in enumerate(rows):
        row["applicationTags"] = ""
        row["queue"] = "research" if place % 10 == 0 else f"team{place % 10}"
        if place % 5:
            row["resourceInfo"]["resourceUsagesByPartition"][0]["pending"] = nothing
    large = {"allocatedMB": 1 << 20, "allocatedVCores": 1 << 10, "runningContainers": 1 << 10}
    rows[70].update(large)  # one job is hit, as with heavy-tailed sizes
    bodies = []
    for _ in range(2):
        bodies.append(json.dumps({"apps": {"app": [*rows, requester]}}, separators=(",", ":")).encode())
        for row in rows:
            row["progress"] = min(100.0, row["progress"] + 0.15)
    return bodies[0], bodies[1]


def _finished_map(ids: str) -> dict[str, Any]:
    """Return a map of a job whose reduces run: yarnctl reads once when the last of them finished."""
    now_ms = int(time.time() * 1000)
    return {
        "id": f"task_{ids}_m_000000", "type": "MAP", "state": "SUCCEEDED", "finishTime": now_ms - 100_600,
    }  # fmt: skip


def _dynamic(path: str, query: str) -> dict[str, Any]:
    """Return the answers that belong to one application: its asks, its containers, its master's."""
    parts = path.split("/")
    name = next(part for part in parts if part.startswith("application_"))
    ids = name.removeprefix("application_")
    if path.endswith("/conf"):
        return {"conf": {"property": [{"name": key, "value": value} for key, value in CARRIED.items()]}}
    if path.endswith("/appattempts"):
        return {"appAttempts": {"appAttempt": [{"id": 1}]}}
    if path.endswith("/containers"):
        rows = [_container(ids, at) for at in range(REDUCES + 1)]
        return {"containers": {"container": rows}}
    if path.endswith("/tasks"):
        tasks = [
            {"id": f"task_{ids}_r_{at:06d}", "type": "REDUCE", "state": "RUNNING"} for at in range(REDUCES)
        ]
        return {"tasks": {"task": tasks if "type=m" not in query else [_finished_map(ids)]}}
    if path.endswith("/attempts"):
        return {"taskAttempts": {"taskAttempt": [_attempt(ids, int(parts[-2][-6:]))]}}
    count = WANTED if name == ASKER else 3
    request = {
        "priority": 10, "resourceName": "*", "numContainers": count,
        "capability": {"memory": 1024, "vCores": 1},
    }  # fmt: skip
    return {"app": {"id": name, "resourceRequests": [request]}}


def _container(ids: str, at: int) -> dict[str, Any]:
    return {
        "containerId": f"container_{ids}_01_{at + 1:06d}", "allocatedMB": 1024, "allocatedVCores": 1,
        "assignedNodeId": f"node{at:04d}:45454", "priority": 10 if at else 0, "containerState": "RUNNING",
    }  # fmt: skip


def _attempt(ids: str, at: int) -> dict[str, Any]:
    now_ms = int(time.time() * 1000)
    known = BYTES_DONE * (200 - 10 * at)
    return {
        "id": f"attempt_{ids}_r_{at:06d}_0", "state": "RUNNING", "type": "REDUCE", "progress": 100.0,
        "startTime": now_ms - 101_000, "shuffleFinishTime": now_ms - 100_500,
        "mergeFinishTime": now_ms - 100_000, "assignedContainerId": f"container_{ids}_01_{at + 2:06d}",
        "status": f"yarnctl phase=run groups=9 done={BYTES_DONE} known={known} all=1 gen=0 can=1",
    }  # fmt: skip


def serve(
    ready: Any,
    static_answers: Callable[[], dict[str, bytes]] = _static,
    apps_answers: Callable[[], tuple[bytes, bytes]] = apps_of,
) -> None:
    """Serve the cluster until killed; a process of its own, so that it is nobody's processor time."""
    static, apps, turn = static_answers(), apps_answers(), [0]

    def body_of(path: str, query: str) -> bytes:
        if path == f"{ROOT}/apps":
            turn[0] += 1
            return apps[turn[0] // 2 % 2]  # each body twice: once for each side
        return static.get(path) or json.dumps(_dynamic(path, query)).encode()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):  # the caller has closed
            await answer_all(reader, writer)

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path, _, query = head.split(b" ", 2)[1].decode().partition("?")
            body = body_of(path, query)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)
            await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


# --- ours ---------------------------------------------------------------------------------------


def ours(
    port: AttachedPort, preempting_queue: str = "root.production", preemptable_queue: str = "root.research"
) -> list[str]:
    """Look, decide, look at the victims, decide: the attempts that are to stop, in the order of leaving."""
    paths = {"preempting_queues": (preempting_queue,), "preemptable_queues": (preemptable_queue,)}
    controller = Controller(msgspec.structs.replace(RULES, **paths))
    seen = port.observe(controller.to_observe)
    step = controller.step(seen)
    while step.to_observe.victims:
        step = controller.step(port.observe(step.to_observe))
    return [action.attempt for action in step.actions if isinstance(action, Suspend)]


# --- as one would write it ----------------------------------------------------------------------


@dataclass
class PlainTask:
    """A running reduce."""

    attempt: str
    remaining_ms: float
    cost_ms: float


class Plain:
    """The same with requests, json and dataclasses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def get(self, path: str) -> Any:
        return self.session.get(self.url + path, timeout=10)

    def victims(self) -> list[str]:
        self.get(f"{ROOT}/info").json()
        queues = self.get(f"{ROOT}/scheduler").json()["scheduler"]["schedulerInfo"]["queues"]["queue"]
        nodes = self.get(f"{ROOT}/nodes").json()["nodes"]["node"]
        total = Resources(
            sum(node["usedMemoryMB"] + node["availMemoryMB"] for node in nodes),
            sum(node["usedVirtualCores"] + node["availableVirtualCores"] for node in nodes),
        )
        assert any(queue["pendingContainers"] for queue in queues)
        apps = read_plainly(self.get(f"{ROOT}/apps").content)
        hurried = [app for app in apps if app.queue == "production" and app.uses[0].pending_memory]
        wanted = sum(self.asked(app.application) for app in hurried)
        victims = [app for app in apps if app.queue == "research"]
        return self.pick(victims, total, self.admitted(apps, queues, wanted))

    def admitted(self, apps: list[PlainApplication], queues: list[dict], wanted: int) -> int:
        """Play on: how many containers would the requester be given, were room taken from research?"""
        waiting: dict[str, list[PlainApplication]] = {}
        for app in sorted(apps, key=lambda app: (-app.priority, app.submitted, app.application)):
            if any(use.pending_memory for use in app.uses):
                waiting.setdefault(app.queue, []).append(app)
        used = {queue["queueName"]: queue["resourcesUsed"]["memory"] for queue in queues}
        share = {queue["queueName"]: queue["minEffectiveCapacity"]["memory"] for queue in queues}
        largest = max(app.memory // app.containers for app in apps if app.queue == "research")
        for count in range(wanted):
            first = min(waiting, key=lambda name: (used[name] / share[name], -share[name], name))
            if first != "production" or (used["research"] - largest) < share["research"]:
                return count
            used[first] += 1024
            used["research"] -= largest
        return wanted

    def asked(self, name: str) -> int:
        rows = self.get(f"{ROOT}/apps/{name}").json()["app"]["resourceRequests"]
        return sum(row["numContainers"] for row in rows if row["resourceName"] == "*")

    def pick(self, apps: list[PlainApplication], total: Resources, wanted: int) -> list[str]:
        used = {app.application: Resources(app.memory, app.cores) for app in apps}
        left: dict[str, list[PlainTask]] = {}
        picked: list[PlainTask] = []
        for _ in range(wanted):
            for name in sorted(used, key=lambda name: (-dominant(used[name], total), name)):
                if name not in left:
                    left[name] = self.tasks(name)
                if left[name]:
                    picked.append(left[name].pop(0))
                    used[name] = Resources(used[name][0] - 1024, used[name][1] - 1)
                    break
        return [task.attempt for task in sorted(picked, key=lambda task: -task.remaining_ms)]

    def tasks(self, name: str) -> list[PlainTask]:
        """Return a job's reduces that may be stopped, the shortest first."""
        job = f"/proxy/{name}/ws/v1/mapreduce/jobs/{name.replace('application', 'job')}"
        path = f"{ROOT}/apps/{name}/appattempts/{name.replace('application', 'appattempt')}_000001/containers"
        alive = {row["containerId"] for row in self.get(path).json()["containers"]["container"]}
        now_ms, found = time.time() * 1000, []
        for task in self.get(f"{job}/tasks?type=r").json()["tasks"]["task"]:
            for row in self.get(f"{job}/tasks/{task['id']}/attempts").json()["taskAttempts"]["taskAttempt"]:
                if row["assignedContainerId"] not in alive:
                    continue
                words = dict(word.split("=") for word in row["status"].split()[1:])
                done, known = int(words["done"]), int(words["known"])
                worked_ms = now_ms - row["mergeFinishTime"]
                shuffle_ms = row["mergeFinishTime"] - row["startTime"]
                found.append(PlainTask(row["id"], (known - done) * worked_ms / done, 6_000 + shuffle_ms))
        may = [task for task in found if task.remaining_ms > task.cost_ms]
        return sorted(may, key=lambda task: (task.remaining_ms, task.attempt))


# --- the row ------------------------------------------------------------------------------------


def timed(work: Any) -> tuple[float, float, list[str]]:
    """Return wall time and processor time in ms, and what was picked."""
    with without_gc():
        began, began_cpu = time.perf_counter(), time.process_time()
        picked = work()
        return (time.perf_counter() - began) * 1000, (time.process_time() - began_cpu) * 1000, picked


def measure(repeats: int = 9) -> dict[str, Any]:
    """Return wall times in ms of both sides, in turn."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{here.recv()}"
        cluster = ClusterAddress(resource_managers=(url,), user="yarnctl")
        told = Attachment(
            name_nodes=("nn:9870",),
            eligibility_reads_max=20_000,
            others_max=20_000,
            look_ms=60_000,
            look_wait_ms=60_000,  # all jobs are new at once
        )
        port = attach(cluster, told, lambda: time.time_ns() // 1_000_000)
        for _ in range(told.stable_observations):
            expected = ours(port)  # a cluster that is new to us is looked at, not decided on
        plain = Plain(url)
        plain.victims()
        assert len(expected) == WANTED, (expected, port.last_problem, list(port.why_not.items())[:3])
        found: dict[str, list[float]] = {"ours": [], "naive": [], "ours_cpu": [], "naive_cpu": []}
        for _ in range(repeats):
            for side, work in (("ours", lambda: ours(port)), ("naive", plain.victims)):
                took_ms, cpu_ms, picked = timed(work)
                assert picked == expected
                found[side].append(took_ms)
                found[f"{side}_cpu"].append(cpu_ms)
        port.close()
        return {side: spread(times) for side, times in found.items()}
    finally:
        server.terminate()
        server.join(10)


def http_tick_row(repeats: int = 9) -> Row:
    """The median of ``repeats`` looks each, wall clock, over loopback, turn and turn about."""
    found = measure(repeats)
    cpu_ratio = found["naive_cpu"]["median"] / found["ours_cpu"]["median"]
    mine, naive = found["ours"]["median"], found["naive"]["median"]
    return Row(
        name="http-tick",
        what="a 10 MB answer to /apps, over loopback, to 4 victims, beside json + dataclasses",
        ours=mine,
        baseline=naive,
        ratio=naive / mine,
        target="<= 40 ms, >= 2",
        holds=mine <= 40 and naive / mine >= 2,
        unit="ms",
        details={**found, "cpu_ratio": cpu_ratio, "victims": WANTED},
    )


if __name__ == "__main__":
    print(http_tick_row())
