"""docs/admission.md, "Sell deadlines", on the live emulator: check, accounts, a quote, a paid deadline.

Law: what is typed is what the page shows, in its order; replaced are the addresses and an admission's id.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from emulator.cluster.entities import QueueConfig
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import ClusterPlan as Nodes
from emulator.live.programs.all_in_one import build
from emulator.live.programs.manager_program import Options
from research.tests.live.test_admission_live import until
from tests import http_client
from tests.hadoop.background import Background
from tests.hadoop.page import blocks
from tests.live.test_pages_live import section
from yarn_research.campaigns.admission_hosts import QUICK, Live, free_port

RM = "http://127.0.0.1:8088"
SOLD = "adm-f03ebfc5-1"
"""The admission that the page shows."""


def commands_of_page() -> list[str]:
    """Return the commands of the section, in its order."""
    text = section("admission.md", "Sell deadlines")
    return [command.words for block in blocks(text) for command in block.commands]


class Typed:
    """A shell in a folder; what one block exports, the next ones have."""

    def __init__(self, folder: Path, rm: str, environment: Mapping[str, str]) -> None:
        self._folder, self._rm, self._environment = folder, rm, environment
        self._exported = ""

    def run(self, block: str) -> str:
        """Run a block to its end; return what it printed."""
        text = self.here(block)
        script = f"set -e\n{self._exported}{text}"
        self._exported += "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def here(self, block: str) -> str:
        """Return a block with the address of this cluster."""
        return block.replace(RM, self._rm)


@contextmanager
def cluster(folder: Path) -> Iterator[Live]:
    """Serve what the page serves, with heartbeats ten times as often."""
    assert commands_of_page()[0] == "yarn-emulator serve --port 8088 --queues default=100 --nodes 2 --slots 4"
    settings = msgspec.structs.replace(
        ManagerSettings(timing=QUICK, max_priority=10),
        queues=(QueueConfig(name="default", capacity_ratio=1.0, am_ratio=0.5),),
    )
    nodes = Nodes(nodes=2, memory_mib=4096, vcores=4, processes=False)
    with Background(lambda url: build(Options(work=folder / "work"), nodes, url, settings).web) as server:
        yield Live(server.url)


@contextmanager
def keeping(line: str, folder: Path, environment: Mapping[str, str], url: str) -> Iterator[None]:
    """Let the page's gate run, listening at ``url``."""
    words = [*shlex.split(line.replace("\\\n", " ")), "--listen", url.removeprefix("http://")]
    log = folder / "daemon.log"
    with log.open("wb") as said:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said)

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            told = http_client.get(f"{url}/v1/admissions", timeout=30).json()["gate"]
        except http_client.RequestException:
            return False
        return told is not None and bool(told["capacity"])

    try:
        until(answers, "the gate answers")
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.xdist_group("admission-live")
def test_the_page_leads_from_check_to_a_paid_deadline(tmp_path: Path) -> None:
    _, check, *files, gate, add, credit, export, first, quote, admit, explain = commands_of_page()
    url = f"http://127.0.0.1:{free_port()}"
    with cluster(tmp_path) as host:
        environment = {**host.environment, "YARNCTL_URL": url, "HADOOP_CONF_DIR": ""}
        typed = Typed(tmp_path, host.rm, environment)
        findings = typed.run(check)
        for name in ("ordering-policy", "user-share", "am-share", "max-priority"):
            assert f"ok       {name}:" in findings, findings
        typed.run("\n".join(files))
        with keeping(typed.here(gate), tmp_path, environment, url):
            typed.run(add)
            assert "900" in typed.run(credit)
            typed.run(export)
            typed.run(first)
            shown = until(lambda: _said(typed, quote), "quoted")
            assert "account analytics has 900 tokens" in shown
            assert "itself" in shown
            paid = typed.run(admit)
            assert "admitted: adm-" in paid
            assert "the deadline costs" in paid
            (sold,) = http_client.get(f"{url}/v1/admissions", timeout=30).json()["items"]
            until(
                lambda: "used for estimates" in typed.run(explain.replace(SOLD, sold["id"])), "it has taught"
            )
            told = typed.run(explain.replace(SOLD, sold["id"]))
    for words in ("requested daily-2", "analytics paid", "later deadlines were cheaper", "ended: "):
        assert words in told, told


def _said(typed: Typed, block: str) -> str:
    """Return what a block printed; nothing while the history does not have the first run yet."""
    try:
        return typed.run(block)
    except AssertionError as error:
        assert "no estimate of the job's work is available" in str(error)
        return ""
