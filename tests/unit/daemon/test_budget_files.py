"""``budgets.toml``: what it says, and what is refused by its line and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnctl.cli import PROGRAM
from yarnctl.cli.cluster import ClusterOptions, FolderOptions, QueueOptions
from yarnctl.cli.gate_options import GateOptions
from yarnctl.cli.run import PreemptionOptions, StateOptions, plan_of
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.budget_files import BudgetsFile, read_budgets
from yarnctl.deciding.open_hours import OpenHours
from yarnctl.deciding.settings import LossRule
from yarnctl.errors import BadInput

RESEARCH = '[queue.research]\nmay_lose = "2%"\n'
HOURS = '[queue.research]\nhours = ["19:00-07:00"]\n'


def hours_of(words: str) -> str:
    return f'[queue.research]\nhours = ["{words}"]\nzone = "UTC"\n'


def test_a_file_of_budgets_is_read(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(
        '[queue."root.research"]\nmay_lose = "2%"\nwindow = "30m"\n'
        '[queue.root.prod.etl]\nmay_lose = "1%"\n'
        '[user."ann@EXAMPLE"]\nmay_lose = "0.005"\n[user.bob]\nmay_lose = "0%"\nwindow = "2d"\n'
    )
    assert read_budgets(file).rules == (
        LossRule("queue", "root.research", 0.02, 1_800_000),
        LossRule("queue", "root.prod.etl", 0.01, 3_600_000),
        LossRule("user", "ann@EXAMPLE", 0.005, 3_600_000),
        LossRule("user", "bob", 0.0, 172_800_000),
    )


def test_an_empty_file_has_no_budgets(tmp_path: Path) -> None:
    (tmp_path / "budgets.toml").write_text("")
    assert read_budgets(tmp_path / "budgets.toml") == BudgetsFile()


@pytest.mark.parametrize(
    ("text", "said"),
    [('[user."a b"]\nmay_lose = "2%"\n', " line 1: user a b: invalid user name"),
     ('[queues.research]\nmay_lose = "2%"\n', " line 1: unknown table 'queues'"),
     ("queue = 3\n", ": unknown table 'queue'"), ("[queue]\nresearch = 3\n", "queue research: not a table"),
     (RESEARCH + "size = 3\n", " line 1: queue research: unknown key 'size'"),
     ("[queue.research]\n", " line 1: queue research: empty table"),
     ("[queue.research]\nmay_lose = 0.02\n", "queue research: invalid may_lose 0.02"),
     ('[queue.research]\nmay_lose = "101%"\n', "queue research: may_lose: '101%' is not a share"),
     ('[queue.research]\nmay_lose = "-1%"\n', "queue research: may_lose: '-1%' is not a share"),
     ('[queue.research]\nmay_lose = "nan"\n', "queue research: may_lose: 'nan' is not a share"),
     (RESEARCH + 'window = "30s"\n', "queue research: window '30s' is outside of 1m to 7d"),
     (RESEARCH + "window = 60\n", "queue research: window 60 is outside of 1m to 7d"),
     ("[queue", "invalid TOML"), ("#" * 70_000, "exceeds 64 KiB"),
     (RESEARCH + 'hour = ["19:00-07:00"]\n', "line 1: queue research: unknown key 'hour'; did you mean hour"),
     ("[user.ann]\nleave_alon = true\n", "line 1: user ann: unknown key 'leave_alon'; did you mean leave"),
     ('[user.ann]\nzone = "UTC"\n', "user ann: unknown key 'zone'; use may_lose, window, leave_alone"),
     ('[queue.research]\nwindow = "1h"\n', "queue research: window without may_lose"),
     ('[queue.research]\nleave_alone = "yes"\n', "queue research: invalid leave_alone 'yes'"),
     (RESEARCH + "leave_alone = true\n", "queue research: may_lose beside leave_alone = true"),
     (HOURS, "queue research: hours without zone"),
     ('[queue.research]\nzone = "UTC"\n', "queue research: zone without hours"),
     (HOURS + 'zone = "Europe/Berlyn"\n', "unknown zone 'Europe/Berlyn'; did you mean Europe/Berlin"),
     (HOURS + "zone = 1\n", "unknown zone 1; use a name like"),
     (HOURS + 'zone = "../etc"\n', "unknown zone '../etc'; use a name like"),
     (hours_of("19-7"), "line 1: queue research: invalid hours '19-7'"),
     (hours_of("Mon-Fry 19:00-07:00"), "unknown day 'fry' in hours 'Mon-Fry 19:00-07:00'; did you mean fri"),
     (hours_of("19:00-25:00"), "hours '19:00-25:00' are not between 00:00 and 24:00"),
     (hours_of("24:00-07:00"), "hours '24:00-07:00' are not between 00:00 and 24:00"),
     (hours_of("07:00-07:00"), "hours '07:00-07:00' begin where they end"),
     ('[queue.research]\nhours = []\nzone = "UTC"\n', "hours [] is not a list of 1 to 50"),
     ('[queue.research]\nhours = "19:00-07:00"\nzone = "UTC"\n', "hours '19:00-07:00' is not a list"),
     (f"[queue.{'.'.join('a' * 9_000)}]\nmay_lose = '2%'\n", "unknown key 'a'; use")],
)  # fmt: skip
def test_what_is_no_file_of_budgets_is_refused_by_line_and_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        read_budgets(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_budgets(tmp_path / "gone.toml")


def test_hours_and_names_to_leave_alone_are_read(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(
        '[queue.research]\nmay_lose = "2%"\n'
        'hours = ["Mon-Tue 19:00-07:00", "sun 00:00-24:00"]\nzone = "UTC"\n'
        "[queue.root.etl]\nleave_alone = true\n[queue.ml]\nleave_alone = false\n"
        "[user.bob]\nleave_alone = true\n"
    )
    found = read_budgets(file)
    windows = ((19 * 60, 720), (1440 + 19 * 60, 720), (6 * 1440, 1440))
    assert found.hours == (OpenHours("research", "UTC", windows, ((1_767_225_600_000, 0),)),)
    assert (found.queues_left_alone, found.users_left_alone) == (("root.etl",), ("bob",))
    assert found.queues == ("research", "root.etl")


def test_the_offsets_of_a_zone_change_at_its_own_instants(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(HOURS + 'zone = "Europe/Berlin"\n')
    (hours,) = read_budgets(file).hours
    first, spring, autumn = hours.offsets[:3]
    assert first[1] == 60
    assert spring == (1_774_746_000_000, 120)  # 2026-03-29 01:00 UTC
    assert autumn == (1_792_890_000_000, 60)  # 2026-10-25 01:00 UTC
    assert len(hours.offsets) == 1 + 2 * 20


def test_budgets_need_the_mix_and_hours_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "budgets.toml"
    words = ["run", "--rm", "http://127.0.0.1:9", "--budgets", str(file)]
    file.write_text(RESEARCH)
    assert exit_status_of(PROGRAM, words) == 2
    assert "--budgets: may_lose of queue research requires --eviction mix" in capsys.readouterr().err
    file.write_text(HOURS + 'zone = "UTC"\n[user.ann]\nleave_alone = true\n')
    plan = plan_of(
        ClusterOptions(managers=("http://127.0.0.1:9",)), QueueOptions(), PreemptionOptions(budgets=file),
        FolderOptions(), StateOptions(), GateOptions(),
    )  # fmt: skip
    assert plan.settings.levers is None
    assert [each.queue for each in plan.settings.hours or ()] == ["research"]
    assert plan.attachment.left_alone_users == ("ann",)
