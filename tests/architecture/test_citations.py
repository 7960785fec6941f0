"""Every citation of ``docs/facts`` names a section that exists, and every section there names its source."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.citations import MEANT, citations, meant_by, page_of, problems_of, texts

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "docs" / "facts"


@cache
def everything() -> tuple[tuple[str, str], ...]:
    """Return the files that may cite; the examples of this check are made up."""
    return tuple((path, text) for path, text in texts(ROOT) if "architecture/" not in path)


def test_every_section_that_is_cited_exists() -> None:
    assert [one for path, text in everything() for one in problems_of(path, text, FACTS)] == []


def test_citations_are_found_in_every_folder() -> None:
    """A search that finds nothing would find nothing wrong."""
    found = Counter(path.split("/")[0] for path, text in everything() for _ in citations(text))
    assert {"docs", "emulator", "tests", "yarnctl"} <= set(found)
    assert found.total() >= 350
    assert {page for _, page in MEANT} <= {page.stem for page in FACTS.glob("*.md")}
    assert meant_by("emulator/cluster/kernel.py") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(facts/hadoop.md, section 7)", "hadoop 7"),
        ("(facts/hadoop.md,\n# sections 7 and 11)", "hadoop 7, hadoop 11"),
        ("facts/hadoop.md, 1.5)", "hadoop 1.5"), ("docs/facts/natjam.md, section 2.3", "natjam 2.3"),
        ("(facts, natjam 2.5; hadoop 5).", "natjam 2.5, hadoop 5"), ("see natjam.md, section 3", "natjam 3"),
        ("(facts, section\n        2.1). Absent", " 2.1"), ("the facts (sections 1 and 2)", " 1,  2"),
        ("that facts 1.4 name", " 1.4"), ("(facts 1.1 to 1.4)", " 1.1,  1.2,  1.3,  1.4"),
        ("Hadoop 3, hadoop 3.4.2 and Spark 4", ""), ("the facts say so; 3 of them", ""),
        ("apply(facts, 3), facts[1], facts = 2", ""), ("the paper, section 5, and its facts", ""),
    ],
)  # fmt: skip
def test_every_form_is_read(text: str, expected: str) -> None:
    assert ", ".join(f"{one.page} {one.section}" for one in citations(text)) == expected


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (
            "yarnctl/hadoop/new.py",
            '"""A.\n\nB (facts, section\n1.9).\n"""',
            "new.py:3: 'facts, section 1.9':",
        ),
        ("yarnctl/attach/new.py", "# (facts, sections 4.1 and 4.9)", "no section 4.9"),
        ("emulator/cluster/timing.py", "# (facts 11)", "natjam.md has no section 11"),
        ("README.md", "see facts/dependencies.md, section 2", "dependencies.md has no section 2"),
        ("tests/hadoop/new.py", "# (facts, section 5)", "names no page: write facts/PAGE.md, section 5"),
        ("yarnctl/new.py", "# (facts/storm.md, section 5)", "storm.md has no section 5"),
    ],
)
def test_a_planted_breach_is_found(path: str, text: str, said: str) -> None:
    (found,) = problems_of(path, text, FACTS)
    assert said in found


@pytest.mark.parametrize("page", sorted(FACTS.glob("*.md")), ids=lambda page: page.stem)
def test_sections_ascend_and_name_their_sources(page: Path) -> None:
    sections = page_of(page)
    numbers = [tuple(int(part) for part in one.split(".")) for one in sections]
    assert numbers == sorted(set(numbers))
    if "Source of all sections" not in page.read_text(encoding="utf-8").partition("\n## ")[0]:
        assert [
            number
            for number, text in sections.items()
            if text.strip() and "Source" not in text + sections.get(number.partition(".")[0], "")
        ] == []
