"""Numbers, amounts and instants as people write them: plain digits only, and no time that is not there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarnctl.amounts import part_of
from yarnctl.cli.admissions import instant_of
from yarnctl.cli.place import late_of
from yarnctl.command_line import exit_status_of
from yarnctl.config import load_cluster
from yarnctl.errors import BadInput

ODD = ["1_0%", "\uff11\uff10%", "1_0", "0.0_1", "\u0662%", " 2%", "2 %", "+2%", "nan", "%"]


def test_part_of_takes_plain_digits_only() -> None:
    taken = []
    for text in ODD:
        try:
            taken.append((text, part_of("--may-lose", text)))
        except BadInput:
            continue
    assert taken == []


def test_late_takes_plain_digits_only() -> None:
    taken = []
    for text in ODD:
        try:
            taken.append((text, late_of(text)))
        except BadInput:
            continue
    assert taken == []


@pytest.mark.parametrize("text", ["1_0", "\uff11\uff10", "\u0662"])
def test_whole_numbers_of_options_are_plain_digits(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    from yarnctl.cli import PROGRAM

    words = ["admit", "--deadline", "5m", "--containers", text, "--url", "http://127.0.0.1:1", "--print"]
    assert exit_status_of(PROGRAM, [*words, "--", "hadoop", "jar", "x.jar"]) == 2
    assert "--containers" in capsys.readouterr().err


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_local_time_that_does_not_exist_is_rejected_with_the_gap() -> None:
    with pytest.raises(BadInput) as refused:
        instant_of("--deadline-at", "2030-03-31T02:30")
    for word in ("2030-03-31T02:00", "2030-03-31T03:00", "--deadline-at"):
        assert word in str(refused.value)


@pytest.mark.usefixtures("berlin")
def test_a_local_time_that_comes_twice_needs_an_offset() -> None:
    with pytest.raises(BadInput) as refused:
        instant_of("--deadline-at", "2030-10-27T02:30")
    for word in ("2030-10-27T02:30+02:00", "2030-10-27T02:30+01:00"):
        assert word in str(refused.value)


@pytest.mark.usefixtures("berlin")
def test_other_local_times_are_taken_as_they_are() -> None:
    known = {
        "2030-03-31T01:59": 1_901_149_140_000, "2030-03-31T03:00": 1_901_149_200_000,
        "2030-10-27T01:59": 1_919_289_540_000, "2030-10-27T03:00": 1_919_296_800_000,
        "2030-10-27T02:30+02:00": 1_919_291_400_000, "2030-10-27T02:30+01:00": 1_919_295_000_000,
        "2030-03-31T02:30+01:00": 1_901_151_000_000,
    }  # fmt: skip
    assert {text: instant_of("--deadline-at", text) for text in known} == known


@pytest.mark.parametrize("key", ["ca_file", "hadoop_conf_dir", "user"])
def test_a_path_of_the_configuration_with_a_nul_is_refused(key: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(f'[cluster]\nresource_managers = ["http://rm:8088"]\n{key} = "a\\u0000b"\n')
    with pytest.raises(BadInput):
        load_cluster(file)


@pytest.mark.parametrize("text", ["1_0", "\uff11\uff10", "nan", "inf", "0x10"])
def test_numbers_in_a_file_of_runs_are_plain_digits(text: str) -> None:
    from yarnctl.prediction.application_runs import _number

    with pytest.raises(BadInput):
        _number({"seconds": text}, "seconds", "runs.csv:2")
    assert _number({"seconds": "1.5e3"}, "seconds", "runs.csv:2") == 1500.0
