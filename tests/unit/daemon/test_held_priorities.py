"""A priority lasts while its application waits in what is ranked, and a stated time longer."""

from __future__ import annotations

from tests.golden.tables import GUARD_FREE, app, cluster, with_
from tests.unit.restoring.world import Folder, Host, Values
from yarnctl.daemon.held_priorities import HeldPriorities
from yarnctl.deciding.model import Accepted, Change, Snapshot
from yarnctl.deciding.prioritising import HOLD_MS, Prioritiser
from yarnctl.deciding.reasons.orders import DeadlineOrder, NotRankedLately, ReadBack
from yarnctl.deciding.records import Restored, Restoring

SETTINGS = with_(GUARD_FREE, mode="deadlines", job_policy="MDF", priority_levels=10)


class Ranked:
    """One run: it ranks each second and restores what is due. Names are a, b and c, the most urgent first.

    ``sent``: (time, application, priority) of each change.
    """

    def __init__(self) -> None:
        hdfs = Folder()
        self.values = Values(hdfs)
        self.host = Host(hdfs, self.values, "one")
        self.prioritiser = Prioritiser(SETTINGS)
        self.held = HeldPriorities(self.host.restorer)
        self.began_ms = self.host.now_ms
        self.sent: list[tuple[int, str, int]] = []

    def snapshot(self, names: str, waiting: str) -> Snapshot:
        for name in names:
            self.values.values.setdefault(name, "0")
        views = [
            app(
                name, "default", 2, int(name in waiting), deadline=(ord(name) - 96) * 1_000,
                priority=int(self.values.values[name] or 0),
            )
            for name in names
        ]  # fmt: skip
        return cluster(*views, guaranteed={"default": 100})

    def tick(self, names: str, waiting: str, *, is_quiet: bool = False) -> None:
        """Let a second pass. ``is_quiet``: production requests nothing, so nothing is observed."""
        self.host.now_ms += 1_000
        now_ms = self.host.now_ms
        snapshot = None if is_quiet else self.snapshot(names, waiting)
        found = None if snapshot is None else self.prioritiser.update(snapshot, now_ms, now_ms)
        for change in () if found is None else found[1]:
            name, before = change.application, self.values.values[change.application]
            recorded = Change("priority", name, str(before), str(change.priority))
            assert self.host.restorer.record((recorded,), DeadlineOrder()) == ""
            self.values.set(name, str(change.priority))
            self.prioritiser.settle(change, Accepted(), now_ms)
            self.sent.append((now_ms - self.began_ms, name, change.priority))
        self.held.reconcile(snapshot, now_ms)
        self.host.restorer.reconcile()

    def pass_s(self, seconds: int, names: str, waiting: str, *, is_quiet: bool = False) -> None:
        for _ in range(seconds):
            self.tick(names, waiting, is_quiet=is_quiet)

    def shown(self) -> dict[str, str | None]:
        return dict(self.values.values)


def test_a_priority_lasts_while_its_application_waits():
    run = Ranked()
    run.pass_s(600, "ab", "ab")
    assert run.shown() == {"a": "10", "b": "9"}
    assert len(run.sent) == 2


def test_an_application_that_waits_no_longer_has_its_priority_restored_once_and_keeps_it():
    run = Ranked()
    run.pass_s(30, "ab", "ab")
    run.pass_s(HOLD_MS // 1_000 - 1, "ab", "a")
    assert run.shown() == {"a": "10", "b": "9"}
    run.pass_s(600, "ab", "a")
    assert run.shown() == {"a": "10", "b": "0"}
    assert [name for _, name, _ in run.sent] == ["a", "b"], "none is sent while it waits for nothing"
    whys = [record.why for record in run.host.records if isinstance(record, Restoring | Restored)]
    assert whys == [NotRankedLately(HOLD_MS), ReadBack()]
    run.pass_s(5, "ab", "ab")
    assert run.shown() == {"a": "10", "b": "9"}, "it waits again"


def test_a_ranking_that_changes_just_before_the_end_begins_the_time_anew_and_nothing_alternates():
    run = Ranked()
    run.pass_s(30, "bc", "bc")
    run.pass_s(HOLD_MS // 1_000 - 2, "bc", "b")
    run.pass_s(600, "abc", "ab")
    assert run.shown() == {"a": "10", "b": "9", "c": "0"}
    assert sum(name == "c" for _, name, _ in run.sent) == 2


def test_all_priorities_are_restored_a_stated_time_after_the_last_ranking():
    run = Ranked()
    run.pass_s(30, "ab", "ab")
    run.pass_s(HOLD_MS // 1_000 - 1, "ab", "", is_quiet=True)
    assert run.shown() == {"a": "10", "b": "9"}
    run.pass_s(5, "ab", "", is_quiet=True)
    assert (run.shown(), run.host.restorer.open) == ({"a": "0", "b": "0"}, {})
    run.pass_s(5, "ab", "ab")
    assert run.shown() == {"a": "10", "b": "9"}


def test_a_clock_that_is_set_back_restores_nothing_early():
    run = Ranked()
    run.pass_s(30, "ab", "ab")
    run.host.now_ms -= 500_000
    run.pass_s(HOLD_MS // 1_000 - 1, "ab", "", is_quiet=True)
    assert run.shown() == {"a": "10", "b": "9"}
    run.pass_s(5, "ab", "", is_quiet=True)
    assert run.shown() == {"a": "0", "b": "0"}
