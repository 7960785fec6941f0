"""The program ``yarn-research``: its commands, whose modules are imported when they run.

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
    "admission": ("yarn_research.cli.admission:command", "Replay a trace of jobs with deadlines."),
    "estimate": ("yarn_research.cli.estimate:command", "Predict the run times of a table, and bound them."),
    "market": ("yarn_research.cli.market:command", "Replay users that buy deadlines (MRM)."),
    "paper": ("yarn_research.cli.paper:command", "Run a paper's figures; its numbers beside ours."),
    "placement": ("yarn_research.cli.placement:command", "Place applications of several frameworks (ORiON)."),
    "study": ("yarn_research.cli.study:command", "Judge schemes by every pair of recorded hours."),
}
"""Every command of the program, with the line that ``--help`` shows."""

PROGRAM = program(
    "yarn-research",
    "Figures of the papers behind yarnctl, replays of traces, and studies of schemes.",
    COMMANDS,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``yarn-research`` and leave with its exit status."""
    run(PROGRAM, arguments)
