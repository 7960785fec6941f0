"""Applications of Spark through plain ``yarnctl admit`` on a real Hadoop, by Spark's own client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hadoop.needing import need_hadoop, need_spark
from yarn_research.campaigns.spark_admission import play, run_alone, shown
from yarn_research.campaigns.spark_hosts import hadoop_spark

pytestmark = pytest.mark.xdist_group("hadoop")


def test_two_applications_of_spark_are_seen_limited_freed_and_teach(tmp_path: Path) -> None:
    need_hadoop("3.4.2")
    need_spark()
    with hadoop_spark(tmp_path) as host:
        run_alone(host, "daily-0")
        found = shown(play(host, "justice", tmp_path / "gate"))
    rows = found.pop("rows")
    assert set(found.values()) == {2}, rows
