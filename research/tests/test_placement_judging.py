"""Who comes when, what is late, which targets hold: on runs and outcomes that are written here."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import msgspec
import pytest

from yarn_research.campaigns.placement_judging import (
    Campaign,
    PlacedOutcome,
    PlayedRun,
    cheapest_kinds,
    figures,
    judged,
    main,
    read_campaign,
    table,
)
from yarn_research.campaigns.placement_terms import LOOSE, TIGHT, Terms, arrivals, best_s, gap_of, profiled
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun

KINDS = ("flink", "mapreduce", "spark")


def run(kind: str, containers: int, elapsed_s: float, size: float = 1.0, name: str = "grep") -> KnownRun:
    return KnownRun(name, kind, {"input_mib": size}, {}, containers, round(elapsed_s * 1000), "profile:a")


def outcome(kind: str, ends_s: float | None = 50.0, right: bool = True) -> PlacedOutcome:
    state = "rejected" if ends_s is None else "ended"
    return PlacedOutcome(
        application="grep",
        yarn="" if ends_s is None else "grep-1-abc",
        state=state,
        kind=kind,
        containers=0 if ends_s is None else 3,
        predicted_ms=None,
        cost_mtokens=None,
        start_at_ms=None,
        deadline_at_ms=60_000,
        ended_at_ms=None if ends_s is None else round(ends_s * 1000),
        right=right and ends_s is not None,
        reason="cheapest",
    )


REJECTED = outcome("", None)


def test_late_is_of_what_ran_and_met_is_of_all_that_came() -> None:
    found = figures([outcome("spark"), outcome("flink", 61.0), outcome("spark", 40.0, right=False), REJECTED])
    assert (found.came, found.met_ratio, found.rejected) == (4, 0.25, 1)
    assert found.late_of_admitted_ratio == pytest.approx(2 / 3)
    assert found.by_kind == {"flink": 1, "spark": 2}
    assert not found.right
    assert figures([]).met_ratio == 0.0


@pytest.mark.parametrize(
    ("orion", "other", "cheapest", "fails"),
    [
        ([outcome(kind) for kind in KINDS], [outcome("spark"), REJECTED], {"spark"}, []),
        ([*map(outcome, KINDS), REJECTED, REJECTED], [REJECTED], {"spark"}, [0]),
        ([outcome(kind) for kind in KINDS], [outcome("spark")], {"spark"}, [1]),
        ([*map(outcome, KINDS * 2), outcome("spark", 61.0)], [REJECTED], {"spark"}, [2]),
        ([outcome("spark")], [REJECTED], {"flink", "spark"}, [3]),
        ([outcome("spark")], [REJECTED], {"spark"}, []),
        ([outcome(kind) for kind in KINDS], [outcome("spark", right=False)], {"spark"}, [4]),
    ],
    ids=["all hold", "few met", "no more than the other", "late", "kind left out", "never cheapest", "wrong"],
)
def test_each_claim_fails_by_itself(orion, other, cheapest, fails) -> None:
    claims = judged({"orion": figures(orion), "least_loaded": figures(other)}, KINDS, cheapest)
    assert [number for number, each in enumerate(claims) if not each.holds] == fails


def test_a_kind_is_the_cheapest_where_its_best_number_of_containers_is() -> None:
    runs = [
        run("spark", 2, 100.0),
        run("spark", 3, 40.0),  # 120 container-seconds
        run("flink", 2, 65.0),
        run("flink", 2, 75.0),  # 140, the mean of two
        run("mapreduce", 4, 50.0),
        run("mapreduce", 2, 200.0, size=2.0),
        run("spark", 2, 300.0, size=2.0),
    ]
    same = dict.fromkeys(KINDS, 1000.0)
    assert cheapest_kinds(runs, same) == {"spark", "mapreduce"}
    assert cheapest_kinds(runs, {**same, "flink": 500.0}) == {"flink", "mapreduce"}


def test_the_gap_is_what_the_containers_can_hold() -> None:
    runs = [run("spark", 3, 40.0), run("flink", 2, 70.0), run("flink", 2, 120.0, size=2.0)]
    held = fmean([120.0, 240.0])
    assert gap_of(Terms(load=1.0), runs, 12) == pytest.approx(held / 12)
    assert gap_of(Terms(load=0.5), runs, 12) == pytest.approx(held / 6)
    assert gap_of(Terms(gap_s=7.0), runs, 12) == 7.0


def test_arrivals_follow_from_the_seed_and_the_round() -> None:
    best = {"a.toml": 50.0, "b.toml": 80.0, "c.toml": 10.0}
    terms = Terms(arrivals=18)
    first = arrivals(best, terms, 20.0, 0)
    assert first == arrivals(best, terms, 20.0, 0)
    assert first != arrivals(best, terms, 20.0, 1)
    assert arrivals(best, terms, 20.0, 1) == arrivals(best, terms._replace(seed=2), 20.0, 0)
    assert sorted(each.file for each in first) == sorted(6 * list(best))
    assert first[0].at_s == 0.0
    assert [each.at_s for each in first] == sorted(each.at_s for each in first)
    for each in first:
        assert TIGHT * best[each.file] - 0.5 <= each.deadline_s <= LOOSE * best[each.file] + 0.5


def test_the_best_time_is_of_an_application_of_one_size() -> None:
    found = best_s([run("spark", 3, 40.0), run("flink", 2, 30.0), run("flink", 2, 90.0, size=2.0)])
    assert found[profiled("grep", {"input_mib": 1.0})] == 30.0
    assert found[profiled("grep", {"input_mib": 2.0})] == 90.0


def campaign() -> Campaign:
    schemes = {"orion": [outcome(kind) for kind in KINDS], "least_loaded": [outcome("flink", 70.0)]}
    played = [
        PlayedRun(tuple(outcomes), "2026-01-01T00:00:00Z", (0.1,), (0.2,), round=number, scheme=scheme)
        for number in range(2)
        for scheme, outcomes in schemes.items()
    ]
    return Campaign("a" * 40, dict.fromkeys(KINDS, 1000.0), (run("spark", 3, 40.0),), tuple(played))


def test_a_kept_campaign_is_judged_again_to_the_same(tmp_path: Path, capsys) -> None:
    file = tmp_path / "placement-hadoop.json"
    file.write_bytes(msgspec.json.encode({**msgspec.to_builtins(campaign()), "kind": "placement-hadoop"}))
    found = read_campaign(file)
    assert found == campaign()
    assert [row[:3] for row in table(found)][-2:] == [
        ("all", "orion", "1.00"),
        ("all", "least_loaded", "0.00"),
    ]
    assert main([str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["commit"] == "a" * 40
    assert [each["holds"] for each in told["claims"]] == [each.holds for each in campaign().claims()]
    assert all(each["holds"] for each in told["claims"])


def test_what_is_no_campaign_is_refused_by_its_name(tmp_path: Path, capsys) -> None:
    file = tmp_path / "odd.json"
    with pytest.raises(BadInput, match=r"odd\.json"):
        read_campaign(file)
    file.write_text('{"commit": 1}')
    with pytest.raises(BadInput, match="is not a results file of placement"):
        read_campaign(file)
    assert main([str(file)]) == 2
    assert main([]) == 2
    assert "FILE" in capsys.readouterr().err
