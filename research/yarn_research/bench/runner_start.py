"""``python -m yarn_research.bench.runner_start [--before COMMIT] [--starts 100] [--json]``: what a start costs.

Law: measured is the processor time of a whole attempt whose input is empty, its children included: the shell
that looks for a Python, the runner, ``cat``. Both sides are started turn by turn, and the ratio is the median
of that of each pair, so that what else the machine does hits both. The Python is the one that runs this;
nothing compiled is kept, as on a node, where the file's folder cannot be written to.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from yarn_research.bench.row import spread
from yarn_research.bench.runner_overhead import environment
from yarnctl.task_runner.shipped import RUNNER

BEFORE = "17561b5"
"""The last commit at which the runner was one source file."""

ROOT = Path(__file__).parents[3]


def shipped_at(commit: str, folder: Path) -> Path:
    """Return the file that was shipped at a commit, written below ``folder``."""
    name = f"{commit}:{RUNNER.relative_to(ROOT)}"
    found = subprocess.run(["git", "-C", str(ROOT), "show", name], capture_output=True, check=False)
    if found.returncode:
        raise LookupError(f"--before: git show {name}: {found.stderr.decode().strip()}; fetch the history")
    file = folder / f"before-{commit}.py"
    file.write_bytes(found.stdout)
    return file


def start_ms(program: Path, folder: Path, number: int) -> float:
    """Start an attempt without input; return the processor time of its processes."""
    python = Path(sys.executable).resolve()
    env = environment(folder, number) | {"PATH": f"{python.parent}:/usr/bin:/bin"}
    process = subprocess.Popen(
        ["sh", str(program), "--restartable", "--", "cat"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    with process.stderr as stream:
        log = stream.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or b"without the task runner" in log or b"phase=end" not in log:
        raise RuntimeError(f"{program}: status {process.returncode}: {log[-500:].decode(errors='replace')}")
    return (used.ru_utime + used.ru_stime) * 1000


def measure(starts: int, before: str = BEFORE) -> dict[str, Any]:
    """Start both ``starts`` times, turn by turn; return medians and the median ratio of the pairs."""
    found: dict[str, list[float]] = {"before": [], "now": []}
    with tempfile.TemporaryDirectory(prefix="runner-start-") as name:
        folder = Path(name)
        sides = [("before", shipped_at(before, folder)), ("now", RUNNER)]
        for pair in range(starts + 1):
            for side, program in sides if pair % 2 else reversed(sides):
                used_ms = start_ms(program, folder, 2 * pair + (side == "now"))
                if pair:  # the first pair warms caches
                    found[side].append(used_ms)
    ratios = [now / then for now, then in zip(found["now"], found["before"], strict=True)]
    return {
        "before": before,
        "starts": starts,
        "ratio": round(median(ratios), 4),
        "before_ms": spread(found["before"]),
        "now_ms": spread(found["now"]),
        "load": list(os.getloadavg()),
        "python": sys.version.split()[0],
    }


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.bench.runner_start", description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="a commit: the file that was shipped then")
    parser.add_argument("--starts", type=int, default=100, help="of each side")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.starts < 1:
        parser.error("--starts: use 1 or more")
    try:
        found = measure(options.starts, options.before)
    except LookupError as why:
        parser.error(str(why))
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(
            f"{found['now_ms']['median']:.1f} ms of processor time a start,"
            f" {found['before_ms']['median']:.1f} ms at {found['before']}:"
            f" {found['ratio']} (median of {found['starts']} pairs)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
