"""The loop on a tiny cluster: written before done, explained, replayed to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.unit.deciding.tiny import TinyCluster
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import Suspend
from yarnctl.deciding.reasons.orders import ApplicationHasEnded, RequesterHasRoom
from yarnctl.deciding.records import Decision, Header, Performed, Transfer, Transition, decode, encode
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.errors import BadInput, Different
from yarnctl.journal.chain import Chain, MemoryJournal, body_of
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.file import JournalFile, JournalStream, Line, read
from yarnctl.journal.replay import _difference, replay
from yarnctl.loop import tick

ROOT = Path(__file__).parents[2]


def sealed(bodies):
    """Chain lines anew, as a forger would who knows how."""
    chain = Chain()
    return b"".join(map(chain.seal_body, bodies)) + chain.seal_end()


def bodies_of(raw):
    """Return the records' own bytes: no envelopes, no closing line."""
    return [body_of(line) for line in raw.splitlines(keepends=True)][:-1]


def run(settings=DEFAULT, until_ms=20_000, journal=None):
    """Two research jobs fill 12 slots; a production master comes at 3 s, its 5 tasks at 9 s."""
    journal = journal or MemoryJournal()
    cluster = TinyCluster(3, 4, {"production": 11, "research": 1}, settings is PAPER)
    cluster.submit("r1", "research", 7)
    cluster.submit("r2", "research", 5)
    controller = Controller(settings, cluster.identify().capabilities, validate=True)
    now_ms = 0
    while now_ms <= until_ms:
        if now_ms >= 3000 and "p1" not in cluster.jobs:
            cluster.submit("p1", "production", 0, 1)
        if now_ms >= 9000 and cluster.jobs["p1"].started == 1:
            cluster.jobs["p1"].pending, cluster.jobs["p1"].started = 5, 2
        cluster.advance(now_ms)
        cluster.schedule()
        now_ms = tick(controller, cluster, journal)
    return cluster, journal


@pytest.fixture(scope="module")
def journal_bytes():
    return run()[1].encoded()


@pytest.fixture
def journal_path(tmp_path, journal_bytes):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(journal_bytes)
    return path


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
def test_production_gets_all_it_asks_for_and_nothing_more_is_taken(settings):
    cluster, journal = run(settings)
    assert (cluster.jobs["p1"].containers, cluster.jobs["p1"].pending) == (6, 0)
    assert len([action for action in cluster.actions if isinstance(action, Suspend)]) == 6
    assert cluster.jobs["r1"].containers + cluster.jobs["r2"].containers == 6
    grants = [r for r in journal.records if isinstance(r, Transition) and r.target == "granted"]
    assert len(grants) == 6


def test_records_are_safe_before_the_first_action():
    class Watching(MemoryJournal):
        """Says how much was written when the cluster was asked to do something."""

        written_at_actions: list[str]

    journal = Watching()
    journal.written_at_actions = []

    class Cluster(TinyCluster):
        """Looks into the journal at every action."""

        def perform(self, action):
            journal.written_at_actions.append(type(journal.records[-1]).__name__)
            assert any(
                action.order in getattr(record, "orders", ()) or getattr(record, "order", "") == action.order
                for record in journal.records
            )
            return super().perform(action)

    cluster = Cluster(1, 4, {"production": 3, "research": 1})
    cluster.submit("r1", "research", 4)
    cluster.submit("p1", "production", 0, 1)
    controller = Controller(DEFAULT)
    tick(controller, cluster, journal)
    tick(controller, cluster, journal)
    assert journal.written_at_actions == ["Requests"]
    assert isinstance(journal.records[-2], Performed)


def test_an_idle_cluster_writes_its_first_step_only():
    cluster = TinyCluster(1, 4, {"production": 3, "research": 1})
    cluster.submit("r1", "research", 4)
    controller, journal = Controller(DEFAULT), MemoryJournal()
    for now_ms in range(0, 10_000, 1000):
        cluster.now_ms = now_ms
        assert tick(controller, cluster, journal) == now_ms + 1000
    assert [type(record) for record in journal.records] == [Header, Observed]


def test_records_read_back_as_they_were_written(journal_bytes):
    for line in bodies_of(journal_bytes):
        assert encode(decode(line)) == line


def test_same_bytes_under_any_hash_seed(journal_bytes):
    program = (
        "import sys; from tests.journal.test_loop_and_journal import run;"
        "sys.stdout.buffer.write(run()[1].encoded())"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=True
        )
        assert done.stdout == journal_bytes


def test_records_name_no_machine(journal_bytes):
    for word in (str(ROOT), os.uname().nodename, "version"):
        assert word.encode() not in journal_bytes


# --- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
def test_a_journal_file_holds_what_a_journal_in_memory_holds(tmp_path, journal_bytes, durable):
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=durable) as journal:
        run(journal=journal)
        whole = b"".join(journal_bytes.splitlines(keepends=True)[:-1])
        assert path.read_bytes() == whole  # safe before it is closed
    assert path.read_bytes() == journal_bytes
    with JournalFile(path) as journal:
        journal.append([decode(journal_bytes.splitlines()[0])])
    assert path.read_bytes().startswith(journal_bytes)
    assert replay(read(path, closed=True), "j").records == 53  # the chain goes on
    before = path.read_bytes()
    with JournalFile(path):
        pass  # nothing was written: nothing is to be closed
    assert path.read_bytes() == before


def fail_while_writing(path, records):
    with JournalFile(path, durable=False) as journal:
        journal.append(records)
        raise ZeroDivisionError


def test_a_run_that_fails_leaves_its_journal_open(tmp_path, journal_bytes):
    path = tmp_path / "journal.jsonl"
    records = [decode(body) for body in bodies_of(journal_bytes)]
    with pytest.raises(ZeroDivisionError):
        fail_while_writing(path, records)
    assert path.read_bytes() == b"".join(journal_bytes.splitlines(keepends=True)[:-1])
    with (tmp_path / "other").open("wb") as file, JournalStream(file) as stream:
        stream.append(records)
    assert (tmp_path / "other").read_bytes() == journal_bytes


def test_what_is_no_journal_is_not_written_on(tmp_path):
    (tmp_path / "notes").write_text("remember the milk\n")
    with pytest.raises(BadInput, match="of no yarnctl journal"):
        JournalFile(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "remember the milk\n"


def test_a_torn_journal_is_not_written_on(journal_path, journal_bytes):
    journal_path.write_bytes(journal_bytes[:-3])
    with pytest.raises(BadInput, match="torn"):
        JournalFile(journal_path)
    assert journal_path.read_bytes() == journal_bytes[:-3]


BAD = [
    (lambda raw: raw[:-3], "53: the line is torn (no newline at its end); all records before it are equal"),
    (lambda raw: raw + b"{}\n", "54: no record of a yarnctl journal"),
    (lambda raw: raw + b"\xff\xfe\n", "54: no record of a yarnctl journal"),
    (lambda raw: raw + raw.splitlines(keepends=True)[5], "54: a journal begins with a header"),
    (lambda raw: raw.split(b"\n", 1)[1], "1: a journal begins with a header"),
    (lambda raw: raw.replace(b'"format":1', b'"format":6', 1),
     "1: the journal has format 6; this yarnctl reads format 1 only"),
    (lambda raw: b"", "the journal is empty"),
    (lambda raw: b"".join(bodies_of(raw)), "1: the line carries no link of the journal's chain"),
    (
        lambda raw: b"".join(raw.splitlines(keepends=True)[:-1]),
        "52: the journal ends here without having been closed (cut, or being written);"
        " all records before it are equal",
    ),
    (lambda raw: sealed(bodies_of(raw.replace(b'"job_policy":"MR"', b'"job_policy":"XX"', 1))),
     "1: no policy 'XX' in job_policy"),
    (lambda raw: sealed(bodies_of(raw.replace(b'"tick_ms":1000', b'"tick_ms":0', 1))),
     "1: tick_ms: 0 ms is out of range"),
    (lambda raw: sealed(bodies_of(raw.replace(b'"orders":["o-000001"]', b'"orders":[]', 1))),
     "5: decision 1 has 0 orders, 1 groups, 1 picks"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), BAD)
def test_what_is_no_journal_is_bad_input_with_file_and_line(
    journal_path, journal_bytes, capsys, spoil, message
):
    journal_path.write_bytes(spoil(journal_bytes))
    assert exit_status_of(PROGRAM, ["replay", str(journal_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {journal_path}")
    assert message in error
    assert error.count("\n") == 1


# --- replay -----------------------------------------------------------------------------------


def lines_of(journal_path):
    return list(read(journal_path))


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("policies", [("MR", "SRT"), ("PR", "random"), ("LR", "LRT"), ("MLF", "SRT")])
def test_replay_decides_the_same(tmp_path, settings, policies):
    job, task = policies
    _, journal = run(msgspec.structs.replace(settings, job_policy=job, task_policy=task, seed=11))
    path = tmp_path / "j"
    path.write_bytes(journal.encoded())
    done = replay(read(path), "j")
    assert (done.decisions, done.picks) == (2, 6)
    assert done.records == len(journal.records)


def edit(journal_path, kind, number, change):
    """Change the ``number``-th record of a kind as a program that reads JSON would."""
    lines = bodies_of(journal_path.read_bytes())
    places = [place for place, line in enumerate(lines) if json.loads(line)["type"] == kind]
    record = json.loads(lines[places[number]])
    change(record)
    lines[places[number]] = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    journal_path.write_bytes(sealed(lines))
    return places[number] + 1


def set_to(*path_and_value):
    *path, last, value = path_and_value

    def change(record):
        for step in path:
            record = record[step]
        record[last] = value

    return change


DIFFERENCES = [
    ("decision", 1, set_to("picks", 0, 2, [-1]), "but due is"),
    ("decision", 1, lambda r: r["picks"].reverse(), "but due is"),
    ("decision", 1, lambda r: [r[k].pop() for k in ("picks", "orders", "groups")], "but due is"),
    ("decision", 1, set_to("refused_jobs", 0, 2, "unreachable"), "but due is"),
    ("decision", 1, set_to("refused_tasks", 0, 3, "cost"), "but due is"),
    ("decision", 1, set_to("unmet", 1), '"unmet":1'),
    ("decision", 1, set_to("orders", 0, "o-000009"), "but due is"),
    ("decision", 1, set_to("groups", 0, "o-000009"), "but due is"),
    ("decision", 1, set_to("number", 3), '"number":2'),
    ("decision", 1, set_to("trigger", "shortfall", 4), '"shortfall":5'),
    ("transition", 1, set_to("source", "ordered"), '"source":"suspending"'),
    ("transition", 1, set_to("target", "freed"), '"target":"checkpointed"'),
    ("transition", 1, set_to("event", "granted"), '"event":"manifest"'),
    ("transition", 1, set_to("order", "o-000044"), '"order":"o-000001"'),
    ("requests", 0, set_to("actions", 0, "container", "zz"), '"container":"c-r1-002"'),
    ("performed", 0, set_to("action", "kill"), 'but due is {"type":"suspend","order":"o-000001"'),
    ("performed", 0, set_to("order", "o-000044"), 'but due is {"type":"suspend","order":"o-000001"'),
]


@pytest.mark.parametrize(("kind", "number", "change", "story"), DIFFERENCES)
def test_replay_stops_at_the_first_difference(journal_path, capsys, kind, number, change, story):
    line = edit(journal_path, kind, number, change)
    assert exit_status_of(PROGRAM, ["replay", str(journal_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {journal_path}:{line}: ")
    assert story in error


@pytest.mark.parametrize("after", [2, 3, 4, 5, 9])
def test_replay_refuses_a_transfer_that_no_step_made(journal_path, after):
    records = [line.record for line in read(journal_path)][:after]
    passed = Transfer(order="o-000001", source="p1", target="p9", at_ms=3250, why=RequesterHasRoom("p1"))
    lines = [Line(n, record, encode(record)) for n, record in enumerate([*records, passed], start=1)]
    with pytest.raises(Different, match=r"but due is|nothing would have been written"):
        replay(lines, "j")


def test_explain_follows_transfers(journal_path):
    records = [line.record for line in read(journal_path)][:8]
    passed = Transfer(order="o-000001", source="p1", target="p9", at_ms=3500, why=ApplicationHasEnded("p1"))
    found = explain([*records, passed], "p9")
    assert [(story.first_requester, story.requester) for story in found.orders] == [("p1", "p9")]
    assert "  moved    at 3500 ms to p9: p1 has ended" in in_words(found)


def test_replay_compares_the_bytes(journal_path, journal_bytes):
    spaced = bodies_of(journal_bytes.replace(b'"at_ms":3000', b'"at_ms": 3000', 1))
    journal_path.write_bytes(sealed(spaced))
    with pytest.raises(Different, match="other bytes"):
        replay(read(journal_path), "j")


def test_a_second_header_begins_anew(journal_path, journal_bytes):
    """A controller that was started again writes on in the same file, closed before or not."""
    records = [decode(body) for body in bodies_of(journal_bytes)]
    with JournalFile(journal_path) as journal:
        journal.append(records)
        decided = next(n for n, record in enumerate(records) if isinstance(record, Decision))
        journal.append(records[: decided + 1])  # decided, and then everything stopped
        journal.append(records)
    assert replay(read(journal_path, closed=True), "j").decisions == 7


def test_a_journal_that_is_being_written_can_be_replayed_as_such(journal_path, journal_bytes, capsys):
    journal_path.write_bytes(b"".join(journal_bytes.splitlines(keepends=True)[:-1]))
    assert exit_status_of(PROGRAM, ["replay", "--open", str(journal_path)]) == 0
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(journal_path), "o-000001"]) == 0
    assert exit_status_of(PROGRAM, ["replay", str(journal_path)]) == 2
    capsys.readouterr()


def test_replay_on_the_command_line(journal_path, capsys):
    assert exit_status_of(PROGRAM, ["replay", str(journal_path)]) == 0
    assert "equal; 52 records, 2 decisions with 6 picks" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, ["replay", str(journal_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["decisions"], found["transitions"]) == (2, 24)


# --- explain ----------------------------------------------------------------------------------


def explained(journal_path, wanted):
    return explain((line.record for line in read(journal_path)), wanted)


def test_explain_a_container(journal_path):
    found = explained(journal_path, "c-r1-003")
    assert found.roles == ["container"]
    (story,) = found.orders
    assert (story.order, story.decision, story.requester, story.victim) == ("o-000002", 2, "p1", "r1")
    assert (story.job_key, story.task_key) == ((-6 * 1024 * 12,), (13_000,))
    assert (story.receiver_application, story.receiver_container) == ("p1", "c-p1-004")
    assert story.state == "granted"
    assert (story.generation, story.keys_done) == (1, 7)
    assert (story.ordered_at_ms, story.checkpointed_at_ms) == (9000, 10_500)
    assert [(t.attempt, t.why) for t in story.next_tasks] == [("a-r1-006", "next"), ("a-r1-007", "next")]


def test_explain_says_it_in_words(journal_path):
    text = "\n".join(in_words(explained(journal_path, "a-r1-003")))
    for part in (
        "a-r1-003 (attempt in c-r1-003, r1, on n00)",
        "decision 2 at 9000 ms for p1 (unnamed, user u, queue production), 5 containers short",
        "key -73728); task first by SRT: shortest remaining time first (13 s left; key 13000)",
        "first by MR: most resources first (",
        "not      a-r1-006: next: eligible; other tasks came first (16 s left; key 16000)",
        "p1 (unnamed, user u, queue production) received c-p1-004",
        "released (suspension 1), no work lost, 7 keys kept, checkpointed after 1.5 s",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("wanted", "roles", "orders"),
    [
        ("p1", ["application"], 6),  # the requester of all
        ("r2", ["application"], 2),  # a victim twice
        ("o-000004", ["order"], 1),
        ("c-p1-001", ["container"], 1),  # whose place did it take?
        ("a-r1-007", ["attempt"], 0),  # shown as refused, never taken
    ],
)
def test_explain_finds_every_kind_of_id(journal_path, wanted, roles, orders):
    found = explained(journal_path, wanted)
    assert found.roles == roles
    assert len(found.orders) == orders


def test_explain_a_task_that_was_left_alone(journal_path):
    found = explained(journal_path, "a-r1-007")
    assert {(refused.requester, refused.why, refused.key) for refused in found.refused} == {
        ("p1", "next", (17_000,))
    }


def test_explain_on_the_command_line(journal_path, capsys):
    argv = ["explain", "--journal", str(journal_path)]
    assert exit_status_of(PROGRAM, [*argv, "c-r1-003"]) == 0
    assert "o-000002" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, [*argv, "c-r1-003", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orders"][0]["order"] == "o-000002"
    assert exit_status_of(PROGRAM, [*argv, ""]) == 2
    assert "error: ID: is empty" in capsys.readouterr().err
    assert exit_status_of(PROGRAM, [*argv, "nobody"]) == 1
    assert capsys.readouterr().err == (
        f"error: {journal_path}: no record contains nobody; it contains decisions and their candidates"
        " only; see yarnctl apps for other jobs\n"
    )
    assert exit_status_of(PROGRAM, ["explain", "--journal", "missing.jsonl", "x"]) == 2
    assert capsys.readouterr().err == "error: missing.jsonl: No such file or directory\n"


def test_settings_without_a_policy_are_bad_input():
    with pytest.raises(BadInput, match="job_policy: no policy 'XX'; use one of MR, LR, PR, MDF, MLF"):
        Controller(msgspec.structs.replace(DEFAULT, job_policy="XX"))
    with pytest.raises(BadInput, match="task_policy: no policy 'XX'; use one of SRT, LRT, random"):
        Controller(msgspec.structs.replace(DEFAULT, task_policy="XX"))


def test_the_decisions_number_from_one(journal_path):
    records = [line.record for line in lines_of(journal_path)]
    assert [record.number for record in records if isinstance(record, Decision)] == [1, 2]


def test_two_lines_are_shown_from_before_to_behind_their_difference() -> None:
    before, behind = "a" * 300, "b" * 300
    shown = _difference(f"{before}x{behind}", f"{before}y{behind}")
    around = ("a" * 200 + letter + "b" * 199 for letter in "xy")
    assert shown == "{}: ...{}, but due is ...{}".format("a" * 60, *around)
