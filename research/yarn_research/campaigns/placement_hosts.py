"""Where applications are placed: three pools on the live emulator, each framework a black box.

Law: applications go in by ``yarnctl profile`` and ``yarnctl place`` alone, as a user types them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from emulator.cli.black_box import RM
from emulator.cluster.entities import QueueConfig
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import ClusterPlan as Nodes
from emulator.live.programs.all_in_one import build
from emulator.live.programs.manager_program import Options
from tests.hadoop.background import Background
from yarn_research.campaigns.admission_hosts import BIN, QUICK

POOLS = ("spark", "flink", "mapreduce")
POOL_CONTAINERS = 4
USER = "ann"
"""Whose applications they are."""
POOLS_TOML = """\
[[pool]]
name = "spark"
queue = "root.spark"
kinds = ["spark"]
capacity = 4
cost_mtokens = 1000

[[pool]]
name = "flink"
queue = "root.flink"
kinds = ["flink"]
capacity = 4
cost_mtokens = 1500

[[pool]]
name = "mapreduce"
queue = "root.mapreduce"
kinds = ["mapreduce"]
capacity = 4
cost_mtokens = 800
"""


class LivePools:
    """The live emulator at ``rm`` with a queue for each framework; ``folder`` is the gate's."""

    name = "live emulator"
    container_mib = 1024

    def __init__(self, rm: str, folder: Path) -> None:
        self.rm = self.history = rm
        kept = {name: value for name, value in os.environ.items() if not name.startswith("YARNCTL_")}
        self.environment: Mapping[str, str] = {
            **kept,
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
            RM: rm,
            "YARNCTL_RM": rm,
            "HADOOP_CONF_DIR": "",
            "HADOOP_USER_NAME": USER,
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def application(self, name: str, size: int) -> str:
        """Return the APP.toml of an application of some size: each framework has its own times."""
        spark, flink = 1 + size * TIMES[name][0], 0.5 + size * TIMES[name][1]
        yarn = ["--master", "yarn", "--deploy-mode", "cluster", "--queue", "spark"]
        named = [
            "-t",
            "yarn-application",
            "-Dyarn.application.queue=flink",
            f"-Dyarn.application.name={name}",
        ]
        tasks = ["--queue", "mapreduce", "--modelled", f"3x{size * TIMES[name][2]:g}"]
        commands = {
            "spark": ["yarn-emulator", "spark-submit", *yarn, "--name", name, f"modelled:1+{spark:g}"],
            "flink": ["yarn-emulator", "flink", "run-application", *named, f"modelled:0.5+{flink:g}"],
            "mapreduce": ["yarn-emulator", "submit", "--rm", self.rm, "--user", USER, "--name", name, *tasks],
        }
        sections = [f"[{kind}]\ncommand = {_words(words)}\n" for kind, words in commands.items()]
        return f'name = "{name}"\nfeatures = {{ size = {size} }}\n{"".join(sections)}'

    def is_output_right(self, name: str) -> bool:
        """Return True: a black box writes nothing, so that how it ended is all there is."""
        return True


TIMES = {"wordcount": (8.0, 10.0, 4.0), "grep": (9.0, 6.0, 4.0), "pi": (12.0, 12.0, 3.0)}
"""Seconds of work by size: of Spark, of Flink, and of each of MapReduce's three maps."""


def _words(words: list[str]) -> str:
    return msgspec.json.encode(words).decode()


@contextmanager
def live_pools(folder: Path) -> Iterator[LivePools]:
    """Serve three nodes of four containers, a third of them for each framework."""
    queues = tuple(
        QueueConfig(name=name, capacity_ratio=1 / 3, maximum_ratio=1 / 3, am_ratio=1.0) for name in POOLS
    )
    settings = msgspec.structs.replace(ManagerSettings(timing=QUICK), queues=queues)
    nodes = Nodes(nodes=3, memory_mib=4096, vcores=4, processes=False)
    with Background(lambda url: build(Options(work=folder / "work"), nodes, url, settings).web) as server:
        yield LivePools(server.url, folder)
