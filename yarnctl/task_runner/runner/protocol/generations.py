"""Generations: the newest checkpoint that may be used is found, the next one is written.

A manifest is written last, by a rename, when all its files are there. A checkpoint counts only after every
check; how much of a task's folder is read has a bound.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import (
    MANIFEST_BYTES_MAX,
    MANIFEST_NAME,
    SCHEMA,
    Manifest,
    Part,
    TaskId,
    attempt_number,
    canonical,
    generation_of,
    parse_manifest,
    read_manifest,
    sealed,
    stem,
)
from yarnctl.task_runner.runner.protocol.stores import (
    Entry,
    Exists,
    Lost,
    Spool,
    Store,
    StoreError,
    Unusable,
    check_owner,
)

CHECKS_AFTER_LOSS = 3


class PerhapsSaved(Lost):
    """Whether the manifest is in the store is unknown; all the files that it names are there."""

    def __init__(self, text: str, manifest: Manifest) -> None:
        super().__init__(text)
        self.manifest = manifest


class Found(NamedTuple):
    """What the store holds for a task: the newest usable manifest, and the highest number in use."""

    manifest: Manifest | None
    highest_generation: int
    refused: tuple[str, ...]


ENTRIES_MAX = 10_000
MANIFESTS_MAX = 16


def find_checkpoint(
    store: Store, task: TaskId, rule: KeyRule, reducer: Sequence[str], owners: Sequence[str]
) -> Found:
    """Return the newest manifest this attempt may go on from, and why others were refused.

    The newest is the last generation of the last attempt. Older ones are read only while none can be
    used; raise Unusable where there is too much to read.
    """
    folder = store.entry(task.folder)
    if folder is None:
        return Found(None, 0, ())
    check_owner(folder, owners, task.folder)
    entries = {entry.name: entry for entry in store.list(task.folder)}
    if len(entries) > ENTRIES_MAX:
        raise Unusable(f"{task.folder}: more than {ENTRIES_MAX} files")
    highest = max(map(generation_of, entries), default=0)
    refused: list[str] = []
    names = newest_first(entries, task, refused)
    for name in names[:MANIFESTS_MAX]:
        try:
            check_owner(entries[name], owners, name)
            if entries[name].bytes > MANIFEST_BYTES_MAX:
                raise Unusable(f"larger than {MANIFEST_BYTES_MAX} bytes")
            manifest = read_manifest(store, task, name)
            if manifest.raw.get("key_rule") != rule.as_json():
                raise Unusable(f"made with another key rule: {manifest.raw.get('key_rule')}")
            if manifest.raw.get("reducer") != list(reducer):
                raise Unusable(f"made by another reducer: {manifest.raw.get('reducer')}")
            check_files(manifest, entries, owners)
        except Unusable as why:
            refused.append(f"{name}: {why}")
            continue
        higher = [other for other in names if generation_of(other) > manifest.generation]
        refused += [f"{other}: generation out of order between attempts" for other in higher]
        return Found(manifest, highest, tuple(refused))
    if len(names) > MANIFESTS_MAX:
        refused.append(f"{task.folder}: {len(names) - MANIFESTS_MAX} older manifests were not read")
    return Found(None, highest, tuple(refused))


def newest_first(entries: Iterable[str], task: TaskId, refused: list[str]) -> list[str]:
    """Return the names of manifests that may count, the last attempt's first; note the others."""
    found = [match for match in map(MANIFEST_NAME.fullmatch, entries) if match]
    found.sort(key=lambda match: (attempt_number(match.group(2)), int(match.group(1))), reverse=True)
    aside = {name.partition(".aside-")[0] for name in entries if ".aside-" in name}
    names: list[str] = []
    for name, attempt in ((match.group(), match.group(2)) for match in found):
        if name in aside:
            refused.append(f"{name}: set aside by an earlier attempt")
        elif attempt_number(attempt) >= attempt_number(task.attempt):
            refused.append(f"{name}: made by an attempt that is not older than {task.attempt}")
        else:
            names.append(name)
    return names


def check_files(manifest: Manifest, entries: Mapping[str, Entry], owners: Sequence[str]) -> None:
    """Refuse a manifest whose files are missing, of another owner or of another length."""
    for part in manifest.parts + (() if manifest.state is None else (manifest.state,)):
        entry = entries.get(part.name)
        if entry is None or entry.bytes != part.bytes:
            raise Unusable(
                f"{part.name}: {'missing' if entry is None else f'{entry.bytes} bytes'}, not {part.bytes}"
            )
        check_owner(entry, owners, part.name)


def write_checkpoint(
    store: Store,
    task: TaskId,
    fields: dict[str, Any],
    output: Spool | None = None,
    state: bytes | None = None,
    beat: Callable[[], None] = lambda: None,
    last_check: Callable[[], None] = lambda: None,
) -> Manifest:
    """Write the files of one generation, the manifest last, and return it.

    ``last_check`` is called before the manifest is written and raises Unusable where it must not be.
    ``fields`` are the manifest's but for what is known only now: the new part (``parts`` holds the
    older ones), ``state`` and ``output_bytes``. Raise PerhapsSaved where the manifest may be there or not.
    """
    store.make_folder(task.folder)
    beginning = stem(fields["generation"], fields["attempt"])
    fields = {**fields, "parts": list(fields.get("parts", [])), "state": None}
    if output is not None and output.bytes:
        part = put_file(store, task.folder, beginning + ".part", output.bytes, lambda: output.pieces(beat))
        fields["parts"].append(part._asdict())
    if state is not None:
        kept = state
        fields["state"] = put_file(
            store, task.folder, beginning + ".state", len(kept), lambda: [kept]
        )._asdict()
    fields["output_bytes"] = sum(part["bytes"] for part in fields["parts"])
    data = sealed(fields)
    if len(data) > MANIFEST_BYTES_MAX:
        raise Unusable(f"its manifest of {len(data)} bytes exceeds the maximum of {MANIFEST_BYTES_MAX}")
    manifest = parse_manifest(data)
    name = f"{beginning}.manifest.json"
    last_check()
    written = put_file(store, task.folder, f".{name}.tmp", len(data), lambda: [data])
    try:
        publish(store, f"{task.folder}/{written.name}", f"{task.folder}/{name}", data)
    except Lost as error:
        raise PerhapsSaved(str(error), manifest) from error
    return manifest


def publish(store: Store, hidden: str, path: str, data: bytes) -> None:
    """Give a file its final name. Where the answer is lost, check: what is saved is never reported as lost.

    A request whose answer is lost may still be executed: only when its source has been moved away it
    surely cannot. Raise Lost if it stays unknown.
    """
    try:
        store.rename(hidden, path)
        return
    except StoreError as error:
        why = error
    for number in range(CHECKS_AFTER_LOSS):
        try:
            if holds(store, path, data):
                return
            if not isinstance(why, Lost):
                break
            store.rename(hidden, f"{hidden}.void{number}")
            break
        except StoreError:
            continue
    else:
        raise Lost(str(why))
    raise StoreError(str(why))


def holds(store: Store, path: str, data: bytes) -> bool:
    """Say whether a file is there with these bytes."""
    entry = store.entry(path)
    return entry is not None and entry.bytes == len(data) and b"".join(store.read(path)) == data


def put_file(
    store: Store,
    folder: str,
    name: str,
    size_bytes: int,
    pieces: Callable[[], Iterable[bytes]],
    tries: int = 3,
) -> Part:
    """Write a new file and return its description; a try that failed has used its name up."""
    for number in range(tries):
        digest = hashlib.sha256()

        def digested(digest: Any = digest) -> Iterator[bytes]:
            for piece in pieces():
                digest.update(piece)
                yield piece

        tried = name if not number else f"{name}.r{number}"
        try:
            store.create(f"{folder}/{tried}", size_bytes, digested())
            return Part(tried, size_bytes, digest.hexdigest())
        except StoreError:
            if number + 1 == tries:
                raise
    raise StoreError(f"{folder}/{name}: not written")


def set_aside(store: Store, task: TaskId, manifest: Manifest, why: str) -> None:
    """Write beside a checkpoint that it must not be used again; it stays where it is."""
    name = f"{stem(manifest.generation, manifest.attempt)}.manifest.json.aside-{task.attempt}"
    data = canonical({"schema": SCHEMA, "attempt": task.attempt, "reason": why})
    try:
        store.create(f"{task.folder}/{name}", len(data), [data])
    except Exists:
        return
