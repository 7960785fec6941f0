"""``python -m yarn_research.bench [--only NAME ...] [--small]``: measure, print a table, write bench-results.json.

Exits 0 when everything was measured, also where a target is missed; a benchmark whose two sides
disagree does not count as measured. With ``--only`` the other rows of an earlier file stay.

``--small`` runs the same code on small sizes, writes no file and gives no figure: it shows only that every
benchmark runs and that its two sides agree. CI does that, so that none can break unseen.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from yarn_research.bench import live_large, tick, tick_mix
from yarn_research.bench.admission import admission_simpy
from yarn_research.bench.emulator import emulator_250, emulator_5000, emulator_simpy
from yarn_research.bench.heartbeats import heartbeats_row
from yarn_research.bench.http_tick import http_tick_row
from yarn_research.bench.inverse_query import inverse_query
from yarn_research.bench.live_size import live_size
from yarn_research.bench.manifest import manifest_row, ten_orders_row
from yarn_research.bench.market import market_curve
from yarn_research.bench.requests_rate import requests_row
from yarn_research.bench.row import Row
from yarn_research.bench.runner_overhead import runner_overhead
from yarn_research.bench.scale import SMALL, scale_row
from yarn_research.bench.start import help_row
from yarn_research.bench.watchers import watchers_row


class Bench(NamedTuple):
    """One benchmark: as it is measured, and the same code on a small size."""

    full: Callable[[], Row]
    small: Callable[[], Row]


BENCHES: dict[str, Bench] = {
    "emulator-250": Bench(emulator_250, partial(emulator_250, runs=1)),
    "emulator-simpy": Bench(emulator_simpy, partial(emulator_simpy, runs=1)),
    "emulator-5000": Bench(emulator_5000, partial(emulator_5000, nodes=500, runs=1)),
    "tick": Bench(tick.tick_row, partial(tick.tick_row, tick.SMALL)),
    "tick-mix": Bench(tick_mix.tick_mix_row, partial(tick_mix.tick_mix_row, tick.SMALL)),
    "http-tick": Bench(http_tick_row, partial(http_tick_row, repeats=1)),
    "scale": Bench(scale_row, partial(scale_row, SMALL, repeats=1)),
    "heartbeats": Bench(heartbeats_row, partial(heartbeats_row, count=1_000, rounds=1)),
    "requests": Bench(
        requests_row, partial(requests_row, maps=19, nodes=2, slots=10, seconds=8.0, lead_s=8.0)
    ),
    "live-size": Bench(live_size, partial(live_size, count=200, seconds=2.0)),
    "live-large": Bench(live_large.live_large, partial(live_large.live_large, live_large.SMALL)),
    "runner-overhead": Bench(runner_overhead, partial(runner_overhead, mb=10, pairs=1)),
    "manifest": Bench(manifest_row, partial(manifest_row, rounds=1)),
    "ten-orders": Bench(ten_orders_row, partial(ten_orders_row, rounds=1)),
    "watchers": Bench(watchers_row, partial(watchers_row, count=3, ticks=2, number=1)),
    "help": Bench(help_row, partial(help_row, runs=1)),
    "admission-simpy": Bench(admission_simpy, partial(admission_simpy, prefix=2_000, runs=1)),
    "market-curve": Bench(market_curve, partial(market_curve, promises=30, runs=1)),
    "inverse-query": Bench(inverse_query, partial(inverse_query, trees=1, runs=1)),
}
RESULTS = Path("bench-results.json")
LINE = "{:<15} {:>12} {:>13} {:>11}  {:<10} {:<6} {}"


def show(row: Row) -> str:
    """Return one line of the table."""
    return LINE.format(
        row.name,
        f"{row.ours:,.2f} {row.unit}",
        f"{row.baseline:,.1f} {row.unit}",
        f"{row.ratio:,.1f}",
        row.target,
        "yes" if row.holds else "MISSED",
        row.what,
    )


def run_small(chosen: list[str], benches: dict[str, Bench] = BENCHES) -> bool:
    """Run each chosen benchmark once on its small size; print JSON; return whether all ran."""
    failed: dict[str, str] = {}
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            benches[name].small()
        except (Exception, SystemExit) as problem:  # a bench stops with SystemExit where its sides disagree
            traceback.print_exception(problem)
            failed[name] = f"{type(problem).__name__}: {problem}"
    print(json.dumps({"benches": len(chosen), "ran": len(chosen) - len(failed), "failed": failed}))
    return not failed


def measure(chosen: list[str]) -> None:
    """Measure each chosen benchmark, print its line as it comes, and keep the rows in the results' file."""
    kept: dict[str, Row] = {}
    if RESULTS.exists() and len(chosen) < len(BENCHES):
        kept = {row.name: row for row in msgspec.json.decode(RESULTS.read_bytes(), type=list[Row])}
    print(LINE.format("name", "ours", "baseline", "ratio", "target", "holds", "what"), flush=True)
    for name in (name for name in BENCHES if name in chosen):
        kept[name] = BENCHES[name].full()
        print(show(kept[name]), flush=True)
        print("  " + msgspec.json.encode(kept[name].details).decode(), file=sys.stderr, flush=True)
    rows = [kept[name] for name in BENCHES if name in kept]
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m yarn_research.bench")
    parser.add_argument("--only", nargs="+", choices=list(BENCHES), default=list(BENCHES), metavar="NAME")
    parser.add_argument(
        "--small", action="store_true", help="small sizes: shows that it runs, measures nothing"
    )
    given = parser.parse_args()
    if given.small:
        return 0 if run_small(given.only) else 1
    measure(given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
