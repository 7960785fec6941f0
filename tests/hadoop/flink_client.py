"""A client of Flink on a real Hadoop without Flink's distribution, and the settings of small containers."""

from __future__ import annotations

from pathlib import Path

from tests.hadoop.configuration import OPENS, SMALL

OPENS_FLINK = " ".join(
    (OPENS, "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
     "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
     "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
     "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
     "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
)  # fmt: skip
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
