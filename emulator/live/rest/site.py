"""The site: one ``Web`` that is a ResourceManager to nodes, masters and clients.

The proxy to masters passes GET and PUT only, of the caller's headers Content-Type and Accept only, and bounds
an answer in size and time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape

from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import FINAL, AppRecord, AttemptRecord
from emulator.live.rest import cluster_info, configuration, scheduler_tree
from emulator.live.rest.activities import Activities
from emulator.live.rest.applications import Rows
from emulator.live.rest.changes import Changes, new_application, submit
from emulator.live.rest.dialect import JSON_KIND, Dialect, Version
from emulator.live.rest.job_history import HistoryRest
from emulator.live.wire import messages
from emulator.live.wire.hadoop_request import bad, caller, media, missing, words
from emulator.live.wire.http_client import Address, exchange
from emulator.live.wire.web import HttpProblem, Reply, Web, WebRequest, json_reply
from yarnctl.errors import BadInput

PASSED_ON = {b"content-type": "Content-Type", b"accept": "Accept"}
LARGEST_ANSWER_BYTES = 64 << 20
HTML = "text/html;charset=utf-8"


class Proxy:
    """Forwards to masters. ``local``: tracking URL -> the AM's web, for masters of this process."""

    def __init__(self, manager: LiveResourceManager, url: str, timeout_s: float = 60.0) -> None:
        self._manager = manager
        self._url = url
        self.timeout_s = timeout_s
        self.local: dict[str, Web] = {}

    async def forward(self, request: WebRequest) -> Reply:
        """Answer GET and PUT below /proxy."""
        name, _ = request.values
        app = self._manager.find(name)
        if app is None:
            return _error(404, f"Application {name[:60]} could not be found in the ResourceManager")
        attempt = app.attempt
        if app.state in FINAL or attempt is None or not attempt.registered or not attempt.tracking_url:
            return Reply(302, b"", HTML, (("Location", f"{self._url}/cluster/app/{app.id}"),))
        rest = request.raw_path.split("/", 3)
        path = "/" + (rest[3] if len(rest) > 3 else "")
        user = caller(request)
        headers = [(key, value) for key, value in request.headers if key in PASSED_ON]
        headers.append((b"cookie", f"proxy-user={user}".encode()))
        asked = WebRequest(request.method, path, request.raw_query, headers, request.body)
        local = self.local.get(attempt.tracking_url)
        if local is not None:
            return await local.answer(asked)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await _exchange(attempt.tracking_url, asked)
        except TimeoutError:
            return _error(504, f"the AM of {name} did not answer within {self.timeout_s:g} s")
        except (OSError, ValueError, BadInput) as problem:
            return _error(502, f"the AM of {name} cannot be reached: {type(problem).__name__}")

    def refuse(self, request: WebRequest) -> Reply:
        """Answer every other method: the proxy is a servlet, and refuses with its own message."""
        said = f"HTTP method {request.method[:20]} is not supported by this URL"
        told = {"servlet": "proxy", "message": said, "url": request.path[:300], "status": "405"}
        return json_reply(told, 405)

    def page(self, request: WebRequest) -> Reply:
        """Answer /cluster/app/{application}: what a browser is redirected to."""
        app = self._manager.find(request.values[0])
        if app is None:
            raise missing(f"app with id: {request.values[0][:60]} not found")
        return Reply(200, _page(app).encode(), HTML)


async def _exchange(base: str, request: WebRequest) -> Reply:
    """Ask the AM at a tracking URL. What was decoded into a line break never gets there (raw path and query).

    Raises OSError, ValueError, BadInput.
    """
    if not base.startswith("http://"):
        raise ValueError("the tracking URL is none of http")
    target = request.path + ("?" + request.raw_query.decode("latin-1") if request.raw_query else "")
    headers = {PASSED_ON.get(key, "Cookie"): value.decode("latin-1") for key, value in request.headers}
    address = Address(base, "tracking URL")
    status, found, body = await exchange(
        address, request.method, target, headers, request.body, LARGEST_ANSWER_BYTES
    )
    location = found.get("location")
    more = (("Location", location),) if location else ()
    return Reply(status, body, found.get("content-type", ""), more)


def _page(app: AppRecord) -> str:
    rows = {
        "Name": app.submission.name,
        "User": app.submission.user,
        "Queue": app.queue,
        "State": app.state,
        "Final status": app.final_status,
        "Diagnostics": app.diagnostics,
    }
    cells = "".join(f"<tr><th>{key}</th><td>{escape(value)}</td></tr>" for key, value in rows.items())
    return f"<!doctype html><title>Application {app.id}</title><h1>{app.id}</h1><table>{cells}</table>"


def _error(status: int, message: str) -> Reply:
    return Reply(status, f"<!doctype html><title>Error {status}</title><p>{escape(message)}".encode(), HTML)


ROOT = "/ws/v1/cluster"
NO_WRITER = "MessageBodyWriter not found for media type=application/json"
"""Why 3.5.0 cannot answer for a single attempt (observed; the list of attempts works)."""


class ManagerSite:
    """A live ResourceManager's REST at ``url``.

    ``web`` is the application to serve (its start lets the manager's time pass). ``proxy.local`` takes
    masters of this process. ``name_node``: base URL of WebHDFS (default: the same place). ``mutable``:
    whether the scheduler's configuration can be changed. ``conf`` are further entries of /conf.
    """

    def __init__(
        self,
        manager: LiveResourceManager,
        url: str,
        *,
        dialect: Version = "3.4",
        name_node: str = "",
        mutable: bool = True,
        conf: dict[str, str] | None = None,
    ) -> None:
        self.manager = manager
        self.url = url.rstrip("/")
        self.dialect = Dialect(dialect)
        self.scheduler_conf = configuration.SchedulerConfiguration(manager, mutable)
        self.proxy = Proxy(manager, self.url)
        self.web = Web()
        self.web.no = self.dialect.no
        self._rows = Rows(manager, self.dialect, self.url)
        self._recorded = Activities(manager)
        self._changes = Changes(manager, self.dialect, self.url)
        self._conf = configuration.DaemonConfiguration(
            manager, self.scheduler_conf, self.url, name_node or self.url, conf or {}
        )
        self.web.on_start.append(manager.start)
        self.web.on_stop.append(manager.stop)
        self._seam()
        self._cluster()
        self._applications()
        self._elsewhere()

    def _seam(self) -> None:
        call, manager = self.web.call, self.manager
        call(messages.PATHS["register_node"], messages.NodeRegistration, manager.register_node)
        call(messages.PATHS["node_heartbeat"], messages.NodeReport, manager.node_heartbeat)
        call(messages.PATHS["register_master"], messages.MasterRegistration, manager.register_master)
        call(messages.PATHS["allocate"], messages.Allocate, manager.allocate)
        call(messages.PATHS["unregister"], messages.MasterUnregistration, manager.unregister)

    def _cluster(self) -> None:
        add, natural, manager = self.web.add, self.dialect.natural, self.manager
        for path in (ROOT, f"{ROOT}/info"):
            add("GET", path, lambda _: natural("clusterInfo", cluster_info.info(manager, self.dialect)))
        add("GET", f"{ROOT}/userinfo", self._userinfo)
        add("GET", f"{ROOT}/metrics", self._metrics)
        add("GET", f"{ROOT}/scheduler", self._scheduler)
        add("GET", f"{ROOT}/scheduler/activities", self._activities)
        add("GET", f"{ROOT}/scheduler-overview", self._overview)
        add("GET", f"{ROOT}/nodes", self._nodes)
        add("GET", f"{ROOT}/nodes/{{node}}", self._node)
        add("GET", f"{ROOT}/get-node-labels", self._node_labels)
        add("GET", f"{ROOT}/get-node-to-labels", self._node_to_labels)
        add("GET", f"{ROOT}/scheduler-conf", self._get_scheduler_conf)
        add("PUT", f"{ROOT}/scheduler-conf", self._put_scheduler_conf)
        add("GET", "/stacks", self._stacks)
        add("POST", f"{ROOT}/containers/{{container}}/signal/{{command}}", self._changes.signal)

    def _applications(self) -> None:
        add, changes, rows = self.web.add, self._changes, self._rows
        apps = f"{ROOT}/apps"
        add("GET", apps, lambda request: self.dialect.listed("apps", "app", rows.listed(request)))
        add("POST", apps, lambda request: submit(self.manager, request, self.url))
        new = self.dialect.bare
        add("POST", f"{apps}/new-application", lambda request: new(new_application(self.manager, request)))
        one = f"{apps}/{{app}}"
        natural, with_app = self.dialect.natural, self._with_app
        add("GET", one, with_app(lambda app, request: natural("app", rows.one(app, request))))
        add("GET", f"{one}/state", with_app(lambda app, _: changes.state(app)))
        add("PUT", f"{one}/state", with_app(changes.put_state))
        add("GET", f"{one}/priority", with_app(lambda app, _: changes.priority(app)))
        add("PUT", f"{one}/priority", with_app(changes.put_priority))
        add("GET", f"{one}/queue", with_app(lambda app, _: changes.queue(app)))
        add("PUT", f"{one}/queue", with_app(changes.put_queue))
        listed = self.dialect.listed
        add(
            "GET",
            f"{one}/appattempts",
            with_app(lambda app, _: listed("appAttempts", "appAttempt", rows.attempts(app))),
        )
        add("GET", f"{one}/appattempts/{{attempt}}", with_app(self._attempt))
        add("GET", f"{one}/appattempts/{{attempt}}/containers", with_app(self._containers))
        add("GET", f"{one}/appattempts/{{attempt}}/containers/{{container}}", with_app(self._container))

    def _elsewhere(self) -> None:
        add = self.web.add
        add("GET", "/conf", self._conf.answer)
        add("GET", "/isActive", lambda _: Reply(200, b"", ""))
        HistoryRest(self.manager, self.dialect, self.web)
        add("GET PUT", "/proxy/{app}/{rest:path}", self.proxy.forward)
        add("POST DELETE", "/proxy/{app}/{rest:path}", self.proxy.refuse)
        add("GET", "/cluster/app/{app}", self.proxy.page)
        add("GET", "/cluster", self._front)
        add("GET", "/", self._front)

    def _with_app(self, function: Callable[[AppRecord, WebRequest], Reply]) -> Callable[[WebRequest], Reply]:
        """Find the application that the path names first."""

        def answer(request: WebRequest) -> Reply:
            name = request.values[0]
            if not _is_id(name, "application", 2):
                raise bad(f"Invalid ApplicationId: {name[:60]}")
            app = self.manager.find(name)
            if app is None:
                raise missing(f"app with id: {name} not found")
            return function(app, request)

        return answer

    def _userinfo(self, request: WebRequest) -> Reply:
        return self.dialect.mapped({"rmLoginUser": "yarn", "requestedUser": caller(request)})

    def _metrics(self, _: WebRequest) -> Reply:
        self.manager.now_ms()
        return self.dialect.natural("clusterMetrics", cluster_info.metrics(self.manager))

    def _scheduler(self, _: WebRequest) -> Reply:
        self.manager.now_ms()
        told = {"schedulerInfo": scheduler_tree.scheduler(self.manager, self.scheduler_conf)}
        return self.dialect.natural("scheduler", told)

    def _activities(self, request: WebRequest) -> Reply:
        self.manager.now_ms()
        return self.dialect.natural("activities", self._recorded.answer(request.query.get("nodeId", "")))

    def _overview(self, _: WebRequest) -> Reply:
        self.manager.now_ms()
        told = scheduler_tree.overview(self.manager)
        return self.dialect.mapped(told if self.dialect.version == "3.4" else {"scheduler": told})

    def _nodes(self, request: WebRequest) -> Reply:
        self.manager.now_ms()
        states = frozenset(state.upper() for state in words(request, "states"))
        unknown = states - set(cluster_info.NODE_STATES)
        if unknown:
            raise bad(f"No enum constant org.apache.hadoop.yarn.api.records.NodeState.{min(unknown)[:40]}")
        return self.dialect.listed("nodes", "node", cluster_info.nodes(self.manager, self.dialect, states))

    def _node(self, request: WebRequest) -> Reply:
        name = request.values[0]
        node = self.manager.nodes.get(name) or self.manager.lost.get(name)
        if node is None:
            raise missing(f"nodeId, {name[:100]}, is not found")
        held = cluster_info.containers_by_node(self.manager)[name]
        row = cluster_info.node_row(self.manager, node, self.dialect, held, name not in self.manager.nodes)
        return self.dialect.natural("node", row)

    def _node_labels(self, _: WebRequest) -> Reply:
        self.manager.now_ms()
        answer = {"nodeLabelInfo": cluster_info.labels(self.manager)}
        return self.dialect.mapped(answer if self.dialect.version == "3.4" else {"nodeLabelsInfo": answer})

    def _node_to_labels(self, _: WebRequest) -> Reply:
        self.manager.now_ms()
        rows = {row["name"]: row for row in cluster_info.labels(self.manager)}
        entries = [
            {"key": node.id, "value": {"nodeLabelInfo": [rows[node.actor.label]]}}
            for node in self.manager.nodes.values()
            if node.actor.label
        ]
        answer = {"nodeToLabels": {"entry": entries} if entries else {}}
        return self.dialect.mapped(answer if self.dialect.version == "3.4" else {"nodeToLabelsInfo": answer})

    def _attempt_of(self, app: AppRecord, request: WebRequest) -> AttemptRecord:
        name = request.values[1]
        if not _is_id(name, "appattempt", 3):
            raise bad(f"Invalid AppAttemptId: {name[:60]}")
        attempt = next((one for one in app.attempts if one.id == name), None)
        if attempt is None:
            raise missing(f"app attempt with id: {name} not found")
        return attempt

    def _attempt(self, app: AppRecord, request: WebRequest) -> Reply:
        row = self._rows.attempt(self._attempt_of(app, request))
        if self.dialect.version == "3.5":
            raise HttpProblem(503, "InternalServerErrorException", NO_WRITER)
        return self.dialect.mapped(row)

    def _containers(self, app: AppRecord, request: WebRequest) -> Reply:
        if request.values[1] == self._rows.scheduled(app):
            return self.dialect.mapped({})
        rows = self._rows.containers(app, self._attempt_of(app, request))
        return self.dialect.mapped({"container": rows})

    def _container(self, app: AppRecord, request: WebRequest) -> Reply:
        rows = self._rows.containers(app, self._attempt_of(app, request))
        row = next((one for one in rows if one["containerId"] == request.values[2]), None)
        if row is None:
            raise missing(f"container with id: {request.values[2][:60]} not found")
        return self.dialect.mapped(row if self.dialect.version == "3.4" else {"container": row})

    def _get_scheduler_conf(self, _: WebRequest) -> Reply:
        if not self.scheduler_conf.mutable:
            raise HttpProblem(400, "BadRequestException", configuration.IMMUTABLE)
        rows = [{"name": key, "value": value} for key, value in sorted(self.scheduler_conf.keys.items())]
        return self.dialect.mapped({"property": rows})

    def _put_scheduler_conf(self, request: WebRequest) -> Reply:
        caller(request)
        if not self.scheduler_conf.mutable:
            raise HttpProblem(400, "BadRequestException", configuration.IMMUTABLE)
        kind = media(request)
        if kind not in ("application/json", "application/xml", "text/xml"):
            raise HttpProblem(
                415, "NotSupportedException", "the body must be application/xml or application/json"
            )
        self.scheduler_conf.change(configuration.read_changes(request.body, kind))
        return Reply(200, configuration.APPLIED.encode(), JSON_KIND)

    def _stacks(self, _: WebRequest) -> Reply:
        """Answer with the one thread that shows whether YARN's own preemption runs."""
        names = ["main"]
        if self.manager.own_preemption is not None:
            names.append("SchedulingMonitor (ProportionalCapacityPreemptionPolicy)")
        rows = (f"Thread {number} ({name}):\n  State: WAITING\n" for number, name in enumerate(names, 1))
        dump = f"Process Thread Dump: \n{len(names)} active threads\n{''.join(rows)}"
        return Reply(200, dump.encode(), "text/plain;charset=utf-8")

    def _front(self, request: WebRequest) -> Reply:
        if "json" in request.header("accept"):
            return json_reply({"service": "yarn-emulator ResourceManager", "rest": f"{self.url}{ROOT}/info"})
        page = (
            "<!doctype html><title>yarn-emulator</title><h1>A ResourceManager of the YARN emulator</h1>"
            f'<p><a href="{ROOT}/info">info</a> <a href="{ROOT}/scheduler">scheduler</a>'
            f' <a href="{ROOT}/nodes">nodes</a> <a href="{ROOT}/apps">apps</a> <a href="/conf">conf</a>'
        )
        return Reply(200, page.encode(), HTML)


def _is_id(text: str, kind: str, numbers: int) -> bool:
    head, *parts = text.split("_")
    return head == kind and len(parts) == numbers and all(one.isascii() and one.isdigit() for one in parts)
