"""A certificate authority of the tests, and what it signs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from yarnctl.service.security.tls import TlsFiles

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


class Authority:
    """An authority in a folder: ``file`` names it."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            if os.environ.get("CI"):
                pytest.fail("openssl is not on the path")
            pytest.skip("openssl is not on the path: no certificate can be made")
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.file = folder / "ca.pem"
        self._key = folder / "ca.key"
        self._make(self.file, self._key, "the authority of the tests")

    def _make(self, file: Path, key: Path, name: str, *options: str) -> None:
        words = [
            "openssl",
            "req",
            "-x509",
            *EC,
            "-subj",
            f"/CN={name}",
            "-keyout",
            str(key),
            "-out",
            str(file),
        ]
        subprocess.run([*words, *options], check=True, capture_output=True)
        key.chmod(0o600)

    def sign(self, name: str, *, clients: bool = False) -> TlsFiles:
        """Return a certificate of 127.0.0.1 whose common name is ``name``, with its key, each in a file.

        ``clients``: the files are a server's that requires certificates of its clients.
        """
        file, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        signed = ("-CA", str(self.file), "-CAkey", str(self._key), "-addext", "subjectAltName=IP:127.0.0.1")
        self._make(file, key, name, *signed, "-addext", "basicConstraints=critical,CA:FALSE")
        return TlsFiles(file, key, self.file if clients else None)
