"""HDFS that cannot be written: told as what it is, nobody is asked meanwhile, and it goes on by itself."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import EPOCH, application, attempt, container
from tests.unit.daemon.test_loop import Lock, busy, daemon, kinds
from tests.unit.hadoop.little_hdfs import remote
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.eligibility.permission import STORE_RETRY_MS
from yarnctl.deciding.model import Accepted, ObservationRequest, Suspend, Withheld
from yarnctl.deciding.reasons.modes import HdfsUnwritable, LockHeldElsewhere
from yarnctl.deciding.records import Stance
from yarnctl.errors import Unreachable, YarnctlError
from yarnctl.hadoop.http.answers import Rejected, SafeMode, Standby
from yarnctl.journal.rendering import joined, said, text

SUSPEND = Suspend("o-1", application(1), attempt(1, 1), container(1, 2), 1, EPOCH)
COMMAND = "hdfs dfsadmin -safemode get"
WORDS = "Cannot create file/yarnctl/x. Name node is in safe mode."


def safe_mode_begins(hdfs, exception: str = "SafeModeException") -> list[Heard]:
    """Refuse what changes something; return the list of what was refused."""
    refused: list[Heard] = []

    def no(_path: str, heard: Heard) -> Reply:
        refused.append(heard)
        return remote(exception, message=WORDS)

    for op in ("create", "mkdirs", "rename", "delete"):
        setattr(hdfs, f"_{op}", no)
    return refused


def it_ends(hdfs) -> None:
    for op in ("create", "mkdirs", "rename", "delete"):
        delattr(hdfs, f"_{op}")


@pytest.mark.parametrize("exception", ["SafeModeException", "RetriableException"])
def test_a_request_that_cannot_be_written_stops_asking_until_it_ends(cluster, exception: str) -> None:
    port = cluster.port()
    assert port.observe(ObservationRequest()).cluster == "seen"
    refused = safe_mode_begins(cluster.hdfs, exception)
    first = port.perform(SUSPEND)
    assert isinstance(first, Withheld)
    assert COMMAND in text(first.why)
    assert "owner" not in text(first.why)
    assert COMMAND in said(port.permission.why_nothing())
    sent = len(refused)
    assert isinstance(port.perform(SUSPEND), Withheld)
    assert len(refused) == sent, "asked in vain"
    it_ends(cluster.hdfs)
    cluster.now_ms += STORE_RETRY_MS
    assert port.permission.why_nothing() is None
    assert port.perform(SUSPEND) == Accepted()


def test_a_request_that_somebody_must_allow_is_no_matter_of_time(cluster) -> None:
    port = cluster.port()
    assert port.observe(ObservationRequest()).cluster == "seen"
    cluster.hdfs._mkdirs = lambda path, heard: remote("AccessControlException", message="Permission denied")
    outcome = port.perform(SUSPEND)
    assert isinstance(outcome, Withheld)
    assert "Permission denied" in text(outcome.why)
    assert port.permission.why_nothing() is None


class FailingLock(Lock):
    """A lock that is held, and whose renewal fails while ``problem`` is set."""

    problem: YarnctlError | None = None

    def renew(self) -> bool:
        if self.problem is not None:
            raise self.problem
        return True


@pytest.mark.parametrize(
    ("problem", "renewals"),
    [(SafeMode(f"http://nn: HDFS is in safe mode; {COMMAND}"), 1), (Standby("http://nn: a standby"), 1),
     (Unreachable("http://nn: connection refused"), 2), (Rejected("http://nn: Permission denied"), 2)],
    ids=["safe mode", "standby", "once slow is not away", "refused"],
)  # fmt: skip
def test_nobody_is_asked_while_the_lock_cannot_be_renewed(problem: YarnctlError, renewals: int) -> None:
    cluster, lock = busy(), FailingLock()
    loop, journal = daemon(cluster, lock=lock)
    lock.problem = problem
    for _ in range(renewals - 1):
        loop.lock_renewal.renew(loop.lock_renewal._next_ms)
        assert loop.guard.closed() == ("running", None)
    loop.run(20)
    assert kinds(cluster) == []
    assert (loop.status().state, str(problem) in joined(loop.status().why)) == ("blocked", True)
    stances = [record for record in journal.records if isinstance(record, Stance)]
    assert [(one.stance, str(problem) in text(one.why)) for one in stances] == [("blocked", True)]
    lock.problem = None
    loop.run(80)
    assert kinds(cluster).count("Suspend") == 3


def test_a_lock_that_cannot_be_taken_is_not_called_anothers() -> None:
    lock = Lock(held=False)
    loop, _ = daemon(busy(), lock=lock)
    loop.lock_renewal.renew(loop.lock_renewal._next_ms)
    assert loop.guard.closed() == ("waiting", LockHeldElsewhere())

    def away() -> bool:
        raise Unreachable("http://nn: connection refused")

    lock.acquire = away  # type: ignore[method-assign]
    loop.lock_renewal.renew(loop.lock_renewal._next_ms)
    state, why = loop.guard.closed()
    assert state == "waiting"
    assert why == HdfsUnwritable("http://nn: connection refused")
