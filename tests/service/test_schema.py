"""The API against its own description: no answer of 5xx, none that the OpenAPI document does not promise.

A slice runs here, with a fixed seed: every operation once, and again those for which token or ids matter.
``YARNCTL_API_EXAMPLES=500`` runs as many examples of each operation, and all of them in every way.
``schemathesis run URL/openapi.json`` does the same to any daemon that listens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.service.test_admissions import WISH, Daemon
from tests.thoroughness import is_thorough
from tests.unit.service.conftest import TOKEN, Served

EXAMPLES = os.environ.get("YARNCTL_API_EXAMPLES", "")
SLICE = "10" if is_thorough() else "3"
OPERATIONS = 27
ONLY: dict[str, tuple[tuple[str, ...], int]] = {
    "writes": (("--include-method", "POST"), 7),
    "with an id": (("--include-path-regex", r"\{"), 8),
    "admissions": (("--include-path-regex", "admissions"), 5),
}
"""What of the API is enough, and how many operations that is."""
KNOWN = {
    "application_id": "application_1_000002",
    "any_id": "o-000002",
    "decision_id": 2,
    "admission_id": "adm-a1b2-1",
}


def schemathesis(
    served: Served | Daemon, folder: Path, *more: str, only: str = "", known: bool = False
) -> subprocess.CompletedProcess[str]:
    """Try the operations of a served app; ``known``: only ask for what there is."""
    config = folder / "schemathesis.toml"
    parameters = "".join(f'"path.{name}" = {json.dumps(value)}\n' for name, value in KNOWN.items())
    config.write_text("[parameters]\n" + parameters if known else "", encoding="utf-8")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"]
    options = ["--seed", "1", "-n", EXAMPLES or SLICE, "--generation-deterministic", "--continue-on-failure"]
    command += [f"{served.url}/openapi.json", *options, "--phases", "examples,coverage,fuzzing", *more]
    command += ONLY[only][0] if only and not EXAMPLES else ()
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def require_clean(ended: subprocess.CompletedProcess[str], only: str = "") -> None:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    count = ONLY[only][1] if only and not EXAMPLES else OPERATIONS
    told = (f"Tested: {count}\n", f"Selected: {count}/{OPERATIONS}")
    assert any(words in ended.stdout for words in told), ended.stdout


def test_every_answer_is_as_promised_and_without_the_token_nothing_happens(served, tmp_path):
    require_clean(schemathesis(served, tmp_path))
    assert served.control.orders == []


def test_answers_about_what_is_known_are_as_promised(served, tmp_path):
    require_clean(schemathesis(served, tmp_path, only="with an id", known=True), "with an id")


def test_answers_to_orders_with_the_token_are_as_promised(served, tmp_path):
    told = ("-H", f"Authorization: Bearer {TOKEN}")
    require_clean(schemathesis(served, tmp_path, *told, only="writes"), "writes")
    assert served.control.orders


def test_without_a_token_in_the_daemon_every_write_is_in_vain(served_without_token, tmp_path):
    # It says 403 even to who sends no token: there is none to send.
    options = ("--exclude-checks", "missing_required_header", "-H", f"Authorization: Bearer {TOKEN}")
    require_clean(schemathesis(served_without_token, tmp_path, *options, only="writes"), "writes")
    assert served_without_token.control.orders == []


def test_a_gate_answers_as_promised(tmp_path):
    daemon = Daemon()
    try:
        known = daemon.ask("POST", "", 202, json=WISH)["id"]
        assert known == KNOWN["admission_id"]
        told = ("-H", f"Authorization: Bearer {TOKEN}")
        require_clean(schemathesis(daemon, tmp_path, *told, only="admissions", known=True), "admissions")
        assert daemon.ask("GET", "", 200)["total"] > 1
    finally:
        daemon.stop()


def test_a_broken_promise_is_found(served, tmp_path):
    served.view = None  # what a bug might do: 500 everywhere
    ended = schemathesis(served, tmp_path, "--include-path", "/v1/snapshot")
    assert ended.returncode == 1
    assert "Server error" in ended.stdout
