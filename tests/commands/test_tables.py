"""Tables: nothing that somebody has to copy is cut off, however narrow the terminal is.

Ids are those of a ResourceManager of today: 13 digits of its start, four of the application.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl import command_line
from yarnctl.attach.check.preflight import Facts
from yarnctl.attach.check.rules import judge
from yarnctl.checkpoint.collecting import JudgedFolder
from yarnctl.checkpoint.opened_store import CheckpointRow
from yarnctl.checkpoint.verifying import CheckpointVerdict
from yarnctl.cli import PROGRAM, check, checkpoints, runs
from yarnctl.cli.cluster import ClusterOptions, FolderOptions
from yarnctl.command_line import exit_status_of
from yarnctl.prediction.application_runs import KnownRun
from yarnctl.short_ids import ids_in, resolved
from yarnctl.tables import table_text

ROOT = Path(__file__).parents[2]
WIDTHS = (80, 120, 200)
STAMP = 1795286111346
NOW_MS = STAMP + 4_000_000
RESEARCH, PRODUCTION = (f"application_{STAMP}_{number:04}" for number in (899, 10063))
ATTEMPT = f"attempt_{STAMP}_0899_r_000003_2"
CONTAINER = f"container_e17_{STAMP}_0899_01_000012"
TASK = f"task_{STAMP}_0899_r_000003"
MANIFEST = f"gen-000001-{ATTEMPT}.manifest.json"
WHY_NOT = "the streaming job has no reducer command: stream.reduce.streamprocessor is not set"


def size(memory_mib: int) -> dict[str, int]:
    return {"memory_mib": memory_mib, "vcores": memory_mib // 256}


def application(name: str, queue: str, runner: bool) -> dict[str, Any]:
    counts = {"containers": 12, "used": size(3072), "pending": 3, "expected": 1, "suspending": 1}
    told = {"application": name, "role": "preemptable", "queue": queue, "user": "alice.of.research"}
    job = {"name": "sessions", "rank": 0, "submitted_at_ms": STAMP, "priority": 0, "deadline_at_ms": None}
    state = {"predicted": 0, "progress_ratio": 0.5, "activated": True}
    return {**told, **job, **counts, **state, "runner": runner, "why_not": "" if runner else WHY_NOT}


ENTRY = {
    "order": "o-000081", "decision": 13, "requester": PRODUCTION, "victim": RESEARCH, "attempt": ATTEMPT,
    "container": CONTAINER, "node": "worker-0017.rack-3.example.com:45454", "size": size(256), "serves": 1,
    "group": "o-000081", "verb": "suspend", "generation": 1, "state": "granted", "retired": False,
    "why": "granted", "ordered_at_ms": NOW_MS - 13_300, "progress_at_ms": NOW_MS - 13_300,
    "checkpointed_at_ms": NOW_MS - 5_000, "freed_at_ms": NOW_MS - 3_000, "settled_at_ms": NOW_MS - 1_000,
    "keys_done": 20, "remaining_ms": 33_500, "predicted_cost_ms": 23_700, "cost_ms": 20_100,
    "receiver_application": PRODUCTION, "receiver_container": "",
}  # fmt: skip
RECLAIMS = {
    "application": PRODUCTION, "queue": "production", "role": "preempting", "pending": 3, "expected": 1,
    "states": {"granted": 1}, "entries": [ENTRY],
}  # fmt: skip
DECISION = {
    "id": 13, "at_ms": NOW_MS - 500, "application": PRODUCTION, "queue": "production",
    "why": "pending requests fit on no node", "shortfall": 4, "chosen": 4, "unmet": 0,
    "victims": [RESEARCH, f"application_{STAMP}_0900"], "states": {"granted": 3, "withdrawn": 1},
}  # fmt: skip
SEEN = {
    "order": "o-000081", "application": RESEARCH, "attempt": ATTEMPT, "generation": 1, "keys_done": 20,
    "at_ms": NOW_MS - 500, "requester": PRODUCTION,
}  # fmt: skip
ADMISSION: dict[str, Any] = {
    "id": "adm-1f2e3d4c-7",
    "state": "running",
    "why": "",
    "request": {"name": "sessions of the day", "user": "alice", "queue": "root.production", "containers": 41,
        "deadline_ms": 600_000, "submitted_at_ms": NOW_MS - 5_000, "estimate": None, "kind": "mapreduce"},
    "plan": {"verdict": "admit", "containers": 12, "deadline_at_ms": NOW_MS + 595_000, "start_at_ms": None,
        "finish_at_ms": None, "reason": "needs 12 containers, 3 free now"},
    "application": PRODUCTION,
    "expires_at_ms": None,
    "lease_ms": 120_000,
    "tags": [],
    "settings": {},
}  # fmt: skip
GATE = {
    "allocator": "justice", "capacity": 40, "container_mib": 1024, "waiting": 1, "reserved": 1, "learned": 1,
    "problem": "",
}  # fmt: skip
OCCUPIED = {"used": size(512), "containers": 2, "pending": 1}
SNAPSHOT = {
    "now_ms": NOW_MS,
    "version": 1,
    "loop": {"enforce": False, "loop_state": "running", "why": "", "reachable": True, "ticks": 3,
        "tick_ms": 1.5, "tick_errors": 0, "last_error": "", "started_at_ms": STAMP},
    "cluster": {"epoch": str(STAMP), "node_count": 3, "capabilities": []},
    "snapshot_at_ms": NOW_MS,
    "snapshot_age_ms": 0,
    "quiet": False,
    "total": size(3072),
    "free": size(0),
    "preempting": OCCUPIED,
    "preemptable": OCCUPIED,
    "other": OCCUPIED,
    "queues": [
        {"queue": "root.analytics.interactive.production", "role": "preempting", "guaranteed": size(2918),
         "maximum": size(3072), "used": size(512), "applications": 1, "containers": 2, "pending": 1}
    ],
    "applications": 2,
    "open_orders": 1,
    "unreachable": [],
    "decisions": 13,
}  # fmt: skip
ITEMS: dict[str, list[dict[str, Any]]] = {
    "/v1/applications": [application(RESEARCH, "research", True), application(PRODUCTION, "default", False)],
    "/v1/reclaims": [RECLAIMS],
    "/v1/decisions": [DECISION],
    "/v1/checkpoints": [SEEN],
    "/v1/admissions": [ADMISSION],
    "/v1/budgets": [
        {"queue": None, "user": "carol", "application": RESEARCH, "may_lose_ratio": 0.02,
         "window_ms": 3_600_000, "lost_ms": 72_000, "left_ms": 1_500_000, "container_mib": 2048,
         "bought": {"containers": 12, "waiting_saved_ms": 340_000}}
    ],
    "/v1/accounts": [
        {"name": "analytics-of-the-research-department", "balance_mtokens": 851_800, "given_mtokens": 900_000,
         "spent_mtokens": 48_200, "daily_mtokens": 900_000, "cap_mtokens": 1_800_000}
    ],
}  # fmt: skip


def answered(heard: Heard) -> Reply:
    if heard.path == "/v1/snapshot":
        return Reply(json.dumps(SNAPSHOT))
    if heard.path.startswith("/v1/admissions/"):
        return Reply(json.dumps(ADMISSION))
    told = {"now_ms": NOW_MS, "version": 1, "next": None, "gate": GATE}
    items = ITEMS[heard.path]
    return Reply(json.dumps({**told, "total": len(items), "items": items}))


def asked(*words: str) -> Callable[[], None]:
    def run() -> None:
        with Replay(answered) as daemon:
            assert exit_status_of(PROGRAM, [*words, "--url", daemon.url]) == 0

    return run


def in_store(command: Any, **more: Any) -> Callable[[], None]:
    """Return what runs a command that looks into the store, over a store that holds one task."""
    row = CheckpointRow(
        job=f"job_{STAMP}_0899", task=TASK, owner="alice.of.research", generation=1, groups_done=20,
        output_bytes=243, created_at_ms=NOW_MS, age_ms=17_000, bytes=1187, manifests=1, application=RESEARCH,
        application_state="RUNNING", problem=f"{MANIFEST} names {ATTEMPT}, which is not its own",
    )  # fmt: skip
    verdict = CheckpointVerdict(
        f"job_{STAMP}_0899", TASK, MANIFEST, 1, 243, "bad", ("its first part is 3 bytes short of 240",)
    )
    store = SimpleNamespace(
        rows=lambda now_ms: (row,),
        verdicts=lambda names, quick: [verdict],
        manifests=lambda name: [(f"job_{STAMP}_0899/{TASK}", MANIFEST, "its seal is broken")],
        checkpoints=SimpleNamespace(root="/yarnctl/checkpoints"),
        application_ends=SimpleNamespace(unreachable=()),
    )
    inner = inspect.unwrap(command.callback)

    def run() -> None:
        with patch("yarnctl.cli.checkpoints._open", lambda *_: store):
            inner(cluster=ClusterOptions(), folders=FolderOptions(), history=None, output="table", **more)

    return run


def collected() -> None:
    row = JudgedFolder(
        "checkpoints", f"job_{STAMP}_0899", False, "the job ended 0.0 h ago, less than 24 h", 1187, 3
    )
    checkpoints._print_gc((row,), {}, {"deleted": False, "files": 0, "jobs": 0, "bytes": 0})


FINDINGS = judge(
    Facts(configuration={"yarn.resourcemanager.scheduler.class": "org.apache.FairScheduler"}, why={})
)
KNOWN = [
    KnownRun(
        "wordcount", "spark", {"size": 2.0}, {"spark.executor.memory": "640m"}, 4, 12_500, "table.csv:2"
    ),
    KnownRun("wordcount", "spark", {"size": 9.5}, {}, 8, 7_000, "table.csv:3"),
]
TABLES: dict[str, Callable[[], object]] = {
    "apps": asked("apps"), "reclaims": asked("reclaims"), "budgets": asked("budgets"),
    "decisions": asked("decisions"), "snapshot": asked("snapshot"), "admissions": asked("admissions"),
    "admission": asked("admissions", "adm-1f2e3d4c-7"), "accounts": asked("accounts"),
    "checkpoints seen": asked("checkpoints", "seen"), "checkpoints list": in_store(checkpoints.list_command),
    "checkpoints verify": in_store(checkpoints.verify_command, names=(), quick=False),
    "checkpoints show": in_store(checkpoints.show_command, name=f"job_{STAMP}_0899"),
    "checkpoints gc": collected, "runs": lambda: runs._show(KNOWN, None, None, "table", False),
    "runs of one": lambda: runs._show(KNOWN, "wordcount", "spark", "table", False),
    "check": lambda: check._print(FINDINGS, "table"),
}  # fmt: skip
ANY_TABLE = {
    "yarnctl/cli": {"admissions.py", "apps.py", "budgets.py", "checkpoints.py", "decisions.py", "market.py",
        "reclaims.py", "runs.py", "snapshot.py"},
    "emulator/cli": {"workload.py"},
    "emulator/experiments": {"showing.py"},
    "emulator/live/jobs": {"workload_replay.py"},
}  # fmt: skip
"""Who prints tables. The emulator's hold names and numbers; the random tables below stand for them."""


def words_in(text: str) -> set[str]:
    """Return the words of a rendered table, without its lines."""
    return set(re.sub(r"[│┃━┏┓┳┡╇┩└┘┴─]", " ", text).split())


def test_every_table_is_printed_in_one_place_and_every_printer_is_known_here() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted([*ROOT.glob("yarnctl/**/*.py"), *ROOT.glob("emulator/**/*.py")]):
        text = path.read_text(encoding="utf-8")
        if path.name != "tables.py":
            assert "rich.table" not in text, path
        names = {name for node in ast.walk(ast.parse(text)) if (name := _called(node))}
        if "print_table" in names:
            found.setdefault(str(path.parent.relative_to(ROOT)), set()).add(path.name)
    assert found == ANY_TABLE


def _called(node: ast.AST) -> str:
    """Return the name that a call uses; "" for what is none."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_what_must_be_copied_is_there(name: str, width: int, capsys, monkeypatch) -> None:
    monkeypatch.setattr(command_line, "terminal_columns", lambda: None)
    monkeypatch.setattr(check, "terminal_columns", lambda: None)
    TABLES[name]()
    piped = capsys.readouterr().out
    ids = set(ids_in(piped))
    monkeypatch.setattr(command_line, "terminal_columns", lambda: width)
    monkeypatch.setattr(check, "terminal_columns", lambda: width)
    TABLES[name]()
    out = capsys.readouterr().out
    assert not re.search(r"…(?!\d)", out)
    assert "..." not in out
    words = words_in(out)
    for word in words_in(piped):
        assert any(each == word or _stands_for(each, word, ids) for each in words), word
    too_long = [line for line in out.splitlines() if len(line) > width and "  " in line.strip()]
    assert all(line.startswith("  fix") or max(map(len, line.split())) > width - 40 for line in too_long)


def _stands_for(shown: str, word: str, ids: set[str]) -> bool:
    """Say whether a word of a narrow table is the short form of one id, and of no other."""
    bare, full = shown.strip(",;:()"), word.strip(",;:()")
    return bare.startswith("…") and full in ids and resolved(bare, ids) == [full]


@pytest.mark.parametrize("name", ["apps", "reclaims", "decisions", "checkpoints seen"])
def test_what_is_piped_has_full_ids_and_a_line_for_each_row(name: str, capsys) -> None:
    TABLES[name]()
    out = capsys.readouterr().out
    assert "…" not in out
    ids = {one for one in (RESEARCH, PRODUCTION, ATTEMPT) if one in json.dumps(list(ITEMS.values()))}
    shown = {"apps": {RESEARCH, PRODUCTION}, "reclaims": ids, "decisions": ids - {ATTEMPT}}
    wanted = shown.get(name, {ATTEMPT, PRODUCTION})
    assert wanted <= words_in(out.replace(",", " "))
    assert sum(line.startswith("│") for line in out.splitlines()) == (2 if name == "apps" else 1)


@pytest.mark.parametrize(
    "one", [each for each in FINDINGS if each.fix and each.severity == "fail"], ids=lambda each: each.id
)
def test_a_fix_stays_on_one_line(one, capsys, monkeypatch) -> None:
    monkeypatch.setattr(check, "terminal_columns", lambda: 80)
    check._print(FINDINGS, "table")
    assert f"  fix    {one.fix}\n" in capsys.readouterr().out


CELLS = st.one_of(
    st.none(),
    st.integers(-(10**12), 10**12),
    st.text(alphabet="abc/_:. -\n", max_size=120),
    st.sampled_from([RESEARCH, ATTEMPT, CONTAINER, f"/yarnctl/requests/{TASK}/{MANIFEST}", WHY_NOT]),
)


@settings(deadline=None)
@given(st.data())
def test_no_table_cuts_anything_off(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 11))
    columns = [f"column {place}" for place in range(number)]
    rows = data.draw(st.lists(st.lists(CELLS, min_size=number, max_size=number), max_size=4))
    width = data.draw(st.integers(40, 240))
    text = table_text(columns, rows, None, width)
    shown = " ".join(words_in(text))
    for row in rows:
        for cell in row:
            for word in str("-" if cell is None else cell).split():
                full = set(ids_in(word))
                is_short = any(_stands_for(each, word, full) for each in shown.split())
                assert word in shown or is_short
    if "┃" in text:
        assert {len(line) for line in text.splitlines() if line[0] in "┏┃┡│└"} <= set(range(width + 1))


def test_a_terminal_says_how_wide_it_is() -> None:
    program = (
        "from yarnctl.command_line import print_table; "
        f"print_table(['order', 'victim', 'attempt'], [['o-000081', '{RESEARCH}', '{ATTEMPT}']])"
    )
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = ["sh", "-c", 'stty cols 60; exec "$@"', "sh", sys.executable, "-c", program]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as one:
        os.close(theirs)
        told = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while some := os.read(ours, 65_536):
                told += some
    os.close(ours)
    assert one.returncode == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", told.decode())
    assert "…1346_0899_r_000003_2" in text
    assert f"…1346_0899 is short for {RESEARCH}; commands take both" in text
    assert max(map(len, text.replace("\r", "").splitlines()[:-1])) <= 60
