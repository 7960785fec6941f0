"""Pauses are shown and ended: by the API, by ``yarnctl resume``, on the page's answer and in the metrics."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.frozen.invoking import invoked
from tests.unit.service.conftest import TOKEN, Served
from tests.unit.service.played import busy
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import Change
from yarnctl.deciding.reasons.demand import StandingAside
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.journal.rendering import text

ASIDE = StandingAside("production", 300_000, (("o-000001", "x"),) * 3, 5, "queue")
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def view(*aside: StandingAside, paused: bool = False) -> View:
    seen = busy()
    status = LoopStatus(state="running", reachable=True, ticks=1, aside=aside)
    if paused:
        status = msgspec.structs.replace(status, state="paused", why=(Paused("maintenance"),))
    return msgspec.structs.replace(seen, loop=status)


@pytest.fixture
def resume(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run ``yarnctl resume`` with the operator's token; return its status and its lines."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(file))
    monkeypatch.setenv("YARNCTL_URL", served.url)
    return lambda *words: invoked("resume", *words)


def test_a_paused_queue_is_shown_with_its_reason_and_end(served: Served) -> None:
    served.view = view(ASIDE)
    loop = served.get("/v1/snapshot")["loop"]
    reason = {"code": "standing-aside", "text": text(ASIDE)}
    assert loop["loop_state"] == "running"
    assert loop["aside"] == [{"queue": "production", "until_ms": 300_000, "reason": reason}]
    metric = 'yarnctl_queue_aside_until_timestamp_seconds{queue="production"} 300.0'
    assert metric in served.answer("/metrics").text
    printed = invoked("snapshot", "--url", served.url)
    assert f"paused    {text(ASIDE)}" in printed["out"]
    served.view = view()
    assert served.get("/v1/snapshot")["loop"]["aside"] == []
    assert "until_timestamp_seconds{queue" not in served.answer("/metrics").text


def test_resume_ends_the_pause_of_one_queue(served: Served, resume) -> None:
    served.view = view(ASIDE)
    assert resume("production") == {"status": 0, "out": ["resumed queue production"], "err": []}
    assert served.control.orders == ["resume: production"]
    printed = resume("production", "-o", "json")
    answer = json.loads("\n".join(printed["out"]))
    assert (answer["accepted"], answer["queue"]) == ("resume", "production")


@pytest.mark.parametrize(
    ("aside", "paused", "lines"),
    [
        ((ASIDE,), False, ["resumed queue production"]),
        ((), True, ["resumed the loop"]),
        ((ASIDE,), True, ["resumed the loop", "resumed queue production"]),
        ((), False, ["nothing to resume: nothing is paused"]),
    ],
)
def test_resume_without_a_queue_ends_all_pauses(
    served: Served, resume, aside: tuple[StandingAside, ...], paused: bool, lines: list[str]
) -> None:
    served.view = view(*aside, paused=paused)
    assert resume() == {"status": 0, "out": lines, "err": []}
    assert served.control.orders == ["continue"]


def test_a_queue_that_is_not_paused_is_named(served: Served, resume) -> None:
    served.view = view(ASIDE)
    printed = resume("research")
    assert (printed["status"], printed["out"]) == (0, ["nothing to resume: queue research is not paused"])


def test_an_unknown_queue_is_rejected_with_the_nearest_name(served: Served, resume) -> None:
    served.view = view(ASIDE)
    printed = resume("prodution")
    assert printed["status"] == 2
    assert "no leaf queue prodution" in printed["err"][0]
    assert printed["err"][0].endswith("did you mean production?")
    answer = served.answer("/v1/queues/zzz/resume", "POST", headers=BEARER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown-queue")
    assert "yarnctl snapshot" in answer.json()["error"]["next"]
    assert served.control.orders == []


def test_without_the_token_no_pause_ends(served: Served, served_without_token: Served) -> None:
    served.view = view(ASIDE)
    printed = invoked("resume", "production", "--url", served.url)
    assert (printed["status"], "YARNCTL_TOKEN_FILE" in printed["err"][0]) == (2, True)
    assert invoked("resume", "--url", served_without_token.url)["status"] == 2
    assert served.control.orders == served_without_token.control.orders == []


def test_pause_sends_its_span_and_reason(served: Served, resume) -> None:
    assert invoked("pause", "--for", "2h", "--why", "upgrade")["out"] == ["the daemon pauses for 2h"]
    assert invoked("pause")["out"] == ["the daemon pauses until yarnctl resume"]
    assert served.control.orders == ["pause: upgrade for 7200000 ms", "pause: paused by request"]


@pytest.mark.parametrize("span", ["2", "0s", "31d", "-1h"])
def test_an_invalid_span_of_a_pause_is_rejected(served: Served, resume, span: str) -> None:
    assert invoked("pause", "--for", span)["status"] == 2
    assert served.control.orders == []


LOWERED = Change("queue", "root.research", "1.0", "0.3")


def test_status_shows_leader_changes_last_error_and_budgets(served: Served) -> None:
    seen = view(ASIDE)
    error = {"last_error": "HDFS does not answer", "last_error_at_ms": seen.now_ms - 2_500}
    status = msgspec.structs.replace(seen.loop, leads=True, changes=(LOWERED,), mode="enforce", **error)
    budget = BudgetStanding("queue", "root.research", "", 0.02, 3_600_000, 1, 1_024 * 9_000, 72_000, 3, 4_000)
    served.view = msgspec.structs.replace(seen, loop=status, budgets=(budget,) * 9)
    lines = invoked("status", "--url", served.url)["out"]
    assert lines[0] == "state     running"
    assert lines[2] == "leader    this daemon has the lock"
    assert "error     2.5 s ago: HDFS does not answer" in lines
    assert f"paused    {text(ASIDE)}" in lines
    assert "lowered   the maximum of root.research from 100 % to 30 %" in lines
    assert "budget    queue research: 72 s lost of at most 2 % in 60 min, 9 s left" in lines
    assert lines[-1] == "budget    and 1 more: -o json shows all"
    answer = json.loads("\n".join(invoked("status", "--url", served.url, "-o", "json")["out"]))
    by_hand = "yarn schedulerconf -update root.research:maximum-capacity=100"
    assert [(one["target"], one["by_hand"]) for one in answer["changes"]] == [("root.research", by_hand)]


def test_status_of_an_observing_daemon_has_no_leader(served: Served) -> None:
    lines = invoked("status", "--url", served.url)["out"]
    assert "leader    not needed: this daemon only observes" in lines
    assert "error     none" in lines
    assert "lowered   none" in lines
