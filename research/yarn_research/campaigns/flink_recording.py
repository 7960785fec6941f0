"""What a real JobManager answers while a job works: recorded for the tests of its records.

``python -m yarn_research.campaigns.flink_recording RM APPLICATION FILE`` asks one on a running Hadoop, and writes FILE.

Law: what names the machine is left out: of the settings only those of ``KEPT`` are kept, of a TaskManager its
container and slots.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import http_client
from tests.hadoop.artifacts import FLINK
from yarnctl.frameworks.flink.rest import CHECKPOINTS, GONE, IDLE, SCHEDULER

KEPT = (SCHEDULER, IDLE, GONE, CHECKPOINTS, "yarn.tags", "parallelism.default")
OF_MANAGER = ("id", "slotsNumber", "freeSlots", "timeSinceLastHeartbeat")


def answers(root: str) -> dict[str, Any]:
    """Return what the JobManager answers, by path."""

    def ask(path: str) -> Any:
        return http_client.get(f"{root}/{path}", timeout=20).json()

    found = {path: ask(path) for path in ("jobmanager/config", "jobs/overview", "taskmanagers")}
    found["jobmanager/config"] = [row for row in found["jobmanager/config"] if row["key"] in KEPT]
    rows = found["taskmanagers"]["taskmanagers"]
    found["taskmanagers"] = {"taskmanagers": [{name: row[name] for name in OF_MANAGER} for row in rows]}
    job = found["jobs/overview"]["jobs"][0]["jid"]
    found[f"jobs/{job}/resource-requirements"] = ask(f"jobs/{job}/resource-requirements")
    latest = ask(f"jobs/{job}/checkpoints")["latest"]
    kept = ("id", "status", "trigger_timestamp", "latest_ack_timestamp", "state_size", "end_to_end_duration")
    completed = {name: latest["completed"][name] for name in kept}
    found[f"jobs/{job}/checkpoints"] = {"latest": {**dict.fromkeys(latest), "completed": completed}}
    return found


def main(arguments: Sequence[str]) -> int:
    """Record, and write the file."""
    manager, application, output = arguments
    told = {"flink": FLINK[1], "answers": answers(f"{manager}/proxy/{application}")}
    Path(output).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
