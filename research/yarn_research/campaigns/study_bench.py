"""``make bench-study``: what work costs when room is made, on a real Hadoop (the plan: research/notes/study.md).

Law: the plan stands before the first run. Each run is written down as it ends; a round is played whole on one
machine, or left out and played again. A file is gone on with at the same commit and on the same terms only.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests import http_client
from tests.hadoop.attached import Attached, prepare
from tests.hadoop.jobs import LOOK_S, Job, Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.bench import SHAPE, failure
from yarn_research.campaigns.chosen_killed import ChosenTask, chosen_tasks, killing
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.lever_predictions import pulled
from yarn_research.campaigns.overhead import timetable
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.study_jobs import again_s, ended_s, submitted
from yarn_research.campaigns.study_judging import judged, of_loads
from yarn_research.campaigns.study_loads import (
    CAPPED,
    KILLED,
    LOADS,
    SCHEMES,
    Load,
    changes,
    named,
    order_of,
    wanted,
    wrapped,
)
from yarnctl.command_line import print_json
from yarnctl.errors import BadInput
from yarnctl.hadoop.resource_manager import ENDED

KIND = "study-hadoop"
FAILURES_MAX = 3
SHORT = (5, 5, 5)


class Study(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each run names its own."""

    head: dict[str, Any]
    loads: dict[str, Any]
    schemes: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []

    def round_of(self, name: str, number: int) -> list[dict[str, Any]]:
        """Return the counted runs of a round."""
        return [
            run
            for run in self.runs
            if (run["load"], run["round"]) == (name, number) and "left_out" not in run
        ]

    def leave_out(self, name: str, number: int, why: str) -> None:
        """Say of a round's runs that they do not count."""
        for run in self.round_of(name, number):
            run["left_out"] = why

    def is_whole(self, of: Load, number: int) -> bool:
        """Say whether every scheme of a round has run, on one machine."""
        return {run["scheme"] for run in self.round_of(of.name, number)} == set(of.schemes)


def opened(file: Path) -> Study:
    """Return the study to go on with, else a new one; raises BadInput where it was another commit's."""
    new = Study(head(KIND, hadoop=SHAPE.version), _plain(LOADS), _plain(SCHEMES))
    found = gone_on(file, new)
    if (found.loads, found.schemes) != (new.loads, new.schemes):
        raise BadInput(str(file), "was begun with other loads", "name another file")
    return found


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name: each._asdict() for name, each in values.items()}
    return msgspec.json.decode(msgspec.json.encode(rows), type=dict[str, Any])


class Stage(NamedTuple):
    """Where rounds are played: a cluster, a folder for logs, the file and the number of this sitting."""

    cluster: Cluster
    folder: Path
    file: Path
    sitting: int

    def keep(self, study: Study) -> None:
        """Write the study as it is now."""
        keep(self.file, study)


def play(stage: Stage, study: Study, loads: Mapping[str, Load], ends_s: float) -> None:
    """Play the rounds that are not whole, while there is time to begin one."""
    failed = 0
    for of, number in wanted(loads):
        while not study.is_whole(of, number):
            if time.monotonic() > ends_s:
                click.echo("no time is left: no further round begins", err=True)
                return
            study.leave_out(of.name, number, "its round was not finished on the machine on which it began")
            failed += not _round(stage, study, of, number)
            if failed == FAILURES_MAX:
                raise SystemExit(f"{failed} runs failed: the study ends; {stage.file} keeps what ran")


def _round(stage: Stage, study: Study, of: Load, number: int) -> bool:
    """Play a round; say whether every run succeeded."""
    for scheme in order_of(of, number):
        run: dict[str, Any] = {
            "load": of.name,
            "round": number,
            "scheme": scheme,
            "number": len(study.runs) + 1,
        }
        run |= {"sitting": stage.sitting, "began": now(), "load_before": load()}
        began_s = time.monotonic()
        try:
            before = study.runs[-1].get("chosen", ()) if scheme == KILLED else ()
            seen = run_once(stage, of, scheme, run["number"], [ChosenTask(*each) for each in before])
        except Exception as problem:
            seen = {"left_out": failure(problem)}
            traceback.print_exc()
        study.runs.append({**run, **seen, "load_after": load()})
        if "left_out" in seen:
            study.leave_out(of.name, number, "a run of its round failed")
        stage.keep(study)
        _progress(study.runs[-1], of, time.monotonic() - began_s)
        if "left_out" in seen:
            return False
    return True


def run_once(
    stage: Stage, of: Load, name: str, number: int, chosen_before: Sequence[ChosenTask] = ()
) -> dict[str, Any]:
    """Run one scheme once; return what was seen. ``chosen_before``: the tasks that are killed."""
    scheme, cluster = SCHEMES[name], stage.cluster
    cluster.restart_manager(changes(scheme, of))
    if not scheme.attached:
        return _jobs(stage, of, name, number, chosen_before)
    with Attached(cluster, stage.folder / f"state-{number}", scheme.options) as daemon:
        seen = _jobs(stage, of, name, number)
        seen |= {"suspended": len(daemon.reached("freed")), "asked": len(daemon.asked())}
        seen |= {"levers": [each._asdict() for each in pulled(daemon.records())]}
        seen |= {"chosen": chosen_tasks(daemon.records(), seen["research"]["started_ms"])}
    return seen


def _jobs(
    stage: Stage, of: Load, name: str, number: int, chosen_before: Sequence[ChosenTask] = ()
) -> dict[str, Any]:
    scheme, at = SCHEMES[name], f"{number:03d}"
    patient = hurried = None
    waited: list[dict[str, Any]] = []
    killed: list[str] = []
    if scheme.with_research:
        patient = submitted(stage.cluster, wrapped(of.research, scheme), stage.folder, at)
    if scheme.with_production:
        begins_s = None if patient is None else arrives_s(of, patient)
        capped = _capped(stage.cluster, name == CAPPED, begins_s)
        with capped, killing(patient if chosen_before else None, chosen_before) as killed:
            hurried = _production(stage, of, number, begins_s)
            waited = [_seen(stage.cluster, job) for job in hurried]
    found: dict[str, Any] = {"production": waited, "killed": killed}
    if patient is not None:
        seen = _seen(stage.cluster, patient)
        lost = {"again_s": round(again_s(patient), 3), "twice": patient.groups_twice()}
        found["research"] = seen | lost | {"ended_s": ended_s(patient, stage.cluster.history_url)}
    return found


def arrives_s(of: Load, patient: Job) -> float:
    """Return the instant at which production comes, s since 1970; where work decides it, wait for it."""
    if not of.begun_ratio:
        return float(patient.row()["startedTime"] / 1000 + of.arrives_s)
    while patient.begun().total() < of.begun_ratio * sum(of.research.groups):
        if patient.row()["state"] in ENDED:
            raise AssertionError(f"{patient.name} ended before production came: {patient.said()}")
        time.sleep(LOOK_S)  # the work's own pace
    return time.time()


def _production(stage: Stage, of: Load, number: int, begins_s: float | None) -> list[Job]:
    """Submit production's jobs as they come."""
    found: list[Job] = []
    for place, plan in enumerate(of.production):
        while begins_s is not None and time.time() < begins_s + place * of.apart_s:
            time.sleep(LOOK_S)  # the arrivals' own pace
        if begins_s is None:
            begins_s = time.time()
        found.append(submitted(stage.cluster, named(plan, of, number), stage.folder, f"{number:03d}"))
    return found


@contextmanager
def _capped(cluster: Cluster, is_capped: bool, begins_s: float | None) -> Iterator[None]:
    """Hold research's maximum at its guarantee from production's submission to its end."""
    while is_capped and begins_s is not None and time.time() < begins_s:
        time.sleep(LOOK_S)  # the arrival's own instant
    if is_capped:
        set_maximum(cluster, SCHEMES[CAPPED].research)
    try:
        yield
    finally:
        if is_capped:
            set_maximum(cluster, 100)


def set_maximum(cluster: Cluster, percent: int) -> None:
    """Set research's maximum, as an administrator does (``PUT /scheduler-conf``)."""
    entry = f"<entry><key>maximum-capacity</key><value>{percent}</value></entry>"
    queue = f"<queue-name>root.research</queue-name><params>{entry}</params>"
    body = f"<sched-conf><update-queue>{queue}</update-queue></sched-conf>".encode()
    url = f"{cluster.rm_url}/ws/v1/cluster/scheduler-conf?user.name=root"
    answer = http_client.put(url, data=body, headers={"Content-Type": "application/xml"}, timeout=60)
    if not answer.ok:
        raise AssertionError(f"research's maximum: {answer.status_code} {answer.text[:300]}")


def _seen(cluster: Cluster, job: Job) -> dict[str, Any]:
    """Wait for a job's end; return what the cluster says of it."""
    ended = job.wait()
    if ended.state != "SUCCEEDED":
        raise AssertionError(f"{job.name} {ended.state}: {job.said()}")
    return {
        "name": job.name,
        "took_s": ended.took_s,
        "am_wait_s": ended.am_wait_s,
        "preempted": ended.preempted,
        "started_ms": job.row()["startedTime"],
        "digests": job.digests(),
        "timetable": timetable(job, cluster.history_url),
    }


def warm_up(stage: Stage, loads: Mapping[str, Load]) -> None:
    """Run each production job that has run before twice, short, and do not count it."""
    plans: dict[str, Plan] = {}
    for of in loads.values():
        for plan in of.production if of.ran_before else ():
            plans.setdefault(plan.name + plan.work, plan)
    for number in ("w1", "w2"):
        for plan in plans.values():
            short = plan._replace(groups=plan.groups if plan.maps > 2 else SHORT[: len(plan.groups)])
            submitted(stage.cluster, short, stage.folder, f"{plan.work}-{number}").wait()


def _progress(run: dict[str, Any], of: Load, took_s: float) -> None:
    patient = run.get("research", {})
    told = f"production {[job['took_s'] for job in run.get('production', ())]} s"
    told += f", research {patient.get('took_s')} s, again {patient.get('again_s')} s"
    told += f", ended {patient.get('ended_s')}" + (
        f", left out: {run['left_out']}" if "left_out" in run else ""
    )
    click.echo(f"{of.name} {run['round']}/{of.rounds} {run['scheme']}: {told} ({took_s:.0f} s)", err=True)


def chosen(text: str) -> dict[str, Load]:
    """Return the loads that are named; raises BadInput for one that there is not."""
    names = text.split(",") if text else list(LOADS)
    if unknown := [name for name in names if name not in LOADS]:
        raise BadInput("--loads", f"unknown: {', '.join(unknown)}", f"use some of {', '.join(LOADS)}")
    return {name: LOADS[name] for name in names}


@click.command(help=__doc__)
@click.option("--loads", default="", help="Only these, by comma.")
@click.option("--minutes", type=float, help="Start no round after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(loads: str, minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    of, study = chosen(loads), opened(output)
    study.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="study-hadoop-"))
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        stage = Stage(cluster, folder, output, len(study.sittings))
        stage.keep(study)
        warm_up(stage, of)
        play(stage, study, of, ends_s)
    shutil.rmtree(folder)
    print_json({"loads": of_loads(study.runs), "claims": judged(study.runs)})


if __name__ == "__main__":
    command()
