"""The benchmarked hour: a full cluster, research that keeps it full, production that comes in bursts.

``nodes`` x 8 containers, tasks of 120 s on average, two queues. Research wants 1.1 x the cluster
over the hour; production wants 0.55 % of it, in two bursts half an hour apart, each one job of as
many maps as reduces (a twelfth of the cluster's containers in all) that finds the cluster full.

Nodes speak at even milliseconds, each (of 500) at one of its own, applications at odd ones, and
maps end at even ones: no two events are left whose order would be a matter of taste, so another
model can be held to the same allocations.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from emulator.cluster.timing import Timing
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from emulator.workload.synthetic import steady_jobs
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import Chain
from yarnctl.traces.job import Job
from yarnctl.units import Resources

HOUR_MS = 3_600_000
SLOTS = 8
SEED = 1
BURST_GAP_MS = 1_800_000
PRODUCTION_LOAD = 0.0055
TIMING = Timing(am_start_ms=4501)


class EncodedJournal:
    """A journal in memory that holds what a file would: encoded lines."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.chain = Chain()

    def append(self, records: Sequence[Record]) -> None:
        self.lines += map(self.chain.seal, records)


def jobs_of(nodes: int) -> tuple[Job, ...]:
    """Return the hour's jobs, in order of arrival."""
    burst = int(PRODUCTION_LOAD * nodes * SLOTS * BURST_GAP_MS / 120_000)
    production = steady_jobs(
        "production",
        nodes=nodes,
        slots_per_node=SLOTS,
        seed=SEED,
        load=PRODUCTION_LOAD,
        tasks_per_job=burst,
    )
    research = steady_jobs("research", nodes=nodes, slots_per_node=SLOTS, seed=SEED)
    jobs = [
        msgspec.structs.replace(
            job,
            submitted_at_ms=job.submitted_at_ms | 1,
            map_ms=tuple(length_ms | 1 for length_ms in job.map_ms),
        )
        for job in (*research, *production)
    ]
    return tuple(sorted(jobs, key=lambda job: (job.submitted_at_ms, job.job_class, job.name)))


def phases_ms(nodes: int) -> list[int]:
    """Return every node's phase: even, and up to 500 nodes no two alike (487 is prime to 500)."""
    return [2 * (index * 487 % 500) for index in range(nodes)]


def set_up(nodes: int, scheme: str, jobs: tuple[Job, ...], journal: EncodedJournal | None = None) -> Run:
    """Return the hour, ready to run."""
    size = Resources(1024 * SLOTS, SLOTS)
    setup = Setup(nodes=nodes, node_size=size, timing=TIMING, settings=DEFAULT, seed=SEED)
    run = Run(setup, jobs, SCHEMES[scheme], journal)
    rm = run.cluster.rm
    for node, phase_ms in zip(rm.nodes, phases_ms(nodes), strict=True):
        node.phase_ms = phase_ms
    rm.open_nodes = sorted((node.phase_ms, node.index) for node in rm.nodes)
    return run


def utilisation(run: Run) -> float:
    """Return container time held / offered so far."""
    cluster, now_ms = run.cluster, run.cluster.kernel.now_ms
    held = sum(sum(queue.usage_mib_ms.values()) for queue in cluster.rm.scheduler.queues.values())
    held += sum(
        each.memory_mib * (now_ms - each.granted_at_ms) for each in cluster.rm.scheduler.live.values()
    )
    return held / (cluster.rm.total.memory_mib * now_ms)


def require_nothing_lost(run: Run, until_ms: int = 4 * HOUR_MS) -> None:
    """Run to the end and see that nothing was lost and every key of every reduce was committed once."""
    cluster = run.cluster
    cluster.kernel.run(until_ms)
    cluster.require_done()
    for master in cluster.masters:
        assert master.lost_ms == 0, (master.job.name, master.lost_ms)
        for task, keys in enumerate(master.job.reduce_keys):
            done = 0
            for piece in master.keys.pieces(task):
                assert piece.from_key == done
                done = piece.to_key
            assert done == keys, (master.job.name, task)
