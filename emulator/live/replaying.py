"""Replaying: the jobs of a workload, submitted live as modelled jobs at their own instants.

Law: a job is submitted when the trace says so, whatever became of the others; the time from there to its end
is what is told. Between instants nothing is done.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import click

from emulator.live.jobs import ModelledJob
from emulator.live.submitting import CHECKPOINTS, FINAL_STATES, Client, checkpoint_environment
from emulator.timing import HADOOP3
from emulator.workload.job import Job
from yarnctl.command_line import print_json, print_table

LOOK_S = 1.0


class Replayed(NamedTuple):
    """One job of a replay: how it ended, and when (ms of the trace's time; -1 while unknown)."""

    name: str
    application: str
    submitted_at_ms: int
    completion_ms: int
    final_status: str


def replay(client: Client, spec: str, queue: str, speed: float, wait: bool, as_json: bool) -> int:
    """Submit the jobs of a SPEC to a queue in time and wait for all; return the exit status."""
    import msgspec

    from emulator.workload.spec import load

    loaded = load(spec, "production" if queue == "production" else "research")
    jobs = tuple(msgspec.structs.replace(job, queue=queue) for job in loaded.jobs)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    rows = play(client, jobs, speed, wait)
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        columns = ("job", "application", "submitted s", "completion s", "status")
        shown = [
            (
                row.name,
                row.application,
                row.submitted_at_ms / 1000,
                row.completion_ms / 1000,
                row.final_status,
            )
            for row in rows
        ]
        print_table(columns, shown, loaded.source)
    return 0 if all(row.final_status in ("SUCCEEDED", "") for row in rows) else 1


def play(client: Client, jobs: tuple[Job, ...], speed: float = 1.0, wait: bool = True) -> list[Replayed]:
    """Submit jobs at their instants; return what became of them, in the order of submission.

    ``speed`` is that of the cluster's modelled time (``serve --speed``).
    """
    webhdfs = client.webhdfs()
    for folder in (CHECKPOINTS.rpartition("/")[0], CHECKPOINTS):
        client.make_folder(webhdfs, folder)
    environment = checkpoint_environment(webhdfs)
    began_s = time.time()
    submitted: list[tuple[Job, str]] = []
    for job in jobs:
        # What a client spends on a submission is part of the trace's time, as in virtual time.
        due_s = began_s + (job.submitted_at_ms + HADOOP3.submit_ms) / 1000 / speed
        time.sleep(max(0.0, due_s - time.time()))
        owner = Client(client.url, job.user)
        name = owner.submit(ModelledJob(job=job, cmdenv=environment), job.queue or job.job_class)
        submitted.append((job, name))
        click.echo(f"{job.submitted_at_ms / 1000:.1f} s: {job.name} is {name}", err=True)
    return [_ended(client, job, name, began_s, speed, wait) for job, name in submitted]


def _ended(client: Client, job: Job, name: str, began_s: float, speed: float, wait: bool) -> Replayed:
    row = client.wait(name, LOOK_S, lambda _: None) if wait else client.application(name)
    final, completion_ms = "", -1
    if row.get("state") in FINAL_STATES:
        final = str(row.get("finalStatus", ""))
        ended_ms = (float(row.get("finishedTime", 0)) - began_s * 1000) * speed
        completion_ms = round(ended_ms) - job.submitted_at_ms
    return Replayed(job.name, name, job.submitted_at_ms, completion_ms, final)
