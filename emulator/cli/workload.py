"""``yarn-emulator workload``: the contents of a trace or a generator, as ``compare`` runs them unscaled.

``yarn-emulator convert``: a workload as a Parquet file, quicker to read. The file is whole or absent, and
``parquet:FILE`` gives the same jobs as SPEC.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from yarnctl.command_line import ProgressBar, output_option, print_json, print_table
from yarnctl.traces.job import JobClass


@click.command("workload")
@click.argument("spec", metavar="SPEC")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="For synthetic:NAME.")
@output_option
def command(spec: str, seed: int, output: str) -> None:
    """Print the contents of SPEC: jobs, tasks, container hours, and what was cut or renamed on reading."""
    from emulator.workload.spec import load

    loaded = load(spec, "production", seed=seed)
    jobs = loaded.jobs
    held: dict[str, object] = {
        "source": loaded.source,
        "jobs": len(jobs),
        "map_only_jobs": sum(not job.reduce_ms for job in jobs),
        "maps": sum(len(job.map_ms) for job in jobs),
        "reduces": sum(len(job.reduce_ms) for job in jobs),
        "map_hours": round(sum(sum(job.map_ms) for job in jobs) / 3_600_000, 3),
        "reduce_hours": round(sum(sum(job.reduce_ms) for job in jobs) / 3_600_000, 3),
        "arrivals_span_s": max((job.submitted_at_ms for job in jobs), default=0) / 1000,
        "deadlines": sum(job.deadline_at_ms is not None for job in jobs),
        "notes": list(loaded.notes),
    }
    if output == "json":
        print_json(held)
        return
    print_table(("what", "value"), [(name, value) for name, value in held.items() if name != "notes"])
    for note in loaded.notes:
        click.echo(f"note: {note}")


@click.command("convert")
@click.argument("spec", metavar="SPEC")
@click.option(
    "--class",
    "job_class",
    type=click.Choice(("production", "research")),
    default="research",
    show_default=True,
    help="Class of the jobs. compare replaces it by that of the option that names the file.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE.parquet", help="File to write."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="For synthetic:NAME.")
def convert(spec: str, job_class: str, out: Path, seed: int) -> None:
    """Convert the workload SPEC to a Parquet file; parquet:FILE then reads it."""  # fmt: skip
    from emulator.workload.spec import load
    from yarnctl.errors import BadInput
    from yarnctl.extras import require_extra
    from yarnctl.traces.parquet import require_replaceable, write_parquet

    require_extra("export")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise BadInput(
            f"--out {out}", "is a folder, or its folder does not exist", "give a file in a folder that exists"
        )
    require_replaceable(out)
    with ProgressBar("reading rows") as progress:
        loaded = load(spec, cast(JobClass, job_class), seed=seed, counted=progress.counted)
        progress.expect(len(loaded.jobs))
        progress.step("rows read, writing jobs", by=len(loaded.jobs) - progress.done)
        write_parquet(loaded.jobs, out)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{out}: {len(loaded.jobs)} jobs")
