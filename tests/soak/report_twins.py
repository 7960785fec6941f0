"""The report's estimate against a twin without yarnctl: the same jobs and seed, in virtual time or live.

    python -m tests.soak.report_twins [--seeds 0-9] [--scheme mix] [--by-progress]
    python -m tests.soak.report_twins --live [--seeds 0-9] [--speed 2] [--at-once 5] [--output FILE]

The true gain is what production waits less, in container seconds, than in the run whose orders are withheld.
Virtual time shows the work that remains; by progress a map is shown as a Hadoop shows it.
Live, both twins run at once on clusters of their own, with 12 jobs of production instead of 20: ten minutes
at the default speed. One daemon enforces the mix, the other only observes. The daemon's own time from a
request to its order, a second or two, is real at each speed, and the estimate begins at the order. So the
speed must be low: the natural ends that it is compared with take 13 s of modelled time. Exit status 1 if the
gain lies in the interval of fewer than 8 of 10 runs, or if an interval's half width is more than 30 % of the
gain in more than half of them.
"""

from __future__ import annotations

import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from emulator.cluster.entities import Container
from emulator.virtual.port import VirtualPort
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job, three_nodes
from tests.soak.report_twins_live import played_live
from yarnctl.api.report_answers import WaitedLess
from yarnctl.daemon.view.reporting import reported
from yarnctl.deciding.model import TaskView, Withheld
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.frameworks.mapreduce.observing import left_ms
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job

PRODUCTION_JOBS, PRODUCTION_JOBS_LIVE = 20, 12
SAMPLE_MS = 10_000
INSIDE_LEAST = 0.8
WIDTH_MOST = 0.3


class Twins(NamedTuple):
    """One seed: the true gain in s, the estimate of the enforcing run, and that of the observing one."""

    seed: int
    gain_s: float
    estimate: WaitedLess
    would: WaitedLess

    @property
    def is_inside(self) -> bool:
        """Whether the true gain lies in the interval."""
        return self.estimate.least_ms <= self.gain_s * 1000 <= self.estimate.most_ms

    @property
    def width_ratio(self) -> float:
        """Half the interval's width, as a part of the true gain."""
        return (self.estimate.most_ms - self.estimate.least_ms) / 2000 / max(self.gain_s, 0.001)


def jobs_of(seed: int, production_jobs: int = PRODUCTION_JOBS) -> tuple[Job, ...]:
    """Return research that fills the cluster for long, and production jobs of one wave of tasks."""
    chance = random.Random(seed)
    research = [
        job(
            f"r{number}", "research", number * 1000, 60, 0,
            map_ms=tuple(chance.randint(60_000, 240_000) for _ in range(60)),
        )
        for number in range(8)
    ]  # fmt: skip
    production, at_ms = [], 60_000
    for number in range(production_jobs):
        tasks = chance.randint(3, 8)
        production.append(
            job(f"p{number}", "production", at_ms, tasks, 0, map_ms=(chance.randint(20_000, 40_000),) * tasks)
        )
        at_ms += chance.randint(60_000, 120_000)
    return (*research, *production)


def setup_of(seed: int, observe: bool) -> Setup:
    """Return ten nodes of four containers."""
    setup = three_nodes(may_lose_ratio=0.5, am_ratio=0.5)
    settings = msgspec.structs.replace(setup.settings, observe_only=observe)
    return msgspec.structs.replace(setup, nodes=10, seed=seed, settings=settings)


def show_by_progress(port: VirtualPort) -> None:
    """Show maps since their launch; what remains is extrapolated from progress, of which a start has none."""
    exact = port._map

    def shown_map(container: Container, now_ms: int) -> TaskView:
        since_ms = min(container.launched_at_ms, now_ms)
        done_ratio = max(0, now_ms - container.work_at_ms) / container.length_ms
        remaining_ms = left_ms(now_ms - since_ms, min(1.0, done_ratio))
        return exact(container, now_ms)._replace(since_ms=since_ms, remaining_ms=remaining_ms)

    port._map = shown_map  # type: ignore[method-assign]


def played(seed: int, scheme: str, observe: bool, by_progress: bool = False) -> tuple[float, WaitedLess]:
    """Return the container seconds that production waited, and the report's estimate."""
    journal = MemoryJournal()
    run = Run(setup_of(seed, observe), jobs_of(seed), SCHEMES[scheme], journal, SAMPLE_MS)
    if by_progress:
        show_by_progress(run.port)
    if observe:
        run.port.perform = lambda action: Withheld(Observing())  # type: ignore[method-assign]
    result = run.go()
    assert not isinstance(result.waiting, msgspec.UnsetType)
    return sum(result.waiting["production"].values()) / 1000, reported(journal.records, None).waited_less


def twins(seed: int, scheme: str, by_progress: bool = False) -> Twins:
    """Play both twins."""
    with_s, estimate = played(seed, scheme, False, by_progress)
    without_s, would = played(seed, scheme, True, by_progress)
    return Twins(seed, without_s - with_s, estimate, would)


def live_twins(seed: int, speed: float, folder: Path) -> Twins:
    """Play both twins on the live emulator, at once. Journals and logs stay in the folder."""

    def played_one(observe: bool) -> tuple[float, WaitedLess]:
        own = folder / f"{seed}-{'without' if observe else 'with'}"
        own.mkdir(parents=True)
        return played_live(jobs, speed, own, observe=observe)

    jobs = jobs_of(seed, PRODUCTION_JOBS_LIVE)
    with ThreadPoolExecutor(2) as threads:
        (with_s, estimate), (without_s, would) = threads.map(played_one, (False, True))
    return Twins(seed, without_s - with_s, estimate, would)


def shown(one: Twins) -> str:
    """Return a line about one seed."""
    found = one.estimate
    least, middle, most = (each // 1000 for each in (found.least_ms, found.estimate_ms, found.most_ms))
    return (
        f"seed {one.seed}: gain {one.gain_s:.0f} s, estimate {middle} ({least} to {most}) of"
        f" {one.estimate.estimated}, would {one.would.estimate_ms // 1000}:"
        f" {'inside' if one.is_inside else 'outside'}, half width {one.width_ratio:.0%}"
    )


@click.command()
@click.option("--seeds", default="0-9", show_default=True, metavar="FROM-TO", help="Seeds to play.")
@click.option("--scheme", default="mix", show_default=True, type=click.Choice(["mix", "natjam", "kill"]))
@click.option("--by-progress", is_flag=True, help="Maps show their progress, in virtual time.")
@click.option("--live", is_flag=True, help="On the live emulator, with the mix.")
@click.option("--speed", default=2.0, show_default=True, help="Of modelled time, live.")
@click.option("--at-once", default=5, show_default=True, help="Pairs of twins, live.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write each pair, as JSON.")
def command(
    seeds: str, scheme: str, by_progress: bool, live: bool, speed: float, at_once: int, output: Path | None
) -> None:
    """Play twins and compare the true gain with the report's interval."""
    first, _, last = seeds.partition("-")
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once if live else 1) as threads:
        numbers = range(int(first), int(last or first) + 1)
        for one in threads.map(
            lambda seed: live_twins(seed, speed, Path(folder)) if live else twins(seed, scheme, by_progress),
            numbers,
        ):
            rows.append(one)
            click.echo(shown(one))
            sys.stdout.flush()
    if output is not None:
        found = [{**each._asdict(), "inside": each.is_inside, "width": each.width_ratio} for each in rows]
        output.write_bytes(msgspec.json.encode(found))
    inside = sum(one.is_inside for one in rows)
    narrow = sum(one.width_ratio <= WIDTH_MOST for one in rows)
    click.echo(f"{inside} of {len(rows)} inside; {narrow} with a half width of at most 30 % of the gain")
    sys.exit(inside < INSIDE_LEAST * len(rows) or narrow * 2 < len(rows))


if __name__ == "__main__":
    command()
