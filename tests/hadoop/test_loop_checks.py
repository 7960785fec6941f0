"""What the scenarios check can fail: each check is given what it must find.

Law: no cluster is needed here. Logs, outputs and journals are made as the real ones are, with one thing
wrong.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import http_client
from tests.hadoop.deaf_manager import deaf
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.scenarios import (
    KEY_S,
    Running,
    asked_just_back,
    differing,
    research,
    twice_by_task,
    undisturbed,
    wrongly_ranked,
)
from tests.hadoop.test_loop_formats import best, masked
from yarnctl.deciding.case import Pick, RefusedTask
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import Accepted, Suspend, TaskView
from yarnctl.deciding.reasons.demand import Unmet
from yarnctl.deciding.records import (
    FORMAT,
    Decision,
    Header,
    Record,
    Requests,
    Transition,
    Trigger,
    performed,
)
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import DEFAULT
from yarnctl.deciding.snapshot_rows import ApplicationRow, SnapshotChange
from yarnctl.units import Resources

APPLICATION = "application_1_0001"
SIZE = Resources(256, 1)


def attempt(task: int, number: int = 0) -> str:
    return f"attempt_1_0001_r_{task:06d}_{number}"


class Done(Job):
    """A job that was run, as its logs and its output tell."""

    def __init__(self, plan: Plan, groups: Path) -> None:
        self.plan = plan
        self.name = plan.name
        self.groups = groups
        self._application = APPLICATION
        self.output_parts = undisturbed(plan)

    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.output_parts.items()}

    def worked(self, name: str, keys: Sequence[str], from_s: float) -> None:
        """Write what an attempt logs."""
        lines = [f"{key} {from_s + number * KEY_S:.3f}\n" for number, key in enumerate(keys)]
        (self.groups / name).write_text("".join(lines), encoding="ascii")


class Told(Running):
    """A scenario that was played, as a journal tells."""

    def __init__(self, job: Job, records: Sequence[Record]) -> None:
        self.jobs = {job.name: job}
        self.daemon = type("Daemon", (), {"records": lambda self: list(records)})()


@pytest.fixture
def job(tmp_path: Path) -> Done:
    return Done(research("steady", 20, 10), tmp_path)


def keys(count: int, first: int = 0) -> list[str]:
    return [f"k{first + number}" for number in range(count)]


def test_a_group_that_was_begun_again_is_counted_to_its_task(job: Done) -> None:
    job.worked(attempt(0), keys(10), 100)
    job.worked(attempt(0, 1), keys(10, first=10), 200)
    assert not twice_by_task(job)
    assert job.groups_twice() == 0
    job.worked(attempt(1), keys(10, first=100), 100)
    job.worked(attempt(1, 1), keys(10, first=109), 200)
    assert twice_by_task(job) == {"attempt_1_0001_r_000001": 1}
    assert job.groups_twice() == 1


def test_an_output_is_judged_by_every_byte_and_every_part(job: Done) -> None:
    assert differing(job) == []
    job.output_parts["part-00001"] = job.output_parts["part-00001"][:-1] + b" "
    assert differing(job) == ["part-00001"]
    del job.output_parts["part-00000"]
    assert differing(job) == ["part-00000", "part-00001"]
    job.output_parts = {}
    assert differing(job) == ["part-00000", "part-00001"], "a job that was not committed"


def decision(at_ms: int, picked: str, passed_over: str, why: Reason = "next") -> Decision:
    """Return a decision for one task and, perhaps, against another."""
    view = TaskView(picked, "container_1", "node", SIZE, "reduce", 1000, 100, 0, 0, True, False)
    return Decision(
        number=1, at_ms=at_ms, trigger=Trigger("application_1_0002", "production", (), 1, 0, 0, 1, Unmet()),
        total=SIZE, orders=("order-1",), groups=("group-1",),
        picks=(Pick(APPLICATION, view, (0,), (1000,), SIZE, 1),), handed_back=(), unmet=0, refused_jobs=(),
        refused_tasks=(RefusedTask(APPLICATION, passed_over, (1,), why),),
    )  # fmt: skip


def test_who_passes_over_the_shortest_or_the_longest_task_is_found(job: Done) -> None:
    job.worked(attempt(0), keys(400), 100)
    job.worked(attempt(1), keys(100), 100)
    long_first = Told(job, [decision(105_000, attempt(0), attempt(1))])
    short_first = Told(job, [decision(105_000, attempt(1), attempt(0))])
    assert wrongly_ranked(short_first) == []
    assert [word[:2] for word in wrongly_ranked(long_first)] == ["1:"]
    assert wrongly_ranked(long_first, longest_first=True) == []
    assert wrongly_ranked(short_first, longest_first=True)
    assert wrongly_ranked(Told(job, [decision(105_000, attempt(0), attempt(1), "cost")])) == []


@pytest.mark.parametrize(
    ("policy", "chosen", "right"),
    [("MR", 5, True), ("MR", 4, False), ("MR", 3, False), ("LR", 5, False), ("LR", 4, False),
     ("LR", 3, True)],
)  # fmt: skip
def test_who_chooses_another_job_than_the_policys_is_found(policy: str, chosen: int, right: bool) -> None:
    rows = tuple(
        ApplicationRow(
            APPLICATION if held == chosen else f"other-{held}", "research", "u", 0, held, held, SIZE, SIZE
        )
        for held in (3, 4, 5)
    )
    told = Observed(at_ms=1, cluster="seen", change=SnapshotChange(applications=rows))
    made = decision(1, attempt(0), attempt(1))
    records: list[Record] = [Header(FORMAT, DEFAULT, ()), told, made]
    assert best(made, policy, records) is right


@pytest.mark.parametrize(("after_s", "found"), [(5.0, 1), (26.0, 1), (31.0, 0)])
def test_a_task_that_is_asked_as_soon_as_it_is_back_is_found(job: Done, after_s: float, found: int) -> None:
    job.worked(attempt(0, 1), keys(100), 100)
    action = Suspend("order-1", APPLICATION, attempt(0, 1), "container_1", 1, 0)
    at_ms = round((100 + after_s) * 1000)
    told = Told(job, [Requests(at_ms, (action,)), performed(at_ms, action, Accepted())])
    assert len(asked_just_back(told, "steady")) == found


def test_only_the_marker_of_a_sequence_file_is_masked() -> None:
    def file(marker: bytes, value: bytes) -> bytes:
        names = bytes([4]) + b"Text" + bytes([4]) + b"Text"
        return b"SEQ\x06" + names + b"\0\0" + bytes(4) + marker + value + b"\xff\xff\xff\xff" + marker

    one, other = bytes(range(16)), bytes(range(16, 32))
    assert masked(file(one, b"value")) == masked(file(other, b"value"))
    assert masked(file(one, b"value")) != masked(file(other, b"Value"))
    assert masked(b"no such file") == b"no such file"


def test_an_order_is_followed_to_the_attempt_that_it_stopped(job: Done) -> None:
    action = Suspend("order-1", APPLICATION, attempt(0), "container_1", 1, 0)
    moved = Transition(
        order="order-1", source="checkpointed", event="ended-as-ordered", target="freed", at_ms=1
    )
    running = Told(job, [])
    running.daemon.asked = lambda: [action]  # type: ignore[method-assign]
    running.daemon.reached = lambda state: [moved]  # type: ignore[method-assign]
    job.worked(attempt(0), keys(10), 100)
    assert running.freed("steady") == [attempt(0)]
    assert running.waiting("steady") == {"attempt_1_0001_r_000000"}
    job.worked(attempt(0, 1000), keys(10, first=10), 200)
    assert running.waiting("steady") == set()


def test_a_deaf_manager_answers_signals_itself_and_passes_everything_else_on() -> None:
    seen: list[tuple[str, str, bytes]] = []

    class Behind(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append((self.command, self.path, body))
            self.send_response(202)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"apps":{}}')

        do_PUT = do_POST = do_GET  # noqa: N815 - the names http.server looks for

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Behind) as behind:
        thread = threading.Thread(target=behind.serve_forever)
        thread.start()
        with deaf(f"http://127.0.0.1:{behind.server_port}") as manager:
            told = http_client.get(f"{manager.url}/ws/v1/cluster/apps?states=RUNNING", timeout=30)
            put = http_client.put(f"{manager.url}/proxy/a/state", json={"state": "KILLED"}, timeout=30)
            rung = http_client.post(f"{manager.url}/ws/v1/cluster/containers/c/signal/X", timeout=30)
        behind.shutdown()
        thread.join()
    assert (told.status_code, told.json(), put.status_code) == (202, {"apps": {}}, 202)
    assert seen == [
        ("GET", "/ws/v1/cluster/apps?states=RUNNING", b""),
        ("PUT", "/proxy/a/state", b'{"state": "KILLED"}'),
    ]
    assert (rung.status_code, rung.content, manager.unheard) == (200, b"", 1)
