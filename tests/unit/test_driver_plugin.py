"""The model of Spark's plugin in the live emulator: which orders it reads, and what it makes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator.live.tasks.driver_plugin import PluginOrder, obey, orders_after
from yarnctl.task_runner.runner.protocol.stores import LocalStore, Unusable

FOLDER = "application_1_0001/driver-7"
LEAVE = "000000001-leave-d1.order"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / FOLDER).mkdir(parents=True, mode=0o755)
    return LocalStore(str(tmp_path))


def write(store: LocalStore, name: str, text: str, mode: int = 0o644) -> None:
    path = Path(store.root) / FOLDER / name
    path.write_text(text)
    path.chmod(mode)


def names(store: LocalStore, last: str = "") -> list[tuple[str, str]]:
    return [(each.decision, each.text) for each in orders_after(store, FOLDER, store.user, last)]


def test_orders_are_read_in_the_order_of_their_numbers_and_each_once(store: LocalStore) -> None:
    write(store, "000000010-back-d1.order", "back d1\n")
    write(store, LEAVE, "leave 3 4\n")
    write(store, ".leave-d2.tmp", "leave 5\n")
    write(store, "000000011-leave.order", "leave 6\n")
    assert names(store) == [("d1", "leave 3 4"), ("d1", "back d1")]
    assert names(store, LEAVE) == [("d1", "back d1")]
    assert names(store, "000000010-back-d1.order") == []


def test_what_others_may_have_written_is_never_obeyed(store: LocalStore) -> None:
    write(store, LEAVE, "leave 3\n", mode=0o664)
    assert names(store) == [("d1", "")]
    with pytest.raises(Unusable):
        orders_after(store, FOLDER, "somebody-else", "")
    os.chmod(Path(store.root) / "application_1_0001", 0o777)  # a folder of anybody's
    with pytest.raises(Unusable):
        names(store)


def test_no_folder_is_no_order(store: LocalStore) -> None:
    assert orders_after(store, "application_1_0002/driver-7", store.user, "") == []


class Asked:
    """A driver that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def leave(self, decision: str, executors: list[str], *, only_idle: bool) -> None:
        self.told.append(("idle" if only_idle else "leave", decision, *executors))

    def back(self, decisions: list[str]) -> None:
        self.told.append(("back", *decisions))


@pytest.mark.parametrize(
    ("text", "told"),
    [("leave 3 4", [("leave", "d1", "3", "4")]), ("back d1 d2", [("back", "d1", "d2")]), ("leave", []),
     ("leave 3 x", []), ("leave 3\nback d1", []), ("", [])],
)  # fmt: skip
def test_an_order_is_one_line_of_known_words(text: str, told: list[tuple[str, ...]]) -> None:
    driver = Asked()
    obey(driver, PluginOrder(LEAVE, "leave", "d1", text))  # type: ignore[arg-type]
    assert driver.told == told


def test_the_kind_of_an_order_says_whether_only_idle_executors_leave(store: LocalStore) -> None:
    write(store, "000000001-idle-y1-d3.order", "leave 3 4\n")
    write(store, "000000002-leave-y1-d3.order", "leave 5\n")
    driver = Asked()
    for order in orders_after(store, FOLDER, store.user, ""):
        obey(driver, order)  # type: ignore[arg-type]
    assert driver.told == [("idle", "y1-d3", "3", "4"), ("leave", "y1-d3", "5")]


def test_an_order_with_a_number_that_was_used_is_never_obeyed(store: LocalStore) -> None:
    """A daemon that was frozen while it wrote an order: the next one has written its own meanwhile."""
    write(store, "000000001-back-d1.order", "back d1\n")
    write(store, LEAVE, "leave 3 4\n")
    assert names(store) == [("d1", "back d1")]
    assert names(store, "000000001-back-d1.order") == []
    write(store, "000000002-leave-d2.order", "leave 5\n")
    assert names(store, "000000001-back-d1.order") == [("d2", "leave 5")]
