"""The documentation does what it says: the commands on its pages run, one after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
PROGRAMS = {"yarnctl": "yarnctl.cli", "yarn-emulator": "emulator.cli", "yarn-research": "yarn_research.cli"}
ON_A_CLUSTER = {
    "admission.md",
    "attach.md",
    "levers.md",
    "quickstart.md",
    "remove.md",
    "spark.md",
    "streaming.md",
}
"""Pages that need a cluster: tests/hadoop/test_attach_page.py and tests/live/test_pages_live.py run them."""


def console_commands(page: Path) -> list[str]:
    """Return the ``$ ...`` lines of a page's console blocks in order, each with its continuation lines."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    lines = (line for block in blocks for line in block.replace("\\\n", " ").splitlines())
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if console_commands(page) and page.name not in ON_A_CLUSTER],
    ids=lambda page: page.name,
)
def test_every_command_on_the_page_runs(page, tmp_path):
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for command in console_commands(page):
        program, *arguments = shlex.split(command)
        code = f"from {PROGRAMS[program]} import main; main({arguments!r})"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip(), f"{command} printed nothing"
