"""Virtual against live: the same scenarios in virtual time and lived through by clock, compared.

    python -m tests.soak.virtual_live [--speed X] [--only NAME,...] [--at-once N] [--tries N] [--json]

Law: what differs between the two sides is that live the containers are held by the clock and yarnctl sees
and acts over HTTP only. Exit status 1 if a completion time is off by more than 2 %, or a victim is another
one although its key was more than 2 s from that of the one which virtual time chose.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests.soak.virtual_live_sides import Case, Ran, Victim, run_live, run_virtual
from yarnctl.traces.job import Job, JobClass

LARGEST_DEVIATION_RATIO = 0.02
KEY_DISTANCE_MS = 2000
MACHINE_MS = 200
"""A machine that keeps somebody waiting for longer is too busy to be compared with."""


class JobRow(NamedTuple):
    """One job on both sides."""

    scenario: str
    job: str
    virtual_s: float
    live_s: float
    deviation_ratio: float


# --- scenarios ----------------------------------------------------------------------------------


def job(name: str, at_s: float, maps: Sequence[float], reduces: Sequence[float], **changes: Any) -> Job:
    """Return a job; lengths in seconds, ten keys a second."""
    job_class: JobClass = "production" if name.startswith("production") else "research"
    return msgspec.structs.replace(
        Job(name=name, job_class=job_class, submitted_at_ms=round(at_s * 1000),
            map_ms=tuple(round(one * 1000) for one in maps),
            reduce_ms=tuple(round(one * 1000) for one in reduces),
            reduce_keys=tuple(max(1, round(one * 10)) for one in reduces), shuffle_ms=2000,
            user="ann" if job_class == "research" else "bob", queue=job_class),
        **changes,
    )  # fmt: skip


# Production takes a minute and more: a heartbeat sooner or later is well below the bound.
CASES = (
    Case(
        "one-research",
        nodes=3,
        slots=4,
        jobs=(job("research", 0, [4, 5], [40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80]),
            job("production", 30, [5, 6, 7], [32, 35, 38])),
    ),
    Case(
        "two-research",
        nodes=4,
        slots=4,
        jobs=(job("research-large", 0, [4, 4], [46, 50, 54, 58, 62, 66, 70, 74, 78]),
            job("research-small", 2, [6], [45, 49, 53, 57]), job("production", 28, [4, 6], [34, 36, 40, 42])),
    ),
    Case(
        "two-productions",
        nodes=3,
        slots=5,
        jobs=(job("research", 0, [5, 5, 5], [50 + 5 * at for at in range(13)]),
            job("production-first", 26, [4, 5], [30, 33]), job("production-second", 62, [5], [32, 34, 36])),
    ),
    Case(
        "longest-first",
        nodes=4,
        slots=3,
        jobs=(job("research", 0, [4], [38, 45, 52, 59, 66, 73, 80, 87, 94, 101]),
            job("production", 32, [6, 6], [35, 38])),
        job_policy="LR",
        task_policy="LRT",
    ),
)  # fmt: skip


# --- comparing ----------------------------------------------------------------------------------


def deviations(case: Case, virtual: Ran, live: Ran) -> list[JobRow]:
    """Return each job's two completion times."""
    rows = []
    for one in case.jobs:
        ours, theirs = virtual.completion_ms[one.name], live.completion_ms[one.name]
        rows.append(JobRow(case.name, one.name, ours / 1000, theirs / 1000, theirs / ours - 1))
    return rows


def other_victims(virtual: Sequence[Victim], live: Sequence[Victim]) -> list[str]:
    """Return a line for every live victim that virtual time did not choose, unless their keys were close."""
    wrong = []
    chosen = {one.attempt for one in virtual}
    mine = [one for one in virtual if one.attempt not in {other.attempt for other in live}]
    for other in live:
        if other.attempt in chosen:
            continue
        close = next((one for one in mine if near(one, other)), None)
        if close is None:
            wrong.append(f"live {other.attempt} ({other.remaining_ms} ms left), not in virtual time")
        else:
            mine.remove(close)
    return wrong + [f"virtual {one.attempt} ({one.remaining_ms} ms left), not live" for one in mine]


def near(one: Victim, other: Victim) -> bool:
    """Say whether the keys of two victims were too close for one to be surely the right one."""
    distances = [abs(one.remaining_ms - other.remaining_ms)]
    for seen, attempt, remaining_ms in (
        (one.seen, other.attempt, one.remaining_ms),
        (other.seen, one.attempt, other.remaining_ms),
    ):
        if attempt in seen:
            distances.append(abs(seen[attempt] - remaining_ms))
    return min(distances) <= KEY_DISTANCE_MS


class Compared(NamedTuple):
    """One scenario, both sides."""

    scenario: str
    rows: list[JobRow]
    virtual_victims: list[str]
    live_victims: list[str]
    wrong: list[str]
    held_up_ms: int
    tries: int = 1


def compare(case: Case, speed: float, folder: Path) -> Compared:
    """Run both sides and compare."""
    live = run_live(case, speed, folder)
    virtual = run_virtual(case, live.phasing)
    return Compared(
        case.name, deviations(case, virtual, live), [one.attempt for one in virtual.victims],
        [one.attempt for one in live.victims], other_victims(virtual.victims, live.victims), live.held_up_ms,
    )  # fmt: skip


def settled(case: Case, speed: float, folder: Path, tries: int) -> Compared:
    """Compare; again where something was off while the machine kept somebody waiting: that says nothing."""
    for number in range(1, tries + 1):
        found = compare(case, speed, folder / f"{case.name}-{number}")
        if found.held_up_ms <= MACHINE_MS or not failures([found], LARGEST_DEVIATION_RATIO):
            break
    return found._replace(tries=number)


def failures(found: Sequence[Compared], largest_ratio: float) -> list[str]:
    """Return a line for everything that is off."""
    lines = [f"{one.scenario}: {line}" for one in found for line in one.wrong]
    for one in found:
        lines += [
            f"{row.scenario}: {row.job} {row.virtual_s:.1f} s in virtual time, {row.live_s:.1f} s live"
            for row in one.rows
            if abs(row.deviation_ratio) > largest_ratio or row.live_s < 0
        ]
    return lines


@click.command()
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--tries", type=click.IntRange(1), default=3, show_default=True, help="On a busy machine.")
@click.option("--only", help="Names of scenarios, with commas between.")
@click.option("--at-once", type=click.IntRange(1), default=2, show_default=True, help="Live clusters.")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep logs and journals there."
)
@click.option("--json", "as_json", is_flag=True)
def main(speed: float, only: str | None, at_once: int, tries: int, keep: Path | None, as_json: bool) -> None:
    """Compare virtual time with the live emulator, scenario by scenario."""
    names = only.split(",") if only else [case.name for case in CASES]
    if unknown := sorted(set(names) - {case.name for case in CASES}):
        raise click.BadParameter(f"{unknown[0]} is none of {', '.join(case.name for case in CASES)}")
    cases = [case for case in CASES if case.name in names]
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="virtual-live-")))
        with ThreadPoolExecutor(at_once) as threads:
            found = list(threads.map(lambda case: settled(case, speed, folder, tries), cases))
    wrong = failures(found, LARGEST_DEVIATION_RATIO)
    if as_json:
        largest = max((abs(row.deviation_ratio) for one in found for row in one.rows), default=0.0)
        shown = [{**one._asdict(), "rows": [row._asdict() for row in one.rows]} for one in found]
        told = {"speed": speed, "largest_deviation_ratio": largest, "failures": wrong, "scenarios": shown}
        click.echo(json.dumps(told, indent=2))
    else:
        for one in found:
            for row in one.rows:
                click.echo(
                    f"{row.scenario:18}{row.job:20}{row.virtual_s:9.1f} s virtual{row.live_s:9.1f} s live"
                    f"{row.deviation_ratio:+9.2%}"
                )
            click.echo(f"  victims virtual: {', '.join(one.virtual_victims)}")
            click.echo(f"  victims live:    {', '.join(one.live_victims)}")
            click.echo(f"  this machine kept somebody waiting for up to {one.held_up_ms} ms")
        for line in wrong:
            click.echo(f"OFF: {line}")
        longest_ms = max((one.held_up_ms for one in found), default=0)
        if wrong and longest_ms > MACHINE_MS:
            click.echo(f"note: somebody waited {longest_ms} ms for this machine; try when it has less to do")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
