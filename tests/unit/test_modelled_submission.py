"""``yarn-emulator submit --modelled``: a job of timetables from a command line, with its settings and
tags.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.cli.submit import modelled_of, spans_of
from emulator.live.jobs.submission_client import Client
from emulator.live.wire.submitted_job import ENTRY, ModelledJob, read_job
from yarnctl.errors import BadInput


def made(modelled: str, *settings: str) -> ModelledJob:
    return modelled_of(modelled, name="daily-1", user="ann", queue="production", settings=settings)


def test_a_job_of_timetables():
    job = made("12x20,4x0.5", "mapreduce.job.running.map.limit=3")
    assert job.job.map_ms == (20_000,) * 12
    assert job.job.reduce_ms == (500,) * 4
    assert (job.job.name, job.job.user, job.job.queue) == ("daily-1", "ann", "production")
    assert job.settings == {"mapreduce.job.running.map.limit": "3"}
    assert made("3x1").job.reduce_ms == ()


@pytest.mark.parametrize("text", ["", "12", "12x", "0x5", "-1x5", "x5", "12x1e3", "12 x 5", "12x20;4x30"])
def test_what_is_no_timetable_is_refused(text):
    with pytest.raises(BadInput, match="is not COUNTxSECONDS"):
        spans_of(text)


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match=r"running\.map\.limit"):
        made("1x1", "mapreduce.job.running.map.limit=few")


def test_the_tags_of_its_settings_are_the_application_s(monkeypatch):
    """As Hadoop's own client does it; those of ``--deadline`` come with them."""
    sent: list[dict[str, Any]] = []

    def ask(_self: Client, _method: str, url: str, body: object = None) -> tuple[int, bytes]:
        if url.endswith("/apps?user.name=ann"):
            assert isinstance(body, dict)
            sent.append(body)
        return 200, json.dumps({"application-id": "application_1_0001"}).encode()

    monkeypatch.setattr(Client, "_ask", ask)
    job = made("1x1", "mapreduce.job.tags=deadline:1900000000000, etl")
    assert Client("http://h:1", "ann").submit(job, "production", ("x",)) == "application_1_0001"
    assert sent[0]["application-tags"] == "deadline:1900000000000,etl,x"
    entry = sent[0]["am-container-spec"]["environment"]["entry"][0]
    assert entry["key"] == ENTRY
    assert read_job(entry["value"]) == job
