"""TLS of the API: the daemon's certificate, and the authority of its clients' certificates.

A reload makes a whole new context from the files and uses it only if that succeeds: a broken file, or a key
of another certificate, leaves the old one in use. Open connections continue with the certificate that they
began with. A removed authority is no longer trusted after a reload.
"""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from yarnctl.errors import BadInput


class TlsFiles(NamedTuple):
    """PEM files. ``client_authorities``: each client needs a certificate of one of them (None: none does)."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None


class Tls:
    """The TLS contexts of one server; raises BadInput if the files cannot be used."""

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self.context = _NewestContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.newest = context_of(files)

    def reload(self) -> None:
        """Use the files as they are now; raises BadInput, and keeps the old ones, if that is impossible."""
        self.context.newest = context_of(self.files)


class _NewestContext(ssl.SSLContext):
    """The context that the server holds: each connection gets the newest one."""

    newest: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return self.newest.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def context_of(files: TlsFiles) -> ssl.SSLContext:
    """Return a context for TLS 1.2 and newer; raises BadInput naming the option and the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    key = f"--tls-key {files.key}"
    _require_readable(files.certificate, f"--tls-certificate {files.certificate}")
    _require_readable(files.key, key)
    if stat.S_IMODE(os.stat(files.key).st_mode) & stat.S_IRWXO:
        raise BadInput(key, "every user can read or change it", f"chmod o= {files.key}")
    try:
        context.load_cert_chain(files.certificate, files.key, password=lambda: b"")  # never ask a terminal
    except ssl.SSLError as error:
        problem = f"not the key of {files.certificate}, or not PEM files ({error.reason or 'no reason'})"
        raise BadInput(key, problem, "write the chain and the key, without a passphrase, as PEM") from None
    if files.client_authorities is not None:
        where = f"--tls-client-ca {files.client_authorities}"
        _require_readable(files.client_authorities, where)
        try:
            context.load_verify_locations(files.client_authorities)
        except ssl.SSLError:
            problem = "has no certificate of an authority"
            raise BadInput(where, problem, "name a PEM file with the certificates of authorities") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _require_readable(file: Path, where: str) -> None:
    try:
        with file.open("rb"):
            pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BadInput(where, f"cannot be read ({type(error).__name__})", "name a readable file") from None


def common_name(certificate: Mapping[str, Any] | None) -> str:
    """Return the only common name of a verified certificate's subject, "" if there is none or several."""
    names = list(_common_names(certificate or {}))
    return names[0] if len(names) == 1 else ""


def _common_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        yield from (value for kind, value in part if kind == "commonName")
