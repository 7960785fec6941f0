"""Hadoop's jars, Spark's and Flink's: one pom per version of Hadoop, one download, kept in the user's cache.

Law: a folder of jars is complete or not there. Maven writes beside it, and the rename comes last.
Which artifacts a version needs, and which of them exist, was found by running (facts/hadoop.md,
sections 7 and 11): 3.5.0 has no streaming jar of its own and takes 3.4.2's, and none of the examples.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

STREAMING = {"3.3.5": "3.3.5", "3.4.2": "3.4.2", "3.5.0": "3.4.2"}
VERSIONS = tuple(STREAMING)
EXAMPLES = "hadoop-mapreduce-examples"
Artifact = tuple[str, str, str]
"""Name, version, type ("" is jar)."""
ARTIFACTS = (
    ("hadoop-common", ""),
    ("hadoop-hdfs", ""),
    ("hadoop-hdfs", "test-jar"),  # brings the webapps folders, without which the NameNode dies
    ("hadoop-yarn-server-resourcemanager", ""),
    ("hadoop-yarn-server-nodemanager", ""),
    ("hadoop-yarn-server-timelineservice", ""),  # the ResourceManager loads a class of it
    ("hadoop-yarn-client", ""),
    ("hadoop-mapreduce-client-app", ""),
    ("hadoop-mapreduce-client-hs", ""),
    ("hadoop-mapreduce-client-shuffle", ""),
    ("hadoop-mapreduce-client-jobclient", ""),
    ("hadoop-mapreduce-client-jobclient", "test-jar"),
)


class NotToBeHad(Exception):
    """The jars cannot be fetched here; says what is missing."""


def cache_folder() -> Path:
    """Return where downloads are kept: ``$XDG_CACHE_HOME/yarnctl`` or ``~/.cache/yarnctl``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yarnctl"


def jars(version: str) -> Path:
    """Return the folder with all jars of a version, fetched on first use; raises NotToBeHad."""
    if version not in STREAMING:
        raise NotToBeHad(f"Hadoop {version} is not one of {', '.join(VERSIONS)}")
    kept = cache_folder() / f"hadoop-{version}" / "lib"
    if not kept.is_dir():
        _fetch(f"Hadoop {version}", artifacts_of(version), kept)
    return kept


PY4J = {"3.5.9": "0.10.9.9", "4.0.1": "0.10.9.9", "4.3.0": "0.10.9.9"}
"""Versions of PySpark that are tried, and what each asks for."""
SPARK = {"pyspark": "4.0.1", "py4j": PY4J["4.0.1"]}
"""The one that is used: all but ``make bench-spark-versions`` leave it."""
FLINK = "apache-flink-libraries", os.environ.get("YARNCTL_FLINK", "1.20.5")
"""Its sources hold the jars: flink-dist could not be had by Maven where this was written. With
``YARNCTL_FLINK=2.1.0`` another version is tried.
"""
FLINK_JARS = (
    "flink-dist", "flink-connector-files", "log4j-api", "log4j-core", "log4j-slf4j-impl", "log4j-1.2-api",
)  # fmt: skip
"""What a job of the DataStream API needs (facts/flink.md, section 1)."""


def choose_spark(version: str) -> None:
    """Use another version of Spark from now on."""
    SPARK.update(pyspark=version, py4j=PY4J[version])


def spark_home() -> Path:
    """Return Spark's folder, fetched on first use (434 MB from the registry of Python packages)."""
    kept = cache_folder() / f"pyspark-{SPARK['pyspark']}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            wanted = [f"{name}=={version}" for name, version in SPARK.items()]
            _pip("Spark", "install", "--target", f"{folder}/spark", *wanted)
            _keep(Path(folder) / "spark", kept)
    return kept / "pyspark"


def flink_jars() -> Path:
    """Return the folder of Flink's jars, fetched on first use (232 MB, of which 130 MB are kept)."""
    name, version = FLINK
    kept = cache_folder() / f"flink-{version}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            _pip("Flink", "download", "--no-binary", ":all:", "--dest", folder, f"{name}=={version}")
            found = Path(folder) / "jars"
            found.mkdir()
            with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as sources:
                for member in sources:
                    file = PurePosixPath(member.name).name
                    if member.isfile() and file.rpartition("-")[0] in FLINK_JARS:
                        member.name = file
                        sources.extract(member, found, filter="data")
            if len(list(found.glob("*.jar"))) != len(FLINK_JARS):
                raise NotToBeHad(f"{name} {version} has not all of {', '.join(FLINK_JARS)}")
            _keep(found, kept)
    return kept


def _pip(what: str, command: str, *words: str) -> None:
    """Let pip fetch; raises NotToBeHad with what it says."""
    given = [sys.executable, "-m", "pip", command, "-q", "--no-deps", *words]
    done = subprocess.run(given, capture_output=True, text=True)
    if done.returncode:
        raise NotToBeHad(f"pip could not fetch {what}: {done.stderr[-2000:]}")


def _keep(found: Path, kept: Path) -> None:
    """Give a complete folder its place."""
    try:
        os.rename(found, kept)
    except OSError:
        if not kept.is_dir():  # another start that fetched at the same time is as good
            raise


def missing_programs() -> list[str]:
    """Return which of the programs that a cluster needs are not on the path."""
    return [name for name in ("java", "mvn") if shutil.which(name) is None]


def javac() -> str:
    """Return the compiler of Java; raises NotToBeHad."""
    found = shutil.which("javac")
    if found is None:
        raise NotToBeHad("javac is not on the path (Debian: openjdk-17-jdk-headless)")
    return found


def examples_jar(version: str) -> Path:
    """Return the jar of wordcount and pi, fetched on first use; raises NotToBeHad."""
    if version not in STREAMING:
        raise NotToBeHad(f"Hadoop {version} is not one of {', '.join(VERSIONS)}")
    of = STREAMING[version]
    kept = cache_folder() / f"hadoop-{version}" / "examples"
    if not kept.is_dir():
        _fetch(f"{EXAMPLES} {of}", [(EXAMPLES, of, "")], kept, alone=True)
    return kept / f"{EXAMPLES}-{of}.jar"


def manager_test_jar(version: str) -> Path:
    """Return the ResourceManager's test jar, fetched on first use; raises NotToBeHad."""
    name = "hadoop-yarn-server-resourcemanager"
    kept = cache_folder() / f"hadoop-{version}" / "recorded"
    if not kept.is_dir():
        _fetch(f"{name} {version}", [(name, version, "test-jar")], kept, alone=True)
    return kept / f"{name}-{version}-tests.jar"


def _fetch(what: str, wanted: Sequence[Artifact], kept: Path, alone: bool = False) -> None:
    """Fetch artifacts and, unless they are wanted alone, what they depend on."""
    if absent := missing_programs():
        raise NotToBeHad(f"not on the path: {', '.join(absent)} (Debian: openjdk-17-jdk-headless, maven)")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(pom_of(wanted), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}/lib"]
        goal += ["-DexcludeTransitive=true"] if alone else []
        done = subprocess.run(["mvn", "-B", "-q", "-f", str(pom), *goal], capture_output=True, text=True)
        if done.returncode:
            raise NotToBeHad(f"Maven could not fetch {what}: {done.stdout[-2000:]}")
        _keep(Path(folder) / "lib", kept)


def artifacts_of(version: str) -> list[Artifact]:
    """Return every artifact that a cluster of a version is started from."""
    return [
        *((name, version, kind) for name, kind in ARTIFACTS),
        ("hadoop-streaming", STREAMING[version], ""),
    ]


def pom_of(wanted: Sequence[Artifact]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>org.apache.hadoop</groupId><artifactId>{name}</artifactId>"
        f"<version>{number}</version>{f'<type>{kind}</type>' if kind else ''}</dependency>\n"
        for name, number, kind in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>yarnctl</groupId><artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )
