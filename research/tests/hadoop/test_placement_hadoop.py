"""One application on MapReduce, Spark and Flink of a real Hadoop: profiled on each, then placed six times.

What it wrote is compared with a count made here, whichever framework it ran on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hadoop.needing import need_flink, need_hadoop, need_javac, need_spark
from yarn_research.campaigns.placed_applications import PlacedApplication
from yarn_research.campaigns.placement_bench import Placing, play, profile
from yarn_research.campaigns.placement_frameworks import KINDS
from yarn_research.campaigns.placement_hadoop import POOL_CONTAINERS, hadoop_pools, pools_toml
from yarn_research.campaigns.placement_terms import Terms, arrivals
from yarnctl.cli.runs import kept_runs

pytestmark = pytest.mark.xdist_group("hadoop")

TERMS = Terms(arrivals=6, containers="1,2,3", repeat=1, gap_s=15.0)
RATE_KIB = 192
"""Eight times the campaign's: a file takes 2.7 s."""


def test_an_application_is_profiled_and_placed_and_every_output_is_right(tmp_path: Path) -> None:
    need_hadoop("3.4.2")
    need_spark()
    need_flink()
    need_javac()
    placed = PlacedApplication("wordcount", 1)
    with hadoop_pools(tmp_path / "cluster", RATE_KIB) as host:
        host.write_input([placed])
        (tmp_path / "pools.toml").write_text(pools_toml())
        files = (host.write_application(placed, tmp_path),)
        on = Placing(host, files, tmp_path / "pools.toml", tmp_path / "runs.jsonl")
        profile(on, TERMS)  # it looks at each output, too
        found = play(on, "orion", arrivals(on.best_s(), TERMS, TERMS.gap_s or 0.0, 0), tmp_path / "gate")
    runs = {(run.kind, run.containers) for run in kept_runs(on.store)}
    assert runs == {(kind, workers + 1) for kind in KINDS for workers in (1, 2, 3)}
    assert len(found.outcomes) == TERMS.arrivals
    ran = [each for each in found.outcomes if each.state != "rejected"]
    assert ran, found
    assert all(each.right for each in ran), found
    assert {each.kind for each in ran} <= set(KINDS)
    assert all(2 <= each.containers <= POOL_CONTAINERS for each in ran), found
