"""A cluster with an honest job beside applications whose answers are hostile, and the ways in which they are.

Law: an answer is a function of the usual one and of a seeded generator; the honest job's answers are never
touched. ``Direct`` gives answers without a wire, so that many looks can be played.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt, container, task
from tests.unit.attach.test_executors import BY_PLUGIN, Driver
from tests.unit.attach.test_workers import JobMaster
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import MASTER_BYTES, AttachedPort
from yarnctl.deciding.model import Action, Drain, Grow, Kill, Release, Suspend, TaskView, Withdraw
from yarnctl.frameworks.registry import all_frameworks
from yarnctl.hadoop.http.answers import HttpAnswer, judge
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.units import times

HONEST, PRODUCTION, SPARK, FLINK, MAPREDUCE = (application(number) for number in (1, 2, 7, 8, 9))
KINDS = (SPARK, FLINK, MAPREDUCE)
Hostility = Callable[[Heard, Reply], Reply]


class HostileCluster(FakeCluster):
    """An honest job of three reduces, waiting production, and of each framework one hostile application.

    ``hostile``: application -> what becomes of its answers. ``twins``: applications that answer as one of
    these three do, under their own name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hostile: dict[str, Hostility] = {}
        self.twins: dict[str, str] = {}

    def __enter__(self) -> HostileCluster:
        super().__enter__()
        self.nodes = {"n1:1": times(SLOT, 400), "n2:1": times(SLOT, 400)}
        self.research(1, ["n1:1", "n1:1", "n2:1", "n2:1"])
        self.add(App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 900)]))
        self.driver = BusyDriver(self)
        self.job_master = JobMaster(self)
        job = self.research(9, ["n1:1", "n1:1", "n2:1"])
        self.mapping(job, 8, "n2:1")
        job.configuration = self.carried()
        self.attempt(9, 1)["status"] = "yarnctl phase=run groups=50 done=5000 known=9000 all=0 gen=0 can=1"
        self.maps_over(9)
        self.groups_read[attempt(9, 1)] = 60
        return self

    def maps_over(self, number: int) -> None:
        self.apps[application(number)].maps_finished_at_ms = self.now_ms - 58_000

    def twin(self, number: int, of: str) -> str:
        """Add an application that answers as another one."""
        name, known = application(number), self.apps[of]
        twin = self.add(copy.deepcopy(known))
        twin.number = number
        twin.containers = {self._renamed(each, of, name): place for each, place in known.containers.items()}
        twin.tasks, twin.maps = {}, {}
        self.apps.pop(of, None)
        self.apps[of] = known
        self.apps[name] = twin
        self.twins[name] = of
        return name

    @staticmethod
    def _renamed(text: str, before: str, after: str) -> str:
        return text.replace(before.removeprefix("application_"), after.removeprefix("application_"))

    def answer(self, heard: Heard) -> Reply:
        match = re.match(r"/proxy/(application_\d+_\d+)/", heard.path)
        if match is None:
            return super().answer(heard)
        name = match[1]
        reply = self._usual(heard, name)
        return self.hostile[name](heard, reply) if name in self.hostile else reply

    def _usual(self, heard: Heard, name: str) -> Reply:
        of = self.twins.get(name)
        if of is None:
            return super().answer(heard)
        reply = super().answer(heard._replace(path=self._renamed(heard.path, name, of)))
        body = reply.body.decode() if isinstance(reply.body, bytes) else reply.body
        return reply._replace(body=self._renamed(body, of, name))


class BusyDriver(Driver):
    """A driver with an active stage behind a shuffle, with running tasks."""

    def __init__(self, fake: FakeCluster) -> None:
        super().__init__(fake, tags="yarnctl-drain:plugin")
        self.settings = {**BY_PLUGIN, "spark.app.startTime": "7"}
        self.jobs = [{"jobId": 1, "status": "RUNNING", "stageIds": [1, 2]}]
        finished = {"numTasks": 3, "numCompleteTasks": 3, "shuffleWriteBytes": 90_000_000}
        self.stages = [
            {"stageId": 2, "attemptId": 0, "status": "ACTIVE", "numTasks": 9, "numActiveTasks": 2,
             "numCompleteTasks": 3, "executorRunTime": 12_000, "shuffleReadBytes": 900,
             "shuffleWriteBytes": 0},
            {"stageId": 1, "attemptId": 0, "status": "COMPLETE", **finished},
        ]  # fmt: skip
        self.parts[1] = {name: {"succeededTasks": 1, "shuffleWrite": 30_000_000} for name in "123"}
        self.parts[2] = {name: {"succeededTasks": 1, "shuffleWrite": 7} for name in "123"}

    def answer(self, path: str, query: Mapping[str, str]) -> Reply | None:
        if path.endswith("/taskSummary"):
            return Reply(
                json.dumps({"executorRunTime": [4000.0, 6000.0], "executorDeserializeTime": [5.0, 9.0]})
            )
        if path.endswith("/taskList"):
            launched = "2023-11-14T22:29:59.000GMT"
            rows = [{"executorId": name, "status": "RUNNING", "launchTime": launched} for name in "12"]
            return Reply(json.dumps(rows))
        return super().answer(path, query)


# --- hostile answers ------------------------------------------------------------------------------------


class Raw(str):
    """A text that stands in JSON as it is."""

    __slots__ = ()


def deep(levels: int) -> Raw:
    return Raw("[" * levels + "]" * levels)


def many(text: str, count: int) -> Raw:
    return Raw("[" + ",".join([text] * count) + "]")


def numbered(count: int) -> Raw:
    return Raw("{" + ",".join(f'"{number}":{number}' for number in range(count)) + "}")


VALUES: tuple[Any, ...] = (
    1e308, -1e308, Raw("1e999"), Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), -1, -(2**31), 2**31,
    2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, Raw("1" + "0" * 400), Raw("9" * 5000), 0, 0.5,
    -0.0, 1e-320, True, False, None, "", " ", "NaN", "12", "-1", "1e308", "9" * 5000, "\u0661", "\ud800",
    "x" * 100_000, "a\x00b", "../../etc", [], {}, [[]], [None], {"a": {"b": {}}}, deep(200), deep(3000),
    Raw('{"a":' * 3000), many("0", 20_000), many("{}", 3000), many("1e308", 50), numbered(3000),
    container(1, 2), attempt(1, 1), task(1, 1), HONEST, "driver", "RUNNING", "2023-11-14T22:29:59.000GMT",
    "0001-01-01T00:00:00.000GMT", "9999-12-31T23:59:59.999GMT",
    "yarnctl phase=hold gen=999999999999999999 back=1",
    "yarnctl phase=run groups=999999999999999999 done=999999999999999999 known=1 all=1 gen=5 ran=1 back=0",
    "yarnctl phase=run done=0 known=999999999999999999 all=0 gen=0 can=0 why=" + "y" * 5000,
    "attempt_1_1_r_1_" + "9" * 5000,
)  # fmt: skip


def fresh(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


def written(value: Any) -> str:
    """Return JSON, in which a Raw stands as it is."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def places(value: Any, limit: int = 4000) -> list[tuple[Any, Any]]:
    """Return every place in a value, as the object or list that holds it and the key there."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < limit:
        one = waiting.pop()
        keys: Any = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def mutated(body: str, draw: random.Random) -> str:
    """Return an answer with some of it changed: values, keys, rows, or its very text."""
    value = [json.loads(body)]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        holder, key = draw.choice(places(value))
        match draw.randrange(8):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder += [copy.deepcopy(holder[key])] * draw.choice((1, 3, 500))
            case 2:
                holder[key] = [holder[key]]
            case 3 if isinstance(holder, dict):
                holder[draw.choice((f"{key}x", str(key).upper(), "\ud800"))] = holder[key]
            case _:
                holder[key] = fresh(draw.choice(VALUES))
    text = written(value[0]) if value else ""
    match draw.randrange(30):
        case 0:
            text = text[: draw.randrange(len(text) + 1)]
        case 1:
            again = lambda each: f"{each[1]}{draw.choice((1, 'null'))},{each[1]}"  # noqa: E731
            text = re.sub(r'("\w+":)', again, text, count=2)
        case 2:
            text = text.replace("}", "}" * 2, 1)
        case 3:
            text = "\ufeff" + text
    return text


def mutating(draw: random.Random, share: float) -> Hostility:
    """Change a part of an application's answers."""

    def answer(_heard: Heard, reply: Reply) -> Reply:
        body = reply.body if isinstance(reply.body, str) else reply.body.decode()
        if reply.status == 404 or draw.random() > share:
            return reply
        if draw.randrange(20) == 0:
            status = draw.choice((200, 201, 204, 301, 307, 400, 401, 403, 404, 500, 503))
            kind = draw.choice(("text/html", "application/json", "", "text/plain"))
            return reply._replace(status=status, kind=kind, headers=(("Location", "http://127.0.0.1:1/x"),))
        return reply._replace(body=mutated(body or "{}", draw).encode("utf-8", "surrogatepass"))

    return answer


class Direct(Transport):
    """A transport whose answers come without a wire."""

    def __init__(self, answer: Callable[[Heard], Reply]) -> None:
        super().__init__(["http://rm:8088"], Identity(), CallLimits(answer_bytes=MASTER_BYTES))
        self._answer = answer

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        media: str,
        take: Callable[[HttpAnswer], Any],
        accept: str = "",
        *,
        follow: bool = True,
    ) -> Any:
        reply = self._answer(Heard(method, path, dict(query), {}, body))
        told = reply.body.encode() if isinstance(reply.body, str) else reply.body
        answer = HttpAnswer(reply.status, reply.kind.partition(";")[0], told, f"http://rm:8088{path}")
        judge(answer, method, self.daemon)
        return take(answer)


def direct_port(cluster: HostileCluster, **settings: Any) -> AttachedPort:
    """Return a port that asks a cluster without a wire, but for HDFS."""
    transport = Direct(cluster.answer)
    store = cluster.hdfs.replay.url
    far = CallLimits(connect_ms=60_000, read_timeout_ms=60_000, answer_ms=120_000, retries=0)
    told: dict[str, Any] = {"name_nodes": (store,), "enforce": True, "stable_observations": 1, "levers": True}
    told |= {"look_ms": 60_000, "look_wait_ms": 60_000, "order_wait_ms": 60_000} | settings
    return AttachedPort(
        ResourceManager(transport),
        WebHdfs([store], Identity("yarnctl"), far, bulk_limits=far),
        Attachment(**told), lambda: cluster.now_ms,
        frameworks=all_frameworks(transport),
    )  # fmt: skip


def orders_for(name: str, tasks: tuple[TaskView, ...], number: int) -> list[Action]:
    found: list[Action] = [Grow(name, (number,))]
    for each in tasks[:3]:
        order = f"o-{number}-{len(found)}"
        if each.kind in ("executor", "worker"):
            mates = tuple(one.attempt for one in tasks[:2])
            found.append(Drain(order, name, each.attempt, each.container, number, mates))
            continue
        found.append(Kill(f"{order}k", name, each.attempt, each.container))
        found.append(Suspend(order, name, each.attempt, each.container, 1, 1 << 50))
        found.append(Release(order, name, each.attempt, each.container, 1))
        found.append(Withdraw(order, name, each.attempt, each.container))
    return found
