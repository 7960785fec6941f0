"""``python -m tests.bench [--only NAME ...]``: measure, print a table, write bench-results.json.

Exits 0 when everything was measured, also where a target is missed; a benchmark whose two sides
disagree does not count as measured. With ``--only`` the other rows of an earlier file stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.bench.admission import admission_cli, admission_fair_share, admission_simpy, admission_sweep
from tests.bench.emulator import emulator_250, emulator_5000, emulator_simpy
from tests.bench.heartbeats import heartbeats_row
from tests.bench.http_tick import http_tick_row
from tests.bench.live_size import live_size
from tests.bench.row import Row
from tests.bench.runner_overhead import runner_overhead
from tests.bench.start import help_row
from tests.bench.tick import tick_row

BENCHES: dict[str, Callable[[], Row]] = {
    "emulator-250": emulator_250,
    "emulator-simpy": emulator_simpy,
    "emulator-5000": emulator_5000,
    "tick": tick_row,
    "http-tick": http_tick_row,
    "heartbeats": heartbeats_row,
    "live-size": live_size,
    "runner-overhead": runner_overhead,
    "help": help_row,
    "admission-simpy": admission_simpy,
    "admission-cli": admission_cli,
    "admission-sweep": admission_sweep,
    "admission-fair": admission_fair_share,
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--only", nargs="+", choices=list(BENCHES), default=list(BENCHES), metavar="NAME")
    chosen = parser.parse_args().only
    kept: dict[str, Row] = {}
    if RESULTS.exists() and len(chosen) < len(BENCHES):
        kept = {row.name: row for row in msgspec.json.decode(RESULTS.read_bytes(), type=list[Row])}
    print(LINE.format("name", "ours", "baseline", "ratio", "target", "holds", "what"), flush=True)
    for name, bench in BENCHES.items():
        if name in chosen:
            kept[name] = bench()
            print(show(kept[name]), flush=True)
            print("  " + msgspec.json.encode(kept[name].details).decode(), file=sys.stderr, flush=True)
    rows = [kept[name] for name in BENCHES if name in kept]
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")


if __name__ == "__main__":
    main()
