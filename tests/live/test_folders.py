"""Our folders in HDFS, over the emulator's: whoever comes first, and what is found wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.live.jobs.submission_client import CHECKPOINTS, Client
from tests.live.test_webhdfs_server import Store
from yarnctl.attach.check.preflight import Facts
from yarnctl.daemon.safe_folders import AGAIN_MS, RETRY_MS, Folders
from yarnctl.deciding.reasons.modes import FoldersUnreachable
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.journal.rendering import said
from yarnctl.task_runner.runner.protocol.stores import check_root
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store

BEGIN = Facts(caller_identity="yarnctl")
REQUESTS = "/yarnctl/requests"


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as one:
        yield one


def submits(hdfs: Store, user: str) -> None:
    """Do what ``yarn-emulator submit`` and then a job's runner do, as somebody."""
    Client(hdfs.url, user).make_checkpoint_folders(hdfs.host)
    held = open_store(f"webhdfs://{hdfs.host}{CHECKPOINTS}", user)
    check_root(held)
    held.make_folder(f"job_1_{len(user)}/task_1_{len(user)}_r_000000")


def begins(hdfs: Store) -> Folders:
    folders = Folders(hdfs.as_user("yarnctl"), BEGIN)
    folders.require(0)
    return folders


@pytest.mark.parametrize("order", ["run first", "submission first"])
def test_it_does_not_matter_who_comes_first(hdfs: Store, order: str) -> None:
    if order == "submission first":
        submits(hdfs, "ann")
    folders = begins(hdfs)
    submits(hdfs, "ann")
    submits(hdfs, "robert")
    assert folders.why is None
    seen = hdfs.as_user("hdfs")
    assert seen.status(CHECKPOINTS).mode == 0o1777
    found = seen.status(REQUESTS)
    assert (found.owner, found.mode) == ("yarnctl", 0o755)
    above = seen.status("/yarnctl")
    assert (above.owner, above.mode) == ("yarnctl", 0o755)
    assert seen.status(CHECKPOINTS).owner == "yarnctl"
    assert hdfs.refused("PUT", f"{REQUESTS}/x?op=MKDIRS&user.name=ann")[0] == 403


@pytest.mark.parametrize(
    ("path", "owner", "mode", "said"),
    [(REQUESTS, "ann", 0o755, "belongs to ann"), (REQUESTS, "yarnctl", 0o777, "other users can write to"),
     (CHECKPOINTS, "yarnctl", 0o755, "only yarnctl can write checkpoints"),
     (CHECKPOINTS, "hdfs", 0o777, "not sticky"), ("/yarnctl", "yarnctl", 0o777, "not sticky")],
)  # fmt: skip
def test_what_is_wrong_is_named_and_not_mended(
    hdfs: Store, path: str, owner: str, mode: int, said: str
) -> None:
    root = hdfs.as_user("hdfs")
    begins(hdfs)
    root.set_mode(path, mode)
    hdfs.ask("PUT", f"{path}?op=SETOWNER&owner={owner}&user.name=hdfs")
    with pytest.raises(BadInput, match=said) as told:
        begins(hdfs)
    assert "hdfs dfs -ch" in str(told.value)
    found = root.status(path)
    assert (found.owner, found.mode) == (owner, mode)


def test_a_lock_that_cannot_be_made_or_written_is_named(hdfs: Store) -> None:
    begins(hdfs)
    hdfs.ask("PUT", "/yarnctl?op=SETOWNER&owner=hdfs&user.name=hdfs")
    with pytest.raises(BadInput, match="cannot create /yarnctl/lock") as told:
        begins(hdfs)
    assert "hdfs dfs -chown yarnctl /yarnctl" in str(told.value)
    hdfs.ask("PUT", "/yarnctl?op=SETOWNER&owner=yarnctl&user.name=hdfs")
    begins(hdfs)
    hdfs.as_user("hdfs").make_directories("/yarnctl/lock", 0o755)
    with pytest.raises(BadInput, match="/yarnctl/lock belongs to hdfs"):
        begins(hdfs)


def test_what_is_changed_later_closes_the_gate_and_what_is_mended_opens_it(hdfs: Store) -> None:
    folders, root = begins(hdfs), hdfs.as_user("hdfs")
    root.set_mode(CHECKPOINTS, 0o777)
    folders.recheck(AGAIN_MS - 1)
    assert folders.why is None
    folders.recheck(AGAIN_MS)
    assert "not sticky" in said(folders.why)
    root.set_mode(CHECKPOINTS, 0o1777)
    folders.recheck(2 * AGAIN_MS)
    assert folders.why is None


def test_what_may_not_be_made_is_said_with_what_to_make(hdfs: Store) -> None:
    hdfs.as_user("hdfs").set_mode("/", 0o755)
    with pytest.raises(BadInput, match="as HDFS's administrator: /yarnctl/requests owned by yarnctl"):
        begins(hdfs)


def test_an_hdfs_that_is_away_is_waited_for(hdfs: Store) -> None:
    quick = CallLimits(connect_ms=300, read_timeout_ms=300, answer_ms=300, retries=0)
    away = Folders(WebHdfs(["http://127.0.0.1:9"], Identity(user="yarnctl"), quick), BEGIN)
    away.require(0)
    assert isinstance(away.why, FoldersUnreachable)
    away._hdfs = hdfs.as_user("yarnctl")
    away.recheck(RETRY_MS - 1)
    assert away.why is not None
    away.recheck(RETRY_MS)
    assert away.why is None
