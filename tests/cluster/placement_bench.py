"""Applications placed across frameworks: deadlines met by ORiON, the least loaded pool, and without bounds.

``python -m tests.cluster.placement_bench --on live --output FILE`` on the live emulator, or
``... --on hadoop --rm URL --applications DIR --pools FILE --output FILE`` on a cluster with frameworks.

Law: first each application is profiled, into a store beside the output: an interrupted profile goes on. Then
the same arrivals come in each scheme of a round, the schemes in another order each round. They go in by
``yarnctl place`` alone; when an application ended is read from the ResourceManager.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from tests import http_client
from tests.cluster.admission_bench import Unfinished
from tests.cluster.admission_hosts import BIN, Gate, gate
from tests.cluster.placement_hosts import POOLS_TOML, TIMES, USER, live_pools
from tests.measured.provenance import head
from yarnctl.cli.place import application_at
from yarnctl.cli.runs import kept_runs
from yarnctl.command_line import print_table

PATIENCE_S = 1800.0
LOOK_S = 1.0
SCHEMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "orion": ("orion", ("--late", "5%")),
    "least_loaded": ("least_loaded", ("--late", "5%")),
    "point": ("orion", ("--late", "point")),
}
"""By name: the gate's mechanism, and what ``yarnctl place`` is told."""
TIGHT, LOOSE = 1.3, 2.0
"""A deadline is so many times the best profiled time."""
MET_LEAST, TIMES_LEAST_LOADED, LATE_MOST = 0.70, 1.5, 0.10
COLUMNS = ("round", "scheme", "met", "rejected", "late of admitted", "kinds")


class Terms(NamedTuple):
    """What is chosen beforehand; ``gap_s`` is the mean time between two arrivals."""

    arrivals: int = 18
    rounds: int = 3
    gap_s: float = 6.0
    containers: str = "1,2,3"
    repeat: int = 2
    seed: int = 1


SLICE = Terms(arrivals=6, rounds=1, containers="1,3")


class PlacingHost(Protocol):
    """A cluster with pools, and a client's environment there."""

    rm: str
    history: str
    container_mib: int

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a client."""
        ...


class RunningCluster:
    """A cluster that is there already, with its frameworks on the PATH of who calls."""

    container_mib = 1024

    def __init__(self, rm: str, history: str, environment: Mapping[str, str]) -> None:
        self.rm, self.history = rm, history
        self.environment = {**environment, "YARNCTL_RM": rm}


class PlacedArrival(NamedTuple):
    """One application that comes: its file, when (s from the first), and its deadline (s from then)."""

    file: Path
    at_s: float
    deadline_s: int


def profile(host: PlacingHost, files: Sequence[Path], store: Path, terms: Terms) -> None:
    """Profile each application; what the store has is not run again."""
    for file in files:
        words = ["profile", str(file), "--containers", terms.containers, "--repeat", str(terms.repeat)]
        done = subprocess.run(
            [str(BIN / "yarnctl"), *words, "--store", str(store)], env=dict(host.environment), check=False
        )
        if done.returncode:
            raise Unfinished(f"{file} could not be profiled: run this again, it goes on where it was")


def best_s(file: Path, store: Path) -> float:
    """Return the shortest profiled time of an application of this size."""
    app = application_at(file)
    times = [
        run.elapsed_ms
        for run in kept_runs(store)
        if run.application == app.name and run.features == dict(app.features)
    ]
    return min(times) / 1000


def arrivals(files: Sequence[Path], store: Path, terms: Terms) -> list[PlacedArrival]:
    """Return who comes when: each file about as often, gaps exponential, all by the seed."""
    chance = random.Random(terms.seed)
    order = [files[place % len(files)] for place in range(terms.arrivals)]
    chance.shuffle(order)
    found, at_s = [], 0.0
    for file in order:
        deadline_s = max(1, round(best_s(file, store) * chance.uniform(TIGHT, LOOSE)))
        found.append(PlacedArrival(file, at_s, deadline_s))
        at_s += chance.expovariate(1 / terms.gap_s)
    return found


def play(
    host: PlacingHost, scheme: str, coming: Sequence[PlacedArrival], files: tuple[Path, Path], folder: Path
) -> list[dict[str, Any]]:
    """Let all come under a scheme and end; return what became of each. ``files``: pools, store."""
    pools, store = files
    mechanism, told = SCHEMES[scheme]
    with gate(host, folder, mechanism, ("--pools", str(pools)), pooled=True) as through:
        environment = {**host.environment, **through.environment}
        running = []
        began_s = time.monotonic()
        for each in coming:
            time.sleep(max(0.0, began_s + each.at_s - time.monotonic()))
            words = [
                "place",
                str(each.file),
                "--deadline",
                f"{each.deadline_s}s",
                "--store",
                str(store),
                *told,
            ]
            running.append(
                subprocess.Popen(
                    [str(BIN / "yarnctl"), *words, "--user", USER],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        for process in running:
            process.wait(PATIENCE_S)
        return _outcomes(host, _all_over(through))


def _all_over(through: Gate) -> list[dict[str, Any]]:
    """Wait until nothing is open at the gate; return its admissions, oldest first."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        items = through.asked("?limit=500")["items"]
        if not any(each["state"] in ("waiting", "admitted", "taken") for each in items):
            return sorted(items, key=lambda each: int(each["id"].rpartition("-")[2]))
        time.sleep(LOOK_S)
    raise Unfinished("some applications did not end")


def _outcomes(host: PlacingHost, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    told = http_client.get(f"{host.rm}/ws/v1/cluster/apps", timeout=30).json()
    there = {row["id"]: row for row in (told.get("apps") or {}).get("app") or []}
    found = []
    for each in items:
        plan, row = each["placement"], there.get(each["application"] or "")
        ended_at_ms = None if row is None else row["finishedTime"]
        right = row is not None and row["finalStatus"] == "SUCCEEDED"
        found.append(
            {
                "application": each["request"]["name"],
                "state": each["state"],
                "kind": plan["kind"],
                "containers": plan["containers"],
                "predicted_ms": plan["predicted_ms"],
                "cost_mtokens": plan["cost_mtokens"],
                "start_at_ms": plan["start_at_ms"],
                "deadline_at_ms": each["plan"]["deadline_at_ms"],
                "ended_at_ms": ended_at_ms,
                "right": right,
                "met": bool(
                    right and ended_at_ms is not None and ended_at_ms <= each["plan"]["deadline_at_ms"]
                ),
            }
        )
    return found


def figures(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of one scheme; ``met_ratio`` is of all that came, lateness of those that ran."""
    ran = [each for each in outcomes if each["ended_at_ms"] is not None]
    kinds = sorted({each["kind"] for each in ran})
    return {
        "came": len(outcomes),
        "met_ratio": sum(each["met"] for each in outcomes) / max(1, len(outcomes)),
        "rejected": sum(each["state"] == "rejected" for each in outcomes),
        "late_of_admitted_ratio": sum(not each["met"] for each in ran) / max(1, len(ran)),
        "by_kind": {kind: sum(each["kind"] == kind for each in ran) for kind in kinds},
        "right": all(each["right"] for each in ran),
    }


def judged(found: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """Return which targets hold, of the figures of all rounds by scheme."""
    orion, other = found["orion"], found["least_loaded"]
    return {
        "met": orion["met_ratio"] >= MET_LEAST,
        "more_than_least_loaded": orion["met_ratio"] >= TIMES_LEAST_LOADED * other["met_ratio"],
        "late": orion["late_of_admitted_ratio"] <= LATE_MOST,
        "all_kinds": len(orion["by_kind"]) == 3,
        "right": all(each["right"] for each in found.values()),
    }


@contextmanager
def _on(on: str, given: Mapping[str, Any], folder: Path) -> Iterator[tuple[PlacingHost, list[Path], Path]]:
    """Return the cluster, the applications' files and the pools' file."""
    if on == "hadoop":
        import os

        files = sorted(given["applications"].glob("*.toml"))
        yield RunningCluster(given["rm"], given["history"] or "off", os.environ), files, given["pools"]
        return
    with live_pools(folder) as host:
        pools = folder / "pools.toml"
        pools.write_text(POOLS_TOML)
        names = list(TIMES)[: 2 if given["slice_only"] else None]
        files = []
        for name in names:
            for size in (1,) if given["slice_only"] else (1, 2):
                files.append(folder / f"{name}-{size}.toml")
                files[-1].write_text(host.application(name, size))
        yield host, files, pools


@click.command()
@click.option("--on", type=click.Choice(["live", "hadoop"]), default="live", show_default=True)
@click.option("--rm", help="hadoop: its ResourceManager.")
@click.option("--history", help="hadoop: its history server.")
@click.option(
    "--applications", type=click.Path(path_type=Path, file_okay=False), help="hadoop: APP.toml files."
)
@click.option("--pools", type=click.Path(path_type=Path, dir_okay=False), help="hadoop: the file of pools.")
@click.option(
    "--slice", "slice_only", is_flag=True, help="Two applications, two numbers of containers, one round."
)
@click.option("--arrivals", "count", type=int, help="How many come.  [18, of a slice 6]")
@click.option("--rounds", type=int, help="How often each scheme.  [3, of a slice 1]")
@click.option("--gap-s", type=float, help="The mean time between two.  [6]")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(
    on: str, output: Path, count: int | None, rounds: int | None, gap_s: float | None, **given: Any
) -> None:
    """Profile, then let applications come under each scheme."""
    terms = SLICE if given["slice_only"] else Terms()
    said: dict[str, Any] = {"arrivals": count, "rounds": rounds, "gap_s": gap_s}
    terms = terms._replace(**{name: value for name, value in said.items() if value is not None})
    folder = output.with_suffix(".d").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "runs.jsonl"
    played: list[dict[str, Any]] = []
    with _on(on, given, folder) as (host, files, pools):
        profile(host, files, store, terms)
        coming = arrivals(files, store, terms)
        for number in range(terms.rounds):
            names = list(SCHEMES)
            for scheme in names[number % 3 :] + names[: number % 3]:
                place = folder / f"{number}-{scheme}-{time.time_ns()}"
                outcomes = play(host, scheme, coming, (pools, store), place)
                played.append({"round": number, "scheme": scheme, "outcomes": outcomes, **figures(outcomes)})
    whole = {
        name: figures([one for each in played if each["scheme"] == name for one in each["outcomes"]])
        for name in SCHEMES
    }
    found = {
        **head("placement", on=on),
        "terms": terms._asdict(),
        "played": played,
        "all": whole,
        "holds": judged(whole),
    }
    output.write_text(json.dumps(found, indent=1) + "\n")
    shown = [
        (
            each["round"],
            each["scheme"],
            each["met_ratio"],
            each["rejected"],
            each["late_of_admitted_ratio"],
            each["by_kind"],
        )
        for each in (*played, *({"round": "all", "scheme": name, **each} for name, each in whole.items()))
    ]
    print_table(COLUMNS, [tuple(map(str, row)) for row in shown])


if __name__ == "__main__":
    command()
