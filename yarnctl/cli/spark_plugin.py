"""``yarnctl spark-plugin``: compile the driver plugin against the user's Spark.

yarnctl ships no binary, because Spark's classes differ between versions of Spark and of Scala.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import click

from yarnctl.errors import BadInput

SOURCE = Path(__file__).parents[1] / "frameworks" / "spark" / "plugin" / "Leave.java"
EPOCH = (1980, 1, 1, 0, 0, 0)  # The time of each file in the jar: the earliest that a zip file can hold


@click.command()
@click.option(
    "--spark-home",
    envvar="SPARK_HOME",
    type=click.Path(path_type=Path, file_okay=False),
    help="Spark's folder, which contains jars/.  [default: SPARK_HOME]",
)
@click.option(
    "--output",
    default=Path("yarnctl-leave.jar"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Jar file to write.",
)
def command(spark_home: Path | None, output: Path) -> None:
    """Compile the driver plugin that decommissions and restores executors (wrap --spark --plugin JAR)."""
    if spark_home is None:
        raise BadInput("--spark-home", "is missing", "give the folder of your Spark, or set SPARK_HOME")
    if not list(spark_home.glob("jars/spark-core_*.jar")):
        raise BadInput(
            f"--spark-home {spark_home}", "has no jars/spark-core_*.jar", "give Spark's own folder"
        )
    if not output.absolute().parent.is_dir():
        raise BadInput(f"--output {output}", "its folder does not exist", "create the folder first")
    with tempfile.TemporaryDirectory() as folder:
        compile_plugin(spark_home, Path(folder))
        write_jar(Path(folder), output)
    click.echo(output)


def compile_plugin(spark_home: Path, classes: Path) -> None:
    """Compile into ``classes``; BadInput contains the compiler's first error."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin" if home else None)
    if found is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise BadInput("javac", f"not found in {where}", "install a JDK of the version that Spark runs on")
    words = [found, "-nowarn", "-proc:none", "-cp", f"{spark_home / 'jars'}/*", "-d", str(classes)]
    done = subprocess.run([*words, str(SOURCE)], capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if ": error: " in line), done.stderr[:200])
        raise BadInput(f"--spark-home {spark_home}", f"the plugin does not compile against it: {first}")


def write_jar(classes: Path, output: Path) -> None:
    """Write classes into a jar, under a temporary name first."""
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(beside, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                entry = zipfile.ZipInfo(str(path.relative_to(classes)), EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)
