"""``budgets.toml``: what it says, and what is refused by its line and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnctl.daemon.budget_files import read_budgets
from yarnctl.deciding.settings import LossRule
from yarnctl.errors import BadInput

RESEARCH = '[queue.research]\nmay_lose = "2%"\n'


def test_a_file_of_budgets_is_read(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(
        '[queue."root.research"]\nmay_lose = "2%"\nwindow = "30m"\n'
        '[queue.root.prod.etl]\nmay_lose = "1%"\n'
        '[user."ann@EXAMPLE"]\nmay_lose = "0.005"\n[user.bob]\nmay_lose = "0%"\nwindow = "2d"\n'
    )
    assert read_budgets(file) == (
        LossRule("queue", "root.research", 0.02, 1_800_000),
        LossRule("queue", "root.prod.etl", 0.01, 3_600_000),
        LossRule("user", "ann@EXAMPLE", 0.005, 3_600_000),
        LossRule("user", "bob", 0.0, 172_800_000),
    )


def test_an_empty_file_has_no_budgets(tmp_path: Path) -> None:
    (tmp_path / "budgets.toml").write_text("")
    assert read_budgets(tmp_path / "budgets.toml") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [('[user."a b"]\nmay_lose = "2%"\n', " line 1: user a b: invalid user name"),
     ('[queues.research]\nmay_lose = "2%"\n', " line 1: unknown table 'queues'"),
     ("queue = 3\n", ": unknown table 'queue'"), ("[queue]\nresearch = 3\n", "queue research: not a table"),
     (RESEARCH + "size = 3\n", " line 1: queue research: unknown key 'size'"),
     ("[queue.research]\n", " line 1: queue research: invalid may_lose None"),
     ("[queue.research]\nmay_lose = 0.02\n", "queue research: invalid may_lose 0.02"),
     ('[queue.research]\nmay_lose = "101%"\n', "queue research: may_lose: '101%' is not a share"),
     ('[queue.research]\nmay_lose = "-1%"\n', "queue research: may_lose: '-1%' is not a share"),
     ('[queue.research]\nmay_lose = "nan"\n', "queue research: may_lose: 'nan' is not a share"),
     (RESEARCH + 'window = "30s"\n', "queue research: window '30s' is outside of 1m to 7d"),
     (RESEARCH + "window = 60\n", "queue research: window 60 is outside of 1m to 7d"),
     ("[queue", "invalid TOML"), ("#" * 70_000, "exceeds 64 KiB")],
)  # fmt: skip
def test_what_is_no_file_of_budgets_is_refused_by_line_and_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        read_budgets(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_budgets(tmp_path / "gone.toml")
