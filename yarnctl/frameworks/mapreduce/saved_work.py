"""Decide whether an attempt's work is saved, by the files in the store and never by a status.

A manifest counts only if the task's next attempt would resume from it; the runner's own code decides that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from yarnctl.attach.connection.connection import CheckpointStore
from yarnctl.attach.orders.connected import TrackedOrder
from yarnctl.frameworks.mapreduce.consent import Eligibility
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.task_runner.runner.protocol.generations import find_checkpoint
from yarnctl.task_runner.runner.protocol.manifests import MANIFEST_NAME, NO_SENSE, Manifest, TaskId
from yarnctl.task_runner.runner.protocol.stores import Entry, Store, Unusable, check_owner

_ATTEMPT = re.compile(r"attempt_([0-9]+_[0-9]+)_([mr])_([0-9]+)_[0-9]+")
LATER = 999_999_999  # An attempt number higher than all others
ANSWER_BYTES_MAX = 1 << 16
UNCHANGED = "unchanged"  # The runner's answer if the task has processed nothing since its valid checkpoint


class Answer(NamedTuple):
    """The runner's answer without a new manifest; ``kind``: unchanged, refused or completing."""

    kind: str
    generation: int
    reason: str


def task_of(application: str, attempt: str, kinds: str = "r") -> TaskId | None:
    """Return an attempt's ids, None if it is of another application; ``kinds``: reduces r, or mr."""
    match = _ATTEMPT.fullmatch(attempt)
    if match is None or f"application_{match[1]}" != application or match[2] not in kinds:
        return None
    return TaskId(f"job_{match[1]}", f"task_{match[1]}_{match[2]}_{match[3]}", attempt)


class TrackedTask(TrackedOrder):
    """One order to a task, and what has been seen of its work. Times in ms of the port's clock, 0: not yet.

    ``absent_at_ms``: the start of the last poll that found nothing; ``release_wait_from_ms``: the earliest
    start of the attempt's release wait; ``heard``: names that were news between two polls.
    """

    requested: bool = False
    manifest_at_ms: int = 0
    manifest_generation: int = 0
    absent_at_ms: int = 0
    release_wait_from_ms: int = 0
    answer: str = ""
    answered_at_ms: int = 0
    signature: tuple[object, ...] = ()
    polled_at_ms: int = 0
    row: TaskAttempt | None = None
    known_names: frozenset[str] = frozenset()
    heard: frozenset[str] = frozenset()

    @property
    def task(self) -> TaskId:
        """Return the ids of its attempt."""
        task = task_of(self.application, self.attempt, "mr")
        assert task is not None, "it is tracked only if the ids belong together"
        return task


def safe_manifest(store: CheckpointStore, task: TaskId, eligibility: Eligibility) -> Manifest:
    """Return the manifest from which the task's next attempt would resume; raises Unusable, StoreError."""
    later = task._replace(attempt=f"{task.task.replace('task_', 'attempt_', 1)}_{LATER}")
    why = "no manifest in the store"
    for reducer in eligibility.reducers:
        found = find_checkpoint(store, later, eligibility.rule, reducer, eligibility.owners)
        if found.manifest is not None:
            return found.manifest
        why = "; ".join(found.refused) or why
    raise Unusable(why[:300])


def is_ordered(manifest: Manifest, task: TaskId, order: str) -> bool:
    """Return whether this manifest is this attempt's answer to this order."""
    return manifest.order == order and manifest.attempt == task.attempt


def manifests_of(entries: Sequence[Entry], attempt: str) -> frozenset[str]:
    """Return the names of an attempt's manifests."""
    matches = ((entry.name, MANIFEST_NAME.fullmatch(entry.name)) for entry in entries)
    return frozenset(name for name, match in matches if match and match[2] == attempt)


def read_answer(
    store: Store, task: TaskId, order: str, entries: Sequence[Entry], eligibility: Eligibility
) -> Answer:
    """Return the answer to an order from the listing; raise Unusable if its owner or content is wrong."""
    name = answer_name(order, task.attempt)
    entry = next(entry for entry in entries if entry.name == name)
    check_owner(entry, eligibility.owners, name)
    if entry.bytes > ANSWER_BYTES_MAX:
        raise Unusable(f"{name}: larger than {ANSWER_BYTES_MAX} bytes")
    try:
        raw = json.loads(store.read_small(f"{task.folder}/{name}"))
        if raw["order"] != order or raw["attempt"] != task.attempt:
            raise Unusable(f"{name}: belongs to another order")
        return Answer(_text(raw["answer"]), int(raw["generation"]), _text(raw["reason"]))
    except NO_SENSE as error:
        raise Unusable(f"{name}: not a valid answer ({type(error).__name__})") from None


def _text(value: object) -> str:
    """Return a job owner's value as text of at most 200 characters that is valid UTF-8."""
    return str(value)[:200].encode("utf-8", "replace").decode()


def answer_name(order: str, attempt: str) -> str:
    """Return the name of an answer's file."""
    return f"answer-{order}-{attempt}.json"
