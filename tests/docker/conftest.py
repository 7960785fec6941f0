"""What all profiles share: the jobs, and the engine: the one that runs, or one that is started here.

Where there is none and none can be started the tests are skipped with the reason, unless
YARNCTL_REQUIRE_DOCKER is set: then they fail.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.composed import JOBS, Context, must_run
from tests.docker.engine import Engine, NoEngine


@pytest.fixture(scope="session")
def context(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Context | None]:
    """Return the build context of Hadoop if these tests need it; it is made in the background."""
    asked = {Path(str(item.path)).stem for item in request.session.items}
    made = Context(tmp_path_factory.mktemp("hadoop") / "context") if "test_hadoop_compose" in asked else None
    yield made
    if made is not None:
        made.remove()


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
        for source in (JOBS, Path(__file__).parent / "jobs"):
            shutil.copytree(source, name, dirs_exist_ok=True)
        Path(name).chmod(0o755)
        yield Path(name)
