"""What must be refused, through the live loop: never a wrong or short output, and each refusal says why.

Law: words are read where an operator reads them: what a port answers (it stands in the journal), the log of
the task's own container, yarnctl's log, ``/v1/refusals`` and the journal itself. The same refusals one by
one, and reducers that break their promise under ``yarnctl wrap --verify``, are tested in ``tests/unit`` (see
LINKS).
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import pytest

from emulator.live.wire.submitted_job import ModelledJob, StreamingJob
from tests import http_client
from tests.soak.fault_daemon import ThreadDaemon
from tests.soak.fault_stage import ATTACHMENT, DECIDING
from tests.soak.rig import LiveCluster, Seen, clock_ms, live_cluster, wait_until
from tests.soak.workloads import WORKLOADS, job_of, write_input
from yarnctl.attach.port import AttachedPort
from yarnctl.daemon.running import Plan
from yarnctl.deciding.model import (
    Accepted,
    ManifestSeen,
    ObservationRequest,
    Outcome,
    Refused,
    Release,
    Suspend,
)
from yarnctl.deciding.records import Decision, Refusal
from yarnctl.journal.file import read
from yarnctl.journal.rendering import text
from yarnctl.service.app import make_app
from yarnctl.service.serving import serve_in_thread
from yarnctl.task_runner.runner.protocol.manifests import sealed
from yarnctl.traces.job import Job

pytestmark = pytest.mark.xdist_group("refusals")  # what is made once for all is made in one worker

ROOT = Path(__file__).resolve().parents[2]
LINKS = {
    "tests/runner/test_wrap.py": ("test_reducers_that_break_the_promise_are_caught",
        "test_grouping_by_fewer_fields_is_caught_and_the_promise_helps",
        "test_what_cannot_be_suspended_is_refused_with_the_reason"),
    "tests/runner/test_runner.py": ("test_a_bad_generation_is_not_used_and_the_one_before_is",
        "test_other_keys_while_skipping_start_from_zero_with_nothing_written_before",
        "test_where_nothing_can_be_proven_the_reducer_runs_untouched",
        "test_keys_out_of_order_after_a_skip_fail_and_set_the_checkpoint_aside"),
    "tests/unit/attach/test_performing.py": ("test_never_a_release_on_a_harmed_checkpoint",
        "test_never_a_release_on_a_foreign_manifest"),
}  # fmt: skip
PROMISES = ("awk END", "top-N", "header", "uniq -c across keys")


@pytest.mark.parametrize("path", LINKS)
def test_what_is_tested_elsewhere_is_still_there(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert [name for name in LINKS[path] if f"def {name}(" not in text] == []
    if path.endswith("test_wrap.py"):
        assert [name for name in PROMISES if f'"{name}"' not in text] == []


# --- checkpoints that are harmed while their attempt holds ------------------------------------------


class Harm(NamedTuple):
    """What is done to a checkpoint, what yarnctl's port answers then, what the next attempt says."""

    do: Callable[[Path], None]
    answers: str
    says: str


def torn(manifest: Path) -> None:
    data = manifest.read_bytes()
    manifest.write_bytes(data[: len(data) // 2])


def foreign(manifest: Path) -> None:
    """Whole and well sealed, but of another task."""
    fields = json.loads(manifest.read_bytes())
    other = fields["task"].replace("_r_000000", "_r_000001")
    fields.update(task=other, attempt=fields["attempt"].replace("_r_000000", "_r_000001"))
    fields.pop("check")
    manifest.write_bytes(sealed(fields))


def wrong_generation(manifest: Path) -> None:
    fields = json.loads(manifest.read_bytes())
    fields["generation"] = 7
    fields.pop("check")
    manifest.write_bytes(sealed(fields))


def replaced_part(manifest: Path) -> None:
    """Other bytes of the same length: only their digest can tell."""
    part = next(manifest.parent.glob("gen-*.part"))
    part.write_bytes(bytes(part.stat().st_size))


def short_part(manifest: Path) -> None:
    part = next(manifest.parent.glob("gen-*.part"))
    part.write_bytes(part.read_bytes()[:-1])


HARMS = {
    "torn": Harm(torn, "incomplete or invalid", "not used: .*incomplete or invalid"),
    "foreign": Harm(foreign, "belongs to another task", "not used: .*belongs to another task"),
    "wrong-generation": Harm(wrong_generation, "unlike its name", "not used: .*unlike its name"),
    "replaced-part": Harm(replaced_part, "", "set aside: .*content differs from what was saved"),
    "short-part": Harm(short_part, "bytes, not", "not used: .*bytes, not"),
    "other-map-output": Harm(
        lambda _: None, "", "set aside: the first .* keys differ from those of the checkpoint"
    ),
}
WORK = WORKLOADS["sum"]._replace(keys=100, pause_ms=60)


class Scene(NamedTuple):
    """One harmed job: its application, and what was answered to the Release."""

    application: str
    job: StreamingJob
    answer: Outcome


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("refusals"), nodes=2, slots=10) as running:
        yield running


@pytest.fixture(scope="module")
def scenes(cluster: LiveCluster) -> dict[str, Scene]:
    """Suspend a job for each harm, harm its checkpoint while it holds, have it released, and wait."""
    port = cluster.attach()
    wait_until(
        lambda: port.observe(ObservationRequest()).now_ms and not port.permission.why_nothing(),
        "the cluster is known",
    )
    found: dict[str, Scene] = {}
    for name in HARMS:
        application, job = submitted(cluster, name)  # one at a time: on a busy machine the last would be done
        seen = saved(cluster, port, application, name)
        HARMS[name].do(manifest_of(cluster, seen))
        names = (f"o-{name}", application, seen.attempt, seen.container)
        answer = port.perform(Release(*names, 1))
        if not isinstance(answer, Accepted):
            kill(cluster, application, seen.attempt)  # as an administrator may, whatever yarnctl thinks
        found[name] = Scene(application, job, answer)
    for scene in found.values():
        assert cluster.ending(scene.application) == ("SUCCEEDED", "")
    port.close()
    return found


def submitted(cluster: LiveCluster, name: str) -> tuple[str, StreamingJob]:
    folder = cluster.folder / name
    source = write_input(WORK, folder, name)
    job = cluster.with_runner(job_of(WORK, source, folder / "job"))
    if name == "other-map-output":
        faults = {"emulator.fault.map.rerun": "0", "emulator.fault.map.other": "0"}
        job = msgspec.structs.replace(job, settings={**job.settings, **faults})
    return cluster.submit(job), job


def saved(cluster: LiveCluster, port: AttachedPort, application: str, name: str) -> Seen:
    """Suspend the job's reduce once it has done some groups; return the attempt, which holds now."""
    log = cluster.folder / name / "job" / "groups"
    wait_until(lambda: log.exists() and len(log.read_bytes().splitlines()) > 3, f"groups of {name}")
    seen = next(one for one in cluster.reduces(application) if one.state == "RUNNING")
    asked = Suspend(f"o-{name}", application, seen.attempt, seen.container, 1, clock_ms() + 60_000)
    outcome = port.perform(asked)
    assert isinstance(outcome, Accepted), outcome
    told: list[Any] = []

    def is_saved() -> bool:
        told.extend(port.observe(ObservationRequest(cluster=False, orders=(f"o-{name}",))).facts)
        return any(isinstance(fact, ManifestSeen) for fact in told)

    wait_until(is_saved, f"the manifest of {name}")
    return seen


def manifest_of(cluster: LiveCluster, seen: Seen) -> Path:
    store = cluster.folder / "work" / "hdfs" / "yarnctl" / "checkpoints"
    return next(store.glob(f"*/*/gen-*-{seen.attempt}.manifest.json"))


def kill(cluster: LiveCluster, application: str, attempt: str) -> None:
    job, task = application.replace("application_", "job_", 1), attempt.replace("attempt_", "task_", 1)
    path = f"ws/v1/mapreduce/jobs/{job}/tasks/{task.rpartition('_')[0]}/attempts/{attempt}/state"
    url = f"{cluster.url}/proxy/{application}/{path}?user.name=alice"
    assert http_client.put(url, json={"state": "KILLED"}, timeout=60).status_code == 200


def said(cluster: LiveCluster, application: str) -> str:
    """Return what all containers of an application have written to their logs."""
    name = application.removeprefix("application_")
    logs = (cluster.folder / "work" / "nodes").glob(f"*/container_{name}_*/stderr")
    return "\n".join(path.read_text(errors="replace") for path in logs)


def sums(job: StreamingJob, altered: bool = False) -> bytes:
    """Return what an undisturbed run writes; ``altered``: on the other map output of the fault."""
    found: Counter[bytes] = Counter()
    for line in Path(job.inputs[0], "lines").read_bytes().splitlines():
        key, _, value = line.partition(b"\t")
        found[key + b"~" if altered and crc32(key) % 3 == 0 else key] += int(value)
    return b"".join(b"%s\t%d\n" % (key, found[key]) for key in sorted(found))


@pytest.mark.parametrize("name", HARMS)
def test_a_harmed_checkpoint_is_not_gone_on_from(
    name: str, cluster: LiveCluster, scenes: dict[str, Scene]
) -> None:
    scene, harm = scenes[name], HARMS[name]
    if harm.answers:
        assert isinstance(scene.answer, Refused), scene.answer
        assert harm.answers in text(scene.answer.why)
    else:  # nothing that yarnctl looks at shows it; the runner finds out before a byte is written
        assert scene.answer == Accepted()
    assert re.search(harm.says, said(cluster, scene.application)), said(cluster, scene.application)
    output = Path(scene.job.output, "part-00000").read_bytes()
    assert output == sums(scene.job, altered=name == "other-map-output")


# --- jobs that are left alone -----------------------------------------------------------------------

TOTAL = """
import sys, time
total = 0
for line in sys.stdin:
    total += int(line.split("\\t")[1])
    time.sleep(0.01)
print("total", total, sep="\\t")
"""
COMPARATOR = "mapreduce.job.output.key.comparator.class"
BACKWARDS = "org.apache.hadoop.mapred.lib.KeyFieldBasedComparator"
ALONE = {
    "unpromised": "--restartable is not set",
    "comparator": f"{COMPARATOR} is {BACKWARDS}",
    "no-runner": "the job's reducer is not wrapped in the task runner",
}


@pytest.fixture(scope="module")
def left_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LiveCluster, dict[str, str], ThreadDaemon, str]]:
    """Fill a small cluster with jobs that nobody may touch, and let a hurried job come."""
    folder = tmp_path_factory.mktemp("alone")
    with live_cluster(folder, nodes=1, slots=6) as cluster:
        plan = Plan(
            cluster=cluster.config, attachment=ATTACHMENT, settings=DECIDING, state_dir=folder / "state"
        )
        daemon = ThreadDaemon(plan, Counter())
        log = logging.FileHandler(folder / "yarnctl.log")
        logger = logging.getLogger("yarnctl")
        logger.addHandler(log)
        logger.setLevel(logging.INFO)
        daemon.start()
        jobs = {name: cluster.submit(stateful(cluster, name)) for name in ALONE}
        wait_until(lambda: all(running(cluster, one) for one in jobs.values()), "all room is used")
        wait_until(lambda: daemon.ready, "yarnctl is ready")
        hurried = cluster.submit(ModelledJob(job=HURRIED, runner=False), "production")
        journal = folder / "state" / "journal.jsonl"
        wait_until(lambda: journal.exists() and b'"type":"refusal"' in journal.read_bytes(), "a refusal")
        yield cluster, jobs, daemon, hurried
        assert daemon.stop() == ""
        logger.removeHandler(log)
        log.close()


HURRIED = Job(
    name="hurried", job_class="production", submitted_at_ms=0, map_ms=(100,), reduce_ms=(100,),
    reduce_keys=(1,), shuffle_ms=0, user="bob", queue="production",
)  # fmt: skip


def stateful(cluster: LiveCluster, name: str) -> StreamingJob:
    """Return a job whose reducer prints its total at the end, with a reason why it may not be suspended."""
    folder = cluster.folder / name
    work = WORK._replace(reducer="")
    job = job_of(work, write_input(work, folder, name), folder / "job")
    (folder / "job" / "reduce.py").write_text(TOTAL)
    if name != "no-runner":
        job = cluster.with_runner(job, restartable=name == "comparator")
    if name == "comparator":  # past the checks of ``submit`` and ``wrap``, which refuse it
        job = msgspec.structs.replace(job, settings={**job.settings, COMPARATOR: BACKWARDS})
    return job


def running(cluster: LiveCluster, application: str) -> bool:
    return any(one.merged_at_ms for one in cluster.reduces(application))


def test_reducers_that_promise_nothing_are_left_alone(
    left_alone: tuple[LiveCluster, dict[str, str], ThreadDaemon, str],
) -> None:
    cluster, jobs, daemon, hurried = left_alone
    assert daemon.loop is not None
    publisher = daemon.loop.publisher
    service = serve_in_thread(make_app(lambda: publisher.view))
    try:
        wait_until(
            lambda: http_client.get(f"{service.url}/v1/refusals", timeout=30).json()["total"],
            "a refusal shown",
        )
        shown = http_client.get(f"{service.url}/v1/refusals", timeout=30).json()["items"][-1]
        decisions = http_client.get(f"{service.url}/v1/decisions", timeout=30).json()["total"]
    finally:
        service.stop()
    assert decisions == 0
    assert hurried in json.dumps(shown)
    records = [line.record for line in read(cluster.folder / "state" / "journal.jsonl")]
    refused = [one for one in records if isinstance(one, Refusal)]
    assert {one.trigger.application for one in refused} == {hurried}
    reasons = {row.application: row.why for one in refused for row in one.refused_jobs}
    assert reasons == dict.fromkeys(jobs.values(), "no-runner")
    for name, application in (*jobs.items(), ("hurried", hurried)):
        assert cluster.ending(application) == ("SUCCEEDED", ""), name
    assert not any(isinstance(one, Decision) for one in records)
    assert not cluster.manifests(jobs["unpromised"])


@pytest.mark.parametrize("name", ALONE)
def test_who_is_left_alone_is_told_why(
    name: str, left_alone: tuple[LiveCluster, dict[str, str], ThreadDaemon, str]
) -> None:
    cluster, jobs, _, _ = left_alone
    cluster.ending(jobs[name])
    assert f"{jobs[name]} is never suspended: {ALONE[name]}" in (cluster.folder / "yarnctl.log").read_text()
    if name != "no-runner":
        assert f"the reducer runs without the task runner: {ALONE[name]}" in said(cluster, jobs[name])
    source = cluster.folder / name / f"in-{WORK.name}" / "lines"
    total = sum(int(line.partition(b"\t")[2]) for line in source.read_bytes().splitlines())
    output = cluster.folder / name / "job" / "out" / "part-00000"
    assert output.read_text() == f"total\t{total}\n"
