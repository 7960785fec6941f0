"""The whole loop on a real Hadoop where no signal reaches a container: the runner looks by itself.

Law: the doorbell may fail. A request that nobody was rung for is found by the runner's own look (every 15 to
20 s); until then production waits, and nothing else is lost.
"""

from __future__ import annotations

from pathlib import Path

from tests.hadoop.deaf_manager import deaf
from tests.hadoop.launcher import Cluster
from tests.hadoop.scenarios import Scenario, play, production, replays, research

SCENARIO = Scenario("polling", (research("steady", *range(150, 480, 30)),), (production("quick", 4, 4),))


def test_without_signals_the_runner_finds_the_request_by_looking(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    with deaf(loop_cluster.rm_url) as manager:
        ran = play(loop_cluster, SCENARIO, tmp_path, rm_url=manager.url)
    assert manager.unheard >= 1
    assert ran.freed("steady"), ran.story()
    assert ran.jobs["steady"].groups_twice() == 0
    assert replays(ran.daemon)
