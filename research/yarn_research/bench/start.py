"""How long a program takes to say what it can do, beside a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from yarn_research.bench.row import Row, spread

RUNS = 21


def wall_ms(command: list[str]) -> float:
    """Return the wall time of a whole process in ms."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def help_row(runs: int = RUNS) -> Row:
    """``yarnctl --help`` and ``python -c pass``, turn by turn."""
    program = Path(sys.executable).with_name("yarnctl")
    ours_command = [str(program), "--help"]
    if not program.exists():  # not installed: do what the script would do
        ours_command = [sys.executable, "-c", "from yarnctl.cli import main; main()", "--help"]
    bare_command = [sys.executable, "-c", "pass"]
    ours: list[float] = []
    bare: list[float] = []
    wall_ms(ours_command)
    wall_ms(bare_command)
    for _ in range(runs):
        bare.append(wall_ms(bare_command))
        ours.append(wall_ms(ours_command))
    ratio = spread(ours)["median"] / spread(bare)["median"]
    return Row(
        name="help",
        what="yarnctl --help, whole process, beside python -c pass",
        ours=spread(ours)["median"],
        baseline=spread(bare)["median"],
        ratio=ratio,
        target="<= 5",
        holds=ratio <= 5,
        unit="ms",
        details={"ours_ms": spread(ours), "bare_ms": spread(bare)},
    )
