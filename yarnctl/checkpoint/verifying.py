"""Verify each checkpoint against its manifest: seal, ids, owner, fields, every byte.

A checkpoint that a runner has set aside is not an error, nor is a file that no manifest names.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import msgspec

from yarnctl.checkpoint.contents import TaskCheckpoints
from yarnctl.task_runner.runner.protocol.generations import check_files
from yarnctl.task_runner.runner.protocol.manifests import (
    Manifest,
    Part,
    TaskId,
    attempt_number,
    read_manifest,
)
from yarnctl.task_runner.runner.protocol.stores import Store, StoreError, Unusable, check_owner

Opened = Callable[[str], AbstractContextManager[Iterable[bytes]]]
"""Opens a file below the store's root and returns its bytes; raises YarnctlError."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class CheckpointVerdict(msgspec.Struct, frozen=True):
    """One manifest (or a task without a readable one), and its problems, () if there are none."""

    job: str
    task: str
    manifest: str
    generation: int
    bytes: int
    state: str
    problems: tuple[str, ...] = ()


def verify_task(
    store: Store, checkpoints: TaskCheckpoints, opened: Opened | None
) -> tuple[CheckpointVerdict, ...]:
    """Return a verdict for each manifest of a task. ``opened`` None: the bytes are not read."""
    if checkpoints.problem:
        return (
            CheckpointVerdict(checkpoints.job, checkpoints.task, "", 0, 0, "bad", (checkpoints.problem,)),
        )
    folder = []
    if checkpoints.mode & 0o022:
        folder.append(f"the task's folder: other users can write to it (mode {checkpoints.mode:o})")
    rows, manifests = [], []
    for name in checkpoints.manifests:
        row, manifest = _verify(store, checkpoints, name, opened)
        rows.append(row)
        if manifest is not None and name not in checkpoints.set_aside_files:
            manifests.append(manifest)
    folder += _order(manifests)
    if folder:
        rows.append(CheckpointVerdict(checkpoints.job, checkpoints.task, "", 0, 0, "bad", tuple(folder)))
    return tuple(rows)


def _verify(
    store: Store, checkpoints: TaskCheckpoints, name: str, opened: Opened | None
) -> tuple[CheckpointVerdict, Manifest | None]:
    problems: list[str] = []
    manifest: Manifest | None = None
    entries = {entry.name: entry for entry in checkpoints.entries}
    try:
        check_owner(entries[name], (checkpoints.owner,), name)
        manifest = read_manifest(store, TaskId(checkpoints.job, checkpoints.task, ""), name)
        problems += _fields(manifest, checkpoints.owner)
        check_files(manifest, entries, (checkpoints.owner,))
        if opened is not None:
            problems += [why for part in _files(manifest) if (why := _content(checkpoints, part, opened))]
    except (Unusable, StoreError) as error:
        problems.append(str(error)[:300])
    generation, size = (manifest.generation, manifest.output_bytes) if manifest else (0, 0)
    state = "aside" if name in checkpoints.set_aside_files else "bad" if problems else "good"
    return CheckpointVerdict(
        checkpoints.job, checkpoints.task, name, generation, size, state, tuple(problems)
    ), manifest


def _files(manifest: Manifest) -> tuple[Part, ...]:
    return manifest.parts + (() if manifest.state is None else (manifest.state,))


def _fields(manifest: Manifest, owner: str) -> list[str]:
    raw, wrong = manifest.raw, []
    if not _SHA256.fullmatch(manifest.keys_digest):
        wrong.append("keys_digest is not a SHA-256")
    rule = raw.get("key_rule")
    fields = rule.get("fields") if isinstance(rule, dict) else None
    if not isinstance(fields, int) or isinstance(fields, bool) or fields < 1:
        wrong.append("key_rule has no number of fields")
    if not isinstance(raw.get("reducer"), list) or not raw["reducer"]:
        wrong.append("reducer is not a command")
    if raw.get("user") != owner:
        wrong.append(f"written by {str(raw.get('user'))[:60]!r}, but {owner} owns the folder")
    wrong += [
        f"{part.name}: the manifest has no valid SHA-256"
        for part in _files(manifest)
        if not _SHA256.fullmatch(part.sha256)
    ]
    return wrong


def _content(checkpoints: TaskCheckpoints, part: Part, opened: Opened) -> str:
    digest, size = hashlib.sha256(), 0
    try:
        with opened(f"{checkpoints.job}/{checkpoints.task}/{part.name}") as pieces:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                if size > part.bytes:
                    return f"{part.name}: more than {part.bytes} bytes"
    except (StoreError, Unusable) as error:
        return f"{part.name}: {error}"[:300]
    if size != part.bytes:
        return f"{part.name}: {size} bytes instead of {part.bytes}"
    return "" if digest.hexdigest() == part.sha256 else f"{part.name}: the SHA-256 differs from the manifest"


def _order(manifests: list[Manifest]) -> list[str]:
    """Return where a later attempt has a lower generation, or two manifests have the same number."""
    wrong = []
    ranked = sorted(manifests, key=lambda one: (attempt_number(one.attempt), one.generation))
    for before, after in itertools.pairwise(ranked):
        if after.generation <= before.generation:
            wrong.append(
                f"generation out of order: {after.generation} of {after.attempt}"
                f" comes after {before.generation} of {before.attempt}"
            )
    return wrong
