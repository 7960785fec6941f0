"""Manifests and requests: the form of the files in a store, and their names, defined here only.

A file that was not written whole by a runner or by yarnctl raises Unusable with the reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Dict, NamedTuple, Sequence

from yarnctl.task_runner.runner.protocol.stores import Store, Unusable

SCHEMA = 1
VERSION = "0.1.0"
Counters = Dict[str, Dict[str, int]]


class TaskId(NamedTuple):
    """Which attempt of which task this is, in Hadoop's words."""

    job: str
    task: str
    attempt: str
    container: str = ""

    @property
    def folder(self) -> str:
        """Return where the task's checkpoints are."""
        return f"{self.job}/{self.task}"


class Part(NamedTuple):
    """One file of a checkpoint."""

    name: str
    bytes: int
    sha256: str


class Manifest(NamedTuple):
    """The content of a checkpoint's manifest, checked; ``raw`` is all of it."""

    generation: int
    previous_generation: int
    attempt: str
    groups_done: int
    keys_digest: str
    last_key: bytes
    output_bytes: int
    parts: tuple[Part, ...]
    state: Part | None
    counters: Counters
    past_containers: tuple[str, ...]
    order: str
    raw: dict[str, Any]


NO_SENSE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading JSON of another origin raises where it holds something else: 1e999, a thousand brackets."""

MANIFEST_BYTES_MAX = 1 << 20  # Larger ones are not read: the folder's owner may have put anything there

MANIFEST_NAME = re.compile(r"gen-(\d{6,9})-([A-Za-z0-9_]+)\.manifest\.json")
GENERATION_NAME = re.compile(r"\.?gen-(\d{6,9})-")
ORDER = re.compile(r"[A-Za-z0-9._-]{1,120}")
ATTEMPT_NUMBER = re.compile(r"_(\d+)$")


def stem(generation: int, attempt: str) -> str:
    """Return how the names of a generation's files begin."""
    return f"gen-{generation:06d}-{attempt}"


def generation_of(name: str) -> int:
    """Return the generation that a file's name carries, 0 if none."""
    found = GENERATION_NAME.match(name)
    return int(found.group(1)) if found else 0


def attempt_number(attempt: str) -> int:
    """Return the number at the end of an attempt's id; numbers rise, with gaps."""
    found = ATTEMPT_NUMBER.search(attempt)
    return int(found.group(1)) if found else -1


def canonical(value: Any) -> bytes:
    """Return JSON in one spelling only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sealed(fields: dict[str, Any]) -> bytes:
    """Return a manifest's bytes with its check."""
    return canonical({**fields, "check": hashlib.sha256(canonical(fields)).hexdigest()})


def parse_manifest(data: bytes) -> Manifest:
    """Return a manifest, raise Unusable with the reason if it is torn or of another kind."""
    try:
        raw = json.loads(data)
        check = raw.pop("check")
        if raw["schema"] != SCHEMA:
            raise Unusable(f"schema {raw['schema']!r}, not {SCHEMA}")
        if hashlib.sha256(canonical(raw)).hexdigest() != check:
            raise Unusable("checksum mismatch: incomplete or changed")
        state = raw["state"]
        return Manifest(
            generation=int(raw["generation"]),
            previous_generation=int(raw.get("previous_generation", 0)),
            attempt=str(raw["attempt"]),
            groups_done=int(raw["groups_done"]),
            keys_digest=str(raw["keys_digest"]),
            last_key=base64.b64decode(raw["last_key"], validate=True),
            output_bytes=int(raw["output_bytes"]),
            parts=tuple(_part(part) for part in raw["parts"]),
            state=None if state is None else _part(state),
            counters={
                str(group): {str(name): int(amount) for name, amount in inside.items()}
                for group, inside in raw["counters"].items()
            },
            past_containers=tuple(map(str, raw["past_containers"])),
            order=str(raw["order"]),
            raw=raw,
        )
    except NO_SENSE as error:
        raise Unusable(
            f"incomplete or invalid manifest: {str(error)[:200] or type(error).__name__}"
        ) from error


def _part(raw: dict[str, Any]) -> Part:
    name = str(raw["name"])
    if "/" in name or name.startswith("."):
        raise Unusable(f"unexpected part {name!r}")
    return Part(name, int(raw["bytes"]), str(raw["sha256"]))


def read_manifest(store: Store, task: TaskId, name: str) -> Manifest:
    """Return one manifest of a task after every check that needs no other file."""
    named = MANIFEST_NAME.fullmatch(name)
    if named is None:
        raise Unusable(f"{name}: not the name of a manifest")
    manifest = parse_manifest(store.read_small(f"{task.folder}/{name}"))
    raw = manifest.raw
    if raw.get("job") != task.job or raw.get("task") != task.task:
        raise Unusable(f"belongs to another task: {raw.get('job')}/{raw.get('task')}")
    if manifest.generation != int(named.group(1)) or manifest.attempt != named.group(2):
        raise Unusable(f"contains generation {manifest.generation} of {manifest.attempt}, unlike its name")
    if not 0 <= manifest.previous_generation < manifest.generation:
        raise Unusable(f"generation {manifest.generation} out of order after {manifest.previous_generation}")
    if not manifest.attempt.startswith(task.task.replace("task_", "attempt_", 1) + "_"):
        raise Unusable(f"made by an attempt of another task: {manifest.attempt}")
    if sum(part.bytes for part in manifest.parts) != manifest.output_bytes or manifest.groups_done < 1:
        raise Unusable("its numbers are inconsistent")
    return manifest


def printable(words: Sequence[str]) -> list[str]:
    """Return words as JSON can keep them."""
    return [word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for word in words]


class Request(NamedTuple):
    """One order to this attempt: save and hold."""

    order: str
    hold_ms: int | None


def request_name(task: TaskId, order: str) -> str:
    """Return the path of a request for an attempt, below the folder of requests."""
    return f"{task.job}/{task.attempt}/{order}.request.json"


def read_request(data: bytes, name: str, task: TaskId) -> Request:
    """Return a request, raise Unusable if it is not for this attempt or cannot be understood."""
    try:
        raw = json.loads(data)
        if raw["schema"] != SCHEMA or raw["attempt"] != task.attempt:
            raise Unusable(f"{name}: is for {raw.get('attempt')}, schema {raw.get('schema')}")
        order = str(raw["order"])
        if f"{order}.request.json" != name or not ORDER.fullmatch(order):
            raise Unusable(f"{name}: contains order {order!r}")
        hold_ms = raw.get("hold_ms")
        return Request(order, None if hold_ms is None else max(0, int(hold_ms)))
    except NO_SENSE as error:
        raise Unusable(f"{name}: {str(error)[:200] or type(error).__name__}") from error
