"""The folder of an experiment: what has been finished, complete or absent.

::

    manifest.json            whose results these are: identity of the scenario, digest of the code
    SCHEME/result.json       all that came of the scheme, kept to go on from and to draw
    SCHEME/journal.jsonl     every decision (schemes in which yarnctl decides)
    results.json             the summary of all schemes
    run.json                 wall-clock, versions, command line: everything that may differ
    report.html, demo.svg    the same, drawn

Law: a scheme's folder is made under another name and renamed when it is complete, a file is
written beside and renamed; so whatever stands here under its own name is whole. A folder that
holds anything else is refused, never emptied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from emulator.schemes import SCHEMES, Scheme
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from emulator.virtual_host import Result

KIND = "yarn-emulator results"
FILES = ("manifest.json", "results.json", "run.json", "report.html", "demo.svg")
RESULT, JOURNAL = "result.json", "journal.jsonl"
PART = ".part-"
ROOT = Path(__file__).parents[2]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Whose results a folder holds. ``code`` is a digest of the program that made them."""

    kind: str
    identity: str
    code: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What ``SCHEME/result.json`` holds: the scheme's own record tells a changed definition."""

    identity: str
    scheme: Scheme
    result: msgspec.Raw


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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}{PART}{os.getpid()}")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class Folder:
    """A folder of results of one identity."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self.identity = identity
        self.made: list[Path] = []

    # --- opening --------------------------------------------------------------------------

    def require_ours(self) -> None:
        """Raise BadInput if the place holds anything but results. Changes nothing."""
        if not os.path.lexists(self.path):
            self._require_place()
            return
        if not self.path.is_dir():
            raise BadInput(f"--out {self.path}", "is a file", "give a folder")
        names = sorted(entry.name for entry in self.path.iterdir() if PART not in entry.name)
        foreign = [name for name in names if name not in FILES and name not in SCHEMES]
        if foreign or (names and self._manifest() is None):
            raise BadInput(
                f"--out {self.path}",
                f"holds something that is not results of this program: {(foreign or names)[0]}",
                "give a folder that is empty or does not exist",
            )

    def _require_place(self) -> None:
        above = next((parent for parent in self.path.absolute().parents if os.path.lexists(parent)), None)
        if above is not None and not above.is_dir():
            raise BadInput(f"--out {self.path}", f"{above} is not a folder", "give another place")

    def _manifest(self) -> Manifest | None:
        try:
            found = msgspec.json.decode((self.path / "manifest.json").read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.kind == KIND else None

    def open(self, replace: bool) -> None:
        """Make the folder ready; results of another scenario are replaced only if told so.

        Results of the same scenario that other sources made are always replaced.
        """
        self.require_ours()
        ours = Manifest(kind=KIND, identity=self.identity, code=code_digest())
        found = self._manifest() if self.path.is_dir() else None
        if found is not None and found.identity != self.identity and not replace:
            raise BadInput(
                f"--out {self.path}",
                f"holds the results of another scenario ({found.identity[:12]}, not {self.identity[:12]})",
                "give another folder, or remove this one",
            )
        self._make()
        if found != ours:
            self._clear()
            write_whole(self.path / "manifest.json", encoded(ours))
        self._sweep()

    def _make(self) -> None:
        missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--out {self.path}", f"cannot be made: {error.strerror}") from None
        self.made = missing

    def _clear(self) -> None:
        """Remove earlier results, the manifest last, so that a half-cleared folder is still ours."""
        for name in SCHEMES:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in reversed(FILES):
            (self.path / name).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what an interrupted run has left under a temporary name."""
        for entry in self.path.iterdir():
            if PART in entry.name:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)

    def abandon(self) -> None:
        """After a failure: keep finished schemes; what holds none and was made now is removed."""
        self._sweep()
        if self.made and not any((self.path / name).exists() for name in SCHEMES):
            shutil.rmtree(self.path, ignore_errors=True)
            for each in self.made[1:]:
                each.rmdir()

    # --- schemes --------------------------------------------------------------------------

    def finished(self, name: str, journal: bool) -> Result | None:
        """Return a finished scheme's result, or None if it has to be run."""
        from emulator.virtual_host import Result

        try:
            kept = msgspec.json.decode((self.path / name / RESULT).read_bytes(), type=Kept)
            if kept.identity != self.identity or kept.scheme != SCHEMES[name]:
                return None
            if journal and SCHEMES[name].eviction and not (self.path / name / JOURNAL).exists():
                return None
            return msgspec.json.decode(kept.result, type=Result)
        except (OSError, msgspec.DecodeError):
            return None

    def part(self, name: str) -> Path:
        """Return the temporary folder in which a scheme is made."""
        return self.path / f".{name}{PART}{os.getpid()}"

    def keep(self, part: Path, name: str, result: Result) -> None:
        """Write the result into the temporary folder and give it its own name."""
        data = msgspec.Raw(msgspec.json.encode(result))
        kept = Kept(identity=self.identity, scheme=SCHEMES[name], result=data)
        (part / RESULT).write_bytes(msgspec.json.encode(kept) + b"\n")
        shutil.rmtree(self.path / name, ignore_errors=True)
        os.replace(part, self.path / name)

    # --- whole files ----------------------------------------------------------------------

    def write(self, name: str, value: object) -> None:
        """Write one of the folder's JSON files."""
        write_whole(self.path / name, encoded(value))

    def read(self, name: str) -> Mapping[str, Any]:
        """Return one of the folder's JSON files, empty if it is not there."""
        try:
            found = msgspec.json.decode((self.path / name).read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}
        return found if isinstance(found, dict) else {}
