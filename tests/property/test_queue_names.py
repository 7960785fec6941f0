"""Queue names against a plain second opinion, over random trees; `make soak` runs the rest."""

from __future__ import annotations

import pytest

from tests.property.queue_trees import check_names
from yarnctl.deciding import queue_names

SEEDS = 300


def check_all() -> None:
    for seed in range(SEEDS):
        check_names(seed)


def test_a_name_stands_for_what_a_plain_reading_says() -> None:
    check_all()


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("spells", lambda name, path: path.endswith(name)),
        ("spells", lambda name, path: name in (path, path.rpartition(".")[2])),
        ("spells", lambda name, path: name == path or path.endswith(f".{name}")),
        ("last_part", lambda path: path.partition(".")[2]),
    ],
    ids=["parts are cut", "only whole names", "root is a part like others", "the first part"],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str, bug: object) -> None:
    monkeypatch.setattr(queue_names, name, bug)
    with pytest.raises(AssertionError):
        check_all()
