"""Applications placed across frameworks: deadlines met by ORiON, the least loaded pool, and without bounds.

``python -m yarn_research.campaigns.placement_bench --on live|hadoop --output FILE [--slice]``

Law: research/notes/placement.md has the terms and the rule by which it is judged. First each application is profiled,
one on each framework at once, into a store beside the output: an interrupted profile goes on. Then the same
arrivals come in each scheme of a round, the schemes in another order each round. They go in by ``yarnctl
place`` alone; when an application ended is read from the ResourceManager, whether its output is right from
what it wrote. Each run that was played is a file: a campaign that broke off goes on from the first that has
none, and ``--go-on`` takes what another sitting has left (``placement_sittings``).
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click
import msgspec

from tests import http_client
from tests.hadoop.artifacts import FLINK, SPARK
from yarn_research.campaigns.admission_bench import Unfinished
from yarn_research.campaigns.admission_hosts import BIN, Gate, gate
from yarn_research.campaigns.market_bench import begun, kept
from yarn_research.campaigns.placement_hosts import POOLS_TOML, TIMES, USER, live_pools
from yarn_research.campaigns.placement_judging import (
    COLUMNS,
    Campaign,
    PlacedOutcome,
    PlacedRun,
    PlayedRun,
    read_campaign,
    table,
)
from yarn_research.campaigns.placement_sittings import Left, Sitting, by_name, left_by, restore
from yarn_research.campaigns.placement_terms import (
    SLICE,
    PlacedArrival,
    Terms,
    arrivals,
    best_s,
    gap_of,
    profiled,
)
from yarn_research.campaigns.provenance import head, load, machine, now
from yarnctl.cli.place import application_at
from yarnctl.cli.runs import kept_runs
from yarnctl.command_line import print_table
from yarnctl.daemon.admission.pool_files import read_pools

PATIENCE_S = 1800.0
LOOK_S = 1.0
LIVE_GAP_S = 6.0
SLICE_NAMES = 2
SCHEMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "orion": ("orion", ("--late", "5%")),
    "least_loaded": ("least_loaded", ("--late", "5%")),
    "point": ("orion", ("--late", "point")),
}
"""By name: the gate's mechanism, and what ``yarnctl place`` is told."""


class PlacingHost(Protocol):
    """A cluster with pools, and a client's environment there."""

    rm: str
    history: str
    container_mib: int

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a client."""
        ...

    def is_output_right(self, name: str) -> bool:
        """Say whether the application that YARN has under this name wrote what it should."""
        ...


class Placing(NamedTuple):
    """A cluster, the applications' files, the file of pools, and the store of runs."""

    host: PlacingHost
    files: tuple[Path, ...]
    pools: Path
    store: Path

    @property
    def prices(self) -> dict[str, float]:
        """What a container-second costs by kind, in milli-tokens."""
        return {kind: float(pool.cost_mtokens) for pool in read_pools(self.pools) for kind in pool.kinds}

    @property
    def containers(self) -> int:
        """The containers of all pools."""
        return sum(pool.capacity or 0 for pool in read_pools(self.pools))

    def best_s(self) -> dict[str, float]:
        """Return the shortest profiled time of each file's application, in s, by the file's path."""
        best = best_s(kept_runs(self.store))
        apps = {str(file): application_at(file) for file in self.files}
        return {file: best[profiled(app.name, app.features)] for file, app in apps.items()}


def profile(on: Placing, terms: Terms) -> None:
    """Profile each application, on each framework at once: each has a pool of its own.

    On few processors a run takes longer beside others, as it will when it is placed. What the store has is
    not run again.
    """
    kinds = sorted({kind for file in on.files for kind in application_at(file).sections})
    stopped = threading.Event()

    def lane(kind: str) -> None:
        for file in on.files:
            if stopped.is_set() or kind not in application_at(file).sections:
                continue
            try:
                _profile_one(on, file, kind, terms)
            except BaseException:
                stopped.set()
                raise

    with ThreadPoolExecutor(len(kinds)) as pool:
        for done in [pool.submit(lane, kind) for kind in kinds]:
            done.result()


def _profile_one(on: Placing, file: Path, kind: str, terms: Terms) -> None:
    """Profile one application on one framework, and look at what its new runs wrote."""
    before = {run.source for run in kept_runs(on.store)}
    words = ["profile", str(file), "--kind", kind, "--containers", terms.containers]
    words += ["--repeat", str(terms.repeat), "--store", str(on.store)]
    done = subprocess.run([str(BIN / "yarnctl"), *words], env=dict(on.host.environment), check=False)
    if done.returncode:
        raise Unfinished(
            f"{file}: profile failed (status {done.returncode}); run the same command to continue"
        )
    app = application_at(file)
    which = profiled(app.name, app.features), kind
    new = [run for run in kept_runs(on.store) if run.source not in before]
    mine = [run for run in new if (profiled(run.application, run.features), run.kind) == which]
    rows = _rows(on.host.rm)
    for run in mine:
        row = rows[run.source.rpartition(":")[2]]
        if not on.host.is_output_right(row["name"]):
            raise Unfinished(f"{row['id']} ({row['name']}): its output is wrong")


def _rows(rm: str) -> dict[str, dict[str, Any]]:
    """Return YARN's applications by id."""
    told = http_client.get(f"{rm}/ws/v1/cluster/apps", timeout=60).json()
    return {row["id"]: row for row in (told.get("apps") or {}).get("app") or []}


def play(on: Placing, scheme: str, coming: Sequence[PlacedArrival], folder: Path) -> PlacedRun:
    """Let all come under a scheme and end; return what became of each."""
    mechanism, told = SCHEMES[scheme]
    began, load_before = now(), tuple(load())
    with gate(on.host, folder, mechanism, ("--pools", str(on.pools)), pooled=True) as through:
        environment = {**on.host.environment, **through.environment}
        clients: list[subprocess.Popen[bytes]] = []
        began_s = time.monotonic()
        try:
            for number, each in enumerate(coming):
                time.sleep(max(0.0, began_s + each.at_s - time.monotonic()))  # the arrivals' own pace
                words = ["place", each.file, "--deadline", f"{each.deadline_s}s", "--store", str(on.store)]
                with (folder / f"client-{number:02d}.log").open("wb") as said:
                    clients.append(
                        subprocess.Popen(
                            [str(BIN / "yarnctl"), *words, *told, "--user", USER],
                            env=environment,
                            stdin=subprocess.DEVNULL,
                            stdout=said,
                            stderr=said,
                        )
                    )
            for client in clients:
                client.wait(PATIENCE_S)
        finally:
            for client in clients:
                if client.poll() is None:
                    client.kill()
                    client.wait()
        items = _all_over(through)
        if len(items) != len(coming):
            raise Unfinished(f"{len(coming)} came, and the gate knows {len(items)}: see {folder}")
        return PlacedRun(tuple(_outcomes(on.host, items)), began, load_before, tuple(load()))


def _all_over(through: Gate) -> list[dict[str, Any]]:
    """Wait until nothing is open at the gate; return its admissions, oldest first."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        items = through.asked("?limit=500")["items"]
        if not any(each["state"] in ("waiting", "admitted", "running") for each in items):
            return sorted(items, key=lambda each: int(each["id"].rpartition("-")[2]))
        time.sleep(LOOK_S)
    raise Unfinished("some applications did not end")


def _outcomes(host: PlacingHost, items: Sequence[Mapping[str, Any]]) -> Iterator[PlacedOutcome]:
    there = _rows(host.rm)
    for each in items:
        plan, row = each["placement"], there.get(each["application"] or "")
        succeeded = row is not None and row["finalStatus"] == "SUCCEEDED"
        yield PlacedOutcome(
            application=each["request"]["name"],
            yarn="" if row is None else row["name"],
            state=each["state"],
            kind=plan["kind"],
            containers=plan["containers"],
            predicted_ms=plan["predicted_ms"],
            cost_mtokens=plan["cost_mtokens"],
            start_at_ms=plan["start_at_ms"],
            deadline_at_ms=each["plan"]["deadline_at_ms"],
            ended_at_ms=None if row is None else row["finishedTime"],
            right=row is not None and succeeded and host.is_output_right(row["name"]),
            reason=plan["reason"]["code"],
        )


def play_rounds(on: Placing, coming: Sequence[Sequence[PlacedArrival]], folder: Path) -> list[PlayedRun]:
    """Play all rounds, the schemes in another order each; a run that has a file is read from it."""
    played = []
    for number, arriving in enumerate(coming):
        names = list(SCHEMES)
        first = number % len(names)
        for scheme in names[first:] + names[:first]:
            click.echo(f"round {number + 1} of {len(coming)}: {scheme}", err=True)
            place = folder / f"{number + 1}-{scheme}-{time.time_ns()}"
            file = folder / f"{number + 1}-{scheme}.json"
            found = kept(file, PlacedRun, partial(play, on, scheme, arriving, place))
            told = msgspec.structs.asdict(found)
            played.append(PlayedRun(**told, round=number, scheme=scheme))
    return played


@contextmanager
def _live(folder: Path, slice_only: bool, keep: Path | None) -> Iterator[Placing]:
    with live_pools(keep or folder) as host:
        pools = folder / "pools.toml"
        pools.write_text(POOLS_TOML)
        names = list(TIMES)[: SLICE_NAMES if slice_only else None]
        files = []
        for name in names:
            for size in (1,) if slice_only else (1, 2):
                files.append(folder / f"{name}-{size}.toml")
                files[-1].write_text(host.application(name, size))
        yield Placing(host, tuple(files), pools, folder / "runs.jsonl")


@contextmanager
def _hadoop(folder: Path, slice_only: bool, keep: Path | None) -> Iterator[Placing]:
    from yarn_research.campaigns.placed_applications import NAMES, SIZES, applications
    from yarn_research.campaigns.placement_hadoop import hadoop_pools, pools_toml

    names, sizes = (NAMES[:SLICE_NAMES], SIZES[:1]) if slice_only else (NAMES, SIZES)
    with (
        tempfile.TemporaryDirectory(prefix="yarnctl-placement-") as own,
        hadoop_pools((keep or Path(own)).absolute()) as host,
    ):
        pools = folder / "pools.toml"
        pools.write_text(pools_toml())
        placed = applications(names, sizes)
        host.write_input(placed)
        files = tuple(host.write_application(each, folder) for each in placed)
        yield Placing(host, files, pools, folder / "runs.jsonl")


def campaign(
    on: Placing, terms: Terms, folder: Path, first: Mapping[str, Any], left: Left | None, until: int
) -> dict[str, Any]:
    """Profile, let all come in each scheme and round before ``until``, and return what is written down."""
    sitting = Sitting(now(), machine(), min(until, terms.rounds))
    profile(on, terms)
    runs = kept_runs(on.store)
    gap_s = gap_of(terms, runs, on.containers)
    coming = kept(
        folder / "arrivals.json",
        list[list[PlacedArrival]],
        lambda: [arrivals(on.best_s(), terms, gap_s, number) for number in range(terms.rounds)],
    )
    if left is not None and left.sittings and by_name(coming) != left.coming:
        raise Unfinished("others come than in the sitting before: see its profile")
    click.echo(f"a mean of {gap_s:.1f} s between two of {terms.arrivals} arrivals", err=True)
    played = play_rounds(on, coming[:until], folder)
    found = Campaign(first["commit"], on.prices, runs, tuple(played))
    return {
        **first,
        "terms": terms._asdict(),
        "gap_s": round(gap_s, 3),
        "sittings": (*(() if left is None else left.sittings), sitting),
        "coming": by_name(coming),
        **msgspec.structs.asdict(found),
        "figures": found.figures(),
        "claims": found.claims() if until >= terms.rounds else [],
    }


@click.command()
@click.option("--on", type=click.Choice(["live", "hadoop"]), default="live", show_default=True)
@click.option(
    "--slice", "slice_only", is_flag=True, help="Two applications, two numbers of containers, one round."
)
@click.option("--arrivals", type=int, help="How many come.  [18, of a slice 6]")
@click.option("--rounds", type=int, help="How often each scheme.  [3, of a slice 1]")
@click.option("--gap-s", type=float, help="The mean time between two.  [live 6, hadoop as --load says]")
@click.option("--load", "load_ratio", type=float, help="The part of all containers that they need.  [1]")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep the cluster's files there."
)
@click.option(
    "--go-on", type=click.Path(path_type=Path, dir_okay=False), help="Continue the campaign of this file."
)
@click.option("--until", type=click.IntRange(0), help="Stop after this many rounds (0: after the profile).")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(
    on: str,
    slice_only: bool,
    arrivals: int | None,
    rounds: int | None,
    gap_s: float | None,
    load_ratio: float | None,
    keep: Path | None,
    go_on: Path | None,
    until: int | None,
    output: Path,
) -> None:
    """Profile, then let applications come under each scheme."""
    usual = SLICE if slice_only else Terms()
    terms = usual._replace(
        arrivals=usual.arrivals if arrivals is None else arrivals,
        rounds=usual.rounds if rounds is None else rounds,
        load=usual.load if load_ratio is None else load_ratio,
        gap_s=gap_s or (LIVE_GAP_S if on == "live" else usual.gap_s),
    )
    folder = output.with_suffix(".d").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    versions = {} if on == "live" else {"hadoop": "3.4.2", "spark": SPARK["pyspark"], "flink": FLINK[1]}
    asked: Any = terms  # whatever has fields
    left = None if go_on is None else left_by(go_on)
    if left is not None:
        restore(left, folder)
    kind = f"placement-{on}" + ("-slice" if slice_only else "")
    first = begun(folder, head(kind, **versions), asked)
    with (_live if on == "live" else _hadoop)(folder, slice_only, keep) as placing:
        until = terms.rounds if until is None else until
        found = campaign(placing, terms, folder, first, left, until)
    found["load_after"] = load()
    output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if until < terms.rounds:
        click.echo(f"to continue, add --go-on {output}", err=True)
        return
    judged = read_campaign(output)
    print_table(COLUMNS, table(judged))
    print_table(
        ("claim", "ours", "holds"), [(each.claim, each.ours, str(each.holds)) for each in judged.claims()]
    )


if __name__ == "__main__":
    command()
