"""Side files on a real Hadoop: a reduce that writes them is never suspended, and all of them are there.

Law: the same job without side files is suspended, whatever its output's form: so the refusal is theirs. A job
with ``-files side.txt`` has none in its work folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.hadoop.hdfs import Hdfs
from tests.hadoop.history import reduce_attempts
from tests.hadoop.jobs import PROGRAM
from tests.hadoop.launcher import Cluster
from tests.hadoop.one_reduce import USER, run_one_reduce
from tests.hadoop.test_loop_formats import GZIP, SEQUENCE

KEYS = tuple(f"k{number:02d}" for number in range(12))
REDUCER = PROGRAM.with_name("sides.py")
IN_PLACE = ("--suspend-at", "4,8", "--release-wait-ms", "0")
LEAVING = ("--suspend-at", "4", "--exit-when-saved")
FORMS: dict[str, tuple[Mapping[str, str], Sequence[str]]] = {
    "text": ({}, ()),
    "gzip": (GZIP, ()),
    "sequence": ({}, SEQUENCE),
    "lazy": ({}, ("-lazyOutput",)),
}


def saved(hdfs: Hdfs, job: str) -> list[str]:
    """Return what lies in the store of a job's only reduce."""
    folder = f"/yarnctl/checkpoints/{job}/{job.replace('job_', 'task_', 1)}_r_000000"
    return [f"{folder}/{name}" for name in hdfs.names(folder)]


def test_a_reduce_with_side_files_is_never_suspended(loop_cluster: Cluster) -> None:
    hdfs = Hdfs(loop_cluster.hdfs_url, USER)
    told = (
        "-cmdenv", f"NAME_NODE={loop_cluster.hdfs_url}", "-cmdenv", f"USER_NAME={USER}", "-cmdenv", "SIDES=1",
    )  # fmt: skip
    job, output = run_one_reduce(loop_cluster, "sides", KEYS, (REDUCER,), IN_PLACE, words=told)
    assert [name for name in hdfs.names(output) if name.startswith("side-")] == [
        f"side-{key}" for key in KEYS
    ]
    assert hdfs.read(f"{output}/side-k03") == b"k03\tv\n"
    assert hdfs.read(f"{output}/part-00000") == b"".join(f"{key}\t1\n".encode() for key in KEYS)
    files = saved(hdfs, job)
    assert not [name for name in files if name.endswith(".manifest.json")]
    answers = [json.loads(hdfs.read(name)) for name in files if "/answer-" in name]
    assert {answer["answer"] for answer in answers} == {"refused"}
    assert all("side files would be lost: side-k00, side-k01" in answer["reason"] for answer in answers)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_reduce_without_side_files_is_suspended(
    loop_cluster: Cluster, tmp_path: Path, form: str
) -> None:
    settings, words = FORMS[form]
    shipped = tmp_path / "side.txt"
    shipped.write_text("shipped with the job\n")
    name = f"no-sides-{form}"
    job, output = run_one_reduce(loop_cluster, name, KEYS, (REDUCER, shipped), LEAVING, settings, words)
    hdfs = Hdfs(loop_cluster.hdfs_url, USER)
    assert [path for path in saved(hdfs, job) if path.endswith(".manifest.json")]
    assert reduce_attempts(loop_cluster, job) == 2
    assert [name for name in hdfs.names(output) if name.startswith("part-")]
