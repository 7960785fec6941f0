"""The journal file: append-only, one record a line, every line chained to the one before.

What is appended is on disk when ``append`` returns. A reader accepts whole lines that this program could have
written, in their order: a torn or foreign line is bad input, a broken chain is a difference, each named by
file and line. A journal may continue over several files (``segments``); it is read as one.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, get_args

import msgspec

from yarnctl.deciding.records import FORMAT, Decision, Header, Record, State, decode
from yarnctl.errors import BadInput, Different
from yarnctl.journal.chain import END, ENVELOPE_MAX, Chain, body_of, last_link
from yarnctl.journal.fold import Fold
from yarnctl.journal.pruned import left_of
from yarnctl.journal.segments import (
    STATE,
    NotNow,
    last_begun,
    opened,
    require_in_place,
    set_aside,
    written_last,
)

_LOG = logging.getLogger("yarnctl.journal")

HEADER = b'{"type":"header",'
"""How the line of a header begins."""

JOURNAL = "journal.jsonl"
"""A journal's name in a state directory."""


class Line(NamedTuple):
    """One record with the number of its line (the journal's first is 1) and its own bytes, no envelope."""

    number: int
    record: Record
    raw: bytes


class Interrupted(BadInput):
    """The journal was not closed, or its last line is torn; all lines before are whole."""


REPAIRED = "free disk space, or repair the disk, and restart; the daemon continues this journal"
"""What to do about a journal that cannot be written."""
SET_ASIDE = (
    "it cannot be gone on from: look at it with `yarnctl replay`; to start all the same move the directory"
    " aside (explain and replay then know nothing from before, orders still open run out by themselves, and"
    " a queue that was lowered is named by `yarnctl check`)"
)
"""What to do about a journal that has been changed."""

# --- writing ----------------------------------------------------------------------------------


class JournalStream:
    """Writes records to a caller's file; implements :class:`yarnctl.loop.Journal`.

    Nothing is flushed. Use it in a ``with``: without an error it closes the *journal* (not the file)
    with its last line; after an error it does not, and readers report that.
    """

    def __init__(self, file: BinaryIO, chain: Chain | None = None) -> None:
        self.file = file
        self.chain = chain or Chain()
        self._begun_at = self.chain.number

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        self.file.write(b"".join(map(self.chain.seal, records)))

    def end(self) -> None:
        """Write the line that closes the journal, if anything was written at all."""
        if self.chain.number > self._begun_at:
            self.file.write(self.chain.seal_end())
            self._begun_at = self.chain.number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()


class JournalFile(JournalStream):
    """A journal on a file of its own, safe at each ``append``. Use it in a ``with``.

    ``durable``: wait for the disk at each append (a real cluster), not only for the operating
    system (an emulator's run). An existing journal is appended to. ``segment_bytes``: a file
    that has grown so large is set aside, and the journal continues in a new one (None: never). ``fold`` is
    the state after the journal so far, as it was rebuilt (None: nothing): a new file begins with it. Raises
    BadInput if the file ends in the middle of a line: after a crash, a person has to check it first.
    """

    def __init__(
        self,
        path: Path,
        *,
        durable: bool = True,
        segment_bytes: int | None = None,
        fold: Fold | None = None,
    ) -> None:
        self.path = path
        self.durable = durable
        self.segment_bytes = segment_bytes
        self._head_bytes = 0  # bytes that do not count: a file with nothing else is not full
        last = written_last(path)
        self.fold = Fold() if fold is None and segment_bytes is not None and last is None else fold
        if segment_bytes is not None and self.fold is None:
            raise ValueError(f"{path} exists already: only a fold of its records can begin a new file")
        chain = _chain_after(path)
        if self.fold is not None and last not in (None, path):
            try:
                fresh = self._next_file(chain)
            except NotNow as error:
                raise OSError(error.errno, f"{error.strerror}; {REPAIRED}", str(path)) from error
            super().__init__(fresh, chain)
        else:
            super().__init__(path.open("ab"), chain)

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order; return when they are safe. Raises OSError if they are not."""
        try:
            super().append(records)
            self._save()
        except OSError as error:
            raise self._unwritten(error) from error
        self.require_in_place()
        if self.fold is not None:
            for record in records:
                self.fold.apply(record)
        if self.segment_bytes is not None and self.file.tell() - self._head_bytes >= self.segment_bytes:
            self._go_on_in_a_new_file()

    def require_in_place(self) -> None:
        """Raise OSError if the file is not at its path any more: what is written to it would be lost."""
        require_in_place(self.path, self.file)

    def _go_on_in_a_new_file(self) -> None:
        chain = Chain(self.chain.number, self.chain.digest)
        try:
            fresh = self._next_file(chain)
        except NotNow as error:
            _LOG.warning(
                "the journal %s cannot be continued in a new file yet: %s", self.path, error.strerror
            )
            return
        full, self.file, self.chain = self.file, fresh, chain
        full.close()

    def _next_file(self, chain: Chain) -> BinaryIO:
        """Begin a new file with the state after all lines so far; ``chain`` is as after that first line."""
        assert self.fold is not None
        head = chain.seal(self.fold.state())
        fresh = set_aside(self.path, head, durable=self.durable)
        self._head_bytes = len(head)
        return fresh

    def _save(self) -> None:
        self.file.flush()
        if self.durable:
            os.fsync(self.file.fileno())

    def close(self) -> None:
        """Write the last line and close the file; raises OSError if they are not safe."""
        try:
            self.end()
            self._save()
            self.file.close()
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> OSError:
        return OSError(error.errno, f"{error.strerror or error}; {REPAIRED}", str(self.path))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            with contextlib.suppress(OSError):  # of what the failed append has left: ``error`` names the file
                self.file.close()


def _chain_after(path: Path) -> Chain:
    """Return the chain that the journal's next line continues."""
    last = written_last(path)
    return Chain() if last is None else chain_at(last)


def chain_at(last: Path) -> Chain:
    """Return the chain at the end of a file that is whole."""
    with opened(last) as file:
        size = file.seek(0, os.SEEK_END) if last.suffix != ".gz" else len(file.read())
        file.seek(max(0, size - ENVELOPE_MAX))
        tail = file.read()
    if tail and not tail.endswith(b"\n"):
        raise BadInput(str(last), "the last line is torn", "move the file away, or cut that line")
    chain = last_link(tail)
    if chain is None:
        raise BadInput(str(last), "the last line is of no yarnctl journal", "move the file away")
    return chain


# --- reading ----------------------------------------------------------------------------------


def read(path: Path, *, closed: bool = False) -> Iterator[Line]:
    """Yield the records of a journal, over all its files.

    Raises BadInput("file:line", ...) for what is no journal, Different where the chain is broken, Interrupted
    after the last whole line if the next is torn or, with ``closed``, if the journal was not closed; OSError.
    """
    path = journal_at(path)
    left = left_of(path)
    yield from read_files(path, left.files, left.chain, closed=closed)


def read_last(path: Path) -> Iterator[Line]:
    """Yield the records of the last file that begins with a state, and about one file's before it.

    All, if there is no such file. Raises as :func:`read` does; earlier files are not read.
    """
    path = journal_at(path)
    left = left_of(path)
    begin = last_begun(left.files)
    chain = chain_at(left.files[begin - 1]) if begin else left.chain
    yield from read_files(path, left.files[begin:], chain)


def read_files(path: Path, files: Sequence[Path], chain: Chain, *, closed: bool = False) -> Iterator[Line]:
    """Yield the records of these files, the first of which continues ``chain``.

    ``chain`` is that of the line that was yielded. Raises as :func:`read` does.
    """
    begun_at = chain.number
    ended = True  # the first line, and the next after a closing one, must be a header, or a state before one
    where = str(path)
    for where, raw in _lines(files):
        if not raw.endswith(b"\n"):
            raise Interrupted(where, "the line is torn (no newline at its end)")
        body = body_of(raw)
        is_end = body == END and chain.number > 0
        record = None if is_end else _record(raw, where)
        is_state = isinstance(record, State) and chain.number > 0
        if record is not None and ended and not (is_state or isinstance(record, Header)):
            raise BadInput(where, "a journal begins with a header")
        _check_link(raw, body, chain, where)
        ended = is_end or (ended and is_state and chain.number > begun_at + 1)
        if body is not None and record is not None:
            yield Line(chain.number, record, body)
    if chain.number == begun_at:
        raise BadInput(str(path), "the journal is empty")
    if closed and not ended:
        raise Interrupted(where, "the journal ends here without having been closed (cut, or being written)")


def journal_at(path: Path) -> Path:
    """Return the path of the journal: for a state directory, of the one in it."""
    return path / JOURNAL if path.is_dir() else path


def _lines(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield every line of the files with its place, "file:line"."""
    for segment in files:
        with opened(segment) as file:
            try:
                for number, raw in enumerate(file, start=1):
                    yield f"{segment}:{number}", raw
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise BadInput(str(segment), f"cannot be unpacked ({error})") from None


class _Format(msgspec.Struct):
    """The part of a header that is read first."""

    format: int


class _Kind(msgspec.Struct):
    """The part of a line that is read before its record."""

    type: str


KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Record))
WROTE_IT = "start the version that wrote it; nothing was changed"
"""What to do about another program's journal: to leave out what is not understood would be a guess."""


def _record(raw: bytes, where: str) -> Record:
    """Return a line's record, and check what no record's type can express."""
    try:
        if raw.startswith((HEADER, STATE)):
            _require_format(msgspec.json.decode(raw, type=_Format).format, where)
        record = decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _require_known_kind(raw, where)
        raise BadInput(where, f"no record of a yarnctl journal ({error})") from None
    _check(record, where)
    return record


def _require_known_kind(raw: bytes, where: str) -> None:
    """Refuse a line that is whole and of no kind that this program knows."""
    try:
        kind = msgspec.json.decode(raw, type=_Kind).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if body_of(raw) is not None and kind not in KINDS:
        raise BadInput(where, f"records of kind {kind!r} are not known to this yarnctl", WROTE_IT)


def _require_format(number: int, where: str) -> None:
    if number != FORMAT:
        problem = f"the journal has format {number}; this yarnctl reads format {FORMAT} only"
        raise BadInput(where, problem, "start the version that wrote it, or use another --state-dir")


def _check(record: Record, where: str) -> None:
    if isinstance(record, Header | State):
        _require_format(record.format, where)
    if isinstance(record, Decision):
        orders, groups, picks = len(record.orders), len(record.groups), len(record.picks)
        if not orders == groups == picks:
            raise BadInput(
                where, f"decision {record.number} has {orders} orders, {groups} groups, {picks} picks"
            )


def _check_link(raw: bytes, body: bytes | None, chain: Chain, where: str) -> None:
    """Advance the chain by one line, which must carry just this link."""
    if body is None:
        raise BadInput(where, "the line carries no link of the journal's chain")
    link = last_link(raw[-ENVELOPE_MAX:])
    sealed = chain.seal_body(body)
    if link is not None and link.number != chain.number:
        raise Different(
            f"{where}: the line says it is number {link.number}: lines were removed, added or "
            f"moved; {SET_ASIDE}"
        )
    if sealed != raw:
        raise Different(
            f"{where}: the chain breaks: this line, or one that was before it, is not what was written;"
            f" {SET_ASIDE}"
        )
