"""``python -m yarn_research.campaigns.coming_back``: what an interruption costs a reduce with much input.

Law: the same reduce, once interrupted by yarnctl and once killed by YARN's own preemption as tuned; costs are
taken from the cluster's own records (overhead.py). The input is made by the job's own maps.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.jobs import LOOK_S, RESTARTABLE, Job, Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.overhead import interruptions
from yarn_research.campaigns.provenance import head, load
from yarn_research.campaigns.schemes import SCHEMES

VALUE_BYTES = 200_000
GROUPS = 1200
"""Two minutes of work: a task that would be done sooner than it comes back is left to finish."""
OTHERS = 10
"""Production's reduces: with its master all but one container, which is research's master's."""
MAPS = 2


def heavy(mib: int, attached: bool) -> Plan:
    """Return a job whose one reduce reads so much: few lines are written, each map blows them up."""
    values = max(1, mib * 2**20 // GROUPS // VALUE_BYTES)
    return Plan(
        "heavy",
        "research",
        (GROUPS,),
        0.1,
        maps=MAPS,
        values=values,
        wrap=RESTARTABLE if attached else (),
        settings=MORE,
        mapper=f"{sys.executable} blow_up.py {VALUE_BYTES}",
    )


MORE: Mapping[str, str] = {"mapreduce.task.io.sort.mb": "48"}


def one(cluster: Cluster, scheme: str, mib: int, folder: Path) -> dict[str, Any]:
    """Run the heavy job and let production need all there is while it works."""
    cluster.restart_manager(SCHEMES[scheme].changes())
    attached = SCHEMES[scheme].attached
    if attached:
        with Attached(cluster, folder / "state", QUEUES):
            return _one(cluster, scheme, mib, folder, attached)
    return _one(cluster, scheme, mib, folder, attached)


def _one(cluster: Cluster, scheme: str, mib: int, folder: Path, attached: bool) -> dict[str, Any]:
    patient = Job(cluster, heavy(mib, attached), folder, scheme)
    while not patient.begun().total() >= GROUPS // 4:
        time.sleep(LOOK_S)
    hurried = Job(cluster, Plan("all", "production", (50,) * OTHERS, user="bob"), folder, scheme)
    hurried.wait()
    took_s = patient.wait().took_s
    costs = interruptions(patient, cluster.history_url)
    return {
        "interruptions": [{**cost._asdict(), "overhead_s": cost.overhead_s} for cost in costs],
        "research_s": took_s,
        "groups_twice": patient.groups_twice(),
        "masters": _masters(cluster, patient),
        "digests": patient.digests(),
    }


def _masters(cluster: Cluster, job: Job) -> int:
    """Return how many masters the job has had: YARN's preemption may kill that, too."""
    url = f"{cluster.rm_url}/ws/v1/cluster/apps/{job.application}/appattempts"
    return len(http_client.get(url, timeout=60).json()["appAttempts"]["appAttempt"])


def main(arguments: Sequence[str]) -> int:
    """Print what each scheme's interruption cost, as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, default=2048, help="reduce input")
    parser.add_argument("--hadoop", default="3.4.2")
    given = parser.parse_args(arguments)
    seen: dict[str, Any] = head("coming-back", hadoop=given.hadoop)
    seen |= {"hadoop": given.hadoop, "reduce_input_mib": given.mib}
    with tempfile.TemporaryDirectory(prefix="coming-back-") as name, Cluster(Shape(given.hadoop)) as cluster:
        prepare(cluster)
        for scheme in ("yarnctl", "yarn-tuned"):
            seen[scheme] = one(cluster, scheme, given.mib, Path(name))
    seen["identical"] = seen["yarnctl"].pop("digests") == seen["yarn-tuned"].pop("digests")
    print(json.dumps(seen | {"load_after": load()}, indent=1))
    return 0 if seen["identical"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
