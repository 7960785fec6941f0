"""Datagrams to task runners, and the names that are news: what yarnctl sends, and to what."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.unit.attach.fake_cluster import container
from tests.unit.attach.test_performing import SUSPEND, WITHDRAW, asked, looking
from tests.unit.hadoop.replaying import NEVER_S
from yarnctl.deciding.model import Accepted, ObservationRequest
from yarnctl.frameworks.mapreduce.bells import WAITING_MAX, Bells

SECRET = "0123456789abcdef"
LINE = "yarnctl phase=run groups=50 done=5000 known=100000 all=1 gen=0 can=1 bell={}-" + SECRET


@pytest.fixture
def runner() -> Iterator[socket.socket]:
    """What a task runner listens with."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        found.settimeout(NEVER_S)
        yield found


def local(_: str) -> str:
    return "127.0.0.1"


def test_ring_sends_the_secret_to_the_port_on_yarns_node(runner):
    asked_for: list[str] = []

    def address(host: str) -> str:
        asked_for.append(host)
        return "127.0.0.1"

    bells = Bells(address)
    bells.ring("n1:8041", f"{runner.getsockname()[1]}-{SECRET}")
    assert runner.recv(100) == b"yarnctl " + SECRET.encode()
    assert asked_for == ["n1"]


@pytest.mark.parametrize(
    "bell",
    ["", SECRET, f"80-{SECRET}", f"1023-{SECRET}", f"65536-{SECRET}", "8080-xyz", f"8080-{SECRET}0",
     f"8080-{SECRET}\n", f"٨٠٨٠-{SECRET}", f"08080-{SECRET}"],
)  # fmt: skip
def test_ring_sends_nothing_for_words_of_a_job_that_are_no_bell(bell):
    def never(host: str) -> str:
        raise AssertionError(host)

    bells = Bells(never)
    bells.ring("n1:8041", bell)
    bells.ring("", f"8080-{SECRET}")
    bells._pool.shutdown()


def test_ring_never_waits_for_a_name_that_does_not_resolve():
    gate, resolved = threading.Event(), []

    def slow(host: str) -> str:
        resolved.append(host)
        gate.wait(NEVER_S)
        raise OSError("no such host")

    bells = Bells(slow)
    for _ in range(WAITING_MAX + 10):
        bells.ring("nowhere:1", f"8080-{SECRET}")
    gate.set()
    bells._pool.shutdown()
    assert len(resolved) == WAITING_MAX, "further ones are dropped: the signal is sent in any case"


def test_an_order_rings_and_signals_and_a_withdrawal_does(cluster, runner):
    cluster.attempt(1, 1)["status"] = LINE.format(runner.getsockname()[1])
    port = looking(cluster)
    port._connected["MAPREDUCE"].orders._bells.address_of = local
    port.observe(ObservationRequest(victims=(SUSPEND.application,)))
    for action in (SUSPEND, WITHDRAW):
        cluster.changes.clear()
        assert port.perform(action) == Accepted()
        assert runner.recv(100) == b"yarnctl " + SECRET.encode()
        assert cluster.changes == [f"OUTPUT_THREAD_DUMP {container(1, 2)}"]


# --- news between two ticks -------------------------------------------------------------------------------


def test_has_news_of_each_manifest_and_answer_once(cluster):
    assert looking(cluster).has_news() is None, "no task is under order: nothing is listed"
    cluster.save(1, 1, "earlier", generation=1)
    port = asked(cluster)
    assert port.has_news() is False, "what was there before the order is no news"
    cluster.save(1, 1, "another", generation=2)
    assert [port.has_news(), port.has_news()] == [True, False]
    cluster.answered(1, 1, "o-1", "refused")
    assert [port.has_news(), port.has_news()] == [True, False]
    cluster.save(1, 1, "o-1", generation=3)
    assert [port.has_news(), port.has_news()] == [True, False]


def test_has_news_reads_no_file(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    before = len(cluster.hdfs.replay.heard)
    assert port.has_news()
    assert [heard.query["op"] for heard in cluster.hdfs.replay.heard[before:]] == ["LISTSTATUS"]


def test_has_news_ends_with_the_manifest(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    found = port.observe(ObservationRequest(cluster=False, orders=("o-1",)))
    assert [fact.order for fact in found.facts] == ["o-1"]
    assert port.has_news() is None


def test_has_news_a_store_that_does_not_answer_has_none(cluster):
    port = asked(cluster)
    cluster.hdfs.silent = "/yarnctl/checkpoints"
    assert port.has_news() is False
