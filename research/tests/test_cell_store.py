"""Cells on disk: what lies there is read as it stands, and what is not whole is not taken for a result."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from emulator.experiments.results.folder import Folder
from tests.experiments.test_store import IDENTITY, RESULT, TOLD, compact, write_manifest
from yarn_research.studies.cells import PAPER, CellStore


def line(identity: str, /, **other: object) -> bytes:
    data = compact(TOLD)
    told = {"identity": identity, "sha256": hashlib.sha256(identity.encode() + b"\0" + data).hexdigest()}
    return compact(told | {"result": TOLD} | other) + b"\n"


@pytest.fixture
def paper(tmp_path: Path) -> Folder:
    write_manifest(tmp_path, "yarn-research paper", {})
    return Folder(tmp_path, IDENTITY, PAPER)


def test_cells_are_read_as_they_lie_on_disk(paper: Folder) -> None:
    (paper.path / "cells.jsonl").write_bytes(line("1" * 64) + line("2" * 64))
    with paper.opened():
        assert CellStore(paper).known == {"1" * 64: RESULT, "2" * 64: RESULT}


def test_only_whole_cells_are_read_and_the_others_dropped(paper: Folder) -> None:
    torn, foreign = line("2" * 64)[:-9], line("3" * 64, identity="4" * 64)
    (paper.path / "cells.jsonl").write_bytes(line("5" * 64) + b"\x80\n" + foreign + line("1" * 64) + torn)
    with paper.opened():
        assert CellStore(paper).known.keys() == {"1" * 64, "5" * 64}
    assert (paper.path / "cells.jsonl").read_bytes() == line("1" * 64) + line("5" * 64)


def test_a_cell_is_a_line_at_once_and_lines_are_put_in_order(paper: Folder) -> None:
    with paper.opened():
        store = CellStore(paper)
        for identity in ("2" * 64, "1" * 64):
            store.keep(identity, RESULT)
        assert (paper.path / "cells.jsonl").read_bytes() == line("2" * 64) + line("1" * 64)
        store.settle()
    assert (paper.path / "cells.jsonl").read_bytes() == line("1" * 64) + line("2" * 64)
