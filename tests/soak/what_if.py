"""What-if questions on the live emulator, and then what was supposed is done: are the answers right?

    python -m tests.soak what-if 200 [--at-once 6] [--speed 1] [--seed 1] [--output FILE]

Research fills a cluster; each question supposes an application of production with one to five tasks of a slot
each, and the application is submitted as soon as the answer has come. Law: what was done is read from the
daemon's journal (the picks of decisions for this application) and from the ResourceManager (its containers).
Half of the questions are put to daemons that suspend reduces, the others to such that run the mix. Exit
status 1 if the chosen tasks differ, or the start lies outside its interval, for one question in twenty.

An answer's intervals are those of a Hadoop, so that only the default speed judges them: a cluster ten times
as quick frees its containers before the least bound. A question is set aside, whatever came of it, and
another one is asked, if an application answered the daemon late while it was done: the daemon then chooses
others, and no answer can foretell that. The journal shows it; it happens where this machine is full. All
questions are in the output.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.live.jobs.submission_client import Client, checkpoint_environment
from emulator.live.wire.submitted_job import ModelledJob
from tests import http_client
from tests.live.test_waiting_live import free_port
from tests.soak.rig import wait_until
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, program, read_records, told
from yarnctl.api.what_if_answers import SpanOut, WhatIfOut
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.records import Decision, Performed, Record, Refusal
from yarnctl.traces.job import Job

NODES, SLOTS = 4, 4
TASK_S = 200.0
WRONG_MAX_RATIO = 0.05
RENEWED_AFTER = 5
SETTLED_S = 12.0
"""A resumed reduce may be suspended again once it has worked for as long as a suspension costs."""
MIX = ("--eviction", "mix", "--may-lose", "90%", "--room-within", "30s")

UNRESUMED_S = 40.0
"""The same where an order was given up, so that its task counts as suspended for ever."""

SET_ASIDE_MAX = 3
"""So many times as many questions are asked at most."""

LOOK_S = 0.25
UNAVAILABLE = 503
HELD_S = 120.0
"""A question that is not served by then counts as answered wrongly, and the next one is asked."""


class Answered(NamedTuple):
    """A question, and what was done; spans in ms from the submission on. ``state``: what the answer saw.

    ``late``: an application answered the daemon late meanwhile.
    """

    containers: int
    state: str
    expected: frozenset[str]
    picked: frozenset[str]
    starts: SpanOut | None
    started_ms: int
    complete: SpanOut | None
    completed_ms: int
    waits: str
    late: bool

    @property
    def is_same(self) -> bool:
        """Whether the chosen tasks are those that were ordered."""
        return self.expected == self.picked

    @property
    def starts_inside(self) -> bool:
        """Whether the first container came within its interval."""
        return _inside(self.starts, self.started_ms)


def _inside(span: SpanOut | None, was_ms: int) -> bool:
    return span is not None and span.least_ms <= was_ms <= span.most_ms


def research(mix: bool, seed: int) -> tuple[Job, ...]:
    """Return two jobs that fill the cluster for long: of reduces, or (for the mix) of maps."""
    chance = random.Random(seed)
    lengths = [chance.randint(200_000, 300_000) for _ in range(2 * NODES * SLOTS)]
    half = NODES * SLOTS // 2 - 1
    if mix:
        return tuple(job(f"research-{n}", 0, lengths[n::2], []) for n in range(2))
    return tuple(job(f"research-{n}", 0, [1], lengths[n::2][:half]) for n in range(2))


class Live:
    """A cluster full of research under a daemon; ``url`` is the daemon's."""

    def __init__(self, client: Client, url: str, journal: Path) -> None:
        self._client = client
        self._url = url
        self._journal = journal
        self._asked = 0
        self._research: list[str] = []
        self._full_since_s: float | None = None
        self._resumed = True

    def renew(self, jobs: Sequence[Job]) -> None:
        """Replace research: a task may be suspended a few times only, and killed once in an hour."""
        for name in self._research:
            self._kill(name, "ann")
        self._research = [self.submit(each) for each in jobs]

    def _kill(self, name: str, user: str) -> None:
        Client(self._client.url, user)._json(f"/ws/v1/cluster/apps/{name}/state", "PUT", {"state": "KILLED"})

    def submit(self, wanted: Job) -> str:
        webhdfs = self._client.webhdfs()
        self._client.make_checkpoint_folders(webhdfs)
        submitted = ModelledJob(job=wanted, cmdenv=checkpoint_environment(webhdfs))
        return Client(self._client.url, wanted.user).submit(submitted, wanted.queue or wanted.job_class)

    def applications(self) -> list[dict[str, Any]]:
        answer = http_client.get(f"{self._url}/v1/applications", timeout=30).json()
        items: list[dict[str, Any]] = answer["items"]
        return items

    def is_full(self) -> bool:
        """Return whether research holds the whole cluster, and no order is open."""
        rows = self.applications()
        idle = not any(row["expected"] or row["suspending"] for row in rows)
        self._resumed = not any(row["suspended"] for row in rows)
        research_only = all(row["role"] != "preempting" for row in rows)
        return idle and research_only and sum(row["containers"] for row in rows) == NODES * SLOTS

    def has_noted(self, name: str, containers: int) -> bool:
        """Return whether the daemon has seen an application hold its containers, and expects no other."""
        found = [row for row in self.applications() if row["application"] == name]
        return bool(found) and found[0]["containers"] >= containers and not found[0]["expected"]

    def is_settled(self) -> bool:
        """Return whether research has held the whole cluster for ``SETTLED_S``."""
        if not self.is_full():
            self._full_since_s = None
        elif self._full_since_s is None:
            self._full_since_s = time.monotonic()
        since_s = self._full_since_s
        wanted_s = SETTLED_S if self._resumed else UNRESUMED_S
        return since_s is not None and time.monotonic() - since_s >= wanted_s

    def question(self, containers: int) -> Answered:
        """Ask, do what was supposed, and compare."""
        self._full_since_s = None
        wait_until(self.is_settled, "a cluster full of research", every_s=LOOK_S)
        self._asked += 1
        wanted = job(f"production-{self._asked}", 0, [TASK_S] * containers, [])
        size = {"container_mib": wanted.map_size.memory_mib, "container_vcores": wanted.map_size.vcores}
        master = {"master_mib": wanted.am_size.memory_mib, "master_vcores": wanted.am_size.vcores}
        body = {
            "application": {"queue": "production", "user": "bob", "containers": containers, **size, **master}
        }
        answer = self._answer(body)
        began_s = time.monotonic()
        name = self.submit(wanted)
        held = [self._until_held(name, count, began_s) for count in (1, containers + 1)]
        # A look that shows it ended already takes its containers for those of other applications.
        with contextlib.suppress(AssertionError):
            wait_until(lambda: self.has_noted(name, containers + 1), f"a look at {name}", HELD_S, LOOK_S)
        records = read_records(self._journal)
        decisions = [
            each for each in records if isinstance(each, Decision) and each.trigger.application == name
        ]
        self._kill(name, "bob")
        expected = frozenset(each.attempt for each in answer.chosen if each.requester == "what-if")
        return Answered(
            containers=containers,
            state=answer.state_hash,
            expected=expected,
            picked=frozenset(pick.task.attempt for each in decisions for pick in each.picks),
            starts=answer.starts,
            started_ms=held[0],
            complete=answer.complete,
            completed_ms=held[1],
            waits=answer.waits,
            late=answered_late(records, name),
        )

    def _answer(self, body: dict[str, Any]) -> WhatIfOut:
        """Ask, again where the daemon has had no time for an answer."""
        asked = []

        def is_answered() -> bool:
            said = http_client.request(
                "POST", f"{self._url}/v1/what-if", data=json.dumps(body), timeout=60,
                headers={"Content-Type": "application/json"},
            )  # fmt: skip
            asked.append(said)
            return said.status_code != UNAVAILABLE

        wait_until(is_answered, "an answer", every_s=LOOK_S)
        assert asked[-1].status_code == 200, asked[-1].text
        return msgspec.json.decode(asked[-1].content, type=WhatIfOut)

    def _until_held(self, name: str, count: int, began_s: float) -> int:
        """Return after how many ms an application holds so many containers; -1: not within ``HELD_S``."""
        try:
            wait_until(
                lambda: int(self._client.application(name).get("runningContainers") or 0) >= count,
                f"{count} containers of {name}", HELD_S,
            )  # fmt: skip
        except AssertionError:
            return -1
        return round((time.monotonic() - began_s) * 1000)


def answered_late(records: Sequence[Record], name: str) -> bool:
    """Return whether an application answered late while the daemon decided about ``name``, or ordered."""
    orders: set[str] = set()
    for each in records:
        if isinstance(each, Decision | Refusal) and each.trigger.application == name:
            if any(job.why == "late" for job in each.refused_jobs):
                return True
            orders.update(each.orders if isinstance(each, Decision) else ())
        elif isinstance(each, Performed) and each.order in orders and not isinstance(each.outcome, Accepted):
            return True
    return False


@contextlib.contextmanager
def live(folder: Path, speed: float, *, mix: bool) -> Iterator[Live]:
    """Run a cluster full of research, and yarnctl."""
    case = Case("what-if", NODES, SLOTS, ())
    cluster = ("serve", "--nodes", str(NODES), "--slots", str(SLOTS), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(speed), "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        listen = f"127.0.0.1:{free_port()}"
        words = [listen if word == "off" else word for word in told(case, url, folder / "state")]
        with program("yarnctl.cli", "run", *words, *(MIX if mix else ()), log=folder / "yarnctl.log"):
            found = Live(Client(url, "harness"), f"http://{listen}", folder / "state/journal.jsonl")
            wait_until(lambda: _answers(f"http://{listen}/readyz"), "a daemon that is ready")
            yield found


def _answers(url: str) -> bool:
    try:
        return http_client.get(url, timeout=30).status_code == 200
    except OSError:
        return False


def campaign(
    questions: int, speed: float, seed: int, *, mix: bool, keep: Path | None = None
) -> list[Answered]:
    """Ask so many questions of one daemon. ``keep``: a folder for its journal and logs."""
    chance, found = random.Random(seed), list[Answered]()
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        world = stack.enter_context(live(folder, speed, mix=mix))
        for number in range(1, SET_ASIDE_MAX * questions + 1):
            if number % RENEWED_AFTER == 1:
                world.renew(research(mix, seed + number))
            one = world.question(chance.randint(1, 5))
            found.append(one)
            print(
                f"{'mix' if mix else 'suspend'} {seed} {number}: {one.containers} tasks;"
                f" {'same' if one.is_same else f'{sorted(one.expected)} and {sorted(one.picked)}'};"
                f" first after {one.started_ms} ms of {one.starts};"
                f" all after {one.completed_ms} ms of {one.complete} {one.waits}"
                f"{' (an application answered late)' if one.late else ''}",
                flush=True,
            )
            if sum(not each.late for each in found) == questions:
                break
    return found


def shares(questions: int, at_once: int) -> list[int]:
    """Return how many questions each of so many daemons is asked."""
    return [(questions + number) // at_once for number in range(at_once)]


def main(arguments: list[str]) -> int:
    """Ask the questions and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak what-if", description=__doc__)
    parser.add_argument("questions", type=int)
    parser.add_argument("--at-once", type=int, default=6, help="daemons, each with a cluster of its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--keep", type=Path, help="keep journals and logs in this folder")
    parser.add_argument("--output", type=Path, help="write each question there, as JSON")
    options = parser.parse_args(arguments)

    def asked(number: int) -> list[Answered]:
        keep = options.keep and options.keep / str(number)
        if keep:
            keep.mkdir(parents=True)
        seed, mix = options.seed + 1000 * number, number % 2 == 1
        return campaign(parts[number], options.speed, seed, mix=mix, keep=keep)

    parts = shares(options.questions, options.at_once)
    with ThreadPoolExecutor(options.at_once) as threads:
        found = [one for each in threads.map(asked, range(options.at_once)) for one in each]
    if options.output:
        options.output.write_bytes(msgspec.json.encode([each._asdict() for each in found]))
    asked_count, found = len(found), [each for each in found if not each.late]
    same = sum(each.is_same for each in found)
    inside = sum(each.starts_inside for each in found)
    complete = sum(_inside(each.complete, each.completed_ms) for each in found)
    print(f"{asked_count - len(found)} questions set aside: an application answered late")
    print(f"{len(found)} questions: chosen tasks equal {same}, start inside {inside}, all inside {complete}")
    wrong = options.questions - min(same, inside)
    return 1 if wrong > WRONG_MAX_RATIO * options.questions else 0
