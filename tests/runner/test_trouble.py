"""A store in trouble: answers that are lost, saves that fail, addresses and answers that make no sense."""

from __future__ import annotations

import threading

import pytest

from tests.runner.namenode import Server
from tests.runner.running import SUM, Attempt, Job, grouped, python
from yarnctl.task_runner.runner.protocol import webhdfs_store
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, canonical, request_name
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, Lost, StoreError
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore

DATA = grouped(60, 5)


@pytest.fixture
def server():
    running = Server()
    yield running
    running.held.gate.set()
    running.shutdown()
    running.server_close()


def webhdfs(tmp_path, server) -> tuple[Job, tuple[str, ...]]:
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    return job, ("--store", f"webhdfs://{server.host}/checkpoints")


def request(attempt: Attempt, order: str) -> bytes:
    return canonical({"schema": SCHEMA, "order": order, "attempt": attempt.task.attempt})


def wanted(tmp_path, data: bytes = DATA) -> tuple[int, bytes]:
    return Job(tmp_path).run(data, python(SUM), promise=False)


def manifests(server) -> list[str]:
    return sorted(name.rsplit("/", 1)[1] for name in server.held.files if name.endswith(".manifest.json"))


# ---------------------------------------------------------------------- after a save that failed


def test_after_a_failed_save_nobody_says_unchanged(server, tmp_path):
    job, where = webhdfs(tmp_path, server)
    attempt = job.start(python(SUM), *where, "--suspend-at", "3", "--release-wait-ms", "0")
    attempt.feed(DATA[:300])
    attempt.until("ckpt=saved gen=1")
    attempt.until("phase=run")
    server.held.rename_fails = True
    for order in ("second", "third"):
        server.held.put(f"/checkpoints/requests/{request_name(attempt.task, order)}", request(attempt, order))
    attempt.stdout.readline()
    attempt.ring()
    attempt.until("phase=finish")
    attempt.feed(DATA[300:])
    attempt.end_input()
    status, _ = attempt.finish()
    assert status == 0
    assert b"order=second not saved" in attempt.log
    assert b"order=third not saved" in attempt.log
    assert b"ckpt=unchanged" not in attempt.log


def test_a_save_that_failed_costs_no_earlier_checkpoint(server, tmp_path):
    program = """
import os, sys
for line in sys.stdin:
    sys.stdout.write(line)
if os.path.exists(os.environ["YARNCTL_SUSPENDING"]):
    open("state", "w").write("mine")
"""
    job, where = webhdfs(tmp_path, server)
    options = (*where, "--save", "cat state; rm state", "--load", "cat > loaded")
    status, _ = job.run(DATA, python(program), *options, "--suspend-at", "9", "--exit-when-saved")
    assert status == EXIT_SUSPENDED
    server.held.rename_fails = True
    status, output = job.run(DATA, python(program), *options, "--suspend-at", "20", "--release-wait-ms", "0")
    assert b"phase=replay groups=9" in job.stderr
    assert b"not saved" in job.stderr
    assert b"set aside" not in job.stderr
    assert (status, output) == (0, DATA)  # the state was at hand: nothing had to end
    assert (tmp_path / "loaded").read_text() == "mine"


# ------------------------------------------------------------------------------- lost answers


def test_a_rename_whose_answer_is_lost_is_looked_at(server, tmp_path):
    job, where = webhdfs(tmp_path, server)
    server.held.lose_renames = ["after"]
    assert job.run(DATA, python(SUM), *where, "--suspend-at", "20", "--release-wait-ms", "0") == wanted(
        tmp_path
    )
    assert b"ckpt=saved gen=1 order=cut-20" in job.stderr
    assert b"not saved" not in job.stderr
    assert manifests(server) == [f"gen-000001-{job.task(0).attempt}.manifest.json"]


def test_a_rename_that_was_not_carried_out_cannot_be_later(server, tmp_path):
    job, where = webhdfs(tmp_path, server)
    server.held.lose_renames = ["before"]
    assert job.run(DATA, python(SUM), *where, "--suspend-at", "20", "--release-wait-ms", "0") == wanted(
        tmp_path
    )
    assert b"order=cut-20 not saved" in job.stderr
    assert manifests(server) == []
    assert not [name for name in server.held.files if name.endswith(".manifest.json.tmp")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_may_be_saved_counts_as_saved(server, tmp_path, when):
    """The store falls silent with the rename: whichever it was, the task goes on behind that number."""
    job, where = webhdfs(tmp_path, server)
    server.held.lose_renames = [when]
    server.held.dead_after_loss = True
    attempt = job.start(python(SUM), *where, "--suspend-at", "20,40", "--release-wait-ms", "0")
    attempt.feed(DATA[:1000])
    attempt.until("possibly saved: ")
    attempt.until("ckpt=unsure gen=1 order=cut-20")
    assert "gen=1" in attempt.until("phase=hold")
    assert "gen=1" in attempt.until("phase=run")
    server.held.dead_after_loss = server.held.dead = False
    attempt.feed(DATA[1000:])
    attempt.end_input()
    attempt.until("ckpt=saved gen=2")
    assert attempt.finish() == wanted(tmp_path)
    assert len(manifests(server)) == (1 if when == "before" else 2)
    assert job.run(DATA, python(SUM), *where) == wanted(tmp_path)
    assert b"phase=replay groups=40 gen=2" in job.stderr


def test_a_change_that_was_not_answered_is_not_asked_of_another(server):
    other = Server()
    store = WebHdfsStore([server.host, other.host], "/checkpoints", "alice")
    store.create("a", 1, [b"1"])
    server.held.lose_renames = ["after"]
    with pytest.raises(Lost):
        store.rename("a", "b")
    assert not other.held.users
    assert store.hosts == [other.host, server.host]
    other.shutdown()
    other.server_close()


# ---------------------------------------------------------------------------- odd stores


@pytest.mark.parametrize("host", ["nn name", "nn:port", "[", "nn\x7f", "-" * 300 + ":1"])
def test_an_odd_address_leaves_the_reducer_alone(tmp_path, host):
    job = Job(tmp_path, {"HADOOP_USER_NAME": "alice"})
    assert job.run(b"a\t1\n", ["cat"], "--store", f"webhdfs://{host}/x") == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner" in job.stderr


@pytest.mark.parametrize("answer", [{}, {"FileStatus": {}}, {"FileStatus": 3}, [], "x"])
def test_an_odd_answer_leaves_the_reducer_alone(server, tmp_path, answer):
    server.held.instead = answer
    job, where = webhdfs(tmp_path, server)
    assert job.run(b"a\t1\n", ["cat"], *where) == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner" in job.stderr


@pytest.mark.parametrize("op", ["entry", "read"])
def test_an_answer_that_drips_has_an_end(server, monkeypatch, op):
    store = WebHdfsStore([server.host], "/checkpoints", "alice")
    store.create("a", 4, [b"abcd"])
    monkeypatch.setattr(webhdfs_store, "HTTP_WHOLE_S", 0.2)
    server.held.drip = True
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(StoreError):
            store.entry("a") if op == "entry" else list(store.read("a"))
        ended.set()

    threading.Thread(target=ask, daemon=True).start()
    assert ended.wait(60)
