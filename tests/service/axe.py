"""axe-core, the checker of accessibility: fetched once from the npm registry into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from tests.hadoop.artifacts import cache_folder

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"


def axe_script() -> str:
    """Return axe.min.js; skip the test if npm is missing, but not in CI."""
    kept = cache_folder() / f"axe-core-{VERSION}.js"
    if not kept.exists():
        _fetch(kept)
    found = kept.read_bytes()
    assert hashlib.sha256(found).hexdigest() == SHA256, kept
    return found.decode()


def _fetch(kept: Path) -> None:
    if shutil.which("npm") is None:
        why = "needs npm to fetch axe-core (Debian: apt-get install npm)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    with tempfile.TemporaryDirectory() as folder:
        words = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)
        (packed,) = Path(folder).glob("*.tgz")
        with tarfile.open(packed) as members:
            member = members.extractfile("package/axe.min.js")
            assert member is not None
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(member.read())
    part.replace(kept)
