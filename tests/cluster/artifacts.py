"""Hadoop's jars: one pom per version, one download, kept in the user's cache.

Law: a folder of jars is complete or not there. Maven writes beside it, and the rename comes last.
Which artifacts a version needs, and which of them exist, was found by running (facts/hadoop.md,
sections 7 and 11): 3.5.0 has no streaming jar of its own and takes 3.4.2's, and none of the examples.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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


SPARK = {"pyspark": "4.0.1", "py4j": "0.10.9.9"}


def spark_home() -> Path:
    """Return Spark's folder, fetched on first use (434 MB from the registry of Python packages)."""
    kept = cache_folder() / f"pyspark-{SPARK['pyspark']}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            wanted = [f"{name}=={version}" for name, version in SPARK.items()]
            words = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--target",
                f"{folder}/spark",
                *wanted,
            ]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                raise NotToBeHad(f"pip could not fetch Spark: {done.stderr[-2000:]}")
            try:
                os.rename(f"{folder}/spark", kept)
            except OSError:
                if not kept.is_dir():  # another start that fetched at the same time is as good
                    raise
    return kept / "pyspark"


def missing_programs() -> list[str]:
    """Return which of the programs that a cluster needs are not on the path."""
    return [name for name in ("java", "mvn") if shutil.which(name) is None]


def examples_jar(version: str) -> Path:
    """Return the jar of wordcount and pi, fetched on first use; raises NotToBeHad."""
    if version not in STREAMING:
        raise NotToBeHad(f"Hadoop {version} is not one of {', '.join(VERSIONS)}")
    of = STREAMING[version]
    kept = cache_folder() / f"hadoop-{version}" / "examples"
    if not kept.is_dir():
        _fetch(f"{EXAMPLES} {of}", [(EXAMPLES, of, "")], kept, alone=True)
    return kept / f"{EXAMPLES}-{of}.jar"


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
        try:
            os.rename(f"{folder}/lib", kept)
        except OSError:
            if not kept.is_dir():  # another start that fetched at the same time is as good
                raise


def artifacts_of(version: str) -> list[Artifact]:
    """Return every artifact that a cluster of a version is started from."""
    return [
        *((name, version, kind) for name, kind in ARTIFACTS),
        ("hadoop-streaming", STREAMING[version], ""),
    ]


def pom_of(wanted: Sequence[Artifact]) -> str:
    """Return the pom that names some artifacts."""
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
