"""``yarnctl config init`` and SIGHUP, with the very program ``yarnctl run`` on the live emulator."""

from __future__ import annotations

import json
import os
import signal
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.soak.virtual_live_sides import PATIENCE_S, program, read_records
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.records import Header

NODES, SLOTS = 1, 4


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    words = ("serve", "--nodes", str(NODES), "--slots", str(SLOTS), "--port", "0", "--json")
    how = ("--containers", "modelled", "--work", str(folder / "work"))
    with program("emulator.cli", *words, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        yield json.loads(serve.stdout.readline())["url"]


def until(met: Callable[[], object], log: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline_s, log.read_text()[-2000:]
        time.sleep(0.1)


@pytest.mark.xdist_group("settings-live")
def test_init_writes_a_file_that_suits_the_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in os.environ if one.startswith("YARNCTL_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "yarnctl.toml"
    with serving(tmp_path) as url:
        status = exit_status_of(PROGRAM, ["check", "--rm", url, "-o", "json"])
        checked = json.loads(capfd.readouterr().out)
        words = ["config", "init", "--rm", url, "--file", str(file)]
        assert exit_status_of(PROGRAM, words) == status
        text = file.read_text()
        assert exit_status_of(PROGRAM, words) == 2
        assert "exists; use --force" in capfd.readouterr().err
        assert exit_status_of(PROGRAM, [*words, "--force"]) == status
    assert file.read_text() == text
    run = tomllib.loads(text)["run"]
    given = checked["next"]["run"][2:]
    assert [
        f"--{key}" for key, value in run.items() for _ in (value if isinstance(value, list) else [value])
    ] == (sorted(given[0::2], key=[f"--{key}" for key in run].index))
    assert {
        one for value in run.values() for one in (value if isinstance(value, list) else [str(value)])
    } == {*given[1::2]}
    lines = text.splitlines()
    assert all(
        lines[lines.index(line) - 1].startswith("# ") for line in lines if " = " in line and line[0] != "#"
    )
    assert "# enforce = true" in lines
    assert exit_status_of(PROGRAM, ["config", "check", str(file)]) == 0
    assert (
        exit_status_of(
            PROGRAM, ["config", "init", "--rm", "http://127.0.0.1:1", "--file", str(tmp_path / "b")]
        )
        == 3
    )
    assert not (tmp_path / "b").exists()


SETTINGS = """[run]
rm = ["{url}"]
state-dir = "{folder}/state"
listen = "{listen}"
preemptable = ["research"]
in-flight = {in_flight}
eviction = "mix"
budgets = "{folder}/budgets.toml"
"""


@pytest.mark.xdist_group("settings-live")
def test_sighup_reloads_what_is_safe_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    file, log, journal = (tmp_path / name for name in ("yarnctl.toml", "yarnctl.log", "state/journal.jsonl"))
    budgets = tmp_path / "budgets.toml"

    def headers() -> list[Header]:
        return [each for each in read_records(journal) if isinstance(each, Header)]

    def write(in_flight: object, listen: str = "off") -> None:
        text = SETTINGS.format(url=url, folder=tmp_path, listen=listen, in_flight=in_flight)
        file.write_text(text)

    def reload(words: str) -> str:
        before = log.read_text()
        daemon.send_signal(signal.SIGHUP)
        until(lambda: words in log.read_text()[len(before) :], log)
        return log.read_text()[len(before) :]

    with serving(tmp_path) as url:
        write(0.1)
        budgets.write_text('[queue.research]\nmay_lose = "2%"\n')
        with program("yarnctl.cli", "run", "--config", str(file), log=log) as daemon:
            until(headers, log)
            write(0.3, listen="127.0.0.1:0")
            said = reload("restart yarnctl")
            assert "settings reloaded: in-flight 0.1 -> 0.3" in said
            assert "restart yarnctl to use the new values of run.listen" in said
            until(lambda: len(headers()) == 2, log)
            write(7)
            assert "run.in-flight: 7 is not a number from 0 to 1" in reload("nothing is changed")
            write(0.3)
            budgets.write_text('[queue.nowhere]\nmay_lose = "1%"\n')
            assert "nowhere" in reload("nothing is changed")
            budgets.write_text('[queue.research]\nmay_lose = "1%"\n[user.ann]\nleave_alone = true\n')
            reload("settings reloaded: no option has changed")
            until(lambda: len(headers()) == 3, log)
            reload("settings reloaded")
            write("0.3\npreempting = ['root.production']")
            reload("settings reloaded: preempting - -> root.production")
            time.sleep(2)  # a further header would be written by the next tick
    found = [each.settings for each in headers()]
    assert [each.in_flight_ratio_max for each in found] == [0.1, 0.3, 0.3]
    ratios = [
        [rule.may_lose_ratio for rule in each.levers.budgets] for each in found if each.levers is not None
    ]
    assert ratios == [[0.02], [0.02], [0.01]]
    assert exit_status_of(PROGRAM, ["replay", str(journal)]) == 0
