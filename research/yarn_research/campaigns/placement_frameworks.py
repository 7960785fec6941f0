"""The three frameworks on a real Hadoop: the programs' jar, Flink's client, and each one's command line.

Law: an application is a command line that a user could type. It names its queue and itself, and leaves the
number of containers to yarnctl; ``{run}`` in its name and its output is each run's own word.
"""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.hadoop.artifacts import NotToBeHad, javac
from tests.hadoop.configuration import SMALL
from tests.hadoop.flink_client import FLINK_SETTINGS
from yarn_research.campaigns.placed_applications import PATTERN, PlacedApplication

JAVA = Path(__file__).parent / "placement_java"
KINDS = ("mapreduce", "spark", "flink")
"""Each has a queue and a pool of its own name."""
RUN = "{run}"
MAPREDUCE_SETTINGS = {"mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false"}
SPARK_SETTINGS = {
    "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.extraJavaOptions": SMALL,
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.yarn.submit.waitAppCompletion": "false",  # a client less; who placed it watches YARN
    "spark.yarn.am.waitTime": "300s",
    "spark.network.timeout": "300s",
    "spark.ui.enabled": "false",
}


class Installed(NamedTuple):
    """What the command lines name: the programs' jar here and in HDFS, Flink's jars in HDFS, Spark's folder.

    ``data`` is a whole URI: Flink's containers have no configuration of Hadoop (facts/flink.md, section 1).
    """

    jar: Path
    jar_uri: str
    flink_uri: str
    spark: Path
    data: str


def build_jar(jar: Path, class_path: Sequence[Path]) -> None:
    """Compile the programs against the frameworks' jars; raises NotToBeHad with what the compiler says."""
    classes = jar.with_suffix(".classes")
    sources = [str(path) for path in sorted(JAVA.glob("*.java"))]
    told = ["--release", "17", "-nowarn", "-d", str(classes)]
    told += ["-cp", ":".join(f"{folder}/*" for folder in class_path)]
    done = subprocess.run([javac(), *told, *sources], capture_output=True, text=True)
    if done.returncode:
        raise NotToBeHad(f"the programs of placement_java do not compile: {done.stderr[-2000:]}")
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))


def commands(application: PlacedApplication, there: Installed, rate_kib: int) -> dict[str, list[str]]:
    name = f"{application}-{RUN}"
    folders = [f"{there.data}/in/{application.folder}", output_of(there.data, name)]
    program = [application.name, *folders, str(rate_kib), PATTERN]
    mapreduce = {"mapreduce.job.queuename": "mapreduce", "mapreduce.job.name": name, **MAPREDUCE_SETTINGS}
    spark = {"spark.yarn.jars": f"local:{there.spark}/jars/*", **SPARK_SETTINGS}
    flink = {
        "yarn.application.queue": "flink",
        "yarn.application.name": name,
        "yarn.provided.lib.dirs": there.flink_uri,
        **FLINK_SETTINGS,
    }
    yarn = ["--master", "yarn", "--deploy-mode", "cluster", "--queue", "spark", "--name", name]
    return {
        "mapreduce": [*("hadoop", "jar", str(there.jar), "placing.MapReduceApp"),
            *(word for key, value in mapreduce.items() for word in ("-D", f"{key}={value}")), *program],
        "spark": [*("spark-submit", *yarn),
            *(word for key, value in spark.items() for word in ("--conf", f"{key}={value}")),
            *("--class", "placing.SparkApp", str(there.jar)), *program],
        "flink": [*("flink", "run-application", "-t", "yarn-application"),
            *(f"-D{key}={value}" for key, value in flink.items()), *("-c", "placing.FlinkApp", there.jar_uri),
            *program],
    }  # fmt: skip


def output_of(data: str, name: str) -> str:
    """Return the folder that the application of this name writes to."""
    return f"{data}/out/{name}"
