"""Every citation of ``docs/facts`` names a section that exists, and every section there names its source."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.citations import (
    MEANT,
    PAGES,
    citations,
    meant_by,
    page_of,
    problems_of,
    texts,
    unread,
    without_source,
)

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "docs" / "facts"
OWN = ("tests/architecture/citations.py", "tests/architecture/test_citations.py")
"""Their examples are made up; a list of ids is no prose."""


@cache
def everything() -> tuple[tuple[str, str], ...]:
    return tuple((path, text) for path, text in texts(ROOT) if path not in OWN)


def test_every_section_that_is_cited_exists() -> None:
    assert [one for path, text in everything() for one in problems_of(path, text, FACTS)] == []


def test_citations_of_every_room_are_found() -> None:
    """A search that finds nothing would find nothing wrong."""
    found = Counter(path.split("/")[0] for path, text in everything() for _ in citations(text))
    assert {"docs", "emulator", "tests", "yarnctl"} <= set(found)
    assert found.total() >= 200
    pages = {one.page or meant_by(path) for path, text in everything() for one in citations(text)}
    assert {"hadoop", "natjam"} <= pages <= set(PAGES)


FORMS = [
    ("(facts/hadoop.md, section 7)", "hadoop 7"),
    ("(facts/hadoop.md,\n# sections 7 and 11)", "hadoop 7, hadoop 11"),
    ("facts/hadoop.md, 1.5)", "hadoop 1.5"), ("docs/facts/natjam.md, section 2.3", "natjam 2.3"),
    ("(facts/hadoop, section 5: leaf queues)", "hadoop 5"), ("(facts, hadoop.md section 2).", "hadoop 2"),
    ("(facts, natjam 2.5; hadoop 5).", "natjam 2.5, hadoop 5"), ("see natjam.md, section 3", "natjam 3"),
    ("(natjam 2.5)", "natjam 2.5"), ('section = "hadoop 1.1"', "hadoop 1.1"), ("(facts, section 10)", " 10"),
    ("(facts, section\n        2.1). Absent", " 2.1"), ("the facts (sections 1 and 2)", " 1,  2"),
    ("(facts, sections 1, 5, 6 and 11; good", " 1,  5,  6,  11"), ("(facts section 3)", " 3"),
    ("(facts 2, 2.1, 2.2)", " 2,  2.1,  2.2"), ("that facts 1.4 name", " 1.4"),
    ("(facts 1.1 to 1.4)", " 1.1,  1.2,  1.3,  1.4"), ("(facts 2 to 4)", " 2,  3,  4"),
    ("(facts 11: no resourceInfo in 3.4)", " 11"), ("// facts 5, no. 8.)", " 5 row 8"),
    ("facts/natjam.md, section 5, no. 4b", "natjam 5 row 4b"), ("section 9 of the facts", " 9"),
    ("section 9 of docs/facts/hadoop.md", "hadoop 9"), ("Sections 3.4.2 of the facts", ""),
    ("Hadoop 3, hadoop 3.4.2 and Spark 4", ""), ("the facts say so; 3 of them", ""),
    ("apply(facts, 3), facts[1], facts = 2", ""), ("the paper, section 5, and its facts", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_every_form_is_read(text: str, expected: str) -> None:
    found = [f"{one.page} {one.section}" + f" row {one.row}" * bool(one.row) for one in citations(text)]
    assert ", ".join(found) == expected


def test_a_citation_is_found_in_its_line() -> None:
    (one,) = citations("first\nsecond\nthird (facts/hadoop.md,\nsection 5)")
    assert (one.line, one.text) == (3, "facts/hadoop.md, section 5")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout that holds the pages of facts and nothing else."""
    shutil.copytree(FACTS, tmp_path / "docs" / "facts")
    for folder in ("docker", "emulator", "hadoop-conf", "tests", "yarnctl"):
        (tmp_path / folder).mkdir()
    return tmp_path


def problems_in(tree: Path) -> list[str]:
    return [one for path, text in texts(tree) for one in problems_of(path, text, tree / "docs" / "facts")]


PLANTED = [
    ("yarnctl/hadoop/new.py", "# (facts, section 13)", "docs/facts/hadoop.md has no section 13"),
    ("yarnctl/hadoop/new.py", '"""A.\n\nB (facts, section\n1.9).\n"""', "new.py:3: 'facts, section 1.9':"),
    ("yarnctl/attach/new.py", "# (facts, sections 4.1 and 4.9)", "no section 4.9"),
    ("tests/contract/traps.toml", 'section = "hadoop 1.7"', "no section 1.7"),
    ("emulator/cluster/new.py", "# (facts, natjam 2.9; hadoop 5)", "natjam.md has no section 2.9"),
    ("emulator/cluster/new.py", "# (natjam 4)", "natjam.md has no section 4"),
    ("emulator/cluster/timing.py", "# (facts 11)", "natjam.md has no section 11"),
    ("docs/new.md", "(facts/hadoop.md, section 1.1 to 1.6)", "no section 1.6"),
    ("README.md", "see facts/dependencies.md, section 2", "dependencies.md has no section 2"),
    ("hadoop-conf/new.xml", "<!-- (facts/natjam.md, section 5, no. 40) -->", "natjam.md has no row 40"),
    ("tests/hadoop/new.py", "# (facts, section 5)", "names no page: write facts/PAGE.md, section 5"),
    ("docker/new/Dockerfile", "# (facts 5)", "names no page"),
    ("yarnctl/new.py", "# (facts/storm.md, section 5)", "is no form of a citation"),
    ("yarnctl/new.py", "# (facts/storm.md, 5)", "is no form of a citation"),
    ("yarnctl/hadoop/new.py", "# see facts, in section 5", "is no form of a citation"),
    ("yarnctl/hadoop/new.py", "# see section 5 in the facts", "is no form of a citation"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "said"), PLANTED)
def test_a_planted_breach_is_found(tree: Path, path: str, text: str, said: str) -> None:
    assert problems_in(tree) == []
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text, encoding="utf-8")
    (found,) = problems_in(tree)
    assert said in found


def test_a_section_that_is_taken_out_is_missed(tree: Path) -> None:
    """The pages are read, not a list of their sections."""
    (tree / "yarnctl" / "new.py").write_text("# (facts/hadoop.md, section 10)", encoding="utf-8")
    page = tree / "docs" / "facts" / "hadoop.md"
    page.write_text(page.read_text(encoding="utf-8").replace("## 10. HDFS", "## HDFS"), encoding="utf-8")
    (found,) = problems_in(tree)
    assert "docs/facts/hadoop.md has no section 10" in found


def test_what_looks_like_a_citation_is_no_problem_where_it_is_one() -> None:
    assert list(unread("the facts (section 10) say; section 3 of the facts")) == []


@pytest.mark.parametrize("page", sorted(FACTS.glob("*.md")), ids=lambda page: page.stem)
def test_sections_ascend_and_name_their_sources(page: Path) -> None:
    read = page_of(page)
    numbers = [tuple(int(part) for part in one.split(".")) for one in read.numbers]
    assert numbers == sorted(set(numbers))
    beginning = page.read_text(encoding="utf-8").partition("\n## ")[0]
    assert without_source(read, beginning) == []


def test_a_section_without_a_source_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n## 1. B\n\nSource: measured.\n\n### 1.1 C\n\nD.\n\n## 2. E\n\nF.\n\n## 3. G\n")
    assert without_source(page_of(page), "# A") == ["2"]
    assert without_source(page_of(page), "# A\n\nSource of all sections: measured.") == []


def test_what_a_citation_without_a_page_means_is_one_of_the_pages() -> None:
    assert {page for _, page in MEANT} <= {page.stem for page in FACTS.glob("*.md")}
    assert meant_by("emulator/live/rest/changes.py") == "hadoop"
    assert meant_by("research/yarn_research/papers/natjam_variants.py") == "natjam"
    assert meant_by("emulator/cluster/kernel.py") == ""
