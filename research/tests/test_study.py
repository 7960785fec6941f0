"""The study on a real Hadoop: its order is drawn, a round counts whole or not at all, ratios are paired."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from yarn_research.campaigns import study_bench
from yarn_research.campaigns.chosen_killed import chosen_tasks
from yarn_research.campaigns.study_bench import Stage, Study, chosen, play
from yarn_research.campaigns.study_jobs import block
from yarn_research.campaigns.study_judging import (
    counted,
    is_identical,
    judged,
    main,
    of_loads,
    paired,
    read_kept,
)
from yarn_research.campaigns.study_loads import (
    KILLED,
    LOADS,
    SCHEMES,
    changes,
    named,
    order_of,
    wanted,
    wrapped,
)
from yarnctl.deciding.records import decode
from yarnctl.errors import BadInput

JOURNAL = Path(__file__).parents[2] / "tests/frozen/journals/virtual-mix.jsonl.gz"
SLEEPING, HEAVY = LOADS["sleeping"], LOADS["map-heavy"]
OUT = {"part-00000": "a"}


def job(took_s: float, **more: Any) -> dict[str, Any]:
    return {"took_s": took_s, "digests": OUT, **more}


def run(
    load: str, number: int, scheme: str, production_s: float, research_s: float, **more: Any
) -> dict[str, Any]:
    found: dict[str, Any] = {"load": load, "round": number, "scheme": scheme, "production": []}
    if scheme != "research-alone":
        found["production"] = [job(production_s)]
    if scheme != "production-alone":
        lost = {"again_s": 0.0, "twice": 0, "ended_s": {"m": 0.0, "r": 0.0}}
        found["research"] = job(research_s, **{**lost, **more})
    return found


def round_of(load: str, number: int, **changed: tuple[float, float]) -> list[dict[str, Any]]:
    """Return a round in which every scheme takes 40 and 100 s but those named."""
    times = {scheme: changed.get(scheme.replace("-", "_"), (40.0, 100.0)) for scheme in LOADS[load].schemes}
    return [run(load, number, scheme, *each) for scheme, each in times.items()]


def test_loads_are_those_of_the_plan() -> None:
    known = set(SCHEMES)
    assert all(set(load.schemes) <= known for load in LOADS.values())
    assert {name: (load.rounds, len(load.schemes)) for name, load in LOADS.items()} == {
        "sleeping": (8, 7),
        "map-heavy": (8, 5),
        "processor": (4, 3),
        "disk": (4, 3),
        "disk-long": (4, 3),
        "never-ran": (4, 3),
        "bursts": (4, 3),
        "paper": (5, 4),
        "short-tasks": (5, 4),
        "nested": (5, 4),
        "paper-levers": (5, 1),
        "short-tasks-levers": (5, 1),
        "nested-levers": (5, 1),
    }
    disk = LOADS["disk"]
    assert min(disk.research.groups) * 64 > 12 * 1024  # KiB of input of each reduce
    assert min(disk.production[0].groups) * 64 > 6 * 1024


def test_a_nested_tree_has_the_flat_queues_shares_and_each_of_the_two_goes_back_to_the_other() -> None:
    scheme = SCHEMES["yarn-tuned"]
    flat, nested = (changes(scheme, LOADS[name])["capacity-scheduler"] for name in ("paper", "nested"))
    key = "yarn.scheduler.capacity.root."
    assert {name: nested[key + name] for name in ("prod.capacity", "shared.capacity")} == {
        "prod.capacity": "95",
        "shared.capacity": "5",
    }
    assert nested[f"{key}shared.research.disable_preemption"] == "false"
    assert nested[f"{key}shared.queues"] == "research,adhoc"
    assert flat[f"{key}queues"] == "production,research"
    assert flat[f"{key}shared.queues"] is flat[f"{key}prod.production.capacity"] is None
    assert set(nested) == set(flat)


def test_the_order_of_a_round_is_drawn_and_stays() -> None:
    orders = [tuple(order_of(SLEEPING, number)) for number in range(1, 9)]
    assert orders == [tuple(order_of(SLEEPING, number)) for number in range(1, 9)]
    assert all(sorted(each) == sorted(SLEEPING.schemes) for each in orders)
    assert len(set(orders)) == 8
    priced = [order_of(LOADS["paper"], number) for number in range(1, 6)]
    assert all(each.index(KILLED) == each.index("mix-2") + 1 for each in priced)
    rounds = [(load.name, number) for load, number in wanted(LOADS)]
    assert rounds[: len(LOADS)] == [(name, 1) for name in LOADS]
    assert Counter(name for name, _ in rounds) == {name: load.rounds for name, load in LOADS.items()}


def test_a_job_that_never_ran_has_a_name_of_its_own_each_time() -> None:
    fresh = LOADS["never-ran"]
    names = {named(fresh.production[0], fresh, number).name for number in range(1, 200)}
    assert len(names) == 199
    assert not any(letter.isdigit() for name in names for letter in name)
    assert named(SLEEPING.production[0], SLEEPING, 7).name == "production"


def test_research_has_the_runner_where_it_can_and_yarnctl_is_attached() -> None:
    assert wrapped(SLEEPING.research, SCHEMES["mix-2"]).wrap
    assert not wrapped(SLEEPING.research, SCHEMES["yarn-tuned"]).wrap
    assert not wrapped(HEAVY.research, SCHEMES["mix-2"]).wrap


def test_a_maps_text_is_the_same_each_time() -> None:
    assert block(3) == block(3) != block(4)
    assert 1 << 20 <= len(block(3)) < (1 << 20) + 200


def test_ratios_are_paired_within_rounds_and_their_interval_is_drawn() -> None:
    runs = [
        each
        for number in range(1, 9)
        for each in round_of("sleeping", number, mix_2=(40.0 + number, 90.0), yarn_tuned=(50.0, 120.0))
    ]
    found = paired(runs, "sleeping", "production", "mix-2", "yarn-tuned")
    assert found is not None
    assert (found.rounds, found.is_interval) == (8, True)
    assert found.median == pytest.approx(0.89)
    assert 0.82 <= found.low < found.median < found.high <= 0.96
    claims = {(each.load, each.claim): each for each in judged(runs)}
    assert claims["sleeping", "production under mix-2 over yarn-tuned"].holds
    assert claims["sleeping", "research under mix-2 over yarn-tuned"].ours == pytest.approx(0.75)
    assert not claims["map-heavy", "production under mix-2 over yarn-tuned"].holds  # it was not run
    worse = [{**each, "round": each["round"] + 8} for each in runs]
    assert len(counted(runs + worse)) == len(runs) + len(worse)


@pytest.mark.parametrize(
    ("mix", "tuned", "claims"),
    [
        ((42.0, 100.0, 10.0), (40.0, 100.0, 41.0), (True, True)),
        ((42.1, 100.0, 10.0), (40.0, 100.0, 41.0), (False, True)),  # 1.0525 times as slow
        ((42.0, 100.0, 10.5), (40.0, 100.0, 41.0), (True, False)),  # more than a quarter of its loss
    ],
)
def test_a_claim_breaks_where_its_bound_is_passed(mix, tuned, claims) -> None:
    runs = []
    for number in range(1, 9):
        these = round_of("map-heavy", number, mix_2=mix[:2], yarn_tuned=tuned[:2])
        for each in these:
            lost_s = {"mix-2": mix[2], "yarn-tuned": tuned[2]}.get(each["scheme"])
            if lost_s is not None:
                each["research"] |= {"ended_s": {"m": lost_s, "r": 0.0}}
        runs += these
    found = {each.claim: each.holds for each in judged(runs) if each.load == "map-heavy"}
    assert (
        found["production under mix-2 over yarn-tuned"],
        found["lost work under mix-2 over yarn-tuned, summed"],
    ) == claims


def test_kept_sittings_are_judged_together_if_they_are_of_one_commit(tmp_path: Path) -> None:
    def kept(name: str, commit: str) -> str:
        file = tmp_path / name
        file.write_text(json.dumps({"head": {"commit": commit}, "runs": [{"round": 1}]}))
        return str(file)

    assert read_kept([kept("a.json", "c1"), kept("b.json", "c1")]) == ("c1", [{"round": 1}] * 2)
    with pytest.raises(BadInput, match="2 commits"):
        read_kept([kept("a.json", "c1"), kept("b.json", "c2")])
    with pytest.raises(BadInput, match="not a results file of a study"):
        read_kept([str(tmp_path / "none.json")])
    assert main([]) == 2


def test_a_claim_needs_all_of_its_rounds() -> None:
    runs = [each for number in range(1, 8) for each in round_of("sleeping", number, yarn_tuned=(50.0, 120.0))]
    (claim,) = [
        each
        for each in judged(runs)
        if each.claim == "production under mix-2 over yarn-tuned" and each.load == "sleeping"
    ]
    assert (claim.rounds, claim.ours, claim.holds) == (7, 0.8, False)


def test_a_round_that_is_not_whole_does_not_count() -> None:
    whole, part = round_of("disk", 1), round_of("disk", 2)[:2]
    assert counted(whole + part) == whole
    left = [
        {**each, "left_out": "failed"} if each["scheme"] == "mix-2" else each for each in round_of("disk", 3)
    ]
    assert counted(whole + left) == whole


def test_lost_work_is_of_groups_begun_again_or_of_attempts_that_were_ended() -> None:
    runs = round_of("disk", 1) + round_of("map-heavy", 1)
    for each in runs:
        if each["scheme"] == "yarn-tuned":
            each["research"] |= {"again_s": 5.0, "ended_s": {"m": 40.0, "r": 1.0}}
        if (each["load"], each["scheme"]) == ("map-heavy", "mix-2"):
            each["research"] |= {"ended_s": {"m": 10.0, "r": 0.0}}
    rows = {(row["load"], row["scheme"]): row["lost_s_sum"] for row in of_loads(runs)}
    assert rows["disk", "yarn-tuned"] == 5.0
    assert rows["map-heavy", "yarn-tuned"] == 41.0
    assert rows["map-heavy", "production-alone"] is None
    (claim,) = [each for each in judged(runs) if each.load == "map-heavy" and "lost work" in each.claim]
    assert claim.ours == pytest.approx(10 / 41)


def test_another_output_is_seen() -> None:
    runs = round_of("disk", 1)
    assert is_identical(runs, "disk", "mix-2")
    next(each for each in runs if each["scheme"] == "mix-2")["research"]["digests"] = {"part-00000": "b"}
    assert not is_identical(runs, "disk", "mix-2")


class Played:
    """Plays runs in no time; the one that is named fails once."""

    def __init__(self, fails: tuple[str, int] | None = None) -> None:
        self.fails = fails
        self.told: list[tuple[str, str]] = []

    def __call__(self, stage: Stage, of: Any, scheme: str, number: int, chosen: object) -> dict[str, Any]:
        self.told.append((of.name, scheme))
        if self.fails == (scheme, number):
            raise AssertionError("the job FAILED")
        return {
            key: each
            for key, each in run(of.name, 1, scheme, 40.0, 100.0).items()
            if key in ("production", "research")
        }


def begun() -> Study:
    return Study({"commit": "a", "uncommitted": []}, {}, {})


def test_a_round_in_which_a_run_failed_is_left_out_and_played_again(tmp_path: Path, monkeypatch) -> None:
    first = order_of(LOADS["disk"], 1)
    played = Played(fails=(first[1], 2))
    monkeypatch.setattr(study_bench, "run_once", played)
    study, stage = begun(), Stage(None, tmp_path, tmp_path / "study.json", 1)  # type: ignore[arg-type]
    play(stage, study, chosen("disk"), math.inf)
    assert [scheme for _, scheme in played.told[:5]] == [*first[:2], *first]
    assert [run.get("left_out") for run in study.runs[:2]] == [
        "a run of its round failed",
        "failed: AssertionError: the job FAILED",
    ]
    assert len(counted(study.runs)) == 12
    assert len(study.runs) == 14


def test_a_round_that_another_sitting_left_is_played_whole(tmp_path: Path, monkeypatch) -> None:
    played = Played()
    monkeypatch.setattr(study_bench, "run_once", played)
    first = order_of(LOADS["disk"], 1)
    study, stage = begun(), Stage(None, tmp_path, tmp_path / "study.json", 2)  # type: ignore[arg-type]
    study.runs = [run("disk", 1, first[0], 1.0, 1.0)]
    play(stage, study, chosen("disk"), math.inf)
    assert [scheme for _, scheme in played.told[:3]] == first
    assert study.runs[0]["left_out"] == "its round was not finished on the machine on which it began"


def test_no_round_begins_when_the_time_is_over(tmp_path: Path, monkeypatch) -> None:
    played = Played()
    monkeypatch.setattr(study_bench, "run_once", played)
    study = begun()
    play(Stage(None, tmp_path, tmp_path / "study.json", 1), study, LOADS, -math.inf)  # type: ignore[arg-type]
    assert not played.told


def test_an_unknown_load_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="unknown: disc"):
        chosen("disc")


def test_the_rival_kills_the_tasks_of_the_run_before_each_as_late() -> None:
    records = []
    for line in gzip.decompress(JOURNAL.read_bytes()).splitlines():
        with suppress(msgspec.DecodeError):  # the first and the last line are no records
            records.append(decode(line))
    assert chosen_tasks(records, 12_500)[:4] == [
        ("r_000000", 2.5),
        ("r_000001", 9.5),
        ("m_000000", 9.5),
        ("m_000001", 12.5),
    ]
