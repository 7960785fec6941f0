"""The program ``yarnctl``: its commands, each in its own module, imported when it runs.

Law: this file imports the command line only; see ``yarnctl.command_line`` for exit statuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

try:
    from yarnctl.command_line import program, run
except KeyboardInterrupt:  # before anything that would report it is loaded
    raise SystemExit(130) from None

COMMANDS = {
    "accounts": ("yarnctl.cli.market:accounts", "Show and fill the accounts that pay for deadlines."),
    "admit": ("yarnctl.cli.admit:command", "Submit a job with a deadline once the gate lets it in."),
    "admissions": ("yarnctl.cli.admissions:command", "Show who waits at a running daemon's gate."),
    "apps": ("yarnctl.cli.apps:command", "Show applications as a running daemon sees them."),
    "budgets": ("yarnctl.cli.budgets:command", "Show what work may be lost, was lost, and what it bought."),
    "check": ("yarnctl.cli.check:command", "Say whether a cluster is fit, and how to mend what is not."),
    "checkpoints": ("yarnctl.cli.checkpoints:command", "List, show, verify and collect checkpoints in HDFS."),
    "decisions": ("yarnctl.cli.decisions:command", "Show a running daemon's decisions, and why."),
    "explain": ("yarnctl.cli.explain:command", "Say why a decision was taken, and what it cost."),
    "place": ("yarnctl.cli.place:command", "Submit an application on the framework that meets a deadline."),
    "profile": ("yarnctl.cli.profile:command", "Run an application to learn how long it takes."),
    "quote": ("yarnctl.cli.market:quote", "Say what each deadline of a job would cost."),
    "reclaims": ("yarnctl.cli.reclaims:command", "Show what a running daemon is taking back."),
    "replay": ("yarnctl.cli.replay:command", "Decide a whole journal again and compare."),
    "run": ("yarnctl.cli.run:command", "Attach to a cluster; observes unless told to --enforce."),
    "runs": ("yarnctl.cli.runs:command", "Show runs of applications that are known; import more."),
    "snapshot": ("yarnctl.cli.snapshot:command", "Show a running daemon's loop and cluster."),
    "spark-plugin": ("yarnctl.cli.spark_plugin:command", "Compile the plugin by which executors leave."),
    "wrap": (
        "yarnctl.cli.wrap:command",
        "Make a job one whose reduces, or executors, can leave.",
    ),
}
"""Every command of the program, with the line that ``--help`` shows."""

PROGRAM = program(
    "yarnctl",
    "Checkpoint preemption for an unmodified Hadoop 3 YARN: research gives way, nothing is lost.",
    COMMANDS,
    extras=("prediction",),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``yarnctl`` and leave with its exit status."""
    run(PROGRAM, arguments)
