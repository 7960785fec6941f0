"""Deaths, frozen processes and planted lies, for each kind of setting (:mod:`tests.soak.two_holders`)."""

from __future__ import annotations

import pytest

from tests.soak.two_holders import FAULTS, Case, Fault, cases, live, play, points, world
from tests.unit.restoring.world import CHANGES, KINDS, Values
from yarnctl.deciding.model import Accepted, Change, ChangeKind, Outcome
from yarnctl.deciding.reasons.orders import ReadBack
from yarnctl.restoring.change_file import ChangeFiles
from yarnctl.restoring.restorer import OpenChange, Restorer


def wrong(kind: ChangeKind) -> list[Case]:
    return [case for case in cases() if case.kind == kind and play(case)]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_value_before_is_back_whichever_process_stops_at_whichever_point(
    kind: ChangeKind, fault: Fault
) -> None:
    played = [case for case in cases() if (case.kind, case.fault) == (kind, fault)]
    assert len(played) == len(points(kind)) >= 10
    assert {case: story for case in played if (story := play(case))} == {}


def no_record(self: ChangeFiles, changes: object) -> str:
    return "changes-none"


def always_mine(self: ChangeFiles, name: str) -> bool:
    return True


def never_written(self: Values, change: Change) -> Outcome:
    return Accepted()


def never_watched(self: Restorer, now_ms: int) -> None:
    return


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_without_a_record_turns_red(kind: ChangeKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeFiles, "create", no_record)
    assert wrong(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_sends_nothing_turns_red(kind: ChangeKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Values, "write", never_written)
    assert wrong(kind)


@pytest.mark.parametrize("lie", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_accepted_request_that_counts_as_the_end_turns_red(
    kind: ChangeKind, lie: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request is accepted and has no effect: only reading the value back can tell."""
    _, values, host = world(kind)
    write, request = values.write, Restorer._request
    tries = iter((True, *([False] * 10)))
    monkeypatch.setattr(values, "write", lambda change: Accepted() if next(tries) else write(change))

    def ended(self: Restorer, one: OpenChange) -> Outcome:
        outcome = request(self, one)
        self._end(one, "", ReadBack())
        return outcome

    if lie:
        monkeypatch.setattr(Restorer, "_request", ended)
    live(host, values, kind)
    host.pass_ms(60_000)
    assert (values.values[CHANGES[kind].target] == CHANGES[kind].before) is not lie


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_ignores_who_has_the_record_turns_red(
    kind: ChangeKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChangeFiles, "exists", always_mine)
    assert wrong(kind)


@pytest.mark.parametrize("kind", ["queue", "priority", "bounds"])
def test_a_late_request_that_is_not_corrected_turns_red(
    kind: ChangeKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Restorer, "_watch", never_watched)
    assert wrong(kind)
