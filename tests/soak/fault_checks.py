"""What must hold after a campaign, as named checks over what a campaign has left behind.

Law: each check reads what a user or an operator could read (output, checkpoints and requests in HDFS, the
journal) and the cluster's own memory of its attempts; each returns one line per breach, none is ever skipped.
The only leave: an attempt that began while the store could not be read may compute again what was saved.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from emulator.live.master.attempts import OVER, Attempt
from emulator.live.master.live_master import LiveMaster
from emulator.live.tasks.shuffle import Fields, partition_of
from emulator.live.wire.submitted_job import ModelledJob, StreamingJob
from tests.soak.fault_plan import Campaign
from tests.soak.fault_stage import Submitted
from tests.soak.fault_web import KillAsked
from tests.soak.rig import number_of, read_log, task_of_attempt
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.reasons.orders import ApplicationHasEnded
from yarnctl.deciding.records import Decision, Performed, Record, Transition, decode
from yarnctl.errors import YarnctlError
from yarnctl.journal.chain import END, body_of
from yarnctl.journal.file import read
from yarnctl.journal.replay import replay
from yarnctl.task_runner.runner.protocol.manifests import Manifest

STORE_KINDS = ("store-down", "torn-upload")
GRACE_MS = 500
"""So long after an order's end its attempt may still not have heard of it."""
LEAVE_MS = 1500
"""So long after its start an attempt may still be looking for its checkpoint."""


class Asked(NamedTuple):
    """What lies in the folder of requests: one order to one attempt."""

    order: str
    attempt: str
    withdrawn: bool


class Left(NamedTuple):
    """What a campaign has left behind."""

    campaign: Campaign
    jobs: list[Submitted]
    endings: dict[str, tuple[str, str]]
    masters: dict[str, list[LiveMaster]]
    attempts: list[Attempt]
    manifests: list[Manifest]
    asked: list[Asked]
    kills: list[KillAsked]
    windows: list[tuple[str, int, int]]
    journal: Path
    instance: str
    records: list[Record]

    @property
    def research(self) -> Submitted:
        return self.jobs[0]

    def excused(self, attempt: Attempt) -> bool:
        """Say whether the store failed while an attempt looked for its checkpoint."""
        until_ms = attempt.started_at_ms + LEAVE_MS
        return any(
            kind in STORE_KINDS and began <= until_ms and attempt.started_at_ms <= ended
            for kind, began, ended in self.windows
        )

    def order_of(self, name: str) -> str:
        return name.removeprefix(f"{self.instance}-")


def read_records(journal: Path) -> list[Record]:
    """Return a journal's whole lines so far, also while it is written (or torn by a crash)."""
    if not journal.exists():
        return []
    lines = journal.read_bytes().splitlines(keepends=True)
    bodies = (body_of(line) for line in lines if line.endswith(b"\n"))
    return [decode(body) for body in bodies if body is not None and body != END]


def open_orders(records: list[Record]) -> list[str]:
    states: dict[str, str] = {}
    for one in records:
        if isinstance(one, Decision):
            states |= dict.fromkeys(one.orders, "ordered")
        elif isinstance(one, Transition):
            states[one.order] = one.target
    return [name for name, state in states.items() if state in OPEN]


def read_requests(folder: Path, job: str) -> list[Asked]:
    """Return the requests to a job's attempts, as they lie in the folder behind HDFS."""
    found = []
    for path in sorted((folder / job).glob("*/*.request.json")):
        order = path.name.removesuffix(".request.json")
        attempt = str(json.loads(path.read_bytes())["attempt"])
        found.append(Asked(order, attempt, (path.parent / f"{order}.withdrawn").exists()))
    return found


# --- the job ------------------------------------------------------------------------------------


def every_job_succeeded(left: Left) -> list[str]:
    """Faults delay jobs, they do not fail them."""
    return [f"{name}: {final} {why}" for name, (final, why) in left.endings.items() if final != "SUCCEEDED"]


def output_is_whole(left: Left) -> list[str]:
    """Every group is in the output once: the bytes of real reducers, the key log of modelled ones."""
    job = left.research.job
    return _bytes_differ(left, job) if isinstance(job, StreamingJob) else _keys_differ(left, job)


def expected_parts(job: StreamingJob) -> dict[str, bytes]:
    """Return what an undisturbed run of the workload ``sum`` writes: name -> bytes."""
    sums: Counter[bytes] = Counter()
    for line in Path(job.inputs[0], "lines").read_bytes().splitlines():
        key, _, value = line.partition(b"\t")
        sums[key] += int(value)
    parts = {f"part-{place:05d}": b"" for place in range(job.reduces)}
    for key in sorted(sums):
        parts[f"part-{partition_of(key, job.reduces, Fields()):05d}"] += b"%s\t%d\n" % (key, sums[key])
    return parts


def _bytes_differ(left: Left, job: StreamingJob) -> list[str]:
    folder = Path(job.output)
    if not (folder / "_SUCCESS").exists():
        return ["the output has no _SUCCESS"]
    there = {path.name: path.read_bytes() for path in folder.glob("part-*")}
    wanted = expected_parts(job)
    return [
        f"{name}: {len(there.get(name, b''))} bytes, not the {len(wanted.get(name, b''))} expected"
        for name in sorted({*there, *wanted})
        if there.get(name) != wanted.get(name)
    ]


def _keys_differ(left: Left, job: ModelledJob) -> list[str]:
    """The pieces that were saved and committed join up, from the first key to the last."""
    found: list[str] = []
    for task, keys in enumerate(job.job.reduce_keys):
        logs = [live.actor.keys for live in left.masters[left.research.application]]
        committed = [log for log in logs if log.committed[task] != -1]
        if not committed:
            found.append(f"reduce {task} was never committed")
            continue
        place = 0
        for piece in committed[-1].pieces(task):
            if piece.from_key != place or piece.to_key < piece.from_key:
                found.append(f"reduce {task}: keys {piece.from_key}..{piece.to_key} follow {place}")
            place = piece.to_key
        if place != keys:
            found.append(f"reduce {task}: {place} of {keys} keys")
    return found


def nothing_computed_again(left: Left) -> list[str]:
    """No attempt computes what a checkpoint of an attempt before it (or its own) holds."""
    if isinstance(left.research.job, StreamingJob):
        return _groups_again(left, left.research.folder / "groups")
    return _keys_again(left)


def _groups_again(left: Left, log: Path) -> list[str]:
    excused = {one.id for one in left.attempts if left.excused(one)}
    found: list[str] = []
    seen: set[tuple[str, bytes]] = set()
    for one in read_log(log):
        if (one.attempt, one.key) in seen:
            found.append(f"{one.attempt} computed {one.key!r} twice itself")
        seen.add((one.attempt, one.key))
        for manifest in left.manifests:
            later = _same_task(manifest.attempt, one.attempt) and _before(manifest.attempt, one.attempt)
            if later and one.key <= manifest.last_key and one.attempt not in excused:
                found.append(f"{one.attempt} computed {one.key!r} again, done by {manifest.attempt}")
                break
    return found


def _keys_again(left: Left) -> list[str]:
    """A modelled attempt goes on from the newest checkpoint of the attempts before it."""
    found: list[str] = []
    for attempt in left.attempts:
        if attempt.container is None or left.excused(attempt):
            continue
        earlier = [
            one
            for one in left.manifests
            if _same_task(one.attempt, attempt.id) and _before(one.attempt, attempt.id)
        ]
        newest = max(earlier, key=lambda one: (number_of(one.attempt), one.generation), default=None)
        own = sorted(
            (one for one in left.manifests if one.attempt == attempt.id), key=lambda one: one.generation
        )
        held = newest.groups_done if newest is not None else 0
        if attempt.state == "SUCCEEDED" and attempt.container.log_from_key < held:
            found.append(f"{attempt.id} ended from key {attempt.container.log_from_key}, {held} were saved")
        for before, one in zip([newest, *own], own, strict=False):
            generation = before.generation if before is not None else 0
            if one.raw["previous_generation"] != generation:
                found.append(f"{attempt.id} saved after {one.raw['previous_generation']}, not {generation}")
    return found


def _same_task(one: str, other: str) -> bool:
    return task_of_attempt(one) == task_of_attempt(other)


def _before(one: str, other: str) -> bool:
    return number_of(one) < number_of(other)


# --- orders -------------------------------------------------------------------------------------


def orders_have_one_effect(left: Left) -> list[str]:
    """An order leads to one checkpoint at most, of the attempt it names; it is decided once."""
    found: list[str] = []
    decided = Counter(order for one in left.records if isinstance(one, Decision) for order in one.orders)
    found += [f"order {name} was decided {times} times" for name, times in decided.items() if times > 1]
    saved = Counter(left.order_of(one.raw["order"]) for one in left.manifests)
    found += [f"order {name} led to {times} checkpoints" for name, times in saved.items() if times > 1]
    asked = Counter(left.order_of(one.order) for one in left.asked)
    found += [f"order {name} lies at {times} attempts" for name, times in asked.items() if times > 1]
    return found


def orders_are_in_the_journal(left: Left) -> list[str]:
    """Nothing lies on the cluster that was not written down before: request, checkpoint, or kill."""
    attempts = _picked(left.records)
    found: list[str] = []
    for one in left.asked:
        if attempts.get(left.order_of(one.order)) != one.attempt:
            found.append(f"a request {one.order} to {one.attempt}, and no decision says so")
    for manifest in left.manifests:
        order = left.order_of(str(manifest.raw["order"]))
        if attempts.get(order) != manifest.attempt:
            found.append(f"{manifest.attempt} was saved for {order}, and no decision says so")
    ordered = set(attempts.values())
    found += [
        f"{one.attempt} was killed without an order" for one in left.kills if one.attempt not in ordered
    ]
    return found


def _picked(records: list[Record]) -> dict[str, str]:
    """Return order -> the attempt it names."""
    decisions = (one for one in records if isinstance(one, Decision))
    return {
        order: pick.task.attempt
        for one in decisions
        for order, pick in zip(one.orders, one.picks, strict=True)
    }


def kills_lose_nothing(left: Left) -> list[str]:
    """Whoever was killed by yarnctl had saved all that it had computed."""
    found: list[str] = []
    log = read_log(left.research.folder / "groups")
    for name in sorted({one.attempt for one in left.kills if one.status in (0, 200)}):
        attempt = next((one for one in left.attempts if one.id == name), None)
        if attempt is None or attempt.state != "KILLED":
            continue
        mine = [one for one in left.manifests if _same_task(one.attempt, name)]
        until = [one for one in mine if number_of(one.attempt) <= number_of(name)]
        if not until:
            found.append(f"{name} was killed without any checkpoint")
            continue
        newest = max(until, key=lambda one: (number_of(one.attempt), one.generation))
        lost = [one.key for one in log if one.attempt == name and one.key > newest.last_key]
        if lost:
            found.append(f"{name} was killed {len(lost)} groups behind its checkpoint")
    return found


def no_request_is_left(left: Left) -> list[str]:
    """Nobody is made to stop for an order that is over: its request is taken back, or was served before.

    An attempt that has served its request waits for ``hold_ms`` at most, and goes on by itself.
    """
    last = {one.order: one for one in left.records if isinstance(one, Transition)}
    over_at_ms = {one.id: one.finished_at_ms for one in left.attempts if one.over}
    saved_at_ms = {left.order_of(one.raw["order"]): int(one.raw["created_at_ms"]) for one in left.manifests}
    found: list[str] = []
    for one in left.asked:
        name = left.order_of(one.order)
        move = last.get(name)
        if move is None or move.target not in ("given_up", "withdrawn", "lost") or one.withdrawn:
            continue
        longer_ms = over_at_ms.get(one.attempt, 0) - move.at_ms
        served = saved_at_ms.get(name)
        if move.event == "ended-otherwise" or longer_ms <= GRACE_MS:
            continue
        if served is None or served > move.at_ms + GRACE_MS:
            found.append(
                f"{one.order} was {move.target} ({move.event}), its request stood {longer_ms} ms longer"
            )
    return found


# --- the journal --------------------------------------------------------------------------------


def journal_replays(left: Left) -> list[str]:
    """The journal, over all crashes, decides itself again to the same bytes, and no order is left open."""
    if not left.records:
        return ["there is no journal"]
    try:
        replay(read(left.journal), str(left.journal), closed=False)
    except YarnctlError as error:
        return [f"the journal does not replay: {error}"]
    still = open_orders(left.records)
    return [f"orders are still open: {', '.join(still)}"] if still else []


def ledger_agrees(left: Left) -> list[str]:
    """What the journal says became of an attempt is what became of it.

    An order that is closed because its job has ended (yarnctl was away) says that of the job alone.
    """
    states = {one.id: one.state for one in left.attempts}
    attempts = _picked(left.records)
    found: list[str] = []
    for one in left.records:
        if not isinstance(one, Transition):
            continue
        attempt = attempts.get(one.order, "")
        if one.why == ApplicationHasEnded(left.research.application):
            if left.endings[left.research.application][0] in ("", "UNDEFINED"):
                found.append(f"{one.order}: the job has ended, but it runs")
            continue
        state = states.get(attempt)
        wanted = {"ended-as-ordered": ("KILLED",), "completed": ("SUCCEEDED",)}.get(one.event)
        if wanted is not None and state in OVER and state not in wanted:
            found.append(f"{one.order}: {one.event}, but {attempt} is {state}")
    return found


def releases_follow_checkpoints(left: Left) -> list[str]:
    """No Release was performed for an order whose checkpoint was not seen first."""
    seen = {one.order for one in left.records if isinstance(one, Transition) and one.event == "manifest"}
    released = (one.order for one in left.records if isinstance(one, Performed) and one.action == "release")
    return [f"{order} was released without a checkpoint" for order in released if order not in seen]


CHECKS: dict[str, Callable[[Left], list[str]]] = {
    one.__name__: one
    for one in (every_job_succeeded, output_is_whole, nothing_computed_again, orders_have_one_effect,
        orders_are_in_the_journal, kills_lose_nothing, no_request_is_left, journal_replays, ledger_agrees,
        releases_follow_checkpoints)
}  # fmt: skip
