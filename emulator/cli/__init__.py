"""The program ``yarn-emulator``: its commands, whose modules are imported when they run.

Law: this file imports the command line only; see ``yarnctl.command_line`` for exit statuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

try:
    from yarnctl.command_line import program, run
except KeyboardInterrupt:  # nothing has begun
    raise SystemExit(130) from None

COMMANDS = {
    "am": ("emulator.cli.am:command", "Run one ApplicationMaster, as a NodeManager starts it."),
    "compare": ("emulator.cli.compare:command", "Run one workload under several schemes."),
    "convert": ("emulator.cli.workload:convert", "Convert a trace to Parquet, once."),
    "demo": ("emulator.cli.demo:command", "Show it all on a recorded Facebook workload."),
    "flink": ("emulator.cli.black_box:flink", "Submit a modelled application by flink's words."),
    "nm": ("emulator.cli.nm:command", "Run one or many NodeManagers by the wall clock."),
    "rm": ("emulator.cli.serve:resource_manager", "Run a live ResourceManager, its REST and a WebHDFS."),
    "run": ("emulator.cli.compare:run_file", "Run one scenario file, with journal and report."),
    "serve": ("emulator.cli.serve:command", "Run a whole live cluster in one process."),
    "spark-submit": (
        "emulator.cli.black_box:spark_submit",
        "Submit a modelled application by spark-submit's words.",
    ),
    "submit": ("emulator.cli.submit:command", "Submit a streaming job and wait for it."),
    "workload": ("emulator.cli.workload:command", "Print the contents of a trace or a generator."),
}
"""Every command of the program, with the line that ``--help`` shows."""

PROGRAM = program(
    "yarn-emulator",
    "A YARN cluster in virtual time: schedulers, jobs and failures, and the decisions of yarnctl.",
    COMMANDS,
    extras=("emulator", "export", "report", "prediction"),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``yarn-emulator`` and leave with its exit status."""
    run(PROGRAM, arguments)
