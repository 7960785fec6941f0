"""The store over WebHDFS: two steps, booleans, torn bodies, standbys; and the runner on top of it."""

from __future__ import annotations

import os

import pytest

from tests.runner.namenode import Server
from tests.runner.running import SUM, Job, grouped, python
from yarnctl.task_runner.runner.protocol.generations import (
    find_checkpoint,
    put_file,
    set_aside,
    write_checkpoint,
)
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, Exists, Spool, StoreError, Unusable
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore, open_store

TASK = TaskId("job_1_0001", "task_1_0001_r_000000", "attempt_1_0001_r_000000_0", "container_2")
LATER = TASK._replace(attempt="attempt_1_0001_r_000000_1")
FIELDS = {
    "schema": 1,
    "job": TASK.job,
    "task": TASK.task,
    "attempt": TASK.attempt,
    "container": "container_2",
    "past_containers": [],
    "order": "o-1",
    "generation": 1,
    "previous_generation": 0,
    "key_rule": KeyRule().as_json(),
    "reducer": ["cat"],
    "groups_done": 3,
    "keys_digest": "00",
    "last_key": "",
    "counters": {},
}


@pytest.fixture
def store(server) -> WebHdfsStore:
    return WebHdfsStore([server.host], "/checkpoints", "alice")


def spooled(data: bytes) -> Spool:
    spool = Spool(1 << 30)
    spool.add(data)
    return spool


def newest(store: WebHdfsStore):
    return find_checkpoint(store, LATER, KeyRule(), ["cat"], ("alice",))


def test_a_checkpoint_goes_there_and_comes_back(server, store):
    manifest = write_checkpoint(store, TASK, FIELDS, spooled(b"raw output"))
    found = newest(store)
    assert found.manifest == manifest
    assert (found.highest_generation, found.refused) == (1, ())
    assert b"".join(store.read(f"{TASK.folder}/{manifest.parts[0].name}")) == b"raw output"
    assert server.held.users == {"alice"}
    assert server.held.folders[f"/checkpoints/{TASK.folder}"] == "750"
    assert set(server.held.modes.values()) == {"640"}
    assert not [name for name in server.held.files if name.endswith(".tmp")]


def test_nothing_there_is_nothing_found(store):
    assert newest(store).manifest is None
    assert store.list("no/folder") == []
    assert store.entry("no/file") is None


def test_a_name_that_is_taken_stays_as_it_is(server, store):
    store.create("a", 1, [b"1"])
    with pytest.raises(Exists):
        store.create("a", 1, [b"2"])
    store.create("b", 1, [b"2"])
    with pytest.raises(Exists):
        store.rename("b", "a")
    assert server.held.files["/checkpoints/a"] == b"1"


def test_a_rename_that_did_not_happen_leaves_no_manifest(server, store):
    server.held.rename_fails = True
    with pytest.raises(StoreError):
        write_checkpoint(store, TASK, FIELDS, spooled(b"raw output"))
    server.held.rename_fails = False
    found = newest(store)
    assert (found.manifest, found.highest_generation) == (None, 1)


def test_a_torn_body_is_written_again_under_another_name(server, store):
    server.held.cut_next_bodies = 1
    data = b"x" * (4 << 20)
    part = put_file(store, "folder", "gen.part", len(data), lambda: [data])
    assert part.name == "gen.part.r1"
    assert server.held.files["/checkpoints/folder/gen.part.r1"] == data
    assert len(server.held.files["/checkpoints/folder/gen.part"]) < len(data)  # looks complete, is not named


def test_a_file_that_was_truncated_later_is_refused(server, store):
    manifest = write_checkpoint(store, TASK, FIELDS, spooled(b"raw output"))
    server.held.files[f"/checkpoints/{TASK.folder}/{manifest.parts[0].name}"] = b"raw"
    found = newest(store)
    assert found.manifest is None
    assert "3 bytes, not 10" in found.refused[0]


def test_a_body_that_ends_early_is_no_end(server, store):
    store.create("a", 4, [b"abcd"])
    server.held.cut_reads = True
    with pytest.raises(StoreError):
        list(store.read("a"))


def test_a_foreign_manifest_is_refused(server, store):
    write_checkpoint(store, TASK, FIELDS, spooled(b"raw output"))
    for path in server.held.files:
        server.held.owners[path] = "mallory"
    assert "owner is mallory" in newest(store).refused[0]
    server.held.owners[f"/checkpoints/{TASK.folder}"] = "mallory"
    with pytest.raises(Unusable, match="owner is mallory"):
        newest(store)


def test_what_was_set_aside_stays_aside(store):
    manifest = write_checkpoint(store, TASK, FIELDS, spooled(b"raw output"))
    set_aside(store, LATER, manifest, "a test")
    set_aside(store, LATER, manifest, "a test")
    found = newest(store)
    assert found.manifest is None
    assert "set aside" in found.refused[0]


def test_a_standby_and_a_dead_namenode_are_passed_over(server, store):
    standby = Server()
    standby.held.standby = True
    both = WebHdfsStore(["127.0.0.1:9", standby.host, server.host], "/checkpoints", "alice")
    both.create("a", 1, [b"1"])
    assert b"".join(both.read("a")) == b"1"
    assert both.hosts[0] == server.host
    standby.shutdown()
    standby.server_close()
    with pytest.raises(StoreError):
        WebHdfsStore([standby.host], "/checkpoints", "alice").list("")


@pytest.mark.parametrize("url", ["", "file://relative", "hdfs://host/x", "webhdfs://host"])
def test_other_addresses_are_refused(url):
    with pytest.raises(StoreError):
        open_store(url, "alice")


def test_the_runner_suspends_to_and_resumes_from_webhdfs(server, tmp_path):
    data = grouped(80, 5)
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    where = ("--store", f"webhdfs://{server.host}/checkpoints")
    assert job.run(data, python(SUM), *where, "--suspend-at", "33", "--exit-when-saved")[0] == EXIT_SUSPENDED
    assert job.run(data, python(SUM), *where) == Job(tmp_path).run(data, python(SUM), promise=False)
    assert b"phase=replay groups=33" in job.stderr


def test_a_store_that_is_down_leaves_the_reducer_alone(tmp_path):
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    assert job.run(b"a\t1\n", ["cat"], "--store", "webhdfs://127.0.0.1:9/x") == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner" in job.stderr


def test_a_store_that_fails_while_saving_costs_nothing(server, tmp_path):
    data = grouped(80, 5)
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    server.held.rename_fails = True
    where = (
        "--store",
        f"webhdfs://{server.host}/checkpoints",
        "--suspend-at",
        "20,40",
        "--release-wait-ms",
        "0",
    )
    assert job.run(data, python(SUM), *where) == Job(tmp_path).run(data, python(SUM), promise=False)
    assert job.stderr.count(b"not saved") == 2
    assert os.listdir(tmp_path) == ["out"]  # the spool has no name
