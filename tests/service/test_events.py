"""Events, versions and tags: what a client sees of a view that changes while it waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests import http_client
from tests.unit.service.conftest import Served
from tests.unit.service.played import busy, views, whole
from yarnctl.api.status_answers import StatusOut
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.recent_events import LoggedEvent, LoopChanged, RecentEvents
from yarnctl.daemon.view.recent_orders import RecentOrders
from yarnctl.service.answers import from_view
from yarnctl.service.answers.event_log import after, newest
from yarnctl.service.answers.instants import iso, with_instants
from yarnctl.service.routes.events import STREAMS_MAX


def looped(view: View, count: int, begin: int = 1) -> View:
    """Return a view with these many events of the loop, and a version and a process of its own."""
    events = tuple(
        LoggedEvent(rank, LoopChanged(rank, "running", ())) for rank in range(begin, begin + count)
    )
    status = LoopStatus(started_at_ms=1_000)
    return msgspec.structs.replace(
        view, loop=status, events=events, events_from=begin, events_to=begin + count - 1, version=count
    )


def parsed(text: str) -> list[dict[str, str]]:
    """Return the messages of a stream: field -> value."""
    return [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in text.split("\n\n")
        if block
    ]


def events_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(each["data"]) for each in parsed(text) if "id" in each]


def in_thread(
    work: Callable[[], http_client.Response],
) -> tuple[threading.Thread, list[http_client.Response]]:
    found: list[http_client.Response] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    return thread, found


def test_the_log_of_a_run_tells_each_decision_and_each_state_of_an_order(served: Served) -> None:
    served.view = views()[-1]
    text = served.answer("/v1/events?cursor=0&wait_ms=0").text
    found = events_in(text)
    assert [each["cursor"] for each in found] == [f"0-{rank}" for rank in range(1, len(found) + 1)]
    assert all(
        message["id"] == json.loads(message["data"])["cursor"] for message in parsed(text) if "id" in message
    )
    decided = [each["decision"] for each in found if each["kind"] == "decision"]
    assert decided == sorted(each.record.number for each in served.view.decisions)
    ended = {each["order"]: each["state"] for each in found if each["kind"] == "order"}
    stories = {each.order: each.state for each in (*served.view.entries, *served.view.ended)}
    assert ended.items() <= stories.items()
    assert len(ended) > 2
    assert found[0] == {
        "cursor": "0-1", "at_ms": found[0]["at_ms"], "kind": "loop", "text": "the loop is running",
        "state": "running",
        "application": None, "victim": None, "order": None, "decision": None, "reason": None,
    }  # fmt: skip


def test_a_stream_continues_after_its_cursor_in_parts_of_any_size(served: Served) -> None:
    served.view = looped(busy(), 250)
    seen, cursor = [], "0"
    while part := events_in(served.answer(f"/v1/events?cursor={cursor}&limit=7&wait_ms=0").text):
        seen += [each["at_ms"] for each in part]
        cursor = part[-1]["cursor"]
    assert seen == list(range(1, 251))
    resumed = served.answer("/v1/events?limit=1&cursor=0", headers={"Last-Event-ID": "1000-249"})
    assert [each["at_ms"] for each in events_in(resumed.text)] == [250]


def test_a_stream_without_a_cursor_begins_now_and_waits(served: Served) -> None:
    served.view = looped(busy(), 5)
    answer = served.answer("/v1/events?limit=1", stream=True)
    lines = answer.iter_lines(chunk_size=1)
    assert next(lines) == b": from 1000-5"
    served.view = looped(busy(), 6)
    assert b"id: 1000-6" in list(lines)


@pytest.mark.parametrize(
    ("cursor", "is_gap", "first"),
    [("0", False, 101), ("1000-99", True, 101), ("1000-100", False, 101), ("1000-150", False, 151),
     ("999-150", True, 101), ("0-0", False, 101)],
)  # fmt: skip
def test_a_client_learns_that_events_are_no_longer_kept(
    served: Served, cursor: str, is_gap: bool, first: int
) -> None:
    served.view = looped(busy(), 100, begin=101)
    text = served.answer(f"/v1/events?cursor={cursor}&limit=1").text
    assert ("event: gap" in text) is is_gap
    assert [each["at_ms"] for each in events_in(text)] == [first]


def test_a_stream_that_sees_few_events_reports_a_gap_once() -> None:
    def few(begin: int, *ranks: int) -> View:
        view = looped(busy(), 100, begin=begin)
        shown = tuple(each for each in view.events if each.rank in ranks)
        return msgspec.structs.replace(view, events=shown)

    assert after(few(101), "1000-50", 5) == ([], "1000-200", True)
    assert after(few(110), "1000-200", 5) == ([], "1000-209", False)
    found, last, is_gap = after(few(210, 215, 216, 220), "1000-209", 2)
    assert ([each.at_ms for each in found], last, is_gap) == ([215, 216], "1000-216", False)
    found, last, is_gap = after(few(215, 215, 216, 220), last, 2)
    assert ([each.at_ms for each in found], last, is_gap) == ([220], "1000-314", False)
    assert newest(few(215, 220)) == "1000-314"


@pytest.mark.parametrize("cursor", ["x", "1", "-1", "1-", "1-x", "1-1-1", "²", "9" * 40])
def test_what_is_no_cursor(served: Served, cursor: str) -> None:
    assert served.answer(f"/v1/events?cursor={cursor}").status_code == 422
    assert served.answer("/v1/events?wait_ms=30001").status_code == 422


def test_the_number_of_streams_is_bounded_and_the_service_ends_them() -> None:
    served = Served()
    streams: list[Iterator[bytes]] = []
    try:
        for _ in range(STREAMS_MAX):
            streams.append(served.answer("/v1/events", stream=True).iter_lines(chunk_size=1))
            assert next(streams[-1]).startswith(b": from ")
        refused = served.answer("/v1/events")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too-many-streams")
        streams.pop().close()  # type: ignore[attr-defined]  # it closes its connection
        while served.answer("/v1/events?wait_ms=0").status_code == 503:
            pass
    finally:
        served.handle.stop()
    assert all(list(each)[-1] == b"" for each in streams)  # each ended as an answer should


def test_the_log_is_bounded_and_says_from_where() -> None:
    log = RecentEvents(events_max=3)
    for number in range(5):
        log.look("running" if number % 2 else "paused", (), number)
    log.look("paused", (), 9)  # no change
    assert [(each.rank, each.record.at_ms) for each in log.events] == [(3, 2), (4, 3), (5, 4)]
    assert log.oldest == 3


def test_the_log_keeps_no_ranking_of_tasks() -> None:
    log = RecentEvents()
    orders = RecentOrders()
    ranked = 0
    for record in whole()[1]:
        log.apply(record, orders.apply(record))
        ranked += len(getattr(record, "refused_jobs", ())) + len(getattr(record, "refused_tasks", ()))
    log.look("running", (), 0)
    assert ranked > 0
    for each in log.events:
        assert not getattr(each.record, "refused_jobs", ())
        assert not getattr(each.record, "refused_tasks", ())
        assert each.story is None or not (each.story.next_jobs or each.story.next_tasks)
    story = next(each.story for each in log.events if each.story is not None)
    later = orders.story(story.order)
    assert later is not None
    assert later.state != story.state  # an event shows the order as it was


def test_a_long_wait_ends_with_a_newer_view_only(served: Served) -> None:
    version = served.view.version
    thread, found = in_thread(lambda: served.answer(f"/v1/snapshot?since={version}&wait_ms=30000"))
    thread.join(0.3)
    assert thread.is_alive()
    served.view = msgspec.structs.replace(served.view, version=version + 1)
    thread.join()
    assert found[0].json()["version"] == version + 1
    assert served.get(f"/v1/snapshot?since={version}&wait_ms=30000")["version"] == version + 1
    assert served.get(f"/v1/snapshot?since={version + 1}&wait_ms=0")["version"] == version + 1


@pytest.mark.parametrize("query", ["since=x&wait_ms=9000", "since=1&wait_ms=-1", "since=1&wait_ms=30001"])
def test_a_wait_that_cannot_be_is_refused_at_once(served: Served, query: str) -> None:
    assert served.answer(f"/v1/snapshot?{query}").status_code == 422


def test_a_tag_stands_for_one_version_of_one_process(served: Served) -> None:
    tag = served.answer("/v1/applications").headers["etag"]
    same = {"If-None-Match": f'"other", {tag}'}
    answer = served.answer("/v1/applications", headers=same)
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert answer.headers["cache-control"] == "no-store"
    served.view = msgspec.structs.replace(served.view, version=served.view.version + 1)
    assert served.answer("/v1/applications", headers=same).status_code == 200
    assert "etag" not in served.answer("/v1/nothing").headers


def test_an_answer_is_made_once_for_each_view_and_query(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    status = from_view.status

    def noted(view: View) -> StatusOut:
        made.append(view.version)
        return status(view)

    monkeypatch.setattr(from_view, "status", noted)
    first = served.answer("/v1/status")
    again = served.answer("/v1/status")
    assert (first.content, first.headers["etag"]) == (again.content, again.headers["etag"])
    assert len(made) == 1
    assert served.answer("/v1/status?iso=true").content != first.content
    served.view = msgspec.structs.replace(served.view, now_ms=served.view.now_ms + 1)
    assert served.get("/v1/status")["now_ms"] == served.view.now_ms
    assert len(made) == 3


PLACES = ("/", "/docs", "/openapi.json", "/metrics", "/readyz", "/v1/snapshot", "/v1/reclaims", "/v1/nothing")


@pytest.mark.parametrize("path", PLACES)
def test_head_is_get_without_a_body(served: Served, path: str) -> None:
    got, head = served.answer(path), served.answer(path, method="HEAD")
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers["content-length"] == got.headers["content-length"]
    assert served.answer(path, method="HEAD", headers={"Host": "evil.example"}).status_code == 421


def test_instants_stand_beside_milliseconds(served: Served) -> None:
    plain, both = served.get("/v1/reclaims?retired=true"), served.get("/v1/reclaims?retired=true&iso=true")
    entry = both["items"][0]["entries"][0]
    assert entry["ordered_at"] == iso(entry["ordered_at_ms"])

    def without(answer: Any) -> Any:
        if isinstance(answer, list):
            return [without(each) for each in answer]
        if not isinstance(answer, dict):
            return answer
        return {
            name: without(value)
            for name, value in answer.items()
            if not (name in ("at", "now") or name.endswith("_at"))
        }

    assert without(both) == plain == without(plain)


def test_an_instant_that_no_calendar_has_is_null() -> None:
    found = with_instants(
        {"at_ms": 1_700_000_000_123, "b_at_ms": 2**53, "c_ms": 5, "now_ms": -1, "d_at_ms": None}
    )
    assert found == {
        "at_ms": 1_700_000_000_123, "at": "2023-11-14T22:13:20.123Z", "b_at_ms": 2**53, "b_at": None,
        "c_ms": 5, "now_ms": -1, "now": None, "d_at_ms": None, "d_at": None,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _unchanged(served: Served) -> Iterator[None]:
    yield
    served.begin()


def test_newest_and_after_agree() -> None:
    view = looped(busy(), 10)
    assert after(view, newest(view), 5) == ([], "1000-10", False)
