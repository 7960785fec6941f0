"""Answers of the service over recorded views: every address that is read, and the commands that ask them.

Law: a view is a value, the clock is the view's own, and nothing runs beside the server; the same question has
the same answer, byte for byte. The views: a run in the midst of its suspensions, the same run at its end, a
daemon before its first look, and a gate with admissions in every state.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests import http_client
from tests.frozen.invoking import environment, invoked
from tests.unit.daemon.at_the_desk import AtTheDesk, Past
from tests.unit.service.played import busy, last
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.service.app import make_app
from yarnctl.service.serving import serve_in_thread

SECRET = "a token of sufficient length"
LESSON = Finished(90_000, 10, 30_000, 5, 10, 0.5, True)
LATE_MS = 1_250
"""How much later than the view the questions are asked."""
ALWAYS = (
    "/healthz", "/readyz", "/metrics", "/v1/snapshot", "/v1/status", "/v1/applications",
    "/v1/applications?waiting=true",
    "/v1/reclaims", "/v1/reclaims?retired=true", "/v1/decisions", "/v1/decisions?limit=1", "/v1/refusals",
    "/v1/checkpoints", "/v1/budgets", "/v1/time-lost", "/v1/occupancy", "/v1/accounts", "/v1/admissions",
    "/v1/report?since_ms=0", "/v1/admissions?state=waiting", "/v1/runs",
    "/v1/events?cursor=0&wait_ms=0",
)  # fmt: skip
UNKNOWN = (
    "/v1/accounts/unknown",
    "/v1/reclaims/application_9",
    "/v1/decisions/4711",
    "/v1/admissions/adm-a-99",
    "/v1/nothing",
)
"""Addresses of what there is not."""


@cache
def gate() -> AtTheDesk:
    """Return a gate that has admitted, taken, closed, rejected and kept waiting."""
    past = Past()
    past.before = (LESSON,)
    past.jobs["application_1_0001"] = LESSON
    there = AtTheDesk("pythia", past=past)
    ended = there.ask(9, key="k")
    there.submit(ended)
    there.go(2_000)
    there.yarn.end("application_1_0001")
    there.go(10_000)
    there.withdraw(there.ask(4, minutes=30).admission)
    there.ask(3, minutes=30)
    there.go(200_000)  # nobody submits it: it expires
    taken = there.ask(3, estimate=Estimate(180_000, 9_000, "history:3 runs of job"))
    there.submit(taken, "application_1_0002")
    there.go(2_000)
    there.ask(2, minutes=40, name="another", user="cyd")
    there.yarn.run("application_9_0001", 8, user="bob")
    there.go(2_000)
    there.ask(40, minutes=60, name="large")
    there.ask(8, minutes=1, name="late", estimate=Estimate(1 << 40, 0, "request"))
    return there


def views() -> dict[str, View]:
    there = gate()
    gated = View(
        version=7, now_ms=there.now_ms, loop=LoopStatus(ticks=3, reachable=True), admission=there.desk.shown()
    )
    return {
        "busy": busy(),
        "last": last(),
        "first": View(version=0, now_ms=0, loop=LoopStatus()),
        "gate": gated,
    }


def addresses(view: View) -> list[str]:
    """Return what is asked of a view: every address, and every id that the view holds."""
    orders = [*view.entries, *view.ended]
    first = orders[:1]
    requesters = dict.fromkeys(order.requester for order in orders)
    ids = [*requesters, *dict.fromkeys(order.victim for order in orders), *(order.order for order in first)]
    ids += [name for order in first for name in (order.container, order.attempt)]
    admissions = () if view.admission is None else gate().book.admissions
    return [
        *ALWAYS,
        *(f"/v1/reclaims/{requester}" for requester in requesters),
        *(f"/v1/decisions/{decided.record.number}" for decided in view.decisions),
        *(f"/v1/explanations/{each}" for each in ids),
        *(f"/v1/admissions/{name}" for name in admissions),
        *UNKNOWN,
    ]


class Served:
    """A server whose view is exchanged; ``ask`` returns status and body."""

    def __init__(self) -> None:
        self.view = busy()
        self._handle = serve_in_thread(
            make_app(lambda: self.view, token=SECRET, journal=Path("journal.jsonl"),
                clock=lambda: self.view.now_ms + LATE_MS, request_queue=gate().window),
            token=SECRET,
        )  # fmt: skip
        self.url = self._handle.url

    def ask(self, address: str) -> dict[str, Any]:
        """Return an answer; JSON as a value, else the text's lines."""
        with http_client.get(self.url + address, timeout=30) as answer:
            kind = answer.headers["content-type"]
            body = json.loads(answer.content) if kind == "application/json" else answer.text.splitlines()
            return {"status": answer.status_code, "body": body}

    def stop(self) -> None:
        self._handle.stop()


@contextlib.contextmanager
def served() -> Iterator[Served]:
    made = Served()
    try:
        yield made
    finally:
        made.stop()


def answers() -> dict[str, Any]:
    """Return every answer, by view and address."""
    found: dict[str, Any] = {}
    with served() as server:
        for name, view in views().items():
            server.view = view
            found[name] = {address: server.ask(address) for address in addresses(view)}
    return found


COMMANDS: dict[str, tuple[str, ...]] = {
    "busy": ("reclaims", "reclaims --retired", "decisions", "decisions 1", "decisions 2", "decisions 4711",
        "apps", "snapshot", "checkpoints seen", "explain o-000001", "explain application_1_000002",
        "admissions"),
    "last": ("reclaims", "reclaims --retired", "decisions", "apps", "snapshot"),
    "gate": ("admissions", "admissions adm-a1b2-1", "admissions adm-a1b2-3", "snapshot"),
}  # fmt: skip
"""What the command line asks of each view, as JSON."""


def command_answers() -> dict[str, Any]:
    """Return what each command prints, as JSON, and its exit status."""
    found: dict[str, Any] = {}
    shown = views()
    with served() as server, environment({"YARNCTL_URL": server.url}):
        for name, commands in COMMANDS.items():
            server.view = shown[name]
            found[name] = {
                words: invoked(*words.split(), "-o", "json", hidden=server.url) for words in commands
            }
    return found
