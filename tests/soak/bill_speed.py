"""The bill of a large cluster: 10,000 jobs, 300 of them hit, against a server on this machine.

    python -m tests.soak.bill_speed [--jobs 10000] [--hit 300]

Exit status 1 if it takes more than 60 s while the ResourceManager lists the jobs, if the histories get more
than two requests for each job and one for each task that was hit, or if a resumed bill asks again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from tests.unit.attach.test_bill import TASKS_HIT, World, many

LISTED_MOST_S = 60.0


@click.command()
@click.option("--jobs", default=10_000, show_default=True, help="Jobs in all.")
@click.option("--hit", default=300, show_default=True, help="Jobs that lost containers.")
def command(jobs: int, hit: int) -> None:
    """Bill a large cluster three times; print requests and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        found = many(World(), jobs=jobs, hit=hit, folder=Path(folder))
    listed_s, forgotten_s, resumed_s = found.seconds
    click.echo(
        f"{jobs} jobs, {hit} hit: listed {found.listed} requests in {listed_s:.1f} s;"
        f" forgotten {found.forgotten} requests in {forgotten_s:.1f} s;"
        f" resumed {found.resumed} requests in {resumed_s:.1f} s"
    )
    most = 2 * jobs + TASKS_HIT * hit
    sys.exit(listed_s > LISTED_MOST_S or max(found.listed, found.forgotten) > most or found.resumed > 0)


if __name__ == "__main__":
    command()
