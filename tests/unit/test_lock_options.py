"""The options of the lock, before anything is reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yarnctl.cli.lock_options import LockOptions, lock_of
from yarnctl.errors import BadInput

pytest.importorskip("kazoo", reason="the extra ha is not installed")
PLACE = "zookeeper://zk1/yarnctl"


def written(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def test_login_is_the_line_of_a_file(tmp_path: Path) -> None:
    address = lock_of(LockOptions(PLACE, 10, written(tmp_path / "login", "yarnctl:pass:word-0123\n")))
    assert address is not None
    assert address.login == "yarnctl:pass:word-0123"
    assert "pass" not in repr(address)


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("yarnctl:password-0123", 0o640, "other users can read or change it (mode 640)"),
        ("yarnctl-password-0123", 0o600, "is not USER:PASSWORD"),
        (":password-0123456789", 0o600, "is not USER:PASSWORD"),
        ("password-0123456789:", 0o600, "is not USER:PASSWORD"),
        ("a b:password-0123456789", 0o600, "is not USER:PASSWORD"),
        ("yarnctl:short", 0o600, "the secret is too short"),
    ],
)
def test_login_that_cannot_be_used_is_not_shown(tmp_path: Path, text: str, mode: int, problem: str) -> None:
    with pytest.raises(BadInput, match="^--lock-login-file: " + re.escape(problem)) as wrong:
        lock_of(LockOptions(PLACE, 10, written(tmp_path / "login", text, mode)))
    assert text not in str(wrong.value)


def test_lock_in_hdfs_has_no_login(tmp_path: Path) -> None:
    assert lock_of(LockOptions()) is None
    with pytest.raises(BadInput, match=r"^--lock-login-file: the lock is in HDFS"):
        lock_of(LockOptions("hdfs", 10, tmp_path / "login"))
