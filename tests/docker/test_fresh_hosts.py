"""Each file of a release, installed on a fresh host without the internet, to a page that observes.

The commands are those of docs/install.md. The image is built here; the other files are those of the folder
that YARNCTL_DIST names (``make test-dist`` makes them), and without it these tests are skipped.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import http_client
from tests.docker.composed import free_port, until
from tests.docker.engine import IMAGE_MADE_S, Engine
from tests.docker.fresh_host import PAGE, Host, Network, commands_of
from tests.docker.rpm_root import ACCOUNT, RpmRoot, why_not
from tests.live.test_settings_live import serving
from tests.release.playing import ROOT, UNIT

COMMANDS_MAX = 3
IMAGE = "yarnctl:fresh-test"
NO_ZOOKEEPER = "zookeeper://127.0.0.1:1/yarnctl"
CLUSTER = "--rm http://rm.example:8088 --name-node http://rm.example:8088"
RESTORE = f"/opt/yarnctl/bin/yarnctl restore --all {CLUSTER} --lock {NO_ZOOKEEPER}"


@pytest.fixture(scope="module")
def network(engine: Engine) -> Iterator[Network]:
    engine.run("docker", "build", "--quiet", "--tag", IMAGE, str(ROOT), timeout_s=IMAGE_MADE_S)
    with Network(engine, IMAGE) as network:
        yield network


@pytest.mark.parametrize("heading", ["deb", "rpm", "One file", "Wheels without a network"])
def test_release_observes_after_the_commands_of_the_page(network: Network, heading: str) -> None:
    commands = commands_of(heading)
    assert len(commands) <= COMMANDS_MAX
    folder = os.environ.get("YARNCTL_DIST")
    if folder is None:
        pytest.skip("YARNCTL_DIST names no folder with a release; make test-dist makes one")
    names = set(re.findall(r"\S+\.(?:deb|rpm|pyz|tar)\b", " ".join(commands)))
    host = network.host([Path(folder, name).absolute() for name in names])
    began_s = time.monotonic()
    for command in commands:
        host.type(command)
    host.wait_observing()
    print(f"{heading}: {len(commands)} commands, {time.monotonic() - began_s:.1f} s")
    assert_it_tries_zookeeper(host)


def test_rpm_in_an_empty_root_observes_from_there(tmp_path: Path) -> None:
    if (missing := why_not()) or "YARNCTL_DIST" not in os.environ:
        pytest.skip(f"the rpm is not tried in a root of its own: {missing or 'YARNCTL_DIST is not set'}")
    (package,) = Path(os.environ["YARNCTL_DIST"]).absolute().glob("*.rpm")
    root, address = RpmRoot(tmp_path / "root"), f"127.0.0.1:{free_port()}"
    began_s = time.monotonic()
    root.rpm("--install", str(package))
    root.rpm("--verify", "yarnctl")  # content, mode, owner and group of each file
    state = (root.folder / "var/lib/yarnctl").stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (ACCOUNT, ACCOUNT, 0o700)
    assert (root.folder / "usr/lib/systemd/system" / UNIT.name).read_bytes() == UNIT.read_bytes()
    with serving(tmp_path) as url:
        words = ("run", "--rm", url, "--listen", address, "--state-dir", "/var/lib/yarnctl")
        with root.running("/opt/yarnctl/bin/yarnctl", *words):
            until(lambda: observes(f"http://{address}"), "a page that observes")
    print(f"rpm --root: 2 commands, {time.monotonic() - began_s:.1f} s")


def observes(url: str) -> bool:
    """Return whether a page and a daemon that sees the cluster and only observes are there."""
    try:
        page, loop = http_client.get(f"{url}/"), http_client.get(f"{url}/v1/snapshot").json()["loop"]
    except OSError:
        return False
    return "<title>" in page.text and loop["reachable"] and not loop["enforce"]


def test_image_observes_after_the_command_of_the_page(network: Network) -> None:
    load, run = commands_of("Image")
    assert load.startswith("docker load --input ")
    program, word, *words = run.split()
    assert (program, word) == ("docker", "run")
    port = words.index("--publish")
    del words[port : port + 2]  # an internal network publishes nothing
    words[words.index("yarnctl")] = IMAGE
    words[words.index("yarnctl:/state")] = "/state"
    began_s = time.monotonic()
    host = network.seen_from(network.start(*words))
    host.wait_observing()
    print(f"Image: 2 commands, {time.monotonic() - began_s:.1f} s after it was loaded")
    assert host.user() == "10001"
    assert_it_tries_zookeeper(host)


def assert_it_tries_zookeeper(host: Host) -> None:
    """The extra ``ha`` is in the file: a server is missing, not a package."""
    assert "ZooKeeper 127.0.0.1:1: no answer" in host.printed(RESTORE)


def test_page_says_how_few_commands_are_needed() -> None:
    assert "at most three commands" in PAGE.read_text()
