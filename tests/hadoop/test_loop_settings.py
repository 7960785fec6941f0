"""The whole loop on a real Hadoop set up otherwise: a third queue, user limits, deadlines, access lists.

Law: the ResourceManager is restarted with other queues for each; nothing is evicted that admits nobody, and
no user can read or spoil what another's job has saved.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import http_client
from tests.hadoop.configuration import ready
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.scenarios import (
    Running,
    Scenario,
    decisions,
    play,
    playing,
    production,
    replays,
    research,
    wrongly_ranked,
)
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.records import Performed

QUEUE = "yarn.scheduler.capacity.root."
Properties = dict[str, str | None]


def queues_of(set_up: str) -> dict[str, str]:
    return ready(set_up, "capacity-scheduler")


SITE = ("yarn.acl.enable", "yarn.admin.acl", "yarn.cluster.max-application-priority")
"""Properties of yarn-site that a test here may set; none of them stays."""


def set_queues(cluster: Cluster, wanted: Mapping[str, str], site: Mapping[str, str] | None = None) -> None:
    """Restart the ResourceManager with exactly these queues, and these properties of yarn-site."""
    file = cluster.conf / "capacity-scheduler.xml"
    held = [entry.findtext("name", "") for entry in ElementTree.parse(file).getroot()]
    queues: Properties = {**dict.fromkeys(held), **wanted}
    more: Properties = {**dict.fromkeys(SITE), **(site or {})}
    cluster.restart_manager({"capacity-scheduler": queues, "yarn-site": more})


@pytest.fixture(autouse=True, scope="module")
def usual_queues_again(loop_cluster: Cluster) -> Iterator[None]:
    """Leave the queues as the other scenarios want them."""
    yield
    set_queues(loop_cluster, queues_of("dual-queue"))


THREE = {
    **queues_of("dual-queue"),
    f"{QUEUE}queues": "production,research,batch",
    f"{QUEUE}production.capacity": "40",
    f"{QUEUE}production.user-limit-factor": "3",
    f"{QUEUE}research.capacity": "30",
    f"{QUEUE}research.user-limit-factor": "4",
    f"{QUEUE}batch.capacity": "30",
    f"{QUEUE}batch.maximum-capacity": "100",
    f"{QUEUE}batch.user-limit-factor": "4",
    f"{QUEUE}batch.disable_preemption": "true",
}
"""Production is served first up to 40 percent (five containers); beyond, freed room is the third queue's."""
BATCH = Plan("batch", "batch", (20, 20), user="carol")


def submit_to_the_third_queue(running: Running) -> None:
    """Somebody else waits for the same room."""
    running.submit(BATCH)


def test_room_that_a_third_queue_would_get_is_not_made(loop_cluster: Cluster, tmp_path: Path) -> None:
    set_queues(loop_cluster, THREE)
    steady = research("steady", *range(150, 480, 30))
    hurried = production("quick", 6, 6, 6, 6, 6, 6)
    ran = play(
        loop_cluster, Scenario("third", (steady,), (hurried,), disturb=submit_to_the_third_queue), tmp_path
    )
    assert ran.freed("steady"), ran.story()
    assert ran.asked("batch") == []
    assert ran.daemon.reached("misdirected") == [], ran.story()
    assert ran.jobs["steady"].groups_twice() == 0
    assert wrongly_ranked(ran) == []
    assert replays(ran.daemon)


BY_DEADLINE = (
    "--mode", "deadlines", "--policy", "MDF", "--preempting", "default", "--preemptable", "default",
    "--allow-priority", "--in-flight-least", "4",
)  # fmt: skip


def due(plan: Plan, in_s: float) -> Plan:
    """Return a job of the one queue, with a deadline as its tag."""
    tag = {"mapreduce.job.tags": f"deadline:{round(time.time() + in_s)}"}
    return plan._replace(queue="default", user="alice", settings=tag)


def test_the_latest_deadline_gives_way_and_priorities_follow_the_earliest(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    set_queues(loop_cluster, queues_of("deadline"), {"yarn.cluster.max-application-priority": "10"})
    late, middle = research("late", 150, 190, 230, 270, 310), research("middle", 150, 190, 230, 270, 310)
    plans = (due(late, 7200), due(middle, 3600))
    with playing(loop_cluster, "deadlines", tmp_path, BY_DEADLINE) as ran:
        ran.submit(*plans)
        ran.daemon.start()
        ran.until_at_work("late", "middle")
        ran.submit(due(production("urgent", 5, 5), 60))
        ran.until_at_work("urgent")
        held = {name: int(ran.jobs[name].row()["priority"]) for name in ran.jobs}
        ran.finish("urgent")
    assert held["urgent"] > held["middle"] > held["late"], held
    assert decisions(ran)[0].picks[0].application == ran.jobs["late"].application
    assert ran.freed("late"), ran.story()
    assert {name: job.groups_twice() for name, job in ran.jobs.items()} == dict.fromkeys(ran.jobs, 0)
    done = [record for record in ran.daemon.records() if isinstance(record, Performed)]
    assert any(one.action == "set-priority" and isinstance(one.outcome, Accepted) for one in done)
    assert replays(ran.daemon)


# --- access lists, and a user's limit ----------------------------------------------------------------

CLOSED = {
    **queues_of("dual-queue"),
    "yarn.scheduler.capacity.root.acl_submit_applications": " ",
    "yarn.scheduler.capacity.root.acl_administer_queue": " ",
    f"{QUEUE}research.acl_submit_applications": "alice,carol",
    f"{QUEUE}production.acl_submit_applications": "bob",
    f"{QUEUE}production.user-limit-factor": "0.25",
}
"""One user may hold a quarter of production's 95 percent: three containers, and one that goes beyond."""
LISTED = {
    "mapreduce.cluster.acls.enabled": "true",
    "mapreduce.job.acl-view-job": "yarnctl",
    "mapreduce.job.acl-modify-job": "yarnctl",
}
"""What a user writes so that yarnctl may look at the job and stop its attempts."""
STORE = "/yarnctl/checkpoints"


def test_access_lists_keep_users_apart_and_no_room_is_made_that_a_users_limit_forbids(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    Hdfs(loop_cluster.hdfs_url, "root").make("/user/carol", "755", "carol")
    set_queues(loop_cluster, CLOSED, {"yarn.acl.enable": "true", "yarn.admin.acl": "root"})
    hers = research("hers", 120, 140, 160)._replace(settings=LISTED)
    his = research("his", 120, 140, 160)._replace(settings=LISTED, user="carol")
    spoilt = research("spoilt", 100, 110, 120)._replace(settings=LISTED)
    with playing(loop_cluster, "lists", tmp_path) as ran:
        ran.submit(hers, his)
        ran.daemon.start()
        ran.until_at_work("hers", "his")
        spoil(ran)
        ran.submit(spoilt)
        ran.until_at_work("spoilt")
        ran.submit(
            production("quick", 5, 5, 5, 5, 5)._replace(settings={"mapreduce.cluster.acls.enabled": "true"})
        )
        ran.until(lambda: ran.freed("hers") and ran.freed("his"), "both users' tasks stopped")
        refused(ran, owner="hers", stranger="carol")
        refused(ran, owner="his", stranger="alice")
        ran.finish("quick")
    assert ran.freed("spoilt") == [], "its folder belonged to somebody else"
    freed = ran.freed("hers") + ran.freed("his")
    assert len(ran.daemon.reached("granted")) == len(freed), ran.story()
    assert {name: job.groups_twice() for name, job in ran.jobs.items()} == dict.fromkeys(ran.jobs, 0)
    assert replays(ran.daemon)


def job_name(application: str) -> str:
    return application.replace("application_", "job_", 1)


def spoil(running: Running) -> None:
    """As carol, take the folder where alice's next job would keep its checkpoints."""
    latest = max(running.jobs[name].application for name in running.jobs)
    stem, _, number = latest.rpartition("_")
    folder = f"{STORE}/{job_name(f'{stem}_{int(number) + 1:04d}')}"
    Hdfs(running.cluster.hdfs_url, "carol").make(folder, "777")


def refused(running: Running, owner: str, stranger: str) -> None:
    """Try, as a stranger, to read, to add to, to remove and to move what a job has saved: all is refused."""
    url = running.cluster.hdfs_url
    job = running.jobs[owner]
    home = f"{STORE}/{job_name(job.application)}"
    mine = Hdfs(url, job.plan.user)
    saved = [f"{home}/{task}/{name}" for task in mine.names(home) for name in mine.names(f"{home}/{task}")]
    manifest = next(path for path in saved if path.endswith("manifest.json"))
    order = f"/yarnctl/requests/{job_name(job.application)}"
    tries = [
        ("GET", home, {"op": "LISTSTATUS"}),
        ("GET", manifest, {"op": "OPEN"}),
        ("PUT", f"{manifest}.forged", {"op": "CREATE"}),
        ("DELETE", manifest, {"op": "DELETE"}),
        ("DELETE", home, {"op": "DELETE", "recursive": "true"}),
        ("PUT", home, {"op": "RENAME", "destination": f"/user/{stranger}/taken"}),
        ("PUT", f"{order}/forged", {"op": "CREATE"}),
    ]
    for method, path, query in tries:
        asked = http_client.request(
            method, f"{url}/webhdfs/v1{path}", params={**query, "user.name": stranger}, data=b"", timeout=60
        )
        told = asked.status_code, asked.text[:200]
        assert asked.status_code == 403, (method, path, query, told)
