"""GET /apps and what is below it (facts, sections 1.1 and 1.2); read only.

What a version leaves out just after submission is left out by the dialect's version (facts 11: no
resourceInfo in 3.4, runningContainers -1 in 3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from emulator.cluster.entities import Ask, Container
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import AppRecord, AttemptRecord, ContainerRecord
from emulator.live.rest.cluster_info import requested, reservations, vector
from emulator.live.rest.dialect import CONSTANT_FIELDS, Dialect
from emulator.live.rest.scheduler_tree import usage
from emulator.live.wire.hadoop_request import bad, whole, words
from emulator.live.wire.web import WebRequest
from yarnctl.units import NOTHING, Resources, plus

STATES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED")
FINAL_STATES = ("UNDEFINED", "SUCCEEDED", "FAILED", "KILLED", "ENDED")
DESELECTS = (
    "resourceRequests",
    "timeouts",
    "appNodeLabelExpression",
    "amNodeLabelExpression",
    "resourceInfo",
)
RACK = "/default-rack"
LOCAL_PRIORITIES = (5, 20)
"""Maps: their asks name nodes and racks, and the rows repeat the same containers."""


class Rows:
    """Makes rows; the base URL is the ResourceManager's own (tracking URLs point at its proxy)."""

    def __init__(self, manager: LiveResourceManager, dialect: Dialect, url: str) -> None:
        self._manager = manager
        self._dialect = dialect
        self._url = url

    def listed(self, request: WebRequest) -> list[dict[str, Any]]:
        """Return the applications that a query asks for, the oldest first."""
        hidden = _hidden(request)
        _sane(request)
        manager = self._manager
        manager.now_ms()
        reserved = reservations(manager.nodes.values())
        apps = [*manager.finished.values(), *manager.applications.values()]
        chosen = [app for app in sorted(apps, key=lambda one: one.number) if self._wanted(app, request)]
        limit = whole(request, "limit", len(chosen) or 1)
        if limit < 1:
            raise bad("limit value must be greater then 0")
        return [self.row(app, hidden, reserved) for app in chosen[:limit]]

    def one(self, app: AppRecord, request: WebRequest) -> dict[str, Any]:
        """Return one application."""
        self._manager.now_ms()
        return self.row(app, _hidden(request), reservations(self._manager.nodes.values()))

    def _wanted(self, app: AppRecord, request: WebRequest) -> bool:
        query = request.query
        states, finals = _states(request)
        kinds = {kind.strip().lower() for kind in words(request, "applicationTypes")}
        tags = {tag.strip().lower() for tag in words(request, "applicationTags")}
        began, ended = self._wall(app.submitted_at_ms), self._wall(app.finished_at_ms)
        far = 1 << 62
        return (
            (not states or app.state in states)
            and (not finals or app.final_status in finals)
            and (not query.get("user") or query["user"] == app.submission.user)
            and (not query.get("queue") or query["queue"].removeprefix("root.") == app.queue)
            and (not query.get("name") or query["name"] == app.submission.name)
            and (not kinds or app.submission.kind.lower() in kinds)
            and (not tags or not tags.isdisjoint(app.submission.tags))
            and whole(request, "startedTimeBegin", 0) <= began <= whole(request, "startedTimeEnd", far)
            and whole(request, "finishedTimeBegin", 0) <= ended <= whole(request, "finishedTimeEnd", far)
        )

    def _wall(self, at_ms: int) -> int:
        return self._manager.driver.wall_of(at_ms) if at_ms else 0

    def row(
        self, app: AppRecord, hidden: frozenset[str], reserved: dict[int, tuple[int, int, int]]
    ) -> dict[str, Any]:
        """Return AppInfo."""
        row = self._always(app) | self._with_right(app, reserved)
        if self._dialect.version == "3.4":  # 3.5 leaves an empty map out
            row["preemptedResourceSecondsMap"] = {}
        if "timeouts" not in hidden:
            unlimited = {"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}
            row["timeouts"] = {"timeout": [unlimited]}
        label = app.actor.label
        if "amNodeLabelExpression" not in hidden:
            row["amNodeLabelExpression"] = label
        if label and "appNodeLabelExpression" not in hidden:
            row["appNodeLabelExpression"] = label
        if "resourceRequests" not in hidden and not app.over and (asked := self._requests(app)):
            row["resourceRequests"] = asked
        just_accepted = not app.attempts and not app.over
        if (
            "resourceInfo" not in hidden
            and not app.over
            and not (just_accepted and self._dialect.version == "3.4")
        ):
            row["resourceInfo"] = self._resource_info(app, reserved)
        if just_accepted and self._dialect.version == "3.5":
            row["runningContainers"] = -1
        return row

    def _always(self, app: AppRecord) -> dict[str, Any]:
        submission, attempt, now_ms = app.submission, app.attempt, self._manager.driver.kernel.now_ms
        tracked = attempt is not None and attempt.registered
        return CONSTANT_FIELDS["appInfo"] | {
            "id": app.id,
            "user": submission.user,
            "name": submission.name or "N/A",
            "queue": f"root.{app.queue}",
            "state": app.state,
            "finalStatus": app.final_status,
            "progress": round(app.progress_ratio * 100, 4),
            "trackingUI": "History" if app.over else "ApplicationMaster" if tracked else "UNASSIGNED",
            "trackingUrl": self._url + (f"/cluster/app/{app.id}" if app.over else f"/proxy/{app.id}/"),
            "diagnostics": self._diagnostics(app),
            "clusterId": self._manager.epoch,
            "applicationType": submission.kind,
            "applicationTags": ",".join(submission.tags),
            "priority": app.shown_priority,
            "startedTime": self._wall(app.submitted_at_ms),
            "launchTime": self._wall(app.launched_at_ms),
            "finishedTime": self._wall(app.finished_at_ms),
            "elapsedTime": max(0, self._wall(app.finished_at_ms or now_ms) - self._wall(app.submitted_at_ms)),
            "resourceSecondsMap": self._dialect.numbers({"vcores": app.vcore_ms // 1000}),
        }

    def _diagnostics(self, app: AppRecord) -> str:
        """Return why it waits, or why it ended; clients recognise "not yet activated" by this text."""
        if app.over or app.attempts:
            return app.diagnostics
        if app.actor.activated:
            return (
                "Application is Activated, waiting for resources to be assigned for AM. "
                " Details : AM Partition = <DEFAULT_PARTITION> ; "
                f"AM Resource Request = {_text(app.submission.am_size)} ; "
            )
        queue = app.actor.queue
        most = Resources(queue.am_mib, int(queue.maximum_vcores * queue.config.am_ratio))
        limit = _text(self._manager.actor.scheduler.shown(most))
        return (
            "Application is added to the scheduler and is not yet activated. "
            f"Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; "
            f"AM Resource Request = {_text(app.submission.am_size)}; Queue Resource Limit for AM = {limit}; "
            f"User AM Resource Limit of the queue = {limit}; "
            f"Queue AM Resource Usage = <memory:{queue.am_used_mib}, vCores:0>; "
        )

    def _with_right(self, app: AppRecord, reserved: dict[int, tuple[int, int, int]]) -> dict[str, Any]:
        """Return what needs VIEW_APP; what is over holds -1 of everything, as in YARN."""
        attempt, actor = app.attempt, app.actor
        over = app.over and not app.containers  # its AM may stay a while
        app.count(self._manager.driver.kernel.now_ms)
        _, reserved_mib, reserved_vcores = reserved.get(app.number, (0, 0, 0))
        total_mib = self._manager.actor.total.memory_mib
        guaranteed_mib = actor.queue.guaranteed.memory_mib
        row: dict[str, Any] = {
            "allocatedMB": -1 if over else actor.used_mib,
            "allocatedVCores": -1 if over else actor.used_vcores,
            "reservedMB": -1 if over else reserved_mib,
            "reservedVCores": -1 if over else reserved_vcores,
            "runningContainers": -1 if over else actor.containers,
            "memorySeconds": app.mib_ms // 1000,
            "vcoreSeconds": app.vcore_ms // 1000,
            "queueUsagePercentage": _percent(0 if over else actor.used_mib, guaranteed_mib),
            "clusterUsagePercentage": _percent(0 if over else actor.used_mib, total_mib),
        }
        if attempt is not None:
            row |= {
                "amContainerLogs": _logs(attempt, app),
                "amHostHttpAddress": attempt.node.http_address,
                "masterNodeId": attempt.node.id,
            }
            if app.state not in ("FAILED", "KILLED"):
                row["amRPCAddress"] = attempt.tracking_url.partition("://")[2].partition("/")[0]
        return row

    def _resource_info(self, app: AppRecord, reserved: dict[int, tuple[int, int, int]]) -> dict[str, Any]:
        actor = app.actor
        types = self._manager.actor.scheduler.types
        labels = {actor.label, *(ask.label or "" for ask in actor.asks)}
        if labels := (labels | {each.actor.node.label for each in app.containers.values()}) - {""}:
            return {"resourceUsagesByPartition": _by_partition(app, labels, types)}
        pending = vector(*requested(actor.asks), types)
        _, reserved_mib, reserved_vcores = reserved.get(app.number, (0, 0, 0))
        am = vector(*app.submission.am_size) if app.attempts else vector(0, 0)
        rows = usage(
            actor.used_mib,
            actor.used_vcores,
            pending=pending,
            reserved=vector(reserved_mib, reserved_vcores),
            amUsed=am,
        )
        if types:
            held = _others(each.actor for each in app.containers.values())
            rows[0]["used"] = vector(actor.used_mib, actor.used_vcores, held, types)
            if isinstance(scheduler := self._manager.actor.scheduler, TreeScheduler):
                kept = scheduler.kept_for(actor)
                rows[0]["reserved"] = vector(kept[0], kept[1], kept, types)
        return {"resourceUsagesByPartition": rows}

    def _requests(self, app: AppRecord) -> list[dict[str, Any]]:
        """Return the rows of all asks; what is met has none (seen in 3.4.2 and 3.5.0)."""
        names = (node.id.rpartition(":")[0] or node.id for node in self._manager.nodes.values())
        host = next(names, "localhost")
        types = self._manager.actor.scheduler.types
        return [
            line
            for ask in app.actor.asks
            for line in _rows(ask, vector(ask.memory_mib, ask.vcores, ask.others, types), host)
        ]

    # --- attempts and containers --------------------------------------------------------------

    def scheduled(self, app: AppRecord) -> str:
        """Return the id of the attempt that waits for its AM's container, "" if none does."""
        last = app.attempt
        if app.over or (last is not None and last.state in ("LAUNCHED", "RUNNING")):
            return ""
        return f"{app.id.replace('application', 'appattempt', 1)}_{len(app.attempts) + 1:06d}"

    def attempts(self, app: AppRecord) -> list[dict[str, Any]]:
        """Return the application's attempts, the newest first, as YARN lists them."""
        return self._scheduled(app) + [
            {
                "id": attempt.number,
                "startTime": self._wall(attempt.started_at_ms),
                "finishedTime": self._wall(attempt.finished_at_ms),
                "containerId": attempt.container,
                "nodeHttpAddress": attempt.node.http_address,
                "nodeId": attempt.node.id,
                "logsLink": _logs(attempt, app),
                "blacklistedNodes": ",".join(sorted(app.actor.blacklist)),
                "nodesBlacklistedBySystem": "",
                "appAttemptId": attempt.id,
                "appAttemptState": attempt.state,
                "exportPorts": "",
            }
            for attempt in reversed(app.attempts)
        ]

    def _scheduled(self, app: AppRecord) -> list[dict[str, Any]]:
        """Return the row of an attempt that has no container yet."""
        name = self.scheduled(app)
        row = {
            "id": len(app.attempts) + 1,
            "startTime": self._wall(app.submitted_at_ms),
            "finishedTime": 0,
            "containerId": "",
            "nodeHttpAddress": "",
            "nodeId": "",
            "logsLink": "",
            "blacklistedNodes": "",
            "appAttemptId": name,
            "appAttemptState": "SCHEDULED",
            "exportPorts": "",
        }
        return [row] if name else []

    def attempt(self, attempt: AttemptRecord) -> dict[str, Any]:
        """Return one attempt, in the other form that YARN has for it."""
        address = attempt.tracking_url.partition("://")[2].partition("/")[0]
        host, _, port = address.rpartition(":")
        application = attempt.id.replace("appattempt", "application").rpartition("_")[0]
        return {
            "appAttemptId": attempt.id,
            "host": host or "N/A",
            "rpcPort": int(port) if port.isdigit() else -1,
            "trackingUrl": f"{self._url}/proxy/{application}/",
            "originalTrackingUrl": attempt.tracking_url or "N/A",
            "diagnosticsInfo": attempt.diagnostics,
            "appAttemptState": attempt.state,
            "amContainerId": attempt.container,
            "startedTime": self._wall(attempt.started_at_ms),
            "finishedTime": self._wall(attempt.finished_at_ms),
        }

    def containers(self, app: AppRecord, attempt: AttemptRecord) -> list[dict[str, Any]]:
        """Return the live containers of one attempt."""
        self._manager.now_ms()
        return [
            self._container(held, app) for held in app.containers.values() if held.attempt == attempt.number
        ]

    def _container(self, container: ContainerRecord, app: AppRecord) -> dict[str, Any]:
        actor, node = container.actor, container.node
        started = self._wall(actor.granted_at_ms)
        types = self._manager.actor.scheduler.types
        return {
            "containerId": container.id,
            "allocatedMB": actor.memory_mib,
            "allocatedVCores": actor.vcores,
            "assignedNodeId": node.id,
            "priority": actor.priority,
            "startedTime": started,
            "finishedTime": 0,
            "elapsedTime": max(0, self._wall(self._manager.driver.kernel.now_ms) - started),
            "logUrl": f"http://{node.http_address}/node/containerlogs/{container.id}/{app.submission.user}",
            "containerExitStatus": 0,
            "containerState": "RUNNING" if container.acquired else "ALLOCATED",
            "nodeHttpAddress": f"http://{node.http_address}",
            "nodeId": node.id,
            "allocatedResources": self._dialect.numbers(
                {"memory-mb": actor.memory_mib, "vcores": actor.vcores}
                | {name: sum(actor.others[at : at + 1]) for at, name in enumerate(types, 2)}
            ),
            "exposedPorts": "",
        }


def _others(containers: Iterable[Container]) -> Resources:
    """Return what containers hold of the scheduler's other resource types."""
    found = NOTHING
    for each in containers:
        found = plus(found, each.others)
    return found


def _by_partition(app: AppRecord, labels: set[str], types: Sequence[str]) -> list[dict[str, Any]]:
    """Return what an application holds and requests in each partition; its master is in its own."""
    rows = []
    for label in ("", *sorted(labels)):
        held = [each.actor for each in app.containers.values() if each.actor.node.label == label]
        memory_mib, vcores = sum(each.memory_mib for each in held), sum(each.vcores for each in held)
        asks = [ask for ask in app.actor.asks if ask.label == label]
        more = {"pending": vector(*requested(asks), types)} if asks or label == app.actor.label else {}
        if label == app.actor.label and app.attempts:
            more["amUsed"] = vector(*app.submission.am_size)
        row = usage(memory_mib, vcores, **more)[0] | {"partitionName": label}
        row["used"] = vector(memory_mib, vcores, _others(held), types)
        rows.append(row)
    return rows


def _rows(ask: Ask, size: dict[str, Any], host: str) -> list[dict[str, Any]]:
    """Return an ask's rows; only the one for ``*`` counts, the others repeat it."""
    places = ["*", RACK, host] if ask.priority in LOCAL_PRIORITIES else ["*"]
    return [
        {
            "priority": ask.priority,
            "allocationRequestId": -1,
            "resourceName": place,
            "capability": size,
            "numContainers": ask.count,
            "relaxLocality": True,
            "nodeLabelExpression": ask.label,
            "executionTypeRequest": {"executionType": "GUARANTEED", "enforceExecutionType": False},
            "enforceExecutionType": False,
        }
        for place in places
    ]


def _states(request: WebRequest) -> tuple[set[str], set[str]]:
    """Return the states and the final states that are asked for; empty: all."""
    states = {state.upper() for state in words(request, "states") | words(request, "state")}
    return states, {state.upper() for state in words(request, "finalStatus")}


def _sane(request: WebRequest) -> None:
    """Refuse a query without sense, whether or not there are applications that it would be held against."""
    states, finals = _states(request)
    _only(states, STATES, "application-state")
    _only(finals, FINAL_STATES, "final application status")
    for name in ("startedTimeBegin", "startedTimeEnd", "finishedTimeBegin", "finishedTimeEnd"):
        whole(request, name, 0)


def _hidden(request: WebRequest) -> frozenset[str]:
    hidden = words(request, "deSelects")
    unknown = hidden - set(DESELECTS)
    if unknown:
        raise bad(
            f"Invalid deSelects string {min(unknown)[:60]} specified. It should be one of {list(DESELECTS)}"
        )
    return hidden


def _only(given: set[str], allowed: tuple[str, ...], what: str) -> None:
    unknown = given - set(allowed)
    if unknown:
        raise bad(f"Invalid {what} {min(unknown)[:60]} specified. It should be one of {list(allowed)}")


def _text(size: tuple[int, ...]) -> str:
    return f"<memory:{size[0]}, vCores:{size[1]}>"


def _percent(part: int, total: int) -> float:
    return round(100 * part / total, 4) if total else 0.0


def _logs(attempt: AttemptRecord, app: AppRecord) -> str:
    return f"http://{attempt.node.http_address}/node/containerlogs/{attempt.container}/{app.submission.user}"
