"""The store in HDFS, over WebHDFS, and the choice of a store by its URL.

A change that was sent and not answered is not sent again, to no server: it raises Lost. Every exchange ends,
however slowly the other side answers.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import threading
import time
from typing import Any, Iterable, Iterator, Sequence

from yarnctl.task_runner.runner.protocol.stores import (
    COPY_BYTES,
    SMALL_FILE_BYTES,
    Entry,
    Exists,
    LocalStore,
    Lost,
    Store,
    StoreAway,
    StoreError,
    Unusable,
    close_quietly,
)
from yarnctl.task_runner.runner.protocol.token_files import PLAIN, Secured

HTTP_TIMEOUT_S = 30.0

HTTP_WHOLE_S = 60.0  # For one exchange; a body has the time at SLOWEST_BYTES_PER_S besides

SLOWEST_BYTES_PER_S = 32 << 10

FOLDER_MODE, FILE_MODE = "750", "640"  # A new file has its folder's group: the daemon's, which may read


def trusted(ca_file: str) -> Any:
    """Return a TLS context for clients: authorities of a PEM file, or the system's; it checks host names."""
    try:
        import ssl

        return ssl.create_default_context(cafile=ca_file or None)
    except (ImportError, OSError, ValueError) as error:
        raise Unusable(f"HTTPS: {ca_file or 'the certificate authorities of this host'}: {error!r}") from None


class WebHdfsStore(Store):
    """A store in HDFS over WebHDFS. ``delegation``: a token as it is in URLs, in place of a name.

    Traps: a client that ends within a body leaves a file that seems complete, RENAME reports by a boolean
    whether it was done, and the NameNode puts the token into every address of a redirect.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        root: str,
        user: str,
        secure: bool = False,
        delegation: str = "",
        ca_file: str = "",
    ) -> None:
        self.hosts = list(hosts)
        self.root = "/" + root.strip("/")
        self.user = user
        self.secure = secure
        self.delegation = delegation
        self.context = trusted(ca_file) if secure or ca_file else None

    def entry(self, path: str) -> Entry | None:
        """Return what is at ``path``, None if nothing."""
        found = self._json("GET", path, "GETFILESTATUS")
        try:
            return None if found is None else self._entry(found["FileStatus"], path.rsplit("/", 1)[-1])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._nonsense(path, "GETFILESTATUS", error) from error

    def list(self, path: str) -> builtins.list[Entry]:
        """Return what is in a folder, nothing if there is none."""
        found = self._json("GET", path, "LISTSTATUS")
        if found is None:
            return []
        try:
            return sorted(self._entry(each) for each in found["FileStatuses"]["FileStatus"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._nonsense(path, "LISTSTATUS", error) from error

    def read(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes; a body that ends early is an error, not an end."""
        status, body, where = self._exchange("GET", path, "OPEN")
        if status != 307 or not where:
            raise self._refused(path, "OPEN", status, body)
        connection, target = self._connect(where)
        try:
            with bounded(connection):
                connection.request("GET", target)
                answer = connection.getresponse()
            if answer.status != 200:
                raise self._refused(path, "OPEN", answer.status, answer.read1(4096))
            yield from self._body(path, answer)
        except self._faults() as error:
            raise StoreError(f"{self._name(path)}: OPEN: {error!r}") from None
        finally:
            close_quietly(connection)

    def _body(self, path: str, answer: Any) -> Iterator[bytes]:
        """Yield a body piece by piece, each from one system call, for a bounded time."""
        expected = answer.getheader("Content-Length")
        seen_bytes, began_s = 0, time.monotonic()
        for piece in iter(lambda: answer.read1(COPY_BYTES), b""):
            seen_bytes += len(piece)
            yield piece
            if time.monotonic() - began_s > HTTP_WHOLE_S + seen_bytes / SLOWEST_BYTES_PER_S:
                raise StoreError(f"{self._name(path)}: OPEN: {seen_bytes} bytes received, too slow")
        if expected is not None and int(expected) != seen_bytes:
            raise StoreError(f"{self._name(path)}: {seen_bytes} of {expected} bytes received")

    def create(self, path: str, size_bytes: int, pieces: Iterable[bytes]) -> None:
        """Write a new file in two steps: the NameNode names a DataNode, that takes the body."""
        status, body, where = self._exchange(
            "PUT", path, "CREATE", {"overwrite": "false", "permission": FILE_MODE}
        )
        if status == 200:
            where = self._object(path, "CREATE", body).get("Location")
        elif status != 307:
            raise self._refused(path, "CREATE", status, body)
        if not where or not isinstance(where, str):
            raise StoreError(f"{self._name(path)}: CREATE: redirect without a location")
        self._send_body(path, where, size_bytes, pieces)

    def rename(self, old: str, new: str) -> None:
        """Give a file its final name (HDFS answers false if it is taken); Lost where unknown."""
        found = self._json("PUT", old, "RENAME", {"destination": self._name(new)})
        if found is None or found.get("boolean") is not True:
            raise Exists(f"{self._name(new)}: RENAME answered {found!r}")

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, for the owner, and for the store's group to read."""
        try:
            found = self._json("PUT", path, "MKDIRS", {"permission": FOLDER_MODE})
        except Lost:  # it may be sent twice
            found = self._json("PUT", path, "MKDIRS", {"permission": FOLDER_MODE})
        if found is None or found.get("boolean") is not True:
            raise StoreError(f"{self._name(path)}: MKDIRS answered {found!r}")

    def _send_body(self, path: str, where: str, size_bytes: int, pieces: Iterable[bytes]) -> None:
        connection, target = self._connect(where)
        try:
            connection.putrequest("PUT", target)
            connection.putheader("Content-Type", "application/octet-stream")
            connection.putheader("Content-Length", str(size_bytes))
            connection.endheaders()
            for piece in pieces:
                connection.send(piece)  # bounded: the time-out is that of the whole piece
            with bounded(connection):
                answer = connection.getresponse()
                body = answer.read(4096)
            if answer.status != 201:
                raise self._refused(path, "CREATE", answer.status, body)
        except self._faults() as error:
            raise StoreError(f"{self._name(path)}: CREATE: {error!r}") from None
        finally:
            close_quietly(connection)

    def _json(
        self, method: str, path: str, op: str, query: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return the answer of a NameNode, None for 404."""
        status, body, _ = self._exchange(method, path, op, query)
        if status == 404:
            return None
        if status != 200:
            raise self._refused(path, op, status, body)
        return self._object(path, op, body)

    def _object(self, path: str, op: str, body: bytes) -> dict[str, Any]:
        """Return an answer's JSON object; raise Lost where there is none: what was done is unknown."""
        try:
            found = json.loads(body or b"{}")
        except (ValueError, RecursionError) as error:
            raise Lost(f"{self._name(path)}: {op}: not JSON: {body[:80]!r}") from error
        if not isinstance(found, dict):
            raise Lost(f"{self._name(path)}: {op}: {str(found)[:80]} is not an object")
        return found

    def _exchange(
        self, method: str, path: str, op: str, query: dict[str, str] | None = None
    ) -> tuple[int, bytes, str | None]:
        """Send to one NameNode after the other until an active one answers; Lost for a change in doubt."""
        last: Exception = StoreError(f"{self._name(path)}: no NameNode is set")
        for host in list(self.hosts):
            try:
                connection, target = self._connect(self._url(host, path, op, query))
            except StoreError as error:
                last = error
                continue
            try:
                with bounded(connection):
                    connection.request(method, target)
                    answer = connection.getresponse()
                    body = answer.read(SMALL_FILE_BYTES)
                if answer.status in (401, 403) and any(word in body for word in PASS_ON):
                    last = StoreAway(f"{host}: standby")
                    continue
                self.hosts.sort(key=lambda other: other != host)
                return answer.status, body, answer.getheader("Location")
            except self._faults() as error:
                last = error
                if method != "GET":
                    self.hosts.sort(key=lambda other: other == host)  # the next call begins with another
                    raise Lost(f"{self._name(path)}: {op}: {host}: {error!r}") from None
            finally:
                close_quietly(connection)
        kind = StoreAway if isinstance(last, (StoreAway, OSError)) else StoreError
        raise kind(f"{self._name(path)}: {op}: {last!r}") from None

    def _connect(self, url: str) -> tuple[Any, str]:
        """Return a connection and what to ask there."""
        from http import client
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(url)
            target = parts.path + ("?" + parts.query if parts.query else "")
            connection: Any
            if parts.scheme == "https":
                connection = client.HTTPSConnection(
                    parts.netloc, timeout=HTTP_TIMEOUT_S, context=self.context
                )
            elif self.secure:
                raise StoreError(f"{parts.netloc}: redirected from https to {parts.scheme}: not followed")
            else:
                connection = client.HTTPConnection(parts.netloc, timeout=HTTP_TIMEOUT_S)
            connection.connect()
            return connection, target
        except self._faults() as error:
            kind = StoreAway if isinstance(error, OSError) else StoreError
            raise kind(f"{url.partition('?')[0][:200]}: {error!r}") from None

    def _url(self, host: str, path: str, op: str, query: dict[str, str] | None) -> str:
        from urllib.parse import quote, urlencode

        who = {"delegation": self.delegation} if self.delegation else {"user.name": self.user}
        asked = urlencode({"op": op, **(query or {}), **who})
        return f"{'https' if self.secure else 'http'}://{host}/webhdfs/v1{quote(self._name(path))}?{asked}"

    def _name(self, path: str) -> str:
        return self.root.rstrip("/") + ("/" + path if path else "")

    def _refused(self, path: str, op: str, status: int, body: bytes) -> StoreError:
        kind = Lost if status >= 500 else StoreError
        if any(word in body for word in (*PASS_ON, b"SafeModeException")):
            kind = StoreAway
        if b"FileAlreadyExistsException" in body:
            kind = Exists
        said = body.decode("utf-8", "replace")
        if self.delegation:
            said = said.replace(self.delegation, "***")
        return kind(f"{self._name(path)}: {op}: HTTP {status}: {said[:200]}")

    def _nonsense(self, path: str, op: str, error: Exception) -> StoreError:
        return StoreError(f"{self._name(path)}: {op} unexpected answer: {error!r}")

    @staticmethod
    def _faults() -> tuple[type[Exception], ...]:
        """Return what a call over HTTP raises: odd addresses and odd headers are ValueErrors."""
        from http.client import HTTPException

        return (OSError, HTTPException, ValueError)

    @staticmethod
    def _entry(status: dict[str, Any], name: str = "") -> Entry:
        return Entry(
            str(status.get("pathSuffix") or name),
            int(status["length"]),
            str(status["owner"]),
            int(str(status["permission"]), 8),
            status["type"] == "DIRECTORY",
        )


@contextlib.contextmanager
def bounded(connection: Any) -> Iterator[None]:
    """End an exchange of single bytes: after HTTP_WHOLE_S its socket is shut, whatever still comes."""
    timer = threading.Timer(HTTP_WHOLE_S, shut, (connection.sock,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def shut(opened: Any) -> None:
    """Shut a socket; one whose exchange has ended is shut already."""
    import socket

    with contextlib.suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


PASS_ON = (b"StandbyException", b"RetriableException")  # From a NameNode that is not (yet) active


def split_store(url: str) -> tuple[str, list[str], str]:
    """Return scheme, hosts and folder of a store's URL; StoreError for one that no node can use.

    Accepted: ``file:///folder`` and ``[s]webhdfs://host:port[,host:port]/folder``.
    """
    scheme, _, rest = url.partition("://")
    named, _, folder = rest.partition("/")
    hosts = [host for host in named.split(",") if host]
    known = scheme in ("webhdfs", "swebhdfs") if hosts else scheme == "file"
    if known and folder.strip("/") and ".." not in folder.split("/"):
        return scheme, hosts, "/" + folder
    raise StoreError(f"{url}: neither file:///folder nor webhdfs://host:port/folder")


def open_store(url: str, user: str, secured: Secured = PLAIN) -> Store:
    """Return the store at a URL."""
    scheme, hosts, root = split_store(url)
    if scheme == "file":
        return LocalStore(root)
    delegation = secured.delegation(hosts, scheme == "swebhdfs")
    return WebHdfsStore(hosts, root, user, scheme == "swebhdfs", delegation, secured.ca_file)
