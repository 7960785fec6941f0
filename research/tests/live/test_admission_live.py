"""The gate on the live emulator: more deadlines met than with plain queues, by the programs users type.

The margins are the set's: through the gate a small job takes a third of its span, else twice as long as it.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import http_client
from yarn_research.campaigns.admission_bench import rows, side_by_side, train
from yarn_research.campaigns.admission_hosts import Gate, Live, gate, live
from yarn_research.campaigns.admission_set import Kind
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire import views

PATIENCE_S = 120.0
LOOK_S = 0.1
TRAINED_S = 4.0
"""How long the small job takes alone where nothing else runs."""


def until(seen: Callable[[], Any], what: str) -> Any:
    """Return the first answer that counts."""
    ends_s = time.monotonic() + PATIENCE_S
    while not (found := seen()):
        assert time.monotonic() < ends_s, f"never {what}"
        time.sleep(LOOK_S)  # the pace of a poll
    return found


def admit(
    host: Live, through: Gate, kind: Kind, name: str, deadline: str, *more: str
) -> subprocess.Popen[str]:
    """Type ``yarnctl admit`` in front of a submission."""
    words = ["yarnctl", "admit", "--deadline", deadline, *more, "--", *host.words(kind, name, {})]
    env = {**host.environment, **through.environment}
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def submitted(host: Live, name: str, client: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait until the ResourceManager knows a client's job; return its row."""

    def known() -> dict[str, Any] | None:
        ended = client.poll() is not None
        row: dict[str, Any] | None = rows(host.rm, 0).get(name)
        assert row or not ended, said(client)
        return row

    row: dict[str, Any] = until(known, f"submitted: {name}")
    return row


def said(client: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a client's end."""
    out, err = client.communicate(timeout=PATIENCE_S)
    return client.returncode, out + err


@pytest.mark.thorough
def test_more_deadlines_are_met_than_with_plain_queues(tmp_path: Path) -> None:
    with live(tmp_path / "a") as plain, live(tmp_path / "b") as gated:
        found = side_by_side(plain, gated, tmp_path)
    without, through = found["plain"], found["gate"]
    story = "\n".join(str(row) for row in found["table"])
    assert through["met"] >= without["met"] + 2, story
    outcomes = {job["name"]: job["outcome"] for job in through["jobs"]}
    hopeless = [job["name"] for job in found["jobs"] if job["hopeless"]]
    assert len(hopeless) == Live.mix.hopeless
    assert {outcomes[name] for name in hopeless} == {"rejected"}, story
    plain_outcomes = {job["name"]: job["outcome"] for job in without["jobs"]}
    assert {plain_outcomes[name] for name in hopeless} == {"late"}, story


# --- one gate for the rest ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Path]]:
    """Return a cluster on which each kind of job has run once."""
    folder = tmp_path_factory.mktemp("admission")
    with live(folder, max_priority=10) as host:
        train(host, folder)
        yield host, folder


def in_time(host: Live, span_s: int) -> str:
    """Return a deadline of so many seconds, more where the small job took longer to go by the history.

    It leaves a fifth more than the gate expects, or more: what it expects grows with what the history says.
    """
    took_s = float(rows(host.rm, 0)["small-0"]["elapsedTime"]) / 1000
    return f"{round(span_s * max(1.0, took_s / TRAINED_S))}s"


@pytest.mark.xdist_group("admission-live")
def test_what_is_admitted_runs_within_its_limits_and_carries_its_deadline(
    clusters: tuple[Live, Path], tmp_path: Path
) -> None:
    """Its reduces take longer than those the history knows: on a busy machine they are looked at seldom."""
    host, _ = clusters
    with gate(host, tmp_path) as through:
        slow = host.mix.small._replace(reduce_s=2.0)
        client = admit(host, through, slow, "small-100", in_time(host, 24), "--user", "ann")
        row = submitted(host, "small-100", client)
        (admission,) = through.asked()["items"]
        held: list[tuple[int, int]] = []

        def over() -> bool:
            held.append(_tasks(host, row["id"]))
            return client.poll() is not None

        until(over, "over")
        status, told = said(client)
        assert status == 0, told
        ended = until(lambda: through.asked(f"/{admission['id']}")["state"] == "ended", "freed")
    assert ended
    containers = admission["plan"]["containers"]
    assert max(maps for maps, _ in held) == min(containers - 1, host.mix.small.maps)  # one is its master's
    assert max(reduces for _, reduces in held) == min(containers - 1, host.mix.small.reduces)
    assert 2 <= containers < 5
    deadline_at_ms = admission["plan"]["deadline_at_ms"]
    tags = set(row["applicationTags"].split(","))
    assert tags == {f"deadline:{deadline_at_ms}", f"yarnctl-admission-{admission['id']}"}
    with Transport([host.rm]) as to:
        application = ResourceManager(to).application(row["id"])
    assert views.deadline_at_ms(application) == deadline_at_ms  # what Natjam-R orders by
    assert admission["request"]["estimate"]["source"].startswith("history:")
    assert "admitted: " in told


def _tasks(host: Live, application: str) -> tuple[int, int]:
    """Return how many containers for maps and for reduces it holds."""
    with Transport([host.rm]) as to:
        manager = ResourceManager(to)
        attempts = manager.app_attempts(application)
        held = manager.containers(application, attempts[-1].attempt) if attempts else ()
        kinds = [views.kind_of(one) for one in held]
    return kinds.count("map"), kinds.count("reduce")


@pytest.mark.xdist_group("admission-live")
def test_who_waits_is_let_in_when_the_daemon_was_killed_meanwhile(
    clusters: tuple[Live, Path], tmp_path: Path
) -> None:
    """A held submission survives: the daemon's journal has it, and ``admit`` asks on."""
    host, _ = clusters
    more = ("--admission-capacity", "2")
    with gate(host, tmp_path, more=more) as through:
        slow = host.mix.small._replace(map_s=2.4)  # still there when the other has asked
        first = admit(host, through, slow, "small-200", in_time(host, 45), "--user", "ann")
        submitted(host, "small-200", first)
        second = admit(host, through, host.mix.small, "small-201", in_time(host, 100), "--user", "ann")
        until(lambda: [one["state"] for one in through.asked()["items"]].count("waiting"), "waiting")
        through.process.send_signal(signal.SIGKILL)
        through.process.wait(60)
        with gate(host, tmp_path, more=more, url=through.url) as again:
            assert said(first)[0] == 0
            status, told = said(second)
            states = {one["request"]["name"]: one["state"] for one in again.asked()["items"]}
    assert status == 0, told
    assert "waiting: " in told
    assert set(states) == {"small-200", "small-201"}


@pytest.mark.xdist_group("admission-live")
def test_the_tighter_of_two_admitted_deadlines_goes_first(
    clusters: tuple[Live, Path], tmp_path: Path
) -> None:
    """Admission and preemption together: Natjam-R orders by the deadlines that the gate let in.

    A third job comes in past the gate and waits, which is when an order matters; it stands last.
    """
    host, _ = clusters
    more = ("--mode", "deadlines", "--preempting", "production", "--allow-priority", "--enforce")
    with gate(host, tmp_path, more=more) as through:
        clients = [
            admit(host, through, host.mix.big, name, deadline, "--user", "ann")
            for name, deadline in (("big-300", in_time(host, 80)), ("big-301", in_time(host, 60)))
        ]
        for name, client in zip(("big-300", "big-301"), clients, strict=True):
            submitted(host, name, client)
        clients.append(past_the_gate(host, "big-302"))

        def ordered() -> bool:
            found = rows(host.rm, 0)
            order = [
                int(found[name]["priority"]) for name in ("big-301", "big-300", "big-302") if name in found
            ]
            return len(order) == 3 and order[0] > order[1] > order[2]

        until(ordered, f"ordered by their deadlines: {through.log.read_text()[-2000:]}")
        for name in ("big-300", "big-301", "big-302"):
            url = f"{host.rm}/ws/v1/cluster/apps/{rows(host.rm, 0)[name]['id']}/state?user.name=ann"
            http_client.put(url, json={"state": "KILLED"}, timeout=30)
        assert [said(client)[0] for client in clients] == [1, 1, 1]


def past_the_gate(host: Live, name: str) -> subprocess.Popen[str]:
    """Submit a large job without asking."""
    words = host.words(host.mix.big, name, {})
    return subprocess.Popen(
        words, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
