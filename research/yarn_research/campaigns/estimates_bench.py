"""MRM's Tables 2 and 3 on a real Hadoop: small jobs of four kinds run once, their durations predicted.

``python -m yarn_research.campaigns.estimates_bench --rows FILE --output FILE``

Law: research/notes/market.md has the rule by which it is judged. Jobs go in as a user's do, by a command line, so many
at once; a program that was stopped goes on where it was. Models see what ``estimates_set`` keeps of a job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from yarn_research.campaigns.estimates_judging import COLUMNS, HALVES, Verdict, judge, table, written
from yarn_research.campaigns.estimates_set import (
    KEPT_PERCENT,
    EstimateRow,
    RowsFile,
    SmallJob,
    Task,
    Terms,
    block_of,
    small_jobs,
)
from yarn_research.campaigns.provenance import head, load
from yarnctl.command_line import complain, print_table
from yarnctl.errors import BadInput, YarnctlError

PATIENCE_S = 900.0
USER = "ann"
TEXT = f"/user/{USER}/text"
SETTINGS = {
    "mapreduce.job.reduce.slowstart.completedmaps": "1.0",  # phases do not overlap: each is measured
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}
LOADGEN = "org.apache.hadoop.mapreduce.GenericMRLoadGenerator"
LOADGEN_FORMATS = [
    *("-inFormat", "org.apache.hadoop.mapreduce.lib.input.TextInputFormat"),
    *("-outFormat", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"),
    *("-outKey", "org.apache.hadoop.io.LongWritable", "-outValue", "org.apache.hadoop.io.Text"),
]
VERSION = "3.4.2"
Say = Callable[[str], object]
Runs = Callable[[SmallJob], EstimateRow]
OnHadoop = Callable[[Path, Terms], AbstractContextManager[Runs]]


class Unfinished(YarnctlError):
    """A job did not succeed, or the cluster does not do what it should."""


class Hadoop:
    """A real cluster with one queue and the text in it."""

    def __init__(self, folder: Path, cluster: Any, examples: Path) -> None:
        self._folder, self._cluster, self._examples = folder, cluster, examples
        self._environment = {**cluster.environment, "HADOOP_USER_NAME": USER}

    def words(self, job: SmallJob, output: str) -> list[str]:
        """Return the command line of a job."""
        told = {**SETTINGS, "mapreduce.job.queuename": "default", "mapreduce.job.tags": job.name}
        told |= {} if job.type == "pi" else {"mapreduce.job.reduces": str(job.reduces)}
        settings = [word for key, value in told.items() for word in ("-D", f"{key}={value}")]
        texts = [f"{TEXT}/block-{number}.txt" for number in job.blocks]
        if job.type == "pi":
            words = ["jar", str(self._examples), "pi", *settings, str(job.maps), str(job.samples)]
        elif job.type == "wordcount":
            words = ["jar", str(self._examples), "wordcount", *settings, *texts, output]
        else:
            after_maps, after_reduces = KEPT_PERCENT[job.type]
            words = [LOADGEN, *settings, *LOADGEN_FORMATS, "-r", str(job.reduces)]
            words += ["-keepmap", str(after_maps), "-keepred", str(after_reduces)]
            words += ["-indir", ",".join(texts), "-outdir", output]
        return [str(self._cluster.folder / "bin" / "hadoop"), *words]

    def run(self, job: SmallJob) -> EstimateRow:
        """Run a job to its end; return what is kept. Raises Unfinished with what its client says."""
        before = load()
        log = self._folder / f"{job.name}.log"
        output = f"/user/{USER}/out-{job.name}"
        with log.open("wb") as said:
            done = subprocess.run(
                self.words(job, output),
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                timeout=PATIENCE_S,
            )
        if done.returncode:
            raise Unfinished(f"{job.name}: {log.read_text(errors='replace')[-2000:]}")
        row = self._row(job, before)
        self._remove(output)
        if row.state != "SUCCEEDED":
            raise Unfinished(f"{job.name}: {row.state}")
        if (row.maps, row.reduces) != (job.maps, job.reduces):
            raise Unfinished(f"{job.name} had {row.maps} maps and {row.reduces} reduces, not as drawn")
        return row

    def _remove(self, path: str) -> None:
        from tests.hadoop.hdfs import Hdfs

        Hdfs(self._cluster.hdfs_url, USER).remove(path)

    def _row(self, job: SmallJob, before: Sequence[float]) -> EstimateRow:
        from tests.hadoop.history import asked, counters_of
        from tests.hadoop.jobs import applications

        found = [one for one in applications(self._cluster.rm_url) if one["applicationTags"] == job.name]
        if len(found) != 1:
            raise Unfinished(f"{job.name}: {len(found)} applications have its tag")
        number = str(found[0]["id"]).replace("application_", "job_", 1)
        told = asked(self._cluster, number, "")["job"]
        tasks = asked(self._cluster, number, "tasks")["tasks"]["task"]
        lost = ("failedMapAttempts", "killedMapAttempts", "failedReduceAttempts", "killedReduceAttempts")
        counters: dict[str, int] = {}
        for group, values in counters_of(self._cluster, number).items():
            counters |= values if group.startswith("org.apache.hadoop.mapreduce.") else {}
        return EstimateRow(
            name=job.name,
            type=job.type,
            maps=int(told["mapsTotal"]),
            reduces=int(told["reducesTotal"]),
            samples=job.samples,
            state=str(told["state"]),
            application=str(found[0]["id"]),
            elapsed_ms=int(found[0]["finishedTime"]) - int(found[0]["startedTime"]),
            started_at_ms=int(told["startTime"]),
            finished_at_ms=int(told["finishTime"]),
            attempts_lost=sum(int(told[key]) for key in lost),
            tasks=tuple(Task(one["type"], int(one["startTime"]), int(one["finishTime"])) for one in tasks),
            counters=counters,
            load_before=tuple(before),
            load_after=tuple(load()),
        )


@contextmanager
def hadoop(folder: Path, terms: Terms) -> Iterator[Runs]:
    """Start a real Hadoop with one queue, and write the text."""
    from tests.hadoop.artifacts import examples_jar
    from tests.hadoop.hdfs import Hdfs
    from tests.hadoop.launcher import Cluster
    from yarn_research.campaigns.admission_hadoop import BY_DEADLINE

    examples = examples_jar(BY_DEADLINE.version)
    with Cluster(BY_DEADLINE, folder / "hadoop") as cluster:
        superuser = Hdfs(cluster.hdfs_url, os.environ.get("USER") or "root")
        superuser.make(f"/user/{USER}", "755", USER)
        for number in range(terms.blocks):
            Hdfs(cluster.hdfs_url, USER).write(f"{TEXT}/block-{number}.txt", block_of(terms, number))
        clients = folder / "clients"
        clients.mkdir(parents=True, exist_ok=True)
        yield Hadoop(clients, cluster, examples).run


def run_all(run: Runs, file: RowsFile, terms: Terms, say: Say) -> None:
    """Run the jobs that have no row, so many at once; the first that does not succeed ends it."""
    written = threading.Lock()
    failed = threading.Event()
    jobs = small_jobs(terms)

    def one(job: SmallJob) -> None:
        if failed.is_set():
            return
        try:
            row = run(job)
        except BaseException:
            failed.set()
            raise
        with written:
            file.add(row)
            say(f"{len(file.rows)} of {len(jobs)}: {row.name}, {row.elapsed_ms / 1000:.1f} s")

    with ThreadPoolExecutor(terms.at_once) as pool:
        for done in [pool.submit(one, job) for job in file.left(jobs)]:
            done.result()


def starts(rows: Sequence[EstimateRow]) -> int:
    """Return how many clusters the rows were measured on: each start has ids of its own."""
    return len({row.application.rpartition("_")[0] for row in rows})


def bench(
    rows: Path, output: Path | None, keep: Path | None, terms: Terms, on: OnHadoop = hadoop, say: Say = print
) -> Verdict:
    """Run what has no row yet, judge, and write all of it to ``output``. Raises Unfinished and BadInput."""
    terms.checked()
    if find_spec("sklearn") is None:
        raise BadInput("models", "scikit-learn is not installed", "pip install 'yarnctl[prediction]'")
    file = RowsFile(rows, terms, head("estimates-hadoop", hadoop=VERSION))
    if file.left(small_jobs(terms)):
        with tempfile.TemporaryDirectory(prefix="yarnctl-estimates-") as own:
            folder = (keep or Path(own)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            with on(folder, terms) as run:
                run_all(run, file, terms, say)
    verdict = judge(file.rows)
    if output is not None:
        told = {**file.head, "clusters": starts(file.rows)}
        beside = output.with_suffix(".new")
        beside.write_text(written(told, file.rows, verdict), encoding="utf-8")
        beside.replace(output)
    return verdict


@click.command()
@click.option("--rows", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Grows by job.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write all of it there.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep logs in this folder.")
@click.option("--jobs", default=Terms().jobs, show_default=True)
@click.option("--seed", default=Terms().seed, show_default=True)
@click.option("--at-once", default=Terms().at_once, show_default=True)
def main(rows: Path, output: Path | None, keep: Path | None, jobs: int, seed: int, at_once: int) -> None:
    """Run small jobs on a real Hadoop, and predict their durations; print MRM's Tables 2 and 3."""
    try:
        terms = Terms(jobs=jobs, seed=seed, at_once=at_once)
        verdict = bench(rows, output, keep, terms, say=lambda text: click.echo(text, err=True))
    except YarnctlError as error:
        sys.exit(complain(str(error), error.exit_status))
    print_table(COLUMNS, table(verdict), "durations predicted: ours beside the paper's")
    told = [(claim.claim, claim.ours, claim.holds, claim.halves_ratio) for claim in verdict.claims]
    print_table(("claim", "ours", "holds", f"of {HALVES} halves"), told)


if __name__ == "__main__":
    main()
