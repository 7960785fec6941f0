"""Pages on admission name what there is: mechanisms in the manual, readings of the papers in the notes."""

from __future__ import annotations

from pathlib import Path

from emulator.admission.traces.trace import DEADLINES
from yarnctl.deciding.admission.mechanisms import MECHANISMS, SIZINGS
from yarnctl.deciding.admission.records import Choices

ROOT = Path(__file__).parents[3]


def test_manual_names_every_mechanism():
    text = (ROOT / "docs/admission.md").read_text()
    assert [name for name in MECHANISMS if f"`{name}`" not in text] == []


def test_notes_name_every_reading():
    text = (ROOT / "research/notes/admission.md").read_text()
    names = (*SIZINGS, *DEADLINES, *Choices.__struct_fields__, "optimal")
    assert [name for name in names if f"`{name}`" not in text] == []
