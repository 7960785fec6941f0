"""The hosts of the contract: each is started once, by the first test that needs it, and shared.

Law: the emulated hosts are always held to it; ``--hadoop`` adds the real ones (marker ``hadoop``: with
``-m hadoop`` they are the only ones). What a real one needs and is missing is a skip with the reason, and a
failure where it is asked for: under CI, or with YARNCTL_REQUIRE_HADOOP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.asking import Cluster
from tests.contract.host import Host

Start = Callable[[Path, str], Host]


def _virtual(folder: Path, version: str) -> Host:
    from tests.contract.virtual_host import VirtualHost

    return VirtualHost(folder, "3.5" if version == "3.5" else "3.4")


def _live(folder: Path, version: str) -> Host:
    from tests.contract.served_hosts import LiveHost

    return LiveHost(folder, "3.5" if version == "3.5" else "3.4")


def _separate(folder: Path, version: str) -> Host:
    from tests.contract.served_hosts import SeparateHost

    return SeparateHost(folder, "3.5" if version == "3.5" else "3.4")


def _hadoop(folder: Path, version: str) -> Host:
    from tests.contract.hadoop_host import HadoopHost
    from tests.hadoop.needing import need_hadoop

    need_hadoop(version)
    return HadoopHost(folder, version)


EMULATED: dict[str, tuple[Start, str]] = {
    "virtual-3.4": (_virtual, "3.4"),
    "virtual-3.5": (_virtual, "3.5"),
    "live-3.5": (_live, "3.5"),
    "separate-3.4": (_separate, "3.4"),
}
REAL: dict[str, tuple[Start, str]] = {
    "hadoop-3.3": (_hadoop, "3.3.5"), "hadoop-3.4": (_hadoop, "3.4.2"), "hadoop-3.5": (_hadoop, "3.5.0"),
}  # fmt: skip
"""Name -> what starts it, and which version."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hadoop", action="store_true", help="hold real Hadoops to the contract, too (Java, Maven)"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hadoop: needs a real Hadoop (Java, Maven), some minutes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of the contract every host that was asked for, each host in one worker (loadgroup)."""
    if "host" not in metafunc.fixturenames:
        return
    real = REAL if metafunc.config.getoption("--hadoop", False) else {}
    hosts = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in EMULATED]
    hosts += [pytest.param(name, marks=[pytest.mark.hadoop, pytest.mark.xdist_group(name)]) for name in real]
    metafunc.parametrize("host", hosts, indirect=True, scope="session")


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    start, version = (EMULATED | REAL)[request.param]
    running = start(tmp_path_factory.mktemp(request.param), version)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def cluster(host: Host) -> Cluster:
    return Cluster(host)
