"""A root directory with an account and nothing else: rpm installs into it, and the program starts from it.

The program sees this machine's /usr, /dev and /proc in it, by mounts of a namespace of its own. Its scripts,
which need a whole system, do not run: those of the deb are the same, and those of the rpm run on a host.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCOUNT = 990
ENTER = """
cd "$1"; shift
ln -s usr/bin usr/lib usr/lib64 usr/sbin .
for name in usr dev proc; do mkdir -p $name; mount --rbind /$name $name; done
exec chroot --userspec=990:990 . "$@"
"""


def why_not() -> str:
    """Return what is missing on this machine to install into a root, "" if nothing is."""
    missing = [one for one in ("rpm", "unshare", "chroot") if shutil.which(one) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    if os.geteuid() != 0:
        return "only root can"
    tried = subprocess.run(("unshare", "--mount", "true"), capture_output=True, text=True, check=False)
    return tried.stderr


class RpmRoot:
    """A root in a folder; ``rpm`` runs with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "etc").mkdir(parents=True)
        account = f"yarnctl:x:{ACCOUNT}:"
        (folder / "etc/passwd").write_text(f"{account}{ACCOUNT}::/var/lib/yarnctl:/usr/sbin/nologin\n")
        (folder / "etc/group").write_text(account + "\n")

    def rpm(self, *words: str) -> None:
        """Run rpm on this root, without its scripts and dependencies; fails with what it prints."""
        whole = ("rpm", "--root", str(self.folder), *words, "--nodeps", "--noscripts")
        done = subprocess.run(whole, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def running(self, *words: str) -> Iterator[None]:
        """Run a program of this root as the account until the end of the block."""
        enter = ("unshare", "--mount", "--propagation=private", "sh", "-euc", ENTER, "sh", str(self.folder))
        with (self.folder.parent / "log").open("wb") as log:
            process = subprocess.Popen(
                (*enter, *words), env={"PATH": "/usr/sbin:/usr/bin"}, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait()
