"""Deadlines met with plain queues and through the gate: the same jobs, the same instants, the same cluster.

``python -m yarn_research.campaigns.admission_bench --on live|hadoop --output FILE``

Law: first each kind of job runs once alone, which is all that the gate knows. What a job may take is counted
from its arrival in both runs; who was rejected has missed its deadline.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tests import http_client
from yarn_research.campaigns.admission_hosts import Gate, Host, gate, live
from yarn_research.campaigns.admission_set import COLUMNS, Arrival, Ran, arrivals, judged, met, table
from yarn_research.campaigns.provenance import head, load
from yarnctl.command_line import print_json, print_table

REJECTED, TOO_LATE = 1, 2
PATIENCE_S = 900.0
NO_OVERLAP = {"mapreduce.job.reduce.slowstart.completedmaps": "1.0"}
Say = Callable[[str], object]


class Unfinished(AssertionError):
    """A job did not end, or the cluster does not do what it should."""


def train(host: Host, folder: Path) -> None:
    """Run each kind of job once, alone."""
    for kind in (host.mix.big, host.mix.small):
        words = host.words(kind, f"{kind.name}-0", NO_OVERLAP)
        with (folder / f"{kind.name}-0.log").open("wb") as said:
            done = subprocess.run(
                words, env=dict(host.environment), stdout=said, stderr=said, timeout=PATIENCE_S
            )
        if done.returncode:
            raise Unfinished(f"{kind.name}-0: {(folder / f'{kind.name}-0.log').read_text()[-2000:]}")


def run(host: Host, jobs: Sequence[Arrival], folder: Path, through: Gate | None) -> list[Ran]:
    """Let the jobs arrive, plain or through a gate, and wait until all is over."""
    folder.mkdir(parents=True, exist_ok=True)
    began_ms = int(time.time() * 1000)
    clients: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for job in sorted(jobs, key=lambda one: one.at_s):
            due_s = began_ms / 1000 + job.at_s
            while (left_s := due_s - time.time()) > 0:
                time.sleep(left_s)  # the set's own pace
            clients[job.name] = _arrive(host, job, began_ms, folder, through)
        for client in clients.values():
            client.wait(PATIENCE_S)
    finally:
        for client in clients.values():
            if client.poll() is None:
                client.kill()
                client.wait()
    found = rows(host.rm, began_ms)
    limits = {} if through is None else _containers(through)
    for job in jobs:
        log = folder / f"{job.name}.log"
        if job.name not in found and not _turned_away(clients[job.name].returncode, log):
            raise Unfinished(f"{job.name} was neither submitted nor rejected: {log.read_text()[-2000:]}")
    return [_ran(job, began_ms, found.get(job.name), limits) for job in jobs]


def _arrive(
    host: Host, job: Arrival, began_ms: int, folder: Path, through: Gate | None
) -> subprocess.Popen[bytes]:
    """Start what a user would type."""
    words, env = host.words(job.kind, job.name, {}), dict(host.environment)
    if through is not None:
        env |= through.environment
        at_ms = began_ms + round((job.at_s + job.deadline_s) * 1000)
        most = max(job.kind.maps, job.kind.reduces) + 1
        given = ["--deadline-at", str(at_ms), "--containers", str(most), "--user", "ann"]
        words = ["yarnctl", "admit", *given, "--", *words]
    with (folder / f"{job.name}.log").open("wb") as said:
        return subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def _turned_away(status: int, log: Path) -> bool:
    """Say whether a job was rejected: by the gate, or because its span was over before its client had
    begun.
    """
    said = log.read_text(encoding="utf-8", errors="replace")
    return status == REJECTED or (status == TOO_LATE and "is in the past" in said)


def _ran(job: Arrival, began_ms: int, row: dict[str, Any] | None, limits: dict[str, int]) -> Ran:
    ended_at_ms = int(row["finishedTime"]) if row is not None and row.get("finishedTime") else None
    final = "" if row is None else str(row["finalStatus"])
    found = judged(job, began_ms, ended_at_ms, final, row is None)
    return Ran(
        found.name,
        found.submitted_at_ms,
        found.deadline_at_ms,
        found.ended_at_ms,
        found.outcome,
        limits.get(job.name),
    )


def rows(rm: str, since_ms: int) -> dict[str, dict[str, Any]]:
    """Return the applications of a cluster since an instant by name."""
    told = http_client.get(f"{rm}/ws/v1/cluster/apps", timeout=30).json()
    found = (told.get("apps") or {}).get("app") or []
    return {str(row["name"]): row for row in found if int(row["startedTime"]) >= since_ms}


def _containers(through: Gate) -> dict[str, int]:
    """Return how many containers each job was given."""
    items = through.asked("?limit=500")["items"]
    return {one["request"]["name"]: one["plan"]["containers"] for one in items if one["application"]}


def compare(
    plain: Host, gated: Host, folder: Path, say: Say, allocator: str = "oracle", more: Sequence[str] = ()
) -> dict[str, Any]:
    """Run the set plain on one cluster and through the gate on another, or the same; return both."""
    jobs = arrivals(plain.mix)
    say(f"{gated.name}: each kind of job once, alone")
    train(gated, folder)
    say(f"{gated.name}: through the gate")
    with gate(gated, folder / "gate", allocator, more) as through:
        with_gate = run(gated, jobs, folder / "gate", through)
    say(f"{plain.name}: plain queues")
    without = run(plain, jobs, folder / "plain", None)
    return result(plain.name, jobs, without, with_gate)


def side_by_side(plain: Host, gated: Host, folder: Path, allocator: str = "oracle") -> dict[str, Any]:
    """Run the set plain on one cluster and through the gate on another at the same time."""
    jobs = arrivals(plain.mix)
    with ThreadPoolExecutor(1) as pool:
        without = pool.submit(run, plain, jobs, folder / "plain", None)
        train(gated, folder)
        with gate(gated, folder / "gate", allocator) as through:
            with_gate = run(gated, jobs, folder / "gate", through)
        return result(plain.name, jobs, without.result(), with_gate)


def result(on: str, jobs: Sequence[Arrival], plain: Sequence[Ran], gated: Sequence[Ran]) -> dict[str, Any]:
    """Return what is written down of both runs."""
    return {
        "on": on,
        "more_met": met(gated) - met(plain),
        "jobs": [job._asdict() | {"kind": job.kind._asdict()} for job in jobs],
        "plain": {"met": met(plain), "jobs": [_shown(row) for row in plain]},
        "gate": {"met": met(gated), "jobs": [_shown(row) for row in gated]},
        "table": table(jobs, plain, gated),
    }


def _shown(row: Ran) -> dict[str, Any]:
    names = ("name", "submitted_at_ms", "deadline_at_ms", "ended_at_ms", "outcome", "met", "containers")
    return {name: getattr(row, name) for name in names}


@contextmanager
def host_of(on: str, folder: Path) -> Iterator[Host]:
    """Start a cluster."""
    if on == "live":
        with live(folder) as emulated:
            yield emulated
        return
    from yarn_research.campaigns.admission_hadoop import hadoop

    with hadoop(folder) as real:
        yield real


@click.command()
@click.option("--on", type=click.Choice(("live", "hadoop")), default="live", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the result there.")
@click.option("--allocator", default="oracle", show_default=True)
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep logs in this folder.")
def main(on: str, output: Path | None, allocator: str, keep: Path | None) -> None:
    """Compare plain queues with the gate; print a table."""
    with tempfile.TemporaryDirectory(prefix="yarnctl-admission-") as own:
        folder = keep or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        first = head(f"admission-{on}")
        with host_of(on, folder) as host:
            found = first | compare(host, host, folder, lambda text: click.echo(text, err=True), allocator)
    print_table(COLUMNS, found.pop("table"), f"{found['on']}: deadlines met, plain and through the gate")
    if output is not None:
        import msgspec

        found["load_after"] = load()

        output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    else:
        print_json({"plain": found["plain"]["met"], "gate": found["gate"]["met"]})


if __name__ == "__main__":
    main()
