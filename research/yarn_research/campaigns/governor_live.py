"""The scenarios of ``governor_scenarios`` on the live emulator, by clock and over HTTP.

    python -m yarn_research.campaigns.governor_live [--only NAME,...] [--speed X] [--free] [--json]

Each runs in a cluster of modelled containers beside ``yarnctl run``: observing, and with ``--enforce``; with
``--free`` also with ``--no-governor``. Exit status 1 if production's jobs take more than 2 % longer in sum
than observing. ``no-store`` is played in virtual time only: live, yarnctl blocks itself without HDFS.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import cast

from emulator.cluster.faults import NodeLost
from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.governor_scenarios import MARGIN, NODES, SCENARIOS, SLOTS, Adversarial
from tests.soak.virtual_live_sides import program, read_records
from yarn_research.campaigns.waiting_live import Stage
from yarn_research.campaigns.waiting_scenarios import spark
from yarnctl.deciding.records import Decision, LeversStopped
from yarnctl.traces.job import Job

SIDES = {"observing": (), "free": ("--enforce", "--no-governor"), "governed": ("--enforce",)}


def main(arguments: Sequence[str]) -> int:
    """Play the scenarios one after the other."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.campaigns.governor_live")
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", type=float, default=2.0)
    parser.add_argument("--free", action="store_true")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args(arguments)
    only = [name for name in told.only.split(",") if name]
    sides = [side for side in SIDES if told.free or side != "free"]
    failed = False
    for scenario in SCENARIOS:
        if scenario.name == "no-store" or (only and scenario.name not in only):
            continue
        row = {side: _played(scenario, side, told.speed) for side in sides}
        ratio = row["governed"]["s"] / row["observing"]["s"]
        failed = failed or ratio > MARGIN or any(each["failed"] for each in row.values())
        print(json.dumps({"scenario": scenario.name, "ratio": round(ratio, 3), **row}), flush=True)
    return int(failed)


def _played(scenario: Adversarial, side: str, speed: float) -> dict[str, float]:
    """Live through a scenario; return seconds of production's jobs in sum, and counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _cluster(scenario, folder, speed) as url:
            words = [
                "--rm", url, "--listen", "off", "--state-dir", str(folder / "state"), "--eviction", "mix",
                "--may-lose", f"{scenario.may_lose_ratio:.0%}", *SIDES[side],
            ]  # fmt: skip
            if scenario.room_within_ms is not None:
                words += ["--room-within", f"{scenario.room_within_ms}ms"]
            with program("tests.soak.virtual_live_sides", str(speed), *words, log=folder / "yarnctl.log"):
                jobs = _submitted(scenario, url, folder)
                rows = play(Client(url, "harness"), jobs, speed)
        production = [job.name for job in jobs if job.job_class == "production"]
        failed = [row.name for row in rows if row.final_status != "SUCCEEDED" and row.name in production]
        records = read_records(folder / "state/journal.jsonl")
    return {
        "s": sum(row.completion_ms for row in rows if row.name in production) / 1000,
        "orders": sum(len(each.orders) for each in records if isinstance(each, Decision)),
        "failed": len(failed),
        "stops": sum(isinstance(each, LeversStopped) for each in records),
    }


def _submitted(scenario: Adversarial, url: str, folder: Path) -> tuple[Job, ...]:
    """Submit an application of Spark, if the scenario has one; return the other jobs."""
    if any(job.spark for job in scenario.jobs):
        stage = cast(Stage, SimpleNamespace(url=url, folder=folder, names={}))  # all that this act reads
        spark("--route", "signal", executors=10)(stage)
    return tuple(job for job in scenario.jobs if not job.spark)


@contextlib.contextmanager
def _cluster(scenario: Adversarial, folder: Path, speed: float) -> Iterator[str]:
    """Run a scenario's cluster; yield its address."""
    xml = folder / "capacity-scheduler.xml"
    xml.write_text(_scheduler_xml(scenario))
    how = ("--slots", str(SLOTS), "--port", "0", "--json", "--containers", "modelled")
    work = ("--work", str(folder / "work"))
    lost = [fault for fault in scenario.faults if isinstance(fault, NodeLost)]
    words = ("serve", "--nodes", str(NODES - len(lost)), "--speed", str(speed), "--scheduler-xml", str(xml))
    with program("emulator.cli", *words, *how, *work, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        with contextlib.ExitStack() as stack:
            for fault in lost:
                node = stack.enter_context(
                    program("emulator.cli", "nm", "--rm", url, *how, *work, log=folder / "nm.log")
                )
                assert node.stdout is not None
                node.stdout.readline()
                timer = Timer(fault.at_ms / 1000 / speed, node.kill)
                timer.start()
                stack.callback(timer.cancel)
            yield url


def _scheduler_xml(scenario: Adversarial) -> str:
    """Return the capacity-scheduler.xml of a scenario's queues."""
    limits = {each.name: each.maximum_ratio for each in scenario.limits}
    more = {each.name: 90 * each.capacity_ratio for each in scenario.queues}
    most = {"production": 100 * (limits.get("production") or 1)}
    shares = {"production": min(95 - sum(more.values()), most["production"]), "research": 5.0, **more}
    if left := 100 - sum(shares.values()):
        shares["idle"] = left  # a leaf's share is at most its maximum
    keys = {"queues": ",".join(shares)}
    for name, share in shares.items():
        keys |= {
            f"{name}.capacity": f"{share:g}",
            f"{name}.maximum-capacity": f"{most.get(name, 100):g}",
            f"{name}.user-limit-factor": "100",
            f"{name}.maximum-am-resource-percent": f"{scenario.am_ratio:g}",
        }
    rows = "".join(
        f"<property><name>yarn.scheduler.capacity.root.{key}</name><value>{value}</value></property>\n"
        for key, value in keys.items()
    )
    return f"<configuration>\n{rows}</configuration>\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
