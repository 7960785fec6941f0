"""``paper orion``: figures under a reading, each reading by itself, what is refused; few seeds and cells."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from yarn_research.cli.paper import command
from yarn_research.papers.orion import placed_figures, placement_alternatives
from yarn_research.papers.orion.paper_orion import paper_orion
from yarn_research.placement.placement_readings import orion_choices
from yarnctl.errors import BadInput


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One seed, and few cells; nothing of them stays in the caches."""
    monkeypatch.setattr(placed_figures, "SEEDS", 1)
    monkeypatch.setattr(placed_figures, "COUNTS", (25,))
    monkeypatch.setattr(placed_figures, "LONGER_S", (10.0, 50.0))
    for module in (placed_figures, placement_alternatives):
        monkeypatch.setattr(module, "GAPS_S", (10.0,))
    caches = (placed_figures.played, placed_figures._beside)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


def shown(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(command, ["orion", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_every_reading_is_judged_by_the_claims_that_ours_is_judged_by() -> None:
    found = {each["choice"]: each for each in shown("--alternatives")["alternatives"]}
    assert list(found) == [
        "ours",
        "capacity=none",
        "waiting=never",
        "ends=before",
        "unplaceable=best_effort",
        "ours, B_c: 5 containers",
        "budget=application, B_c: 5 containers",
    ]
    assert [name for name, each in found.items() if each["ours"]] == ["ours"]
    claims = [
        claim
        for number in ("6", "7", "8", "12")
        for figure in shown("--figure", number)["figures"]
        for claim in figure["claims"]
    ]
    failed = [f"{claim['claim']}: {claim['ours']}" for claim in claims if not claim["holds"]]
    assert found["ours"]["failed"] == failed
    assert found["ours"]["claims_failed"] == len(failed)
    assert found["capacity=none"]["met_ratio"] == {"10": 1.0}
    assert any(each.startswith("more met with every") for each in found["capacity=none"]["failed"]) is False
    tight, each_alone = (found[f"{name}, B_c: 5 containers"] for name in ("ours", "budget=application"))
    assert tight["met_ratio"]["10"] < each_alone["met_ratio"]["10"]
    assert tight["containers_mean"]["10"] <= 15 < found["capacity=none"]["containers_mean"]["10"]
    table = CliRunner().invoke(command, ["orion", "--alternatives"], catch_exceptions=False).output
    assert "best_effort" in table
    assert "100.0%" in table


def test_a_figure_is_made_under_the_reading_that_was_chosen() -> None:
    ours, never = shown("--figure", "6"), shown("--figure", "6", "--choose", "waiting=never")
    rows = [
        {row["label"]: row["ours"] for row in each["figures"][0]["rows"] if row["metric"] == "met"}
        for each in (ours, never)
    ]
    assert rows[0]["least_loaded, 25, 10 s"] == rows[1]["least_loaded, 25, 10 s"]
    assert rows[0]["orion, 25, 10 s"] != rows[1]["orion, 25, 10 s"]


def test_who_asks_for_no_room_is_held_against_pools_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = paper_orion("bound", None, orion_choices(["capacity=none"]))["figures"][0]
    assert all(claim.holds for claim in figure.claims)
    assert "orion: nowhere above the optimum of pools without end" in [each.claim for each in figure.claims]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--figure", "3", "--choose", "waiting=never"), "places nothing"),
        (("--figure", "certified", "--choose", "waiting=never"), "places nothing"),
        (("--alternatives", "--choose", "waiting=never"), "leave one of the two out"),
        (("--choose", "magic=yes"), "is not NAME=VALUE with a known name"),
    ],
)
def test_a_reading_where_nothing_is_read_is_refused(words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        command.main(["orion", *words], standalone_mode=False)


def test_every_figure_is_made_without_naming_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarn_research.papers.orion.paper_orion.SHARES", (80,))
    monkeypatch.setattr("yarn_research.papers.orion.paper_orion.SPLITS", 1)
    figures = {each["figure"]: each for each in shown()["figures"]}
    assert list(figures) == [str(number) for number in range(3, 15)]
    assert all(each["rows"] and each["claims"] for each in figures.values())
    assert figures["4"]["notes"][0].startswith("12 packaged tables")
    assert figures["10"]["rows"] == figures["9"]["rows"]


@pytest.mark.parametrize("number", ["10", "11", "13", "14"])
def test_a_figure_carries_the_number_that_was_asked_for(number: str) -> None:
    (figure,) = shown("--figure", number)["figures"]
    assert figure["figure"] == number
