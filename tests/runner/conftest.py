"""A NameNode for one test."""

from __future__ import annotations

import pytest

from tests.runner.namenode import Server


@pytest.fixture
def server():
    running = Server()
    yield running
    running.shutdown()
    running.server_close()
