"""Submitting an application and altering it, and container signals (facts, section 1.1), as YARN answers.

A kill is 202 first and 200 when it was done already, a priority is capped without a message, a signal's
success proves nothing and its body is no JSON. The job itself is text in one environment entry of the AM's
container and passes unread, but for a look whether it is JSON: it travels on inside JSON.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import msgspec
from msgspec import field

from emulator.cluster.entities import Application, LeafQueue
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.manager.service import LiveResourceManager, RequestRefused
from emulator.live.manager.state import AppRecord, Submission
from emulator.live.rest.cluster_info import vector
from emulator.live.rest.dialect import JSON_KIND, Dialect
from emulator.live.wire.hadoop_request import bad, body_of, caller
from emulator.live.wire.messages import Signal
from emulator.live.wire.web import HttpProblem, Reply, WebRequest, json_reply
from emulator.scenario.scheduler_file import leaf_of
from yarnctl.units import Resources

ENTRY = "YARN_EMULATOR_JOB"
MOST_TAGS, LONGEST_TAG = 10, 100
LARGEST_BODY = 12 << 20


class _Pair(msgspec.Struct):
    key: str
    value: str = ""


class _Environment(msgspec.Struct):
    entry: list[_Pair] | _Pair = []


class _Launch(msgspec.Struct):
    environment: _Environment = field(default_factory=_Environment)


class _Size(msgspec.Struct):
    memory: int = 1024
    vcores: int = field(name="vCores", default=1)


class _Tags(msgspec.Struct):
    tag: list[str] | str = []


class Context(msgspec.Struct):
    """ApplicationSubmissionContextInfo: the fields that count here."""

    application: str = field(name="application-id", default="")
    name: str = field(name="application-name", default="")
    kind: str = field(name="application-type", default="YARN")
    queue: str = "default"
    priority: int = 0
    tags: _Tags | list[str] | str | None = field(name="application-tags", default=None)
    size: _Size = field(name="resource", default_factory=_Size)
    most_attempts: int = field(name="max-app-attempts", default=0)
    label: str = field(name="app-node-label-expression", default="")
    launch: _Launch = field(name="am-container-spec", default_factory=_Launch)


def new_application(manager: LiveResourceManager, request: WebRequest) -> dict[str, Any]:
    """Return a new id."""
    caller(request)
    return {
        "application-id": manager.new_application(),
        "maximum-resource-capability": vector(*manager.largest_node()),
    }


def submit(manager: LiveResourceManager, request: WebRequest, url: str) -> Reply:
    """Accept an application: 202 and where it is."""
    user = caller(request)
    context = body_of(request, Context, LARGEST_BODY)
    if not context.application:
        raise bad("Error could not parse application id")
    size = Resources(context.size.memory, context.size.vcores)
    if size.memory_mib <= 0 or size.vcores <= 0:
        raise bad(f"the AM's resource {size} is not positive")
    submission = Submission(
        application=context.application,
        name=context.name[:1000],
        kind=context.kind[:20],
        queue=context.queue,
        user=user,
        priority=context.priority,
        tags=_tags(context.tags),
        am_size=size,
        label=context.label.strip(),
        max_attempts=context.most_attempts,
        job=_job(context.launch.environment.entry),
    )
    try:
        app = manager.submit(submission)
    except RequestRefused as why:
        raise bad(str(why)) from None
    where = f"{url}/ws/v1/cluster/apps/{app.id}"
    return json_reply(None, 202)._replace(body=b"", kind=JSON_KIND, headers=(("Location", where),))


def _tags(given: _Tags | list[str] | str | None) -> tuple[str, ...]:
    """Return the tags as YARN keeps them: lower case, each once, sorted."""
    if isinstance(given, _Tags):
        given = given.tag
    rows = [] if given is None else given.split(",") if isinstance(given, str) else given
    tags = sorted({tag.strip().lower() for tag in rows if tag.strip()})
    if len(tags) > MOST_TAGS:
        raise bad(f"Too many applicationTags, a maximum of only {MOST_TAGS} are allowed!")
    for tag in tags:
        if len(tag) > LONGEST_TAG:
            raise bad(f"Tag {tag[:40]}... is too long, maximum allowed length of a tag is {LONGEST_TAG}")
        if not tag.isascii() or "," in tag:
            raise bad("A tag can only have ASCII characters!")
    return tuple(tags)


def _job(entries: list[_Pair] | _Pair) -> msgspec.Raw:
    """Return the job's text; an application without one has the empty job."""
    rows = entries if isinstance(entries, list) else [entries]
    text = next((row.value for row in rows if row.key == ENTRY), "{}").encode()
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise bad(f"{ENTRY} is not JSON: {error}") from None
    return msgspec.Raw(text)


SIGNALS = get_args(Signal)


class StateBody(msgspec.Struct, frozen=True):
    """PUT .../state."""

    state: str
    diagnostics: str = ""


class PriorityBody(msgspec.Struct, frozen=True):
    """PUT .../priority."""

    priority: object = 0

    @property
    def number(self) -> int:
        """The priority; YARN takes what is no number for 0."""
        given = self.priority
        if isinstance(given, str):
            given = int(given) if re.fullmatch(r"-?[0-9]{1,9}", given) else 0
        return given if isinstance(given, int) and abs(given) < 1 << 31 else 0


class QueueBody(msgspec.Struct, frozen=True):
    """PUT .../queue."""

    queue: str


class Changes:
    """The writable part of an application. ``url`` is the ResourceManager's base URL."""

    def __init__(self, manager: LiveResourceManager, dialect: Dialect, url: str) -> None:
        self._manager = manager
        self._dialect = dialect
        self._url = url

    def state(self, app: AppRecord) -> Reply:
        """Answer GET .../state: the ResourceManager's inner state name."""
        return self._dialect.mapped({"state": self.state_word(app)})

    def state_word(self, app: AppRecord) -> str:
        """Return RMAppState: FINISHING while the AM of a finished application still holds its container."""
        return "FINISHING" if app.state == "FINISHED" and app.containers else app.state

    def put_state(self, app: AppRecord, request: WebRequest) -> Reply:
        """Kill: 202 with the address to poll, or 200 if it had ended."""
        user = caller(request)
        body = body_of(request, StateBody)
        if body.state == self.state_word(app):
            return self._dialect.mapped({"state": body.state})  # nothing to do, whatever it is
        if body.state != "KILLED":
            raise bad("Only 'KILLED' is allowed as a target state.")
        if app.over:
            return self._dialect.mapped({"state": app.state})
        before = app.state
        why = body.diagnostics[:1024]
        self._manager.kill(app, f"{why} Application {app.id} was killed by user {user} at 127.0.0.1".lstrip())
        where = (("Location", f"{self._url}/ws/v1/cluster/apps/{app.id}/state"),)
        return self._dialect.mapped({"state": before}, 202, where)

    def priority(self, app: AppRecord) -> Reply:
        """Answer GET .../priority."""
        return self._dialect.bare({"priority": app.shown_priority})

    def put_priority(self, app: AppRecord, request: WebRequest) -> Reply:
        """Set the priority, capped to the cluster's largest without a message; below 0 it is as it is.

        The priority of the submission is shown, and the scheduler keeps the one before (facts/hadoop, 2).
        """
        caller(request)
        wanted = body_of(request, PriorityBody).number
        if not app.over:
            self._manager.now_ms()
            capped = min(wanted, self._manager.settings.max_priority)
            if capped != app.submitted_priority:
                self._manager.actor.scheduler.reprioritise(app.actor, capped)
            app.shown_priority = capped
        return self.priority(app)

    def queue(self, app: AppRecord) -> Reply:
        """Answer GET .../queue."""
        return self._dialect.bare({"queue": app.queue})

    def put_queue(self, app: AppRecord, request: WebRequest) -> Reply:
        """Move the application with what it holds."""
        caller(request)
        name = body_of(request, QueueBody).queue.removeprefix("root.")
        queues = self._manager.actor.scheduler.queues
        target = queues.get(leaf_of(name, queues) or "")
        if target is None:
            said = (
                f"The specified Queue: {name[:100]} doesn't exist" if self._dialect.version == "3.5" else ""
            )
            raise HttpProblem(503, "UndeclaredThrowableException", said)
        if app.over:
            return Reply(400, f"App in {app.state} state cannot be moved.".encode(), JSON_KIND)
        self._manager.now_ms()
        move_application(self._manager.actor, app.actor, target)
        app.queue = target.name
        return self.queue(app)

    def signal(self, request: WebRequest) -> Reply:
        """Have a container's node send a signal at its next heartbeat."""
        container, signal = request.values
        if signal not in SIGNALS:
            said = f"Invalid command: {signal[:60]}, valid commands are: [{', '.join(SIGNALS)}]"
            return Reply(400, said.encode(), JSON_KIND)  # text that claims to be JSON, as all of these
        try:
            self._manager.signal(container, signal)  # type: ignore[arg-type]  # one of SIGNALS
        except RequestRefused as why:
            return Reply(500, str(why).encode(), JSON_KIND)
        if self._dialect.version == "3.4":
            return Reply(200, b"", JSON_KIND)
        return Reply(200, b"signal success", JSON_KIND)


def move_application(manager: ResourceManager, app: Application, leaf: LeafQueue) -> None:
    """Move an application to another queue, with its containers and asks.

    It is activated there by the target's own limit for masters. The sums of both queues stay those of their
    applications: the scheduler itself removes and adds it, here only what it holds is carried over.
    """
    source = app.queue
    if source is leaf:
        return
    asks = [(replace(ask, count=0, missed=0), ask.count) for ask in app.asks]
    manager.scheduler.remove_application(app)
    manager.scheduler.carry(app, source, leaf)
    app.queue = leaf
    manager.scheduler.add_application(app)
    for ask, count in asks:
        manager.scheduler.ask(app, ask, count)
    app.version += 1
    manager.scheduler.version += 1
