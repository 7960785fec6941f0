"""docs/attach.md and remove.md on a real Hadoop: their commands in order, their outputs as the pages show.

``python -m tests.hadoop.test_attach_page`` prints what each command says today, for whoever writes the page.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import http_client
from tests.docker.composed import free_port
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop
from tests.hadoop.page import Script, is_as_shown

ROOT = Path(__file__).parents[2]
ON_THE_EMULATOR = "Name your queues"
"""The section that tests/live/test_pages_live.py runs."""
JAR = "/opt/hadoop/share/hadoop/tools/lib/hadoop-streaming-3.4.2.jar"
STAMP = "1795286111346"
"""The page's cluster: what stands in its applications' ids."""


def pages() -> str:
    """Return what runs on Hadoop: attach.md without its section for the emulator, then remove.md."""
    docs = ROOT / "docs"
    attach, remove = ((docs / name).read_text(encoding="utf-8") for name in ("attach.md", "remove.md"))
    before, found, rest = attach.partition(f"\n## {ON_THE_EMULATOR}\n")
    assert found, f"attach.md has no section {ON_THE_EMULATOR}"
    return before + rest[rest.index("\n## ") :] + remove


@contextmanager
def script(cluster: Cluster, folder: Path, records: bool = False) -> Iterator[Script]:
    """Yield what runs the page on a cluster, in a fresh copy of the repository.

    Nothing else is brought along: files, homes and users are those that the page makes.
    """
    clone, logs = folder / "yarnctl", folder / "logs"
    logs.mkdir()
    _clone(clone)
    listen = f"127.0.0.1:{free_port()}"
    names = {
        "rm.example:8088": cluster.rm_url.removeprefix("http://"),
        "nn.example:9870": cluster.hdfs_url.removeprefix("http://"),
        JAR: str(cluster.streaming_jar),
        "HDFS_SUPERUSER=hdfs": f"HDFS_SUPERUSER={getpass.getuser()}",
        "--state-dir /var/lib/yarnctl": f"--listen {listen} --state-dir {folder}/state",
        "127.0.0.1:8188": listen,
        STAMP: str(
            http_client.get(f"{cluster.rm_url}/ws/v1/cluster/info", timeout=60).json()["clusterInfo"]["id"]
        ),
    }
    environment = {
        **cluster.environment,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{cluster.environment['PATH']}",
        "YARNCTL_URL": f"http://{listen}",
        "COLUMNS": "200",
    }
    given = Script(clone, logs, environment, names, records)
    try:
        yield given
    finally:
        given.end()


def _clone(to: Path) -> None:
    """Copy the files that the repository keeps, as they are now."""
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, kept.decode().split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, to / name)


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    need_hadoop("3.4.2")
    with Cluster() as cluster, script(cluster, tmp_path) as page:
        for command, seen, good in page.run(pages()):
            assert good, f"$ {command.words}\nprints\n{seen}\nand the page shows\n{command.shown}"


def test_an_output_that_is_another_is_told_from_the_page() -> None:
    shown = "┏━━━┳━━━━┓\n┃ id ┃ ago ┃\n│ 3 │ 2.5 s │\n...\nlast 7\n"
    assert is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ ago ┃\n│ 13 │ 1 m 4 s │\n│ 2 │ - │\nmore\nlast 12\n")
    assert not is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ age ┃\n│ 13 │ 4 s │\nlast 12\n")
    assert not is_as_shown(shown, "┏━━┳━━┓\n┃ id ┃ ago ┃\n│ 13 │ 4 s │\nlast 12\nand more\n")
    assert not is_as_shown("granted", "given up")
    assert not is_as_shown("error: 3 lines\nerror: 3 lines\n", "error: 3 lines\n")


def test_a_cell_that_is_folded_is_the_same_cell() -> None:
    wide = "│ lock │ fail │ / belongs to root │\n"
    narrow = "│ lock │ fail │ / belongs │\n│      │      │ to root   │\n"
    assert is_as_shown(wide, narrow)
    assert not is_as_shown(wide, narrow.replace("root", "us"))


def _print() -> None:
    with Cluster() as cluster, script(cluster, Path(tempfile.mkdtemp(dir=cluster.folder)), True) as page:
        for command, seen, good in page.run(pages()):
            sys.stdout.write(f"$ {command.words}\n{seen}{'' if good else '*** not what was awaited'}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _print()
