"""The engine, once for all compose files: the one that runs, or one that is started here.

Where there is none and none can be started the tests are skipped with the reason, unless
YARNCTL_REQUIRE_DOCKER is set: then they fail.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docker.composed import must_run
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
