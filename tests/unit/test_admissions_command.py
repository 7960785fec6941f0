"""``yarnctl admissions``: what a user sees of the gate, and how he gives back what he does not use."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.unit.gate_played import ID
from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.api.admission_answers import AdmissionOut
from yarnctl.cli import PROGRAM
from yarnctl.cli.admissions import clock
from yarnctl.command_line import exit_status_of

NOW_MS = 1_700_000_000_000
GATE = {
    "allocator": "justice", "capacity": 40, "container_mib": 1024, "waiting": 1, "reserved": 1, "learned": 1,
    "problem": "",
}  # fmt: skip


def one(state: str = "waiting", application: str | None = None, **request: object) -> dict:
    """Return an admission in full, as the daemon tells it."""
    asked = {
        "name": "daily", "user": "ann", "queue": "root.production", "containers": 41, "deadline_ms": 600_000,
        "submitted_at_ms": NOW_MS - 5_000, "estimate": None, "kind": "mapreduce",
    }  # fmt: skip
    plan = {
        "verdict": "defer", "containers": 12, "deadline_at_ms": NOW_MS + 595_000,
        "start_at_ms": NOW_MS + 40_000, "finish_at_ms": None, "reason": "needs 12 containers, 3 free now",
    }  # fmt: skip
    return {
        "id": ID, "state": state, "why": "", "request": asked | request, "plan": plan,
        "application": application, "expires_at_ms": None, "lease_ms": 120_000,
        "tags": [f"deadline:{NOW_MS}", f"yarnctl-admission-{ID}"], "settings": {},
    }  # fmt: skip


class Gate(Replay):
    """A daemon with these admissions; ``withdrawn`` is what it answers to a DELETE."""

    def __init__(self, *items: dict, gate: dict | None = GATE, withdrawn: Reply | dict | None = None) -> None:
        self.items, self.gate = items, gate
        self.withdrawn = withdrawn or one("withdrawn")
        super().__init__(self._answered)

    def _answered(self, heard: Heard) -> Reply:
        if heard.method == "DELETE":
            found = self.withdrawn
            return found if isinstance(found, Reply) else Reply(json.dumps(found))
        if heard.path != "/v1/admissions":
            return Reply(json.dumps(self.items[0]))
        told = {"now_ms": NOW_MS, "version": 1, "total": len(self.items), "next": None}
        return Reply(json.dumps({**told, "gate": self.gate, "items": self.items}))


def admissions(gate: Replay, *words: str) -> int:
    return exit_status_of(PROGRAM, ["admissions", "--url", gate.url, *words])


def test_the_table_says_who_waits_for_what_within_120_columns(capsys):
    long = "sessions-of-all-shops-in-all-countries-2026-11-21-23-59-59"
    taken = one("running", f"application_{NOW_MS}_0001", name=long, user="averyverylongusername")
    with Gate(one(), taken, one("rejected") | {"id": "adm-1f2e3d4c5a6b-123456"}) as gate:
        assert admissions(gate) == 0
    text = capsys.readouterr().out
    title, *table = text.splitlines()
    assert title == (
        "3 admissions; justice: 1 request waiting, 1 of 40 containers reserved, learned from 1 job"
    )
    assert max(map(len, table)) <= 120
    joined = " ".join(text.replace("│", " ").split())
    application = f"application_{NOW_MS}_0001"
    for said in ("-/41", "12/41", "10 min", "starts in 40 s", application, "sessions-of-all-"):
        assert said in joined, said


def test_one_admission_has_clock_times_and_words(capsys):
    with Gate(one()) as gate:
        assert admissions(gate, ID) == 0
        text = capsys.readouterr().out
        assert admissions(gate, ID, "--json") == 0
    printed = msgspec.json.decode(capsys.readouterr().out, type=AdmissionOut)
    assert printed == msgspec.convert(one(), AdmissionOut)  # there instants stay numbers
    for said in (clock(NOW_MS + 595_000), clock(NOW_MS + 40_000), clock(NOW_MS - 5_000), "10 min"):
        assert said in text, said
    assert str(NOW_MS + 40_000) not in text
    assert "_ms" not in text


def test_without_a_gate_it_is_1_with_what_to_do(capsys):
    with Gate(gate=None) as gate:
        assert admissions(gate) == 1
        told = capsys.readouterr()
        assert admissions(gate, "--json") == 1
    assert told.out == ""
    assert told.err.startswith(
        f"error: {gate.url}: admission control is disabled; restart the daemon with --adm"
    )
    assert json.loads(capsys.readouterr().out)["gate"] is None


def test_what_is_not_used_is_given_back(capsys, tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("a-secret-of-sixteen\n")
    token.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(token))
    with Gate() as gate:
        assert admissions(gate, "--withdraw", ID) == 0
        assert capsys.readouterr().out == f"{ID}: withdrawn\n"
        assert admissions(gate, "--withdraw", ID, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "withdrawn"
    (first, _) = gate.heard
    assert (first.method, first.path) == ("DELETE", f"/v1/admissions/{ID}")
    assert first.headers["Authorization"] == "Bearer a-secret-of-sixteen"


def test_what_is_over_or_runs_is_not_given_back(capsys):
    with Gate(withdrawn=one("expired")) as gate:
        assert admissions(gate, "--withdraw", ID) == 1
    assert f"error: {ID}: cannot be withdrawn in state expired" in capsys.readouterr().err
    runs = {"code": "already-running", "message": "it runs as application_1_1", "next": "end the application"}
    with Gate(withdrawn=Reply(json.dumps({"error": runs}), 409)) as gate:
        assert admissions(gate, "--withdraw", ID) == 2
    assert "it runs as application_1_1; end the application" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("o-000001",), "'o-000001' is not an admission's ID; use an ID such as adm-1f2e3d4c-7"),
        (("--withdraw", "adm-7"), "'adm-7' is not an admission's ID"),
        (("--withdraw",), "--withdraw: requires ID"),
        ((ID, "--state", "waiting"), "cannot be combined with filters"),
    ],
)
def test_what_is_no_admission_is_refused_before_anybody_is_asked(words, said, capsys):
    with Gate() as gate:
        assert admissions(gate, *words) == 2
    assert said in capsys.readouterr().err
    assert gate.heard == []


def test_explain_sends_who_asks_a_daemon_for_an_admission_to_where_it_is_told(capsys):
    with Gate() as gate:
        assert exit_status_of(PROGRAM, ["explain", "--url", gate.url, ID]) == 2
    told = capsys.readouterr().err
    assert f"yarnctl admissions {ID}" in told
    assert "--journal" in told
    assert gate.heard == []


def test_a_promise_that_will_be_missed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    late = {"known_at_ms": NOW_MS - 1_000, "projected_at_ms": NOW_MS + 640_000}
    with Gate({**one("running", "application_1_0001"), "late": late}) as gate:
        assert admissions(gate) == 0
        assert "will be 45 s late" in " ".join(capsys.readouterr().out.replace("│", " ").split())
