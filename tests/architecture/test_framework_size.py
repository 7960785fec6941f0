"""A framework's own code is counted whole: comments do not count, and no file that names it is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.framework_size import FLINK, PLACING, SHARED, code_lines, sizes


@pytest.mark.parametrize(
    ("source", "lines"),
    [("", 0), ('"""Doc\nof two lines."""\n\nx = 1  # why\n# a comment\n', 1),
     ("x = (\n    1,\n\n    2,\n)\n", 4), ('def f():\n    """Doc."""\n    return """a\nb"""\n', 3)],
)  # fmt: skip
def test_lines_with_code_are_counted(source, lines):
    assert code_lines(source) == lines


def test_every_file_that_names_flink_is_listed_and_none_decides():
    found = sizes()
    assert found["unlisted"] == []
    assert found["deciding"] == 0
    assert isinstance(found["lines"], int)
    assert found["lines"] <= 500


def test_a_file_that_is_not_listed_is_seen(tmp_path: Path):
    for name in (*FLINK, *PLACING, *SHARED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "deciding").mkdir()
    (tmp_path / "deciding" / "odd.py").write_text("FLINK = 1\n")
    found = sizes(tmp_path)
    assert (found["unlisted"], found["deciding"]) == (["deciding/odd.py"], 1)
