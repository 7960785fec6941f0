"""What ``yarnctl run`` logs: text, JSON, levels, and audit lines in RMAuditLogger's form."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.daemon.test_loop import Lock, busy, daemon
from yarnctl.audit import audit_line
from yarnctl.cli.logs import LogFormat, LogLevel, set_level, set_up
from yarnctl.deciding.model import Suspend

FORGED = "x\n2026-11-29 00:00:00,000 ERROR forged\x1b[2J\tUSER=root"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A stream; the log of the process is as before afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_have_time_level_logger_message_and_trace(stream: io.StringIO) -> None:
    set_up("info", "json", stream)
    log = logging.getLogger("yarnctl.daemon")
    log.info("decision %d", 7)
    try:
        raise ValueError(FORGED)
    except ValueError:
        log.exception("observing failed")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["log.level"], first["log.logger"]) == ("info", "yarnctl.daemon")
    assert first["message"] == "decision 7"
    assert first["@timestamp"].endswith("Z")
    assert second["error.stack_trace"].startswith("Traceback")
    assert FORGED in second["error.stack_trace"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_message_cannot_forge_a_line(stream: io.StringIO, log_format: LogFormat) -> None:
    set_up("info", log_format, stream)
    logging.getLogger("yarnctl.daemon").warning("application %s waits", FORGED)
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_an_exception_cannot_forge_a_line(stream: io.StringIO) -> None:
    set_up("info", "text", stream)
    try:
        raise ValueError(f"{FORGED}\r2026-11-29 forged\u20282026-11-29 forged")
    except ValueError as error:
        logging.getLogger("yarnctl.daemon").error("observing failed", exc_info=error)
    line, *more = stream.getvalue().splitlines()
    assert line.endswith(" ERROR observing failed")
    assert [each for each in more if not each.startswith("\t")] == []
    assert more[0] == "\tTraceback (most recent call last):"
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(("level", "shown"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_levels(stream: io.StringIO, level: LogLevel, shown: int) -> None:
    set_up("error", "text", stream)
    set_level(level)
    log = logging.getLogger("yarnctl.daemon")
    log.debug("a")
    log.info("b")
    log.warning("c")
    assert len(stream.getvalue().splitlines()) == shown


@pytest.mark.parametrize("level", ["info", "error"])
def test_an_enforcing_daemon_writes_an_audit_line_for_each_action(
    stream: io.StringIO, level: LogLevel
) -> None:
    set_up(level, "text", stream)
    cluster = busy()
    loop, _ = daemon(cluster, lock=Lock())
    loop.recorder.account = "yarnctl"
    loop.run(60)
    lines = [line.partition("USER=")[2] for line in stream.getvalue().splitlines() if "USER=" in line]
    assert len(lines) == len(cluster.actions) > 0
    fields = dict(field.split("=", 1) for field in ("USER=" + lines[0]).split("\t"))
    assert list(fields) == ["USER", "OPERATION", "TARGET", "RESULT", "APPID", "CONTAINERID", "QUEUENAME"]
    order = cluster.actions[0]
    assert isinstance(order, Suspend)
    assert fields["USER"] == "yarnctl"
    assert (fields["OPERATION"], fields["TARGET"], fields["RESULT"]) == ("suspend", order.order, "SUCCESS")
    assert fields["APPID"].startswith("research")


def test_an_observing_daemon_writes_none(stream: io.StringIO) -> None:
    set_up("info", "text", stream)
    loop, _ = daemon(busy(), enforce=False)
    loop.run(40)
    assert "USER=" not in stream.getvalue()


def test_a_failure_has_its_reason() -> None:
    line = audit_line("", "POST /v1/loop/pause", "api", "status 401", address="10.0.0.7")
    expected = "USER=null IP=10.0.0.7 OPERATION=POST~/v1/loop/pause TARGET=api RESULT=FAILURE"
    assert line == expected.replace(" ", "\t").replace("~", " ") + "\tDESCRIPTION=status 401"


@settings(max_examples=examples(200))
@given(st.text(), st.text())
def test_a_value_begins_no_other_field(user: str, queue: str) -> None:
    line = audit_line(user, "suspend", "o-1", application="a", queue=queue)
    assert len(line.splitlines()) == 1
    assert line.count("\t") == 4 + bool(queue)


def test_a_rejection_that_hdfs_raises_is_not_logged_by_the_library(stream: io.StringIO) -> None:
    set_up("info", "text", stream)
    logging.getLogger("hdfs.client").error(b"")
    assert stream.getvalue() == ""
