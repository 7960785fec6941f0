"""``yarnctl spark-plugin``: compile the driver's plugin against the Spark that a user has.

Law: the jar is whole or not there, and the same classes give the same bytes. No binary comes with yarnctl,
because Spark's classes differ between versions and between versions of Scala.
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

SOURCE = Path(__file__).parents[1] / "submitting" / "spark_plugin" / "Leave.java"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The instant of each file in the jar: the earliest that a zip can hold."""


@click.command()
@click.option(
    "--spark-home",
    envvar="SPARK_HOME",
    type=click.Path(path_type=Path, file_okay=False),
    help="Spark's folder, with jars in it.  [default: SPARK_HOME]",
)
@click.option(
    "--output",
    default=Path("yarnctl-leave.jar"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The jar to write.",
)
def command(spark_home: Path | None, output: Path) -> None:
    """Compile the plugin by which executors leave together and come back (wrap --spark --plugin JAR)."""
    if spark_home is None:
        raise BadInput("--spark-home", "is missing", "name the folder of your Spark, or set SPARK_HOME")
    if not list(spark_home.glob("jars/spark-core_*.jar")):
        raise BadInput(
            f"--spark-home {spark_home}", "has no jars/spark-core_*.jar", "name Spark's own folder"
        )
    if not output.absolute().parent.is_dir():
        raise BadInput(f"--output {output}", "its folder is not there", "make it first")
    with tempfile.TemporaryDirectory() as folder:
        compile_plugin(spark_home, Path(folder))
        write_jar(Path(folder), output)
    click.echo(output)


def compile_plugin(spark_home: Path, classes: Path) -> None:
    """Compile into ``classes``; BadInput has the first thing that the compiler says."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin" if home else None)
    if found is None:
        where = f"JAVA_HOME={home}" if home else "the path"
        raise BadInput("javac", f"is not on {where}", "install a JDK of the version that Spark runs on")
    words = [found, "-nowarn", "-proc:none", "-cp", f"{spark_home / 'jars'}/*", "-d", str(classes)]
    done = subprocess.run([*words, str(SOURCE)], capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if ": error: " in line), done.stderr[:200])
        raise BadInput(f"--spark-home {spark_home}", f"the plugin does not compile against it: {first}")


def write_jar(classes: Path, output: Path) -> None:
    """Put classes into a jar, beside its place first."""
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
