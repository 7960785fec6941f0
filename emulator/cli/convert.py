"""``yarn-emulator convert``: a workload to Parquet, once, to be read in one gulp afterwards.

Law: the file is whole or absent, and ``parquet:FILE`` gives the very jobs the SPEC gave.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from emulator.workload.job import JobClass
from yarnctl.command_line import ProgressBar


@click.command("convert")
@click.argument("spec", metavar="SPEC")
@click.option(
    "--class",
    "job_class",
    type=click.Choice(("production", "research")),
    default="research",
    show_default=True,
    help="The class the jobs get (where they are used, their side decides).",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE.parquet", help="The file to write."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="For synthetic:NAME.")
def command(spec: str, job_class: str, out: Path, seed: int) -> None:
    """Convert the workload that SPEC names to a Parquet file, which parquet:FILE then names."""  # fmt: skip
    from emulator.workload.parquet import require_replaceable, write_parquet
    from emulator.workload.spec import load
    from yarnctl.errors import BadInput

    if out.is_dir() or not out.absolute().parent.is_dir():
        raise BadInput(f"--out {out}", "is a folder, or lies in none", "give a file in a folder that exists")
    require_replaceable(out)
    with ProgressBar("reading rows") as progress:
        loaded = load(spec, cast(JobClass, job_class), seed=seed, counted=progress.counted)
        progress.expect(len(loaded.jobs))
        progress.step("rows read, writing jobs", by=len(loaded.jobs) - progress.done)
        write_parquet(loaded.jobs, out)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{out}: {len(loaded.jobs)} jobs")
