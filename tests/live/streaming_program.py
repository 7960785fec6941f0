"""``mapred streaming`` of a live emulator: Hadoop's words become those of ``yarn-emulator submit``.

``python -m tests.live.streaming_program URL streaming -D ... -input ...``. The job runs as typed: no task
runner is added.
"""

from __future__ import annotations

import sys

from emulator.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.task_runner.hadoop_words import read_options

OPTIONS = {
    "-D": "-D", "-files": "--file", "-cmdenv": "--cmdenv", "-input": "--input", "-output": "--output",
    "-mapper": "--mapper", "-reducer": "--reducer",
}  # fmt: skip
"""Hadoop's option -> the emulator's; a job of a test uses no other."""


def main() -> int:
    """Submit the job that is typed, and wait for its end; return the exit status."""
    url, _streaming, *words = sys.argv[1:]
    values = [(each.name, value) for each in read_options(words) for value in each.values]
    given = [
        word
        for name, value in values
        for part in (value.split(",") if name == "-files" else [value])
        for word in (OPTIONS[name], part)
    ]
    return exit_status_of(PROGRAM, ["submit", "--rm", url, "--no-runner", *given])


if __name__ == "__main__":
    sys.exit(main())
