"""Names, users and queues of ended applications: in API, explain and reclaims, also after a restart."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.unit.service.played import busy, last, whole
from yarnctl.cli import reclaims
from yarnctl.daemon.view.published import LoopStatus, Publisher, View
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import NAME_MAX, Observation
from yarnctl.deciding.planning import name_of
from yarnctl.deciding.records import ApplicationName, Decision
from yarnctl.deciding.settings import DEFAULT
from yarnctl.deciding.snapshot_rows import Writer
from yarnctl.journal.file import JournalFile
from yarnctl.journal.rebuild import rebuild
from yarnctl.service.answers.explanations import everything_about, explained
from yarnctl.service.answers.from_view import reclaim_list

RESEARCH, PRODUCTION = "application_1_000001", "application_1_000002"
NAMES = {
    PRODUCTION: ApplicationName("p", "hadoop", "production"),
    RESEARCH: ApplicationName("r", "hadoop", "research"),
}


def both_ended() -> View:
    snapshot = last().snapshot
    assert snapshot is not None
    return msgspec.structs.replace(last(), snapshot=msgspec.structs.replace(snapshot, applications=()))


def after_restart(folder: Path) -> View:
    """Return the view of a daemon that continues from the run's journal on an empty cluster."""
    path = folder / "journal.jsonl"
    with JournalFile(path, durable=False) as journal:
        journal.append(list(whole()[1]))
    rebuilt = rebuild(path)
    assert rebuilt is not None
    publisher = Publisher()
    publisher.record(rebuilt.recent)
    now_ms = rebuilt.remembered.now_ms
    snapshot = both_ended().snapshot
    seen = Observation(now_ms=now_ms, as_of_ms=now_ms, snapshot=snapshot)
    publisher.tick(Controller(DEFAULT, remembered=rebuilt.remembered), seen, LoopStatus())
    return publisher.view


@pytest.fixture(params=["ended", "restarted"])
def view(request: pytest.FixtureRequest, tmp_path: Path) -> View:
    return both_ended() if request.param == "ended" else after_restart(tmp_path)


def test_decisions_and_stories_name_both(view: View) -> None:
    assert view.snapshot is not None
    assert view.snapshot.applications == ()
    assert len(view.decisions) == 2
    for decided in view.decisions:
        assert decided.record.names == NAMES
        assert {story.order: story.names for story in decided.orders} == dict.fromkeys(
            decided.record.orders, NAMES
        )


def test_explain_names_both(view: View) -> None:
    order = view.decisions[0].record.orders[0]
    text = "\n".join(explained(everything_about(view, order)).text)
    assert f"for {PRODUCTION} (p, user hadoop, queue production)" in text
    assert f"victim   {RESEARCH} (r, user hadoop, queue research)" in text


def test_reclaims_names_both(view: View, capsys: pytest.CaptureFixture[str]) -> None:
    stories = [story for decided in view.decisions for story in decided.orders]
    shown = reclaim_list(PRODUCTION, None, stories, view)
    assert (shown.name, shown.user, shown.queue, shown.pending) == ("p", "hadoop", "production", None)
    reclaims._print_list(shown, view.now_ms)
    out = capsys.readouterr().out
    assert f"{PRODUCTION} (p, user hadoop, production): has ended" in out
    assert "r (hadoop)" in out


def test_api_names_both_after_their_end(served) -> None:
    served.view = both_ended()
    for decision in served.get("/v1/decisions")["items"]:
        assert decision["names"] == {name: list(known) for name, known in NAMES.items()}
    (one,) = served.get("/v1/reclaims?retired=true&queue=production")["items"]
    assert (one["name"], one["user"], one["queue"], one["role"]) == ("p", "hadoop", "production", None)
    assert one["entries"][0]["names"][RESEARCH] == ["r", "hadoop", "research"]
    assert served.get("/v1/reclaims?retired=true&queue=research")["items"] == []


def test_names_are_bounded_and_written_once() -> None:
    snapshot = busy().snapshot
    assert snapshot is not None
    one = msgspec.structs.replace(snapshot.applications[0], name="n" * 5000, user="u" * 5000)
    assert name_of(one) == ApplicationName("n" * NAME_MAX, "u" * NAME_MAX, one.queue)
    writer, now = Writer(DEFAULT), msgspec.structs.replace(snapshot, applications=(one,))
    (row,) = writer.change(now).applications
    assert row.name == "n" * NAME_MAX
    later = msgspec.structs.replace(one, containers=one.containers + 1)
    (row,) = writer.change(msgspec.structs.replace(snapshot, applications=(later,))).applications
    assert row.name == ""


def test_a_decision_has_each_name_once() -> None:
    for record in whole()[1]:
        if isinstance(record, Decision):
            assert list(record.names) == list(
                dict.fromkeys((record.trigger.application, *(pick.application for pick in record.picks)))
            )
