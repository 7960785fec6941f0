"""The client of the ResourceManager (facts, section 1: ``/ws/v1/cluster``): one read or change each.

Lists are requested with what keeps them small and filtered again here, because versions differ in what they
filter. A change that is altered silently (a priority that is capped) is an error, not a success.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Literal
from xml.sax.saxutils import escape

import msgspec

from yarnctl.deciding.queue_names import spells
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop.http.answers import (
    XML,
    Altered,
    BadAnswer,
    HttpAnswer,
    Rejected,
    Uncertain,
    decoded,
    explain,
)
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import OneDecoder
from yarnctl.hadoop.wire.node_activities import ACTIVITIES, NodeActivities
from yarnctl.units import Resources

ROOT = "/ws/v1/cluster"
CAPACITY = "yarn.scheduler.capacity."
QUEUE_SHARE = (("capacity", ""), ("maximum-capacity", "100"))
"""A queue's keys below :data:`CAPACITY`, with their defaults ("": the key must be set)."""
DISABLE = "disable_preemption"
LEAST_KEYS = ("yarn.scheduler.minimum-allocation-mb", "yarn.scheduler.minimum-allocation-vcores")
LEAST = Resources(1024, 1)  # YARN's defaults; asks are rounded up to a multiple (vcores: at least)
Signal = Literal["OUTPUT_THREAD_DUMP", "GRACEFUL_SHUTDOWN", "FORCEFUL_SHUTDOWN"]
UNFINISHED = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
ENDED = ("FINISHED", "FAILED", "KILLED")
TRACKED_MAX = 100
HEAVY = ("resourceRequests", "timeouts")
SHOWN_MAX = 20  # Sub-clusters that a message names
USE_CAPACITY_SCHEDULER = (
    "set yarn.resourcemanager.scheduler.class=org.apache.hadoop.yarn.server.resourcemanager"
    ".scheduler.capacity.CapacityScheduler (yarn-site.xml)"
)

_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")
_APP_ATTEMPT = re.compile(r"appattempt_[0-9]+_[0-9]+_[0-9]+")
_CONTAINER = re.compile(r"container_(?:e[0-9]+_)?[0-9]+_[0-9]+_[0-9]+_[0-9]+")


def least_in(configuration: Mapping[str, str], default_mib: int = LEAST.memory_mib) -> Resources:
    """Return the smallest container that YARN grants: a node with less free in one resource is full."""
    texts = [configuration.get(key, "").strip() for key in LEAST_KEYS]
    found = [int(text) if text.isascii() and text.isdigit() else 0 for text in texts]
    return Resources(found[0] or default_mib, found[1] or LEAST.vcores)


class OtherScheduler(BadInput):
    """The cluster has another scheduler than the capacity scheduler."""

    @property
    def kind(self) -> str:
        """The scheduler's class, the first word of the problem."""
        return self.problem.partition(" ")[0]


class ResourceManager:
    """One cluster's ResourceManager, or the HA list of them.

    All methods raise Unreachable (BadAnswer, Standby) or Rejected (Missing); changes also Uncertain.
    ``pause`` sleeps seconds, ``clock`` returns seconds; both are only used while waiting for changes.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        poll_ms: int = 200,
    ) -> None:
        self._to = transport
        self._pause = pause
        self._clock = clock
        self._poll_ms = poll_ms

    # --- reading ------------------------------------------------------------------------------

    def identify(self) -> yarn.ClusterInfo:
        """Find the active one and return its description (``/info`` is answered by a standby, too).

        Raises BadInput for a Router of a federation.
        """
        try:
            info = self._to.read(f"{ROOT}/info", yarn.CLUSTER_INFO, unusable=_not_active)
            if not (clusters := info.clusters):
                return info
        except BadAnswer as problem:
            try:
                clusters = self._to.read(f"{ROOT}/info", yarn.FEDERATION).clusters
            except YarnctlError:
                raise problem from None
        names = ", ".join(one.name for one in clusters[:SHOWN_MAX]) or "none"
        said = f"this is a Router of a federation with {len(clusters)} sub-clusters: {names}"
        remedy = "run one daemon for each sub-cluster, with --rm set to its ResourceManager"
        raise BadInput(self._to.pinned or self._to.addresses[0], said, remedy)

    def whoami(self) -> yarn.UserInfo:
        """Return the user that it authenticates: the self-test of authentication (3.2.0 and later)."""
        return self._to.read(f"{ROOT}/userinfo", yarn.CALLER)

    def metrics(self) -> yarn.ClusterMetrics:
        """Return the cluster's counters: the cheapest read of its demand."""
        return self._to.read(f"{ROOT}/metrics", yarn.CLUSTER_METRICS)

    def root_queue(self) -> yarn.QueueInfo:
        """Return the capacity scheduler's tree of queues; raises OtherScheduler, by the answer's own type."""
        try:
            return self._to.read(f"{ROOT}/scheduler", yarn.SCHEDULER)
        except BadAnswer as problem:
            try:
                kind = self._to.read(f"{ROOT}/scheduler", yarn.SCHEDULER_KIND).kind
            except YarnctlError:
                raise problem from None
            if kind in ("", "capacityScheduler"):
                raise
            said = f"{kind[:1].upper()}{kind[1:60]} is not supported"
            where = self._to.pinned or self._to.addresses[0]
            raise OtherScheduler(where, said, USE_CAPACITY_SCHEDULER) from None

    def nodes(self) -> tuple[yarn.NodeRow, ...]:
        """Return the nodes that run containers now (no lost, unhealthy or decommissioned ones)."""
        rows = self._to.read(f"{ROOT}/nodes", yarn.NODES, {"states": "RUNNING,DECOMMISSIONING"})
        if {"RUNNING", "DECOMMISSIONING"}.issuperset(map(attrgetter("state"), rows)):
            return tuple(rows)
        return tuple(row for row in rows if row.state in ("RUNNING", "DECOMMISSIONING"))

    def node_labels(self) -> tuple[yarn.LabelRow, ...]:
        """Return the cluster's node labels."""
        return tuple(self._to.read(f"{ROOT}/get-node-labels", yarn.NODE_LABELS))

    def applications(self) -> tuple[yarn.AppInfo, ...]:
        """Return unfinished applications without their asks; ``uses`` has the pending sum of each."""
        query = {"states": "ACCEPTED,RUNNING", "deSelects": ",".join(HEAVY)}
        rows = self._to.read(f"{ROOT}/apps", yarn.APPLICATIONS, query)
        return tuple(row for row in rows if row.state in UNFINISHED)

    def tracked_applications(self) -> tuple[yarn.TrackedApplication, ...]:
        """Return where the pages of some running applications are (:data:`TRACKED_MAX` at most)."""
        query = {"states": "RUNNING", "limit": str(TRACKED_MAX), "deSelects": ",".join(HEAVY)}
        return tuple(self._to.read(f"{ROOT}/apps", yarn.TRACKED_APPLICATIONS, query))

    def tagged(self, tag: str) -> tuple[yarn.AppInfo, ...]:
        """Return the applications with this tag, also those that have ended, without their asks."""
        query = {"applicationTags": tag, "deSelects": ",".join(HEAVY)}
        rows = self._to.read(f"{ROOT}/apps", yarn.APPLICATIONS, query)
        return tuple(row for row in rows if tag.lower() in row.tags.lower().split(","))

    def application(self, application: str) -> yarn.AppInfo:
        """Return one application with its asks; Missing if it is not known (any more)."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}"
        return self._to.read(path, yarn.APPLICATION)

    def state(self, application: str) -> str:
        """Return the state, which may be an inner one (FINAL_SAVING, KILLING)."""
        word = self._to.read(f"{ROOT}/apps/{_id(_APPLICATION, application)}/state", yarn.APPLICATION_STATE)
        return word.state

    def application_end(self, application: str) -> yarn.ApplicationOutcome:
        """Return how an application ended; raises BadAnswer if the answer is about another one."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}"
        row = self._to.read(path, yarn.APPLICATION_END)
        if row.application != application:
            raise BadAnswer(
                explain(self._to.pinned + path, "the answer is about another application", application)
            )
        return row

    def ended_application(self, application: str) -> yarn.EndedApplication:
        """Return the usage of an application that has ended; Missing if it is not known (any more)."""
        return self._to.read(f"{ROOT}/apps/{_id(_APPLICATION, application)}", yarn.ENDED_APPLICATION)

    def ended_applications(self, since_ms: int, user: str = "") -> tuple[yarn.EndedApplication, ...]:
        """Return the kept applications (of ``user``) that succeeded since an instant, newest first."""
        query = {"states": "FINISHED", "finalStatus": "SUCCEEDED", "finishedTimeBegin": str(max(0, since_ms))}
        query |= {"deSelects": ",".join(HEAVY)} | ({"user": user} if user else {})
        rows = self._to.read(f"{ROOT}/apps", yarn.ENDED_APPLICATIONS, query)
        found = [row for row in rows if row.final_status == "SUCCEEDED" and user in ("", row.user)]
        return tuple(sorted(found, key=lambda row: (-row.ended_at_ms, row.application)))

    def billed_applications(self, since_ms: int) -> tuple[yarn.BilledApplication, ...]:
        """Return the applications that run or have ended since an instant, as far as they are kept."""
        rows = self._to.read(f"{ROOT}/apps", yarn.BILLED_APPLICATIONS, {"deSelects": ",".join(HEAVY)})
        return tuple(row for row in rows if not 0 < row.ended_at_ms < since_ms)

    def app_attempts(self, application: str) -> tuple[yarn.AppAttempt, ...]:
        """Return the attempts of the application's master, the oldest first."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}/appattempts"
        rows = self._to.read(path, yarn.APP_ATTEMPTS)
        named = (
            row if row.attempt else msgspec.structs.replace(row, attempt=_named(application, row))
            for row in rows
        )
        return tuple(sorted(named, key=lambda row: row.number))

    def containers(self, application: str, attempt: str) -> tuple[yarn.ContainerRow, ...]:
        """Return the live containers of one application attempt (all kinds; see ``views.kind_of``)."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}/appattempts/{_id(_APP_ATTEMPT, attempt)}"
        rows = self._to.read(f"{path}/containers", yarn.CONTAINERS)
        return tuple(row for row in rows if row.state != "COMPLETE")

    def configuration(self) -> dict[str, str]:
        """Return the daemon's effective configuration (``/conf``)."""
        rows = self._to.read("/conf", yarn.DAEMON_CONFIGURATION)
        return {row.name: row.value for row in rows}

    def scheduler_configuration(self) -> dict[str, str]:
        """Return the scheduler's own keys; Rejected (400) where its store cannot be changed."""
        rows = self._to.read(f"{ROOT}/scheduler-conf", yarn.SCHEDULER_CONFIGURATION)
        return {row.name: row.value for row in rows}

    def counted_resources(self) -> tuple[str, ...]:
        """Return the resources that the scheduler's calculator counts; raises Missing before 3.4.0."""
        told = self._to.read(f"{ROOT}/scheduler-overview", yarn.SCHEDULER_OVERVIEW)
        rows = told.resource_types.strip("[]").split(
            ","
        )  # [memory-mb (unit=Mi), vcores], or without brackets
        return tuple(name for row in rows if (name := row.partition("(")[0].strip()))

    def activities(self, node: str) -> NodeActivities:
        """Return the last record of a node's heartbeat, and have its next one recorded (facts, section 5.1).

        A node that is not recorded yet has no instant. Raises Missing or BadAnswer before 3.3.0.
        """
        return self._to.read(f"{ROOT}/scheduler/activities", ACTIVITIES, {"nodeId": node})

    # --- changing -----------------------------------------------------------------------------

    def signal(self, container: str, signal: Signal) -> None:
        """Send a signal through the node's next heartbeat. Success proves neither permission nor effect.

        The body of a success is empty (3.4) or not JSON (3.5) and is not read.
        """
        path = f"{ROOT}/containers/{_id(_CONTAINER, container)}/signal/{signal}"
        _done(self._to.change("POST", path))

    def kill(self, application: str, why: str = "", wait_ms: int = 0) -> str:
        """Kill an application; return its state after at most ``wait_ms`` (202: accepted, not done yet)."""
        body = {"state": "KILLED", "diagnostics": why} if why else {"state": "KILLED"}
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}/state"
        answer = _done(self._to.change("PUT", path, msgspec.json.encode(body)))
        state = _echoed_maximum(answer, yarn.APPLICATION_STATE, "state")
        until = self._clock() + wait_ms / 1000
        while state not in ENDED and self._clock() < until:
            self._pause(self._poll_ms / 1000)
            state = self.state(application)
        return str(state)

    def set_priority(self, application: str, priority: int, wait_ms: int = 5_000) -> None:
        """Set YARN's priority; Altered if it was capped (yarn.cluster.max-application-priority)."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}/priority"
        echo = self._put(path, {"priority": priority}, yarn.APPLICATION_PRIORITY, "priority")
        self._await(path, yarn.APPLICATION_PRIORITY, "priority", priority, echo, wait_ms)

    def move(self, application: str, queue: str, wait_ms: int = 5_000) -> None:
        """Move an application with its containers to another leaf queue."""
        path = f"{ROOT}/apps/{_id(_APPLICATION, application)}/queue"
        echo = self._put(path, {"queue": queue}, yarn.APPLICATION_QUEUE, "queue")
        self._await(path, yarn.APPLICATION_QUEUE, "queue", queue, echo, wait_ms)

    def set_scheduler(
        self,
        queue_settings: Mapping[str, Mapping[str, str]],
        cluster_settings: Mapping[str, str] | None = None,
    ) -> None:
        """Change queues (full path -> key -> value) and global keys; Rejected where immutable."""
        body = scheduler_change(queue_settings, cluster_settings or {})
        _done(self._to.change("PUT", f"{ROOT}/scheduler-conf", body, XML))

    def queue_share(self, path: str) -> tuple[float, float]:
        """Return a queue's configured capacity and maximum, as parts of its parent.

        Rejected where the store cannot be changed (its keys are not shown then), or where they are no
        percentages but absolute resources or weights.
        """
        return self._share(self.scheduler_configuration(), path)

    def queue_maximum(self, path: str) -> float | None:
        """Return a queue's configured maximum as a part of its parent; None: no queue. Raises Rejected."""
        keys = self.scheduler_configuration()
        parent, _, name = path.rpartition(".")
        beside = [one.strip() for one in keys.get(f"{CAPACITY}{parent}.queues", "").split(",")]
        if name not in beside and f"{CAPACITY}{path}.capacity" not in keys:
            return None
        return self._share(keys, path)[1]

    def _share(self, keys: Mapping[str, str], path: str) -> tuple[float, float]:
        values = [keys.get(f"{CAPACITY}{path}.{key}", other) for key, other in QUEUE_SHARE]
        try:
            capacity, maximum = (float(text) / 100 for text in values)
        except ValueError:
            story = f"the shares of {path} are not percentages ({', '.join(values)[:120]})"
            raise Rejected(explain(self._to.pinned + f"{ROOT}/scheduler-conf", story)) from None
        return capacity, 1.0 if maximum < 0 else maximum

    def set_queue_maximum(self, path: str, ratio: float) -> None:
        """Set a queue's maximum, as a part of its parent; Rejected where that cannot be changed."""
        self.set_scheduler({path: {QUEUE_SHARE[1][0]: f"{ratio * 100:.10g}"}})

    def preemption_key(self, path: str) -> str:
        """Return a queue's own ``disable_preemption`` ("": absent); Rejected where it is fixed."""
        return self.scheduler_configuration().get(f"{CAPACITY}{path}.{DISABLE}", "").strip().lower()

    def set_preemption_key(self, path: str, value: str) -> None:
        """Set a queue's own ``disable_preemption``; "" takes the key away. Rejected where it is fixed."""
        self.set_scheduler({path: {DISABLE: value}})

    def _put(self, path: str, body: Mapping[str, Any], decoder: OneDecoder[Any], field: str) -> Any:
        answer = _done(self._to.change("PUT", path, msgspec.json.encode(body)))
        return _echoed_maximum(answer, decoder, field) if answer.status == 200 else None

    def _await(
        self, path: str, decoder: OneDecoder[Any], field: str, asked: Any, echo: Any, wait_ms: int
    ) -> None:
        """Compare the echoed value with the requested one; after a 202 poll until it has settled."""
        until = self._clock() + wait_ms / 1000
        settled = echo is not None
        while not settled:
            echo = getattr(self._to.read(path, decoder), field)
            settled = _same(asked, echo) or self._clock() >= until
            if not settled:
                self._pause(self._poll_ms / 1000)
        if not _same(asked, echo):
            remedy = (
                "check yarn.cluster.max-application-priority"
                if field == "priority"
                else "check the queue's name"
            )
            story = explain(self._to.pinned + path, f"{field} became {echo!r}", f"{asked!r}", remedy)
            raise Altered(story, str(asked), str(echo))


def scheduler_change(queues: Mapping[str, Mapping[str, str]], cluster: Mapping[str, str]) -> bytes:
    """Write the body of PUT /scheduler-conf; XML is its documented form (facts, section 1.1)."""

    def entries(settings: Mapping[str, str]) -> str:
        return "".join(
            f"<entry><key>{escape(key)}</key><value>{escape(value)}</value></entry>"
            for key, value in sorted(settings.items())
        )

    updates = "".join(
        f"<update-queue><queue-name>{escape(path)}</queue-name><params>{entries(settings)}</params></update-queue>"
        for path, settings in sorted(queues.items())
    )
    general = f"<global-updates>{entries(cluster)}</global-updates>" if cluster else ""
    return f"<sched-conf>{updates}{general}</sched-conf>".encode()


def _not_active(info: yarn.ClusterInfo) -> str:
    return "" if info.ha_state in ("ACTIVE", "") else f"this ResourceManager is {info.ha_state}"


def _id(pattern: re.Pattern[str], given: str) -> str:
    if not pattern.fullmatch(given):
        raise BadInput(f"id {given[:60]!r}", "not an id of YARN", f"use the form {pattern.pattern}")
    return given


def _named(application: str, app_attempt: yarn.AppAttempt) -> str:
    return f"appattempt_{application.removeprefix('application_')}_{app_attempt.number:06d}"


def _done(answer: HttpAnswer) -> HttpAnswer:
    """Accept a success of a change; raises for a redirect or a page with status 200."""
    if answer.status >= 300:
        target = f" to {answer.location.partition('?')[0]}" if answer.location else ""
        raise BadAnswer(
            explain(
                answer.url,
                f"HTTP {answer.status}{target}",
                "200 or 202",
                "use the address of the active daemon",
            )
        )
    if "html" in answer.kind:
        raise Uncertain(
            explain(answer.url, "an HTML page", "200 or 202", "check whether the change was made")
        )
    return answer


def _echoed_maximum(answer: HttpAnswer, decoder: OneDecoder[Any], field: str) -> Any:
    """Return the value that the answer to a change repeats (None if it is 202 and empty)."""
    if answer.status == 202 and not answer.body.strip():
        return None
    return getattr(decoded(msgspec.structs.replace(answer, status=200), decoder), field)


def _same(asked: Any, got: Any) -> bool:
    """Return whether an echo equals the requested value; a queue is echoed by its path or its last part."""
    if isinstance(asked, str):
        return spells(str(got), asked) or spells(asked, str(got))
    return bool(asked == got)
