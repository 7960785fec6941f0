"""docs/attach.md on a real Hadoop: its commands in its order, their outputs as the page shows them.

``python -m tests.cluster.test_attach_page`` prints what each command says today, for whoever writes the page.
"""

from __future__ import annotations

import getpass
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.cluster.hdfs import Hdfs
from tests.cluster.launcher import Cluster
from tests.cluster.needing import need_hadoop
from tests.cluster.page import Script, is_as_shown
from tests.docker.composed import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "attach.md"
JOBS = ROOT / "docker" / "emulator" / "jobs"
STAMP = "1795286111346"
"""The page's cluster: what stands in its applications' ids."""


@contextmanager
def script(cluster: Cluster, folder: Path, records: bool = False) -> Iterator[Script]:
    """Yield what runs the page on a cluster, as an administrator with Alice's files in the folder."""
    shutil.copytree(JOBS, folder, dirs_exist_ok=True)
    sample = [f"{number % 97}\t{number}\n" for number in range(1000)]
    (folder / "sample.txt").write_text("".join(sample), encoding="ascii")
    superuser = Hdfs(cluster.hdfs_url, getpass.getuser())
    for user in ("alice", "bob"):
        superuser.make(f"/user/{user}", "755", user)
        for path in (folder / "ranges").iterdir():
            Hdfs(cluster.hdfs_url, user).write(f"/user/{user}/ranges/{path.name}", path.read_bytes())
    listen = f"127.0.0.1:{free_port()}"
    names = {
        "rm.example:8088": cluster.rm_url.removeprefix("http://"),
        "nn.example:9870": cluster.hdfs_url.removeprefix("http://"),
        "hadoop-streaming.jar": str(cluster.streaming_jar),
        "HADOOP_USER_NAME=hdfs": f"HADOOP_USER_NAME={getpass.getuser()}",
        "--user hdfs": f"--user {getpass.getuser()}",
        "--state-dir /var/lib/yarnctl": f"--listen {listen} --state-dir {folder}/state",
        "127.0.0.1:8188": listen,
        STAMP: str(
            requests.get(f"{cluster.rm_url}/ws/v1/cluster/info", timeout=60).json()["clusterInfo"]["id"]
        ),
    }
    environment = {
        **cluster.environment,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{cluster.environment['PATH']}",
        "YARNCTL_URL": f"http://{listen}",
        "COLUMNS": "200",
    }
    given = Script(folder, environment, names, records)
    try:
        yield given
    finally:
        given.end()


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    need_hadoop("3.4.2")
    with Cluster() as cluster, script(cluster, tmp_path) as page:
        for command, seen, good in page.run(PAGE.read_text(encoding="utf-8")):
            assert good, f"$ {command.words}\nprints\n{seen}\nand the page shows\n{command.shown}"


def test_an_output_that_is_another_is_told_from_the_page() -> None:
    shown = "┏━━━┳━━━━┓\n┃ id ┃ ago ┃\n│ 3 │ 2.5 s │\n...\nlast 7\n"
    assert is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ ago ┃\n│ 13 │ 1 m 4 s │\n│ 2 │ - │\nmore\nlast 12\n")
    assert not is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ age ┃\n│ 13 │ 4 s │\nlast 12\n")
    assert not is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ ago ┃\n│ 13 │ 4 s │\nlast 12\nand more\n")
    assert not is_as_shown("granted", "given up")


def test_a_cell_that_is_folded_is_the_same_cell() -> None:
    wide = "│ lock │ fail │ / belongs to root │\n"
    narrow = "│ lock │ fail │ / belongs │\n│      │      │ to root   │\n"
    assert is_as_shown(wide, narrow)
    assert not is_as_shown(wide, narrow.replace("root", "us"))


def _print() -> None:
    with Cluster() as cluster, script(cluster, Path(tempfile.mkdtemp(dir=cluster.folder)), True) as page:
        for command, seen, good in page.run(PAGE.read_text(encoding="utf-8")):
            sys.stdout.write(f"$ {command.words}\n{seen}{'' if good else '*** not what was awaited'}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _print()
