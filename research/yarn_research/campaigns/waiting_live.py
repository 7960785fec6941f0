"""Why production waits, on the live emulator: each answer of a daemon is compared with the emulator's state.

    python -m yarn_research.campaigns.waiting_live [--only NAME,...] [--at-once N] [--json]

A scenario (``waiting_scenarios``) runs ``yarnctl run`` as a process beside a cluster in this one. While it
runs, pictures of the cluster are taken, and ``/v1/applications`` is read, every 50 ms; some answers are
compared with ``/v1/explanations``, and one with ``yarnctl explain``. Then each answer is judged
(``waiting_truth``), and again with each of the lies (:data:`LIES`) told in it: each has to be found.
Exit status 1 if an application has no reason or one that is not true, if a reason that a scenario is about
was never given, or if a lie was never found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from emulator.cluster.entities import QueueConfig
from emulator.cluster.timing import Timing
from emulator.live.jobs.submission_client import Client, checkpoint_environment
from emulator.live.manager.manager_settings import QUEUES
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build
from emulator.live.programs.manager_program import Options
from emulator.live.wire.submitted_job import ModelledJob
from tests import http_client
from tests.hadoop.background import Background
from yarn_research.campaigns.waiting_truth import (
    RECORD_MS,
    WORDS,
    Claim,
    Daemon,
    Item,
    Picture,
    Wire,
    is_busy,
    now_ms,
    sources_in,
    story,
    window,
)
from yarnctl.traces.job import Job

ROOT = Path(__file__).resolve().parents[3]
QUICK = Timing(
    nm_heartbeat_ms=200, am_heartbeat_ms=200, am_retry_ms=200, am_start_ms=500, launch_ms=300, submit_ms=0
)
EVERY_S = 0.05
PATIENCE_S = 90.0
AFTER_S = 3.0
"""So long a scenario goes on once all that it is about was seen."""
TOKEN = "waiting-live-token-0123456789abcdef0123456789abcdef"


class Submitted(NamedTuple):
    """A job, and how it is submitted. ``wrapped``: with the task runner."""

    job: Job
    wrapped: bool = True
    tags: tuple[str, ...] = ()
    priority: int = 0
    settings: Mapping[str, str] = {}
    kind: str = "MAPREDUCE"
    deadline_s: int = 0


LATER = "later"
Act = Callable[["Stage"], object]
"""What happens to a stage; it happens again, and what is due after it waits, while it returns LATER."""


class Scenario(NamedTuple):
    """A cluster, its jobs, a daemon, and what is to be seen.

    ``first`` fill the cluster until ``full`` containers are allocated; ``then`` come at their seconds after
    that, once the daemon answers; so do ``acts``. ``expects``: codes that production's reasons must have.
    ``explains``: what the newest explanation of a production application must match at some time.
    ``logs``: what the daemon's log must match. In ``words``, ``{folder}`` is the scenario's folder.
    """

    name: str
    first: tuple[Submitted, ...]
    then: tuple[tuple[float, Submitted], ...]
    full: int = 8
    words: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    acts: tuple[tuple[float, Act], ...] = ()
    settings: Daemon = Daemon()
    queues: tuple[QueueConfig, ...] = QUEUES
    timing: Timing = QUICK
    slots: int = 4
    seconds: float = 40.0
    before: tuple[Act, ...] = ()


class Answer(NamedTuple):
    """One answer of ``/v1/applications``, and when it had arrived; ``looks``: so many had begun."""

    at_ms: int
    view_ms: int
    version: int
    items: tuple[Item, ...]


class Evidence(NamedTuple):
    """What a scenario has left to judge it by. ``explained``: texts, in order; ``wrong``: said otherwise."""

    scenario: Scenario
    pictures: list[Picture]
    answers: list[Answer]
    looks: list[int]
    explained: list[str]
    wrong: list[str]
    log: str
    seconds: float
    settings: Daemon


class Stage:
    """A running scenario: the cluster, the daemon, and what acts may do."""

    def __init__(self, scenario: Scenario, folder: Path, server: Background, wire: Wire) -> None:
        self.scenario, self.folder, self.server, self.wire = scenario, folder, server, wire
        self.url = server.url
        self.listen = f"127.0.0.1:{_free_port()}"
        self.names: dict[str, str] = {}
        self.processes: list[subprocess.Popen[str]] = []
        self.token = folder / "token"
        self.token.write_text(TOKEN + "\n")
        self.token.chmod(0o600)

    def submit(self, one: Submitted) -> str:
        """Submit a job as its user."""
        client = Client(self.url, one.job.user)
        environment = checkpoint_environment(client.webhdfs()) if one.wrapped else {}
        wrapped = one.wrapped and not one.job.spark
        job = ModelledJob(job=one.job, runner=wrapped, cmdenv=environment, settings=dict(one.settings))
        tags = one.tags
        if one.deadline_s:
            tags = (*tags, f"deadline:{now_ms() + one.deadline_s * 1000}")
        queue = one.job.queue or one.job.job_class
        name = client.submit(job, queue, tags, one.priority, one.kind)
        self.names[one.job.name] = name
        return name

    def daemon(self, listen: str, state: str, *words: str, url: str = "") -> subprocess.Popen[str]:
        """Start ``yarnctl run``; ``url``: of the ResourceManager ("": the stage's)."""
        told = ("--rm", url or self.url, "--listen", listen, "--state-dir", str(self.folder / state))
        token = () if listen == "off" else ("--token-file", str(self.token))
        process = self.program("run", *told, *token, *words, log=self.folder / f"{state}.log")
        self.processes.append(process)
        return process

    def run_daemon(self) -> None:
        """Start the scenario's daemon, or start it again."""
        enforce = () if self.scenario.settings.observes else ("--enforce",)
        words = [word.format(folder=self.folder) for word in self.scenario.words]
        self.daemon(self.listen, "state", *enforce, *words)

    def program(self, *words: str, log: Path) -> subprocess.Popen[str]:
        """Start a command of yarnctl; it writes at the end of ``log``."""
        with log.open("a") as said:
            return subprocess.Popen(
                [sys.executable, "-c", "from yarnctl.cli import main; main()", *words],
                stdout=said, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "YARNCTL_TOKEN_FILE": str(self.token)},
            )  # fmt: skip

    def post(self, path: str) -> None:
        """Send a command to the daemon's API."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = http_client.post(f"http://{self.listen}/v1/{path}", headers=headers, json={}, timeout=30)
        assert answer.status_code == 202, answer.text

    def get(self, path: str) -> Any:
        """Read the daemon's API; raises OSError while it does not listen."""
        return http_client.get(f"http://{self.listen}/v1/{path}", timeout=30).json()

    def run(self, function: Callable[[AllInOne], Any]) -> Any:
        """Run a function on the emulator's thread."""
        return self.server.run(lambda: function(self.wire.whole))

    def end(self) -> None:
        """End all processes that it has started."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_S)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition."""
    deadline_s = time.monotonic() + patience_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"never: {what}")
        pause.wait(EVERY_S)


@contextlib.contextmanager
def staged(scenario: Scenario, folder: Path) -> Iterator[tuple[Stage, list[Picture]]]:
    """Run the cluster of a scenario, and take pictures of it."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Wire] = []
    pictures: list[Picture] = []

    def web(url: str) -> Any:
        settings = ManagerSettings(queues=scenario.queues, timing=scenario.timing, am_expiry_ms=60_000)
        plan = ClusterPlan(nodes=2, memory_mib=1024 * scenario.slots, vcores=scenario.slots, processes=False)
        wire = Wire(build(Options(work=folder / "work"), plan, url, settings))
        made.append(wire)
        return wire

    def keep_looking() -> None:
        pictures.append(made[0].picture())
        asyncio.get_running_loop().call_later(EVERY_S, keep_looking)

    with Background(web) as server:
        stage = Stage(scenario, folder, server, made[0])
        server.run(keep_looking)
        try:
            yield stage, pictures
        finally:
            stage.end()


def played(scenario: Scenario, folder: Path) -> Evidence:
    """Play a scenario."""
    began_s = time.monotonic()
    with staged(scenario, folder) as (stage, pictures):
        found = Evidence(scenario, pictures, [], stage.wire.looks, [], [], "", 0.0, scenario.settings)
        Client(stage.url, "harness").make_checkpoint_folders(Client(stage.url, "harness").webhdfs())
        for act in scenario.before:
            act(stage)
        stage.run_daemon()
        for one in scenario.first:
            stage.submit(one)
        until(lambda: pictures and _allocated(pictures[-1]) >= scenario.full, "the cluster is full")
        until(lambda: is_up(stage), "the daemon has started")
        _watch(stage, found)
        log = (folder / "state.log").read_text()
        return found._replace(log=log, seconds=time.monotonic() - began_s)


def _allocated(picture: Picture) -> int:
    return sum(len(app.tasks) for app in picture.apps.values())


def is_up(stage: Stage) -> bool:
    """Return whether the daemon answers, and acts if it is to."""
    try:
        loop = stage.get("snapshot").get("loop")
    except OSError:
        return False
    if loop is None:  # an error: it has no view yet
        return False
    return loop["loop_state"] == "running" or (stage.scenario.settings.blocked and loop["ticks"] > 0)


def _watch(stage: Stage, found: Evidence) -> None:
    """Read answers until all was seen, or the time is over."""
    scenario = stage.scenario
    began_s = time.monotonic()
    due: list[tuple[float, Callable[[], object]]] = []
    for at_s, one in scenario.then:
        due.append((at_s, lambda one=one: stage.submit(one)))  # type: ignore[misc]
    for at_s, act in scenario.acts:
        due.append((at_s, lambda act=act: act(stage)))  # type: ignore[misc]
    due.sort(key=lambda each: each[0])
    seen_s: float | None = None
    pause = threading.Event()
    number = 0
    while (passed_s := time.monotonic() - began_s) < scenario.seconds:
        while due and due[0][0] <= passed_s and due[0][1]() is not LATER:
            due.pop(0)
        with contextlib.suppress(OSError):
            number += 1
            _read(stage, found, number)
        if seen_s is None and not due and not missing(found):
            seen_s = passed_s
            _by_command(stage, found)
        if seen_s is not None and passed_s > seen_s + AFTER_S:
            return
        pause.wait(EVERY_S)


def _read(stage: Stage, found: Evidence, number: int) -> None:
    told = stage.get("applications")
    items = tuple(told["items"])
    found.answers.append(Answer(now_ms(), told["now_ms"], told["version"], items))
    waits = [item for item in items if item["waiting"]]
    if number % 5 or not waits:
        return
    item = waits[number // 5 % len(waits)]
    text = "\n".join(line.strip() for line in stage.get(f"explanations/{item['application']}")["text"])
    again = stage.get("applications")
    found.explained.append(text)
    if again["version"] == told["version"]:
        found.wrong.extend(differences(item, text))


def differences(item: Item, text: str) -> list[str]:
    """Return what an explanation lacks of an application's reason."""
    waiting = item["waiting"]
    wrong = [] if waiting["text"] in text else [f"explain lacks {waiting['text']!r}: {text[-300:]}"]
    for row in waiting["not_chosen"]:
        tasks = f"now: {row['tasks']} {row['kind']}{'' if row['tasks'] == 1 else 's'} of {row['name']}"
        line = next(
            (one for one in text.splitlines() if one.startswith(tasks) and row["reason"]["text"] in one), ""
        )
        if not line or (row["next"] and not line.endswith(row["next"])):
            wrong.append(f"explain lacks the cause {row}: {text[-500:]}")
    return wrong


def _by_command(stage: Stage, found: Evidence) -> None:
    """Compare ``yarnctl explain`` with the answers around it: one of them has to agree."""
    waits = [item for answer in found.answers[-3:] for item in answer.items if item["waiting"]]
    if not waits:
        return
    name = waits[-1]["application"]
    log = stage.folder / "explain.log"
    process = stage.program("explain", name, "--url", f"http://{stage.listen}", log=log)
    pause, first = threading.Event(), len(found.answers) - 1
    while process.poll() is None:
        with contextlib.suppress(OSError):
            _read(stage, found, 1)
        pause.wait(EVERY_S)
    text = " ".join(log.read_text().split())
    shown = [
        " ".join(item["waiting"]["text"].split()) if item["waiting"] else ""
        for answer in found.answers[first:] for item in answer.items if item["application"] == name
    ]  # fmt: skip
    gone = not shown or name not in {item["application"] for item in found.answers[-1].items}
    if not gone and not any(each in text for each in shown):
        found.wrong.append(f"yarnctl explain {name} says none of {set(shown)}: {text[-400:]}")


def missing(found: Evidence) -> list[str]:
    """Return what a scenario is about and was not seen."""
    codes = {
        code
        for answer in found.answers for item in answer.items if item["waiting"]
        for code in (
            item["waiting"]["reason"]["code"],
            *(row["reason"]["code"] for row in item["waiting"]["not_chosen"]),
        )
    }  # fmt: skip
    lacks = [code for code in found.scenario.expects if code not in codes]
    return lacks + [
        each for each in found.scenario.explains if not any(re.search(each, text) for text in found.explained)
    ]


# --- judging ------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """``reasons``: how many were judged, by kind and code; ``lies``: the first of each kind of problem."""

    reasons: Counter[str]
    lies: list[str]


SETTLING = 3
"""Looks before the first one that counts what queues hold: the number of nodes has to be stable."""


def judged(found: Evidence, answers: Sequence[Answer] | None = None) -> Judged:
    """Judge all answers: one reason for each that waits, and a true one."""
    reasons, problems = Counter[str](), list[str]()
    first_ms = found.looks[: SETTLING + 1][-1] if found.looks else 0
    began = next((each for each in found.pictures if each.at_ms >= first_ms), found.pictures[0])
    held = {name: leaf.held_mib_ms for name, leaf in began.queues.items()}
    for answer in found.answers if answers is None else answers:
        from_ms = window(found.looks, answer.view_ms)
        until_ms = next((each.at_ms for each in found.pictures if each.at_ms >= answer.at_ms), answer.at_ms)
        begun_ms = max((each.at_ms for each in found.pictures if each.at_ms <= from_ms), default=from_ms)
        pictures = [each for each in found.pictures if begun_ms <= each.at_ms <= until_ms]
        if not pictures:
            continue
        recorded = [each for each in found.pictures if from_ms - RECORD_MS <= each.at_ms <= until_ms]
        problems += [f"{answer.view_ms}: {each}" for each in _counted(found.scenario, answer, pictures)]
        claimed = Counter[str]()
        for item in answer.items:
            if item["waiting"]:
                claimed.update(sources_in(item["waiting"]["text"]) if item["expected"] else {})
        for item in answer.items:
            if item["waiting"]:
                claim = Claim(
                    item["application"], item, claimed, pictures, found.settings,
                    _changed(found, item["application"], answer),
                    sum(at <= answer.at_ms for at in found.looks), held, recorded,
                )  # fmt: skip
                reasons[f"{item['waiting']['kind']} {claim.code}"] += 1
                if why := story(claim):
                    problems.append(f"{answer.view_ms}: {item['name']}: {item['waiting']['text']}: {why}")
    return Judged(reasons, problems)


def _counted(scenario: Scenario, answer: Answer, pictures: Sequence[Picture]) -> list[str]:
    """Return which applications wait without a reason, or have one and do not wait."""
    told = {item["application"]: item["waiting"] for item in answer.items}
    preempting = {f"root.{one.name}" for one in scenario.queues if one.preempting}
    if "--preempting" in scenario.words:
        preempting = {
            f"root.{each}"
            for at, each in enumerate(scenario.words)
            if scenario.words[at - 1] == "--preempting"
        }
    wrong = []
    for name in {name for picture in pictures for name in picture.apps} | set(told):
        rows = [picture.apps.get(name) for picture in pictures]
        waits = [row is not None and row.pending > 0 and row.queue in preempting for row in rows]
        if all(waits) and told.get(name) is None:
            wrong.append(f"{name} waits, and has no reason")
        if not any(waits) and told.get(name) is not None:
            wrong.append(f"{name} does not wait, and has a reason")
    return wrong


NEXT_LOOKS = 6
"""For so many looks yarnctl may say that it decides next: two a decision, three if it is refused."""


def _changed(found: Evidence, name: str, answer: Answer) -> bool:
    """Return whether the application, or an order, changed since two more looks before, or the loop began."""
    begun = [at for at in found.looks if at <= answer.view_ms]
    if len(begun) <= NEXT_LOOKS:
        return True
    pictures = [each for each in found.pictures if begun[-NEXT_LOOKS] <= each.at_ms <= answer.at_ms]
    shapes = set()
    for picture in pictures:
        app = picture.apps.get(name)
        mine = None if app is None else (app.pending, len(app.tasks), app.activated)
        shapes.add((mine, len(picture.orders), len(picture.gone), picture.flags))
    return len(shapes) > 1 or is_busy(pictures)  # then orders are decided and not sent: a master is late


# --- lies ---------------------------------------------------------------------------------------------

Lie = Callable[[Item], Item | None]
"""Returns an item with a lie in it; None: it cannot be told here."""


def _says(kind: str, code: str, text: str, *told: str, expected: int = 0) -> Lie:
    """Return the lie that gives this reason where one of the kinds ``told`` is true."""

    def lie(item: Item) -> Item | None:
        if item["waiting"]["kind"] not in told:
            return None
        waiting = {"kind": kind, "text": text.format(**item), "reason": {"code": code}, "not_chosen": []}
        return {**item, "waiting": waiting, "expected": expected}

    return lie


def _one_more(item: Item) -> Item | None:
    waiting = item["waiting"]
    if waiting["kind"] not in ("ordered", "would-order", "fits", "awaited"):
        return None
    text = re.sub(r"[0-9]+", lambda found: str(int(found[0]) + 20), waiting["text"], count=1)
    return {**item, "waiting": {**waiting, "text": text}}


def _task_more(item: Item) -> Item | None:
    rows = item["waiting"]["not_chosen"]
    if not rows:
        return None
    rows = [{**rows[0], "tasks": rows[0]["tasks"] + 1}, *rows[1:]]
    return {**item, "waiting": {**item["waiting"], "not_chosen": rows}}


def _cause_as(code: str, *told: str) -> Lie:
    def lie(item: Item) -> Item | None:
        rows = item["waiting"]["not_chosen"]
        if not rows or rows[0]["reason"]["code"] not in told:
            return None
        rows = [{**rows[0], "reason": {**rows[0]["reason"], "code": code}}, *rows[1:]]
        return {**item, "waiting": {**item["waiting"], "not_chosen": rows}}

    return lie


def _words_elsewhere(item: Item) -> Item | None:
    """Return the lie that YARN says the same of a node that is full, or of another queue."""
    text = item["waiting"]["text"]
    if WORDS not in text:
        return None
    text = re.sub(r"<memory:[0-9]+", "<memory:77", text.replace(" at root.production", " at root.adhoc"))
    text = re.sub(r" at root, node", " at root.adhoc, node", text)
    return {**item, "waiting": {**item["waiting"], "text": text}}


def _words_more(item: Item) -> Item | None:
    if item["waiting"]["kind"] not in ("rejected", "limit") or WORDS in item["waiting"]["text"]:
        return None
    text = f"{item['waiting']['text']}; {WORDS}root, node node00000:8041: 'Queue is at rest'"
    return {**item, "waiting": {**item["waiting"], "text": text}}


def _silent(item: Item) -> Item | None:
    return {**item, "waiting": None}


_ONE = "1 container ordered from application_1_0009 (1)"
LIES: Mapping[str, Lie] = {
    "ordered, but nothing was": _says("ordered", "containers-ordered", _ONE, "rejected", "limit", expected=1),
    "twenty more": _one_more,
    "rejected, but ordered": _says("rejected", "no-queue-over-guarantee", "none", "ordered", "would-order"),
    "no job may give": _says("rejected", "no-job-may-give", "none", "ordered", "rejected"),
    "would order, but orders": _says(
        "would-order", "would-order", "yarnctl would order 1 container from application_1_0009 (1)", "ordered"
    ),
    "its queue's limit": _says("limit", "queue-at-maximum", "limit", "rejected", "ordered"),
    "its user's limit": _says("limit", "user-at-limit", "limit", "rejected", "ordered"),
    "not activated": _says("limit", "not-activated", "limit", "rejected", "ordered"),
    "no node": _says("limit", "no-node-large-enough", "limit", "rejected", "ordered"),
    "rejected, but its limit": _says("rejected", "no-task-may-stop", "none", "limit"),
    "paused": _says("not-acting", "paused", "paused", "rejected", "ordered", "limit"),
    "another holds the lock": _says("not-acting", "lock-held-elsewhere", "lock", "rejected", "ordered"),
    "not seen": _says("not-acting", "cluster-fault", "down", "rejected", "ordered"),
    "acts, but is paused": _says("rejected", "no-queue-over-guarantee", "none", "not-acting"),
    "awaited, but none ends": _says("awaited", "tasks-end-soon", "30 tasks end", "rejected", "ordered"),
    "fits, but is full": _says(
        "fits", "fits-not-granted", "{pending} containers fit on node00000:8041", "rejected", "ordered"
    ),
    "rejected, but fits": _says("rejected", "no-queue-over-guarantee", "none", "fits"),
    "decides next": _says("next", "decided-next", "next", "rejected", "limit"),
    "more urgent": _says("rejected", "more-urgent-waits", "none", "rejected", "ordered"),
    "priority pending": _says(
        "rejected", "priority-pending", "YARN still serves application_1_0009 first", "rejected", "ordered"
    ),
    "too many in flight": _says("rejected", "too-many-in-flight", "none", "rejected", "limit"),
    "stands aside": _says("rejected", "standing-aside", "none", "rejected", "ordered"),
    "at this hour": _says("rejected", "outside-hours", "none", "rejected", "ordered"),
    "no queue gives": _says("rejected", "no-queue-gives", "none", "rejected", "ordered"),
    "has its guarantee": _says("rejected", "queue-at-guarantee", "none", "rejected", "ordered"),
    "YARN's words of another": _words_elsewhere,
    "YARN never said it": _words_more,
    "one task more": _task_more,
    "a map": _cause_as("map", "no-runner-carried", "no-streaming-reducer", "not-checkpointable"),
    "no runner": _cause_as("no-runner-carried", "not-checkpointable", "loss-budget"),
    "in shuffle": _cause_as("not-checkpointable", "no-runner-carried", "no-streaming-reducer", "cost"),
    "left alone": _cause_as("left-alone", "no-runner-carried", "no-reduces", "cost"),
    "does not answer": _cause_as("unreachable", "not-checkpointable", "no-runner-carried", "cost"),
    "another kind": _cause_as("other-kind", "left-alone", "no-runner-carried", "no-drain-tag"),
    "no reason at all": _silent,
}  # fmt: skip


def lies_found(found: Evidence) -> dict[str, tuple[int, int]]:
    """Return for each lie in how many answers it was told, and in how many of them it was found."""
    counts = {}
    honest = [answer for answer in found.answers if not judged(found, [answer]).lies]
    for name, lie in LIES.items():
        told = seen = 0
        for answer in honest[:: max(1, len(honest) // 40)]:
            items = tuple((item["waiting"] and lie(item)) or item for item in answer.items)
            if name == "no reason at all":
                items = tuple({**item, "waiting": None} for item in answer.items)
            if items != answer.items:
                told += 1
                seen += bool(judged(found, [answer._replace(items=items)]).lies)
        counts[name] = (told, seen)
    return counts


# --- the program --------------------------------------------------------------------------------------


def problems(found: Evidence) -> list[str]:
    """Return all that is wrong with a scenario."""
    return [
        *(f"never seen: {each}" for each in missing(found)),
        *(f"never logged: {each}" for each in found.scenario.logs if not re.search(each, found.log)),
        *judged(found).lies,
        *found.wrong,
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Play the scenarios and judge every answer."""
    from yarn_research.campaigns.waiting_scenarios import SCENARIOS

    parser = argparse.ArgumentParser(prog="python -m yarn_research.campaigns.waiting_live")
    parser.add_argument("--only", help="play these scenarios (names with commas)")
    parser.add_argument("--at-once", type=int, default=1, help="scenarios at the same time")
    parser.add_argument("--keep", type=Path, help="keep the folders here")
    parser.add_argument("--json", action="store_true", dest="as_json")
    given = parser.parse_args(arguments)
    only, at_once, keep, as_json = given.only, given.at_once, given.keep, given.as_json
    chosen = [each for each in SCENARIOS if only is None or each.name in only.split(",")]
    if not chosen:
        parser.error(f"--only {only}: known are {', '.join(each.name for each in SCENARIOS)}")
    totals, bad = dict.fromkeys(LIES, (0, 0)), 0
    rows = []
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waiting-live-")))

        def one(scenario: Scenario) -> tuple[Scenario, Evidence | None, str]:
            try:
                return scenario, played(scenario, folder / scenario.name), ""
            except Exception as error:
                return scenario, None, f"{type(error).__name__}: {error}"

        with ThreadPoolExecutor(at_once) as threads:
            for scenario, found, failed in threads.map(one, chosen):
                if found is None:
                    bad += 1
                    print(f"{scenario.name:20} FAILED: {failed}", flush=True)
                    continue
                if keep is not None:
                    left = found._replace(scenario=scenario.name)  # type: ignore[arg-type]
                    (folder / scenario.name / "evidence").write_bytes(pickle.dumps(left))
                wrong, reasons = problems(found), judged(found).reasons
                bad += bool(wrong)
                for name, (told, seen) in lies_found(found).items():
                    totals[name] = (totals[name][0] + told, totals[name][1] + seen)
                rows.append(
                    {"scenario": scenario.name, "answers": len(found.answers), **reasons, "wrong": wrong}
                )
                print(
                    f"{scenario.name:20}{found.seconds:6.1f} s{len(found.answers):5} answers"
                    f"{sum(reasons.values()):5} reasons{len(wrong):4} wrong  {dict(reasons)}", flush=True,
                )  # fmt: skip
                for line in wrong[:5]:
                    print(f"    WRONG: {line}", flush=True)
    unseen = [name for name, (_, seen) in totals.items() if not seen]
    if as_json:
        print(json.dumps({"scenarios": rows, "lies": totals}))
    print(f"{len(chosen)} scenarios, {bad} with something wrong")
    print(
        "lies (planted, found): "
        + "; ".join(f"{name} {told}, {seen}" for name, (told, seen) in totals.items())
    )
    if unseen and only is None:
        print(f"never found: {', '.join(unseen)}")
    return 1 if bad or (unseen and only is None) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
