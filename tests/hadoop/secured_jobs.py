"""A secured cluster as an administrator leaves it, and jobs of its users: what its tests share.

Law: every client has a ticket of its own, in the environment that it is given.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import http_client
from tests.hadoop.configuration import Shape
from tests.hadoop.needing import need_hadoop, need_kerberos
from tests.hadoop.security import SecureCluster, as_user

CHECKPOINTS, REQUESTS = "/yarnctl/checkpoints", "/yarnctl/requests"
OWNER = "SETOWNER&owner=yarnctl&group=yarnctl"


@contextmanager
def secured(shape: Shape, folder: Path, lines: Iterable[str]) -> Iterator[SecureCluster]:
    """Yield a cluster with yarnctl's folders and the submitter's file ``input``; skips where it cannot be."""
    need_hadoop(shape.version)
    need_kerberos()
    with SecureCluster(shape, folder) as cluster:
        with cluster.session() as admin:
            make_folders(admin, cluster)
        (folder / "input").write_text("".join(lines))
        with as_user(cluster, cluster.user) as given:
            run_client(given, "hadoop", "fs", "-mkdir", "-p", f"/user/{cluster.user}")
            run_client(given, "hadoop", "fs", "-put", str(folder / "input"), "input")
        yield cluster


def make_folders(admin: http_client.Session, cluster: SecureCluster) -> None:
    """Make what an administrator makes: folders that are yarnctl's, readable to its group."""
    for path, mode in (("/yarnctl", "755"), (CHECKPOINTS, "1777"), (REQUESTS, "755")):
        for operation in (f"MKDIRS&permission={mode}", f"SETPERMISSION&permission={mode}", OWNER):
            admin.put(f"{cluster.hdfs_url}/webhdfs/v1{path}?op={operation}", timeout=180).raise_for_status()


def run_client(given: dict[str, str], *words: str) -> str:
    """Run a client to its end; raise with what it said."""
    done = subprocess.run(words, env=given, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(words)[:200]}: {done.stderr[-3000:]}"
    return done.stdout


def start(given: dict[str, str], log: Path, *words: str) -> subprocess.Popen[str]:
    with log.open("w") as out:
        return subprocess.Popen(words, env=given, stdout=out, stderr=out, stdin=subprocess.DEVNULL, text=True)


def production(cluster: SecureCluster, output: str = "production") -> list[str]:
    """Return a plain job that finds room for its master and one container more, and wants three."""
    job = ["-D", "mapreduce.job.queuename=production", "-D", "mapreduce.job.reduces=3"]
    words = ["hadoop", "jar", str(cluster.streaming_jar), *job, "-D", "mapreduce.job.maps=1"]
    return [*words, "-input", "input", "-output", output, "-mapper", "cat", "-reducer", "cat"]
