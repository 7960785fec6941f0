"""``yarn-emulator compare --schemes mix``: its options, what its row has more, garbage refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec import UNSET

from emulator.cli import PROGRAM
from tests.daemon_plans import plan_for
from yarnctl.amounts import part_of, span_ms_of
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.levers import LeverKind
from yarnctl.errors import BadInput

SMALL = ["--production", "synthetic:production-s", "--research", "synthetic:research-s", "--workers", "1"]
CLUSTER = ["--nodes", "3", "--slots", "5"]
MORE_KEYS = ["levers", "levers_in_time", "predicted_lost_s", "refetch_s"]


def compared(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Compare natjam and mix; return their rows."""
    status = exit_status_of(
        PROGRAM, ["compare", *SMALL, *CLUSTER, "--schemes", "natjam,mix", *words, "--json"]
    )
    out, err = capfd.readouterr()
    assert status == 0, err
    found: dict[str, Any] = json.loads(out)["schemes"]
    return {name: {key: each for key, each in row.items() if key != "wall_s"} for name, row in found.items()}


def test_the_row_of_the_mix_has_its_levers_beside_what_was_predicted(capfd):
    rows = compared(capfd, "--may-lose", "20%")
    mix, natjam = rows["mix"], rows["natjam"]
    assert [key for key in mix if key not in natjam] == MORE_KEYS
    assert list(mix["levers"]) == list(get_args(LeverKind))
    assert list(mix["levers_in_time"]) == list(get_args(LeverKind))
    assert sum(mix["levers"].values()) > 0
    assert all(0 <= mix["levers_in_time"][kind] <= count for kind, count in mix["levers"].items())
    assert mix["kills"] == mix["levers"]["kill"] + mix["levers"]["end"]
    assert mix["suspensions"] <= mix["levers"]["suspend"]


def test_without_a_budget_nothing_is_lost_and_no_map_is_killed(capfd):
    mix = compared(capfd, "--may-lose", "0%")["mix"]
    assert (mix["levers"]["kill"], mix["predicted_lost_s"], mix["lost_work_s"]) == (0, 0.0, 0.0)


def test_every_invariant_holds_under_validate(capfd):
    assert compared(capfd, "--may-lose", "20%", "--validate") == compared(capfd, "--may-lose", "20%")


def test_levers_that_give_room_too_late_are_not_pulled(capfd):
    mix = compared(capfd, "--room-within", "1ms", "--may-lose", "20%")["mix"]
    assert sum(mix["levers"].values()) == mix["levers"]["cap"]


GARBAGE = [
    # option and text                what the line says
    (["--may-lose", "101%"], "--may-lose: '101%' is not a share from 0% to 100%"),
    (["--may-lose", "-1%"], "--may-lose: '-1%' is not a share"),
    (["--may-lose", "nan"], "--may-lose: 'nan' is not a share"),
    (["--may-lose", "nan%"], "--may-lose: 'nan%' is not a share"),
    (["--may-lose", "inf"], "--may-lose: 'inf' is not a share"),
    (["--may-lose", "1.01"], "--may-lose: '1.01' is not a share"),
    (["--may-lose", ""], "--may-lose: '' is not a share"),
    (["--may-lose", "%"], "--may-lose: '%' is not a share"),
    (["--may-lose", "2%%"], "--may-lose: '2%%' is not a share"),
    (["--room-within", "3"], "--room-within: '3' is not a duration from 1ms to 60m"),
    (["--room-within", "0s"], "--room-within: '0s' is not a duration"),
    (["--room-within", "-3s"], "--room-within: '-3s' is not a duration"),
    (["--room-within", "61m"], "--room-within: '61m' is not a duration"),
    (["--room-within", "nans"], "--room-within: 'nans' is not a duration"),
    (["--room-within", ""], "--room-within: '' is not a duration"),
    (["--room-within", "\u0663s"], "--room-within: '\u0663s' is not a duration"),
]


@pytest.mark.parametrize(("words", "line"), GARBAGE)
def test_garbage_is_refused_by_the_name_of_its_option_and_nothing_is_written(capfd, tmp_path, words, line):
    out = tmp_path / "out"
    status = exit_status_of(
        PROGRAM, ["compare", *SMALL, *CLUSTER, "--schemes", "mix", *words, "--out", str(out)]
    )
    said, error = capfd.readouterr()
    assert (status, said) == (2, "")
    assert line in error
    assert len(error.splitlines()) == 1
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("text", "part"), [("2%", 0.02), ("0%", 0), ("100%", 1), ("0.5%", 0.005), ("0.02", 0.02), ("1", 1)]
)
def test_a_part(text, part):
    assert part_of("--may-lose", text) == pytest.approx(part)


@pytest.mark.parametrize(
    ("text", "span_ms"), [("3s", 3000), ("1.5s", 1500), ("250ms", 250), ("2m", 120_000), ("60m", 3_600_000)]
)
def test_a_span(text, span_ms):
    assert span_ms_of("--room-within", text) == span_ms


def test_a_span_below_a_millisecond_is_none():
    with pytest.raises(BadInput):
        span_ms_of("--room-within", "0.4ms")


# --- yarnctl run ------------------------------------------------------------------------------------------


def plan(*words: str) -> Any:
    arguments = ["--rm", "http://127.0.0.1:1", "--state-dir", "unused", *words]
    return plan_for(*arguments)


def test_the_daemon_decides_by_natjam_unless_told() -> None:
    told = plan()
    assert not told.attachment.levers
    assert told.settings.levers is None


def test_in_flight_defaults_let_a_small_cluster_suspend_four_at_once() -> None:
    settings = plan().settings
    assert (settings.in_flight_ratio_max, settings.in_flight_least) == (0.1, 4)
    assert plan("--in-flight-least", "1").settings.in_flight_least == 1


def test_the_daemon_s_mix_has_a_budget_and_a_span() -> None:
    levers = plan("--eviction", "mix").settings.levers
    assert (levers.may_lose_ratio, levers.room_within_ms, levers.suspend_ms) == (0.0, 12_000, 4000)
    assert (levers.second_worth_ratio, levers.kills_max) == (1.0, 3)
    plain = plan("--eviction", "mix", "--second-worth", "0").settings.levers
    assert (plain.room_within_ms, plain.second_worth_ratio, plain.kills_max) == (4000, UNSET, UNSET)
    assert plan("--eviction", "mix", "--second-worth", "2.5").settings.levers.second_worth_ratio == 2.5
    told = plan("--eviction", "mix", "--may-lose", "2%", "--room-within", "3s")
    assert told.attachment.levers
    assert (told.settings.levers.may_lose_ratio, told.settings.levers.room_within_ms) == (0.02, 3000)
    assert told.attachment.spark_idle_ms == 2000
    assert plan("--eviction", "mix", "--idle-after", "1m").attachment.spark_idle_ms == 60_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--may-lose", "2%"), "--may-lose: requires --eviction mix"),
        (("--room-within", "3s"), "--room-within: requires --eviction mix"),
        (("--idle-after", "3s"), "--idle-after: requires --eviction mix"),
        (("--eviction", "mix", "--idle-after", "soon"), "--idle-after: 'soon' is not a duration"),
        (("--eviction", "mix", "--may-lose", "101%"), "--may-lose: '101%' is not a share"),
        (("--eviction", "mix", "--may-lose", "-1%"), "--may-lose: '-1%' is not a share"),
        (("--eviction", "mix", "--may-lose", "nan"), "--may-lose: 'nan' is not a share"),
        (("--eviction", "mix", "--room-within", "soon"), "--room-within: 'soon' is not a duration"),
        (("--eviction", "mix", "--kill-on-timeout"), "--kill-on-timeout: cannot be combined with"),
        (("--eviction", "mix", "--mode", "deadlines"), "--eviction: mix works only between queues"),
    ],
)
def test_what_the_daemon_s_mix_cannot_mean_is_refused_by_name(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        plan(*words)
    assert said in str(refused.value)
