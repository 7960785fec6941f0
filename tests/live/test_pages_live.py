"""Pages of docs on the live emulator: their console blocks run in order and print what the page shows.

``python -m tests.live.test_pages_live PAGE [SECTION]`` prints what each command prints today, to refresh it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docker.composed import free_port
from tests.hadoop.page import Script

DOCS = Path(__file__).parents[2] / "docs"
SESSIONS = (
    ("admission.md", "Try it on a laptop"),
    ("attach.md", "Name your queues"),
    ("levers.md", ""),
    ("quickstart.md", ""),
    ("spark.md", ""),
    ("streaming.md", ""),
)
"""Page and section; "" is the whole page. The rest of admission.md and attach.md has its own tests."""
FILE = re.compile(r"```(?:python|toml)\n(# ([\w.-]+)\n.*?)```", re.DOTALL)
"""A file that the page has its reader write: its name is in the first line."""


def section(page: str, heading: str) -> str:
    """Return the text of a section (``## HEADING``) of a page of docs, or of the whole page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if not heading:
        return text
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading}"
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


@contextmanager
def script(text: str, folder: Path, records: bool = False) -> Iterator[Script]:
    """Yield what runs a page in an empty folder, with ports of its own in place of the page's."""
    here, logs = folder / "here", folder / "logs"
    here.mkdir()
    logs.mkdir()
    for body, name in FILE.findall(text):
        (here / name).write_text(body, encoding="utf-8")
    manager, daemon = (f"127.0.0.1:{free_port()}" for _ in range(2))
    names = {
        "yarn-emulator serve ": f"yarn-emulator serve --port {manager.partition(':')[2]} ",
        "yarnctl run ": f"yarnctl run --listen {daemon} ",
        "docs/scenarios/": f"{DOCS}/scenarios/",
        "127.0.0.1:8088": manager,
        "127.0.0.1:8188": daemon,
    }
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("YARNCTL_", "HADOOP_"))},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "YARNCTL_URL": f"http://{daemon}",
        "HOME": str(folder),
        "PWD": str(here),
        "COLUMNS": "200",
    }
    given = Script(here, logs, environment, names, records)
    try:
        yield given
    finally:
        given.end()


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "heading"), SESSIONS)
def test_page_prints_what_it_shows(page: str, heading: str, tmp_path: Path) -> None:
    text = section(page, heading)
    with script(text, tmp_path) as given:
        for command, seen, good in given.run(text):
            assert good, f"$ {command.words}\nprints\n{seen}\nand the page shows\n{command.shown}"


def _print(page: str, heading: str = "") -> None:
    text = section(page, heading)
    with tempfile.TemporaryDirectory() as folder, script(text, Path(folder), records=True) as given:
        for command, seen, good in given.run(text):
            sys.stdout.write(f"$ {command.words}\n{seen}{'' if good else '*** not what was awaited'}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _print(*sys.argv[1:])
