"""Outputs of other forms, and every policy, in one scenario on a real Hadoop.

Law: the reference is a real undisturbed run of the same job. A compressed part is the same byte for byte; a
SequenceFile holds a random marker, drawn for each file, which is masked and nothing else. Several yarnctl
look on with other policies while one acts: the same cluster, each with its own choice.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

from tests.hadoop.attached import QUEUES, Attached
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.scenarios import (
    Running,
    Scenario,
    decisions,
    differing,
    play,
    production,
    replays,
    research,
    wrongly_ranked,
)
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.records import Decision, Header, Record
from yarnctl.deciding.snapshot_rows import Reader

GZIP = {
    "mapreduce.output.fileoutputformat.compress": "true",
    "mapreduce.output.fileoutputformat.compress.codec": "org.apache.hadoop.io.compress.GzipCodec",
}
SEQUENCE = ("-outputformat", "org.apache.hadoop.mapred.SequenceFileOutputFormat")
MARKER_BYTES = 16

TEXT = research("text", 150, 190, 230, 270)
COMPRESSED = research("gzip", 150, 190, 230)._replace(settings=GZIP)
SEQUENCED = research("sequence", 150, 190)._replace(words=SEQUENCE)
FORMS = ("text", "gzip", "sequence")
POLICIES = (("MR", "LRT"), ("LR", "SRT"), ("LR", "LRT"), ("PR", "SRT"), ("PR", "LRT"))


def test_outputs_of_every_form_are_those_of_undisturbed_runs_and_every_policy_chooses_its_own(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    scenario = Scenario("formats", (TEXT, COMPRESSED, SEQUENCED), (production("quick", 6, 6, 6, 6, 6),))
    with contextlib.ExitStack() as stack:
        others = {
            policies: stack.enter_context(looking_on(loop_cluster, tmp_path, *policies))
            for policies in POLICIES
        }
        ran = play(loop_cluster, scenario, tmp_path)
    for name in FORMS:
        assert ran.freed(name), (name, ran.story())
        assert ran.jobs[name].groups_twice() == 0, name
    assert replays(ran.daemon)
    undisturbed_runs_are_the_same(ran, tmp_path)
    first = decisions(ran)[0]
    sizes = {ran.jobs[name].application: len(ran.jobs[name].plan.groups) + 1 for name in FORMS}
    assert held_then(first, ran.daemon.records()) == sizes
    assert best(first, "MR", ran.daemon.records())
    assert wrongly_ranked(ran) == []
    for (job_policy, task_policy), other in others.items():
        seen = [record for record in other.records() if isinstance(record, Decision) and record.picks]
        assert seen, (job_policy, task_policy, other.said())
        assert best(seen[0], job_policy, other.records()), (job_policy, seen[0])
        assert replays(other), "with the policies that its header names"
        assert wrongly_ranked(ran, seen, longest_first=task_policy == "LRT") == [], (job_policy, task_policy)


def held_then(decision: Decision, records: Iterable[Record]) -> dict[str, int]:
    """Return how many containers each job held that a decision could have chosen first."""
    reader, queues = Reader(), tuple[str, ...]()
    for record in records:
        if isinstance(record, Header):
            reader, queues = Reader(), record.settings.preemptable_queues
        elif isinstance(record, Observed) and record.change is not None:
            reader.snapshot(record.change)
        elif record == decision:
            break
    views = reader.applications.values()
    return {view.application: view.containers for view in views if view.queue in queues}


def best(decision: Decision, policy: str, records: Iterable[Record]) -> bool:
    """Say whether the job that was chosen first is the policy's; a draw may choose any."""
    held = held_then(decision, records)
    chosen = held[decision.picks[0].application]
    return {"MR": chosen == max(held.values()), "LR": chosen == min(held.values()), "PR": True}[policy]


def looking_on(cluster: Cluster, folder: Path, job_policy: str, task_policy: str) -> Attached:
    """Return a yarnctl that decides by these policies and does nothing."""
    words = (*QUEUES, "--policy", job_policy, "--task-policy", task_policy)
    return Attached(cluster, folder / f"looking-{job_policy}-{task_policy}", words, enforce=False)


def undisturbed_runs_are_the_same(ran: Running, folder: Path) -> None:
    """Run each job again, without the runner and with nobody about, and compare every part."""
    home = folder / "undisturbed"
    home.mkdir()
    references = {
        plan.name: Job(ran.cluster, alone(plan), home, "1") for plan in (TEXT, COMPRESSED, SEQUENCED)
    }
    for name, job in references.items():
        assert job.wait().state == "SUCCEEDED", job.said()
        assert parts(ran.jobs[name]) == parts(job), name
    assert differing(references["text"]) == [], "what is known beforehand is not what Hadoop writes"


def alone(plan: Plan) -> Plan:
    """Return the same job under another name, without the runner; its work takes no time."""
    return plan._replace(name=f"{plan.name}-alone", wrap=(), key_s=0.0)


def parts(job: Job) -> dict[str, str]:
    """Return the SHA-256 of every part, markers masked."""
    names = [name for name in job.hdfs.names(job.output) if name.startswith("part-")]
    assert len(names) == len(job.plan.groups), names
    return {name: hashlib.sha256(masked(job.hdfs.read(f"{job.output}/{name}"))).hexdigest() for name in names}


def masked(data: bytes) -> bytes:
    """Return a SequenceFile (version 6, not compressed, no metadata) with its marker masked, others as is.

    The header: SEQ, version, class names of key and value (a length of one byte each), two flags, the number
    of metadata entries (four bytes), the marker.
    """
    if data[:3] != b"SEQ":
        return data
    place = 4
    for _ in range(2):
        place += 1 + data[place]
    place += 2 + 4
    marker = data[place : place + MARKER_BYTES]
    return data.replace(marker, bytes(MARKER_BYTES))
