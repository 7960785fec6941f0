"""``yarn-emulator workload``: what a trace or a generator holds.

Law: it shows what ``compare`` would run, before any scaling.
"""

from __future__ import annotations

import click

from yarnctl.command_line import output_option, print_json, print_table


@click.command("workload")
@click.argument("spec", metavar="SPEC")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="For synthetic:NAME.")
@output_option
def command(spec: str, seed: int, output: str) -> None:
    """Show what SPEC holds: jobs, tasks, container hours, and what was cut or renamed on reading."""
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
