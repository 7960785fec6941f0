"""The campaign ``python -m tests.soak replay``: no difference, and a planted one is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.soak import replay
from tests.soak.__main__ import main
from yarnctl.deciding.controller import Controller

SEED = 14


def test_random_histories_replay_to_the_same_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--steps", "5000", "--seed", str(SEED), "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] >= 5000
    assert told["differences"] == 0
    assert told["kept"] >= 8
    assert {"Decision", "KilledEnded", "Progressed", "Return", "Transfer", "UnknownApplication"} <= told[
        "by_kind"
    ].keys()


@pytest.mark.thorough
def test_a_hundred_thousand_steps_replay_to_the_same_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--steps", "100000", "--seed", str(SEED + 1), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["steps"] >= 100_000, told["differences"]) == (True, 0)
    assert "SavedLost" in told["by_kind"]


def test_a_planted_difference_is_told_in_the_form_of_the_shelf(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The controller forgets all tries when it is shown the cluster: no record says so."""
    take_up = Controller._continue_deferred

    def forgetful(self: Controller, *arguments: Any) -> None:
        self.ledger.tries.clear()
        take_up(self, *arguments)

    monkeypatch.setattr(Controller, "_continue_deferred", forgetful)
    monkeypatch.setattr(replay, "BATCH", 20)
    monkeypatch.setattr(replay, "MOST_TOLD", 1)
    # the workers are forked, with the fault in them
    assert main(["replay", "--steps", "300", "--seed", "1", "--workers", "1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["differences"] > 0
    small = next(one for one in told["different"] if "number" in one)
    assert small["story"]
    assert {"base", "changes", "own", "moves"} <= small["example"].keys()


def test_steps_must_be_a_positive_number() -> None:
    with pytest.raises(SystemExit) as left:
        main(["replay", "--steps", "0"])
    assert left.value.code == 2
