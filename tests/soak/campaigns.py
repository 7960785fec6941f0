"""``python -m tests.soak campaigns --runs N --seed S [--jobs K]``: faults at random moments, none lost.

Law: campaign number i has the seed S + i and is a function of it; every seed, its faults and its verdict are
in the JSON, and one seed alone can be run again. Exit status 1 if anything was lost or doubled, if a campaign
did not end, or if a kind of fault never struck (in sets that are large enough to hold every kind). The result
says how many campaigns had the real task runner, a yarnctl process of its own, both, or neither.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from tests.soak.fault_campaign import Verdict, run_campaign
from tests.soak.fault_plan import BOTH, CAMPAIGN_KINDS, IN_TURN, KINDS, LIGHTEST, campaign_of

ABOUT = "Random faults on whole live clusters: nothing may be lost or doubled."
AT_ONCE = 12
"""Campaigns that one process runs at the same time: most of each is waiting."""
HEAVY_AT_ONCE = 4
"""... and of those with real tasks or a yarnctl process: up to seven seconds of processor time each, and on a
machine that gives them none in time the job is over before all of its reduces have begun."""
WORKERS = 2
ALL_KINDS_RUNS = 4 * len(IN_TURN)


class Summary(msgspec.Struct, kw_only=True):
    """What became of a set of campaigns."""

    seed: int
    runs: int
    lost: list[int]
    """Seeds of campaigns with a breach."""
    struck: dict[str, int]
    """Kind of fault -> how often it struck (requests, containers, crashes)."""
    never_struck: list[str]
    played: dict[str, int]
    """Kind of campaign -> how many were played to a verdict."""
    both: int
    """Of them with the real task runner and a yarnctl process of its own."""
    recovered: int
    orders: dict[str, int]
    checkpoints: int
    restarts: int
    verdicts: list[Verdict]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, and every kind was seen to strike."""
        return not self.lost and not self.never_struck


def summary_of(seed: int, runs: int, verdicts: Iterable[Verdict]) -> Summary:
    all_of = sorted(verdicts, key=lambda one: one.seed)
    struck: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    for one in all_of:
        struck.update(one.struck)
        orders.update(one.orders)
    missing = [kind for kind in KINDS if not struck[kind]] if runs >= ALL_KINDS_RUNS else []
    done = {one.seed for one in all_of}
    return Summary(
        seed=seed,
        runs=runs,
        lost=[one.seed for one in all_of if one.breaches]
        + [each for each in range(seed, seed + runs) if each not in done],
        struck={kind: struck[kind] for kind in KINDS},
        never_struck=missing,
        played={kind: sum(one.kind == kind for one in all_of) for kind in CAMPAIGN_KINDS},
        both=sum(one.kind == BOTH for one in all_of),
        recovered=sum(one.recovery == "decided" for one in all_of),
        orders=dict(sorted(orders.items())),
        checkpoints=sum(one.checkpoints for one in all_of),
        restarts=sum(max(0, one.starts - 1) for one in all_of),
        verdicts=all_of,
    )


def run_here(seeds: list[int], folder: Path, at_once: int = AT_ONCE) -> Iterator[Verdict]:
    """Run campaigns in this process, several at a time; the folder of one that was clean is deleted."""
    # Those of real processes take longest: first, and few of them at a time.
    order = sorted(seeds, key=lambda seed: (-campaign_of(seed).reduce_ms, seed))
    with (
        ThreadPoolExecutor(at_once, "campaign") as light,
        ThreadPoolExecutor(min(at_once, HEAVY_AT_ONCE), "heavy campaign") as heavy,
    ):
        pools = ((light if campaign_of(seed).kind == LIGHTEST else heavy, seed) for seed in order)
        waiting = {pool.submit(_one, seed, folder): seed for pool, seed in pools}
        for one in as_completed(waiting):
            yield one.result()


def _one(seed: int, folder: Path) -> Verdict:
    place = folder / f"campaign-{seed}"
    verdict = run_campaign(campaign_of(seed), place)
    if not verdict.breaches:
        shutil.rmtree(place, ignore_errors=True)
    return verdict


def _work(seeds: list[int], folder: str, at_once: int, results: Connection) -> None:
    for verdict in run_here(seeds, Path(folder), at_once):
        results.send_bytes(msgspec.json.encode(verdict))
    results.close()


def run_all(seeds: list[int], folder: Path, jobs: int, at_once: int) -> Iterator[Verdict]:
    """Run campaigns in ``jobs`` processes of their own, as they end; a process that dies loses its own."""
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, BaseProcess] = {}
    for share in filter(None, (seeds[place::jobs] for place in range(jobs))):
        told, tell = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(share, str(folder), at_once, tell))
        worker.start()
        tell.close()  # so that the end of the process is the end of the pipe
        workers[told] = worker
    while workers:
        for ready in wait(list(workers)):
            assert isinstance(ready, Connection)
            try:
                yield msgspec.json.decode(ready.recv_bytes(), type=Verdict)
            except EOFError:
                workers.pop(ready).join()


def line_of(verdict: Verdict, number: int, runs: int) -> str:
    faults = ", ".join(verdict.faults)
    end = "ok" if not verdict.breaches else f"LOST {verdict.breaches}"
    return f"[{number}/{runs}] seed {verdict.seed} ({verdict.kind}; {faults}) {verdict.seconds:.0f} s: {end}"


def main(arguments: list[str]) -> int:
    """Run as a program; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak campaigns", description=ABOUT)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=WORKERS, help="processes")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="campaigns at a time in each")
    parser.add_argument("--output", type=Path, default=Path("soak-campaigns.json"))
    given = parser.parse_args(arguments)
    seeds = list(range(given.seed, given.seed + given.runs))
    folder = Path(tempfile.mkdtemp(prefix="campaigns-"))
    verdicts: list[Verdict] = []
    for verdict in run_all(seeds, folder, max(1, given.jobs), max(1, given.at_once)):
        verdicts.append(verdict)
        print(line_of(verdict, len(verdicts), given.runs), flush=True)
    summary = summary_of(given.seed, given.runs, verdicts)
    given.output.write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    _tell(summary, given.output, folder)
    return 0 if summary.is_clean else 1


def _tell(summary: Summary, output: Path, folder: Path) -> None:
    print(f"{summary.runs} campaigns from seed {summary.seed}: {len(summary.lost)} lost; {output}")
    print(f"played (tasks, yarnctl): {summary.played}")
    print(f"struck: {summary.struck}; orders: {summary.orders}; {summary.restarts} restarts")
    print(f"{summary.checkpoints} checkpoints; {summary.recovered} decided anew after the last fault")
    if summary.never_struck:
        print(f"never struck: {', '.join(summary.never_struck)}", file=sys.stderr)
    if summary.lost:
        print(f"what they left lies in {folder}", file=sys.stderr)
        print(f"lost: seeds {summary.lost}", file=sys.stderr)
    elif not os.listdir(folder):
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
