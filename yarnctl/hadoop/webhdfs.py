"""HDFS over WebHDFS (facts, section 10): the ``hdfs`` package, and what it does not check.

A status code is never trusted: a rename's result is in its body, and a file is whole only if a manifest
written apart proves it. The package transfers the bytes and walks folders; single operations of the NameNode
go through our transport, which handles standbys and shows no secrets.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import hdfs
import msgspec
import requests
import urllib3.exceptions
from hdfs.util import HdfsError
from msgspec import field

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import (
    JSON,
    BadAnswer,
    ExistsAlready,
    Missing,
    Rejected,
    Standby,
    Uncertain,
    decoded,
    excerpt,
    explain,
    is_safe_mode,
    safe_mode,
)
from yarnctl.hadoop.http.auth import Delegation, Identity, session_auth
from yarnctl.hadoop.http.session import CallLimits, no_answer, open_session
from yarnctl.hadoop.http.transport import FAULT_WORDS, Transport, unreached
from yarnctl.hadoop.wire.decoders import OneDecoder

PREFIX = "/webhdfs/v1"


class FileStatus(msgspec.Struct, frozen=True):
    """One file or directory. ``name`` is "" for the requested path itself."""

    kind: Literal["FILE", "DIRECTORY", "SYMLINK"] = field(name="type")
    name: str = field(name="pathSuffix", default="")
    owner: str = ""
    group: str = ""
    permission: str = ""
    length: int = 0
    modified_at_ms: int = field(name="modificationTime", default=0)

    @property
    def mode(self) -> int:
        """The permission bits (0o700 and so on)."""
        return int(self.permission, 8) if self.permission.isdigit() else 0


class _Statuses(msgspec.Struct):
    rows: tuple[FileStatus, ...] = field(name="FileStatus", default=())


class _Yes(msgspec.Struct):
    yes: bool = field(name="boolean")


class _Path(msgspec.Struct):
    path: str = field(name="Path")


class _Location(msgspec.Struct):
    url: str = field(name="Location")


class _Token(msgspec.Struct):
    text: str = field(name="urlString", default="")


class _Issued(msgspec.Struct):
    token: _Token | None = field(name="Token", default=None)


_STATUS = OneDecoder(FileStatus, "FileStatus")
_STATUSES = OneDecoder(_Statuses, "FileStatuses")
_BOOLEAN = OneDecoder(_Yes)
_HOME = OneDecoder(_Path)
_LOCATION = OneDecoder(_Location)
_ISSUED = OneDecoder(_Issued)


class WebHdfs:
    """A file system behind its NameNodes. Paths are absolute; the constructor sends nothing.

    All methods raise Unreachable, Rejected (Missing, ExistsAlready), and, where they change something,
    Uncertain. ``limits`` bound single operations, ``bulk_limits`` the transfer of a file's bytes.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        identity: Identity | None = None,
        limits: CallLimits | None = None,
        *,
        bulk_limits: CallLimits | None = None,
        ca_file: str = "",
    ) -> None:
        self._to = Transport(addresses, identity, limits, daemon="NameNode", ca_file=ca_file)
        self._bulk = bulk_limits or CallLimits(answer_ms=600_000, answer_bytes=64 << 30, retries=1)
        method, over_http = self._to.identity.method, self._to.identity.token_over_http
        signed = session_auth(self._to.identity, self._to.addresses) if method == "basic" else None
        if method == "kerberos":
            signed = Delegation(self._token, over_http=over_http)
        session = open_session(self._bulk, signed, ca_file, follow=True)
        session.headers["Accept-Encoding"] = "identity"
        joined = ";".join(self._to.addresses)
        user = self._to.identity.user
        if user and method == "simple":
            self._package = hdfs.InsecureClient(joined, user=user, session=session, timeout=self._bulk.pair())
        else:
            self._package = hdfs.Client(joined, session=session, timeout=self._bulk.pair())

    # --- reading ------------------------------------------------------------------------------

    def status(self, path: str) -> FileStatus:
        """Return owner, mode, length of a path; Missing if there is none."""
        return self._to.read(_at(path), _STATUS, {"op": "GETFILESTATUS"})

    def find(self, path: str) -> FileStatus | None:
        """Return the status, or None if there is nothing at ``path``."""
        try:
            return self.status(path)
        except Missing:
            return None

    def listing(self, path: str) -> tuple[FileStatus, ...]:
        """Return the entries of a directory ordered by name; Missing if there is none."""
        rows = self._to.read(_at(path), _STATUSES, {"op": "LISTSTATUS"}).rows
        if len(rows) == 1 and not rows[0].name:
            raise Rejected(explain(self._to.pinned + _at(path), "is a file", "a directory"))
        return tuple(sorted(rows, key=lambda row: row.name))

    def home(self) -> str:
        """Return the caller's home directory."""
        return self._to.read(f"{PREFIX}/", _HOME, {"op": "GETHOMEDIRECTORY"}).path

    def read(self, path: str, limit_bytes: int = 16 << 20) -> bytes:
        """Return a whole small file; BadAnswer if it is longer than ``limit_bytes``."""
        parts, size = [], 0
        with self.open(path) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > limit_bytes:
                    raise BadAnswer(
                        explain(self._url(path), f"longer than {limit_bytes} bytes", "a small file")
                    )
                parts.append(chunk)
        return b"".join(parts)

    @contextmanager
    def open(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[Iterator[bytes]]:
        """Yield the bytes from ``offset`` on, at most ``length``, in chunks.

        The transfer may break off in its middle (Unreachable while iterating); only a length and a
        digest known beforehand prove that a file is whole.
        """
        _at(path)
        with (
            self._translated("GET", path),
            self._package.read(path, offset=offset, length=length, chunk_size=1 << 16) as chunks,
        ):
            yield chunks

    def data_address(self, folder: str) -> str:
        """Return the base URL of the DataNode to which a new file's bytes would be sent.

        Only the first of a create's two requests is sent, and for a path that is a folder: no server writes
        anything for it. The redirect is read and not followed (``noredirect`` is newer, and may differ behind
        a gateway).
        """
        answer = self._to.change("PUT", _at(folder), query={"op": "CREATE"}, follow=False)
        where = answer.location or decoded(answer, _LOCATION).url
        try:
            parts = urlsplit(where)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise BadAnswer(explain(answer.url, "redirected to an invalid address", "a DataNode"))
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    # --- changing -----------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes | Iterator[bytes], *, mode: int = 0o600, overwrite: bool = False
    ) -> None:
        """Write a new file; Exists if there is one and ``overwrite`` is not set.

        Without ``overwrite`` this is the exclusive create of HDFS: of many callers one succeeds. A
        writer that dies leaves a shorter file that looks complete: write, then ``rename``.
        """
        _at(path)
        with self._translated("PUT", path):
            self._package.write(path, data, overwrite=overwrite, permission=f"{mode:o}")

    def make_directories(self, path: str, mode: int = 0o700) -> None:
        """Make a directory and those above it; fine if it exists already (its mode stays)."""
        self._yes("PUT", path, "MKDIRS", {"permission": f"{mode:o}"})

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename in one transaction; without ``overwrite`` raises ExistsAlready, Missing or Rejected.

        With it an existing *file* is replaced atomically (``renameoptions``, served though not documented).
        """
        _at(target)
        if overwrite:
            self._change("PUT", source, "RENAME", {"destination": target, "renameoptions": "OVERWRITE"})
            return
        try:
            self._yes("PUT", source, "RENAME", {"destination": target})
        except ExistsAlready:
            raise
        except Rejected as problem:
            if problem.status == 200:
                self._why_not(source, target)
            raise

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete; return False if there was nothing."""
        answer = self._change("DELETE", path, "DELETE", {"recursive": str(recursive).lower()})
        return bool(decoded(answer, _BOOLEAN).yes)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits."""
        self._change("PUT", path, "SETPERMISSION", {"permission": f"{mode:o}"})

    def set_modified(self, path: str, at_ms: int) -> None:
        """Set the modification time, ms since the epoch: one transaction, no block."""
        self._change("PUT", path, "SETTIMES", {"modificationtime": str(at_ms)})

    def _token(self) -> str:
        """Return a new delegation token, "" if this HDFS gives none (it is not secured)."""
        issued = self._to.read(f"{PREFIX}/", _ISSUED, {"op": "GETDELEGATIONTOKEN"}).token
        return "" if issued is None else str(issued.text)

    def _url(self, path: str) -> str:
        return self._to.pinned + _at(path)

    def _change(self, method: str, path: str, op: str, query: dict[str, str]) -> Any:
        answer = self._to.change(method, _at(path), media=JSON, query={"op": op, **query})
        if answer.status >= 300 or "html" in answer.kind:
            story = f"HTTP {answer.status} {answer.kind}"
            raise BadAnswer(explain(answer.url, story, "WebHDFS", "check that dfs.webhdfs.enabled is true"))
        return answer

    def _yes(self, method: str, path: str, op: str, query: dict[str, str]) -> None:
        answer = self._change(method, path, op, query)
        if not decoded(answer, _BOOLEAN).yes:
            raise Rejected(explain(answer.url, "the NameNode answered false", "boolean true"), 200)

    def _why_not(self, source: str, target: str) -> None:
        if self.find(source) is None:
            raise Missing(explain(self._url(source), "does not exist and cannot be renamed"), 200)
        if self.find(target) is not None:
            raise ExistsAlready(explain(self._url(target), "exists already; the file was not renamed"), 200)
        parent = posixpath.dirname(target)
        if self.find(parent) is None:
            raise Missing(explain(self._url(parent), "does not exist; the file was not renamed into it"), 200)

    @contextmanager
    def _translated(self, method: str, path: str) -> Iterator[None]:
        """Convert the package's exceptions to ours, without their text if it may contain a URL."""
        url = self._url(path)
        try:
            yield
        except HdfsError as error:
            raise _reported(url, method, error) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise _unanswered(url, method, error) from None
        except (KeyError, TypeError, AttributeError, ValueError, IndexError):
            remedy = "check that this is WebHDFS"
            raise BadAnswer(
                explain(url, "the answer is not from WebHDFS", "JSON or a Location", remedy)
            ) from None


def _unanswered(url: str, method: str, error: Exception) -> Unreachable:
    """Return our exception for a host that did not answer, NameNode or DataNode; it names that host."""
    asked = str(getattr(getattr(error, "request", None), "url", None) or url)
    problem = no_answer(error)
    if not problem.is_sent:
        is_name_node = urlsplit(asked).netloc == urlsplit(url).netloc
        return unreached(asked, problem, "HDFS" if is_name_node else "a DataNode")
    story = f"the transfer was interrupted ({FAULT_WORDS[problem.fault]})"
    if method == "GET":
        return Unreachable(explain(asked, story, "a whole answer", "try again"))
    return Uncertain(explain(asked, story, "201 Created", "check the state before you repeat it"))


def _reported(url: str, method: str, error: Any) -> Exception:
    """Return our exception for one of the package's (its message is the NameNode's or DataNode's)."""
    remote = str(error.exception or "")
    story = f"{remote}: {excerpt(str(error))}".removeprefix(": ")
    if is_safe_mode(remote, story):
        return safe_mode(url)
    if remote == "FileAlreadyExistsException" or "already exists" in story:
        return ExistsAlready(explain(url, story), 403, remote)
    if remote == "FileNotFoundException":
        return Missing(explain(url, story), 404, remote)
    if remote in ("StandbyException", "RetriableException"):
        return Standby(explain(url, story, "an active NameNode", "wait for the failover"))
    if not remote and method == "GET":
        return BadAnswer(explain(url, story, "WebHDFS", "check that this is a NameNode"))
    return Rejected(explain(url, story, "", "check owner and permissions of the path"), 403, remote)


def _at(path: str) -> str:
    """Return the URL's path for an absolute HDFS path; raises BadInput for anything else."""
    clean = posixpath.normpath(path) if path else ""
    odd = any(not letter.isprintable() for letter in path) or "#LATEST" in path or ";" in path
    if not path.startswith("/") or odd or ".." in path.split("/"):
        raise BadInput(f"HDFS path {path[:120]!r}", "not a valid path", "use an absolute path without ..")
    return PREFIX + quote("/" + clean.lstrip("/"), safe="/=")
