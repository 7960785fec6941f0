"""What an owner puts into his folder is his own word: it is bounded, and makes no more than a refusal."""

from __future__ import annotations

import json

import pytest

from tests.runner.test_webhdfs import FIELDS, LATER, TASK
from yarnctl.frameworks.mapreduce.consent import Eligibility
from yarnctl.frameworks.mapreduce.saved_work import answer_name, read_answer
from yarnctl.task_runner.runner.protocol.generations import (
    MANIFESTS_MAX,
    find_checkpoint,
    put_file,
    set_aside,
    write_checkpoint,
)
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import (
    MANIFEST_BYTES_MAX,
    parse_manifest,
    read_manifest,
    sealed,
)
from yarnctl.task_runner.runner.protocol.stores import LocalStore, StoreError, Unusable


class CountingStore(LocalStore):
    """Counts what is read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads: list[str] = []

    def read(self, path):
        self.reads.append(path)
        return super().read(path)


def attempt(number: int) -> str:
    return f"attempt_1_0001_r_000000_{number}"


def filled(tmp_path, count: int) -> CountingStore:
    """Return a store with so many generations, one by each attempt."""
    store = CountingStore(str(tmp_path))
    for number in range(count):
        fields = {**FIELDS, "generation": number + 1, "attempt": attempt(number)}
        write_checkpoint(store, TASK, fields)
    return store


def newest(store: LocalStore, before: int = 9999):
    later = LATER._replace(attempt=attempt(before))
    return find_checkpoint(store, later, KeyRule(), ["cat"], (store.user,))


def test_of_many_generations_one_is_read(tmp_path):
    store = filled(tmp_path, 100)
    found = newest(store)
    assert found.manifest is not None
    assert (found.manifest.generation, found.highest_generation, found.refused) == (100, 100, ())
    assert len(store.reads) == 1


def test_of_many_bad_ones_no_more_are_read_than_a_few(tmp_path):
    store = filled(tmp_path, 100)
    for path in (tmp_path / TASK.folder).glob("*.manifest.json"):
        if "gen-000001" not in path.name:
            path.write_bytes(b"x" + path.read_bytes())
    found = newest(store)
    assert found.manifest is None
    assert found.highest_generation == 100
    assert len(store.reads) == MANIFESTS_MAX
    assert f"{100 - MANIFESTS_MAX} older manifests were not read" in found.refused[-1]


def test_those_set_aside_or_of_later_attempts_are_not_read(tmp_path):
    store = filled(tmp_path, 40)
    for number in range(5, 30):
        name = f"gen-{number + 1:06d}-{attempt(number)}.manifest.json"
        set_aside(store, LATER, read_manifest(store, TASK, name), "a test")
    store.reads.clear()
    found = newest(store, before=30)
    assert found.manifest is not None
    assert found.manifest.generation == 5
    assert len(store.reads) == 1
    assert len(found.refused) == 35


@pytest.mark.parametrize(
    ("rule", "reducer", "why"),
    [
        (KeyRule(1, b"."), ["cat"], "made with another key rule"),
        (KeyRule(1, b"\t", b"\t", 2), ["cat"], "made with another key rule"),
        (KeyRule(), ["cat", "-n"], "made by another reducer: ['cat']"),
    ],
)
def test_a_checkpoint_of_other_keys_or_of_another_reducer_is_not_used(tmp_path, rule, reducer, why):
    store = filled(tmp_path, 1)
    found = find_checkpoint(store, LATER._replace(attempt=attempt(7)), rule, reducer, (store.user,))
    assert found.manifest is None
    assert why in found.refused[0]


def test_a_huge_manifest_is_not_read(tmp_path):
    store = filled(tmp_path, 2)
    huge = tmp_path / TASK.folder / f"gen-000002-{attempt(1)}.manifest.json"
    huge.write_bytes(b" " * (MANIFEST_BYTES_MAX + 1))
    found = newest(store)
    assert found.manifest is not None
    assert found.manifest.generation == 1
    assert len(store.reads) == 1
    assert "larger than" in found.refused[0]


def test_a_crowded_folder_is_refused(tmp_path, monkeypatch):
    store = filled(tmp_path, 3)
    monkeypatch.setattr("yarnctl.task_runner.runner.protocol.generations.ENTRIES_MAX", 2)
    with pytest.raises(Unusable, match="more than 2 files"):
        newest(store)


@pytest.mark.parametrize(
    "change",
    [{"generation": float("inf")}, {"groups_done": float("nan")}, {"previous_generation": "x"},
     {"previous_generation": float("inf")}, {"counters": []}, {"counters": {"group": 3}},
     {"counters": {"group": {"name": float("inf")}}}, {"past_containers": 3},
     {"parts": [{"name": "a", "bytes": float("inf"), "sha256": ""}]}, {"parts": [[]]}, {"state": "x"},
     {"last_key": "?"}],
)  # fmt: skip
def test_a_sealed_manifest_that_makes_no_sense_is_unusable(change):
    good = {**FIELDS, "parts": [], "state": None, "output_bytes": 0}
    assert parse_manifest(sealed(good)).groups_done == 3
    with pytest.raises(Unusable):
        parse_manifest(sealed({**good, **change}))


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a":' * 200_000, b"1e999", b"[]", b"null", b"", b"\xff"])
def test_what_is_no_manifest_at_all_is_unusable(data):
    with pytest.raises(Unusable):
        parse_manifest(data)


@pytest.mark.parametrize("generation", ["1e999", "[" * 200_000, "null", "{}", '"x"'])
def test_an_answer_that_makes_no_sense_is_unusable(tmp_path, generation):
    store = LocalStore(str(tmp_path))
    name = answer_name("o-1", TASK.attempt)
    fields = json.dumps({"order": "o-1", "attempt": TASK.attempt, "answer": "unchanged", "reason": ""})
    data = f'{fields[:-1]}, "generation": {generation}}}'.encode()
    store.make_folder(TASK.folder)
    put_file(store, TASK.folder, name, len(data), lambda: [data])
    proof = Eligibility(KeyRule(), (("cat",),), "", (store.user,), 30_000)
    with pytest.raises(Unusable):
        read_answer(store, TASK, "o-1", store.list(TASK.folder), proof)


def test_a_store_error_while_looking_is_one(tmp_path):
    (tmp_path / TASK.job).write_text("no folder")
    with pytest.raises(StoreError):
        newest(LocalStore(str(tmp_path)))


def test_a_manifest_that_nobody_would_read_is_not_written(tmp_path):
    store = LocalStore(str(tmp_path))
    with pytest.raises(Unusable, match="its manifest of"):
        write_checkpoint(store, TASK, {**FIELDS, "reducer": ["x" * MANIFEST_BYTES_MAX]})
    assert not [entry.name for entry in store.list(TASK.folder) if entry.name.endswith(".json")]


def test_write_checkpoint_of_the_largest_manifest_is_read_again(tmp_path):
    store = filled(tmp_path, 1)
    (name,) = (entry.name for entry in store.list(TASK.folder) if entry.name.endswith(".json"))
    spare = MANIFEST_BYTES_MAX - (tmp_path / TASK.folder / name).stat().st_size
    reducer = ["cat" + "x" * spare]
    write_checkpoint(store, TASK, {**FIELDS, "generation": 2, "attempt": attempt(1), "reducer": reducer})
    sizes = [path.stat().st_size for path in (tmp_path / TASK.folder).glob("gen-000002*.json")]
    assert sizes == [MANIFEST_BYTES_MAX]
    later = LATER._replace(attempt=attempt(9))
    found = find_checkpoint(store, later, KeyRule(), reducer, (store.user,)).manifest
    assert found is not None
    assert found.generation == 2
