"""The lock in a real ZooKeeper, and a daemon that fails over by it."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.docker.composed import free_port
from tests.hadoop.needing import need_hadoop
from tests.hadoop.zookeeper import ZooKeeper
from tests.live.lowered_live import ROOT, Daemon, Queue
from tests.live.test_all_in_one import wait_until
from tests.unit.service.certificates import Authority
from tests.unit.test_lock_options import written
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.kazoo_session import KazooSession
from yarnctl.hadoop.lock import LockKind
from yarnctl.hadoop.zookeeper_lock import ZooKeeperLock, ZooKeeperTls, lock_address

pytest.importorskip("kazoo", reason="the extra ha is not installed")
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

SESSION_S = 20
"""Long, because a busy machine answers late."""
PLAIN = ZooKeeperTls()
LOGIN = "yarnctl:a-password-of-tests"
TOML = re.compile(r"```toml\n(.*?)```", re.DOTALL)


class AnyKind(LockKind):
    """The file in HDFS is another test's."""

    def __init__(self) -> None:
        pass

    def require(self, kind: str, is_there: bool = False) -> None:
        pass


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    need_hadoop("3.4.2")
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def candidate(
    zookeeper: ZooKeeper, folder: str, name: str, login: str = "", tls: ZooKeeperTls = PLAIN
) -> ZooKeeperLock:
    address = lock_address(f"zookeeper://{zookeeper.address}/{folder}", SESSION_S)
    assert address is not None
    address = address._replace(login=login, tls=tls)
    return ZooKeeperLock(KazooSession(address), address, AnyKind(), name, host=f"h-{name}")


def acquired(lock: ZooKeeperLock) -> bool:
    """Try, again while the session begins."""
    try:
        return lock.acquire()
    except Unreachable:
        return False


@pytest.mark.xdist_group("zookeeper")
def test_one_holds_and_the_next_is_woken_with_a_greater_term(zookeeper: ZooKeeper) -> None:
    ann, bob = candidate(zookeeper, "a", "ann"), candidate(zookeeper, "a", "bob")
    try:
        wait_until(lambda: acquired(ann), "ann holds it")
        wait_until(lambda: acquired(bob) or bob.has_rival, "bob waits")
        assert (bob.held, bob.leader) == (False, "ann on h-ann")
        current = bob.current()
        assert current is not None
        assert current.holder == "ann"
        assert ann.renew()
        woken = threading.Event()
        bob.on_free = woken.set
        ann.release()
        assert woken.wait(60)
        assert bob.acquire()
        assert bob.term > ann.term
    finally:
        bob.release()


@pytest.mark.xdist_group("zookeeper")
def test_a_session_survives_a_restart_of_the_server_and_nothing_is_held_meanwhile(
    zookeeper: ZooKeeper,
) -> None:
    ann = candidate(zookeeper, "b", "ann")
    try:
        wait_until(lambda: acquired(ann), "ann holds it")
        zookeeper.stop()
        with pytest.raises(Unreachable, match=rf"ZooKeeper {zookeeper.address}: no answer"):
            ann.acquire()
        assert not ann.held
        zookeeper.start()
        wait_until(lambda: acquired(ann), "ann holds it again")
    finally:
        ann.release()


@pytest.mark.xdist_group("zookeeper")
def test_only_the_login_of_the_holder_can_remove_it_or_be_the_next(
    zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ann, bob = candidate(zookeeper, "c/d", "ann", LOGIN), candidate(zookeeper, "c/d", "bob", LOGIN)
    stranger = KazooClient(zookeeper.address, auth_data=[("digest", "yarnctl:another-password")])
    try:
        wait_until(lambda: acquired(ann), "ann holds it")
        wait_until(lambda: acquired(bob) or bob.has_rival, "bob waits")
        stranger.start(60)
        for refused in (
            lambda: stranger.get_children("/c/d"),
            lambda: stranger.create("/c/d/eve-0000000000", b""),
            lambda: stranger.delete("/c/d/ann-0000000000"),
            lambda: stranger.set("/c/d/ann-0000000000", b""),
            lambda: stranger.set_acls("/c/d", OPEN_ACL_UNSAFE),
            lambda: stranger.delete("/c/d"),
        ):
            with pytest.raises(NoAuthError):
                refused()
        for login in ("", "yarnctl:another-password"):
            eve = candidate(zookeeper, "c/d", "eve", login)
            with pytest.raises(BadInput, match="may not use the lock's folder; give all daemons the same"):
                wait_until(partial(acquired, eve), "eve is refused")
            eve.release()
        assert ann.renew()
        ann.release()
        wait_until(lambda: acquired(bob), "bob holds it")
    finally:
        for each in (ann, bob):
            each.release()
        stranger.stop()
    assert "Connecting to" in caplog.text
    assert "a-password-of-tests" not in caplog.text


@pytest.mark.xdist_group("zookeeper")
def test_a_folder_of_everybody_gives_no_lock_to_a_login(zookeeper: ZooKeeper) -> None:
    before, ann = candidate(zookeeper, "e", "before"), candidate(zookeeper, "e", "ann", LOGIN)
    try:
        wait_until(lambda: acquired(before), "it holds without a login")
        before.release()
        with pytest.raises(BadInput, match="/e is open to world:anyone, not to the login"):
            wait_until(lambda: acquired(ann), "ann is refused")
    finally:
        ann.release()


SECURED = """secureClientPort={port}
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider
ssl.keyStore.location={pair}
ssl.trustStore.location={authorities}
"""


@pytest.mark.xdist_group("zookeeper")
def test_tls_with_certificates_of_both_sides(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server requires a client's certificate, as it does unless it is set otherwise."""
    need_hadoop("3.4.2")
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    server, one, two = (authority.sign(name) for name in ("server", "one", "two"))
    pair, port = tmp_path / "pair.pem", free_port()
    pair.write_text(server.certificate.read_text() + server.key.read_text())
    more = SECURED.format(port=port, pair=pair, authorities=authority.file)
    with ZooKeeper(tmp_path / "zookeeper", more=more) as zookeeper:
        zookeeper.address = f"127.0.0.1:{port}"
        ann, bob, eve = (
            candidate(zookeeper, "t", name, LOGIN, ZooKeeperTls(trusted.file, own.certificate, own.key))
            for name, trusted, own in (
                ("ann", authority, one),
                ("bob", authority, two),
                ("eve", stranger, one),
            )
        )
        try:
            wait_until(lambda: acquired(ann), "ann holds it")
            wait_until(lambda: acquired(bob) or bob.has_rival, "bob waits")
            wait_until(lambda: "CERTIFICATE_VERIFY_FAILED" in caplog.text, "eve does not trust the server")
            with pytest.raises(Unreachable):
                eve.acquire()
            ann.release()
            wait_until(lambda: acquired(bob), "bob holds it, with another certificate and the same login")
        finally:
            for each in (ann, bob, eve):
                each.release()


@pytest.mark.xdist_group("zookeeper")
def test_the_standby_restores_what_a_killed_leader_lowered(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    (block,) = TOML.findall((ROOT / "docs/operations.md").read_text())
    block += TOML.findall((ROOT / "docs/access.md").read_text())[0]
    block = block.replace("/etc/yarnctl/lock-login", str(written(tmp_path / "lock-login", LOGIN)))
    settings = tmp_path / "yarnctl.toml"
    settings.write_text(re.sub("zk1.*2181", zookeeper.address, block).replace("-s = 10", f"-s = {SESSION_S}"))
    locking = ("--config", str(settings))
    with closing(Queue(tmp_path / "cluster")) as rig:
        rig.renew()
        first = Daemon(rig.url, tmp_path / "one", *rig.options, *locking)
        wait_until(lambda: "running (enforce)" in first.said, "the first one leads")
        second = Daemon(rig.url, tmp_path / "two", *rig.options, *locking)
        wait_until(lambda: "another yarnctl holds the lock" in second.said, "the second one waits")
        wrong = Daemon(rig.url, tmp_path / "three", *rig.options)
        assert wrong.ended() == 2
        assert "/yarnctl/lock/kind: is 'zookeeper /yarnctl " in wrong.said
        assert "this lock is 'hdfs'" in wrong.said
        rig.demand()
        wait_until(lambda: "change done" in rig.trap.passed, "the queue is lowered")
        first.send(signal.SIGKILL)
        first.ended()
        rig.end_demand()
        wait_until(lambda: "running (enforce)" in second.said, "the second one leads")
        wait_until(lambda: rig.value() == rig.before and not rig.records, "it is restored")
        assert second.end() == 0
        words = ["restore", "--rm", rig.url, "--all", "-o", "json", *locking]
        done = subprocess.run(
            [sys.executable, "-c", "from yarnctl.cli import main; main()", *words],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
        assert (done.returncode, json.loads(done.stdout)) == (0, {"settings": []}), done
        assert not (rig.whole.work / "hdfs/yarnctl/lock/kind").exists(), (
            "another kind of lock may be used now"
        )
