"""A scenario on a real cluster, played: jobs, yarnctl attached, a disturbance, and what must hold anyway.

Law: a scenario is a row. Patient jobs fill the cluster before the first hurried one is submitted, and have
more work than a slow machine needs to serve the hurried ones; then they may rush. Whatever is disturbed,
every output is that of the undisturbed job byte for byte, and a key group is reduced twice only where the
cluster itself lost the work. What yarnctl decided is judged by the reducers' own logs, not by its own words.
"""

from __future__ import annotations

import bisect
import hashlib
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached, suspended
from tests.hadoop.jobs import FINAL, LOOK_S, RESTARTABLE, YARNCTL, Job, Plan, keys_of, partition_of
from tests.hadoop.launcher import Cluster
from yarnctl.deciding.records import Decision
from yarnctl.deciding.settings import DEFAULT

PATIENCE_S = 600.0
KEY_S = 0.1
"""One key group's work."""
APART_S = 20.0
"""How far the true remaining time of two tasks must be apart for their order to be judged: a status line
takes its time (5 s at the runner, 6 s at Java, 1 s to be seen), and more where the machine is slow."""


LATE_S = 3.0
"""The log tells when a key group begins, the runner that it works, perhaps a little earlier."""


def lengths(*reduce_s: float) -> tuple[int, ...]:
    """Return the key groups of reduces of so many seconds."""
    return tuple(round(length_s / KEY_S) for length_s in reduce_s)


def research(name: str, *reduce_s: float) -> Plan:
    """Return a patient job with the runner."""
    return Plan(name, "research", lengths(*reduce_s), KEY_S, wrap=RESTARTABLE)


def production(name: str, *reduce_s: float) -> Plan:
    """Return a hurried job of somebody else's, without the runner."""
    return Plan(name, "production", lengths(*reduce_s), KEY_S, user="bob")


class Running:
    """A scenario that is being played, or was: its jobs by name, and yarnctl."""

    def __init__(self, cluster: Cluster, folder: Path, options: Sequence[str], rm_url: str = "") -> None:
        self.cluster = cluster
        self.folder = folder
        self.daemon = Attached(cluster, folder / "state", options, rm_url=rm_url)
        self.jobs: dict[str, Job] = {}

    def submit(self, *plans: Plan) -> None:
        """Submit jobs; their names on the cluster hold the scenario's."""
        for plan in plans:
            self.jobs[plan.name] = Job(self.cluster, plan, self.folder, self.folder.name)

    def until(self, seen: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until something is seen; raises AssertionError with what yarnctl said."""
        ends = time.monotonic() + patience_s
        while not seen():
            if time.monotonic() > ends:
                raise AssertionError(f"never {what}: {self.daemon.said()}")
            time.sleep(LOOK_S)

    def until_at_work(self, *names: str) -> None:
        """Wait until every reduce of these jobs has begun with its keys."""
        for name in names:
            job = self.jobs[name]
            self.until(lambda job=job: self._works(job), f"all reduces of {name} at work")  # type: ignore[misc]

    def until_back(self, name: str) -> None:
        """Wait until every reduce of a job that was stopped is at work again, or done."""
        self.until(lambda: not self.waiting(name), f"all suspended reduces of {name} back")

    def waiting(self, name: str) -> set[str]:
        """Return the tasks of a job that were stopped and have no attempt at new keys since."""
        stopped = {attempt.rpartition("_")[0]: attempt for attempt in self.freed(name)}
        begun = {path.name for path in self.jobs[name].groups.iterdir()}
        last = {task: max((one for one in begun if one.startswith(task)), default="") for task in stopped}
        return {task for task, attempt in stopped.items() if last[task] <= attempt}

    def freed(self, name: str) -> list[str]:
        """Return the attempts of a job that were stopped with their work saved, in order."""
        orders = {action.order: action for action in self.daemon.asked()}
        moved = [orders[move.order] for move in self.daemon.reached("freed") if move.order in orders]
        return [action.attempt for action in moved if action.application == self.jobs[name].application]

    def asked(self, name: str) -> list[str]:
        """Return the attempts of a job that were asked to stop."""
        application = self.jobs[name].application
        return [action.attempt for action in self.daemon.asked() if action.application == application]

    def finish(self, *names: str) -> None:
        """Wait for the end of jobs (none named: of all); raises AssertionError where one does not succeed."""
        for name in names or tuple(self.jobs):
            finished = self.jobs[name].wait(PATIENCE_S)
            assert finished.state == "SUCCEEDED", (name, finished, self.jobs[name].said(), self.daemon.said())

    def hurry(self) -> None:
        """Have all jobs do the rest of their work in no time: what was to be seen has been seen."""
        for job in self.jobs.values():
            job.hurry()

    def story(self) -> Counter[str]:
        """Return how often orders came to each state: what one reads first when something is wrong."""
        states = (
            "ordered", "suspending", "checkpointed", "freed", "granted", "misdirected", "given_up", "lost",
        )  # fmt: skip
        more = ("withdrawn", "completed", "killed")
        told = {state: len(self.daemon.reached(state)) for state in (*states, *more)}
        return Counter({**told, "ordered": len(self.daemon.asked())})

    def _works(self, job: Job) -> bool:
        row = job.row()
        assert row["state"] not in FINAL, (job.name, row["finalStatus"], row.get("diagnostics"), job.said())
        return job.at_work() == len(job.plan.groups)


Disturbance = Callable[[Running], None]


def nothing(running: Running) -> None:
    """Disturb nothing."""


class Scenario(NamedTuple):
    """Who is there first, who comes in a hurry (a wave when the one before has ended), and what goes wrong.

    ``between`` runs before each wave but the first, ``disturb`` right after the first was submitted.
    """

    name: str
    patient: tuple[Plan, ...]
    hurried: tuple[Plan, ...]
    options: tuple[str, ...] = QUEUES
    disturb: Disturbance = nothing
    between: Disturbance = nothing


def play(cluster: Cluster, scenario: Scenario, folder: Path, rm_url: str = "") -> Running:
    """Play a scenario to the end of every job; returns it with yarnctl stopped and outputs judged.

    ``rm_url``: what yarnctl is to take for the ResourceManager.
    """
    with playing(cluster, scenario.name, folder, scenario.options, rm_url) as running:
        running.submit(*scenario.patient)
        running.daemon.start()
        running.until_at_work(*(plan.name for plan in scenario.patient))
        for number, plan in enumerate(scenario.hurried):
            if number:
                scenario.between(running)
            running.submit(plan)
            if not number:
                scenario.disturb(running)
            running.finish(plan.name)
    return running


@contextmanager
def playing(
    cluster: Cluster, name: str, folder: Path, options: Sequence[str] = QUEUES, rm_url: str = ""
) -> Iterator[Running]:
    """Let a scenario be played by hand; afterwards every job is waited for, and its output judged."""
    home = folder / name
    home.mkdir(parents=True)
    running = Running(cluster, home, options, rm_url)
    try:
        yield running
        running.hurry()
        running.finish()
    finally:
        running.daemon.stop()
        for job in running.jobs.values():
            end(job)
    for job in running.jobs.values():
        assert differing(job) == [], (job.name, running.story(), running.daemon.said())


def end(job: Job) -> None:
    """End a job that still runs, so that the next scenario finds an empty cluster, and its client."""
    url = f"{job.cluster.rm_url}/ws/v1/cluster/apps/{job.application}/state"
    if job.row()["state"] not in FINAL:
        http_client.put(url, json={"state": "KILLED"}, params={"user.name": job.plan.user}, timeout=30)
    job.stop()


def undisturbed(plan: Plan) -> dict[str, bytes]:
    """Return what programs/work.py writes for this input, part by part, as text."""
    parts: dict[int, list[str]] = defaultdict(list)
    for key in keys_of(plan.groups):
        parts[partition_of(key, len(plan.groups))].append(key)
    return {
        f"part-{number:05d}": "".join(f"{key}\t{plan.values}\tv0\n" for key in sorted(parts[number])).encode()
        for number in range(len(plan.groups))
    }


def differing(job: Job) -> list[str]:
    """Return the parts of a text job's output that are not those of an undisturbed run."""
    if not is_text(job.plan):
        return []
    wanted = {name: hashlib.sha256(data).hexdigest() for name, data in undisturbed(job.plan).items()}
    found = job.digests()
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def is_text(plan: Plan) -> bool:
    """Say whether a job writes plain text."""
    return not plan.words and "mapreduce.output.fileoutputformat.compress" not in plan.settings


# --- what the reducers themselves say ----------------------------------------------------------------


def twice_by_task(job: Job) -> Counter[str]:
    """Return by task how many times a key group was begun again."""
    keys: dict[str, Counter[str]] = defaultdict(Counter)
    for path in job.groups.iterdir():
        lines = path.read_text(encoding="ascii").splitlines()
        keys[path.name.rpartition("_")[0]].update(line.split(" ")[0] for line in lines)
    return Counter(
        {task: found.total() - len(found) for task, found in keys.items() if found.total() > len(found)}
    )


def done_at(job: Job) -> dict[str, list[float]]:
    """Return by task when each key group was begun: seconds since the epoch, in order."""
    found: dict[str, list[float]] = defaultdict(list)
    for path in job.groups.iterdir():
        lines = path.read_text(encoding="ascii").splitlines()
        found[path.name.rpartition("_")[0]] += [float(line.split(" ")[1]) for line in lines]
    return {task: sorted(instants) for task, instants in found.items()}


def remaining_s(job: Job, at_s: float) -> dict[str, float]:
    """Return by task how much work was left at an instant: the truth, from the reducers' own logs."""
    all_done = done_at(job)
    return {
        task: (len(instants) - bisect.bisect_right(instants, at_s)) * job.plan.key_s
        for task, instants in all_done.items()
    }


def wrongly_ranked(
    running: Running, seen: Sequence[Decision] | None = None, longest_first: bool = False
) -> list[str]:
    """Return where a decision passed over a task that the task policy puts first, by the reducers' own logs.

    Only tasks that the decision itself calls eligible (``next``) are compared, and only where they were
    further apart than APART_S.
    """
    by_application = {job.application: job for job in running.jobs.values()}
    wrong = []
    for decision in decisions(running) if seen is None else seen:
        for pick in decision.picks:
            left_s = remaining_s(by_application[pick.application], decision.at_ms / 1000)
            picked_s = left_s[pick.task.attempt.rpartition("_")[0]]
            others = [one for one in decision.refused_tasks if one.application == pick.application]
            for other in others:
                other_s = left_s[other.attempt.rpartition("_")[0]]
                apart_s = (other_s - picked_s) if longest_first else (picked_s - other_s)
                if other.why == "next" and apart_s > APART_S:
                    wrong.append(
                        f"{decision.number}: {pick.task.attempt} {picked_s:.1f} s,"
                        f" {other.attempt} {other_s:.1f} s"
                    )
    return wrong


def decisions(running: Running) -> list[Decision]:
    """Return every decision that chose somebody."""
    found = [record for record in running.daemon.records() if isinstance(record, Decision)]
    return [decision for decision in found if decision.picks]


def asked_just_back(running: Running, name: str) -> list[str]:
    """Return the attempts that were asked to stop though they had come back less than settle_ms before."""
    found = []
    for record, asked in suspended(running.daemon.records()):
        log = running.jobs[name].groups / asked.attempt
        resumed = int(asked.attempt.rpartition("_")[2]) > 0
        ours = asked.application == running.jobs[name].application
        if ours and resumed and log.exists():
            first_s = float(log.read_text(encoding="ascii").split()[1])
            if record.at_ms < first_s * 1000 + DEFAULT.settle_ms - LATE_S * 1000:
                found.append(f"{asked.attempt} after {record.at_ms / 1000 - first_s:.1f} s")
    return found


def replays(daemon: Attached) -> bool:
    """Have ``yarnctl replay`` decide the whole journal again; raises AssertionError with what it said."""
    words = [YARNCTL, "replay", str(next(daemon.state_dir.rglob("journal*.jsonl")))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return True
