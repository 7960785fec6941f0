"""docs/admission.md names every choice, allocator and kind of deadline there is."""

from __future__ import annotations

from pathlib import Path

from emulator.admission.traces.trace import DEADLINES
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.records import Choices

PAGE = Path(__file__).parents[3] / "docs/admission.md"


def test_the_page_is_complete():
    text = PAGE.read_text()
    for name in (*SIZINGS, *DEADLINES, *Choices.__struct_fields__, "optimal"):
        assert f"`{name}`" in text, name
