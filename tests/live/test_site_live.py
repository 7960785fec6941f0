"""A site's defaults, its edge script, a tag that opts out and the hours of a queue, on the live emulator.

Law: users type their commands without wrap; what was done is read from the journal.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.commands.test_edge_script import Edge
from tests.live.test_leaving_live import EXECUTORS, executors_of, whole
from tests.soak.virtual_live_sides import Case, attached, program, read_records
from yarnctl.cli import PROGRAM
from yarnctl.cli import wrap as wrap_command
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.model import Drain, Kill, Suspend
from yarnctl.deciding.reasons.demand import OutsideHours
from yarnctl.deciding.records import Decision, Record, Refusal, Requests, Stance
from yarnctl.frameworks.spark.rest import left_well
from yarnctl.frameworks.spark.wrapping import defaults_in
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file

SPEED = 5.0
PATIENCE_S = 120.0
CASE = Case("site", nodes=2, slots=4, jobs=())


def submit(url: str, queue: str, user: str, tasks: str, *words: str) -> str:
    """Submit a job of modelled tasks without the task runner; return its application."""
    from emulator.cli import PROGRAM as EMULATOR

    line = ["submit", "--rm", url, "--queue", queue, "--user", user, "--modelled", tasks, "--no-wait"]
    with contextlib.redirect_stdout(said := StringIO()):
        assert exit_status_of(EMULATOR, [*line, *words]) == 0
    return said.getvalue().split()[-1]


def when(seen: Callable[[], object], what: str) -> None:
    """Wait until it is seen."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline_s, f"never {what}"
        time.sleep(0.2)  # the pace of a poll


def until(folder: Path, found: type[Record] | tuple[type, ...]) -> list[Record]:
    """Wait for a record of this kind that is about production; return all records."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        records = read_records(folder / "state" / "journal.jsonl")
        if any(isinstance(each, found) for each in records):
            return records
        time.sleep(0.2)
    raise AssertionError(f"no {found}: {(folder / 'yarnctl.log').read_text()[-2000:]}")


def actions(records: Sequence[Record]) -> list[object]:
    return [action for each in records if isinstance(each, Requests) for action in each.actions]


def defaults(folder: Path, may_lose: str) -> list[str]:
    """Return what an administrator's mapred-site.xml with the printed defaults makes of a job."""
    printed = CliRunner().invoke(wrap_command.command, ["--print-defaults", "--may-lose", may_lose]).output
    (folder / "mapred-site.xml").write_text(f"<configuration>\n{printed}</configuration>\n")
    entries: dict[str, SiteEntry] = {}
    merge(entries, read_file(folder / "mapred-site.xml"))
    site = HadoopSite(entries)
    return [word for name in entries for word in ("-D", f"{name}={site.text(name)}")]


@pytest.mark.xdist_group("site-live")
def test_a_job_with_the_sites_defaults_is_preempted_within_its_kill_budget(tmp_path: Path) -> None:
    """Maps are killed, at most what the default allows of that job; no reducer is suspended."""
    with attached(CASE, tmp_path, SPEED) as url:
        until(tmp_path, Stance)  # on a busy machine, production could end before yarnctl has started
        job = submit(url, "research", "ann", "8x120,1x20", *defaults(tmp_path, "40%"))
        time.sleep(40 / SPEED)
        submit(url, "production", "bob", "2x5")
        records = until(tmp_path, Decision)
    decisions = [each for each in records if isinstance(each, Decision)]
    assert {pick.application for each in decisions for pick in each.picks} == {job}
    assert {pull.queue for each in decisions for pull in each.levers} == {job}, "its own budget pays"
    assert all(isinstance(each, Kill) and "_m_" in each.attempt for each in actions(records))
    held = max(one.mib_ms for each in records for one in getattr(each, "held", ()) if one.payer == job)
    assert 0 < sum(p.lever.lost_ms for each in decisions for p in each.levers) * 1024 <= 0.4 * held


@contextlib.contextmanager
def application_of_spark(url: str, may_lose: str, log: Path) -> Iterator[str]:
    """Submit what a user's spark-submit makes of the printed spark-defaults.conf; yield the application."""
    words = ["--spark", "--print-defaults", "--may-lose", may_lose]
    settings = defaults_in(CliRunner().invoke(wrap_command.command, words).output)
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    line = ["--master", "yarn", "--queue", "research", "--num-executors", str(EXECUTORS), *conf]
    submit = [str(Path(sys.executable).with_name("yarn-emulator")), "spark-submit", *line, "modelled:2+700"]
    with log.open("w") as said:
        client = subprocess.Popen(submit, env={**os.environ, "YARN_EMULATOR_RM": url}, stderr=said)
    try:
        when(lambda: "submitted " in log.read_text(), "submitted")
        yield log.read_text().split()[1]
    finally:
        client.kill()
        client.wait(PATIENCE_S)


@pytest.mark.xdist_group("site-live")
def test_executors_of_an_application_with_the_sites_defaults_leave_within_its_kill_budget(
    tmp_path: Path,
) -> None:
    """The daemon has no budget of its own: the default of the application pays."""
    with (
        attached(CASE, tmp_path, 1.0, "--room-within", "30s") as url,
        application_of_spark(url, "40%", tmp_path / "submit.log") as job,
    ):
        when(lambda: whole(url, job), "whole")
        submit(url, "production", "bob", "2x5")
        until(tmp_path, Decision)
        when(lambda: any(left_well(each.remove_reason) for each in executors_of(url, job)), "left")
        records = read_records(tmp_path / "state" / "journal.jsonl")
    decisions = [each for each in records if isinstance(each, Decision)]
    assert {pull.queue for each in decisions for pull in each.levers} == {job}, "its own budget pays"
    drains = [each for each in actions(records) if isinstance(each, Drain)]
    assert {each.application for each in drains} == {job}
    assert not any(isinstance(each, Kill | Suspend) for each in actions(records))
    held = max(one.mib_ms for each in records for one in getattr(each, "held", ()) if one.payer == job)
    assert 0 < sum(p.lever.lost_ms for each in decisions for p in each.levers) * 1024 <= 0.4 * held


@pytest.mark.xdist_group("site-live")
def test_a_streaming_job_through_the_edge_script_runs_by_the_task_runner_and_as_before(
    tmp_path: Path,
) -> None:
    """Without a promise of its author the runner becomes the reducer, and says so in the reduce's log."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part").write_text("b\na\nb\n")
    reducer = tmp_path / "count.sh"
    reducer.write_text("uniq -c\n")
    edge = Edge(tmp_path, "", "mapred")
    serve = (
        "serve",
        "--nodes",
        "1",
        "--slots",
        "3",
        "--port",
        "0",
        "--json",
        "--work",
        str(tmp_path / "work"),
    )
    with program("emulator.cli", *serve, log=tmp_path / "serve.log") as served:
        assert served.stdout is not None
        url = json.loads(served.stdout.readline())["url"]
        real = f'exec {sys.executable} -m tests.live.streaming_program {url} "$@"'
        edge.program(tmp_path / "real" / "mapred", real)
        places = ["-input", str(tmp_path / "in"), "-output", str(tmp_path / "out")]
        typed = ["-files", str(reducer), *places, "-mapper", "cat", "-reducer", "sh count.sh"]
        status, out, err = edge.run("streaming", *typed, timeout_s=PATIENCE_S)
    assert (status, out.split()[1:]) == (0, ["SUCCEEDED"]), err
    lines = (tmp_path / "out" / "part-00000").read_text().splitlines()
    assert [line.split() for line in lines] == [["1", "a"], ["2", "b"]]
    logs = "".join(path.read_text() for path in (tmp_path / "work" / "nodes").glob("*/*/stderr"))
    assert "the reducer runs without the task runner: --restartable is not set" in logs


@pytest.mark.xdist_group("site-live")
def test_a_tag_opts_out_and_a_closed_queue_gives_nothing_until_it_opens(tmp_path: Path) -> None:
    """The journal has the reasons, and replays."""
    now = datetime.now(UTC)
    opens = (now + timedelta(seconds=85)).replace(second=0, microsecond=0)
    closes = opens + timedelta(hours=3)
    file = tmp_path / "budgets.toml"
    file.write_text(f'[queue.research]\nhours = ["{opens:%H:%M}-{closes:%H:%M}"]\nzone = "UTC"\n')
    with attached(CASE, tmp_path, SPEED, "--may-lose", "100%", "--budgets", str(file)) as url:
        out = submit(url, "research", "ann", "3x900", "-D", "mapreduce.job.tags=yarnctl-leave-alone")
        job = submit(url, "research", "ann", "3x900")
        time.sleep(6)
        submit(url, "production", "bob", "2x5")
        refused = until(tmp_path, Refusal)
        records = until(tmp_path, Decision)
    opens_at_ms = round(opens.timestamp() * 1000)
    refusals = [each for each in refused if isinstance(each, Refusal)]
    assert OutsideHours("root.research", opens_at_ms, "UTC") in [each.why for each in refusals]
    decisions = [each for each in records if isinstance(each, Decision)]
    assert min(each.at_ms for each in decisions) >= opens_at_ms
    assert {pick.application for each in decisions for pick in each.picks} == {job} != {out}
    assert not any(isinstance(each, Suspend) for each in actions(records))
    assert exit_status_of(PROGRAM, ["replay", str(tmp_path / "state" / "journal.jsonl")]) == 0
