"""The replay of placement: pools are never overbooked, the same seed gives the same bytes, faults by name."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from yarn_research.cli.placement import command
from yarn_research.placement.placement_readings import READINGS, orion_choices
from yarn_research.placement.placement_replay import (
    MECHANISMS,
    Mechanism,
    PlacedRun,
    PlacementReplay,
    measured,
)
from yarn_research.placement.placement_set import (
    APPS,
    POOLS,
    PoolChange,
    Submitted,
    options_of,
    predicted_ms,
    read_pools,
    submissions,
)
from yarnctl.deciding.admission.mechanisms.orion import OrionChoices, PlacementPool
from yarnctl.deciding.admission.placement_options import OPTIONS_MAX
from yarnctl.errors import BadInput


def most_at_once(runs: list[PlacedRun], pool: str) -> int:
    """Return the most containers that ran at once in a pool."""
    changes = []
    for run in runs:
        if run.placed is not None and run.placed.pool == pool:
            changes += [(run.began_at_ms, 1, run.placed.option.containers)]
            changes += [(run.ended_at_ms, 0, -run.placed.option.containers)]
    used = most = 0
    for _, _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seed", range(6))
def test_pools_hold_and_everybody_placed_ends(mechanism: Mechanism, seed: int) -> None:
    runs = PlacementReplay(POOLS, mechanism, 0.2).play(submissions(60, 10.0, seed))
    for pool in POOLS:
        if mechanism != "literal":
            assert most_at_once(runs, pool.name) <= pool.capacity
    for run in runs:
        if run.placed is not None:
            assert run.began_at_ms is not None
            assert run.ended_at_ms is not None
            assert run.submitted.at_ms <= run.placed.start_at_ms <= run.began_at_ms < run.ended_at_ms
    if mechanism == "literal":
        assert max(most_at_once(runs, pool.name) for pool in POOLS) > 7


def test_by_hand() -> None:
    """Als alone: one Spark container takes .89 of 100 s, and is the cheapest that ends within the bound."""
    als = next(app for app in APPS if app.name == "als")
    assert predicted_ms(als, "spark", 1) == 89_000
    (exact,) = PlacementReplay(POOLS, "orion", 0.5).play([Submitted(als, 1000, 1.0)])
    assert exact.placed is not None
    assert (exact.placed.pool, exact.placed.option.containers, exact.ended_at_ms) == ("spark", 1, 90_000)
    (careful,) = PlacementReplay(POOLS, "orion", 0.05).play([Submitted(als, 1000, 1.0)])
    assert careful.placed is not None  # 89 s x 1.18 is above 100 s
    assert careful.placed.option.containers == 2
    found = measured([careful], POOLS)
    assert (found.met_ratio, found.rejected, found.by_kind) == (1.0, 0, {"spark": 1})
    assert found.cost_mtokens == 2 * predicted_ms(als, "spark", 2)
    assert found.containers_mean == 2.0


def test_who_exceeds_its_bound_keeps_its_containers_and_the_next_begins_later() -> None:
    als = next(app for app in APPS if app.name == "als")
    pool = (msgspec.structs.replace(POOLS[1], capacity=1),)
    grep = next(app for app in APPS if app.name == "grep")
    late, behind = PlacementReplay(pool, "orion", 0.5).play(
        [Submitted(als, 0, 1.5), Submitted(grep, 10, 1.0)]
    )
    assert late.ended_at_ms == 133_500
    assert behind.placed is None  # it cannot end in time on one container behind the other
    wordcount = next(app for app in APPS if app.name == "pi")
    _, waits = PlacementReplay(pool, "least_loaded", 0.5).play(
        [Submitted(als, 0, 1.5), Submitted(wordcount, 10, 1.0)]
    )
    assert waits.placed is not None
    assert waits.placed.start_at_ms == 89_000
    assert waits.began_at_ms == 133_500


def test_an_empty_answer_counts_nothing() -> None:
    als = next(app for app in APPS if app.name == "als")
    (none,) = PlacementReplay((msgspec.structs.replace(POOLS[2], capacity=1),), "orion", 0.05).play(
        [Submitted(als, 5, 1.0)]
    )
    found = measured([none], POOLS)
    assert (found.met_ratio, found.rejected, found.late_of_admitted_ratio, found.by_kind) == (0.0, 1, 0.0, {})


def asked(*words: str) -> dict:
    done = CliRunner().invoke(command, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_command_tells_six_figures_and_repeats_itself() -> None:
    words = ("--applications", "20", "--inter-arrival-s", "20")
    told = asked(*words)
    assert list(told) == [
        "met_ratio",
        "rejected",
        "containers_mean",
        "cost_mtokens",
        "by_kind",
        "late_of_admitted_ratio",
    ]
    assert told == asked(*words, "--mechanism", "orion", "--late", "0.05", "--seed", "0")
    assert told != asked(*words, "--seed", "1")


def test_each_reading_of_alg_2_is_chosen_by_name_and_all_are_shown_beside_ours() -> None:
    words = ("--applications", "30", "--inter-arrival-s", "8")
    found = asked(*words, "--alternatives")["alternatives"]
    assert [each["choice"] for each in found] == list(READINGS)
    assert [each["ours"] for each in found] == [True, *[False] * 5]
    told = {each.pop("choice"): each for each in found}
    for name, figures in told.items():
        figures.pop("ours")
        chosen = () if name == "ours" else ("--choose", name)
        assert asked(*words, *chosen) == figures
    assert told["capacity=none"] == asked(*words, "--mechanism", "literal")
    assert told["capacity=none"]["met_ratio"] > told["ours"]["met_ratio"]
    assert told["waiting=never"]["met_ratio"] < told["ours"]["met_ratio"]
    assert told["unplaceable=best_effort"]["rejected"] == 0 < told["ours"]["rejected"]
    table = CliRunner().invoke(command, [*words, "--alternatives"], catch_exceptions=False).output
    assert all(name in table for name in READINGS)


def test_readings_are_all_that_there_are_each_by_itself() -> None:
    assert READINGS["ours"] == OrionChoices()
    for name, choices in READINGS.items():
        assert orion_choices([] if name == "ours" else [name]) == choices
    changed = {name.partition("=")[0] for name in READINGS if name != "ours"}
    assert changed == set(OrionChoices.__struct_fields__)


FAULTS = [
    (("--inter-arrival-s", "5", "--choose", "capacity"), "--choose 'capacity'"),
    (("--inter-arrival-s", "5", "--choose", "size=3"), "--choose 'size=3'"),
    (("--inter-arrival-s", "5", "--choose", "capacity=3"), "--choose"),
    (("--inter-arrival-s", "5", "--choose", "capacity=none", "--alternatives"), "--choose"),
    (("--inter-arrival-s", "5", "--choose", "capacity=none", "--mechanism", "literal"), "--choose"),
    (("--inter-arrival-s", "5", "--mechanism", "least_loaded", "--alternatives"), "--alternatives"),
    (("--inter-arrival-s", "0"), "--inter-arrival-s"),
    (("--inter-arrival-s", "nan"), "--inter-arrival-s"),
    (("--inter-arrival-s", "5", "--late", "0"), "--late"),
    (("--inter-arrival-s", "5", "--late", "nan"), "--late"),
    (("--inter-arrival-s", "5", "--late", "1e-17"), "--late"),
    (("--inter-arrival-s", "5", "--late", "100%"), "--late"),
    (("--inter-arrival-s", "5", "--mechanism", "magic"), "--mechanism"),
    (("--inter-arrival-s", "5", "--pools", "/nowhere.toml"), "--pools /nowhere.toml"),
]


@pytest.mark.parametrize(("words", "where"), FAULTS)
def test_what_cannot_be_meant_is_refused_by_name(words: tuple[str, ...], where: str) -> None:
    with pytest.raises(BadInput) as refused:
        command.main(["--applications", "3", *words], standalone_mode=False)
    assert refused.value.where == where


TOML = '[[pool]]\nname = "a"\ncapacity = 3\nkinds = ["spark"]\ncost_mtokens = 500\nhourly_mtokens = 7200000\n'
POOL_FAULTS = [
    ("", "has no [[pool]]"),
    ("x = 1\n" + TOML, "has no [[pool]]"),
    (TOML + TOML, "names a pool twice"),
    ("[[pool]]\ncapacity = 3\n", "has no name"),
    ('[[pool]]\nname = "a"\n', "capacity is missing"),
    ('[[pool]]\nname = "a"\ncapacity = 0\n', "capacity is 0"),
    ('[[pool]]\nname = "a"\ncapacity = true\n', "capacity is True"),
    ('[[pool]]\nname = "a"\ncapacity = 3\nkinds = ["tez"]\n', "kinds are not known"),
    ('[[pool]]\nname = "a"\ncapacity = 3\nsize = 3\n', "'size' is not known"),
    ("[[pool\n", "is not valid TOML"),
    (TOML + "changes = 3\n", "changes is not a list of tables"),
    (TOML + "changes = [{ at_s = 3 }]\n", "changes: capacity is None"),
    (TOML + "changes = [{ at_s = nan, capacity = 2 }]\n", "changes: at_s is nan"),
    (TOML + "changes = [{ at_s = 3, capacity = 2, size = 1 }]\n", "changes: 'size' is not known"),
    ("#" * (65 << 10), "larger than 64 KiB"),
]


def test_pools_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pools.toml").write_text(TOML)
    (pool,), _ = read_pools(tmp_path / "pools.toml")
    assert (pool.name, pool.capacity, pool.kinds) == ("a", 3, ("spark",))
    assert (pool.cost_mtokens, pool.hourly_mtokens) == (500, 7_200_000)
    few = asked("--applications", "20", "--inter-arrival-s", "9", "--pools", str(tmp_path / "pools.toml"))
    assert few["rejected"] > 5


def test_the_pools_of_a_gate_are_pools_of_a_replay(tmp_path: Path) -> None:
    gate = TOML.replace("[[pool]]\n", '[[pool]]\nqueue = "root.a"\ncontainer_mib = 512\n')
    (tmp_path / "pools.toml").write_text(gate.replace("spark", "mapreduce"))
    (pool,), _ = read_pools(tmp_path / "pools.toml")
    assert (pool.name, pool.kinds) == ("a", ("tensorflow",))
    used = asked("--applications", "8", "--inter-arrival-s", "90", "--pools", str(tmp_path / "pools.toml"))
    assert set(used["by_kind"]) == {"tensorflow"}


def test_pools_grow_and_shrink(tmp_path: Path) -> None:
    (tmp_path / "pools.toml").write_text(TOML + "changes = [{ at_s = 60, capacity = 9 }]\n")
    words = ("--applications", "20", "--inter-arrival-s", "9", "--pools", str(tmp_path / "pools.toml"))
    grown = asked(*words)
    (tmp_path / "pools.toml").write_text(TOML)
    assert grown["met_ratio"] > asked(*words)["met_ratio"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seed", range(4))
def test_who_runs_keeps_its_containers_and_nobody_begins_beyond_what_is_left(
    mechanism: Mechanism, seed: int
) -> None:
    changes = tuple(
        PoolChange(at_s * 1000, pool.name, capacity)
        for pool in POOLS
        for at_s, capacity in ((100, 2), (400, 9), (500, 1))
    )
    runs = PlacementReplay(POOLS, mechanism, 0.2, changes=changes).play(submissions(60, 10.0, seed))
    for run in runs:
        if run.placed is None:
            continue
        began_ms, ended_ms = run.began_at_ms, run.ended_at_ms
        assert began_ms is not None
        assert ended_ms is not None
        beside = sum(
            other.placed.option.containers
            for other in runs
            if other.placed is not None and other.placed.pool == run.placed.pool and other.runs_at(began_ms)
            if other.began_at_ms is not None and other.began_at_ms <= began_ms
        )
        at_all = 7 if began_ms < 100_000 else 2 if began_ms < 400_000 else 9 if began_ms < 500_000 else 1
        assert beside <= at_all or mechanism == "literal"


def test_who_waits_for_more_than_is_left_is_placed_anew() -> None:
    app = next(each for each in APPS if each.name == "als")
    pool = PlacementPool("spark", 4, ("spark",))
    coming = [Submitted(app, 0, 1.0), Submitted(app, 1000, 1.0)]
    first, second = PlacementReplay([pool], "least_loaded", 0.5).play(coming)
    assert second.began_at_ms == first.ended_at_ms
    assert second.placed is not None
    assert second.placed.option.containers == 4
    shrunk = PlacementReplay([pool], "least_loaded", 0.5, changes=[PoolChange(5_000, "spark", 3)])
    first, second = shrunk.play(coming)
    assert second.placed is not None
    assert second.placed.option.containers == 3
    assert second.began_at_ms == first.ended_at_ms, "who runs keeps its four"


def test_pools_of_any_size_leave_each_framework_its_options() -> None:
    for app in APPS:
        for most in (1, 7, 21, 22, 1000, 10**12):
            found = options_of(app, most, 1.0)
            assert len(found) <= OPTIONS_MAX
            assert {each.kind for each in found} == set(app.slower)
            assert {each.containers for each in found} >= {1, most}
            if most <= 21:
                assert len(found) == most * len(app.slower)


def test_a_chance_is_written_as_a_share_or_in_percent() -> None:
    words = ("--applications", "8", "--inter-arrival-s", "20")
    assert asked(*words, "--late", "20%") == asked(*words, "--late", "0.2")


@pytest.mark.parametrize(("text", "problem"), POOL_FAULTS, ids=[row[1] for row in POOL_FAULTS])
def test_pools_that_cannot_be_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "pools.toml").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_pools(tmp_path / "pools.toml")
    assert problem in str(refused.value)
