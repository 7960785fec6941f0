"""The webhook: an event for what happens, in order, with retries; the loop never waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.soak.rig import wait_until
from tests.unit.daemon.test_loop import Lock, busy, daemon
from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port
from yarnctl.cli.run import StateOptions, webhook_of
from yarnctl.daemon.notices.webhook import QUEUED_MAX, TRIES, Event, Webhook, checked_webhook
from yarnctl.errors import BadInput

SOON_S = 0.001


def event(number: int) -> Event:
    return Event(event="state", at_ms=number, text=f"event {number}")


def received(answer: Callable[[Heard], Reply] | Reply, *events: Event) -> list[int]:
    """Send events to a receiver, and return the instants of those that it was sent, in order."""
    with Replay(answer) as receiver:
        webhook = Webhook(receiver.url + "/hook?key=secret", SOON_S)
        for each in events:
            webhook.offer(each)
        done = Event(event="state", at_ms=-1, text="last")
        webhook.offer(done)
        wait_until(lambda: any(b'"at_ms":-1' in heard.body for heard in receiver.heard), "all events")
        webhook.close()
        return [msgspec.json.decode(heard.body)["at_ms"] for heard in receiver.heard]


def test_events_arrive_once_and_in_order() -> None:
    assert received(Reply("{}"), *map(event, range(5))) == [0, 1, 2, 3, 4, -1]


def test_a_failed_event_is_sent_again_and_a_rejected_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    statuses = iter([503, 429, 200, 404])
    with caplog.at_level(logging.WARNING):
        sent = received(lambda _: Reply("{}", next(statuses, 200)), event(1), event(2), event(3))
    assert sent == [1, 1, 1, 2, 3, -1]
    assert "an event for the webhook is lost (status 404): event 2" in caplog.text
    assert "secret" not in caplog.text


def test_after_so_many_tries_an_event_is_lost_and_the_next_one_is_sent() -> None:
    statuses = iter([500] * TRIES)
    assert received(lambda _: Reply("{}", next(statuses, 200)), event(1)) == [1] * TRIES + [-1]


def test_the_loop_does_not_wait_for_a_receiver_that_hangs() -> None:
    answers = threading.Event()

    def hang(_: Heard) -> Reply:
        answers.wait(60)
        return Reply("{}")

    with Replay(hang) as receiver:
        webhook = Webhook(receiver.url, SOON_S)
        webhook.offer(event(0))
        wait_until(lambda: receiver.heard, "the first event is on its way")
        for number in range(QUEUED_MAX + 10):
            webhook.offer(event(number))
        assert webhook.dropped == 10
        answers.set()
        webhook.close()


def test_a_daemon_reports_what_its_orders_did() -> None:
    bodies: list[Event] = []
    cluster = busy()
    loop, _ = daemon(cluster, lock=Lock())
    webhook = Webhook(f"http://127.0.0.1:{closed_port()}", SOON_S)
    webhook.offer = bodies.append  # type: ignore[method-assign, assignment]
    loop.recorder.on_record = lambda record: webhook.report(loop.publisher, record)
    loop.run(120)
    webhook.close()
    gave = [each for each in bodies if each.event == "gave"]
    assert len(gave) == 3
    assert len({each.order for each in gave}) == 3
    assert {(each.application.partition("-")[0], each.requester) for each in gave} == {
        ("research", "production-1")
    }
    assert {each.queue for each in gave} == {"research"}
    assert [each.text.partition(":")[0] for each in bodies if each.event == "state"] == ["enforcing"]


def test_an_observing_daemon_reports_no_container() -> None:
    bodies: list[Event] = []
    loop, _ = daemon(busy(), enforce=False)
    webhook = Webhook(f"http://127.0.0.1:{closed_port()}", SOON_S)
    webhook.offer = bodies.append  # type: ignore[method-assign, assignment]
    loop.recorder.on_record = lambda record: webhook.report(loop.publisher, record)
    loop.run(40)
    webhook.close()
    assert {each.event for each in bodies} == {"state"}


@pytest.mark.parametrize("url", ["https://hooks.example/x", "http://127.0.0.1:9/x", "http://localhost/x"])
def test_an_address_that_is_safe(url: str) -> None:
    assert checked_webhook(url) == url


def test_an_address_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "webhook"
    file.write_text("https://hooks.example/secret\n")
    file.chmod(0o600)
    assert webhook_of(StateOptions(webhook_file=file)) == "https://hooks.example/secret"
    assert webhook_of(StateOptions()) == ""
    with pytest.raises(BadInput, match="--webhook is also set"):
        webhook_of(StateOptions(webhook="https://hooks.example/x", webhook_file=file))
    file.chmod(0o644)
    with pytest.raises(BadInput, match=r"^--webhook-file: other users can read"):
        webhook_of(StateOptions(webhook_file=file))
    file.chmod(0o600)
    file.write_text("http://hooks.example/secret")
    with pytest.raises(BadInput, match=r"^--webhook-file: is neither") as caught:
        webhook_of(StateOptions(webhook_file=file))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://hooks.example/x", "https://ann:pw@hooks.example", "ftp://127.0.0.1", "x", "https://[", "",
     "https://hooks.example/a b", "https://hooks.example:99999/"],
)  # fmt: skip
def test_an_address_that_is_not_safe_is_rejected_without_its_text(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        checked_webhook(url)
    assert caught.value.where == "--webhook"
    assert not url or url not in str(caught.value) or url == "x"
