"""``make bench-hadoop``: the paper's Fig 4 on a real Hadoop, every scheme in turn, every run's raw times.

Law: schemes take turns within a round, so that what changes on the machine hits all of them; each run is
written down as it ends, with the machine's load before and after it. A campaign is a file of its own
(``research/yarn_research/campaigns/campaign.py``); a bench that is started again with the same commit and configuration goes on
with an unfinished one. A completion time is the ResourceManager's own (finishedTime - startedTime).

Rule of the campaign of flat queues, written before its run (``--beside hadoop-2026-11-23-1518``):

* Three rounds of production-alone, research-alone, yarn-tuned and yarnctl-as-shipped on Hadoop 3.4.2, once. It
  may stop between runs (``--minutes``) and continue.
* It holds if the median of each job under each scheme lies between the least and the most of the same scheme
  in that earlier campaign, whose five runs a scheme are the newest. A median below the least is outside as well,
  and is named as faster.
* All outputs are those of the jobs alone, and yarnctl lets no key group be reduced twice.
* The rows of jobs alone show whether the machine is as it was. The ratios against them are reported, not judged.
* The other schemes are left out, so that the campaign takes less than 40 minutes.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hadoop.attached import Attached, prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.jobs import LOOK_S, RESTARTABLE, Finished, Job, Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.beginning import goes_on
from yarn_research.campaigns.campaign import FOLDER, Campaign, named, write
from yarn_research.campaigns.overhead import interruptions, timetable
from yarn_research.campaigns.provenance import load, now
from yarn_research.campaigns.recording import before, begin, configuration
from yarn_research.campaigns.schemes import ALL, SCHEMES, Scheme
from yarn_research.campaigns.summary import beside, told
from yarnctl.traces.lengths import length_table

SLOTS = 12
KEY_S = 0.1
RESEARCH_LONGEST_S = 120.0
PRODUCTION_LONGEST_S = 30.0
WARMING = ("01", "02")
MOST = 300
"""So much of why a run failed is kept."""

FAILURES_MAX = 3

SHAPE = Shape(node_memory_mib=SLOTS // 3 * 256)


def groups_of(longest_s: float, reduces: int) -> tuple[int, ...]:
    """Return key groups per reduce by the paper's table of lengths (facts/natjam.md, section 1)."""
    return tuple(round(longest_s * ratio / KEY_S) for ratio in length_table()[:reduces])


def research(attached: bool) -> Plan:
    """Return the job that fills the cluster: its master and a reduce for each other container."""
    wrap = RESTARTABLE if attached else ()
    return Plan("research", "research", groups_of(RESEARCH_LONGEST_S, SLOTS - 1), KEY_S, wrap=wrap)


def production() -> Plan:
    """Return the job of a quarter of the cluster."""
    return Plan("production", "production", groups_of(PRODUCTION_LONGEST_S, SLOTS // 4), KEY_S, user="bob")


def run_once(cluster: Cluster, scheme: Scheme, folder: Path, number: str) -> dict[str, Any]:
    """Run one scheme once; return what was seen, with digests of both outputs."""
    cluster.restart_manager(scheme.changes())
    if not scheme.attached:
        return _both(cluster, scheme, folder, number)
    with Attached(cluster, folder / f"state-{number}", scheme.options) as daemon:
        seen = _both(cluster, scheme, folder, number)
        seen["suspensions"] = len(daemon.reached("freed"))
        seen["orders"] = len(daemon.asked())
    return seen


def warm_up(cluster: Cluster, folder: Path) -> None:
    """Run the production job, short, and do not count it: the first jobs on a new cluster begin late.

    From then on it is a job that has run before, which ``--predicted-demand`` needs.
    """
    for number in WARMING:
        Job(cluster, _short(), folder, number).wait()


def _short() -> Plan:
    return production()._replace(groups=(5,) * (SLOTS // 4))


def _both(cluster: Cluster, scheme: Scheme, folder: Path, number: str) -> dict[str, Any]:
    seen: dict[str, Any] = {"suspensions": 0}
    patient = Job(cluster, research(scheme.attached), folder, number) if scheme.with_research else None
    if patient is not None:
        arrives_ms = patient.row()["startedTime"] + scheme.arrives_s * 1000
        while scheme.with_production and time.time() * 1000 < arrives_ms - patient.submitting_s * 1000:
            time.sleep(LOOK_S)
    hurried = Job(cluster, production(), folder, number) if scheme.with_production else None
    if hurried is not None:
        _note(seen, "production", hurried, hurried.wait())
        seen["production_timetable"] = timetable(hurried, cluster.history_url)
    if patient is not None:
        _note(seen, "research", patient, patient.wait())
        seen["research_timetable"] = timetable(patient, cluster.history_url)
        costs = [one.overhead_s for one in interruptions(patient, cluster.history_url)]
        seen["overhead_s"] = [round(cost, 2) for cost in costs]
    return seen


def _note(seen: dict[str, Any], name: str, job: Job, finished: Finished) -> None:
    if finished.state != "SUCCEEDED":
        raise AssertionError(f"{job.name} {finished.state}: {job.said()}")
    seen[f"{name}_s"] = finished.took_s
    seen[f"{name}_started_ms"] = job.row()["startedTime"]
    seen[f"{name}_am_wait_s"] = finished.am_wait_s
    seen[f"{name}_digests"] = job.digests()
    seen[f"{name}_twice"] = job.groups_twice()
    seen[f"{name}_killed"] = finished.preempted


def main(arguments: Sequence[str]) -> int:
    """Run rounds until every scheme has as many runs as asked for."""
    parser = argparse.ArgumentParser(prog="make bench-hadoop", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hadoop", default="3.4.2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--minutes", type=float, help="start no run after this many minutes")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the campaigns' files")
    parser.add_argument("--beside", help="an earlier campaign: compare each median with its least and most")
    given = parser.parse_args(arguments)
    ends_s = time.monotonic() + 60 * given.minutes if given.minutes else math.inf
    wanted = {name: ALL[name] for name in given.schemes.split(",")}
    folder = Path(tempfile.mkdtemp(prefix="bench-hadoop-"))
    with Cluster(Shape(given.hadoop, node_memory_mib=SHAPE.node_memory_mib)) as cluster:
        began = begin(configuration(cluster, wanted, jobs(), warming()), given.hadoop, given.rounds)
        campaign = goes_on(began, list(wanted), given.rounds, given.into)
        print(f"campaign {campaign.name}, {len(campaign.runs)} runs so far", file=sys.stderr, flush=True)
        prepare(cluster)
        warm_up(cluster, folder)
        play(cluster, campaign, wanted, folder, given.into, ends_s)
    shutil.rmtree(folder)
    print(told(campaign))
    if given.beside:
        print(beside(campaign, named(given.beside)))
    return 0


def play(
    cluster: Cluster, campaign: Campaign, wanted: dict[str, Scheme], folder: Path, into: Path, ends_s: float
) -> None:
    """Play the rounds that the campaign lacks, while there is time; each run is written down as it ends.

    A run that failed is written down, too, and made again in the next round; too many of them end the bench.
    """
    failed = 0
    while campaign.unfinished(list(wanted), campaign.rounds or 0):
        done = min(len(campaign.of(name)) for name in wanted)
        for name in (name for name in wanted if len(campaign.of(name)) <= done):
            if (began_s := time.monotonic()) > ends_s:
                print("no time is left: no further run begins", file=sys.stderr)
                return
            run = before(campaign, name, done + 1)
            try:
                seen = run_once(cluster, wanted[name], folder, str(run["number"] + len(WARMING)))
            except Exception as problem:
                failed += 1
                seen = {"left_out": failure(problem)}
                traceback.print_exc()
            campaign.runs.append({**run, **seen, "load_after": load()})
            write(campaign, into)
            _progress(campaign.runs[-1], campaign.rounds or 0, time.monotonic() - began_s)
            if failed == FAILURES_MAX:
                raise SystemExit(f"{failed} runs failed: the bench ends; {campaign.name} keeps what ran")


def failure(problem: Exception) -> str:
    """Return why a run failed, without the paths of this machine."""
    first = (str(problem).splitlines() or [""])[0]
    return re.sub(r"(?:/[\w.+-]+){2,}", "PATH", f"failed: {type(problem).__name__}: {first}")[:MOST]


def tried(plan: Mapping[str, Any], sitting: int, play: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return a plan's row: when it began, and what ``play`` returned or, under ``failed``, why it failed."""
    row = {**plan, "sitting": sitting, "began": now(), "load_before": load()}
    try:
        row |= play()
    except Exception as problem:
        row["failed"] = failure(problem)
        traceback.print_exc()
    return row


def jobs() -> dict[str, Plan]:
    """Return the jobs that are compared, as they are without yarnctl."""
    return {"research": research(attached=False), "production": production()}


def warming() -> dict[str, Any]:
    """Return what runs before the first run that counts."""
    return {"runs": len(WARMING), "job": "production", "groups": list(_short().groups)}


def _progress(run: dict[str, Any], rounds: int, took_s: float) -> None:
    shown = {key: value for key, value in run.items() if not key.endswith(("digests", "_ms", "timetable"))}
    print(f"[{run['round']}/{rounds}] {run['scheme']}: {shown} ({took_s:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
