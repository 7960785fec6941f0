#!/bin/sh
""":"
# sh reads these lines, Python takes them for its docstring: without a Python of at least 3.8 the
# original reducer runs as if this file were not there. -I: files shipped with the job shadow nothing.
trap '' QUIT
for python in python3 python; do
    if "$python" -ISc 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        exec "$python" -IS "$0" "$@"
    fi
done
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do shift; done
if [ "$#" -gt 0 ]; then shift; fi
case "$1" in
*/*) ;;
*) if [ -f "./$1" ] && [ -x "./$1" ]; then first="./$1"; shift; set -- "$first" "$@"; fi ;;
esac
exec "$@"
":
"""

# The task runner: wraps an unmodified Hadoop streaming reducer so that it can be suspended on demand.
#
#     -reducer "sh yarnctl_task.py --restartable [--group-fields N] [options] -- <original reducer>"
#
# Law: output is byte for byte that of an undisturbed run. What cannot be proven resumable is left
# alone: the original reducer runs untouched, or a checkpoint is set aside and the work starts from
# zero, or the attempt fails with the reason. Never a short output, never a wrong one.
# One file, Python >= 3.8, standard library only. Importing it has no side effects.
#
# WHAT THE SUBMITTER PROMISES. --restartable: the reducer keeps no state from one key group to the
# next and prints nothing at its start or end that depends on other groups. --group-fields N: the
# reducer groups by the first N fields of the key (default: all of them). Without --restartable
# nothing is ever suspended. A reducer with state also gives --save CMD and --load CMD: while the file
# named by YARNCTL_SUSPENDING exists, the reducer must keep its state at its end of input and print no
# summary; then the standard output of CMD (run by sh) is kept with the checkpoint, and before the
# reducer is started again it is the standard input of the other CMD.
#
# A REDUCER THAT STOPS READING EARLY and ends with 0 is judged as Hadoop without the runner does. There
# a write that breaks while reduce() runs fails the attempt, and the last flush of a buffer of 128 KiB
# may break. So such an end counts only if all that Java must have written before that flush fits into
# what the reducer has read plus what the pipe held that Java made. Otherwise the attempt fails (70),
# although Java met no broken pipe, because the runner had read ahead. What a reducer with a larger buffer
# of its own might have read beyond that is not granted: there plain Hadoop is a race. A reducer that
# fails must not end with 0 (a shell pipeline: set -o pipefail): on its last lines Java sees no failure.
#
# KEYS are bytes; a line ends at \n only. The key is the first N fields by the map-output separator
# (stream.map.output.field.separator), ended by the reduce-input separator (stream.reduce.input.field
# .separator), both one byte. Short, empty and non-UTF-8 keys are keys like others. Keys must arrive in
# the order of their bytes (Hadoop's default comparator); from the first that does not, the attempt
# cannot be suspended, and if it has already skipped by a checkpoint it fails and sets that one aside.
#
# STORE (--store or YARNCTL_STORE; file:///folder or webhdfs://host:port[,host:port]/folder), per task:
#   <job>/<task>/gen-000003-<attempt>.part           raw output since the generation before
#   <job>/<task>/gen-000003-<attempt>.state          what --save printed, if declared
#   <job>/<task>/gen-000003-<attempt>.manifest.json  written last, by rename; names are never used twice
#   <job>/<task>/gen-000003-<attempt>.manifest.json.aside-<attempt>   why this one is not to be used
#   <job>/<task>/answer-<order>-<attempt>.json       {"schema":1,"order","attempt","answer","generation",
#       "reason"}; answer is unchanged (generation is still valid, 0 is "nothing done yet"), refused
#       (this attempt goes on and cannot be suspended, or not now), completing (the input is at its end)
# In HDFS folders have mode 750, files 640, and their parent's group. So the group of the store's folder
# may read besides the owner: it should be one that only the daemon is in.
# A request that led to a new generation has no answer file: the manifest's "order" is the answer.
#
# REQUESTS (--requests or YARNCTL_REQUESTS, default <store>/requests), written by yarnctl, read only:
#   <job>/<attempt>/<order>.request.json  {"schema":1,"order","attempt"[,"generation"][,"hold_ms"]}
#   <job>/<attempt>/<order>.withdrawn     empty: go on at once
# SIGQUIT is the doorbell: requests are read. Until it rang once they are also read every --poll-ms.
#
# SECURE CLUSTERS. Where the container was given delegation tokens (HADOOP_TOKEN_FILE_LOCATION), the one for
# the store's HDFS is sent with every call to it and identifies the user; no message contains it. A token is
# used only where its service is one of the store's hosts, or a name service that the job's configuration
# (dfs.nameservices, dfs.namenode.*-address.NAME.*) gives them, or where it is named by --token-service
# (YARNCTL_TOKEN_SERVICE: ha-hdfs:NAME or ADDRESS:PORT, as `hadoop dtutil print` shows it); where that does
# not settle it nothing is suspended. Over plain HTTP (webhdfs://) a token can be read on the way: it is sent
# there only with --token-over-http (YARNCTL_TOKEN_OVER_HTTP=1), and without that nothing is suspended.
# swebhdfs://host:port/folder is HTTPS; its authorities are in the PEM file --ca-file (YARNCTL_CA_FILE; it may
# come with -files), else those of the system.
#
# STATUS, a line that replaces the one before: yarnctl phase=P groups=N gen=N [done=B known=B all=0|1
# can=0|1 ran=MS base=B] [back=MS] [order=O] [why=TEXT] or yarnctl ckpt=K gen=N order=O ... where K is saved,
# unsure, unchanged, refused or completing.
# While it holds every line is phase=hold and names the order it holds for: of several the last.
# unsure: the answer to the manifest's RENAME was lost; the task holds and goes on as if it were there, for
# it may be. ran: how long this child has worked, from byte base on; back: how long a resumed attempt took
# until it was at new keys. why: why can=0, to the end. After " | " follows the reducer's own last status.
#
# MANIFEST, one JSON object, defined here and nowhere else (bytes are base64, counters' names are text
# with undecodable bytes as lone surrogates):
#   schema 1; tool; version; check (sha256 of the object without "check", keys sorted, no spaces)
#   job, task, attempt, container, past_containers [..], host, user, order, created_at_ms, took_ms
#   generation, previous_generation (0: none)
#   key_rule {fields, key_fields, map_separator, reduce_separator}; reducer [argv]
#   groups_done, keys_digest (sha256 over every distinct key followed by \n, in order), last_key
#   input_bytes (read up to the border), output_bytes; parts [{name, bytes, sha256}, ..] in order
#   state null or {name, bytes, sha256}; counters {group: {counter: total since the task's beginning}}
#
# BUILT from yarnctl/task_runner/runner by `python -m yarnctl.task_runner.build`: change that package and
# build again. In this file no change lasts.

from __future__ import annotations

import base64
import builtins
import collections
import contextlib
import errno
import hashlib
import json
import math
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from typing import (
    IO,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Mapping,
    NamedTuple,
    NoReturn,
    Sequence,
    TypeVar,
)

# --------------------------------------------------------------------------------------- protocol/key_rule.py
# Keys: what a key of a job is, where its groups begin, and their digest.
#
# Law: the same groups, digest and borders wherever the pieces of the input end, and under every Python from
# 3.8 on. Nothing is read or written here.


POSSESSIVE = sys.version_info >= (3, 11, 5)
"""Expressions that never give back what they took are a fifth faster where Python has them, and has them
right: 3.11.0 to 3.11.4 (Debian 12) match what they must not (CPython issue 106052)."""

LONG_LINE_BYTES = 1 << 18


class KeyRule:
    """Defines what a key is, and finds keys in whole lines.

    ``fields`` are the fields the reducer groups by, ``key_fields`` those Hadoop sorts by.
    """

    def __init__(
        self,
        fields: int = 1,
        map_separator: bytes = b"\t",
        reduce_separator: bytes = b"\t",
        key_fields: int = 0,
    ) -> None:
        self.fields = fields
        self.key_fields = key_fields or fields
        self.map_separator = map_separator
        self.reduce_separator = reduce_separator
        ends = b"".join(b"\\x%02x" % byte for byte in sorted(set(map_separator + reduce_separator)))
        hold = b"+" if POSSESSIVE else b""
        field = b"[^%s\\n]*%s" % (ends, hold)
        more = b"(?:%s%s){0,%d}%s" % (re.escape(map_separator), field, fields - 1, hold)
        key = field + (more if fields > 1 else b"")
        self._key = re.compile(key)
        self._line = re.compile(b"(%s)[^\\n]*%s\\n" % (key, hold))
        # With one field a key ends wherever a separator or the line does, so lines that repeat the
        # key of the line before can be passed over inside the expression: two to three times faster.
        self._group = re.compile(
            b"(%s)[^\\n]*%s\\n(?:\\1(?=[%s\\n])[^\\n]*%s\\n)*%s" % (key, hold, ends, hold, hold)
        )

    def keys(self, lines: bytes) -> list[bytes]:
        """Return the keys of whole lines in order; of equal neighbours at least the first."""
        return (self._group if self.fields == 1 else self._line).findall(lines)

    def lines(self, lines: bytes) -> Iterator[tuple[int, bytes]]:
        """Give each line's place and key."""
        for match in self._line.finditer(lines):
            yield match.start(), match.group(1)

    def key_of_start(self, data: bytes, final: bool = False) -> bytes | None:
        """Return the key of a line that has no end yet, None while the key may go on."""
        match = self._key.match(data)
        if match is None:
            return None
        return match.group() if final or match.end() < len(data) else None

    def all_of(self, key: bytes, lines: bytes) -> bool:
        """Say whether every line has this key, quickly for large groups; False may also mean "unknown"."""
        end = lines[len(key) : len(key) + 1]
        start = key + end
        last = lines.rfind(b"\n", 0, -1) + 1
        if not (lines.startswith(start) and lines.startswith(start, last)):
            return False
        if end == self.map_separator:  # a short key is another one when a field follows
            if key.count(end) < self.fields - 1:
                return False
        elif end != self.reduce_separator:
            return False
        return lines.count(b"\n") == lines.count(b"\n" + start) + 1

    def in_order(self, keys: list[bytes]) -> bool:
        """Say whether keys rise as Hadoop's default comparator leaves them: by their bytes.

        The first fields of a longer key are compared with the separator that ended them. A key with
        fewer fields may then seem out of order beside one that continues with a lower byte: not proven.
        """
        if self.fields < self.key_fields:
            keys = [key + self.map_separator for key in keys]
        return keys == sorted(keys)

    def as_json(self) -> dict[str, Any]:
        """Return its form in the manifest."""
        return {
            "fields": self.fields,
            "key_fields": self.key_fields,
            "map_separator": self.map_separator.hex(),
            "reduce_separator": self.reduce_separator.hex(),
        }


class Scanner:
    """Counts key groups and digests their keys while bytes go by, in pieces of any size.

    ``groups`` counts groups begun. Nothing is kept but the beginning of an unfinished line whose
    key is not known yet, so the cost is that of one regular expression over the input.
    """

    def __init__(self, rule: KeyRule) -> None:
        self.rule = rule
        self.groups = 0
        self.key: bytes | None = None
        self.bytes = 0
        self.sorted = True
        self._digest = hashlib.sha256()
        self._carry = b""
        self._in_line = False  # inside a line whose key is accounted for

    @property
    def settled(self) -> bool:
        """Say whether the key of every byte taken is known."""
        return not self._carry

    def digest(self) -> str:
        """Return the digest of the distinct keys so far."""
        return self._digest.hexdigest()

    def take(self, data: bytes) -> None:
        """Account for bytes that were handed on, wherever they end."""
        self.bytes += len(data)
        data = self._carry + data
        at, _ = self._advance(data, sys.maxsize, final=False)
        self._carry = data[at:]

    def take_groups(self, data: bytes, limit: int, final: bool = False) -> tuple[int, bool]:
        """Account for bytes as long as no more than ``limit`` groups are begun.

        Return how many bytes were taken and whether the next line begins group ``limit`` + 1;
        if not, show the rest again with more after it. ``final``: nothing comes after ``data``.
        """
        at, found = self._advance(data, limit, final)
        self.bytes += at
        return at, found

    def _advance(self, data: bytes, limit: int, final: bool) -> tuple[int, bool]:
        """Account for whole lines and long beginnings; return as :meth:`take_groups`."""
        at = self._end_of_line(data)
        end = data.rfind(b"\n") + 1
        if end > at:
            lines = data[at:end]
            keys = self._new_keys(lines)
            if self.groups + len(keys) > limit:
                return at + self._walk(lines, limit), True
            self._account(keys)
            at = end
        return self._take_start(data, at, limit, final) if at < len(data) else (at, False)

    def finish(self) -> None:
        """Account for a last line without an end."""
        if self._carry:
            self._account(self._new_keys(self._carry + b"\n"))
            self._carry = b""

    def _end_of_line(self, data: bytes) -> int:
        if not self._in_line:
            return 0
        end = data.find(b"\n")
        if end < 0:
            return len(data)
        self._in_line = False
        return end + 1

    def _take_start(self, data: bytes, at: int, limit: int, final: bool) -> tuple[int, bool]:
        rest = data[at:]
        key = self.rule.key_of_start(rest, final)
        if key is None:
            return at, False
        if key != self.key and self.groups >= limit:
            return at, True
        if final or len(rest) > LONG_LINE_BYTES:
            self._account([key])
            self._in_line = not final
            return len(data), False
        return at, False

    def _walk(self, lines: bytes, limit: int) -> int:
        for at, key in self.rule.lines(lines):
            if key != self.key:
                if self.groups >= limit:
                    return at
                self._account([key])
        raise AssertionError("no border where one was counted")

    def _new_keys(self, lines: bytes) -> list[bytes]:
        """Return the keys of groups that begin in these lines."""
        if self.key is not None and self.rule.all_of(self.key, lines):
            return []
        keys = self.rule.keys(lines)
        if self.rule.fields > 1:
            keys = [key for at, key in enumerate(keys) if not at or key != keys[at - 1]]
        if keys and keys[0] == self.key:
            del keys[0]
        return keys

    def _account(self, keys: list[bytes]) -> None:
        if keys and keys[0] == self.key:
            keys = keys[1:]
        if not keys:
            return
        if not self.rule.in_order(keys) or (
            self.key is not None and not self.rule.in_order([self.key, keys[0]])
        ):
            self.sorted = False
        keys.append(b"")
        self._digest.update(b"\n".join(keys))
        self.groups += len(keys) - 1
        self.key = keys[-2]


# ----------------------------------------------------------------------------------------- protocol/stores.py
# Stores: folders that keep checkpoints and requests; the one on a local disk.
#
# Law: the file of a name never changes: a file is created under a name that is new, or not at all. A path
# that belongs to another user, or that others may write to, is refused. The text of a failure names what
# failed and where, and holds no secret.


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
    """A folder that keeps checkpoints. Paths are relative to it, with slashes.

    The file of a name never changes: ``create`` refuses a name that is taken.
    """

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
    """Open a new local file without a name, for the owner alone, as ``tempfile`` does.

    Importing ``tempfile`` takes 5 ms of processor time, a fifteenth of a start.
    """
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


# ------------------------------------------------------------------------------------ protocol/token_files.py
# Delegation tokens: read from the container's token file, chosen for one HDFS.
#
# Law: a token is sent only to the HDFS that it is certainly meant for, over plain HTTP only where that was
# allowed, and no message contains it.


TOKEN_FILE_BYTES_MAX = 1 << 20
TOKENS_MAX = 1_000
TOKEN_KINDS = ("HDFS_DELEGATION_TOKEN", "SWEBHDFS delegation", "WEBHDFS delegation")


class Token(NamedTuple):
    """A delegation token. ``service``: ``address:port`` of a NameNode's RPC, or ``ha-hdfs:NAME``."""

    identifier: bytes
    password: bytes
    kind: str
    service: str

    def __repr__(self) -> str:
        """Return kind and service, which are no secret."""
        return f"Token({self.kind!r}, {self.service!r})"

    def for_url(self) -> str:
        """Return it as WebHDFS takes it: the bytes of Hadoop's Writable in base64 for URLs, unpadded."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        whole = b"".join(written_length(len(part)) + part for part in parts)
        return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def written_length(size: int) -> bytes:
    """Return a length as Hadoop's WritableUtils writes it."""
    if size <= 127:
        return bytes([size])
    data = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(data)]) + data


class Cursor:
    """Reads a token file from left to right; raises Unusable where it ends too soon."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def more(self) -> bool:
        """Say whether there is more."""
        return self.at < len(self.data)

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise Unusable("it is truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def length(self) -> int:
        """Return a length as Hadoop's Writables have it; a negative one is no length."""
        first = self.take(1)[0]
        if first <= 127:
            return first
        if first < 256 - 120 or first >= 256 - 112:
            raise Unusable("it contains a negative length")
        return int.from_bytes(self.take(256 - 112 - first), "big")

    def counted(self) -> bytes:
        """Return bytes with their length before them."""
        return self.take(self.length())

    def varint(self) -> int:
        """Return a whole number as Protocol Buffers have it."""
        value = 0
        for place in range(10):
            byte = self.take(1)[0]
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise Unusable("it contains an unterminated number")

    def fields(self) -> Iterator[tuple[int, bytes]]:
        """Yield a message's fields with bytes in them; others are passed over."""
        while self.more():
            number, kind = divmod(self.varint(), 8)
            if kind == 2:
                yield number, self.take(self.varint())
            elif kind == 0:
                self.varint()
            elif kind in (1, 5):
                self.take(8 if kind == 1 else 4)
            else:
                raise Unusable("it is not a Protocol Buffer")


def parse_tokens(data: bytes) -> list[Token]:
    """Return the tokens of a token storage file (HDTS, version 0 or 1), or raise Unusable."""
    if data[:4] != b"HDTS" or len(data) < 5:
        raise Unusable("it is not a token file")
    cursor = Cursor(data[5:])
    if data[4] == 0:
        found = written_tokens(cursor)
    elif data[4] == 1:
        found = message_tokens(Cursor(cursor.take(cursor.varint())))
    else:
        raise Unusable(f"its version {data[4]} is not supported (0 and 1 are)")
    try:
        return [Token(one[0], one[1], one[2].decode(), one[3].decode()) for one in found]
    except UnicodeDecodeError:
        raise Unusable("it contains a kind or service that is not text") from None


def written_tokens(cursor: Cursor) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """Return what version 0 holds: a count, then alias, identifier, password, kind, service of each."""
    count = cursor.length()
    if count > TOKENS_MAX:
        raise Unusable(f"it has more than {TOKENS_MAX} tokens")
    found = []
    for _ in range(count):
        cursor.counted()
        found.append((cursor.counted(), cursor.counted(), cursor.counted(), cursor.counted()))
    return found


def message_tokens(cursor: Cursor) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """Return what version 1 holds: messages in field 1, in each its token in field 2."""
    found = []
    for number, entry in cursor.fields():
        if number != 1:
            continue
        for inner, token in Cursor(entry).fields():
            if inner == 2:
                parts = dict(Cursor(token).fields())
                found.append((parts.get(1, b""), parts.get(2, b""), parts.get(3, b""), parts.get(4, b"")))
        if len(found) > TOKENS_MAX:
            raise Unusable(f"it has more than {TOKENS_MAX} tokens")
    return found


def read_tokens(path: str) -> list[Token]:
    """Return the tokens in a file, none where no file is named; raise Unusable with why it cannot be used."""
    if not path:
        return []
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would block
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unusable("it is not a file")
            data = file.read(TOKEN_FILE_BYTES_MAX + 1)
        if len(data) > TOKEN_FILE_BYTES_MAX:
            raise Unusable(f"it is larger than {TOKEN_FILE_BYTES_MAX} bytes")
        return parse_tokens(data)
    except (OSError, Unusable) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unusable(f"the container's token file (HADOOP_TOKEN_FILE_LOCATION): {why}") from None


def choose_token(
    tokens: Iterable[Token],
    hosts: Sequence[str],
    service: str = "",
    name_services: Mapping[str, frozenset[str]] | None = None,
) -> Token | None:
    """Return the token for the HDFS at ``hosts`` (``host:port`` of WebHDFS), None if there is none at all.

    ``name_services``: name -> hosts of its NameNodes. A token is sent only where it is certainly meant for:
    a single one must fit, too, or be named.
    """
    ours = sorted((each for each in tokens if each.kind in TOKEN_KINDS), key=lambda each: each.kind)
    if not ours:
        if service:
            raise Unusable(f"no HDFS token for {service} (--token-service)")
        return None
    if service:
        ours = [each for each in ours if each.service == service]
        if not ours:
            raise Unusable(f"no HDFS token for {service} (--token-service)")
        return ours[0]
    names = {address for host in hosts for address in addresses_of(host.rpartition(":")[0])}
    fitting = [each for each in ours if names & service_addresses(each.service, name_services or {})]
    if len({each.service for each in fitting if each.kind == fitting[0].kind}) != 1:
        told = ", ".join(sorted({each.service for each in ours}))
        where = ",".join(hosts)
        problem = f"HDFS tokens for {told}: the one for {where} cannot be determined"
        raise Unusable(f"{problem}; set --token-service to the store's")
    return fitting[0]


def service_addresses(service: str, name_services: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the names and addresses of a token's service."""
    kind, found, name = service.partition(":")
    if found and kind == "ha-hdfs":
        return {address for host in name_services.get(name, ()) for address in addresses_of(host)}
    return addresses_of(service.rpartition(":")[0])


def read_name_services(env: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the name services in a job's configuration, as streaming hands it down, with their hosts."""
    found = {}
    for name in filter(None, re.split(r"[,\s]+", env.get("dfs_nameservices", ""))):
        written = re.escape(re.sub(r"[^A-Za-z0-9]", "_", name))
        key = re.compile(rf"dfs_namenode_(rpc|http|https)_address_{written}_[A-Za-z0-9_]+")
        values = (value for each, value in env.items() if key.fullmatch(each))
        found[name] = frozenset(value.strip().rpartition(":")[0] for value in values) - {""}
    return found


def addresses_of(host: str) -> set[str]:
    """Return a host's name and addresses: a token's service has the one or the other."""
    import socket

    if not host:
        return set()
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return {host}
    return {host, *(str(each[4][0]) for each in found)}


class Secured(NamedTuple):
    """What makes calls secure: the container's token file, which token, and the authorities of HTTPS.

    ``over_http``: a token may also go over plain HTTP. ``name_services``: as in :func:`choose_token`.
    """

    token_file: str = ""
    token_service: str = ""
    ca_file: str = ""
    over_http: bool = False
    name_services: Mapping[str, frozenset[str]] | None = None

    def delegation(self, hosts: Sequence[str], https: bool) -> str:
        """Return the token for these NameNodes as it is in URLs, "" if there is none.

        Raise Unusable where it is not certain which, or where plain HTTP was not allowed.
        """
        token = choose_token(read_tokens(self.token_file), hosts, self.token_service, self.name_services)
        if token and not (https or self.over_http):
            raise Unusable(
                "webhdfs:// would send the delegation token over plain HTTP; use swebhdfs://, or set"
                " --token-over-http (YARNCTL_TOKEN_OVER_HTTP=1)"
            )
        return token.for_url() if token else ""


PLAIN = Secured()


# ---------------------------------------------------------------------------------- protocol/webhdfs_store.py
# The store in HDFS, over WebHDFS, and the choice of a store by its URL.
#
# Law: a change that was sent and not answered is not sent again, to no server: it raises Lost. Every exchange
# ends, however slowly the other side answers.


HTTP_TIMEOUT_S = 30.0

HTTP_WHOLE_S = 60.0
"""The longest that one exchange may take; a body has the time it needs at SLOWEST_BYTES_PER_S besides."""

SLOWEST_BYTES_PER_S = 32 << 10

FOLDER_MODE, FILE_MODE = "750", "640"
"""A new file in HDFS has its parent's group: that of the store's folder is the daemon's, and may read."""


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
        """Give a file its final name; HDFS never replaces by RENAME, it answers false.

        Raise Lost where the answer does not show whether it was done.
        """
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
        """Send a request to one NameNode after the other, until one that is active answers.

        Raise Lost for a change that was sent and not answered: it must not be sent to another one.
        """
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


PASS_ON = (b"StandbyException", b"RetriableException")
"""What a NameNode answers that is not, or not yet, the active one."""


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


# -------------------------------------------------------------------------------------- protocol/manifests.py
# Manifests and requests: the form of the files in a store, and their names.
#
# Law: they are defined here only. What is read is checked before it is returned: a file that was not written
# whole by a runner or by yarnctl raises Unusable with the reason.


SCHEMA = 1
VERSION = "0.1.0"
Counters = Dict[str, Dict[str, int]]


class TaskId(NamedTuple):
    """Which attempt of which task this is, in Hadoop's words."""

    job: str
    task: str
    attempt: str
    container: str = ""

    @property
    def folder(self) -> str:
        """Return where the task's checkpoints are."""
        return f"{self.job}/{self.task}"


class Part(NamedTuple):
    """One file of a checkpoint."""

    name: str
    bytes: int
    sha256: str


class Manifest(NamedTuple):
    """The content of a checkpoint's manifest, checked; ``raw`` is all of it."""

    generation: int
    previous_generation: int
    attempt: str
    groups_done: int
    keys_digest: str
    last_key: bytes
    output_bytes: int
    parts: tuple[Part, ...]
    state: Part | None
    counters: Counters
    past_containers: tuple[str, ...]
    order: str
    raw: dict[str, Any]


NO_SENSE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading JSON of another origin raises where it holds something else: 1e999, a thousand brackets."""

MANIFEST_BYTES_MAX = 1 << 20
"""A larger manifest is not read: the owner of a task's folder may have put anything there."""

MANIFEST_NAME = re.compile(r"gen-(\d{6,9})-([A-Za-z0-9_]+)\.manifest\.json")
GENERATION_NAME = re.compile(r"\.?gen-(\d{6,9})-")
ORDER = re.compile(r"[A-Za-z0-9._-]{1,120}")
ATTEMPT_NUMBER = re.compile(r"_(\d+)$")


def stem(generation: int, attempt: str) -> str:
    """Return how the names of a generation's files begin."""
    return f"gen-{generation:06d}-{attempt}"


def generation_of(name: str) -> int:
    """Return the generation that a file's name carries, 0 if none."""
    found = GENERATION_NAME.match(name)
    return int(found.group(1)) if found else 0


def attempt_number(attempt: str) -> int:
    """Return the number at the end of an attempt's id; numbers rise, with gaps."""
    found = ATTEMPT_NUMBER.search(attempt)
    return int(found.group(1)) if found else -1


def canonical(value: Any) -> bytes:
    """Return JSON in one spelling only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sealed(fields: dict[str, Any]) -> bytes:
    """Return a manifest's bytes with its check."""
    return canonical({**fields, "check": hashlib.sha256(canonical(fields)).hexdigest()})


def parse_manifest(data: bytes) -> Manifest:
    """Return a manifest, raise Unusable with the reason if it is torn or of another kind."""
    try:
        raw = json.loads(data)
        check = raw.pop("check")
        if raw["schema"] != SCHEMA:
            raise Unusable(f"schema {raw['schema']!r}, not {SCHEMA}")
        if hashlib.sha256(canonical(raw)).hexdigest() != check:
            raise Unusable("checksum mismatch: incomplete or changed")
        state = raw["state"]
        return Manifest(
            generation=int(raw["generation"]),
            previous_generation=int(raw.get("previous_generation", 0)),
            attempt=str(raw["attempt"]),
            groups_done=int(raw["groups_done"]),
            keys_digest=str(raw["keys_digest"]),
            last_key=base64.b64decode(raw["last_key"], validate=True),
            output_bytes=int(raw["output_bytes"]),
            parts=tuple(_part(part) for part in raw["parts"]),
            state=None if state is None else _part(state),
            counters={
                str(group): {str(name): int(amount) for name, amount in inside.items()}
                for group, inside in raw["counters"].items()
            },
            past_containers=tuple(map(str, raw["past_containers"])),
            order=str(raw["order"]),
            raw=raw,
        )
    except NO_SENSE as error:
        raise Unusable(
            f"incomplete or invalid manifest: {str(error)[:200] or type(error).__name__}"
        ) from error


def _part(raw: dict[str, Any]) -> Part:
    name = str(raw["name"])
    if "/" in name or name.startswith("."):
        raise Unusable(f"unexpected part {name!r}")
    return Part(name, int(raw["bytes"]), str(raw["sha256"]))


def read_manifest(store: Store, task: TaskId, name: str) -> Manifest:
    """Return one manifest of a task after every check that needs no other file."""
    named = MANIFEST_NAME.fullmatch(name)
    if named is None:
        raise Unusable(f"{name}: not the name of a manifest")
    manifest = parse_manifest(store.read_small(f"{task.folder}/{name}"))
    raw = manifest.raw
    if raw.get("job") != task.job or raw.get("task") != task.task:
        raise Unusable(f"belongs to another task: {raw.get('job')}/{raw.get('task')}")
    if manifest.generation != int(named.group(1)) or manifest.attempt != named.group(2):
        raise Unusable(f"contains generation {manifest.generation} of {manifest.attempt}, unlike its name")
    if not 0 <= manifest.previous_generation < manifest.generation:
        raise Unusable(f"generation {manifest.generation} out of order after {manifest.previous_generation}")
    if not manifest.attempt.startswith(task.task.replace("task_", "attempt_", 1) + "_"):
        raise Unusable(f"made by an attempt of another task: {manifest.attempt}")
    if sum(part.bytes for part in manifest.parts) != manifest.output_bytes or manifest.groups_done < 1:
        raise Unusable("its numbers are inconsistent")
    return manifest


def printable(words: Sequence[str]) -> list[str]:
    """Return words as JSON can keep them."""
    return [word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for word in words]


class Request(NamedTuple):
    """One order to this attempt: save and hold."""

    order: str
    hold_ms: int | None


def request_name(task: TaskId, order: str) -> str:
    """Return the path of a request for an attempt, below the folder of requests."""
    return f"{task.job}/{task.attempt}/{order}.request.json"


def read_request(data: bytes, name: str, task: TaskId) -> Request:
    """Return a request, raise Unusable if it is not for this attempt or cannot be understood."""
    try:
        raw = json.loads(data)
        if raw["schema"] != SCHEMA or raw["attempt"] != task.attempt:
            raise Unusable(f"{name}: is for {raw.get('attempt')}, schema {raw.get('schema')}")
        order = str(raw["order"])
        if f"{order}.request.json" != name or not ORDER.fullmatch(order):
            raise Unusable(f"{name}: contains order {order!r}")
        hold_ms = raw.get("hold_ms")
        return Request(order, None if hold_ms is None else max(0, int(hold_ms)))
    except NO_SENSE as error:
        raise Unusable(f"{name}: {str(error)[:200] or type(error).__name__}") from error


# ------------------------------------------------------------------------------------ protocol/generations.py
# Generations: the newest checkpoint that may be used is found, the next one is written.
#
# Law: a manifest is written last, by a rename, when all its files are there. A checkpoint counts only after
# every check; how much of a task's folder is read has a bound.


CHECKS_AFTER_LOSS = 3


class PerhapsSaved(Lost):
    """Whether the manifest is in the store is unknown; all the files that it names are there."""

    def __init__(self, text: str, manifest: Manifest) -> None:
        super().__init__(text)
        self.manifest = manifest


class Found(NamedTuple):
    """What the store holds for a task: the newest usable manifest, and the highest number in use."""

    manifest: Manifest | None
    highest_generation: int
    refused: tuple[str, ...]


ENTRIES_MAX = 10_000
MANIFESTS_MAX = 16


def find_checkpoint(
    store: Store, task: TaskId, rule: KeyRule, reducer: Sequence[str], owners: Sequence[str]
) -> Found:
    """Return the newest manifest this attempt may go on from, and why others were refused.

    The newest is the last generation of the last attempt. Older ones are read only while none can be
    used; raise Unusable where there is too much to read.
    """
    folder = store.entry(task.folder)
    if folder is None:
        return Found(None, 0, ())
    check_owner(folder, owners, task.folder)
    entries = {entry.name: entry for entry in store.list(task.folder)}
    if len(entries) > ENTRIES_MAX:
        raise Unusable(f"{task.folder}: more than {ENTRIES_MAX} files")
    highest = max(map(generation_of, entries), default=0)
    refused: list[str] = []
    names = newest_first(entries, task, refused)
    for name in names[:MANIFESTS_MAX]:
        try:
            check_owner(entries[name], owners, name)
            if entries[name].bytes > MANIFEST_BYTES_MAX:
                raise Unusable(f"larger than {MANIFEST_BYTES_MAX} bytes")
            manifest = read_manifest(store, task, name)
            check_fit(manifest, rule, reducer)
            check_files(manifest, entries, owners)
        except Unusable as why:
            refused.append(f"{name}: {why}")
            continue
        higher = [other for other in names if generation_of(other) > manifest.generation]
        refused += [f"{other}: generation out of order between attempts" for other in higher]
        return Found(manifest, highest, tuple(refused))
    if len(names) > MANIFESTS_MAX:
        refused.append(f"{task.folder}: {len(names) - MANIFESTS_MAX} older manifests were not read")
    return Found(None, highest, tuple(refused))


def newest_first(entries: Iterable[str], task: TaskId, refused: list[str]) -> list[str]:
    """Return the names of manifests that may count, the last attempt's first; note the others."""
    found = [match for match in map(MANIFEST_NAME.fullmatch, entries) if match]
    found.sort(key=lambda match: (attempt_number(match.group(2)), int(match.group(1))), reverse=True)
    aside = {name.partition(".aside-")[0] for name in entries if ".aside-" in name}
    names: list[str] = []
    for name, attempt in ((match.group(), match.group(2)) for match in found):
        if name in aside:
            refused.append(f"{name}: set aside by an earlier attempt")
        elif attempt_number(attempt) >= attempt_number(task.attempt):
            refused.append(f"{name}: made by an attempt that is not older than {task.attempt}")
        else:
            names.append(name)
    return names


def check_fit(manifest: Manifest, rule: KeyRule, reducer: Sequence[str]) -> None:
    """Refuse a manifest made under other rules or by another reducer."""
    if manifest.raw.get("key_rule") != rule.as_json():
        raise Unusable(f"made with another key rule: {manifest.raw.get('key_rule')}")
    if manifest.raw.get("reducer") != list(reducer):
        raise Unusable(f"made by another reducer: {manifest.raw.get('reducer')}")


def check_files(manifest: Manifest, entries: Mapping[str, Entry], owners: Sequence[str]) -> None:
    """Refuse a manifest whose files are missing, of another owner or of another length."""
    for part in manifest.parts + (() if manifest.state is None else (manifest.state,)):
        entry = entries.get(part.name)
        if entry is None or entry.bytes != part.bytes:
            raise Unusable(
                f"{part.name}: {'missing' if entry is None else f'{entry.bytes} bytes'}, not {part.bytes}"
            )
        check_owner(entry, owners, part.name)


def write_checkpoint(
    store: Store,
    task: TaskId,
    fields: dict[str, Any],
    output: Spool | None = None,
    state: bytes | None = None,
    beat: Callable[[], None] = lambda: None,
    last_check: Callable[[], None] = lambda: None,
) -> Manifest:
    """Write the files of one generation, the manifest last, and return it.

    ``last_check`` is called before the manifest is written and raises Unusable where it must not be.
    ``fields`` are the manifest's but for what is known only now: the new part (``parts`` holds the
    older ones), ``state`` and ``output_bytes``. Raise PerhapsSaved where the manifest may be there or not.
    """
    store.make_folder(task.folder)
    beginning = stem(fields["generation"], fields["attempt"])
    fields = {**fields, "parts": list(fields.get("parts", [])), "state": None}
    if output is not None and output.bytes:
        part = put_file(store, task.folder, beginning + ".part", output.bytes, lambda: output.pieces(beat))
        fields["parts"].append(part._asdict())
    if state is not None:
        kept = state
        fields["state"] = put_file(
            store, task.folder, beginning + ".state", len(kept), lambda: [kept]
        )._asdict()
    fields["output_bytes"] = sum(part["bytes"] for part in fields["parts"])
    data = sealed(fields)
    if len(data) > MANIFEST_BYTES_MAX:
        raise Unusable(f"its manifest of {len(data)} bytes exceeds the maximum of {MANIFEST_BYTES_MAX}")
    manifest = parse_manifest(data)
    name = f"{beginning}.manifest.json"
    last_check()
    written = put_file(store, task.folder, f".{name}.tmp", len(data), lambda: [data])
    try:
        publish(store, f"{task.folder}/{written.name}", f"{task.folder}/{name}", data)
    except Lost as error:
        raise PerhapsSaved(str(error), manifest) from error
    return manifest


def publish(store: Store, hidden: str, path: str, data: bytes) -> None:
    """Give a file its final name. Where the answer is lost, check: what is saved is never reported as lost.

    A request whose answer is lost may still be executed: only when its source has been moved away it
    surely cannot. Raise Lost if it stays unknown.
    """
    try:
        store.rename(hidden, path)
        return
    except StoreError as error:
        why = error
    for number in range(CHECKS_AFTER_LOSS):
        try:
            if holds(store, path, data):
                return
            if not isinstance(why, Lost):
                break
            store.rename(hidden, f"{hidden}.void{number}")
            break
        except StoreError:
            continue
    else:
        raise Lost(str(why))
    raise StoreError(str(why))


def holds(store: Store, path: str, data: bytes) -> bool:
    """Say whether a file is there with these bytes."""
    entry = store.entry(path)
    return entry is not None and entry.bytes == len(data) and b"".join(store.read(path)) == data


def put_file(
    store: Store,
    folder: str,
    name: str,
    size_bytes: int,
    pieces: Callable[[], Iterable[bytes]],
    tries: int = 3,
) -> Part:
    """Write a new file and return its description; a try that failed has used its name up."""
    for number in range(tries):
        digest = hashlib.sha256()

        def digested(digest: Any = digest) -> Iterator[bytes]:
            for piece in pieces():
                digest.update(piece)
                yield piece

        tried = name if not number else f"{name}.r{number}"
        try:
            store.create(f"{folder}/{tried}", size_bytes, digested())
            return Part(tried, size_bytes, digest.hexdigest())
        except StoreError:
            if number + 1 == tries:
                raise
    raise StoreError(f"{folder}/{name}: not written")


def set_aside(store: Store, task: TaskId, manifest: Manifest, why: str) -> None:
    """Write beside a checkpoint that it must not be used again; it stays where it is."""
    name = f"{stem(manifest.generation, manifest.attempt)}.manifest.json.aside-{task.attempt}"
    data = canonical({"schema": SCHEMA, "attempt": task.attempt, "reason": why})
    try:
        store.create(f"{task.folder}/{name}", len(data), [data])
    except Exists:
        return


# --------------------------------------------------------------------------------------- protocol/job_conf.py
# Settings: the options of the runner and the configuration of its job.
#
# Law: what is not understood, or what could change what a line, a key or an output is, raises Unusable: then
# nothing is ever suspended.


POLL_MIN_MS = 15_000
HOLD_MS = 30_000
STORE_WAIT_S = 120.0
SPOOL_LIMIT_MIB = 1024
TASK_TIMEOUT_MS = 600_000


class Settings(NamedTuple):
    """The settings from the command line and from the job's configuration."""

    rule: KeyRule
    save: str
    load: str
    store_url: str
    requests_url: str
    request_owners: tuple[str, ...]
    user: str
    hold_ms: int
    poll_ms: int
    spool_limit_bytes: int
    task_timeout_ms: int
    reporter_prefix: str
    suspend_at: tuple[int, ...]
    leave_when_saved: bool
    secured: Secured = PLAIN
    store_wait_s: float = 0.0


class Conf:
    """A job's configuration as streaming hands it down: names with ``_`` for what is no letter or digit."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env

    def get(self, name: str, default: str = "") -> str:
        """Return a value, the default where it is absent."""
        return self.env.get(re.sub(r"[^A-Za-z0-9]", "_", name), default)

    def number(self, name: str, default: int) -> int:
        """Return a whole number, the default where there is none."""
        try:
            return int(self.get(name, str(default)))
        except ValueError:
            return default


TEXT = "org.apache.hadoop.io.Text"

OUTPUT_FORMATS = (  # they write the lines and nothing beside them
    "org.apache.hadoop.mapred.TextOutputFormat",
    "org.apache.hadoop.mapred.SequenceFileOutputFormat",
    "org.apache.hadoop.mapred.lib.LazyOutputFormat",
)

ALLOWED = {
    "stream.reduce.input": ("text",),
    "stream.reduce.output": ("text",),
    "stream.reduce.input.writer.class": ("org.apache.hadoop.streaming.io.TextInputWriter",),
    "stream.reduce.output.reader.class": ("org.apache.hadoop.streaming.io.TextOutputReader",),
    "mapreduce.job.output.key.comparator.class": (TEXT + "$Comparator",),
    "mapred.output.key.comparator.class": (TEXT + "$Comparator",),
    "mapreduce.job.output.group.comparator.class": (),
    "mapred.output.value.groupfn.class": (),
    "mapreduce.map.output.key.class": (TEXT,),
    "mapred.output.format.class": OUTPUT_FORMATS,
    "mapred.output.committer.class": ("org.apache.hadoop.mapred.FileOutputCommitter",),
    "mapreduce.task.ismap": ("false",),
    "mapreduce.job.ubertask.enable": ("false",),
    "mapreduce.job.skiprecords": ("false",),
    "mapreduce.reduce.skip.maxgroups": ("0",),
    "mapred.skip.reduce.max.skip.groups": ("0",),
    "mapreduce.map.skip.maxrecords": ("0",),
    "stream.non.zero.exit.is.failure": ("true",),
}
"""What a setting may be if it is there at all; with anything else nothing is suspended."""

REQUIRED = {"mapreduce.reduce.speculative": "false"}  # what must be set, because Hadoop's default is another


def why_not(conf: Conf) -> str:
    """Return why this job's configuration forbids suspension, empty if it does not."""
    for name, values in ALLOWED.items():
        found = conf.get(name)
        if found and found not in values:
            return f"{name} is {found}"
    for name, wanted in REQUIRED.items():
        if conf.get(name) != wanted:
            return f"{name} is {conf.get(name) or 'not set'}, not {wanted}"
    for name in ("mapreduce.job.id", "mapreduce.task.id", "mapreduce.task.attempt.id"):
        if not re.fullmatch(r"[A-Za-z0-9_]+", conf.get(name)):
            return f"{name} is {conf.get(name) or 'not set'}: not started by Hadoop"
    return ""


def separator(conf: Conf, name: str) -> bytes:
    """Return a separator, which must be one byte."""
    value = conf.get(name, "\t").encode("utf-8", "surrogateescape")
    if len(value) != 1 or value == b"\n":
        raise Unusable(f"{name} is {value!r}, not one byte")
    return value


FLAGS = ("--restartable", "--token-over-http", "--exit-when-saved")
TEXTS = ("--save", "--load", "--store", "--requests", "--requests-owner", "--token-service", "--ca-file")
NUMBERS = {
    "--group-fields": 0,
    "--store-wait-s": -1.0,
    "--release-wait-ms": HOLD_MS,
    "--poll-ms": POLL_MIN_MS,
    "--spool-limit-mib": SPOOL_LIMIT_MIB,
}
OPTIONS: dict[str, bool | int | float | str] = {
    **dict.fromkeys(FLAGS, False),
    **dict.fromkeys(TEXTS, ""),
    **NUMBERS,
    "--suspend-at": "",
}
"""What may be before ``--``, with its default, whose type is that of its value; False: it has none.

``--suspend-at`` (groups after which to suspend) and ``--exit-when-saved`` (end instead of waiting) are for
tests and ``wrap --verify``.
"""
OLD_NAMES = {"--hold-ms": "--release-wait-ms", "--leave-when-saved": "--exit-when-saved"}
"""Old names of options: accepted for good, for they are in stored command lines of jobs."""


def read_options(words: Iterable[str]) -> dict[str, Any]:
    """Return the options' values as ``argparse`` reads them, which takes 4 ms of each start."""
    given: dict[str, Any] = dict(OPTIONS)
    rest = iter(words)
    for word in rest:
        name, joined, value = word.partition("=")
        option = OLD_NAMES.get(name, name)
        kind: Any = type(OPTIONS.get(option))
        if option not in OPTIONS or (kind is bool and joined):
            raise Unusable(f"unrecognized arguments: {word}")
        if kind is bool:
            given[option] = True
            continue
        if not joined:
            value = next(rest, "--")
            if re.match(r"-(?!\d+$|\d*\.\d+$)[^ ]+$", value):  # another option; a negative number is none
                raise Unusable(f"argument {name}: expected one argument")
        try:
            given[option] = kind(value)
        except ValueError:
            raise Unusable(f"argument {name}: invalid {kind.__name__} value: {value!r}") from None
    return given


def read_settings(arguments: Sequence[str], env: Mapping[str, str]) -> Settings:
    """Return the settings, or raise Unusable with why nothing can be suspended."""
    given = read_options(arguments)
    conf = Conf(env)
    if not given["--restartable"]:
        raise Unusable("--restartable is not set")
    if bool(given["--save"]) != bool(given["--load"]):
        raise Unusable("--save and --load require each other")
    reason = why_not(conf)
    if reason:
        raise Unusable(reason)
    store_url = given["--store"] or env.get("YARNCTL_STORE", "")
    if not store_url:
        raise Unusable("no store: set --store or YARNCTL_STORE")
    secured = Secured(
        env.get("HADOOP_TOKEN_FILE_LOCATION", ""),
        given["--token-service"] or env.get("YARNCTL_TOKEN_SERVICE", ""),
        given["--ca-file"] or env.get("YARNCTL_CA_FILE", ""),
        given["--token-over-http"] or env.get("YARNCTL_TOKEN_OVER_HTTP", "") == "1",
        read_name_services(env),
    )
    user = env.get("HADOOP_USER_NAME") or env.get("USER") or user_name(os.getuid())
    return Settings(
        rule=read_rule(conf, given["--group-fields"]),
        save=given["--save"],
        load=given["--load"],
        store_url=store_url,
        requests_url=given["--requests"]
        or env.get("YARNCTL_REQUESTS")
        or store_url.rstrip("/") + "/requests",
        request_owners=tuple(filter(None, (given["--requests-owner"] or env.get("YARNCTL_REQUESTS_OWNER"),))),
        user=user,
        hold_ms=max(0, given["--release-wait-ms"]),
        poll_ms=max(POLL_MIN_MS, given["--poll-ms"]) if given["--poll-ms"] > 0 else 0,
        spool_limit_bytes=max(0, given["--spool-limit-mib"]) << 20,
        task_timeout_ms=conf.number("mapreduce.task.timeout", TASK_TIMEOUT_MS) or TASK_TIMEOUT_MS,
        reporter_prefix=read_prefix(conf),
        suspend_at=read_cuts(given["--suspend-at"]),
        leave_when_saved=given["--exit-when-saved"],
        secured=secured,
        store_wait_s=read_wait_s(given["--store-wait-s"], env),
    )


def read_wait_s(given_s: float, env: Mapping[str, str]) -> float:
    """Return how long an attempt that may resume waits at its start for an unavailable store."""
    try:
        wait_s = given_s if given_s >= 0 else float(env.get("YARNCTL_STORE_WAIT_S", STORE_WAIT_S))
    except ValueError as error:
        raise Unusable(f"YARNCTL_STORE_WAIT_S: {error}") from error
    if not 0 <= wait_s < math.inf:
        raise Unusable(f"--store-wait-s {wait_s}: not a duration")
    return wait_s


def read_prefix(conf: Conf) -> str:
    """Return the prefix of lines to Hadoop, which Java must read as it is written here."""
    prefix = conf.get(REPORTER_PREFIX, "reporter:")
    if not prefix.isascii() or "\n" in prefix or "\r" in prefix:
        raise Unusable(f"{REPORTER_PREFIX} is {prefix!r}: not ASCII, or contains a line end")
    return prefix


def read_cuts(text: str) -> tuple[int, ...]:
    """Return group numbers of --suspend-at."""
    try:
        return tuple(sorted({int(word) for word in text.split(",") if word}))
    except ValueError as error:
        raise Unusable(f"--suspend-at: {error}") from error


KEY_FIELDS = "stream.num.map.output.key.fields"
SEPARATORS = ("stream.map.output.field.separator", "stream.reduce.input.field.separator")
REPORTER_PREFIX = "stream.stderr.reporter.prefix"
READ_SETTINGS = (KEY_FIELDS, *SEPARATORS, REPORTER_PREFIX)
"""What decides how the runner reads a reducer's lines: a test of the reducer needs the same values."""


def read_rule(conf: Conf, group_fields: int) -> KeyRule:
    """Return what a key is in this job."""
    key_fields = conf.number(KEY_FIELDS, 1)
    fields = group_fields or key_fields
    if not 1 <= fields <= key_fields:
        raise Unusable(f"--group-fields {fields}: keys have {key_fields} fields")
    map_separator, reduce_separator = (separator(conf, name) for name in SEPARATORS)
    return KeyRule(fields, map_separator, reduce_separator, key_fields)


# ------------------------------------------------------------------------------------------------- reports.py
# Standard error: whole lines to Hadoop and to the log, and the counters of the child.
#
# Law: lines and counters are what Hadoop's PipeMapRed and Java make of them. A counter that did not reach
# Hadoop fails the attempt; text for the log alone may be lost.


class Errors:
    """Standard error, shared by the child and the runner: whole lines only, counters noted.

    Lines, counters and status lines are what Hadoop's PipeMapRed reads as such. The child's status lines are
    not passed on: the task has one status, and the runner needs it. The last of them follows the runner's own
    text there, after BAR. ``doubt``: why it is not certain what Hadoop has counted, empty if it is.
    ``lost``: why counters did not reach Hadoop, empty if they did; such an attempt must not succeed.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix.encode()
        self.counters: Counters = {}
        self.said = ""
        self.news = False
        self.doubt = ""
        self.lost = ""
        self._lock = threading.Lock()
        self._torn = False  # a write failed, perhaps in the middle of a line
        self._at = "start"
        """Where the output is: at a line's ``start``, within the child's line (``open``), in one that the
        child will not continue with (``ended``), or at a start while the child's line does (``broken``)."""

    def note(self, text: str) -> None:
        """Write a line to the task's log."""
        self._line(f"yarnctl: {text}")

    def status(self, text: str) -> None:
        """Write a status line to the master; it also keeps a waiting task alive."""
        self.news = False
        ours = text.replace(BAR, " / ")
        self._line(f"{self.prefix.decode()}status:yarnctl {ours}{BAR + self.said if self.said else ''}")

    def count(self, group: str, name: str, amount: int) -> None:
        """Report a counter to the master."""
        line = f"{self.prefix.decode()}counter:{group},{name},{amount}"
        self._write(line.encode("utf-8", "surrogateescape") + b"\n")

    def pass_on(self, source: int) -> None:
        """Copy a child's standard error line by line until it ends."""
        carry, inside = b"", False  # inside: in a line whose beginning was passed on
        for data in iter(lambda: os.read(source, 1 << 16), b""):
            carry += data
            cut, reports = whole_lines(carry), not inside and self._reports(carry)
            if not cut:
                if len(carry) < (SMALL_FILE_BYTES if reports else LONG_LINE_BYTES):
                    continue
                if reports:
                    self.doubt = f"a line to Hadoop is longer than {SMALL_FILE_BYTES} bytes"
            size = cut or len(carry) - carry.endswith(b"\r")
            self._take(carry[:size], inside)
            carry, inside = carry[size:], not cut
        self._take(carry, inside)
        with self._lock:
            self._at = "ended" if self._at == "open" else "start" if self._at == "broken" else self._at

    def _reports(self, line: bytes) -> bool:
        """Say whether a line may be one to Hadoop, as far as it has come."""
        return line.startswith(self.prefix[: len(line)])

    def _take(self, lines: bytes, inside: bool) -> None:
        """Read whole lines (the first may be the rest of one) and pass on what is no status line."""
        if self.prefix not in lines:
            self._write(lines, own_line=False)
            return
        kept = []
        for line in lines.splitlines(keepends=True):  # of bytes: at \n, \r and \r\n only, as LineReader
            if inside or not self._read_report(line.rstrip(b"\r\n")):
                kept.append(line)
            inside = False
        self._write(b"".join(kept), own_line=False)

    def _read_report(self, line: bytes) -> bool:
        """Add a counter; keep a status line and return True for it."""
        for kind in (b"counter:", b"status:"):
            if line.startswith(self.prefix + kind):
                text = line[len(self.prefix) + len(kind) :].decode("utf-8", "surrogateescape").strip(TRIMMED)
                if kind == b"status:":
                    self.said = (
                        text[:STATUS_TEXT_MAX].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                    )
                    self.news = True
                    return True
                self._count(text)
        return False

    def _count(self, text: str) -> None:
        columns = text.rstrip(",").split(",")  # as Java: empty fields at the end are none
        if len(columns) != 3:
            return
        if any(digit in DOUBTFUL_DIGITS for digit in columns[2]):
            self.doubt = "a counter's number has digits that some versions of Java do not accept"
        amount = java_long(columns[2])
        if amount is not None:
            add_counter(self.counters, columns[0], columns[1], amount)

    def _line(self, text: str) -> None:
        self._write(" ".join(text.splitlines()).encode("utf-8", "backslashreplace") + b"\n")

    def _write(self, data: bytes, own_line: bool = True) -> None:
        if not data:
            return
        with self._lock:
            if self._at == "ended" or (self._at == "open" and own_line):
                data, self._at = b"\n" + data, "broken" if self._at == "open" else "start"
            elif self._at == "broken" and not own_line:
                # The rest of a broken line must not be read as a line to Hadoop of its own.
                data = (b"." if self.prefix.startswith(b" ") else b" ") + data
            if not own_line:
                self._at = "start" if data.endswith((b"\n", b"\r")) else "open"
            if self._torn:
                data, self._torn = b"\n" + data, False
            try:
                write_all(2, data)
            except BrokenPipeError:
                return  # the log is not read: no reason to stop the work
            except OSError as error:
                self._torn = True
                if self.prefix + b"counter:" in data:
                    self.lost = f"counters were not sent: {error.strerror}"


BAR = " | "  # separates the runner's own text from the child's in a status

STATUS_TEXT_MAX = 512  # the length of a status that Hadoop keeps (mapreduce.task.max.status.length)

TRIMMED = "".join(map(chr, range(33)))  # what Java's String.trim removes

ZEROS = (
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
    0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
)  # fmt: skip
"""Where ten digits of a script begin: what Java's Character.digit takes for a digit, among its chars."""

DIGITS = {chr(zero + value): value for zero in ZEROS for value in range(10)}

DOUBTFUL_DIGITS = frozenset(chr(zero + value) for zero in (0x0DE6, 0xA9F0) for value in range(10))
"""Digits since Unicode 7: Java 8 does not have them, later ones do."""


def whole_lines(data: bytes) -> int:
    """Return where the last line ends that is known to end: a return at the very end may be half an end."""
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(0, len(data) - 1))) + 1


def java_long(text: str) -> int | None:
    """Return what Java's Long.parseLong makes of a text, None where it raises."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(digit not in DIGITS for digit in digits):
        return None
    plain = "".join(str(DIGITS[digit]) for digit in digits).lstrip("0") or "0"
    if len(plain) > 19:
        return None
    value = -int(plain) if text[0] == "-" else int(plain)
    return value if -(1 << 63) <= value < 1 << 63 else None


def add_counter(counters: Counters, group: str, name: str, amount: int) -> None:
    """Add to one counter; sums wrap around as Java's do."""
    inside = counters.setdefault(group, {})
    inside[name] = (inside.get(name, 0) + amount + (1 << 63)) % (1 << 64) - (1 << 63)


# --------------------------------------------------------------------------------------------------- child.py
# The child: the original reducer as a process, the pipes to and from it, and what it writes.
#
# Law: what the child has started ends with this process. No code of Python runs between fork and exec. An end
# with status 0 counts only if all that the child wrote was passed on.


try:
    import fcntl
    import termios
except ImportError:  # not a POSIX system: the original reducer runs untouched
    fcntl = termios = None  # type: ignore[assignment]


BLOCK_BYTES = 1 << 18
PIPE_BYTES = 1 << 18
PIPE_USUAL_BYTES = 1 << 16
F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032  # Linux; Python names them from 3.10 on
PIPE_ATOMIC_BYTES = 4096  # a pipe that polls writable takes this much without blocking


class Leave(Exception):
    """The attempt ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Wakeup:
    """A pipe that ends every wait of the main thread; any thread may write to it."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)

    def wake(self) -> None:
        """End the main thread's wait; called from any thread."""
        try:
            os.write(self._writing, b"!")
        except OSError:  # full, so the wait ends; or it failed, and every wait has a time limit
            return

    def wait(self, handle: int, events: int, timeout_s: float | None) -> bool:
        """Wait until a handle is ready (-1: none), ``wake`` is called, or time is over; say if ready."""
        waiting = select.poll()
        waiting.register(self._reading, select.POLLIN)
        if handle >= 0:
            waiting.register(handle, events)
        found = dict(waiting.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))
        if self._reading in found:
            os.read(self._reading, 4096)  # only this thread reads it, so something is there
        return handle in found


class Child:
    """One run of the original reducer, in a process group of its own, and its two readers."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], output: Spool, errors: Errors, wakeup: Wakeup
    ) -> None:
        self.output = output
        self.errors = errors
        self.wakeup = wakeup
        self.broken = ""  # why what it wrote is not complete
        pipe = subprocess.PIPE
        self.process, self.lifeline = start_process(argv, env, pipe, pipe, pipe)
        assert self.process.stdin
        assert self.process.stdout
        self.input = self.process.stdin.fileno()
        try:
            os.set_blocking(self.input, False)
        except OSError:
            self.kill(signal.SIGKILL)
            raise
        widen_pipe(self.process.stdout.fileno())
        self.begins_at = 0  # where in the task's input
        self.began_s = 0.0
        self.fed_bytes = 0
        self.finished: list[str] = []
        for take, source in ((self._copy_output, self.process.stdout), (errors.pass_on, self.process.stderr)):
            threading.Thread(target=self._read, args=(take, source), daemon=True).start()

    def _read(self, copy: Callable[[int], None], source: IO[bytes]) -> None:
        try:
            copy(source.fileno())
        except Exception as error:  # whatever it is, this is not all: the attempt must not succeed
            what = "output" if source is self.process.stdout else "standard error"
            self.broken = f"the reducer's {what} was not forwarded: {error!r}"
            close_quietly(source)  # the child meets a broken pipe, as without a runner
        finally:
            self.finished.append(source.name)
            self.wakeup.wake()

    def _copy_output(self, source: int) -> None:
        for data in iter(lambda: os.read(source, BLOCK_BYTES), b""):
            write_all(1, data)
            self.output.add(data)

    @property
    def reading(self) -> bool:
        """Say whether output may still come."""
        return len(self.finished) < 2

    def close_input(self) -> None:
        """Close the child's input."""
        assert self.process.stdin
        self.process.stdin.close()

    def kill(self, number: int) -> None:
        """Send a signal to the child and all it started."""
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            return

    def status(self) -> int:
        """Wait for the end and return the status as a shell (and Java) counts it.

        Never 0 where something that the child wrote was not passed on.
        """
        code = self.process.wait()
        self.kill(signal.SIGKILL)  # processes that it left are in no group that YARN kills
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                close_quietly(stream)
        os.close(self.lifeline)
        lost = self.broken or self.errors.lost
        if lost and not code:
            self.errors.note(f"this attempt fails: {lost}")
            return EXIT_UNPROVABLE
        return code if code >= 0 else 128 - code


def start_process(
    argv: Sequence[str], env: Mapping[str, str], stdin: int, stdout: int, stderr: int | None
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program and return it with its lifeline: when that is closed the kernel ends its group.

    A session, so a process group, of its own: a JVM prints thread dumps to stdout on SIGQUIT, SIGQUIT ends
    Node. It ends with us, because YARN's kill no longer reaches it. No code of Python runs between fork and
    exec, where other threads might hold a lock: the lifeline's reading end is given to the child (as one more
    open file, never used) and set here so that the kernel sends SIGKILL to the group when the writing end,
    which only this process has, is closed. Until that is set the child has been given no input.
    """
    reading, writing = os.pipe()
    try:
        with quit_blocked():
            process = subprocess.Popen(
                list(argv),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=dict(env),
                start_new_session=True,
                pass_fds=(reading,),
            )
        try:
            signal_when_closed(reading, process.pid, signal.SIGKILL)
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process, writing
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)


def signal_when_closed(reading: int, group: int, number: int) -> None:
    """Have the kernel send a signal to a process group when a pipe's last writing end is closed."""
    fcntl.fcntl(reading, fcntl.F_SETOWN, -group)
    fcntl.fcntl(reading, fcntl.F_SETSIG, number)
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | fcntl.FASYNC)


def run_command(command: str, given: bytes | None = None) -> tuple[int, bytes]:
    """Run --save or --load by sh and return its status and, where nothing is given, what it printed.

    What it leaves running ends with this process: its lifeline is not closed before.
    """
    stdin, stdout = (subprocess.DEVNULL, subprocess.PIPE) if given is None else (subprocess.PIPE, 2)
    process, _ = start_process(["/bin/sh", "-c", command], os.environ, stdin, stdout, None)
    try:
        said, _ = process.communicate(given)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, said or b""


@contextlib.contextmanager
def quit_blocked() -> Iterator[None]:
    """Start programs inside: SIGQUIT, the doorbell of a whole group, is blocked there as Java has it blocked.

    That is until they have a session of their own: a shell unblocks it. Meanwhile the signal is delivered to
    another thread, so it is not lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def widen_pipe(handle: int) -> int:
    """Let a pipe hold more, so that both sides run longer; return what it holds (64 KiB if unknown)."""
    for command, argument in ((F_SETPIPE_SZ, PIPE_BYTES), (F_GETPIPE_SZ, 0)):
        try:
            return fcntl.fcntl(handle, command, argument)
        except OSError:  # not allowed, or no pipe
            continue
    return PIPE_USUAL_BYTES


def narrow_pipe(handle: int) -> bool:
    """Let an empty pipe hold one page: it is then writable exactly when it is empty; say if that worked.

    Linux counts a pipe's pages, not its bytes (pipe(7), F_SETPIPE_SZ). So a writer of less than a page
    at a time is woken when that was read, and need not poll.
    """
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    try:
        return fcntl.fcntl(handle, F_SETPIPE_SZ, page_bytes) == page_bytes
    except OSError:  # not allowed, or no pipe
        return False


def pipe_capacity(handle: int) -> int:
    """Return how many bytes a pipe holds, -1 where it is none; 64 KiB if that is unknown."""
    try:
        if not stat.S_ISFIFO(os.fstat(handle).st_mode):
            return -1
        return fcntl.fcntl(handle, F_GETPIPE_SZ, 0)
    except OSError:
        return PIPE_USUAL_BYTES


def check_pipes() -> None:
    """Refuse a system where a writer cannot find what was not read: nothing could be proven there."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b"12345")
        if unread_bytes(writing) != 5:
            raise Unusable("this system does not report how much of a pipe is unread")
        signal_when_closed(reading, os.getpgrp(), signal.SIGURG)  # a trial; the pipe is closed below
    finally:
        for end in (reading, writing):
            os.close(end)


def unread_bytes(handle: int) -> int:
    """Return how many bytes of a pipe are unread (Linux answers at either end)."""
    answer = fcntl.ioctl(handle, termios.FIONREAD, b"\0" * 8)
    return int.from_bytes(answer[:4], sys.byteorder)


def waiting_bytes(handle: int) -> int:
    """Return how many bytes may be read at once, 0 where that is unknown: for reports only."""
    try:
        return unread_bytes(handle)
    except OSError:
        return 0


def resolve(argv: Sequence[str]) -> list[str]:
    """Find the program as streaming does: the working folder first, then PATH."""
    name = argv[0]
    folders = [] if "/" in name else [".", *os.get_exec_path()]
    paths = (os.path.join(folder, name) for folder in folders)
    found = next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), name)
    return [found, *argv[1:]]


# ------------------------------------------------------------------------------------------------- attempt.py
# The attempt: what its parts share, whether it can still be suspended, and the status lines that report it.
#
# Law: only the main thread changes what is kept here; the watcher adds requests and withdrawals. A status
# line follows from it and from what the child has not read yet. A task whose child works is kept alive only
# while input or output moves. Of its input every byte is given once, in order; after a skip that was of no
# use the skipped bytes come again before the rest.


JAVA_BUFFER_BYTES = 1 << 17  # streaming's PipeMapRed.BUFFER_SIZE


class Sender:
    r"""How far Java must have got before its last flush, by what it has written so far.

    Java writes a line as key, separator, value and ``\n`` into a buffer; a piece that does not fit any
    more has the buffer flushed first, one as large as the buffer goes out alone. ``sent_bytes`` is where
    the buffer's content begins: all before it was written while reduce() ran. A long key is taken for a
    value. ``pipe_bytes`` is what Java's own pipe held at our start, -1 where it is no pipe.
    """

    def __init__(self, rule: KeyRule, pipe_bytes: int) -> None:
        self.pipe_bytes = pipe_bytes
        self.sent_bytes = 0
        self.seen_bytes = 0
        same = rule.fields == rule.key_fields
        self._rule = rule if same else KeyRule(rule.key_fields, rule.map_separator, rule.reduce_separator)
        self._line = b""  # what was read of a line that has no end yet
        self._in_piece = False  # inside one that is larger than the buffer

    def take(self, data: bytes) -> None:
        """Count what was read from Java; this takes no time but at the borders of its buffer."""
        base = self.seen_bytes
        self.seen_bytes += len(data)
        if self._in_piece:
            self._end_of_piece(data, base)
        while not self._in_piece and self.seen_bytes > self.sent_bytes + JAVA_BUFFER_BYTES:
            self._flush(data, base)
        start = data.rfind(b"\n") + 1
        line = data[start:] if start else self._line + data
        self._line = b"" if self._in_piece else line

    def within(self, position_bytes: int) -> bool:
        """Say whether Java could have written so far to a reducer without a runner that read up to here.

        The kernel frees a pipe by whole pages.
        """
        if self.pipe_bytes < 0:
            return True
        return self.sent_bytes <= position_bytes - position_bytes % PIPE_ATOMIC_BYTES + self.pipe_bytes

    def _flush(self, data: bytes, base: int) -> None:
        """Put ``sent_bytes`` at the last border between pieces that the full buffer reaches."""
        full = self.sent_bytes + JAVA_BUFFER_BYTES - base  # the first byte that does not fit
        start = data.rfind(b"\n", 0, full) + 1
        line = (b"" if start else self._line) + data[start : full + 1]
        at = base + full + 1 - len(line)
        key = self._rule.key_of_start(line)
        borders = [at] if key is None else [at, at + len(key), at + len(key) + 1]
        if line.endswith(b"\n"):
            borders.append(base + full)
        border = max(each for each in borders if each <= base + full)
        if border > self.sent_bytes:
            self.sent_bytes = border
        else:
            self._in_piece = True
            self._end_of_piece(data, base)

    def _end_of_piece(self, data: bytes, base: int) -> None:
        end = data.find(b"\n", max(0, self.sent_bytes - base))
        self._in_piece = end < 0
        self.sent_bytes = self.seen_bytes if end < 0 else base + end


class TaskInput:
    """What was read from Java and not yet taken: ``buffer`` from ``at`` on."""

    def __init__(self, sender: Sender, wakeup: Wakeup) -> None:
        self.sender = sender
        self.buffer = b""
        self.at = 0
        self.ended = False
        self.read_bytes = 0
        self._wakeup = wakeup
        self._again: Iterator[bytes] = iter(())

    @property
    def is_taken(self) -> bool:
        """Say whether all that was read was taken."""
        return self.at == len(self.buffer)

    def fill(self, wait_s: float | None) -> bool:
        """Read input if there is some, into the buffer; return whether anything changed."""
        piece = next(self._again, None)
        if piece is not None:
            self._append(piece)
            return True
        if self.ended or not self._wakeup.wait(0, select.POLLIN, wait_s):
            return False
        data = os.read(0, BLOCK_BYTES)
        self.read_bytes += len(data)
        self.ended = not data
        self.sender.take(data)
        self._append(data)
        return True

    def drop(self) -> None:
        """Drop what was read and not taken."""
        self.at = len(self.buffer)

    def begin_again(self, skipped: Spool) -> None:
        """Have the skipped input come again before the rest."""
        rest, self.buffer, self.at = self.buffer[self.at :], b"", 0
        self.ended = False  # if it was the end, the end will be read once more

        def again() -> Iterator[bytes]:
            yield from skipped.pieces()
            skipped.clear()
            if rest:
                yield rest

        self._again = again()

    def _append(self, data: bytes) -> None:
        self.buffer = self.buffer[self.at :] + data if self.at < len(self.buffer) else data
        self.at = 0


STATUS_EVERY_S = 2.0


class AttemptState:
    """What an attempt works with, and its state.

    ``phase`` is one of ``fetch``, ``skip``, ``replay``, ``run``, ``finish`` (a group), ``drain``, ``save``,
    ``hold``, ``end``; ``why_not`` is why it cannot be suspended any more, empty while it can.
    """

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], store: Store, errors: Errors
    ) -> None:
        self.settings = settings
        self.task = task
        self.words = printable(words)  # as given: the program's path differs between nodes
        self.store = store
        self.errors = errors
        self.wakeup = Wakeup()
        self.lines = StatusLines(self)
        self.scanner = Scanner(settings.rule)
        self.input = TaskInput(Sender(settings.rule, pipe_capacity(0)), self.wakeup)
        self.output = Spool(settings.spool_limit_bytes)
        self.phase = "start"
        self.why_not = ""
        self.child: Child | None = None
        self.manifest: Manifest | None = None  # the generation that is valid now
        self.highest_generation = 0
        self.reducer_state: bytes | None = None  # what --save gave at the border where the child begins
        self.past_counters: Counters = {}
        self.requests: collections.deque[Request] = collections.deque()  # they wait for the main thread
        self.withdrawn: set[str] = set()  # names of orders; both are added to by the watcher
        self.holders: dict[str, float] = {}  # orders that hold, and until when
        self.resumed = False
        self.back_ms = -1

    @property
    def generation(self) -> int:
        """Return the generation that is valid now, 0 if none."""
        return self.manifest.generation if self.manifest else 0

    def done_bytes(self) -> int:
        """Return how much input the child has read."""
        unread = waiting_bytes(self.child.input) if self.child and self.phase in ("run", "finish") else 0
        return self.scanner.bytes - unread

    # -- can it still be suspended? --------------------------------------------------------

    def account(self, data: bytes) -> None:
        """Count what the child was given, and check whether the attempt can still be suspended."""
        if self.why_not:
            self.scanner.bytes += len(data)
            return
        self.scanner.take(data)
        self.check_order()
        self.check_output()

    def check_order(self) -> None:
        """Refuse suspensions from the first key on that is out of order; nothing may rest on such groups."""
        if not self.scanner.sorted and not self.why_not:
            if self.resumed:
                raise InvalidCheckpoint(
                    "keys are not sorted by bytes, but a checkpoint depends on their order"
                )
            self.cannot("keys are not sorted by bytes")

    def check_output(self) -> bool:
        """Say whether the output is kept; without it the attempt cannot be suspended."""
        if self.output.failed:
            self.cannot(f"the output cannot be stored: {self.output.failed}")
        return not self.output.failed

    def check_counters(self) -> None:
        """Refuse suspensions where it is not certain what Hadoop has counted."""
        if self.errors.doubt and not self.why_not:
            self.cannot(self.errors.doubt)

    def cannot(self, why: str) -> None:
        """Only pass bytes through from now on."""
        self.why_not = why
        self.lines.report_next()  # at once
        self.output.limit_bytes = -1  # the thread that reads the output drops what is kept
        self.errors.note(f"can no longer be suspended: {why}")


class StatusLines:
    """Reports to the application master how far the attempt is; each line replaces the one before."""

    def __init__(self, attempt: AttemptState) -> None:
        self._attempt = attempt
        self._errors = attempt.errors
        self._next_s = 0.0
        self._last_position = (-1, -1)

    @property
    def every_s(self) -> float:
        """Return how often the position is reported; YARN must not take the task for a hung one."""
        return min(STATUS_EVERY_S, self._attempt.settings.task_timeout_ms / 6000)

    def report(self, keep_alive: bool) -> None:
        """Report the position if it is time.

        While the child works, only if the position has changed, so that a hung child times out.
        """
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        position = (self._attempt.done_bytes(), self._attempt.output.bytes)
        if not keep_alive and position == self._last_position and not self._errors.news:
            return
        self._last_position = position
        self._next_s = now_s + self.every_s
        self.report_position()

    def keep_alive(self) -> None:
        """Keep the task alive while bytes go to or come from the store."""
        self.report(keep_alive=True)

    def report_next(self) -> None:
        """Have the next call of ``report`` write a line, whatever was reported before."""
        self._next_s, self._last_position = 0.0, (-1, -1)

    def enter(self, phase: str, more: str = "") -> None:
        """Begin a phase and report it."""
        attempt = self._attempt
        attempt.phase = phase
        self._errors.status(
            f"phase={phase} groups={attempt.scanner.groups} gen={attempt.generation}{more}"
            f"{' can=0' if attempt.why_not else ''}{self._reason()}"
        )
        self._next_s = time.monotonic() + self.every_s

    def report_position(self) -> None:
        """Write the position: groups, bytes done by the child, bytes known of, whether that is all."""
        attempt, task_input = self._attempt, self._attempt.input
        known = task_input.read_bytes + (0 if task_input.ended else waiting_bytes(0))
        self._errors.status(
            f"phase={attempt.phase} groups={attempt.scanner.groups} done={attempt.done_bytes()} known={known}"
            f" all={int(task_input.ended)} gen={attempt.generation} can={int(not attempt.why_not)}"
            f"{self._speed()}{self.came_back()}{self.for_order()}{self._reason()}"
        )

    def report_waiting(self, why: str) -> None:
        """Report that the attempt waits for its store."""
        self._errors.status(f"phase=fetch groups=0 gen={self._attempt.generation} waits for its store: {why}")

    def came_back(self) -> str:
        """Return how long a resumed attempt took until it was at new keys."""
        return f" back={self._attempt.back_ms}" if self._attempt.back_ms >= 0 else ""

    def for_order(self) -> str:
        """Return which order holds: of several the last that came."""
        return f" order={list(self._attempt.holders)[-1]}" if self._attempt.holders else ""

    def _speed(self) -> str:
        """Return how long the child has worked and from which byte on: its speed follows from that."""
        child = self._attempt.child
        if child is None or self._attempt.phase not in ("run", "finish"):
            return ""
        ran_ms = int((time.monotonic() - child.began_s) * 1000)
        return f" ran={ran_ms} base={child.begins_at}"

    def _reason(self) -> str:
        """Return why this attempt cannot be suspended any more, to the end of the runner's words."""
        return f" why={self._attempt.why_not}" if self._attempt.why_not else ""


# -------------------------------------------------------------------------------------------------- orders.py
# Orders: read from the store by a thread of their own, answered and held for by the main thread.
#
# Law: an order that was withdrawn is neither begun nor answered. A store that does not answer blocks the
# watcher's thread, never the data. A hold ends when the time of each of its orders is over, or they were
# withdrawn.


class Watcher(threading.Thread):
    """Polls for requests when the doorbell rings, and every ``poll_ms`` until it rang once.

    The doorbell is a pipe that the interpreter writes signal numbers to, so it works whatever the main
    thread is doing.
    """

    def __init__(self, requests: Store, attempt: AttemptState) -> None:
        super().__init__(daemon=True, name="watcher")
        self.requests = requests
        self.attempt = attempt
        self.doorbell_r, self.doorbell_w = os.pipe()
        for end in (self.doorbell_r, self.doorbell_w):
            os.set_blocking(end, False)
        self.rang = False
        self.seen: set[str] = set()
        self.noted: set[str] = set()

    def listen(self) -> None:
        """Take SIGQUIT as the doorbell; a Java parent hands it down blocked."""
        signal.signal(signal.SIGQUIT, lambda *_: None)
        signal.set_wakeup_fd(self.doorbell_w, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGQUIT})

    def run(self) -> None:
        """Poll once at the start (a ring may have come too early), then when there is a cause."""
        doorbell = select.poll()
        doorbell.register(self.doorbell_r, select.POLLIN)
        again = not self.poll()
        while True:
            doorbell.poll(self._wait_ms(again))
            try:
                rung = os.read(self.doorbell_r, 4096)
            except OSError:  # nothing there, or it could not be read: the store is polled in any case
                rung = b""
            self.rang = self.rang or bytes((signal.SIGQUIT,)) in rung
            again = not self.poll()

    def poll(self) -> bool:
        """Hand new requests to the main thread; return False if the store did not answer."""
        try:
            self._poll()
        except Unusable as why:
            self._note_once(str(why))
        except Exception as why:  # whatever it is, this thread must go on
            self._note_once(str(why) if isinstance(why, StoreError) else repr(why))
            return False
        return True

    def _wait_ms(self, again: bool) -> float | None:
        spread_ratio = time.monotonic_ns() % 1000 / 1000  # so that a job's attempts do not poll all at once
        if again:
            return 1000 + spread_ratio * 1000
        poll_ms = self.attempt.settings.poll_ms
        return None if self.rang or not poll_ms else poll_ms * (1 + spread_ratio / 3)

    def _poll(self) -> None:
        task, owners = self.attempt.task, self.attempt.settings.request_owners
        folder = f"{task.job}/{task.attempt}"
        entries = self.requests.list(folder)
        if not entries:
            return
        above = self.requests.entry(folder)
        if above is not None:
            check_owner(above, owners, folder)
        for entry in entries:  # before the requests: a withdrawn order is not to be begun
            order, _, kind = entry.name.partition(".withdrawn")
            if not kind and order != entry.name and order not in self.attempt.withdrawn:
                check_owner(entry, owners, entry.name)
                self.attempt.withdrawn.add(order)
                self.attempt.wakeup.wake()
        for entry in entries:
            if entry.name.endswith(".request.json") and entry.name not in self.seen:
                self.seen.add(entry.name)
                self._deliver(folder, entry, owners)

    def _deliver(self, folder: str, entry: Entry, owners: Sequence[str]) -> None:
        try:
            check_owner(entry, owners, entry.name)
            data = self.requests.read_small(f"{folder}/{entry.name}")
            self.attempt.requests.append(read_request(data, entry.name, self.attempt.task))
            self.attempt.wakeup.wake()
        except Unusable as why:
            self._note_once(f"request rejected: {why}")
        except Exception:
            self.seen.discard(entry.name)
            raise

    def _note_once(self, line: str) -> None:
        if line not in self.noted:
            self.noted.add(line)
            self.attempt.errors.note(line)


class OrderAnswers:
    """Answers orders that lead to no new generation, and holds for those that ended in a valid one."""

    def __init__(self, attempt: AttemptState) -> None:
        self._attempt = attempt

    def is_withdrawn(self, request: Request) -> bool:
        """Say whether an order was withdrawn."""
        return request.order in self._attempt.withdrawn

    def answer(self, request: Request, kind: str, reason: str) -> None:
        """Write an answer that is no manifest."""
        attempt = self._attempt
        store, task = attempt.store, attempt.task
        attempt.errors.status(f"ckpt={kind} gen={attempt.generation} order={request.order} {reason}")
        fields = {"schema": SCHEMA, "order": request.order, "attempt": task.attempt}
        data = canonical({**fields, "answer": kind, "generation": attempt.generation, "reason": reason})
        name = f"{task.folder}/answer-{request.order}-{task.attempt}.json"
        try:
            store.make_folder(task.folder)
            store.create(f"{name}.tmp", len(data), [data])
            store.rename(f"{name}.tmp", name)
        except StoreError as error:
            attempt.errors.note(f"answer not written: {error}")

    def completing(self, why: str) -> None:
        """Answer every order that came too late."""
        while self._attempt.requests:
            self.answer(self._attempt.requests.popleft(), "completing", why)

    def unchanged(self, request: Request) -> None:
        """Answer that the valid generation holds all that was done, and hold."""
        self._still_valid(request)
        self.hold(request)

    def all_unchanged(self) -> None:
        """Answer and hold for every order that has come while no work is done."""
        while self._attempt.requests:
            self.unchanged(self._attempt.requests.popleft())

    def hold(self, request: Request) -> None:
        """Wait to be killed; go on when the time is over.

        An order that comes meanwhile has a hold of its own: it is over when each is over or withdrawn,
        and the status names the last that came and still holds.
        """
        attempt, lines = self._attempt, self._attempt.lines
        holders, before = attempt.holders, attempt.phase
        self._begin_hold(request)
        while True:
            self._add_late_holds()
            now_s, named = time.monotonic(), lines.for_order()
            for order, until_s in list(holders.items()):
                if now_s >= until_s or order in self._attempt.withdrawn:
                    del holders[order]
            if not holders:
                break
            if lines.for_order() != named:
                lines.enter("hold", lines.for_order())
            attempt.wakeup.wait(-1, 0, min(lines.every_s, min(holders.values()) - now_s))
            lines.keep_alive()
        if before in ("skip", "replay", "run"):
            lines.enter(before)

    def _add_late_holds(self) -> None:
        """Hold also for the orders that have come meanwhile."""
        while self._attempt.requests:
            late = self._attempt.requests.popleft()
            if not self.is_withdrawn(late):
                self._still_valid(late)
                self._begin_hold(late)

    def _still_valid(self, request: Request) -> None:
        self.answer(request, "unchanged", f"generation {self._attempt.generation} still valid")

    def _begin_hold(self, request: Request) -> None:
        """Hold for an order, and report it."""
        hold_ms = self._attempt.settings.hold_ms if request.hold_ms is None else request.hold_ms
        self._attempt.holders[request.order] = time.monotonic() + hold_ms / 1000
        self._attempt.lines.enter("hold", self._attempt.lines.for_order())


# ------------------------------------------------------------------------------------------------- feeding.py
# Feeding: a child is started, its input is handed to it, and how it ends is judged as Hadoop would judge it.
#
# Law: every byte goes to the child once, in order, and is counted. Only status 0 after reading everything is
# an end: a child that closed its input early ends the attempt, with status 0 only where plain Hadoop might
# have ended so, too.


READ_AHEAD_BYTES = 1 << 20
SLICE_MIN_BYTES = 64
SLICE_LEAST_BYTES = 16
SLICE_FAST_BYTES = PIPE_USUAL_BYTES
SLICE_QUICK_S = 0.05
SLICE_SLOW_S = 0.12
SLICE_GOAL_S = 0.1
SPEED_MEMORY_S = 4.0
NAP_MIN_S = 0.0001
NAP_MAX_S = 0.02


class ChildLife:
    """Starts the reducer, with --load after its state, and waits until it has read and written everything."""

    def __init__(
        self, attempt: AttemptState, argv: Sequence[str], env: Mapping[str, str], answers: OrderAnswers
    ) -> None:
        self._attempt = attempt
        self._argv = argv
        self._env = dict(env)
        self._answers = answers
        self._suspending_path = ""  # the file YARNCTL_SUSPENDING
        if attempt.settings.save:
            name = os.path.join(os.path.abspath(spool_folder()), f"yarnctl-suspending-{os.getpid()}")
            self._suspending_path = self._env["YARNCTL_SUSPENDING"] = name

    def start(self) -> None:
        """Start a child at the border where the input is now."""
        attempt = self._attempt
        self._load()
        self.unmark_suspending()
        try:
            attempt.child = Child(self._argv, self._env, attempt.output, attempt.errors, attempt.wakeup)
        except OSError as error:
            attempt.errors.note(f"{self._argv[0]}: {error.strerror}")
            raise Leave(127 if isinstance(error, FileNotFoundError) else 126) from error
        attempt.child.begins_at = attempt.scanner.bytes
        attempt.child.began_s = time.monotonic()

    def _load(self) -> None:
        attempt = self._attempt
        if attempt.settings.load and attempt.reducer_state is not None:
            status, _ = run_command(attempt.settings.load, attempt.reducer_state)
            if status:
                manifest = attempt.manifest
                is_saved = manifest is not None and manifest.groups_done == attempt.scanner.groups
                kind = InvalidCheckpoint if is_saved else Unprovable
                raise kind(f"--load ended with status {status}")

    def mark_suspending(self) -> None:
        """Make the file by which a reducer with state learns at its end of input that it is suspended."""
        if self._suspending_path:
            with open(self._suspending_path, "wb"):
                pass

    def unmark_suspending(self) -> None:
        """Remove it: a child that finds it at its end of input writes no summary."""
        if self._suspending_path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._suspending_path)

    def let_read(self, child: Child, late: str = "") -> None:
        """Wait until the child has read all that it was given; it may leave instead.

        Its end of input comes after that. So a child that has read everything and one that has left are told
        apart, whether the child itself reads or a program that it has started. ``late``: what is
        answered meanwhile to orders, if they are answered.
        """
        wakeup = self._attempt.wakeup
        began_s = time.monotonic()
        while unread_bytes(child.input):
            self._answer_late(late)
            nap_s = min(0.01, max(0.0002, (time.monotonic() - began_s) / 8))
            if wakeup.wait(child.input, select.POLLERR, nap_s) or not child.reading:
                self.child_left()
            self._attempt.lines.report(keep_alive=False)
        if wakeup.wait(child.input, select.POLLERR, 0):
            self.child_left()

    def read_out(self, child: Child, late: str = "") -> None:
        """Wait until the child has written everything; ``late``: as above."""
        while child.reading:
            self._answer_late(late)
            self._attempt.wakeup.wait(-1, 0, STATUS_EVERY_S)
            self._attempt.lines.report(keep_alive=False)

    def child_left(self) -> NoReturn:
        """End as the child did: it closed its input early, and Java must observe that as it would."""
        attempt, child = self._attempt, self._attempt.child
        assert child is not None
        position_bytes = child.begins_at + child.fed_bytes - unread_bytes(child.input)
        child.close_input()
        self.read_out(child, "the reducer closed its input")
        status = child.status()
        if not status and attempt.phase == "drain" and attempt.settings.save:
            raise Unprovable("the reducer closed its input while it was suspended, so its summary is lost")
        if not status and not self._could_leave(position_bytes):
            attempt.errors.note(
                f"the reducer ended with status 0 having read {position_bytes} bytes; plain Hadoop, with"
                f" {attempt.input.sender.sent_bytes} to write before its last flush, meets a broken pipe: it"
                " fails"
            )
            status = EXIT_UNPROVABLE
        raise Leave(status)

    def _could_leave(self, position_bytes: int) -> bool:
        """Say whether Java without a runner might have met no broken pipe but at its last flush.

        What Java still writes is read and dropped: whether it can end is the question.
        """
        task_input = self._attempt.input
        sender = task_input.sender
        while not task_input.ended and sender.pipe_bytes >= 0 and sender.within(position_bytes):
            self._answer_late("the reducer closed its input")
            task_input.drop()
            task_input.fill(STATUS_EVERY_S)
        return sender.within(position_bytes)

    def _answer_late(self, why: str) -> None:
        if why:
            self._answers.completing(why)


class Pacer:
    """Bounds by time how far the child is fed ahead of what it has done; no clock is read here.

    Two slices are under way at once: one in the child's own buffer, one waiting in the pipe. The time a
    waiting slice is unread is the time the child needs for the one before; slices grow while that is
    short and shrink when it is long. A child that waits for a full buffer takes many slices in no time
    and then none for long: so a slice is also no more than the child does in a tenth of a second by its
    mean speed of late. A child that takes a full pipe in no time is fed without any waiting.
    """

    def __init__(self) -> None:
        self.slice_bytes = SLICE_MIN_BYTES
        self.fast = False
        self.waiting_since_s = 0.0
        self.nap_s = NAP_MIN_S
        self.late_bytes = 0.0
        self.late_s = 0.0

    def taken(self, size_bytes: int, waited_s: float) -> None:
        """Adapt to a slice that was read after it had waited in the pipe."""
        kept = math.exp(-waited_s / SPEED_MEMORY_S)
        self.late_bytes = self.late_bytes * kept + size_bytes
        self.late_s = self.late_s * kept + waited_s
        if waited_s < SLICE_QUICK_S:
            if size_bytes >= self.slice_bytes // 2:
                self.slice_bytes = min(self.slice_bytes * 5 // 4 + 1, SLICE_FAST_BYTES)
        elif waited_s > SLICE_SLOW_S:
            self.slice_bytes = int(size_bytes * SLICE_GOAL_S / waited_s)
        mean_bytes = self.late_bytes * SLICE_GOAL_S / max(self.late_s, 1e-6)
        self.slice_bytes = max(SLICE_LEAST_BYTES, int(min(self.slice_bytes, mean_bytes)))
        self.fast = self.slice_bytes >= SLICE_FAST_BYTES

    def stalled(self, taken_bytes: int, waited_s: float) -> None:
        """Adapt to a child fed at full speed that left a full pipe unread for a while."""
        if waited_s > SLICE_SLOW_S:
            self.fast = False
            self.late_bytes, self.late_s = float(taken_bytes), waited_s
            share = SLICE_GOAL_S / waited_s
            self.slice_bytes = max(SLICE_MIN_BYTES, min(int(taken_bytes * share), SLICE_FAST_BYTES // 2))

    def napped(self, left_bytes: int, pipe_bytes: int) -> None:
        """Adapt to what was left in the pipe after a nap: about half is right."""
        if left_bytes > pipe_bytes * 5 // 8:
            self.nap_s = min(self.nap_s * 1.5, NAP_MAX_S)
        elif left_bytes < pipe_bytes * 3 // 8:
            self.nap_s = max(self.nap_s / 2, NAP_MIN_S)


class Feeder:
    """Hands the input to the child, in slices as its speed allows or all at once up to a border.

    ``_one_slot``: its pipe holds one slice, so that it is writable exactly when that was read.
    """

    def __init__(self, attempt: AttemptState, life: ChildLife) -> None:
        self._attempt = attempt
        self._life = life
        self._child: Child | None = None  # the one that is paced
        self._pacer = Pacer()
        self._pipe_bytes = PIPE_USUAL_BYTES
        self._one_slot = False
        self._last_slice_bytes = 0
        self._narrow_pipes_work = True

    # -- paced -----------------------------------------------------------------------------

    def feed_some(self) -> None:
        """Hand the child one slice, as large as its speed allows, and count what it took."""
        child, task_input, pacer = self._paced_child(), self._attempt.input, self._pacer
        if not pacer.fast and not self._pipe_is_empty(child):
            return
        size_bytes = BLOCK_BYTES if pacer.fast else self._slice_bytes()
        if not pacer.fast:
            self._fit_pipe(child, size_bytes)
        data = task_input.buffer[task_input.at : task_input.at + size_bytes]
        try:
            taken = os.write(child.input, data)
        except BlockingIOError:
            self._wait_for_room(child)
            return
        except BrokenPipeError:
            self._life.child_left()
        task_input.at += taken
        child.fed_bytes += taken
        self._attempt.account(data if taken == len(data) else data[:taken])
        if not pacer.fast:
            pacer.waiting_since_s = time.monotonic()
            self._last_slice_bytes = taken

    def _paced_child(self) -> Child:
        """Return the child; a new one has a pace of its own."""
        child = self._attempt.child
        assert child is not None
        if child is not self._child:
            self._child, self._pacer, self._pipe_bytes = child, Pacer(), PIPE_USUAL_BYTES
            self._one_slot, self._last_slice_bytes = False, 0
        return child

    def _slice_bytes(self) -> int:
        """Return a slice's size: whole lines if possible, at least one if it is not very long."""
        buffer, at, wanted = self._attempt.input.buffer, self._attempt.input.at, self._pacer.slice_bytes
        end = buffer.rfind(b"\n", at, at + wanted) + 1
        if not end:
            end = buffer.find(b"\n", at, at + SLICE_FAST_BYTES) + 1
        return end - at if end else max(wanted, PIPE_ATOMIC_BYTES)

    def _pipe_is_empty(self, child: Child) -> bool:
        """Say whether the slice before was read; if not wait a little (reading ahead)."""
        task_input = self._attempt.input
        waited_s = time.monotonic() - self._pacer.waiting_since_s
        if unread_bytes(child.input) == 0:
            self._slice_was_taken(child, waited_s)
            return True
        if len(task_input.buffer) - task_input.at < READ_AHEAD_BYTES and task_input.fill(0):
            return False
        if self._one_slot:
            self._wait_until_taken(child)
        elif self._attempt.wakeup.wait(child.input, select.POLLERR, min(0.01, max(0.0002, waited_s / 8))):
            self._life.child_left()
        return False

    def _slice_was_taken(self, child: Child, waited_s: float) -> None:
        if self._last_slice_bytes:
            self._pacer.taken(self._last_slice_bytes, waited_s)
            self._last_slice_bytes = 0
            if self._pacer.fast:
                self._widen(child)

    def _fit_pipe(self, child: Child, size_bytes: int) -> None:
        """Make the (empty) pipe narrow for small slices and wide for others, where that can be done."""
        small = size_bytes <= PIPE_ATOMIC_BYTES
        if small and not self._one_slot:
            self._one_slot = self._narrow_pipes_work and narrow_pipe(child.input)
        elif self._one_slot and not small:
            self._widen(child)

    def _widen(self, child: Child) -> None:
        self._one_slot = False
        self._pipe_bytes = widen_pipe(child.input)

    def _wait_until_taken(self, child: Child) -> None:
        """Wait until a narrow pipe is empty; where that is reported and not so, it is not relied on again."""
        if not self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            return
        if self._attempt.wakeup.wait(child.input, select.POLLERR, 0):
            self._life.child_left()
        if unread_bytes(child.input):
            self._one_slot = self._narrow_pipes_work = False

    def _wait_for_room(self, child: Child) -> None:
        """Wait until a child that is fed at full speed takes something."""
        wakeup = self._attempt.wakeup
        before_bytes, since_s = unread_bytes(child.input), time.monotonic()
        if before_bytes == 0 or wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            # The kernel wakes us for every page that is read; a pause lets the child empty half the pipe.
            wakeup.wait(-1, 0, self._pacer.nap_s)
        left_bytes = unread_bytes(child.input)
        self._pacer.napped(left_bytes, self._pipe_bytes)
        self._pacer.stalled(before_bytes - left_bytes, time.monotonic() - since_s)

    # -- up to a border --------------------------------------------------------------------

    def feed_all(self, data: bytes) -> None:
        """Hand the child every byte, without pacing: a group has to be finished."""
        child = self._attempt.child
        assert child is not None
        view = memoryview(data)
        while view:
            try:
                taken = os.write(child.input, view)
            except BlockingIOError:
                self._attempt.wakeup.wait(child.input, select.POLLOUT, STATUS_EVERY_S)
                self._attempt.lines.report(keep_alive=False)
                continue
            except BrokenPipeError:
                self._life.child_left()
            child.fed_bytes += taken
            view = view[taken:]

    def feed_groups(self, limit: int) -> bool:
        """Feed what is there of the first ``limit`` groups; say whether the next one was met."""
        attempt, task_input = self._attempt, self._attempt.input
        if not task_input.is_taken:
            rest = task_input.buffer[task_input.at :]
            taken, found = attempt.scanner.take_groups(rest, limit, final=task_input.ended)
            task_input.at += taken
            self.feed_all(rest[:taken])
            attempt.check_order()
            if found or attempt.why_not:
                return found and not attempt.why_not
        if not task_input.ended:
            task_input.fill(STATUS_EVERY_S)
        return False

    def finish_group(self) -> bool:
        """Feed the rest of the current key group; say whether a border was reached before the end."""
        attempt, task_input = self._attempt, self._attempt.input
        if not self._finish_line():
            return False
        limit = attempt.scanner.groups
        while not attempt.why_not:
            if self.feed_groups(limit):
                return True
            if task_input.ended and task_input.is_taken:
                return False
        return False

    def _finish_line(self) -> bool:
        """Feed up to where the key of every byte is known; return False at the end of the input."""
        attempt, task_input = self._attempt, self._attempt.input
        while not attempt.scanner.settled and not attempt.why_not:
            if task_input.is_taken:
                if task_input.ended:
                    return False
                task_input.fill(STATUS_EVERY_S)
                continue
            end = task_input.buffer.find(b"\n", task_input.at) + 1 or len(task_input.buffer)
            data = task_input.buffer[task_input.at : end]
            task_input.at = end
            self.feed_all(data)
            attempt.account(data)
        return True


# -------------------------------------------------------------------------------------------------- saving.py
# Saving: a running attempt is suspended at a border between groups, and its next generation is written.
#
# Law: nothing is saved that was not finished by the reducer, read out and counted, or beside which side files
# would be lost. A save that fails costs no earlier generation, and the work continues in place.


UPLOAD_BYTES_PER_S_GUESS = 20 << 20

CHECKS_FOR_PART, CHECKS_FOR_PART_S = 5, 0.1
"""With LazyOutputFormat Java makes the part when it has read the first output."""


class NotSeen(str):
    """Why an attempt is not suspended: the job's own output is not found, perhaps not yet."""

    __slots__ = ()


class WorkFolder:
    """The attempt's own folder below the job's output: Hadoop commits it, or drops it with a killed attempt.

    What is there beside the job's own part (side files of the reducer) would be lost with a suspended
    attempt, so such an attempt is never suspended. That this is the right folder is certain only if the
    job's own part is found in it: Hadoop makes it before the first line comes (with LazyOutputFormat: before
    the first output).
    """

    def __init__(self, conf: Conf, store: Store) -> None:
        self.url = conf.get("mapreduce.task.output.dir")
        partition = conf.number("mapreduce.task.partition", -1)
        packed = conf.get("mapreduce.output.fileoutputformat.compress") == "true"
        self.own = re.compile(rf"part-{partition:05d}" + (r"(\.[A-Za-z0-9_]{1,20})?" if packed else ""))
        self.store = self._open(store)

    def _open(self, store: Store) -> Store | None:
        """Return the folder as a store of its own; in HDFS it is read by the client of the checkpoints."""
        scheme, found, rest = self.url.partition("://")
        if not found:  # Hadoop writes local paths as file:/folder
            scheme, path = "file", self.url[5:] if self.url.startswith("file:") else self.url
        else:
            path = rest[rest.find("/") :] if "/" in rest else ""
        if not path.startswith("/"):
            return None
        if scheme == "file":
            return LocalStore(path)
        in_hdfs = scheme in ("hdfs", "webhdfs", "swebhdfs") and isinstance(store, WebHdfsStore)
        return store.at_root(path) if in_hdfs else None

    def why_not(self) -> str:
        """Return what forbids a suspension for now, empty if nothing; raise Unusable if it is for good."""
        if self.store is None:
            raise Unusable(f"the attempt's output folder cannot be listed: {self.url or 'no folder is set'}")
        try:
            names = [entry.name for entry in self.store.list("")]
        except StoreError as error:
            return f"the attempt's output folder cannot be listed: {error}"
        own = [name for name in names if self.own.fullmatch(name)]
        beside = [name for name in names if name not in own[:1] and name != f".{(own or names)[0]}.crc"]
        if beside:
            told = ", ".join(beside[:3]) + (", ..." if len(beside) > 3 else "")
            raise Unusable(f"side files would be lost: {told} in {self.url}")
        return (
            ""
            if own
            else NotSeen(f"the job's output file is missing in the attempt's output folder: {self.url}")
        )


class Suspending:
    """Serves orders while the child may be at work: refuses, waits, or suspends and continues in place.

    ``cuts`` are the group numbers of --suspend-at that are still to come.
    """

    def __init__(
        self, attempt: AttemptState, work: WorkFolder, feeder: Feeder, life: ChildLife, answers: OrderAnswers
    ) -> None:
        self.cuts = list(attempt.settings.suspend_at)
        self._attempt = attempt
        self._work = work
        self._feeder = feeder
        self._life = life
        self._answers = answers
        self._drain_s = 1.0
        self._upload_bytes_per_s = float(UPLOAD_BYTES_PER_S_GUESS)

    def feed_to_cut(self) -> None:
        """Feed up to the next group number of --suspend-at, and suspend there."""
        limit = max(self.cuts[0], self._attempt.scanner.groups)
        if self._feeder.feed_groups(limit):
            self.cuts.pop(0)
            self.serve(Request(f"cut-{limit}", 0))
        elif self._attempt.input.ended and self._attempt.input.is_taken:
            self.cuts.clear()

    def serve(self, request: Request) -> None:
        """Do what an order asks, in the phases in which the child may be at work."""
        if self._answers.is_withdrawn(request):
            return
        self._attempt.check_counters()
        if self._attempt.why_not:
            self._answers.answer(request, "refused", self._attempt.why_not)
        elif self._nothing_new():
            self._answers.unchanged(request)
        elif why := self._too_large() or self._why_not_here(seen=False):
            self._answers.answer(request, "refused", why)
        else:
            self._suspend(request)

    def _nothing_new(self) -> bool:
        """Say whether nothing was done since the valid generation.

        A child that was given nothing is not enough: after a save that failed there are groups before it.
        """
        attempt = self._attempt
        saved = attempt.manifest.groups_done if attempt.manifest else 0
        return attempt.child is None or (not attempt.child.fed_bytes and attempt.scanner.groups == saved)

    def _too_large(self) -> str:
        """Return why draining and uploading might take more than half of the time-out."""
        need_s = self._drain_s + self._attempt.output.bytes / self._upload_bytes_per_s
        limit_s = self._attempt.settings.task_timeout_ms / 2000
        return f"about {need_s:.0f} s to drain and upload, limit {limit_s:.0f} s" if need_s > limit_s else ""

    def _suspend(self, request: Request) -> None:
        """Finish the group, let the child end, save, hold, and go on in place unless killed."""
        attempt, started_s = self._attempt, time.monotonic()
        attempt.lines.enter("finish", f" order={request.order}")
        if not self._feeder.finish_group():
            why = attempt.why_not or "the input is at its end"
            self._answers.answer(request, "refused" if attempt.why_not else "completing", why)
        elif not self._answers.is_withdrawn(request):
            self._drain()
            self._drain_s = time.monotonic() - started_s
            attempt.reducer_state = self._taken_state(request)  # in any case: the next child begins with it
            if attempt.check_output():
                self._save(request, started_s)
            else:
                self._answers.answer(request, "refused", attempt.why_not)
            self._life.start()
        attempt.lines.enter("run")

    def _drain(self) -> None:
        """Close the child's input and read it out; only status 0 after reading everything is an end."""
        child = self._attempt.child
        assert child is not None
        self._attempt.lines.enter("drain")
        self._life.mark_suspending()
        self._life.let_read(child)
        child.close_input()
        self._life.read_out(child)
        status = child.status()
        if status:
            raise Leave(status)
        self._attempt.child = None

    def _taken_state(self, request: Request) -> bytes | None:
        """Return what --save prints for a drained child, None where it is not declared.

        Without it neither this attempt nor another can go on.
        """
        if not self._attempt.settings.save:
            return None
        try:
            status, state = run_command(self._attempt.settings.save)
            self._life.unmark_suspending()
            if status:
                raise Unusable(f"--save ended with status {status}")
            return state
        except Unusable as error:
            self._answers.answer(request, "refused", f"not saved: {error}")
            raise Unprovable("the reducer has written its state, but it could not be stored") from error

    # -- the next generation ---------------------------------------------------------------

    def _save(self, request: Request, started_s: float) -> None:
        """Write the next generation and wait; where the store fails the work continues."""
        attempt = self._attempt
        attempt.lines.enter("save")
        began_s = time.monotonic()
        manifest, word = self._write(request, began_s - started_s)
        if manifest is None:
            return
        took_s = max(time.monotonic() - began_s, 0.001)
        if attempt.output.bytes > 1 << 20:
            self._upload_bytes_per_s = attempt.output.bytes / took_s
        attempt.manifest = manifest
        attempt.highest_generation = manifest.generation
        attempt.output.clear()
        attempt.errors.status(
            f"ckpt={word} gen={manifest.generation} order={request.order} groups={manifest.groups_done}"
            f" bytes={manifest.output_bytes} ms={int((time.monotonic() - started_s) * 1000)}"
        )
        if attempt.settings.leave_when_saved:
            raise Leave(EXIT_SUSPENDED)
        self._answers.hold(request)

    def _write(self, request: Request, drain_s: float) -> tuple[Manifest | None, str]:
        """Return the new generation's manifest and the word for it, None where it was not saved.

        Where it is unknown whether the manifest is there the attempt continues as if it were: its files are
        there, so later generations may need them. It waits, because yarnctl may find the manifest and have
        it killed.
        """
        attempt = self._attempt
        try:
            manifest = write_checkpoint(
                attempt.store,
                attempt.task,
                self._fields(request, drain_s),
                attempt.output,
                attempt.reducer_state,
                attempt.lines.keep_alive,
                self._last_check,
            )
            return manifest, "saved"
        except PerhapsSaved as error:
            attempt.errors.note(f"possibly saved: {error}")
            return error.manifest, "unsure"
        except (StoreError, Unusable) as error:
            attempt.highest_generation += 1  # the name may be half taken
            self._answers.answer(request, "refused", f"not saved: {error}")
            return None, ""

    def _why_not_here(self, seen: bool = True) -> str:
        """Return what in the work folder forbids a suspension now, empty if nothing does.

        ``seen``: the job's own part must be found; before output was drained it may not be there yet.
        """
        try:
            for _ in range(CHECKS_FOR_PART if seen else 1):
                why = self._work.why_not()
                if not isinstance(why, NotSeen):
                    return why
                if seen:
                    self._attempt.wakeup.wait(-1, 0, CHECKS_FOR_PART_S)
                    self._attempt.lines.keep_alive()
            return why if seen else ""
        except Unusable as why:
            self._attempt.cannot(str(why))
            return self._attempt.why_not

    def _last_check(self) -> None:
        """Raise Unusable with what forbids this generation, noticed while its files were written."""
        self._attempt.check_counters()
        why = self._attempt.why_not or self._why_not_here()
        if why:
            raise Unusable(why)

    def _fields(self, request: Request, drain_s: float) -> dict[str, Any]:
        """Return the content of the next manifest."""
        attempt, task, last = self._attempt, self._attempt.task, self._attempt.manifest
        past = [*last.past_containers, str(last.raw["container"])] if last else []
        return {
            "schema": SCHEMA,
            "tool": "yarnctl",
            "version": VERSION,
            "job": task.job,
            "task": task.task,
            "attempt": task.attempt,
            "container": task.container,
            "past_containers": list(dict.fromkeys(name for name in past if name != task.container)),
            "host": os.uname().nodename,
            "user": attempt.settings.user,
            "order": request.order,
            "created_at_ms": int(time.time() * 1000),
            "took_ms": {"drain": int(drain_s * 1000)},
            "generation": max(attempt.highest_generation, attempt.generation) + 1,
            "previous_generation": attempt.generation,
            "key_rule": attempt.settings.rule.as_json(),
            "reducer": attempt.words,
            "groups_done": attempt.scanner.groups,
            "keys_digest": attempt.scanner.digest(),
            "last_key": base64.b64encode(attempt.scanner.key or b"").decode(),
            "input_bytes": attempt.scanner.bytes,
            "parts": [part._asdict() for part in last.parts] if last else [],
            "counters": self._all_counters(),
        }

    def _all_counters(self) -> Counters:
        """Return user counters since the task's beginning, over all attempts that count."""
        total: Counters = {}
        for counters in (self._attempt.past_counters, self._attempt.errors.counters):
            for group, inside in counters.items():
                for name, amount in inside.items():
                    add_counter(total, group, name, amount)
        return total


# ------------------------------------------------------------------------------------------------ resuming.py
# Resuming: an attempt continues from a checkpoint: what is done is skipped, what was written is replayed.
#
# Law: saved output and state are fetched and checked before anything is skipped, both or neither. Nothing is
# written before the skipped keys are those that were done; else the checkpoint is set aside and all input
# comes again.


WAIT_FIRST_S, WAIT_MOST_S = 0.5, 10.0
T = TypeVar("T")


def retried(
    asked: Callable[[], T],
    wait_s: float,
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Return what a call that changes nothing gives; raise StoreAway when ``wait_s`` is over.

    An unavailable store is tried again as HDFS's own client does: after growing pauses, for a bounded time.
    Meanwhile it is reported that the task waits. ``clock`` and ``pause`` are given by tests.
    """
    ends_s, pause_s = clock() + wait_s, WAIT_FIRST_S
    while True:
        try:
            return asked()
        except StoreAway as why:
            left_s = ends_s - clock()
            if left_s <= 0:
                raise
            report(str(why))
            pause(min(pause_s, left_s))
            pause_s = min(pause_s * 2, WAIT_MOST_S)


class Resuming:
    """Finds the newest usable checkpoint and continues from it."""

    def __init__(self, attempt: AttemptState, life: ChildLife, answers: OrderAnswers) -> None:
        self._attempt = attempt
        self._life = life
        self._answers = answers
        self._skipped = Spool(attempt.settings.spool_limit_bytes)

    # -- finding ---------------------------------------------------------------------------

    def open_store(self) -> None:
        """Make the task's folder, refuse what is not safe there, and find a checkpoint."""

        def opened() -> None:
            store, task = self._attempt.store, self._attempt.task
            check_root(store)
            store.make_folder(task.folder)
            for path in (task.job, task.folder):
                entry = store.entry(path)
                if entry is not None:
                    check_owner(entry, (store.user,), path)
            self._find_checkpoint()

        self._retried(opened)

    def _retried(self, asked: Callable[[], T]) -> T:
        """Return a call's result; an attempt that may resume waits for an unavailable store."""
        attempt = self._attempt
        may_resume = attempt_number(attempt.task.attempt) > 0
        wait_s = attempt.settings.store_wait_s if may_resume else 0.0
        return retried(asked, wait_s, attempt.lines.report_waiting)

    def _find_checkpoint(self) -> None:
        """Find the newest usable checkpoint; log why others are not used."""
        attempt = self._attempt
        owners = (attempt.store.user,)
        found = find_checkpoint(attempt.store, attempt.task, attempt.settings.rule, attempt.words, owners)
        for why in found.refused:
            attempt.errors.note(f"not used: {why}")
        attempt.manifest = found.manifest
        attempt.highest_generation = found.highest_generation

    def put_aside(self, manifest: Manifest, why: str) -> None:
        """Record in the log and in the store that a checkpoint must not be used."""
        attempt = self._attempt
        attempt.errors.note(f"generation {manifest.generation} is set aside: {why}")
        try:
            set_aside(attempt.store, attempt.task, manifest, why)
        except StoreError as error:
            attempt.errors.note(f"this could not be recorded: {error}")

    # -- going on --------------------------------------------------------------------------

    def resume(self, manifest: Manifest) -> bool:
        """Skip by a checkpoint and replay it; False: it is set aside and all input is there again."""
        attempt = self._attempt
        fetched = self._fetch(manifest)
        if fetched is None:
            return self.resume(attempt.manifest) if attempt.manifest is not None else False
        self._attempt.lines.enter("skip")
        why = self._skip(manifest)
        if why:
            self._give_up(manifest, why)
            return False
        self._skipped.clear()
        attempt.resumed = True
        output, attempt.reducer_state = fetched
        self._replay(manifest, output)
        self._life.start()
        return True

    def _give_up(self, manifest: Manifest, why: str) -> None:
        """Set a checkpoint aside whose groups are not those of the input, and begin from zero."""
        attempt = self._attempt
        self.put_aside(manifest, why)
        attempt.manifest = None
        attempt.scanner = Scanner(attempt.settings.rule)
        if self._skipped.failed:
            raise Unprovable(f"skipped input is needed again, but was not stored: {self._skipped.failed}")
        attempt.input.begin_again(self._skipped)

    def _fetch(self, manifest: Manifest) -> tuple[Spool, bytes | None] | None:
        """Fetch saved output and state, checked, before anything is skipped: both or neither."""
        attempt = self._attempt
        self._attempt.lines.enter("fetch")
        try:
            return self._retried(lambda: self._fetched(manifest))
        except StoreError as why:
            attempt.errors.note(f"generation {manifest.generation} is not used: {why}")
            attempt.manifest = None
        except Unusable as why:
            self.put_aside(manifest, str(why))
            attempt.manifest = None
            try:
                self._find_checkpoint()
            except (Unusable, StoreError) as error:
                attempt.errors.note(f"no other checkpoint is used: {error}")
        return None

    def _fetched(self, manifest: Manifest) -> tuple[Spool, bytes | None]:
        """Return the output and the state that a checkpoint holds."""
        saved = Spool(sys.maxsize)
        if (manifest.state is None) != (not self._attempt.settings.save):
            raise Unusable("made with another --save setting than this attempt's")
        for part in manifest.parts:
            for piece in self._checked_pieces(part):
                saved.add(piece)
                self._attempt.lines.keep_alive()
        state = None if manifest.state is None else b"".join(self._checked_pieces(manifest.state))
        if saved.failed:
            raise StoreError(f"the local disk: {saved.failed}")
        return saved, state

    def _checked_pieces(self, part: Part) -> Iterator[bytes]:
        """Yield a file's bytes, and raise Unusable after the last if they are not what was saved."""
        digest, size_bytes = hashlib.sha256(), 0
        for piece in self._attempt.store.read(f"{self._attempt.task.folder}/{part.name}"):
            digest.update(piece)
            size_bytes += len(piece)
            yield piece
        if (size_bytes, digest.hexdigest()) != (part.bytes, part.sha256):
            raise Unusable(f"{part.name}: content differs from what was saved")

    def _skip(self, manifest: Manifest) -> str:
        """Pass over the groups that are done; return what does not match, empty if all does."""
        scanner, task_input = self._attempt.scanner, self._attempt.input
        found = False
        while not found:
            self._answers.all_unchanged()
            rest = task_input.buffer[task_input.at :]
            taken, found = scanner.take_groups(rest, manifest.groups_done, final=task_input.ended)
            if taken:
                self._skipped.add(rest[:taken])
                task_input.at += taken
            self._attempt.lines.keep_alive()
            if not scanner.sorted:
                return "keys are not sorted by bytes"
            if found:
                break
            if task_input.ended:
                done = manifest.groups_done
                return f"the input ended after {scanner.groups} groups, but the checkpoint covers {done}"
            task_input.fill(STATUS_EVERY_S)
        here = (scanner.groups, scanner.digest(), scanner.key)
        there = (manifest.groups_done, manifest.keys_digest, manifest.last_key)
        return (
            ""
            if here == there
            else f"the first {manifest.groups_done} keys differ from those of the checkpoint"
        )

    def _replay(self, manifest: Manifest, saved: Spool) -> None:
        """Write counters and output of the attempts before; requests are answered in between."""
        attempt = self._attempt
        self._attempt.lines.enter("replay")
        attempt.past_counters = manifest.counters
        for group, inside in sorted(manifest.counters.items()):
            for name, amount in sorted(inside.items()):
                attempt.errors.count(group, name, amount)
        for piece in saved.pieces():
            view = memoryview(piece)
            while view:
                self._answers.all_unchanged()
                if attempt.wakeup.wait(1, select.POLLOUT, STATUS_EVERY_S):
                    try:
                        view = view[os.write(1, view[:PIPE_ATOMIC_BYTES]) :]
                    except BrokenPipeError:
                        raise Leave(EXIT_UNPROVABLE) from None
                self._attempt.lines.keep_alive()
        saved.clear()


# ---------------------------------------------------------------------------------------------------- main.py
# The program: ``[options] -- reducer...``; an attempt with its phases, or the original reducer untouched.
#
# Law: before anything was read or written every failure ends in the original reducer, as if this program were
# not there. After that one thread decides. Whatever fails, the output is byte for byte that of an undisturbed
# run, or the exit status is not 0.


class Runner:
    """One attempt: it resumes from a checkpoint if there is one, feeds its child, serves orders, and ends."""

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], env: Mapping[str, str]
    ) -> None:
        argv = resolve(words)
        store = open_store(settings.store_url, settings.user, settings.secured)
        self._requests = open_store(settings.requests_url, settings.user, settings.secured)
        settings = settings._replace(request_owners=settings.request_owners or (store.user,))
        errors = Errors(settings.reporter_prefix)
        self.attempt = attempt = AttemptState(settings, task, words, store, errors)
        answers = OrderAnswers(attempt)
        self._life = ChildLife(attempt, argv, env, answers)
        self._feeder = Feeder(attempt, self._life)
        work = WorkFolder(Conf(env), store)
        self._suspending = Suspending(attempt, work, self._feeder, self._life, answers)
        self.resuming = Resuming(attempt, self._life, answers)
        self._began_s = time.monotonic()

    def watcher(self) -> Watcher:
        """Return a thread, not yet started, that polls for orders."""
        return Watcher(self._requests, self.attempt)

    def run(self) -> int:
        """Run the attempt and return its exit status."""
        attempt, errors = self.attempt, self.attempt.errors
        try:
            return self._phases()
        except Leave as leaving:
            return leaving.status
        except Unprovable as why:
            errors.note(f"attempt aborted: {why}")
            if isinstance(why, InvalidCheckpoint) and attempt.manifest is not None:
                self.resuming.put_aside(attempt.manifest, str(why))
            return EXIT_UNPROVABLE
        except (StoreError, OSError) as why:
            errors.note(f"attempt aborted: {why}")
            return EXIT_UNPROVABLE
        finally:
            if attempt.child is not None:
                attempt.child.kill(signal.SIGKILL)
            if errors.news:
                attempt.lines.report_position()  # the reducer's last status is the task's last

    def _phases(self) -> int:
        """Go through the phases and return the child's exit status."""
        attempt = self.attempt
        if attempt.manifest is None or not self.resuming.resume(attempt.manifest):
            self._life.start()
        if attempt.resumed:
            attempt.back_ms = int((time.monotonic() - self._began_s) * 1000)
        attempt.lines.enter("run", attempt.lines.came_back())
        while self._step():
            pass
        return self._end()

    def _step(self) -> bool:
        """Do one small thing of the phase ``run``; return False at the end of the input."""
        task_input = self.attempt.input
        if self.attempt.requests:
            self._suspending.serve(self.attempt.requests.popleft())
        elif self._suspending.cuts and not self.attempt.why_not:
            self._suspending.feed_to_cut()
        elif not task_input.is_taken:
            self._feeder.feed_some()
        elif task_input.ended:
            return False
        else:
            task_input.fill(STATUS_EVERY_S)
        self.attempt.lines.report(keep_alive=False)
        return True

    def _end(self) -> int:
        """Let the child finish after the last line and return its status."""
        attempt, child, late = self.attempt, self.attempt.child, "the input is at its end"
        assert child is not None
        attempt.scanner.finish()
        attempt.check_order()
        attempt.lines.enter("end")
        self._life.let_read(child, late)
        child.close_input()
        self._life.read_out(child, late)
        return child.status()


def untouched(argv: Sequence[str], why: str) -> NoReturn:
    """Become the original reducer."""
    errors = Errors("reporter:")
    errors.note(f"the reducer runs without the task runner: {without_secrets(why)}")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as the shell above has set it
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        errors.note(f"{argv[0]}: {error.strerror}")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


def end_child_first(runner: Runner) -> None:
    """On SIGTERM end the child's group first: YARN's kill does not reach it, SIGKILL comes 250 ms later."""

    def end(number: int, _frame: Any) -> None:
        child = runner.attempt.child
        if child is not None:
            child.kill(number)
            for _ in range(20):
                if child.process.poll() is not None:
                    break
                time.sleep(0.005)
            child.kill(signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def prepare(arguments: Sequence[str], words: Sequence[str], env: Mapping[str, str]) -> Runner:
    """Return a runner that may suspend, or raise with why there is none; no input is touched."""
    settings = read_settings(arguments, env)
    if sys.platform == "win32" or not hasattr(select, "poll"):
        raise Unusable("this system does not support poll()")
    check_pipes()
    names = ("mapreduce.job.id", "mapreduce.task.id", "mapreduce.task.attempt.id")
    job, task, attempt = map(Conf(env).get, names)
    runner = Runner(settings, TaskId(job, task, attempt, env.get("CONTAINER_ID", "")), words, env)
    runner.resuming.open_store()
    return runner


def main(words: Sequence[str]) -> int:
    """Run ``[options] -- reducer...`` and return the exit status."""
    arguments = list(words)
    if "--" not in arguments or arguments[-1] == "--":
        Errors("reporter:").note("usage: yarnctl_task.py [options] -- reducer [arguments]")
        return 2
    border = arguments.index("--")
    reducer = arguments[border + 1 :]
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, a failed reducer would have status 0
        runner = prepare(arguments[:border], reducer, os.environ)
        watcher = runner.watcher()
        watcher.listen()
        watcher.start()
    except Exception as why:  # nothing was read or written yet: whatever it is, the job runs without us
        known = isinstance(why, (Unusable, StoreError, OSError))
        untouched(resolve(reducer), str(why) if known else repr(why))
    end_child_first(runner)
    widen_pipe(0)
    return runner.run()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # the watcher's thread may wait for a store; nothing is buffered here
