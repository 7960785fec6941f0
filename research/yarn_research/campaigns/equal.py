"""Equal to undisturbed on a real Hadoop: jobs of one reduce, suspended at random groups, and the same alone.

Law: a run is judged by what Hadoop has kept: the committed files of the output folder, side files too, the
final user counters, files that the reducer wrote elsewhere, and the key groups that its attempts began. A job
that must not be suspended is refused with the reason. Moments come from a seed; the runner suspends itself
there (``--suspend-at``): it goes on in place, or its attempt ends and Hadoop starts the next one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.hadoop.attached import prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.history import counters_of, finished, reduce_attempts
from tests.hadoop.jobs import PROGRAM
from tests.hadoop.launcher import Cluster
from tests.hadoop.odd_lines import FRAMEWORK
from tests.hadoop.one_reduce import USER, store_of
from tests.soak.rig import GROUP_LOG, digests, read_log
from tests.soak.workloads import ELSEWHERE_AT, PAUSE, PRELUDE, WORKLOADS
from yarn_research.campaigns.provenance import commit, load, machine, now, uncommitted, versions
from yarnctl.task_runner.wrapping import wrap

KEYS = 24
KINDS = ("sum", "stateful", "counting", "elsewhere", "side-files")
REFUSED = "side files would be lost"
SIDES = PROGRAM.with_name("sides.py")


class Left(NamedTuple):
    """What a job has left behind."""

    files: dict[str, str]
    counters: dict[str, dict[str, int]]
    elsewhere: dict[str, tuple[int, str]]
    keys: frozenset[bytes]


class Run(msgspec.Struct):
    """One disturbed job. ``twice``: groups that were begun again though a checkpoint held them."""

    number: int
    kind: str
    cuts: list[int]
    leaves: bool
    differs: list[str] = []
    saved: int = 0
    refused: int = 0
    attempts: int = 0
    twice: int = 0
    took_s: float = 0.0


class Stage:
    """A cluster, and the jobs that are played on it."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int) -> None:
        self.cluster = cluster
        self.folder = folder
        self.seed = seed
        self.hdfs = Hdfs(cluster.hdfs_url, USER)
        self.alone: dict[str, Left] = {}

    def plan(self, number: int) -> Run:
        """Draw where a run is suspended, and whether its attempts end there."""
        chance = random.Random(f"{self.seed}:{number}")
        cuts = sorted(chance.sample(range(1, KEYS), chance.randint(1, 3)))
        return Run(number, KINDS[number % len(KINDS)], cuts, chance.random() < 0.6)

    def play(self, run: Run) -> Run:
        """Play a run and judge it against the same job alone."""
        began_s = time.monotonic()
        work = WORKLOADS[run.kind]
        leaving = ("--exit-when-saved",) if run.leaves else ("--release-wait-ms", "0")
        told = (*shlex.split(work.options), "--suspend-at", ",".join(map(str, run.cuts)), *leaving)
        name = f"equal-{run.number}-{run.kind}"
        job, left = self.job(name, run.kind, told)
        wanted = self.alone[run.kind]
        for what, here, there in zip(Left._fields, left, wanted, strict=True):
            if here != there:
                run.differs.append(f"{what}: {here}, undisturbed {there}")
        files = self.saved(job)
        run.saved = sum(path.endswith(".manifest.json") for path in files)
        answers = [json.loads(self.hdfs.read(path)) for path in files if "/answer-" in path]
        run.refused = sum(one["answer"] == "refused" and REFUSED in one["reason"] for one in answers)
        run.attempts = reduce_attempts(self.cluster, job)
        run.twice = self.twice(name)
        if run.twice or (not run.saved and not run.refused):
            run.differs.append(f"{run.twice} groups begun twice, {run.saved} saved, {run.refused} refused")
        run.took_s = round(time.monotonic() - began_s, 1)
        print(f"{name}: {'DIFFERS' if run.differs else 'equal'}, {run.took_s} s", file=sys.stderr, flush=True)
        return run

    def reference(self, kind: str) -> None:
        """Run a job without the runner."""
        self.alone[kind] = self.job(f"alone-{kind}", kind, None)[1]

    def job(self, name: str, kind: str, runner: Sequence[str] | None) -> tuple[str, Left]:
        """Run a job to its end and return its id and what it has left."""
        home, folder = f"/user/{USER}/{name}", self.folder / name
        folder.mkdir(mode=0o777)
        work = WORKLOADS[kind]
        lines = list(work.lines(random.Random(kind), KEYS))
        self.hdfs.write(f"{home}/in/input.txt", b"\n".join(lines) + b"\n")
        reducer = SIDES if kind == "side-files" else folder / "reduce.py"
        if kind != "side-files":
            reducer.write_text(PRELUDE + work.reducer)
        command = self.words(name, home, reducer, {GROUP_LOG: str(folder / "groups"), PAUSE: "20"})
        if runner is not None:
            command = wrap(command, True, 0, store_of(self.cluster), runner)
        environment = {**self.cluster.environment, "HADOOP_USER_NAME": USER}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
        if done.returncode:
            raise AssertionError(f"{name}: {done.stderr[-3000:]}")
        job = finished(self.cluster, name)
        counters = {
            group: inside
            for group, inside in counters_of(self.cluster, job).items()
            if not group.startswith(FRAMEWORK)
        }
        keys = frozenset(one.key for one in read_log(folder / "groups"))
        return job, Left(self.files(f"{home}/out"), counters, digests(folder / "elsewhere"), keys)

    def words(self, name: str, home: str, reducer: Path, told: Mapping[str, str]) -> list[str]:
        """Return the command line that submits a job without the runner."""
        settings = {
            "mapreduce.job.name": name,
            "mapreduce.job.reduces": "1",
            "mapreduce.job.queuename": "research",
            "mapreduce.reduce.speculative": "false",
            "mapreduce.reduce.maxattempts": "6",
        }
        elsewhere = str(self.folder / name / "elsewhere")
        env = {
            **told,
            ELSEWHERE_AT: elsewhere,
            "NAME_NODE": self.cluster.hdfs_url,
            "USER_NAME": USER,
            "SIDES": "1",
        }
        words = ["hadoop", "jar", str(self.cluster.streaming_jar)]
        words += [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        words += [
            "-files",
            str(reducer),
            "-input",
            f"{home}/in",
            "-output",
            f"{home}/out",
            "-mapper",
            "/bin/cat",
        ]
        words += ["-reducer", f"{sys.executable} {reducer.name}"]
        return words + [word for key, value in env.items() for word in ("-cmdenv", f"{key}={value}")]

    def files(self, folder: str) -> dict[str, str]:
        """Return the SHA-256 of every file that was committed, side files too; empty if the job was not."""
        names = self.hdfs.names(folder)
        found = {
            name: hashlib.sha256(self.hdfs.read(f"{folder}/{name}")).hexdigest() for name in sorted(names)
        }
        return found if "_SUCCESS" in names else {}

    def saved(self, job: str) -> list[str]:
        """Return what lies in the store of a job's only reduce."""
        folder = f"/yarnctl/checkpoints/{job}/{job.replace('job_', 'task_', 1)}_r_000000"
        return [f"{folder}/{name}" for name in self.hdfs.names(folder)]

    def twice(self, name: str) -> int:
        """Return how many groups were begun again: every suspension is at a border, so none may be."""
        begun = Counter(one.key for one in read_log(self.folder / name / "groups"))
        return begun.total() - len(begun)


def campaign(runs: int, seed: int, hadoop: str, jobs: int) -> dict[str, Any]:
    """Play runs on a cluster of their own and return everything that was found, with how it was made."""
    told = {
        "name": "",
        "kind": "equal-hadoop",
        "began": now(),
        "commit": commit(),
        "uncommitted": uncommitted(),
        "machine": machine(),
        "load_before": load(),
        "versions": versions(hadoop=hadoop),
        "order": f"references first, then runs by number, {jobs} at a time",
        "seed": seed,
        "keys": KEYS,
    }
    with tempfile.TemporaryDirectory(prefix="equal-") as name, Cluster(Shape(hadoop)) as cluster:
        prepare(cluster)
        stage = Stage(cluster, Path(name), seed)
        Path(name).chmod(0o777)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(stage.reference, KINDS))
            played = list(pool.map(lambda number: stage.play(stage.plan(number)), range(runs)))
    return {
        **told,
        "load_after": load(),
        "runs": len(played),
        "different": sum(bool(run.differs) for run in played),
        "computed_twice": sum(run.twice for run in played),
        "checkpoints": sum(run.saved for run in played),
        "refused": sum(bool(run.refused) for run in played),
        "by_kind": dict(Counter(run.kind for run in played)),
        "each": [msgspec.to_builtins(run) for run in played],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m yarn_research.campaigns.equal``: return 1 if a run differs."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.campaigns.equal")
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=3, help="number of runs at the same time")
    parser.add_argument("--hadoop", default="3.4.2")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    given = parser.parse_args(arguments)
    found = campaign(given.runs, given.seed, given.hadoop, given.jobs)
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        for run in found["each"]:
            said = "; ".join(run["differs"])[:500] or "equal"
            print(
                f"{run['number']:3} {run['kind']:<10} {run['saved']} saved, {run['refused']} refused: {said}"
            )
        print(f"{found['different']} of {found['runs']} different, {found['computed_twice']} groups twice")
    return 1 if found["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
