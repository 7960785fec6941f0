"""``yarn-emulator rm`` as a process, and the queues it is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from emulator.cluster.entities import NodeLabel
from emulator.live.manager.manager_settings import queues_of_text
from emulator.live.programs.manager_program import Options, settings_of
from emulator.live.wire.http_server import bind
from emulator.scenario.scheduler_file import read_scheduler_file
from tests import http_client
from yarnctl.errors import BadInput

ROOT = Path(__file__).parents[2]
DUAL = ROOT / "hadoop-conf/dual-queue/capacity-scheduler.xml"


def start(*options: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", "from emulator.cli import main; main()", "rm", *map(str, options)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_it_says_one_line_when_everything_answers_and_ends_in_order(tmp_path, end):
    program = start("--port", 0, "--work", tmp_path, "--json", "--dialect", "3.5", "--queues", "a=60,b=40")
    try:
        assert program.stdout is not None
        told = json.loads(program.stdout.readline())
        info = http_client.get(told["url"] + "/ws/v1/cluster/info").json()["clusterInfo"]
        assert (info["id"], info["hadoopVersion"]) == (told["epoch"], "3.5.0")
        folder = http_client.get(told["url"] + "/webhdfs/v1/tmp?op=GETFILESTATUS").json()
        assert folder["FileStatus"]["type"] == "DIRECTORY"
        scheduler = http_client.get(told["url"] + "/ws/v1/cluster/scheduler").json()
        rows = scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]
        assert [(row["queueName"], row["capacity"]) for row in rows] == [("a", 60.0), ("b", 40.0)]
        program.send_signal(end)
        assert program.wait(30) == 0
    finally:
        program.kill()
        out, errors = program.communicate()
    assert (out, errors) == ("", "")


def test_bad_input_is_one_line_and_exit_2(tmp_path):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        for options, story in (
            (("--port", port), f"error: address 127.0.0.1:{port}"),
            (("--queues", "a=50"), "error: --queues: shares add up to 50"),
            (
                ("--queues", "a=100", "--scheduler-xml", DUAL),
                "error: --queues: cannot be combined with --scheduler-xml",
            ),
            (("--work", tmp_path / "file"), "error:"),
            (("--host", "no.such.host.invalid"), "error: address no.such.host.invalid:8088"),
        ):
            (tmp_path / "file").write_text("")
            program = start("--work", tmp_path / "w", *options)
            out, errors = program.communicate(timeout=60)
            assert (program.returncode, out, len(errors.splitlines())) == (2, "", 1), errors
            assert errors.startswith(story)


def test_the_ready_configuration_is_read():
    (production, research), (root,), *_ = read_scheduler_file(DUAL)
    assert (root.order, production.priority, research.priority) == ("priority-utilization", 10, 0)
    assert (production.name, production.capacity_ratio, production.preempting) == ("production", 0.95, True)
    assert (research.name, research.capacity_ratio, research.preempting) == ("research", 0.05, False)
    assert (production.am_ratio, production.user_limit_factor, research.user_limit_factor) == (0.5, 2.0, 40.0)
    (default,) = read_scheduler_file(ROOT / "hadoop-conf/deadline/capacity-scheduler.xml").leaves
    assert default.name == "default"


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "not NAME=SHARE"), ("a", "not NAME=SHARE"), ("a=x", "not a number"), ("a=nan", "not between"),
     ("a=101", "not between"), ("a=50,a=50", "is named twice"), ("a.b=100", "not NAME=SHARE"),
     ("a=50,b=49", "add up to 99")],
)  # fmt: skip
def test_queues_that_cannot_be(text, why):
    with pytest.raises(BadInput, match=why):
        queues_of_text(text)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("production,research", "", "names no queue"), ("production,research", "production", "add up to 95"),
     ("production,research", "production,research,third", "'' is not a number"),
     (">95<", ">x<", "not a number"),
     ("<configuration>", "<configuration", "invalid XML"),
     ("<configuration>", "<!DOCTYPE x><configuration>", "document types")],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named(tmp_path, old, new, why):
    text = DUAL.read_text()
    assert old in text
    path = tmp_path / "capacity-scheduler.xml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=why) as caught:
        read_scheduler_file(path)
    assert str(path) in str(caught.value)


def test_node_labels_are_read_from_their_text_and_need_a_file(tmp_path):
    options = Options(work=tmp_path, scheduler_xml=DUAL, node_labels="gpu:2,ne:1:shared")
    assert settings_of(options).labels == (
        NodeLabel(name="gpu", nodes=2), NodeLabel(name="ne", nodes=1, exclusive=False),
    )  # fmt: skip
    for text, why in (
        ("gpu", "'gpu' is not NAME:NODES"),
        ("gpu:x", "'gpu:x' is not NAME:NODES"),
        ("g u:1", "'g u:1' is not NAME:NODES"),
        ("gpu:1:open", "neither exclusive nor shared"),
        ("gpu:1,gpu:2", "named twice"),
    ):
        with pytest.raises(BadInput, match=why):
            settings_of(msgspec.structs.replace(options, node_labels=text))
    with pytest.raises(BadInput, match="has no effect without --scheduler-xml"):
        settings_of(msgspec.structs.replace(options, scheduler_xml=None))
