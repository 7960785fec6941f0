"""The report's estimate against a twin without yarnctl: the same jobs and seed, in virtual time.

    python -m tests.soak.report_twins [--seeds 0-9] [--scheme mix]

The true gain is what production waits less, in container seconds, than in the run whose orders are withheld.
Exit status 1 if it lies in the interval of fewer than 8 of 10 runs, or if an interval's half width is more
than 30 % of the gain in more than half of them.
"""

from __future__ import annotations

import random
import sys
from typing import NamedTuple

import click
import msgspec

from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job, three_nodes
from yarnctl.api.report_answers import WaitedLess
from yarnctl.daemon.view.reporting import reported
from yarnctl.deciding.model import Withheld
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job

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


def jobs_of(seed: int) -> tuple[Job, ...]:
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
    for number in range(20):
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


def played(seed: int, scheme: str, observe: bool) -> tuple[float, WaitedLess]:
    """Return the container seconds that production waited, and the report's estimate."""
    journal = MemoryJournal()
    run = Run(setup_of(seed, observe), jobs_of(seed), SCHEMES[scheme], journal, SAMPLE_MS)
    if observe:
        run.port.perform = lambda action: Withheld(Observing())  # type: ignore[method-assign]
    result = run.go()
    assert not isinstance(result.waiting, msgspec.UnsetType)
    return sum(result.waiting["production"].values()) / 1000, reported(journal.records, None).waited_less


def twins(seed: int, scheme: str) -> Twins:
    """Play both twins."""
    with_s, estimate = played(seed, scheme, observe=False)
    without_s, would = played(seed, scheme, observe=True)
    return Twins(seed, without_s - with_s, estimate, would)


@click.command()
@click.option("--seeds", default="0-9", show_default=True, metavar="FROM-TO", help="Seeds to play.")
@click.option("--scheme", default="mix", show_default=True, type=click.Choice(["mix", "natjam", "kill"]))
def command(seeds: str, scheme: str) -> None:
    """Play twins and compare the true gain with the report's interval."""
    first, _, last = seeds.partition("-")
    rows = []
    for seed in range(int(first), int(last or first) + 1):
        one = twins(seed, scheme)
        rows.append(one)
        found = one.estimate
        least, middle, most = (each // 1000 for each in (found.least_ms, found.estimate_ms, found.most_ms))
        click.echo(
            f"seed {seed}: gain {one.gain_s:.0f} s, estimate {middle} ({least} to {most}) of"
            f" {one.estimate.estimated}, would {one.would.estimate_ms // 1000}:"
            f" {'inside' if one.is_inside else 'outside'}, half width {one.width_ratio:.0%}"
        )
    inside = sum(one.is_inside for one in rows)
    narrow = sum(one.width_ratio <= WIDTH_MOST for one in rows)
    click.echo(f"{inside} of {len(rows)} inside; {narrow} with a half width of at most 30 % of the gain")
    sys.exit(inside < INSIDE_LEAST * len(rows) or narrow * 2 < len(rows))


if __name__ == "__main__":
    command()
