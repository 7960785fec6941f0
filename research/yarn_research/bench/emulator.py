"""The emulator against the clock, and beside SimPy.

Measured is the hour only (processor time, no garbage collection, as ``Run.go`` does it), not the
making of the jobs nor of the cluster. A run that is kept is then played to its end, unmeasured, to see that
nothing was lost. Run as a program it measures one hour and prints JSON: every hour has a process
of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import partial
from typing import Any

from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from yarn_research.bench.hour import (
    HOUR_MS,
    SLOTS,
    TIMING,
    EncodedJournal,
    jobs_of,
    phases_ms,
    require_nothing_lost,
    set_up,
    utilisation,
)
from yarn_research.bench.row import Row, cpu_ms, spread
from yarn_research.bench.simpy_cluster import Model

CAPS = {"production": 0.8, "research": 0.2}
SUSPENSIONS = 200


def measure_hour(nodes: int) -> dict[str, Any]:
    """Return the time of one simulated hour under natjam, and what happened in it."""
    journal = EncodedJournal()
    run = set_up(nodes, "natjam", jobs_of(nodes), journal)
    cluster = run.cluster
    took_ms = cpu_ms(partial(cluster.kernel.run, HOUR_MS))
    seen = {
        "ms": took_ms,
        "containers": cluster.rm.containers_granted,
        "events": cluster.kernel.events,
        "suspensions": sum(master.suspensions for master in cluster.masters),
        "utilisation_ratio": round(utilisation(run), 4),
        "journal_records": len(journal.lines),
        "journal_bytes": sum(map(len, journal.lines)),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    assert seen["suspensions"] >= SUSPENSIONS, seen
    require_nothing_lost(run)
    return seen


def hour_row(name: str, nodes: int, times_real: int, runs: int) -> Row:
    """Measure the hour in ``runs`` processes of their own: a second run would find torn-up memory."""
    command = [sys.executable, "-m", "yarn_research.bench.emulator", str(nodes)]
    seen: dict[str, Any] = {}
    times: list[float] = []
    for _ in range(runs):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        seen = json.loads(done.stdout)
        times.append(seen["ms"])
    seen["ms"] = spread(times)
    ours_ms = seen["ms"]["median"]
    seen["us_per_container"] = round(1000 * ours_ms / seen["containers"], 2)
    ratio = HOUR_MS / ours_ms
    return Row(
        name=name,
        what=f"{nodes} nodes x {SLOTS}, 1 h simulated, natjam, journal on, against real time",
        ours=ours_ms,
        baseline=HOUR_MS,
        ratio=ratio,
        target=f">= {times_real}",
        holds=ratio >= times_real,
        unit="ms",
        details=seen,
    )


def emulator_250(runs: int = 7) -> Row:
    """250 nodes."""
    return hour_row("emulator-250", 250, 7000, runs)


def emulator_5000(nodes: int = 5000, runs: int = 3) -> Row:
    """5000 nodes."""
    return hour_row("emulator-5000", nodes, 450, runs)


def emulator_simpy(nodes: int = 250, runs: int = 3) -> Row:
    """The same hour under soft-cap: ours and SimPy's turn by turn, allocations compared."""
    jobs = jobs_of(nodes)
    ours: list[float] = []
    preempting: list[float] = []
    theirs: list[float] = []
    for _ in range(runs):
        model = Model(jobs, phases_ms(nodes), SLOTS, TIMING, CAPS)
        theirs.append(cpu_ms(partial(model.env.run, HOUR_MS)))
        for scheme, times in (("soft-cap", ours), ("natjam", preempting)):
            run = set_up(nodes, scheme, jobs, EncodedJournal() if scheme == "natjam" else None)
            times.append(cpu_ms(partial(run.cluster.kernel.run, HOUR_MS - 1)))
    assert SCHEMES["soft-cap"].caps, "the shares of the SimPy model are soft-cap's"
    equal = allocations(set_up(nodes, "soft-cap", jobs)) == model.allocations
    assert equal, "the two models do not allocate alike"
    ratio = spread(theirs)["median"] / spread(ours)["median"]
    return Row(
        name="emulator-simpy",
        what=f"{nodes} nodes x {SLOTS}, 1 h simulated, soft-cap, beside SimPy, same allocations",
        ours=spread(ours)["median"],
        baseline=spread(theirs)["median"],
        ratio=ratio,
        target=">= 5",
        holds=ratio >= 5 and equal,
        unit="ms",
        details={
            "equal_allocations": len(model.allocations),
            "ours_ms": spread(ours),
            "simpy_ms": spread(theirs),
            "ours_with_preemption_ms": spread(preempting),
        },
    )


def allocations(run: Run) -> list[tuple[int, int, int]]:
    """Run the hour as SimPy does (its last instant is left out); return (time, node, application)."""
    scheduler = run.cluster.rm.scheduler
    offer = scheduler.offer
    given: list[tuple[int, int, int]] = []

    def noted(node, now_ms, number):
        granted = offer(node, now_ms, number)
        given.extend((now_ms, node.index, container.app.number) for container in granted)
        return granted

    scheduler.offer = noted  # type: ignore[method-assign]
    run.cluster.kernel.run(HOUR_MS - 1)
    return given


if __name__ == "__main__":
    print(json.dumps(measure_hour(int(sys.argv[1]))))
