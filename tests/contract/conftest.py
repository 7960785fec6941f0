"""The hosts of the contract: each is started once, by the first test that needs it, and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.asking import Cluster
from tests.contract.host import Host


def _virtual(folder: Path, version: str) -> Host:
    from tests.contract.virtual_host import VirtualHost

    return VirtualHost(folder, "3.5" if version == "3.5" else "3.4")


def _live(folder: Path, version: str) -> Host:
    from tests.contract.served_hosts import LiveHost

    return LiveHost(folder, "3.5" if version == "3.5" else "3.4")


def _separate(folder: Path, version: str) -> Host:
    from tests.contract.served_hosts import SeparateHost

    return SeparateHost(folder, "3.5" if version == "3.5" else "3.4")


HOSTS: dict[str, tuple[Callable[[Path, str], Host], str]] = {
    "virtual-3.4": (_virtual, "3.4"),
    "virtual-3.5": (_virtual, "3.5"),
    "live-3.5": (_live, "3.5"),
    "separate-3.4": (_separate, "3.4"),
}
"""Name -> what starts it. A real cluster is one more line."""


@pytest.fixture(scope="session", params=list(HOSTS))
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    start, version = HOSTS[request.param]
    running = start(tmp_path_factory.mktemp(request.param), version)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def cluster(host: Host) -> Cluster:
    return Cluster(host)
