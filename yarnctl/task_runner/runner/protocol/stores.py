"""Stores: folders that keep checkpoints and requests; the one on a local disk.

A file is created under a name that is new, or not at all. A path that belongs to another user, or that others
may write to, is refused. The text of a failure names what failed and where, and holds no secret.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import re
import time
from typing import IO, Any, Callable, Iterable, Iterator, NamedTuple, Sequence

EXIT_UNPROVABLE = 70  # the attempt failed because nothing else was safe

EXIT_SUSPENDED = 76  # With --exit-when-saved only: a generation was saved, another attempt must go on


def without_secrets(text: str) -> str:
    """Return a text without the secrets that a URL or a server's answer in it may hold."""
    return re.sub(r"(?i)\b(delegation|token|signature|password)=[^&\s'\"]+", r"\1=***", text)


class StoreError(Exception):
    """The checkpoint store did not do what was asked; the text names what and where, and no secret."""

    def __init__(self, text: str = "") -> None:
        super().__init__(without_secrets(text))


class Exists(StoreError):
    """A name that must be new is taken."""


class StoreAway(StoreError):
    """It is unavailable now and may serve later: no connection, a standby, safe mode. Nothing was done."""


class Lost(StoreError):
    """The request was sent and no answer came: whether it was done is unknown."""


class Unusable(Exception):
    """A checkpoint, request or path must not be used; the text is the reason."""


class Unprovable(Exception):
    """Going on could give a wrong output: the attempt ends here."""


class InvalidCheckpoint(Unprovable):
    """The same, and the checkpoint that the attempt resumed from must not be used again."""


SMALL_FILE_BYTES = 1 << 24
COPY_BYTES = 1 << 20


class Entry(NamedTuple):
    """One file or folder of a store. ``mode`` are permission bits with the sticky bit."""

    name: str
    bytes: int
    owner: str
    mode: int
    is_folder: bool


class Store:
    """A folder that keeps checkpoints; paths relative to it. ``create`` refuses a name that is taken."""

    user = ""
    root = ""

    def entry(self, path: str) -> Entry | None:
        """Return what is at ``path``, None if nothing."""
        raise NotImplementedError

    def list(self, path: str) -> builtins.list[Entry]:
        """Return what is in a folder, nothing if there is none."""
        raise NotImplementedError

    def read(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes."""
        raise NotImplementedError

    def create(self, path: str, size_bytes: int, pieces: Iterable[bytes]) -> None:
        """Write a new file; raise Exists if the name is taken."""
        raise NotImplementedError

    def rename(self, old: str, new: str) -> None:
        """Give a file its final name; raise Exists or StoreError if that did not happen."""
        raise NotImplementedError

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, for the owner alone; none is changed that exists."""
        raise NotImplementedError

    def at_root(self, root: str) -> Store:
        """Return a store on the same file system, below another folder."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), root=root)
        return other

    def read_small(self, path: str) -> bytes:
        """Return a small file's bytes."""
        held = b""
        for piece in self.read(path):
            held += piece
            if len(held) > SMALL_FILE_BYTES:
                raise Unusable(f"{path}: larger than {SMALL_FILE_BYTES} bytes")
        return held


class LocalStore(Store):
    """A store in a local folder, for tests and the emulator."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.user = user_name(os.getuid())

    def entry(self, path: str) -> Entry | None:
        """Return what is at ``path``, None if nothing."""
        with self._failures(path), contextlib.suppress(FileNotFoundError):
            return self._entry(os.path.basename(path), os.stat(self._at(path)))
        return None

    def list(self, path: str) -> builtins.list[Entry]:
        """Return what is in a folder, nothing if there is none."""
        with self._failures(path), contextlib.suppress(FileNotFoundError), os.scandir(self._at(path)) as seen:
            return sorted(self._entry(entry.name, entry.stat(follow_symlinks=False)) for entry in seen)
        return []

    def read(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes."""
        with self._failures(path), open(self._at(path), "rb") as stream:
            yield from iter(lambda: stream.read(COPY_BYTES), b"")

    def create(self, path: str, size_bytes: int, pieces: Iterable[bytes]) -> None:
        """Write a new file; raise Exists if the name is taken."""
        with self._failures(path):
            handle = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb", buffering=0):
                for piece in pieces:
                    write_all(handle, piece)
                os.fsync(handle)

    def rename(self, old: str, new: str) -> None:
        """Give a file its final name; a link, because os.rename would replace what is there."""
        with self._failures(new):
            os.link(self._at(old), self._at(new))
            os.unlink(self._at(old))

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, for the owner alone."""
        with self._failures(path), contextlib.suppress(FileExistsError):
            at = self.root
            os.makedirs(at, exist_ok=True)
            for part in path.split("/"):
                at = os.path.join(at, part)
                if not os.path.isdir(at):
                    os.mkdir(at, 0o700)

    @contextlib.contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        """Raise what fails on the local disk as the store's own failures."""
        try:
            yield
        except FileExistsError as error:
            raise Exists(f"{self._at(path)}: exists") from error
        except OSError as error:
            raise StoreError(f"{self._at(path)}: {error.strerror}") from error

    def _at(self, path: str) -> str:
        return os.path.join(self.root, *path.split("/")) if path else self.root

    @staticmethod
    def _entry(name: str, found: os.stat_result) -> Entry:
        is_folder = (found.st_mode & 0o170000) == 0o040000
        return Entry(name, found.st_size, user_name(found.st_uid), found.st_mode & 0o7777, is_folder)


def close_quietly(opened: Any) -> None:
    """Close a stream that nothing is written to any more; a close that fails changes nothing."""
    try:
        opened.close()
    except OSError:
        return


def user_name(uid: int) -> str:
    """Return a user's name, or the number where there is no name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def check_owner(entry: Entry, owners: Sequence[str], where: str) -> None:
    """Refuse a path that belongs to another user or that others may write to."""
    if entry.owner not in owners:
        raise Unusable(f"{where}: owner is {entry.owner}, not {' or '.join(owners)}")
    if entry.mode & 0o022:
        raise Unusable(f"{where}: writable by other users (mode {entry.mode:o})")


def check_root(store: Store) -> None:
    """Refuse a store in whose folder any user may move the folders of others."""
    found = store.entry("")
    if found is not None and found.mode & 0o022 and not found.mode & 0o1000:
        raise Unusable(f"the store's folder: writable by other users (mode {found.mode:o}) and not sticky")


class Spool:
    """Bytes on the local disk, in a file without a name, up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.failed = ""
        self._file: IO[bytes] | None = None

    def add(self, data: bytes) -> None:
        """Keep bytes; from the first that cannot be kept on nothing is kept."""
        if self.failed:
            return
        try:
            if self.bytes + len(data) > self.limit_bytes:
                raise OSError(errno.EFBIG, f"more than {self.limit_bytes} bytes")
            if self._file is None:
                self._file = nameless_file(spool_folder())
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
            self.bytes += len(data)
        except OSError as error:
            self.failed = str(error.strerror)
            self.clear()

    def pieces(self, beat: Callable[[], None] = lambda: None) -> Iterator[bytes]:
        """Yield the bytes from the beginning."""
        at = 0
        while self._file is not None and at < self.bytes:
            piece = os.pread(self._file.fileno(), min(COPY_BYTES, self.bytes - at), at)
            if not piece:
                raise StoreError("the local spool file was truncated")
            at += len(piece)
            beat()
            yield piece

    def clear(self) -> None:
        """Drop all bytes; the limit counts anew."""
        file, self._file, self.bytes = self._file, None, 0
        if file is not None:
            close_quietly(file)


def nameless_file(folder: str) -> IO[bytes]:
    """Open a new local file without a name (importing ``tempfile`` takes 5 ms, 1/15 of a start)."""
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_EXCL | os.O_RDWR, 0o600)
    except OSError:  # a file system that has no such files
        path = os.path.join(folder, f"yarnctl-spool-{os.getpid()}-{time.monotonic_ns()}")
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.unlink(path)
    return open(handle, "w+b", buffering=0)


def spool_folder() -> str:
    """Return a local folder deleted with the container: TMPDIR as streaming sets it, else the current one."""
    named = os.environ.get("TMPDIR", "")
    return named if os.path.isdir(named) else "."


def write_all(handle: int, data: bytes) -> None:
    """Write every byte, however long it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
