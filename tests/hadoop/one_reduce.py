"""A small streaming job of one reduce on a real cluster, with or without the task runner, run to its end.

Law: the job must succeed. ``--suspend-at`` and ``--exit-when-saved`` of the runner suspend it where a test
wants, without a daemon: the attempt then ends with a failure, and Hadoop starts the next one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.hadoop.hdfs import Hdfs
from tests.hadoop.history import finished
from tests.hadoop.launcher import Cluster
from yarnctl.task_runner.wrapping import wrap

USER = "alice"


def run_one_reduce(
    cluster: Cluster,
    name: str,
    keys: Sequence[str],
    files: Sequence[Path],
    runner: Sequence[str] | None = None,
    settings: Mapping[str, str] | None = None,
    words: Sequence[str] = (),
) -> tuple[str, str]:
    """Run a job whose reducer is the first of ``files``, over a line for each key; return its id and output.

    ``runner``: options of the task runner; none: Hadoop has the reducer itself. ``words``: more of streaming.
    """
    home = f"/user/{USER}/{name}"
    text = "".join(f"{key}\tv\n" for key in keys)
    Hdfs(cluster.hdfs_url, USER).write(f"{home}/in/input.txt", text.encode())
    given = {
        "mapreduce.job.name": name,
        "mapreduce.job.reduces": "1",
        "mapreduce.job.queuename": "research",
        "mapreduce.reduce.speculative": "false",
        **(settings or {}),
    }
    command = ["hadoop", "jar", str(cluster.streaming_jar)]
    command += [word for key, value in given.items() for word in ("-D", f"{key}={value}")]
    command += ["-files", ",".join(map(str, files)), "-input", f"{home}/in", "-output", f"{home}/out"]
    command += ["-mapper", "/bin/cat", "-reducer", f"{sys.executable} {files[0].name}", *words]
    if runner is not None:
        command = wrap(command, True, 0, store_of(cluster), runner)
    environment = {**cluster.environment, "HADOOP_USER_NAME": USER}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return finished(cluster, name), f"{home}/out"


def store_of(cluster: Cluster) -> str:
    """Return the URL of the folder for checkpoints."""
    return f"{cluster.hdfs_url.replace('http:', 'webhdfs:')}/yarnctl/checkpoints"
