"""The store: what lies on disk is read as it stands, and nothing that is not whole is taken for a result.

The files are written here by hand: folders that earlier programs have left have this form.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from emulator.experiments.results.folder import Folder, code_digest
from emulator.experiments.results.store import ResultStore, SchemeStore
from emulator.virtual.run import JobResult, MemorySample, Result
from emulator.virtual.schemes import SCHEMES

IDENTITY, OTHER = "ab" * 32, "cd" * 32
TOLD: dict[str, Any] = {
    "scheme": "soft-cap",
    "jobs": [
        {"name": "p-a", "job_class": "production", "submitted_at_ms": 5, "completion_ms": 1500,
         "deadline_at_ms": None, "suspensions": 0}
    ],
    "lost_work_ms": 1,
    "overhead_ms": 2,
    "suspensions": 3,
    "kills": 4,
    "utilisation_ratio": 0.5,
    "makespan_ms": 1505,
    "events": 77,
    "samples": [{"at_ms": 0, "production_mib": 1, "research_mib": 2, "suspended": 0}],
    "suspended_at_ms": [],
    "killed_at_ms": [],
}  # fmt: skip
RESULT = Result(
    scheme="soft-cap", jobs=(JobResult("p-a", "production", 5, 1500, None, 0),), lost_work_ms=1,
    overhead_ms=2, suspensions=3, kills=4, utilisation_ratio=0.5, makespan_ms=1505, events=77,
    samples=(MemorySample(0, 1, 2, 0),),
)  # fmt: skip


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def fact(data: bytes) -> dict[str, object]:
    return {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_manifest(folder: Path, kind: str, files: dict[str, dict[str, object]]) -> None:
    told = {"kind": kind, "identity": IDENTITY, "code": code_digest(), "files": files}
    (folder / "manifest.json").write_bytes(json.dumps(told, indent=2).encode())


def write_scheme(folder: Path, name: str, journal: bytes | None = None, **other: object) -> None:
    """Write a scheme's folder, and a manifest with it alone."""
    definition = msgspec.to_builtins(SCHEMES[name])
    kept = {"identity": IDENTITY, "scheme": definition, "result": TOLD | {"scheme": name}} | other
    (folder / name).mkdir()
    files = {"result.json": compact(kept) + b"\n"} | ({"journal.jsonl": journal} if journal else {})
    for file, data in files.items():
        (folder / name / file).write_bytes(data)
    write_manifest(
        folder, "yarn-emulator results", {name: {file: fact(data) for file, data in files.items()}}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, IDENTITY)


def schemes(folder: Folder, journal: bool = True) -> dict[str, Result]:
    with folder.opened():
        return SchemeStore(folder, journal).known


def test_a_scheme_is_read_as_it_lies_on_disk(folder: Folder) -> None:
    write_scheme(folder.path, "soft-cap")
    assert schemes(folder) == {"soft-cap": RESULT}


def test_a_scheme_that_decides_is_whole_with_its_journal_alone(folder: Folder) -> None:
    write_scheme(folder.path, "natjam")
    assert schemes(folder) == {}
    assert schemes(folder, journal=False) == {"natjam": msgspec.structs.replace(RESULT, scheme="natjam")}


def test_with_its_journal_it_is_whole(folder: Folder) -> None:
    write_scheme(folder.path, "natjam", journal=b'{"type":"header"}\n')
    assert list(schemes(folder)) == ["natjam"]
    (folder.path / "natjam/journal.jsonl").write_bytes(b'{"type":"heard!"}\n')
    assert schemes(folder) == {}


@pytest.mark.parametrize(
    "other",
    [{"identity": OTHER}, {"scheme": msgspec.to_builtins(SCHEMES["ideal"])},
     {"result": TOLD | {"events": "many"}}, {"result": None}],
)  # fmt: skip
def test_a_scheme_of_another_identity_or_definition_is_absent(folder: Folder, other: dict[str, Any]) -> None:
    write_scheme(folder.path, "soft-cap", **other)
    assert schemes(folder) == {}


def test_a_kept_scheme_is_written_in_that_form(folder: Folder, tmp_path: Path) -> None:
    with folder.opened():
        store = SchemeStore(folder, journal=True)
        store.part("soft-cap").mkdir()
        store.keep("soft-cap", RESULT)
        assert store.known == {"soft-cap": RESULT}
    kept = json.loads((tmp_path / "soft-cap/result.json").read_bytes())
    assert kept == {"identity": IDENTITY, "scheme": msgspec.to_builtins(SCHEMES["soft-cap"]), "result": TOLD}
    assert schemes(folder) == {"soft-cap": RESULT}


def test_in_memory_nothing_is_on_disk() -> None:
    store = ResultStore()
    store.keep("1", RESULT)
    assert (store.known, store.part("1")) == ({"1": RESULT}, None)
    assert ResultStore().known == {}
