"""From runs to options: what is chosen from, what is certified, and what is refused by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from yarnctl.errors import BadInput
from yarnctl.prediction.application_options import POINT, learned_kinds, predicted_options
from yarnctl.prediction.application_runs import KnownRun

MEMORY = "spark.executor.memory"


def runs(count: int, kind: str = "spark", seed: int = 1, **settings: str) -> list[KnownRun]:
    """Return runs that take (10 s + 600 s / workers), a fifth more with little memory, with some noise."""
    chance, found = np.random.default_rng(seed), []
    for number in range(count):
        workers = 1 + number % 6
        memory = ("640m", "1g")[number // 6 % 2]
        input_mib = 1024.0 * (1 + number // 12 % 4)
        slower = 1.2 if memory == "640m" else 1.0
        elapsed_ms = (10_000 + 100 * input_mib / workers) * slower * float(np.exp(chance.normal(0, 0.05)))
        found.append(
            KnownRun("wordcount", kind, {"input_mib": input_mib}, {MEMORY: memory, **settings}, workers + 1,
                round(elapsed_ms), f"profile:{number}")
        )  # fmt: skip
    return found


ASKED = {"input_mib": 2048.0}
KINDS = {"spark": {MEMORY: ("640m", "1g", "2g")}}


def test_options_are_the_fastest_settings_that_were_run_for_each_number_of_containers() -> None:
    found = predicted_options(runs(120), "wordcount", ASKED, KINDS, 0.05)
    assert [each.containers for each in found.options] == [2, 3, 4, 5, 6, 7]
    assert {each.settings for each in found.options} == {((MEMORY, "1g"),)}
    times = [each.predicted_ms for each in found.options]
    assert times == sorted(times, reverse=True)
    assert all(each.upper_ms > each.predicted_ms for each in found.options)
    assert found.lacking == ()


def test_a_bound_is_certified_from_enough_configurations_and_says_so_if_not() -> None:
    many = predicted_options(runs(120), "wordcount", ASKED, KINDS, 0.05).options
    few = predicted_options(runs(12), "wordcount", {"input_mib": 1024.0}, KINDS, 0.05).options
    point = predicted_options(runs(120), "wordcount", ASKED, KINDS, POINT).options
    assert {each.late_ratio for each in many} == {0.05}
    assert {each.late_ratio for each in few} == {None}
    assert all((each.upper_ms, each.late_ratio) == (each.predicted_ms, None) for each in point)


def test_repeated_runs_bound_few_configurations_by_runs_that_were_left_out_one_by_one() -> None:
    """Two numbers of containers, each run three times: from the other number alone nothing could be told."""
    times = {2: (60_000, 62_000, 61_000), 4: (21_000, 20_000, 22_000)}
    known = [
        KnownRun("wordcount", "spark", ASKED, {}, count, each, f"profile:{count}-{number}")
        for count, found in times.items()
        for number, each in enumerate(found)
    ]
    options = predicted_options(known, "wordcount", ASKED, {"spark": {}}, 0.05).options
    assert [each.containers for each in options] == [2, 3, 4]
    assert {each.late_ratio for each in options} == {None}
    assert all(1 < each.upper_ms / each.predicted_ms < 1.1 for each in options)
    twice = [each for each in known if not each.source.endswith("-2")]
    options = predicted_options(twice, "wordcount", ASKED, {"spark": {}}, 0.05).options
    assert all(1 < each.upper_ms / each.predicted_ms < 1.1 for each in options)
    single = predicted_options(known[:4], "wordcount", ASKED, {"spark": {}}, 0.05).options
    assert all(each.upper_ms / each.predicted_ms > 1.1 for each in single), "one was run once"


def test_options_do_not_depend_on_the_order_of_runs() -> None:
    known = runs(60)
    mixed = [known[place] for place in np.random.default_rng(3).permutation(60)]
    there = [predicted_options(each, "wordcount", ASKED, KINDS, POINT) for each in (known, mixed)]
    times = [[(each.containers, each.settings) for each in found.options] for found in there]
    assert times[0] == times[1]


def test_a_kind_without_runs_is_lacking_and_never_has_an_option() -> None:
    known = [*runs(30), *runs(2, "flink")]
    found = predicted_options(known, "wordcount", ASKED, {**KINDS, "flink": {}, "mapreduce": {}}, 0.05)
    assert found.lacking == ("flink", "mapreduce")
    assert {each.kind for each in found.options} == {"spark"}
    assert len(found.options) <= 64 // 3


def test_no_more_than_sixty_four_options_are_made() -> None:
    spread = [
        KnownRun(
            each.application, each.kind, each.features, each.settings, 1 + 20 * place, each.elapsed_ms, ""
        )
        for place, each in enumerate(runs(30))
    ]
    found = predicted_options(spread, "wordcount", ASKED, KINDS, POINT)
    assert 0 < len(found.options) <= 64
    assert {each.containers for each in found.options} <= set(range(1, 582))


@pytest.mark.parametrize(
    ("features", "where"),
    [({}, "features: input_mib"), ({"input_mib": math.nan}, "features: input_mib")],
    ids=["a feature that the runs have is missing", "NaN"],
)
def test_features_are_refused_by_name(features: dict[str, float], where: str) -> None:
    with pytest.raises(BadInput, match=where):
        predicted_options(runs(12), "wordcount", features, KINDS, 0.05)


def test_how_well_runs_are_predicted_is_judged_by_runs_that_were_left_out() -> None:
    (found,) = learned_kinds(runs(120), 0.05)
    assert (found.application, found.kind, found.runs) == ("wordcount", "spark", 120)
    assert found.r2 is not None
    assert found.covered_ratio is not None
    assert 0.9 < found.r2 <= 1
    assert found.covered_ratio >= 0.85
    shuffled = np.random.default_rng(2).permutation([each.elapsed_ms for each in runs(120)])
    noise = [
        KnownRun(each.application, each.kind, each.features, each.settings, each.containers, int(ms), "")
        for each, ms in zip(runs(120), shuffled, strict=True)
    ]
    (chance,) = learned_kinds(noise, 0.05)
    assert chance.r2 is not None
    assert chance.r2 < 0.2
    assert learned_kinds(runs(2), 0.05)[0].r2 is None
