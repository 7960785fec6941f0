"""Submit the jobs of a workload live as modelled jobs, each at its instant, whatever became of the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import click

from emulator.cluster.timing import HADOOP3
from emulator.live.jobs.submission_client import FINAL_STATES, Client, checkpoint_environment
from emulator.live.wire.submitted_job import ModelledJob
from yarnctl.command_line import print_json, print_table
from yarnctl.errors import BadInput, Unreachable
from yarnctl.traces.job import Job

POLL_S = 1.0
REPORT_EVERY_S = 10.0
"""The shortest time between two reports of progress."""

UNREACHABLE_S = 60.0
"""The longest time without an answer of the ResourceManager while jobs run."""

Report = Callable[[str], object]


class ReplayedJob(NamedTuple):
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
    rows = play(client, jobs, speed, wait, report=lambda text: click.echo(text, err=True))
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        print_table(COLUMNS, [shown(row, wait) for row in rows], loaded.source)
    return 0 if all(row.final_status in ("SUCCEEDED", "") for row in rows) else 1


COLUMNS = ("job", "application", "submitted s", "completion s", "status")


def shown(job: ReplayedJob, waited: bool) -> tuple[object, ...]:
    """Return a row of the table."""
    completion_s = None if job.completion_ms < 0 else job.completion_ms / 1000
    status = job.final_status or ("unknown" if waited else "submitted")
    return (job.name, job.application, job.submitted_at_ms / 1000, completion_s, status)


def play(
    client: Client,
    jobs: tuple[Job, ...],
    speed: float = 1.0,
    wait: bool = True,
    *,
    began_s: float | None = None,
    report: Report = lambda _: None,
) -> list[ReplayedJob]:
    """Submit jobs at their instants; return what became of them, in the order of submission.

    ``speed`` is that of the cluster's modelled time (``serve --speed``). ``began_s``: when the trace begins,
    in seconds since the epoch (now). ``report`` is given progress. Raises BadInput for a job that the cluster
    refuses, Unreachable if it does not answer.
    """
    webhdfs = client.webhdfs()
    client.make_checkpoint_folders(webhdfs)
    environment = checkpoint_environment(webhdfs)
    followed = _TrackedJobs(client, len(jobs), began_s or time.time(), speed, report)
    for job in jobs:
        # What a client spends on a submission is part of the trace's time, as in virtual time.
        followed.until(job.submitted_at_ms + HADOOP3.submit_ms)
        owner = Client(client.url, job.user)
        try:
            name = owner.submit(ModelledJob(job=job, cmdenv=environment), job.queue or job.job_class)
        except BadInput as error:
            raise BadInput(f"job {job.name}", str(error)) from None
        followed.add(job, name)
    followed.poll()
    if wait:
        followed.until_over()
    return followed.rows()


class _TrackedJobs:
    """Jobs that were submitted, and their last polled state."""

    def __init__(self, client: Client, count: int, began_s: float, speed: float, report: Report) -> None:
        self._client, self._count, self._speed, self._report = client, count, speed, report
        self._began_s = began_s
        self._jobs: list[tuple[Job, str]] = []
        self._waiting: dict[str, None] = {}
        self._ended: dict[str, tuple[str, int]] = {}
        self._answered_s = time.monotonic()
        self._reported_s = 0.0
        self._reported = ""

    def trace_ms(self) -> float:
        """Return the trace's time now."""
        return (time.time() - self._began_s) * 1000 * self._speed

    def add(self, job: Job, application: str) -> None:
        """Follow a job."""
        self._jobs.append((job, application))
        self._waiting[application] = None
        self._answered_s = time.monotonic()

    def until(self, at_ms: int) -> None:
        """Wait for an instant of the trace, looking how far the others are."""
        while True:
            left_s = (at_ms - self.trace_ms()) / 1000 / self._speed
            if left_s <= 0:
                return
            if left_s > POLL_S:
                self.poll()
                left_s = max(0.0, (at_ms - self.trace_ms()) / 1000 / self._speed)
            time.sleep(min(left_s, POLL_S))  # the trace's own pace, and that of a poll

    def until_over(self) -> None:
        """Wait until every job has ended."""
        while self._waiting:
            time.sleep(POLL_S)  # the pace of a poll: REST has nothing to wait on
            self.poll()

    def poll(self) -> None:
        """Poll those that have not ended; raises Unreachable when there was no answer for a minute."""
        try:
            for row in self._client.applications() if self._waiting else ():
                name = str(row.get("id"))
                if name in self._waiting and row.get("state") in FINAL_STATES:
                    self._ended[name] = str(row.get("finalStatus", "")), int(row.get("finishedTime", 0) or 0)
                    del self._waiting[name]
            self._answered_s = time.monotonic()
        except Unreachable:
            if time.monotonic() - self._answered_s > UNREACHABLE_S:
                raise
        self._print()

    def _print(self) -> None:
        """Report the numbers when they have changed, and not too often; the last ones always."""
        over = len(self._ended)
        numbers = f"{len(self._jobs)} of {self._count} jobs submitted, {over} over"
        often = time.monotonic() - self._reported_s < REPORT_EVERY_S
        if numbers == self._reported or (often and over < self._count):
            return
        self._reported, self._reported_s = numbers, time.monotonic()
        self._report(f"{max(0.0, self.trace_ms()) / 1000:.0f} s: {numbers}")

    def rows(self) -> list[ReplayedJob]:
        """Return what became of the jobs."""
        rows = []
        for job, name in self._jobs:
            final, ended_at_ms = self._ended.get(name, ("", 0))
            completion_ms = -1
            if final:
                ended_ms = (ended_at_ms - self._began_s * 1000) * self._speed
                completion_ms = round(ended_ms) - job.submitted_at_ms
            rows.append(ReplayedJob(job.name, name, job.submitted_at_ms, completion_ms, final))
        return rows
