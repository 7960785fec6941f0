"""The program ``yarnctl``: its commands, each in its own module, imported when it runs.

It imports the command line only; see ``yarnctl.command_line`` for exit statuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

try:
    from yarnctl.command_line import program, run
except KeyboardInterrupt:  # raised before the code that reports it is loaded
    raise SystemExit(130) from None

COMMANDS = {
    "accounts": ("yarnctl.cli.market:accounts", "Show, open or credit accounts that pay for deadlines."),
    "admit": ("yarnctl.cli.admit:command", "Submit a job with a deadline when it is admitted."),
    "admissions": ("yarnctl.cli.admissions:command", "Show or withdraw admission requests."),
    "apps": ("yarnctl.cli.apps:command", "Show applications as a running daemon sees them."),
    "bill": ("yarnctl.cli.bill:command", "Show what YARN's own preemption threw away."),
    "budgets": ("yarnctl.cli.budgets:command", "Show loss budgets and the containers freed by them."),
    "check": ("yarnctl.cli.check:command", "Check the cluster's configuration and print fixes."),
    "checkpoints": ("yarnctl.cli.checkpoints:command", "List, show, verify and delete checkpoints in HDFS."),
    "config": ("yarnctl.cli.config:command", "Show, check and write the file of settings."),
    "debug-dump": (
        "yarnctl.cli.debug_dump:command",
        "Write one tar for a report of a fault, without secrets.",
    ),
    "decisions": ("yarnctl.cli.decisions:command", "Show a running daemon's decisions and reasons."),
    "explain": ("yarnctl.cli.explain:command", "Explain a decision and its cost."),
    "history": ("yarnctl.cli.history:command", "Import the jobs that a cluster ran as tables."),
    "journal": ("yarnctl.cli.journal:command", "Export a journal to Parquet; delete what is exported."),
    "monitoring": ("yarnctl.cli.monitoring:command", "Write alert rules and a Grafana board."),
    "pause": ("yarnctl.cli.pause:command", "Pause a running daemon, for a while."),
    "place": ("yarnctl.cli.place:command", "Submit an application on the framework that meets a deadline."),
    "profile": ("yarnctl.cli.profile:command", "Run an application to measure how long it takes."),
    "quote": ("yarnctl.cli.market:quote", "Show the price of each deadline of a job."),
    "reclaims": ("yarnctl.cli.reclaims:command", "Show the containers that a running daemon reclaims."),
    "replay": ("yarnctl.cli.replay:command", "Replay a journal and compare the decisions."),
    "report": ("yarnctl.cli.report:command", "Show what yarnctl gained and what it cost."),
    "restore": (
        "yarnctl.cli.restore:command",
        "Restore settings that yarnctl lowered; no daemon needed.",
    ),
    "resume": ("yarnctl.cli.resume:command", "Resume a paused daemon, or a queue that it has paused."),
    "run": ("yarnctl.cli.run:command", "Attach to a cluster; observe, or preempt with --enforce."),
    "runs": ("yarnctl.cli.runs:command", "Show known runs of applications; import more."),
    "snapshot": ("yarnctl.cli.snapshot:command", "Show a running daemon's loop and cluster."),
    "spark-plugin": ("yarnctl.cli.spark_plugin:command", "Compile the plugin that decommissions executors."),
    "status": ("yarnctl.cli.status:command", "Show a running daemon on one screen."),
    "what-if": ("yarnctl.cli.what_if:command", "Show what yarnctl would do for an application."),
    "wrap": ("yarnctl.cli.wrap:command", "Wrap a submit command so that its job can be preempted."),
}
"""Every command of the program, with its line in ``--help``."""

PROGRAM = program(
    "yarnctl",
    "Preempt research jobs on an unmodified Hadoop 3 YARN by checkpoints, without losing their work.",
    COMMANDS,
    extras=("prediction",),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``yarnctl`` and leave with its exit status."""
    run(PROGRAM, arguments)
