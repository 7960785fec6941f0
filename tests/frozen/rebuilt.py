"""Rebuilt: what a controller that is started anew goes on with, as one JSON value.

Law: all of it that a decision, an action or an answer can depend on. Names of attributes are this file's own,
so that the structures may change and what they know may not.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.admission.choices import DEFAULT_CHOICES
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.mechanisms.justice import JusticeMemory
from yarnctl.deciding.admission.records import Reservation
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.records import Stance, Transition
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.rendering import text


def rebuilt(path: Path) -> Any:
    """Return what the journal at ``path`` leaves behind, and whether it was said to be believed only."""
    heard = _Heard()
    logger = logging.getLogger("yarnctl.journal")
    logger.addHandler(heard)
    try:
        found = rebuild(path)
    finally:
        logger.removeHandler(heard)
    assert found is not None
    remembered = found.remembered
    stances = [record for record in found.recent if isinstance(record, Stance)]
    moves = [record for record in found.recent if isinstance(record, Transition)]
    value = {
        "orders": orders_of(remembered.ledger),
        "sent": remembered.ledger.sent,
        "decisions": remembered.ledger.decisions,
        "due": remembered.ledger.due,
        "now_ms": remembered.now_ms,
        "records": len(found.recent),
        "transitions": min(1000, len(moves)),
        "changes": found.changes,
        "stances": [
            {"type": "stance", **msgspec.structs.asdict(one), "why": text(one.why)} for one in stances
        ],
        "epoch": found.epoch,
        "admissions": admissions_of(found.book),
        "warnings": [line.replace(str(path), "PATH") for line in heard.lines],
    }
    return json.loads(msgspec.json.encode(value))


def orders_of(ledger: Ledger) -> dict[str, Any]:
    return {
        "issued": ledger.issued, "open": list(ledger.open.values()), "settled": list(ledger.settled.values()),
        "by_container": ledger.by_container, "by_requester": _names(ledger.by_requester),
        "by_victim": _names(ledger.by_victim), "by_group": _names(ledger.by_group),
        "freed_on_node": _names(ledger.freed_on), "freed_for_asker": _names(ledger.freed_for),
        "barred_attempts": ledger.excluded, "barred_by_order": ledger.bars.by,
        "killed_not_ended": list(ledger.terminating.values()),
        "suspended_not_back": list(ledger.suspended.values()),
        "late": {requester: list(late.values()) for requester, late in ledger.recently_settled.items()},
        "tries": ledger.tries, "bars_until": sorted(ledger.bars.pauses),
    }  # fmt: skip


def _names(index: dict[str, dict[str, None]]) -> dict[str, list[str]]:
    return {key: list(names) for key, names in index.items()}


def admissions_of(book: AdmissionStore) -> dict[str, Any]:
    return {
        "gate": None if book.gate is None else gate_of(book.gate),
        "queues": book.queues,
        "container_mib": book.container_mib,
        "admissions": {name: _admission(each) for name, each in book.admissions.items()},
        "numbered": book.numbered,
        "now_ms": book.now_ms,
        "trained": book.trained,
        "open": list(book.opened),
        "not_learned_from": book.unlearned,
        **({"accounts": book.accounts} if book.accounts.accounts else {}),
    }


def gate_of(gate: Gate) -> dict[str, Any]:
    """Return what the gate knows; of choices and memory what any mechanism has, else defaults."""
    memory, choices = JusticeMemory(), DEFAULT_CHOICES
    return {
        "allocator": gate.mechanism, "capacity": gate.capacity, "choices": _own(choices, gate.choices),
        "memory": _own(memory, gate.memory), "waiting": gate.waiting,
        "reserved": [_reservation(each) for each in gate.reserved],
    }  # fmt: skip


PRICED = ("price_mtokens", "late_ratio", "because")
"""What a plan has where deadlines have a price, and is told there only."""
PLACED = ("pool", "kind", "settings", "predicted_ms", "cost_mtokens", "refused")
"""What a plan has where applications are placed, and is told there only."""


def _admission(each: Admission) -> dict[str, Any]:
    plan = each.plan
    left_out = () if plan.cost_mtokens is not None else PLACED
    if plan.price_mtokens is None:
        left_out = (
            *left_out,
            *(name for name in PRICED if plan.cost_mtokens is None or name != "late_ratio"),
        )
    return {
        **msgspec.structs.asdict(each),
        "plan": {
            **{
                name: value
                for name, value in msgspec.structs.asdict(each.plan).items()
                if name not in left_out
            },
            "reason": text(each.plan.reason),
        },
        "reservation": None if each.reservation is None else _reservation(each.reservation),
        "why": "" if each.why is None else text(each.why),
    }


def _reservation(each: Reservation) -> dict[str, Any]:
    return {
        "request": each.request, "containers": each.containers, "ratio": each.ratio, "from_ms": each.from_ms,
        "until_ms": each.until_ms, "expires_at_ms": each.expires_at_ms, "application": each.application,
    }  # fmt: skip


def _own(all_of_them: msgspec.Struct, own: msgspec.Struct) -> dict[str, Any]:
    return {**msgspec.structs.asdict(all_of_them), **msgspec.structs.asdict(own)}


class _Heard(logging.Handler):
    """Keeps what is warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
