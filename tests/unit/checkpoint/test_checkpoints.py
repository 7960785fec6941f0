"""The store's commands against a little HDFS: shown, verified, and only what is surely over collected."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.unit.hadoop.little_hdfs import LittleHdfs
from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.checkpoint.collecting import DAY_MS, decide, why_kept
from yarnctl.checkpoint.endings import Ending
from yarnctl.checkpoint.holding import JobHeld, TaskHeld
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.task_runner import yarnctl_task as runner

ROOT = "/yarnctl/checkpoints"
NOW_MS = 1_800_000_000_000


class Hdfs(LittleHdfs):
    """Deletes recursively, and remembers what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[str] = []

    def _delete(self, path: str, _heard: Heard) -> Reply:
        self.deleted.append(path)
        below = [one for one in (*self.files, *self.folders) if (one + "/").startswith(path + "/")]
        for one in below:
            self.files.pop(one, None)
            self.folders.discard(one)
        return Reply(json.dumps({"boolean": bool(below)}))


def put(hdfs: LittleHdfs, job: int, *, content: bytes = b"a\t1\n", claimed: bytes | None = None) -> str:
    """Write one task's checkpoint; ``claimed``: what the manifest says was written."""
    number = f"1700000000000_{job:04d}"
    attempt = f"attempt_{number}_r_000000_0"
    folder = f"{ROOT}/job_{number}/task_{number}_r_000000"
    said = content if claimed is None else claimed
    part = f"gen-000001-{attempt}.part"
    manifest = {
        "schema": 1, "tool": "yarnctl", "version": "0", "job": f"job_{number}",
        "task": f"task_{number}_r_000000", "attempt": attempt, "container": "", "past_containers": [],
        "host": "h",
        "user": "ann", "order": "o-1", "created_at_ms": NOW_MS - 5_000,
        "took_ms": 1, "generation": 1, "previous_generation": 0,
        "key_rule": {"fields": 1, "key_fields": 1, "map_separator": "CQ==", "reduce_separator": "CQ=="},
        "reducer": ["cat"], "groups_done": 1, "keys_digest": hashlib.sha256(b"a\n").hexdigest(),
        "last_key": "G1sx", "input_bytes": 4, "output_bytes": len(said), "state": None, "counters": {},
        "parts": [{"name": part, "bytes": len(said), "sha256": hashlib.sha256(said).hexdigest()}],
    }  # fmt: skip
    files = {part: content, f"gen-000001-{attempt}.manifest.json": runner.sealed(manifest)}
    for name, data in files.items():
        hdfs.files[f"{folder}/{name}"] = data
        hdfs.owners[f"{folder}/{name}"] = ("ann", "600")
        hdfs._parents(f"{folder}/{name}")
    hdfs.owners[folder] = hdfs.owners[f"{ROOT}/job_{number}"] = ("ann", "700")
    return f"job_{number}"


def manager(states: dict[str, tuple[str, int]]) -> Replay:
    def answer(heard: Heard) -> Reply:
        found = states.get(heard.path.rpartition("/")[2])
        if found is None:
            return Reply('{"RemoteException":{"exception":"NotFoundException","message":"no"}}', 404)
        app = {
            "id": heard.path.rpartition("/")[2],
            "state": found[0],
            "user": "ann",
            "finishedTime": found[1],
        }
        return Reply(json.dumps({"app": app}))

    return Replay(answer)


def run(capfd, hdfs: LittleHdfs, states, *words: str, status: int = 0):
    with hdfs.serve() as store, manager(states) as rm:
        command, *rest = words
        where = ["--rm", rm.url, "--name-node", store.url, "--json"]
        answered = exit_status_of(PROGRAM, ["checkpoints", command, *rest, *where])
    out, err = capfd.readouterr()
    assert answered == status, err
    return json.loads(out)


def test_list_and_show(capfd) -> None:
    hdfs = Hdfs()
    job = put(hdfs, 1)
    (row,) = run(capfd, hdfs, {"application_1700000000000_0001": ("RUNNING", 0)}, "list")["checkpoints"]
    assert (row["generation"], row["groups_done"], row["application_state"]) == (1, 1, "RUNNING")
    (shown,) = run(capfd, hdfs, {}, "show", job)["manifests"]
    assert shown["last_key_text"] == "\\x1b[1"


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda files, names: files.update({names[1]: files[names[1]][:-1] + b"X"}), "its sha256"),
        (lambda files, names: files.update({names[1]: b""}), "0 bytes, not 4"),
        (lambda files, names: files.pop(names[1]), "missing"),
        (lambda files, names: files.update({names[0]: files[names[0]].replace(b"ann", b"bob")}), "check"),
        (lambda files, names: files.update({names[0]: files[names[0]][:40]}), "torn"),
    ],
)
def test_verify_sees_harm(capfd, harm, why: str) -> None:
    hdfs = Hdfs()
    put(hdfs, 1)
    assert run(capfd, hdfs, {}, "verify")["bad"] == 0
    harm(hdfs.files, sorted(hdfs.files))
    (row,) = run(capfd, hdfs, {}, "verify", status=1)["manifests"]
    assert any(why in problem for problem in row["problems"]), row


def test_gc_deletes_only_what_is_over_and_only_with_yes(capfd, monkeypatch) -> None:
    monkeypatch.setattr("yarnctl.cli.checkpoints.now_ms", lambda: NOW_MS)
    hdfs = Hdfs()
    jobs = [put(hdfs, number) for number in (1, 2, 3, 4)]
    hdfs.folders.add(f"{ROOT}/elsewhere")
    states = {
        "application_1700000000000_0001": ("FINISHED", NOW_MS - DAY_MS),
        "application_1700000000000_0002": ("FINISHED", NOW_MS - DAY_MS + 1),
        "application_1700000000000_0003": ("RUNNING", 0),
    }
    told = run(capfd, hdfs, states, "gc")
    assert (told["deleted"], told["jobs"], hdfs.deleted) == (False, 1, [])
    done = run(capfd, hdfs, states, "gc", "--yes")
    assert hdfs.deleted == [f"{ROOT}/{jobs[0]}"]
    assert (done["jobs"], done["files"]) == (1, 2)
    assert done["bytes"] > 0
    assert f"{ROOT}/elsewhere" in hdfs.folders


TABLE = [
    (None, "unknown"),
    (Ending(why="silent"), "unknown (silent)"),
    (Ending("RUNNING"), "RUNNING"),
    (Ending("FINAL_SAVING", NOW_MS - 2 * DAY_MS), "FINAL_SAVING"),
    (Ending("FINISHED", 0), "not known"),
    (Ending("FINISHED", NOW_MS + 1), "future"),
    (Ending("FAILED", NOW_MS - DAY_MS + 1), "less than"),
    (Ending("FAILED", NOW_MS - DAY_MS), ""),
    (Ending("KILLED", NOW_MS - 2 * DAY_MS), ""),
    (Ending("SUCCEEDED", NOW_MS - 2 * DAY_MS), ""),
]


@pytest.mark.parametrize(("ending", "why"), TABLE)
def test_what_may_go(ending: Ending | None, why: str) -> None:
    """Unknown is not finished; an end must be known and old enough."""
    told = why_kept(ending, NOW_MS, DAY_MS)
    assert (why in told) if why else told == ""


@pytest.mark.parametrize(
    "job",
    [
        JobHeld("job_1_1", "ann", strange=("notes.txt",)),
        JobHeld("job_1_1", "ann", problem="denied"),
        JobHeld("job_1_1", "ann", (TaskHeld("job_1_1", "task_1_1_r_0", "ann", 0o700, problem="denied"),)),
    ],
)
def test_what_is_not_understood_stays(job: JobHeld) -> None:
    ended = {"application_1_1": Ending("FINISHED", 1)}
    (row,) = decide([job], [], ended, NOW_MS)
    assert not row.delete
    (row,) = decide([JobHeld("job_1_1", "ann")], [], ended, NOW_MS)
    assert row.delete


def test_a_root_of_everything_is_refused(capfd) -> None:
    for root in ("/", "//", "relative", "/a/../b"):
        assert exit_status_of(PROGRAM, ["checkpoints", "gc", "--rm", "http://h:1", "--store", root]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1
