"""docs/admission.md, "Place an application", on the live emulator: profile, place, wait, explain."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from research.tests.live.test_admission_live import until
from tests.hadoop.page import blocks
from tests.live.test_pages_live import FILE, section
from yarn_research.campaigns.admission_hosts import gate
from yarn_research.campaigns.placement_hosts import live_pools

PAGE = section("admission.md", "Place an application")
RM = "http://127.0.0.1:8088"
SHOWN = "adm-e33d5195-2"
"""The admission that the page explains."""


class Played(NamedTuple):
    """A command of the page that has ended."""

    line: str
    status: int
    out: str


def files_of_page(folder: Path, rm: str) -> None:
    """Write the files that the page shows, each under the name in its first line."""
    for body, name in FILE.findall(PAGE):
        (folder / name).write_text(body.replace(RM, rm))


def commands_of_page() -> list[str]:
    """Return the page's commands after its cluster, its gate and its exports are there."""
    lines = [command.words for block in blocks(PAGE) if not block.kind for command in block.commands]
    return [line.replace(RM, "$YARNCTL_RM") for line in lines if not line.startswith("export ")]


def start(line: str, folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    words = shlex.split(line.removesuffix("&").replace("$YARNCTL_RM", environment["YARNCTL_RM"]))
    both = subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=both[0], stderr=both[1], text=True)


def ended(line: str, process: subprocess.Popen[str]) -> Played:
    out, _ = process.communicate(timeout=180)
    return Played(line, process.returncode, out)


def play_page(folder: Path) -> tuple[list[Played], list[dict[str, Any]]]:
    """Run the page; return what each command said, and the admissions, oldest first."""
    with live_pools(folder) as host:
        files_of_page(folder, host.rm)
        pools = ("--pools", str(folder / "pools.toml"))
        with gate(host, folder / "gate", "orion", pools, pooled=True) as through:
            environment = {**host.environment, **through.environment}
            played, behind = list[Played](), list[tuple[str, subprocess.Popen[str]]]()
            for line in commands_of_page():
                if line.startswith("yarnctl explain"):
                    until(lambda: through.asked()["gate"]["learned"] == 3, "all have taught")
                    second = sorted(each["id"] for each in through.asked()["items"])[1]
                    journal = str(folder / "gate" / "state" / "journal.jsonl")
                    line = line.replace(SHOWN, second).replace("state/journal.jsonl", journal)
                if line == "wait":
                    played += [ended(*each) for each in behind]
                elif line.endswith("&"):
                    before = len(through.asked()["items"])
                    behind.append((line, start(line, folder, environment)))
                    until(lambda: len(through.asked()["items"]) > before, "it has asked")  # noqa: B023
                else:
                    played.append(ended(line, start(line, folder, environment)))
            return played, sorted(through.asked()["items"], key=lambda each: each["id"])


@pytest.mark.xdist_group("admission-live")
def test_the_page_runs_and_its_second_application_waits_for_the_first(tmp_path: Path) -> None:
    played, admissions = play_page(tmp_path)
    told = {each.line.replace(" &", ""): each for each in played}
    assert [each.line for each in played if each.status != 0] == [], played
    assert "9 runs made" in played[0].out
    assert all(kind in played[1].out for kind in ("flink", "mapreduce", "spark"))
    first, second, third = (each["placement"] for each in admissions)
    assert (first["kind"], first["verdict"]) == ("spark", "admit")
    assert first["containers"] > 2, "in a hurry the dearer one"
    assert second["kind"] == "spark"
    ran = [each for each in admissions if each["state"] == "ended"]
    assert len(ran) == 3
    assert second["start_at_ms"] >= first["start_at_ms"] + 3_000, "it waited for the first"
    waited = told["yarnctl place wordcount.toml --deadline 40s --kind spark"].out
    assert "of pool spark reserved from" in waited
    assert third["cost_mtokens"] <= min(first["cost_mtokens"], second["cost_mtokens"])
    explained = played[-1].out
    for words in ("requested wordcount", "reserved from", "as spark in pool spark", "run time"):
        assert words in explained, explained
