"""The report: sums over the stories of orders, and the estimate of the wait without yarnctl."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.journal.test_restart import played
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.view.natural_ends import BETWEEN_MS, HEARTBEATS_MS, Arrival, NaturalEnds
from yarnctl.daemon.view.reporting import BUCKET_MS, Reporting, _Gain, _waited_less, reported
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.levers import AwaitedTask, Lever
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import ContainerRequest, TaskKind, TaskView
from yarnctl.deciding.records import Awaited, Decision, Record, Refusal, Transition
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.snapshot_rows import ApplicationRow, SnapshotChange
from yarnctl.journal.explaining.order_stories import OrderStories
from yarnctl.journal.file import read
from yarnctl.units import Resources

SIZE = Resources(1024, 1)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    played(path, ())
    return path


@pytest.fixture(scope="module")
def steps(journal: Path) -> list[Record]:
    return [line.record for line in read(journal, closed=True)]


def test_report_adds_up_the_orders(steps: list[Record]) -> None:
    report = reported(steps, None)
    decisions = [each for each in steps if isinstance(each, Decision)]
    granted = [each for each in steps if isinstance(each, Transition) and each.target == "granted"]
    (gain,) = report.gains
    assert (gain.queue, gain.decisions) == ("production", len(decisions))
    assert gain.ordered == sum(len(each.orders) for each in decisions)
    stories = OrderStories()
    for record in steps:
        stories.apply(record)
    served = {story.order: story.serves for story in stories.all()}
    assert gain.received == sum(served[each.order] for each in granted) > 0
    assert gain.waited_less.least_ms <= gain.waited_less.estimate_ms <= gain.waited_less.most_ms
    ended = [story for story in stories.all() if story.verb]
    assert sum(loss.containers for loss in report.losses) == len(ended) > 0
    lost = sum((story.lost_work_ms or 0) * story.size[0] for story in ended)
    assert sum(loss.lost_mib_ms for loss in report.losses) == lost
    rejected = sum(len(each.refused_jobs) + len(each.refused_tasks) for each in decisions)
    refusals = [each for each in steps if isinstance(each, Refusal)]
    rejected += sum(1 + len(each.refused_jobs) + len(each.refused_tasks) for each in refusals)
    assert sum(each.times for each in report.not_taken) == rejected
    assert {(each.queue, each.user) for each in report.not_taken} == {("production", gain.user)}
    assert gain.user


def test_what_was_not_taken_is_by_the_user_whose_request_waits(steps: list[Record]) -> None:
    def of(record: Record, application: str) -> Record:
        assert isinstance(record, Refusal)
        trigger = msgspec.structs.replace(record.trigger, application=application)
        return msgspec.structs.replace(record, trigger=trigger)

    rejection = next(each for each in steps if isinstance(each, Refusal))
    seen = look(["map"])
    found = reported([seen, of(rejection, "application_1_0001"), of(rejection, "application_1_0009")], None)
    assert {each.user for each in found.not_taken} == {"ann", ""}


def test_waited_less_is_the_wait_without_yarnctl_less_the_wait_with_it() -> None:
    gains = [_Gain(), _Gain()]
    gains[0].waits(1_000, 5_000, Arrival(31_000, 0.5))
    gains[1].waits(2_000, 3_000, Arrival(22_000, 0.0))
    found = _waited_less(gains)
    assert (found.estimate_ms, found.estimated) == (30_000 + 20_000 - 4_000 - 1_000, 2)
    assert found.estimate_ms - found.least_ms == found.most_ms - found.estimate_ms > 0
    gains[0].spread_ms = 0.0
    surer = _waited_less(gains)
    assert surer.most_ms - surer.least_ms < found.most_ms - found.least_ms


def test_report_leaves_out_what_is_older(steps: list[Record]) -> None:
    stories, reporting = OrderStories(), Reporting()
    for by_ms in (0, 10 * BUCKET_MS):
        for record in steps:
            at_ms = getattr(record, "at_ms", None)
            later = record if at_ms is None else msgspec.structs.replace(record, at_ms=at_ms + by_ms)
            reporting.apply(later, stories.apply(later))
    whole, half = reporting.report(0), reporting.report(9 * BUCKET_MS)
    assert whole.gains[0].decisions == 2 * half.gains[0].decisions > 0
    assert reporting.report(30 * BUCKET_MS).gains == []


def task(kind: TaskKind, at_ms: int, remaining_ms: int) -> TaskView:
    return TaskView(
        f"attempt_1_0001_{kind}_{at_ms}",
        "container_1",
        "n1",
        SIZE,
        kind,
        remaining_ms,
        0,
        at_ms,
        0,
        True,
        False,
    )


def look(kinds: list[TaskKind]) -> Observed:
    rows = (ApplicationRow("application_1_0001", "research", "ann", 0, 0, 11, SIZE, SIZE),)
    return Observed(
        at_ms=50_000,
        cluster="seen",
        change=SnapshotChange(applications=rows),
        tasks={"application_1_0001": tuple(task(kind, 10_000, 56_000) for kind in kinds)},
    )


def test_containers_come_as_fast_as_research_tasks_end() -> None:
    ends = NaturalEnds()
    ends.look(look(["map"]), Settings())
    assert ends.arrivals(50_000, 2) is None, "its first look was pruned"
    ends.begin()
    ends.look(look(["map", "reduce"]), Settings())
    step_ms = (96_000 + BETWEEN_MS) / 10  # ten containers beside the master
    first = ends.arrivals(50_000, 2)
    assert first is not None
    assert [each.at_ms - 50_000 - HEARTBEATS_MS for each in first] == [step_ms, 2 * step_ms]
    second = ends.arrivals(50_000, 1)
    assert second is not None
    assert second[0].at_ms == first[-1].at_ms + step_ms
    ends.begin()
    ends.look(look(["map", "executor"]), Settings())
    half = ends.arrivals(10**9, 1)
    assert half is not None
    assert half[0].at_ms - 10**9 - HEARTBEATS_MS == 2 * step_ms
    ends.begin()
    ends.look(look(["executor"]), Settings())
    assert ends.arrivals(2 * 10**9, 1) is None


def test_a_maps_start_is_no_progress() -> None:
    """A map of 60 s that starts for 5 s: an early look finds 120 s."""
    length_ms, start_ms = 60_000, 5_000

    def extrapolated(name: str, worked_ms: int) -> TaskView:
        done_ratio = (worked_ms - start_ms) / length_ms
        remaining_ms = round(worked_ms * (1 - done_ratio) / done_ratio)
        row = task("map", 50_000 - worked_ms, remaining_ms)
        return row._replace(attempt=name)

    def seen(*tasks: TaskView) -> Observed:
        return msgspec.structs.replace(look([]), tasks={"application_1_0001": tasks})

    ends, one = NaturalEnds(), "attempt_1_0001_m_000001_0"
    ends.begin()
    ends.look(seen(extrapolated("attempt_1_0001_m_000002_0", 10_000)), Settings())
    early = ends.arrivals(50_000, 1)
    assert early is not None
    assert early[0].each_ms == pytest.approx((120_000 + BETWEEN_MS) / 10)
    ends.look(seen(extrapolated(one, 10_000)), Settings())
    ends.look(seen(extrapolated(one, 35_000)), Settings())
    known = ends.arrivals(50_000, 1)
    assert known is not None
    # BETWEEN_MS holds an ordinary start, of up to 4 s
    assert known[0].each_ms == pytest.approx((length_ms + start_ms) / 10, rel=0.001)
    starting = task("map", 46_000, 100_000)
    ends.look(seen(starting), Settings())
    same = ends.arrivals(50_000, 1)
    assert same is not None
    assert same[0].each_ms == known[0].each_ms


def test_tasks_of_an_application_that_is_gone_no_longer_count() -> None:
    def seen(name: str, remaining_ms: int, gone: tuple[str, ...] = ()) -> Observed:
        rows = (ApplicationRow(name, "research", "ann", 0, 0, 11, SIZE, SIZE),)
        tasks = {name: (task("map", 0, remaining_ms),)}
        change = SnapshotChange(applications=rows, gone=gone)
        return Observed(at_ms=50_000, cluster="seen", change=change, tasks=tasks)

    ends = NaturalEnds()
    ends.begin()
    ends.look(seen("application_1_0001", 50_000), Settings())
    assert ends.arrivals(50_000, 1) is not None
    ends.look(seen("application_1_0002", 10_000, ("application_1_0001",)), Settings())
    found = ends.arrivals(50_000, 1)
    assert found is not None
    assert found[0].each_ms == pytest.approx((60_000 + BETWEEN_MS) / 10)
    assert found[0].spread_ratio == 0


def test_a_start_that_one_application_shows_counts_for_all() -> None:
    def read(at_ms: int, remaining_ms: int, name: str) -> Observed:
        tasks = {name: (task("map", 0, remaining_ms),)}
        return Observed(at_ms=at_ms, cluster="not-requested", tasks=tasks)

    names = ("application_1_0001", "application_1_0002")
    rows = tuple(ApplicationRow(name, "research", "ann", 0, 0, 11, SIZE, SIZE) for name in names)
    ends = NaturalEnds()
    ends.begin()
    ends.look(Observed(at_ms=0, cluster="seen", change=SnapshotChange(applications=rows)), Settings())
    ends.look(read(10_000, 110_000, names[0]), Settings())
    alone = ends.arrivals(10_000, 1)
    assert alone is not None
    assert alone[0].each_ms == pytest.approx((120_000 + BETWEEN_MS) / 20)
    for at_ms, remaining_ms in ((10_000, 110_000), (35_000, 35_000)):  # of 60 s, after a start of 5 s
        ends.look(read(at_ms, remaining_ms, names[1]), Settings())
    both = ends.arrivals(35_000, 1)
    assert both is not None
    assert both[0].each_ms == pytest.approx((60_000 + 5_000) / 20)


def test_an_order_that_leaves_the_queue_gives_its_place_to_the_next_decision() -> None:
    ends = NaturalEnds()
    ends.begin()
    ends.look(look(["map", "reduce"]), Settings())
    first = ends.arrivals(50_000, 3)
    assert first is not None
    ends.leave(first[1:], 50_000)
    again = ends.arrivals(50_000, 2)
    assert again == first[1:]


def test_an_order_leaves_with_the_wait_that_it_added_and_only_while_it_is_ahead() -> None:
    ends = NaturalEnds()
    ends.begin()
    ends.look(look(["map", "executor"]), Settings())
    slow = ends.arrivals(50_000, 1)
    ends.begin()
    ends.look(look(["map", "reduce"]), Settings())
    quick = ends.arrivals(50_000, 1)
    assert slow is not None
    assert quick is not None
    ends.leave(slow, int(slow[0].at_ms) + 1)
    assert ends.arrivals(50_000, 1) == [quick[0]._replace(at_ms=quick[0].at_ms + quick[0].each_ms)]
    ends.leave(slow, 50_000)
    last = ends.arrivals(50_000, 1)
    assert last is not None
    assert last[0].at_ms == quick[0].at_ms + 2 * quick[0].each_ms - slow[0].each_ms


def test_report_lets_a_withdrawn_order_leave_the_queue(
    steps: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(target: State) -> int:
        counts.clear()
        reported([ended_otherwise(each, target) for each in steps], None)
        return sum(counts)

    def ended_otherwise(record: Record, target: State) -> Record:
        if isinstance(record, Transition) and (record.order, record.target) == (first, "granted"):
            return msgspec.structs.replace(record, event="refused", target=target)
        return record

    counts: list[int] = []
    monkeypatch.setattr(NaturalEnds, "leave", lambda self, arrivals, at_ms: counts.append(len(arrivals)))
    first = next(each.order for each in steps if isinstance(each, Transition) and each.target == "granted")
    assert left("withdrawn") == left("granted") + 1
    assert left("completed") == left("granted")


def requesting(at_ms: int, containers: int, application: str = "application_1_0002") -> Observed:
    requests = (ContainerRequest(0, SIZE, containers),) if containers else ()
    row = ApplicationRow(application, "production", "bob", 0, 0, 1, SIZE, SIZE, requests)
    return Observed(at_ms=at_ms, cluster="seen", change=SnapshotChange(applications=(row,)))


def awaited(at_ms: int, container: str, application: str = "application_1_0002") -> Awaited:
    lever = Lever(container, "wait", 30_000, 0, 0, "none")
    tasks = (AwaitedTask("application_1_0001", container, lever, at_ms + 30_000, 1),)
    return Awaited(at_ms, application, tasks)


@pytest.mark.parametrize(("pending", "received"), [((2, 1, 0), 2), ((2, 2, 1), 1), ((2, 2, 2), 0)])
def test_an_awaited_container_counts_once_its_application_requests_less(
    steps: list[Record], pending: tuple[int, ...], received: int
) -> None:
    """If another application received it, the request is decided again."""
    first, second, third = pending
    reporting = Reporting()
    shown: list[Record] = [
        steps[0], look(["map", "reduce"]), requesting(50_000, first), awaited(50_000, "c1"),
        requesting(80_000, second), awaited(80_000, "c2"), requesting(110_000, third),
    ]  # fmt: skip
    for record in shown:
        reporting.apply(record, ())
    assert reporting.report(0).waited_less.estimated == received


def test_what_orders_bring_is_not_taken_for_an_awaited_container(steps: list[Record]) -> None:
    place = max(at for at, each in enumerate(steps) if isinstance(each, Decision))
    decided = steps[place]
    assert isinstance(decided, Decision)
    application, at_ms = decided.trigger.application, decided.at_ms
    later = [*steps[place + 1 :], requesting(at_ms + 60_000, 0, application)]
    more = awaited(at_ms, "c1", application)
    with_more = reported([*steps[: place + 1], more, *later], None)
    assert with_more.waited_less.estimated == reported(steps, None).waited_less.estimated


def test_command_reads_a_journal(
    journal: Path, steps: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status_of(PROGRAM, ["report", "--journal", str(journal), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(msgspec.json.encode(reported(steps, 86_400_000)))
    assert exit_status_of(PROGRAM, ["report", "--journal", str(journal)]) == 0
    assert "Waited less is an estimate" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, ["report", "--journal", str(journal), "--url", "http://x"]) == 2
