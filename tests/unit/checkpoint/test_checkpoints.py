"""The store's commands against a little HDFS: shown, verified, and only what is surely over collected."""

from __future__ import annotations

import hashlib
import json
from email.utils import formatdate

import pytest

from tests.unit.hadoop.little_hdfs import LittleHdfs, remote
from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.checkpoint.application_ends import ApplicationEnd
from yarnctl.checkpoint.collecting import DAY_MS, WEEK_MS, ForgottenJobs, decide, why_kept, why_unknown_kept
from yarnctl.checkpoint.contents import JobCheckpoints, TaskCheckpoints
from yarnctl.checkpoint.opened_store import safe_bytes
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.hadoop.http.session import open_session
from yarnctl.task_runner.runner.protocol.manifests import sealed

ROOT = "/yarnctl/checkpoints"
REQUESTS = "/yarnctl/requests"
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
    files = {part: content, f"gen-000001-{attempt}.manifest.json": sealed(manifest)}
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

    return Replay(dated(answer))


def dated(answer, ahead_ms: int | None = 0):
    """Let a daemon's answers carry the Date that its clock shows (None: no Date)."""

    def with_date(heard: Heard) -> Reply:
        reply = answer(heard)
        if ahead_ms is None:
            return reply
        now = formatdate((NOW_MS + ahead_ms) / 1000, usegmt=True)
        return reply._replace(headers=(*reply.headers, ("Date", now)))

    return with_date


def history(jobs: dict[str, tuple[str, int]]) -> Replay:
    """A history server: job -> state and finishTime."""

    def answer(heard: Heard) -> Reply:
        name = heard.path.rpartition("/")[2]
        if not heard.path.startswith("/ws/v1/history/mapreduce/jobs/") or name not in jobs:
            return Reply('{"RemoteException":{"exception":"NotFoundException","message":"no"}}', 404)
        job = {"id": name, "state": jobs[name][0], "user": "ann", "finishTime": jobs[name][1]}
        return Reply(json.dumps({"job": job}))

    return Replay(dated(answer))


def run(capfd, hdfs: LittleHdfs, states, *words: str, status: int = 0):
    with hdfs.serve() as store, states if isinstance(states, Replay) else manager(states) as rm:
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


def test_only_printable_ascii_of_a_key_is_shown_as_it_is() -> None:
    assert safe_bytes(b"\x1f ~\x7f\x80\xff\\") == r"\x1f ~\x7f\x80\xff\x5c"


def test_list_shows_the_age_in_seconds(capfd, monkeypatch) -> None:
    hdfs = Hdfs()
    put(hdfs, 1)
    monkeypatch.setattr("yarnctl.cli.checkpoints.now_ms", lambda: NOW_MS + 1_000)
    with hdfs.serve() as store, manager({}) as rm:
        where = ["--rm", rm.url, "--name-node", store.url]
        assert exit_status_of(PROGRAM, ["checkpoints", "list", *where]) == 0
    assert " 6 s " in capfd.readouterr().out


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda files, names: files.update({names[1]: files[names[1]][:-1] + b"X"}), "the SHA-256 differs"),
        (lambda files, names: files.update({names[1]: b""}), "0 bytes, not 4"),
        (lambda files, names: files.pop(names[1]), "missing"),
        (lambda files, names: files.update({names[0]: files[names[0]].replace(b"ann", b"bob")}), "check"),
        (lambda files, names: files.update({names[0]: files[names[0]][:40]}), "incomplete"),
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


@pytest.fixture
def day(monkeypatch) -> None:
    monkeypatch.setattr("yarnctl.cli.checkpoints.now_ms", lambda: NOW_MS)


def application(number: int) -> str:
    return f"application_1700000000000_{number:04d}"


OVER = {application(1): ("FINISHED", NOW_MS - 2 * DAY_MS)}


def request(hdfs: LittleHdfs, job: int, order: str = "here-o-000001", name: str = "") -> str:
    number = f"1700000000000_{job:04d}"
    folder = f"{REQUESTS}/job_{number}/attempt_{number}_r_000000_0"
    hdfs.files[f"{folder}/{name or order + '.request.json'}"] = b"{}"
    hdfs._parents(f"{folder}/x")
    return f"job_{number}"


def test_gc_collects_requests_too(capfd, day) -> None:
    hdfs = Hdfs()
    jobs = [request(hdfs, number) for number in (1, 2, 3)]
    request(hdfs, 1, name="o-1.withdrawn")
    request(hdfs, 3, name="notes.txt")
    states = OVER | {application(3): OVER[application(1)], application(2): ("RUNNING", 0)}
    done = run(capfd, hdfs, states, "gc", "--yes")
    assert hdfs.deleted == [f"{REQUESTS}/{jobs[0]}"]
    whys = {row["job"]: row["why"] for row in done["folders"]}
    assert "RUNNING" in whys[jobs[1]]
    assert "no task runner writes" in whys[jobs[2]]


def test_gc_believes_the_history_server_where_the_manager_has_forgotten(capfd, day) -> None:
    hdfs = Hdfs()
    jobs = [put(hdfs, number) for number in (1, 2, 3, 4)]
    told = {
        jobs[0]: ("SUCCEEDED", NOW_MS - 2 * DAY_MS),
        jobs[1]: ("SUCCEEDED", NOW_MS - DAY_MS + 1),
        jobs[2]: ("RUNNING", 0),
    }
    with history(told) as server:
        done = run(capfd, hdfs, {}, "gc", "--yes", "--history", server.url)
    assert hdfs.deleted == [f"{ROOT}/{jobs[0]}"]
    whys = {row["job"]: row["why"] for row in done["folders"]}
    assert "less than 24 h" in whys[jobs[1]]
    assert "RUNNING" in whys[jobs[2]]
    assert "neither the ResourceManager nor the history server" in whys[jobs[3]]


def test_a_refused_delete_is_said_and_the_rest_goes_on(capfd, day) -> None:
    class Denying(Hdfs):
        def _delete(self, path: str, heard: Heard) -> Reply:
            return remote("AccessControlException") if path.endswith("0001") else super()._delete(path, heard)

    hdfs = Denying()
    jobs = [put(hdfs, number) for number in (1, 2)]
    states = OVER | {application(2): OVER[application(1)]}
    done = run(capfd, hdfs, states, "gc", "--yes", status=1)
    assert [one["job"] for one in done["failed"]] == [jobs[0]]
    assert "AccessControlException" in done["failed"][0]["problem"]
    assert (done["jobs"], hdfs.deleted) == (1, [f"{ROOT}/{jobs[1]}"])


@pytest.mark.parametrize("span", ["23h", "0s", "1439m", "0.9d"])
def test_less_than_a_day_is_refused(capfd, span: str) -> None:
    assert exit_status_of(PROGRAM, ["checkpoints", "gc", "--rm", "http://h:1", "--name-node", "http://h:2",
                                    "--older-than", span]) == 2  # fmt: skip
    assert "less than a day" in capfd.readouterr().err
    assert why_kept(ApplicationEnd("FINISHED", NOW_MS - DAY_MS + 1), NOW_MS, 0) != ""


def test_every_daemon_is_asked_with_the_configured_authorities(capfd, monkeypatch) -> None:
    trusted: list[str] = []

    def opened(limits, auth=None, ca_file="", **more):
        trusted.append(ca_file)
        return open_session(limits, auth, "", **more)

    for module in ("http.transport", "webhdfs"):
        monkeypatch.setattr(f"yarnctl.hadoop.{module}.open_session", opened)
    monkeypatch.setenv("YARNCTL_CA_FILE", "ours.pem")
    with history({}) as server:
        run(capfd, Hdfs(), {}, "gc", "--history", server.url)
    assert len(trusted) > 3
    assert set(trusted) == {"ours.pem"}


@pytest.mark.parametrize(
    ("ahead_ms", "ended_ago_ms", "goes"),
    [
        (None, 9 * DAY_MS, False),  # no Date: its time is not known
        (0, DAY_MS, True),
        (3_600_000, DAY_MS - 1, False),  # by our clock not yet
        (-3_600_000, DAY_MS, False),  # by the cluster's clock not yet
        (-3_600_000, DAY_MS + 3_600_000, True),
    ],
)
def test_an_end_is_a_day_ago_only_by_every_clock(capfd, day, ahead_ms, ended_ago_ms, goes) -> None:
    hdfs = Hdfs()
    job = put(hdfs, 1)
    states = manager({application(1): ("FINISHED", NOW_MS - ended_ago_ms)})
    states.answer = dated(undated(states.answer), ahead_ms)
    run(capfd, hdfs, states, "gc", "--yes")
    assert hdfs.deleted == ([f"{ROOT}/{job}"] if goes else [])


def undated(answer):
    return lambda heard: answer(heard)._replace(headers=())


@pytest.mark.parametrize("change", ["runs again", "forgotten", "written to", "strange"])
def test_it_looks_again_right_before_it_deletes(capfd, day, change: str) -> None:
    """Between the judgement and the deletion something has come to pass: the folder stays."""
    hdfs = Hdfs()
    job = put(hdfs, 1)
    folder = f"{ROOT}/{job}/task_{job[4:]}_r_000000"
    asked: list[str] = []

    def answer(heard: Heard) -> Reply:
        name = heard.path.rpartition("/")[2]
        if name != application(1):
            return Reply("{}")
        asked.append(name)
        if len(asked) > 1 and change == "forgotten":
            return Reply('{"RemoteException":{"exception":"NotFoundException","message":"no"}}', 404)
        if len(asked) > 1 and change in ("written to", "strange"):
            name_of = "gen-000002-x.part" if change == "written to" else "mine.txt"
            hdfs.files[f"{folder}/{name_of}"] = b"1"
        state = "RUNNING" if len(asked) > 1 and change == "runs again" else "FINISHED"
        app = {"id": name, "state": state, "user": "ann", "finishedTime": NOW_MS - 2 * DAY_MS}
        return Reply(json.dumps({"app": app}))

    # What was changed after the second question is seen by a look that comes after that question.
    done = run(capfd, hdfs, Replay(dated(answer)), "gc", "--yes", status=1)
    assert hdfs.deleted == []
    assert done["failed"][0]["problem"].startswith("kept: ")


TABLE = [
    (None, "unknown"),
    (ApplicationEnd(why="silent"), "unknown (silent)"),
    (ApplicationEnd("RUNNING"), "RUNNING"),
    (ApplicationEnd("FINAL_SAVING", NOW_MS - 2 * DAY_MS), "FINAL_SAVING"),
    (ApplicationEnd("FINISHED", 0), "time of its end is unknown"),
    (ApplicationEnd("FINISHED", -1), "time of its end is unknown"),
    (ApplicationEnd("FINISHED", NOW_MS + 1), "future"),
    (ApplicationEnd("FAILED", NOW_MS - DAY_MS + 1), "less than"),
    (ApplicationEnd("FAILED", NOW_MS - DAY_MS), ""),
    (ApplicationEnd("KILLED", NOW_MS - 2 * DAY_MS), ""),
    (ApplicationEnd("SUCCEEDED", NOW_MS - 2 * DAY_MS), ""),
]


@pytest.mark.parametrize(("ending", "why"), TABLE)
def test_what_may_go(ending: ApplicationEnd | None, why: str) -> None:
    """Unknown is not finished; an end must be known and old enough."""
    told = why_kept(ending, NOW_MS, DAY_MS)
    assert (why in told) if why else told == ""


@pytest.mark.parametrize(
    "job",
    [
        JobCheckpoints("job_1_1", "ann", strange=("notes.txt",)),
        JobCheckpoints("job_1_1", "ann", problem="denied"),
        JobCheckpoints(
            "job_1_1", "ann", (TaskCheckpoints("job_1_1", "task_1_1_r_0", "ann", 0o700, problem="denied"),)
        ),
    ],
)
def test_what_is_not_understood_stays(job: JobCheckpoints) -> None:
    ended = {"application_1_1": ApplicationEnd("FINISHED", 1)}
    (row,) = decide([job], [], ended, NOW_MS)
    assert not row.delete
    (row,) = decide([JobCheckpoints("job_1_1", "ann")], [], ended, NOW_MS)
    assert row.delete


def test_a_root_of_everything_is_refused(capfd) -> None:
    for root in ("/", "//", "relative", "/a/../b"):
        assert exit_status_of(PROGRAM, ["checkpoints", "gc", "--rm", "http://h:1", "--store", root]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1


# --- jobs that nobody knows ---------------------------------------------------------------------------

EPOCH_MS = 1_700_000_000_000 + 1_000
"""When the ResourceManager was started: after the jobs' own, as after a restart without recovery."""


def knowing_nobody(states: dict[str, tuple[str, int]] | None = None, epoch_ms: int = EPOCH_MS) -> Replay:
    """A ResourceManager that was started at an instant and knows these applications only."""
    known = manager(states or {}).answer

    def answer(heard: Heard) -> Reply:
        if heard.path == "/ws/v1/cluster/info":
            return Reply(json.dumps({"clusterInfo": {"id": epoch_ms, "haState": "ACTIVE"}}))
        return known(heard)

    return Replay(dated(answer))


def aged(hdfs: LittleHdfs, job: str, age_ms: int) -> None:
    """Let all that lies in a job's folders have been written so long ago."""
    for path in (*hdfs.files, *hdfs.folders):
        if job in path:
            hdfs.modified[path] = NOW_MS - age_ms


UNKNOWN = ("gc", "--yes", "--unknown-after", "30d")


def test_gc_deletes_what_nobody_knows_only_where_it_is_told_to(capfd, day) -> None:
    hdfs = Hdfs()
    jobs = [put(hdfs, number) for number in (1, 2)]
    assert request(hdfs, 1) == jobs[0]
    aged(hdfs, jobs[0], 30 * DAY_MS)
    aged(hdfs, jobs[1], 30 * DAY_MS - 1)
    with history({}) as server:
        run(capfd, hdfs, knowing_nobody(), "gc", "--yes", "--history", server.url)
        assert hdfs.deleted == []
        told = run(capfd, hdfs, knowing_nobody(), "gc", "--unknown-after", "30d", "--history", server.url)
        assert hdfs.deleted == []
        done = run(capfd, hdfs, knowing_nobody(), *UNKNOWN, "--history", server.url)
    assert hdfs.deleted == [f"{ROOT}/{jobs[0]}", f"{REQUESTS}/{jobs[0]}"]
    assert done["jobs"] == 1
    whys = {(row["what"], row["job"]): row["why"] for row in told["folders"]}
    assert whys["checkpoints", jobs[0]] == "unknown job, last written 30.0 d ago"
    assert "last written 30.0 d ago, less than 30 d" in whys["checkpoints", jobs[1]]


@pytest.mark.parametrize("state", ["RUNNING", "ACCEPTED"])
def test_a_job_that_runs_never_loses_its_checkpoints_however_old_they_are(capfd, day, state: str) -> None:
    hdfs = Hdfs()
    aged(hdfs, put(hdfs, 1), 3000 * DAY_MS)
    with history({}) as server:
        run(capfd, hdfs, knowing_nobody({application(1): (state, 0)}), *UNKNOWN, "--history", server.url)
    assert hdfs.deleted == []


def test_a_job_that_only_the_history_server_knows_to_run_stays(capfd, day) -> None:
    hdfs = Hdfs()
    job = put(hdfs, 1)
    aged(hdfs, job, 3000 * DAY_MS)
    with history({job: ("RUNNING", 0)}) as server:
        run(capfd, hdfs, knowing_nobody(), *UNKNOWN, "--history", server.url)
    assert hdfs.deleted == []


def test_one_file_that_is_young_keeps_the_whole_folder(capfd, day) -> None:
    for young in range(4):  # the job's folder, the task's, and its two files
        hdfs = Hdfs()
        job = put(hdfs, 1)
        aged(hdfs, job, 3000 * DAY_MS)
        path = sorted(each for each in hdfs.modified if job in each)[young]
        hdfs.modified[path] = NOW_MS - DAY_MS
        with history({}) as server:
            done = run(capfd, hdfs, knowing_nobody(), *UNKNOWN, "--history", server.url)
        assert hdfs.deleted == [], path
        assert "last written 1.0 d ago, less than 30 d" in done["folders"][0]["why"]


def test_another_clusters_younger_id_stays_and_silence_is_not_ignorance(capfd, day) -> None:
    hdfs = Hdfs()
    aged(hdfs, put(hdfs, 1), 3000 * DAY_MS)
    with history({}) as server:
        younger = knowing_nobody(epoch_ms=1_600_000_000_000)
        done = run(capfd, hdfs, younger, *UNKNOWN, "--history", server.url)
        assert "another cluster" in done["folders"][0]["why"]
        run(capfd, hdfs, {}, *UNKNOWN, "--history", server.url)  # does not say when it was started
    with Replay(dated(lambda heard: Reply("busy", 503))) as silent:
        told = run(capfd, hdfs, knowing_nobody(), *UNKNOWN, "--history", silent.url)
        assert told["folders"][0]["why"].startswith("the job's state is unknown")
    assert hdfs.deleted == []


def test_what_becomes_known_or_is_written_to_in_between_stays(capfd, day) -> None:
    hdfs = Hdfs()
    job = put(hdfs, 1)
    aged(hdfs, job, 3000 * DAY_MS)
    asked = []

    def answer(heard: Heard) -> Reply:
        asked.append(heard.path)
        if len([path for path in asked if "/jobs/" in path]) > 1:  # asked again: it goes on
            return Reply(json.dumps({"job": {"id": job, "state": "RUNNING", "user": "a", "finishTime": 0}}))
        return Reply('{"RemoteException":{"exception":"NotFoundException","message":"no"}}', 404)

    with Replay(dated(answer)) as server:
        done = run(capfd, hdfs, knowing_nobody(), *UNKNOWN, "--history", server.url, status=1)
    assert hdfs.deleted == []
    assert done["failed"][0]["problem"] == "kept: the job is RUNNING"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--unknown-after", "6d", "--history", "http://127.0.0.1:1"), "less than a week"),
        (("--unknown-after", "30"), "--unknown-after: '30' is not a duration"),
        (("--unknown-after", "30d"), "add --history"),
    ],
)
def test_what_could_be_too_soon_is_refused(capfd, words, why: str) -> None:
    where = ["--rm", "http://127.0.0.1:1", "--name-node", "http://127.0.0.1:2"]
    assert exit_status_of(PROGRAM, ["checkpoints", "gc", *words, *where]) == 2
    assert why in capfd.readouterr().err


NOBODY = ApplicationEnd(why="neither", is_unknown=True)
OLD = {("checkpoints", "job_5_1"): 1}


@pytest.mark.parametrize(
    ("ending", "now_ms", "forgotten", "why"),
    [
        (NOBODY, 40 * DAY_MS, ForgottenJobs(30 * DAY_MS, 9, OLD), ""),
        (ApplicationEnd(why="no answer"), 40 * DAY_MS, ForgottenJobs(30 * DAY_MS, 9, OLD),
         "the job's state is unknown (no answer)"),
        (NOBODY, 40 * DAY_MS, ForgottenJobs(30 * DAY_MS, None, OLD),
         "start time of the ResourceManager is unknown"),
        (NOBODY, 40 * DAY_MS, ForgottenJobs(30 * DAY_MS, 4, OLD), "another cluster"),
        (NOBODY, None, ForgottenJobs(30 * DAY_MS, 9, OLD), "the cluster's time is unknown"),
        (NOBODY, 40 * DAY_MS, ForgottenJobs(30 * DAY_MS, 9, {}), "the time of the last write is unknown"),
        (NOBODY, 30 * DAY_MS, ForgottenJobs(30 * DAY_MS, 9, OLD), "less than 30 d"),
        (NOBODY, 6 * DAY_MS, ForgottenJobs(0, 9, OLD), "less than 7 d"),
        (NOBODY, WEEK_MS + 1, ForgottenJobs(0, 9, OLD), ""),
    ],
)  # fmt: skip
def test_why_the_files_of_a_job_that_nobody_knows_stay(ending, now_ms, forgotten, why: str) -> None:
    told = why_unknown_kept("checkpoints", "job_5_1", ending, now_ms, forgotten)
    assert (why in told) if why else not told
