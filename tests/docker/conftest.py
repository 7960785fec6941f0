"""What all compose files share: the jobs, and the engine: the one that runs, or one that is started here.

Where there is none and none can be started the tests are skipped with the reason, unless
YARNCTL_REQUIRE_DOCKER is set: then they fail.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.composed import FILE, must_run
from tests.docker.engine import Engine, NoEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    try:
        with Engine() as running:
            running.compose_program()
            running.require_base()
            yield running
    except NoEngine as missing:
        if must_run():
            pytest.fail(f"{missing}")
        pytest.skip(f"{missing}")


@pytest.fixture(scope="session")
def jobs() -> Iterator[Path]:
    """Return the sample jobs and those of these tests in a folder that everybody may read."""
    with tempfile.TemporaryDirectory(prefix="yarnctl-jobs-") as name:
        for source in (FILE.parent / "jobs", Path(__file__).parent / "jobs"):
            shutil.copytree(source, name, dirs_exist_ok=True)
        Path(name).chmod(0o755)
        yield Path(name)
