"""Readers of what was saved of YARN's own answers: GET /apps, the history's list, ApplicationSummary lines.

They have sums only. An application that runs is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.attach.importing.server_import import row_of_application, row_of_history
from yarnctl.frameworks.mapreduce import rest as mapreduce
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import OneDecoder, Unreadable
from yarnctl.traces.week.week_rows import ImportedJob, WeekJob

SUMMARY = "appId="
_APPLICATION = re.compile(r"appId=(application_\d+_\d+),")
_FIELD = re.compile(r",(\w+)=((?:\\.|[^,\\])*)")
_ONE_APPLICATION = OneDecoder(yarn.BilledApplication, "app")
_NUMBERS = {
    "finishTime": "finishedTime",
    "launchTime": "launchTime",
    "memorySeconds": "memorySeconds",
    "vcoreSeconds": "vcoreSeconds",
    "preemptedMemorySeconds": "preemptedMemorySeconds",
    "preemptedNonAMContainers": "numNonAMContainerPreempted",
    "preemptedAMContainers": "numAMContainerPreempted",
}
"""Fields of an ApplicationSummary, and what GET /apps calls them."""


def read_applications(body: bytes) -> Iterator[ImportedJob | UnreadableJob]:
    """Yield the applications of an answer of /ws/v1/cluster/apps, or of one application."""
    try:
        rows = yarn.BILLED_APPLICATIONS.read(body)
    except Unreadable:
        rows = [_ONE_APPLICATION.read(body)]
    yield from map(_application, rows)


def read_ended_jobs(body: bytes) -> Iterator[ImportedJob | UnreadableJob]:
    """Yield the jobs of an answer of the history server, or of one job."""
    try:
        rows = mapreduce.ENDED_JOBS.read(body)
    except Unreadable:
        rows = [mapreduce.ENDED_JOB.read(body)]
    for row in rows:
        if row.finished_at_ms <= 0:
            yield UnreadableJob(f"{row.job} has no end")
        else:
            application = row.job.replace("job_", "application_", 1)
            yield _sums(row_of_history(application, row))


def read_summaries(text: str) -> Iterator[ImportedJob | UnreadableJob]:
    """Yield the applications of a ResourceManager's log; other lines are passed over."""
    for number, line in enumerate(text.split("\n"), 1):  # a name can contain other ends of lines
        match = _APPLICATION.search(line)
        if match is None:
            continue
        found = {
            name: re.sub(r"\\(.)", r"\1", value)
            for name, value in _FIELD.findall(line.rstrip("\r")[match.end() - 1 :])
        }
        row: dict[str, object] = {
            "id": match[1],
            "name": found.get("name", ""),
            "user": found.get("user", ""),
            "queue": found.get("queue", ""),
            "state": found.get("state", ""),
            "finalStatus": found.get("finalStatus", ""),
            "applicationType": found.get("applicationType", ""),
            "startedTime": found.get("submitTime") or found.get("startTime", "0"),
        }
        row |= {field: found[name] for name, field in _NUMBERS.items() if name in found}
        try:
            yield _application(msgspec.convert(row, yarn.BilledApplication, strict=False))
        except msgspec.ValidationError as error:
            yield UnreadableJob(f"line {number}: {match[1]}: {error}")


def _application(application: yarn.BilledApplication) -> ImportedJob | UnreadableJob:
    if application.ended_at_ms <= 0:
        return UnreadableJob(f"{application.application} still runs")
    if application.submitted_at_ms <= 0:
        return UnreadableJob(f"{application.application} has no start")
    return _sums(row_of_application(application))


def _sums(job: WeekJob) -> ImportedJob:
    return ImportedJob(msgspec.structs.replace(job, detail="sums"))
