"""The scenarios of ``waiting_live``, as a table.

Unless a scenario says otherwise: two nodes of four slots; research's master and seven tasks fill the cluster;
then production asks for a master and its maps.
"""

from __future__ import annotations

import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.live.jobs.black_box import flink_box, spark_box
from emulator.live.jobs.submission_client import Client, checkpoint_environment
from tests.soak.virtual_live import job
from yarn_research.campaigns.waiting_live import (
    LATER,
    QUICK,
    ROOT,
    Act,
    Scenario,
    Stage,
    Submitted,
    is_up,
    until,
)
from yarn_research.campaigns.waiting_truth import RIVAL_HOST, Daemon, now_ms
from yarnctl.deciding.queue_hold import FIRST_PAUSE_MS
from yarnctl.traces.job import Job
from yarnctl.units import Resources

LONG = 300


def reduces(name: str = "nightly-stats", count: int = 7, seconds: float = LONG, **changes: Any) -> Job:
    """Return research whose reduces run soon, and for long."""
    own = {"job_class": "research", "queue": "research", "shuffle_ms": 200, **changes}
    return job(name, 0, [0.3], [seconds] * count, **own)


def maps(name: str = "nightly-maps", count: int = 7, seconds: float = LONG, **changes: Any) -> Job:
    """Return research of maps only."""
    own = {"job_class": "research", "queue": "research", **changes}
    return job(name, 0, [seconds] * count, [], **own)


def wanted(name: str = "production", count: int = 2, seconds: float = 4, **changes: Any) -> Job:
    """Return production: a master, then ``count`` maps."""
    return job(
        name, 0, [seconds] * count, [], **{"job_class": "production", "queue": "production", **changes}
    )


def soon(*jobs: Job, **how: Any) -> tuple[tuple[float, Submitted], ...]:
    """Return submissions half a second after one another."""
    return tuple((0.5 + at / 2, Submitted(each, **how)) for at, each in enumerate(jobs))


def queues(shares: Mapping[str, float], **changes: Mapping[str, Any]) -> tuple[QueueConfig, ...]:
    """Return leaf queues by their guarantees in percent; ``changes`` by name."""
    plain = {
        name: QueueConfig(name=name, capacity_ratio=share / 100, am_ratio=0.5, preempting=name != "research")
        for name, share in shares.items()
    }
    return tuple(msgspec.structs.replace(one, **changes.get(name, {})) for name, one in plain.items())


MIX = ("--eviction", "mix")
RESEARCH = ("--preemptable", "research")
GUARANTEES = ("--mode", "guarantees", "--preempting", "production", *RESEARCH)
TWO = ("--preempting", "production", "--preempting", "etl")

# --- acts ---------------------------------------------------------------------------------------------


def pause(stage: Stage) -> None:
    stage.wire.flags.add("paused")
    stage.post("loop/pause")


def go_on(stage: Stage) -> None:
    stage.post("loop/continue")
    stage.wire.flags.discard("paused")


def flag(name: str, *, on: bool) -> Act:
    """Return the act that lets the ResourceManager ("down") or HDFS ("store-down") be away, or back."""

    def act(stage: Stage) -> None:
        if on:
            stage.wire.flags.discard("back")
            stage.wire.flags.add(name)
        else:
            stage.wire.flags.discard(name)
            stage.wire.flags.add("back")

    return act


def rival(stage: Stage) -> None:
    """Start another daemon, and wait until it holds the lock."""
    stage.daemon("off", "rival", "--enforce", url=stage.url.replace("127.0.0.1", RIVAL_HOST))
    until(
        lambda: "locked" in stage.run(lambda _: stage.wire.picture()).flags, "the other daemon holds the lock"
    )
    stage.wire.flags.add("rival")


def rival_ends(stage: Stage) -> None:
    stage.processes[0].terminate()
    stage.processes[0].wait(60)
    stage.wire.flags.discard("rival")


def kill(name: str) -> Act:
    """Return the act that kills an application by YARN's REST."""

    def act(stage: Stage) -> None:
        manager = stage.wire.whole.site.manager
        stage.run(lambda _: manager.kill(manager.applications[stage.names[name]], "killed"))

    return act


def spark(*wrap: str, executors: int = 7, tagged: bool = True) -> Act:
    """Return the act that submits research as an application of Spark through ``yarnctl wrap``."""

    def act(stage: Stage) -> None:
        words: Sequence[str] = (
            "--master", "yarn", "--name", "nightly-spark", "--num-executors", str(executors),
            "--queue", "research", "modelled:2+3000",
        )  # fmt: skip
        if tagged:
            words = _wrapped(stage, wrap, words)
        box = spark_box(words)
        client = Client(stage.url, "ann")
        environment = checkpoint_environment(client.webhdfs())
        stage.names[box.name] = client.submit(
            box.job("ann", environment), box.queue, box.tags, box.priority, box.kind
        )

    return act


def flink(*tags: str) -> Act:
    """Return the act that submits research as an application of Flink."""

    def act(stage: Stage) -> None:
        words = [
            "run-application", "-t", "yarn-application", "-Dyarn.application.name=nightly-flink", "-p", "7",
            "-Dyarn.application.queue=research", *(f"-Dyarn.tags={tag}" for tag in tags), "modelled:300+0",
        ]  # fmt: skip
        box = flink_box(words)
        client = Client(stage.url, "ann")
        stage.names[box.name] = client.submit(
            box.job("ann"), box.queue, box.tags, box.priority, kind=box.kind
        )

    return act


def budgets(text: str) -> Act:
    """Return the act that writes a budgets file. In it, ``{hours}`` is a window that opens at a full minute.

    That minute is 60 s away, or up to 120 s.
    """

    def act(stage: Stage) -> None:
        opens_s = (int(time.time()) // 60 + 2) * 60
        stage.wire.flags.add(f"opens:{opens_s * 1000}")
        first, last = (time.strftime("%H:%M", time.gmtime(each)) for each in (opens_s, opens_s + 3600))
        (stage.folder / "budgets.toml").write_text(text.replace("{hours}", f"{first}-{last}"))

    return act


def wrong(name: str) -> Act:
    """Return the act that lets the ResourceManager misstate its "order" of queues, or its "heartbeat".

    Nothing else leads to orders in vain, or to a request that fits and is not granted in time.
    """
    return lambda stage: stage.wire.flags.add(f"wrong-{name}")


def resume(stage: Stage) -> object:
    """End the pause of production by ``yarnctl resume``, when it has lasted for three seconds."""
    aside = stage.get("snapshot")["loop"]["aside"]
    if not aside or aside[0]["until_ms"] - now_ms() > FIRST_PAUSE_MS - 3000:
        return LATER
    log = stage.folder / "resume.log"
    process = stage.program("resume", "root.production", "--url", f"http://{stage.listen}", log=log)
    assert process.wait(60) == 0, log.read_text()
    stage.wire.flags.add("resumed")
    return None


def disk_full(stage: Stage) -> None:
    """Let the daemon's files grow no more: its journal is the largest."""
    size = (stage.folder / "state/journal.jsonl").stat().st_size
    stage.wire.flags.add("disk-full")
    resource.prlimit(stage.processes[-1].pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def disk_freed(stage: Stage) -> None:
    """Wait until the daemon has ended, and start it again."""
    assert stage.processes[-1].wait(60) == 2
    stage.wire.flags.symmetric_difference_update({"disk-full", "back"})
    stage.run_daemon()
    until(lambda: is_up(stage), "the daemon has started again")


def _wrapped(stage: Stage, wrap: Sequence[str], words: Sequence[str]) -> Sequence[str]:
    (stage.folder / "leave.jar").write_bytes(b"")
    told = [sys.executable, "-c", "from yarnctl.cli import main; main()", "wrap", "--spark", *wrap]
    done = subprocess.run(
        [*told, "--", "spark-submit", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    found = shlex.split(done.stdout)
    return found[found.index("spark-submit") + 1 :]


# --- the table ----------------------------------------------------------------------------------------

NIGHTLY = (Submitted(reduces()),)
SCENARIOS: tuple[Scenario, ...] = (
    # orders by each lever
    Scenario("suspend", NIGHTLY, soon(wanted(count=3)), expects=("containers-ordered",)),
    Scenario(
        "kill",
        (Submitted(maps()),),
        soon(wanted()),
        words=(*MIX, "--may-lose", "40%"),
        expects=("containers-ordered",),
        settings=Daemon(mix=True, may_lose_ratio=0.4),
    ),
    Scenario(
        "drain",
        (),
        soon(wanted()),
        words=(*MIX, "--may-lose", "40%", "--room-within", "30s"),
        before=(spark("--route", "signal"),),
        expects=("containers-ordered",),
        settings=Daemon(mix=True, may_lose_ratio=0.4, room_within_ms=30_000),
    ),
    Scenario(
        "cap-queue", NIGHTLY, soon(wanted(count=3)), words=("--cap-queue",), expects=("containers-ordered",)
    ),
    # no task can be chosen, and what would help
    Scenario(
        "no-runner",
        (Submitted(reduces(count=11), wrapped=False),),
        soon(wanted()),
        full=12,
        slots=6,
        expects=("no-task-may-stop", "no-runner-carried"),
        explains=(
            r"now: 11 tasks of nightly-stats: .*task runner; to free them: submit it with yarnctl wrap",
        ),
    ),
    Scenario(
        "maps-only",
        (Submitted(maps()),),
        soon(wanted()),
        expects=("no-task-may-stop", "no-reduces"),
        explains=(r"now: 7 tasks of nightly-maps: the job has no reduces; to free them: .*--eviction mix",),
    ),
    Scenario(
        "two-causes",
        (Submitted(maps(count=3)), Submitted(reduces(count=3), wrapped=False)),
        soon(wanted()),
        expects=("no-task-may-stop", "no-reduces", "no-runner-carried"),
        explains=(r"now: 3 tasks of nightly-maps: ", r"now: 3 tasks of nightly-stats: "),
    ),
    Scenario(
        "shuffle",
        (Submitted(job("nightly-shuffle", 0, [0.3, LONG], [60] * 6)),),
        soon(wanted()),
        expects=("no-task-may-stop", "not-checkpointable"),
        explains=(r"now: 6 reduces of nightly-shuffle: .*; to free them: wait until the task reduces",),
    ),
    Scenario(
        "ends-soon",
        (Submitted(reduces(seconds=24)),),
        soon(wanted()),
        words=("--order-timeout-s", "25"),
        expects=(),
        seconds=45,
    ),
    Scenario(
        "no-budget",
        (Submitted(maps()),),
        soon(wanted()),
        words=(*MIX, "--may-lose", "0%"),
        expects=("no-task-may-stop", "map"),
        settings=Daemon(mix=True),
        explains=(r"now: 7 maps of nightly-maps: a map would lose its work; to free them: .*--may-lose",),
    ),
    Scenario(
        "lost-budget",
        (Submitted(maps()),),
        soon(wanted(count=4)),
        words=(*MIX, "--may-lose", "12%"),
        expects=("no-task-may-stop", "loss-budget"),
        settings=Daemon(mix=True, may_lose_ratio=0.12),
    ),
    Scenario(
        "no-drain-tag",
        (),
        soon(wanted()),
        words=(*MIX,),
        before=(spark(tagged=False),),
        expects=("no-task-may-stop",),
        settings=Daemon(mix=True),
        explains=(r"now: 7 \w+s? of nightly-spark: ",),
    ),
    Scenario(
        "spark-natjam",
        (),
        soon(wanted()),
        before=(spark("--route", "signal"),),
        expects=("no-task-may-stop",),
    ),
    Scenario(
        "starting-driver",
        (Submitted(maps(count=3)),),
        soon(wanted()),
        words=(*MIX, "--room-within", "30s"),
        before=(spark("--route", "signal", executors=3),),
        settings=Daemon(mix=True, room_within_ms=30_000),
        expects=("no-task-may-stop",),
    ),
    Scenario(
        "masters-only",
        tuple(
            Submitted(job(f"nightly-{at}", 0, [LONG], [], queue="research", map_size=Resources(8192, 1)))
            for at in range(3)
        ),
        soon(wanted(count=12)),
        full=3,
        queues=queues({"production": 95, "research": 5}, research={"am_ratio": 1.0}),
        expects=("no-job-may-give",),
    ),
    Scenario(
        "flink-natjam", (), soon(wanted()), before=(flink(),), expects=("no-task-may-stop", "other-kind")
    ),
    Scenario(
        "flink-untagged",
        (),
        soon(wanted()),
        words=MIX,
        before=(flink(),),
        settings=Daemon(mix=True),
        expects=("no-task-may-stop", "no-drain-tag"),
    ),
    # they opt out
    Scenario(
        "left-alone",
        (
            Submitted(reduces(count=3), tags=("yarnctl-leave-alone",)),
            Submitted(reduces("eves-stats", count=3, user="eve")),
        ),
        soon(wanted()),
        words=("--budgets", "{folder}/budgets.toml"),
        before=(budgets("[user.eve]\nleave_alone = true\n"),),
        settings=Daemon(left_alone=("eve",)),
        expects=("no-task-may-stop", "left-alone"),
        explains=(
            r"now: 3 tasks of nightly-stats: .*its tag opts out",
            r"of eves-stats: .*its user opts out",
        ),
    ),
    Scenario(
        "queue-left-alone",
        (Submitted(reduces("adhoc-stats", count=7, queue="adhoc")),),
        soon(wanted()),
        words=(*RESEARCH, "--preemptable", "adhoc", "--budgets", "{folder}/budgets.toml"),
        before=(budgets("[queue.adhoc]\nleave_alone = true\n"),),
        queues=queues({"production": 80, "adhoc": 10, "research": 10}, adhoc={"preempting": False}),
        expects=("no-queue-over-guarantee",),  # a queue that opts out is no preemptable queue
    ),
    Scenario(
        "hours",
        NIGHTLY,
        soon(wanted()),
        words=("--budgets", "{folder}/budgets.toml"),
        before=(budgets('[queue.research]\nhours = ["{hours}"]\nzone = "UTC"\n'),),
        expects=("outside-hours", "containers-ordered"),
        explains=(r"may not be taken at this hour \(hours in UTC\); it opens 20",),
        seconds=150,
    ),
    # its own limit
    Scenario(
        "queue-maximum",
        (Submitted(reduces(count=2)),),
        soon(wanted(count=8, seconds=30)),
        full=3,
        queues=queues({"production": 30, "research": 70}, production={"maximum_ratio": 0.375}),
        expects=("queue-at-maximum",),
        explains=(r"YARN reports at root\.production, node \S+: 'Queue hits max-capacity limit'",),
    ),
    Scenario(
        "user-limit",
        (Submitted(reduces(count=2)),),
        soon(wanted(count=8, seconds=30)),
        full=3,
        queues=queues({"production": 50, "research": 50}, production={"user_limit_factor": 0.5}),
        expects=("user-at-limit",),
        explains=(r"YARN reports at application_\S+, node \S+: 'Queue hits user max-capacity limit'",),
    ),
    Scenario(
        "not-activated",
        (Submitted(reduces(count=4)),),
        soon(wanted("production-1", 1, 60), wanted("production-2")),
        full=5,
        queues=queues({"production": 95, "research": 5}, production={"am_ratio": 0.1}),
        expects=("not-activated",),
    ),
    Scenario(
        "too-large",
        (Submitted(reduces(count=3)),),
        soon(wanted(map_size=Resources(8192, 1))),
        full=4,
        expects=("no-node-large-enough",),
        explains=(r"YARN reports at node\S+, node \S+: 'Node does not have sufficient resource",),
    ),
    # guarantees and order
    Scenario(
        "guarantee",
        (Submitted(reduces(count=3)), Submitted(wanted("production-0", 3, 60))),
        soon(wanted()),
        queues=queues({"production": 50, "research": 50}),
        expects=("no-queue-over-guarantee",),
    ),
    Scenario(
        "to-its-guarantee",
        (Submitted(reduces(count=5)), Submitted(wanted("production-0", 1, 60))),
        soon(wanted(count=4, seconds=30)),
        queues=queues({"production": 50, "research": 50}),
        expects=("containers-ordered",),
    ),
    Scenario(
        "takes-back",
        (Submitted(reduces(count=11)), Submitted(wanted("production-0", 7, 60))),
        soon(wanted()),
        full=20,
        slots=10,
        queues=queues({"production": 30, "research": 50, "other": 20}, other={"preempting": False}),
        expects=("queue-takes-back",),
    ),
    Scenario(
        "goes-elsewhere",
        (Submitted(reduces(count=5)), Submitted(wanted("production-0", 1, 60))),
        (*soon(job("adhoc", 0, [30] * 3, [], queue="adhoc")), *soon(wanted("production-1"))),
        queues=queues({"production": 25, "adhoc": 50, "research": 25}, adhoc={"preempting": False}),
        expects=("room-goes-to",),
    ),
    Scenario(
        "two-queues",
        NIGHTLY,
        soon(wanted("production-1", 2), job("etl-1", 0, [4, 4], [], queue="etl")),
        words=TWO,
        queues=queues({"production": 45, "etl": 45, "research": 10}),
        expects=("containers-ordered",),
    ),
    Scenario(
        "two-jobs",
        NIGHTLY,
        soon(wanted("production-1", 6, 30), wanted("production-2", 4, 30)),
        expects=("containers-ordered",),
    ),
    Scenario(
        "in-flight",
        NIGHTLY,
        soon(*(wanted(f"production-{at}", 1, 30) for at in range(4))),
        words=("--in-flight", "0", "--in-flight-least", "1"),
        settings=Daemon(in_flight_max=1),
        expects=("containers-ordered", "too-many-in-flight"),
    ),
    Scenario(
        "stands-aside",
        (Submitted(reduces(count=11)), Submitted(wanted("production-0", 7, 60))),
        soon(wanted()),
        full=20,
        slots=10,
        queues=queues({"production": 30, "research": 50, "other": 20}, other={"preempting": False}),
        before=(wrong("order"),),
        acts=((3.0, resume),),
        expects=("containers-ordered", "standing-aside"),
        explains=(r"to end the pause earlier, run yarnctl resume root\.production",),
        seconds=60,
    ),
    # up to guarantees
    Scenario(
        "guarantees",
        NIGHTLY,
        soon(wanted(count=3)),
        words=GUARANTEES,
        queues=queues({"production": 50, "research": 50}),
        expects=("containers-ordered",),
    ),
    Scenario(
        "no-queue-gives",
        (Submitted(reduces(count=1)), Submitted(job("adhoc", 0, [60] * 5, [], queue="adhoc"))),
        soon(wanted()),
        words=GUARANTEES,
        queues=queues({"production": 50, "adhoc": 25, "research": 25}, adhoc={"preempting": False}),
        expects=("no-queue-gives",),
    ),
    Scenario(
        "queue-at-guarantee",
        (Submitted(reduces(count=3)), Submitted(wanted("production-0", 3, 60))),
        soon(wanted()),
        words=GUARANTEES,
        queues=queues({"production": 50, "research": 50}),
        expects=("queue-at-guarantee",),
    ),
    # the daemon
    Scenario(
        "disk-full",
        (Submitted(reduces(), wrapped=False),),
        (*soon(wanted(count=3, seconds=60)), (6.5, Submitted(wanted("production-2")))),
        acts=((6.0, disk_full), (7.0, disk_freed)),
        expects=("no-task-may-stop",),
        logs=(r"state/journal\.jsonl: File too large; free disk space, or repair the disk, and restart",),
        seconds=40,
    ),
    Scenario(
        "observes",
        NIGHTLY,
        soon(wanted(count=3)),
        settings=Daemon(observes=True),
        expects=("would-order",),
        explains=(r"yarnctl would order",),
    ),
    Scenario(
        "paused",
        NIGHTLY,
        soon(wanted()),
        acts=((0.1, pause), (4.0, go_on)),
        expects=("paused", "containers-ordered"),
    ),
    Scenario(
        "locked",
        NIGHTLY,
        soon(wanted(count=8, seconds=30, map_size=Resources(4096, 4))),
        before=(rival,),
        settings=Daemon(blocked=True),
        expects=("lock-held-elsewhere",),
        acts=((6.0, rival_ends),),
    ),
    Scenario(
        "manager-away",
        (Submitted(reduces(), wrapped=False),),
        soon(wanted()),
        acts=((5.0, flag("down", on=True)), (9.0, flag("down", on=False))),
        expects=("no-task-may-stop", "cluster-fault"),
    ),
    Scenario(
        "store-away",
        (Submitted(reduces(), wrapped=False),),
        soon(wanted()),
        acts=((3.0, flag("store-down", on=True)), (14.0, flag("store-down", on=False))),
        expects=("hdfs-unwritable",),
    ),
    # YARN itself, and ends
    Scenario(
        "yarn-gives",
        (Submitted(reduces(seconds=16), wrapped=False),),
        soon(wanted(count=4)),
        expects=("no-task-may-stop",),
        seconds=30,
    ),
    Scenario(
        "awaited",
        (Submitted(maps(seconds=16)),),
        soon(wanted()),
        words=(*MIX, "--room-within", "12s"),
        settings=Daemon(mix=True, room_within_ms=12_000),
        expects=("tasks-end-soon",),
    ),
    Scenario(
        "fits",
        (Submitted(reduces(count=3)),),
        ((0.5, Submitted(wanted(count=4, seconds=10))),),
        full=4,
        timing=msgspec.structs.replace(QUICK, nm_heartbeat_ms=4000),
        before=(wrong("heartbeat"),),
        expects=("fits-not-granted",),
    ),
    Scenario(
        "ends-waiting",
        NIGHTLY,
        soon(wanted(count=3, seconds=60)),
        acts=((2.0, kill("production")),),
        seconds=12,
    ),
    Scenario(
        "research-ends",
        (Submitted(reduces(), wrapped=False),),
        soon(wanted(count=3)),
        acts=((5.0, kill("nightly-stats")),),
        expects=("no-task-may-stop",),
    ),
    # deadlines
    Scenario(
        "deadlines",
        (Submitted(reduces(queue="production"), deadline_s=3000),),
        soon(wanted("production-1", 3, 20), wanted("production-2", 3, 20), deadline_s=60),
        words=("--mode", "deadlines", "--preempting", "production", "--allow-priority"),
        expects=("containers-ordered", "more-urgent-waits"),
        settings=Daemon(research=("root.production",), deadlines=True),
    ),
)
