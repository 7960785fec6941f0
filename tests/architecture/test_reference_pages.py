"""The generated pages of docs/reference are up to date."""

from __future__ import annotations

import pytest

from tests.architecture.reference_pages import PAGES, WRITERS


@pytest.mark.parametrize("name", WRITERS)
def test_page_is_what_the_program_says(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text == WRITERS[name](), "run `python -m tests.architecture.reference_pages`"
