"""A recorded case beside the project (../shared/cases), served on loopback, and what yarnctl makes of it.

Law: its answers are those of the file and decide nothing; time is the test's. A case that is missing is a
failure, not a skipped test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.frozen.attached_stories import PATHS
from tests.unit.hadoop.replaying import PATIENT, Heard, Replay, Reply
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.records import Decision, Refusal, Trigger
from yarnctl.deciding.settings import Settings
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.rendering import text
from yarnctl.loop import tick

CASES = Path(__file__).parents[3].parent / "shared" / "cases"
CLUSTER = "/ws/v1/cluster"
BEGIN_MS = 1_790_000_100_000
AS_RUN = msgspec.structs.replace(PATHS, in_flight_ratio_max=0.1)
"""The settings of ``yarnctl run``."""


class Wanted(NamedTuple):
    """What one run decided or refused: how many containers, and why in words."""

    need: int
    why: str


class RecordedCase:
    """One case; ``answers`` by path may be changed before it is served."""

    def __init__(self, name: str) -> None:
        self.answers: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())["answers"]
        self.url = ""

    @property
    def applications(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.answers[CLUSTER + "/apps"]["apps"]["app"]
        return rows

    @property
    def nodes(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.answers[CLUSTER + "/nodes"]["nodes"]["node"]
        return rows

    @contextmanager
    def served(self) -> Iterator[RecordedCase]:
        """Serve the answers while the block runs."""
        with Replay(self._answer) as replay:
            self.url = replay.url
            yield self

    def _answer(self, heard: Heard) -> Reply:
        if heard.path in self.answers:
            return Reply(json.dumps(self.answers[heard.path]))
        rows = [row for row in self.applications if heard.path == f"{CLUSTER}/apps/{row['id']}"]
        if rows and heard.method == "GET":
            return Reply(json.dumps({"app": rows[0]}))
        missing = {"RemoteException": {"exception": "NotFoundException", "message": heard.path}}
        return Reply(json.dumps(missing), 404)

    def _port(self, **settings: Any) -> AttachedPort:
        transport = Transport([self.url], limits=PATIENT)
        return AttachedPort(
            ResourceManager(transport),
            None,
            Attachment(stable_observations=1, **settings),
            lambda: BEGIN_MS,
            {KIND: MapReduce(transport)},
        )

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is seen, once its nodes have been counted."""
        port = self._port()
        port.observe(Controller(PATHS).to_observe)
        found = port.observe_soon()
        assert found is not None, port.last_problem
        return found

    def wanted(self, ticks: int = 3, rules: Settings = AS_RUN) -> list[Wanted]:
        """Run the loop without enforcing; return what was decided or refused, in order."""
        port = self._port(
            preempting_queues=rules.preempting_queues, preemptable_queues=rules.preemptable_queues
        )
        controller, journal = Controller(rules, validate=True), MemoryJournal()
        for _ in range(ticks):
            tick(controller, port, journal)
        found: list[tuple[Trigger, Any]] = [
            (each.trigger, each.why if isinstance(each, Refusal) else each.trigger.why)
            for each in journal.records
            if isinstance(each, Refusal | Decision)
        ]
        return [Wanted(trigger.shortfall, text(why)) for trigger, why in found]


def checked(url: str, capfd: Any, *options: str) -> dict[str, dict[str, str]]:
    """Run ``yarnctl check`` against an address; return its findings by id."""
    capfd.readouterr()
    exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url, *options, "--json"])
    return {one["id"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
