"""Promises on the live emulator with jobs that overrun: does the daemon know of them before their deadline?

    python -m tests.soak late-promises-live [--promises 50] [--at-once 6] [--speed 3] [--seed 1]

The jobs of ``late-promises``, as many that overrun as those that do not, each admitted by the gate of
``yarnctl run``, which knows one usual run of each kind of job from the history. Law: what was missed is read
from the ResourceManager, what was known from ``/v1/admissions``. Exit status 1 if fewer than 90 % of the
missed promises were known before their deadline, if more than 10 % of the kept ones were called late, or if
more than 10 % of the jobs failed: those are in neither figure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import string
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import msgspec

from emulator.live.jobs.submission_client import Client
from emulator.live.wire.submitted_job import ModelledJob
from tests import http_client
from tests.live.test_waiting_live import free_port
from tests.soak.late_promises import (
    DETECTED_LEAST,
    FALSE_MOST,
    SHARE,
    TASK_MS,
    Promised,
    Watched,
    figures,
    promises_of,
)
from tests.soak.rig import wait_until
from tests.soak.virtual_live_sides import program
from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage
from yarnctl.frameworks.mapreduce.rest import MAP_LIMIT, REDUCE_LIMIT
from yarnctl.traces.job import Job

SLOTS = 12
LOOK_S = 0.3
UNAVAILABLE = 503
"""The gate has no estimate yet, or does not see the cluster: a client retries."""
DONE = ("FINISHED", "FAILED", "KILLED")
USER, QUEUE = "bob", "production"
LIMITED = dict.fromkeys((MAP_LIMIT, REDUCE_LIMIT), str(SHARE))
"""The limits of a run that the gate did not admit."""


def kind_of(wanted: Job) -> str:
    """Return the name under which the history knows jobs of as many tasks; it takes numbers as equal."""
    letters = string.ascii_lowercase
    return f"daily-{letters[len(wanted.map_ms) // SHARE]}-{letters[len(wanted.reduce_ms)]}"


def usual(wanted: Job) -> Job:
    """Return the run that was estimated: as many tasks of the usual length."""
    return msgspec.structs.replace(
        wanted,
        map_ms=(TASK_MS,) * len(wanted.map_ms),
        reduce_ms=(TASK_MS,) * len(wanted.reduce_ms),
    )


class Live:
    """A cluster and the daemon at its gate; ``known_at_ms``: when each admission was shown as late first."""

    def __init__(self, client: Client, url: str, token: str, speed: float) -> None:
        self._client, self._url, self._speed = client, url, speed
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.known_at_ms: dict[str, int] = {}

    def answers(self) -> bool:
        """Say whether the gate knows how large the cluster is."""
        try:
            gate = self.page("").gate
        except OSError:
            return False
        return gate is not None and bool(gate.capacity)

    def page(self, query: str) -> AdmissionPage:
        answer = http_client.get(f"{self._url}/v1/admissions{query}", headers=self._headers, timeout=60)
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=AdmissionPage)

    def look_at_late(self) -> None:
        """Note the running admissions that are shown as late."""
        for each in self.page("?state=running&limit=100").items:
            if each.late is not None:
                self.known_at_ms.setdefault(each.id, round(time.time() * 1000))

    def run(self, wanted: Job, settings: dict[str, str], tags: tuple[str, ...] = ()) -> float | None:
        """Run a job to its end; return the instant of that by the wall clock in s (None: it failed)."""
        named = msgspec.structs.replace(wanted, name=kind_of(wanted), user=USER, queue=QUEUE)
        submitted = ModelledJob(job=named, runner=False, settings=settings)
        application = self._client.submit(submitted, QUEUE, tags)
        wait_until(
            lambda: self._client.application(application)["state"] in DONE, f"the end of {application}", 600
        )
        return time.time() if self._client.application(application)["state"] == "FINISHED" else None

    def keep(self, promise: Promised) -> Watched | None:
        """Let the gate admit a job, run it, and return what came of its promise (None: the job failed)."""
        span_ms = (promise.deadline_at_ms - promise.job.submitted_at_ms) / self._speed
        admission = self._admitted(kind_of(promise.job), round(span_ms))
        ended_s = self.run(promise.job, admission.settings, tuple(admission.tags))
        if ended_s is None:
            return None
        deadline_at_ms = admission.plan.deadline_at_ms
        known_at_ms = self.known_at_ms.get(admission.id)
        return Watched(promise.overruns, ended_s * 1000 > deadline_at_ms, deadline_at_ms, known_at_ms)

    def _admitted(self, name: str, span_ms: int) -> AdmissionOut:
        body = {"name": name, "user": USER, "queue": QUEUE, "containers": SHARE + 1, "deadline_ms": span_ms}
        answers = []

        def is_taken() -> bool:
            answer = http_client.request(
                "POST", f"{self._url}/v1/admissions", data=json.dumps(body), headers=self._headers, timeout=60
            )
            answers.append(answer)
            return answer.status_code != UNAVAILABLE

        wait_until(is_taken, f"an answer about {name}", every_s=LOOK_S)
        answers[-1].raise_for_status()
        found = msgspec.json.decode(answers[-1].content, type=AdmissionOut)
        wait_until(lambda: self._one(found.id).state != "waiting", f"a verdict on {found.id}")
        found = self._one(found.id)
        assert found.state == "admitted", found
        return found

    def _one(self, admission: str) -> AdmissionOut:
        url = f"{self._url}/v1/admissions/{admission}"
        answer = http_client.get(url, headers=self._headers, timeout=60)
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=AdmissionOut)


@contextlib.contextmanager
def live(folder: Path, at_once: int, speed: float) -> Iterator[Live]:
    """Run a cluster with containers for so many jobs, and a daemon at its gate."""
    nodes = -(-(at_once * (SHARE + 1)) // SLOTS)
    cluster = ("serve", "--nodes", str(nodes), "--slots", str(SLOTS), "--port", "0", "--json")
    how = ("--queues", f"{QUEUE}=100", "--containers", "modelled", "--speed", str(speed))
    token = secrets.token_hex(16)
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    with program(
        "emulator.cli", *cluster, *how, "--work", str(folder / "work"), log=folder / "serve.log"
    ) as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        listen = f"127.0.0.1:{free_port()}"
        words = ("--rm", url, "--history", url, "--listen", listen, "--token-file", str(folder / "token"))
        gate = ("--admission", "no_drop_fs", "--admission-queue", QUEUE, "--admission-container-mib", "1024")
        state = ("--state-dir", str(folder / "state"), "--preempting", QUEUE)
        with program("yarnctl.cli", "run", *words, *gate, *state, log=folder / "yarnctl.log"):
            found = Live(Client(url, USER), f"http://{listen}", token, speed)
            wait_until(found.answers, "a gate that knows the cluster")
            yield found


def campaign(promises: int, at_once: int, speed: float, seed: int) -> list[Watched | None]:
    """Run so many jobs that overrun, and as many that do not; return what came of each promise.

    None: the job failed, which a machine without time for the cluster's heartbeats brings about.
    """
    wanted = promises_of(promises, seed)
    kinds = {kind_of(each.job): usual(each.job) for each in wanted}
    with (
        tempfile.TemporaryDirectory() as folder,
        live(Path(folder), at_once, speed) as world,
        ThreadPoolExecutor(at_once) as lines,
    ):
        list(lines.map(lambda each: world.run(each, LIMITED), kinds.values()))
        kept = [lines.submit(world.keep, each) for each in wanted]
        while wait(kept, LOOK_S).not_done:
            world.look_at_late()
        return [each.result() for each in kept]


def main(arguments: list[str]) -> int:
    """Keep the promises and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak late-promises-live", description=__doc__)
    parser.add_argument("--promises", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--speed", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write what came of each promise there, as JSON")
    options = parser.parse_args(arguments)
    found = campaign(options.promises, options.at_once, options.speed, options.seed)
    watched = [each for each in found if each is not None]
    if options.output:
        options.output.write_bytes(msgspec.json.encode([each and each._asdict() for each in found]))
    missed, detected, kept, alarms = figures(watched)
    for each in watched:
        if each.missed and not each.is_detected:
            print(f"not known in time: deadline {each.deadline_at_ms}, known {each.known_at_ms}")
    overran = sum(each.overruns for each in watched)
    print(f"{overran} jobs overran, of {len(watched)}; {found.count(None)} failed")
    print(f"{missed} promises missed, {detected} known before the deadline")
    print(f"{kept} promises kept, {alarms} called late")
    whole = found.count(None) <= FALSE_MOST * len(found)
    return 0 if whole and detected >= DETECTED_LEAST * missed and alarms <= FALSE_MOST * kept else 1
