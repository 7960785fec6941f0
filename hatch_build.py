"""Builds the task runner before a wheel, an editable install or a source archive is made.

The built file is not in the repository. ``[tool.hatch.build]`` in pyproject.toml puts it into the archives.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = (sys.executable, "-m", "yarnctl.task_runner.build")


class TaskRunnerHook(BuildHookInterface):
    """Runs the builder, which needs the standard library only, from the sources that are packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the task runner; raises RuntimeError with the builder's message if that fails."""
        environment = {**os.environ, "PYTHONPATH": self.root}
        done = subprocess.run(  # noqa: S603 - our own builder
            BUILD, cwd=self.root, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(BUILD[1:])} failed: {done.stderr.strip()}")
