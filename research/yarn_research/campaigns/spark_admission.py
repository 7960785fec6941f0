"""Applications of Spark through plain ``yarnctl admit``: under each mechanism two, at once.

``python -m yarn_research.campaigns.spark_admission --on live|hadoop [--mechanism NAME]... [-o json]``

Law: the same command line once past the gate, which is all that the gate knows; then, for each mechanism, a
daemon of its own and the command line twice with ``yarnctl admit`` in front. What is counted was seen at the
ResourceManager and in the daemon's own answers; a program that fails is an error, and counts nothing. Names
differ in their numbers only, so that all are runs of one application.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import click

from yarn_research.campaigns.admission_bench import Unfinished, rows
from yarn_research.campaigns.admission_hosts import BIN, Gate, gate
from yarn_research.campaigns.spark_hosts import MOST, QUEUE, SparkHost, hadoop_spark, live_spark
from yarnctl.command_line import output_option, print_json, print_table

PATIENCE_S = 600.0
LOOK_S = 0.2
MECHANISMS = ("justice", "mrm")
CREDIT_TOKENS = 10**9
PAYS = ("--budget", "1000000", "--account", "users")
SOLD = ("--mode", "deadlines", "--preempting", QUEUE, "--allow-priority", "--enforce")


class Admitted(NamedTuple):
    """One application through the gate: what the gate gave, and what was seen of it.

    ``held`` is the number of containers, beside its driver's alone, that it was seen with longest. YARN may
    grant one more than was asked for, which is given back at once (facts/flink.md, section 2): ``most_seen``.
    """

    mechanism: str
    name: str
    containers: int
    held: int
    most_seen: int
    estimate: str
    by_tag: bool
    in_queue: bool
    freed: bool
    taught: bool

    @property
    def executors_as_given(self) -> bool:
        """Whether it had as many containers as the gate gave it."""
        return self.containers == self.held


def run_alone(host: SparkHost, name: str) -> None:
    """Submit an application past the gate and wait for its end."""
    words = host.spark_words(name, ("--num-executors", str(MOST - 1)))
    done = subprocess.run(
        words, env=dict(host.environment), capture_output=True, text=True, timeout=PATIENCE_S
    )
    if done.returncode:
        raise Unfinished(f"{name}: {done.stderr[-3000:]}")


def play(host: SparkHost, mechanism: str, folder: Path) -> list[Admitted]:
    """Run two applications through a gate of this mechanism; return what was seen of them."""
    more = SOLD if mechanism == "mrm" else ()
    with gate(host, folder, mechanism, more) as through:
        pays: Sequence[str] = ()
        if mechanism == "mrm":
            _said(host, through, ["accounts", "--add", "users"])
            _said(host, through, ["accounts", "--credit", "users", str(CREDIT_TOKENS)])
            pays = PAYS
        before = _until_trained(through)
        names = [f"daily-{MECHANISMS.index(mechanism) + 1}{number}" for number in (1, 2)]
        clients = {name: _admit(host, through, name, pays, folder) for name in names}
        counts = _watch(host, clients)
        for name, client in clients.items():
            if client.wait(PATIENCE_S):
                raise Unfinished(f"{name}: {(folder / f'{name}.log').read_text()[-3000:]}")
        return _judged(host, through, mechanism, counts, before + len(names))


def _said(host: SparkHost, through: Gate, words: Sequence[str]) -> None:
    env = {**host.environment, **through.environment}
    done = subprocess.run(
        [str(BIN / "yarnctl"), *words], env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    if done.returncode:
        raise Unfinished(f"{' '.join(words)}: {done.stderr[-2000:]}")


def _admit(
    host: SparkHost, through: Gate, name: str, pays: Sequence[str], folder: Path
) -> subprocess.Popen[bytes]:
    words = ["yarnctl", "admit", "--deadline", host.deadline, *pays, "--containers", str(MOST), "--"]
    env = {**host.environment, **through.environment}
    with (folder / f"{name}.log").open("wb") as said:
        return subprocess.Popen([*words, *host.spark_words(name)], env=env, stdout=said, stderr=said)


def _until_trained(through: Gate) -> int:
    """Wait until the gate has learned from the past; return of how many."""
    ends_s = time.monotonic() + PATIENCE_S
    while not (learned := int(through.asked()["gate"]["learned"])):
        if time.monotonic() > ends_s:
            raise Unfinished(f"nothing is learned from the past: {through.log.read_text()[-2000:]}")
        time.sleep(LOOK_S)
    return learned


Counts = Mapping[str, Counter[int]]
"""Application -> containers -> in how many polls."""


def _watch(host: SparkHost, clients: Mapping[str, subprocess.Popen[bytes]]) -> Counts:
    """Return the containers that each application was seen with, until all clients have left."""
    counts: dict[str, Counter[int]] = {name: Counter() for name in clients}
    ends_s = time.monotonic() + PATIENCE_S
    while any(client.poll() is None for client in clients.values()) and time.monotonic() < ends_s:
        for name, row in rows(host.rm, 0).items():
            if name in counts:
                counts[name][int(row.get("runningContainers", 0))] += 1
        time.sleep(LOOK_S)
    return counts


def _judged(host: SparkHost, through: Gate, mechanism: str, counts: Counts, learned: int) -> list[Admitted]:
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        told = through.asked()
        mine: dict[str, Any] = {each["request"]["name"]: each for each in told["items"]}
        over = all(mine[name]["state"] == "ended" for name in counts)
        if (over and told["gate"]["learned"] >= learned) or time.monotonic() > ends_s:
            break
        time.sleep(LOOK_S)
    seen = rows(host.rm, 0)
    found = []
    for name, seen_with in counts.items():
        beside = {count: polls for count, polls in seen_with.items() if count > 1}
        row, admission = seen[name], mine[name]
        tags = row["applicationTags"].split(",")
        found.append(
            Admitted(
                mechanism=mechanism,
                name=name,
                containers=admission["plan"]["containers"],
                held=max(beside, key=lambda count: (beside[count], count), default=0),
                most_seen=max(seen_with),
                estimate=(admission["request"]["estimate"] or {}).get("source", ""),
                by_tag=f"yarnctl-admission-{admission['id']}" in tags
                and admission["application"] == row["id"]
                and row["applicationType"] == "SPARK",
                in_queue=row["queue"].rpartition(".")[2] == QUEUE,
                freed=admission["state"] == "ended" and told["gate"]["reserved"] == 0,
                taught=told["gate"]["learned"] >= learned,
            )
        )
    return found


def shown(found: Sequence[Admitted]) -> dict[str, Any]:
    """Return the figures: of so many applications, how many were as they must be."""
    counted = ("by_tag", "in_queue", "executors_as_given", "freed", "taught")
    figures: dict[str, Any] = {name: sum(getattr(each, name) for each in found) for name in counted}
    figures["estimated"] = sum(each.estimate.startswith("applications:") for each in found)
    return {"applications": len(found), **figures, "rows": [each._asdict() for each in found]}


@click.command()
@click.option("--on", "where", type=click.Choice(["live", "hadoop"]), default="live", show_default=True)
@click.option("--mechanism", "mechanisms", type=click.Choice(MECHANISMS), multiple=True, default=MECHANISMS)
@output_option
def main(where: str, mechanisms: tuple[str, ...], output: str) -> None:
    """Run applications of Spark through the gate, and count what was seen."""
    opened: AbstractContextManager[SparkHost]
    with tempfile.TemporaryDirectory(prefix="yarnctl-spark-") as name:
        folder = Path(name)
        opened = live_spark(folder) if where == "live" else hadoop_spark(folder)
        with opened as host:
            run_alone(host, "daily-0")
            found = [each for one in mechanisms for each in play(host, one, folder / one)]
    if output == "json":
        print_json(shown(found))
        return
    print_table(Admitted._fields, [tuple(str(value) for value in each) for each in found])


if __name__ == "__main__":
    main()
