"""The folder of an experiment: what has been finished, complete or absent.

::

    manifest.json            whose results these are: identity, digest of the code, digests of the files
    SCHEME/result.json       an experiment: all that came of the scheme, kept to go on from and to draw
    SCHEME/journal.jsonl     every decision (schemes in which yarnctl decides)
    waiting.json             what each class waited, by cause
    results.json             the summary of all schemes
    run.json                 wall-clock, versions, command line: everything that may differ
    report.html, demo.svg    the same, drawn

Results in it are read and kept by ``store``.

Law: one run at a time writes here, and holds a lock while it does. A scheme's folder is made
under another name and renamed when it is complete, a file is written beside and renamed; so
whatever is here under its own name is whole, and a scheme that is not, byte for byte, what
the manifest lists is made again. A folder that contains anything else is refused, never emptied.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.virtual.schemes import SCHEMES
from yarnctl.errors import BadInput

RESULT, JOURNAL = "result.json", "journal.jsonl"
LOCK = ".yarn-emulator.lock"
PART = ".part-"
ROOT = Path(__file__).parents[3]

_TRIES = 100
UNREADABLE = (OSError, msgspec.DecodeError, ValueError, RecursionError)


class ResultsLayout(NamedTuple):
    """What may be in a folder: whole files, the manifest first, and folders of its own.

    ``kind`` is the manifest's word for it, ``kept`` what a failed run leaves for the next.
    """

    kind: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    kept: tuple[str, ...]

    def is_part(self, name: str) -> bool:
        """Say whether this is a temporary name of ours."""
        head, mark, number = name.rpartition(PART)
        ours = head.removeprefix(".") in (*self.files, *self.folders) and head.startswith(".")
        return bool(mark) and ours and re.fullmatch("[0-9]{1,10}", number) is not None


EXPERIMENT = ResultsLayout(
    kind="yarn-emulator results",
    files=("manifest.json", "results.json", "waiting.json", "run.json", "report.html", "demo.svg"),
    folders=tuple(SCHEMES),
    kept=tuple(SCHEMES),
)


class FileFact(msgspec.Struct, frozen=True):
    """What a kept file was when it was written."""

    size_bytes: int
    sha256: str


class FolderManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a folder's results. ``code`` is a digest of the program that made them.

    ``files`` has every finished scheme's files: what differs from it is damaged.
    """

    kind: str
    identity: str
    code: str
    files: dict[str, dict[str, FileFact]] = {}


def code_digest() -> str:
    """Return a digest of the program's own sources: results of other sources are made again."""
    digest = hashlib.sha256()
    for package in ("emulator", "yarnctl"):
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def encoded(value: object) -> bytes:
    """Return a value as indented JSON with a newline at its end; the same bytes every time."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def unwritable(path: Path, error: OSError) -> BadInput:
    """Report that a place cannot be written, with the user's name for it: no temporary name."""
    return BadInput(str(path), f"cannot be written: {error.strerror or error}")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises BadInput if it cannot be written."""
    part = path.with_name(f".{path.name}{PART}{os.getpid()}")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


class Folder:
    """A folder of results of one identity; from ``open`` to ``close`` no other process writes into it."""

    def __init__(self, path: Path, identity: str, layout: ResultsLayout = EXPERIMENT) -> None:
        self.path = path
        self.identity = identity
        self.layout = layout
        self.made: list[Path] = []
        self.files: dict[str, dict[str, FileFact]] = {}
        self.code = ""
        self._lock: int | None = None

    @contextlib.contextmanager
    def opened(self, replace: bool = False) -> Iterator[None]:
        """Lock the folder and make it ready for the block; one that fails leaves what is finished.

        Results of another scenario are replaced only if that is requested; results of the same scenario
        that other sources made are always replaced.
        """
        self.require_ours()
        self._take_lock()
        try:
            self._make_ready(replace)
            try:
                yield
            except BaseException:
                self._abandon()
                raise
        finally:
            self._unlock()

    def require_ours(self) -> None:
        """Raise BadInput if the place holds anything but results. Changes nothing."""
        if "\0" in str(self.path):
            raise BadInput(f"--out {self.path}", "the name has a NUL character in it", "give a folder")
        if not os.path.lexists(self.path):
            self._require_place()
            return
        if not self.path.is_dir():
            raise BadInput(f"--out {self.path}", "is a file", "give a folder")
        names = sorted(name for name in self._names() if name != LOCK and not self.layout.is_part(name))
        ours = (*self.layout.files, *self.layout.folders)
        foreign = [name for name in names if name not in ours]
        if foreign or (names and self._manifest() is None):
            raise BadInput(
                f"--out {self.path}",
                f"holds something that is not results of this program: {(foreign or names)[0]}",
                "give a folder that is empty or does not exist",
            )

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.path)
        except OSError as error:
            raise BadInput(f"--out {self.path}", f"cannot be read: {error.strerror}") from None

    def _require_place(self) -> None:
        above = next((parent for parent in self.path.absolute().parents if os.path.lexists(parent)), None)
        if above is not None and not above.is_dir():
            raise BadInput(f"--out {self.path}", f"{above} is not a folder", "give another place")

    def _manifest(self) -> FolderManifest | None:
        try:
            found = msgspec.json.decode((self.path / "manifest.json").read_bytes(), type=FolderManifest)
        except UNREADABLE:
            return None
        return found if found.kind == self.layout.kind else None

    def _make_ready(self, replace: bool) -> None:
        self.require_ours()  # again: now no other process changes it
        found, self.code = self._manifest(), code_digest()
        if found is not None and found.identity != self.identity and not replace:
            raise BadInput(
                f"--out {self.path}",
                f"holds the results of another scenario ({found.identity[:12]}, not {self.identity[:12]})",
                "give another folder, or remove this one",
            )
        try:
            if found is not None and (found.identity, found.code) == (self.identity, self.code):
                self.files = dict(found.files)
            else:
                self._clear()
                self._write_manifest()
            self._sweep()
        except OSError as error:
            raise unwritable(self.path, error) from None

    def _write_manifest(self) -> None:
        files = {name: self.files[name] for name in self.layout.folders if name in self.files}
        ours = FolderManifest(kind=self.layout.kind, identity=self.identity, code=self.code, files=files)
        write_whole(self.path / "manifest.json", encoded(ours))

    def _make(self) -> None:
        missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--out {self.path}", f"cannot be made: {error.strerror}") from None
        self.made = self.made or missing

    def _clear(self) -> None:
        """Remove earlier results, the manifest last, so that a half-cleared folder is still ours."""
        for name in self.layout.folders:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in reversed(self.layout.files):
            (self.path / name).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what an interrupted run has left under a temporary name of ours."""
        for entry in self.path.iterdir():
            if self.layout.is_part(entry.name):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)

    def _take_lock(self) -> None:
        """Make the folder and lock it. Raises BadInput if another run holds the lock."""
        for _ in range(_TRIES):
            self._make()
            try:
                file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except FileNotFoundError:
                continue  # the process that had locked it has just removed the folder
            except OSError as error:
                raise unwritable(self.path, error) from None
            if self._locked(file):
                self._lock = file
                return
            os.close(file)
        raise BadInput(f"--out {self.path}", "cannot be locked", "give another folder")

    def _locked(self, file: int) -> bool:
        """Lock an open file; False if meanwhile another file has its name."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if isinstance(error, BlockingIOError):
                remedy = "wait for it, or give another folder"
                raise BadInput(f"--out {self.path}", "another run is writing here", remedy) from None
            raise BadInput(f"--out {self.path}", f"cannot be locked: {error.strerror}") from None
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path / LOCK, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _unlock(self) -> None:
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)  # while it is still locked: no other process's
        os.close(self._lock)
        self._lock = None

    def _abandon(self) -> None:
        """After a failure: keep what is finished; a folder that holds nothing and was made now is removed."""
        with contextlib.suppress(OSError):
            self._sweep()
            if self.made and not any((self.path / name).exists() for name in self.layout.kept):
                shutil.rmtree(self.path, ignore_errors=True)
                for each in self.made[1:]:
                    each.rmdir()

    def part(self, name: str) -> Path:
        """Return the temporary folder in which a folder is made."""
        return self.path / f".{name}{PART}{os.getpid()}"

    def keep(self, name: str, facts: dict[str, FileFact]) -> None:
        """Give a complete temporary folder its own name, and record its files in the manifest."""
        if (self.path / name).exists():
            shutil.rmtree(self.path / name)
        os.replace(self.part(name), self.path / name)
        self.files[name] = facts
        self._write_manifest()

    def write(self, name: str, value: object) -> None:
        """Write one of the folder's JSON files."""
        write_whole(self.path / name, encoded(value))

    def read(self, name: str) -> Mapping[str, Any]:
        """Return one of the folder's JSON files, empty if it is not there."""
        try:
            found = msgspec.json.decode((self.path / name).read_bytes())
        except UNREADABLE:
            return {}
        return found if isinstance(found, dict) else {}
