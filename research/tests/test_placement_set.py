"""What is placed on a real Hadoop: its input, its APP.toml for every framework, and wrong outputs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from yarn_research.campaigns.placed_applications import (
    FILES,
    PATTERN,
    SAMPLES,
    PlacedApplication,
    application_toml,
    applications,
    expected,
    input_files,
    is_right,
)
from yarn_research.campaigns.placement_frameworks import KINDS, Installed, commands
from yarn_research.campaigns.placement_hadoop import (
    CONTAINER_MIB,
    POOL_CONTAINERS,
    SHAPE,
    application_named,
    pools_toml,
    queue_properties,
)
from yarnctl.daemon.admission.pool_files import read_pools
from yarnctl.frameworks.application_files import read_application

THERE = Installed(
    Path("/p/a.jar"), "hdfs://n:1/p/a.jar", "hdfs://n:1/flink", Path("/spark"), "hdfs://n:1/user/ann"
)
WORDS, LINES, PI = (PlacedApplication(name, 1) for name in ("wordcount", "grep", "pi"))
NEAR_PI = round(FILES * SAMPLES * 0.785398)


def right_lines(placed: PlacedApplication) -> list[str]:
    return list(expected(placed).elements())


@pytest.mark.parametrize("placed", [WORDS, LINES], ids=str)
def test_a_right_output_is_right_in_any_order_and_no_other_is(placed: PlacedApplication) -> None:
    lines = right_lines(placed)
    assert is_right(placed, reversed(lines))
    assert not is_right(placed, lines[1:])
    assert not is_right(placed, [*lines, lines[0]])
    assert not is_right(placed, [lines[0] + "1", *lines[1:]])
    assert not is_right(placed, [])


def test_what_is_expected_is_what_the_input_says() -> None:
    text = b"".join(input_files("text-1")).decode()
    counts = Counter(text.split())
    assert counts.total() == sum(int(line.partition("\t")[2]) for line in expected(WORDS))
    assert expected(WORDS)[f"{PATTERN}\t{counts[PATTERN]}"] == (1 if counts[PATTERN] else 0)
    assert 0.05 < expected(LINES).total() / len(text.splitlines()) < 0.5
    assert all(PATTERN in line for line in expected(LINES))


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        ([f"inside\t{NEAR_PI}", f"total\t{FILES * SAMPLES}"], True),
        ([f"total\t{FILES * SAMPLES}", f"inside\t{NEAR_PI}"], True),
        ([f"inside\t{NEAR_PI + SAMPLES // 100}", f"total\t{FILES * SAMPLES}"], False),
        ([f"inside\t{NEAR_PI}", f"total\t{FILES * SAMPLES - SAMPLES}"], False),
        ([f"inside\t{NEAR_PI}"], False),
        ([f"inside\t{NEAR_PI}", f"inside\t{NEAR_PI}", f"total\t{FILES * SAMPLES}"], False),
        (["inside\t-1", f"total\t{FILES * SAMPLES}"], False),
        (["nothing"], False),
        ([], False),
    ],
)
def test_pi_is_judged_by_its_value_and_by_how_many_points_were_counted(lines: list[str], right: bool) -> None:
    assert is_right(PI, lines) == right


def test_the_input_has_a_file_for_each_task_and_twice_as_much_of_size_two() -> None:
    once, twice = input_files("text-1"), input_files("text-2")
    assert len(once) == len(twice) == FILES
    assert len(set(once)) == FILES
    for small, large in zip(once, twice, strict=True):
        assert abs(len(large) / len(small) - 2) < 0.01
        assert large.endswith(b"\n")
    assert input_files("tasks-2")[3] == f"3 {2 * SAMPLES}\n".encode()


@pytest.mark.parametrize("placed", applications(), ids=str)
def test_an_application_is_read_by_yarnctl_and_leaves_the_containers_to_it(placed: PlacedApplication) -> None:
    found = read_application(application_toml(placed, commands(placed, THERE, 24)).encode(), "app.toml")
    assert found.name == placed.name
    assert found.features == placed.features
    assert set(found.sections) == set(KINDS)
    for kind, section in found.sections.items():
        job = section.job("abc")
        assert job.settings()[section.framework.QUEUE] == kind
        words = job.words(section.framework.given(3))
        assert f"hdfs://n:1/user/ann/out/{placed}-abc" in words
        assert any(f"{placed}-abc" in word and "/out/" not in word for word in words)
    assert application_named(f"{placed}-abc") == placed


def test_a_queue_has_four_containers_and_no_fifth() -> None:
    found = queue_properties()
    total_mib = SHAPE.nodes * SHAPE.node_memory_mib
    assert sum(float(value) for key, value in found.items() if key.endswith(".capacity")) == 100
    for key, value in found.items():
        if key.endswith(".maximum-capacity"):
            assert float(value) / 100 * total_mib // CONTAINER_MIB == POOL_CONTAINERS


def test_the_pools_are_those_queues(tmp_path: Path) -> None:
    (tmp_path / "pools.toml").write_text(pools_toml())
    pools = read_pools(tmp_path / "pools.toml")
    assert [(pool.name, pool.queue, pool.kinds) for pool in pools] == [
        (kind, f"root.{kind}", (kind,)) for kind in KINDS
    ]
    assert {pool.capacity for pool in pools} == {POOL_CONTAINERS}


def test_a_name_of_nobody_is_no_application() -> None:
    assert application_named("sort-1-abc") is None
