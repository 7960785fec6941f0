"""Changes: what a client may alter in an application, and container signals (facts, section 1.1).

Law: YARN's own answers, quirks included: a kill is 202 first and 200 when it was done already, a priority is
capped without a word, a signal's success proves nothing and its body is no JSON.
"""

from __future__ import annotations

import re
from typing import get_args

import msgspec

from emulator.live.manager.moving import move
from emulator.live.manager.service import LiveResourceManager, Refused
from emulator.live.manager.state import AppRecord
from emulator.live.rest.dialect import JSON_KIND, Dialect
from emulator.live.wire.hadoop_request import bad, body_of, caller
from emulator.live.wire.messages import Signal
from emulator.live.wire.web import Problem, Reply, Request

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
        """Answer GET .../state: the ResourceManager's inner word."""
        return self._dialect.mapped({"state": self.state_word(app)})

    def state_word(self, app: AppRecord) -> str:
        """Return RMAppState: FINISHING while the AM of a finished application still holds its container."""
        return "FINISHING" if app.state == "FINISHED" and app.containers else app.state

    def put_state(self, app: AppRecord, request: Request) -> Reply:
        """Kill: 202 and where to look, or 200 if it had ended."""
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
        return self._dialect.bare({"priority": app.actor.priority})

    def put_priority(self, app: AppRecord, request: Request) -> Reply:
        """Set the priority, capped to the cluster's largest without a word; below 0 it is as it is."""
        caller(request)
        wanted = body_of(request, PriorityBody).number
        if not app.over:
            self._manager.now_ms()
            capped = min(wanted, self._manager.settings.max_priority)
            self._manager.actor.scheduler.reprioritise(app.actor, capped)
        return self.priority(app)

    def queue(self, app: AppRecord) -> Reply:
        """Answer GET .../queue."""
        return self._dialect.bare({"queue": app.queue})

    def put_queue(self, app: AppRecord, request: Request) -> Reply:
        """Move the application with what it holds."""
        caller(request)
        name = body_of(request, QueueBody).queue.removeprefix("root.")
        target = self._manager.actor.scheduler.queues.get(name)
        if target is None:
            said = (
                f"The specified Queue: {name[:100]} doesn't exist" if self._dialect.version == "3.5" else ""
            )
            raise Problem(503, "UndeclaredThrowableException", said)
        if app.over:
            return Reply(400, f"App in {app.state} state cannot be moved.".encode(), JSON_KIND)
        self._manager.now_ms()
        move(self._manager.actor, app.actor, target)
        app.queue = target.name
        return self.queue(app)

    def signal(self, request: Request) -> Reply:
        """Have a container's node send a signal at its next heartbeat."""
        container, signal = request.values
        if signal not in SIGNALS:
            said = f"Invalid command: {signal[:60]}, valid commands are: [{', '.join(SIGNALS)}]"
            return Reply(400, said.encode(), JSON_KIND)  # text that claims to be JSON, as all of these
        try:
            self._manager.signal(container, signal)  # type: ignore[arg-type]  # one of SIGNALS
        except Refused as why:
            return Reply(500, str(why).encode(), JSON_KIND)
        if self._dialect.version == "3.4":
            return Reply(200, b"", JSON_KIND)
        return Reply(200, b"signal success", JSON_KIND)
