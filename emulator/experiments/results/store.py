"""Results by identity: what has been run once is not run again, nor in a run that is continued later.

Law: what comes back under an identity is what was kept under it, byte for byte. What is torn, damaged, of
another identity or of a scheme that is now defined otherwise counts as absent, and is run again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from emulator.experiments.results.folder import JOURNAL, RESULT, UNREADABLE, FileFact, Folder, unwritable
from emulator.virtual.run import Result
from emulator.virtual.schemes import SCHEMES, Scheme


class ResultStore:
    """Results by identity, in memory."""

    def __init__(self, known: dict[str, Result] | None = None) -> None:
        self.known = known or {}

    def keep(self, identity: str, result: Result) -> None:
        """Keep a result, on disk first if there is one."""
        self.known[identity] = result

    def part(self, identity: str) -> Path | None:
        """Return the temporary folder in which a result is made, if it needs one."""
        return None


class SchemeStore(ResultStore):
    """The results of one scenario by scheme; one that decides is whole with its journal (``journal``)."""

    def __init__(self, folder: Folder, journal: bool) -> None:
        self._folder = folder
        found = {name: self._read(name, journal) for name in folder.files if name in SCHEMES}
        super().__init__({name: result for name, result in found.items() if result is not None})

    def _read(self, name: str, journal: bool) -> Result | None:
        facts = self._folder.files[name]
        needed = {RESULT, JOURNAL} if journal and SCHEMES[name].eviction else {RESULT}
        path = self._folder.path / name
        try:
            if not needed <= facts.keys() or _facts_of(path) != facts:
                return None
            kept = msgspec.json.decode((path / RESULT).read_bytes(), type=_KeptScheme)
            if kept.identity != self._folder.identity or kept.scheme != SCHEMES[name]:
                return None
            return msgspec.json.decode(kept.result, type=Result)
        except UNREADABLE:
            return None

    def part(self, identity: str) -> Path:
        """Return the scheme's temporary folder; its process makes the result, and the journal in it."""
        return self._folder.part(identity)

    def keep(self, identity: str, result: Result) -> None:
        """Complete the scheme's temporary folder, and give it its name."""
        part, data = self.part(identity), msgspec.Raw(msgspec.json.encode(result))
        kept = _KeptScheme(identity=self._folder.identity, scheme=SCHEMES[identity], result=data)
        try:
            (part / RESULT).write_bytes(msgspec.json.encode(kept) + b"\n")
            self._folder.keep(identity, _facts_of(part))
        except OSError as error:
            raise unwritable(self._folder.path / identity, error) from None
        super().keep(identity, result)


class _KeptScheme(msgspec.Struct, frozen=True, kw_only=True):
    """What ``SCHEME/result.json`` holds: the scheme's own record shows a changed definition."""

    identity: str
    scheme: Scheme
    result: msgspec.Raw


def _facts_of(folder: Path) -> dict[str, FileFact]:
    """Return size and digest of the files of one scheme, of those that are there."""
    facts = {}
    for name in (RESULT, JOURNAL):
        if (folder / name).exists():
            with (folder / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                facts[name] = FileFact(file.tell(), digest)
    return facts
