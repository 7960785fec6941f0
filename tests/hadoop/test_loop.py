"""The whole loop on a real Hadoop: hurried jobs are served, patient jobs lose nothing.

Law: every test plays one scenario (tests/hadoop/scenarios.py) and says in its name what must hold. The
output of an undisturbed run is known beforehand; test_loop_formats checks that against a real one.
"""

from __future__ import annotations

from pathlib import Path

from tests.hadoop.launcher import Cluster
from tests.hadoop.scenarios import (
    Running,
    Scenario,
    asked_just_back,
    play,
    production,
    replays,
    research,
    wrongly_ranked,
)

PLAIN = Scenario(
    "plain",
    (research("long", 150, 190, 230, 270), research("short", 150, 190),
     research("bare", 150, 190, 230)._replace(wrap=())),
    (production("quick", 6, 6, 6),),
)  # fmt: skip


def test_hurried_jobs_get_room_and_patient_ones_lose_nothing(loop_cluster: Cluster, tmp_path: Path) -> None:
    ran = play(loop_cluster, PLAIN, tmp_path)
    assert len(ran.freed("long") + ran.freed("short")) >= 3, ran.story()
    assert ran.asked("bare") == [], "it has no runner"
    assert {name: job.groups_twice() for name, job in ran.jobs.items()} == dict.fromkeys(ran.jobs, 0)
    assert wrongly_ranked(ran) == []
    assert replays(ran.daemon)


def all_back(running: Running) -> None:
    """Wait until research has its room again: the next wave meets tasks that have just come back."""
    running.until_back("steady")


WAVES = Scenario(
    "waves",
    (research("steady", *range(150, 480, 30)),),
    (
        production("first", 4, 4, 4)._replace(
            settings={"mapreduce.job.reduce.slowstart.completedmaps": "1.0"}
        ),
        production("second", 4, 4, 4),
    ),
    between=all_back,
)


def test_a_second_wave_takes_no_room_back_and_no_task_that_has_just_come_back(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    ran = play(loop_cluster, WAVES, tmp_path)
    assert len(ran.freed("steady")) >= 4, ran.story()
    assert ran.daemon.reached("misdirected") == [], ran.story()
    assert asked_just_back(ran, "steady") == []
    assert ran.jobs["steady"].groups_twice() == 0
    assert wrongly_ranked(ran) == []
    assert replays(ran.daemon)
