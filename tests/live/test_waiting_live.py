"""Why production waits, read from a daemon's API while it works on a live cluster: one true reason each."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests import http_client
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, program, told

SPEED = 2.0
JOBS = (job("research", 0, [80] * 9, [4]), job("production", 8, [5], [3]))
CASE = Case("waiting", nodes=2, slots=4, jobs=JOBS)
"""Research's master and seven maps fill the cluster; production needs two containers."""


class Polling(threading.Thread):
    """Reads ``/v1/applications`` until it is stopped; each answer is one view of the daemon."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.ended = threading.Event()
        self.answers: list[dict[str, Any]] = []

    def run(self) -> None:
        while not self.ended.wait(0.2):
            try:
                self.answers.append(http_client.get(f"{self.url}/v1/applications", timeout=30).json())
            except OSError:
                continue  # it does not listen yet


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def problem(item: dict[str, Any]) -> str:
    """Return what is wrong with one application's reason; "" if nothing is."""
    waiting = item["waiting"]
    if (item["role"] == "preempting" and item["pending"] > 0) != (waiting is not None):
        return "waits without a reason, or has a reason and does not wait"
    if waiting is None:
        return ""
    if (waiting["kind"] == "ordered") != (item["expected"] > 0):
        return f"{item['expected']} containers are expected"
    if waiting["kind"] == "ordered" and not waiting["text"].startswith(f"{item['expected']} container"):
        return "another number of containers"
    return "" if waiting["text"] and waiting["reason"]["code"] else "no sentence"


@pytest.mark.parametrize(
    ("may_lose", "kind"),
    [("40%", "ordered"), pytest.param("0%", "rejected", marks=pytest.mark.thorough)],
)
def test_each_answer_of_the_api_has_one_true_reason(tmp_path: Path, may_lose: str, kind: str) -> None:
    cluster = ("serve", "--nodes", str(CASE.nodes), "--slots", str(CASE.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(SPEED), "--work", str(tmp_path / "work"))
    with program("emulator.cli", *cluster, *how, log=tmp_path / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        listen = f"127.0.0.1:{free_port()}"
        words = [listen if word == "off" else word for word in told(CASE, url, tmp_path / "state")]
        options = (*words, "--eviction", "mix", "--may-lose", may_lose)
        polling = Polling(f"http://{listen}")
        with program("yarnctl.cli", "run", *options, log=tmp_path / "yarnctl.log"):
            polling.start()
            rows = play(Client(url, "harness"), CASE.jobs, SPEED)
            polling.ended.set()
            polling.join(60)
    assert {row.final_status for row in rows} == {"SUCCEEDED"}
    assert polling.answers, (tmp_path / "yarnctl.log").read_text()
    items = [item for answer in polling.answers for item in answer["items"]]
    assert [found for found in map(problem, items) if found] == []
    kinds = Counter(item["waiting"]["kind"] for item in items if item["waiting"])
    assert kinds[kind], kinds
    rejected = [
        item["waiting"] for item in items if item["waiting"] and item["waiting"]["kind"] == "rejected"
    ]
    assert all(each["reason"]["code"] for each in rejected)
