"""``yarnctl history import`` from a live cluster: every attempt of every job, as its masters lived it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import program
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.traces.week.week_folder import read_week

SPEED = 5.0
JOBS = (job("research", 0, [4, 5], [8, 6]), job("production", 5, [5, 6, 7], []))


def test_import_holds_each_attempt_of_a_live_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = ("serve", "--nodes", "3", "--slots", "4", "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(SPEED), "--work", str(tmp_path / "work"))
    week = tmp_path / "week"
    with program("emulator.cli", *cluster, *how, log=tmp_path / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        ended = {row.application: row for row in play(Client(url, "harness"), JOBS, SPEED)}
        words = ["history", "import", "--rm", url, "--history", url, "--out", str(week), "-o", "json"]
        assert exit_status_of(PROGRAM, words) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == len(JOBS)
    found = {one.job.job: one for one in read_week(week)}
    assert found.keys() == ended.keys()
    for submitted, row in zip(JOBS, sorted(ended.values(), key=lambda row: row.submitted_at_ms), strict=True):
        one = found[row.application]
        assert (one.job.queue, one.job.state, one.job.detail) == (submitted.queue, "SUCCEEDED", "containers")
        kinds = [container.kind for container in one.containers]
        counts = {kind: kinds.count(kind) for kind in ("master", "map", "reduce")}
        assert counts == {"master": 1, "map": len(submitted.map_ms), "reduce": len(submitted.reduce_ms)}
        maps_ms = sorted(container.span_ms for container in one.containers if container.kind == "map")
        for span_ms, length_ms in zip(maps_ms, sorted(submitted.map_ms), strict=True):
            assert span_ms * SPEED >= length_ms * 0.9
        for container in one.containers:
            if container.kind == "reduce":
                assert container.started_at_ms < (container.merged_at_ms or 0) <= container.ended_at_ms
