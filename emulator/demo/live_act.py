"""The live act: a small cluster of real processes, and yarnctl attached to it over HTTP.

Law: nothing is staged. The programs are those that a user has, the reducer is plain Python, and the verdict
compares bytes: the output of the job that was suspended with that of the same job undisturbed. Everything
runs in a temporary folder and on free ports, and ends with the act.

::

    serve ── the job alone, without its pauses ── the job in company: reduces at work
                            └── production arrives ── suspensions ── both done ── compare
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from emulator.demo.programs import DemoFailed, Program, Programs, ended_by_signals
from emulator.live.jobs.submission_client import Client
from yarnctl.deciding.model import Accepted, Suspend
from yarnctl.deciding.records import Performed, Record, Requests, Transition, decode
from yarnctl.errors import YarnctlError
from yarnctl.journal.rendering import said

PRINTED = {
    "freed": "stopped, nothing lost",
    "granted": "its container is production's now",
    "misdirected": "its container went to another application",
}
"""What is printed for an order that reaches a state, where the state's name does not explain it."""

Tell = Callable[[str], object]


class DemoCluster:
    """The live emulator as its users see it."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, "demo")

    def application(self, name: str) -> str:
        """Return the id of the application of that name, "" if it is not there yet."""
        rows = self._rows("/ws/v1/cluster/apps", "apps", "app")
        return next((str(row["id"]) for row in rows if row.get("name") == name), "")

    def attempts(self, application: str, task: str) -> list[dict[str, Any]]:
        """Return the attempts at a task, the first one first."""
        return self._rows(f"{self._job(application)}/tasks/{task}/attempts", "taskAttempts", "taskAttempt")

    def reduces_at_work(self, name: str) -> int:
        """Return how many reduces of the application of that name have begun with their keys."""
        application = self.application(name)
        if not application:
            return 0
        tasks = self._rows(f"{self._job(application)}/tasks?type=r", "tasks", "task")
        running = [str(row["id"]) for row in tasks if row.get("state") == "RUNNING"]
        return sum(any(map(at_work, self.attempts(application, task))) for task in running)

    def _job(self, application: str) -> str:
        job = application.replace("application_", "job_", 1)
        return f"/proxy/{application}/ws/v1/mapreduce/jobs/{job}"

    def _rows(self, path: str, outer: str, inner: str) -> list[dict[str, Any]]:
        """Return the rows of a list; none where nothing answers yet, or nothing any more."""
        try:
            return self._client.rows(path, outer, inner)
        except YarnctlError:
            return []


def at_work(attempt: dict[str, Any]) -> bool:
    """Return whether an attempt works on keys, by its runner's status."""
    return attempt.get("state") == "RUNNING" and "phase=run" in str(attempt.get("status"))


class Suspended(msgspec.Struct):
    """One order, from the request on. Instants in ms since the epoch."""

    attempt: str
    ordered_at_ms: int
    saved_at_ms: int = 0
    keys_done: int = -1
    resumed: bool = False

    @property
    def task(self) -> str:
        """The task's id."""
        return self.attempt.rpartition("_")[0].replace("attempt_", "task_", 1)

    @property
    def short(self) -> str:
        """What people call the task: r_000002."""
        return self.task[-8:]

    @property
    def took_s(self) -> float:
        """Seconds from the request to the manifest."""
        return (self.saved_at_ms - self.ordered_at_ms) / 1000


class Orders:
    """Reads the daemon's journal while it is written; reports each order's changes."""

    def __init__(self, journal: Path, tell: Tell) -> None:
        self.by_order: dict[str, Suspended] = {}
        self._asked: dict[str, str] = {}
        self._journal = journal
        self._report = tell
        self._read_bytes = 0

    def poll(self) -> None:
        """Apply the new complete lines."""
        if not self._journal.exists():
            return
        with self._journal.open("rb") as file:
            file.seek(self._read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            try:
                self._apply(decode(line))
            except msgspec.DecodeError:  # the line that closes a journal is not a record
                continue

    def _apply(self, record: Record) -> None:
        if isinstance(record, Requests):
            asked = [action for action in record.actions if isinstance(action, Suspend)]
            self._asked.update((action.order, action.attempt) for action in asked)
        elif isinstance(record, Performed) and record.action == "suspend":
            if isinstance(record.outcome, Accepted):
                one = Suspended(self._asked[record.order], record.at_ms)
                self.by_order[record.order] = one
                self._report(f"  {one.short}: yarnctl requests a checkpoint")
        elif isinstance(record, Transition) and record.order in self.by_order:
            self._moved(record, self.by_order[record.order])

    def _moved(self, transition: Transition, suspended: Suspended) -> None:
        if transition.event == "manifest":
            suspended.saved_at_ms, suspended.keys_done = transition.at_ms, transition.keys_done
            keys = f" after {transition.keys_done} words" if transition.keys_done >= 0 else ""
            self._report(
                f"  {suspended.short}: saved{keys}, {suspended.took_s:.1f} s from request to manifest"
            )
        elif transition.event not in ("accepted", "progress"):
            story = (
                PRINTED.get(transition.target)
                or f"{transition.target.replace('_', ' ')} {said(transition.why)}".rstrip()
            )
            self._report(f"  {suspended.short}: {story}")

    @property
    def saved(self) -> list[Suspended]:
        """Those that have saved themselves."""
        return [one for one in self.by_order.values() if one.saved_at_ms]


SCRIPTS = Path(__file__).resolve().parents[1] / "data" / "demo"
POLL_S = 0.2
"""The polling interval: neither REST nor a file offers notification."""

DOCUMENTS = 3


class LivePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How large the act is. ``words`` are all keys, ``pause_s`` what the reducer spends on each.

    ``limit_s``: after this time the act has failed.
    """

    nodes: int = 2
    slots: int = 3
    reduces: int = 5
    words: int = 500
    pause_s: float = 0.14
    speed: float = 1.0
    limit_s: float = 150.0


class LiveOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. ``identical``: the two outputs, byte for byte. Seconds of the wall clock."""

    identical: bool
    suspensions: int
    resumed: int
    request_to_manifest_s: float | None
    production_s: float
    research_s: float
    bytes_compared: int


def play(plan: LivePlan, tell: Tell) -> LiveOutcome:
    """Play the act. Raises DemoFailed if a program fails or nothing moves; leaves nothing behind."""
    with (
        ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="yarnctl-demo-") as folder,
        Programs(Path(folder)) as programs,
    ):
        return _Act(plan, Path(folder), programs, tell).play()


class _Act:
    """One act: its programs, its folder, its clock."""

    def __init__(self, plan: LivePlan, folder: Path, programs: Programs, tell: Tell) -> None:
        self.plan = plan
        self.folder = folder
        self.programs = programs
        self._report = tell
        self._began_s = time.monotonic()
        self.url = ""
        self.orders = Orders(folder / "state" / "journal.jsonl", self.report)
        self.running: list[Program] = []

    def report(self, text: str) -> None:
        """Report what happens, and when."""
        self._report(f"{self.passed_s:6.1f} s  {text}")

    @property
    def passed_s(self) -> float:
        """Seconds since the act began."""
        return time.monotonic() - self._began_s

    def play(self) -> LiveOutcome:
        """Play from the first program to the verdict."""
        plan = self.plan
        write_documents(self.folder / "in", plan.words)
        self._serve()
        self.report("research counts words with its own reducer, alone and without pauses, for comparison")
        alone = self._submit("alone", "research", plan.reduces, "--no-runner")
        self._until(alone.over, "the end of the undisturbed run")
        watch = self.programs.start(
            "yarnctl", "run", "--rm", self.url, "--enforce", "--listen", "off",
            "--state-dir", str(self.folder / "state"),
        )  # fmt: skip
        self.running.append(watch)
        self.report(f"yarnctl run --rm {self.url} --enforce")
        return self._in_company()

    def _serve(self) -> None:
        plan = self.plan
        serve = self.programs.start(
            "yarn-emulator", "serve", "--nodes", str(plan.nodes), "--slots", str(plan.slots), "--port", "0",
            "--speed", str(plan.speed), "--work", str(self.folder / "work"), "--json",
        )  # fmt: skip
        self.url = str(msgspec.json.decode(serve.first_line())["url"])
        self.running.append(serve)
        self.report(f"yarn-emulator serve: {plan.nodes} nodes of {plan.slots} containers, real processes")

    def _in_company(self) -> LiveOutcome:
        plan, cluster = self.plan, DemoCluster(self.url)
        began_s = self.passed_s
        self.report(
            f"the same job with {plan.pause_s * 1000:.0f} ms a word; {plan.reduces} reduces fill the cluster"
        )
        pause = f"PAUSE_S={plan.pause_s}"
        research = self._submit("research", "research", plan.reduces, "--restartable", "--cmdenv", pause)
        self._until(lambda: cluster.reduces_at_work("research") >= plan.reduces, "all reduces to start")
        self.report("production submits a job of one map and two reduces; no container is free")
        arrived_s = self.passed_s
        production = self._submit("production", "production", 2, "--no-runner")
        done_s = 0.0

        def both_over() -> bool:
            nonlocal done_s
            self.orders.poll()
            _note_resumes(cluster, self.orders, self.report)
            if not done_s and production.over():
                done_s = self.passed_s
                self.report("production is done")
            return bool(done_s) and research.over()

        self._until(both_over, "the end of both jobs")
        self.report("research is done")
        return self._verdict(done_s - arrived_s, self.passed_s - began_s)

    def _verdict(self, production_s: float, research_s: float) -> LiveOutcome:
        saved = self.orders.saved
        one, other = (outputs(self.folder / name) for name in ("alone", "research"))
        return LiveOutcome(
            identical=bool(one) and one == other,
            suspensions=len(saved),
            resumed=sum(one.resumed for one in saved),
            request_to_manifest_s=statistics.median(one.took_s for one in saved) if saved else None,
            production_s=production_s,
            research_s=research_s,
            bytes_compared=sum(map(len, one.values())),
        )

    def _submit(self, name: str, queue: str, reduces: int, *more: str) -> Program:
        python = sys.executable
        return self.programs.start(
            "yarn-emulator", "submit", "--rm", self.url, "--name", name, "--queue", queue,
            "--input", str(self.folder / "in"), "--output", str(self.folder / name),
            "--mapper", f"{python} -S {SCRIPTS / 'words_of.py'}",
            "--reducer", f"{python} -S {SCRIPTS / 'count_words.py'}", "--reduces", str(reduces),
            *more, "--json",
        )  # fmt: skip

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until a condition is met. Raises DemoFailed when it does not, or a program has ended."""
        while not condition():
            for program in self.running:
                if program.over():
                    raise DemoFailed(f"{program.title} ended unexpectedly: {program.last_lines()}")
            if self.passed_s > self.plan.limit_s:
                raise DemoFailed(
                    f"the live loop did not end within {self.plan.limit_s:g} s: still waiting for {what}"
                )
            time.sleep(POLL_S)


def _note_resumes(cluster: DemoCluster, orders: Orders, tell: Tell) -> None:
    """Report each suspended task that has resumed."""
    waiting: list[Suspended] = [one for one in orders.saved if not one.resumed]
    application = cluster.application("research") if waiting else ""
    for one in waiting:
        number = int(one.attempt.rpartition("_")[2])
        later = cluster.attempts(application, one.task)[number + 1 :]
        if any(at_work(attempt) or attempt.get("state") == "SUCCEEDED" for attempt in later):
            one.resumed = True
            tell(f"  {one.short}: resumed after word {one.keys_done}")


def write_documents(folder: Path, words: int) -> None:
    """Write the input: a few documents of numbered words, each word several times, always the same."""
    folder.mkdir()
    lines: dict[int, list[str]] = {index: [] for index in range(DOCUMENTS)}
    for number in range(words * 4):
        word = (number * 7919 + number // words) % words
        lines[number % DOCUMENTS].append(f"word{word:04d}")
    for index, found in lines.items():
        rows = [f"doc{index}-{row}\t{' '.join(found[row : row + 10])}\n" for row in range(0, len(found), 10)]
        (folder / f"documents-{index}").write_text("".join(rows))


def outputs(folder: Path) -> dict[str, bytes]:
    """Return a job's output, part by part."""
    return {part.name: part.read_bytes() for part in sorted(folder.glob("part-*"))}
