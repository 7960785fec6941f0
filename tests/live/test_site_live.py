"""A site's defaults, a tag that opts out and the hours of a queue, on the live emulator.

Law: jobs are submitted as users do, without wrap; what was done is read from the journal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.soak.virtual_live_sides import Case, attached, read_records
from yarnctl.cli import PROGRAM
from yarnctl.cli import wrap as wrap_command
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.model import Kill, Suspend
from yarnctl.deciding.reasons.demand import OutsideHours
from yarnctl.deciding.records import Decision, Record, Refusal, Requests, Stance
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
