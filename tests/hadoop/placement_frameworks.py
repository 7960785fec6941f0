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
from tests.hadoop.configuration import OPENS, SMALL
from tests.hadoop.placement_set import PATTERN, PlacedApplication

JAVA = Path(__file__).parent / "placement_java"
KINDS = ("mapreduce", "spark", "flink")
"""Each has a queue and a pool of its own name."""
RUN = "{run}"
OPENS_FLINK = " ".join(
    (OPENS, "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
     "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
     "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
     "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
     "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
)  # fmt: skip
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
FLINK_SETTINGS = {
    # half a GiB for each JVM (facts/flink.md, section 2)
    "jobmanager.memory.process.size": "512m",
    "jobmanager.memory.jvm-metaspace.size": "128m",
    "jobmanager.memory.off-heap.size": "64m",
    "jobmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.process.size": "512m",
    "taskmanager.memory.jvm-metaspace.size": "112m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.framework.heap.size": "64m",
    "taskmanager.memory.framework.off-heap.size": "96m",
    "taskmanager.memory.framework.off-heap.batch-shuffle.size": "32m",
    "taskmanager.memory.network.min": "32m",
    "taskmanager.memory.network.max": "32m",
    "taskmanager.memory.managed.size": "64m",
    # as many TaskManagers as were given, from the first stage to the end
    "execution.batch.adaptive.auto-parallelism.enabled": "false",
    "resourcemanager.taskmanager-timeout": "600000",
    # a lost TaskManager fails a batch job without it (section 6)
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "1s",
}
FLINK_SCRIPT = """\
#!/bin/sh
# A client of Flink without Flink's distribution: its jars, two files of settings, Hadoop's jars behind them.
set -eu
export FLINK_CONF_DIR='{conf}' FLINK_LIB_DIR='{jars}' FLINK_PLUGINS_DIR='{conf}/plugins'
exec "${{JAVA_HOME:+$JAVA_HOME/bin/}}java" -Xmx256m {small} {opens} \\
    -Dlog4j.configurationFile="file:$FLINK_CONF_DIR/log4j-cli.properties" \\
    -cp "$FLINK_LIB_DIR/*:$HADOOP_CONF_DIR:{hadoop}/*" org.apache.flink.client.cli.CliFrontend "$@"
"""
FLINK_LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.main.ref = Main
appender.main.name = Main
appender.main.type = {type}
{to}
appender.main.layout.type = PatternLayout
appender.main.layout.pattern = %d{{ISO8601}} %p %c: %m%n
"""


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


def write_flink_client(folder: Path, bin_folder: Path, flink: Path, hadoop: Path) -> None:
    (folder / "plugins").mkdir(parents=True, exist_ok=True)
    config = f'env:\n  java:\n    opts:\n      all: "{OPENS_FLINK} {SMALL}"\n'
    (folder / "config.yaml").write_text(config)
    to_file = FLINK_LOG.format(type="File", to="appender.main.fileName = ${sys:log.file}")
    (folder / "log4j.properties").write_text(to_file)
    to_console = FLINK_LOG.format(type="Console", to="appender.main.target = SYSTEM_ERR")
    (folder / "log4j-cli.properties").write_text(to_console.replace("INFO", "WARN", 1))
    told = FLINK_SCRIPT.format(conf=folder, jars=flink, small=SMALL, opens=OPENS_FLINK, hadoop=hadoop)
    (bin_folder / "flink").write_text(told)
    (bin_folder / "flink").chmod(0o755)


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
