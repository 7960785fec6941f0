"""``python -m yarn_research.campaigns.net --output FILE``: YARN's own preemption as the net, on a real Hadoop.

The rule, written before the first run (docs/yarn.md, ``--yarn-preemption switch``):

* Twenty rounds of Fig 4, and four of YARN alone, on one cluster of 12 containers: research fills it with 11
  reduces, then production comes with 3. YARN's policy runs throughout, with the settings ``TUNED``. The
  scheduler's store is in memory, and the queue has no key of its own before.
* ``alive`` (ten): yarnctl acts. The round passes if YARN preempts no container of either job, and production
  succeeds.
* ``dead`` (ten): yarnctl is killed by SIGKILL once research works. ``yarnctl restore --all --state-dir`` starts
  at once, as ``ExecStopPost`` does, and production comes beside it. The round passes if the command ends with
  status 0, no record is left, the key is absent again, and production takes at most ``WITHIN_S`` longer than
  the median of YARN alone. ``back_s`` tells how long after the kill the key was absent; it is reported only.
* In four rounds the ResourceManager is restarted, and forgets the key: twice before research comes, while
  yarnctl lives (it must set the key again before any job comes); twice after the kill, before the command,
  which must count the forgotten key as restored. A restart ends research, so that it comes again then.
* A round that fails to be played is written down, and does not pass.
"""

from __future__ import annotations

import math
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.jobs import RESTARTABLE, YARNCTL, Job, Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.restoring import records, restore, until
from yarn_research.campaigns.schemes import MUTABLE, QUEUE, TUNED, Scheme
from yarnctl.command_line import print_json

KIND = "net"
HADOOP = "3.4.2"
OPTIONS = (*QUEUES, "--yarn-preemption", "switch")
RESEARCH = Plan("research", "research", (800,) * 11, key_s=0.1, wrap=RESTARTABLE)
PRODUCTION = Plan("production", "production", (120,) * 3, key_s=0.1, user="bob")
ALONE, ROUNDS, RESTARTS = 4, 20, frozenset({4, 5, 14, 15})
WORKING_S, SET_AGAIN_S, WITHIN_S = 90.0, 60.0, 5.0
KEY = f"{QUEUE}research.disable_preemption"


class Net(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each row is a round."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    rounds: list[dict[str, Any]] = []


def plan() -> list[tuple[str, int]]:
    """Return the rounds in their order: how each is played, and its number; YARN alone is spread among them."""
    rounds = [("dead" if number % 2 else "alive", number) for number in range(ROUNDS)]
    every = ROUNDS // ALONE
    for number in range(ALONE):
        rounds.insert(number * (every + 1), ("yarn", number))
    return rounds


def shape() -> Shape:
    """Return a cluster whose policy runs, and whose scheduler can be changed by REST."""
    changes = Scheme("net", 95, 5, monitored=True, settings={**TUNED, **MUTABLE}).changes()
    overrides = {
        name: {key: value for key, value in keys.items() if value is not None and key != KEY}
        for name, keys in changes.items()
    }
    return Shape(HADOOP, overrides=overrides)


def own_key(cluster: Cluster) -> str:
    """Return research's own key as the scheduler has it ("": absent)."""
    url = f"{cluster.rm_url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
    rows = http_client.get(url, headers={"Accept": "application/json"}, timeout=30).json()["property"]
    return next((str(row["value"]) for row in rows if row["name"] == KEY), "")


def working(cluster: Cluster, folder: Path, name: str) -> Job:
    """Submit research, and return once all its reduces work."""
    job = Job(cluster, RESEARCH, folder, name)
    if not until(lambda: job.at_work() == len(RESEARCH.groups), WORKING_S):
        raise AssertionError(f"research does not fill the cluster: {job.said()}")
    return job


def played(cluster: Cluster, folder: Path, how: str, number: int) -> dict[str, Any]:
    """Play one round; return what was seen."""
    name, restarts = f"{how}-{number}", how != "yarn" and number in RESTARTS
    row: dict[str, Any] = {"how": how, "number": number, "restarts": restarts, "load": load()}
    if how == "yarn":
        research = working(cluster, folder, name)
        return row | _ended(Job(cluster, PRODUCTION, folder, name), research)
    with Attached(cluster, folder / f"state-{name}", OPTIONS) as daemon:
        if restarts and how == "alive":
            cluster.restart_manager({})
            row["set_again"] = until(lambda: own_key(cluster) == "true", SET_AGAIN_S)
        research = working(cluster, folder, name)
        row["key"] = own_key(cluster)
        if how == "alive":
            row |= _ended(Job(cluster, PRODUCTION, folder, name), research)
        else:
            daemon.kill()
            row |= _dead(cluster, folder, name, research, restarts=restarts)
    if how == "alive":  # what a stop leaves is ExecStopPost's
        row["restore_status"], row["key_after"] = restore(cluster), own_key(cluster)
    return row


def _dead(cluster: Cluster, folder: Path, name: str, research: Job, *, restarts: bool) -> dict[str, Any]:
    """Restore as the unit of a dead daemon does, and let production come beside; return what was seen."""
    began_s, row = time.monotonic(), dict[str, Any]()
    if restarts:
        cluster.restart_manager({})
        research.stop()
    words = [YARNCTL, "restore", "--rm", cluster.rm_url, "--name-node", cluster.hdfs_url, "--all"]
    command_beside = subprocess.Popen([*words, "--state-dir", str(folder / f"state-{name}")])
    if restarts:
        research = working(cluster, folder, f"{name}-again")
    job = Job(cluster, PRODUCTION, folder, name)
    if not restarts and until(lambda: not own_key(cluster), SET_AGAIN_S):
        row["back_s"] = round(time.monotonic() - began_s, 1)
    row |= _ended(job, research)
    row["restore_status"] = command_beside.wait(120)
    return row | {"records": len(records(cluster)), "key_after": own_key(cluster)}


def _ended(job: Job, research: Job) -> dict[str, Any]:
    """Wait for production, then end research; return the times, and what YARN preempted."""
    ended = job.wait()
    row = research.row()
    research.hurry()
    finished = research.wait()
    return {
        "production": ended.state,
        "production_s": round(ended.took_s, 1),
        "research": finished.state,
        "preempted": ended.preempted + finished.preempted,
        "preempted_by_then": int(row.get("numNonAMContainerPreempted") or 0),
    }


def passes(row: dict[str, Any], yarn_s: float | None) -> bool:
    """Judge a round by the rule; ``yarn_s``: the median of YARN alone (None: not played)."""
    if "failed" in row or row["production"] != "SUCCEEDED":
        return False
    if row["how"] == "yarn":
        return True
    if (row["key"], row["restore_status"], row["key_after"]) != ("true", 0, ""):
        return False
    if row["how"] == "alive":
        return not row["preempted"] and bool(row.get("set_again", True))
    in_time = yarn_s is not None and row["production_s"] <= yarn_s + WITHIN_S
    return not row["records"] and in_time


def judged(kept: Net) -> dict[str, Any]:
    """Return how many rounds of each kind were played and passed, and the times."""
    alone = [row["production_s"] for row in kept.rounds if row["how"] == "yarn" and "failed" not in row]
    yarn_s = statistics.median(alone) if alone else None
    found: dict[str, Any] = {"yarn_s": yarn_s}
    for how in ("alive", "dead"):
        rows = [row for row in kept.rounds if row["how"] == how]
        fine = [row for row in rows if "failed" not in row]
        found[how] = {
            "played": len(rows),
            "passed": sum(passes(row, yarn_s) for row in rows),
            "preempted": sum(row["preempted"] for row in fine),
            "production_s": sorted(row["production_s"] for row in fine),
            "back_s_max": max((row["back_s"] for row in fine if "back_s" in row), default=None),
        }
    return found


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Begin no round after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kept = gone_on(output, Net(head(KIND, hadoop=HADOOP)))
    kept.sittings.append({"began": now(), "machine": machine()})
    done = {(row["how"], row["number"]) for row in kept.rounds}
    left = [one for one in plan() if one not in done]
    folder = Path(tempfile.mkdtemp(prefix="net-"))
    if left:
        with Cluster(shape()) as cluster:
            prepare(cluster)
            for how, number in left:
                if time.monotonic() > ends_s:
                    break
                began_s, row = time.monotonic(), {"how": how, "number": number, "began": now()}
                try:
                    row |= played(cluster, folder, how, number)
                except Exception as problem:
                    row |= {"failed": failure(problem)}
                    cluster.restart_manager({})  # ends what is left of the round
                    if records(cluster):
                        row["restore_status"] = restore(cluster)
                kept.rounds.append({**row, "took_s": round(time.monotonic() - began_s, 1)})
                keep(output, kept)
                click.echo(f"{how} {number}: {kept.rounds[-1]}", err=True)
    shutil.rmtree(folder)
    print_json(judged(kept))


if __name__ == "__main__":
    command()
