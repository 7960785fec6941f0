"""The options of the lock, before anything is reached."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.service.certificates import Authority
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
    for login, authorities in ((tmp_path / "login", None), (None, tmp_path / "ca.pem")):
        with pytest.raises(BadInput, match=r"^--lock hdfs: the lock in HDFS has no login and no TLS"):
            lock_of(LockOptions("hdfs", 10, login, authorities))


def test_tls_has_the_files_of_the_options(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("daemon")
    for certificate, key in ((None, None), (own.certificate, own.key)):
        address = lock_of(LockOptions(PLACE, 10, None, authority.file, certificate, key))
        assert address is not None
        assert address.tls == (authority.file, certificate, key)


def test_tls_files_that_cannot_be_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.sign("daemon"), authority.sign("other")
    locked = tmp_path / "locked.key"
    words = ("openssl", "pkey", "-in", own.key, "-aes256", "-passout", "pass:a phrase", "-out", locked)
    subprocess.run(words, check=True, capture_output=True)
    authorities, missing = authority.file, tmp_path / "none"
    for files, problem in (
        ((None, own.certificate, own.key), "--lock-tls-ca: is missing"),
        ((authorities, own.certificate, None), "--lock-tls-ca: is missing, or a certificate without its key"),
        ((authorities, None, own.key), "--lock-tls-ca: is missing, or a certificate without its key"),
        ((missing, None, None), f"--lock-tls-ca {missing}: cannot be used (FileNotFoundError)"),
        ((own.key, None, None), f"--lock-tls-ca {own.key}: cannot be used (SSLError)"),
        ((authorities, own.certificate, other.key), f"--lock-tls-certificate {own.certificate}: cannot be"),
        ((authorities, own.certificate, locked), f"--lock-tls-certificate {own.certificate}: cannot be used"),
    ):
        with pytest.raises(BadInput, match="^" + re.escape(problem)):
            lock_of(LockOptions(PLACE, 10, None, *files))
