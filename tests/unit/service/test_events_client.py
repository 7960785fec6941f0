"""The client's events: they come while the cluster is busy, and at once while it is quiet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
import pytest

from tests.service.test_events import looped
from tests.unit.service.played import busy
from yarnctl.api.event_answers import EventOut
from yarnctl.client.daemon_client import DaemonClient
from yarnctl.client.requesting import DaemonAddress, received
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.recent_events import LoggedEvent, LoopChanged
from yarnctl.deciding.reasons.modes import ClusterFault
from yarnctl.hadoop.http.session import Received
from yarnctl.service.app import make_app
from yarnctl.service.serving import serve_in_thread

REQUESTS_MAX = 5


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request take 10 s at most, and fail instead of repeating it for ever."""
    requests: list[object] = []

    def counted(
        daemon: DaemonAddress, method: str, path: str, given: Mapping[str, object], _: None, __: float
    ) -> Received:
        requests.append(given)
        assert len(requests) <= REQUESTS_MAX, "the client repeats the same request"
        return received(daemon, method, path, given, None, 10.0)

    monkeypatch.setattr("yarnctl.client.requesting.WHOLE_ANSWER_MS", 10_000)
    monkeypatch.setattr("yarnctl.client.daemon_client.received", counted)


def first(count: int, cursor: str | None, seen: Callable[[int], View]) -> list[EventOut]:
    """Return the first events of a daemon; ``seen`` returns its view at each look."""
    looks = iter(range(1, 1_000_000))
    handle = serve_in_thread(make_app(lambda: seen(next(looks))))
    try:
        return list(islice(DaemonClient(DaemonAddress(handle.url)).events(cursor), count))
    finally:
        handle.stop()


@pytest.mark.parametrize("cursor", [None, "0"])
@pytest.mark.usefixtures("_impatient")
def test_events_come_while_there_is_always_a_newer_one(cursor: str | None) -> None:
    view = busy()
    found = first(1_200, cursor, lambda look: looped(view, 50, begin=look))
    instants = [each.at_ms for each in found]
    assert instants == list(range(instants[0], instants[0] + 1_200))


@pytest.mark.usefixtures("_impatient")
def test_an_event_of_a_quiet_cluster_comes_at_once_and_whole() -> None:
    fault = "one\u2028two\x85three"
    quiet = looped(busy(), 5)
    event = LoggedEvent(6, LoopChanged(6, "waiting", (ClusterFault(fault),)))
    later = msgspec.structs.replace(
        quiet, events=(*quiet.events, event), events_to=6, version=quiet.version + 1
    )
    found = first(1, "1000-5", lambda look: quiet if look < 12 else later)
    assert [each.text for each in found] == [f"the loop is waiting: {fault}"]
